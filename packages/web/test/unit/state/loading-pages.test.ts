import { afterEach, expect, test, vi } from "vitest";
import type { Item } from "../../../src/api/wire.ts";
import { ItemPages } from "../../../src/state/item-pages.ts";

interface PageRequest {
  readonly query: string;
  readonly answer: (from: number, items: readonly Item[], own?: object) => Promise<void>;
  readonly fail: () => Promise<void>;
}

afterEach(() => vi.unstubAllGlobals());

const time = (index: number): string => new Date(index * 1000).toISOString();
const answer = (id: string, second = 0): Item => ({ kind: "answer", id, at: time(second), turn: 1, text: id });
const toolCall = (id: string, call: string, second: number): Item => ({
  ...{ kind: "call", id, at: time(second), turn: 1, call, name: "read", input: {}, state: "done" },
});
const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => answer(`${from + at}`));
const ids = (pages: ItemPages) => Array.from(pages.items.value, (item) => item?.id);
const flush = () => new Promise((resolve) => setImmediate(resolve));

/** Pages of a conversation, and the requests that wait for their answers. */
function paged({ count = 300, version = null as string | null, until = undefined as number | undefined } = {}) {
  const asked: PageRequest[] = [];
  const [learned, failures]: [string[][], unknown[]] = [[], []];
  vi.stubGlobal("fetch", (address: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    asked.push({
      query: decodeURIComponent(new URL(address, "http://x").search),
      answer: async (from, items, own) => {
        resolve(Response.json({ cursor: null, version, count, found: null, from, items, ...own }));
        for (let turns = 0; turns < 5; turns++) await flush();
      },
      fail: async () => {
        reject(new TypeError("failed"));
        for (let turns = 0; turns < 5; turns++) await flush();
      },
    });
    return promise;
  });
  const pages = new ItemPages(
    ...(["s", until, (items: readonly Item[]) => learned.push(items.map(({ id }) => id))] as const),
    (error) => failures.push(error),
  );
  return { pages, asked, learned, failures };
}

const start = (pages: ItemPages, items: readonly Item[], own: object = {}) =>
  pages.start({ cursor: null, version: null, count: items.length, found: null, from: 0, items: [...items], ...own });

test("the end of a conversation is loaded once, unless that failed", async () => {
  const { pages, asked, learned, failures } = paged({ until: 9 });
  const [one, other] = [pages.ensureFirst(), pages.ensureFirst()];
  expect(asked.map(({ query }) => query)).toEqual(["?last=200&until=9"]);
  await asked.shift()!.fail();
  await Promise.all([one, other]);
  expect([failures.length, pages.items.value]).toEqual([1, []]);
  const again = pages.ensureFirst();
  await asked.shift()!.answer(298, [answer("x"), answer("y")]);
  await again;
  expect([ids(pages).slice(297), learned]).toEqual([[undefined, "x", "y"], [["x", "y"]]]);
  await pages.ensureFirst();
  expect(asked).toEqual([]);
});

test("each missing page is asked for once, and waited for if one item is wanted", async () => {
  const { pages, asked } = paged();
  start(pages, [], { count: 300 });
  pages.ensure(0, 250);
  pages.ensure(50, 150);
  expect(asked.map(({ query }) => query)).toEqual([
    ...["?from=0&limit=100", "?from=100&limit=100", "?from=200&limit=100"],
  ]);
  await asked[0]!.answer(0, numbered(0, 100));
  await pages.ensureIndex(99);
  expect(asked).toHaveLength(3);
  await asked[1]!.fail();
  asked.length = 0;
  let isThere = false;
  const waiting = pages.ensureIndex(199).then(() => (isThere = true));
  await flush();
  expect([asked[0]?.query, isThere]).toEqual(["?from=100&limit=100", false]);
  await asked[0]!.answer(100, numbered(100, 200));
  await waiting;
  expect(pages.items.value[199]).toMatchObject({ id: "199" });
});

test("a page that stays incomplete is asked for three times, and later again", async () => {
  const { pages, asked } = paged();
  start(pages, [], { count: 300 });
  pages.ensure(0, 10);
  for (let tries = 1; tries <= 3; tries++) {
    expect(asked).toHaveLength(tries);
    await asked[tries - 1]!.answer(0, numbered(0, 99));
  }
  expect(asked).toHaveLength(3);
  pages.ensure(0, 10);
  expect(asked).toHaveLength(4);
});

test("a change is the next one, or known, or the end is read", async () => {
  const { pages, asked } = paged();
  start(pages, [answer("a"), answer("b")], { version: "v.1" });
  const insert = (id: string) => ({ at: 1, remove: 0, insert: [answer(id)] });
  pages.step("v.1", insert("known"));
  pages.step("v.2", undefined);
  expect(ids(pages)).toEqual(["a", "b"]);
  pages.step("v.2", insert("c"));
  pages.step("v.2", insert("twice"));
  expect([ids(pages), asked]).toEqual([["a", "c", "b"], []]);
  pages.step("v.4", insert("beyond"));
  expect(ids(pages)).toEqual(["a", "c", "b"]);
  expect(asked.map(({ query }) => query)).toEqual(["?last=200"]);
  await asked[0]!.answer(0, [answer("a"), answer("z")], { version: "v.4", count: 2 });
  expect(ids(pages)).toEqual(["a", "z"]);
  pages.step("v.5", insert("d"));
  expect(ids(pages)).toEqual(["a", "d", "z"]);
});

test("the end that is read keeps what is before it, if it fits", async () => {
  const { pages, asked } = paged();
  start(pages, numbered(0, 4));
  const read = async (from: number, items: readonly Item[], count: number) => {
    void pages.readEnd();
    await asked.shift()!.answer(from, items, { count });
    return ids(pages);
  };
  expect(await read(2, [answer("2"), answer("new")], 4)).toEqual(["0", "1", "2", "new"]);
  expect(await read(2, [answer("other")], 3)).toEqual([undefined, undefined, "other"]);
  expect(await read(0, [answer("x")], 1)).toEqual(["x"]);
  // Nothing is known of what was there before.
  expect(await read(3, [answer("y")], 4)).toEqual([undefined, undefined, undefined, "y"]);
});

test("the end is asked for three times at most while others tell something else", async () => {
  const { pages, asked } = paged();
  start(pages, numbered(0, 4));
  let isRead = false;
  const reading = pages.readEnd().then(() => (isRead = true));
  for (let tries = 1; tries <= 3; tries++) {
    expect([asked.length, isRead]).toEqual([tries, false]);
    start(pages, numbered(0, 5));
    await asked[tries - 1]!.answer(0, [answer("late")], { count: 1 });
  }
  await reading;
  expect([asked.length, ids(pages)]).toEqual([3, ["0", "1", "2", "3", "4"]]);
});

test("a page that tells of changes to come waits until the end is read", async () => {
  const { pages, asked, learned } = paged({ version: "v.2" });
  start(pages, [], { count: 300, version: "v.1" });
  pages.ensure(0, 10);
  await asked[0]!.answer(0, numbered(0, 100));
  expect([asked.map(({ query }) => query)[1], learned, pages.items.value[0]]).toEqual(["?last=200", [], undefined]);
  await asked[1]!.answer(100, numbered(100, 300));
  expect([ids(pages).includes(undefined), learned.length, asked.length]).toEqual([false, 1, 2]);
});

test("a page of a later version is left out if the end cannot be read", async () => {
  const { pages, asked, learned } = paged({ version: "v.2" });
  start(pages, [], { count: 300, version: "v.1" });
  pages.ensure(0, 10);
  await asked[0]!.answer(0, numbered(0, 100));
  await asked[1]!.fail();
  expect([pages.items.value[0], learned, asked.length]).toEqual([undefined, [], 2]);
});

test("of a page, what is before a change is kept, unless the page shows the change", async () => {
  const tell = async (version: string | null) => {
    const { pages, asked } = paged({ version });
    start(pages, [], { count: 150, version: "v.1" });
    pages.ensure(0, 10);
    pages.step("v.2", { at: 2, remove: 1, insert: [answer("new")] });
    await asked[0]!.answer(0, [...numbered(0, 2), answer("new"), ...numbered(3, 100)], { count: 150 });
    return [ids(pages).slice(0, 4), pages.items.value.length];
  };
  expect(await tell("v.1")).toEqual([["0", "1", "new", undefined], 150]);
  expect(await tell(null)).toEqual([["0", "1", "new", undefined], 150]);
  expect(await tell("v.2")).toEqual([["0", "1", "new", "3"], 150]);
});

test("a longer conversation makes room for what is known of it, a shorter one takes nothing away", async () => {
  const { pages, asked } = paged();
  start(pages, numbered(0, 3), { count: 5 });
  pages.ensure(0, 5);
  await asked[0]!.answer(0, numbered(0, 7), { count: 7 });
  expect(ids(pages)).toEqual(["0", "1", "2", "3", "4", "5", "6"]);
  void pages.find({ message: "gone", atMs: null }, false);
  await asked[1]!.answer(0, numbered(0, 2), { count: 2 });
  expect(pages.items.value).toHaveLength(7);
});

test("a message is known by its id or that of one of its parts, a call by its own", async () => {
  const { pages, asked } = paged();
  start(pages, [
    ...[answer("m"), answer("n.1"), toolCall("o.2", "c", 10), toolCall("p", "c", 20), answer("c")],
    toolCall("q", "other", 14),
  ]);
  const find = (message: string) => pages.find({ message, atMs: null }, true);
  expect([await find("m"), await find("n"), await find("n.1"), await find("o"), await find("c")]).toEqual([
    ...[0, 1, 1, 2, 4],
  ]);
  const call = (atMs: number | null) => pages.find({ call: "c", atMs }, true);
  expect([await call(null), await call(9000), await call(14_000), await call(15_000), await call(16_000)]).toEqual([
    ...[2, 2, 2, 2, 3],
  ]);
  expect(asked).toEqual([]);
});

test("what is not known is asked for: a call by its time, a message by its time only if a neighbour will do", async () => {
  const { pages, asked } = paged();
  start(pages, [], { count: 300 });
  const near = `&near=${time(5)}`;
  const cases: [wanted: Parameters<ItemPages["find"]>[0], isExact: boolean, query: string][] = [
    [{ message: "m", atMs: 5000 }, false, `?around=m${near}&limit=200`],
    [{ message: "m", atMs: 5000 }, true, "?around=m&limit=200"],
    [{ message: "m", atMs: null }, false, "?around=m&limit=200"],
    [{ call: "c", atMs: 5000 }, true, `?around=c${near}&limit=200`],
    [{ call: "c", atMs: 5000 }, false, `?around=c${near}&limit=200`],
    [{ call: "c", atMs: null }, true, "?around=c&limit=200"],
    [{ atMs: 5000 }, false, `?near=${time(5)}&limit=200`],
  ];
  for (const [wanted, isExact, query] of cases) {
    const finding = pages.find(wanted, isExact);
    expect(asked[0]?.query).toBe(query);
    await asked.shift()!.answer(0, []);
    expect(await finding).toBeNull();
  }
});

test("a call that is known is asked for all the same while another may have its id", async () => {
  const { pages, asked } = paged();
  start(pages, [toolCall("a", "c", 10)], { count: 3 });
  const finding = pages.find({ call: "c", atMs: 30_000 }, true);
  await asked.shift()!.answer(2, [toolCall("b", "c", 30)], { found: 2, count: 3 });
  expect(await finding).toBe(2);
  expect(await pages.find({ call: "c", atMs: null }, true)).toBe(0);
  expect(asked).toEqual([]);
});

test("what was found is where it is by now; what is something else is found only if that will do", async () => {
  const { pages, asked } = paged({ version: "v.1" });
  start(pages, [], { count: 3, version: "v.1" });
  const answered = async (isExact: boolean, message: string, change = false) => {
    const finding = pages.find({ message, atMs: 0 }, isExact);
    if (change) pages.step("v.2", { at: 0, remove: 0, insert: [answer("new")] });
    await asked.shift()!.answer(0, [answer("a"), answer("b"), answer("d")], { found: 1, count: 3 });
    return finding;
  };
  expect(await answered(true, "x")).toBeNull();
  expect(await answered(false, "x")).toBe(1);
  // Moved by what was inserted meanwhile.
  expect(await answered(false, "x", true)).toBe(2);
  expect(ids(pages)).toEqual(["new", "a", "b", "d"]);
  const gone = pages.find({ message: "x", atMs: 0 }, false);
  pages.step("v.3", { at: 2, remove: 1, insert: [] });
  await asked.shift()!.answer(0, [answer("new"), answer("a"), answer("b")], { found: 2, version: "v.2" });
  expect(await gone).toBeNull();
});

test("what is found is found at any place, also where it was not sent", async () => {
  const { pages, asked } = paged();
  start(pages, [], { count: 300 });
  const found = async (index: number, items: readonly Item[]) => {
    const finding = pages.find({ message: "x", atMs: 0 }, false);
    await asked.shift()!.answer(0, items, { found: index });
    return finding;
  };
  expect(await found(0, [answer("a")])).toBe(0);
  expect(await found(250, [answer("a")])).toBe(250);
});

test("an end that is older than what is known is not asked for again", async () => {
  const { pages, asked } = paged();
  start(pages, [answer("a")], { version: "v.1" });
  void pages.readEnd();
  start(pages, [answer("b")], { version: "v.5" });
  await asked[0]!.answer(0, [answer("late")], { version: "v.4", count: 1 });
  expect([ids(pages), asked.length]).toEqual([["b"], 1]);
});

test("after the end nothing is loaded, learned or found", async () => {
  const { pages, asked, learned } = paged({ version: "v.2" });
  start(pages, [], { count: 300, version: "v.1" });
  pages.ensure(0, 10);
  const finding = pages.find({ message: "1", atMs: null }, false);
  await asked[0]!.answer(0, numbered(0, 100));
  // It reads the end first, and is closed meanwhile.
  pages.close();
  for (const request of asked.slice(1)) await request.answer(0, numbered(0, 100), { found: 1 });
  expect([await finding, learned, pages.items.value[0]]).toEqual([null, [], undefined]);
});
