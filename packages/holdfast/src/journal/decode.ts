import { isUtf8 } from "node:buffer";
import { crc32 } from "node:zlib";
import { type JournalRecord, RECORD_LEVELS_MAX } from "./record.ts";

/** How every line begins (S1). */
export const LINE_START = Buffer.from('{"seq":');
export const TRAILER_START = Buffer.from(',"crc":"');
/** `,"crc":"` + 8 digits + `"}`, without the newline. */
export const TRAILER_BYTES = 18;
const CR = 0x0d;
/** From here on it is worth a look at the bytes before they are parsed. */
const LONG_BYTES = 64 * 1024;
/** What JSON may begin with, and what may stand before it. */
const JSON_STARTS = new Set(Buffer.from('{["-0123456789tfn'));
const SPACES = new Set(Buffer.from(" \t\r"));

/**
 * The record in `bytes[start, end)`, a line without its newline; null if it is not whole: it does not begin or end as a line does,
 * its checksum is wrong, or it is not the JSON of a record. `text`: the same line, if it is at hand as such.
 */
export function decodeLine(bytes: Buffer, start: number, end: number, text?: string): JournalRecord | null {
  const last = end > start && bytes[end - 1] === CR ? end - 1 : end;
  const covered = last - TRAILER_BYTES;
  if (covered - start < LINE_START.length) return null;
  if (!startsWith(bytes, LINE_START, start)) return null;
  const crc = trailerAt(bytes, covered);
  // A plain view is made faster than a Buffer, and every line that is read passes here.
  if (crc < 0 || crc32(new Uint8Array(bytes.buffer, bytes.byteOffset + start, covered - start)) !== crc) return null;
  if (last - start > LONG_BYTES && nestsDeeper(bytes.subarray(start, last))) return null;
  return parsed(text !== undefined && last === end ? text : bytes.toString("utf8", start, last));
}

/** Has a line of JSON more levels than a record may have? Told from its bytes: of a line of 64 MB that is all brackets, the parser would make gigabytes. */
function nestsDeeper(line: Buffer): boolean {
  let levels = 0;
  for (let i = 0; i < line.length; i++) {
    switch (line[i]) {
      case 0x22:
        i = stringEnd(line, i);
        if (i === -1) return false;
        break;
      case 0x5b:
      case 0x7b:
        if (++levels > RECORD_LEVELS_MAX) return true;
        break;
      case 0x5d:
      case 0x7d:
        levels--;
    }
  }
  return false;
}

/** Where the string ends whose first quotation mark stands at `at`; -1 if it does not. */
function stringEnd(line: Buffer, at: number): number {
  for (let end = line.indexOf(0x22, at + 1); end !== -1; end = line.indexOf(0x22, end + 1)) {
    let slashes = 0;
    while (line[end - 1 - slashes] === 0x5c) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}

function parsed(text: string): JournalRecord | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // Some runtimes give up on deep nesting.
    if (error instanceof SyntaxError || error instanceof RangeError) return null;
    throw error;
  }
  // A level takes two bytes at least: short lines need no look.
  if (text.length > 2 * RECORD_LEVELS_MAX && isDeeper(value, RECORD_LEVELS_MAX)) return null;
  return isRecord(value) ? withoutMalformed(value) : null;
}

/** Has it more than so many levels, itself counted? What is deeper would overflow the stack of everybody who walks through it. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (isDeeper(value[i], levels - 1)) return true;
    return false;
  }
  for (const name in value) if (isDeeper((value as Record<string, unknown>)[name], levels - 1)) return true;
  return false;
}

/** Is the line valid JSON, but not one of ours (S2)? */
export function isForeign(bytes: Buffer, start: number, end: number): boolean {
  if (startsWith(bytes, LINE_START, start)) return false;
  // A parse that fails takes 15 µs however short the text: most lines that are no JSON show it at once.
  let first = start;
  while (first < end && SPACES.has(bytes[first]!)) first++;
  if (first === end || !JSON_STARTS.has(bytes[first]!)) return false;
  if (!isUtf8(bytes.subarray(start, end))) return false;
  try {
    JSON.parse(bytes.toString("utf8", start, end));
    return true;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError || isStringTooLong(error)) return false;
    throw error;
  }
}

/** Do exactly a comma, `"crc"`, 8 lower-case hex digits and a brace stand at `at`? */
export function isTrailer(bytes: Buffer, at: number): boolean {
  return trailerAt(bytes, at) >= 0;
}

/** The checksum in the trailer at `at`; -1 if none stands there. */
function trailerAt(bytes: Buffer, at: number): number {
  if (at + TRAILER_BYTES > bytes.length || !startsWith(bytes, TRAILER_START, at)) return -1;
  if (bytes[at + TRAILER_BYTES - 2] !== 0x22 || bytes[at + TRAILER_BYTES - 1] !== 0x7d) return -1;
  return hexAt(bytes, at + TRAILER_START.length);
}

function startsWith(bytes: Buffer, prefix: Buffer, at: number): boolean {
  for (let i = 0; i < prefix.length; i++) if (bytes[at + i] !== prefix[i]) return false;
  return true;
}

/** 8 lower-case hex digits as a number, or -1. */
function hexAt(bytes: Buffer, at: number): number {
  let value = 0;
  for (let i = at; i < at + 8; i++) {
    const byte = bytes[i]!;
    const digit = byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : byte >= 0x61 && byte <= 0x66 ? byte - 0x57 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

function isRecord(value: unknown): value is JournalRecord {
  if (typeof value !== "object" || value === null) return false;
  const { seq, at, kind } = value as Partial<JournalRecord>;
  return isCount(seq, 1) && typeof at === "string" && typeof kind === "string";
}

/** Members of the envelope that are not of their type are taken as absent (FORMAT.md, section 3): no reader has to look twice. */
function withoutMalformed(record: JournalRecord): JournalRecord {
  const { unit, synced, ahead, key, must } = record as Record<string, unknown>;
  if (unit !== undefined && !isCount(unit, 2)) Reflect.deleteProperty(record, "unit");
  if (synced !== undefined && !isCount(synced, 0)) Reflect.deleteProperty(record, "synced");
  if (ahead !== undefined && !isCount(ahead, 0)) Reflect.deleteProperty(record, "ahead");
  if (key !== undefined && typeof key !== "string") Reflect.deleteProperty(record, "key");
  if (must !== undefined && must !== true) Reflect.deleteProperty(record, "must");
  return record;
}

function isCount(value: unknown, min: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= min;
}

function isStringTooLong(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_STRING_TOO_LONG";
}
