import type { DatabaseSync, StatementSync } from "node:sqlite";
import { HoldfastError } from "../../../errors.ts";
import { type Line, recordOf, type Segment } from "../../../journal/lines/account.ts";
import { decodeLine } from "../../../journal/lines/decode.ts";
import { type Json, RECORD_BYTES_MAX } from "../../../journal/record.ts";
import { orNull } from "../database/failure.ts";
import { differs, type Newest, type SessionRow, toSessionRow } from "./session-row.ts";

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
/** A last line with a larger gap below it is suspect: a flipped bit in a place can move a line by a billion seqs. */
const GAP_MAX = 1024;

/** Lines in order; `end` if there are currently no more. */
export interface Chunk {
  readonly lines: readonly Line[];
  readonly end: boolean;
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
const IN_TABLE = `NOT EXISTS (SELECT 1 ${TABLE} WHERE s.key = i.key AND s.trashed IS NULL`;
const OPEN = "FROM sessions AS i INDEXED BY sessions_open WHERE i.closed = 0 AND i.trashed IS NULL";
// Node binds every number as a float: `|` keeps a place an integer, `+` would round it above 2^53.
const STATEMENTS = {
  insertLine: "INSERT INTO lines (place, line) VALUES ((?1 << 32) | ?2, ?3)",
  // No upper bound, so that a misplaced line does not end it; but no bytes of other sessions are read.
  readLines: `SELECT place >> 32, place & ${SEQ_MAX}, CASE WHEN place >> 32 = ?1 THEN (SELECT ${LINE}) END FROM lines WHERE place >= (?1 << 32) | ?2 ORDER BY place`,
  readLine: `SELECT ${LINE} FROM lines WHERE place = (?1 << 32) | ?2`,
  newestSeqs: `SELECT place & ${SEQ_MAX} AS seq FROM lines WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + ${SEQ_MAX} ORDER BY place DESC LIMIT 2`,
  keyOf: `SELECT ${keyOf("i")} AS key ${BY_ID} AND i.id = ?`,
  session: `SELECT ${COLUMNS} ${TABLE} WHERE s.key = ?`,
  sessions: `SELECT ${COLUMNS} ${TABLE}`,
  indexedKeys: `SELECT i.key AS key ${BY_ID} INTERSECT SELECT i.key ${BY_TIME}`,
  counts:
    `SELECT (SELECT count(*) ${TABLE} WHERE s.trashed IS NULL) AS rows, (SELECT count(*) ${BY_ID}) AS ids, (SELECT count(*) ${BY_TIME}) AS times, ` +
    `(SELECT count(*) ${TABLE} WHERE s.trashed IS NULL AND s.closed = 0) AS open, (SELECT count(*) ${OPEN}) AS opens`,
  misnamed: `SELECT 1 ${BY_ID} AND ${IN_TABLE} AND s.id IS i.id) LIMIT 1`,
  mistimed: `SELECT 1 ${BY_TIME} AND ${IN_TABLE} AND s.id IS i.id AND s.at IS i.at) LIMIT 1`,
  integrity: "PRAGMA main.integrity_check(1)",
  insertTrashed: "INSERT INTO sessions (id, at, head, closed, summary, trashed) VALUES (?, '', 0, 0, 'null', ?)",
  untrash: "UPDATE sessions SET trashed = NULL WHERE key = ?",
  reopenSession: "UPDATE sessions SET closed = 0 WHERE key = ?",
  open: `SELECT ${COLUMNS} FROM sessions AS s INDEXED BY sessions_open WHERE s.closed = 0 AND s.trashed IS NULL`,
  listed: `SELECT ${COLUMNS} FROM sessions AS s INDEXED BY sessions_by_time WHERE s.trashed IS NULL AND (s.at, s.id) < (?1, ?2) ORDER BY s.at DESC, s.id DESC`,
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
  #isSound: boolean | undefined;
  #isWhole: boolean | undefined;

  constructor(sqlite: DatabaseSync) {
    const prepared = Object.entries(STATEMENTS).map(([name, sql]) => [name, sqlite.prepare(sql)]);
    this.#do = Object.fromEntries(prepared) as Statements;
    this.#do.readLines.setReturnArrays(true);
  }

  insertLine(key: number, seq: number, line: Uint8Array): void {
    if (seq > SEQ_MAX) throw tooMany(key);
    this.#do.insertLine.run(key, seq, line);
  }

  /**
   * Some of the lines from seq `from` to seq `to`, without those that are misplaced. A damaged place can put a line
   * anywhere: after a gap, a line is in its place if it says so itself.
   */
  readLines(key: number, from: number, to: number = SEQ_MAX): Chunk {
    const lines: Line[] = [];
    let bytes = 0;
    let last = from - 1;
    let strays = 0;
    for (const row of walk(this.#do.readLines, key, from)) {
      const [of, seq, stored] = row as unknown as [number, number, Uint8Array | null];
      const line = { seq, bytes: bytesOf(stored) };
      if (of !== key || seq <= last || seq > to || (seq > last + 1 && recordOf(line) === null)) {
        if (++strays > STRAYS) break;
        continue;
      }
      last = seq;
      strays = 0;
      lines.push(line);
      bytes += line.bytes.length;
      if (seq === to) break;
      if (lines.length >= CHUNK_ROWS || bytes >= CHUNK_BYTES) return { lines, end: false };
    }
    return { lines, end: true };
  }

  /** Null if there is none. Empty if it is not a line. */
  readLine(key: number, seq: number): Buffer | null {
    const row = this.#do.readLine.get(key, seq);
    return row ? bytesOf(row["line"] as Uint8Array | null) : null;
  }

  /** The highest seq that has a line; 0 if there is none. The seq of a suspect line is the one that it gives itself. */
  newestSeq(key: number): number {
    const [newest = 0, below = 0] = this.#do.newestSeqs.all(key).map(({ seq }) => seq as number);
    if (newest - below <= GAP_MAX) return Math.max(newest, below);
    const bytes = this.readLine(key, newest);
    return (bytes && decodeLine(bytes, 0, bytes.length)?.seq) ?? below;
  }

  /**
   * The key of a session that is not in the trash, according to the index; null if it has none, 0 if it has an
   * impossible one.
   */
  keyOf(id: string): number | null {
    return (this.#do.keyOf.get(id)?.["key"] as number | undefined) ?? null;
  }

  session(key: number): SessionRow | null {
    const row = this.#do.session.get(key);
    return row ? toSessionRow(row) : null;
  }

  /** The rows of the table, in the trash or not. */
  sessions(): SessionRow[] {
    return this.#do.sessions.all().map(toSessionRow);
  }

  /** The sessions that are not in the trash, according to both indexes. */
  indexedKeys(): ReadonlySet<number> {
    return new Set(this.#do.indexedKeys.all().map(({ key }) => key as number));
  }

  /** Do the table and its indexes contain the same sessions? Checked once, in all of them. */
  get isSound(): boolean {
    const compare = (): boolean => {
      const { rows, ids, times, open, opens } = this.#do.counts.get()!;
      if (rows !== ids || rows !== times || open !== opens) return false;
      return this.#do.misnamed.get() === undefined && this.#do.mistimed.get() === undefined;
    };
    this.#isSound ??= orNull(compare) ?? false;
    return this.#isSound;
  }

  /** Is every page of the database well-formed, and every index right? Checked once: it reads the whole file. */
  get isWhole(): boolean {
    this.#isWhole ??= orNull(() => this.#do.integrity.get()?.["integrity_check"] === "ok") ?? false;
    return this.#isWhole;
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

  updateSession(key: number, { at, stamp, head }: Newest, closed: boolean, summary: Json): void {
    this.#do.updateSession.run(key, stamp, differs(at, stamp), head, closed ? 1 : 0, JSON.stringify(summary));
  }

  /** A writer has started: from now on the row may be older than the journal. */
  reopenSession(key: number): void {
    this.#do.reopenSession.run(key);
  }

  /** The sessions that no writer has closed. Reads no lines. */
  open(): SessionRow[] {
    return this.#do.open.all().map(toSessionRow);
  }

  /** Newest first, after this place. Consume or abandon inside one call. */
  *listed(stamp: string, id: string): Generator<SessionRow> {
    for (const row of walk(this.#do.listed, stamp, id)) yield toSessionRow(row);
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
    return this.#do.restorable
      .all(id)
      .filter(({ key, id }) => key !== 0 && id !== null)
      .map((row) => ({ ...toSessionRow(row), trashedMs: Number(row["since"] ?? 0) }));
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
