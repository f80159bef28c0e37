import { crc32 } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import { HoldfastError } from "../../../../src/errors.ts";
import { decodeLine } from "../../../../src/journal/lines/decode.ts";
import { Encoder, type Envelope } from "../../../../src/journal/lines/encode.ts";
import { scanBytes } from "../../../../src/journal/lines/scan.ts";
import { type NewRecord, RECORD_BYTES_MAX } from "../../../../src/journal/record.ts";
import { AT } from "../journals.ts";

const encoder = new Encoder();

function encode(records: unknown, envelope: Partial<Envelope> = {}): string {
  return encoder.encode(records as NewRecord[], { seq: 1, at: AT, ...envelope }).toString();
}

function refusalOf(record: unknown, envelope: Partial<Envelope> = {}): HoldfastError {
  try {
    encode([record], envelope);
  } catch (error) {
    if (error instanceof HoldfastError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

/** The line without its trailer, whose checksum is verified here by itself. */
function covered(line: string): string {
  const match = /^(.*),"crc":"([0-9a-f]{8})"\}\n$/s.exec(line);
  if (!match) throw new Error(`no trailer: ${line}`);
  expect(crc32(match[1]!).toString(16).padStart(8, "0")).toBe(match[2]);
  return match[1]!;
}

describe("S1: the line", () => {
  test("begins with seq, ends with the checksum of everything before it, and is JSON", () => {
    const line = encode([{ kind: "note", name: "ü", value: { a: [1, "😀"] } }], { seq: 7, synced: 6 });
    expect(covered(line)).toBe(`{"seq":7,"synced":6,"at":"${AT}","kind":"note","name":"ü","value":{"a":[1,"😀"]}`);
    expect(JSON.parse(line)).toMatchObject({ seq: 7, synced: 6, kind: "note" });
  });

  test("the envelope stands in the order seq, unit, synced, at, kind, must", () => {
    const records = [{ other: 1, must: true, kind: "a" }, { kind: "b" }];
    const [first, second] = encode(records, {
      seq: 3,
      synced: 2,
      key: "k",
      summary: (i) => (i === 0 ? "{}" : undefined),
    }).split("\n");
    expect(Object.keys(JSON.parse(first!))).toEqual([
      "seq",
      "unit",
      "synced",
      "at",
      "kind",
      "must",
      "other",
      "summary",
      "key",
      "crc",
    ]);
    expect(JSON.parse(first!)).toMatchObject({ unit: 2, key: "k", must: true });
    expect(Object.keys(JSON.parse(second!))).toEqual(["seq", "at", "kind", "crc"]);
    expect(JSON.parse(second!).seq).toBe(4);
  });

  test("the kind comes first whatever the caller's order", () => {
    expect(covered(encode([{ a: 1, kind: "note", b: 2 }]))).toBe(`{"seq":1,"at":"${AT}","kind":"note","a":1,"b":2`);
  });

  test("the kind comes before members that look like integers, which JavaScript puts first", () => {
    expect(covered(encode([{ kind: "note", 7: "b", 1: "a" }]))).toBe(
      `{"seq":1,"at":"${AT}","kind":"note","1":"a","7":"b"`,
    );
    expect(covered(encode([{ 0: "a", must: true, kind: "note" }]))).toBe(
      `{"seq":1,"at":"${AT}","kind":"note","must":true,"0":"a"`,
    );
  });

  test("a kind that JSON.stringify would not see is written all the same", () => {
    const hidden = Object.defineProperty({ a: 1 }, "kind", { value: "note" });
    const inherited = Object.create(Object.assign(Object.create(null), { kind: "note" }));
    for (const record of [hidden, inherited]) {
      const bytes = Buffer.from(encode([record]));
      expect(decodeLine(bytes, 0, bytes.length - 1)?.kind).toBe("note");
    }
  });

  test("a lone record is no unit; the first records of a segment are none either", () => {
    expect(encode([{ kind: "a" }])).not.toContain('"unit"');
    expect(encode([{ kind: "a" }, { kind: "b" }], { unit: false })).not.toContain('"unit"');
  });

  test("the mark stands on the first record, and on the last one too where that is asked for (S15)", () => {
    const records = [{ kind: "a" }, { kind: "b" }, { kind: "c" }];
    const marked = (text: string) =>
      text
        .trim()
        .split("\n")
        .map((line) => "synced" in JSON.parse(line));
    expect(marked(encode(records, { synced: 3 }))).toEqual([true, false, false]);
    expect(marked(encode(records, { synced: 3, syncedLast: true }))).toEqual([true, false, true]);
    expect(marked(encode([{ kind: "a" }], { synced: 1, syncedLast: true }))).toEqual([true]);
  });

  test("__proto__ is a name like any other", () => {
    const record = JSON.parse('{"kind":"note","__proto__":{"a":1},"value":{"__proto__":[2]}}');
    const text = '"kind":"note","__proto__":{"a":1},"value":{"__proto__":[2]}';
    expect(encode([record])).toContain(text);
    expect(encode([{ must: true, ...record }])).toContain('"__proto__":{"a":1},"value":{"__proto__":[2]}');
    expect(Object.hasOwn(JSON.parse(encode([record])), "__proto__")).toBe(true);
  });
});

describe("what the journal refuses to write", () => {
  test.each(["seq", "unit", "synced", "ahead", "at", "key", "summary", "crc"])("a member called %s", (member) => {
    const error = refusalOf({ kind: "note", [member]: 1 });
    expect(error.code).toBe("RECORD_INVALID");
    expect(error.facts).toMatchObject({ member, kind: "note" });
    expect(error.message).toContain(`"${member}"`);
  });

  test("the same names inside the payload are the caller's own", () => {
    const value = { seq: 1, unit: 2, synced: 3, ahead: 7, at: 4, key: 5, summary: 6, crc: "00000000" };
    expect(JSON.parse(encode([{ kind: "note", value }])).value).toEqual(value);
  });

  test.each([
    ["nothing", undefined],
    ["null", null],
    ["a string", "note"],
    ["no kind", { a: 1 }],
    ["an empty kind", { kind: "" }],
    ["a kind that is no string", { kind: 5 }],
    ["an array", Object.assign([1], { kind: "note" })],
    ["a `must` that is not true", { kind: "note", must: "maybe" }],
  ])("%s for a record", (_what, record) => {
    expect(refusalOf(record).code).toBe("RECORD_INVALID");
  });

  test("no record at all", () => {
    expect(() => encode([])).toThrowError(expect.objectContaining({ code: "RECORD_INVALID" }));
  });

  test("a key that is no string: it would make a line that nobody can read", () => {
    for (const key of [Symbol("k"), () => 1, 5, null, {}]) {
      expect(refusalOf({ kind: "note" }, { key: key as string }).code).toBe("RECORD_INVALID");
    }
  });

  test("a bad record in a unit: nothing of the unit is encoded, and the encoder goes on", () => {
    expect(() => encode([{ kind: "a" }, { kind: "b", value: Number.NaN }])).toThrowError(
      expect.objectContaining({ code: "RECORD_NOT_JSON" }),
    );
    expect(encode([{ kind: "c" }])).toContain('"kind":"c"');
  });
});

describe("S4: the size limit", () => {
  const overhead = encode([{ kind: "note", text: "" }]).length;

  test("a line of exactly 64 MiB is written, read back, and one byte more is refused", () => {
    const text = "x".repeat(RECORD_BYTES_MAX - overhead);
    const bytes = encoder.encode([{ kind: "note", text }], { seq: 1, at: AT });
    expect(bytes.length).toBe(RECORD_BYTES_MAX);
    expect(scanBytes(bytes).records[0]?.["text"] === text).toBe(true);

    const error = refusalOf({ kind: "note", text: `${text}x` });
    expect(error.code).toBe("RECORD_TOO_LARGE");
    expect(error.facts).toEqual({ kind: "note", limitBytes: 67_108_864, bytes: RECORD_BYTES_MAX + 1 });
    expect(error.message).toContain("67108864 bytes (64 MiB)");
  });

  test("bytes count, not characters", () => {
    const text = "€".repeat(Math.floor(RECORD_BYTES_MAX / 3) + 1);
    expect(refusalOf({ kind: "note", text }).facts["bytes"]).toBe(overhead + text.length * 3);
  });

  test("beyond the longest string that JavaScript has", () => {
    // What JSON.stringify does beyond 512 MB; doing it would take more than a gigabyte of memory.
    const stringify = vi.spyOn(JSON, "stringify").mockImplementation(() => {
      throw new RangeError("Invalid string length");
    });
    try {
      const error = refusalOf({ kind: "note", texts: ["a text that is left to JSON.stringify".repeat(2_000)] });
      expect(error.code).toBe("RECORD_TOO_LARGE");
      expect(error.facts).toEqual({ kind: "note", limitBytes: RECORD_BYTES_MAX, bytes: null });
    } finally {
      stringify.mockRestore();
    }
  });

  test("the limit is of one record: a unit may be larger", () => {
    const text = "y".repeat(24 * 1024 * 1024);
    const bytes = encoder.encode(
      [
        { kind: "a", text },
        { kind: "b", text },
        { kind: "c", text },
      ],
      { seq: 1, at: AT },
    );
    expect(bytes.length).toBeGreaterThan(RECORD_BYTES_MAX);
    expect(scanBytes(bytes).records.map(({ seq, kind }) => [seq, kind])).toEqual([
      [1, "a"],
      [2, "b"],
      [3, "c"],
    ]);
  });

  test("what is too large is refused before memory is taken for it", () => {
    const text = "z".repeat(RECORD_BYTES_MAX);
    const allocated = vi.spyOn(Buffer, "allocUnsafe");
    expect(refusalOf({ kind: "note", text }).code).toBe("RECORD_TOO_LARGE");
    expect(allocated).not.toHaveBeenCalled();
    allocated.mockRestore();
  });
});

test("what the caller changes after the call changes nothing", () => {
  const record = { kind: "note", list: [1, 2], inner: { a: "before" } };
  const bytes = encoder.encode([record], { seq: 1, at: AT });
  record.list.push(3);
  record.inner.a = "after";
  expect(JSON.parse(bytes.toString())).toMatchObject({ list: [1, 2], inner: { a: "before" } });
});
