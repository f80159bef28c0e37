import { expect, test } from "vitest";
import type { CallItem, Item } from "../../../src/api/wire.ts";
import { agoWords, costWords, countWords, durationWords, tokensWords } from "../../../src/text/durations.ts";
import { itemLabel, subjectOf } from "../../../src/text/item-words.ts";
import { shorten, splitByWords, visible } from "../../../src/text/visible.ts";

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000] as const;

test("a duration has two units at most, and changes to the next one at its bound", () => {
  const cases: [ms: number, words: string][] = [
    [0, "0 ms"],
    [999, "999 ms"],
    [1000, "1.0 s"],
    [9940, "9.9 s"],
    [10_000, "10 s"],
    [59_499, "59 s"],
    [MINUTE, "1 min"],
    [61_000, "1 min 1 s"],
    [2 * MINUTE, "2 min"],
    [59 * MINUTE + 59_000, "59 min 59 s"],
    [HOUR, "1 h"],
    [HOUR + MINUTE, "1 h 1 min"],
    [47 * HOUR + 59 * MINUTE, "47 h 59 min"],
    [48 * HOUR, "2 days"],
    [59 * HOUR, "2 days"],
    [60 * HOUR, "3 days"],
  ];
  for (const [ms, words] of cases) expect(durationWords(ms)).toBe(words);
});

test("how long ago, then the date", () => {
  const now = Date.parse("2026-11-16T12:00:00Z");
  const ago = (ms: number): string => agoWords(new Date(now - ms).toISOString(), now);
  const cases: [ms: number, words: string][] = [
    [-5000, "now"],
    [MINUTE - 1, "now"],
    [MINUTE, "1 min"],
    [HOUR - 1, "59 min"],
    [HOUR, "1 h"],
    [DAY - 1, "23 h"],
    [DAY, "1 d"],
    [7 * DAY - 1, "6 d"],
    [7 * DAY, "Nov 9, 2026"],
  ];
  for (const [ms, words] of cases) expect(ago(ms)).toBe(words);
});

test("counts, tokens and costs", () => {
  expect([countWords(1, "turn"), countWords(0, "turn"), countWords(1200, "turn")]).toEqual([
    ...["1 turn", "0 turns", "1,200 turns"],
  ]);
  expect(countWords(2, "entry", "entries")).toBe("2 entries");
  expect([9999, 10_000, 999_940, 1_000_000, 1_250_000_000].map(tokensWords)).toEqual([
    ...["9,999", "10.0k", "999.9k", "1.0M", "1250.0M"],
  ]);
  const cost = (amount: number, currency = "USD"): string => costWords({ amount, currency });
  expect([cost(0), cost(0.1), cost(0.0999), cost(-0.5), cost(1.5, "EUR")]).toEqual([
    ...["$0.00", "$0.10", "$0.0999", "$-0.50", "1.50 EUR"],
  ]);
});

test("what a row is, for people who hear the page", () => {
  const common = { id: "i", at: "", turn: 3 };
  const call = (state: CallItem["state"]): Item => ({
    ...common,
    kind: "call",
    call: "c",
    name: "rm",
    input: {},
    state,
  });
  expect(itemLabel({ ...common, kind: "prompt", text: "" })).toBe("Prompt, turn 3");
  expect(itemLabel({ ...common, kind: "answer", text: "" })).toBe("Answer");
  expect(itemLabel({ ...common, kind: "reasoning", text: "" })).toBe("Reasoning");
  expect(itemLabel({ ...common, kind: "note" } as unknown as Item)).toBe("Note");
  expect((["open", "done", "unknown", "not-run"] as const).map((state) => itemLabel(call(state)))).toEqual([
    "Tool call: rm, no result yet",
    "Tool call: rm, done",
    "Tool call: rm, outcome unknown",
    "Tool call: rm, did not run",
  ]);
  expect((["waiting", "running", "failed", "denied"] as const).map((state) => itemLabel(call(state)))).toEqual([
    "Tool call: rm, waiting for approval",
    "Tool call: rm, running",
    "Tool call: rm, failed",
    "Tool call: rm, denied",
  ]);
});

test("the part of an input that a person recognises, in the order of how telling it is", () => {
  const names = ["path", "file_path", "filePath", "file", "filename", "command", "cmd", "pattern", "query", "url"];
  for (const name of [...names, "task", "prompt", "description"])
    expect(subjectOf({ other: "x", [name]: " a\n b " })).toBe("a b");
  expect(subjectOf({ description: "why", command: "ls", path: "a.ts" })).toBe("a.ts");
  expect(subjectOf({ path: "  ", command: "ls" })).toBe("ls");
  expect(subjectOf({ path: 7, url: "u" })).toBe("u");
  expect([subjectOf(" a\n\n b"), subjectOf(false), subjectOf(0), subjectOf(null)]).toEqual([" a b", "false", "0", ""]);
  expect(subjectOf({ a: { b: [1] }, c: undefined, d: "x\ny" })).toBe('a: {"b":[1]}, c: , d: x y');
  // Cut, so that a row stays a row.
  expect(subjectOf("x".repeat(999))).toBe("x".repeat(300));
  expect(subjectOf({ path: "x".repeat(999) })).toBe("x".repeat(300));
  expect(subjectOf({ a: "x".repeat(999) })).toBe(`a: ${"x".repeat(100)}`);
  expect(subjectOf(Object.fromEntries([..."abcd"].map((name) => [name, "x".repeat(100)])))).toHaveLength(300);
});

test("a text is shortened at the last line end that fits, and says how much is left", () => {
  expect(shorten("a\nb\nc", 1, 9)).toEqual({ text: "a", rest: 4 });
  expect(shorten("a\nb\nc", 3, 9)).toEqual({ text: "a\nb\nc", rest: 0 });
  expect(shorten("\n\n\n", 2, 9)).toEqual({ text: "\n", rest: 2 });
  expect(shorten("abcdef", 9, 4)).toEqual({ text: "abcd", rest: 2 });
  expect(shorten("ab\ncd\nef", 2, 4)).toEqual({ text: "ab\nc", rest: 4 });
  expect(shorten("ab\ncd\nef", 2, 5)).toEqual({ text: "ab\ncd", rest: 3 });
  expect(shorten("ab\ncd\nef", 2, 6)).toEqual({ text: "ab\ncd", rest: 3 });
});

test("the words of a search are marked, each by itself, whatever is around them", () => {
  const marked = (excerpt: string, query: string): string =>
    splitByWords(excerpt, query)
      .map(({ text, isHit }) => (isHit ? `[${text}]` : text))
      .join("|");
  expect(marked("one two one", "ONE  two")).toBe("[one]| |[two]| |[one]");
  expect(marked("a.b axb", "a.b")).toBe("[a.b]| axb");
  expect(marked("nothing", "here")).toBe("nothing");
  expect(splitByWords("all", "")).toEqual([{ text: "all", isHit: false }]);
});

test("what nobody sees is shown by its number; what joins letters stays", () => {
  expect(visible("\u0001\u{e0041}")).toBe("⟨U+0001⟩⟨U+E0041⟩");
  expect(visible("\n\r\t\u00ad\u200c\u200dé")).toBe("\n\r\t\u00ad\u200c\u200dé");
});
