import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { openStore } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { OpenedSessions } from "../../../src/layout/opened-sessions.ts";
import { Library } from "../../../src/record/library.ts";
import { RecordedSession } from "../../../src/record/recorded-session.ts";
import { blocks, type RawEditor, rawEditor, said } from "../../wrapped.ts";

const FOLDER = { cwd: "/work", mcpServers: [] };

async function newSession(editor: RawEditor): Promise<string> {
  return (await editor.ask("session/new", FOLDER)).result.sessionId;
}

const isPermission =
  (call: string) =>
  ({ method, params }: { method?: string; params?: { toolCall: { toolCallId: string } } }): boolean =>
    method === "session/request_permission" && params?.toolCall.toolCallId === call;

test("an answer to an agent that has ended does not answer the next agent, which counts its requests from 0 again", async () => {
  await using editor = await rawEditor({});
  const sessionId = await newSession(editor);
  const other = await newSession(editor);
  const first = editor.ask("session/prompt", { sessionId, prompt: blocks("ask one") });
  const one = await editor.until(isPermission("ask one"));
  await editor.ask("session/prompt", { sessionId: other, prompt: blocks("die") });
  expect((await first).error.data).toEqual({ interrupted: true });
  const second = editor.ask("session/prompt", { sessionId, prompt: blocks("ask two") });
  const two = await editor.until(isPermission("ask two"));
  // The person approves the call of the agent that has ended: its dialog is still there.
  editor.send({ id: one.id, result: { outcome: { outcome: "selected", optionId: "yes" } } });
  editor.send({ id: two.id, result: { outcome: { outcome: "cancelled" } } });
  await second;
  expect(said(editor.seen).filter((words) => words.startsWith("answer"))).toEqual([
    'answer to ask two: {"outcome":{"outcome":"cancelled"}}',
  ]);
});

test("an agent that never answers a load holds up neither other sessions nor the editor's end", async () => {
  const store = await openStore("memory:");
  const behaviour = { can: { loadSession: true }, answers: { "session/load": null, "session/list": null } };
  const library = new Library(store, ["agent"]);
  await (await library.create("old", "/work")).close();
  await library.closeAll();
  const editor = await rawEditor(behaviour, { store, library: new Library(store, ["agent"]) });
  const sessionId = await newSession(editor);
  editor.send({ id: "load", method: "session/load", params: { sessionId: "old", ...FOLDER } });
  const answer = await editor.ask("session/prompt", { sessionId, prompt: blocks("hello") });
  expect(answer.result).toEqual({ stopReason: "end_turn" });
  // Its next prompt waits for the load.
  editor.send({ id: "prompt", method: "session/prompt", params: { sessionId: "old", prompt: blocks("told") } });
  await editor.leave();
  await editor[Symbol.asyncDispose]();
  expect(editor.wrapped.agent).toBeNull();
  await store.close();
});

describe("a request to an agent that ends is settled, and the next one starts the agent", () => {
  const modes = { currentModeId: "ask", availableModes: [{ id: "ask", name: "Ask" }] };
  const REQUESTS: readonly (readonly [method: string, params: object])[] = [
    ["session/new", FOLDER],
    ["session/load", FOLDER],
    ["session/resume", FOLDER],
    ["session/fork", FOLDER],
    ["session/list", {}],
    ["session/prompt", { prompt: blocks("hello") }],
    ["session/set_mode", { modeId: "code" }],
    ["session/set_model", { modelId: "large" }],
    ["session/set_config_option", { configId: "effort", value: "high" }],
    ["authenticate", { methodId: "key" }],
    ["_example/extension", {}],
  ];
  /** An editor whose session has a mode, a model and an option, and whose agent dies as the file says. */
  async function stage(
    sessionCapabilities: object = { resume: {}, list: {} },
  ): Promise<{ editor: RawEditor; sessionId: string; fate: string } & AsyncDisposable> {
    const can = { loadSession: true, sessionCapabilities };
    const folder = mkdtempSync(join(tmpdir(), "fate-"));
    const fate = join(folder, "fate");
    const editor = await rawEditor({ can, fate, answers: { "session/load": { modes }, "session/resume": { modes } } });
    const sessionId = await newSession(editor);
    for (const [method, params] of REQUESTS)
      if (method.startsWith("session/set_")) await editor.ask(method, { sessionId, ...params });
    await editor.ask("session/prompt", { sessionId, prompt: blocks("first") });
    const dispose = async (): Promise<void> => {
      await editor[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    };
    return { editor, sessionId, fate, [Symbol.asyncDispose]: dispose };
  }
  const isAbout = (method: string): boolean => method.startsWith("session/") && !/new|list/.test(method);

  for (const how of ["dies", "answers", "mute", "deaf"]) {
    const some = REQUESTS.filter(([method]) => how === "dies" || /load|prompt/.test(method));
    test.for(some)(`%s: the agent ${how}`, async ([method, params]) => {
      await using it = await stage(method === "session/load" ? {} : undefined);
      const { editor, sessionId } = it;
      // The agent has not opened the session: it is asked for it by us.
      if (/load|resume/.test(method)) await editor.ask("session/prompt", { sessionId, prompt: blocks("die") });
      writeFileSync(it.fate, `${method} ${how}`);
      const asked = await editor.ask(method, isAbout(method) ? { sessionId, ...params } : params);
      if (how === "dies" || how === "mute") expect(asked.error.message).toMatch(/agent has ended/);
      const next = await editor.ask("session/prompt", { sessionId, prompt: blocks("told") });
      // It may have died only now.
      const again = next.error ? await editor.ask("session/prompt", { sessionId, prompt: blocks("told") }) : next;
      expect(again.result).toEqual({ stopReason: "end_turn" });
      expect(existsSync(it.fate)).toBe(false);
      // It still has what the person chose.
      expect(said(editor.seen).at(-1)).toMatch(/effort=high/);
    });
  }

  test.for(["initialize", "session/resume", "session/set_mode", "session/set_model", "session/set_config_option"])(
    "the agent dies again at %s, while a session is opened for a prompt",
    async (method) => {
      await using it = await stage();
      const { editor, sessionId } = it;
      await editor.ask("session/prompt", { sessionId, prompt: blocks("die") });
      writeFileSync(it.fate, `${method} dies`);
      const failed = await editor.ask("session/prompt", { sessionId, prompt: blocks("lost") });
      expect(failed.error.message).toMatch(/agent has ended/);
      const next = await editor.ask("session/load", { sessionId, ...FOLDER });
      expect(next.error).toBeUndefined();
      await editor.ask("session/prompt", { sessionId, prompt: blocks("told") });
      expect(said(editor.seen).at(-1)).toBe("code large effort=high");
      expect(said(editor.seen).join("\n")).not.toMatch(/did not accept|Restored from Holdfast's record/);
    },
  );
});

test("a process that an agent leaves behind with its output holds up nobody", async () => {
  await using editor = await rawEditor({});
  const sessionId = await newSession(editor);
  const left = await editor.ask("session/prompt", { sessionId, prompt: blocks("last words", "abandon") });
  expect(left.error.data).toEqual({ interrupted: true });
  expect(said(editor.seen)).toContain("last words");
  const next = await editor.ask("session/prompt", { sessionId, prompt: blocks("again") });
  expect(next.result).toEqual({ stopReason: "end_turn" });
});

test("an agent may ask the editor something while it loads a session", async () => {
  const store = await openStore("memory:");
  const behaviour = { can: { loadSession: true }, answers: { "session/load": { asks: "_example/ask" } } };
  const library = new Library(store, ["agent"]);
  await library.create("old", "/work");
  await library.closeAll();
  await using editor = await rawEditor(behaviour, { store, library: new Library(store, ["agent"]) });
  const loaded = editor.ask("session/load", { sessionId: "old", ...FOLDER });
  const { id } = await editor.until(({ method }) => method === "_example/ask");
  editor.send({ id, result: {} });
  expect((await loaded).error).toBeUndefined();
});

test("a session that cannot be recorded ends its own turn, and the others go on with the same agent", async () => {
  await using editor = await rawEditor({});
  const [bad, good] = [await newSession(editor), await newSession(editor)];
  const pid = editor.wrapped.agent?.pid;
  const running = editor.ask("session/prompt", { sessionId: good, prompt: blocks("ask good") });
  const { id } = await editor.until(isPermission("ask good"));
  const broken = editor.library.of(bad)!;
  vi.spyOn(broken, "updates").mockRejectedValue(new Error("the disk is full"));
  const failed = await editor.ask("session/prompt", { sessionId: bad, prompt: blocks("not recorded") });
  expect(failed.error.message).toMatch(/could not be recorded.*the disk is full/);
  expect(said(editor.seen)).not.toContain("not recorded");
  editor.send({ id, result: { outcome: { outcome: "selected", optionId: "yes" } } });
  expect((await running).result).toEqual({ stopReason: "end_turn" });
  expect(editor.wrapped.agent?.pid).toBe(pid);
  // The next prompt tries again.
  const next = await editor.ask("session/prompt", { sessionId: bad, prompt: blocks("recorded") });
  expect(next.result).toEqual({ stopReason: "end_turn" });
  expect(said(editor.seen)).toContain("recorded");
});

test("an agent dies while a journal cannot be written: every prompt is answered, and the next agent is started", async () => {
  await using editor = await rawEditor({});
  const [bad, good] = [await newSession(editor), await newSession(editor)];
  vi.spyOn(editor.library.of(bad)!, "interrupted").mockRejectedValue(new Error("the disk is full"));
  const answered = await Promise.all([
    editor.ask("session/prompt", { sessionId: bad, prompt: blocks("wait") }),
    editor.ask("session/prompt", { sessionId: good, prompt: blocks("die") }),
  ]);
  expect(answered.map(({ error }) => error.data)).toEqual([{ interrupted: true }, { interrupted: true }]);
  const next = await editor.ask("session/prompt", { sessionId: good, prompt: blocks("again") });
  expect(next.result).toEqual({ stopReason: "end_turn" });
});

test("one journal that cannot be closed does not keep the others open", async () => {
  await using store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  await library.create("one", "/work");
  await library.create("two", "/work");
  const close = vi.spyOn(RecordedSession.prototype, "close").mockRejectedValueOnce(new Error("the disk is full"));
  await expect(library.closeAll()).rejects.toThrow("the disk is full");
  expect(close).toHaveBeenCalledTimes(2);
  expect(library.open).toEqual([]);
  close.mockRestore();
});

test("an ending proxy starts no agent, whatever the editor still says", async () => {
  const editor = await rawEditor({});
  const sessionId = await newSession(editor);
  await editor.wrapped.end();
  const late = await editor.ask("session/prompt", { sessionId, prompt: blocks("hello") });
  expect(late.error.message).toMatch(/is being ended/);
  expect(editor.wrapped.agent).toBeNull();
  await editor.store.close();
});

test("an agent that wants the person to sign in first says so to the editor, and is not given a new session", async () => {
  const store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  const old = await library.create("old", "/work");
  await old.prompt({ prompt: blocks("hello") });
  await library.closeAll();
  const error = { code: -32000, message: "Authentication required", data: { methods: ["key"] } };
  const behaviour = { can: { loadSession: true }, answers: { "session/load": { error } } };
  await using editor = await rawEditor(behaviour, { store, library: new Library(store, ["agent"]) });
  expect((await editor.ask("session/load", { sessionId: "old", ...FOLDER })).error).toEqual(error);
});

test("the person is told that the agent could not load a session, not that it cannot load any", async () => {
  const store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  const old = await library.create("old", "/work");
  await old.prompt({ prompt: blocks("hello") });
  await library.closeAll();
  const error = { code: -32603, message: "Invalid session identifier" };
  const behaviour = { can: { loadSession: true }, answers: { "session/load": { error } } };
  await using editor = await rawEditor(behaviour, { store, library: new Library(store, ["agent"]) });
  await editor.ask("session/load", { sessionId: "old", ...FOLDER });
  expect(said(editor.seen).at(-1)).toMatch(/could not load.*Invalid session identifier/);
  expect(said(editor.seen).join("\n")).not.toMatch(/cannot load sessions/);
});

test("mode, model and options that were chosen are set again at an agent that is started again", async () => {
  await using editor = await rawEditor({
    answers: {
      "session/new": {
        sessionId: "s",
        modes: { currentModeId: "code", availableModes: [] },
        configOptions: [{ id: "effort", currentValue: "low" }],
      },
    },
  });
  const sessionId = await newSession(editor);
  await editor.ask("session/set_mode", { sessionId, modeId: "code" });
  await editor.ask("session/set_mode", { sessionId, modeId: "plan" });
  await editor.ask("session/set_model", { sessionId, modelId: "large" });
  await editor.ask("session/set_config_option", { sessionId, configId: "effort", value: "high" });
  await editor.ask("session/prompt", { sessionId, prompt: blocks("die") });
  await editor.ask("session/prompt", { sessionId, prompt: blocks("told") });
  expect(said(editor.seen).at(-1)).toBe("plan large effort=high");
});

test("a mode that the agent itself went to is the one that it gets back", async () => {
  await using editor = await rawEditor({
    answers: { "session/new": { sessionId: "s", modes: { currentModeId: "code", availableModes: [] } } },
  });
  const sessionId = await newSession(editor);
  await editor.ask("session/set_mode", { sessionId, modeId: "plan" });
  const went = JSON.stringify({ sessionUpdate: "current_mode_update", currentModeId: "build" });
  await editor.ask("session/prompt", { sessionId, prompt: blocks(went, "die") });
  await editor.ask("session/prompt", { sessionId, prompt: blocks("told") });
  expect(said(editor.seen).at(-1)).toBe("build");
});

test("what the next agent does not accept is told, and the editor is shown what the agent has", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hf-wrapped-"));
  try {
    await using editor = await rawEditor({
      once: join(folder, "once"),
      answers: { "session/new": { sessionId: "s", modes: { currentModeId: "code", availableModes: [] } } },
    });
    const sessionId = await newSession(editor);
    await editor.ask("session/set_mode", { sessionId, modeId: "plan" });
    await editor.ask("session/prompt", { sessionId, prompt: blocks("die") });
    await editor.ask("session/prompt", { sessionId, prompt: blocks("hello") });
    expect(said(editor.seen)).toContain("The agent did not accept what you had chosen: plan (not any more).");
    const shown = editor.seen.flatMap(({ params }) => params?.update?.currentModeId ?? []);
    expect(shown).toEqual(["code"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("what was chosen outlives a supervisor, and an answer to its agent does not reach the next one", async () => {
  const store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  await library.create("old", "/work");
  await library.closeAll();
  const kept = new OpenedSessions();
  kept.set("old", FOLDER, [{ method: "session/set_mode", params: { modeId: "plan" } }]);
  await using editor = await rawEditor(
    {},
    { store, library: new Library(store, ["agent"]), continues: JSON.parse(JSON.stringify(kept.all)) },
  );
  const running = editor.ask("session/prompt", { sessionId: "old", prompt: blocks("told", "ask one") });
  const { id } = await editor.until(isPermission("ask one"));
  expect(id).not.toBe(0);
  editor.send({ id: 0, result: { outcome: { outcome: "selected", optionId: "yes" } } });
  editor.send({ id, result: { outcome: { outcome: "cancelled" } } });
  await running;
  expect(said(editor.seen)).toEqual(["plan", 'answer to ask one: {"outcome":{"outcome":"cancelled"}}']);
});

test("an editor that loads a session of a running agent gets its mode, options and commands", async () => {
  const commands = { sessionUpdate: "available_commands_update", availableCommands: [{ name: "init" }] };
  await using editor = await rawEditor({
    answers: { "session/new": { sessionId: "s", modes: { currentModeId: "code", availableModes: [{ id: "plan" }] } } },
  });
  const sessionId = await newSession(editor);
  await editor.ask("session/set_mode", { sessionId, modeId: "plan" });
  await editor.ask("session/prompt", { sessionId, prompt: blocks(JSON.stringify(commands)) });
  const { result } = await editor.ask("session/load", { sessionId, ...FOLDER });
  expect(result).toEqual({ modes: { currentModeId: "plan", availableModes: [{ id: "plan" }] } });
  // An editor knows the session after the answer.
  await editor.until(
    (message) =>
      editor.seen.indexOf(message) > editor.seen.findIndex((one) => one.result === result) &&
      message.params?.update.sessionUpdate === "available_commands_update",
  );
});

test("the commands that an agent offers after it loaded a session reach the editor, its replay does not", async () => {
  const store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  await (await library.create("old", "/work")).prompt({ prompt: blocks("hello") });
  await library.closeAll();
  const replay = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "replayed" } };
  const commands = { sessionUpdate: "available_commands_update", availableCommands: [{ name: "init" }] };
  const behaviour = { can: { loadSession: true }, after: { "session/load": [replay, commands] } };
  await using editor = await rawEditor(behaviour, { store, library: new Library(store, ["agent"]) });
  const answer = await editor.ask("session/load", { sessionId: "old", ...FOLDER });
  await editor.until(
    (message) =>
      editor.seen.indexOf(message) > editor.seen.indexOf(answer) &&
      message.params?.update?.sessionUpdate === "available_commands_update",
  );
  expect(said(editor.seen)).not.toContain("replayed");
});

test("text that was cut in the middle of a character is recorded and passed on", async () => {
  await using editor = await rawEditor({});
  const sessionId = await newSession(editor);
  const half = '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\ud83d"}}';
  const answer = await editor.ask("session/prompt", { sessionId, prompt: blocks(half, "after") });
  expect(answer.result).toEqual({ stopReason: "end_turn" });
  expect(said(editor.seen)).toEqual(["\ud83d", "after"]);
});

test("in a version of the protocol that we do not know, requests about sessions pass to the agent", async () => {
  await using editor = await rawEditor({
    version: 2,
    answers: { "session/resume": { own: true }, "session/list": { own: true }, "session/close": { own: true } },
  });
  const sessionId = await newSession(editor);
  for (const method of ["session/resume", "session/list", "session/close"])
    expect((await editor.ask(method, { sessionId })).result).toEqual({ own: true });
});

test("an editor that does not wait for the answer to initialize gets its session loaded, not a new one", async () => {
  const store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  await (await library.create("old", "/work")).prompt({ prompt: blocks("hello") });
  await library.closeAll();
  await using editor = await rawEditor(
    { can: { loadSession: true } },
    { store, library: new Library(store, ["agent"]), initialize: false },
  );
  const answered = [
    editor.ask("initialize", { protocolVersion: 1 }),
    editor.ask("session/load", { sessionId: "old", ...FOLDER }),
  ];
  await Promise.all(answered);
  expect(said(editor.seen).at(-1)).toMatch(/continues its own session/);
});

test("an agent that numbers its sessions reuses ids: the sessions stay apart, for the editor and in the record", async () => {
  await using editor = await rawEditor({ can: { loadSession: true }, answers: { "session/new": { sessionId: "s1" } } });
  const first = await newSession(editor);
  await editor.ask("session/prompt", { sessionId: first, prompt: blocks("one", "die") });
  // The agent is started again, and counts from 1.
  const second = await newSession(editor);
  expect(second).not.toBe(first);
  await editor.ask("session/prompt", { sessionId: second, prompt: blocks("two") });
  const before = editor.seen.length;
  await editor.ask("session/load", { sessionId: second, ...FOLDER });
  expect(said(editor.seen.slice(before))).toEqual(["two", "two"]);
  const after = editor.seen.length;
  await editor.ask("session/load", { sessionId: first, ...FOLDER });
  // What the agent has under this id is the other one.
  expect(said(editor.seen.slice(after)).slice(0, 3)).toEqual(["one", "die", "one"]);
  expect(said(editor.seen).at(-1)).toMatch(/told the conversation as text/);
});

test("what the agent says during a replay comes after it, once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hf-wrapped-"));
  try {
    await using editor = await rawEditor({});
    const sessionId = await newSession(editor);
    const sign = join(folder, "said");
    void editor.ask("session/prompt", { sessionId, prompt: blocks("one", "ask x", "two", `touch ${sign}`) });
    const { id } = await editor.until(isPermission("ask x"));
    // Another editor takes over. It does not read on after the first line of the replay.
    const lines: ReturnType<typeof JSON.parse>[] = [];
    const gate = Promise.withResolvers<void>();
    const next = editor.wrapped.attach({
      write: async (bytes) => {
        for (const line of String(bytes).trim().split("\n")) lines.push(JSON.parse(line));
        await gate.promise;
      },
    });
    const ofAgent = () => said(lines.filter(({ params }) => params?.update?.sessionUpdate === "agent_message_chunk"));
    const input = new PassThrough();
    const read = editor.wrapped.read(next, input);
    const say = (message: object) => input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    say({ id: 1, method: "session/load", params: { sessionId, ...FOLDER } });
    await expect.poll(() => lines.length).toBe(1);
    say({ id, result: { outcome: { outcome: "selected", optionId: "yes" } } });
    await expect.poll(() => existsSync(sign)).toBe(true);
    for (let turn = 0; turn < 50; turn++) await setImmediate();
    gate.resolve();
    await expect.poll(() => lines.some(({ id: answered }) => answered === 1)).toBe(true);
    await expect.poll(() => ofAgent().at(-1)).toBe("two");
    expect(ofAgent().map((words) => words.slice(0, 6))).toEqual(["one", "answer", "two"]);
    input.end();
    await read;
    await editor.wrapped.detach(next);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
