import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError, openStore, type Store } from "holdfast";
import { expect, test, vi } from "vitest";
import { Library } from "../../../src/record/library.ts";
import { blocks, type RawEditor, rawEditor, said } from "../../wrapped.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const FOLDER = { cwd: "/work", mcpServers: [] };
const HELLO = { protocolVersion: 1 };
const poll = (read: () => unknown) => expect.poll(read, { interval: 5, timeout: 10_000 });
const isPermission =
  (call: string) =>
  ({ method, params }: Any): boolean =>
    method === "session/request_permission" && params?.toolCall.toolCallId === call;

async function newSession(editor: RawEditor): Promise<string> {
  return (await editor.ask("session/new", FOLDER)).result.sessionId;
}

/** An agent that leaves a trace of what it is told. */
async function traced(behaviour: object = {}, options: Parameters<typeof rawEditor>[1] = {}) {
  const folder = mkdtempSync(join(tmpdir(), "hf-trace-"));
  const trace = join(folder, "trace");
  const editor = await rawEditor({ trace, ...behaviour }, options);
  return {
    ...{ editor, folder },
    /** What the agent was told, after `initialize`. */
    told: (): [string, Any][] =>
      (existsSync(trace) ? readFileSync(trace, "utf8") : "")
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("initialize"))
        .map((line) => [line.slice(0, line.indexOf(" ")), JSON.parse(line.slice(line.indexOf(" ")))]),
    [Symbol.asyncDispose]: async () => {
      await editor[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Resolves when the agent has said this. */
async function saysInRecord({ library }: RawEditor, sessionId: string, words: string): Promise<void> {
  await poll(async () => JSON.stringify(await library.of(sessionId)!.history())).toContain(words);
}

/** What is recorded beside the conversation, in order. */
async function besideIn(store: Store, sessionId: string): Promise<Any[]> {
  const { sessions } = await store.list({ empty: true });
  const { id } = sessions.find(({ labels }) => labels?.["acp.session"] === sessionId)!;
  const found: Any[] = [];
  for await (const record of store.history(id)) {
    const line = (record as Any).data?.notes?.["acp.line"] ?? (record as Any)["value"];
    if (JSON.stringify(record).includes("acp.line")) found.push(line ?? JSON.stringify(record));
  }
  return found;
}

test("an agent is busy while it works on a prompt; an editor is owed every other answer", async () => {
  await using editor = await rawEditor({
    can: { sessionCapabilities: { list: {} } },
    answers: { "session/list": null },
  });
  const sessionId = await newSession(editor);
  const { wrapped, client } = editor;
  expect([wrapped.isBusy, wrapped.owes(client)]).toEqual([false, false]);
  const running = editor.ask("session/prompt", { sessionId, prompt: blocks("ask it") });
  const { id } = await editor.until(isPermission("ask it"));
  expect([wrapped.isBusy, wrapped.owes(client)]).toEqual([true, false]);
  editor.send({ id, result: { outcome: { outcome: "cancelled" } } });
  await running;
  expect([wrapped.isBusy, wrapped.owes(client)]).toEqual([false, false]);
  // Never answered.
  editor.send({ id: "list", method: "session/list", params: {} });
  await poll(() => wrapped.owes(client)).toBe(true);
  expect(wrapped.owes(editor.next().client)).toBe(false);
});

test("an editor that goes: what the agent has asked it is refused, and what it asks later too", async () => {
  await using it = await traced();
  const { editor } = it;
  const sessionId = await newSession(editor);
  const prompt = blocks("ask one", "call _example/ask", "hold");
  editor.send({ id: 9, method: "session/prompt", params: { sessionId, prompt } });
  await editor.until(isPermission("ask one"));
  await editor.wrapped.detach(editor.client);
  await saysInRecord(editor, sessionId, "answer to _example/ask");
  const next = editor.next();
  // An editor that has gone already does not go again.
  await editor.wrapped.detach(editor.client);
  await next.ask("initialize", HELLO);
  await next.ask("session/load", { sessionId, ...FOLDER });
  expect(said(next.seen).slice(4)).toEqual([
    'answer to ask one: {"outcome":{"outcome":"cancelled"}}',
    'answer to _example/ask: {"code":-32603,"message":"Not asked: the editor was gone."}',
    "Reattached: the agent kept running, and has everything.",
  ]);
  expect(JSON.stringify(await besideIn(editor.store, sessionId))).toContain("the editor was gone");
});

test("the next editor with the same abilities gets the agent that runs; one with others gets another agent", async () => {
  await using editor = await rawEditor({ can: { promptCapabilities: { image: true } } });
  const pid = editor.wrapped.agent?.pid;
  const same = editor.next();
  const { result } = await same.ask("initialize", HELLO);
  expect(result).toMatchObject({
    protocolVersion: 1,
    agentCapabilities: { loadSession: true, promptCapabilities: { image: true }, sessionCapabilities: { list: {} } },
  });
  expect(editor.wrapped.agent?.pid).toBe(pid);
  expect(editor.hooked).toEqual(["started"]);
  const other = editor.next();
  expect((await other.ask("initialize", { ...HELLO, clientCapabilities: { terminal: true } })).result).toEqual(result);
  expect(editor.wrapped.agent?.pid).not.toBe(pid);
  expect(editor.hooked).toEqual(["started", "started"]);
});

test("two editors that count their requests alike get their own answers, and cancel their own", async () => {
  await using it = await traced();
  const { editor } = it;
  const sessionId = await newSession(editor);
  editor.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: blocks("ask one") } });
  await editor.until(isPermission("ask one"));
  editor.send({ method: "$/cancel_request", params: { requestId: 1 } });
  await poll(() => it.told().at(-1)).toEqual(["$/cancel_request", { requestId: 1 }]);
  const next = editor.next();
  next.send({ id: 1, method: "_example/second", params: {} });
  expect(await next.until(({ id }) => id === 1)).toMatchObject({ result: {} });
  const other = (await next.ask("session/new", FOLDER)).result.sessionId;
  next.send({ id: 1, method: "session/prompt", params: { sessionId: other, prompt: blocks("hold") } });
  next.send({ method: "$/cancel_request", params: { requestId: 1 } });
  await poll(() => it.told().at(-1)![0]).toBe("$/cancel_request");
  // An id of its own, since the other editor's request is still open.
  expect(it.told().at(-1)![1].requestId).not.toBe(1);
  expect(it.told().at(-1)![1].requestId).toContain("1");
  expect(editor.seen.filter(({ id, method }) => id === 1 && !method)).toEqual([]);
});

test("a later editor hears of a session what it has opened, and the turn of one that nobody hears is cancelled", async () => {
  await using it = await traced();
  const { editor } = it;
  const [unheard, heard] = [await newSession(editor), await newSession(editor)];
  editor.send({
    id: 1,
    method: "session/prompt",
    params: { sessionId: unheard, prompt: blocks("ask one", "hold") },
  });
  await editor.until(isPermission("ask one"));
  const next = editor.next();
  await next.ask("initialize", HELLO);
  next.send({ id: "p", method: "session/prompt", params: { sessionId: heard, prompt: blocks("mine", "hold") } });
  await next.until(({ params }) => params?.update?.content?.text === "mine");
  // The question to the editor before is not for this one to answer: it was asked in a session that it does not know.
  next.send({ id: 0, result: { outcome: { outcome: "cancelled" } } });
  await saysInRecord(editor, unheard, "answer to ask one");
  expect(said(next.seen)).toEqual(["mine"]);
  expect(editor.wrapped.isBusy).toBe(true);
  await editor.wrapped.cancelUnheard();
  await poll(() => it.told().filter(([method]) => method === "session/cancel")).toEqual([
    ["session/cancel", { sessionId: unheard }],
  ]);
  expect(editor.logged).toEqual(["a turn is cancelled: nobody waits for it"]);
  await next.ask("session/load", { sessionId: unheard, ...FOLDER });
  expect(said(next.seen).join("\n")).toContain("answer to ask one");
});

test("permission that is asked where nobody hears it is refused, and both are recorded", async () => {
  await using it = await traced();
  const { editor } = it;
  const sessionId = await newSession(editor);
  editor.send({
    id: 1,
    method: "session/prompt",
    params: { sessionId, prompt: blocks("ask one", "ask two", "done", "hold") },
  });
  const { id } = await editor.until(isPermission("ask one"));
  const next = editor.next();
  await next.ask("initialize", HELLO);
  next.send({ id, result: { outcome: { outcome: "selected", optionId: "yes" } } });
  await saysInRecord(editor, sessionId, "answer to ask two");
  expect(next.seen.filter(({ method }) => method === "session/request_permission")).toEqual([]);
  await next.ask("session/load", { sessionId, ...FOLDER });
  const all = said(next.seen).join("\n");
  expect(all).toContain('answer to ask one: {"outcome":{"outcome":"selected","optionId":"yes"}}');
  expect(all).toContain('answer to ask two: {"outcome":{"outcome":"cancelled"}}');
  const beside = JSON.stringify(await besideIn(editor.store, sessionId));
  expect(beside).toContain("the editor was gone");
  expect(beside).toContain("selected");
});

test("an answer that nobody waits for reaches the first agent, and no later one", async () => {
  await using editor = await rawEditor({});
  const sessionId = await newSession(editor);
  editor.send({ id: 77, result: {} });
  await editor.ask("session/prompt", { sessionId, prompt: blocks("die") });
  await editor.ask("session/prompt", { sessionId, prompt: blocks("hello") });
  expect(editor.logged).toEqual(["the agent was started again"]);
  editor.send({ id: 78, result: {} });
  await editor.ask("session/prompt", { sessionId, prompt: blocks("hello") });
  expect(editor.logged.at(-1)).toBe("an answer to a request that nobody waits for was not passed on");
});

test("an agent that ends before it has begun is told at once, a later end is not", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hf-early-"));
  const fate = join(folder, "fate");
  for (const [method, expected] of [
    ["initialize", { code: 7, signal: null }],
    ["session/new", null],
  ] as const) {
    writeFileSync(fate, `${method} dies`);
    const editor = await rawEditor({ fate }, { initialize: false, isStarted: false });
    const { early } = await editor.wrapped.start();
    await editor.ask("initialize", HELLO);
    await editor.ask("session/new", FOLDER);
    expect(await early).toEqual(expected);
    await editor[Symbol.asyncDispose]();
  }
  rmSync(folder, { recursive: true });
});

test("the end cancels the turn, closes the sessions if the agent can, and then ends it", async () => {
  for (const can of [{}, { sessionCapabilities: { close: {} } }]) {
    const it = await traced({ can });
    const { editor } = it;
    const [one, two] = [await newSession(editor), await newSession(editor)];
    editor.send({ id: 1, method: "session/prompt", params: { sessionId: one, prompt: blocks("hold") } });
    await poll(() => it.told().at(-1)?.[0]).toBe("session/prompt");
    const { pid } = editor.wrapped.agent!;
    expect(await editor.wrapped.end()).toEqual({ code: 0, signal: null });
    expect(() => process.kill(pid, 0)).toThrow();
    expect(it.told().slice(3)).toEqual([
      ["session/cancel", { sessionId: one }],
      ...("sessionCapabilities" in can ? [one, two].map((sessionId) => ["session/close", { sessionId }]) : []),
    ]);
    expect(editor.library.open).toEqual([]);
    // It has ended: there is nothing to end.
    expect(await editor.wrapped.end()).toEqual({ code: 0, signal: null });
    await it[Symbol.asyncDispose]();
  }
});

test("a session from before it was wrapped is the agent's own: loaded, prompted and closed as it came", async () => {
  await using it = await traced({ can: { loadSession: true, sessionCapabilities: { close: {} } } });
  const { editor } = it;
  for (const method of ["session/load", "session/resume"]) {
    const sessionId = `own ${method}`;
    expect((await editor.ask(method, { sessionId, ...FOLDER })).result).toEqual({});
    expect((await editor.ask("session/prompt", { sessionId, prompt: blocks("hello") })).result).toBeDefined();
    expect((await editor.ask("session/close", { sessionId })).result).toEqual({});
  }
  expect(it.told().map(([method, { sessionId }]) => [method, sessionId])).toEqual(
    ["session/load", "session/resume"].flatMap((method) =>
      [method, "session/prompt", "session/close"].map((one) => [one, `own ${method}`]),
    ),
  );
  expect(said(editor.seen)).toEqual(["hello", "hello"]);
  expect((await editor.store.list({ empty: true })).sessions).toEqual([]);
});

test.for([
  ["session/close", {}],
  ["session/close", { close: {} }],
  ["session/delete", {}],
  ["session/delete", { delete: {} }],
] as const)("%s of an agent that can %j", async ([method, can]) => {
  await using it = await traced({ can: { sessionCapabilities: can } });
  const { editor } = it;
  const sessionId = await newSession(editor);
  const call = JSON.stringify({ sessionUpdate: "tool_call", toolCallId: "c", title: "t" });
  editor.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: blocks(call, "hold") } });
  await editor.until(({ params }) => params?.update?.toolCallId === "c");
  expect((await editor.ask(method, { sessionId })).result).toEqual({});
  // Its call is shown as ended, and the agent stops.
  expect(editor.seen.flatMap(({ params }) => params?.update?.status ?? [])).toEqual(["failed"]);
  const isPassed = method.slice("session/".length) in can;
  await poll(() => it.told().at(-1)).toEqual([isPassed ? method : "session/cancel", { sessionId }]);
  expect(editor.library.open).toEqual([]);
  expect(editor.hooked.at(-1)).toEqual([sessionId, null, []]);
  const { sessions } = (await editor.ask("session/list")).result;
  expect(sessions.map((one: Any) => one.sessionId)).toEqual(method === "session/delete" ? [] : [sessionId]);
});

test("a list has the agent's sessions if it can list, then those that only we know", async () => {
  const listed = [{ sessionId: "own", cwd: "/work" }];
  for (const can of [true, false]) {
    await using editor = await rawEditor({
      can: can ? { sessionCapabilities: { list: {} } } : {},
      answers: { "session/list": { sessions: listed } },
    });
    const sessionId = await newSession(editor);
    const first = (await editor.ask("session/list")).result;
    const second = can ? (await editor.ask("session/list", { cursor: first.nextCursor })).result : first;
    expect(can ? first.sessions : []).toEqual(can ? listed : []);
    expect(second.sessions).toMatchObject([{ sessionId, cwd: "/work", title: null }]);
  }
});

test("what the editor sets is told to the agent, and that it did is recorded, not what", async () => {
  await using it = await traced();
  const { editor } = it;
  const sessionId = await newSession(editor);
  await editor.ask("_example/set", { sessionId, key: "SECRET" });
  editor.send({ method: "_example/note", params: { sessionId, key: "SECRET" } });
  editor.send({ method: "_example/none", params: { key: "x" } });
  await poll(() => it.told().slice(1)).toEqual([
    ["_example/set", { sessionId, key: "SECRET" }],
    ["_example/note", { sessionId, key: "SECRET" }],
    ["_example/none", { key: "x" }],
  ]);
  const beside = JSON.stringify(await besideIn(editor.store, sessionId));
  expect(beside).toContain("_example/set");
  expect(beside).toContain("_example/note");
  expect(beside).not.toContain("SECRET");
});

test("what cannot be recorded is not passed on, but for a cancel", async () => {
  await using it = await traced();
  const { editor } = it;
  const sessionId = await newSession(editor);
  vi.spyOn(editor.library.of(sessionId)!, "beside").mockRejectedValue(new Error("the disk is full"));
  vi.spyOn(editor.library.of(sessionId)!, "prompt").mockRejectedValue(new Error("the disk is full"));
  const full = { code: -32603, message: "the disk is full" };
  expect((await editor.ask("_example/set", { sessionId })).error).toEqual(full);
  expect((await editor.ask("session/prompt", { sessionId, prompt: blocks("x") })).error).toEqual(full);
  editor.send({ method: "_example/note", params: { sessionId } });
  editor.send({ method: "session/cancel", params: { sessionId } });
  await poll(() => it.told().slice(1)).toEqual([["session/cancel", { sessionId }]]);
  expect(editor.logged).toEqual(["a message was not passed on: the disk is full", "Error: the disk is full"]);
  expect(editor.wrapped.owes(editor.client)).toBe(false);
});

test.for([
  ["ask one", "permission"],
  ["call _example/ask", "beside"],
] as const)(
  "a question of the agent that cannot be recorded (%s) is refused, and its turn ends",
  async ([step, method]) => {
    await using it = await traced();
    const { editor, folder } = it;
    const [sessionId, other] = [await newSession(editor), await newSession(editor)];
    const session = editor.library.of(sessionId)!;
    vi.spyOn(session, method).mockRejectedValue(new Error("the disk is full"));
    const close = vi.spyOn(session, "close").mockRejectedValueOnce(new Error("it cannot be closed"));
    const sign = join(folder, "sign");
    const failed = await editor.ask("session/prompt", { sessionId, prompt: blocks(step, step, `touch ${sign}`) });
    expect(failed.error.message).toMatch(/its turn was stopped. What was recorded before is safe. the disk is full/);
    expect(close).toHaveBeenCalledTimes(1);
    // The agent is answered both times, and goes on; what it says then is not shown.
    await poll(() => existsSync(sign)).toBe(true);
    expect(it.told().filter(([one]) => one === "session/cancel")).toEqual([["session/cancel", { sessionId }]]);
    await editor.ask("session/prompt", { sessionId: other, prompt: blocks("after") });
    expect(said(editor.seen)).toEqual(["after"]);
    expect(editor.seen.filter(({ method: asked, id }) => asked && id !== undefined)).toEqual([]);
    expect(editor.logged).toEqual([
      `session ${sessionId}: recording failed: the disk is full`,
      `session ${sessionId} could not be closed: it cannot be closed`,
    ]);
    // One answer each: the agent's own answer to the prompt comes later, and is dropped.
    expect(editor.seen.filter(({ id }) => id === failed.id)).toHaveLength(1);
  },
);

test("the end of a turn that cannot be recorded is told as that", async () => {
  await using editor = await rawEditor({});
  const sessionId = await newSession(editor);
  vi.spyOn(editor.library.of(sessionId)!, "ended").mockRejectedValue(new Error("the disk is full"));
  const failed = await editor.ask("session/prompt", { sessionId, prompt: blocks("hello") });
  expect(failed.error.message).toMatch(/could not be recorded.*the disk is full/);
  expect(editor.library.of(sessionId)).toBeNull();
  const next = await editor.ask("session/prompt", { sessionId, prompt: blocks("again") });
  expect(next.result).toEqual({ stopReason: "end_turn" });
});

test("what is no message, and what is about no session that is recorded, passes as it came", async () => {
  await using editor = await rawEditor({});
  const sessionId = await newSession(editor);
  const call = JSON.stringify({
    jsonrpc: "2.0",
    method: "session/update",
    params: { sessionId: "own", update: { sessionUpdate: "tool_call", toolCallId: "x" } },
  });
  await editor.ask("session/prompt", {
    sessionId,
    prompt: blocks(
      "raw a log line",
      "of own words",
      `raw ${call}`,
      'raw {"jsonrpc":"2.0","method":"_example/note","params":{"x":1}}',
      'raw {"jsonrpc":"2.0","id":"nobody","result":{}}',
    ),
  });
  expect(editor.seen.slice(2, -1)).toEqual([
    { line: "a log line" },
    {
      jsonrpc: "2.0",
      method: "session/update",
      params: {
        sessionId: "own",
        update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "words" } },
      },
    },
    JSON.parse(call),
    { jsonrpc: "2.0", method: "_example/note", params: { x: 1 } },
    { jsonrpc: "2.0", id: "nobody", result: {} },
  ]);
  expect(editor.changes).toContainEqual({ session: "own", open: ["x"], ended: [] });
});

test("a shim is told what a line answers, opens and asks", async () => {
  await using editor = await rawEditor({});
  const sessionId = await newSession(editor);
  const running = editor.ask("session/prompt", { sessionId, prompt: blocks("ask one", "call elicitation/create") });
  const one = await editor.until(isPermission("ask one"));
  editor.send({ id: one.id, result: { outcome: { outcome: "cancelled" } } });
  const two = await editor.until(({ method }) => method === "elicitation/create");
  editor.send({ id: two.id, result: { fine: true } });
  await running;
  expect(said(editor.seen).at(-1)).toBe('answer to elicitation/create: {"fine":true}');
  expect(editor.changes).toEqual([
    { answers: "e1" },
    { answers: "e2" },
    { session: sessionId, open: ["ask one"], ended: [], request: 0 },
    { session: sessionId, open: [], ended: [], request: 1 },
    { answers: "e3" },
  ]);
  // What the agent asks for may be secret: that it asked is recorded.
  const beside = JSON.stringify(await besideIn(editor.store, sessionId));
  expect(beside).toContain("elicitation/create");
  expect(beside).not.toContain("of the agent");
});

test("the agent dies: its questions are withdrawn, its calls are ended, then the prompt is answered", async () => {
  await using editor = await rawEditor({});
  const [sessionId, other] = [await newSession(editor), await newSession(editor)];
  const running = editor.ask("session/prompt", { sessionId, prompt: blocks("ask one") });
  await editor.until(isPermission("ask one"));
  const from = editor.seen.length;
  await editor.ask("session/prompt", { sessionId: other, prompt: blocks("die") });
  await running;
  expect(
    editor.seen
      .slice(from)
      .map(({ method, id, params }) => [method ?? id, params?.update?.status ?? params?.requestId]),
  ).toEqual([
    ["session/update", "failed"],
    ["$/cancel_request", 0],
    ["e4", undefined],
    ["e5", undefined],
  ]);
});

test("a session that fails withdraws its own questions, not those of others", async () => {
  await using editor = await rawEditor({});
  const [bad, good] = [await newSession(editor), await newSession(editor)];
  void editor.ask("session/prompt", { sessionId: good, prompt: blocks("ask good") });
  await editor.until(isPermission("ask good"));
  const failing = editor.ask("session/prompt", { sessionId: bad, prompt: blocks("ask bad") });
  const { id } = await editor.until(isPermission("ask bad"));
  vi.spyOn(editor.library.of(bad)!, "updates").mockRejectedValue(new Error("the disk is full"));
  vi.spyOn(editor.library.of(bad)!, "beside").mockResolvedValue();
  // Its answer makes the agent say something.
  editor.send({ id, result: { outcome: { outcome: "cancelled" } } });
  await failing;
  expect(editor.seen.filter(({ method }) => method === "$/cancel_request")).toEqual([]);
});

test("an agent that has forgotten a session is told the conversation with the next prompt, once", async () => {
  const store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  const old = await library.create("old", "/work");
  await old.prompt({ prompt: blocks("the word is heron") });
  const empty = await library.create("empty", "/work");
  await library.closeAll();
  await using it = await traced({}, { store, library: new Library(store, ["agent"]) });
  const { editor } = it;
  for (const prompt of ["which?", "sure?"])
    await editor.ask("session/prompt", { sessionId: old.id, prompt: blocks(prompt) });
  await editor.ask("session/prompt", { sessionId: empty.id, prompt: blocks("hello") });
  const prompts = it.told().flatMap(([method, params]) => (method === "session/prompt" ? [params.prompt] : []));
  expect(prompts).toEqual([
    [expect.objectContaining({ text: expect.stringContaining("> User: the word is heron") }), ...blocks("which?")],
    blocks("sure?"),
    blocks("hello"),
  ]);
  // In its folder, without servers that nobody has named, and the person is told both.
  const made = it.told().filter(([method]) => method === "session/new");
  expect(made).toEqual([
    ["session/new", FOLDER],
    ["session/new", FOLDER],
  ]);
  const thoughts = said(editor.seen).filter(
    (words) => /Restored|MCP servers/.test(words) && !words.startsWith("This session"),
  );
  expect(thoughts).toEqual([
    expect.stringMatching(/^Restored from Holdfast's record: this agent cannot load sessions.*If the editor gave/),
    expect.stringMatching(/^If the editor gave this session MCP servers/),
  ]);
});

test("a session is opened again with what the editor opened it with", async () => {
  await using it = await traced();
  const { editor } = it;
  const servers = { cwd: "/other", mcpServers: [{ name: "m", command: "x", args: [], env: [] }] };
  const { sessionId } = (await editor.ask("session/new", servers)).result;
  await editor.ask("session/prompt", { sessionId, prompt: blocks("die") });
  await editor.ask("session/prompt", { sessionId, prompt: blocks("again") });
  expect(it.told().filter(([method]) => method === "session/new")).toEqual([
    ["session/new", servers],
    ["session/new", servers],
  ]);
  expect(said(editor.seen).join("\n")).not.toContain("If the editor gave");
  expect(editor.hooked).toEqual(["started", [sessionId, servers, []], "started"]);
  // The editor knows the session by its first id.
  expect(editor.seen.flatMap(({ params }) => params?.sessionId ?? [])).toSatisfy((ids: string[]) =>
    ids.every((id) => id === sessionId),
  );
});

test("a fork begins with the conversation of its source, in its folder unless the editor names one", async () => {
  await using editor = await rawEditor({ answers: { "session/fork": { sessionId: "fork" } } });
  const { sessionId } = (await editor.ask("session/new", { ...FOLDER, cwd: "/source" })).result;
  await editor.ask("session/prompt", { sessionId, prompt: blocks("one") });
  expect((await editor.ask("session/fork", { sessionId })).result).toEqual({ sessionId: "fork" });
  expect(editor.library.of("fork")!.cwd).toBe("/source");
  await editor.ask("session/load", { sessionId: "fork", ...FOLDER });
  expect(said(editor.seen).slice(-2)).toEqual(["one", "one"]);
});

test("a session that another process has open is busy, and one that is damaged says so", async () => {
  const store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  const old = await library.create("old", "/work");
  await old.close();
  await library.closeAll();
  const later = new Library(store, ["agent"]);
  await using editor = await rawEditor({}, { store, library: later });
  const reopen = vi.spyOn(later, "reopen");
  for (const [error, expected] of [
    [
      new HoldfastError("SESSION_BUSY", "held"),
      { code: -32603, message: expect.stringContaining("another"), data: { code: "SESSION_BUSY" } },
    ],
    [
      new HoldfastError("SESSION_NOT_FOUND", "gone"),
      { code: -32002, message: "gone", data: { code: "SESSION_NOT_FOUND" } },
    ],
    [new Error("damaged"), { code: -32603, message: "damaged" }],
  ] as const) {
    reopen.mockRejectedValueOnce(error);
    expect((await editor.ask("session/load", { sessionId: "old", ...FOLDER })).error).toEqual(expected);
  }
});

test("in another version of the protocol, prompts and requests are recorded as far as they are known", async () => {
  await using editor = await rawEditor({ version: 2 });
  const sessionId = await newSession(editor);
  await editor.ask("session/prompt", { sessionId, prompt: blocks("hello") });
  await editor.ask("session/set_mode", { sessionId, modeId: "x" });
  expect(
    said(
      (await editor.library.of(sessionId)!.history()).map((update) => ({
        method: "session/update",
        params: { update },
      })),
    ),
  ).toEqual(["hello", "hello"]);
  expect(JSON.stringify(await besideIn(editor.store, sessionId))).toContain("session/set_mode");
});
