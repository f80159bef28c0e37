import { cpSync } from "node:fs";
import { type AiSdkMessage, type AnthropicMessage, openStore, type Store } from "holdfast";
import { afterEach, describe, expect, test } from "vitest";
import { place } from "../../../../holdfast/test/place.ts";
import type { CallItem, Item } from "../../../src/transcript/item.ts";
import { itemsOf } from "../../../src/transcript/items.ts";
import { SUMMARY_HEAD, shownSummary } from "../../../src/transcript/summary.ts";
import { callWords, oneLine } from "../../../src/transcript/words.ts";

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

function somewhere(): string {
  const here = place();
  opened.push({ [Symbol.asyncDispose]: async () => here[Symbol.dispose]() });
  return here.path;
}

async function storeAt(path: string): Promise<Store> {
  const store = await openStore(path, { durability: "process", recordsToolStarts: true });
  opened.push(store);
  return store;
}

const user = (content: string): AiSdkMessage => ({ role: "user", content });
const calls = (...ids: string[]): AiSdkMessage => ({
  role: "assistant",
  content: ids.map((id) => ({
    type: "tool-call",
    toolCallId: id,
    toolName: "shell",
    input: { command: `run ${id}` },
  })) as never,
});
const callsOf = (items: readonly Item[]): CallItem[] => items.filter((item) => item.kind === "call");
const states = (items: readonly Item[]): Record<string, string> =>
  Object.fromEntries(callsOf(items).map(({ call, state }) => [call, state]));

describe("a conversation as people read it", () => {
  test("prompt, reasoning, answer, call and result, each once and in order", async () => {
    const store = await storeAt(somewhere());
    const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn({
      role: "user",
      content: [
        { type: "text", text: "look" },
        { type: "file", mediaType: "image/png", data: new Uint8Array([137, 80, 78, 71]), filename: "a.png" },
      ] as never,
    });
    const said: AiSdkMessage = {
      role: "assistant",
      content: [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "I " },
        { type: "text", text: "look." },
        { type: "tool-call", toolCallId: "c1", toolName: "read", input: { path: "a.ts" } },
      ] as never,
    };
    await turn.append(said, { model: "anthropic/claude", metadata: { cost: 1 } });
    await turn.tool("c1", () => "content of a");
    await turn.append({ role: "assistant", content: "Done." });
    await turn.end();
    const items = itemsOf(session);
    expect(items.map(({ kind }) => kind)).toEqual(["prompt", "reasoning", "answer", "call", "answer"]);
    expect(items[0]).toMatchObject({
      text: "look",
      files: [{ mediaType: "image/png", name: "a.png", data: "iVBORw==", bytes: 4 }],
    });
    expect(items[2]).toMatchObject({ text: "I look.", model: "anthropic/claude", metadata: { cost: 1 } });
    expect(items[3]).toMatchObject({
      call: "c1",
      name: "read",
      state: "done",
      output: "content of a",
      input: { path: "a.ts" },
    });
    expect(new Set(items.map(({ id }) => id)).size).toBe(5);
    expect(items.every((item) => item.turn === 1)).toBe(true);
  });

  test("C3: of three calls that SIGKILL cut off, each says how far it came, before and after the repair", async () => {
    const path = somewhere();
    const store = await storeAt(path);
    const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a", "b", "c"));
    await turn.tool("a", () => "fine");
    await turn.toolStarted("b");
    // While the writer works on it, nothing is interrupted: only it knows what runs.
    expect(states(itemsOf(session))).toEqual({ a: "done", b: "open", c: "open" });
    expect(states(itemsOf(session, { running: new Set(["b"]), waiting: new Set(["c"]) }))).toEqual({
      a: "done",
      b: "running",
      c: "waiting",
    });
    // What a kill would leave is what is on the disk now.
    const copy = somewhere();
    cpSync(path, copy, { recursive: true });
    const again = await (await storeAt(copy)).resume<AiSdkMessage>(session.id);
    expect(again.interruption?.how.kind).toBe("killed");
    expect(states(itemsOf(again))).toEqual({ a: "done", b: "unknown", c: "not-run" });
    await again.startTurn(user("next"));
    const items = itemsOf(again);
    expect(states(items)).toEqual({ a: "done", b: "unknown", c: "not-run" });
    expect(items.map(({ kind }) => kind)).toEqual(["prompt", "call", "call", "call", "note", "prompt"]);
    expect(items[4]).toMatchObject({ text: expect.stringContaining("interrupted") });
  });

  test("a result that came late is shown with its call, as what the model did not see", async () => {
    const store = await storeAt(somewhere());
    const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a"));
    await turn.toolStarted("a");
    await turn.abort({ by: "user" });
    const next = await session.startTurn(user("next"));
    await next.append({ role: "assistant", content: "ok" });
    await turn.toolEnded("a", { value: "late, but here" });
    const [call] = callsOf(itemsOf(session));
    expect(call).toMatchObject({ state: "done", output: "late, but here", aside: expect.stringContaining("late") });
  });

  test("C2, C12: what had been streamed is at the end, marked as incomplete; also half a call", async () => {
    const path = somewhere();
    const store = await storeAt(path);
    const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(user("go"));
    const { draft } = turn.request();
    draft.push({ part: 0, reasoning: "thinking" });
    draft.push({ part: 1, text: "I was sayi" });
    draft.push({ part: 2, call: { id: "x", name: "write" }, input: '{"path":"a' });
    await session.flush();
    await turn.abort({ by: "user" });
    const items = itemsOf(session);
    expect(items.slice(1)).toMatchObject([
      { kind: "reasoning", text: "thinking", incomplete: true },
      { kind: "answer", text: "I was sayi", incomplete: true },
      { kind: "call", name: "write", state: "not-run", input: '{"path":"a' },
    ]);
    await session.startTurn(user("next"));
    expect(itemsOf(session).filter((item) => item.kind === "answer")).toMatchObject([
      { text: "I was sayi", incomplete: true },
    ]);
  });

  test("C37: a call that waits for a person says so, and one that was denied too", async () => {
    const store = await storeAt(somewhere());
    const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(user("go"));
    const message = calls("a", "b");
    const request = (id: string) => ({ type: "tool-approval-request", approvalId: `ask-${id}`, toolCallId: id });
    await turn.append({ ...message, content: [...(message.content as never[]), request("a"), request("b")] as never });
    expect(states(itemsOf(session))).toEqual({ a: "waiting", b: "waiting" });
    await turn.suspend({ reason: "approval", calls: ["a", "b"] });
    expect(states(itemsOf(session))).toEqual({ a: "waiting", b: "waiting" });
    const resumed = await session.resumeTurn({ calls: () => "keep" });
    const response = (id: string, approved: boolean) => ({
      type: "tool-approval-response",
      approvalId: `ask-${id}`,
      approved,
    });
    const denied = {
      type: "tool-result",
      toolCallId: "b",
      toolName: "shell",
      output: { type: "execution-denied", reason: "no" },
    };
    await resumed.append({ role: "tool", content: [response("a", true), response("b", false), denied] as never });
    await resumed.tool("a", () => "ran");
    expect(states(itemsOf(session))).toEqual({ a: "done", b: "denied" });
  });

  test("what is hidden or replaced is there with a word about it, and what is hidden from people is not", async () => {
    const store = await storeAt(somewhere());
    const session = await store.create<AnthropicMessage>({ dialect: "anthropic" });
    const turn = await session.startTurn({ role: "user", content: "one" });
    const { id } = await turn.append({ role: "assistant", content: "two" });
    const { id: third } = await turn.append({ role: "user", content: "three" });
    const { id: fourth } = await turn.append({ role: "assistant", content: "four" });
    await turn.end();
    await session.patch(id, { hiddenFromModel: true });
    await session.patch(third, { hiddenFromUser: true });
    await session.edit([fourth], [{ role: "assistant", content: "4" }], { reason: "shorter", now: true });
    const items = itemsOf(session);
    expect(items.map(({ kind, aside }) => [kind, aside?.split(":")[0]])).toEqual([
      ["prompt", undefined],
      ["answer", "hidden from the model"],
      ["note", undefined],
      ["answer", "replaced"],
    ]);
  });

  test("the summary that a compaction put in the place of a conversation is a note, not a prompt", async () => {
    const store = await storeAt(somewhere());
    const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(user("one"));
    await turn.append({ role: "assistant", content: "two" });
    await turn.end();
    await session.replace([user(`${SUMMARY_HEAD}\n\nit began`), session.entries.at(-1)!], { reason: "compaction" });
    expect(itemsOf(session)).toMatchObject([
      { kind: "note", text: expect.stringContaining("it began") },
      { kind: "answer" },
    ]);
  });

  test("ACP: chunks are one message, and what is said of a call on its way is with the call", async () => {
    const store = await storeAt(somewhere());
    const session = await store.create({ dialect: "acp" });
    const text = (sessionUpdate: string, words: string) => ({ sessionUpdate, content: { type: "text", text: words } });
    const turn = await session.startTurn({ prompt: [{ type: "text", text: "go" }] });
    for (const words of ["Hel", "lo, ", "you"]) await turn.append(text("agent_message_chunk", words));
    await turn.append({ sessionUpdate: "tool_call", toolCallId: "t", title: "Read", status: "pending" });
    await turn.append({
      sessionUpdate: "tool_call_update",
      toolCallId: "t",
      status: "in_progress",
      rawInput: { path: "x" },
    });
    expect(states(itemsOf(session))).toEqual({ t: "running" });
    const content = [{ type: "content", content: { type: "text", text: "inside" } }];
    await turn.append({ sessionUpdate: "tool_call_update", toolCallId: "t", status: "completed", content });
    expect(itemsOf(session)).toMatchObject([
      { kind: "prompt", text: "go" },
      { kind: "answer", text: "Hello, you" },
      { kind: "call", name: "Read", input: { path: "x" }, state: "done", output: "inside" },
    ]);
  });

  test("after one more record, all other items are the very same objects", async () => {
    const store = await storeAt(somewhere());
    const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a", "b"));
    await turn.tool("a", () => "1");
    const before = itemsOf(session);
    await turn.tool("b", () => "2");
    const middle = itemsOf(session);
    expect(middle[0]).toBe(before[0]);
    expect(states(middle)).toEqual({ a: "done", b: "done" });
    await turn.append({ role: "assistant", content: "Done." });
    const after = itemsOf(session);
    expect(after.length).toBe(4);
    for (const [index, item] of middle.entries()) expect(after[index]).toBe(item);
  });
});

describe("a call on one line", () => {
  test.each([
    [{ name: "read", input: { path: "src/a.ts" } }, "read src/a.ts"],
    [{ name: "shell", input: { command: "npm test" } }, "shell: npm test"],
    [{ name: "bash", input: '{"command":"ls\\n-l"}' }, "bash: ls -l"],
    [{ name: "search", input: { pattern: "a b", path: "src" } }, 'search "a b" in src'],
    [{ name: "local_shell_call", input: { type: "exec", command: ["ls", "-l"] } }, "local_shell_call: ls -l"],
    [{ name: "weather", input: { city: "Kyiv" } }, "weather Kyiv"],
    [{ name: "book", input: { seat: 3, note: "by the window" } }, 'book (seat: 3, note: "by the window")'],
    [{ name: "ping", input: {} }, "ping"],
    [{ name: "ping", input: undefined }, "ping"],
  ])("%j", (call, words) => {
    expect(callWords(call)).toBe(words);
  });

  test("C25: escape sequences and what turns the direction of writing are made visible, and long ones are cut", () => {
    const words = callWords({ name: "shell", input: { command: "echo \u001b[2J\u202egpj.exe\u0007" } });
    expect(words).toBe("shell: echo \ufffd[2J\ufffdgpj.exe\ufffd");
    expect([...oneLine("x".repeat(1_000_000), 50)].length).toBe(50);
    expect(callWords({ name: "write", input: { path: "é".repeat(500) } }).length).toBeLessThanOrEqual(120);
  });
});

test("of a summary, what the offline model notes for itself is not shown; of anything else, nothing is left out", () => {
  const notes = '<offline-progress>{"made":1}</offline-progress>';
  expect(shownSummary(`${SUMMARY_HEAD}\n\nDone.\n\n${notes}`)).toBe(`${SUMMARY_HEAD}\n\nDone.`);
  expect(shownSummary(`What is ${notes}?`)).toBe(`What is ${notes}?`);
});
