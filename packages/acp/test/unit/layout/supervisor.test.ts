import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { controlFrame, DATA, FRAMES_VERSION, OPENED_CHARS_MAX } from "../../../src/layout/frames.ts";
import { factsFile, socketsIn } from "../../../src/layout/place.ts";
import { Supervisor } from "../../../src/layout/supervisor.ts";
import { Library } from "../../../src/record/library.ts";
import type { Ended } from "../../../src/wrap/agent-process.ts";
import { startOf } from "../../../src/wrap/process-family.ts";
import { type WrapOptions, WrappedAgent } from "../../../src/wrap/wrapped-agent.ts";
import { frame, hello, supervised } from "../../supervised.ts";
import { blocks } from "../../wrapped.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const AGENT = join(import.meta.dirname, "../../agents/raw-agent.ts");
const FOLDER = { cwd: "/work", mcpServers: [] };
const LONG_MS = 60_000;
const poll = (read: () => unknown) => expect.poll(read, { interval: 5, timeout: 10_000 });

/** The raw agent, in a store in memory. */
async function realAgent(behaviour: object = {}) {
  const store = await openStore("memory:");
  const command = [process.execPath, AGENT, JSON.stringify(behaviour)];
  return (hooks: object) =>
    new WrappedAgent({ command, library: new Library(store, command), ...(hooks as Pick<WrapOptions, "log">) });
}

/** An agent that does what the test says. */
function fakeAgent(change: Partial<Record<keyof WrappedAgent, unknown>> = {}) {
  const did: string[] = [];
  let hooks: Any = null;
  let attached = 0;
  const early = Promise.withResolvers<Ended | null>();
  const fake: Any = {
    ...{ agent: null, isBusy: false, did, early, received: "" },
    attach: (output: Any) => ({ number: ++attached, output }),
    start: async () => {
      did.push("start");
      return { early: early.promise };
    },
    continueFrom: (...args: unknown[]) => void did.push(`continue ${JSON.stringify(args)}`),
    read: async (_client: unknown, input: AsyncIterable<Buffer>) => {
      for await (const chunk of input) fake.received += String(chunk);
    },
    owes: () => false,
    detach: async ({ number }: Any) => void did.push(`detach ${number}`),
    cancelUnheard: async () => void did.push("cancel unheard"),
    end: async () => {
      did.push("end");
      return { code: 5, signal: null };
    },
    ...change,
  };
  return {
    ...{ fake, did, early, hooks: () => hooks },
    wrap: (given: object) => {
      hooks = given;
      return fake as WrappedAgent;
    },
  };
}

describe.skipIf(process.platform === "win32")("a supervisor", () => {
  test("tells the shim the agent, what was opened, shown and answered, and leaves nothing behind", async () => {
    const it = await supervised(await realAgent({ log: "begun" }));
    expect(statSync(it.socket).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(factsFile(it.socket), "utf8"))).toEqual({
      pid: process.pid,
      started: await startOf(process.pid),
      agent: null,
    });
    const shim = it.connect();
    expect(await shim.control("welcome")).toEqual({ type: "welcome", client: 1 });
    const { agent } = await shim.control("agent");
    expect(agent).toEqual({
      pid: expect.any(Number),
      started: await startOf(agent.pid),
      mark: expect.stringMatching(/^HOLDFAST_WRAPPED=/),
    });
    expect(JSON.parse(readFileSync(factsFile(it.socket), "utf8"))).toMatchObject({ pid: process.pid, agent });
    expect(statSync(factsFile(it.socket)).mode & 0o777).toBe(0o600);
    await poll(shim.logged).toContain("begun");
    await shim.ask("initialize", { protocolVersion: 1 });
    const { sessionId } = (await shim.ask("session/new", FOLDER)).result;
    await shim.ask("session/set_mode", { sessionId, modeId: "plan" });
    const call = { sessionUpdate: "tool_call", toolCallId: "c", title: "t", status: "in_progress" };
    await shim.ask("session/prompt", { sessionId, prompt: blocks(JSON.stringify(call), "done") });
    const own = shim.controls.filter(({ type }) => type === "opened" || type === "shown" || type === "answered");
    const chosen = [{ method: "session/set_mode", params: { modeId: "plan" } }];
    expect(own).toEqual([
      { type: "answered", id: "q1" },
      { type: "opened", session: sessionId, params: FOLDER, chosen: [] },
      { type: "answered", id: "q2" },
      { type: "opened", session: sessionId, params: FOLDER, chosen },
      { type: "answered", id: "q3" },
      { type: "shown", change: { session: sessionId, open: ["c"], ended: [] } },
      { type: "answered", id: "q4" },
    ]);
    shim.socket.write(controlFrame({ type: "leave" }));
    expect(await shim.control("ended")).toMatchObject({ type: "ended" });
    const ended = await it.over;
    expect(await startOf(agent.pid)).toBeNull();
    expect(shim.controls.at(-1)).toEqual({ type: "ended", ...ended });
    expect(socketsIn(it.folder)).toEqual([]);
    expect(existsSync(factsFile(it.socket))).toBe(false);
    expect(it.logged).toEqual([
      "started",
      "an editor is attached",
      "the editor has left",
      "no editor came back: ending the agent",
      "ended",
    ]);
    rmSync(it.folder, { recursive: true });
  });

  test("an agent goes on while its editor is gone, and the next editor gets it with what it said", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hf-sup-"));
    const sign = join(folder, "sign");
    await using it = await supervised(await realAgent(), LONG_MS);
    const first = it.connect();
    await first.ask("initialize", { protocolVersion: 1 });
    const { sessionId } = (await first.ask("session/new", FOLDER)).result;
    first.send({
      id: 9,
      method: "session/prompt",
      params: { sessionId, prompt: blocks("one", `touch ${sign}`, "hold") },
    });
    await poll(() => existsSync(sign)).toBe(true);
    const { agent } = await first.control("agent");
    first.socket.destroy();
    await poll(() => it.logged).toContain("the editor is gone");
    const second = it.connect();
    expect(await second.control("welcome")).toEqual({ type: "welcome", client: 2 });
    expect(await second.control("agent")).toEqual({ type: "agent", agent });
    await second.ask("initialize", { protocolVersion: 1 });
    await second.ask("session/load", { sessionId, ...FOLDER });
    expect(second.lines.flatMap(({ params }) => params?.update?.content?.text ?? [])).toEqual([
      "one",
      `touch ${sign}`,
      "hold",
      "one",
      "Reattached: the agent kept running, and has everything.",
    ]);
    expect(it.logged).toContain("an editor is attached again");
    rmSync(folder, { recursive: true });
  });

  test("is busy while it has an editor: another shim and a request to retire are refused", async () => {
    const agent = fakeAgent();
    await using it = await supervised(agent.wrap, LONG_MS);
    const here = it.connect();
    await here.control("welcome");
    for (const first of [hello(), controlFrame({ type: "retire" })]) {
      const other = it.connect(first);
      expect(await other.control("busy")).toEqual({ type: "busy" });
      await poll(other.isClosed).toBe(true);
    }
    expect(agent.did).toEqual(["start"]);
    expect(here.isClosed()).toBe(false);
  });

  test("refuses a shim of another version, and says its own", async () => {
    const agent = fakeAgent();
    await using it = await supervised(agent.wrap, LONG_MS);
    const other = it.connect(hello({ version: FRAMES_VERSION + 1 }));
    expect(await other.control("refused")).toEqual({ type: "refused", version: FRAMES_VERSION });
    await poll(other.isClosed).toBe(true);
    expect(agent.did).toEqual([]);
  });

  test.for([
    ["no frames", Buffer.from("GET / HTTP/1.1\r\n\r\n"), "a connection ended: the other side"],
    ["another control frame", controlFrame({ type: "leave" }), null],
    ["data", frame(DATA, "{}\n"), null],
  ] as const)("closes a connection that begins with %s, and goes on", async ([, first, logged]) => {
    const agent = fakeAgent();
    await using it = await supervised(agent.wrap, LONG_MS);
    const other = it.connect(first);
    await poll(other.isClosed).toBe(true);
    expect(it.logged.join("\n")).toContain(logged ?? "started");
    expect(it.logged.some((line) => line.startsWith("a connection"))).toBe(logged !== null);
    await it.connect().control("welcome");
  });

  test("reads what came together with the greeting, and after it, to the editor's end", async () => {
    const agent = fakeAgent();
    const it = await supervised(agent.wrap, LONG_MS);
    const greeting = hello();
    const shim = it.connect(greeting.subarray(0, 3));
    shim.socket.write(Buffer.concat([greeting.subarray(3), frame(DATA, "one"), frame(DATA, "two")]));
    await shim.control("welcome");
    shim.socket.write(Buffer.concat([frame(DATA, " three"), controlFrame({ type: "busy" }), frame(DATA, " four")]));
    await poll(() => agent.fake.received).toBe("onetwo three four");
    shim.socket.write(Buffer.concat([controlFrame({ type: "leave" }), frame(DATA, "after the end")]));
    expect(await it.over).toEqual({ code: 5, signal: null });
    expect(agent.fake.received).toBe("onetwo three four");
    expect(agent.did).toEqual(["start", "detach 1", "end"]);
    rmSync(it.folder, { recursive: true });
  });

  test("lines for the editor go with what they mean for the shim", async () => {
    let write: Any = null;
    const agent = fakeAgent({
      attach: (output: Any) => {
        write = output.write;
        return {};
      },
    });
    await using it = await supervised(agent.wrap, LONG_MS);
    const shim = it.connect();
    await shim.control("welcome");
    const change = { session: "s", open: ["a"], ended: [] };
    await write(Buffer.from("1\n"));
    await write(Buffer.from("2\n"), null);
    await write(Buffer.from("3\n"), undefined, change);
    await write(Buffer.from("4\n"), undefined, null);
    await poll(() => shim.lines).toEqual([1, 2, 3, 4]);
    expect(shim.controls.slice(1)).toEqual([
      { type: "answered", id: null },
      { type: "shown", change },
    ]);
  });

  test("logs for the editor too while there is one, and keeps what fits for the next supervisor", async () => {
    const agent = fakeAgent();
    await using it = await supervised(agent.wrap, LONG_MS);
    agent.hooks().log("nobody there");
    await agent.hooks().onOpened("s", FOLDER, []);
    const shim = it.connect();
    await shim.control("welcome");
    agent.hooks().log("a word");
    await poll(shim.logged).toBe("holdfast: a word\n");
    expect(it.logged).toContain("nobody there");
    expect(it.logged).toContain("a word");
    const chars = JSON.stringify([{ x: "" }, []]).length;
    const fits = { x: "x".repeat(OPENED_CHARS_MAX - chars) };
    await agent.hooks().onOpened("fits", fits, []);
    await agent.hooks().onOpened("too long", { x: `${fits.x}x` }, []);
    await agent.hooks().onOpened("closed", null, []);
    await poll(() => shim.controls.filter(({ type }) => type === "opened").length).toBe(3);
    expect(shim.controls.slice(1)).toEqual([
      { type: "opened", session: "fits", params: fits, chosen: [] },
      { type: "opened", session: "too long", params: null, chosen: [] },
      { type: "opened", session: "closed", params: null, chosen: [] },
    ]);
  });

  test("continues for one that died without starting the agent", async () => {
    const agent = fakeAgent();
    await using it = await supervised(agent.wrap, LONG_MS);
    const continues = { initialize: { protocolVersion: 1 }, opened: [["s", FOLDER, []]] };
    const shim = it.connect(hello({ continues }));
    await shim.control("welcome");
    shim.socket.write(frame(DATA, "hello"));
    await poll(() => agent.fake.received).toBe("hello");
    expect(agent.did).toEqual([`continue ${JSON.stringify([continues.initialize, continues.opened])}`]);
  });

  test("ends with an agent that ends before it has begun, and not with a later one", async () => {
    const agent = fakeAgent();
    const it = await supervised(agent.wrap, LONG_MS);
    const shim = it.connect();
    await shim.control("welcome");
    agent.early.resolve({ code: 3, signal: null });
    expect(await shim.control("ended")).toEqual({ type: "ended", code: 3, signal: null });
    expect(await it.over).toEqual({ code: 3, signal: null });
    rmSync(it.folder, { recursive: true });
    const later = fakeAgent();
    await using other = await supervised(later.wrap, LONG_MS);
    const there = other.connect();
    await there.control("welcome");
    later.early.resolve(null);
    there.socket.write(frame(DATA, "go on"));
    await poll(() => later.fake.received).toBe("go on");
    expect(other.isOver()).toBe(false);
    expect(there.controls.map(({ type }) => type)).toEqual(["welcome"]);
  });

  test("waits for what the editor that left is owed, and for its turn, before it ends the agent", async () => {
    let looks = 0;
    let isOwed = true;
    const agent = fakeAgent({
      owes: () => {
        looks += 1;
        return isOwed;
      },
      isBusy: true,
    });
    const it = await supervised(agent.wrap, LONG_MS);
    const shim = it.connect();
    await shim.control("welcome");
    shim.socket.write(controlFrame({ type: "leave" }));
    await poll(() => looks).toBeGreaterThan(2);
    expect(agent.did).toEqual(["start"]);
    isOwed = false;
    await poll(() => agent.did).toEqual(["start", "detach 1"]);
    let busy = 0;
    Object.defineProperty(agent.fake, "isBusy", { get: () => ++busy < 4 });
    await poll(() => agent.did).toEqual(["start", "detach 1", "end"]);
    expect(busy).toBe(4);
    expect(it.logged).toContain("the editor has left");
    await it.over;
    rmSync(it.folder, { recursive: true });
  });

  test("waits for another editor when the shim was killed, owes it nothing, and ends the agent after a while", async () => {
    const agent = fakeAgent({ owes: () => true });
    const it = await supervised(agent.wrap, LONG_MS);
    const shim = it.connect();
    await shim.control("welcome");
    shim.socket.destroy();
    await poll(() => agent.did).toEqual(["start", "detach 1"]);
    expect(it.logged).toContain("the editor is gone");
    // It is done, but nobody has left.
    await it.connect(hello({ version: 0 })).control("refused");
    expect(agent.did).toEqual(["start", "detach 1"]);
    const retiring = it.connect(controlFrame({ type: "retire" }));
    expect(await it.over).toEqual({ code: 5, signal: null });
    await poll(retiring.isClosed).toBe(true);
    expect(retiring.controls).toEqual([]);
    expect(agent.did).toEqual(["start", "detach 1", "end"]);
    expect(it.logged).toContain("another editor needs the session");
    expect(it.logged).not.toContain("no editor came back: ending the agent");
    rmSync(it.folder, { recursive: true });
    const soon = fakeAgent();
    const other = await supervised(soon.wrap, 0);
    const gone = other.connect();
    await gone.control("welcome");
    gone.socket.destroy();
    await other.over;
    expect(soon.did).toEqual(["start", "detach 1", "end"]);
    rmSync(other.folder, { recursive: true });
  });

  test("another editor takes over: the one that left is told, and what nobody hears is cancelled later", async () => {
    const agent = fakeAgent({ isBusy: true });
    await using it = await supervised(agent.wrap, 300);
    const first = it.connect();
    await first.control("welcome");
    first.socket.write(controlFrame({ type: "leave" }));
    await poll(() => agent.did).toContain("detach 1");
    const second = it.connect();
    await second.control("welcome");
    expect(await first.control("ended")).toEqual({ type: "ended", code: 0, signal: null });
    await poll(first.isClosed).toBe(true);
    await poll(() => agent.did).toEqual(["start", "detach 1", "cancel unheard"]);
    second.socket.write(frame(DATA, "still there"));
    await poll(() => agent.fake.received).toBe("still there");
    expect(it.isOver()).toBe(false);
    // The agent that runs is not started again.
    expect(agent.did).toEqual(["start", "detach 1", "cancel unheard"]);
    void it.supervisor.stop("SIGTERM");
    expect(await second.control("ended")).toEqual({ type: "ended", code: 5, signal: null });
  });

  test("the end of a shim's second connection is its end, unless it is another shim's", async () => {
    const agent = fakeAgent();
    await using it = await supervised(agent.wrap, LONG_MS);
    const shim = it.connect();
    await shim.control("welcome");
    const stranger = it.connect(controlFrame({ type: "life", client: 2 }));
    const life = it.connect(controlFrame({ type: "life", client: 1 }));
    stranger.socket.end();
    await poll(stranger.isClosed).toBe(true);
    shim.socket.write(frame(DATA, "here"));
    await poll(() => agent.fake.received).toBe("here");
    expect(it.logged).not.toContain("the editor is gone");
    life.socket.destroy();
    await poll(shim.isClosed).toBe(true);
    await poll(() => agent.did).toEqual(["start", "detach 1"]);
    expect(it.logged.filter((line) => line === "the editor is gone")).toHaveLength(1);
  });

  test("the end of the second connection of a shim whose editor left changes nothing", async () => {
    const agent = fakeAgent({ isBusy: true });
    await using it = await supervised(agent.wrap, LONG_MS);
    const shim = it.connect();
    await shim.control("welcome");
    const life = it.connect(controlFrame({ type: "life", client: 1 }));
    shim.socket.write(controlFrame({ type: "leave" }));
    await poll(() => agent.did).toContain("detach 1");
    life.socket.end();
    await poll(life.isClosed).toBe(true);
    expect(shim.isClosed()).toBe(false);
    expect(it.logged).not.toContain("the editor is gone");
  });

  test("is ended once, and accepts nobody while it ends", async () => {
    const ending = Promise.withResolvers<Ended>();
    const agent = fakeAgent({ end: () => ending.promise });
    const it = await supervised(agent.wrap, LONG_MS);
    const waiting = it.connect(hello().subarray(0, 2));
    await poll(() => waiting.socket.readyState).toBe("open");
    // The supervisor has accepted it when it answers one that came later.
    await it.connect(controlFrame({ type: "life", client: 7 })).socket.end();
    const stopping = it.supervisor.stop("SIGTERM");
    await it.supervisor.stop("SIGINT");
    expect(it.logged).toContain("SIGTERM");
    expect(it.logged).not.toContain("SIGINT");
    waiting.socket.write(hello().subarray(2));
    expect(await waiting.control("busy")).toEqual({ type: "busy" });
    expect(it.isOver()).toBe(false);
    ending.resolve({ code: null, signal: "SIGTERM" });
    await stopping;
    expect(await it.over).toEqual({ code: null, signal: "SIGTERM" });
    rmSync(it.folder, { recursive: true });
  });

  test("does not stay if nobody comes, and does if somebody came; one that says nothing is not waited for", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const alone = await supervised(fakeAgent().wrap, LONG_MS);
      const silent = alone.connect(Buffer.alloc(0));
      const turns = async (isIt: () => boolean): Promise<void> => {
        for (let turn = 0; turn < 10_000 && !isIt(); turn++) await new Promise((resolve) => setImmediate(resolve));
      };
      await turns(() => vi.getTimerCount() === 2);
      await vi.advanceTimersByTimeAsync(4_999);
      expect(silent.isClosed()).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      await turns(silent.isClosed);
      expect(silent.isClosed()).toBe(true);
      expect(alone.isOver()).toBe(false);
      await vi.advanceTimersByTimeAsync(5_000);
      expect(await alone.over).toEqual({ code: 1, signal: null });
      rmSync(alone.folder, { recursive: true });
      await using visited = await supervised(fakeAgent().wrap, LONG_MS);
      const shim = visited.connect();
      await turns(() => shim.controls.length > 0);
      await vi.advanceTimersByTimeAsync(20_000);
      expect(visited.isOver()).toBe(false);
      expect(shim.isClosed()).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  });

  test("cannot listen where another one does", async () => {
    await using it = await supervised(fakeAgent().wrap, LONG_MS);
    const before = process.umask();
    const ready = vi.fn();
    const options = { socket: it.socket, graceMs: 0, log: () => undefined, onReady: ready };
    await expect(new Supervisor({ ...options, wrap: fakeAgent().wrap }).run()).rejects.toThrow("EADDRINUSE");
    expect(ready).not.toHaveBeenCalled();
    expect(process.umask()).toBe(before);
    // The one that listens is still there.
    await it.connect().control("welcome");
  });
});
