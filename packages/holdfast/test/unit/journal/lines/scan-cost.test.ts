import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { Scan, scanBytes } from "../../../../src/journal/lines/scan.ts";
import { decideTail } from "../../../../src/journal/lines/tail.ts";
import { bytesOf, line, nuls, withoutNewline } from "../journals.ts";

/**
 * S4: what a scan costs grows with the bytes, whatever they are. Counted in bytes that are searched, checksummed and
 * turned into text, not in time: four times the input may take hardly more than four times the steps.
 */

const steps = vi.hoisted(() => ({ bytes: 0 }));

vi.mock("node:zlib", async (importOriginal) => {
  const zlib = await importOriginal<typeof import("node:zlib")>();
  const crc32: typeof zlib.crc32 = (data, value) => {
    steps.bytes += typeof data === "string" ? data.length : data.byteLength;
    return zlib.crc32(data, value);
  };
  return { ...zlib, crc32 };
});

beforeAll(() => {
  const { indexOf, toString: textOf } = Buffer.prototype;
  vi.spyOn(Buffer.prototype, "indexOf").mockImplementation(function (this: Buffer, value, from = 0) {
    const found = indexOf.call(this, value as string, from as number);
    steps.bytes += (found === -1 ? this.length : found) - Number(from);
    return found;
  });
  vi.spyOn(Buffer.prototype, "toString").mockImplementation(function (this: Buffer, ...given: unknown[]) {
    const [encoding, start = 0, end = this.length] = given as [BufferEncoding?, number?, number?];
    steps.bytes += end - start;
    return textOf.call(this, encoding, start, end);
  });
});

afterAll(() => {
  vi.restoreAllMocks();
});

function stepsOf(bytes: Buffer): number {
  steps.bytes = 0;
  decideTail(scanBytes(bytes), { sealed: false });
  return steps.bytes;
}

const whole = line(7);
const START = '{"seq":';
const END = ',"crc":"00000000"}';

const hostile: [what: string, make: (n: number) => Buffer][] = [
  ["a line of starts without an end", (n) => bytesOf(START.repeat(n), "\n")],
  ["a line of starts with one end", (n) => bytesOf(START.repeat(n), END, "\n")],
  ["a line of starts, then one of ends", (n) => bytesOf(START.repeat(n), `${END} `.repeat(n), "\n")],
  ["a line of ends, then one of starts", (n) => bytesOf(`${END} `.repeat(n), START.repeat(n), "\n")],
  ["a line of starts and ends in turn", (n) => bytesOf(`${START}1${END} `.repeat(n), "\n")],
  ["a line of objects that look like records", (n) => bytesOf('{"a":[', `${START}1${END},`.repeat(n), "\n")],
  [
    "a line of starts and of what only resembles an end",
    (n) => bytesOf(START.repeat(n), ',"crc":"'.repeat(n), END, "\n"),
  ],
  ["starts inside a payload, up to the end of the line", (n) => bytesOf(`,${START}`.repeat(n), END, "\n")],
  [
    "whole records without newlines",
    (n) => bytesOf(...Array.from({ length: n / 10 }, (_, i) => withoutNewline(line(i + 1)))),
  ],
  ["blank lines", (n) => bytesOf("\n".repeat(n))],
  ["short damaged lines", (n) => bytesOf("x\n".repeat(n))],
  ["short lines that begin like records", (n) => bytesOf(`${START}\n`.repeat(n))],
  ["one record many times over", (n) => bytesOf(...Array.from({ length: n / 10 }, () => whole))],
  ["NUL bytes without a newline", (n) => nuls(n * 10)],
  [
    "NUL bytes between whole records",
    (n) => bytesOf(...Array.from({ length: n / 10 }, (_, i) => [nuls(50), line(i + 1)]).flat()),
  ],
];

describe("S4: hostile input is scanned in linear time", () => {
  test.each(hostile)("%s", (_what, make) => {
    const small = make(2_000);
    const large = make(8_000);
    const [forSmall, forLarge] = [stepsOf(small), stepsOf(large)];
    expect(forLarge / large.length).toBeLessThan((forSmall / small.length) * 1.5 + 1);
    expect(forLarge / large.length).toBeLessThan(40);
  });

  test("a line with 100,000 starts", () => {
    const bytes = bytesOf(START.repeat(100_000), END, "\n", whole);
    expect(stepsOf(bytes)).toBeLessThan(bytes.length * 40);
    expect(scanBytes(bytes).records.map(({ seq }) => seq)).toEqual([7]);
  });
});

describe("S4: ordinary input is looked at a handful of times", () => {
  test("a journal of short lines", () => {
    const bytes = bytesOf(...Array.from({ length: 1_000 }, (_, i) => line(i + 1, { text: "text" })));
    expect(stepsOf(bytes)).toBeLessThan(bytes.length * 3.1);
  });

  test("C28: a line of 50 MB", () => {
    const bytes = bytesOf(line(1), line(2, { image: "x".repeat(50 * 1024 * 1024) }), line(3));
    // Once more than short ones: how deep it nests is looked at before it is parsed.
    expect(stepsOf(bytes)).toBeLessThan(bytes.length * 4.1);
  });

  test("a line of escaped quotation marks, and one of backslashes", () => {
    for (const text of ['"'.repeat(200_000), "\\".repeat(200_000)]) {
      const bytes = bytesOf(line(1, { text }));
      expect(stepsOf(bytes)).toBeLessThan(bytes.length * 4.1);
    }
  });

  test("bytes behind the window that is fed are not looked at", () => {
    const bytes = bytesOf(whole, "\n\n", nuls(10_000_000));
    const scan = new Scan();
    steps.bytes = 0;
    scan.finish(bytes, scan.feed(bytes, 0, whole.length + 2, 0), whole.length + 2, whole.length + 2);
    expect(scan.records).toHaveLength(1);
    expect(steps.bytes).toBeLessThan(whole.length * 5);
  });
});
