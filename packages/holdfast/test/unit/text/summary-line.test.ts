import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { oneLine } from "../../../src/text/one-line.ts";
import { holds, seedOf } from "../../seed.ts";

const seed = seedOf(import.meta.url, "unit");

describe("the beginning of a text on one line", () => {
  test.each([
    ["a short one is itself", "Fix the build", "Fix the build"],
    ["C24: lines, tabs and runs of space become one space", "  a\n\n b\t\tc\u2028d\r\n", "a b c d"],
    ["C25: escape sequences go", "\u001b[31mred\u001b[0m \u001b]8;;http://x\u0007link\u001b]8;;\u0007", "red link"],
    ["C25: other control characters do not stay", "a\u0000b\u0008c\u009bd\u007f", "a b c d"],
    ["C25: what turns the direction of writing goes", "user\u202etxt.exe\u2066\u200f", "usertxt.exe"],
    ["what is not Unicode is replaced", "a\ud800b", "a\ufffdb"],
    ["emoji of several parts stay whole", "👩‍👩‍👧‍👦 ok", "👩‍👩‍👧‍👦 ok"],
    ["nothing", " \n ", ""],
  ])("%s", (_name, text, line) => {
    expect(oneLine(text, 80)).toBe(line);
  });

  test("it is cut between words", () => {
    expect(oneLine("the quick brown fox jumps over the lazy dog", 20)).toBe("the quick brown fox…");
    expect(oneLine("the quick brown foxes", 20)).toBe("the quick brown…");
    expect(oneLine("the quick brown fox j", 20)).toBe("the quick brown fox…");
  });

  test("without words in reach, between graphemes", () => {
    expect(oneLine(`a ${"b".repeat(50)}`, 10)).toBe("a bbbbbbb…");
    expect(oneLine("日本語の長い文章です", 6)).toBe("日本語の長…");
    const family = "👩‍👩‍👧‍👦";
    expect(oneLine(family.repeat(3), 25)).toBe(`${family.repeat(2)}…`);
    expect(oneLine("e\u0301".repeat(10), 10)).toBe(`${"e\u0301".repeat(4)}…`);
  });

  test("a letter under ten thousand marks is cut all the same", () => {
    expect(oneLine(`a${"\u0301".repeat(10_000)}`, 80)).toHaveLength(80);
    expect(oneLine(`${"😀\u200d".repeat(1000)}`, 8).isWellFormed()).toBe(true);
  });

  test("more that is only seen to follow is said too", () => {
    expect(oneLine(`a${" ".repeat(10_000)}b`, 20)).toBe("a…");
  });

  test("what is looked at does not end in the middle of a character", () => {
    expect(oneLine(`a${" ".repeat(8 * 20 - 2)}😀b`, 20)).toBe("a…");
    expect(oneLine(`a${" ".repeat(8 * 20 - 3)}😀b`, 20)).toBe("a 😀…");
  });

  test("C28: it keeps nothing of a long text alive", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    // As it comes out of a journal: a string on the heap.
    const parsed = (text: string) => JSON.parse(JSON.stringify(text)) as string;
    collect();
    const before = process.memoryUsage().heapUsed;
    const lines = ["word ", "x"].map((text) => oneLine(parsed(text.repeat(40_000_000 / text.length)), 80));
    collect();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000);
    expect(lines).toEqual([`${"word ".repeat(15)}word…`, `${"x".repeat(79)}…`]);
  });

  test("any text: one line, at most so long, well-formed, and the same again", () => {
    const control = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u;
    const text = fc.string({
      unit: fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("\u001b[", "\n", "👩‍👧", "\ud83d")),
    });
    holds(
      fc.property(text, fc.integer({ min: 2, max: 90 }), (any, charsMax) => {
        const line = oneLine(any, charsMax);
        expect(line.length).toBeLessThanOrEqual(charsMax);
        expect(line.isWellFormed()).toBe(true);
        expect(control.test(line)).toBe(false);
        expect(oneLine(line, charsMax)).toBe(line);
      }),
      seed,
      500,
    );
  });
});
