import { EXPANDED } from "./shell-words.ts";

/** The wildcard of a pattern, and an unquoted `*` of a command. */
export const WILD = `${EXPANDED}*`;

/**
 * Whether a text consists of these pieces in order, with anything between them. Linear time for any text, because the
 * text may come from a model.
 */
export function isJoinedBy(pieces: readonly string[], text: string): boolean {
  const first = pieces[0] ?? "";
  if (pieces.length <= 1) return text === first;
  const last = pieces.at(-1)!;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  const end = text.length - last.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

/** Whether the shell will expand this word of a command. */
export function isWild(word: string): boolean {
  return /\0[*?[]/u.test(word);
}

/** Whether some text matches both wildcard patterns. */
export function canBeSame(wanted: string, word: string): boolean {
  if (!isWild(word) && !/\0[?[]/u.test(wanted)) return isJoinedBy(wanted.split(WILD), word);
  const one = tokens(wanted);
  const other = tokens(word);
  // open[at]: the part of the second before `at` matches what has been read of the first.
  let open = close(other, [true]);
  for (const token of one) {
    const next: boolean[] = [];
    for (let at = 0; at <= other.length; at++) {
      if (token === null) next[at] = open[at] === true || next[at - 1] === true;
      else if (other[at] === null) next[at] = next[at] === true || open[at] === true;
      else if (open[at] && other[at] === token) next[at + 1] = true;
    }
    open = close(other, next);
  }
  return open[other.length] === true;
}

/** A wildcard may match nothing. */
function close(tokens: readonly (string | null)[], open: boolean[]): boolean[] {
  for (const [at, token] of tokens.entries()) if (open[at] && token === null) open[at + 1] = true;
  return open;
}

/** Characters, and null for any number of them. A class (`[a-z]`) and everything after it count as one null. */
function tokens(word: string): (string | null)[] {
  const all: (string | null)[] = [];
  for (let at = 0; at < word.length; at++) {
    if (word[at] !== EXPANDED) {
      all.push(word[at]!);
      continue;
    }
    at += 1;
    if (word[at] === "~") all.push("~");
    else all.push(null);
    if (word[at] === "[") break;
  }
  return all;
}
