import { fieldsOf } from "./shapes.ts";

const TEXTS_MAX = 10_000;
/** From this share of them on, a text with NUL characters is binary. */
const BINARY_SHARE = 0.05;
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what it counts
const BINARY = /[\u0000-\u0006\u000e-\u001a\u001c-\u001f\u007f\ufffd]/g;

/** Whether a result holds what providers refuse at every prompt: half characters, or binary output as text. */
export function isPoisoned(content: unknown): boolean {
  const stack = [content];
  for (let tries = 0; stack.length > 0 && tries < TEXTS_MAX; tries++) {
    const value = stack.pop();
    if (typeof value === "string") {
      if (!value.isWellFormed()) return true;
      if (value.includes("\0") && (value.match(BINARY)?.length ?? 0) > value.length * BINARY_SHARE) return true;
    } else if (Array.isArray(value)) stack.push(...value.slice(0, TEXTS_MAX));
    else stack.push(...Object.values(fieldsOf(value)));
  }
  return false;
}
