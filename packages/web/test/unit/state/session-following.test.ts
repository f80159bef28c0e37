import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SessionStore } from "../../../src/state/session-store.ts";

class Source extends EventTarget {
  static opened: Source[] = [];
  isClosed = false;
  readonly address: string;

  constructor(address: string) {
    super();
    this.address = address;
    Source.opened.push(this);
  }

  close(): void {
    this.isClosed = true;
  }

  say(name: string, data: object): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

const START = Date.parse("2026-01-01T00:00:00.000Z");
const time = (seconds: number): string => new Date(START + seconds * 1000).toISOString();
const answer = (id: string, second = 0) => ({ kind: "answer", id, at: time(second), turn: 1, text: id });
const toolCall = (id: string, second: number) => ({
  ...{ kind: "call", id, at: time(second), turn: 1, call: id, name: "read", input: {}, state: "done" },
});
const tool = (call: string, from: number, to: number | null, own: object = {}) => ({
  ...{ kind: "tool", turn: 1, from: time(from), to: to === null ? null : time(to), seq: 1, call, name: "read" },
  ...{ outcome: to === null ? "running" : "done" },
  ...own,
});
const epoch = (until: number) => ({ until, from: time(0), to: time(1), reason: "clear", messages: 1 });
const replaced = { kind: "mark", mark: "replaced", at: time(3), seq: 3, turn: 1, words: "" };

/** What the server has, and what it was asked for. Each part may be refused by a status. */
let server: {
  session: Record<string, unknown>;
  transcript: Record<string, unknown>;
  timeline: Record<string, unknown>;
  epochs: readonly object[];
  refused: Record<string, number>;
  held: Record<string, Promise<unknown>>;
};
let asked: string[] = [];
const page = { visibilityState: "visible" };
const stores: SessionStore[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  page.visibilityState = "visible";
  server = {
    session: { id: "s", title: "t", here: false, holder: null, status: "idle", state: null },
    transcript: { cursor: "1-a", version: null, count: 1, from: 0, items: [answer("a")] },
    timeline: { from: time(0), to: time(100), turns: 0, lanes: 0, isMerged: false, entries: [] },
    ...{ epochs: [], refused: {}, held: {} },
  };
  vi.stubGlobal("document", page);
  vi.stubGlobal("EventSource", Source);
  vi.stubGlobal("fetch", async (address: string) => {
    const url = decodeURIComponent(address);
    asked.push(url);
    const part = /^\.\/sessions\/s\/(\w+)/.exec(url)?.[1] ?? "session";
    const { [part]: body } = { ...server, epochs: { epochs: server.epochs } } as unknown as Record<string, object>;
    const given = structuredClone(body);
    await server.held[part];
    const status = server.refused[part];
    if (status === 0) throw new TypeError("failed");
    return status === undefined ? Response.json(given) : Response.json({ code: `NO_${status}` }, { status });
  });
});

afterEach(() => {
  for (const store of stores.splice(0)) store.close();
  Source.opened = [];
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
const of = (part: string) => asked.filter((address) => address.includes(part));
const ids = (store: SessionStore) => store.items.value.map((item) => item?.id);
const source = () => Source.opened.at(-1)!;

async function loaded(): Promise<SessionStore> {
  const store = new SessionStore("s");
  stores.push(store);
  await store.load();
  await settle();
  return store;
}

/** Holds back the answers of a part of the server until it is called. */
function hold(part: string): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.held[part] = promise;
  return async () => {
    delete server.held[part];
    resolve();
    await settle();
  };
}

const state = (own: object = {}, chat: object = {}): void =>
  source().say("state", { whole: false, version: "v.1", event: null, state: chat, ...own });

test("a session is loaded with the end of its conversation and its timeline, and followed from there", async () => {
  server.timeline["entries"] = [tool("c", 1, 2), tool("many", 3, 9, { count: 5 })];
  const store = await loaded();
  expect(asked).toEqual(["./sessions/s", "./sessions/s/transcript?last=200", "./sessions/s/timeline?buckets=800"]);
  expect(source().address).toBe("./sessions/s/events?after=1-a");
  expect([store.session.value?.title, ids(store)]).toEqual(["t", ["a"]]);
  expect(store.history.value).toMatchObject({ startMs: START, turnsInAll: 0 });
  expect([...store.facts.value.keys()]).toEqual(["c"]);
  expect([store.isConnected.value, store.isDeleted.value, store.failure.value, store.chat]).toEqual([
    ...[true, false, null, null],
  ]);
  expect([store.live.value, store.epochs.value, store.detail.value]).toEqual([null, [], null]);
});

test("a session without a record is followed from the start, and its changes are read from the start", async () => {
  server.transcript["cursor"] = null;
  await loaded();
  expect(source().address).toBe("./sessions/s/events?after=start");
  source().say("record", { seq: 1, kind: "message" });
  await settle(150);
  expect(of("/transcript").at(-1)).toBe("./sessions/s/transcript");
});

test("a session that cannot be loaded says why, until it can", async () => {
  server.refused["session"] = 404;
  const store = await loaded();
  expect([store.failure.value?.status, Source.opened]).toEqual([404, []]);
  server.refused = {};
  await store.load();
  expect([store.failure.value, Source.opened.length]).toEqual([null, 1]);
});

test("loading again starts to follow again, and only once", async () => {
  const store = await loaded();
  const [before] = Source.opened;
  await store.load();
  expect(Source.opened.map(({ isClosed }) => isClosed)).toEqual([true, false]);
  expect(source()).not.toBe(before);
  expect(store.isConnected.value).toBe(true);
});

test("the connection, and the deletion of the session, are told", async () => {
  const store = await loaded();
  source().dispatchEvent(new Event("error"));
  expect(store.isConnected.value).toBe(false);
  source().dispatchEvent(new Event("open"));
  expect(store.isConnected.value).toBe(true);
  source().say("deleted", {});
  expect([store.isDeleted.value, source().isClosed]).toEqual([true, true]);
});

test("a refusal stays when the connection is there again: only being out of reach is over then", async () => {
  const store = await loaded();
  server.refused["timeline"] = 500;
  source().say("record", { seq: 2, kind: "turn.ended" });
  await settle(150);
  expect(store.failure.value?.code).toBe("NO_500");
  source().dispatchEvent(new Event("open"));
  expect(store.failure.value?.code).toBe("NO_500");
});

test("out of reach is over with any answer", async () => {
  server.session["here"] = true;
  const store = await loaded();
  const parts: [part: string, act: () => void][] = [
    ["timeline", () => source().say("record", { seq: 2, kind: "turn.ended" })],
    ["session", () => source().say("closed", {})],
  ];
  for (const [part, act] of parts) {
    server.refused[part] = 0;
    act();
    await settle(2000);
    expect(store.failure.value?.code).toBe("UNREACHABLE");
    server.refused = {};
    act();
    await settle(2000);
    expect(store.failure.value).toBeNull();
  }
});

test("another process's records are read from where we are, and the next ones from there", async () => {
  const store = await loaded();
  server.transcript = { cursor: "2-b", version: null, count: 2, from: 1, items: [answer("b")] };
  server.session["title"] = "new";
  source().say("record", { seq: 2, kind: "message" });
  await settle(149);
  expect(of("/transcript")).toHaveLength(1);
  await settle(1);
  expect(of("/transcript").at(-1)).toBe("./sessions/s/transcript?since=1-a");
  expect([ids(store), store.session.value?.title]).toEqual([["a", "b"], "new"]);
  server.transcript = { cursor: null, version: null, count: 2, from: 2, items: [] };
  source().say("closed", {});
  await settle(2000);
  expect(of("/transcript").at(-1)).toBe("./sessions/s/transcript?since=2-b");
  source().say("closed", {});
  await settle(2000);
  expect(of("/transcript").at(-1)).toBe("./sessions/s/transcript?since=2-b");
});

test("what the server no longer knows from there is loaded again; any other refusal is told", async () => {
  const store = await loaded();
  server.refused["transcript"] = 410;
  source().say("record", { seq: 2, kind: "message" });
  await settle(150);
  expect(of("/transcript").slice(-2)).toEqual([
    "./sessions/s/transcript?since=1-a",
    "./sessions/s/transcript?last=200",
  ]);
  server.refused["transcript"] = 409;
  source().say("record", { seq: 3, kind: "message" });
  await settle(2000);
  expect(of("/transcript").at(-1)).toBe("./sessions/s/transcript?since=1-a");
  expect(store.failure.value?.status).toBe(409);
});

test("the words of another process are shown until its answer is in the transcript", async () => {
  server.session["status"] = "running";
  const store = await loaded();
  const draft = (text: string) => source().say("record", { seq: 2, kind: "draft", id: "m", parts: [{ text }] });
  draft("Once ");
  draft("more");
  await settle(100);
  expect(store.live.value?.text).toBe("Once more");
  // A draft is no reason to read the timeline.
  await settle(10_000);
  expect(of("/timeline")).toHaveLength(1);
  expect(store.live.value?.text).toBe("Once more");
  server.transcript = { cursor: "2-b", version: null, count: 2, from: 1, items: [answer("m.1")] };
  source().say("record", { seq: 3, kind: "message" });
  await settle(2000);
  expect(store.live.value).toBeNull();
  draft("Again");
  await settle(100);
  server.session["status"] = "interrupted";
  await settle(2000);
  expect(store.live.value).toBeNull();
});

test("of a session that this server has open, the events tell the words, and records are not read", async () => {
  server.session["here"] = true;
  server.session["status"] = "running";
  const store = await loaded();
  source().say("record", { seq: 2, kind: "draft", id: "m", parts: [{ text: "no" }] });
  source().say("record", { seq: 3, kind: "message" });
  await settle(10_000);
  expect([store.live.value, of("/transcript").length]).toEqual([null, 1]);
  source().say("text", { answer: "m", at: 0, channel: "text", text: "Yes" });
  await settle(100);
  expect(store.live.value?.text).toBe("Yes");
  state({ event: { type: "other" } }, { live: { text: "Yes" } });
  expect(store.live.value?.text).toBe("Yes");
  state({ event: { type: "retry" } });
  expect(store.live.value).toBeNull();
  source().say("text", { answer: "n", at: 0, channel: "text", text: "Yes" });
  await settle(100);
  state({}, { live: null });
  expect(store.live.value).toBeNull();
});

test("the state of the server is told in parts, each in the place of what it was", async () => {
  const store = await loaded();
  state({}, { title: "one", queue: ["q"], interruption: null, phase: "running", outputs: { x: "1" } });
  state({}, { title: "two" });
  expect(store.session.value).toMatchObject({ id: "s", here: true, title: "two", queue: ["q"], interruption: null });
  expect(store.chat).toMatchObject({ title: "two", phase: "running", outputs: { x: "1" } });
});

test("before the session is known, its state is not", async () => {
  const release = hold("session");
  const store = new SessionStore("s");
  stores.push(store);
  void store.load();
  await settle();
  expect([store.session.value, store.chat, Source.opened]).toEqual([null, null, []]);
  await release();
  expect(store.session.value?.title).toBe("t");
});

test("what a running tool says is added to its output, of which the end is kept", async () => {
  const store = await loaded();
  const output = (own: object) => state({ event: { type: "tool.output", ...own } });
  output({ call: "a", text: "one " });
  output({ call: "a", text: "two" });
  output({ call: "b" });
  expect(store.chat?.outputs).toEqual({ a: "one two", b: "" });
  output({ text: "nobody's" });
  state({ event: { type: "other", call: "a", text: "no" } });
  expect(store.chat?.outputs).toEqual({ a: "one two", b: "" });
  output({ call: "b", text: "x".repeat(16_000) });
  expect(store.chat?.outputs["b"]).toHaveLength(16_000);
  output({ call: "b", text: "yz" });
  expect(store.chat?.outputs["b"]).toBe(`${"x".repeat(15_998)}yz`);
  output({ call: "b", text: `😀${"z".repeat(15_999)}` });
  expect(store.chat?.outputs["b"]).toBe("z".repeat(15_999));
});

test("what begins or ends a bar is on the timeline soon, anything else later", async () => {
  await loaded();
  let known = 1;
  const soon = async (tell: () => void): Promise<void> => {
    tell();
    await settle(150);
    expect(of("/timeline")).toHaveLength(++known);
    await settle(10_000);
    expect(of("/timeline")).toHaveLength(known);
  };
  const kinds = ["turn.started", "turn.resumed", "turn.suspended", "turn.ended", "signal", "epoch"];
  for (const kind of kinds) await soon(() => source().say("record", { seq: 2, kind }));
  for (const type of ["turn.started", "turn.ended", "replaced"]) await soon(() => state({ event: { type } }));
  await soon(() => state({ whole: true }));
  state({ event: { type: "other" } });
  await settle(10_000);
  expect(of("/timeline")).toHaveLength(known);
  source().say("record", { seq: 3, kind: "message" });
  await settle(999);
  expect(of("/timeline")).toHaveLength(known);
  await settle(1);
  expect(of("/timeline")).toHaveLength(known + 1);
});

test("a process elsewhere that is gone is noticed, while somebody looks", async () => {
  server.session["holder"] = { pid: 7 };
  const store = await loaded();
  page.visibilityState = "hidden";
  await settle(9000);
  expect(asked).toHaveLength(3);
  page.visibilityState = "visible";
  await settle(3000);
  // It is still there: nothing else is asked for.
  expect(asked.slice(3)).toEqual(["./sessions/s"]);
  await settle(1000);
  server.session = { ...server.session, holder: null, status: "interrupted" };
  await settle(2500);
  expect(asked.slice(4)).toEqual([
    "./sessions/s",
    "./sessions/s",
    "./sessions/s/transcript?since=1-a",
    "./sessions/s/timeline?buckets=800",
  ]);
  expect(store.session.value?.status).toBe("interrupted");
  await settle(9000);
  expect(asked.slice(8)).toEqual(["./sessions/s", "./sessions/s", "./sessions/s"]);
});

test("a process elsewhere that opens the session is noticed, though it records nothing", async () => {
  const store = await loaded();
  await settle(3000);
  expect(asked.slice(3)).toEqual(["./sessions/s"]);
  server.session = { ...server.session, holder: { pid: 7 } };
  await settle(3500);
  expect(store.session.value?.holder).toEqual({ pid: 7 });
});

test("nobody asks who has a session that this server has", async () => {
  server.session = { ...server.session, holder: { pid: 7 }, here: true };
  await loaded();
  await settle(9000);
  expect(asked).toHaveLength(3);
});

test("a server that does not say who has the session is asked again", async () => {
  server.session["holder"] = { pid: 7 };
  const store = await loaded();
  server.refused["session"] = 0;
  await settle(3000);
  expect(store.failure.value?.code).toBe("UNREACHABLE");
  server.refused = {};
  await settle(3000);
  expect([of("/sessions/s").length, store.failure.value]).toEqual([5, null]);
});

test("a part of a merged timeline is loaded when the zoom has come to rest, with as much again on both sides", async () => {
  server.timeline["isMerged"] = true;
  const store = await loaded();
  store.zoomTo(START + 10_000, START + 40_000);
  store.zoomTo(START + 20_000, START + 30_000);
  await settle(119);
  expect(of("timeline?from=")).toEqual([]);
  server.timeline["entries"] = [tool("c", 21, 22)];
  await settle(1);
  expect(of("timeline?from=")).toEqual([`./sessions/s/timeline?from=${time(10)}&to=${time(40)}&buckets=800`]);
  expect(store.detail.value).toMatchObject({
    ...{ fromMs: START + 10_000, toMs: START + 40_000 },
    history: { tools: [{ call: "c" }] },
  });
  expect(store.facts.value.has("c")).toBe(true);
});

test("the whole is there already, and so is one that is not merged", async () => {
  const store = await loaded();
  store.zoomTo(START + 10_000, START + 40_000);
  await settle(500);
  server.timeline["isMerged"] = true;
  source().say("record", { seq: 2, kind: "turn.ended" });
  await settle(500);
  store.zoomTo(START, START + 100_000);
  await settle(500);
  expect(of("timeline?from=")).toEqual([]);
  for (const [from, to] of [
    [START + 1, START + 100_000],
    [START, START + 99_999],
  ] as const) {
    store.zoomTo(from, to);
    await settle(500);
  }
  expect(of("timeline?from=")).toHaveLength(2);
});

test("a part that is no longer wanted when it comes is not shown", async () => {
  server.timeline["isMerged"] = true;
  const store = await loaded();
  const release = hold("timeline");
  store.zoomTo(START + 10_000, START + 20_000);
  await settle(120);
  store.zoomTo(START + 50_000, START + 60_000);
  await settle(120);
  await release();
  expect(store.detail.value).toMatchObject({ fromMs: START + 40_000 });
  const again = hold("timeline");
  store.zoomTo(START + 10_000, START + 20_000);
  await settle(120);
  store.zoomTo(START, START + 100_000);
  await again();
  expect(store.detail.value).toMatchObject({ fromMs: START + 40_000 });
});

test("how long the calls took that a merged timeline hides is asked for when they are loaded", async () => {
  server.timeline["isMerged"] = true;
  server.timeline["entries"] = [tool("known", 1, 2)];
  const items = [toolCall("known", 1), toolCall("x", 5), toolCall("y", 7), answer("z", 9)];
  server.transcript = { cursor: "1-a", version: null, count: 104, from: 100, items };
  const store = await loaded();
  expect(of("timeline?from=")).toEqual([`./sessions/s/timeline?from=${time(5)}&to=${time(9)}&buckets=800`]);
  server.transcript = { cursor: "1-a", version: null, count: 104, from: 0, items: [toolCall("w", 3)] };
  await store.current.ensureIndex(0);
  await settle();
  expect(of("timeline?from=")[1]).toBe(`./sessions/s/timeline?from=${time(3)}&to=${time(3)}&buckets=800`);
});

test("a call that a wrong clock recorded after the last item is asked for all the same", async () => {
  server.timeline["isMerged"] = true;
  server.transcript = { cursor: "1-a", version: null, count: 2, from: 0, items: [toolCall("x", 5), answer("z", 3)] };
  await loaded();
  expect(of("timeline?from=")).toEqual([`./sessions/s/timeline?from=${time(5)}&to=${time(5)}&buckets=800`]);
});

test("nothing is asked for about calls that are known, nor if there are none", async () => {
  server.timeline["isMerged"] = true;
  server.timeline["entries"] = [tool("known", 1, 2)];
  server.transcript = { cursor: "1-a", version: null, count: 2, from: 0, items: [toolCall("known", 1), answer("b")] };
  await loaded();
  expect(of("timeline?from=")).toEqual([]);
  server.timeline = { ...server.timeline, isMerged: false, entries: [] };
  server.transcript = { cursor: "1-a", version: null, count: 101, from: 100, items: [answer("b")] };
  const store = await loaded();
  server.transcript = { cursor: "1-a", version: null, count: 101, from: 0, items: [toolCall("new", 1)] };
  await store.current.ensureIndex(0);
  await settle();
  expect(of("timeline?from=")).toEqual([]);
});

test("an ended call does not run again, but one that was begun again does", async () => {
  server.timeline["entries"] = [tool("a", 1, 2), tool("b", 1, 2), tool("c", 1, null)];
  const store = await loaded();
  server.timeline["entries"] = [tool("a", 1, null), tool("b", 5, null), tool("c", 1, null, { child: "s" })];
  source().say("record", { seq: 2, kind: "turn.ended" });
  await settle(500);
  const facts = (call: string) => store.facts.value.get(call);
  expect([facts("a")?.endMs, facts("b")?.endMs, facts("c")?.child]).toEqual([START + 2000, null, "s"]);
});

test("the conversations before this one are read when one more was replaced", async () => {
  server.timeline["entries"] = [replaced];
  server.epochs = [epoch(3)];
  const store = await loaded();
  expect([store.epochs.value.map(({ until }) => until), of("/epochs").length]).toEqual([[3], 1]);
  const again = async (entries: readonly object[]): Promise<number> => {
    server.timeline["entries"] = entries;
    source().say("record", { seq: 4, kind: "epoch" });
    await settle(2000);
    return of("/epochs").length;
  };
  expect(await again([replaced, { ...replaced, mark: "died" }])).toBe(1);
  server.epochs = [epoch(3), epoch(4)];
  expect(await again([{ ...replaced, count: 2 }])).toBe(2);
  expect(store.epochs.value).toHaveLength(2);
  server.refused["epochs"] = 500;
  await again([replaced, replaced, replaced]);
  expect([store.epochs.value.length, store.failure.value?.status]).toEqual([2, 500]);
});

test("of two lists of conversations that overtake each other, the newer one stays", async () => {
  server.timeline["entries"] = [replaced];
  server.epochs = [epoch(3)];
  const first = hold("epochs");
  const store = await loaded();
  server.held = {};
  server.timeline["entries"] = [replaced, replaced];
  server.epochs = [epoch(3), epoch(4)];
  source().say("record", { seq: 4, kind: "epoch" });
  await settle(2000);
  expect(store.epochs.value).toHaveLength(2);
  await first();
  expect(store.epochs.value).toHaveLength(2);
});

test("each conversation of a session has pages of its own, which ask for theirs", async () => {
  const store = await loaded();
  expect(store.pagesUntil(null)).toBe(store.current);
  const old = store.pagesUntil(9);
  expect([store.pagesUntil(9) === old, store.pagesUntil(8) === old, old.until]).toEqual([true, false, 9]);
  await old.ensureFirst();
  expect(of("/transcript").at(-1)).toBe("./sessions/s/transcript?last=200&until=9");
  server.refused["transcript"] = 500;
  await store.pagesUntil(8).ensureFirst();
  expect(store.failure.value?.status).toBe(500);
});

test("nothing goes on after the store is closed", async () => {
  server.session = { ...server.session, holder: { pid: 7 }, status: "running" };
  server.timeline["isMerged"] = true;
  const store = await loaded();
  const old = store.pagesUntil(9);
  server.timeline["entries"] = [tool("late", 1, 2)];
  const [told, releases] = [asked.length, ["session", "transcript", "timeline", "epochs"].map(hold)];
  void old.ensureFirst();
  store.zoomTo(START + 10_000, START + 20_000);
  await settle(3000);
  source().say("record", { seq: 2, kind: "draft", id: "m", parts: [{ text: "late" }] });
  source().say("record", { seq: 3, kind: "message" });
  store.zoomTo(START + 1, START + 2);
  store.close();
  expect([vi.getTimerCount(), source().isClosed]).toEqual([0, true]);
  const known = asked.length;
  expect(known).toBeGreaterThan(told);
  server.session["holder"] = null;
  for (const release of releases) await release();
  await settle(20_000);
  expect([asked.length, vi.getTimerCount(), ids(store), old.items.value]).toEqual([known, 0, ["a"], []]);
  expect([store.live.value, store.detail.value, store.failure.value, store.facts.value.size]).toEqual([
    ...[null, null, null, 0],
  ]);
});

test("a store that is closed while it loads shows nothing, nor a failure", async () => {
  for (const refused of [{}, { session: 404 }]) {
    const release = hold("session");
    const store = new SessionStore("s");
    const loading = store.load();
    store.close();
    server.refused = refused;
    await release();
    await loading;
    expect([store.session.value, store.failure.value, Source.opened]).toEqual([null, null, []]);
  }
});
