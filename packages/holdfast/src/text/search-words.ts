/**
 * Text as the index keeps it, queries as FTS5 reads them, and excerpts as people see them. All pure.
 *
 * The tokenizer is `unicode61`: words are runs of letters and digits, ignoring case and diacritics. It treats a run of
 * Chinese or Japanese as one word. The `trigram` tokenizer finds any part of a word, but nothing shorter than three
 * characters (most Chinese words have two), needs an index three times as large, and would find "concatenate" for
 * "cat". So in scripts written without spaces, and in Korean, whose words carry particles, each character becomes a
 * separate word, and a query becomes a phrase: any part of a word is found, from one character up.
 */

import type { TextQuery } from "../journal/texts.ts";

/** Separates the characters of such scripts. It is not a letter, has no width, and is removed from excerpts. */
const GAP = "\u200B";
const SCRIPTS = ["Han", "Hiragana", "Katakana", "Hangul", "Thai", "Lao", "Khmer", "Myanmar"];
const REPLACEMENT = "\uFFFD";
const QUERY_WORDS_MAX = 256;

const STRETCH_CHARS = 32 * 1024;
/** A longer word may be split. */
const OVERLAP_CHARS = 256;

/** Enclose a hit in SQLite's results: no text in the index contains them. */
export const HIT_BEGINS = "\u0001";
export const HIT_ENDS = "\u0002";
const EXCERPT_CHARS = 200;
const BEFORE_HIT_CHARS = 60;

interface Expressions {
  readonly hasUnspaced: RegExp;
  readonly betweenUnspaced: RegExp;
  /** Characters that would move a terminal's cursor or reorder the text around them (C25). */
  readonly harmful: RegExp;
  /** The characters that `unicode61` builds words from. */
  readonly inWords: RegExp;
}

/** Made on first use: their tables of Unicode take longer than anything else that importing the library does. */
let made: Expressions | null = null;

function expressions(): Expressions {
  made ??= makeExpressions();
  return made;
}

function makeExpressions(): Expressions {
  // The long-vowel marks of kana belong to no script.
  const unspaced = `[${SCRIPTS.map((script) => `\\p{sc=${script}}`).join("")}\\u30FC\\uFF70]`;
  return {
    hasUnspaced: new RegExp(unspaced, "u"),
    betweenUnspaced: new RegExp(`(?<=${unspaced})(?=\\S)|(?<=\\S)(?=${unspaced})`, "gu"),
    harmful: /[\p{Cc}\p{Bidi_Control}]/gu,
    inWords: /[\p{L}\p{N}\p{Co}]/u,
  };
}

/** On one line, safe to show, and with its words separated. */
export function searchable(text: string): string {
  const { harmful, hasUnspaced, betweenUnspaced } = expressions();
  const line = text.toWellFormed().normalize("NFC").replace(/\s+/g, " ").trim().replace(harmful, REPLACEMENT);
  return hasUnspaced.test(line) ? line.replace(betweenUnspaced, GAP) : line;
}

/**
 * The words of a query, of which the last may be unfinished; null if there are none. Words after the 256th are ignored.
 */
export function wordsOf(text: string): TextQuery | null {
  const { inWords } = expressions();
  const words = searchable(text)
    .split(" ")
    .filter((word) => inWords.test(word))
    .slice(0, QUERY_WORDS_MAX);
  const last = words.pop();
  return last === undefined ? null : [...new Set(words), last];
}

/**
 * The same in FTS5 syntax. Each word is quoted, so that nothing a user types acts as syntax: punctuation inside a word
 * (`foo_bar`, `src/index.ts`) makes it a phrase.
 */
export function ftsOf(words: TextQuery): string {
  return `${words.map((word) => `"${word.replaceAll('"', '""')}"`).join(" ")}*`;
}

/**
 * The words around the hit where most of the query occurs together; short, however long a word is. `marked` is a text
 * of the index with marks around each hit. (The time of FTS5's own function grows with the square of the number of
 * hits: seconds for a common word in a long message.)
 */
export function excerptOf(marked: string): string {
  const { line, hits } = readMarks(marked.replaceAll(GAP, ""));
  if (line.length <= EXCERPT_CHARS) return line;
  const first = hits[bestOf(hits)] ?? { from: 0, to: 0 };
  let from = Math.max(0, Math.min(first.from - BEFORE_HIT_CHARS, line.length - EXCERPT_CHARS));
  let to = Math.min(line.length, from + EXCERPT_CHARS);
  // Avoids starting in the middle of a word where possible.
  const begins = from === 0 ? 0 : line.indexOf(" ", from) + 1;
  if (begins > 0 && begins <= first.from) from = begins;
  const ends = line.lastIndexOf(" ", to);
  if (to < line.length && ends > Math.max(from, first.to)) to = ends;
  const cut = line.slice(from, to).replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, "");
  return `${from > 0 ? "…" : ""}${cut}${to < line.length ? "…" : ""}`;
}

interface Hit {
  readonly from: number;
  readonly to: number;
  readonly word: string;
}

function readMarks(marked: string): { readonly line: string; readonly hits: readonly Hit[] } {
  const hits: Hit[] = [];
  const parts = marked.split(HIT_BEGINS);
  const lines = [parts[0] ?? ""];
  let length = lines[0]!.length;
  for (const part of parts.slice(1)) {
    const end = part.indexOf(HIT_ENDS);
    hits.push({ from: length, to: length + end, word: part.slice(0, end).toLowerCase() });
    lines.push(part.slice(0, end), part.slice(end + HIT_ENDS.length));
    length += part.length - HIT_ENDS.length;
  }
  return { line: lines.join(""), hits };
}

/** The hit followed by the most different words, counting itself, that still fit into an excerpt. */
function bestOf(hits: readonly Hit[]): number {
  const words = new Map<string, number>();
  const count = (word: string, by: number): void => {
    const times = (words.get(word) ?? 0) + by;
    if (times === 0) words.delete(word);
    else words.set(word, times);
  };
  let best = 0;
  let most = 0;
  let next = 0;
  for (const [i, { from, word }] of hits.entries()) {
    for (; next < hits.length && (next <= i || hits[next]!.to <= from + EXCERPT_CHARS - BEFORE_HIT_CHARS); next++)
      count(hits[next]!.word, 1);
    if (words.size > most) [best, most] = [i, words.size];
    count(word, -1);
  }
  return best;
}

/**
 * Splits a long text into pieces that are cheap to index and to excerpt (C28). All words of a query must occur in one
 * piece. Pieces are split at white space; where there is none, they overlap.
 */
export function* stretchesOf(text: string): Generator<string> {
  let from = 0;
  while (text.length - from > STRETCH_CHARS) {
    const end = from + STRETCH_CHARS;
    const space = text.lastIndexOf(" ", end);
    const spaced = space > end - OVERLAP_CHARS;
    yield text.slice(from, spaced ? space : end);
    from = spaced ? space + 1 : end - OVERLAP_CHARS;
  }
  yield text.slice(from);
}
