import { DatabaseSync } from "node:sqlite";
import { ftsOf, HIT_BEGINS, HIT_ENDS, searchable, wordsOf } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import { phrasesOf, tokensOf, withMarks } from "../../../src/search/tokens.ts";

/** The index that stores without tables of their own have. */
function fts(text: string): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  database.exec(`CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
    CREATE VIRTUAL TABLE words USING fts5vocab (texts, instance)`);
  database.prepare("INSERT INTO texts VALUES (?)").run(text);
  return database;
}

const TEXTS = [
  "The quick brown fox, foo_bar/baz.ts v2.0 — “quoted”!",
  "Ærøskøbing ÜBER Straße ẞ naïve cafe\u0301 Ångström ŁÓDŹ",
  "ΟΔΟΣ οδός ΣΊΣΥΦΟΣ σίσυφος",
  "Привет, МИР! Ёлка ёлка й Й",
  "请帮我修复构建错误 今日は東京タワーに行きました 서울에서 만나요 สวัสดีชาวโลก",
  "हिन्दी में खोज العربيّة עִבְרִית",
  "x² ½ Ⅷ ١٢٣ 12,345 a1b2 \ue000\ue001 👨‍👩‍👧 c++ c#",
  "İstanbul ISTANBUL ıstanbul ǅ ﬁ",
  "a\u0300\u0301b e\u0323 ṩ \u0301alone",
];

describe("words for stores that find texts by other means: the same as SQLite's", () => {
  test.each(TEXTS)("%j", (text) => {
    const line = searchable(text);
    const database = fts(line);
    const rows = database.prepare('SELECT term FROM words ORDER BY "offset"').all();
    expect(tokensOf(line).map(({ word }) => word)).toEqual(rows.map((row) => row["term"]));
    database.close();
  });

  test.each(["quick", "bar baz", "foo_bar baz", "v2.0", "qu", "foo bar foo_bar", "the fox quick quo"])(
    "the same marks around hits: %j",
    (typed) => {
      const line = searchable(`${TEXTS[0]} and the quick again: foo bar foo_bar`);
      const database = fts(line);
      const words = wordsOf(typed)!;
      const marked = database
        .prepare(`SELECT highlight(texts, 0, '${HIT_BEGINS}', '${HIT_ENDS}') AS marked FROM texts WHERE texts MATCH ?`)
        .get(ftsOf(words));
      expect(withMarks(line, phrasesOf(words))).toBe(marked?.["marked"]);
      database.close();
    },
  );
});
