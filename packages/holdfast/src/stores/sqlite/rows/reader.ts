import { setImmediate as breathe } from "node:timers/promises";
import type { Damage } from "../../../journal/contract.ts";
import { type Line, recordOf, type Segment } from "../../../journal/lines/account.ts";
import { segmentAt } from "../../../journal/lines/verbatim.ts";
import type { Database } from "../database/database.ts";
import { orNull } from "../database/failure.ts";
import { damagedPart, findSession } from "./catalogue.ts";
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
/** How many lines are read one by one after a damaged page. */
const SALVAGE_ROWS = 64;
/** Longer than the start of any line up to the end of its kind. */
const KIND_BYTES = 256;
const HEADER = '"kind":"segment"';

/** `isWrong`: the table of segments is known to be wrong. */
export function findJournal(rows: Rows, id: string, isWrong = false): StoredJournal | null {
  const session = findSession(rows, id);
  if (!session) return null;
  const { key, head } = session;
  const newest = newestSeq(rows, key);
  // The row is ahead of the journal if the last lines are lost: their seqs are not used again.
  const last = Math.max(newest, Math.min(head, newest + LOST_MAX));
  const segments = isWrong ? null : segmentsOf(rows, key, last);
  if (segments) return { session, segments, last, isDerived: false, damaged: [] };
  const derived = deriveSegments(rows, key, last);
  return { session, segments: derived, last, isDerived: true, damaged: [damagedPart("segments")] };
}

/** If the page with the newest lines is damaged, the catalogue still knows how many there were. */
export function newestSeq(rows: Rows, key: number): number {
  return orNull(() => rows.newestSeq(key)) ?? 0;
}

/** Null if they cannot be right. */
function segmentsOf(rows: Rows, key: number, last: number): Segment[] | null {
  const segments = orNull(() => rows.readSegments(key)) ?? [];
  const newest = segments.at(-1);
  if (!newest || !segments.some(({ number }) => number === newest.epoch)) return null;
  for (const [i, { number, epoch, first }] of segments.entries()) {
    const before = segments[i - 1] ?? { number: 0, first: 0 };
    if (number <= before.number || first <= before.first || epoch < 1 || epoch > number || first > last) return null;
  }
  return segments;
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

/**
 * Do these lines contradict the table of segments? Every header is in the table, and where the table has one, there is
 * one. A damaged line is no evidence.
 */
export function contradicts(lines: readonly Line[], segments: readonly Segment[]): boolean {
  const firsts = new Map(segments.map((segment) => [segment.first, segment]));
  return lines.some((line) => {
    const segment = firsts.get(line.seq);
    if (!segment && line.bytes.subarray(0, KIND_BYTES).indexOf(HEADER) === -1) return false;
    const record = recordOf(line);
    if (!record) return false;
    const isHeader = record.kind === "segment";
    return segment ? !isHeader || record["segment"] !== segment.number || record["epoch"] !== segment.epoch : isHeader;
  });
}

/** The lines of an extent, in chunks. Others can write in between. */
export async function* readChunks(database: Database, extent: Extent): AsyncGenerator<readonly Line[]> {
  const { key, to } = extent;
  for (let from = extent.from; from <= to; ) {
    const { lines, next } = database.attempt("read the journal", (rows) => readSome(rows, key, from, to));
    yield lines;
    from = next;
    if (from <= to) await breathe();
  }
}

/**
 * Some lines, and the seq to continue with. A damaged page of the database costs the lines on it (P9): the lines are
 * then read one by one.
 */
export function readSome(
  rows: Rows,
  key: number,
  from: number,
  to: number,
): { readonly lines: readonly Line[]; readonly next: number } {
  const chunk = orNull(() => rows.readLines(key, from, to));
  if (chunk) return { lines: chunk.lines, next: chunk.end ? to + 1 : chunk.lines.at(-1)!.seq + 1 };
  const lines: Line[] = [];
  const next = Math.min(to, from + SALVAGE_ROWS - 1) + 1;
  for (let seq = from; seq < next; seq++) {
    // Empty if its page is damaged: which seqs that held cannot be distinguished from those it never held.
    const line = orNull(() => ({ bytes: rows.readLine(key, seq) })) ?? { bytes: Buffer.alloc(0) };
    if (line.bytes) lines.push({ seq, bytes: line.bytes });
  }
  return { lines, next };
}
