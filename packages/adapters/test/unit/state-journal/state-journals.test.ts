import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { HoldfastSaver } from "../../../src/langgraph/index.ts";
import { StateJournals } from "../../../src/state-journal/state-journals.ts";

test("sessions that were used before many others are released before their time is over", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-journals-"));
  const saver = await HoldfastSaver.open(folder, { durability: "process", releaseMs: 3_600_000 });
  try {
    const ids: string[] = [];
    for (let i = 0; i < 150; i++) {
      const configurable = { thread_id: `t${i}`, checkpoint_ns: "" };
      await saver.put({ configurable }, emptyCheckpoint(), { source: "input", step: -1, parents: {} }, {});
    }
    for (const { session } of (await saver.listThreads({ limit: 1000 })).threads) ids.push(session);
    expect(ids).toHaveLength(150);
    await using store = await openFolderStore(folder);
    const held = async (): Promise<number> => {
      const holders = await Promise.all(ids.map((id) => store.holder(id)));
      return holders.filter((holder) => holder !== null).length;
    };
    await expect.poll(held).toBeLessThanOrEqual(65);
  } finally {
    await saver.close();
    rmSync(folder, { recursive: true });
  }
});

test.runIf(process.platform === "linux")(
  "a caller that never waits for the disk does not run out of files",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-journals-"));
    const saver = await HoldfastSaver.open(folder, { durability: "process", releaseMs: 3_600_000 });
    const openFiles = (): number => readdirSync("/proc/self/fd").length;
    const before = openFiles();
    let most = 0;
    try {
      for (let i = 0; i < 300; i++) {
        const configurable = { thread_id: `t${i}`, checkpoint_ns: "" };
        await saver.put({ configurable }, emptyCheckpoint(), { source: "input", step: -1, parents: {} }, {});
        most = Math.max(most, openFiles() - before);
      }
      // Each takes four: two for its journal, and two for its lease. Other tests of this process may have some, too.
      expect(most).toBeLessThan(4 * 100);
      expect((await saver.listThreads({ limit: 1000 })).threads).toHaveLength(300);
    } finally {
      await saver.close();
      rmSync(folder, { recursive: true });
    }
  },
);

test("one that is being written is kept, and asked once to be released", () => {
  const asked: string[] = [];
  const journals = new StateJournals();
  const make = (name: string) => ({
    isIdle: false,
    release: () => {
      asked.push(name);
      return new Promise<void>(() => {});
    },
  });
  const first = journals.get("0", () => make("0") as never);
  for (let i = 1; i < 100; i++) journals.get(String(i), () => make(String(i)) as never);
  expect(asked).toEqual([...new Set(asked)]);
  expect(asked).toContain("0");
  expect(journals.get("0", () => make("again") as never)).toBe(first);
});
