import { stripVTControlCharacters } from "node:util";
import { beginningOf } from "./well-formed.ts";

/** How many characters to examine per character shown: white space and escape sequences shrink. */
const LOOKED_AT = 8;
/** A grapheme that extends further past the cut than this is cut itself: one letter can carry any number of marks. */
const LOOK_AHEAD = 64;
/** A word is kept whole if the line then keeps at least this share of its length. */
const SHARE_MIN = 0.6;
const ELLIPSIS = "…";

/** Created on first use: it takes as long as loading a dozen modules. */
let graphemes: Intl.Segmenter | null = null;

/**
 * The start of a text on one line, safe to show anywhere: no escape sequences, control characters or bidi controls
 * (C24, C25). At most `charsMax` UTF-16 units, cut between words if possible, never inside a grapheme. The cost does
 * not depend on the text's length, and the result keeps no reference to the text.
 */
export function oneLine(text: string, charsMax: number): string {
  const whole = text.trimStart();
  const beginning = beginningOf(whole, charsMax * LOOKED_AT);
  // In V8, a slice keeps its whole string alive, and so does a regular expression last used on it. This makes an
  // independent string, with invalid Unicode replaced by U+FFFD.
  const own = Buffer.from(beginning).toString();
  const clean = stripVTControlCharacters(own)
    .replace(/\p{Bidi_Control}+/gu, "")
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim();
  const isWhole = clean.length <= charsMax && beginning.length === whole.length;
  return isWhole ? clean : cut(clean, charsMax - ELLIPSIS.length) + ELLIPSIS;
}

function cut(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const end = graphemeEnd(text, charsMax);
  const space = text[end] === " " ? end : text.lastIndexOf(" ", end - 1);
  return text.slice(0, space >= charsMax * SHARE_MIN ? space : end).trimEnd();
}

/** The end of the last whole grapheme that fits. */
function graphemeEnd(text: string, charsMax: number): number {
  // Every position between two such characters is a boundary, and a search for it takes as long as the rest of an
  // append.
  if (/^[ -~]*$/.test(text.slice(0, charsMax + 1))) return charsMax;
  graphemes ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  let end = 0;
  for (const { index, segment } of graphemes.segment(text.slice(0, charsMax + LOOK_AHEAD))) {
    if (index + segment.length > charsMax) break;
    end = index + segment.length;
  }
  if (end > 0) return end;
  return /[\ud800-\udbff]/.test(text[charsMax - 1] ?? "") ? charsMax - 1 : charsMax;
}
