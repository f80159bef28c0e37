import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { holds, seedOf } from "../../../../holdfast/test/seed.ts";
import { plain } from "../../../src/terminal/plain.ts";

/**
 * Every screen and every export goes through `plain`, so its cost must grow with the text alone. Counted in characters
 * that its searches pass over, not in time.
 */

const seed = seedOf(import.meta.url, "unit");
const COUNTED = 20_000;
const MEGABYTE = 1_000_000;

/**
 * A search for one character of a class, or for a run of them: it looks at each character once. Any other expression
 * can go back, and then characters cannot be counted.
 */
const SEARCH = /^(?:\\r\+\\n\?\|)?\[(?:\\.|[^\]\\])*\]\+?$/;

/**
 * Characters that all searches together have looked at. A search that finds nothing has looked at the rest of the text.
 */
function lookedAt(text: string): number {
  let characters = 0;
  const { exec } = RegExp.prototype;
  RegExp.prototype.exec = function (this: RegExp, given: string) {
    const from = this.global || this.sticky ? this.lastIndex : 0;
    if (!exec.call(SEARCH, this.source)) throw new Error(`not a search for one class: ${this.source}`);
    const found = exec.call(this, given);
    characters += found ? found.index + found[0].length - from : given.length - from;
    return found;
  };
  try {
    plain(text);
  } finally {
    RegExp.prototype.exec = exec;
  }
  return characters;
}

const OPENERS = ["\x90", "\x98", "\x9d", "\x9e", "\x9f", "\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_"];

describe("a megabyte takes a few looks at each character", () => {
  test.each([
    ...OPENERS.map((opener) => ({ name: "strings that do not end", text: opener })),
    ...OPENERS.map((opener) => ({ name: "strings with content that do not end", text: `${opener}0;title` })),
    { name: "C1 strings, and ESC strings that do not end", text: "\x9d\x1b]" },
    { name: "control sequences that do not end", text: "\x9b0;0" },
    { name: "control sequences that do not end", text: "\x1b[0;0 " },
    { name: "escapes with intermediates", text: "\x1b    " },
    { name: "carriage returns", text: "\r" },
    { name: "carriage returns and words", text: "\r\r\ra" },
    { name: "escapes", text: "\x1b" },
    { name: "other controls", text: "\x00\x07\x9c" },
    { name: "turns of direction", text: "\u202e" },
    { name: "combining marks", text: "\u0301\x1b" },
  ])("$name: $text", ({ text }) => {
    const of = (length: number): string => `${text.repeat(Math.ceil(length / text.length))}x`;
    // Five passes: is there anything to do, escapes (with up to two searches at an opener), line ends, direction,
    // controls.
    expect(lookedAt(of(COUNTED))).toBeLessThan(8 * COUNTED);
    // Counting takes longer than `plain` itself, and without the line above, this would take an hour.
    if (text.length === 1) expect(plain(of(MEGABYTE)).length).toBeLessThanOrEqual(MEGABYTE + 1);
  });

  test("many openers in front of one end", () => {
    expect(lookedAt(`${"\x9d".repeat(COUNTED)}\x07`)).toBeLessThan(8 * COUNTED);
    expect(plain(`${"\x9d".repeat(MEGABYTE)}\x07`) === "").toBe(true);
  });
});

/** What `plain` took for escape sequences and line ends when it was one expression for each: exact, and quadratic. */
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is for.
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]?/g;
const LINE_ENDS = /\r+\n|[\r\u{85}\u{2028}\u{2029}\v\f]/gu;

test("any text comes out as by the expressions that define escape sequences and line ends", () => {
  const pieces = fc.constantFrom(
    ...OPENERS,
    ...["\x1b", "\x9b", "\x1b[", "\x07", "\x9c", "\x1b\\", "\\", "\r", "\n", "\x85", "0", ";", " ", "/", "m", "@", "~"],
    ...["[", "]", "P", "é", "\x7f"],
  );
  holds(
    fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
      const text = parts.join("");
      const expected = text.replace(ESCAPES, "").replace(LINE_ENDS, "\n");
      expect(plain(text)).toBe(
        expected
          .replaceAll("\x07", "␇")
          .replaceAll("\x7f", "␡")
          .replace(/[\x80-\x9f]/g, "\ufffd"),
      );
    }),
    seed,
    5000,
  );
});
