/** Characters that take two columns and are no emoji: East Asian wide and full-width ones. */
const WIDE =
  /^[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f251}\u{20000}-\u{3fffd}]/u;
/** An emoji by itself, or a character that is made one by what follows it. */
const EMOJI = /^\p{Emoji_Presentation}|^\p{Emoji}(?:\ufe0f|\p{Emoji_Modifier})/u;
/** Takes no column: combining marks and what only joins. */
const NOTHING = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;
const ASCII = /^[ -~]*$/;
/** What belongs to the character before it, or joins it to the next: only there a character can be more than one code point. (Half of a flag, a conjoining Jamo, a Brahmic vowel sign too.) */
const JOINED = /[\p{M}\p{Cf}\p{Emoji_Modifier}\u{1f1e6}-\u{1f1ff}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]/u;

/** Made when it is needed: that takes as long as loading a dozen modules. */
let segmenter: Intl.Segmenter | null = null;

/** What a reader sees as one character each, with the columns that it takes. */
export function* graphemes(text: string): Generator<readonly [grapheme: string, columns: number], void, undefined> {
  if (ASCII.test(text)) {
    for (const character of text) yield [character, 1];
  } else if (!JOINED.test(text)) {
    for (const character of text) yield [character, columnsOf(character)];
  } else {
    segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
    for (const { segment } of segmenter.segment(text)) yield [segment, columnsOf(segment)];
  }
}

/** How many columns of a terminal a line takes. It is to be plain: no control characters. */
export function widthOf(line: string): number {
  if (ASCII.test(line)) return line.length;
  let columns = 0;
  for (const [, own] of graphemes(line)) columns += own;
  return columns;
}

/** The beginning of a line that fits into so many columns; `…` at its end if it was cut. */
export function fit(line: string, columnsMax: number): string {
  if (line.length <= columnsMax && ASCII.test(line)) return line;
  if (columnsMax < 1) return "";
  let kept = "";
  let columns = 0;
  let keptBefore = "";
  for (const [grapheme, own] of graphemes(line.slice(0, columnsMax * 64))) {
    // The last place that leaves room for the ellipsis.
    if (columns <= columnsMax - 1) keptBefore = kept;
    if (columns + own > columnsMax) return `${keptBefore}…`;
    kept += grapheme;
    columns += own;
  }
  return kept;
}

/** Filled up with spaces to so many columns. */
export function pad(line: string, columns: number, side: "left" | "right" = "left"): string {
  const missing = " ".repeat(Math.max(0, columns - widthOf(line)));
  return side === "left" ? line + missing : missing + line;
}

function columnsOf(grapheme: string): number {
  if (EMOJI.test(grapheme) || WIDE.test(grapheme)) return 2;
  // Two letters of a flag are one grapheme, and each of them alone is narrow.
  if (/^[\u{1f1e6}-\u{1f1ff}]{2}/u.test(grapheme)) return 2;
  return NOTHING.test(grapheme) ? 0 : 1;
}
