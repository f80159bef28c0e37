import { HoldfastError } from "holdfast";
import { expect, test } from "vitest";
import { FOLDER, scriptedChat, served } from "../../served.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const sessionId = "s1";

/** A host that remembers what it was asked, and has one session. */
function oneSession(change: object = {}) {
  const chat = scriptedChat(sessionId, change);
  const asked: unknown[] = [];
  const does =
    (name: string) =>
    async (...args: unknown[]) => {
      asked.push([name, ...args]);
      return chat.chat;
    };
  return { chat, asked, host: { create: does("create"), open: does("open"), fork: does("fork") } };
}

test("what the agent can do is said in initialize; it speaks no later version than it knows", async () => {
  for (const [isLocal, http] of [
    [true, true],
    [false, false],
  ] as const) {
    const editor = await served({}, { isLocal });
    const answer = await editor.ask("initialize", { protocolVersion: 99 });
    expect(answer.result).toEqual({
      protocolVersion: 1,
      agentInfo: { name: "holdfast", title: "Holdfast", version: "7" },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, embeddedContext: true },
        mcpCapabilities: { http, sse: false },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, fork: {} },
      },
    });
  }
});

test("sessions are created, loaded, resumed and forked in the folder of the request", async () => {
  const { host, asked } = oneSession();
  const editor = await served(host);
  for (const method of ["session/new", "session/load", "session/resume", "session/fork"]) {
    const { result } = await editor.ask(method, { sessionId, ...FOLDER });
    expect(result).toMatchObject({ modes: { currentModeId: "ask" } });
    expect(result.sessionId).toBe(/new|fork/.test(method) ? sessionId : undefined);
    const wrong = await editor.ask(method, { sessionId, ...FOLDER, cwd: "work" });
    expect(wrong.error).toMatchObject({ code: -32602, data: { cwd: "work" } });
  }
  const here = { cwd: "/work" };
  expect(asked).toEqual([
    ["create", here],
    ["open", sessionId, here],
    ["open", sessionId, here],
    ["fork", sessionId, here],
  ]);
});

test("a list has the sessions with a folder, page by page", async () => {
  const asked: unknown[] = [];
  const at = "2026-11-17T00:00:00.000Z";
  const sessions = [
    { id: "a", cwd: "/a", title: "A", at },
    { id: "b", cwd: "/b", title: "", at },
    { id: "c", title: "C", at },
  ];
  const editor = await served({
    list: async (query) => {
      asked.push(query);
      return { sessions, ...(query.after === undefined ? { next: "n" } : {}) };
    },
  });
  const listed = [
    { sessionId: "a", cwd: "/a", title: "A", updatedAt: at },
    { sessionId: "b", cwd: "/b", title: null, updatedAt: at },
  ];
  expect((await editor.ask("session/list")).result).toEqual({ sessions: listed, nextCursor: "n" });
  expect((await editor.ask("session/list", { cwd: "/a", cursor: "n" })).result).toEqual({ sessions: listed });
  expect(asked).toEqual([{ limit: 50 }, { limit: 50, cwd: "/a", after: "n" }]);
});

test("mode and model are set; others are refused, and so are those of a session that is not open", async () => {
  const { host, chat } = oneSession();
  const editor = await served(host);
  await editor.ask("session/new", FOLDER);
  chat.on["setModel"] = (model) => chat.set({ model });
  expect((await editor.ask("session/set_mode", { sessionId, modeId: "plan" })).result).toEqual({});
  const set = { sessionId, configId: "model", value: "offline/two" };
  expect((await editor.ask("session/set_config_option", set)).result.configOptions).toMatchObject([
    { currentValue: "offline/two" },
  ]);
  expect(chat.did).toEqual(["setMode plan", "setModel offline/two"]);
  const refusals: [string, object, object][] = [
    ["session/set_mode", { sessionId, modeId: "yolo" }, { code: -32602, data: { modeId: "yolo" } }],
    ["session/set_config_option", { ...set, configId: "x" }, { code: -32602, data: { configId: "x" } }],
    ["session/set_config_option", { ...set, type: "boolean", value: true }, { code: -32602 }],
    ["session/set_mode", { sessionId: "none", modeId: "plan" }, { code: -32002, data: { sessionId: "none" } }],
    ["session/set_config_option", { ...set, sessionId: "none" }, { code: -32002 }],
    ["session/prompt", { sessionId: "none", prompt: [] }, { code: -32002 }],
  ];
  for (const [method, params, error] of refusals) expect((await editor.ask(method, params)).error).toMatchObject(error);
  expect(chat.did).toHaveLength(2);
});

test("close lets go of a session, delete removes it too, also one that is not open", async () => {
  const { host, chat } = oneSession();
  const editor = await served(host);
  await editor.ask("session/new", FOLDER);
  expect((await editor.ask("session/close", { sessionId })).result).toEqual({});
  expect(chat.did).toEqual(["close"]);
  expect((await editor.ask("session/set_mode", { sessionId, modeId: "plan" })).error.code).toBe(-32002);
  await editor.ask("session/close", { sessionId });
  expect(chat.did).toEqual(["close"]);
  await editor.ask("session/new", FOLDER);
  let isClosed = false;
  chat.on["close"] = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    isClosed = true;
  };
  const isClosedAtRemoval: boolean[] = [];
  const removing = await served(host, { remove: async () => void isClosedAtRemoval.push(isClosed) });
  await removing.ask("session/new", FOLDER);
  expect((await removing.ask("session/delete", { sessionId })).result).toEqual({});
  expect(isClosedAtRemoval).toEqual([true]);
  expect((await editor.ask("session/delete", { sessionId: "other" })).result).toEqual({});
  expect(editor.did).toEqual(["remove other"]);
});

class Coded extends Error {
  readonly code = "E_CODE";
}

test.for([
  ["a bad argument", new TypeError("it is wrong"), { code: -32602, message: "it is wrong" }],
  [
    "a session that is not there",
    new HoldfastError("SESSION_NOT_FOUND", "no such session"),
    { code: -32002, message: "no such session", data: { code: "SESSION_NOT_FOUND" } },
  ],
  [
    "a store that fails",
    new HoldfastError("STORE_FULL", "the disk is full"),
    { code: -32603, message: "the disk is full", data: { code: "STORE_FULL" } },
  ],
  [
    "misuse",
    new HoldfastError("MESSAGE_UNFIT", "it is unfit"),
    { code: -32602, message: "it is unfit", data: { code: "MESSAGE_UNFIT" } },
  ],
  ["an error with a code", new Coded("why"), { code: -32603, message: "why", data: { code: "E_CODE" } }],
  ["an error without one", new Error("why"), { code: -32603, message: "why", data: {} }],
  ["what is no error", "why", { code: -32603, message: "Internal error" }],
] as const)("%s is told in words, with its code", async ([, error, expected]) => {
  const fails = async () => {
    throw error;
  };
  const editor = await served({ create: fails, open: fails, list: fails });
  expect((await editor.ask("session/new", FOLDER)).error).toEqual(expected);
  expect((await editor.ask("session/list")).error).toEqual(expected);
  // The editor's tools were offered before, and are taken back.
  expect((await editor.ask("session/load", { sessionId, ...FOLDER })).error).toEqual(expected);
  expect(editor.did).toEqual([`drop ${sessionId}`]);
});

test("a session that is open stays so when it cannot be opened again", async () => {
  const { host, chat } = oneSession();
  const editor = await served({
    ...host,
    open: async () => {
      throw new Error("busy");
    },
  });
  await editor.ask("session/new", FOLDER);
  expect((await editor.ask("session/load", { sessionId, ...FOLDER })).error.message).toBe("busy");
  expect(editor.did).toEqual([]);
  expect((await editor.ask("session/set_mode", { sessionId, modeId: "plan" })).result).toEqual({});
  expect(chat.did).toEqual(["setMode plan"]);
});

test("a session whose tools cannot be offered is closed", async () => {
  const { host, chat } = oneSession();
  const accept = async (): Promise<never> => {
    throw new Error("no");
  };
  const editor = await served(host, { editor: { accept, drop: async () => undefined } });
  expect((await editor.ask("session/new", FOLDER)).error.message).toBe("no");
  expect(chat.did).toEqual(["close"]);
});

const SERVERS = [
  { name: "files", command: "x", args: ["-y"], env: [{ name: "KEY", value: "v" }] },
  { name: "web", type: "http", url: "http://127.0.0.1/", headers: [{ name: "H", value: "w" }] },
  { name: "old", type: "sse", url: "http://127.0.0.1/", headers: [] },
];

test("the editor's servers are offered, and those that cannot be used are told and logged", async () => {
  const { host, chat } = oneSession();
  const editor = await served(host);
  await editor.ask("session/new", { cwd: "/work", mcpServers: SERVERS });
  expect(editor.offers[0]![1].servers).toEqual([
    { name: "files", command: "x", args: ["-y"], env: { KEY: "v" } },
    { name: "web", url: "http://127.0.0.1/", headers: { H: "w" } },
  ]);
  const words = 'The MCP server "old" is not used: this agent cannot reach servers of the type "sse".';
  expect(editor.logged).toEqual([words]);
  await expect.poll(() => JSON.stringify(editor.sent)).toContain("cannot reach servers");
  await editor.shown(chat);
  // An editor that names no servers keeps those that the session has; one that names some replaces them.
  await editor.ask("session/resume", { sessionId, cwd: "/work" });
  expect(editor.offers).toHaveLength(1);
  await editor.ask("session/resume", { sessionId, cwd: "/work", mcpServers: [] });
  expect(editor.offers.map(([id, { servers }]) => [id, servers.length])).toEqual([
    [sessionId, 2],
    [sessionId, 0],
  ]);
  // It has begun already.
  await new Promise((resolve) => setImmediate(resolve));
  expect(await editor.shown(chat)).toEqual([]);
  const other = await served(host);
  await other.ask("session/resume", { sessionId, cwd: "/work" });
  expect(other.offers.map(([, { servers }]) => servers)).toEqual([[]]);
  await other.ask("session/fork", { sessionId, cwd: "/work" });
  expect(other.offers.at(-1)![1].servers).toEqual([]);
});

test("an agent in a server cannot use the editor's servers, and says so only if there are any", async () => {
  const { host } = oneSession();
  const editor = await served(host, { isLocal: false });
  await editor.ask("session/new", FOLDER);
  expect(editor.logged).toEqual([]);
  await editor.ask("session/new", { cwd: "/work", mcpServers: SERVERS });
  expect(editor.logged).toEqual([expect.stringContaining("(files, web, old) are not used")]);
});

test("a session is resumed without a replay", async () => {
  const items = [{ kind: "prompt", id: "m", at: "2026-11-17T00:00:00.000Z", turn: 1, text: "hello" }];
  const { host, chat } = oneSession({ items });
  const editor = await served(host);
  await editor.ask("session/resume", { sessionId, cwd: "/work" });
  await expect.poll(() => JSON.stringify(editor.sent)).toContain("usage_update");
  expect((await editor.shown(chat)).map(({ sessionUpdate }) => sessionUpdate)).toEqual([
    "available_commands_update",
    "usage_update",
  ]);
});

test("files are read and written through the editor, as far as it offers that", async () => {
  const asked: unknown[] = [];
  let content: unknown = "text";
  const answer = (method: string, params: Any): unknown => {
    asked.push([method, params]);
    return method === "fs/read_text_file" ? { content } : {};
  };
  const { host } = oneSession();
  const editor = await served(host, { answer, capabilities: { fs: { readTextFile: true, writeTextFile: true } } });
  await editor.ask("session/new", FOLDER);
  const { files, terminals } = editor.offers[0]![1];
  expect(terminals).toBeNull();
  expect(await files.read!("/a")).toBe("text");
  await files.write!("/b", "new");
  expect(asked).toEqual([
    ["fs/read_text_file", { sessionId, path: "/a" }],
    ["fs/write_text_file", { sessionId, path: "/b", content: "new" }],
  ]);
  content = 7;
  await expect(files.read!("/a")).rejects.toThrow("holds no text");
  const none = await served(oneSession().host);
  await none.ask("session/new", FOLDER);
  expect(none.offers[0]![1]).toMatchObject({ files: { read: null, write: null }, terminals: null });
});

test("a file that the editor does not give or write is waited for until the caller stops", async () => {
  const { host } = oneSession();
  const editor = await served(host, { capabilities: { fs: { readTextFile: true, writeTextFile: true } } });
  await editor.ask("session/new", FOLDER);
  const { files } = editor.offers[0]![1];
  for (const act of [
    (signal: AbortSignal) => files.read!("/a", signal),
    (signal: AbortSignal) => files.write!("/a", "", signal),
  ]) {
    const stop = new AbortController();
    const acting = act(stop.signal);
    stop.abort();
    await expect(acting).rejects.toThrow();
  }
  await expect.poll(() => editor.sent.filter(({ method }) => method === "$/cancel_request").length).toBe(2);
});

test("an editor's write that fails, fails", async () => {
  const { host } = oneSession();
  const answer = (): never => {
    throw new Error("read-only");
  };
  const editor = await served(host, { answer, capabilities: { fs: { writeTextFile: true } } });
  await editor.ask("session/new", FOLDER);
  await expect(editor.offers[0]![1].files.write!("/a", "")).rejects.toThrow("read-only");
});

test("a command runs in a terminal of the editor, which is shown with its call", async () => {
  const asked: [string, Any][] = [];
  const ended = Promise.withResolvers<object>();
  const answer = (method: string, params: Any): unknown => {
    asked.push([method, params]);
    if (method === "terminal/create") return { terminalId: "t1" };
    if (method === "terminal/output") return { output: "built", truncated: true };
    return method === "terminal/wait_for_exit" ? ended.promise : {};
  };
  const { host, chat } = oneSession();
  const editor = await served(host, { answer, capabilities: { terminal: true } });
  await editor.ask("session/new", FOLDER);
  await expect.poll(() => JSON.stringify(editor.sent)).toContain("usage_update");
  const { create } = editor.offers[0]![1].terminals!;
  chat.emit({ type: "tool.started", call: "a", name: "shell", input: {} });
  await editor.shown(chat);
  const command = { command: "make", args: ["all"], env: { A: "1" }, cwd: "/work", outputBytesMax: 5 };
  const terminal = await create("a", command);
  const shown = {
    sessionUpdate: "tool_call_update",
    toolCallId: "a",
    content: [{ type: "terminal", terminalId: "t1" }],
  };
  expect(await editor.shown(chat)).toEqual([shown]);
  expect(asked[0]).toEqual([
    "terminal/create",
    { sessionId, command: "make", args: ["all"], env: [{ name: "A", value: "1" }], cwd: "/work", outputByteLimit: 5 },
  ]);
  expect(await terminal.output()).toEqual({ text: "built", isCut: true });
  await terminal.kill();
  await terminal.release();
  expect(asked.map(([method]) => method).slice(-2)).toEqual(["terminal/kill", "terminal/release"]);
  ended.resolve({ exitCode: 2 });
  expect(await terminal.ended).toEqual({ code: 2, by: null });
  // Its output is there, so the end of the call says nothing more.
  chat.emit({ type: "tool.ended", call: "a", name: "shell", failed: false, output: "built" });
  expect(await editor.shown(chat)).toEqual([{ ...shown, status: "completed" }]);
  // A sub-agent's calls are not shown.
  await create("of a sub-agent", command);
  expect(await editor.shown(chat)).toEqual([]);
});

test("a terminal that ends by a signal, one without a name, and one that cannot be ended", async () => {
  let id: unknown = "t1";
  const answer = (method: string): unknown => {
    if (method === "terminal/create") return { terminalId: id };
    if (method === "terminal/wait_for_exit") return { signal: "SIGKILL" };
    throw new Error("gone");
  };
  const editor = await served(oneSession().host, { answer, capabilities: { terminal: true } });
  await editor.ask("session/new", FOLDER);
  const { create } = editor.offers[0]![1].terminals!;
  const command = { command: "make", args: [], env: {}, cwd: "/work", outputBytesMax: 5 };
  const terminal = await create("a", command);
  expect(await terminal.ended).toEqual({ code: null, by: "SIGKILL" });
  await expect(terminal.kill()).rejects.toThrow("gone");
  await expect(terminal.release()).rejects.toThrow("gone");
  await expect(terminal.output()).rejects.toThrow("gone");
  id = undefined;
  await expect(create("a", command)).rejects.toThrow("names no terminal");
});
