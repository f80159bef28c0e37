import { HoldfastError } from "../errors.ts";
import { type Json, RECORD_BYTES_MAX } from "../journal/record.ts";
import { weightOf } from "./weight.ts";

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
