import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type AnthropicMessage, openStore, type Reading } from "holdfast";
import { afterAll, expect, test } from "vitest";
import { place } from "../place.ts";
import { ID, KEYS, live, type Orders } from "./prompt-keys-agent.ts";

const AGENT = join(import.meta.dirname, "prompt-keys-agent.ts");
const compiled = place();
afterAll(() => compiled[Symbol.dispose]());

/** Whether it came to its end. */
async function isDone(orders: Orders): Promise<boolean> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", AGENT, JSON.stringify(orders)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_COMPILE_CACHE: compiled.path },
  });
  return (await text(child.stdout)).trim() === "done";
}

/** What its last message was recorded with. */
function expectedState({ entries }: Reading<AnthropicMessage>): object {
  const content = entries.at(-1)?.message.content;
  if (content === undefined) return {};
  if (typeof content !== "string") return { at: content[0]!.type === "tool_use" ? "call" : "outcome" };
  // It stands for the first turn.
  return { at: content === "a summary" ? "answer 1" : content };
}

test.each(["all", "half"] as const)(
  "SIGKILL at every write (%s of it written), and everything again: a prompt has one turn, and a message its state",
  async (written) => {
    for (let killAt = 1, isOver = false; !isOver; killAt++) {
      const what = `killed at write ${killAt} (${written} of it)`;
      using folder = place();
      isOver = await isDone({ folder: folder.path, killAt, written });
      await using store = await openStore(folder.path);
      for (const { id } of (await store.list()).sessions) {
        const found = await store.read(id, { dialect: "anthropic" });
        expect(found.appState, `${what}: ${found.entries.length} entries`).toEqual(expectedState(found));
      }
      const session = await live(store);
      expect(session.queue, what).toEqual([]);
      const records = await Array.fromAsync(store.history(ID));
      const prompts = records.flatMap(({ kind, carried, message }) => {
        const { role, content } = (message ?? {}) as { role?: string; content?: string };
        return kind === "message" && carried !== true && role === "user" ? [content] : [];
      });
      expect(prompts, what).toEqual(KEYS.map((key) => `prompt ${key}`));
      expect(
        records.filter(({ kind }) => kind === "turn.started"),
        what,
      ).toHaveLength(3);
      for (const [index, key] of KEYS.entries()) {
        const turn = Math.min(index + 1, 3);
        const found = await session.answer(key);
        expect(found, what).toMatchObject({ turn, outcome: "completed" });
        expect(found!.entries.at(-1)!.message.content, what).toBe(`answer ${turn}`);
      }
    }
  },
);
