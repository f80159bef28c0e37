import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import type { Listed, ListOptions } from "../../../src/journal/contract.ts";
import { listCursor, newestFirst, pageOf, parseListCursor } from "../../../src/stores/page.ts";

const [A, B, C] = [newId(), newId(), newId()].sort() as [string, string, string];
const at = (day: number): string => `2026-01-0${day}T00:00:00.000Z`;
const row = (id: string, day: number, more: Partial<Listed> = {}): Listed => ({
  ...{ id, at: at(day), head: 3, closed: true, summary: null },
  ...more,
});
const idsOf = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id);

test("newest first; of the same instant, the larger id first; a stamp counts more than the time", () => {
  const rows = [row(A, 1), row(B, 2), row(C, 2)];
  expect(idsOf([...rows].sort(newestFirst))).toEqual([C, B, A]);
  expect(idsOf([...rows].reverse().sort(newestFirst))).toEqual([C, B, A]);
  expect(newestFirst(rows[0]!, rows[0]!)).toBe(0);
  const ahead = row(A, 1, { stamp: at(9) });
  expect(idsOf([rows[1]!, ahead].sort(newestFirst))).toEqual([A, B]);
  expect(idsOf([ahead, rows[1]!].sort(newestFirst))).toEqual([A, B]);
});

describe("a page", () => {
  const rows = [row(C, 3), row(B, 2), row(A, 1)];
  const pages = (options: ListOptions): (string | undefined)[][] => {
    const found: (string | undefined)[][] = [];
    for (let after: string | undefined; ; ) {
      const { sessions, next } = pageOf(rows, { ...options, ...(after === undefined ? {} : { after }) });
      found.push(idsOf(sessions));
      if (next === undefined) return found;
      after = next;
    }
  };

  test("has all rows without a limit, and is followed by another only if more are left", () => {
    expect(pages({})).toEqual([[C, B, A]]);
    expect(pages({ limit: 3 })).toEqual([[C, B, A]]);
    expect(pages({ limit: 2 })).toEqual([[C, B], [A]]);
    expect(pages({ limit: 1 })).toEqual([[C], [B], [A]]);
    expect(pageOf(rows, { limit: 0 })).toEqual({ sessions: [] });
    expect(pageOf([], { limit: 1 })).toEqual({ sessions: [] });
  });

  test("continues after a row that is gone, or that has moved", () => {
    const after = listCursor(row(B, 2));
    expect(idsOf(pageOf([row(C, 3), row(A, 1)], { after }).sessions)).toEqual([A]);
    expect(idsOf(pageOf([row(B, 4), row(C, 3), row(A, 1)], { after }).sessions)).toEqual([A]);
  });

  test("has what is known of each row, and no more", () => {
    const unreadable = { code: "STORE_IO", message: "broken" } as const;
    const given = { ...row(A, 1, { stamp: at(2), unreadable, summary: { title: "x" } }), key: 7 };
    const { sessions } = pageOf([given, row(B, 1, { stamp: at(1) })], {});
    expect(sessions).toEqual([
      { id: A, at: at(1), stamp: at(2), head: 3, closed: true, summary: { title: "x" }, unreadable },
      { id: B, at: at(1), head: 3, closed: true, summary: null },
    ]);
    expect(sessions.map((one) => Object.hasOwn(one, "stamp"))).toEqual([true, false]);
    expect(sessions.map((one) => Object.hasOwn(one, "unreadable"))).toEqual([true, false]);
  });

  test("has the rows whose summaries have these members; a missing one is null", () => {
    const summaries: Listed["summary"][] = [{ a: 1, b: 2 }, { a: 1 }, { a: null }, null, "text", ["a"], { a: 2, b: 2 }];
    const some = summaries.map((summary, i) => row(A, 9 - i, { summary }));
    const matching = (where: NonNullable<ListOptions["where"]>): Listed["summary"][] =>
      pageOf(some, { where }).sessions.map(({ summary }) => summary);
    expect(matching({ a: 1 })).toEqual([{ a: 1, b: 2 }, { a: 1 }]);
    expect(matching({ a: 1, b: 2 })).toEqual([{ a: 1, b: 2 }]);
    expect(matching({ a: null })).toEqual([{ a: null }, null, "text", ["a"]]);
    expect(matching({ toString: null })).toEqual(summaries);
    // Rows that do not match are not counted.
    expect(pageOf(some, { where: { b: 2 }, limit: 1 }).next).toBeDefined();
    expect(pageOf(some, { where: { a: 2 }, limit: 1 }).next).toBeUndefined();
  });
});

test("a cursor leads back to its place; anything else is refused", () => {
  expect(parseListCursor(listCursor(row(A, 1)))).toEqual({ at: at(1), id: A });
  expect(parseListCursor(listCursor(row(A, 1, { stamp: at(2) })))).toEqual({ at: at(2), id: A });
  for (const cursor of ["", "x", `_${A}`, A, `${at(1)}_${A}x`, `${at(1)}_`])
    expect(() => parseListCursor(cursor), cursor).toThrow(expect.objectContaining({ code: "CURSOR_STALE" }));
  const long = "x".repeat(500);
  expect(() => parseListCursor(long)).toThrow(expect.objectContaining({ facts: { cursor: "x".repeat(80) } }));
});
