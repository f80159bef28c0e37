/**
 * Characters that nobody sees, or that change how the text around them is read: shown by their number. Line ends, tabs,
 * soft hyphens and what joins emoji and scripts stay.
 */
const INVISIBLE = /(?![\n\r\t\u00ad\u200c\u200d])[\p{Cc}\p{Cf}]/gu;

/** A text that a tool or a model wrote, so that what is shown is what is there. Line ends and tabs stay. */
export function visible(text: string): string {
  return text.replaceAll(
    INVISIBLE,
    (character) => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/** The beginning of a long text, by lines and characters, and whether anything was left out. */
export function shorten(text: string, linesMax: number, charactersMax: number): { text: string; rest: number } {
  let end = Math.min(text.length, charactersMax);
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0 && at < end; at = text.indexOf("\n", at + 1)) {
    lines += 1;
    if (lines === linesMax) end = at;
  }
  return { text: text.slice(0, end).toWellFormed(), rest: text.length - end };
}

/** The parts of an excerpt, so that the words that were searched for can be marked. */
export function splitByWords(excerpt: string, query: string): { readonly text: string; readonly isHit: boolean }[] {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return [{ text: excerpt, isHit: false }];
  const pattern = new RegExp(
    `(${words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`,
    "gi",
  );
  return excerpt
    .split(pattern)
    .map((text, index) => ({ text, isHit: index % 2 === 1 }))
    .filter(({ text }) => text !== "");
}
