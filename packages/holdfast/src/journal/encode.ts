import { crc32 } from "node:zlib";
import { HoldfastError } from "../errors.ts";
import { assertPlain } from "./plain.ts";
import { type NewRecord, RECORD_BYTES_MAX } from "./record.ts";

/** What the journal adds to the records of one append. */
export interface Envelope {
  /** Of the first record. */
  readonly seq: number;
  readonly at: string;
  /** The mark (S7), if it is to be written: on the first record. */
  readonly synced?: number | undefined;
  /** The mark stands on the last record too. */
  readonly syncedLast?: boolean | undefined;
  /** On the first record. */
  readonly key?: string | undefined;
  /** JSON text of the row that record `i` is to carry, or undefined. */
  readonly summary?: ((i: number) => string | undefined) | undefined;
  /** Several records make a unit (S6). False for the first records of a segment, which are whole by its rename (S15). */
  readonly unit?: boolean | undefined;
}

const RESERVED = new Set(["seq", "unit", "synced", "at", "key", "summary", "crc"]);
/** `,"crc":"` + 8 digits + `"}` + newline */
const TRAILER_BYTES = 19;
const SCRATCH_BYTES = 256 * 1024;
const HEX16 = Array.from({ length: 0x10000 }, (_, i) => i.toString(16).padStart(4, "0"));

/** Encoding and writing are one synchronous step (S10), so all writers of a process can share it. */
const scratch = Buffer.allocUnsafe(SCRATCH_BYTES);

/** Lines out of records (FORMAT.md, "Lines"). What it returns is good until anything else is encoded in this process. */
export class Encoder {
  #buffer = scratch;

  /** The bytes of the records, in order. Throws RECORD_INVALID, RECORD_NOT_JSON or RECORD_TOO_LARGE, and then nothing has happened. */
  encode(records: readonly NewRecord[], envelope: Envelope): Buffer {
    this.#buffer = scratch;
    let end = 0;
    for (let i = 0; i < records.length; i++) end = this.#line(records, i, envelope, end);
    const bytes = this.#buffer.subarray(0, end);
    this.#buffer = scratch;
    return bytes;
  }

  #line(records: readonly NewRecord[], i: number, envelope: Envelope, start: number): number {
    const record = records[i]!;
    const body = bodyOf(record);
    let head = `{"seq":${envelope.seq + i}`;
    let tail = "";
    if (i === 0) {
      if (records.length > 1 && envelope.unit !== false) head += `,"unit":${records.length}`;
      if (envelope.key !== undefined) tail = `,"key":${JSON.stringify(envelope.key)}`;
    }
    if (envelope.synced !== undefined && (i === 0 || (envelope.syncedLast === true && i === records.length - 1))) {
      head += `,"synced":${envelope.synced}`;
    }
    head += `,"at":"${envelope.at}"`;
    const summary = envelope.summary?.(i);
    if (summary !== undefined) tail = `,"summary":${summary}${tail}`;

    const bytesMax = start + head.length + bytesAtMost(body) + bytesAtMost(tail) + TRAILER_BYTES;
    if (bytesMax > this.#buffer.length) this.#grow(start, bytesMax);
    const buffer = this.#buffer;

    // The body is `{"kind":…}`: its first brace becomes the comma after the head, its last one is written over.
    const bodyAt = start + buffer.write(head, start, "latin1");
    let at = bodyAt + buffer.write(body, bodyAt, "utf8") - 1;
    buffer[bodyAt] = 0x2c;
    if (tail !== "") at += buffer.write(tail, at, "utf8");
    const crc = crc32(buffer.subarray(start, at));
    at += buffer.write(`,"crc":"${HEX16[crc >>> 16]}${HEX16[crc & 0xffff]}"}\n`, at, "latin1");
    if (at - start > RECORD_BYTES_MAX) throw tooLarge(record.kind, at - start);
    return at;
  }

  /** A unit larger than the scratch buffer gets one of its own, which is not kept. */
  #grow(used: number, bytes: number): void {
    const larger = Buffer.allocUnsafe(Math.max(bytes, this.#buffer.length * 2));
    this.#buffer.copy(larger, 0, 0, used);
    this.#buffer = larger;
  }
}

/** `{"kind":…,…}` with the kind first, whatever order the caller's members have. */
function bodyOf(record: NewRecord): string {
  if (typeof record !== "object" || record === null || typeof record.kind !== "string" || record.kind === "") {
    throw new HoldfastError(
      "RECORD_INVALID",
      "The record was not written: it has no kind. Nothing before it is affected.",
    );
  }
  let first: string | undefined;
  for (const member in record) {
    first ??= member;
    if (RESERVED.has(member)) {
      const message = `The record was not written: "${member}" is a name of the journal's own. Put the value under another name.`;
      throw new HoldfastError("RECORD_INVALID", message, { member, kind: record.kind });
    }
  }
  assertPlain(record, record.kind);
  try {
    if (first === "kind" && record.must === undefined) return JSON.stringify(record);
    const { kind, must, ...rest } = record;
    return JSON.stringify(must === undefined ? { kind, ...rest } : { kind, must, ...rest });
  } catch (error) {
    // Beyond V8's longest string (about 512 MB) JSON.stringify throws a RangeError.
    if (error instanceof RangeError) throw tooLarge(record.kind, undefined);
    throw error;
  }
}

function bytesAtMost(text: string): number {
  return text.length < SCRATCH_BYTES ? text.length * 3 : Buffer.byteLength(text);
}

function tooLarge(kind: string, bytes: number | undefined): HoldfastError {
  const size = bytes === undefined ? "more than 512 MB" : `${bytes} bytes`;
  const message =
    `The record was not written: encoded, this "${kind}" takes ${size}, and the limit is ${RECORD_BYTES_MAX} bytes (64 MiB). ` +
    "Nothing before it is affected. Keep large content in a file of its own, and append a reference to it.";
  return new HoldfastError("RECORD_TOO_LARGE", message, { kind, limitBytes: RECORD_BYTES_MAX, bytes: bytes ?? null });
}
