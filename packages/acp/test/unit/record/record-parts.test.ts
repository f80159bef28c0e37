import { PassThrough } from "node:stream";
import { HoldfastError, openStore, type Store } from "holdfast";
import { expect, test, vi } from "vitest";
import { interruptedTurn } from "../../../src/durable/interrupted-turn.ts";
import { RecordedHistory } from "../../../src/durable/recorded-history.ts";
import { runDirect } from "../../../src/layout/direct.ts";
import {
  CONTROL,
  controlFrame,
  DATA,
  FrameReader,
  headerOf,
  OPENED_CHARS_MAX,
  STDERR,
} from "../../../src/layout/frames.ts";
import { OpenedSessions } from "../../../src/layout/opened-sessions.ts";
import { ShownState } from "../../../src/layout/shown-state.ts";
import { withOurs } from "../../../src/record/capabilities.ts";
import { historyOf } from "../../../src/record/history.ts";
import { AgentEnded, AgentError, OwnRequests } from "../../../src/record/holdfast-to-agent.ts";
import { Library } from "../../../src/record/library.ts";
import { mergeChunks } from "../../../src/record/merge-chunks.ts";
import { changed, changedLine, type Line, messageOf } from "../../../src/record/message.ts";
import { MutedReplays } from "../../../src/record/muted-replays.ts";
import type { RecordedSession } from "../../../src/record/recorded-session.ts";
import { transcriptOf } from "../../../src/record/transcript.ts";
import { Client, OpenedWith } from "../../../src/wrap/client.ts";
import { Outlet } from "../../../src/wrap/outlet.ts";
import { changeBy, changeByRequest } from "../../../src/wrap/shown-change.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const blocks = (text: string) => [{ type: "text", text }];
const text = (words: string, more: object = {}) => ({
  ...{ sessionUpdate: "agent_message_chunk", content: { type: "text", text: words } },
  ...more,
});
const call = (toolCallId: string, status?: string, more: object = {}) => ({
  ...{ sessionUpdate: "tool_call", toolCallId, title: `call ${toolCallId}` },
  ...(status ? { status } : {}),
  ...more,
});
const turns = async (isIt: () => boolean): Promise<void> => {
  for (let turn = 0; turn < 1000 && !isIt(); turn++) await new Promise((resolve) => setImmediate(resolve));
};

async function recorded(): Promise<{ store: Store; library: Library; session: RecordedSession } & AsyncDisposable> {
  const store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  const session = await library.create("s", "/work");
  return { store, library, session, [Symbol.asyncDispose]: () => store.close() };
}

async function notesOf(store: Store): Promise<Any> {
  const [row] = (await store.list({ empty: true })).sessions;
  return (await store.read(row!.id, { dialect: "acp" })).attributes.notes;
}

async function recordsOf(store: Store): Promise<Any[]> {
  const [row] = (await store.list({ empty: true })).sessions;
  const all: Any[] = [];
  for await (const record of store.history(row!.id)) all.push(record);
  return all;
}

test("a turn of a recorded session: begun by a prompt, added to by the next, ended as the agent says", async () => {
  for (const [result, error, expected, words] of [
    [{ stopReason: "end_turn" }, undefined, "completed", "The turn ended without a result of this call."],
    [{ stopReason: "cancelled" }, undefined, "aborted", "Cancelled."],
    [undefined, { message: "why" }, "failed", "The turn ended without a result of this call."],
    [undefined, {}, "failed", "The turn ended without a result of this call."],
  ] as const) {
    await using it = await recorded();
    const { session } = it;
    expect([session.isRunning, session.isEmpty]).toEqual([false, true]);
    expect(await session.ended(result, error)).toEqual([]);
    await session.prompt({ sessionId: "s", prompt: blocks("one") });
    await session.prompt({ sessionId: "s", prompt: blocks("two") });
    expect([session.isRunning, session.isEmpty]).toEqual([true, false]);
    await session.updates([call("a"), call("b", "completed"), call("c", "failed"), call("d", "in_progress")]);
    await session.updates([{ sessionUpdate: "tool_call_update", toolCallId: "d", status: "completed" }]);
    await session.permission({ sessionId: "s", toolCall: { toolCallId: "e", title: "E" }, options: [] });
    // The calls that are open are shown as open while the turn goes on.
    expect(JSON.stringify(await session.history())).not.toContain("without a result");
    const closing = await session.ended(result, error);
    expect(closing).toEqual(
      ["a", "e"].map((toolCallId) => ({
        ...{ sessionUpdate: "tool_call_update", toolCallId, status: "failed" },
        content: [{ type: "content", content: { type: "text", text: words } }],
      })),
    );
    expect(session.isRunning).toBe(false);
    const lines = JSON.stringify(await recordsOf(it.store));
    expect(lines).toContain(expected);
    if (error) expect(lines).toContain((error as Any).message ?? "the agent answered with an error");
    // Nothing is open any more.
    await session.prompt({ prompt: blocks("three") });
    expect(await session.ended({}, undefined)).toEqual([]);
    expect(await session.interrupted("why")).toEqual([]);
  }
});

test("a turn that is interrupted ends its calls, also those outside a turn", async () => {
  await using it = await recorded();
  const { session } = it;
  await session.prompt({ prompt: blocks("one") });
  await session.updates([call("a")]);
  expect(await session.interrupted("the agent has ended")).toMatchObject([
    {
      toolCallId: "a",
      status: "failed",
      content: [{ content: { text: "Interrupted: the agent has ended. May have run: its start was not recorded." } }],
    },
  ]);
  expect(session.isRunning).toBe(false);
  expect(await session.interrupted("again")).toEqual([]);
  await session.updates([call("b"), { ...call("c"), sessionUpdate: "plan" }, { sessionUpdate: "tool_call" }]);
  expect((await session.interrupted("later")).map((one) => one["toolCallId"])).toEqual(["b"]);
});

test("of a thousand open calls and more, the oldest are forgotten", async () => {
  await using it = await recorded();
  const { session } = it;
  await session.prompt({ prompt: blocks("one") });
  await session.updates(Array.from({ length: 1001 }, (_, n) => call(`c${n}`)));
  const ended = (await session.ended({}, undefined)).map((one) => one["toolCallId"]);
  expect([ended.length, ended[0], ended.at(-1)]).toEqual([1000, "c1", "c1000"]);
});

test("what is no conversation is recorded beside it, and a store that fails fails", async () => {
  await using it = await recorded();
  const { session, store } = it;
  const notesIn = async () =>
    JSON.stringify((await recordsOf(store)).filter((one) => JSON.stringify(one).includes("acp.line")));
  await session.updates([text("before any turn")]);
  expect(await notesIn()).toContain("before any turn");
  await session.prompt({ prompt: blocks("one") });
  await session.updates([text("in it"), { sessionUpdate: 7, odd: "ones" }, text("after")]);
  expect(await notesIn()).toContain("ones");
  expect(await notesIn()).not.toContain("in it");
  expect((await session.history()).map((one: Any) => one.content.text)).toEqual(["one", "in it", "after"]);
  await session.beside("agent", "m", null);
  await session.note("mine", 1);
  expect(await notesOf(store)).toMatchObject({ "acp.line": { from: "agent", method: "m" }, mine: 1 });
  await store.close();
  for (const fails of [
    session.updates([text("x")]),
    session.prompt({ prompt: blocks("x") }),
    session.permission({ toolCall: { toolCallId: "x" } }),
    session.beside("agent", "m", {}),
  ])
    await expect(fails).rejects.toBeInstanceOf(HoldfastError);
});

test("the agent's id of a session is on record, with a label for lists, and is not its forks'", async () => {
  await using it = await recorded();
  const { session, library } = it;
  const labelsOf = async () =>
    (await it.store.list({ empty: true })).sessions.map(({ labels }) => labels?.["acp.agentSession"]);
  await session.addLabel();
  expect(await labelsOf()).toEqual([undefined]);
  await session.note("acp.agentSession", { session: "s", agent: "a" });
  await library.close("s");
  // One that was moved before there were labels.
  const again = (await library.reopen("s"))!;
  expect(again.agentSession).toBe("a");
  expect(await labelsOf()).toEqual(["a"]);
  await again.movedTo("b");
  expect([again.agentSession, await labelsOf()]).toEqual(["b", ["b"]]);
  const fork = await library.fork(again, "f", "/other");
  expect([fork.agentSession, fork.cwd]).toEqual(["f", "/other"]);
});

const entry = (message: object, more: object = {}): Any => ({
  id: crypto.randomUUID(),
  turn: 1,
  message,
  at: "t",
  ...more,
});

test("a history has the last of what is replaced, and ends the calls that have not ended", () => {
  const plan = (step: string) => ({ sessionUpdate: "plan", entries: [{ content: step }] });
  const entries = [
    entry({ prompt: blocks("go") }),
    entry(plan("one")),
    entry(call("a", "pending", { content: [{ type: "content", content: { type: "text", text: "so far" } }] })),
    entry(call("b", "completed")),
    entry(call("c")),
    entry(plan("two")),
    entry(text("hel")),
    entry(text("lo")),
    entry(text("for the model"), { synthetic: "x" }),
  ];
  const shown = (isRunning: boolean) =>
    historyOf(entries, isRunning ? null : (id) => `how far ${id} got`).map((one: Any) => [
      one.toolCallId ?? one.sessionUpdate,
      one.status ?? one.content?.text ?? one.entries?.[0].content,
      Array.isArray(one.content) ? one.content.map((block: Any) => block.content.text) : undefined,
    ]);
  expect(shown(false)).toEqual([
    ["user_message_chunk", "go", undefined],
    ["a", "failed", ["so far", "Interrupted. How far a got."]],
    ["b", "completed", undefined],
    ["c", "failed", ["Interrupted. How far c got."]],
    ["plan", "two", undefined],
    ["agent_message_chunk", "hel", undefined],
    ["agent_message_chunk", "lo", undefined],
  ]);
  expect(shown(true)[1]).toEqual(["a", "pending", ["so far"]]);
});

test("an interrupted turn names its prompt and the calls of the account", () => {
  const found = { prompt: { message: { prompt: blocks("go") } }, startedAt: "1", lastAt: "2", how: { kind: "killed" } };
  const permission = { toolCall: { toolCallId: "a", rawInput: { n: 2 } }, options: [{ optionId: "yes" }] };
  const entries = [
    entry({ toolCall: { toolCallId: "b" } }, { turn: 1 }),
    entry(call("a", undefined, { rawInput: { n: 1 } }), { turn: 2 }),
    entry(permission, { turn: 2 }),
    entry({ sessionUpdate: "tool_call_update", toolCallId: "a", status: "in_progress" }, { turn: 2 }),
    entry(call("b", undefined, { rawInput: "made up" }), { turn: 2, synthetic: "x" }),
  ];
  const interruption = { ...found, turn: 2 } as Any;
  const known = { state: "outcome-unknown", words: "how far" };
  const calls = [
    { ...known, id: "a", name: "call a", input: { n: 1 } },
    { ...known, id: "b", name: "b", input: undefined },
  ] as Any;
  const account = { state: "interrupted", calls } as const;
  expect(interruptedTurn({ interruption: null, entries }, account)).toBeNull();
  expect(interruptedTurn({ interruption, entries }, { ...account, state: "stopped" })).toBeNull();
  expect(interruptedTurn({ interruption, entries }, account)).toEqual({
    ...{ prompt: blocks("go"), startedAt: "1", lastAt: "2", how: { kind: "killed" } },
    calls: [
      { ...known, toolCallId: "a", title: "call a", rawInput: { n: 2 }, permission },
      { ...known, toolCallId: "b", title: "b" },
    ],
  });
  const odd = { ...interruption, prompt: { message: { prompt: 7 } } };
  expect(interruptedTurn({ interruption: odd, entries: [] }, account)).toMatchObject({ prompt: [], calls: [{}, {}] });
});

test("what was asked and not given is on record: the newest hundred, until it is given", async () => {
  await using it = await recorded();
  const { session } = it;
  const history = RecordedHistory.of(session);
  expect(RecordedHistory.of(session)).toBe(history);
  const options = [
    { optionId: "yes", kind: "allow_once" },
    { optionId: "no", kind: "reject_once" },
  ];
  const ask = (id: string): Any => ({ toolCall: { toolCallId: id, title: id }, options });
  const noted = async () => (await notesOf(it.store))["acp.unapproved"];
  await session.prompt({ prompt: blocks("go") });
  await history.update(call("a") as Any);
  for (const id of ["a", "b", "a"]) await history.asked(ask(id));
  expect(await noted()).toEqual(["a", "b"]);
  // One that only its permission announced is announced.
  expect((await recordsOf(it.store)).filter((one) => JSON.stringify(one).includes('"tool_call"'))).toHaveLength(2);
  for (const outcome of [null, { outcome: "cancelled" }, { outcome: "selected", optionId: "no" }])
    await session.decided(ask("a"), outcome);
  expect(await noted()).toEqual(["a", "b"]);
  await session.decided(ask("a"), { outcome: "selected", optionId: "yes" });
  expect(await noted()).toEqual(["b"]);
  // An answer that is not clearly a refusal counts as permission.
  await session.decided({ toolCall: { toolCallId: "b" }, options: 7 } as Any, {
    outcome: "selected",
    optionId: "other",
  });
  expect(await noted()).toEqual([]);
  for (let n = 0; n <= 100; n++) await history.asked(ask(`n${n}`));
  const newest = await noted();
  expect([newest.length, newest[0]]).toEqual([100, "n1"]);
  await history.asked({ options } as Any);
  expect(await noted()).toEqual(newest);
  expect(history.checkpointed).toBeNull();
  await history.checkpoint({ at: 1 });
  // The next process has both.
  await it.library.close("s");
  const again = (await it.library.reopen("s"))!;
  expect(RecordedHistory.of(again).checkpointed).toEqual({ at: 1 });
  await again.decided(ask("n100"), { outcome: "selected", optionId: "yes" });
  expect(await noted()).toEqual(newest.slice(0, -1));
  // Agents use ids again: of the new call, nothing is known.
  await again.updates([call("n99")]);
  expect(await noted()).toEqual(newest.slice(0, -2));
});

test("a call that was in progress, or permitted, may have run, also if the agent asks for permission again", async () => {
  await using it = await recorded();
  const { session } = it;
  const options = [{ optionId: "yes", kind: "allow_once" }];
  const ask = (id: string): Any => ({ toolCall: { toolCallId: id, title: id }, options });
  await session.prompt({ prompt: blocks("go") });
  const states = async () => (await session.read()).account.calls.map(({ id, state }) => [id, state]);
  for (const id of ["a", "b", "c", "d"]) await session.updates([call(id, id === "a" ? "in_progress" : "pending")]);
  const progress = (id: string) => ({ sessionUpdate: "tool_call_update", toolCallId: id, status: "in_progress" });
  await session.updates([progress("b")]);
  for (const id of ["a", "b", "c", "d"]) await session.permission(ask(id));
  await session.decided(ask("c"), { outcome: "selected", optionId: "yes" });
  await session.permission(ask("c"));
  const begun = [...["a", "b", "c"].map((id) => [id, "unrecorded"]), ["d", "awaiting"]];
  expect(await states()).toEqual(begun);
  // An agent that goes on without an answer.
  await session.updates([progress("d")]);
  expect(await states()).toEqual([...begun.slice(0, 3), ["d", "unrecorded"]]);
});

test("what a message is, and the same message about another session", () => {
  for (const [value, kind] of [
    [{ id: 1, method: "m" }, "request"],
    [{ id: null, method: "m" }, "request"],
    [{ id: "x", method: "m" }, "request"],
    [{ id: {}, method: "m" }, "notification"],
    [{ method: "m" }, "notification"],
    [{ id: 1, result: 2 }, "response"],
    [{ id: 1, method: 7 }, "response"],
    [{ result: 2 }, "other"],
    [null, "other"],
    ["x", "other"],
    [[1], "other"],
  ] as const)
    expect([value, messageOf(value).kind]).toEqual([value, kind]);
  const value = { params: { sessionId: "a", x: 1 } };
  expect(changed(value, { session: "a" })).toBe(value);
  expect(changed(value, { session: "b" })).toEqual({ params: { sessionId: "b", x: 1 } });
  expect(changed(value, { session: "a", params: (own) => ({ ...own, x: 2 }) })).toEqual({
    params: { sessionId: "a", x: 2 },
  });
  expect(changed({}, { session: "a" })).toEqual({ params: { sessionId: "a" } });
});

test("a line is changed where it has to be, and nowhere else", () => {
  const raw = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"m","params":{"sessionId":"a"}}\n');
  const line = { ...messageOf(JSON.parse(String(raw))), raw } as Exclude<Line, { kind: "other" }>;
  const json = (bytes: Buffer) => JSON.parse(String(bytes));
  expect(changedLine(line, {})).toBe(raw);
  expect(changedLine(line, { session: "a" })).toBe(raw);
  expect(json(changedLine(line, { id: "x" }))).toEqual({
    jsonrpc: "2.0",
    id: "x",
    method: "m",
    params: { sessionId: "a" },
  });
  expect(json(changedLine(line, { session: "b", params: (own) => ({ ...own, y: 1 }) })).params).toEqual({
    sessionId: "b",
    y: 1,
  });
  expect(String(changedLine(line, { id: 2 })).endsWith("\n")).toBe(true);
  expect(messageOf({ id: 3, error: { code: 1 } })).toMatchObject({
    kind: "response",
    id: 3,
    error: { code: 1 },
  });
  expect(messageOf({ method: "m", params: 7 })).toMatchObject({ kind: "notification", params: {} });
});

test("what the agent can do, and what we can do for it", () => {
  const ours = { list: {}, resume: {}, close: {}, delete: {} };
  expect(withOurs({ protocolVersion: 1 })).toEqual({
    protocolVersion: 1,
    agentCapabilities: { loadSession: true, sessionCapabilities: ours },
  });
  const own = {
    protocolVersion: 1,
    agentCapabilities: { loadSession: false, x: 1, sessionCapabilities: { list: { own: 1 }, fork: {} } },
  };
  expect(withOurs({ ...own, protocolVersion: 2 })).toEqual({ ...own, protocolVersion: 2 });
  expect(withOurs(own)).toEqual({
    protocolVersion: 1,
    agentCapabilities: { loadSession: true, x: 1, sessionCapabilities: { ...ours, list: { own: 1 }, fork: {} } },
  });
});

test("requests of our own are answered once, by their ids, and fail when the agent ends", async () => {
  const sent: Any[] = [];
  const own = new OwnRequests((request) => void sent.push(request));
  const [one, two, three] = [own.ask("a", { x: 1 }), own.ask("b", {}), own.ask("c", {})];
  expect(sent[0]).toEqual({ jsonrpc: "2.0", id: sent[0].id, method: "a", params: { x: 1 } });
  expect(new Set(sent.map(({ id }) => id)).size).toBe(3);
  expect(own.take({ id: 99, result: {}, error: undefined })).toBe(false);
  expect(own.take({ id: sent[0].id, result: "fine", error: undefined })).toBe(true);
  expect(own.take({ id: sent[0].id, result: "again", error: undefined })).toBe(false);
  expect(await one).toBe("fine");
  own.take({ id: sent[1].id, result: undefined, error: { code: -32000, message: "sign in", data: 1 } });
  const error = await two.catch((failure: AgentError) => failure);
  expect(error).toMatchObject({ message: "sign in", code: -32000, data: 1, isAuthRequired: true });
  own.failAll();
  await expect(three).rejects.toBeInstanceOf(AgentEnded);
  await expect(own.ask("d", {})).rejects.toBeInstanceOf(AgentEnded);
  expect(sent).toHaveLength(3);
  expect(new AgentError(7)).toMatchObject({
    message: "the agent answered with an error",
    code: null,
    isAuthRequired: false,
  });
});

test("a replay is muted until it has been quiet for a while, and not for ever", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    const replays = new MutedReplays();
    expect([replays.isMuted("s"), replays.drops("s")]).toEqual([false, false]);
    const unmute = replays.mute("s");
    expect([replays.isMuted("s"), replays.drops("s"), replays.drops("t")]).toEqual([true, true, false]);
    let isOver = false;
    const over = unmute().then(() => {
      isOver = true;
    });
    expect(replays.isMuted("s")).toBe(true);
    expect(isOver).toBe(false);
    vi.advanceTimersByTime(300);
    await over;
    expect([replays.isMuted("s"), replays.drops("s")]).toEqual([false, false]);
  } finally {
    vi.useRealTimers();
  }
});

test("chunks are joined up to a length, and only those that say nothing else", () => {
  const long = "x".repeat(64 * 1024 - 1);
  expect(mergeChunks([text(long), text("y")])).toEqual([text(`${long}y`)]);
  expect(mergeChunks([text(long), text("yz")])).toEqual([text(long), text("yz")]);
  const thought = { ...text("t"), sessionUpdate: "agent_thought_chunk" };
  expect(mergeChunks([thought, thought, text("a")])).toEqual([
    { ...thought, content: { type: "text", text: "tt" } },
    text("a"),
  ]);
  const annotated = { ...text("a"), content: { type: "text", text: "a", annotations: {} } };
  const odd = { ...text("a"), content: { type: "text", text: 7 } };
  const all = [annotated, annotated, odd, odd, text("a", { messageId: "1" }), text("a", { messageId: "2" })];
  expect(mergeChunks(all as Any)).toEqual(all);
});

test("a transcript has what was said and done, each within its length", () => {
  const of = (...updates: object[]) =>
    transcriptOf(updates as Any)
      .split("\n")
      .filter((line) => line.startsWith("> "))
      .map((line) => line.slice(2));
  expect(
    of(
      { sessionUpdate: "user_message_chunk", content: { type: "image", data: "" } },
      { sessionUpdate: "user_message_chunk", content: 7 },
      text(""),
      { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hidden" } },
      { sessionUpdate: "tool_call", content: 7 },
      { sessionUpdate: "tool_call", title: "Run" },
      { sessionUpdate: "tool_call_update", toolCallId: "x" },
      { sessionUpdate: "tool_call_update", content: [{ type: "content", content: { type: "text", text: "out" } }, 7] },
    ),
  ).toEqual(["User: (image)", "Tool call: Run", "Tool result: out"]);
  const whole = "x".repeat(8_000 - "Agent: ".length);
  expect(of(text(whole))).toEqual([`Agent: ${whole}`]);
  expect(of(text(`${whole}y`))).toEqual([
    `Agent: ${"x".repeat(4_000 - 7)}`,
    "[1 characters are left out]",
    `${"x".repeat(3_999)}y`,
  ]);
});

test("what an editor shows as open is ended, up to a thousand of each kind", () => {
  const state = new ShownState();
  const open = (calls: string[]) => state.apply({ session: "s", open: calls, ended: [] });
  open(Array.from({ length: 1001 }, (_, n) => `c${n}`));
  for (let n = 0; n <= 1000; n++) state.apply({ session: null, open: ["x"], ended: [], request: n });
  const lines = state.takeEnd().map((line) => JSON.parse(String(line)));
  const requests = lines.filter(({ method }) => method === "$/cancel_request");
  const calls = lines.filter(({ method }) => method === "session/update");
  expect([requests.length, requests[0].params.requestId]).toEqual([1000, 1]);
  expect([calls.length, calls[0].params.update.toolCallId]).toEqual([1000, "c1"]);
  expect(state.takeEnd()).toEqual([]);
});

test("a change is followed by ids that are short", () => {
  const [fits, long] = ["x".repeat(1000), "x".repeat(1001)];
  const update = (toolCallId: string) => [{ sessionUpdate: "tool_call", toolCallId }];
  expect(changeBy("s", update(fits))?.open).toEqual([fits]);
  expect(changeBy("s", update(long))).toBeNull();
  expect(changeBy(fits, update("c"))?.session).toBe(fits);
  expect(changeBy(long, update("c"))).toBeNull();
  expect(changeByRequest(fits, fits, fits)).toEqual({ session: fits, open: [fits], ended: [], request: fits });
  expect(changeByRequest(1, null, null)).toEqual({ session: null, open: [], ended: [], request: 1 });
  expect(changeByRequest(long, "s", "c")).toBeNull();
  expect(changeByRequest("r", long, "c")).toBeNull();
  expect(changeByRequest("r", "s", long)).toBeNull();
});

test("opened sessions are kept up to a length, the newest", () => {
  const kept = new OpenedSessions();
  const params = (chars: number) => ({ x: "x".repeat(chars) });
  const size = (session: string, chars: number) => JSON.stringify([session, params(chars), []]).length;
  const rest = OPENED_CHARS_MAX - size("a", 100) - size("b", 0);
  kept.set("a", params(100));
  kept.set("b", params(rest));
  expect(kept.all.map(([session]) => session)).toEqual(["a", "b"]);
  // The same again is counted once.
  kept.set("b", params(rest));
  kept.set("a", params(100), []);
  expect(kept.all.map(([session]) => session)).toEqual(["b", "a"]);
  kept.set("c", params(0));
  expect(kept.all.map(([session]) => session)).toEqual(["a", "c"]);
  kept.set("a", null);
  expect(kept.all).toEqual([["c", params(0), []]]);
  kept.set("none", null);
  expect(kept.all).toHaveLength(1);
});

test("frames: the largest control frame, and kinds that there are", () => {
  const read = (bytes: Buffer) => [...new FrameReader().push(bytes)];
  expect(read(headerOf(CONTROL, 16 * 1024 * 1024))).toEqual([]);
  expect(() => read(headerOf(CONTROL, 16 * 1024 * 1024 + 1))).toThrow(/does not speak/);
  expect(read(headerOf(DATA, 2 ** 31))).toEqual([]);
  expect(read(Buffer.concat([headerOf(STDERR, 1), Buffer.from("x")]))).toEqual([
    { kind: STDERR, bytes: Buffer.from("x") },
  ]);
  expect(() => read(headerOf(STDERR + 1, 1))).toThrow(/does not speak/);
  expect(read(Buffer.concat([controlFrame({ type: "leave" }), controlFrame({ type: "busy" })]))).toHaveLength(2);
});

test("an editor: its ids at the agent, what it hears, and how it is refused", async () => {
  const lines: [Any, unknown][] = [];
  const write = async (line: Buffer, answers?: unknown) => void lines.push([JSON.parse(String(line)), answers]);
  const [first, later] = [new Client(1, { write }), new Client(2, { write })];
  expect([first.isFirst, later.isFirst, first.idForAgent(7)]).toEqual([true, false, 7]);
  expect(later.idForAgent(7)).not.toBe(later.idForAgent("7"));
  expect([first.hears("s"), later.hears("s"), later.hears(null)]).toEqual([true, false, true]);
  later.opened("s");
  expect(later.hears("s")).toBe(true);
  await later.refuse(1, new AgentError({ code: 5, message: "why", data: 7 }));
  await later.refuse(2, new AgentError({ code: 5, message: "why" }));
  await later.refuse(3, new AgentError({ message: "why" }));
  await later.refuse(4, new AgentEnded());
  await later.refuse(5, "words");
  expect(lines.map(([{ error }, id]) => [id, error])).toEqual([
    [1, { code: 5, message: "why", data: 7 }],
    [2, { code: 5, message: "why" }],
    [3, { code: -32603, message: "why" }],
    [4, { code: -32603, message: expect.stringContaining("has ended"), data: { interrupted: true } }],
    [5, { code: -32603, message: "words" }],
  ]);
});

test("what sessions were opened with is kept and told, with what was chosen", async () => {
  const told: Any[] = [];
  const opened = new OpenedWith(async (...args) => void told.push(args));
  const chosen = [{ method: "session/set_mode", params: { modeId: "plan" } }];
  opened.continueFrom([
    ["a", { cwd: "/a" }, chosen],
    ["b", { cwd: "/b" }],
  ]);
  expect([opened.of("a"), opened.of("b"), opened.of("c")]).toEqual([{ cwd: "/a" }, { cwd: "/b" }, null]);
  expect([opened.settings("a").chosen, opened.settings("b").chosen]).toEqual([chosen, []]);
  expect(opened.settings("c")).toBe(opened.settings("c"));
  await opened.chose("c");
  expect(told).toEqual([]);
  await opened.chose("a");
  await opened.set("a", { cwd: "/new" });
  await opened.delete("a");
  expect(told).toEqual([
    ["a", { cwd: "/a" }, chosen],
    ["a", { cwd: "/new" }, chosen],
    ["a", null, []],
  ]);
  expect([opened.of("a"), opened.settings("a").chosen]).toEqual([null, []]);
  await new OpenedWith().set("x", {});
  // Another process has it when these resolve.
  let isTold = false;
  const slow = new OpenedWith(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    isTold = true;
  });
  for (const act of [() => slow.set("x", {}), () => slow.chose("x"), () => slow.delete("x")]) {
    isTold = false;
    await act();
    expect(isTold).toBe(true);
  }
});

test("an outlet waits while nobody reads, and writes what belongs together at once", async () => {
  const stream = new PassThrough({ highWaterMark: 4 });
  const outlet = new Outlet(stream);
  await outlet.write(Buffer.from("ab"));
  let isWritten = false;
  const written = outlet.write(Buffer.from("c"), Buffer.from("defgh"), Buffer.from("ijkl")).then(() => {
    isWritten = true;
  });
  await turns(() => isWritten);
  expect(isWritten).toBe(false);
  let all = "";
  stream.on("data", (chunk) => {
    all += String(chunk);
  });
  await written;
  await turns(() => all.length === 12);
  expect(all).toBe("abcdefghijkl");
  stream.end();
  await outlet.write(Buffer.from("dropped"));
});

test("one editor and one agent in a process: it waits for what is owed and for the turn, then it ends", async () => {
  const did: string[] = [];
  let owed = 3;
  let busy = 3;
  const fake: Any = {
    start: async () => ({ early: new Promise(() => undefined) }),
    attach: ({ write }: Any) => ({ write }),
    read: async (client: Any, input: AsyncIterable<Buffer>) => {
      for await (const chunk of input) await client.write(chunk);
      did.push("read");
    },
    owes: () => --owed > 0,
    detach: async () => void did.push(`detach ${owed}`),
    get isBusy() {
      return --busy > 0;
    },
    end: async () => {
      did.push(`end ${busy}`);
      return { code: 4, signal: null };
    },
  };
  const [input, output] = [new PassThrough(), new PassThrough()];
  input.end("hello");
  expect(await runDirect(fake, input, output, 60_000)).toEqual({ code: 4, signal: null });
  expect(String(output.read())).toBe("hello");
  expect(did).toEqual(["read", "detach 0", "end 0"]);
  // Nobody waits for longer than that.
  [owed, busy] = [1e9, 1e9];
  expect(await runDirect(fake, new PassThrough().end(), output, 0)).toEqual({ code: 4, signal: null });
  const early = { ...fake, start: async () => ({ early: Promise.resolve({ code: 9, signal: null }) }), isBusy: false };
  expect(await runDirect(early, new PassThrough(), output, 0)).toEqual({ code: 9, signal: null });
  const later = { ...fake, start: async () => ({ early: Promise.resolve(null) }), owes: () => false, isBusy: false };
  expect(await runDirect(later, new PassThrough().end(), output, 0)).toEqual({ code: 4, signal: null });
});
