import { sep } from "node:path";
import type { Disk, DiskFile } from "../../../disk/disk.ts";
import { hasOtherNames, notAFolder } from "../../../disk/file-rules.ts";
import { errnoOf, HoldfastError } from "../../../errors.ts";
import { type Listed, rowIn, type Summariser } from "../../../journal/contract.ts";
import { decodeLine } from "../../../journal/lines/decode.ts";
import { Scan, scanBytes } from "../../../journal/lines/scan.ts";
import { decideTail } from "../../../journal/lines/tail.ts";
import { type ListRow, RowFold } from "../../../journal/list-row.ts";
import { type JournalRecord, RECORD_BYTES_MAX } from "../../../journal/record.ts";
import { isClaimed } from "../files/claim.ts";
import { plainSizeOf, readFrames } from "../files/frames.ts";
import { feedFrame, type SegmentBytes } from "../files/scan-file.ts";
import { listSegments, openSource, segmentName } from "../files/segment.ts";

/** A session in the catalogue: what a list shows, and the state of the files it came from. */
export interface Row extends ListRow {
  readonly id: string;
  readonly segment: number;
  readonly size: number;
  readonly mtimeMs: number;
  /** It is about to change in a way that `isFresh` does not detect. Never in the catalogue. */
  readonly isPassing?: true;
  /** It could not be read: the rest is what was known before. Never in the catalogue. */
  readonly unreadable?: NonNullable<Listed["unreadable"]>;
}

/** Enough for the last line of a closed session, which is all most lists need. */
const GLANCE_BYTES = 4 * 1024;
const TAIL_BYTES = 64 * 1024;
/**
 * A journal repeats the row every 32 KiB, and a record can be 64 MiB long: if there is none within this distance, it is
 * not our journal, or this is the middle of a giant unit.
 */
const LOOK_BACK_BYTES_MAX = RECORD_BYTES_MAX + 16 * 1024 * 1024;
const LOOK_BACK_RECORDS_MAX = 64 * 1024;
const PACKED_LOOK_BACK_BYTES = 1024 * 1024;
/** How often to retry if a listed file has another name by now. */
const LOOKS_MAX = 4;
const NO_RECORD =
  "no whole record was found at the end of any of its segments. Nothing was touched. Verify it to see what is damaged.";
const TOO_FAR_BACK =
  "its summary is further back in the journal than a list reads. Nothing was touched. Open and close it: that writes the summary again.";
/**
 * Rows are built one at a time, inside one call, and keep no bytes: a buffer for each would be the garbage collector's
 * main work.
 */
const shared = Buffer.allocUnsafe(TAIL_BYTES);
const NEWLINE = 0x0a;

/**
 * Does the row still match the files? A closed session can change only through a writer, whose first record (`opened`)
 * goes to the currently newest segment: one stat shows that. A session that was not closed may have continued in a
 * newer segment. So may one whose segment has other names: writers do not change that segment.
 */
export function isFresh(disk: Disk, folder: string, row: Row): boolean {
  const found = disk.stat(folder + sep + segmentName(row.segment));
  if (!found || found.size !== row.size || found.mtimeMs !== row.mtimeMs || hasOtherNames(found)) return false;
  return row.closed || !hasGoneOn(disk, folder, row.segment);
}

/** Is there a newer segment? It has the next number, unless that was claimed but not written: then it can have any. */
function hasGoneOn(disk: Disk, folder: string, segment: number): boolean {
  if (disk.stat(folder + sep + segmentName(segment + 1))) return true;
  return isClaimed(disk, folder, segment + 1) && listSegments(disk, folder).at(-1)?.number !== segment;
}

/**
 * Builds a row from the files: reads backwards from the end to the newest summary, then forwards from there (S20). Null
 * if it is not a session. Throws if it cannot be read, or not within LOOK_BACK_BYTES_MAX.
 */
export function readRow(disk: Disk, folder: string, id: string, summariser: Summariser | undefined): Row | null {
  for (let looks = 1; ; looks++) {
    try {
      return lookAt(disk, folder, id, summariser);
    } catch (error) {
      // Deleted, packed or healed between listing and reading.
      if (errnoOf(error) !== "ENOENT" || looks === LOOKS_MAX) throw error;
    }
  }
}

function lookAt(disk: Disk, folder: string, id: string, summariser: Summariser | undefined): Row | null {
  const found = disk.stat(folder);
  if (!found) return null;
  if (found.kind !== "folder") throw notAFolder(folder, found.kind);
  // Before the segments are listed: a writer that takes over a closed session creates its tail, then changes its size,
  // and then starts a new segment, which changes nothing that `isFresh` checks. And before the newest one is read: a
  // row older than it claims is never corrected. Most sessions have one segment.
  let name = segmentName(1);
  let state = disk.stat(folder + sep + name);
  let segments = listSegments(disk, folder);
  while (segments.length > 0 && !(state && segments.at(-1)!.name === name)) {
    name = segments.at(-1)!.name;
    state = disk.stat(folder + sep + name);
    segments = listSegments(disk, folder);
  }
  const newest = segments.at(-1);
  if (!newest || !state) return null;
  const { size, mtimeMs } = state;
  // A segment may hold no whole record (its header is damaged): then the one before it is used.
  for (const segment of segments.reverse()) {
    const source = openSource(disk, folder, segment);
    try {
      const { records, isAll } = source.packed
        ? packedEnd(source.packed, summariser)
        : recordsSinceSummary(source, segment === newest && !segment.tail ? size : source.size(), summariser);
      const last = records.at(-1);
      if (!last) continue;
      const closed = last.kind === "closed" && segment === newest;
      if (!isAll) throw withoutRow(folder, TOO_FAR_BACK);
      return {
        id,
        segment: newest.number,
        size,
        mtimeMs,
        ...rowOf(records, summariser),
        closed,
        ...(closed && newest.tail ? { isPassing: true } : {}),
      };
    } finally {
      source.close();
    }
  }
  throw withoutRow(folder, NO_RECORD);
}

function withoutRow(folder: string, why: string): HoldfastError {
  return new HoldfastError("JOURNAL_UNREADABLE", `The session in ${folder} cannot be listed: ${why}`, { path: folder });
}

function rowOf(records: readonly JournalRecord[], summariser: Summariser | undefined): ListRow {
  const fold = new RowFold(null, summariser);
  for (const record of records) fold.add(record.seq, record);
  return fold.row;
}

/**
 * The newest records of a segment: from the one that carries a summary on, or all of them. Not `isAll`: the summary is
 * further back than a list reads.
 */
interface End {
  readonly records: readonly JournalRecord[];
  readonly isAll: boolean;
}

function recordsSinceSummary(file: SegmentBytes, size: number, summariser: Summariser | undefined): End {
  const carries = (record: JournalRecord): boolean => rowIn(record, summariser) !== undefined;
  for (let length = Math.min(GLANCE_BYTES, size); ; length = Math.min(length * 16, size, LOOK_BACK_BYTES_MAX)) {
    const start = size - length;
    const bytes = length <= shared.length ? shared : Buffer.allocUnsafe(length);
    const read = file.read(bytes, 0, length, start);
    const tail = bytes.subarray(0, read);
    const closing = lastLine(tail);
    if (closing && carries(closing)) return { records: [closing], isAll: true };

    const from = start === 0 ? 0 : tail.indexOf(NEWLINE) + 1;
    const scan = scanBytes(tail.subarray(from), start + from);
    const { keep } = decideTail(scan, { sealed: false });
    const records = scan.records.slice(0, keep);
    const newest = records.findLastIndex(carries);
    if (newest !== -1) return { records: records.slice(newest), isAll: true };
    if (start === 0) return { records, isAll: true };
    if (length === LOOK_BACK_BYTES_MAX || records.length > LOOK_BACK_RECORDS_MAX) return { records, isAll: false };
  }
}

/** The same for a packed segment, which is the newest only if the plain one was lost. */
function packedEnd(file: DiskFile, summariser: Summariser | undefined): End {
  const size = plainSizeOf(file);
  const from = Math.max(0, size - PACKED_LOOK_BACK_BYTES);
  const scan = new Scan();
  for (const frame of readFrames(file, from)) feedFrame(scan, frame, 0);
  const newest = scan.records.findLastIndex((record) => rowIn(record, summariser) !== undefined);
  return { records: scan.records.slice(Math.max(0, newest)), isAll: newest !== -1 || from === 0 };
}

/** The usual end: a whole line with its newline. */
function lastLine(bytes: Buffer): JournalRecord | null {
  if (bytes.length < 2 || bytes[bytes.length - 1] !== NEWLINE) return null;
  const start = bytes.lastIndexOf(NEWLINE, bytes.length - 2) + 1;
  return decodeLine(bytes, start, bytes.length - 1);
}
