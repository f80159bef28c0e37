const weights = new WeakMap<object, number>();

/** The approximate number of characters in a recorded value. Cached: such values do not change. */
export function weightOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return charsIn(value, 0);
  const known = weights.get(value);
  if (known !== undefined) return known;
  const weight = charsIn(value, 0);
  weights.set(value, weight);
  return weight;
}

const DEPTH_MAX = 1000;
/** Counted for a number, a literal, and the punctuation around each value. */
const CHARS_OF_ANY = 8;

function charsIn(value: unknown, depth: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return CHARS_OF_ANY;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
  let chars = 2;
  for (const name in value) {
    chars += name.length + 4 + charsIn((value as Record<string, unknown>)[name], depth + 1);
  }
  return chars;
}
