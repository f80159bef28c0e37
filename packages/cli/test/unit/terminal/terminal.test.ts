import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import stringWidth from "string-width";
import { describe, expect, test, vi } from "vitest";
import { printerFor } from "../../../src/run/print.ts";
import { bytesWords } from "../../../src/terminal/bytes.ts";
import { harmlessJson, jsonText } from "../../../src/terminal/json.ts";
import { plain, plainLine } from "../../../src/terminal/plain.ts";
import { barLine, progressOn } from "../../../src/terminal/progress.ts";
import { tableLines } from "../../../src/terminal/table.ts";
import { ago, durationMs } from "../../../src/terminal/time.ts";
import { fit, pad, widthOf } from "../../../src/terminal/width.ts";

describe("C25: any text is harmless on a terminal", () => {
  test.each([
    ["colours", "\x1b[31mred\x1b[0m", "red"],
    ["a cursor that moves, a screen that is cleared", "a\x1b[2J\x1b[Hb\x1b[10;10Hc", "abc"],
    ["the title of the window", "\x1b]0;owned\x07text", "text"],
    ["a link, with its end as ST", "\x1b]8;;http://evil\x1b\\shown\x1b]8;;\x1b\\", "shown"],
    ["device control", "\x1bPq#0;2;0;0;0\x1b\\x", "x"],
    ["C1 forms", "\x9b31mred\x9d0;t\x9cx", "redx"],
    ["a sequence that has no end hides nothing", "\x1b]0;all of this is seen", "0;all of this is seen"],
    ["a lone escape", "a\x1bcb", "ab"],
    ["an escape at the very end", "a\x1b", "a"],
    ["a sequence that is made by removing one", "\x1b\x1b[31m[2Jx", "[2Jx"],
    ["bell, backspace, NUL, DEL", "a\x07\x08\x00\x7fb", "a␇␈␀␡b"],
    ["a carriage return that would write over the line", "safe\rEVIL\r\nnext", "safe\nEVIL\nnext"],
    ["line ends that are not ours", "a\u2028b\u0085c\vd", "a\nb\nc\nd"],
    ["what turns the direction of writing", "a\u202egpj.exe\u2066b\u200e", "agpj.exeb"],
    ["half of a character", "a\ud800b", "a\ufffdb"],
    ["new lines and tabs stay", "a\n\tb", "a\n\tb"],
    ["emoji, marks and other scripts stay", "👩‍👩‍👧 é 日本語 עברית", "👩‍👩‍👧 é 日本語 עברית"],
  ])("%s", (_name, text, shown) => {
    expect(plain(text)).toBe(shown);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be left.
    expect(plain(text)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\p{Bidi_Control}]/u);
    expect(plain(plain(text))).toBe(plain(text));
  });

  test("a megabyte of unfinished sequences takes no more than a look at each character", () => {
    expect(plain("\x1b]0;".repeat(250_000)).length).toBe(2 * 250_000);
  });

  test("on one line", () => {
    expect(plainLine(" a\n\n\tb \x1b[1mc\r\n")).toBe("a b c");
  });
});

describe("C25: JSON is harmless on a terminal", () => {
  const value = { "key\x9b": "a\x9b2Jb\x9d0;t\x9c\x7f\u202egpj\u2066\u2028\ufeff\x1b[2J\ud800", n: [1, null] };

  test("the same value, without a character that a terminal obeys", () => {
    for (const text of [jsonText(value), jsonText(value, 2), harmlessJson(JSON.stringify(value))]) {
      expect(JSON.parse(text)).toEqual(value);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be left.
      expect(text).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\p{Bidi_Control}\p{Cs}]/u);
    }
  });

  test("what the command prints as JSON is such text", async () => {
    const written: unknown[] = [];
    const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => written.push(text) > 0);
    (await printerFor({ json: true })).event({ type: "text", text: "a\x9b2J" } as never);
    write.mockRestore();
    expect(written).toEqual([`{"type":"text","text":"a\\u009b2J"}\n`]);
  });

  test("no command writes JSON in another way", () => {
    const folder = join(import.meta.dirname, "../../../src/commands");
    const texts = readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => readFileSync(join(folder, name), "utf8"));
    expect(
      texts.filter((text) => /stdout\.write\([^;]*JSON\.stringify/u.test(text) && !text.includes("torture")),
    ).toEqual([]);
  });
});

describe("columns of a terminal", () => {
  test.each([
    ["ascii", 5],
    ["日本語", 6],
    ["한국어", 6],
    ["ｆｕｌｌ", 8],
    ["🎉", 2],
    ["👩‍👩‍👧", 2],
    ["👍🏽", 2],
    ["🇯🇵", 2],
    ["❤️", 2],
    ["❤", 1],
    ["e\u0301", 1],
    ["naïve", 5],
    ["1️⃣", 2],
  ])("%s takes %i", (text, columns) => {
    expect(widthOf(text)).toBe(columns);
  });

  test("characters that are not looked up take as many as Ink gives them", () => {
    for (let code = 0x20; code < 0x2600; code++) {
      const character = String.fromCodePoint(code);
      expect(widthOf(character), code.toString(16)).toBe(stringWidth(character));
    }
  });

  test("what is cut fits, and never in the middle of a character", () => {
    expect(fit("abcdef", 6)).toBe("abcdef");
    expect(fit("abcdef", 5)).toBe("abcd…");
    expect(fit("日本語", 5)).toBe("日本…");
    expect(fit("日本語", 4)).toBe("日…");
    expect(fit("a👩‍👩‍👧b", 3)).toBe("a…");
    expect(fit("abc", 0)).toBe("");
    for (const text of ["日本語テキスト", "👍🏽👍🏽👍🏽", "e\u0301e\u0301e\u0301e\u0301"])
      for (let columns = 1; columns < 9; columns++) expect(widthOf(fit(text, columns))).toBeLessThanOrEqual(columns);
    expect(pad("日", 4)).toBe("日  ");
    expect(pad("日", 4, "right")).toBe("  日");
  });

  test("a table gives way where it may, and stands in columns", () => {
    const columns = [{ title: "id" }, { title: "n", align: "right" as const }, { title: "title", shrinksTo: 5 }];
    const rows = [
      ["a1", "7", "a long title that does not fit"],
      ["b2", "12", "日本語のタイトル"],
    ];
    const lines = tableLines(columns, rows, 20);
    expect(lines).toEqual(["id   n  title", "a1   7  a long titl…", "b2  12  日本語のタ…"]);
    expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(20);
    expect(tableLines(columns, rows, undefined)[1]).toBe("a1   7  a long title that does not fit");
  });

  test("styles take no columns", () => {
    const lines = tableLines([{ title: "a" }, { title: "b" }], [["x", "y"]], 20, (text) => `<${text}>`);
    expect(lines).toEqual(["<a>  <b>", "<x>  <y>"]);
  });
});

describe("progress", () => {
  const streamOf = (isTTY: boolean) => {
    const written: string[] = [];
    return { written, stream: { isTTY, columns: 60, write: (text: string) => written.push(text) > 0 } as never };
  };

  test("is a bar on a terminal, which is wiped at the end", () => {
    const { written, stream } = streamOf(true);
    let now = 0;
    const progress = progressOn(stream, 4, () => now);
    progress.show(1, "kills");
    progress.show(2, "kills");
    now = 1000;
    progress.show(3, "kills");
    progress.clear();
    expect(written).toEqual([`\r\x1b[2K${barLine(1, 4, "kills")}`, `\r\x1b[2K${barLine(3, 4, "kills")}`, "\r\x1b[2K"]);
  });

  test("is nothing but its named steps where no terminal is", () => {
    const { written, stream } = streamOf(false);
    const progress = progressOn(stream, 4);
    progress.show(1, "kills");
    progress.step("second store");
    progress.clear();
    expect(written).toEqual(["second store\n"]);
  });
});

describe("times and amounts", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");
  test.each([
    ["2026-11-15T11:59:30Z", "just now"],
    ["2026-11-15T12:10:00Z", "just now"],
    ["2026-11-15T11:55:00Z", "5 min ago"],
    ["2026-11-15T09:00:00Z", "3 h ago"],
    ["2026-11-14T11:00:00Z", "1 day ago"],
    ["2026-11-10T11:00:00Z", "5 days ago"],
    ["2026-01-02T11:00:00Z", "2026-01-02"],
    ["nonsense", "?"],
  ])("%s is %s", (at, words) => {
    expect(ago(at, now)).toBe(words);
  });

  test("ages", () => {
    expect(["0s", "90 s", "10min", "2h", "7d", "2 weeks", "500ms"].map(durationMs)).toEqual([
      0, 90_000, 600_000, 7_200_000, 604_800_000, 1_209_600_000, 500,
    ]);
    for (const text of ["", "x", "7", "-1d", "1 fortnight"]) expect(durationMs(text)).toBeNull();
  });

  test("bytes", () => {
    expect([0, 1, 999, 1000, 9949, 12_345, 999_999, 5_600_000].map(bytesWords)).toEqual([
      "0 bytes",
      "1 byte",
      "999 bytes",
      "1.0 kB",
      "9.9 kB",
      "12 kB",
      "1.0 MB",
      "5.6 MB",
    ]);
  });
});
