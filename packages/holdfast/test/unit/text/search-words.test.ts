import { describe, expect, test } from "vitest";
import { excerptOf, ftsOf, searchable, stretchesOf, wordsOf } from "../../../src/text/search-words.ts";

const queryOf = (text: string): string | null => {
  const words = wordsOf(text);
  return words && ftsOf(words);
};

describe("a query", () => {
  test.each<[text: string, query: string | null]>([
    ["", null],
    [" \n\t ", null],
    ['"*" () - ^ :', null],
    ["word", '"word"*'],
    ["two  words", '"two" "words"*'],
    ["two two words two", '"two" "words" "two"*'],
    ['say "NEAR(a b)" OR text:x*', '"say" """NEAR(a" "b)""" "OR" "text:x*"*'],
    ["last ???", '"last"*'],
    ["東京 tower", '"東\u200b京" "tower"*'],
    ["cafe\u0301", '"café"*'],
  ])("%j is %j", (text, query) => {
    expect(queryOf(text)).toBe(query);
  });

  test("words after the 256th are not looked for", () => {
    const words = Array.from({ length: 300 }, (_, i) => `w${i}`);
    expect(queryOf(words.join(" "))).toBe(queryOf(words.slice(0, 256).join(" ")));
  });
});

describe("C25: text as it is kept and shown", () => {
  test.each<[text: string, line: string]>([
    ["one\ntwo\r\n\tthree\u2028four", "one two three four"],
    ["\u001b[2Jcleared\u0007\u009b31m", "\uFFFD[2Jcleared\uFFFD\uFFFD31m"],
    ["\u202egnp.exe\u202c \u2066x\u2069 \u200ey", "\uFFFDgnp.exe\uFFFD \uFFFDx\uFFFD \uFFFDy"],
    ["half \ud83d of a pair", "half \uFFFD of a pair"],
    ["family 👨‍👩‍👧", "family 👨‍👩‍👧"],
    ["<b>bold</b>", "<b>bold</b>"],
  ])("%j is %j", (text, line) => {
    expect(searchable(text)).toBe(line);
  });

  test("characters of scripts without spaces stand apart, once each", () => {
    expect(searchable("iPhone用ケース 한국어로")).toBe("iPhone|用|ケ|ー|ス 한|국|어|로".replaceAll("|", "\u200b"));
  });

  test("an excerpt has neither marks nor gaps", () => {
    expect(excerptOf("…a \u0001東\u200b京\u0002\u200bタ b…")).toBe("…a 東京タ b…");
  });

  test("an excerpt stays short and shows the hit, however long a word is", () => {
    const long = "x".repeat(50_000);
    expect(excerptOf(`${long} \u0001needle\u0002 ${long}`)).toBe(`…needle ${"x".repeat(140 - 7)}…`);
    expect(excerptOf(`\u0001${long}\u0002`)).toBe(`${"x".repeat(200)}…`);
    expect(excerptOf(`${long} \u0001needle\u0002`)).toBe("…needle");
    expect(excerptOf(`${"😀".repeat(500)}\u0001needle\u0002${"😀".repeat(500)}`).isWellFormed()).toBe(true);
  });

  test("an excerpt begins and ends with whole words", () => {
    const excerpt = excerptOf(`${"before ".repeat(100)}\u0001needle\u0002${" after".repeat(100)}`);
    expect(excerpt).toMatch(/^…(before )+needle( after)+…$/);
    expect(excerpt.length).toBeLessThanOrEqual(202);
  });

  test("an excerpt is taken where most of the words stand together", () => {
    const hay = "hay ".repeat(200);
    const marked = (word: string) => `\u0001${word}\u0002 `;
    const text = `${marked("one")}${hay}${marked("two")}${marked("two")}${hay}${marked("One")}and ${marked("two")}${hay}`;
    expect(excerptOf(text)).toContain("hay One and two hay");
  });
});

describe("C28: a long text in stretches", () => {
  test("a short one is one", () => {
    expect([...stretchesOf("short")]).toEqual(["short"]);
  });

  test("cut at white space: every word is whole, and none is there twice", () => {
    const words = Array.from({ length: 40_000 }, (_, i) => `word${i}`);
    const stretches = [...stretchesOf(words.join(" "))];
    expect(stretches.length).toBeGreaterThan(4);
    expect(stretches.flatMap((stretch) => stretch.split(" "))).toEqual(words);
  });

  test("without white space they overlap: any 200 characters stand in one of them", () => {
    const text = Array.from({ length: 60_000 }, (_, i) => String.fromCodePoint(0x4e00 + (i % 20_000))).join("\u200b");
    const stretches = [...stretchesOf(text)];
    for (let at = 0; at + 200 <= text.length; at += 97) {
      const part = text.slice(at, at + 200);
      expect(stretches.some((stretch) => stretch.includes(part))).toBe(true);
    }
  });
});
