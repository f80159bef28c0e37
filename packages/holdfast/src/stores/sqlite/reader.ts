import { setImmediate as breathe } from "node:timers/promises";
import type { Line, Segment } from "../../journal/account.ts";
import type { Reads } from "./database.ts";
import { isCorrupt } from "./failure.ts";
import type { Chunk, Rows, SessionRow } from "./rows.ts";

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

/** The lines of an extent, some at a time. No snapshot is held between, so nobody has to wait for a reader (P6). */
export async function* readChunks(database: Reads, extent: Extent): AsyncGenerator<readonly Line[]> {
  const { key, to } = extent;
  for (let from = extent.from; from <= to; ) {
    const chunk = await database.read("read the journal", (rows) => readSome(rows, key, from, to));
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
