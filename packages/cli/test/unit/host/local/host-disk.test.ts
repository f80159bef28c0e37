import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { validateAiSdk } from "@holdfast/testkit";
import type { ModelMessage } from "ai";
import { expect, test } from "vitest";
import { FailingDisk } from "../../../../../adapters/test/failing-disk.ts";
import { LocalHost } from "../../../../src/host/local/local-host.ts";
import { config, heard, Stage } from "../host-stage.ts";

const PROMPT = "1. run echo one >> log.txt 2. write a.txt: two 3. run echo three >> log.txt";

test("P8, C19: whichever write or sync of the journal fails, no tool runs on the strength of it; asked again it goes on, and nothing happens twice", {
  timeout: 120_000,
}, async () => {
  let hasFailed = true;
  for (let n = 1; hasFailed; n++) {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-disk-"));
    const work = mkdtempSync(join(tmpdir(), "holdfast-work-"));
    const disk = new FailingDisk();
    const host = new LocalHost(await disk.open(folder), { ...config, allow: ["shell", "write"] }, "nobody");
    try {
      disk.countdown = n;
      const chat = await host.create({ cwd: work }).catch(() => host.create({ cwd: work }));
      const { events } = heard(chat);
      await chat.prompt(PROMPT).catch(() => {});
      await chat.settled();
      hasFailed = disk.failed > 0;
      const where = `the ${n}th, ${JSON.stringify(chat.state.failure)}`;
      // A prompt that began no turn leaves none to be finished, unless that is in doubt.
      if (!events.some(({ type }) => type === "turn.started") && chat.state.failure?.code !== "SYNC_FAILED")
        expect(chat.state.status, where).toBe("idle");
      if (chat.state.status === "interrupted") {
        expect(chat.state.failure?.code, where).toMatch(/^(STORE_FULL|STORE_IO|SYNC_FAILED)$/);
        const starts = events.filter(({ type }) => type === "tool.started").length;
        const ends = events.findIndex((event) => event.type === "turn.ended" && event.outcome === "failed");
        if (ends >= 0)
          expect(
            events.slice(ends).some(({ type }) => type === "tool.started"),
            where,
          ).toBe(false);
        // What was in doubt may turn out to be there: the prompt that was not, or the end that was.
        await chat.finish().catch(async (error: unknown) => {
          expect(error, where).toMatchObject({ code: "NOTHING_TO_RESUME" });
          if (chat.state.items.length === 0) await chat.prompt(PROMPT);
        });
        await chat.settled();
        expect(events.filter(({ type }) => type === "tool.started").length, where).toBeGreaterThanOrEqual(starts);
      } else if (chat.state.items.length === 0) {
        await chat.prompt(PROMPT);
        await chat.settled();
      }
      expect(chat.state, where).toMatchObject({ status: "idle", failure: null });
      expect(readFileSync(join(work, "log.txt"), "utf8"), where).toBe("one\nthree\n");
      expect(existsSync(join(work, "a.txt")), where).toBe(true);
      const { messages, interruption } = await host.sessions.read<ModelMessage>(chat.id);
      expect(interruption, where).toBeNull();
      expect(validateAiSdk({ messages }, { prefill: true }), where).toEqual([]);
    } finally {
      disk.countdown = 0;
      await host.close();
      for (const path of [folder, work]) rmSync(path, { recursive: true, force: true });
    }
  }
});

test.each([1, 2, 3, 4, 5, 6])(
  "P8: the %ith write or sync behind a person's word fails: the turn can be finished, and is said to be",
  async (n) => {
    await using stage = new Stage();
    const disk = new FailingDisk();
    const host = new LocalHost(await disk.open(stage.folder), config, "person");
    try {
      const chat = await host.create({ cwd: stage.work });
      await chat.prompt("run echo one >> log.txt");
      await chat.settled();
      disk.countdown = n;
      await chat.answer(chat.state.asks[0]!.call, "allow");
      await chat.settled();
      expect(disk.failed).toBe(1);
      expect(chat.state).toMatchObject({ status: "interrupted", failure: {} });
    } finally {
      disk.countdown = 0;
      await host.close();
    }
  },
);
