import fc from "fast-check";
import { expect, test } from "vitest";
import { holds, seedOf } from "../../../../holdfast/test/seed.ts";
import { fitHelp } from "../../../src/commands/help-text.ts";
import { widthOf } from "../../../src/terminal/width.ts";
import { wrapWords } from "../../../src/terminal/wrap-words.ts";

const seed = seedOf(import.meta.url, "unit");

test("wraps between words, keeps the indent, and breaks only a word that is wider than a row", () => {
  expect(wrapWords("one two three", 8)).toEqual(["one two", "three"]);
  expect(wrapWords("  one two three", 9)).toEqual(["  one two", "  three"]);
  expect(wrapWords("one two three", 9, 2)).toEqual(["one two", "  three"]);
  expect(wrapWords("abcdefghij kl", 4)).toEqual(["abcd", "efgh", "ij", "kl"]);
  expect(wrapWords('run "holdfast ls --all" now', 20)).toEqual(["run", '"holdfast ls --all"', "now"]);
  expect(wrapWords('run "holdfast ls --all" now', 14)).toEqual(['run "holdfast', 'ls --all" now']);
  expect(wrapWords("a\n\nb", 4)).toEqual(["a", "", "b"]);
  expect(wrapWords("one two three", undefined)).toEqual(["one two three"]);
  expect(wrapWords("one two three", 0), "a terminal that does not know its size").toEqual(["one two three"]);
  expect(wrapWords("日本語日本語", 5)).toEqual(["日本", "語日", "本語"]);
});

test("no row is wider than the terminal, and no word is lost", () => {
  const word = fc.stringMatching(/^[a-zé日👍]{1,12}$/u);
  holds(
    fc.property(
      fc.array(word, { maxLength: 20 }),
      fc.integer({ min: 2, max: 40 }),
      fc.nat(8),
      (words, columns, hang) => {
        const rows = wrapWords(words.join(" "), columns, hang);
        for (const row of rows) expect(widthOf(row)).toBeLessThanOrEqual(columns);
        expect(rows.join("").replaceAll(/\s/g, "")).toBe(words.join(""));
      },
    ),
    seed,
    200,
  );
});

test("help in a narrow terminal: descriptions below their terms, commands whole, prose between words", () => {
  const text = [
    "  holdfast -c [prompt]    continue the latest session",
    '  holdfast run "a prompt that is long" --allow x',
    "  5  store error: disk full, permission denied",
    "Prose that is longer than a row of this terminal.",
  ].join("\n");
  expect(fitHelp(text, 30).split("\n")).toEqual([
    "  holdfast -c [prompt]",
    "      continue the latest",
    "      session",
    '  holdfast run "a prompt that is long" --allow x',
    "  5  store error: disk full,",
    "     permission denied",
    "Prose that is longer than a",
    "row of this terminal.",
  ]);
  expect(fitHelp(text, undefined)).toBe(text);
});
