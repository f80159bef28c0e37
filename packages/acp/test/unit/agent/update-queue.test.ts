import { setImmediate } from "node:timers/promises";
import { methods, type SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Chat, ChatEvent, Host } from "@holdfast/server/contract";
import { expect, test } from "vitest";
import { UpdateQueue } from "../../../src/agent/update-queue.ts";
import { text, textContent } from "../../../src/agent/updates.ts";
import { serveAgent } from "../../../src/index.ts";
import { pipe } from "../../in-memory.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

/** An editor that reads when it is let. */
function slowEditor(): { readonly queue: UpdateQueue; readonly seen: Any[]; readonly read: () => void } {
  const seen: Any[] = [];
  const gate = Promise.withResolvers<void>();
  const queue = new UpdateQueue(async (update) => {
    seen.push(update);
    await gate.promise;
  });
  return { queue, seen, read: gate.resolve };
}

const textOf = (updates: readonly Any[]): string => updates.map(({ content }) => content.text).join("");
const output = (call: string, words: string, status?: "in_progress" | "completed"): SessionUpdate => ({
  ...{ sessionUpdate: "tool_call_update", toolCallId: call, content: [textContent(words)] },
  ...(status ? { status } : {}),
});

test("chunks of a message that wait are joined, others stay apart and in order", async () => {
  const { queue, seen, read } = slowEditor();
  queue.push(text("agent_message_chunk", "first", "m1"));
  for (let n = 0; n < 20_000; n++) queue.push(text("agent_message_chunk", `piece ${n} `, "m1"));
  queue.push(text("agent_thought_chunk", "why", "m1"));
  queue.push(text("agent_message_chunk", "second", "m2"));
  // Without a message to belong to, each stands for itself.
  for (const words of ["one notice", "another"]) queue.push(text("agent_thought_chunk", words));
  expect(seen).toHaveLength(1);
  read();
  await queue.sent();
  const first = seen.filter(({ messageId, sessionUpdate }) => messageId === "m1" && sessionUpdate.includes("message"));
  expect(textOf(first)).toBe(`first${Array.from({ length: 20_000 }, (_, n) => `piece ${n} `).join("")}`);
  expect(first.length).toBeLessThan(6);
  expect(seen.slice(first.length).map(({ content }) => content.text)).toEqual([
    "why",
    "second",
    "one notice",
    "another",
  ]);
});

test("of a call, a plan and a setting that wait, the newest state is kept", async () => {
  const { queue, seen, read } = slowEditor();
  queue.push({ sessionUpdate: "usage_update", used: 0, size: 9 });
  queue.push({ sessionUpdate: "tool_call", toolCallId: "a", title: "Build", status: "pending" });
  queue.push({ sessionUpdate: "tool_call", toolCallId: "b", title: "Test", status: "pending" });
  for (let n = 1; n <= 1000; n++) {
    queue.push(output("a", `a ${n}`, "in_progress"));
    queue.push({ sessionUpdate: "usage_update", used: n, size: 9 });
    queue.push(output("b", `b ${n}`));
    queue.push({ sessionUpdate: "plan", entries: [{ content: `step ${n}`, priority: "low", status: "pending" }] });
  }
  queue.push({ sessionUpdate: "tool_call_update", toolCallId: "a", status: "completed" });
  read();
  await queue.sent();
  // One that was sent is not changed, but followed.
  queue.push(output("b", "the end", "completed"));
  await queue.sent();
  expect(seen).toEqual([
    { sessionUpdate: "usage_update", used: 0, size: 9 },
    { ...output("a", "a 1000"), sessionUpdate: "tool_call", title: "Build", status: "completed" },
    { ...output("b", "b 1000"), sessionUpdate: "tool_call", title: "Test", status: "pending" },
    { sessionUpdate: "usage_update", used: 1000, size: 9 },
    { sessionUpdate: "plan", entries: [{ content: "step 1000", priority: "low", status: "pending" }] },
    output("b", "the end", "completed"),
  ]);
});

test("who waits for what was sent so far does not wait for more, and an editor that is gone holds up nobody", async () => {
  const seen: Any[] = [];
  const queue = new UpdateQueue(async (update) => {
    seen.push(update);
    await (seen.length < 3 ? setImmediate() : new Promise(() => undefined));
  });
  queue.push(text("agent_message_chunk", "a", "m"));
  queue.push(text("agent_message_chunk", "b", "m"));
  const sent = queue.sent();
  queue.push(text("agent_message_chunk", "c", "m"));
  // The third is never read.
  await sent;
  expect(textOf(seen)).toBe("abc");
  const gone = new UpdateQueue(() => Promise.reject(new Error("closed")));
  gone.push(text("agent_message_chunk", "a", "m"));
  gone.push(text("agent_message_chunk", "b", "m"));
  await gone.sent();
});

test("an editor that does not read during a turn gets few messages afterwards, with everything in them", async () => {
  let emit: (event: ChatEvent) => void = () => undefined;
  const turn = Promise.withResolvers<void>();
  const state = {
    ...{ title: "t", mode: "ask", model: "offline/offline", cwd: "/work", status: "idle" },
    ...{ items: [], interruption: null, asks: [], queue: [], damage: [], outputs: {} },
    ...{ window: { usedTokens: 0, maxTokens: 1 }, usage: {} },
  };
  const chat = {
    ...{ id: "s1", state, close: async () => undefined, settled: async () => undefined },
    prompt: () => turn.promise,
    subscribe: (listener: typeof emit) => {
      emit = listener;
      return () => undefined;
    },
  };
  const words = {
    ...{ title: () => "t", kind: () => "other" as const, path: () => null, change: () => null },
    ...{ plan: () => null, planInSummary: () => null },
  };
  const { agent, client } = pipe();
  serveAgent(
    {
      ...{ host: { create: async () => chat as unknown as Chat } as unknown as Host, version: "1", words, models: [] },
      ...{ editor: null, remove: async () => undefined, log: () => undefined },
    },
    agent as never,
  );
  const writer = client.writable.getWriter();
  const reader = client.readable.getReader();
  const ask = (id: number, method: string, params: object) => writer.write({ jsonrpc: "2.0", id, method, params });
  const seen: Any[] = [];
  const answerTo = async (asked: number): Promise<Any> => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      seen.push(next.value);
      if (next.value.id === asked) return next.value;
    }
  };
  const { initialize, session } = methods.agent;
  await ask(0, initialize, { protocolVersion: 1, clientCapabilities: {} });
  await answerTo(0);
  await ask(1, session.new, { cwd: "/work", mcpServers: [] });
  await answerTo(1);
  await ask(2, session.prompt, { sessionId: "s1", prompt: [{ type: "text", text: "go" }] });
  await setImmediate();
  for (let n = 0; n < 10_000; n++) emit({ type: "text", text: `piece ${n} ` } as ChatEvent);
  // The turn does not wait for the editor.
  emit({ type: "turn.ended", outcome: "completed" } as ChatEvent);
  turn.resolve();
  expect((await answerTo(2)).result).toEqual({ stopReason: "end_turn" });
  const chunks = seen.flatMap(({ params }) =>
    params?.update?.sessionUpdate === "agent_message_chunk" ? [params.update] : [],
  );
  expect(textOf(chunks)).toBe(Array.from({ length: 10_000 }, (_, n) => `piece ${n} `).join(""));
  expect(seen.length).toBeLessThan(20);
});
