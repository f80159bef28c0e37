import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import type { Listed, ListOptions, Summariser } from "../../../../../src/journal/contract.ts";
import type { JournalRecord } from "../../../../../src/journal/record.ts";
import { listSessions } from "../../../../../src/stores/sqlite/rows/list.ts";
import { toSessionRow } from "../../../../../src/stores/sqlite/rows/session-row.ts";
import { AT } from "../../../journal/journals.ts";
import { ToldRows } from "./sqlite-told-rows.ts";

const at = (day: number): string => `2020-01-0${day}T00:00:00.000Z`;
const ioError = (): Error => Object.assign(new Error("SQLite failed"), { errcode: 10 });

/** Counts the notes. */
const counting: Summariser = {
  add: (row: unknown, record: JournalRecord) => {
    const notes = ((row ?? {}) as { notes?: number }).notes ?? 0;
    return { notes: notes + (record.kind === "note" ? 1 : 0) };
  },
  carries: () => false,
} as unknown as Summariser;

/** Sessions of the same instant are sorted by their ids. */
const IDS = [newId(), newId(), newId(), newId()].sort();

/** Four sessions that rest, the first one the oldest. */
function told(): ToldRows {
  const rows = new ToldRows();
  for (const [i, id] of IDS.entries())
    rows.add(i + 1, id, [{}], { at: at(i + 1), closed: true, summary: { notes: 1, odd: i % 2 === 1 } });
  return rows;
}

function list(rows: ToldRows, options: ListOptions = {}) {
  return listSessions(rows.rows, counting, options);
}

const namesOf = (sessions: readonly Listed[]): number[] => sessions.map(({ id }) => IDS.indexOf(id));

/** All pages, one after another. */
function pages(rows: ToldRows, options: ListOptions): number[][] {
  const found: number[][] = [];
  for (let after: string | undefined; ; ) {
    const { sessions, next } = list(rows, after === undefined ? options : { ...options, after });
    found.push(namesOf(sessions));
    if (next === undefined || found.length > 9) return found;
    after = next;
  }
}

describe("sessions that rest", () => {
  test("are listed newest first, in pages", () => {
    expect(pages(told(), {})).toEqual([[3, 2, 1, 0]]);
    expect(pages(told(), { limit: 4 })).toEqual([[3, 2, 1, 0]]);
    expect(pages(told(), { limit: 3 })).toEqual([[3, 2, 1], [0]]);
    expect(pages(told(), { limit: 1 })).toEqual([[3], [2], [1], [0]]);
    expect(list(told(), { limit: 0 })).toEqual({ sessions: [] });
  });

  test("have what their rows say; no line is read", () => {
    const rows = told();
    rows.lines.clear();
    rows.damaged.add("readLine").add("readLines").add("newestSeq");
    rows.setRow(4, { at: AT, stamp: at(4) });
    const { sessions } = list(rows);
    expect(sessions.slice(0, 2)).toEqual([
      { id: IDS[3], at: AT, stamp: at(4), head: 2, closed: true, summary: { notes: 1, odd: true } },
      { id: IDS[2], at: at(3), head: 2, closed: true, summary: { notes: 1, odd: false } },
    ]);
    expect(Object.hasOwn(sessions[1]!, "stamp")).toBe(false);
  });

  test("are filtered by their summaries; a missing member is null", () => {
    expect(pages(told(), { where: { odd: true } })).toEqual([[3, 1]]);
    expect(pages(told(), { where: { odd: true, notes: 1 }, limit: 1 })).toEqual([[3], [1]]);
    expect(pages(told(), { where: { odd: true, notes: 2 } })).toEqual([[]]);
    expect(pages(told(), { where: { missing: null, toString: null } })).toEqual([[3, 2, 1, 0]]);
    expect(pages(told(), { where: { missing: 1 } })).toEqual([[]]);
  });

  test("are read as far as the page needs (P7)", () => {
    const rows = told();
    list(rows, { limit: 1 });
    expect(rows.walks).toEqual(["listed 4", "listed 3"]);
  });
});

describe("sessions whose rows are behind", () => {
  /** The oldest session and the third one have newer lines. */
  function behind(): ToldRows {
    const rows = told();
    for (const key of [1, 3]) {
      rows.setRow(key, { closed: false });
      rows.openKeys.add(key);
      for (const seq of [3, 4]) rows.setLine(key, seq, {});
    }
    return rows;
  }

  test("come where their newest lines put them, with what those say", () => {
    expect(pages(behind(), {})).toEqual([[2, 0, 3, 1]]);
    expect(pages(behind(), { limit: 1 })).toEqual([[2], [0], [3], [1]]);
    const [first] = list(behind()).sessions;
    expect(first).toEqual({ id: IDS[2], at: AT, head: 4, closed: false, summary: { notes: 3 } });
  });

  test("are filtered by what they are now", () => {
    expect(pages(behind(), { where: { notes: 3 } })).toEqual([[2, 0]]);
    expect(pages(behind(), { where: { notes: 1 } })).toEqual([[3, 1]]);
    expect(pages(behind(), { after: `${at(4)}_${IDS[3]}` })).toEqual([[1]]);
  });

  test("a damaged line is passed over", () => {
    const rows = behind();
    rows.setLine(1, 3, null);
    expect(list(rows).sessions[1]).toMatchObject({ head: 4, summary: { notes: 2 } });
  });

  test("one that the disk cannot read is marked, and the others are listed (P9)", () => {
    const rows = behind();
    const { readLines } = rows;
    rows.readLines = (key, from, to) => {
      if (key === 1) throw ioError();
      return readLines(key, from, to);
    };
    const { sessions } = list(rows);
    expect(namesOf(sessions)).toEqual([2, 3, 1, 0]);
    expect(sessions.at(-1)).toMatchObject({ head: 2, summary: { notes: 1 }, unreadable: { code: "STORE_IO" } });
    expect(sessions.filter((one) => "unreadable" in one)).toHaveLength(1);
    rows.readLines = () => {
      throw new TypeError("a fault");
    };
    expect(() => list(rows)).toThrow("a fault");
  });
});

describe("a row that says nothing usable", () => {
  test("is made again from all lines, and keeps its place", () => {
    const rows = told();
    rows.setRow(2, { summary: undefined });
    expect(list(rows).sessions[2]).toEqual({
      ...{ id: IDS[1], at: AT, stamp: at(2), head: 2, closed: false, summary: { notes: 1 } },
    });
  });

  test("has no summary, if the disk cannot read its lines", () => {
    const rows = told();
    rows.setRow(2, { summary: undefined });
    rows.readLines = () => {
      throw ioError();
    };
    expect(list(rows).sessions[2]).toMatchObject({ id: IDS[1], summary: null, unreadable: { code: "STORE_IO" } });
  });
});

test("where table and indexes disagree, the table and the journals are consulted", () => {
  const rows = told();
  rows.isSound = false;
  rows.setRow(1, { id: newId() });
  rows.add(5, "not an id");
  rows.lines.delete(5);
  expect(namesOf(list(rows).sessions)).toEqual([3, 2, 1, 0]);
  expect(rows.walks).toEqual(["sessions"]);
  expect(pages(rows, { limit: 3 })).toEqual([[3, 2, 1], [0]]);
});

describe("a row of the table", () => {
  const stored = { key: 1, id: "i", at: "a", written: null, head: 2, closed: 1, trashed: 0 };

  test.each([
    ["an object", '{"a":[1]}', { a: [1] }],
    ["nothing", "null", null],
    ["a list", "[1]", undefined],
    ["a number", "1", undefined],
    ["not JSON", "{", undefined],
    ["missing", null, undefined],
    ["nested 64 deep", `${'{"a":'.repeat(63)}{}${"}".repeat(63)}`, expect.anything()],
    ["nested deeper", `${'{"a":'.repeat(64)}{}${"}".repeat(64)}`, undefined],
    ["a list of that many", `{"a":[${Array.from({ length: 100 }, () => "[]").join()}]}`, expect.anything()],
    ["deep in lists", `{"a":${"[".repeat(64)}${"]".repeat(64)}}`, undefined],
  ])("its summary is %s", (_, summary, expected) => {
    expect(toSessionRow({ ...stored, summary }).summary).toEqual(expected);
  });

  test("closed and deleted are what it says", () => {
    const flags = (closed: number, trashed: number): boolean[] => {
      const row = toSessionRow({ ...stored, closed, trashed, summary: null });
      return [row.closed, row.isTrashed];
    };
    expect([flags(1, 0), flags(0, 1)]).toEqual([
      [true, false],
      [false, true],
    ]);
  });

  test("has no values that are not of their type", () => {
    const rest = { closed: true, isTrashed: false, summary: {} };
    const row = { ...stored, written: "w", summary: "{}" };
    expect(toSessionRow(row)).toEqual({ key: 1, id: "i", at: "w", stamp: "a", head: 2, ...rest });
    expect(toSessionRow({ ...row, written: null })).toMatchObject({ at: "a", stamp: "a" });
    const nothing = { ...row, id: null, written: null, at: null, head: null };
    expect(toSessionRow(nothing)).toEqual({ key: 1, id: "", at: "", stamp: "", head: 0, ...rest });
  });
});
