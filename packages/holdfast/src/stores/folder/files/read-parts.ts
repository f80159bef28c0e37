import { setImmediate as nextTick } from "node:timers/promises";
import { decodeLine } from "../../../journal/lines/decode.ts";
import { Scan } from "../../../journal/lines/scan.ts";
import { finishedUpTo, type TailContext } from "../../../journal/lines/tail.ts";
import { type JournalRecord, RECORD_BYTES_MAX, SEGMENT_BYTES_MAX } from "../../../journal/record.ts";
import { readFrames } from "./frames.ts";
import { feedFrame, type SegmentBytes } from "./scan-file.ts";
import type { Source } from "./segment.ts";

const PART_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

export interface PartsContext extends TailContext {
  /** Nothing before this seq is wanted. */
  readonly from: number;
}

/**
 * Yields the records of a segment, a part in memory at a time, for as long as each has the number after the one before
 * it and nothing lies between them. Then no bytes that follow can make a difference to what was yielded: only a unit
 * that is not complete is held back. Returns the last seq; null if something else was found, so that the rest of the
 * segment must be judged as a whole (`readSegment`).
 */
export async function* readParts(
  source: Source,
  context: PartsContext,
  partBytes: number = PART_BYTES,
): AsyncGenerator<readonly JournalRecord[], number | null> {
  const { before = Number.POSITIVE_INFINITY, from } = context;
  const start = source.packed ? 0 : offsetBefore(source, from, partBytes);
  let last = start === 0 ? context.previous : undefined;
  let first: number | undefined;
  let mark = 0;
  let held: readonly JournalRecord[] = [];
  for (const scan of source.packed ? packedParts(source.packed) : plainParts(source, start, partBytes)) {
    if (!scan || scan.strays.length > 0 || scan.ragged) return null;
    for (const record of scan.records) {
      const { seq } = record;
      // A segment starts with its header. A place that was searched for comes before the first record that is wanted.
      if (first === undefined && (start === 0 ? record.kind !== "segment" : seq >= from)) return null;
      if (seq >= before || (last !== undefined && seq !== last + 1)) return null;
      first ??= seq;
      last = seq;
    }
    mark = Math.max(mark, scan.mark);
    const records = held.length === 0 ? scan.records : held.concat(scan.records);
    // What was not read may have damage at which the journal ends, unless it was durable.
    const isTrusted = start === 0 || context.sealed || (first !== undefined && mark >= first - 1);
    const count = isTrusted ? finishedUpTo(records, last ?? 0) : 0;
    held = records.slice(count);
    yield count === records.length ? records : records.slice(0, count);
    await nextTick();
  }
  // A mark beyond the last record: someone has truncated the file.
  const isWhole = last !== undefined && first !== undefined && held.length === 0 && mark <= last;
  return isWhole && (start === 0 || last! >= from) ? last! : null;
}

/** Null: a line is too long, or does not end, or the file is larger than a segment may be. */
function* plainParts(source: SegmentBytes, from: number, partBytes: number): Generator<Scan | null> {
  if (source.size() > SEGMENT_BYTES_MAX) return yield null;
  let buffer = Buffer.allocUnsafe(Math.max(1, Math.min(partBytes, source.size() - from)));
  let filled = 0;
  let offset = from;
  for (;;) {
    const read = source.read(buffer, filled, buffer.length - filled, offset + filled);
    if (read === 0) break;
    filled += read;
    const scan = new Scan();
    const rest = scan.feed(buffer, 0, filled, offset);
    offset += rest;
    buffer.copy(buffer, 0, rest, filled);
    filled -= rest;
    if (rest > 0) yield scan;
    if (filled < buffer.length) continue;
    if (filled > RECORD_BYTES_MAX) break;
    const larger = Buffer.allocUnsafe(buffer.length * 2);
    buffer.copy(larger, 0, 0, filled);
    buffer = larger;
  }
  if (filled > 0) yield null;
}

function* packedParts(file: NonNullable<Source["packed"]>): Generator<Scan> {
  for (const frame of readFrames(file)) {
    const scan = new Scan();
    feedFrame(scan, frame, 0);
    yield scan;
  }
}

/** How much is read to find one line. A longer line is not found, which costs time and nothing else. */
const PROBE_BYTES = 64 * 1024;

/**
 * The start of a line not far before the record with this seq, found by halving; 0 if the segment does not start with
 * its header. In a damaged segment it may be any line: what is read from there shows that.
 */
function offsetBefore(source: SegmentBytes, seq: number, nearBytes: number): number {
  let low = 0;
  let high = source.size();
  if (high <= nearBytes) return 0;
  const buffer = Buffer.allocUnsafe(PROBE_BYTES);
  if (recordAt(source, buffer, 0)?.kind !== "segment") return 0;
  while (high - low > nearBytes) {
    const middle = Math.floor((low + high) / 2);
    const found = recordAt(source, buffer, middle);
    if (found && found.offset < high && found.seq < seq) low = found.offset;
    else high = middle;
  }
  return low;
}

/** The whole record in the first line that starts at this offset or after it. */
function recordAt(
  source: SegmentBytes,
  buffer: Buffer,
  offset: number,
): { readonly offset: number; readonly seq: number; readonly kind: string } | null {
  const bytes = buffer.subarray(0, source.read(buffer, 0, buffer.length, offset));
  const start = offset === 0 ? 0 : bytes.indexOf(NEWLINE) + 1;
  const end = start === 0 && offset > 0 ? -1 : bytes.indexOf(NEWLINE, start);
  const record = end === -1 ? null : decodeLine(bytes, start, end);
  return record && { offset: offset + start, seq: record.seq, kind: record.kind };
}
