import { isUtf8 } from "node:buffer";
import { crc32 } from "node:zlib";
import { type JournalRecord, RECORD_BYTES_MAX } from "../record.ts";
import { DEEP_CHARS_MIN, isNestedTooDeep, isTextTooDeep } from "./json-text.ts";

/** Every line starts with this (S1). */
export const LINE_START = Buffer.from('{"seq":');
export const TRAILER_START: Buffer = Buffer.from(',"crc":"');
/** `,"crc":"` + 8 digits + `"}`, without the newline. */
export const TRAILER_BYTES = 18;
const CR = 0x0d;
/**
 * The nesting of a line of this size or more is checked before it is parsed: depending on it, parsing can take fifty
 * times the size in memory.
 */
const CAREFUL_BYTES_MIN = 1024 * 1024;
/** A longer line is not parsed to find out what it is. */
const FOREIGN_BYTES_MAX = 1024 * 1024;
/** How JSON begins and ends. For most garbage this saves an exception, which would cost far more than the rest. */
const JSON_EDGES = /^\s*[[{"\-\dtfn](?:.*[\]}"\del])?\s*$/s;

/**
 * The record in `bytes[start, end)`, a line without its newline. Null if it is not whole: it does not start or end like
 * a line, is too long, has a wrong checksum, is not the JSON of a record, or is nested too deeply. Never throws.
 * `text`: the same line as text, if the caller has it.
 */
export function decodeLine(bytes: Buffer, start: number, end: number, text?: string): JournalRecord | null {
  const last = end > start && bytes[end - 1] === CR ? end - 1 : end;
  const covered = last - TRAILER_BYTES;
  // A record's size includes its newline.
  if (covered - start < LINE_START.length || last - start >= RECORD_BYTES_MAX) return null;
  if (!startsWith(bytes, LINE_START, start)) return null;
  const crc = trailerAt(bytes, covered);
  // A Uint8Array view is cheaper to create than a Buffer, and every line that is read passes through here.
  if (crc < 0 || crc32(new Uint8Array(bytes.buffer, bytes.byteOffset + start, covered - start)) !== crc) return null;
  if (last - start >= CAREFUL_BYTES_MIN && isTextTooDeep(bytes, start, last)) return null;
  const value = parseJson(text !== undefined && last === end ? text : bytes.toString("utf8", start, last));
  if (last - start >= DEEP_CHARS_MIN && isNestedTooDeep(value)) return null;
  return isRecord(value) ? withoutMalformed(value) : null;
}

/** Undefined if it is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // Some runtimes throw on deep nesting.
    if (error instanceof SyntaxError || error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Is the line valid JSON of moderate length and depth, but not a Holdfast record (S2)? */
export function isForeign(bytes: Buffer, start: number, end: number): boolean {
  if (startsWith(bytes, LINE_START, start) || end - start > FOREIGN_BYTES_MAX) return false;
  if (!isUtf8(bytes.subarray(start, end))) return false;
  const text = bytes.toString("utf8", start, end);
  if (!JSON_EDGES.test(text)) return false;
  const value = parseJson(text);
  return value !== undefined && !isNestedTooDeep(value);
}

/** Is there exactly a comma, `"crc"`, 8 lower-case hex digits and a brace at `at`? */
export function isTrailer(bytes: Buffer, at: number): boolean {
  return trailerAt(bytes, at) >= 0;
}

/** The checksum in the trailer at `at`; -1 if there is none. */
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

/** Envelope members of the wrong type count as absent (FORMAT.md, section 3), so no reader has to check again. */
function withoutMalformed(record: JournalRecord): JournalRecord {
  const { unit, synced, ahead, key, must } = record as Record<string, unknown>;
  if (unit !== undefined && !isCount(unit, 2)) Reflect.deleteProperty(record, "unit");
  if (synced !== undefined && !isCount(synced, 0)) Reflect.deleteProperty(record, "synced");
  if (ahead !== undefined && !isCount(ahead, 0)) Reflect.deleteProperty(record, "ahead");
  if (key !== undefined && typeof key !== "string") Reflect.deleteProperty(record, "key");
  if (must !== undefined && must !== true) Reflect.deleteProperty(record, "must");
  return record;
}

export function isCount(value: unknown, min: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min;
}
