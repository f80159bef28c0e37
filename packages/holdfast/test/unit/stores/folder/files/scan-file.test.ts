import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ENDLESS_LINE_BYTES } from "../../../../../src/journal/lines/scan.ts";
import { decideTail } from "../../../../../src/journal/lines/tail.ts";
import {
  RECORD_BYTES_MAX,
  SEGMENT_BYTES_MAX,
  SEGMENT_START_BYTES_MAX,
  UNIT_BYTES_MAX,
} from "../../../../../src/journal/record.ts";
import { type SegmentBytes, scanPlain } from "../../../../../src/stores/folder/files/scan-file.ts";
import { bytesOf, line, withoutNewline } from "../../../journal/journals.ts";

/**
 * S4: what it costs to read a segment grows with its bytes, whatever they are, and no more than two records of it are
 * in memory. Counted in bytes that are read, searched and moved, and in the size of buffers: not in time. Whoever goes
 * beyond the budget is stopped, so that a test fails and does not hang.
 */

const steps = { bytes: 0, budget: Number.POSITIVE_INFINITY, largest: 0 };

function spend(bytes: number): void {
  steps.bytes += bytes;
  if (steps.bytes > steps.budget) throw new Error(`more than ${steps.budget} bytes were looked at`);
}

const { indexOf, copy } = Buffer.prototype;
const { allocUnsafe } = Buffer;

// By hand: a spy remembers every call, and here there are millions.
beforeEach(() => {
  Object.assign(Buffer.prototype, {
    indexOf(this: Buffer, value: string, from = 0): number {
      const found = indexOf.call(this, value, from);
      spend((found === -1 ? this.length : found) - from);
      return found;
    },
    copy(this: Buffer, ...given: Parameters<typeof copy>): number {
      const copied = copy.apply(this, given);
      spend(copied);
      return copied;
    },
  });
  Buffer.allocUnsafe = (size) => {
    steps.largest = Math.max(steps.largest, size);
    return allocUnsafe(size);
  };
  Object.assign(steps, { bytes: 0, budget: Number.POSITIVE_INFINITY, largest: 0 });
});

afterEach(() => {
  Object.assign(Buffer.prototype, { indexOf, copy });
  Buffer.allocUnsafe = allocUnsafe;
});

/** A file that is made of these parts, each so many bytes long, and read in whatever pieces are asked for. */
function fileOf(
  ...parts: readonly (readonly [content: Buffer | string, bytes?: number])[]
): SegmentBytes & { asked: number } {
  const pieces: { from: number; to: number; content: Buffer }[] = [];
  let size = 0;
  for (const [content, bytes] of parts) {
    const one = Buffer.from(content);
    const length = bytes ?? one.length;
    pieces.push({ from: size, to: size + length, content: one });
    size += length;
  }
  return {
    asked: 0,
    size: () => size,
    read(into, offset, length, position) {
      const end = Math.min(size, position + length);
      this.asked += length;
      for (const { from, to, content } of pieces) {
        const [start, stop] = [Math.max(from, position), Math.min(to, end)];
        if (start >= stop) continue;
        const target = into.subarray(offset + start - position, offset + stop - position);
        // `fill` begins with the first byte of the content.
        const shift = (start - from) % content.length;
        target.fill(Buffer.concat([content.subarray(shift), content.subarray(0, shift)]) as unknown as number);
      }
      return Math.max(0, end - position);
    },
  };
}

const MB = 1_000_000;
const START = '{"seq":';
const END = ',"crc":"00000000"}';

const hostile: [what: string, content: string][] = [
  ["NUL bytes", "\0"],
  ["letters", "garbage "],
  ["beginnings of records", START],
  ["beginnings of records inside a payload", `,${START}`],
  ["beginnings and ends of records", `${START}1${END} `],
  ["ends of records", `${END} `],
  ["what nearly is an end of a record", ',"crc":"'],
  ["opening brackets", "["],
  ["white space", " "],
];
/** Nothing in them is ever tried, so that every one of them is looked at. */
const OUT_OF_REACH = RECORD_BYTES_MAX + MB;

describe("S4: a long stretch without a newline", () => {
  test.each(hostile)(
    "%s: the records around it are found, in bounded memory, with work that grows with the bytes",
    async (_what, content) => {
      const [one, two, three] = [line(1), line(2), line(3)];
      const bytes = 200 * MB;
      const file = fileOf([one], [content, bytes], ["\n"], [two], [content, 2 * MB], ["\n"], [three]);
      steps.budget = 12 * file.size();
      const scan = await scanPlain(file, 0);
      expect(scan.records.map(({ seq }) => seq)).toEqual([1, 2, 3]);
      expect(scan.offsets).toEqual([0, one.length + bytes + 1, file.size() - three.length]);
      const { damaged, missing } = decideTail(scan, { sealed: true });
      expect(damaged.map(({ offset, end }) => [offset, end])).toEqual([
        [one.length, one.length + bytes + 1],
        [one.length + bytes + 1 + two.length, file.size() - three.length],
      ]);
      expect(missing).toEqual([]);
      expect(steps.largest).toBeLessThanOrEqual(2 * RECORD_BYTES_MAX);
      expect(file.asked, "each byte is read about once").toBeLessThan(2 * file.size() + 2 * RECORD_BYTES_MAX);
    },
  );

  test("beginnings of records, of which none is within reach of an end", async () => {
    const file = fileOf([START, 2 * OUT_OF_REACH], ["x", OUT_OF_REACH], [END], ["\n"], [line(1)]);
    steps.budget = 12 * file.size();
    expect((await scanPlain(file, 0)).records.map(({ seq }) => seq)).toEqual([1]);
  });

  test("120 MB of garbage, and a whole record glued to its end", async () => {
    const [one, two, three] = [line(1), line(2), line(3)];
    const file = fileOf([one], ["garbage ", 120 * MB], [two], [three]);
    const scan = await scanPlain(file, 0);
    expect(scan.records.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(scan.strays).toMatchObject([{ offset: one.length, end: one.length + 120 * MB, line: false }]);
  });

  test("records that stand in the middle of it, and at its end without a newline, are found", async () => {
    const file = fileOf(
      ["x", 40 * MB],
      [withoutNewline(line(1))],
      ["x", 40 * MB],
      [withoutNewline(line(2))],
      ["x", 40 * MB],
      [withoutNewline(line(3))],
    );
    const scan = await scanPlain(file, 0);
    expect(scan.records.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(scan.unended).toBe(true);
    expect(scan.end).toBe(file.size());
  });

  test("none is longer than a record may be", async () => {
    const long = withoutNewline(line(1, { text: "x".repeat(RECORD_BYTES_MAX) }));
    const scan = await scanPlain(fileOf([bytesOf("garbage ", long, "garbage ", line(2))]), 0);
    expect(scan.records.map(({ seq }) => seq)).toEqual([2]);
  });

  test("from 128 MiB on, the line is one stray, with a newline or without", async () => {
    const glued = withoutNewline(line(1));
    for (const end of ["\n", ""]) {
      const searched = fileOf([glued], ["x", ENDLESS_LINE_BYTES - 1 - glued.length], [`${end}`]);
      expect((await scanPlain(searched, 0)).records.map(({ seq }) => seq)).toEqual([1]);
      const endless = fileOf([glued], ["x", ENDLESS_LINE_BYTES - glued.length], [end], [end && line(2)]);
      const scan = await scanPlain(endless, 0);
      expect(scan.records.map(({ seq }) => seq)).toEqual(end ? [2] : []);
      expect(scan.strays).toMatchObject([{ offset: 0, end: ENDLESS_LINE_BYTES + end.length, line: true }]);
    }
  });

  test("a file that ends in the middle of it", async () => {
    const file = fileOf([line(1)], [`${START}1${END} `, 300 * MB]);
    const scan = await scanPlain(file, 0);
    expect(scan).toMatchObject({ ragged: true, unended: false, end: file.size() });
    expect(scan.strays).toMatchObject([{ offset: line(1).length, end: file.size(), line: true }]);
  });
});

describe("a file that is larger than a segment may be", () => {
  const LIMIT = 10 * MB;

  test("is read up to there; the rest is one stray, however large", async () => {
    const file = fileOf([line(1)], ["\0", 200_000 * MB]);
    const scan = await scanPlain(file, 0, LIMIT);
    expect(scan.records.map(({ seq }) => seq)).toEqual([1]);
    expect(file.asked).toBe(LIMIT);
    expect(scan.end).toBe(file.size());
    const { damaged } = decideTail(scan, { sealed: true });
    expect(damaged.at(-1)).toMatchObject({ offset: LIMIT, end: file.size() });
  });

  test("as large as one may be is read as a whole", async () => {
    const last = line(2);
    const file = fileOf([line(1)], ["x", LIMIT - line(1).length - 1 - last.length], ["\n"], [last]);
    expect(file.size()).toBe(LIMIT);
    const scan = await scanPlain(file, 0, LIMIT);
    expect(scan.records.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(scan.strays).toHaveLength(1);
  });

  test("the limit is far above what a writer makes", () => {
    expect(SEGMENT_START_BYTES_MAX + 2 * UNIT_BYTES_MAX).toBeLessThanOrEqual(SEGMENT_BYTES_MAX);
  });
});

describe("a file that falls into more pieces than can be told apart", () => {
  test.each([
    ["newlines", Buffer.from("\n")],
    ["short lines", Buffer.from("x\n")],
    ["lines of foreign JSON", Buffer.from("{}\n")],
    ["one record, over and over", line(7)],
  ])("%s: JOURNAL_UNREADABLE, and not all memory", async (_what, content) => {
    await expect(scanPlain(fileOf([content, content.length * 1_100_000]), 0)).rejects.toMatchObject({
      code: "JOURNAL_UNREADABLE",
    });
  });

  test("a segment whose every line was edited can still be read", async () => {
    const file = fileOf(["x\n", 2 * 1_000_000], [bytesOf(line(1_000_001))]);
    const scan = await scanPlain(file, 0);
    expect(scan.records.map(({ seq }) => seq)).toEqual([1_000_001]);
  });
});

test.each([1, 2, 3, 7, 64])("a disk that gives %i bytes at a time costs no record", async (atOnce) => {
  for (const count of [1, 2, 9]) {
    const whole = bytesOf(...Array.from({ length: count }, (_, i) => line(i + 1, { text: "x".repeat(i * 10) })));
    for (const bytes of [whole, withoutNewline(whole)]) {
      const file: SegmentBytes = {
        size: () => bytes.length,
        read: (into, offset, length, position) =>
          bytes.copy(into, offset, position, Math.min(bytes.length, position + Math.min(length, atOnce))),
      };
      const scan = await scanPlain(file, 0);
      expect(scan.records.map(({ seq }) => seq)).toEqual(Array.from({ length: count }, (_, i) => i + 1));
      expect(scan.strays).toEqual([]);
      expect(scan.end).toBe(bytes.length);
    }
  }
});
