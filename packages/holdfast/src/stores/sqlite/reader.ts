import { setImmediate as breathe } from "node:timers/promises";
import type { Damage, Recovery } from "../../journal/contract.ts";
import { decodeLine, isForeign } from "../../journal/decode.ts";
import { assertFormat } from "../../journal/lifecycle.ts";
import type { JournalRecord } from "../../journal/record.ts";
import type { Database } from "./database.ts";
import { isCorrupt } from "./failure.ts";
import type { Chunk, Line, Rows, Segment, SessionRow } from "./rows.ts";

/** What is to be read: the lines of a session from `from` to `to`, as they were at one instant. Lines never change, so it stays true. */
export interface Extent {
  readonly key: number;
  readonly from: number;
  readonly to: number;
}

/** A session, its segments in order, and the last seq that is taken. */
export interface Found {
  readonly session: SessionRow;
  readonly segments: readonly Segment[];
  readonly last: number;
}

export function findJournal(rows: Rows, id: string): Found | null {
  const session = rows.findSession(id);
  if (!session) return null;
  const segments = rows.readSegments(session.key);
  if (segments.length === 0) segments.push({ number: 1, epoch: 1, first: 1 });
  return { session, segments, last: Math.max(session.head, newestSeq(rows, session.key)) };
}

/** Where the page with the newest lines is damaged, the catalogue still knows how many there were. */
function newestSeq(rows: Rows, key: number): number {
  try {
    return rows.newestSeq(key);
  } catch (error) {
    if (isCorrupt(error)) return 0;
    throw error;
  }
}

/** The record of a line whose checksum, and whose seq, are right; null for any other. */
export function recordOf(line: Line): JournalRecord | null {
  const record = decodeLine(line.bytes, 0, line.bytes.length);
  return record?.seq === line.seq ? record : null;
}

/** The lines of an extent, some at a time. No snapshot is held between, so nobody has to wait for a reader (P6). */
export async function* readChunks(database: Database, rows: Rows, extent: Extent): AsyncGenerator<readonly Line[]> {
  const { key, to } = extent;
  for (let from = extent.from; from <= to; ) {
    const chunk = await database.retry("read the journal", () => readSome(rows, key, from, to));
    yield chunk.lines;
    const last = chunk.lines.at(-1);
    if (chunk.end || !last) return;
    from = last.seq + 1;
    await breathe();
  }
}

/** A damaged page of the database costs the lines that lie on it: what is left is read one by one (P9). */
function readSome(rows: Rows, key: number, from: number, to: number): Chunk {
  try {
    return rows.readLines(key, from, to);
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    const last = Math.min(to, from + SALVAGE_ROWS - 1);
    const lines: Line[] = [];
    for (let seq = from; seq <= last; seq++) lines.push({ seq, bytes: salvage(rows, key, seq) });
    return { lines, end: last === to };
  }
}

const SALVAGE_ROWS = 64;

/** The line, or no bytes at all: which seqs a damaged page held cannot be told from those that it never held. */
function salvage(rows: Rows, key: number, seq: number): Buffer {
  try {
    return rows.readLine(key, seq) ?? Buffer.alloc(0);
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    return Buffer.alloc(0);
  }
}

/**
 * What the lines of a journal mean. A commit is there as a whole or not at all, so nothing here is ever torn (S6, S7): a line that is not whole was
 * durable once and is damaged, whatever the marks say; it stays in place, its row tells its seq, and it costs that record alone.
 *
 * A place is told as in a file: `segment` is the number of the segment, `offset` the byte that the line would begin at if the segment were
 * written out, a newline after each line.
 */
export class Account {
  readonly records: JournalRecord[] = [];
  readonly damaged: Damage[] = [];
  readonly missing: { from: number; to: number }[] = [];
  /** How many whole records there were; `records` holds them only if they are to be kept. */
  count = 0;
  bytes = 0;
  /** As the newest header names it; null if that is damaged. */
  format: unknown = null;
  readonly #segments: readonly Segment[];
  readonly #keep: boolean;
  #segment = 0;
  #offset = 0;
  #next: number;
  /** Where the last unit that began says that it ends. */
  #unitEnd = 0;
  #last: JournalRecord | null = null;

  /** `segments` begin with the one that the first line is of. */
  constructor(segments: readonly Segment[], options: { readonly keep: boolean }) {
    this.#segments = segments;
    this.#keep = options.keep;
    this.#next = segments[0]?.first ?? 1;
  }

  /** The seq of the next record. */
  get next(): number {
    return this.#next;
  }

  /** Throws FORMAT_NEWER, JOURNAL_UNREADABLE at a header that says so. */
  add(lines: readonly Line[]): void {
    for (const line of lines) this.#add(line);
  }

  /** There are no more lines; records up to `head` are known to have been there. */
  end(head: number): void {
    this.#skipTo(Math.max(head, this.#unitEnd) + 1);
  }

  recovery(): Recovery {
    const unclean = this.#last?.kind !== "closed" || this.#last.seq !== this.#next - 1;
    return { unclean, cutBytes: 0, damaged: this.damaged, missing: this.missing };
  }

  #add(line: Line): void {
    this.#skipTo(line.seq);
    this.#next = line.seq + 1;
    while ((this.#segments[this.#segment + 1]?.first ?? Number.POSITIVE_INFINITY) <= line.seq) {
      this.#segment++;
      this.#offset = 0;
    }
    const bytes = line.bytes.length + 1;
    const record = recordOf(line);
    if (line.seq === this.#segments[this.#segment]?.first) {
      if (record) assertFormat(record);
      this.format = record?.["format"] ?? null;
    }
    if (record) {
      this.count++;
      if (this.#keep) this.records.push(record);
      if (record.unit !== undefined) this.#unitEnd = record.seq + record.unit - 1;
      this.#last = record;
    } else {
      this.damaged.push({
        segment: segmentName(this.#segments[this.#segment]?.number ?? 1),
        offset: this.#offset,
        bytes,
        seq: line.seq,
        why: isForeign(line.bytes, 0, line.bytes.length) ? "foreign" : "corrupt",
      });
    }
    this.#offset += bytes;
    this.bytes += bytes;
  }

  #skipTo(seq: number): void {
    if (seq <= this.#next) return;
    this.missing.push({ from: this.#next, to: seq - 1 });
    this.#next = seq;
  }
}

function segmentName(number: number): string {
  return String(number).padStart(6, "0");
}
