import { credentials } from "holdfast";
import { wholeWords } from "../export/export.ts";
import { redactDeep } from "../export/redact.ts";
import { plainLine } from "../terminal/plain.ts";
import { fit } from "../terminal/width.ts";
import { print } from "../transcript/shape.ts";

/** A secret that begins before a cut and ends within this distance is recognized as one. */
const MARGIN_CHARS = 16_384;

/** How session text is prepared for an answer: with or without credentials. */
export interface CleanOptions {
  readonly redact: boolean;
}

/** A title, a folder, an excerpt: on one line, shortened. What was cut off before may have been the end of a secret. */
export function lineOf(text: string, { redact }: CleanOptions, columns: number): string {
  const start = text.slice(0, columns * 4);
  return fit(plainLine(redact ? credentials(wholeWords(start)) : start), columns);
}

/** A value of a call, as text: strings as they are, anything else as JSON. */
export function valueText(value: unknown, { redact }: CleanOptions): string {
  return print(redact && typeof value !== "string" ? redactDeep(value) : value, 2);
}

export interface Excerpt {
  readonly text: string;
  /** Where the text continues; null at its end. */
  readonly next: number | null;
}

/** The first characters of a text. Only those are searched for credentials: a text can have 60 MB. */
export function startOf(text: string, chars: number, { redact }: CleanOptions): Excerpt {
  const clean = redact ? credentials(text.slice(0, chars + MARGIN_CHARS)) : text;
  const isWhole = text.length <= chars + MARGIN_CHARS;
  return cut(clean, 0, chars, isWhole || !redact);
}

/** A part of a text. `from` counts in the text after redaction. */
export function pieceOf(
  text: string,
  from: number,
  chars: number,
  { redact }: CleanOptions,
): Excerpt & { total: number } {
  const clean = redact ? credentials(text) : text;
  return { ...cut(clean, from, chars, true), total: clean.length };
}

function cut(text: string, from: number, chars: number, isWhole: boolean): Excerpt {
  let end = Math.min(text.length, from + chars);
  // Never splits a character.
  if (end < text.length && end - 1 > from && /[\ud800-\udbff]/.test(text[end - 1]!)) end -= 1;
  const next = end < text.length || !isWhole ? end : null;
  return { text: text.slice(from, end), next };
}
