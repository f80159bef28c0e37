import { expect, test } from "vitest";
import type { Item, Summary } from "../../../src/api/wire.ts";
import { epochAt, timeInId } from "../../../src/state/epochs.ts";
import { choicesIn, mergeSessions, NO_FILTERS, passes } from "../../../src/state/filters.ts";
import { draftText, withText } from "../../../src/state/live-text.ts";
import { hashOf, isOffered, parseRoute } from "../../../src/state/parse-route.ts";
import {
  commonLength,
  missingPages,
  PAGE,
  parallelCalls,
  withRange,
  withSplice,
} from "../../../src/state/sparse-items.ts";

const time = (second: number): string => new Date(second * 1000).toISOString();
const prompt = (id: string, second = 0): Item => ({ kind: "prompt", id, at: time(second), turn: 1, text: id });
const toolCall = (id: string): Item => ({
  kind: "call",
  id,
  at: time(0),
  turn: 1,
  call: `c-${id}`,
  name: "read",
  input: {},
  state: "done",
});

test("a loaded range is filled in, and the rest stays unknown", () => {
  const items = withRange([], 8, [prompt("a"), prompt("b")], 10);
  expect(items).toHaveLength(10);
  expect(items[0]).toBeUndefined();
  expect(items[9]).toMatchObject({ id: "b" });
  expect(withRange(items, 0, [], 4)).toHaveLength(4);
});

test("a change of the conversation moves what follows, also where nothing is loaded", () => {
  const items = withSplice(withRange([], 9, [prompt("z")], 10), 5, 2, [prompt("new")]);
  expect(items).toHaveLength(9);
  expect(items[5]).toMatchObject({ id: "new" });
  expect(items[8]).toMatchObject({ id: "z" });
});

test("only pages with something missing are loaded", () => {
  const whole = Array.from({ length: PAGE }, (_, index) => prompt(String(index)));
  const items = withRange([], 0, whole, 3 * PAGE);
  expect(missingPages(items, 0, PAGE + 5)).toEqual([PAGE]);
  expect(missingPages(items, -30, 10)).toEqual([]);
  expect(missingPages(items, PAGE, 10 * PAGE)).toEqual([PAGE, 2 * PAGE]);
});

test("the calls of one message are drawn side by side, in the row of the first", () => {
  const items = [prompt("p"), toolCall("m"), toolCall("m.1"), toolCall("m.2"), toolCall("other")];
  expect(parallelCalls(items, 1)?.map(({ id }) => id)).toEqual(["m", "m.1", "m.2"]);
  expect(parallelCalls(items, 2)).toBeNull();
  expect(parallelCalls(items, 4)).toHaveLength(1);
  expect(parallelCalls(items, 0)).toBeNull();
});

test("a fork has its beginning in common with its source", () => {
  expect(commonLength([prompt("a"), prompt("b"), prompt("c")], [prompt("a"), prompt("b"), prompt("x")])).toBe(2);
  expect(commonLength([], [prompt("a")])).toBe(0);
});

test("an id of Holdfast's tells when its message was recorded", () => {
  expect(timeInId("0199f3a1-5b00-7000-8000-000000000001.2")).toBe(0x0199f3a15b00);
  expect([timeInId("msg_123"), timeInId("0199f3a1-5b00-4000-8000-000000000001")]).toEqual([null, null]);
});

test("a time is in the conversation that was replaced next, or in the current one", () => {
  const epoch = (until: number) => ({ until, from: time(0), to: time(until), reason: "clear", messages: 1 });
  const epochs = [epoch(10), epoch(20)];
  expect([5, 10, 19, 20, 99].map((second) => epochAt(epochs, second * 1000)?.until)).toEqual([
    ...[10, 20, 20, undefined, undefined],
  ]);
});

test("streamed text is joined, and nothing is doubled after a reconnect", () => {
  const piece = (at: number, text: string, answer = "a") => ({ answer, at, channel: "text" as const, text });
  let live = withText(null, piece(0, "Hello "));
  live = withText(live, piece(6, "world"));
  live = withText(live, piece(0, "Hello world, again"));
  expect(live.text).toBe("Hello world, again");
  expect(withText(live, piece(0, "Next", "b")).text).toBe("Next");
  const thought = withText(null, { answer: "a", at: 0, channel: "reasoning", text: "Hm." });
  const called = withText(thought, {
    answer: "a",
    at: 3,
    channel: "input",
    text: '{"p',
    call: { id: "1", name: "read" },
  });
  expect(
    withText(called, { answer: "a", at: 6, channel: "input", text: 'ath"', call: { id: "1", name: "read" } }),
  ).toMatchObject({
    reasoning: "Hm.",
    calls: [{ name: "read", input: '{"path"' }],
  });
});

test("another process's words come by its draft records", () => {
  const one = draftText(null, { id: "d", parts: [{ part: 0, text: "Once " }] });
  expect(draftText(one, { id: "d", parts: [{ part: 0, text: "more" }] })?.text).toBe("Once more");
  expect(draftText(one, { id: "d", discarded: "retry" })).toBeNull();
});

const session = (id: string, second: number, more: Partial<Summary> = {}): Summary => ({
  id,
  title: id,
  at: time(second),
  turns: 1,
  queued: 0,
  status: "idle",
  here: false,
  ...more,
});

test("news of sessions take the place of what was known, newest first", () => {
  const known = [session("b", 20), session("a", 10)];
  expect(mergeSessions(known, [session("a", 30, { status: "running" })]).map(({ id, status }) => [id, status])).toEqual(
    [
      ["a", "running"],
      ["b", "idle"],
    ],
  );
  expect(mergeSessions([], known)).toEqual(known);
});

test("filters: folder, agent, status, date", () => {
  const one = session("a", 86_400 * 10, { cwd: "/w", app: "x", status: "waiting" });
  const now = 86_400_000 * 12;
  expect(passes(one, NO_FILTERS, now)).toBe(true);
  expect(passes(one, { ...NO_FILTERS, folder: "/other" }, now)).toBe(false);
  expect(passes(one, { ...NO_FILTERS, folder: "/w", agent: "x", status: "waiting", days: 7 }, now)).toBe(true);
  expect(passes(one, { ...NO_FILTERS, days: 1 }, now)).toBe(false);
  expect(choicesIn([one, session("b", 1, { cwd: "/v" }), session("c", 1, { cwd: "/v" })]).folders).toEqual([
    "/v",
    "/w",
  ]);
});

const ID = "0199f3a1-0000-7000-8000-000000000001";

test("addresses lead to sessions, views and messages; anything else to the list", () => {
  expect(parseRoute(`#/${ID}/files`)).toEqual({ session: ID, tab: "files", item: null, until: null });
  expect(parseRoute(hashOf({ session: ID, item: "a/b" }))).toEqual({
    ...{ session: ID, tab: "conversation", item: "a/b", until: null },
  });
  expect(parseRoute(hashOf({ session: ID, until: 17, item: "a" }))).toMatchObject({ until: 17, item: "a" });
  for (const wrong of ["until-", "until-0", "until-x", "until-1e5", "until-99999999999999999999"])
    expect(parseRoute(`#/${ID}/${wrong}`).until).toBeNull();
  for (const hash of ["", "#/", "#/../../etc", "#/%E0%A4%A", `#/${ID.toUpperCase()}`])
    expect(parseRoute(hash).session).toBeNull();
  expect(parseRoute(`#/${ID}/nonsense`).tab).toBe("conversation");
});

test("a read-only link offers the views of its own session alone", () => {
  const offered = (isOwner: boolean, isFork: boolean) =>
    (["conversation", "files", "usage", "tree", "compare"] as const).filter((tab) =>
      isOffered(tab, { isOwner, isFork }),
    );
  expect(offered(true, true)).toEqual(["conversation", "files", "usage", "tree", "compare"]);
  expect(offered(true, false)).toEqual(["conversation", "files", "usage", "tree"]);
  expect(offered(false, true)).toEqual(["conversation", "files", "usage"]);
});
