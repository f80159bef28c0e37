import type { JournalRecord } from "../record.ts";
import { indexFrom } from "./chain.ts";
import type { Scan, Stray } from "./scan.ts";

/** What the bytes of a segment mean (S3, S6, S7): the part on which writers and readers must agree. */
export interface Tail {
  /** How many of the scan's records count. */
  readonly keep: number;
  /** The journal ends at this offset; what follows was never known durable. Null: nothing to cut. */
  readonly cut: number | null;
  /** What stays lacks its last newline, which must be added before the next append. */
  readonly unended: boolean;
  /** Damage to data that had been durable. It stays in place. */
  readonly damaged: readonly (Stray & { readonly seq?: number })[];
  /** Seqs that have no line. */
  readonly missing: readonly { readonly from: number; readonly to: number }[];
  /** Every record up to this seq is known durable. */
  readonly durable: number;
  /** Where the bytes start that are not known durable. */
  readonly durableEnd: number;
  /** The seq of the next record. */
  readonly next: number;
}

export interface TailContext {
  /**
   * Nobody appends to the segment any more, and all of it is durable: a newer segment exists, or its end was made
   * durable in a separate file.
   */
  readonly sealed: boolean;
  /**
   * The first seq of the next segment. A record with this seq or a higher one came from a writer that had been
   * replaced, and does not count.
   */
  readonly before?: number | undefined;
  /** The last seq of the previous segment, if that has been read. */
  readonly previous?: number | undefined;
}

/**
 * The decision table.
 *
 * | bytes outside whole records     | sealed  | at or before the mark, or first line | after the mark              |
 * |---------------------------------|---------|--------------------------------------|-----------------------------|
 * | valid JSON, but not a record    | foreign | foreign                              | torn: cut here              |
 * | anything else                   | corrupt | corrupt                              | torn: cut here              |
 * | (an unfinished unit at the end) | counts  | counts                               | torn: cut at its first line |
 *
 * The first line of a segment is never torn: a segment gets its name by a link, after a sync (S15). Nor are bytes
 * between two records with consecutive numbers: no line is missing there, so someone inserted them, and what follows
 * them is as trustworthy as what precedes them.
 */
export function decideTail(scan: Scan, context: TailContext): Tail {
  const { records, offsets, strays } = scan;
  const mark = context.sealed ? Number.POSITIVE_INFINITY : scan.mark;
  const linesBeforeFirst = strays.filter((stray) => stray.after === 0 && stray.line).length;
  const start = context.previous ?? Math.max(0, (records[0]?.seq ?? 1) - 1 - linesBeforeFirst);
  const born = offsets[0] === 0 || strays[0]?.offset === 0 ? start + 1 : 0;
  const known = Math.max(mark, born);

  let end = endBefore(scan, context.before);
  const counted = end.keep;
  end = firstTear(scan, end, 0, start, known);
  let last = lastSeq(scan, end, start);
  for (;;) {
    const unit = unfinishedUnit(records, end.keep, last);
    if (unit === -1 || records[unit]!.seq <= known || offsets[unit] === 0) break;
    const cut = offsets[unit]!;
    let kept = end.kept;
    while (kept > 0 && strays[kept - 1]!.offset >= cut) kept--;
    let from = kept;
    while (from > 0 && strays[from - 1]!.after === unit) from--;
    // Strays that were between the unit and the record before it are at the end now.
    end = firstTear(scan, { keep: unit, kept, cut }, from, start, known);
    last = lastSeq(scan, end, start);
  }

  const { keep, kept, cut } = end;
  const limit = (context.before ?? Number.POSITIVE_INFINITY) - 1;
  const { damaged, missing } = account(scan, keep, kept, start, limit);
  last = Math.min(last, limit);
  const marked = Math.min(counted < records.length ? scan.markOf(counted) : scan.mark, limit);
  if (last < marked) {
    // Only the first records of a segment carry a mark beyond themselves (S15), so someone has truncated the file.
    missing.push({ from: last + 1, to: marked });
    last = marked;
  }
  const durable = Math.min(mark, last);
  return {
    keep,
    cut,
    unended: cut === null ? scan.ragged : scan.inline.has(cut),
    damaged,
    missing,
    durable,
    durableEnd: durableEnd(scan, keep, durable, cut),
    next: last + 1,
  };
}

/** How many records and strays stay, and where the rest is cut off. */
interface End {
  readonly keep: number;
  readonly kept: number;
  readonly cut: number | null;
}

/** Everything, or what precedes the first record whose number the next segment uses. */
function endBefore({ records, offsets, strays }: Scan, before: number | undefined): End {
  let keep = records.length;
  while (before !== undefined && keep > 0 && records[keep - 1]!.seq >= before) keep--;
  const offset = keep < records.length ? offsets[keep]! : Number.POSITIVE_INFINITY;
  return { keep, kept: strays.findLastIndex((stray) => stray.offset < offset) + 1, cut: null };
}

/** The end at the first stray, starting at index `from`, that is not known to have been durable; otherwise `end`. */
function firstTear(scan: Scan, end: End, from: number, start: number, known: number): End {
  const { records, strays } = scan;
  for (let i = from, lines = 0; i < end.kept; i++) {
    const { after, offset, line } = strays[i]!;
    if (i > from && strays[i - 1]!.after !== after) lines = 0;
    const before = after === 0 ? start : records[after - 1]!.seq;
    // One line can break into several pieces, so at most as many count as there are free numbers before the next
    // record.
    const free = after < end.keep ? records[after]!.seq - before - 1 : Number.POSITIVE_INFINITY;
    if (free > 0 && before + Math.min(lines + 1, free) > known) return { keep: after, kept: i, cut: offset };
    if (line) lines++;
  }
  return end;
}

/** The last seq in use: by a whole record, or by a damaged line after it that stays in place (S3). */
function lastSeq(scan: Scan, { keep, kept }: End, start: number): number {
  let lines = 0;
  for (let i = kept - 1; i >= 0 && scan.strays[i]!.after === keep; i--) if (scan.strays[i]!.line) lines++;
  return (keep === 0 ? start : scan.records[keep - 1]!.seq) + lines;
}

/** How many of these records count, if nothing follows the one with the number `last`: no unit without its end. */
export function finishedUpTo(records: readonly JournalRecord[], last: number): number {
  let keep = records.length;
  // Where a unit without its end begins inside another one, that has lost its end with it.
  for (let unit = unfinishedUnit(records, keep, last); unit !== -1; ) {
    keep = unit;
    unit = keep === 0 ? -1 : unfinishedUnit(records, keep, records[keep - 1]!.seq);
  }
  return keep;
}

/** The index of the first record of a unit whose end is missing, or -1. */
function unfinishedUnit(records: readonly JournalRecord[], keep: number, last: number): number {
  for (let i = keep - 1; i >= 0; i--) {
    const { unit, seq } = records[i]!;
    if (unit !== undefined) return unit > 1 && seq + unit - 1 > last ? i : -1;
  }
  return -1;
}

interface Accounts {
  readonly damaged: (Stray & { seq?: number })[];
  readonly missing: { from: number; to: number }[];
}

/** Which seqs the damage cost, where that is known, and which left no trace. */
function account(scan: Scan, keep: number, kept: number, start: number, limit: number): Accounts {
  const damaged: (Stray & { seq?: number })[] = [];
  const missing: { from: number; to: number }[] = [];
  let stray = 0;
  let previous = start;
  for (let i = 0; i <= keep; i++) {
    // The usual case: the next number, with nothing before it.
    if (i < keep && scan.records[i]!.seq === previous + 1 && !(stray < kept && scan.strays[stray]!.after === i)) {
      previous += 1;
      continue;
    }
    const here: Stray[] = [];
    while (stray < kept && scan.strays[stray]!.after === i) here.push(scan.strays[stray++]!);
    const lines = here.filter((found) => found.line).length;
    // The next segment accounts for what is missing after the last record.
    const gap = i < keep ? scan.records[i]!.seq - previous - 1 : Number.isFinite(limit) ? limit - previous : lines;
    let seq = previous;
    for (const found of here) damaged.push(found.line && gap === lines ? { ...found, seq: ++seq } : found);
    if (i < keep && gap > lines) missing.push({ from: previous + lines + 1, to: previous + gap });
    if (i < keep) previous = scan.records[i]!.seq;
  }
  return { damaged, missing };
}

function durableEnd(scan: Scan, keep: number, durable: number, cut: number | null): number {
  const next = indexFrom(scan.records, durable + 1);
  return next < keep ? scan.offsets[next]! : (cut ?? scan.end);
}
