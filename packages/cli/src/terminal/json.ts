/**
 * What `JSON.stringify` leaves as it is, and a terminal obeys or hides: DEL and C1 controls (a CSI among them), line
 * separators, what turns the direction of writing.
 */
const UNSAFE = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** One line of JSON that is harmless on a terminal: such characters are escaped, so a parser reads the same value. */
export function jsonText(value: unknown, indent?: number): string {
  return harmlessJson(JSON.stringify(value, null, indent));
}

/** The same for JSON that is text already. */
export function harmlessJson(json: string): string {
  return json.replace(UNSAFE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A record as it stands in the journal, byte for byte, unless it goes to a terminal. */
export function recordText(record: unknown): string {
  const json = JSON.stringify(record);
  return process.stdout.isTTY ? harmlessJson(json) : json;
}
