/**
 * Characters that `JSON.stringify` leaves as they are but a terminal obeys or hides: DEL and C1 controls (including
 * CSI), line separators, bidirectional controls.
 */
const UNSAFE = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** JSON that is harmless on a terminal: such characters are escaped, so a parser reads the same value. */
export function jsonText(value: unknown, indent?: number): string {
  return harmlessJson(JSON.stringify(value, null, indent));
}

/** The same for a value that is already JSON text. */
export function harmlessJson(json: string): string {
  return json.replace(UNSAFE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A record exactly as it is in the journal, byte for byte, unless it goes to a terminal. */
export function recordText(record: unknown): string {
  const json = JSON.stringify(record);
  return process.stdout.isTTY ? harmlessJson(json) : json;
}
