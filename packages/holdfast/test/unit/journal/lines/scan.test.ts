import { describe, expect, test } from "vitest";
import { decodeLine } from "../../../../src/journal/lines/decode.ts";
import { scanBytes } from "../../../../src/journal/lines/scan.ts";
import {
  bytesOf,
  line,
  nuls,
  rotten,
  scanOf,
  sealedLine,
  seqsOf,
  split,
  straysOf,
  withoutNewline,
} from "../journals.ts";

/**
 * C20: what damage costs, and that it is reported with its place. What the damage means is decided elsewhere
 * (tail.test.ts).
 */

const one = line(1, { text: "one" });
const two = line(2, { text: "zwei: ü, 😀" });
const three = line(3, { text: "three" });
const four = line(4, { text: "four" });

describe("C20: one damaged line costs that line, and nothing else", () => {
  const damages: [what: string, bytes: Buffer][] = [
    ["a flipped bit", rotten(two)],
    ["a line that someone edited", Buffer.from(two.toString().replace("zwei", "twee"))],
    ["a run of NUL bytes in the middle of it", Buffer.concat([two.subarray(0, 20), nuls(10), two.subarray(30)])],
    ["a line of nothing but NUL bytes", bytesOf(nuls(two.length - 1), "\n")],
    ["invalid UTF-8", Buffer.from(two.map((byte) => (byte === 0xc3 ? 0xff : byte)))],
    ["invalid UTF-8 in how it begins", Buffer.from(two.map((byte, i) => (i === 2 ? 0xff : byte)))],
    [
      "a checksum in capitals",
      Buffer.from(two.toString().replace(/"crc":"(.*)"/, (crc) => crc.toUpperCase().replace("CRC", "crc"))),
    ],
    ["a line that lost its beginning", two.subarray(3)],
    ["a line that lost its end", bytesOf(two.subarray(0, two.length - 4), "\n")],
    ["a line in which a flipped bit made a newline", split(two)],
    ["text that is no JSON", bytesOf("segmentation fault\n")],
    ["a seq that is no number, with a right checksum", sealedLine('{"seq":"2","at":"","kind":"x"')],
    ["a record without a kind, with a right checksum", sealedLine('{"seq":2,"at":""')],
    ["a checksum that is right, of something that is no JSON", sealedLine('{"seq":2,,')],
  ];
  test.each(damages)("%s", (_what, bytes) => {
    const scan = scanOf(one, bytes, three);
    expect(seqsOf(scan.records)).toEqual([1, 3]);
    expect(scan.offsets).toEqual([0, one.length + bytes.length]);
    expect(scan.strays[0]).toMatchObject({ offset: one.length, why: "corrupt", after: 1, line: true });
    expect(scan.strays.at(-1)?.end).toBe(one.length + bytes.length);
    expect(scan.mark).toBe(0);
  });

  test("a member of the envelope that is not of its type is taken as absent, and costs nothing", () => {
    for (const member of ["unit", "synced", "ahead", "key", "must"]) {
      for (const value of member === "key" ? [5, null, {}] : ["999", -1, 1.5, null, {}, false]) {
        const scan = scanOf(one, line(2, { [member]: value, text: "two" }), three);
        expect(seqsOf(scan.records)).toEqual([1, 2, 3]);
        expect(scan.records[1]).not.toHaveProperty(member);
        expect(scan.records[1]).toMatchObject({ text: "two" });
        expect(scan).toMatchObject({ mark: 0, strays: [] });
      }
    }
  });

  test("valid JSON that is not ours is foreign", () => {
    for (const foreign of ['{"level":"info"}\n', "[]\n", "17\n", ' {"seq":2}\n', "null\r\n"]) {
      const scan = scanOf(one, foreign, three);
      expect(seqsOf(scan.records)).toEqual([1, 3]);
      expect(straysOf(scan)).toEqual([[one.length, one.length + foreign.length, "foreign"]]);
    }
  });

  test("blank lines are reported, and cost nothing", () => {
    const scan = scanOf(one, "\n", "\r\n", two);
    expect(seqsOf(scan.records)).toEqual([1, 2]);
    expect(straysOf(scan)).toEqual([
      [one.length, one.length + 1, "corrupt"],
      [one.length + 1, one.length + 3, "corrupt"],
    ]);
  });
});

describe("C20: what is whole is found beside what is not (S2)", () => {
  test("one carriage return at the end of a line belongs to the line end", () => {
    const crlf = bytesOf(withoutNewline(one), "\r");
    expect(decodeLine(crlf, 0, crlf.length)?.seq).toBe(1);
    expect(decodeLine(bytesOf(crlf, "\r"), 0, crlf.length + 1)).toBeNull();
  });

  test("CRLF line ends cost nothing", () => {
    const crlf = Buffer.from(bytesOf(one, two, three).toString().replaceAll("\n", "\r\n"));
    const scan = scanBytes(crlf);
    expect(seqsOf(scan.records)).toEqual([1, 2, 3]);
    expect(scan.strays).toEqual([]);
  });

  test("a byte-order mark is reported, and costs nothing", () => {
    const scan = scanOf("\ufeff", one, two);
    expect(seqsOf(scan.records)).toEqual([1, 2]);
    expect(scan.strays).toEqual([{ offset: 0, end: 3, why: "corrupt", after: 0, line: false }]);
  });

  test("a byte-order mark and CRLF line ends, as an editor on Windows saves them", () => {
    const scan = scanBytes(Buffer.from(`\ufeff${bytesOf(one, two, three).toString().replaceAll("\n", "\r\n")}`));
    expect(seqsOf(scan.records)).toEqual([1, 2, 3]);
    expect(scan.strays).toEqual([{ offset: 0, end: 3, why: "corrupt", after: 0, line: false }]);
  });

  test("a run of NUL bytes before a whole record", () => {
    const scan = scanOf(one, nuls(4096), two, three);
    expect(seqsOf(scan.records)).toEqual([1, 2, 3]);
    expect(straysOf(scan)).toEqual([[one.length, one.length + 4096, "corrupt"]]);
    expect(scan.strays[0]?.line).toBe(false);
  });

  test("a newline with any of its bits flipped: both neighbours are whole", () => {
    for (let bit = 0; bit < 8; bit++) {
      const bytes = bytesOf(one, two, three);
      bytes[one.length - 1] = 0x0a ^ (1 << bit);
      const scan = scanBytes(bytes);
      expect(seqsOf(scan.records)).toEqual([1, 2, 3]);
      expect(straysOf(scan)).toEqual([[one.length - 1, one.length, "corrupt"]]);
    }
  });

  test("a line glued to what is left of the line before it, wherever that was torn", () => {
    const rich = line(2, { list: [1, { seq: 1, crc: "00000000" }], text: "a, b: [c", last: true });
    for (let cut = 1; cut < rich.length - 1; cut++) {
      const scan = scanOf(one, rich.subarray(0, cut), three, four);
      expect(seqsOf(scan.records), `torn after ${cut} bytes`).toEqual([1, 3, 4]);
      expect(straysOf(scan)).toEqual([[one.length, one.length + cut, "corrupt"]]);
    }
  });

  test("garbage behind a whole record in its line", () => {
    const scan = scanOf(withoutNewline(one), "garbage\n", two);
    expect(seqsOf(scan.records)).toEqual([1, 2]);
    expect(straysOf(scan)).toEqual([[one.length - 1, one.length + 7, "corrupt"]]);
  });

  test("several records in one line", () => {
    const scan = scanOf(withoutNewline(one), withoutNewline(two), "  ", withoutNewline(three), "\r\n", four);
    expect(seqsOf(scan.records)).toEqual([1, 2, 3, 4]);
    expect(scan.strays).toMatchObject([
      { offset: one.length + two.length - 2, end: one.length + two.length, line: false },
    ]);
  });

  test("lines that someone has made an array of", () => {
    const items = [one, two, three].map((bytes) => withoutNewline(bytes).toString());
    const scan = scanOf("[\n", `${items.join(",\n")}\n`, "]\n");
    expect(seqsOf(scan.records)).toEqual([1, 2, 3]);
  });

  test("at most 16 stretches of a line are tried", () => {
    const starts = (count: number) => '{"seq":'.repeat(count);
    expect(seqsOf(scanOf(starts(15), one, two).records)).toEqual([1, 2]);
    expect(seqsOf(scanOf(starts(16), one, two).records)).toEqual([2]);
    // Every start is tried with every end behind it.
    const ends = (count: number) => ',"crc":"00000000"} '.repeat(count);
    expect(seqsOf(scanOf('{"seq":', ends(14), one, two).records)).toEqual([1, 2]);
    expect(seqsOf(scanOf('{"seq":', ends(15), one, two).records)).toEqual([2]);
  });
});

describe("the last line without a newline (S2)", () => {
  test("is whole if its checksum is right", () => {
    const scan = scanOf(one, withoutNewline(two));
    expect(seqsOf(scan.records)).toEqual([1, 2]);
    expect(scan).toMatchObject({ unended: true, ragged: true, strays: [], end: one.length + two.length - 1 });
  });

  test("is not whole if it is torn", () => {
    const scan = scanOf(one, two.subarray(0, 30));
    expect(seqsOf(scan.records)).toEqual([1]);
    expect(scan).toMatchObject({ unended: false, ragged: true, end: one.length + 30 });
    expect(straysOf(scan)).toEqual([[one.length, one.length + 30, "corrupt"]]);
  });

  test("a whole record behind NUL bytes, with a carriage return for an end", () => {
    const scan = scanOf(one, nuls(5), withoutNewline(two), "\r");
    expect(seqsOf(scan.records)).toEqual([1, 2]);
    expect(scan).toMatchObject({ unended: true, ragged: true });
    expect(straysOf(scan)).toEqual([[one.length, one.length + 5, "corrupt"]]);
  });

  test("garbage behind the last record: the record is there, and it is not what lacks its newline", () => {
    const scan = scanOf(one, withoutNewline(two), "\0\0");
    expect(seqsOf(scan.records)).toEqual([1, 2]);
    expect(scan).toMatchObject({ unended: false, ragged: true });
  });

  test("a file that ends with a newline is not ragged, an empty one neither", () => {
    expect(scanOf(one, two)).toMatchObject({ unended: false, ragged: false });
    expect(scanOf()).toMatchObject({ unended: false, ragged: false, end: 0, records: [], strays: [] });
  });
});

// With the number of its own line, of the next one, and of none that is near.
describe.each([2, 3, 900])("a record inside the payload of another one, with the number %i", (seq) => {
  // What an agent stores that reads journals with a tool: compact JSON again, so byte for byte a line.
  const inner = JSON.parse(line(seq, { text: "never happened here", synced: 900 }).toString());
  const outer = line(2, { result: inner, list: [inner, inner], after: true });

  test("is found by nobody while its line is whole", () => {
    expect(seqsOf(scanOf(one, outer, three).records)).toEqual([1, 2, 3]);
  });

  test("does not come to life when any bit of its line is flipped", () => {
    const bytes = bytesOf(one, outer, three);
    for (let bit = one.length * 8; bit < (one.length + outer.length - 1) * 8; bit++) {
      flip(bytes, bit);
      const scan = scanBytes(bytes);
      expect(
        scan.records.map(({ text }) => text),
        `bit ${bit}`,
      ).toEqual(["one", "three"]);
      expect(scan.mark, `bit ${bit}`).toBe(0);
      flip(bytes, bit);
    }
  });

  test("does not come to life when its line is torn at any byte, nor does its mark", () => {
    const bytes = bytesOf(one, outer);
    for (let end = one.length + 1; end < bytes.length - 1; end++) {
      const scan = scanBytes(bytes.subarray(0, end));
      expect(seqsOf(scan.records), `torn at ${end}`).toEqual([1]);
      expect(scan.mark).toBe(0);
    }
  });

  test("does not come to life when the beginning of its line is NUL bytes", () => {
    const bytes = bytesOf(one, outer, three);
    for (let at = one.length + 1; at < one.length + outer.length - 1; at++) {
      const damaged = Buffer.from(bytes);
      damaged.fill(0, one.length, at);
      const scan = scanBytes(damaged);
      expect(
        scan.records.map(({ text }) => text),
        `NUL up to ${at}`,
      ).toEqual(["one", "three"]);
    }
  });

  test("does not come to life when the rest of its line is NUL bytes", () => {
    const bytes = bytesOf(one, outer, three);
    for (let at = one.length + 1; at < one.length + outer.length - 1; at++) {
      const damaged = Buffer.from(bytes);
      damaged.fill(0, at, one.length + outer.length - 1);
      const scan = scanBytes(damaged);
      expect(
        scan.records.map(({ text }) => text),
        `NUL from ${at}`,
      ).toEqual(["one", "three"]);
    }
  });
});

function flip(bytes: Buffer, bit: number): void {
  bytes[bit >> 3] = bytes[bit >> 3]! ^ (1 << (bit & 7));
}

test("where something begins in the middle of a line is told, so that a cut there ends the line first", () => {
  const glued = withoutNewline(one);
  const garbage = Buffer.from("###");
  const scan = scanOf(glued, garbage, two);
  expect(seqsOf(scan.records)).toEqual([1, 2]);
  expect([...scan.inline].sort((a, b) => a - b)).toEqual([glued.length, glued.length + garbage.length]);
});
