import { join, sep } from "node:path";
import type { Disk } from "../../disk/disk.ts";
import { errnoOf } from "../../errors.ts";
import { type Listed, rowIn, type Summariser } from "../../journal/contract.ts";
import { decodeLine } from "../../journal/decode.ts";
import { aheadAfter, stampOf } from "../../journal/order.ts";
import type { JournalRecord, Json } from "../../journal/record.ts";
import { Scan } from "../../journal/scan.ts";
import { decideTail } from "../../journal/tail.ts";
import { listSegments, openSource, type Source, segmentName } from "./segment.ts";

/** A session in the catalogue: what a list shows, and the state of the files that it was taken from. */
export interface Row {
  readonly id: string;
  readonly segment: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly at: string;
  /** What lists are ordered by. */
  readonly stamp: string;
  readonly head: number;
  readonly closed: boolean;
  readonly summary: Json;
  /** It could not be looked at: the rest is what was known before. Never in the catalogue. */
  readonly unreadable?: NonNullable<Listed["unreadable"]>;
}

/** Enough for the last line of a session that was closed in order: all that most lists need. */
const GLANCE_BYTES = 4 * 1024;
const TAIL_BYTES = 64 * 1024;
/** Rows are made one at a time, inside one call, and keep no bytes: a buffer for each would be the collector's main work. */
const shared = Buffer.allocUnsafe(TAIL_BYTES);
const NEWLINE = 0x0a;

/**
 * Is the row still what the files say? A closed session can only change through a writer, whose first record (`opened`) goes to the
 * segment that is newest now: one look at that tells. One that was not closed may have gone on in a newer segment.
 */
export function isFresh(disk: Disk, folder: string, row: Row): boolean {
  const found = disk.stat(folder + sep + segmentName(row.segment));
  if (!found || found.size !== row.size || found.mtimeMs !== row.mtimeMs) return false;
  return row.closed || disk.stat(folder + sep + segmentName(row.segment + 1)) === null;
}

/** Makes a row out of the files: reads backwards from the end to the newest summary, and on from there (S20). Null if it is no session. */
export function readRow(disk: Disk, folder: string, id: string, summariser: Summariser | undefined): Row | null {
  try {
    const segments = disk.stat(folder)?.kind === "folder" ? listSegments(disk, folder) : [];
    const newest = segments.at(-1);
    if (!newest) return null;
    // A segment may hold no whole record (its header rotted): then the one before it tells.
    for (const segment of segments.reverse()) {
      const source = openSource(disk, folder, segment);
      try {
        const records = recordsSinceSummary(source, source.size(), summariser);
        const last = records.at(-1);
        if (!last) continue;
        const { size, mtimeMs } = disk.stat(join(folder, newest.name))!;
        const closed = last.kind === "closed" && segment === newest;
        return {
          id,
          segment: newest.number,
          size,
          mtimeMs,
          at: last.at,
          stamp: stampOf(last.at, records.reduce(aheadAfter, 0)),
          head: last.seq,
          closed,
          summary: summarise(records, summariser),
        };
      } finally {
        source.close();
      }
    }
    return null;
  } catch (error) {
    // Deleted, or put in order, between the list and the look; or something that is not a session's folder.
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes(errnoOf(error) ?? "")) return null;
    throw error;
  }
}

function summarise(records: readonly JournalRecord[], summariser: Summariser | undefined): Json {
  let row: Json = null;
  for (const record of records) {
    const carried = rowIn(record, summariser);
    if (carried !== undefined) row = carried;
    else if (summariser) row = summariser.add(row, record);
  }
  return row;
}

/** The newest record that carries a summary, and those after it; all of the segment's if none does. */
function recordsSinceSummary(file: Source, size: number, summariser: Summariser | undefined): readonly JournalRecord[] {
  const carries = (record: JournalRecord): boolean => rowIn(record, summariser) !== undefined;
  for (let length = Math.min(GLANCE_BYTES, size); ; length = Math.min(length * 16, size)) {
    const start = size - length;
    const bytes = length <= shared.length ? shared : Buffer.allocUnsafe(length);
    const read = file.read(bytes, 0, length, start);
    const tail = bytes.subarray(0, read);
    const closing = lastLine(tail);
    if (closing && carries(closing)) return [closing];

    const from = start === 0 ? 0 : tail.indexOf(NEWLINE) + 1;
    const scan = new Scan();
    const rest = scan.feed(tail, from, tail.length, start + from);
    scan.finish(tail, rest, tail.length, start + rest);
    const { keep } = decideTail(scan, { sealed: false });
    const records = scan.records.slice(0, keep);
    const newest = records.findLastIndex(carries);
    if (newest !== -1) return records.slice(newest);
    if (start === 0) return records;
  }
}

/** The usual end: a whole line with its newline. */
function lastLine(bytes: Buffer): JournalRecord | null {
  if (bytes.length < 2 || bytes[bytes.length - 1] !== NEWLINE) return null;
  const start = bytes.lastIndexOf(NEWLINE, bytes.length - 2) + 1;
  return decodeLine(bytes, start, bytes.length - 1);
}
