import { setImmediate } from "node:timers/promises";
import { HoldfastError, openStore, type Store } from "holdfast";
import { expect, test, vi } from "vitest";
import { type DurableOptions, durable } from "../../../src/index.ts";
import { RecordedSession } from "../../../src/record/recorded-session.ts";
import { pipe } from "../../in-memory.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const FOLDER = { cwd: "/work", mcpServers: [] };
const blocks = (text: string) => [{ type: "text", text }];
const text = (words: string) => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: words } });
const poll = (read: () => unknown) => expect.poll(read, { interval: 2, timeout: 5_000 });
const memory = (): Promise<Store> => openStore("memory:");

/**
 * Both sides of a durable connection, in plain messages. `answers`: what the agent answers, by method; a method that is
 * not there is answered by the test.
 */
async function wire(
  store: Store,
  {
    can = {},
    answers = {},
    version = 1,
    ...options
  }: { can?: object; answers?: Record<string, (params: Any) => object>; version?: number } & DurableOptions = {},
) {
  const ends = pipe();
  const logged: string[] = [];
  const stream = durable(ends.agent, store, { app: "wire", log: (line) => void logged.push(line), ...options });
  const fromClient = ends.client.writable.getWriter();
  const fromAgent = stream.writable.getWriter() as WritableStreamDefaultWriter<Any>;
  const [toAgent, toClient]: [Any[], Any[]] = [[], []];
  const client = (message: Any): void => void fromClient.write(message).catch(() => undefined);
  const agent = (message: Any): Promise<void> => fromAgent.write(message);
  let made = 0;
  const all: Record<string, (params: Any) => object> = {
    initialize: () => ({ result: { protocolVersion: version, agentCapabilities: can } }),
    "session/new": () => ({ result: { sessionId: `s${++made}` } }),
    ...answers,
  };
  const read = async (readable: ReadableStream<Any>, into: Any[]): Promise<void> => {
    for await (const message of readable as unknown as AsyncIterable<Any>) {
      into.push(message);
      const answer = into === toAgent && message.id !== undefined ? all[message.method] : undefined;
      if (answer) void agent({ jsonrpc: "2.0", id: message.id, ...answer(message.params) });
    }
  };
  void read(stream.readable as ReadableStream<Any>, toAgent).catch(() => undefined);
  void read(ends.client.readable, toClient).catch(() => undefined);
  let serial = 0;
  const ask = async (method: string, params: object = {}): Promise<Any> => {
    const id = `c${++serial}`;
    client({ jsonrpc: "2.0", id, method, params });
    const answer = () => toClient.find((one) => one.id === id && one.method === undefined);
    await poll(answer).toBeDefined();
    return answer();
  };
  const it = {
    ...{ stream, logged, toAgent, toClient, client, agent, ask, fromClient },
    /** A new session, and a prompt that the agent works on. */
    prompting: async (words = "go") => {
      const { sessionId } = (await ask("session/new", FOLDER)).result;
      const id = `p-${sessionId}`;
      client({ jsonrpc: "2.0", id, method: "session/prompt", params: { sessionId, prompt: blocks(words) } });
      await poll(() => toAgent.at(-1)?.id).toBe(id);
      return { sessionId, id };
    },
    update: (sessionId: string, update: object) =>
      agent({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } }),
    updates: () => toClient.flatMap(({ method, params }) => (method === "session/update" ? [params] : [])),
  };
  await ask("initialize", { protocolVersion: version });
  return it;
}

const full = () => new HoldfastError("STORE_FULL", "The disk is full.");
const unrecorded = expect.stringMatching(/could not be recorded.*The disk is full/);

test("the agent is named by the option, by itself, or by the program, and warnings of the store are logged", async () => {
  const program = process.argv[1]!.split("/").at(-1);
  for (const [options, agentInfo, expected] of [
    [{ app: "given" }, { name: "itself" }, "given"],
    [{ app: undefined as never }, { name: "itself" }, "itself"],
    [{ app: undefined as never }, undefined, program],
  ] as const) {
    await using store = await memory();
    vi.spyOn(store, "warnings", "get").mockReturnValue(["look out"]);
    const initialize = () => ({ result: { protocolVersion: 1, agentInfo } });
    const it = await wire(store, { ...options, answers: { initialize } });
    await it.ask("session/new", FOLDER);
    expect((await store.list({ empty: true })).sessions).toMatchObject([{ app: expected }]);
    expect(it.logged).toEqual(["look out"]);
  }
});

test("another version of the protocol passes, and the log says so; so does an agent that refuses", async () => {
  await using store = await memory();
  const it = await wire(store, { version: 2 });
  expect(it.logged).toEqual(["protocol version 2: sessions are not recorded"]);
  const error = { code: 1, message: "no" };
  const refusing = await wire(store, { answers: { initialize: () => ({ error }) } });
  expect(refusing.toClient[0].error).toEqual(error);
  refusing.client({ jsonrpc: "2.0", id: 7, method: "session/load", params: { sessionId: "x" } });
  await poll(() => refusing.toAgent.at(-1)).toMatchObject({ id: 7, method: "session/load" });
  // What nobody asked for passes too while nothing is recorded.
  void refusing.agent({ jsonrpc: "2.0", id: 99, result: {} });
  await poll(() => refusing.toClient.at(-1)).toMatchObject({ id: 99 });
});

test("what is no message passes both ways, and an answer that nobody waits for is dropped", async () => {
  await using store = await memory();
  const it = await wire(store);
  it.client("words");
  await poll(() => it.toAgent.at(-1)).toBe("words");
  for (const message of [{ jsonrpc: "2.0", id: 99, result: {} }, { jsonrpc: "2.0", id: null, error: {} }, [1]])
    void it.agent(message);
  await poll(() => it.toClient.at(-1)).toEqual([1]);
  expect(it.toClient.slice(1)).toEqual([{ jsonrpc: "2.0", id: null, error: {} }, [1]]);
});

test("a checkpoint is of an open session, by the client's id or the agent's", async () => {
  await using store = await memory();
  const ids = ["a", "a"];
  const it = await wire(store, { answers: { "session/new": () => ({ result: { sessionId: ids.pop() } }) } });
  await it.ask("session/new", FOLDER);
  const { sessionId } = (await it.ask("session/new", FOLDER)).result;
  expect(sessionId).not.toBe("a");
  await it.stream.checkpoint(sessionId, { n: 1 });
  await expect(it.stream.checkpoint("none", {})).rejects.toMatchObject({
    code: "SESSION_NOT_FOUND",
    facts: { id: "none" },
    message: "Session none is not open. Nothing was recorded.",
  });
});

test("a prompt is on record before the agent has it; one that is unfit or of no session reaches nobody", async () => {
  await using store = await memory();
  const it = await wire(store);
  const { sessionId, id } = await it.prompting("hello");
  const [row] = (await store.list()).sessions;
  expect((await store.read(row!.id, { dialect: "acp" })).messages).toHaveLength(1);
  void it.agent({ jsonrpc: "2.0", id, result: { stopReason: "end_turn" } });
  await poll(() => it.toClient.at(-1)).toMatchObject({ id });
  const asked = it.toAgent.length;
  expect((await it.ask("session/prompt", { sessionId: "none", prompt: [] })).error).toEqual({
    code: -32002,
    message: "Session none is not open. Load it, or start a new one. The prompt was not passed on.",
  });
  expect((await it.ask("session/prompt", { sessionId, prompt: 7 })).error.code).toBe(-32602);
  expect(it.toAgent).toHaveLength(asked);
  // The session goes on.
  it.client({ jsonrpc: "2.0", id: 5, method: "session/prompt", params: { sessionId, prompt: blocks("more") } });
  await poll(() => it.toAgent.at(-1)).toMatchObject({ id: 5, params: { sessionId, prompt: blocks("more") } });
});

test.for([
  ["session/load", { loadSession: true }, true],
  ["session/load", { sessionCapabilities: { resume: {} } }, false],
  ["session/resume", { sessionCapabilities: { resume: {} } }, true],
  ["session/resume", { loadSession: true }, false],
] as const)("%s of a session from before, with an agent that can %j", async ([method, can, isPassed]) => {
  await using store = await memory();
  const it = await wire(store, { can, answers: { [method]: () => ({ result: { own: true } }) } });
  const answer = await it.ask(method, { sessionId: "old", ...FOLDER });
  if (isPassed) expect(answer.result).toEqual({ own: true });
  else expect(answer.error).toEqual({ code: -32002, message: "There is no session old." });
});

test("without a restore function: how a session came back is told if there is a conversation", async () => {
  await using store = await memory();
  const first = await wire(store);
  const { sessionId, id } = await first.prompting("the word is heron");
  void first.agent({ jsonrpc: "2.0", id, result: { stopReason: "end_turn" } });
  await poll(() => first.toClient.at(-1)).toMatchObject({ id });
  const empty = (await first.ask("session/new", FOLDER)).result.sessionId;
  for (const one of [sessionId, empty]) await first.ask("session/close", { sessionId: one });
  const answers = { "session/load": () => ({ result: { modes: 1 } }) };
  const it = await wire(store, { can: { loadSession: true }, answers });
  expect((await it.ask("session/load", { sessionId, ...FOLDER })).result).toEqual({ modes: 1 });
  expect(it.updates().map(({ update }) => update.content.text)).toEqual([
    "the word is heron",
    expect.stringContaining("continues its own session"),
  ]);
  expect((await it.ask("session/load", { sessionId: empty, ...FOLDER })).result).toEqual({ modes: 1 });
  expect(it.updates()).toHaveLength(2);
  expect(it.toAgent.filter(({ method }) => method === "session/load").map(({ params }) => params)).toEqual([
    { sessionId, ...FOLDER },
    { sessionId: empty, ...FOLDER },
  ]);
  // It is open: the agent is not asked again.
  expect((await it.ask("session/load", { sessionId, ...FOLDER })).result).toEqual({});
  expect(it.toAgent.filter(({ method }) => method === "session/load")).toHaveLength(2);
});

test("an agent that has forgotten a session is told the conversation once, an empty one nothing", async () => {
  await using store = await memory();
  const first = await wire(store);
  const { sessionId, id } = await first.prompting("the word is heron");
  void first.agent({ jsonrpc: "2.0", id, result: { stopReason: "end_turn" } });
  await poll(() => first.toClient.at(-1)).toMatchObject({ id });
  const empty = (await first.ask("session/new", FOLDER)).result.sessionId;
  for (const one of [sessionId, empty]) await first.ask("session/close", { sessionId: one });
  let made = 0;
  const it = await wire(store, { answers: { "session/new": () => ({ result: { sessionId: `later${++made}` } }) } });
  for (const one of [sessionId, empty]) await it.ask("session/load", { sessionId: one, ...FOLDER });
  const prompted = async (one: string, words: string, at: number) => {
    it.client({ jsonrpc: "2.0", id: at, method: "session/prompt", params: { sessionId: one, prompt: blocks(words) } });
    await poll(() => it.toAgent.at(-1)?.id).toBe(at);
    void it.agent({ jsonrpc: "2.0", id: at, result: { stopReason: "end_turn" } });
    await poll(() => it.toClient.at(-1)?.id).toBe(at);
    return it.toAgent.at(-1).params;
  };
  const told = { type: "text", text: expect.stringContaining("> User: the word is heron") };
  expect(await prompted(sessionId, "which?", 1)).toEqual({ sessionId: "later1", prompt: [told, ...blocks("which?")] });
  expect(await prompted(sessionId, "sure?", 2)).toEqual({ sessionId: "later1", prompt: blocks("sure?") });
  expect(await prompted(empty, "hello", 3)).toEqual({ sessionId: "later2", prompt: blocks("hello") });
  // Both directions: the client knows it by its own id.
  await it.update("later1", text("heron"));
  expect(it.updates().at(-1)).toEqual({ sessionId, update: text("heron") });
  await it.stream.checkpoint("later1", 1);
});

test("an agent's replay is not shown, and an agent that cannot even begin a session says why", async () => {
  await using store = await memory();
  const first = await wire(store);
  const { sessionId } = (await first.ask("session/new", FOLDER)).result;
  await first.ask("session/close", { sessionId });
  const error = { code: -32000, message: "sign in", data: { methods: ["key"] } };
  let isReady = false;
  const it = await wire(store, {
    can: { loadSession: true },
    answers: {
      "session/load": () => {
        if (isReady) void it.update(sessionId, text("replayed"));
        return isReady ? { result: {} } : { error };
      },
    },
  });
  expect((await it.ask("session/load", { sessionId, ...FOLDER })).error).toEqual(error);
  // It was let go, so it can be loaded here or elsewhere.
  const [row] = (await store.list({ empty: true })).sessions;
  expect((await store.read(row!.id, { dialect: "acp" })).holder).toBeNull();
  isReady = true;
  expect((await it.ask("session/load", { sessionId, ...FOLDER })).result).toEqual({});
  expect(it.updates()).toEqual([]);
  await it.update(sessionId, text("new"));
  expect(it.updates()).toEqual([{ sessionId, update: text("new") }]);
});

test("a restore function gets the client's folders and servers, or what stands for them", async () => {
  await using store = await memory();
  const given: Any[] = [];
  const it = await wire(store, {
    restore: (id, { cwd, additionalDirectories, mcpServers }) =>
      void given.push([id, cwd, additionalDirectories, mcpServers]),
  });
  const { sessionId } = (await it.ask("session/new", FOLDER)).result;
  const load = async (params: object): Promise<Any> => {
    await it.ask("session/close", { sessionId });
    return (await it.ask("session/resume", { sessionId, ...params })).result;
  };
  expect(await load({ cwd: "/other", additionalDirectories: ["/more"], mcpServers: [{ name: "m" }] })).toEqual({});
  await load({ cwd: 7, additionalDirectories: 7, mcpServers: 7 });
  expect(given).toEqual([
    [sessionId, "/other", ["/more"], [{ name: "m" }]],
    [sessionId, process.cwd(), [], []],
  ]);
  expect(it.updates()).toEqual([]);
});

test.for([
  ["session/close", {}],
  ["session/close", { close: {} }],
  ["session/delete", {}],
  ["session/delete", { delete: {} }],
] as const)("%s with an agent that can %j ends the turn, for the client and for the agent", async ([method, can]) => {
  await using store = await memory();
  const isPassed = method.slice("session/".length) in can;
  const it = await wire(store, {
    can: { sessionCapabilities: can },
    answers: { [method]: () => ({ result: { own: true } }) },
  });
  const { sessionId } = await it.prompting();
  await it.update(sessionId, { sessionUpdate: "tool_call", toolCallId: "c", title: "t" });
  expect((await it.ask(method, { sessionId })).result).toEqual(isPassed ? { own: true } : {});
  expect(it.updates().at(-1)).toMatchObject({ sessionId, update: { toolCallId: "c", status: "failed" } });
  expect(it.toAgent.at(-1)).toMatchObject({ method: isPassed ? method : "session/cancel", params: { sessionId } });
  const { sessions } = await store.list({ empty: true });
  expect(sessions).toHaveLength(method === "session/delete" ? 0 : 1);
  for (const { id } of sessions) expect((await store.read(id, { dialect: "acp" })).holder).toBeNull();
  // One that is not open can be ended too.
  expect((await it.ask(method, { sessionId: "none" })).error).toBeUndefined();
});

test("a list has the agent's sessions too if it can list, and a failure of the agent is told with its code", async () => {
  await using store = await memory();
  const error = { code: -32099, message: "no list" };
  let isBroken = false;
  const list = () => (isBroken ? { error } : { result: { sessions: [{ sessionId: "own", cwd: "/" }] } });
  const it = await wire(store, { can: { sessionCapabilities: { list: {} } }, answers: { "session/list": list } });
  await it.ask("session/new", FOLDER);
  const { sessions, nextCursor } = (await it.ask("session/list")).result;
  expect(sessions).toEqual([{ sessionId: "own", cwd: "/" }]);
  expect((await it.ask("session/list", { cursor: nextCursor })).result.sessions).toMatchObject([{ sessionId: "s1" }]);
  isBroken = true;
  expect((await it.ask("session/list")).error).toEqual(error);
});

test("anything else about a session passes when it is recorded that it was said, not what", async () => {
  await using store = await memory();
  const it = await wire(store, { answers: { "_example/set": () => ({ result: { fine: true } }) } });
  const { sessionId } = (await it.ask("session/new", FOLDER)).result;
  const beside = vi.spyOn(RecordedSession.prototype, "beside");
  expect((await it.ask("_example/set", { sessionId, key: "SECRET" })).result).toEqual({ fine: true });
  it.client({ jsonrpc: "2.0", method: "_example/note", params: { sessionId, key: "SECRET" } });
  await poll(() => it.toAgent.at(-1)).toMatchObject({ method: "_example/note", params: { sessionId, key: "SECRET" } });
  expect(beside.mock.calls).toEqual([
    ["client", "_example/set", null],
    ["client", "_example/note", null],
  ]);
  // About no session, or one that nobody knows.
  it.client({ jsonrpc: "2.0", method: "_example/note", params: { sessionId: "none" } });
  await poll(() => it.toAgent.at(-1)).toMatchObject({ params: { sessionId: "none" } });
  expect(beside).toHaveBeenCalledTimes(2);
  beside.mockRejectedValueOnce(full());
  const asked = it.toAgent.length;
  expect((await it.ask("_example/set", { sessionId })).error).toEqual({ code: -32603, message: "The disk is full." });
  expect(it.toAgent).toHaveLength(asked);
  expect(it.logged).toEqual(["The disk is full."]);
  beside.mockRestore();
});

test("a notification that cannot be recorded stops the turn: a person can always stop an agent", async () => {
  await using store = await memory();
  const it = await wire(store);
  const { sessionId, id } = await it.prompting();
  const beside = vi.spyOn(RecordedSession.prototype, "beside").mockRejectedValue(full());
  it.client({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId } });
  await poll(() => it.toClient.at(-1)).toEqual({ jsonrpc: "2.0", id, error: { code: -32603, message: unrecorded } });
  expect(it.toAgent.at(-1)).toMatchObject({ method: "session/cancel", params: { sessionId } });
  expect(it.logged).toEqual([`session ${sessionId}: recording failed: The disk is full.`]);
  beside.mockRestore();
  // The agent's answer comes late, and is not passed on.
  const before = it.toClient.length;
  await it.agent({ jsonrpc: "2.0", id, result: { stopReason: "cancelled" } });
  await it.update(sessionId, text("late"));
  await it.agent({ jsonrpc: "2.0", id: "q", method: "fs/read_text_file", params: { sessionId } });
  await poll(() => it.toAgent.at(-1)).toEqual({
    ...{ jsonrpc: "2.0", id: "q" },
    error: { code: -32603, message: "The session could not be recorded, so the client was not asked." },
  });
  expect(it.toClient).toHaveLength(before);
});

test("a decision that cannot be recorded is not acted on; one that can is on record before the agent has it", async () => {
  await using store = await memory();
  const it = await wire(store);
  const permission = async (sessionId: string, id: number) => {
    const params = {
      sessionId,
      toolCall: { toolCallId: `t${id}`, title: "T" },
      options: [{ optionId: "yes", kind: "allow_once" }],
    };
    await it.agent({ jsonrpc: "2.0", id, method: "session/request_permission", params });
    await poll(() => it.toClient.at(-1)).toMatchObject({ id, params: { sessionId } });
  };
  const yes = { outcome: { outcome: "selected", optionId: "yes" } };
  const good = await it.prompting();
  await permission(good.sessionId, 1);
  const beside = vi.spyOn(RecordedSession.prototype, "beside");
  it.client({ jsonrpc: "2.0", id: 1, result: yes });
  await poll(() => it.toAgent.at(-1)).toEqual({ jsonrpc: "2.0", id: 1, result: yes });
  expect(beside.mock.calls).toEqual([["client", "session/request_permission", yes.outcome]]);
  // An answer that nobody waits for passes, and says nothing of a session.
  it.client({ jsonrpc: "2.0", id: 1, result: yes });
  await poll(() => it.toAgent.filter(({ id, result }) => id === 1 && result)).toHaveLength(2);
  expect(beside).toHaveBeenCalledTimes(1);
  await permission(good.sessionId, 2);
  beside.mockRejectedValueOnce(full());
  it.client({ jsonrpc: "2.0", id: 2, result: yes });
  await poll(() => it.toAgent.find(({ id, result }) => id === 2 && result)).toEqual({
    ...{ jsonrpc: "2.0", id: 2, result: { outcome: { outcome: "cancelled" } } },
  });
  await poll(() => it.toClient.at(-1)).toMatchObject({ id: good.id, error: { message: unrecorded } });
  expect(it.toAgent.filter(({ method }) => method === "session/cancel")).toHaveLength(1);
  beside.mockRestore();
});

test("a session whose prompt could not be recorded is let go, and tried again with the next prompt", async () => {
  await using store = await memory();
  const it = await wire(store);
  const { sessionId } = (await it.ask("session/new", FOLDER)).result;
  const prompt = vi.spyOn(RecordedSession.prototype, "prompt").mockRejectedValueOnce(full());
  expect((await it.ask("session/prompt", { sessionId, prompt: blocks("x") })).error.message).toBe("The disk is full.");
  const [row] = (await store.list({ empty: true })).sessions;
  expect((await store.read(row!.id, { dialect: "acp" })).holder).toBeNull();
  const before = it.toClient.length;
  await it.update(sessionId, text("late"));
  expect(it.toClient).toHaveLength(before);
  prompt.mockRestore();
  it.client({ jsonrpc: "2.0", id: 5, method: "session/prompt", params: { sessionId, prompt: blocks("again") } });
  await poll(() => it.toAgent.at(-1)).toMatchObject({ id: 5 });
  await it.update(sessionId, text("heard"));
  expect(it.updates()).toEqual([{ sessionId, update: text("heard") }]);
  void it.agent({ jsonrpc: "2.0", id: 5, result: { stopReason: "end_turn" } });
  await poll(() => it.toClient.at(-1)).toMatchObject({ id: 5 });
});

test("the end of a turn and a new session that cannot be recorded are told", async () => {
  await using store = await memory();
  const it = await wire(store);
  const { id } = await it.prompting();
  const ended = vi.spyOn(RecordedSession.prototype, "ended").mockRejectedValueOnce(full());
  void it.agent({ jsonrpc: "2.0", id, result: { stopReason: "end_turn" } });
  await poll(() => it.toClient.at(-1)).toEqual({ jsonrpc: "2.0", id, error: { code: -32603, message: unrecorded } });
  ended.mockRestore();
  vi.spyOn(store, "record").mockRejectedValueOnce(full());
  expect((await it.ask("session/new", FOLDER)).error).toEqual({ code: -32603, message: unrecorded });
  const made = await wire(store, { answers: { "session/new": () => ({ result: {} }) } });
  expect((await made.ask("session/new", FOLDER)).result).toEqual({});
});

test("a session that cannot be closed is logged, and the client is answered", async () => {
  await using store = await memory();
  const it = await wire(store);
  const { sessionId, id } = await it.prompting();
  const close = vi.spyOn(RecordedSession.prototype, "close").mockRejectedValueOnce(new Error("stuck"));
  const updates = vi.spyOn(RecordedSession.prototype, "updates").mockRejectedValueOnce(full());
  await it.update(sessionId, text("lost"));
  await poll(() => it.toClient.at(-1)).toMatchObject({ id, error: {} });
  expect(it.logged).toEqual([
    `session ${sessionId}: recording failed: The disk is full.`,
    `session ${sessionId} could not be closed: stuck`,
  ]);
  close.mockRestore();
  updates.mockRestore();
});

test("messages of a session wait for its load, others do not; a cancel does not overtake what it cancels", async () => {
  await using store = await memory();
  const first = await wire(store);
  const { sessionId } = (await first.ask("session/new", FOLDER)).result;
  await first.ask("session/close", { sessionId });
  const gate = Promise.withResolvers<void>();
  const it = await wire(store, {
    restore: async () => {
      await gate.promise;
    },
    answers: { "session/new": () => ({ result: { sessionId: "other" } }) },
  });
  const other = (await it.ask("session/new", FOLDER)).result.sessionId;
  it.client({ jsonrpc: "2.0", id: "load", method: "session/load", params: { sessionId, ...FOLDER } });
  it.client({ jsonrpc: "2.0", id: "prompt", method: "session/prompt", params: { sessionId, prompt: blocks("x") } });
  it.client({ jsonrpc: "2.0", method: "$/cancel_request", params: { requestId: "prompt" } });
  it.client({
    jsonrpc: "2.0",
    id: "free",
    method: "session/prompt",
    params: { sessionId: other, prompt: blocks("y") },
  });
  await poll(() => it.toAgent.at(-1)?.id).toBe("free");
  gate.resolve();
  await poll(() => it.toAgent.at(-1)?.method).toBe("$/cancel_request");
  expect(it.toAgent.slice(-3).map(({ id, method }) => id ?? method)).toEqual(["free", "prompt", "$/cancel_request"]);
  expect(it.toClient.at(-1)).toEqual({ jsonrpc: "2.0", id: "load", result: {} });
  // The lane is free again.
  it.client({ jsonrpc: "2.0", method: "_example/note", params: { sessionId } });
  await poll(() => it.toAgent.at(-1)?.method).toBe("_example/note");
});

test("a client that breaks off breaks off the agent's side, and nothing more is given to the agent", async () => {
  await using store = await memory();
  const it = await wire(store);
  const { sessionId } = (await it.ask("session/new", FOLDER)).result;
  const [row] = (await store.list({ empty: true })).sessions;
  await it.fromClient.abort(new Error("broken"));
  await poll(async () => (await store.read(row!.id, { dialect: "acp" })).holder).toBeNull();
  const asked = it.toAgent.length;
  await it.update(sessionId, text("to nobody")).catch(() => undefined);
  await setImmediate();
  expect(it.toAgent).toHaveLength(asked);
});

test("without a log of its own, standard error has it", async () => {
  await using store = await memory();
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  try {
    await wire(store, { version: 2, log: undefined as never });
    expect(write.mock.calls.map(([line]) => line)).toEqual([
      "holdfast: protocol version 2: sessions are not recorded\n",
    ]);
  } finally {
    write.mockRestore();
  }
});
