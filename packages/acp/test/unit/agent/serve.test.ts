import { methods } from "@agentclientprotocol/sdk";
import type { Chat, Host } from "@holdfast/server/contract";
import { expect, test } from "vitest";
import { serveAgent } from "../../../src/index.ts";
import { connectClient, pipe } from "../../in-memory.ts";

const at = "2026-11-17T00:00:00.000Z";
const prompts = Array.from({ length: 300 }, (_, n) => ({
  kind: "prompt",
  id: `m${n}`,
  at,
  turn: n,
  text: `prompt ${n}`,
}));
const choices = [
  { answer: "allow", label: "Allow", asksWhy: false },
  { answer: "deny", label: "Deny", asksWhy: false },
];
const ask = { call: "c1", name: "shell", input: { command: "make" }, parts: [], choices };
const state = {
  ...{ title: "t", mode: "ask", model: "offline/offline", cwd: "/work", status: "idle" },
  ...{ items: prompts, interruption: null, asks: [ask], queue: [], damage: [], outputs: {} },
  ...{ window: { usedTokens: 0, maxTokens: 1 }, usage: {} },
};
const chat = {
  id: "s1",
  state,
  subscribe: () => () => undefined,
  close: async () => undefined,
  answer: async () => undefined,
};
const words = {
  ...{ title: () => "t", kind: () => "other" as const, path: () => null, change: () => null },
  ...{ plan: () => null, planInSummary: () => null },
};

test("an editor is asked, and told the commands, after the answer to its load: it knows the session only then", async () => {
  const ends = pipe(true);
  serveAgent(
    {
      ...{ host: { open: async () => chat as unknown as Chat } as unknown as Host, version: "1", words, models: [] },
      ...{ editor: null, remove: async () => undefined, log: () => undefined },
    },
    ends.agent as never,
  );
  const client = await connectClient(ends.client, () => "allow");
  await client.agent.request(methods.agent.session.load, { sessionId: "s1", cwd: "/work", mcpServers: [] });
  await expect.poll(() => client.asked.length).toBe(1);
  const order = ends.sent.map(
    ({ method, params, result }) => params?.update?.sessionUpdate ?? method ?? Object.keys(result)[0],
  );
  const answer = order.lastIndexOf("modes");
  expect(order.lastIndexOf("user_message_chunk")).toBeLessThan(answer);
  for (const late of ["available_commands_update", "session/request_permission"])
    expect(order.indexOf(late)).toBeGreaterThan(answer);
});
