import { afterEach, expect, test, vi } from "vitest";
import type { Item } from "../../../../server/src/contract/item.ts";
import { rangeOf } from "../../../../server/src/reading/range.ts";
import { ItemPages } from "../../../src/state/item-pages.ts";

const COUNT = 100_000;
const time = (index: number): string => new Date(index * 1000).toISOString();
const all = Array.from({ length: COUNT }, (_, index): Item => {
  const common = { id: `item-${index}`, at: time(index), turn: 1 };
  if (index % 10 !== 5) return { ...common, kind: "answer", text: `answer number ${index}` };
  return { ...common, kind: "call", call: `call-${index % 1000}`, name: "read", input: {}, state: "done" };
});

afterEach(() => vi.unstubAllGlobals());

/** A server with a long conversation, which counts what it is asked. */
function served() {
  const asked = { requests: 0, bytes: 0 };
  vi.stubGlobal("fetch", async (address: string) => {
    const query = Object.fromEntries(new URL(address, "http://x").searchParams);
    const numbers = { from: Number(query["from"] ?? 0), limit: Number(query["limit"] ?? 200) };
    const last = query["last"] === undefined ? undefined : Number(query["last"]);
    const { begin, end, found } = rangeOf(all, { ...query, ...numbers, last });
    const items = all.slice(begin, end);
    const body = JSON.stringify({ cursor: null, version: null, count: COUNT, found, from: begin, items });
    asked.requests++;
    asked.bytes += body.length;
    return new Response(body);
  });
  const failures: unknown[] = [];
  const pages = new ItemPages(
    "session",
    undefined,
    () => {},
    (error) => failures.push(error),
  );
  return { pages, asked, failures };
}

test("any of 100,000 messages is reached with one request, and what surrounds it is there then", async () => {
  const { pages, asked } = served();
  await pages.ensureFirst();
  for (const index of [50_000, 3, 99_000, 77_777]) {
    Object.assign(asked, { requests: 0, bytes: 0 });
    expect(await pages.find({ message: `item-${index}`, atMs: null }, false)).toBe(index);
    pages.ensure(index - 20, index + 20);
    expect(asked.requests).toBe(1);
    expect(asked.bytes).toBeLessThan(50_000);
    expect(pages.items.value[index]).toMatchObject({ id: `item-${index}` });
  }
});

test("what is loaded is found without a request", async () => {
  const { pages, asked } = served();
  await pages.ensureFirst();
  expect(await pages.find({ message: `item-${COUNT - 7}`, atMs: null }, false)).toBe(COUNT - 7);
  expect(asked.requests).toBe(1);
});

test("a call whose id repeats is the one nearest in time; a message that is gone leads to its neighbour", async () => {
  const { pages } = served();
  await pages.ensureFirst();
  expect(await pages.find({ call: "call-5", atMs: 31_900_000 }, false)).toBe(32_005);
  expect(await pages.find({ message: "gone", atMs: 500_400 }, false)).toBe(500);
  expect(await pages.find({ message: "gone", atMs: 500_400 }, true)).toBeNull();
  expect(await pages.find({ call: "gone", atMs: 500_400 }, true)).toBeNull();
  expect(await pages.find({ message: "gone", atMs: null }, false)).toBeNull();
});

test("a server that does not answer is reported, and the page can try again", async () => {
  const { pages, failures } = served();
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("failed")));
  await pages.ensureFirst();
  expect(failures).toMatchObject([{ code: "UNREACHABLE" }]);
  expect(await pages.find({ message: "x", atMs: null }, false)).toBeNull();
  const { asked } = served();
  await pages.ensureFirst();
  expect(asked.requests).toBe(1);
  expect(pages.items.value).toHaveLength(COUNT);
});
