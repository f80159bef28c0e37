import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import type { Database } from "../../../../../src/stores/sqlite/database/database.ts";
import {
  contradicts,
  findJournal,
  newestSeq,
  readChunks,
  readSome,
} from "../../../../../src/stores/sqlite/rows/reader.ts";
import type { Rows } from "../../../../../src/stores/sqlite/rows/rows.ts";
import { line, withoutNewline } from "../../../journal/journals.ts";
import { ToldRows, type ToldSegment } from "./sqlite-told-rows.ts";

/** P9: where a journal ends, where its segments start, and which lines of it are left. */

const ID = newId();
const LOST_MAX = 1_000_000;

/** One session with key 1: a header, and notes up to this seq. */
function told(last: number): ToldRows {
  const rows = new ToldRows();
  rows.add(
    1,
    ID,
    Array.from({ length: last - 1 }, () => ({})),
  );
  return rows;
}

describe("where a journal ends", () => {
  test.each([
    ["the row is right", 5, {}, 5],
    ["the row is behind: at the newest line", 5, { head: 3 }, 5],
    ["the row is ahead: the last lines are lost", 5, { head: 9 }, 9],
    ["the row is too far ahead: by as many as can be lost", 5, { head: 7 + LOST_MAX }, 5 + LOST_MAX],
    ["no line is left: where the row says", 0, { head: 9 }, 9],
    ["no line is left, and the row is wrong", 0, { head: LOST_MAX + 7 }, LOST_MAX],
  ])("%s", (_, last, row, expected) => {
    const rows = told(Math.max(2, last));
    if (last === 0) rows.lines.clear();
    rows.setRow(1, row);
    expect(findJournal(rows.rows, ID)).toMatchObject({ last: expected, damaged: [], session: { id: ID } });
  });

  test("if the newest line cannot be found, the row says where", () => {
    const rows = told(5);
    rows.damaged.add("newestSeq");
    expect([newestSeq(rows.rows, 1), findJournal(rows.rows, ID)!.last]).toEqual([0, 5]);
  });

  test("there is no journal without a session", () => {
    expect(findJournal(told(5).rows, newId())).toBeNull();
  });
});

describe("where segments start", () => {
  const header = (number: number, epoch = number) => ({ kind: "segment", session: ID, segment: number, epoch });

  /** Headers at seqs 1, 4 and 6; the second one starts an epoch, the third one continues it. */
  function three(): ToldRows {
    const rows = told(8);
    rows.setLine(1, 4, header(2));
    rows.setLine(1, 6, header(3, 2));
    rows.segments.set(1, [...TABLE]);
    return rows;
  }
  const TABLE: readonly ToldSegment[] = [
    { number: 1, epoch: 1, first: 1 },
    { number: 2, epoch: 2, first: 4 },
    { number: 3, epoch: 2, first: 6 },
  ];

  test("the table says so", () => {
    const found = findJournal(three().rows, ID)!;
    expect([found.segments, found.isDerived, found.damaged]).toEqual([TABLE, false, []]);
  });

  test("a segment that has just begun", () => {
    const rows = told(4);
    rows.setLine(1, 4, header(2));
    rows.segments.set(1, TABLE.slice(0, 2));
    expect(findJournal(rows.rows, ID)).toMatchObject({ isDerived: false, segments: TABLE.slice(0, 2) });
  });

  const change = (index: number, segment: Partial<ToldSegment>) => (rows: ToldRows) => {
    rows.segments.set(
      1,
      TABLE.map((one, i) => (i === index ? { ...one, ...segment } : one)),
    );
  };

  test.each<[string, (rows: ToldRows) => void]>([
    ["is empty", (rows) => rows.segments.set(1, [])],
    ["cannot be read", (rows) => rows.damaged.add("readSegments")],
    ["lacks the start of the epoch", (rows) => rows.segments.set(1, [TABLE[0]!, TABLE[2]!])],
    ["has a number twice", change(1, { number: 1 })],
    ["has impossible numbers", change(0, { number: 0 })],
    ["has a start twice", change(1, { first: 1 })],
    ["has an impossible start", change(0, { first: 0 })],
    ["has an epoch before the first", change(0, { epoch: 0 })],
    ["has an epoch that starts later", change(0, { epoch: 2 })],
    ["has a start after the end", change(2, { first: 9 })],
  ])("a table that %s is wrong: the journal says where", (_, tamper) => {
    const rows = three();
    tamper(rows);
    const found = findJournal(rows.rows, ID)!;
    expect([found.isDerived, found.damaged.map(({ segment }) => segment)]).toEqual([true, ["segments"]]);
    expect(found.segments).toEqual(TABLE);
  });

  test("derived from the journal: all of them", () => {
    const rows = three();
    expect(findJournal(rows.rows, ID, true)).toMatchObject({ isDerived: true, segments: TABLE, last: 8 });
    // A newest line that is a header counts, too.
    rows.setLine(1, 9, header(4));
    expect(findJournal(rows.rows, ID, true)!.segments).toEqual([...TABLE, { number: 4, epoch: 4, first: 9 }]);
  });

  test("derived from a journal of which nothing is left", () => {
    const rows = three();
    rows.lines.clear();
    expect(findJournal(rows.rows, ID, true)!.segments).toEqual([{ number: 1, epoch: 1, first: 1 }]);
  });

  test.each<[string, boolean, (rows: ToldRows) => void]>([
    ["is right", false, () => {}],
    ["names a line that is no header", true, change(2, { first: 7 })],
    ["lacks a header", true, (rows) => rows.segments.set(1, [...TABLE.slice(0, 2)])],
    ["names a header of another number", true, (rows) => rows.setLine(1, 6, header(4, 2))],
    ["names a header of another epoch", true, (rows) => rows.setLine(1, 6, header(3, 1))],
    ["names a damaged header", false, (rows) => rows.setLine(1, 6, null)],
    ["leaves out what only looks like one", false, (rows) => rows.setLine(1, 2, { text: '"kind":"segment"' })],
  ])("a table that %s: the lines contradict it: %s", (_, expected, tamper) => {
    const rows = three();
    tamper(rows);
    const { lines } = readSome(rows.rows, 1, 1, 8);
    const rotten = { seq: 3, bytes: withoutNewline(line(99, header(9))) };
    expect(contradicts([...lines, rotten], rows.segments.get(1)!)).toBe(expected);
  });
});

/** These rows, and how often they are read. */
function databaseOf(rows: ToldRows): { readonly database: Database; readonly reads: () => number } {
  let reads = 0;
  const attempt = <T>(_: string, work: (of: Rows) => T): T => {
    reads++;
    return work(rows.rows);
  };
  return { reads: () => reads, database: { attempt } as Database };
}

async function seqsOf(database: Database, from: number, to: number): Promise<number[][]> {
  const chunks: number[][] = [];
  for await (const lines of readChunks(database, { key: 1, from, to })) chunks.push(lines.map(({ seq }) => seq));
  return chunks;
}

describe("reading the lines of an extent", () => {
  test("in one read, if it ends there", async () => {
    const { database, reads } = databaseOf(told(8));
    expect(await seqsOf(database, 3, 6)).toEqual([[3, 4, 5, 6]]);
    expect(await seqsOf(database, 8, 8)).toEqual([[8]]);
    expect(await seqsOf(database, 9, 8)).toEqual([]);
    expect(reads()).toBe(2);
  });

  test("in several, each from where the last one ended; others work in between", async () => {
    const rows = told(8);
    rows.readLines = (_, from, to) => {
      const lines = [...rows.lines.get(1)!].filter(([seq]) => seq >= from && seq <= to).slice(0, 3);
      return { lines: lines.map(([seq, bytes]) => ({ seq, bytes })), end: false };
    };
    const { database, reads } = databaseOf(rows);
    let turns = 0;
    const count = (): void => {
      turns++;
      immediate = setImmediate(count);
    };
    let immediate = setImmediate(count);
    expect(await seqsOf(database, 1, 8)).toEqual([
      [1, 2, 3],
      [4, 5, 6],
      [7, 8],
    ]);
    clearImmediate(immediate);
    expect(reads()).toBe(3);
    expect(turns).toBeGreaterThanOrEqual(2);
  });

  test.each<[string, (rows: ToldRows) => void, number[]]>([
    ["a line is missing in the middle", (rows) => rows.lines.get(1)!.delete(4), [2, 3, 5, 6, 7, 8]],
    ["lines are missing at the end", (rows) => rows.lines.get(1)!.delete(8), [2, 3, 4, 5, 6, 7]],
    ["none is left", (rows) => rows.lines.clear(), []],
    ["a page is damaged, so one by one", (rows) => rows.damaged.add("readLines"), [2, 3, 4, 5, 6, 7, 8]],
  ])("in one read if %s", async (_, tamper, expected) => {
    const rows = told(8);
    tamper(rows);
    const { database, reads } = databaseOf(rows);
    expect(await seqsOf(database, 2, 8)).toEqual([expected]);
    expect(reads()).toBe(1);
  });

  test("one by one, 64 at a time", async () => {
    const rows = told(200);
    rows.damaged.add("readLines");
    const { database } = databaseOf(rows);
    const chunks = await seqsOf(database, 2, 200);
    expect(chunks.flat()).toEqual(Array.from({ length: 199 }, (_, i) => i + 2));
    expect(chunks.map(({ length }) => length)).toEqual([64, 64, 64, 7]);
    // A chunk that ends exactly at the end is the last one.
    expect((await seqsOf(database, 2, 129)).map(({ length }) => length)).toEqual([64, 64]);
  });

  test("a damaged line of which only its place is known counts as empty", () => {
    const rows = told(4);
    for (const call of ["readLines", "readLine"]) rows.damaged.add(call);
    expect(readSome(rows.rows, 1, 2, 4).lines).toEqual([2, 3, 4].map((seq) => ({ seq, bytes: Buffer.alloc(0) })));
  });
});
