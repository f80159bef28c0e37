/**
 * Characters that a terminal does not show, or shows as something else: control and format characters (escape
 * sequences, bidi, zero width), unassigned and private ones, lone surrogates, blanks other than a space, a combining
 * mark without a base, a space at the end; and the marks used here, so that no text can imitate them.
 */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800↵⇥]|(?! )\p{Zs}|(?<![^\n])\p{M}|<(?=U\+)| $/gu;

/**
 * Makes everything in the text visible, line by line: `↵` marks a line end, `⇥` a tab, `<U+001B>` any other invisible
 * character. Nothing is lost: the text can be restored from the result.
 */
export function visible(text: string): string {
  return text.replace(HIDDEN, (found) => (found === "\n" ? "↵\n" : found === "\t" ? "⇥" : codeOf(found)));
}

/** The same on one line. */
export function visibleLine(text: string): string {
  return visible(text).replaceAll("↵\n", codeOf("\n"));
}

function codeOf(character: string): string {
  return `<U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}>`;
}
