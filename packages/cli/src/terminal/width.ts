import { createRequire } from "node:module";

/** Characters that take one column each. Most texts contain nothing else, and need no width table. */
const NARROW = /^[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2500-\u259f]*$/;
/**
 * Characters that belong to the one before, or join it to the next: only with these can a grapheme be more than one
 * code point. (Also half of a flag, a conjoining Jamo, a Brahmic vowel sign.)
 */
const JOINED = /[\p{M}\p{Cf}\p{Emoji_Modifier}\u{1f1e6}-\u{1f1ff}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]/u;

/** Created on demand: it takes as long as loading a dozen modules. */
let segmenter: Intl.Segmenter | null = null;

/** The width table that Ink uses. Loaded on demand: that takes longer than many commands. */
let stringWidth: typeof import("string-width").default | null = null;

/** Cache of widths: a text has few different characters, and each lookup is slow. */
const known = new Map<string, number>();
const KNOWN_MAX = 10_000;

/** The graphemes of a text, each with its width in columns. */
export function* graphemes(text: string): Generator<readonly [grapheme: string, columns: number], void, undefined> {
  if (NARROW.test(text)) {
    for (const character of text) yield [character, 1];
  } else if (!JOINED.test(text)) {
    for (const character of text) yield [character, columnsOf(character)];
  } else {
    segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
    for (const { segment } of segmenter.segment(text)) yield [segment, columnsOf(segment)];
  }
}

/** How many terminal columns a line takes. The line must be plain: no control characters. */
export function widthOf(line: string): number {
  if (NARROW.test(line)) return line.length;
  let columns = 0;
  for (const [, own] of graphemes(line)) columns += own;
  return columns;
}

/** The start of a line that fits into `columnsMax`, ending in `…` if it was cut. */
export function fit(line: string, columnsMax: number): string {
  if (line.length <= columnsMax && NARROW.test(line)) return line;
  if (columnsMax < 1) return "";
  let kept = "";
  let columns = 0;
  let keptBefore = "";
  for (const [grapheme, own] of graphemes(line.slice(0, columnsMax * 64))) {
    // The last position that leaves room for the ellipsis.
    if (columns <= columnsMax - 1) keptBefore = kept;
    if (columns + own > columnsMax) return `${keptBefore}…`;
    kept += grapheme;
    columns += own;
  }
  return kept;
}

/** Pads a line with spaces to a width in columns. */
export function pad(line: string, columns: number, side: "left" | "right" = "left"): string {
  const missing = " ".repeat(Math.max(0, columns - widthOf(line)));
  return side === "left" ? line + missing : missing + line;
}

function columnsOf(grapheme: string): number {
  const before = known.get(grapheme);
  if (before !== undefined) return before;
  stringWidth ??= (createRequire(import.meta.url)("string-width") as typeof import("string-width")).default;
  const columns = stringWidth(grapheme);
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(grapheme, columns);
  return columns;
}
