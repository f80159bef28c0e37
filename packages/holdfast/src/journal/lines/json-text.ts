import { RECORD_LEVELS_MAX } from "../record.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OBJECT = 0x7b;
const ARRAY = 0x5b;
const SPACES = new Set(Buffer.from(" \t\r\n"));
const ESCAPES = new Set(Buffer.from('"\\/bfnrt'));
/** The brackets open around the current byte. Shared: one check ends before the next starts. */
const open = new Uint8Array(RECORD_LEVELS_MAX);
const LITERALS = new Map(
  [..."tfn"].map((first, i) => [first.charCodeAt(0), Buffer.from(["true", "false", "null"][i]!)]),
);

/**
 * Is `bytes[start, end)` one JSON value (RFC 8259), nested no deeper than RECORD_LEVELS_MAX? Answers without building
 * the value: `JSON.parse` of a hostile 60 MB line takes gigabytes and half a minute. Bytes beyond ASCII count as text;
 * the caller checks whether they are UTF-8.
 */
export function isJson(bytes: Uint8Array, start: number, end: number): boolean {
  let depth = 0;
  let at = skipSpaces(bytes, start, end);
  for (;;) {
    // A value starts here.
    const first = at < end ? bytes[at]! : 0;
    if (first === OBJECT || first === ARRAY) {
      if (depth === RECORD_LEVELS_MAX) return false;
      open[depth++] = first;
      at = skipSpaces(bytes, at + 1, end);
      // An empty one ends at once; both closing characters are the opening character's code plus two.
      if (at < end && bytes[at] === first + 2) {
        depth--;
        at++;
      } else {
        if (first === OBJECT) at = memberName(bytes, at, end);
        if (at < 0) return false;
        continue;
      }
    } else {
      at = first === QUOTE ? endOfString(bytes, at + 1, end) : endOfScalar(bytes, at, end);
      if (at < 0) return false;
    }
    // A value has ended, and perhaps the ones around it.
    for (;;) {
      at = skipSpaces(bytes, at, end);
      if (depth === 0) return at === end;
      if (at >= end || bytes[at] !== open[depth - 1]! + 2) break;
      depth--;
      at++;
    }
    if (at >= end || bytes[at] !== 0x2c) return false;
    at = skipSpaces(bytes, at + 1, end);
    if (open[depth - 1] === OBJECT) at = memberName(bytes, at, end);
    if (at < 0) return false;
  }
}

function skipSpaces(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && SPACES.has(bytes[at]!)) at++;
  return at;
}

/** Where the member's value starts; -1 if no member starts at `at`. */
function memberName(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end || bytes[at] !== QUOTE) return -1;
  const name = endOfString(bytes, at + 1, end);
  if (name < 0) return -1;
  const colon = skipSpaces(bytes, name, end);
  return colon < end && bytes[colon] === 0x3a ? skipSpaces(bytes, colon + 1, end) : -1;
}

/** The index after the closing quote; -1 if the string does not end or contains an invalid character. */
function endOfString(bytes: Uint8Array, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return at + 1;
    if (byte < 0x20) return -1;
    if (byte !== BACKSLASH) continue;
    const escaped = at + 1 < end ? bytes[at + 1]! : 0;
    if (escaped === 0x75) {
      if (at + 5 >= end) return -1;
      for (let i = at + 2; i < at + 6; i++) if (!isHexDigit(bytes[i]!)) return -1;
      at += 5;
    } else if (ESCAPES.has(escaped)) at++;
    else return -1;
  }
  return -1;
}

function endOfScalar(bytes: Uint8Array, from: number, end: number): number {
  const literal = from < end ? LITERALS.get(bytes[from]!) : undefined;
  if (!literal) return endOfNumber(bytes, from, end);
  for (let i = 0; i < literal.length; i++) if (from + i >= end || bytes[from + i] !== literal[i]) return -1;
  return from + literal.length;
}

function endOfNumber(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  if (at < end && bytes[at] === 0x2d) at++;
  const whole = skipDigits(bytes, at, end);
  // No digits, or a digit after a leading zero.
  if (whole === at || (bytes[at] === 0x30 && whole > at + 1)) return -1;
  at = whole;
  if (at < end && bytes[at] === 0x2e) {
    const fraction = skipDigits(bytes, at + 1, end);
    if (fraction === at + 1) return -1;
    at = fraction;
  }
  if (at < end && (bytes[at]! | 0x20) === 0x65) {
    at++;
    if (at < end && (bytes[at] === 0x2b || bytes[at] === 0x2d)) at++;
    const exponent = skipDigits(bytes, at, end);
    return exponent === at ? -1 : exponent;
  }
  return at;
}

function skipDigits(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at]! >= 0x30 && bytes[at]! <= 0x39) at++;
  return at;
}

function isHexDigit(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
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
