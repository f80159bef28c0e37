/** What is asked of parsed JSON of which nothing is known. */

export type Fields = Readonly<Record<string, unknown>>;

/** The fields of an object; of anything else, none. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function textIn(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A time of ISO 8601, or a number of milliseconds. */
export function timeIn(value: unknown): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}
