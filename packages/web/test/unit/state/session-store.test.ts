import { afterEach, expect, test, vi } from "vitest";
import { SessionStore } from "../../../src/state/session-store.ts";

/** The server's answers and events, in any order that a network may bring them. */
class Source extends EventTarget {
  static readonly opened: Source[] = [];

  constructor() {
    super();
    Source.opened.push(this);
  }

  close(): void {}

  say(name: string, data: object): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

const session = (own: object) => ({ id: "s", title: "t", here: false, holder: null, status: "idle", ...own });
const transcript = (own: object) => ({ cursor: "1-a", version: null, count: 0, from: 0, items: [], ...own });
const answer = (id: string) => ({ kind: "answer", id, at: "2026-01-01T00:00:00Z", turn: 1, text: id });

/** Answers to requests whose address contains the text, when they are given. */
function served() {
  const waiting: { readonly address: string; readonly resolve: (response: Response) => void }[] = [];
  vi.stubGlobal("EventSource", Source);
  vi.stubGlobal("fetch", (address: string) => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    if (address.includes("/timeline"))
      resolve(Response.json({ from: null, to: null, turns: 0, lanes: 0, isMerged: false, entries: [] }));
    else waiting.push({ address, resolve });
    return promise;
  });
  const next = async (part: string): Promise<(body: object) => void> => {
    await expect.poll(() => waiting.some(({ address }) => address.includes(part))).toBe(true);
    const [found] = waiting.splice(
      waiting.findIndex(({ address }) => address.includes(part)),
      1,
    );
    return (body) => found!.resolve(Response.json(body));
  };
  return { next, waiting };
}

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  Source.opened.length = 0;
});

async function loaded(next: ReturnType<typeof served>["next"], first = transcript({})): Promise<SessionStore> {
  const store = new SessionStore("s");
  const loading = store.load();
  (await next("/transcript"))(first);
  (await next("/sessions/s"))(session({ status: "interrupted", interruption: { turn: 1 } }));
  await loading;
  return store;
}

test("what was asked before the server opened the session does not replace what its events told", async () => {
  const { next } = served();
  const store = await loaded(next);
  // Somebody finishes the turn: the page hears of the record first, and asks.
  Source.opened[0]!.say("record", { seq: 2, kind: "turn.resumed" });
  const lateTranscript = await next("/transcript");
  const lateSession = await next("/sessions/s");
  Source.opened[0]!.say("state", {
    ...{ whole: true, version: "v.1", items: null, event: null },
    state: { title: "t", queue: [], interruption: null, phase: "running" },
  });
  (await next("/transcript"))(transcript({ version: "v.1", count: 1, items: [answer("new")] }));
  await expect.poll(() => store.items.value.map((item) => item?.id)).toEqual(["new"]);
  lateSession(session({ status: "interrupted", interruption: { turn: 1 } }));
  lateTranscript(transcript({ count: 0 }));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(store.session.value).toMatchObject({ here: true, interruption: null });
  expect(store.items.value.map((item) => item?.id)).toEqual(["new"]);
  store.close();
});

test("of two answers that overtake each other, the newer one stays", async () => {
  const { next } = served();
  const store = await loaded(next);
  const state = { title: "t", queue: [], interruption: null, phase: "running" };
  for (const version of ["v.5", "v.6"])
    Source.opened[0]!.say("state", { whole: false, version, items: null, event: null, state });
  const first = await next("/transcript");
  const second = await next("/transcript");
  second(transcript({ version: "v.6", count: 2, items: [answer("a"), answer("b")] }));
  await expect.poll(() => store.items.value.length).toBe(2);
  first(transcript({ version: "v.5", count: 1, items: [answer("a")] }));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(store.items.value.map((item) => item?.id)).toEqual(["a", "b"]);
  store.close();
});

const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => answer(`${from + at}`));
const running = { title: "t", queue: [], interruption: null, phase: "running" };
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));
const idsOf = (store: SessionStore) => store.items.value.map((item) => item?.id);

/** A conversation of 300 items in a session that the server has open, whose last 200 are loaded. */
const long = transcript({ version: "v.1", count: 300, from: 100, items: numbered(100, 300) });

function change(version: string, items: { at: number; remove: number; insert: object[] } | undefined): void {
  Source.opened[0]!.say("state", { whole: false, version, items, event: null, state: running });
}

test("a page that was asked for before a change does not replace the change, and is asked for again", async () => {
  const { next } = served();
  const store = await loaded(next, long);
  store.current.ensure(0, 20);
  const late = await next("from=0");
  change("v.2", { at: 5, remove: 1, insert: [answer("edited")] });
  late(transcript({ version: "v.1", count: 300, from: 0, items: numbered(0, 100) }));
  const again = await next("from=0");
  expect(idsOf(store).slice(0, 8)).toEqual(["0", "1", "2", "3", "4", "edited", undefined, undefined]);
  again(transcript({ version: "v.2", count: 300, items: [...numbered(0, 5), answer("edited"), ...numbered(6, 100)] }));
  await expect.poll(() => store.items.value.includes(undefined)).toBe(false);
  expect(idsOf(store)).toEqual([...numbered(0, 5), answer("edited"), ...numbered(6, 300)].map(({ id }) => id));
  store.close();
});

test("a page that was asked for before the conversation became shorter does not make it longer again", async () => {
  const { next, waiting } = served();
  const store = await loaded(next, long);
  store.current.ensure(0, 20);
  const late = await next("from=0");
  change("v.2", { at: 50, remove: 250, insert: [] });
  late(transcript({ version: "v.1", count: 300, from: 0, items: numbered(0, 100) }));
  await settled();
  expect(idsOf(store)).toEqual(numbered(0, 50).map(({ id }) => id));
  expect(waiting).toEqual([]);
  store.close();
});

test("a page that arrives before the events that it shows already: they change nothing twice", async () => {
  const { next, waiting } = served();
  const store = await loaded(next, long);
  store.current.ensure(0, 20);
  const page = await next("from=0");
  page(transcript({ version: "v.2", count: 301, from: 0, items: [answer("new"), ...numbered(0, 99)] }));
  await settled();
  // Whatever it asks for now, the server answers.
  for (const { address, resolve } of waiting.splice(0))
    if (address.includes("last="))
      resolve(Response.json(transcript({ version: "v.2", count: 301, from: 101, items: numbered(100, 300) })));
  await settled();
  change("v.2", { at: 0, remove: 0, insert: [answer("new")] });
  await settled();
  expect(idsOf(store).length).toBe(301);
  expect(idsOf(store).filter((id) => id === "new")).toEqual(["new"]);
  expect(idsOf(store).slice(101)).toEqual(numbered(100, 300).map(({ id }) => id));
  store.close();
});

test("after changes that no event told, nothing of another conversation stays before the end", async () => {
  const { next } = served();
  const store = await loaded(next, transcript({ version: "v.1", count: 300, items: numbered(0, 300) }));
  change("v.9", undefined);
  const items = Array.from({ length: 200 }, (_, at) => answer(`b${at + 50}`));
  (await next("last="))(transcript({ version: "v.9", count: 250, from: 50, items }));
  await expect.poll(() => store.items.value.length).toBe(250);
  expect(idsOf(store).slice(0, 51)).toEqual([...Array(50).fill(undefined), "b50"]);
  store.close();
});

test("an answer from before the server opened the session again does not replace what came after", async () => {
  const { next } = served();
  const store = await loaded(next, long);
  change("v.9", undefined);
  const late = await next("last=");
  change("w.3", undefined);
  const now = transcript({ version: "w.3", count: 2, items: numbered(0, 2) });
  (await next("last="))(now);
  await expect.poll(() => idsOf(store)).toEqual(["0", "1"]);
  late(transcript({ version: "v.9", count: 1, items: numbered(0, 1) }));
  // Which of the two is newer cannot be told from them.
  (await next("last="))(now);
  await settled();
  expect(idsOf(store)).toEqual(["0", "1"]);
  change("w.4", { at: 2, remove: 0, insert: [answer("2")] });
  expect(idsOf(store)).toEqual(["0", "1", "2"]);
  store.close();
});

test("a store that was closed reads and changes nothing any more", async () => {
  const { next, waiting } = served();
  const store = await loaded(next, long);
  store.current.ensure(0, 20);
  const late = await next("from=0");
  store.close();
  late(transcript({ version: "v.1", count: 300, from: 0, items: numbered(0, 100) }));
  await settled();
  expect(store.items.value[0]).toBeUndefined();
  expect(waiting).toEqual([]);
});

/** A server that takes three seconds for a timeline, and the times at which it was asked for one. */
function slowTimeline(): number[] {
  vi.useFakeTimers();
  vi.stubGlobal("document", { visibilityState: "hidden" });
  vi.stubGlobal("EventSource", Source);
  const asked: number[] = [];
  vi.stubGlobal("fetch", async (address: string) => {
    if (address.includes("/transcript")) return Response.json(transcript({}));
    if (!address.includes("/timeline")) return Response.json(session({}));
    asked.push(performance.now());
    await new Promise((resolve) => setTimeout(resolve, 3000));
    return Response.json({ from: null, to: null, turns: 0, lanes: 0, isMerged: false, entries: [] });
  });
  return asked;
}

test("a timeline that is slow to read comes five seconds late at most, and soon after the end of a turn", async () => {
  const asked = slowTimeline();
  const store = new SessionStore("s");
  await store.load();
  await vi.advanceTimersByTimeAsync(3000);
  expect(asked).toHaveLength(1);

  const changedMs = performance.now();
  Source.opened[0]!.say("record", { seq: 2, kind: "message" });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toHaveLength(2);
  expect(asked[1]! - changedMs).toBeLessThanOrEqual(5000);

  const endedMs = performance.now();
  Source.opened[0]!.say("record", { seq: 3, kind: "message" });
  Source.opened[0]!.say("record", { seq: 4, kind: "turn.ended" });
  await vi.advanceTimersByTimeAsync(4000);
  expect(asked).toHaveLength(3);
  expect(asked[2]! - endedMs).toBeLessThan(500);
  store.close();
});

test("a turn that ends while the timeline is read is on the next one, which is read soon, and never beside it", async () => {
  const asked = slowTimeline();
  const store = new SessionStore("s");
  await store.load();
  await vi.advanceTimersByTimeAsync(1000);
  for (let seq = 2; seq < 10; seq++) Source.opened[0]!.say("record", { seq, kind: "message" });
  Source.opened[0]!.say("state", {
    ...{ whole: false, version: "v.1", event: { type: "turn.ended" }, state: running },
  });
  await vi.advanceTimersByTimeAsync(30_000);
  expect(asked).toHaveLength(2);
  expect(asked[1]! - asked[0]!).toBeGreaterThanOrEqual(3000);
  expect(asked[1]! - asked[0]!).toBeLessThan(3500);
  store.close();
});

test("what was asked for before everything was read again does not replace it", async () => {
  const { next } = served();
  const store = await loaded(next);
  Source.opened[0]!.say("record", { seq: 2, kind: "message" });
  const lateChanges = await next("/transcript");
  const lateSession = await next("/sessions/s");
  Source.opened[0]!.say("start-over", {});
  const firstTranscript = await next("/transcript");
  const firstSession = await next("/sessions/s");
  Source.opened[0]!.say("start-over", {});
  (await next("/transcript"))(transcript({ cursor: "3-c", count: 2, items: [answer("a"), answer("b")] }));
  (await next("/sessions/s"))(session({ title: "new" }));
  await expect.poll(() => idsOf(store)).toEqual(["a", "b"]);
  firstTranscript(transcript({ cursor: "2-b", count: 1, items: [answer("a")] }));
  firstSession(session({ title: "old" }));
  lateChanges(transcript({ cursor: "2-b", count: 1, items: [answer("a")] }));
  lateSession(session({ title: "old" }));
  await settled();
  expect(idsOf(store)).toEqual(["a", "b"]);
  expect(store.session.value).toMatchObject({ title: "new" });
  store.close();
});

test("other processes' changes are read one after another", async () => {
  const { next, waiting } = served();
  const store = await loaded(next);
  Source.opened[0]!.say("record", { seq: 2, kind: "message" });
  const changes = await next("/transcript");
  const told = await next("/sessions/s");
  Source.opened[0]!.say("record", { seq: 3, kind: "message" });
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect(waiting).toEqual([]);
  changes(transcript({ cursor: "2-b", count: 1, items: [answer("a")] }));
  told(session({}));
  (await next("since=2-b"))(transcript({ cursor: "3-c", count: 2, from: 1, items: [answer("b")] }));
  (await next("/sessions/s"))(session({}));
  await expect.poll(() => idsOf(store)).toEqual(["a", "b"]);
  store.close();
});

test("a server that was out of reach is not said to be so when it is back", async () => {
  const { next } = served();
  const store = await loaded(next);
  await settled();
  const answering = globalThis.fetch;
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("failed")));
  await store.current.ensureIndex(0);
  expect(store.failure.value).toMatchObject({ code: "UNREACHABLE" });
  vi.stubGlobal("fetch", answering);
  Source.opened[0]!.dispatchEvent(new Event("open"));
  expect(store.failure.value).toBeNull();
  store.close();
});

test("a server that is slow to say who has the session is asked once at a time", async () => {
  vi.useFakeTimers();
  vi.stubGlobal("document", { visibilityState: "visible" });
  vi.stubGlobal("EventSource", Source);
  const { promise: never } = Promise.withResolvers<Response>();
  let asked = 0;
  vi.stubGlobal("fetch", (address: string) => {
    if (address.includes("/transcript")) return Promise.resolve(Response.json(transcript({})));
    if (address.includes("/timeline")) return never;
    asked++;
    return asked === 1 ? Promise.resolve(Response.json(session({ holder: { pid: 7 } }))) : never;
  });
  const store = new SessionStore("s");
  await store.load();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toBe(2);
  store.close();
});

test("a timeline that was asked for while a call ran does not make it run again", async () => {
  vi.stubGlobal("EventSource", Source);
  const answers: ((entries: readonly object[]) => void)[] = [];
  vi.stubGlobal("fetch", (address: string) => {
    if (address.includes("/transcript")) return Promise.resolve(Response.json(transcript({})));
    if (!address.includes("/timeline")) return Promise.resolve(Response.json(session({})));
    const { promise, resolve } = Promise.withResolvers<Response>();
    answers.push((entries) =>
      resolve(Response.json({ from: start, to: start, turns: 1, lanes: 1, isMerged: true, entries })),
    );
    return promise;
  });
  const start = "2026-01-01T00:00:00.000Z";
  const call = (own: object) => ({
    ...{
      kind: "tool",
      turn: 1,
      lane: 0,
      from: start,
      to: null,
      call: "c",
      name: "read",
      about: "",
      outcome: "running",
    },
    ...{ child: null, count: 1 },
    ...own,
  });
  const store = new SessionStore("s");
  await store.load();
  answers.shift()!([call({})]);
  await expect.poll(() => store.facts.value.get("c")).toMatchObject({ endMs: null });
  store.zoomTo(Date.parse(start) + 1, Date.parse(start) + 2);
  await expect.poll(() => answers.length).toBe(1);
  const late = answers.shift()!;
  Source.opened[0]!.say("record", { seq: 2, kind: "turn.ended" });
  await expect.poll(() => answers.length).toBe(1);
  answers.shift()!([call({ to: "2026-01-01T00:00:01.000Z", outcome: "done" })]);
  await expect.poll(() => store.facts.value.get("c")).toMatchObject({ outcome: "done" });
  late([call({})]);
  await settled();
  expect(store.facts.value.get("c")).toMatchObject({ outcome: "done" });
  store.close();
});

test("words that come faster than they can be drawn are shown together, and the end of the answer at once", async () => {
  const { next } = served();
  const store = await loaded(next);
  let drawings = 0;
  store.live.subscribe(() => drawings++);
  const say = (n: number): void =>
    Source.opened[0]!.say("text", { answer: "a", at: 2 * n, channel: "text", text: `${n} ` });
  for (let n = 0; n < 10; n++) say(n);
  await expect.poll(() => store.live.value?.text).toBe("0 1 2 3 4 5 6 7 8 9 ");
  expect(drawings).toBe(1);
  Source.opened[0]!.say("text", { answer: "a", at: 20, channel: "text", text: "never shown" });
  Source.opened[0]!.say("state", {
    ...{ whole: false, version: "v.1", items: null, event: null },
    state: { live: null },
  });
  expect([store.live.value, drawings]).toEqual([null, 2]);
  store.close();
});
