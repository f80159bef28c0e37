import { expect, test } from "vitest";
import { actionFor, SHORTCUTS } from "../../../src/keys/keymap.ts";
import { agoWords, costWords, durationWords, tokensWords } from "../../../src/text/durations.ts";
import { subjectOf } from "../../../src/text/item-words.ts";
import { shorten, splitByWords, visible } from "../../../src/text/visible.ts";

test("durations and times in words", () => {
  expect([0, 850, 2400, 59_600, 60_000, 192_000, 7_500_000, 86_400_000 * 3].map(durationWords)).toEqual([
    "0 ms",
    "850 ms",
    "2.4 s",
    "1 min",
    "1 min",
    "3 min 12 s",
    "2 h 5 min",
    "3 days",
  ]);
  const now = Date.parse("2026-11-16T12:00:00Z");
  expect(
    ["2026-11-16T11:59:30Z", "2026-11-16T11:20:00Z", "2026-11-14T12:00:00Z", "nonsense"].map((at) => agoWords(at, now)),
  ).toEqual(["now", "40 min", "2 d", ""]);
  expect([0, 9999, 12_340, 4_500_000].map(tokensWords)).toEqual(["0", "9,999", "12.3k", "4.5M"]);
  expect(costWords({ amount: 0.0123, currency: "USD" })).toBe("$0.0123");
  expect(costWords({ amount: 3, currency: "EUR" })).toBe("3.00 EUR");
});

test("invisible characters and those that turn the reading direction are shown", () => {
  expect(visible("a\u202Eb\u0007\u200b\n\tc")).toBe("a⟨U+202E⟩b⟨U+0007⟩⟨U+200B⟩\n\tc");
});

test("a text is cut by lines or characters, never inside a character", () => {
  expect(shorten("a\nb\nc", 2, 100)).toEqual({ text: "a\nb", rest: 2 });
  expect(shorten("short", 10, 10)).toEqual({ text: "short", rest: 0 });
  expect(shorten("ab😀", 10, 3).text.isWellFormed()).toBe(true);
});

test("the words of a search are marked, also those that mean something in a pattern", () => {
  expect(splitByWords("Fix the (bug) now", "(bug) fix")).toEqual([
    { text: "Fix", isHit: true },
    { text: " the ", isHit: false },
    { text: "(bug)", isHit: true },
    { text: " now", isHit: false },
  ]);
  expect(splitByWords("all", " ")).toEqual([{ text: "all", isHit: false }]);
});

test("the part of an input that a person recognises", () => {
  expect(subjectOf({ limit: 3, path: "a.ts" })).toBe("a.ts");
  expect(subjectOf({ channel: "#a", count: 2 })).toBe("channel: #a, count: 2");
  expect([subjectOf(undefined), subjectOf(null), subjectOf({}), subjectOf(7)]).toEqual(["", "", "", "7"]);
});

test("keys: each has one meaning; none while typing; the browser keeps its own", () => {
  const keys = SHORTCUTS.flatMap((shortcut) => shortcut.keys);
  expect(new Set(keys).size).toBe(keys.length);
  const press = { key: "j", ctrlKey: false, metaKey: false, altKey: false, isTyping: false, isOnControl: false };
  expect(actionFor(press, false)).toBe("next-session");
  expect(actionFor({ ...press, ctrlKey: true }, true)).toBeNull();
  expect(actionFor({ ...press, isTyping: true }, true)).toBeNull();
  expect(actionFor({ ...press, isTyping: true, key: "Escape" }, true)).toBe("back");
  expect(actionFor({ ...press, key: "s" }, false)).toBeNull();
  expect(actionFor({ ...press, key: "s" }, true)).toBe("stop");
  expect(actionFor({ ...press, key: "Enter", isOnControl: true }, true)).toBeNull();
});
