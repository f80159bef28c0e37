import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import type { Database } from "../../../../../src/stores/sqlite/database/database.ts";
import {
  findJournal,
  hasUnknownHeader,
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

const partsOf = (rows: ToldRows): (string | undefined)[] =>
  findJournal(rows.rows, ID)!.damaged.map(({ segment }) => segment);

describe("where a journal ends", () => {
  test.each([
    ["the row is right", 5, {}, 5, []],
    ["the row is behind: at the newest line", 5, { head: 3 }, 5, []],
    ["the row is ahead: the last lines are lost", 5, { head: 9 }, 9, []],
    ["the row is far ahead: it is wrong", 5, { head: 5 + LOST_MAX + 1 }, 5, ["sessions"]],
    ["the row is ahead by as many as can be lost", 5, { head: 5 + LOST_MAX }, 5 + LOST_MAX, []],
    ["no line is left: where the row says", 0, { head: 9 }, 9, []],
    ["no line is left, and the row is wrong", 0, { head: LOST_MAX + 7 }, LOST_MAX, ["sessions"]],
    ["the row is ahead, and says that it is closed", 5, { head: 9, closed: true }, 9, []],
  ])("%s", (_, last, row, expected, damaged) => {
    const rows = told(Math.max(2, last));
    if (last === 0) rows.lines.clear();
    rows.setRow(1, row);
    const found = findJournal(rows.rows, ID)!;
    expect([found.last, found.damaged.map(({ segment }) => segment)]).toEqual([expected, damaged]);
    expect(found.session.id).toBe(ID);
  });

  test("a closed journal says so itself, whatever its row says", () => {
    const rows = told(5);
    rows.setLine(1, 5, { kind: "closed" });
    rows.setRow(1, { head: 9, closed: true });
    expect([findJournal(rows.rows, ID)!.last, partsOf(rows)]).toEqual([5, ["sessions"]]);
    // Opened again: the lines after it are lost.
    rows.setRow(1, { closed: false });
    expect([findJournal(rows.rows, ID)!.last, partsOf(rows)]).toEqual([9, []]);
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
    ["names a line that is no header", change(2, { first: 7 })],
    ["names a header of another number", (rows) => rows.setLine(1, 6, header(4, 2))],
    ["names a header of another epoch", (rows) => rows.setLine(1, 6, header(3, 1))],
    ["names a start of the epoch that is no header", (rows) => rows.setLine(1, 4, {})],
  ])("a table that %s is wrong: the journal says where", (_, tamper) => {
    const rows = three();
    tamper(rows);
    const found = findJournal(rows.rows, ID)!;
    expect([found.isDerived, found.damaged.map(({ segment }) => segment)]).toEqual([true, ["segments"]]);
    expect(found.segments[0]).toEqual(TABLE[0]);
    const [, second] = found.segments;
    if (rows.lines.get(1)!.get(4)!.includes('"segment"')) expect(second).toEqual(TABLE[1]);
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

  test.each([4, 6])("a damaged header (seq %i) is no evidence against the table", (seq) => {
    const rows = three();
    rows.setLine(1, seq, null);
    expect(findJournal(rows.rows, ID)!.isDerived).toBe(false);
  });

  test("a header that the table lacks is noticed", () => {
    const rows = three();
    const { lines } = readSome(rows.rows, 1, 1, 8);
    expect(hasUnknownHeader(lines, TABLE)).toBe(false);
    for (const missing of TABLE)
      expect(
        hasUnknownHeader(
          lines,
          TABLE.filter((one) => one !== missing),
        ),
      ).toBe(true);
    // Not one that only looks like a header, or is damaged.
    rows.setLine(1, 2, { text: '"kind":"segment"' });
    const rotten = { seq: 3, bytes: withoutNewline(line(99, header(9))) };
    expect(hasUnknownHeader([...readSome(rows.rows, 1, 1, 8).lines, rotten], TABLE)).toBe(false);
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
    ["lines are missing at the start", (rows) => rows.lines.get(1)!.delete(2), [3, 4, 5, 6, 7, 8]],
    ["lines are missing at the end", (rows) => rows.lines.get(1)!.delete(8), [2, 3, 4, 5, 6, 7]],
    ["a page is damaged", (rows) => rows.damaged.add("readLines"), [2, 3, 4, 5, 6, 7, 8]],
    ["none is left", (rows) => rows.lines.clear(), []],
  ])("one by one if %s", async (_, tamper, expected) => {
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

test("of two lines with one seq, the whole one counts; of two whole ones, the one in its place", () => {
  const rows = told(6);
  rows.damaged.add("readLines").add("readLine");
  const text = (seq: number, of: string): Buffer => withoutNewline(line(seq, { text: of }));
  const rot = Buffer.from("rot");
  const around = [
    ...[
      { seq: 2, bytes: rot, isLinked: true },
      { seq: 2, bytes: text(2, "whole"), isLinked: false },
    ],
    ...[
      { seq: 3, bytes: text(3, "whole"), isLinked: false },
      { seq: 3, bytes: rot, isLinked: true },
    ],
    ...[
      { seq: 4, bytes: text(4, "elsewhere"), isLinked: false },
      { seq: 4, bytes: text(4, "in place"), isLinked: true },
    ],
    ...[
      { seq: 5, bytes: text(5, "in place"), isLinked: true },
      { seq: 5, bytes: text(5, "elsewhere"), isLinked: false },
    ],
    // Nothing tells them apart: the first one.
    ...[
      { seq: 6, bytes: text(6, "first"), isLinked: false },
      { seq: 6, bytes: text(6, "second"), isLinked: false },
    ],
    // A damaged line is better than none: its bytes are reported.
    { seq: 7, bytes: rot, isLinked: false },
  ];
  const asked: unknown[] = [];
  const found = { ...rows, linesAround: (...all: unknown[]) => asked.push(all) && around } as unknown as Rows;
  const { lines, next, end } = readSome(found, 1, 2, 7);
  expect(asked).toEqual([[1, 2, 7]]);
  expect(lines.map(({ bytes }) => bytes.toString().match(/"text":"([^"]*)"/)?.[1] ?? bytes.toString())).toEqual([
    ...["whole", "whole", "in place", "in place", "first", "rot"],
  ]);
  expect([next, end]).toEqual([8, true]);
});
