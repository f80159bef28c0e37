import { crc32 } from "node:zlib";
import { HoldfastError } from "../../errors.ts";
import { type Json, type NewRecord, RECORD_BYTES_MAX, SEGMENT_START_BYTES_MAX, UNIT_BYTES_MAX } from "../record.ts";
import { assertPlain, isPlainObject } from "./plain.ts";

/** What the journal adds to the records of one append. */
export interface Envelope {
  /** Seq of the first record. */
  readonly seq: number;
  readonly at: string;
  /** The mark to write on the first record (S7), if any. */
  readonly synced?: number | undefined;
  /** Also write the mark on the last record. */
  readonly syncedLast?: boolean | undefined;
  /** How far the order of lists is ahead of `at` (order.ts). Written on records that carry a row, unless it is 0 … */
  readonly ahead?: number | undefined;
  /** … and always on the first record. */
  readonly aheadFirst?: boolean | undefined;
  /** Written on the first record. */
  readonly key?: string | undefined;
  /** JSON text of the row that record `i` carries, or undefined. */
  readonly summary?: ((i: number) => string | undefined) | undefined;
  /**
   * Several records form a unit (S6). False for the first records of a segment, which its link makes atomic (S15).
   */
  readonly unit?: boolean | undefined;
}

const RESERVED = new Set(["seq", "unit", "synced", "ahead", "at", "key", "summary", "crc"]);
/** `,"crc":"` + 8 digits + `"}` + newline */
const TRAILER_BYTES = 19;
/** When an epoch starts, one record holds all the newest keys. */
const KEY_CHARS_MAX = 1024;
const SCRATCH_BYTES = 256 * 1024;
const KIND_FIRST = '{"kind":';
const HEX = Buffer.from("0123456789abcdef");
const SEQ = '{"seq":';
const AT = ',"at":"';

/**
 * Encoding and writing are one synchronous step (S10), so all writers of a process share it. Made for the first of
 * them: a program that only reads needs none.
 */
let scratch: Buffer | undefined;

function scratchBuffer(): Buffer {
  scratch ??= Buffer.allocUnsafe(SCRATCH_BYTES);
  return scratch;
}

/** A getter of a record is the application's code, and runs while the buffer is in use. */
let isEncoding = false;

/** Throws RECORD_INVALID. */
export function assertKey(key: string): void {
  if (typeof key === "string" && key.length <= KEY_CHARS_MAX) return;
  const message = `The record was not written: its key is not a string of at most ${KEY_CHARS_MAX} characters.`;
  throw invalid(message, { member: "key" });
}

/**
 * Encodes records as lines (FORMAT.md, "Lines"). The result is valid until anything else is encoded in this process.
 */
export class Encoder {
  #buffer: Buffer = scratchBuffer();

  /**
   * The bytes of the records, in order. Throws RECORD_INVALID, RECORD_NOT_JSON or RECORD_TOO_LARGE without any effect.
   */
  encode(records: readonly NewRecord[], envelope: Envelope): Buffer {
    if (isEncoding) throw calledByItself();
    if (records.length === 0) throw invalid("Nothing was written: a unit needs at least one record.", {});
    if (envelope.key !== undefined) assertKey(envelope.key);
    const bytesMax = envelope.unit === false ? SEGMENT_START_BYTES_MAX : UNIT_BYTES_MAX;
    isEncoding = true;
    try {
      let end = 0;
      for (let i = 0; i < records.length; i++) {
        end = this.#line(records, i, envelope, end);
        if (end > bytesMax) throw unitTooLarge(records.length, bytesMax);
      }
      return this.#buffer.subarray(0, end);
    } finally {
      // A buffer made for one unit is not kept, even after a refusal.
      this.#buffer = scratchBuffer();
      isEncoding = false;
    }
  }

  #line(records: readonly NewRecord[], i: number, envelope: Envelope, start: number): number {
    const record = readOnce(records[i]!);
    let marks = "";
    let tail = "";
    if (i === 0) {
      if (records.length > 1 && envelope.unit !== false) marks = `,"unit":${records.length}`;
      if (envelope.key !== undefined) tail = `,"key":${JSON.stringify(envelope.key)}`;
    }
    if (envelope.synced !== undefined && (i === 0 || (envelope.syncedLast === true && i === records.length - 1))) {
      marks += `,"synced":${envelope.synced}`;
    }
    const summary = envelope.summary?.(i);
    if (summary !== undefined) tail = `,"summary":${summary}${tail}`;
    if ((summary !== undefined && envelope.ahead) || (i === 0 && envelope.aheadFirst)) {
      marks += `,"ahead":${envelope.ahead}`;
    }

    const seq = String(envelope.seq + i);
    const bodyAt = start + SEQ.length + seq.length + marks.length + AT.length + envelope.at.length + 1;
    // The body is `{"kind":…}`: its first brace becomes the comma after the head, and its last one is overwritten.
    const end = this.#putBody(record, start, bodyAt, tail) - 1;
    const buffer = this.#buffer;
    let at = putAscii(buffer, start, SEQ);
    at = putAscii(buffer, at, seq);
    if (marks !== "") at = putAscii(buffer, at, marks);
    at = putAscii(buffer, at, AT);
    at = putAscii(buffer, at, envelope.at);
    buffer[at] = 0x22;
    buffer[bodyAt] = 0x2c;
    at = end;
    if (tail !== "") at += buffer.write(tail, at, "utf8");
    const crc = crc32(buffer.subarray(start, at));
    at = putAscii(buffer, at, ',"crc":"');
    for (let shift = 28; shift >= 0; shift -= 4) buffer[at++] = HEX[(crc >>> shift) & 15]!;
    return putAscii(buffer, at, '"}\n');
  }

  /** Writes the record's JSON at `at`, with room for the tail and the trailer behind it. Returns where it ends. */
  #putBody(record: NewRecord, start: number, at: number, tail: string): number {
    const restBytes = Buffer.byteLength(tail) + TRAILER_BYTES;
    const body = bodyOf(record);
    const bytes = at - start + Buffer.byteLength(body) + restBytes;
    // One brace of the body is overwritten.
    if (bytes - 1 > RECORD_BYTES_MAX) throw tooLarge(record.kind, bytes - 1);
    if (start + bytes > this.#buffer.length) this.#grow(start, start + bytes);
    return at + this.#buffer.write(body, at, "utf8");
  }

  /** A unit larger than the scratch buffer gets its own buffer, which is not kept. */
  #grow(used: number, bytes: number): void {
    const larger = Buffer.allocUnsafe(Math.max(bytes, this.#buffer.length * 2));
    this.#buffer.copy(larger, 0, 0, used);
    this.#buffer = larger;
  }
}

/**
 * The record with its members as they are now: a getter, or a proxy, may answer otherwise when it is asked again.
 * Throws RECORD_INVALID, RECORD_NOT_JSON.
 */
function readOnce(given: NewRecord): NewRecord {
  if (typeof given !== "object" || given === null) throw withoutKind();
  if (Array.isArray(given)) throw invalid("The record was not written: it is an array, not a record.", {});
  const record = { ...given };
  if (!Object.hasOwn(record, "kind")) record.kind = given.kind;
  const { kind, must } = record;
  if (typeof kind !== "string" || kind === "") throw withoutKind();
  // JSON would change it as a whole: the copy hides that.
  if (!isPlainObject(given)) assertPlain(given, kind);
  for (const member in record) {
    if (RESERVED.has(member) && Object.hasOwn(record, member)) {
      const message = `The record was not written: "${member}" is a reserved name of the journal. Use another name.`;
      throw invalid(message, { member, kind });
    }
  }
  if (must !== undefined && must !== true) {
    throw invalid('The record was not written: "must" must be true or absent.', { member: "must", kind });
  }
  assertPlain(record, kind);
  return record;
}

function withoutKind(): HoldfastError {
  return invalid("The record was not written: it has no kind. Nothing before it is affected.", {});
}

/** `{"kind":…,…}` with the kind first, regardless of the order of the caller's members. */
function bodyOf(record: NewRecord): string {
  const { kind, must } = record;
  try {
    if (must === undefined) {
      const body = JSON.stringify(record);
      if (body.startsWith(KIND_FIRST)) return body;
    }
    // In an object, integer-like names always come first; only text can put the kind before them.
    const { kind: _kind, must: _must, ...rest } = record;
    const start = `{"kind":${JSON.stringify(kind)}${must === undefined ? "" : ',"must":true'}`;
    const others = JSON.stringify(rest);
    return others === "{}" ? `${start}}` : `${start},${others.slice(1)}`;
  } catch (error) {
    // Beyond V8's longest string (about 512 MB) JSON.stringify throws a RangeError.
    if (error instanceof RangeError) throw tooLarge(kind, undefined);
    throw error;
  }
}

function calledByItself(): HoldfastError {
  const message =
    "Nothing was written: the append was called by a getter of a record that is being appended. " +
    "Nothing before it is affected. Call it when that append has returned.";
  return invalid(message, {});
}

function invalid(message: string, facts: Record<string, Json>): HoldfastError {
  return new HoldfastError("RECORD_INVALID", message, facts);
}

/** For a few dozen bytes, a loop costs less than a native call, and no string has to be built first. */
function putAscii(buffer: Buffer, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) buffer[at + i] = text.charCodeAt(i);
  return at + text.length;
}

function unitTooLarge(records: number, limitBytes: number): HoldfastError {
  const message =
    `Nothing was written: encoded, these ${records} records together take more than ${limitBytes} bytes (${limitBytes / 1024 / 1024} MiB). ` +
    "Nothing before them is affected. Append them in several steps, or keep large content in separate files.";
  return new HoldfastError("RECORD_TOO_LARGE", message, { records, limitBytes, bytes: null });
}

function tooLarge(kind: string, bytes: number | undefined): HoldfastError {
  const size = bytes === undefined ? "more than 512 MB" : `${bytes} bytes`;
  const message =
    `The record was not written: encoded, this "${kind}" takes ${size}, and the limit is ${RECORD_BYTES_MAX} bytes (64 MiB). ` +
    "Nothing before it is affected. Keep large content in a separate file, and append a reference to it.";
  return new HoldfastError("RECORD_TOO_LARGE", message, { kind, limitBytes: RECORD_BYTES_MAX, bytes: bytes ?? null });
}
