import { stripVTControlCharacters } from "node:util";
import { beginningOf } from "./well-formed.ts";

/** How much of a text is looked at for each character that is to be shown: white space and escape sequences shrink. */
const LOOKED_AT = 8;
/** A grapheme that ends later than this behind the cut is cut itself: any number of marks can be piled on one letter. */
const LOOK_AHEAD = 64;
/** A word is kept whole if that leaves at least this share of the line. */
const SHARE_MIN = 0.6;
const ELLIPSIS = "…";

/** Made when it is needed: that takes as long as loading a dozen modules. */
let graphemes: Intl.Segmenter | null = null;

/**
 * The beginning of a text on one line, harmless wherever it is shown: without escape sequences, control characters and what turns the direction of writing (C24, C25). At most `charsMax`
 * UTF-16 units, cut between words if there are any, never inside a grapheme. It costs the same for a text of any length, and keeps nothing of that text alive.
 */
export function oneLine(text: string, charsMax: number): string {
  const whole = text.trimStart();
  const beginning = beginningOf(whole, charsMax * LOOKED_AT);
  // A slice of a string keeps that string alive in V8, and so does a regular expression that was used on it: this is a string of its own. What is not Unicode has become U+FFFD.
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
  // Between two such characters there is always an end, and looking for it takes as long as all the rest of an append.
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
