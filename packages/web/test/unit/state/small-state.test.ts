import { afterEach, expect, test, vi } from "vitest";
import { Refusal } from "../../../src/api/http.ts";
import type { Epoch, Item, Summary, TextEvent } from "../../../src/api/wire.ts";
import { epochAt, replacedWords, timeInId } from "../../../src/state/epochs.ts";
import { choicesIn, isFiltered, mergeSessions, NO_FILTERS, passes } from "../../../src/state/filters.ts";
import { isComparable, isOlder, stepTo } from "../../../src/state/item-version.ts";
import { draftText, type LiveText, withText } from "../../../src/state/live-text.ts";
import { Observable } from "../../../src/state/observable.ts";
import { PacedText } from "../../../src/state/paced-text.ts";
import { hashOf, parseRoute } from "../../../src/state/parse-route.ts";
import { Refresher } from "../../../src/state/refresher.ts";
import { followAddress, go, route } from "../../../src/state/route.ts";
import {
  commonLength,
  messageOf,
  missingPages,
  PAGE,
  parallelCalls,
  withRange,
  withSplice,
} from "../../../src/state/sparse-items.ts";
import { attempt, dismiss, say, toasts } from "../../../src/state/toasts.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.resetModules();
});

const answer = (id: string): Item => ({ kind: "answer", id, at: "2026-01-01T00:00:00Z", turn: 1, text: id });
const toolCall = (id: string): Item => ({
  ...{ kind: "call", id, at: "2026-01-01T00:00:00Z", turn: 1, call: id, name: "read", input: {}, state: "done" },
});
const ids = (items: readonly (Item | undefined)[]) => Array.from(items, (item) => item?.id);

test("a version follows another only if it is one more of the same name", () => {
  const cases: [version: string, known: string | null, step: string][] = [
    ["v.1", null, "unknown"],
    ["v.2", "v.1", "next"],
    ["v.1", "v.1", "same"],
    ["v.1", "v.2", "same"],
    ["v.3", "v.1", "unknown"],
    ["w.2", "v.1", "unknown"],
    ["a.b.10", "a.b.9", "next"],
    ["a.c.10", "a.b.9", "unknown"],
  ];
  for (const [version, known, step] of cases)
    expect([version, known, stepTo(version, known)]).toEqual([version, known, step]);
  expect([isOlder("v.1", "v.2"), isOlder("v.2", "v.2"), isOlder("v.3", "v.2"), isOlder("w.1", "v.2")]).toEqual([
    ...[true, false, false, false],
  ]);
  expect([isOlder(null, "v.1"), isOlder("v.1", null), isOlder(null, null)]).toEqual([false, false, false]);
  expect([isComparable("v.1", "v.9"), isComparable("v.1", "w.1")]).toEqual([true, false]);
  expect([isComparable(null, "v.9"), isComparable("v.1", null), isComparable(null, null)]).toEqual([
    ...[false, false, false],
  ]);
});

test("why a conversation was replaced, in a word", () => {
  const words = (reason: string): string => replacedWords({ reason } as Epoch);
  expect(["compaction", "clear", "rewind", "other"].map(words)).toEqual([
    "summarized",
    "cleared",
    "rewound",
    "replaced",
  ]);
  expect(epochAt([], 0)).toBeNull();
  expect(timeInId("0000-0199f3a1-5b00-7000-8000-000000000001")).toBeNull();
});

const row = (id: string, own: Partial<Summary> = {}): Summary => ({
  ...{ id, title: id, at: "2026-01-05T00:00:00.000Z", turns: 1, queued: 0, status: "idle", here: false },
  ...own,
});

test("each filter alone decides, and the last day counts", () => {
  const now = Date.parse("2026-01-07T00:00:00.000Z");
  const one = row("a", { cwd: "/w", app: "x" });
  const seen = (filters: Partial<typeof NO_FILTERS>, session = one) =>
    passes(session, { ...NO_FILTERS, ...filters }, now);
  expect([seen({ folder: "/w" }), seen({ folder: "/v" })]).toEqual([true, false]);
  expect([seen({ agent: "x" }), seen({ agent: "y" }), seen({ agent: "x" }, row("b"))]).toEqual([true, false, false]);
  expect([seen({ status: "idle" }), seen({ status: "running" })]).toEqual([true, false]);
  expect([seen({ days: 2 }), seen({ days: 1 }), seen({ days: 3 }), seen({})]).toEqual([true, false, true, true]);
  expect(isFiltered(NO_FILTERS)).toBe(false);
  for (const filters of [{ folder: "/w" }, { agent: "x" }, { status: "idle" as const }, { days: 1 }])
    expect(isFiltered({ ...NO_FILTERS, ...filters })).toBe(true);
});

test("the folders and agents to choose from, the most frequent first, then by name", () => {
  const sessions = [row("a", { cwd: "/b", app: "z" }), row("b", { cwd: "/a" }), row("c", { cwd: "/c", app: "" })];
  expect(choicesIn(sessions)).toEqual({ folders: ["/a", "/b", "/c"], agents: ["z"] });
  expect(choicesIn([...sessions, row("d", { cwd: "/c", app: "y" }), row("e", { app: "y" })])).toEqual({
    folders: ["/c", "/a", "/b"],
    agents: ["y", "z"],
  });
});

test("two lists of sessions become one, newest first; of two at one time the fresh one is first", () => {
  const at = (id: string, day: number, title = id) => row(id, { at: `2026-01-0${day}`, title });
  const merged = mergeSessions([at("a", 9), at("b", 5), at("c", 1)], [at("d", 6), at("b", 5, "new"), at("e", 1)]);
  expect(merged.map(({ title }) => title)).toEqual(["a", "d", "new", "e", "c"]);
  expect(mergeSessions([at("a", 1)], []).map(({ id }) => id)).toEqual(["a"]);
});

const piece = (at: number, text: string, own: Partial<TextEvent> = {}): TextEvent => ({
  ...{ answer: "a", at, channel: "text", text },
  ...own,
});

test("pieces of an answer are joined by channel, and a piece known in part adds the rest", () => {
  let live = withText(null, piece(0, "Hm. ", { channel: "reasoning" }));
  live = withText(live, piece(4, "Well", { channel: "reasoning" }));
  live = withText(live, piece(8, "Yes"));
  live = withText(live, piece(9, "es, ok"));
  expect(live).toEqual({ answer: "a", reasoning: "Hm. Well", text: "Yes, ok", calls: [], length: 15 });
  expect(withText(live, piece(8, "Yes"))).toEqual(live);
  expect(withText(live, piece(8, "Yes, ok"))).toEqual(live);
  expect(withText(live, piece(14, "k!")).text).toBe("Yes, ok!");
  expect(withText(live, piece(0, "B", { answer: "b" }))).toEqual({
    ...{ answer: "b", reasoning: "", text: "B", calls: [], length: 1 },
  });
});

test("an answer that had begun before we came goes on; a new one takes its place", () => {
  const begun: LiveText = { answer: "", text: "Once", reasoning: "", calls: [], length: 0 };
  expect(withText(begun, piece(4, " more"))).toMatchObject({ answer: "a", text: "Once more", length: 9 });
  expect(withText({ ...begun, text: "O" }, piece(1, "nce")).text).toBe("Once");
  expect(withText(begun, piece(0, "New"))).toMatchObject({ answer: "a", text: "New", length: 3 });
});

test("the inputs of calls are joined by call", () => {
  const input = (at: number, text: string, id?: string) =>
    piece(at, text, { channel: "input", ...(id === undefined ? {} : { call: { id, name: `tool ${id}` } }) });
  let live = withText(null, input(0, "", "1"));
  expect(live.calls).toEqual([{ id: "1", name: "tool 1", input: "" }]);
  live = withText(live, input(0, "{a", "1"));
  live = withText(live, input(2, "{b", "2"));
  live = withText(live, input(4, "}", "1"));
  // Without a name it belongs to the last one.
  live = withText(live, input(5, "}"));
  expect(live.calls.map((call) => call.input)).toEqual(["{a}", "{b}"]);
  expect(live.length).toBe(6);
  expect(withText(null, input(0, "{"))).toMatchObject({ calls: [], length: 1 });
});

test("drafts of another process: words and reasoning are added, another answer starts over", () => {
  const one = draftText(null, {
    id: "d",
    parts: [{ text: "Once ", reasoning: "Hm" }, { reasoning: "." }, { part: 1 }],
  });
  expect(one).toEqual({ answer: "d", text: "Once ", reasoning: "Hm.", calls: [], length: 0 });
  expect(draftText(one, { id: "e", parts: [{ text: "B" }] })).toMatchObject({ answer: "e", text: "B", reasoning: "" });
  expect(draftText(one, { id: "d" })).toEqual(one);
  expect([draftText(one, { parts: [] }), draftText(one, { id: "d", discarded: "x", parts: [] })]).toEqual([null, null]);
});

test("those who subscribed hear of a change, not of the same value, and nothing after they left", () => {
  const value = new Observable(1);
  const heard: number[] = [];
  const stop = value.subscribe(() => heard.push(value.value));
  value.set(1);
  value.set(2);
  value.update((n) => n + 1);
  stop();
  value.set(9);
  expect(heard).toEqual([2, 3]);
});

test("words are shown once a frame, their end at once, and nothing after the page was left", () => {
  vi.useFakeTimers();
  const words = new PacedText();
  const say = (text: string) =>
    words.update((heard) => ({ text: (heard?.text ?? "") + text, reasoning: "", calls: [], answer: "", length: 0 }));
  say("a");
  expect([words.heard?.text, words.shown.value]).toEqual(["a", null]);
  say("b");
  vi.advanceTimersByTime(100);
  expect(words.shown.value?.text).toBe("ab");
  say("c");
  vi.advanceTimersByTime(100);
  expect(words.shown.value?.text).toBe("abc");
  words.update(() => null);
  expect([words.heard, words.shown.value, vi.getTimerCount()]).toEqual([null, null, 0]);
  say("d");
  words.update(() => null);
  expect(vi.getTimerCount()).toBe(0);
  say("e");
  words.stop();
  vi.advanceTimersByTime(100);
  expect(words.shown.value).toBeNull();
});

const ID = "0199f3a1-0000-7000-8000-000000000001";

test("addresses are as short as they can be, and lead back", () => {
  const cases: [Parameters<typeof hashOf>[0], string][] = [
    [{}, "#/"],
    [{ session: null, tab: "files" }, "#/"],
    [{ session: ID }, `#/${ID}`],
    [{ session: ID, tab: "conversation", until: null }, `#/${ID}`],
    [{ session: ID, item: "a/b" }, `#/${ID}/conversation/a%2Fb`],
    [{ session: ID, until: 17 }, `#/${ID}/until-17`],
    [{ session: ID, until: 17, item: "a" }, `#/${ID}/until-17/a`],
    ...(["files", "usage", "tree", "compare"] as const).map((tab): [Parameters<typeof hashOf>[0], string] => [
      { session: ID, tab },
      `#/${ID}/${tab}`,
    ]),
  ];
  for (const [given, hash] of cases) {
    expect(hashOf(given)).toBe(hash);
    const all = { tab: "conversation", item: null, until: null, ...given };
    expect(parseRoute(hash)).toEqual(given.session ? all : { ...all, session: null, tab: "conversation" });
  }
  expect(parseRoute(`${ID}//x`)).toEqual({ session: ID, tab: "conversation", item: "x", until: null });
  expect(parseRoute(`#${ID}/conversation/%E0%A4%A`).item).toBeNull();
  expect(parseRoute(`#/x${ID}`).session).toBeNull();
});

test("the page follows its address, and goes to another", () => {
  const window = Object.assign(new EventTarget(), { location: { hash: `#/${ID}/files` } });
  vi.stubGlobal("window", window);
  followAddress();
  expect(route.value).toMatchObject({ session: ID, tab: "files" });
  go({ session: ID, tab: "usage" });
  expect(window.location.hash).toBe(`#/${ID}/usage`);
  window.dispatchEvent(new Event("hashchange"));
  expect(route.value).toMatchObject({ tab: "usage" });
});

test("a range is filled in as far as the conversation goes", () => {
  const items = withRange([answer("a"), answer("b"), answer("c")], 1, [answer("x"), answer("y")], 2);
  expect(ids(items)).toEqual(["a", "x"]);
  expect(ids(withRange([], 0, [answer("a"), answer("b")], 3))).toEqual(["a", "b", undefined]);
  expect(ids(withSplice([answer("a")], 3, 0, [answer("b")]))).toEqual(["a", undefined, undefined, "b"]);
  expect(ids(withSplice([answer("a"), answer("b")], 1, 1, [answer("c"), answer("d")]))).toEqual(["a", "c", "d"]);
  expect(ids(withSplice([answer("a")], 1, 0, [answer("b")]))).toEqual(["a", "b"]);
});

test("each page with a hole in it is missing, and no page beyond the end", () => {
  const whole = Array.from({ length: 2 * PAGE + 5 }, (_, at): Item | undefined => answer(`${at}`));
  expect(missingPages(whole, 0, 999)).toEqual([]);
  for (const hole of [0, PAGE - 1, PAGE, 2 * PAGE, 2 * PAGE + 4]) {
    const items = whole.with(hole, undefined);
    expect(missingPages(items, 0, 999)).toEqual([Math.floor(hole / PAGE) * PAGE]);
    expect(missingPages(items, hole, hole)).toEqual([Math.floor(hole / PAGE) * PAGE]);
  }
  const none = Array.from({ length: 3 * PAGE }, () => undefined);
  expect(missingPages(none, 0, PAGE - 1)).toEqual([0]);
  expect(missingPages(none, 0, PAGE)).toEqual([0, PAGE]);
  expect(missingPages(none, -5, 2 * PAGE - 1)).toEqual([0, PAGE]);
  expect(missingPages(none.slice(0, PAGE), 0, PAGE)).toEqual([0]);
});

test("calls stand side by side only if one message makes them, one after another", () => {
  const items = [
    toolCall("m"),
    toolCall("m.1"),
    answer("m.2"),
    toolCall("m.3"),
    undefined,
    toolCall("n"),
    toolCall("o"),
  ];
  const group = (index: number) => parallelCalls(items, index)?.map(({ id }) => id) ?? null;
  expect([0, 1, 2, 3, 4, 5, 6].map(group)).toEqual([["m", "m.1"], null, null, ["m.3"], null, ["n"], ["o"]]);
  expect([messageOf("m.12"), messageOf("m"), messageOf("m.x")]).toEqual(["m", "m", "m.x"]);
});

test("what two conversations have in common ends where one of them is not loaded", () => {
  const items = [answer("a"), answer("b"), answer("c")];
  expect(commonLength(items, items)).toBe(3);
  expect(commonLength(items, items.slice(0, 1))).toBe(1);
  expect(commonLength(items.slice(0, 1), items)).toBe(1);
  expect(commonLength([items[0], undefined, items[2]], [items[0], undefined, items[2]])).toBe(1);
  expect(commonLength(items, [answer("x"), ...items.slice(1)])).toBe(0);
});

test("what is said goes away by itself: errors and what can be undone after twice the time", async () => {
  vi.useFakeTimers();
  const shown = () => toasts.value.map(({ text }) => text);
  const run = vi.fn();
  say("plain");
  say("undo", { label: "Undo", run });
  say("error", undefined, true);
  expect(toasts.value.map(({ text, isError, action }) => [text, isError, action?.label])).toEqual([
    ["plain", false, undefined],
    ["undo", false, "Undo"],
    ["error", true, undefined],
  ]);
  expect("action" in toasts.value[0]!).toBe(false);
  vi.advanceTimersByTime(7999);
  expect(shown()).toEqual(["plain", "undo", "error"]);
  vi.advanceTimersByTime(1);
  expect(shown()).toEqual(["undo", "error"]);
  vi.advanceTimersByTime(7999);
  expect(shown()).toEqual(["undo", "error"]);
  vi.advanceTimersByTime(1);
  expect(shown()).toEqual([]);
  // The newest four, each with a number of its own.
  for (const text of ["1", "2", "3", "4", "5"]) say(text);
  expect(shown()).toEqual(["2", "3", "4", "5"]);
  dismiss(toasts.value[1]!.id);
  expect(shown()).toEqual(["2", "4", "5"]);
  vi.runAllTimers();
});

test("what is refused is said; what is broken is thrown", async () => {
  vi.useFakeTimers();
  const done: number[] = [];
  expect(
    await attempt(
      async () => 7,
      (n) => done.push(n),
    ),
  ).toBe(true);
  expect(await attempt(async () => 7)).toBe(true);
  expect([done, toasts.value]).toEqual([[7], []]);
  expect(
    await attempt(
      () => Promise.reject(new Refusal(409, "BUSY", "It is busy.")),
      () => done.push(0),
    ),
  ).toBe(false);
  expect(toasts.value).toMatchObject([{ text: "It is busy.", isError: true }]);
  await expect(attempt(() => Promise.reject(new TypeError("bug")))).rejects.toThrow("bug");
  expect(done).toEqual([7]);
  vi.runAllTimers();
});

/** Something to read that takes a while, and when it was read. */
function reading(tookMs: number) {
  vi.useFakeTimers();
  const begun: number[] = [];
  const refresher = new Refresher(
    async () => {
      begun.push(performance.now() - startMs);
      await new Promise((resolve) => setTimeout(resolve, tookMs));
    },
    { leastMs: 1000, mostMs: 5000 },
  );
  const startMs = performance.now();
  return { refresher, begun };
}

test("changes are gathered; what people wait for is read sooner", async () => {
  const { refresher, begun } = reading(10);
  refresher.later();
  await vi.advanceTimersByTimeAsync(500);
  refresher.later();
  await vi.advanceTimersByTimeAsync(499);
  expect(begun).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toEqual([1000]);
  await vi.advanceTimersByTimeAsync(1000);
  refresher.later();
  refresher.soon();
  refresher.later();
  await vi.advanceTimersByTimeAsync(149);
  expect(begun).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(begun).toHaveLength(2);
});

test("what is slow to read is read less often, but not too late", async () => {
  for (const [tookMs, waitMs] of [
    [50, 1000],
    [200, 2000],
    [3000, 5000],
  ] as const) {
    const { refresher, begun } = reading(tookMs);
    const first = refresher.now();
    await vi.advanceTimersByTimeAsync(tookMs);
    await first;
    refresher.later();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(begun).toEqual([0, tookMs + waitMs]);
    vi.useRealTimers();
  }
});

test("what changes while it is read is read once more, never beside", async () => {
  const { refresher, begun } = reading(400);
  const ended = vi.fn();
  void refresher.now().then(ended);
  await vi.advanceTimersByTimeAsync(399);
  expect(ended).not.toHaveBeenCalled();
  refresher.soon();
  refresher.later();
  await refresher.now();
  await vi.advanceTimersByTimeAsync(1);
  expect(ended).toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(begun).toEqual([0, 550]);
  // What nobody waits for keeps its pace.
  void refresher.now();
  await vi.advanceTimersByTimeAsync(100);
  refresher.later();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(begun).toHaveLength(4);
  expect(begun[3]! - begun[2]!).toBe(4400);
});

test("what is to be read at once, and is being read, is read once more", async () => {
  const { refresher, begun } = reading(400);
  void refresher.now();
  await vi.advanceTimersByTimeAsync(100);
  await refresher.now();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(begun).toEqual([0, 550]);
});

test("reading at once makes a reading that is due later needless; after the stop nothing is read", async () => {
  const { refresher, begun } = reading(10);
  refresher.later();
  void refresher.now();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(begun).toEqual([0]);
  refresher.soon();
  refresher.stop();
  refresher.later();
  await refresher.now();
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(begun).toEqual([0]);
});

test("a reading that fails does not end the readings", async () => {
  vi.useFakeTimers();
  let tries = 0;
  const refresher = new Refresher(
    async () => {
      tries++;
      if (tries === 1) throw new Error("out of reach");
    },
    { leastMs: 1000, mostMs: 5000 },
  );
  await expect(refresher.now()).rejects.toThrow("out of reach");
  refresher.later();
  await vi.advanceTimersByTimeAsync(1000);
  expect(tries).toBe(2);
});

/** A browser with a preference, and a store for the choice that may be switched off. */
async function themed(isDark: boolean, chosen: string | null, isOff = false) {
  const dark = Object.assign(new EventTarget(), { matches: isDark });
  const kept = new Map(chosen === null ? [] : [["holdfast-theme", chosen]]);
  const refuse = (): never => {
    throw new DOMException("denied", "SecurityError");
  };
  vi.stubGlobal("window", { matchMedia: () => dark });
  vi.stubGlobal("document", { documentElement: { dataset: {} } });
  vi.stubGlobal("localStorage", {
    getItem: isOff ? refuse : (name: string) => kept.get(name) ?? null,
    setItem: isOff ? refuse : (name: string, value: string) => kept.set(name, value),
  });
  vi.resetModules();
  const themes = await import("../../../src/state/theme.ts");
  themes.applyTheme();
  const shown = () => document.documentElement.dataset["theme"];
  const prefer = (matches: boolean) => {
    dark.matches = matches;
    dark.dispatchEvent(new Event("change"));
  };
  return { ...themes, shown, prefer, kept };
}

test("the page is as the person chose, else as the system prefers, also when that changes", async () => {
  expect((await themed(true, null)).shown()).toBe("dark");
  expect((await themed(true, "light")).shown()).toBe("light");
  expect((await themed(false, "dark")).shown()).toBe("dark");
  expect((await themed(false, "nonsense")).shown()).toBe("light");
  const page = await themed(false, null);
  expect(page.shown()).toBe("light");
  page.prefer(true);
  expect(page.shown()).toBe("dark");
  page.prefer(false);
  expect(page.shown()).toBe("light");
  page.toggleTheme();
  expect([page.shown(), page.kept.get("holdfast-theme")]).toEqual(["dark", "dark"]);
  page.prefer(false);
  expect(page.shown()).toBe("dark");
  page.toggleTheme();
  expect([page.shown(), page.kept.get("holdfast-theme")]).toEqual(["light", "light"]);
});

test("without a place to keep the choice it lasts while the page does", async () => {
  const page = await themed(true, null, true);
  expect(page.shown()).toBe("dark");
  page.toggleTheme();
  expect(page.shown()).toBe("light");
});
