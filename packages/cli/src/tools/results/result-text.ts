/** The longest tool result, in characters: every later step sends it again, at a cost. */
export const RESULT_CHARS_MAX = 32 * 1024;

/**
 * Joins the start and the end around a note on what was left out. Drops half characters at the cuts. `rest` says where
 * the whole text is.
 */
export function joinEnds(head: string, tail: string, leftOut: number, unit: string, rest: string): string {
  const first = head.replace(/[\uD800-\uDBFF]$/u, "");
  const last = tail.replace(/^[\uDC00-\uDFFF]/u, "");
  return `${first}\n[… ${leftOut} ${unit} left out here; ${rest}]\n${last}`;
}

/** Text for a model: no NUL, which some providers refuse. */
export function withoutNul(text: string): string {
  return text.replaceAll("\0", "\uFFFD");
}
