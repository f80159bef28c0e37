import { RECORD_LEVELS_MAX } from "../record.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Are the arrays and objects in the JSON `bytes[start, end)` nested deeper than RECORD_LEVELS_MAX? Answers without
 * building the value. If the bytes are not JSON, the answer means nothing.
 */
export function isTextTooDeep(bytes: Uint8Array, start: number, end: number): boolean {
  let depth = 0;
  let isInString = false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) isInString = !isInString;
    else if (isInString) at += byte === BACKSLASH ? 1 : 0;
    // `[` and `{`, then `]` and `}`: they differ in one bit.
    else if ((byte | 0x20) === 0x7b) depth++;
    else if ((byte | 0x20) === 0x7d) depth--;
    if (depth > RECORD_LEVELS_MAX) return true;
  }
  return false;
}

/** A shorter text cannot be nested too deeply: each level takes one character to open and one to close. */
export const DEEP_CHARS_MIN: number = 2 * RECORD_LEVELS_MAX;

/** Are the arrays and objects in a value nested deeper than RECORD_LEVELS_MAX? */
export function isNestedTooDeep(value: unknown, levels = RECORD_LEVELS_MAX): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  // Most members are texts and numbers, and nearly every line that is read passes here.
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      if (typeof value[i] === "object" && isNestedTooDeep(value[i], levels - 1)) return true;
    }
    return false;
  }
  for (const name in value) {
    const member: unknown = (value as Record<string, unknown>)[name];
    // A program may add to Object.prototype, and every object inherits the addition, including this one.
    if (typeof member !== "object" || member === null || !Object.hasOwn(value, name)) continue;
    if (isNestedTooDeep(member, levels - 1)) return true;
  }
  return false;
}
