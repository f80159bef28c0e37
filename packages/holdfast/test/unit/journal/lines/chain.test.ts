import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decideTail } from "../../../../src/journal/lines/tail.ts";
import { holds, seedOf } from "../../../seed.ts";
import { bytesOf, line, rotten, scanOf, seqsOf, withoutNewline } from "../journals.ts";

/** C20, P9: whole lines that are not this journal's, or that stand in it twice, cost nothing but themselves. */

const seed = seedOf(import.meta.url, "unit");

const own = (seq: number): Buffer => line(seq, { kind: seq === 1 ? "segment" : "note", from: "here" });
const other = (seq: number): Buffer => line(seq, { from: "elsewhere", synced: seq - 1 });
const owns = (from: number, to: number): Buffer[] => range(from, to).map(own);
const others = (from: number, to: number): Buffer[] => range(from, to).map(other);

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

function expectOwn(parts: readonly Buffer[], seqs: readonly number[]): void {
  const scan = scanOf(...parts);
  expect(seqsOf(scan.records)).toEqual(seqs);
  expect(scan.records.every((record) => record["from"] === "here")).toBe(true);
  expect(scan.mark, "the mark of a line from elsewhere says nothing of this journal").toBe(0);
  // Every byte but those of the records that count is reported, in the order of the file.
  const kept = seqs.reduce((sum, seq) => sum + own(seq).length, 0);
  const stray = scan.strays.reduce((sum, { offset, end }) => sum + end - offset, 0);
  expect(kept + stray).toBe(bytesOf(...parts).length);
  expect(scan.strays.map(({ offset }) => offset)).toEqual(
    scan.strays.map(({ offset }) => offset).toSorted((a, b) => a - b),
  );
  for (const { offset, after } of scan.strays) expect(after).toBe(scan.offsets.filter((at) => at < offset).length);
}

describe("C20: a line pasted from another journal", () => {
  test("with a higher number", () => expectOwn([...owns(1, 3), other(1000), ...owns(4, 6)], range(1, 6)));
  test("with a lower number", () => expectOwn([...owns(1, 9), other(4), ...owns(10, 12)], range(1, 12)));
  test("with the number of the line that follows", () =>
    expectOwn([...owns(1, 3), other(5), ...owns(4, 8)], range(1, 8)));
  test("with a lower number, at the end", () => expectOwn([...owns(1, 9), other(4)], range(1, 9)));
  test("with a higher number, before the last line", () =>
    expectOwn([...owns(1, 3), other(1000), own(4)], range(1, 4)));
  test("before the first line", () => expectOwn([other(1000), ...owns(1, 3)], range(1, 3)));
  test("next to a damaged line of ours", () => {
    expectOwn([...owns(1, 3), other(1000), rotten(own(4)), ...owns(5, 9)], [1, 2, 3, 5, 6, 7, 8, 9]);
    expectOwn([...owns(1, 3), rotten(own(4)), other(1000), ...owns(5, 9)], [1, 2, 3, 5, 6, 7, 8, 9]);
    expectOwn([...owns(1, 3), rotten(own(4)), own(5), other(5), own(6)], [1, 2, 3, 5, 6]);
    expectOwn([...owns(1, 3), rotten(own(4)), own(5), other(4), own(6)], [1, 2, 3, 5, 6]);
  });
  test("in the place of a line of ours", () =>
    expectOwn([...owns(1, 3), other(1000), ...owns(5, 9)], [1, 2, 3, 5, 6, 7, 8, 9]));
});

describe("P9: a block of another journal, as a misdirected write leaves it", () => {
  const cut = (bytes: Buffer): Buffer => bytes.subarray(20);
  const torn = (bytes: Buffer): Buffer => bytes.subarray(0, 20);

  test("between our lines", () => expectOwn([...owns(1, 5), ...others(500, 520), ...owns(6, 30)], range(1, 30)));
  test("over our lines, with a piece of a line at both ends", () => {
    const block = Buffer.concat([cut(other(499)), ...others(500, 520), torn(other(521))]);
    const parts = [...owns(1, 4), torn(own(5)), block, cut(own(27)), ...owns(28, 31)];
    const scan = scanOf(...parts);
    expect(seqsOf(scan.records)).toEqual([1, 2, 3, 4, 28, 29, 30, 31]);
    expect(scan.mark).toBe(0);
  });
  test("of lower numbers", () => expectOwn([...owns(1, 50), ...others(3, 20), ...owns(51, 53)], range(1, 53)));
  test("of a few higher numbers", () => expectOwn([...owns(1, 50), ...others(55, 58), ...owns(51, 70)], range(1, 70)));
  test("at the beginning", () => expectOwn([...others(500, 502), ...owns(1, 9)], range(1, 9)));
});

test("C20: a pasted line and a gap that nobody noticed: what is shown does not depend on what comes later", () => {
  // Line 4 was taken out, and something else put in its place: the next line of ours is enough to tell, and so is the
  // next append.
  expectOwn([...owns(1, 3), other(1000), own(5)], [1, 2, 3, 5]);
  expectOwn([...owns(1, 3), ...others(1000, 1020), own(7)], [1, 2, 3, 7]);
});

describe("lines that stand in the journal twice", () => {
  test("one line", () => expectOwn([own(1), own(2), own(2), own(3)], [1, 2, 3]));
  test("a page of lines", () => expectOwn([...owns(1, 50), ...owns(20, 30), ...owns(51, 60)], range(1, 60)));
  test("all of them", () => expectOwn([...owns(1, 9), ...owns(1, 9)], range(1, 9)));
});

test("a last line without a newline that proves the one before it to be pasted still lacks its newline", () => {
  const scan = scanOf(own(1), own(2), other(1000), withoutNewline(own(3)));
  expect(seqsOf(scan.records)).toEqual([1, 2, 3]);
  expect(scan.unended).toBe(true);
  expect(decideTail(scan, { sealed: true }).unended).toBe(true);
});

test("a gap that nothing explains is accepted while nothing contradicts it (S3)", () => {
  expect(seqsOf(scanOf(own(1), own(2), own(9), own(10)).records)).toEqual([1, 2, 9, 10]);
});

test("one pasted line anywhere costs nothing but itself, or the line whose number it stole just before it", () => {
  holds(
    fc.property(fc.integer({ min: 2, max: 30 }), fc.nat(), fc.integer({ min: 1, max: 100 }), (count, at, seq) => {
      const lines = owns(1, count);
      const place = at % (count + 1);
      const scan = scanOf(...lines.slice(0, place), other(seq), ...lines.slice(place));
      const kept = scan.records.filter((record) => record["from"] === "here").map((record) => record.seq);
      const stolen = seq === place + 1 && place > 0 && place < count;
      expect(kept).toEqual(range(1, count).filter((own) => !(stolen && own === seq)));
      // Only at the very end can it pass for one of ours, and then what it jumped over is missing.
      if (!stolen) expect(scan.records.length - kept.length).toBe(place === count && seq > count ? 1 : 0);
    }),
    seed,
    2000,
  );
});
