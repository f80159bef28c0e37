import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeLine, isForeign } from "../../../../src/journal/lines/decode.ts";
import { isJson, isNestedTooDeep } from "../../../../src/journal/lines/json-text.ts";
import { RECORD_BYTES_MAX, RECORD_LEVELS_MAX } from "../../../../src/journal/record.ts";
import { holds, seedOf } from "../../../seed.ts";
import { sealedLine, withoutNewline } from "../journals.ts";

const seed = seedOf(import.meta.url, "unit");

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function says(text: string): boolean {
  const bytes = Buffer.from(text);
  return isJson(bytes, 0, bytes.length);
}

const arrays = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const objects = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;

/** Text that is nearly JSON: some of it, with a few characters put in, taken out, or put in place of others. */
const nearlyJson = fc
  .tuple(
    fc.json({ maxDepth: 4 }),
    fc.array(
      fc.record({
        at: fc.nat(200),
        take: fc.nat(3),
        put: fc.constantFrom(
          "",
          ...'{}[]",:\\ \t\n\r0129.eE+-utrfn',
          "\\u00",
          "\\u00e9",
          "true",
          "nul",
          "\u0000",
          "é",
          "1e5",
          "01",
          "-",
          "\ufeff",
        ),
      }),
      { maxLength: 3 },
    ),
  )
  .map(([text, changes]) =>
    changes.reduce(
      (now, { at, take, put }) => now.slice(0, at % (now.length + 1)) + put + now.slice((at % (now.length + 1)) + take),
      text,
    ),
  );

describe("whether a line is JSON is told without making the value", () => {
  test("as JSON.parse tells it, of JSON and of what is nearly JSON", () => {
    holds(
      fc.property(fc.oneof(nearlyJson, fc.json(), fc.string(), fc.string({ unit: "grapheme" })), (text) => {
        expect(says(text), JSON.stringify(text)).toBe(parses(text));
      }),
      seed,
      3000,
    );
  });

  test.each([
    "",
    " ",
    "0",
    "-0",
    "-",
    "00",
    "1.",
    ".5",
    "1.5e",
    "1e+5",
    "1E-05",
    "1e5.",
    "+1",
    "tru",
    "true",
    "truee",
    "null ",
    "\tfalse\r\n",
    '"',
    '"\\"',
    '"\\x"',
    '"\\u12"',
    '"\\u12G4"',
    '"\\uABcd"',
    '"a\nb"',
    "[]",
    "[ ]",
    "[,]",
    "[1,]",
    "[1 2]",
    "{}",
    "{ }",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{"a":1,"a":2}',
    "{a:1}",
    '{"a":[{"b":[]}]}',
    "[}",
    "{]",
    "[]]",
    "[[]",
    "1 1",
    '{"":""}',
    "[1,\t2 ,3\r\n]",
    "Infinity",
    "NaN",
    "'a'",
    '"\u007f"',
    '"\u2028"',
  ])("%j", (text) => {
    expect(says(text)).toBe(parses(text));
  });

  test("only the bytes that are meant are looked at", () => {
    const bytes = Buffer.from('x[1,2]"y"');
    expect(isJson(bytes, 1, 6)).toBe(true);
    expect(isJson(bytes, 1, 5)).toBe(false);
    expect(isJson(bytes, 1, 7)).toBe(false);
    expect(isJson(bytes, 6, 9)).toBe(true);
    expect(isJson(bytes, 6, 8)).toBe(false);
  });

  test("nesting: as deep as a record may be, and not one level more, whether text or value", () => {
    for (const nested of [arrays, objects]) {
      expect([says(nested(RECORD_LEVELS_MAX)), says(nested(RECORD_LEVELS_MAX + 1))]).toEqual([true, false]);
      const value = (levels: number): unknown => JSON.parse(nested(levels));
      expect([isNestedTooDeep(value(RECORD_LEVELS_MAX)), isNestedTooDeep(value(RECORD_LEVELS_MAX + 1))]).toEqual([
        false,
        true,
      ]);
    }
  });

  test("a program that adds to Object.prototype does not make everything deep", () => {
    Object.assign(Object.prototype, { extended: { by: "a program" } });
    try {
      expect(isNestedTooDeep({ a: [{}] })).toBe(false);
    } finally {
      Reflect.deleteProperty(Object.prototype, "extended");
    }
  });
});

describe("decodeLine never throws, and takes nothing that a writer would not write", () => {
  const record = (payload: string): Buffer =>
    withoutNewline(sealedLine(`{"seq":1,"at":"","kind":"x","deep":${payload}`));
  const isWhole = (bytes: Buffer): boolean => decodeLine(bytes, 0, bytes.length) !== null;

  // Short lines, those that are parsed before they are looked at, and those that are looked at first.
  test.each([0, 3_000, 2 * 1024 * 1024])(
    "a record that is nested too deep is not whole (with %i bytes of text beside it)",
    (length) => {
      const text = `"${"x".repeat(length)}"`;
      const within = (levels: number): Buffer => record(`[${text},${arrays(levels)}]`);
      expect(isWhole(within(RECORD_LEVELS_MAX - 2))).toBe(true);
      expect(isWhole(within(RECORD_LEVELS_MAX - 1))).toBe(false);
    },
  );

  test("a million levels, with a right checksum or without, in a record or not", () => {
    const deep = arrays(1_000_000);
    expect(isWhole(record(deep))).toBe(false);
    const foreign = Buffer.from(deep);
    expect(isForeign(foreign, 0, foreign.length)).toBe(false);
    const open = Buffer.from("[".repeat(10_000_000));
    expect(isForeign(open, 0, open.length)).toBe(false);
  });

  test("a long line with a right checksum that is no JSON", () => {
    expect(isWhole(record(`"${"x".repeat(2 * 1024 * 1024)}`))).toBe(false);
  });

  test("a record is as long as it may be, and not one byte longer", () => {
    const rest = record('""').length + 1;
    const largest = record(`"${"x".repeat(RECORD_BYTES_MAX - rest)}"`);
    expect(largest.length).toBe(RECORD_BYTES_MAX - 1);
    expect(isWhole(largest)).toBe(true);
    expect(isWhole(record(`"${"x".repeat(RECORD_BYTES_MAX - rest + 1)}"`))).toBe(false);
  });

  test("foreign JSON is told up to that length", () => {
    const json = (length: number): Buffer => Buffer.from(`"${"x".repeat(length - 2)}"`);
    expect(isForeign(json(RECORD_BYTES_MAX - 1), 0, RECORD_BYTES_MAX - 1)).toBe(true);
    expect(isForeign(json(RECORD_BYTES_MAX), 0, RECORD_BYTES_MAX)).toBe(false);
  });
});
