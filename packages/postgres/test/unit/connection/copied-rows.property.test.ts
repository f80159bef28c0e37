import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { holds, seedOf } from "../../../../holdfast/test/seed.ts";
import { CopiedRows } from "../../../src/connection/copied-rows.ts";

const seed = seedOf(import.meta.url, "unit");

const HEADER = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");
const END = Buffer.from([0xff, 0xff]);

type Row = readonly [number: number, text: string];

function row([number, text]: Row): Buffer {
  const bytes = Buffer.from(text);
  const head = Buffer.alloc(18);
  head.writeInt16BE(2, 0);
  head.writeInt32BE(8, 2);
  head.writeBigInt64BE(BigInt(number), 6);
  head.writeInt32BE(bytes.length, 14);
  return Buffer.concat([head, bytes]);
}

function read(pieces: readonly Buffer[]): Row[] {
  const rows: Row[] = [];
  const copied = new CopiedRows((number, text) => rows.push([number, text.toString()]));
  // The driver uses its memory again.
  const memory = Buffer.alloc(Math.max(...pieces.map(({ length }) => length)));
  for (const piece of pieces) {
    piece.copy(memory);
    copied.add(memory.subarray(0, piece.length));
    memory.fill(0xee);
  }
  return rows;
}

describe("rows in PostgreSQL's binary format", () => {
  test("as the server sends them: the header with the first row, then a row in each piece", () => {
    const rows: Row[] = [
      [1, "one"],
      [2, ""],
      [Number.MAX_SAFE_INTEGER, "файл 🙂"],
    ];
    const [first, ...others] = rows.map(row);
    expect(read([Buffer.concat([HEADER, first!]), ...others, END])).toEqual(rows);
  });

  test("none", () => {
    expect(read([HEADER, END])).toEqual([]);
    expect(read([Buffer.concat([HEADER, END])])).toEqual([]);
  });

  test("cut anywhere, into any number of pieces", () => {
    const texts = fc.array(fc.tuple(fc.nat(), fc.string({ unit: "grapheme" })), { maxLength: 8 });
    const cutAnywhere = fc.property(texts, fc.array(fc.nat(), { maxLength: 12 }), (rows, cuts) => {
      const bytes = Buffer.concat([HEADER, ...rows.map(row), END]);
      const places = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length];
      const pieces = places.slice(1).map((to, at) => bytes.subarray(places[at], to));
      expect(read(pieces.filter(({ length }) => length > 0))).toEqual(rows);
    });
    holds(cutAnywhere, seed, 500);
  });

  test("an extension of the header is skipped; something else is refused", () => {
    const extended = Buffer.concat([HEADER.subarray(0, 15), Buffer.from([0, 0, 0, 3, 9, 9, 9])]);
    expect(read([extended, row([7, "x"]), END])).toEqual([[7, "x"]]);
    expect(() => read([Buffer.from("1\tone\n2\ttwo and more text\n")])).toThrow("something else than rows");
  });
});
