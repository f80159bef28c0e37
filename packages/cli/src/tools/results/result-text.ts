/** What a tool answers at most, in characters; what the model reads is paid for at every step from then on. */
export const RESULT_CHARS_MAX = 32 * 1024;

/**
 * The beginning and the end, around what was left out. Half a character at a cut is dropped. `rest`: where the whole
 * is.
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
