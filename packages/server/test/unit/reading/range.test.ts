import { expect, test } from "vitest";
import type { Item } from "../../../src/contract/item.ts";
import { rangeOf } from "../../../src/reading/range.ts";

const at = (index: number): string => new Date(index * 1000).toISOString();
const items = Array.from({ length: 1000 }, (_, index): Item => {
  const common = { id: `m${Math.floor(index / 2)}${index % 2 ? ".1" : ""}`, at: at(index), turn: 1 };
  if (index % 2 === 0) return { ...common, kind: "answer", text: "" };
  return { ...common, kind: "call", call: `call-${index % 100}`, name: "read", input: {}, state: "done" };
});

test.each([
  ["an item", { around: "m200.1" }, 401],
  ["a message", { around: "m200" }, 400],
  ["a message near the start", { around: "m1" }, 2],
  ["a call", { around: "call-1" }, 1],
  ["a call whose id repeats, near a time", { around: "call-1", near: at(390) }, 401],
  ["a time", { near: at(650) }, 650],
  ["a time after the end", { near: at(99_999) }, 999],
  ["a message that is not there, with its time", { around: "m9999", near: at(7) }, 7],
] as const)("around %s", (_what, wanted, index) => {
  const { begin, end, found } = rangeOf(items, { ...wanted, limit: 100 });
  expect(found).toBe(index);
  expect(begin).toBe(Math.max(0, index - 50));
  expect(end).toBe(begin + 100);
});

test("a message that is not there has no range", () => {
  expect(rangeOf(items, { around: "m9999", limit: 100 })).toEqual({ begin: 1000, end: 1000, found: null });
  expect(rangeOf([], { near: at(1), limit: 100 }).found).toBeNull();
});

test("a message whose id begins with that of another is not taken for a part of it", () => {
  const odd = [
    { ...items[0]!, id: "a.b" },
    { ...items[0]!, id: "a.1" },
  ] as const;
  expect(rangeOf(odd, { around: "a", limit: 10 }).found).toBe(1);
});
