import { bytesWords } from "../terminal/bytes.ts";

/** More than anyone reads of one text. */
const CHARS_MAX = 200_000;
const END_CHARS = 20_000;

/** A text that is too long for a page, without its middle (C28). The machine-readable formats have all of it. */
export function shorten(text: string, max = CHARS_MAX): string {
  if (text.length <= max) return text;
  const end = Math.min(END_CHARS, Math.floor(max / 10));
  const left = text.length - max;
  const note = `[… ${bytesWords(left)} omitted here: "holdfast export --format jsonl" has everything …]`;
  // Never split a surrogate pair.
  return `${text.slice(0, max - end).toWellFormed()}\n\n${note}\n\n${text.slice(-end).toWellFormed()}`;
}
