import { HIT_BEGINS, HIT_ENDS, type TextQuery } from "holdfast/internal";

/** The words of a text as SQLite's `unicode61` sees them: all stores find the same. Pure. */
export interface Token {
  readonly word: string;
  readonly from: number;
  readonly to: number;
}

const WORD = /[\p{L}\p{N}\p{Co}](?:[\p{L}\p{N}\p{Co}]|[\u0300-\u036F])*/gu;
const DIACRITICS = /[\u0300-\u036F]/g;
const LATIN = /\p{sc=Latin}+/gu;
const IS_PLAIN = /^[\x20-\x7E]*$/;

export function tokensOf(text: string): Token[] {
  return Array.from(text.matchAll(WORD), ({ 0: word, index }) => ({
    word: foldCase(word),
    from: index,
    to: index + word.length,
  }));
}

/**
 * Ignores case, and diacritics on Latin letters. On other letters a diacritic makes a different letter, unless it is a
 * separate character. Greek has two letters for a small sigma.
 */
function foldCase(word: string): string {
  const lower = word.toLowerCase();
  if (IS_PLAIN.test(lower)) return lower;
  const whole = lower.replaceAll("ς", "σ").replace(DIACRITICS, "");
  return whole.replace(LATIN, (letters) => letters.normalize("NFD").replace(DIACRITICS, ""));
}

/** For each word of a query, the words that must be adjacent; the very last may be the start of one. */
export function phrasesOf(query: TextQuery): string[][] {
  return query.map((word) => tokensOf(word).map((token) => token.word)).filter((phrase) => phrase.length > 0);
}

/** A text with marks around each hit. A phrase is one hit, and so are phrases that touch. */
export function withMarks(text: string, phrases: readonly (readonly string[])[]): string {
  const tokens = tokensOf(text);
  const hits: { from: number; to: number }[] = [];
  for (const [index, token] of tokens.entries()) {
    let length = 0;
    for (const [number, phrase] of phrases.entries()) {
      const isLast = number === phrases.length - 1;
      if (phrase.length > length && standsAt(tokens, index, phrase, isLast)) length = phrase.length;
    }
    if (length === 0) continue;
    const to = tokens[index + length - 1]!.to;
    const before = hits.at(-1);
    if (before && token.from < before.to) before.to = Math.max(before.to, to);
    else hits.push({ from: token.from, to });
  }
  const parts: string[] = [];
  let done = 0;
  for (const { from, to } of hits) {
    parts.push(text.slice(done, from), HIT_BEGINS, text.slice(from, to), HIT_ENDS);
    done = to;
  }
  return parts.join("") + text.slice(done);
}

function standsAt(tokens: readonly Token[], at: number, phrase: readonly string[], mayBegin: boolean): boolean {
  return phrase.every((word, offset) => {
    const found = tokens[at + offset]?.word;
    return mayBegin && offset === phrase.length - 1 ? found?.startsWith(word) === true : found === word;
  });
}
