import { afterEach, expect, test, vi } from "vitest";
import type { Chat, ChatEvent, ChatState } from "../../../src/contract/host.ts";
import type { Item } from "../../../src/contract/item.ts";
import { ChatFeed, spliceOf } from "../../../src/events/chat-feed.ts";

const item = (id: string, turn = 1): Item => ({ kind: "answer", id, at: "", turn, text: id });
const LIVE = { text: "", reasoning: "", calls: [] };

/** A chat whose state the test sets, and what a follower of it hears. */
function followed(first: Partial<ChatState> = {}) {
  let listener: ((event: ChatEvent) => void) | null = null;
  const chat = {
    state: { id: "s", title: "t", items: [], live: null, outputs: {}, isBusy: false, ...first } as unknown as ChatState,
    subscribe: (one: (event: ChatEvent) => void) => {
      listener = one;
      return () => {
        listener = null;
      };
    },
  };
  const feed = new ChatFeed(chat as unknown as Chat);
  const heard: Record<string, unknown>[] = [];
  const texts: { at: number; end: number; channel: string; text: string; call?: object }[] = [];
  let closings = 0;
  const stop = feed.follow({
    state: (json) => heard.push(JSON.parse(json)),
    text: ({ json, end }) => texts.push({ ...JSON.parse(json), end }),
    closed: () => closings++,
  });
  return {
    ...{ chat, feed, heard, texts, stop },
    closings: () => closings,
    isSubscribed: () => listener !== null,
    change: (own: Partial<ChatState>) => {
      chat.state = { ...chat.state, ...own };
    },
    tell: (event: ChatEvent) => listener?.(event),
    last: () => heard.at(-1) ?? {},
    said: () => texts.map(({ at, end, channel, text }) => `${at}-${end} ${channel} ${text}`),
  };
}

afterEach(() => {
  vi.useRealTimers();
});

test("only what changed is announced, and nothing if nothing did", () => {
  const { feed, heard, change, last } = followed();
  const before = feed.position;
  feed.sync();
  change({ title: "t", queue: undefined as never });
  feed.sync();
  expect([heard, feed.position]).toEqual([[], before]);
  change({ title: "new", model: "m" });
  feed.sync();
  expect(last()).toMatchObject({ whole: false, version: feed.version, position: feed.position });
  expect(last()["state"]).toEqual({ title: "new", model: "m" });
  expect(feed.position).not.toBe(before);
  // Another object with the same content.
  change({ outputs: {} });
  feed.sync();
  expect(heard).toHaveLength(1);
  expect([last()["items"], "event" in last(), "turn" in last()]).toEqual([undefined, false, false]);
});

test("a change of the items is announced as one, with a new version and their number", () => {
  const { feed, heard, change, last } = followed({ items: [item("a")] });
  const version = feed.version;
  change({ items: [item("a")].with(0, item("b")).concat(item("c")) });
  feed.sync();
  expect(last()).toMatchObject({
    state: { count: 2 },
    items: { at: 0, remove: 1, insert: [{ id: "b" }, { id: "c" }] },
  });
  expect([feed.version === version, last()["version"] === feed.version]).toEqual([false, true]);
  expect(feed.items.map(({ id }) => id)).toEqual(["b", "c"]);
  const known = feed.version;
  change({ items: [...feed.items], title: "x" });
  feed.sync();
  expect([feed.version, heard.length, last()["state"]]).toEqual([known, 2, { title: "x" }]);
});

test("what a tool adds to its output is in the event alone; otherwise the output is told", () => {
  const { heard, change, tell, last, feed } = followed();
  change({ outputs: { c: "one" }, title: "new" });
  tell({ type: "tool.output", call: "c", text: "one" } as ChatEvent);
  expect(last()).toMatchObject({ state: { title: "new" }, event: { type: "tool.output", text: "one" } });
  expect(last()["state"]).not.toHaveProperty("outputs");
  change({ outputs: { c: "another" } });
  feed.sync();
  expect(last()["state"]).toEqual({ outputs: { c: "another" } });
  change({ outputs: {} });
  tell({ type: "changed" } as ChatEvent);
  expect(last()).toMatchObject({ state: { outputs: {} }, event: { type: "changed" } });
  expect(heard).toHaveLength(3);
});

test("events that followers get otherwise are not announced again; the end of a turn names it", () => {
  const { heard, change, tell, last } = followed({ items: [item("a", 4)] });
  for (const event of [
    { type: "text", text: "" },
    { type: "reasoning", text: "" },
    { type: "item", item: item("a") },
  ])
    tell(event as ChatEvent);
  expect(heard).toEqual([]);
  tell({ type: "turn.ended", outcome: "completed", denied: 0 } as ChatEvent);
  expect(last()).toMatchObject({ event: { type: "turn.ended" }, turn: 4, state: {} });
  change({ items: [] });
  tell({ type: "turn.ended", outcome: "completed", denied: 0 } as ChatEvent);
  expect(last()).toMatchObject({ turn: 0 });
  tell({ type: "changed" } as ChatEvent);
  expect(last()).not.toHaveProperty("turn");
});

test("the end of the live answer is announced once, its words are not part of the state", () => {
  const { feed, change, heard, last } = followed();
  change({ live: { ...LIVE, text: "a" } });
  feed.sync();
  expect(heard).toEqual([]);
  change({ live: null });
  feed.sync();
  expect(last()["state"]).toEqual({ live: null });
  change({ title: "x" });
  feed.sync();
  expect(last()["state"]).toEqual({ title: "x" });
});

test("the whole state has all but the items and the words, and says that nothing is live", () => {
  const { feed, change } = followed({ items: [item("a")] });
  expect(JSON.parse(feed.whole())).toEqual({
    ...{ whole: true, version: feed.version, position: feed.position },
    state: { id: "s", title: "t", outputs: {}, isBusy: false, count: 1, live: null },
  });
  change({ live: { ...LIVE, text: "a" }, title: "later" });
  const { state } = JSON.parse(feed.whole());
  expect([state.title, "live" in state, "items" in state]).toEqual(["later", false, false]);
});

test("without followers nothing is sent, but everything is counted", () => {
  const { feed, change, heard, texts, stop } = followed();
  expect(feed.followers).toBe(1);
  stop();
  expect(feed.followers).toBe(0);
  const before = feed.position;
  change({ title: "x", live: { ...LIVE, text: "abc" } });
  expect([feed.position === before, heard, texts]).toEqual([false, [], []]);
  expect(feed.textAfter(null, 0).map(({ end }) => end)).toEqual([3]);
});

test("what was live before the feed began is there for those who follow", () => {
  const { feed, texts } = followed({
    live: { text: "ab", reasoning: "hm", calls: [{ id: "c", name: "n", input: "{" }] },
  });
  expect(texts).toEqual([]);
  const pieces = feed.textAfter(null, 0).map(({ json, end }) => ({ ...JSON.parse(json), end }));
  expect(pieces.map(({ at, end, channel, text }) => `${at}-${end} ${channel} ${text}`)).toEqual([
    ...["0-2 reasoning hm", "2-4 text ab", "4-5 input {"],
  ]);
  expect(pieces[2].call).toEqual({ id: "c", name: "n" });
});

test("who comes back gets the rest of the answer that they knew, or all of another", () => {
  const { feed, change } = followed({ live: { ...LIVE, text: "abcd", reasoning: "hm" } });
  const [first] = feed.textAfter(null, 0);
  const rest = (answer: string | null, at: number) =>
    feed.textAfter(answer, at).map(({ json, end }) => `${JSON.parse(json).at}-${end} ${JSON.parse(json).text}`);
  expect(rest(first!.answer, 0)).toEqual(["0-2 hm", "2-6 abcd"]);
  expect(rest(first!.answer, 2)).toEqual(["2-6 abcd"]);
  expect(rest(first!.answer, 3)).toEqual(["3-6 bcd"]);
  expect(rest(first!.answer, 6)).toEqual([]);
  expect(rest("another", 3)).toEqual(["0-2 hm", "2-6 abcd"]);
  change({ live: null });
  feed.sync();
  expect(rest(first!.answer, 0)).toEqual([]);
});

test("a call without a word of input yet is announced by itself", () => {
  const { feed, change, texts } = followed({ live: LIVE });
  change({ live: { ...LIVE, calls: [{ id: "c", name: "n", input: "" }] } });
  feed.sync();
  expect(texts).toMatchObject([{ at: 0, channel: "input", text: "", call: { id: "c", name: "n" } }]);
  expect(feed.textAfter(texts.length > 0 ? feed.textAfter(null, 0)[0]!.answer : null, 0)).toHaveLength(1);
  change({
    live: {
      ...LIVE,
      calls: [
        { id: "c", name: "n", input: "{" },
        { id: "d", name: "n", input: "[" },
      ],
    },
  });
  feed.sync();
  expect(texts.slice(1).map(({ at, text, call }) => [at, text, call])).toEqual([
    [0, "{", { id: "c", name: "n" }],
    [1, "[", { id: "d", name: "n" }],
  ]);
});

test("text, reasoning and input that grow between two looks go on; anything else is a new answer", () => {
  const calls = [{ id: "c", name: "n", input: "{" }];
  const grown: [object, object, string[]][] = [
    [{ text: "a" }, { text: "ab" }, ["1-2 text b"]],
    [{ reasoning: "a" }, { reasoning: "ab" }, ["1-2 reasoning b"]],
    [{ calls }, { calls: [{ ...calls[0], input: "{}" }] }, ["1-2 input }"]],
    [{ text: "a" }, { text: "b" }, ["0-1 text b"]],
    [{ text: "ab" }, { text: "a" }, ["0-1 text a"]],
    [{ reasoning: "a" }, { reasoning: "b" }, ["0-1 reasoning b"]],
    [{ calls }, { calls: [{ ...calls[0], input: "[" }] }, ["0-1 input ["]],
    [{ calls }, { calls: [{ ...calls[0], id: "d" }] }, ["0-1 input {"]],
    [{ calls, text: "a" }, { calls: [], text: "a" }, ["0-1 text a"]],
    [{ text: "a" }, { text: "a", calls }, ["1-2 input {"]],
    [{ text: "a", reasoning: "r" }, { text: "a", reasoning: "rs" }, ["2-3 reasoning s"]],
  ];
  for (const [before, now, expected] of grown) {
    const { feed, change, said } = followed({ live: { ...LIVE, ...before } });
    change({ live: { ...LIVE, ...now } });
    feed.sync();
    expect(said()).toEqual(expected);
  }
});

test("a piece that an event tells is added without a look at the rest, unless more than it changed", () => {
  const { change, tell, said } = followed({ live: { ...LIVE, text: "a", reasoning: "r" } });
  const { calls } = LIVE;
  change({ live: { text: "ab", reasoning: "r", calls } });
  tell({ type: "text", text: "b" } as ChatEvent);
  change({ live: { text: "ab", reasoning: "rs", calls } });
  tell({ type: "reasoning", text: "s" } as ChatEvent);
  // Both grew, and one event came.
  change({ live: { text: "abc", reasoning: "rst", calls } });
  tell({ type: "text", text: "c" } as ChatEvent);
  // The text is longer than this piece makes it: another answer.
  change({ live: { text: "abcdef", reasoning: "rst", calls } });
  tell({ type: "text", text: "d" } as ChatEvent);
  expect(said()).toEqual([
    ...["2-3 text b", "3-4 reasoning s", "4-5 reasoning t", "5-6 text c", "0-3 reasoning rst", "3-9 text abcdef"],
  ]);
});

test("while the chat is busy, changes without an event are noticed; then nobody looks", async () => {
  vi.useFakeTimers();
  const { change, tell, heard, feed } = followed();
  expect(vi.getTimerCount()).toBe(0);
  change({ isBusy: true });
  tell({ type: "changed" } as ChatEvent);
  expect(vi.getTimerCount()).toBe(1);
  change({ title: "by itself" });
  vi.advanceTimersByTime(50);
  expect(heard.at(-1)).toMatchObject({ state: { title: "by itself" } });
  change({ isBusy: false });
  vi.advanceTimersByTime(50);
  expect([heard.at(-1)?.["state"], vi.getTimerCount()]).toEqual([{ isBusy: false }, 0]);
  change({ isBusy: true });
  tell({ type: "changed" } as ChatEvent);
  feed.close();
  expect(vi.getTimerCount()).toBe(0);
  // A chat that is busy from the beginning is looked at from the beginning.
  const busy = followed({ isBusy: true });
  expect(vi.getTimerCount()).toBe(1);
  busy.feed.close();
});

test("after the end of a turn the chat is looked at once more, at once", async () => {
  const { change, tell, heard } = followed();
  tell({ type: "turn.ended", outcome: "completed", denied: 0 } as ChatEvent);
  change({ title: "after" });
  await new Promise((resolve) => setImmediate(resolve));
  expect(heard.at(-1)).toMatchObject({ state: { title: "after" } });
  tell({ type: "changed" } as ChatEvent);
  const count = heard.length;
  change({ title: "later" });
  await new Promise((resolve) => setImmediate(resolve));
  expect(heard).toHaveLength(count);
});

test("a feed that is closed says so once, to everybody, and hears nothing any more", () => {
  const { feed, closings, isSubscribed } = followed();
  const order: string[] = [];
  feed.onClose(() => order.push("closing"));
  feed.close();
  expect([closings(), order, isSubscribed(), feed.followers]).toEqual([1, ["closing"], false, 0]);
  feed.close();
  expect([closings(), order]).toEqual([1, ["closing"]]);
});

test("a list becomes another by the smallest change", () => {
  const [a, b, c, d] = ["a", "b", "c", "d"].map((id) => item(id)) as [Item, Item, Item, Item];
  expect(spliceOf([a], [a])).toBeNull();
  expect(spliceOf([a, b, d], [a, c, d])).toEqual({ at: 1, remove: 1, insert: [c] });
  expect(spliceOf([a, b], [a, b, c])).toEqual({ at: 2, remove: 0, insert: [c] });
  expect(spliceOf([a, b, c], [b, c])).toEqual({ at: 0, remove: 1, insert: [] });
  expect(spliceOf([a, a], [a])).toEqual({ at: 1, remove: 1, insert: [] });
  expect(spliceOf([], [a])).toEqual({ at: 0, remove: 0, insert: [a] });
});
