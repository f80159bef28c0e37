import { isPoisoned } from "../contract/poisoned.ts";
import { fieldsOf } from "../contract/shapes.ts";

const TEXT_CHARS_MAX = 200;

/** A result without what providers refuse; null if there is nothing of the kind. */
export function cleanResult(content: unknown): { readonly content: unknown } | null {
  return isPoisoned(content) ? { content: clean(content) } : null;
}

function clean(value: unknown): unknown {
  if (typeof value === "string") {
    if (!isPoisoned(value)) return value;
    const text = value.toWellFormed();
    if (!isPoisoned(text)) return text;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what it removes
    const readable = text.replaceAll(/[\u0000-\u0008\u000e-\u001f\u007f\ufffd]+/g, " ").slice(0, TEXT_CHARS_MAX);
    return `[holdfast doctor took ${value.length} characters of binary output out of this result. It began: ${readable}]`;
  }
  if (Array.isArray(value)) return value.map(clean);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(fieldsOf(value)).map(([key, inner]) => [key, clean(inner)]));
}
