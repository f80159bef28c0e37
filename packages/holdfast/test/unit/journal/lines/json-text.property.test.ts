import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeLine, isForeign } from "../../../../src/journal/lines/decode.ts";
import { isNestedTooDeep, isTextTooDeep } from "../../../../src/journal/lines/json-text.ts";
import { RECORD_BYTES_MAX, RECORD_LEVELS_MAX } from "../../../../src/journal/record.ts";
import { holds, seedOf } from "../../../seed.ts";
import { sealedLine, withoutNewline } from "../journals.ts";

const seed = seedOf(import.meta.url, "unit");

const arrays = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const objects = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;

/** An array of texts, half of them made of what counts elsewhere. */
const texts = fc.array(fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'[]{}",:\\') })), { maxLength: 5 });

describe("nesting: as deep as a record may be, and not one level more", () => {
  test("of text and of values, whatever stands in its strings", () => {
    holds(
      fc.property(texts, fc.integer({ min: -2, max: 2 }), fc.constantFrom(arrays, objects), (around, more, nested) => {
        const levels = RECORD_LEVELS_MAX - 1 + more;
        const text = `[${[...around, "end"].map((one) => JSON.stringify(one)).join()},${nested(levels)}]`;
        const bytes = Buffer.from(`]]${text}[[`);
        expect(isTextTooDeep(bytes, 2, bytes.length - 2)).toBe(more > 0);
        expect(isNestedTooDeep(JSON.parse(text))).toBe(more > 0);
      }),
      seed,
      300,
    );
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

  test("foreign JSON is told up to 1 MiB", () => {
    const json = (length: number): Buffer => Buffer.from(`{"a":"${"x".repeat(length - 8)}"}`);
    expect(isForeign(json(1024 * 1024), 0, 1024 * 1024)).toBe(true);
    expect(isForeign(json(1024 * 1024 + 1), 0, 1024 * 1024 + 1)).toBe(false);
  });

  test.each([
    "",
    " ",
    "{",
    "}",
    "{}}",
    "{]}",
    "[,]",
    "00",
    "1.",
    "tru",
    "nulll",
    '"',
    '\ufeff{"a":1}',
    '"\n"',
    "{a:1}",
    "NaN",
  ])("%j is not foreign JSON", (text) => {
    const bytes = Buffer.from(text);
    expect(isForeign(bytes, 0, bytes.length)).toBe(false);
  });

  test("any JSON is foreign, with white space around it", () => {
    holds(
      fc.property(fc.json(), fc.constantFrom("", " ", "\t\r", "  "), (text, around) => {
        const bytes = Buffer.from(around + text + around);
        expect(isForeign(bytes, 0, bytes.length)).toBe(true);
      }),
      seed,
      500,
    );
  });

  test("foreign JSON is UTF-8", () => {
    const bytes = Buffer.from('{"a":"\u00e9"}', "latin1");
    expect(isForeign(bytes, 0, bytes.length)).toBe(false);
  });
});
