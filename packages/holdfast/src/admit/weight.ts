import { CHARS_OF, charsOfSnapshot } from "../journal/lines/plain.ts";

const weights = new WeakMap<object, number>();

/** The approximate number of characters in a recorded value. Cached: such values do not change. */
export function weightOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return charsIn(value, 0);
  const known = charsOfSnapshot(value) ?? weights.get(value);
  if (known !== undefined) return known;
  const weight = charsIn(value, 0);
  weights.set(value, weight);
  return weight;
}

const DEPTH_MAX = 1000;

/** Counts like a snapshot does. */
function charsIn(value: unknown, depth: number): number {
  if (typeof value === "string") return value.length + CHARS_OF.quotes;
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return CHARS_OF.scalar;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
  let chars: number = CHARS_OF.braces;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) chars += CHARS_OF.item + charsIn(value[i], depth + 1);
    return chars;
  }
  for (const name in value) {
    chars += name.length + CHARS_OF.member + charsIn((value as Record<string, unknown>)[name], depth + 1);
  }
  return chars;
}
