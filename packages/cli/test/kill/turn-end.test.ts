import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { ModelMessage } from "ai";
import { openStore, type Reading } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { LocalHost } from "../../src/host/local/local-host.ts";
import { APP } from "../../src/store/app.ts";
import { CONFIG, type Orders } from "./turn-end-agent.ts";

const AGENT = join(import.meta.dirname, "turn-end-agent.ts");

async function killed(orders: Orders): Promise<boolean> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", AGENT, JSON.stringify(orders)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return (await text(child.stdout)) !== "done\n";
}

/** What the model said in a conversation, answer by answer. */
const saidIn = ({ entries }: Reading<ModelMessage>): string[] =>
  entries.flatMap(({ message, synthetic }) =>
    message.role === "assistant" && synthetic === undefined ? [JSON.stringify(message.content)] : [],
  );
const textOf = (said: string | undefined): string => JSON.parse(said ?? '[{"text":""}]').at(-1).text ?? "";

/** All conversations of a store, those of sub-agents too, by what was asked. */
async function conversations(folder: string): Promise<Map<string, Reading<ModelMessage>>> {
  await using store = await openStore(folder);
  const { sessions } = await store.list();
  const readings = await Promise.all(sessions.map(({ id }) => store.read<ModelMessage>(id)));
  return new Map(readings.map((reading) => [JSON.stringify(reading.entries[0]?.message.content), reading]));
}

test.each(["write a.txt: one", "delegate: write a.txt: one"])(
  "P5: %s: SIGKILL at every write: a turn whose answer is there is completed, and its model is not asked again",
  async (prompt) => {
    let undisturbed: Map<string, string> | null = null;
    for (let killAt = 0; ; killAt++) {
      const what = `killed at write ${killAt}`;
      using folder = place();
      using work = place();
      const wasKilled = await killed({ folder: folder.path, work: work.path, prompt, killAt });
      const before = await conversations(folder.path);
      if (killAt === 0) {
        undisturbed = new Map([...before].map(([asked, reading]) => [asked, textOf(saidIn(reading).at(-1))]));
        expect(undisturbed.size, "with those of sub-agents").toBe(prompt.startsWith("delegate") ? 2 : 1);
        continue;
      }
      if (!wasKilled) break;
      const host = new LocalHost(await openStore(folder.path, { app: APP, recordsToolStarts: true }), CONFIG, "nobody");
      const chat = await host.latest(work.path);
      if (!chat) {
        await host.close();
        continue;
      }
      if (chat.state.interruption) {
        await chat.finish();
        await chat.settled();
      } else if (chat.state.items.length === 0) {
        await host.close();
        continue;
      }
      await host.close();
      const after = await conversations(folder.path);
      for (const [asked, last] of undisturbed!) {
        const reading = after.get(asked)!;
        expect(reading.interruption, what).toBe(null);
        // Where it had answered, nothing was added behind the answer.
        const had = before.get(asked);
        const wasAnswered = had !== undefined && textOf(saidIn(had).at(-1)) === last;
        if (wasAnswered) expect(saidIn(reading), `${what}: ${asked}`).toEqual(saidIn(had));
        expect(textOf(saidIn(reading).at(-1)), `${what}: ${asked}`).toBe(last);
      }
    }
  },
);
