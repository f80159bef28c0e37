import type { StatementSync } from "node:sqlite";
import { HoldfastError } from "../../errors.ts";
import type { Line, Segment } from "../../journal/account.ts";
import type { Json } from "../../journal/record.ts";
import type { Database } from "./database.ts";

/** The lower half of a key of `lines`: a journal holds fewer records than this. */
const SEQ_MAX = 0xffff_ffff;
/** What is read from the database in one go, by whichever limit is met first. */
const CHUNK_BYTES = 1024 * 1024;
const CHUNK_ROWS = 512;

/** Lines with consecutive places; `end` if there are no more of them now. */
export interface Chunk {
  readonly lines: readonly Line[];
  readonly end: boolean;
}

/** A session as the catalogue has it. */
export interface SessionRow {
  readonly key: number;
  readonly id: string;
  readonly at: string;
  /** What lists are ordered by. */
  readonly stamp: string;
  readonly head: number;
  readonly closed: boolean;
  /** Undefined: somebody has spoiled it. */
  readonly summary: Json | undefined;
}

/** What a row says of the newest record. */
export type Newest = Pick<SessionRow, "at" | "stamp" | "head">;

/** Every statement of the store, prepared once. Each call is one statement: transactions are the caller's. */
export class Rows {
  readonly #insertLine: StatementSync;
  readonly #readLines: StatementSync;
  readonly #readLine: StatementSync;
  readonly #newestSeq: StatementSync;
  readonly #findSession: StatementSync;
  readonly #insertSession: StatementSync;
  readonly #insertTrashed: StatementSync;
  readonly #untrash: StatementSync;
  readonly #countLines: StatementSync;
  readonly #updateSession: StatementSync;
  readonly #reopenSession: StatementSync;
  readonly #unsettled: StatementSync;
  readonly #open: StatementSync;
  readonly #listed: StatementSync;
  readonly #newestStamp: StatementSync;
  readonly #insertSegment: StatementSync;
  readonly #readSegments: StatementSync;
  readonly #trash: StatementSync;
  readonly #trashed: StatementSync;
  readonly #removeLines: StatementSync;
  readonly #removeSegments: StatementSync;
  readonly #removeSession: StatementSync;

  constructor(database: Database) {
    const prepare = (sql: string): StatementSync => database.prepare(sql);
    this.#insertLine = prepare("INSERT INTO lines (place, line) VALUES ((?1 << 32) + ?2, ?3)");
    this.#readLines = prepare(
      `SELECT place & ${SEQ_MAX}, line FROM lines WHERE place BETWEEN (?1 << 32) + ?2 AND (?1 << 32) + ?3 ORDER BY place`,
    );
    this.#readLines.setReturnArrays(true);
    this.#readLine = prepare("SELECT line FROM lines WHERE place = (?1 << 32) + ?2");
    this.#newestSeq = prepare(
      `SELECT place & ${SEQ_MAX} AS seq FROM lines WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + ${SEQ_MAX} ORDER BY place DESC LIMIT 1`,
    );
    const columns = "key, id, at, written, head, closed, summary";
    this.#findSession = prepare(`SELECT ${columns} FROM sessions WHERE id = ? AND trashed IS NULL`);
    this.#insertSession = prepare(
      "INSERT INTO sessions (id, at, written, head, closed, summary) VALUES (?, ?, ?, ?, 0, ?)",
    );
    this.#insertTrashed = prepare(
      "INSERT INTO sessions (id, at, head, closed, summary, trashed) VALUES (?, '', 0, 0, 'null', ?)",
    );
    this.#untrash = prepare("UPDATE sessions SET trashed = NULL WHERE key = ?");
    this.#countLines = prepare(
      `SELECT count(*) AS lines FROM lines WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + ${SEQ_MAX}`,
    );
    this.#updateSession = prepare(
      "UPDATE sessions SET at = ?2, written = ?3, head = ?4, closed = ?5, summary = ?6 WHERE key = ?1",
    );
    this.#reopenSession = prepare("UPDATE sessions SET closed = 0 WHERE key = ?");
    this.#unsettled = prepare(
      `SELECT ${columns} FROM sessions AS s INDEXED BY sessions_open WHERE closed = 0 AND trashed IS NULL AND EXISTS ` +
        `(SELECT 1 FROM lines WHERE place BETWEEN (s.key << 32) + s.head + 1 AND (s.key << 32) + ${SEQ_MAX})`,
    );
    this.#open = prepare(`SELECT ${columns} FROM sessions WHERE closed = 0 AND trashed IS NULL`);
    this.#listed = prepare(
      `SELECT ${columns} FROM sessions WHERE trashed IS NULL AND (at, id) < (?1, ?2) ORDER BY at DESC, id DESC`,
    );
    this.#newestStamp = prepare("SELECT max(at) AS newest FROM sessions WHERE trashed IS NULL");
    this.#insertSegment = prepare("INSERT INTO segments (session, number, epoch, first) VALUES (?, ?, ?, ?)");
    this.#readSegments = prepare("SELECT number, epoch, first FROM segments WHERE session = ? ORDER BY number");
    this.#trash = prepare("UPDATE sessions SET trashed = ?2 WHERE key = ?1");
    this.#trashed = prepare("SELECT key, id, trashed FROM sessions WHERE trashed <= ? ORDER BY key");
    this.#removeLines = prepare(
      "DELETE FROM lines WHERE place IN " +
        `(SELECT place FROM lines WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + ${SEQ_MAX} LIMIT ?2)`,
    );
    this.#removeSegments = prepare("DELETE FROM segments WHERE session = ?");
    this.#removeSession = prepare("DELETE FROM sessions WHERE key = ?");
  }

  insertLine(key: number, seq: number, line: Uint8Array): void {
    if (seq > SEQ_MAX) throw tooMany(key);
    this.#insertLine.run(key, seq, line);
  }

  /** Some of the lines from seq `from` to seq `to`. */
  readLines(key: number, from: number, to: number = SEQ_MAX): Chunk {
    const lines: Line[] = [];
    let bytes = 0;
    for (const row of this.#readLines.iterate(key, from, to) as Iterable<unknown>) {
      const [seq, line] = row as [number, Uint8Array];
      lines.push({ seq, bytes: Buffer.from(line.buffer, line.byteOffset, line.byteLength) });
      bytes += line.byteLength;
      if (lines.length >= CHUNK_ROWS || bytes >= CHUNK_BYTES) return { lines, end: false };
    }
    return { lines, end: true };
  }

  readLine(key: number, seq: number): Buffer | null {
    const line = this.#readLine.get(key, seq)?.["line"] as Uint8Array | undefined;
    return line ? Buffer.from(line.buffer, line.byteOffset, line.byteLength) : null;
  }

  /** The highest seq that a line is there for; 0 if there is none. */
  newestSeq(key: number): number {
    return (this.#newestSeq.get(key)?.["seq"] as number | undefined) ?? 0;
  }

  findSession(id: string): SessionRow | null {
    const row = this.#findSession.get(id);
    return row ? toSession(row) : null;
  }

  insertSession(id: string, { at, stamp, head }: Newest, summary: Json): number {
    const { lastInsertRowid } = this.#insertSession.run(id, stamp, differs(at, stamp), head, JSON.stringify(summary));
    return Number(lastInsertRowid);
  }

  /** A session that nobody sees. */
  insertTrashed(id: string, nowMs: number): number {
    return Number(this.#insertTrashed.run(id, nowMs).lastInsertRowid);
  }

  untrash(key: number): void {
    this.#untrash.run(key);
  }

  countLines(key: number): number {
    return Number(this.#countLines.get(key)?.["lines"]);
  }

  updateSession(key: number, { at, stamp, head }: Newest, closed: boolean, summary: Json): void {
    this.#updateSession.run(key, stamp, differs(at, stamp), head, closed ? 1 : 0, JSON.stringify(summary));
  }

  /** A writer has begun: the row may be older than the journal from now on. */
  reopenSession(key: number): void {
    this.#reopenSession.run(key);
  }

  /** The sessions whose rows are older than their newest lines. */
  unsettled(): SessionRow[] {
    return this.#unsettled.all().map(toSession);
  }

  /** Those that no writer has closed: the ones above are among them. No line is looked at. */
  open(): SessionRow[] {
    return this.#open.all().map(toSession);
  }

  /** Newest first, from after this place on. To be read to its end, or left, inside one call. */
  *listed(stamp: string, id: string): Generator<SessionRow> {
    for (const row of this.#listed.iterate(stamp, id)) yield toSession(row);
  }

  /** Undefined if there is no session. */
  newestStamp(): string | undefined {
    return (this.#newestStamp.get()?.["newest"] as string | null) ?? undefined;
  }

  insertSegment(key: number, segment: Segment): void {
    this.#insertSegment.run(key, segment.number, segment.epoch, segment.first);
  }

  /** All of them, in order. */
  readSegments(key: number): Segment[] {
    return this.#readSegments.all(key) as unknown as Segment[];
  }

  trash(key: number, nowMs: number): void {
    this.#trash.run(key, nowMs);
  }

  trashed(untilMs: number): { readonly key: number; readonly id: string; readonly trashed: number }[] {
    return this.#trashed.all(untilMs) as { key: number; id: string; trashed: number }[];
  }

  /** Up to `count` of them; returns how many. */
  removeLines(key: number, count: number): number {
    return Number(this.#removeLines.run(key, count).changes);
  }

  removeSession(key: number): void {
    this.#removeSegments.run(key);
    this.#removeSession.run(key);
  }
}

function toSession(row: Record<string, unknown>): SessionRow {
  const { key, id, at, written, head, closed, summary } = row as {
    key: number;
    id: string;
    at: string;
    written: string | null;
    head: number;
    closed: number;
    summary: string;
  };
  return { key, id, at: written ?? at, stamp: at, head, closed: closed === 1, summary: parseSummary(summary) };
}

/** The time, where it is not the stamp. */
function differs(at: string, stamp: string): string | null {
  return at === stamp ? null : at;
}

/** The catalogue is derived: a row that somebody has spoiled is no summary, and no reason to fail. The lines tell. */
function parseSummary(text: string): Json | undefined {
  try {
    const summary = JSON.parse(text) as Json;
    return typeof summary === "object" && !Array.isArray(summary) ? summary : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The next number would belong to another session. */
function tooMany(key: number): HoldfastError {
  const message = `The record was not written: a journal in an SQLite store holds at most ${SEQ_MAX} records. Nothing before it is affected. Go on in a new session.`;
  return new HoldfastError("STORE_FULL", message, { key, limit: SEQ_MAX });
}
