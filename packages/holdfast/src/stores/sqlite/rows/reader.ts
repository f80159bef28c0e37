import { setImmediate as breathe } from "node:timers/promises";
import type { Damage } from "../../../journal/contract.ts";
import { type Line, recordOf, type Segment } from "../../../journal/lines/account.ts";
import { segmentAt } from "../../../journal/lines/verbatim.ts";
import type { Database } from "../database/database.ts";
import { isCorrupt, orNull } from "../database/failure.ts";
import { damagedPart, findSession, recordAt } from "./catalogue.ts";
import type { Rows } from "./rows.ts";
import type { SessionRow } from "./session-row.ts";

/**
 * What to read: the lines of a session from `from` to `to`, as of one instant. Lines never change, so it stays valid.
 */
export interface Extent {
  readonly key: number;
  readonly from: number;
  readonly to: number;
}

/** A session, its segments in order, and the last seq in use. */
export interface StoredJournal {
  readonly session: SessionRow;
  readonly segments: readonly Segment[];
  readonly last: number;
  /** The segments come from the journal, not from the table. */
  readonly isDerived: boolean;
  /** The parts of the database that disagree with the journal. */
  readonly damaged: readonly Damage[];
}

/** A row that is ahead of its journal by more than this is damaged: nobody has lost that many records. */
const LOST_MAX = 1_000_000;
/** Longer than the start of any line up to the end of its kind. */
const KIND_BYTES = 256;
const HEADER = '"kind":"segment"';

/** `isWrong`: the table of segments is known to be wrong. */
export function findJournal(rows: Rows, id: string, isWrong = false): StoredJournal | null {
  const session = findSession(rows, id);
  if (!session) return null;
  const { key } = session;
  const newest = newestSeq(rows, key);
  const damaged: Damage[] = [];
  const last = lastOf(rows, session, newest);
  if (last < session.head) damaged.push(damagedPart("sessions"));
  const segments = isWrong ? null : segmentsOf(rows, key, last);
  if (segments) return { session, segments, last, isDerived: false, damaged };
  damaged.push(damagedPart("segments"));
  return { session, segments: deriveSegments(rows, key, last), last, isDerived: true, damaged };
}

/** If the page with the newest lines is damaged, the catalogue still knows how many there were. */
export function newestSeq(rows: Rows, key: number): number {
  return orNull(() => rows.newestSeq(key)) ?? 0;
}

/**
 * The row can be ahead of the journal if the last lines are lost, or if the row is wrong: a closed journal says where
 * it ends.
 */
function lastOf(rows: Rows, { key, head, closed }: SessionRow, newest: number): number {
  if (head <= newest || newest === 0) return Math.max(newest, Math.min(head, newest + LOST_MAX));
  const isEnd = closed && recordAt(rows, key, newest)?.kind === "closed";
  return isEnd || head - newest > LOST_MAX ? newest : head;
}

/** Null if the journal's headers disagree. Checks only those that matter for the current epoch. */
function segmentsOf(rows: Rows, key: number, last: number): Segment[] | null {
  const segments = orNull(() => rows.readSegments(key)) ?? [];
  const newest = segments.at(-1);
  const begin = segments.find(({ number }) => number === newest?.epoch);
  if (!newest || !begin) return null;
  for (const [i, { number, epoch, first }] of segments.entries()) {
    const before = segments[i - 1] ?? { number: 0, first: 0 };
    if (number <= before.number || first <= before.first || epoch < 1 || epoch > number || first > last) return null;
  }
  return [begin, newest].every((segment) => isHeader(rows, key, segment)) ? segments : null;
}

/** A damaged header is no evidence against its row. */
function isHeader(rows: Rows, key: number, { number, epoch, first }: Segment): boolean {
  const record = recordAt(rows, key, first);
  return !record || (record.kind === "segment" && record["segment"] === number && record["epoch"] === epoch);
}

function deriveSegments(rows: Rows, key: number, last: number): Segment[] {
  const segments: Segment[] = [];
  for (let from = 1; from <= last; ) {
    const { lines, next } = readSome(rows, key, from, last);
    for (const line of lines) {
      const record = recordOf(line);
      const begins = record && segmentAt(record, segments.at(-1) ?? null);
      if (begins) segments.push(begins);
    }
    from = next;
  }
  return segments.length > 0 ? segments : [{ number: 1, epoch: 1, first: 1 }];
}

/** Do these lines contain the header of a segment that is missing from the table? */
export function hasUnknownHeader(lines: readonly Line[], segments: readonly Segment[]): boolean {
  return lines.some((line) => {
    if (line.bytes.subarray(0, KIND_BYTES).indexOf(HEADER) === -1) return false;
    return recordOf(line)?.kind === "segment" && !segments.some(({ first }) => first === line.seq);
  });
}

/** The lines of an extent, in chunks. Others can write in between. */
export async function* readChunks(database: Database, extent: Extent): AsyncGenerator<readonly Line[]> {
  const { key, to } = extent;
  for (let from = extent.from; from <= to; ) {
    const chunk = database.attempt("read the journal", (rows) => readSome(rows, key, from, to));
    yield chunk.lines;
    if (chunk.end) return;
    from = chunk.next;
    await breathe();
  }
}

interface Some {
  readonly lines: readonly Line[];
  /** The seq to continue with. */
  readonly next: number;
  readonly end: boolean;
}

export function readSome(rows: Rows, key: number, from: number, to: number): Some {
  return readInOrder(rows, key, from, to) ?? salvage(rows, key, from, Math.min(to, from + SALVAGE_ROWS - 1), to);
}

/** Null if a page is damaged, or if lines that existed are missing: they may only be hidden. */
function readInOrder(rows: Rows, key: number, from: number, to: number): Some | null {
  const chunk = orNull(() => rows.readLines(key, from, to));
  const last = chunk?.lines.at(-1)?.seq ?? from - 1;
  if (!chunk || last - from + 1 !== chunk.lines.length || (chunk.end && last < to)) return null;
  return { lines: chunk.lines, next: last + 1, end: last >= to };
}

/** A damaged page of the database costs the lines on it: the rest is recovered from wherever it is stored (P9). */
function salvage(rows: Rows, key: number, from: number, until: number, to: number): Some {
  const found = new Map<number, { readonly bytes: Buffer; readonly worth: number }>();
  for (const line of rows.linesAround(key, from, until)) {
    // Of two with the same seq, prefer the whole one; if both are whole, the one in its place: the other belongs to
    // another session, and its own place is damaged.
    const worth = (recordOf(line) ? 2 : 0) + (line.isLinked ? 1 : 0);
    if (worth > (found.get(line.seq)?.worth ?? -1)) found.set(line.seq, { bytes: line.bytes, worth });
  }
  const lines: Line[] = [];
  for (let seq = from; seq <= until; seq++) {
    const bytes = found.get(seq)?.bytes ?? readLine(rows, key, seq);
    if (bytes) lines.push({ seq, bytes });
  }
  return { lines, next: until + 1, end: until >= to };
}

const SALVAGE_ROWS = 64;

/**
 * Null if there is none; empty if the page is damaged: which seqs it held cannot be distinguished from those it never
 * held.
 */
function readLine(rows: Rows, key: number, seq: number): Buffer | null {
  try {
    return rows.readLine(key, seq);
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    return Buffer.alloc(0);
  }
}
