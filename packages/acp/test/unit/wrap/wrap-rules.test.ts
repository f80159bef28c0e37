import { HoldfastError, openStore } from "holdfast";
import { expect, test, vi } from "vitest";
import { AgentEnded, AgentError } from "../../../src/record/holdfast-to-agent.ts";
import { Lanes } from "../../../src/record/lanes.ts";
import { Library } from "../../../src/record/library.ts";
import { recordable } from "../../../src/record/message.ts";
import { restore, restoredWords } from "../../../src/record/restore.ts";
import { AgentRequests } from "../../../src/wrap/open-requests.ts";
import { SessionSettings } from "../../../src/wrap/session-settings.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("a lane keeps its order, and does not wait for another one", async () => {
  const lanes = new Lanes();
  const did: string[] = [];
  const gate = Promise.withResolvers<void>();
  expect(lanes.isBusy).toBe(false);
  const first = lanes.run("a", 1, true, () => gate.promise.then(() => void did.push("a1")));
  // It may take long, so the next one may be read.
  await first;
  expect(lanes.isBusy).toBe(true);
  await lanes.run("a", 1, false, async () => void did.push("a2"));
  await lanes.run("b", 1, false, async () => void did.push("b1"));
  expect(did).toEqual(["b1"]);
  gate.resolve();
  await expect.poll(() => lanes.isBusy).toBe(false);
  expect(did).toEqual(["b1", "a1", "a2"]);
});

test("what is short is waited for, and nothing more is read while too much waits", async () => {
  const lanes = new Lanes();
  const gates = [0, 1, 2].map(() => Promise.withResolvers<void>());
  const isRead = [false, false, false];
  const read = (at: number, lane: string, bytes: number, isLong: boolean) =>
    lanes
      .run(lane, bytes, isLong, () => gates[at]!.promise)
      .then(() => {
        isRead[at] = true;
      });
  const MIB = 2 ** 20;
  const short = read(0, "short", 1, false);
  await turn();
  expect(isRead[0]).toBe(false);
  gates[0]!.resolve();
  await short;
  await read(1, "a", 64 * MIB, true);
  const over = read(2, "b", 1, true);
  await turn();
  expect(isRead).toEqual([true, true, false]);
  gates[1]!.resolve();
  await over;
  gates[2]!.resolve();
  await expect.poll(() => lanes.isBusy).toBe(false);
  // All of it is read again.
  await lanes.run("c", 64 * MIB, true, async () => undefined);
});

const MODES = { currentModeId: "code", availableModes: [{ id: "plan" }] };
const OPTIONS = [
  { id: "effort", currentValue: "low" },
  { id: "speed", currentValue: "slow" },
];

test("settings: what is shown, chosen and missing follows the agent's answers", () => {
  const settings = new SessionSettings();
  for (const answer of [null, undefined, "x", {}, { modes: null }]) {
    settings.opened(answer);
    expect(settings.answer).toEqual({});
  }
  settings.opened({ modes: MODES, models: { currentModelId: "small" }, configOptions: OPTIONS, other: 1 });
  expect(settings.answer).toEqual({ modes: MODES, models: { currentModelId: "small" }, configOptions: OPTIONS });
  expect(settings.accepted("session/prompt", { sessionId: "s" }, {})).toBe(false);
  expect(settings.accepted("session/set_mode", { sessionId: "s", modeId: "plan" }, {})).toBe(true);
  expect(settings.accepted("session/set_model", { sessionId: "s", modelId: "large" }, null)).toBe(true);
  const set = { configId: "effort", value: "high" };
  const changed = [{ id: "effort", currentValue: "high" }, OPTIONS[1]!];
  expect(settings.accepted("session/set_config_option", { sessionId: "s", ...set }, { configOptions: changed })).toBe(
    true,
  );
  expect(settings.answer).toEqual({
    modes: { ...MODES, currentModeId: "plan" },
    models: { currentModelId: "large" },
    configOptions: changed,
  });
  const chosen = [
    { method: "session/set_mode", params: { modeId: "plan" } },
    { method: "session/set_model", params: { modelId: "large" } },
    { method: "session/set_config_option", params: set },
  ];
  expect(settings.chosen).toEqual(chosen);
  expect(settings.missing).toEqual([]);
  // Another agent has its own.
  settings.opened({ modes: MODES, models: { currentModelId: "large" }, configOptions: OPTIONS });
  expect(settings.missing).toEqual([chosen[0], chosen[2]]);
  expect(new SessionSettings(chosen).missing).toEqual(chosen);
  settings.refused(chosen[2]!);
  expect(settings.chosen).toEqual(chosen.slice(0, 2));
  expect(settings.updates).toEqual([
    { sessionUpdate: "current_mode_update", currentModeId: "code" },
    { sessionUpdate: "config_option_update", configOptions: OPTIONS },
  ]);
  expect(new SessionSettings().updates).toEqual([]);
});

test("settings: options are chosen one by one, and an answer without options leaves them as they are", () => {
  const settings = new SessionSettings();
  settings.opened({ configOptions: OPTIONS });
  const choose = (configId: string, value: unknown, result: unknown = {}) =>
    settings.accepted("session/set_config_option", { sessionId: "s", configId, value }, result);
  choose("effort", "high");
  choose("speed", "fast");
  choose("effort", "low");
  expect(settings.answer).toEqual({ configOptions: OPTIONS });
  expect(settings.chosen.map(({ params }) => params)).toEqual([
    { configId: "effort", value: "low" },
    { configId: "speed", value: "fast" },
  ]);
  expect(settings.missing.map(({ params }) => params["configId"])).toEqual(["speed"]);
});

test("settings: what the agent changes by itself replaces what was chosen, and only that", () => {
  const settings = new SessionSettings();
  settings.opened({ modes: MODES, configOptions: OPTIONS });
  const mode = (currentModeId: unknown) => settings.updated({ sessionUpdate: "current_mode_update", currentModeId });
  const options = (configOptions: unknown) =>
    settings.updated({ sessionUpdate: "config_option_update", configOptions });
  // Nothing was chosen.
  expect(mode("plan")).toBe(false);
  expect(settings.answer["modes"]).toEqual({ ...MODES, currentModeId: "plan" });
  expect(settings.chosen).toEqual([]);
  expect(options(OPTIONS)).toBe(false);
  settings.accepted("session/set_mode", { modeId: "plan" }, {});
  settings.accepted("session/set_config_option", { configId: "effort", value: "high" }, {});
  settings.accepted("session/set_model", { modelId: "large" }, {});
  expect([mode("plan"), mode(7), mode("build")]).toEqual([false, false, true]);
  expect(settings.answer["modes"]).toEqual({ ...MODES, currentModeId: "build" });
  expect(options("x")).toBe(false);
  expect(settings.answer["configOptions"]).toEqual(OPTIONS);
  const set = (value: string, more: object = {}) => [{ id: "effort", currentValue: value, ...more }];
  expect([options(set("high")), options([]), options(set("max")), options(set("max"))]).toEqual([
    false,
    false,
    true,
    false,
  ]);
  expect(settings.chosen).toEqual([
    { method: "session/set_mode", params: { modeId: "build" } },
    { method: "session/set_config_option", params: { configId: "effort", value: "max" } },
    { method: "session/set_model", params: { modelId: "large" } },
  ]);
  expect(settings.commands).toBeNull();
  const commands = { sessionUpdate: "available_commands_update", availableCommands: [] };
  expect(settings.updated(commands)).toBe(false);
  expect(settings.commands).toBe(commands);
  expect(settings.updated({ sessionUpdate: "plan" })).toBe(false);
});

test("settings: a mode that the agent has not offered is chosen, and not shown", () => {
  const settings = new SessionSettings();
  settings.accepted("session/set_mode", { modeId: "plan" }, {});
  settings.accepted("session/set_model", { modelId: "large" }, {});
  expect(settings.answer).toEqual({});
  expect(settings.missing).toHaveLength(2);
});

/** An agent that remembers what it was sent. */
function agentThatHears() {
  const sent: Any[] = [];
  return {
    sent,
    agent: { idForClient: (id: unknown) => `c${id}`, send: async (one: Any) => void sent.push(one) } as never,
  };
}

test("questions of an agent: what was decided is recorded, for permission alone; each is answered once", async () => {
  const { agent } = agentThatHears();
  const params = { toolCall: { toolCallId: "a" } };
  const requests = new AgentRequests();
  const decided = vi.fn(async () => undefined);
  const session = { decided } as never;
  requests.asked(agent, { id: 1, method: "session/request_permission", params, session });
  requests.asked(agent, { id: 2, method: "fs/read_text_file", params, session });
  requests.asked(agent, { id: 3, method: "session/request_permission", params, session: null });
  const outcome = { outcome: "selected" };
  expect(await requests.answered("c1", outcome)).toMatchObject({ id: 1 });
  expect(decided.mock.calls).toEqual([[params, outcome]]);
  expect(await requests.answered("c2", null)).toMatchObject({ id: 2 });
  expect(await requests.answered("c3", outcome)).toMatchObject({ id: 3 });
  expect(decided).toHaveBeenCalledTimes(1);
  expect(await requests.answered("c1", outcome)).toBeNull();
});

test("questions of an agent that nobody answers: recorded as refused, and refused also if that fails", async () => {
  const { agent, sent } = agentThatHears();
  const params = { toolCall: { toolCallId: "a" } };
  const requests = new AgentRequests();
  const decided = vi.fn(async (..._: unknown[]): Promise<void> => undefined);
  const asked = { id: 1, method: "session/request_permission", params, session: { decided } as never };
  requests.asked(agent, asked);
  requests.asked(agent, { ...asked, id: 2, method: "fs/read_text_file" });
  await requests.refuseAll(agent);
  expect(sent).toEqual([
    { id: 2, error: { code: -32603, message: "Not asked: the editor was gone." } },
    { id: 1, result: { outcome: { outcome: "cancelled" } } },
  ]);
  expect(decided.mock.calls).toEqual([[params, { outcome: "cancelled" }, "the editor was gone"]]);
  // Nothing is open any more.
  expect(await requests.answered("c1", null)).toBeNull();
  decided.mockRejectedValueOnce(new Error("the disk is full"));
  await expect(requests.refuse(agent, asked, "why")).rejects.toThrow("the disk is full");
  expect(sent.at(-1)).toEqual({ id: 1, result: { outcome: { outcome: "cancelled" } } });
});

test("questions are withdrawn: those of a session, or all", async () => {
  const { agent } = agentThatHears();
  const requests = new AgentRequests();
  const [one, two] = [{}, {}] as never[];
  requests.asked(agent, { id: 1, method: "m", params: {}, session: one! });
  requests.asked(agent, { id: 2, method: "m", params: {}, session: two! });
  requests.asked(agent, { id: 3, method: "m", params: {}, session: null });
  const lines: Any[] = [];
  const client = { write: async (line: Buffer) => void lines.push(JSON.parse(String(line)).params.requestId) } as never;
  await requests.withdraw(client, one);
  expect(lines).toEqual(["c1"]);
  await requests.withdraw(client);
  expect(lines).toEqual(["c1", "c2", "c3"]);
  await requests.withdraw(client);
  expect(lines).toHaveLength(3);
  await requests.withdraw(null);
});

test.for([
  ["authenticate", null],
  ["_auth/login", null],
  ["elicitation/create", null],
  ["session/new", null],
  ["session/newer", { env: [{ name: "A", value: "SECRET" }] }],
  ["terminal/create", { env: [{ name: "A" }] }],
  ["fs/read_text_file", { env: [{ name: "A", value: "SECRET" }] }],
] as const)("what is recorded of %s", ([method, expected]) => {
  expect(recordable(method, { env: [{ name: "A", value: "SECRET" }] })).toEqual(expected);
});

test("a command without variables is recorded as it is", () => {
  expect(recordable("terminal/create", { command: "x", env: 7 })).toEqual({ command: "x", env: 7 });
  expect(recordable("terminal/create", { env: [7, { name: 1 }] })).toEqual({ env: [{ name: null }, { name: null }] });
});

function parts(change: object = {}): Any {
  const asked: Any[] = [];
  return {
    asked,
    session: { id: "v", agentSession: "a", movedTo: async (to: string) => void asked.push(["moved", to]) },
    params: { sessionId: "v", cwd: "/work", extra: 1 },
    ...{ capabilities: { loadSession: true }, isOpen: false },
    request: async (...args: unknown[]) => {
      asked.push(args);
      return {};
    },
    mute: () => async () => {
      await turn();
      asked.push("unmuted");
    },
    ...change,
  };
}

test("a session is restored with the editor's parameters, and without servers if it names none", async () => {
  const open = parts({ isOpen: true });
  expect(await restore(open)).toEqual({ rung: "alive", answer: {}, failure: null });
  expect(open.asked).toEqual([]);
  const loaded = parts();
  expect(await restore(loaded)).toEqual({ rung: "loaded", answer: {}, failure: null });
  // Its replay has ended before anybody is told.
  const folder = { cwd: "/work", mcpServers: [], extra: 1 };
  expect(loaded.asked).toEqual([["session/load", { sessionId: "a", ...folder }], "unmuted"]);
  const made = parts({ capabilities: {} });
  expect(await restore(made)).toEqual({ rung: "new", answer: {}, failure: null });
  expect(made.asked).toEqual([
    ["session/new", folder],
    ["moved", "v"],
  ]);
  const moved = parts({ capabilities: {}, request: async () => ({ sessionId: "b", modes: 1 }) });
  expect(await restore(moved)).toEqual({ rung: "new", answer: { modes: 1 }, failure: null });
  expect(moved.asked).toEqual([["moved", "b"]]);
});

test.for([
  ["it wants the person to sign in", new AgentError({ code: -32000, message: "sign in" }), true],
  ["it ends", new AgentEnded(), true],
  ["it has forgotten the session", new AgentError({ code: -32602, message: "unknown" }), false],
  ["anything else", new Error("unknown"), false],
] as const)("an agent that cannot load: %s", async ([, error, isThrown]) => {
  const given = parts({
    request: async (method: string) => {
      given.asked.push(method);
      if (method === "session/load") throw error;
      return null;
    },
  });
  if (isThrown) await expect(restore(given)).rejects.toBe(error);
  else expect(await restore(given)).toEqual({ rung: "new", answer: {}, failure: "unknown" });
  expect(given.asked.slice(0, 2)).toEqual(["session/load", "unmuted"]);
  expect(given.asked.length).toBe(isThrown ? 2 : 4);
});

test("the person is told how a session was restored", () => {
  const words = (rung: Any, failure: string | null = null, isBack = false) => restoredWords({ rung, failure }, isBack);
  expect([words("alive"), words("alive", null, true)]).toEqual([null, expect.stringMatching(/^Reattached/)]);
  for (const rung of ["resumed", "loaded"]) expect(words(rung)).toMatch(/continues its own session/);
  expect(words("new")).toContain("this agent cannot load sessions, so");
  expect(words("new", " a\n\t b ")).toContain("its own session (a b), so");
  expect(words("new", "x".repeat(200))).toContain(`(${"x".repeat(200)})`);
  expect(words("new", "x".repeat(201))).toContain(`(${"x".repeat(200)}…)`);
  expect(words("new", `${"x".repeat(199)}🚀`)!.isWellFormed()).toBe(true);
});

test("a session that another process has open is freed by it, if it does", async () => {
  await using store = await openStore("memory:");
  const first = new Library(store, ["agent"]);
  await first.create("s", "/work");
  await first.closeAll();
  const busy = (pid: unknown) => new HoldfastError("SESSION_BUSY", "held", { id: "s", holder: { pid } } as never);
  const record = vi.spyOn(store, "record");
  const asked: number[] = [];
  for (const [error, isFree, opens] of [
    [busy(1), true, true],
    [busy(1), false, false],
    [busy(process.pid), true, false],
    [busy("1"), true, false],
    [new HoldfastError("STORE_FULL", "full", { holder: { pid: 1 } } as never), true, false],
  ] as const) {
    asked.length = 0;
    const library = new Library(store, ["agent"], {
      free: async (pid) => {
        asked.push(pid);
        return isFree;
      },
    });
    record.mockRejectedValueOnce(error);
    if (opens) expect((await library.reopen("s"))!.id).toBe("s");
    else await expect(library.reopen("s")).rejects.toBe(error);
    expect(asked).toEqual(error.code === "SESSION_BUSY" && (error.facts as Any).holder.pid === 1 ? [1] : []);
    await library.closeAll();
  }
});

test("a library has the sessions of its own agent, page by page", async () => {
  await using store = await openStore("memory:");
  const library = new Library(store, ["/bin/agent", "-x"]);
  const other = new Library(store, ["/bin/agent"]);
  const old = await library.create("a", "/a");
  await old.prompt({ prompt: [{ type: "text", text: "hello" }] });
  for (let n = 0; n < 50; n++) await (await library.create(`b${n}`, "/b")).close();
  await library.closeAll();
  expect(await other.reopen("a")).toBeNull();
  expect(await other.has("a")).toBe(false);
  expect(await library.has("a")).toBe(true);
  expect((await other.list(undefined, undefined)).sessions).toEqual([]);
  const { sessions, next } = await library.list(undefined, undefined);
  expect(sessions).toHaveLength(50);
  const rest = await library.list(undefined, next);
  expect(rest.sessions).toHaveLength(1);
  expect(rest).not.toHaveProperty("next");
  expect(await library.list("/a", undefined)).toEqual({
    sessions: [{ sessionId: "a", cwd: "/a", title: "hello", updatedAt: expect.any(String) }],
  });
  expect((await library.list("/b", undefined)).sessions[0]!.title).toBeNull();
  expect((await store.list({ empty: true, limit: 1 })).sessions[0]).toMatchObject({ app: "agent" });
});

test("a session is found by the agent's id for as long as it is open, and supplanted by another with that id", async () => {
  await using store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  const [one, two] = [await library.create("one", "/work"), await library.create("two", "/work")];
  expect([library.ofAgent("one"), library.ofAgent("two"), library.ofAgent("one")]).toEqual([one, two, one]);
  expect(library.ofAgent("three")).toBeNull();
  expect(library.isSupplanted(one)).toBe(false);
  await two.movedTo("one");
  expect([library.isSupplanted(one), library.isSupplanted(two)]).toEqual([true, true]);
  await library.close("one");
  expect(library.ofAgent("one")).toBe(two);
  expect(library.of("one")).toBeNull();
  // One that was opened again is another object.
  await library.close("two");
  expect(library.ofAgent("one")).toBeNull();
  const again = (await library.reopen("two"))!;
  expect(again.agentSession).toBe("one");
  expect(library.ofAgent("one")).toBe(again);
  expect(await library.reopen("two")).toBe(again);
  const taken = await library.add("one", "/work", null);
  expect([taken.id === "one", taken.agentSession]).toEqual([false, "one"]);
  const fresh = await library.add("fresh", "/work", null);
  expect([fresh.id, fresh.agentSession]).toEqual(["fresh", "fresh"]);
  await library.closeAll();
});

test("a session is removed with its record, one that is gone already too", async () => {
  await using store = await openStore("memory:");
  const library = new Library(store, ["agent"]);
  await library.create("one", "/work");
  await library.remove("one");
  expect(library.open).toEqual([]);
  expect((await store.list({ empty: true })).sessions).toEqual([]);
  await library.remove("one");
  await library.create("two", "/work");
  const remove = vi.spyOn(store, "delete");
  remove.mockRejectedValueOnce(new HoldfastError("SESSION_NOT_FOUND", "gone"));
  await library.remove("two");
  remove.mockRejectedValueOnce(new HoldfastError("STORE_FULL", "full"));
  await expect(library.remove("two")).rejects.toThrow("full");
});
