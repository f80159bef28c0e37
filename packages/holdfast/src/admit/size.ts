import { HoldfastError } from "../errors.ts";
import { CHARS_OF, charsOfSnapshot } from "../journal/lines/plain.ts";
import { type Json, RECORD_BYTES_MAX } from "../journal/record.ts";

const MIB = 1024 * 1024;
/**
 * The largest encoded message: small enough that an epoch can repeat it in one record, with its metadata and everything
 * else known about it.
 */
export const MESSAGE_BYTES_MAX = RECORD_BYTES_MAX - 2 * MIB;
/** The largest metadata, with all patches applied. */
export const METADATA_BYTES_MAX = MIB;
/** The most bytes that one character takes in JSON: an escape such as \\u0007. */
const BYTES_OF_CHAR_MAX = 6;

/** Throws RECORD_TOO_LARGE. */
export function assertSize(what: string, kind: string, value: Json, limitBytes: number): void {
  const bytes = bytesAtMost(value, limitBytes);
  if (bytes !== null && bytes <= limitBytes) return;
  const size = bytes === null ? "more than 512 MB" : `${bytes} bytes`;
  const message =
    `Nothing was recorded: ${what} takes ${size}, and the limit is ${limitBytes} bytes, so that a new epoch can repeat it. Nothing before it is affected. ` +
    "Keep large content in a separate file, and record a reference to it.";
  throw new HoldfastError("RECORD_TOO_LARGE", message, { kind, limitBytes, bytes });
}

export function isTooLarge(value: Json, limitBytes: number): boolean {
  const bytes = bytesAtMost(value, limitBytes);
  return bytes === null || bytes > limitBytes;
}

/** Counts bytes only if the value may be near the limit. Null: longer than JavaScript's longest string. */
function bytesAtMost(value: Json, limitBytes: number): number | null {
  const chars = weightOf(value);
  if (chars * BYTES_OF_CHAR_MAX <= limitBytes) return chars * BYTES_OF_CHAR_MAX;
  try {
    return Buffer.byteLength(JSON.stringify(value) ?? "");
  } catch (error) {
    // Beyond V8's longest string (about 512 MB) JSON.stringify throws a RangeError.
    if (error instanceof RangeError) return null;
    throw error;
  }
}

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
