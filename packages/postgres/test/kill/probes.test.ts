import type { AnthropicMessage } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openStore } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";
import { Worker } from "./crew.ts";

/** A worker is killed while it charges a card. Another one finds out what happened, and finishes the turn. */

const PROGRAM = new URL("probe-worker.ts", import.meta.url).pathname;

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
  await server.query("CREATE TABLE charges (key text, life text)");
});
afterAll(() => server.stop());

test.each([
  ["after", "turn.tool"],
  ["after", "settleCalls"],
  ["before", "turn.tool"],
  ["before", "settleCalls"],
] as const)(
  "killed %s the charge, settled with %s: charged once, and the model is told the truth",
  async (hangs, asks) => {
    await server.query("TRUNCATE charges");
    await using store = await openStore(server.url, { monthsAhead: 0, recordsToolStarts: true });
    const session = await store.create<AnthropicMessage>({ dialect: "anthropic" });
    const turn = await session.startTurn({ role: "user", content: "Pay." });
    await turn.append({ role: "assistant", content: [{ type: "tool_use", id: "c1", name: "charge", input: {} }] });
    await session.close();
    {
      using first = new Worker(server.url, "first", [], { hangs, asks }, PROGRAM);
      await first.says(({ ran }) => ran === hangs);
      await first.kill();
    }
    using second = new Worker(server.url, "second", [], { asks }, PROGRAM);
    await second.says(({ finished }) => finished === session.id);

    const isCharged = hangs === "after";
    const charges = await server.query("SELECT key, life FROM charges");
    const records = await Array.fromAsync(store.history(session.id));
    const starts = records.filter(({ kind }) => kind === "tool.started");
    const key = starts[0]?.["idempotencyKey"];
    expect(charges).toEqual([{ key, life: isCharged ? "first" : "second" }]);
    expect(starts.map(({ idempotencyKey }) => idempotencyKey)).toEqual(isCharged ? [key] : [key, key]);
    const settled = records.filter(({ source }) => source === "probe");
    expect(settled.map(({ kind, call }) => [kind, call])).toEqual([
      [isCharged ? "tool.ended" : "tool.unstarted", "c1"],
    ]);
    const { messages } = await store.read<AnthropicMessage>(session.id);
    const told = JSON.stringify(messages.at(-2));
    expect(told).toMatch(isCharged ? /Settled by asking the service.*receipt of first/ : /receipt of second/);
  },
  120_000,
);
