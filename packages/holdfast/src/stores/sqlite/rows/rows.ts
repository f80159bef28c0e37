import { createHash } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { HoldfastError } from "../../../errors.ts";
import type { Line, Segment } from "../../../journal/lines/account.ts";
import { decodeLine } from "../../../journal/lines/decode.ts";
import { type Json, RECORD_BYTES_MAX } from "../../../journal/record.ts";
import { asFarAsPossible, corrupt } from "../database/failure.ts";
import { differs, type Newest, type SessionRow, sessionOf, type TableRow, toTableRow } from "./session-row.ts";

/** The lower half of a key of `lines`: a journal holds fewer records than this. */
export const SEQ_MAX = 0xffff_ffff;
/** The upper half, which is signed. */
export const KEY_MAX = 0x7fff_ffff;
/** The limits of one read from the database; the first one reached ends it. */
const CHUNK_BYTES = 1024 * 1024;
const CHUNK_ROWS = 512;
/** Rows are small; a larger one is not ours, or is damaged. */
const SUMMARY_BYTES_MAX = 1024 * 1024;
/** How many misplaced rows are skipped. */
const STRAYS = 8;
/** Lines with a larger gap below them are suspect: a flipped bit in a place can move a line by a billion seqs. */
const GAP_MAX = 1024;
/** At most this many lines fit on a page. */
const NEIGHBOURS = 48;
const PAGE_BYTES = 4096;

/** Lines with consecutive places; `end` if there are currently no more. */
export interface Chunk {
  readonly lines: readonly Line[];
  readonly end: boolean;
}

/** What an index says about a session: none of this was read from the table. */
export interface IndexEntry {
  readonly key: number;
  readonly id: string | null;
  readonly at: string | null;
}

/** The lines around a place: how many were read, and their digest. */
export interface Neighbours {
  readonly preceding: number;
  readonly following: number;
  readonly digest: string;
}

/**
 * The columns of `sessions`, each only if it has the type that was written: STRICT tables check writes, not reads, and
 * a flipped bit can turn a text into a number, or into a number that JavaScript cannot represent.
 */
const guarded = (s: string): string => `
  ${keyOf(s)} AS key, ${textOf(`${s}.id`, 36)} AS id, ${textOf(`${s}.at`, 64)} AS at, ${textOf(`${s}.written`, 64)} AS written,
  CASE WHEN typeof(${s}.head) = 'integer' AND ${s}.head BETWEEN 0 AND ${SEQ_MAX} THEN ${s}.head END AS head,
  ${s}.closed IS 1 AS closed, ${textOf(`${s}.summary`, SUMMARY_BYTES_MAX)} AS summary, ${s}.trashed IS NOT NULL AS trashed`;

function keyOf(s: string): string {
  return `CASE WHEN ${s}.key BETWEEN 1 AND ${KEY_MAX} THEN ${s}.key ELSE 0 END`;
}

function textOf(column: string, bytesMax: number): string {
  return `CASE WHEN typeof(${column}) = 'text' AND octet_length(${column}) <= ${bytesMax} THEN ${column} END`;
}

const LINE = `CASE WHEN typeof(line) = 'blob' AND octet_length(line) < ${RECORD_BYTES_MAX} THEN line END AS line`;
const NUMBER = (column: string): string =>
  `CASE WHEN typeof(${column}) = 'integer' AND ${column} BETWEEN 1 AND ${SEQ_MAX} THEN ${column} ELSE 0 END AS ${column}`;

const COLUMNS = guarded("s");
// SQLite reads indexed columns from the index, not the table, so these show what the index alone says.
const BY_ID = "FROM sessions AS i INDEXED BY sessions_by_id WHERE i.trashed IS NULL";
const BY_TIME = "FROM sessions AS i INDEXED BY sessions_by_time WHERE i.trashed IS NULL";
const TABLE = "FROM sessions AS s NOT INDEXED";
const AGREES = "i.id IS s.id AND i.at IS s.at AND s.trashed IS NULL";
const BOTH = "FROM sessions AS i INDEXED BY sessions_by_time LEFT JOIN sessions AS s NOT INDEXED ON s.key = i.key";
// No upper bound, so that a damaged place does not end it; but no bytes of other sessions are read.
const ANYWAY = `SELECT place >> 32, place & ${SEQ_MAX}, CASE WHEN place >> 32 = ?1 THEN (SELECT ${LINE}) END FROM lines`;
// Only the start of a long line is on the same page as its neighbours.
const GLANCE = `SELECT place >> 32, place & ${SEQ_MAX}, octet_length(line), substr(line, 1, ${PAGE_BYTES}) FROM lines`;

// Node binds every number as a float: `|` keeps a place an integer, `+` would round it above 2^53.
const STATEMENTS = {
  insertLine: "INSERT INTO lines (place, line) VALUES ((?1 << 32) | ?2, ?3)",
  readLines: `SELECT place & ${SEQ_MAX}, ${LINE} FROM lines WHERE place BETWEEN (?1 << 32) | ?2 AND (?1 << 32) | ?3 ORDER BY place`,
  readLine: `SELECT ${LINE} FROM lines WHERE place = (?1 << 32) | ?2`,
  newestSeq: `SELECT place & ${SEQ_MAX} AS seq FROM lines WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + ${SEQ_MAX} ORDER BY place DESC LIMIT 1`,
  seqsAfter: `SELECT place & ${SEQ_MAX} AS seq FROM lines WHERE place BETWEEN ((?1 << 32) | ?2) + 1 AND (?1 << 32) + ${SEQ_MAX} ORDER BY place`,
  seqBelow: `SELECT place & ${SEQ_MAX} AS seq FROM lines WHERE place BETWEEN ?1 << 32 AND ((?1 << 32) | ?2) - 1 ORDER BY place DESC LIMIT 1`,
  keyOf: `SELECT ${keyOf("i")} AS key ${BY_ID} AND i.id = ?`,
  tableRow: `SELECT ${COLUMNS} ${TABLE} WHERE s.key = ?`,
  isTimed: `SELECT 1 ${BY_TIME} AND i.at = ?2 AND i.id = ?3 AND i.key = ?1`,
  isOpen: "SELECT 1 FROM sessions AS i INDEXED BY sessions_open WHERE i.closed = 0 AND i.trashed IS NULL AND i.key = ?",
  tableRows: `SELECT ${COLUMNS} ${TABLE} WHERE ?1 IS NULL OR s.id = ?1`,
  entriesById: `SELECT ${keyOf("i")} AS key, ${textOf("i.id", 36)} AS id, NULL AS at ${BY_ID} AND (?1 IS NULL OR i.id = ?1)`,
  entriesByTime: `SELECT ${keyOf("i")} AS key, ${textOf("i.id", 36)} AS id, ${textOf("i.at", 64)} AS at ${BY_TIME} AND (?1 IS NULL OR i.id = ?1)`,
  counts: `SELECT (SELECT count(*) ${TABLE} WHERE s.trashed IS NULL) AS rows, (SELECT count(*) ${BY_ID}) AS ids, (SELECT count(*) ${BY_TIME}) AS times`,
  disagreement: `SELECT 1 ${BOTH} WHERE i.trashed IS NULL AND (${AGREES}) IS NOT 1 LIMIT 1`,
  onwards: `${ANYWAY} WHERE place >= (?1 << 32) | ?2 ORDER BY place LIMIT ?3`,
  backwards: `${ANYWAY} WHERE place <= (?1 << 32) | ?2 ORDER BY place DESC LIMIT ?3`,
  before: `${GLANCE} WHERE place < (?1 << 32) | ?2 ORDER BY place DESC LIMIT ?3`,
  after: `${GLANCE} WHERE place > (?1 << 32) | ?2 ORDER BY place LIMIT ?3`,
  structure: "PRAGMA main.quick_check(1)",
  insertTrashed: "INSERT INTO sessions (id, at, head, closed, summary, trashed) VALUES (?, '', 0, 0, 'null', ?)",
  untrash: "UPDATE sessions SET trashed = NULL WHERE key = ?",
  countLines: `SELECT count(*) AS lines FROM lines WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + ${SEQ_MAX}`,
  reopenSession: "UPDATE sessions SET closed = 0 WHERE key = ?",
  unsettled:
    `SELECT ${COLUMNS} FROM sessions AS s INDEXED BY sessions_open WHERE s.closed = 0 AND s.trashed IS NULL AND EXISTS ` +
    `(SELECT 1 FROM lines WHERE place BETWEEN (s.key << 32) + s.head + 1 AND (s.key << 32) + ${SEQ_MAX})`,
  open: `SELECT ${COLUMNS} FROM sessions AS s INDEXED BY sessions_open WHERE s.closed = 0 AND s.trashed IS NULL`,
  listed:
    `SELECT ${COLUMNS}, ${keyOf("i")} AS indexed, ${AGREES} AS agrees ${BOTH} ` +
    "WHERE i.trashed IS NULL AND (i.at, i.id) < (?1, ?2) ORDER BY i.at DESC, i.id DESC",
  // The journal determines the numbers of its segments; a row in the way is damaged.
  insertSegment: "INSERT OR REPLACE INTO segments (session, number, epoch, first) VALUES (?, ?, ?, ?)",
  readSegments: `SELECT ${NUMBER("number")}, ${NUMBER("epoch")}, ${NUMBER("first")} FROM segments WHERE session = ? ORDER BY segments.number`,
  newestStamp: `SELECT ${textOf("i.at", 64)} AS newest ${BY_TIME} ORDER BY i.at DESC LIMIT 1`,
  trash: "UPDATE sessions SET trashed = ?2 WHERE key = ?1",
  trashed: `SELECT ${keyOf("s")} AS key, ${textOf("s.id", 36)} AS id ${TABLE} WHERE s.trashed <= ? ORDER BY s.key`,
  // Without a head, it is being copied in or being removed.
  restorable:
    `SELECT ${COLUMNS}, CASE WHEN typeof(s.trashed) = 'integer' THEN s.trashed END AS since ${TABLE} ` +
    "WHERE s.trashed IS NOT NULL AND s.head > 0 AND (?1 IS NULL OR s.id = ?1) ORDER BY s.trashed DESC, s.key DESC",
  claimTrashed: "UPDATE sessions SET head = 0 WHERE key = ? AND trashed IS NOT NULL",
  removeLines:
    "DELETE FROM lines WHERE place IN " +
    `(SELECT place FROM lines WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + ${SEQ_MAX} LIMIT ?2)`,
  removeSegments: "DELETE FROM segments WHERE session = ?",
  removeSession: "DELETE FROM sessions WHERE key = ?",
  insertSession: "INSERT INTO sessions (id, at, written, head, closed, summary) VALUES (?, ?, ?, ?, 0, ?)",
  updateSession: "UPDATE sessions SET at = ?2, written = ?3, head = ?4, closed = ?5, summary = ?6 WHERE key = ?1",
};
type Statements = Record<keyof typeof STATEMENTS, StatementSync>;

/** Every statement of the store, prepared once. Each call is one statement; the caller manages transactions. */
export class Rows {
  readonly #do: Statements;

  constructor(sqlite: DatabaseSync) {
    const prepared = Object.entries(STATEMENTS).map(([name, sql]) => [name, sqlite.prepare(sql)]);
    this.#do = Object.fromEntries(prepared) as Statements;
    const { readLines, before, after, onwards, backwards } = this.#do;
    for (const statement of [readLines, before, after, onwards, backwards]) statement.setReturnArrays(true);
  }

  insertLine(key: number, seq: number, line: Uint8Array): void {
    if (seq > SEQ_MAX) throw tooMany(key);
    this.#do.insertLine.run(key, seq, line);
  }

  /**
   * Some of the lines from seq `from` to seq `to`. Throws a corruption error if rows are out of order: the page is
   * damaged.
   */
  readLines(key: number, from: number, to: number = SEQ_MAX): Chunk {
    const lines: Line[] = [];
    let bytes = 0;
    let last = from - 1;
    for (const row of walk(this.#do.readLines, key, from, to)) {
      const [seq, line] = row as unknown as [number, Uint8Array | null];
      if (seq <= last) throw corrupt("rows are out of order");
      last = seq;
      const found = bytesOf(line);
      lines.push({ seq, bytes: found });
      bytes += found.length;
      if (lines.length >= CHUNK_ROWS || bytes >= CHUNK_BYTES) return { lines, end: false };
    }
    return { lines, end: true };
  }

  /**
   * The lines of a few seqs, in whatever order their rows are stored, forwards from the first and backwards from the
   * last: a damaged place hides the lines after it from any ordered search. `isLinked`: it is stored next to the line
   * before or after it. Consume inside one call.
   */
  *linesAround(key: number, from: number, to: number): Generator<Line & { readonly isLinked: boolean }> {
    const limit = to - from + 1 + STRAYS;
    for (const [statement, start, step] of [
      [this.#do.onwards, from, 1],
      [this.#do.backwards, to, -1],
    ] as const) {
      const rows: Placed[] = [];
      asFarAsPossible(walk(statement, key, start, limit), (row) => rows.push(row as unknown as Placed));
      const isAt = (i: number, seq: number): boolean => rows[i]?.[0] === key && rows[i][1] === seq;
      for (const [i, [of, seq, line]] of rows.entries()) {
        if (of !== key || seq < from || seq > to) continue;
        yield { seq, bytes: bytesOf(line), isLinked: isAt(i - 1, seq - step) || isAt(i + 1, seq + step) };
      }
    }
  }

  /**
   * The lines around some others, on the same database page and adjacent ones, up to a page that cannot be read: to be
   * compared before and after a write. With `before`, exactly the same lines are read again: SQLite does not write in a
   * transaction that has met a damaged page.
   */
  neighbours(key: number, first: number, last: number, before?: Neighbours): Neighbours {
    const hash = createHash("sha256");
    const read = (statement: StatementSync, seq: number, limit: number): number => {
      let count = 0;
      asFarAsPossible(walk(statement, key, seq, limit), (row) => {
        const [of, at, length, line] = row as unknown as [number, number, number | null, Uint8Array | string | null];
        hash.update(`${of} ${at} ${length} `).update(line ?? "");
        count++;
      });
      return count;
    };
    const preceding = read(this.#do.before, first, before?.preceding ?? NEIGHBOURS);
    const following = read(this.#do.after, last, before?.following ?? NEIGHBOURS);
    return { preceding, following, digest: hash.digest("hex") };
  }

  /** Is every page of the database well-formed? Checks all of them. */
  isWhole(): boolean {
    return this.#do.structure.get()?.["quick_check"] === "ok";
  }

  /** Null if there is none. Empty if it is not a line. */
  readLine(key: number, seq: number): Buffer | null {
    const row = this.#do.readLine.get(key, seq);
    return row ? bytesOf(row["line"] as Uint8Array | null) : null;
  }

  /**
   * The highest seq that has a line; 0 if there is none. Searched from the end, and then forwards from there: a damaged
   * page above the lines can mislead one search, not both.
   */
  newestSeq(key: number): number {
    let newest = this.#ownSeq(key, (this.#do.newestSeq.get(key)?.["seq"] as number | undefined) ?? 0);
    for (const row of walk(this.#do.seqsAfter, key, newest))
      newest = Math.max(newest, this.#ownSeq(key, row["seq"] as number));
    return newest;
  }

  /** The seq of the line that is stored at this one: the one that it gives itself if its place cannot be right. */
  #ownSeq(key: number, seq: number): number {
    const below = (this.#do.seqBelow.get(key, seq)?.["seq"] as number | undefined) ?? 0;
    if (seq - below <= GAP_MAX) return seq;
    const line = this.readLine(key, seq);
    return (line && decodeLine(line, 0, line.length)?.seq) ?? below;
  }

  /**
   * The key of a session that is not in the trash, according to the index; null if it has none, 0 if it has an
   * impossible one.
   */
  keyOf(id: string): number | null {
    return (this.#do.keyOf.get(id)?.["key"] as number | undefined) ?? null;
  }

  tableRow(key: number): TableRow | null {
    const row = this.#do.tableRow.get(key);
    return row ? toTableRow(row) : null;
  }

  /** Does the index by time contain the session with exactly these values? */
  isTimed(key: number, at: string, id: string): boolean {
    return this.#do.isTimed.get(key, at, id) !== undefined;
  }

  isOpen(key: number): boolean {
    return this.#do.isOpen.get(key) !== undefined;
  }

  /**
   * The rows of the table, or those with this id, in the trash or not: a walk through all of them. Consume inside one
   * call, like the following generators.
   */
  *tableRows(id: string | null): Generator<TableRow> {
    for (const row of walk(this.#do.tableRows, id)) yield toTableRow(row);
  }
  *entriesById(id: string | null): Generator<IndexEntry> {
    for (const row of walk(this.#do.entriesById, id)) yield { ...row } as unknown as IndexEntry;
  }
  *entriesByTime(id: string | null): Generator<IndexEntry> {
    for (const row of walk(this.#do.entriesByTime, id)) yield { ...row } as unknown as IndexEntry;
  }

  /** Do the table and its indexes contain the same sessions? Checks all of them. */
  isSound(): boolean {
    const { rows, ids, times } = this.#do.counts.get()!;
    return rows === ids && rows === times && this.#do.disagreement.get() === undefined;
  }

  insertSession(id: string, { at, stamp, head }: Newest, summary: Json): number {
    const { lastInsertRowid } = this.#do.insertSession.run(
      id,
      stamp,
      differs(at, stamp),
      head,
      JSON.stringify(summary),
    );
    return checkedKey(lastInsertRowid);
  }

  /** Inserts a session that nobody sees. */
  insertTrashed(id: string, nowMs: number): number {
    return checkedKey(this.#do.insertTrashed.run(id, nowMs).lastInsertRowid);
  }

  untrash(key: number): void {
    this.#do.untrash.run(key);
  }

  countLines(key: number): number {
    return Number(this.#do.countLines.get(key)?.["lines"]);
  }

  updateSession(key: number, { at, stamp, head }: Newest, closed: boolean, summary: Json): void {
    this.#do.updateSession.run(key, stamp, differs(at, stamp), head, closed ? 1 : 0, JSON.stringify(summary));
  }

  /** A writer has started: from now on the row may be older than the journal. */
  reopenSession(key: number): void {
    this.#do.reopenSession.run(key);
  }

  /** The sessions whose rows are older than their newest lines. */
  unsettled(): TableRow[] {
    return this.#do.unsettled.all().map(toTableRow);
  }

  /** The sessions that no writer has closed, including those above. Reads no lines. */
  open(): TableRow[] {
    return this.#do.open.all().map(toTableRow);
  }

  /**
   * Newest first, after this place, according to the index; null for a session where the table disagrees. Consume or
   * abandon inside one call.
   */
  *listed(stamp: string, id: string): Generator<SessionRow | null> {
    for (const row of walk(this.#do.listed, stamp, id))
      yield row["agrees"] === 1 && row["key"] === row["indexed"] ? sessionOf(toTableRow(row)) : null;
  }

  /** Undefined if there are no sessions. */
  newestStamp(): string | undefined {
    return (this.#do.newestStamp.get()?.["newest"] as string | null | undefined) ?? undefined;
  }

  insertSegment(key: number, segment: Segment): void {
    this.#do.insertSegment.run(key, segment.number, segment.epoch, segment.first);
  }

  /** All segments, in order. An impossible number is 0. */
  readSegments(key: number): Segment[] {
    return this.#do.readSegments.all(key) as unknown as Segment[];
  }

  trash(key: number, nowMs: number): void {
    this.#do.trash.run(key, nowMs);
  }

  trashed(untilMs: number): { readonly key: number; readonly id: string | null }[] {
    return this.#do.trashed.all(untilMs) as { key: number; id: string | null }[];
  }

  /** The sessions in the trash that can be restored, or those with this id; the last one deleted first. */
  restorable(id: string | null = null): (SessionRow & { readonly trashedMs: number })[] {
    return this.#do.restorable.all(id).flatMap((row) => {
      const session = sessionOf(toTableRow(row));
      return session ? [{ ...session, trashedMs: Number(row["since"] ?? 0) }] : [];
    });
  }

  /** From now on it cannot be restored. False if it is not in the trash any more. */
  claimTrashed(key: number): boolean {
    return this.#do.claimTrashed.run(key).changes === 1;
  }

  /** Removes up to `count` lines; returns how many. */
  removeLines(key: number, count: number): number {
    return Number(this.#do.removeLines.run(key, count).changes);
  }

  removeSession(key: number): void {
    this.#do.removeSegments.run(key);
    this.#do.removeSession.run(key);
  }
}

/** The rows of a statement. */
function* walk(statement: StatementSync, ...values: (string | number | null)[]): Generator<Record<string, unknown>> {
  try {
    yield* statement.iterate(...values);
  } catch (error) {
    // Node leaves the statement unfinished, which blocks others; using it once more ends that, and reports the error
    // again.
    try {
      statement.iterate(...values);
    } catch {
      throw error;
    }
    throw error;
  }
}

/** The upper and lower half of a place, and its content. */
type Placed = [key: number, seq: number, line: Uint8Array | null];

function bytesOf(line: Uint8Array | null): Buffer {
  return line ? Buffer.from(line.buffer, line.byteOffset, line.byteLength) : Buffer.alloc(0);
}

/** SQLite counts the keys in an internal table, which can be damaged, too. */
function checkedKey(key: number | bigint): number {
  if (key > 0 && key <= KEY_MAX) return Number(key);
  const message =
    "The session was not created: the database file has no number left for it, or its counter is damaged. Nothing was written. " +
    "Copy the sessions to a new store.";
  throw new HoldfastError("JOURNAL_UNREADABLE", message, { key: String(key) });
}

/** The next number would belong to another session. */
function tooMany(key: number): HoldfastError {
  const message = `The record was not written: a journal in an SQLite store holds at most ${SEQ_MAX} records. Nothing before it is affected. Continue in a new session.`;
  return new HoldfastError("STORE_FULL", message, { key, limit: SEQ_MAX });
}
