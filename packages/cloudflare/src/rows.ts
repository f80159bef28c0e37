import { HoldfastError, type Json } from "holdfast";
import type { Line, ListRow, Segment } from "holdfast/internal";
import { type DurableObjectStorage, type SqlRow, type SqlValue, storageFailure } from "./storage.ts";

const SCHEMA_VERSION = 1;
/**
 * Next to the tables of the application, hence the prefix. A row of `holdfast_lines` is a line, byte for byte, without
 * its newline: its place combines the key of the session with the seq, so that an append writes one row and no index.
 * What does not fit into a row is in `holdfast_pieces`.
 *
 * `holdfast_sessions` is valid as of `head`: it is written with `segment`, `opened` and `closed`, and about once a
 * second, not with every line. `stamp` is the sort key of lists.
 */
const SCHEMA = `
CREATE TABLE IF NOT EXISTS holdfast_schema (version INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS holdfast_sessions (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  stamp TEXT NOT NULL,
  at TEXT NOT NULL,
  head INTEGER NOT NULL,
  closed INTEGER NOT NULL,
  summary TEXT NOT NULL,
  trashed INTEGER
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS holdfast_sessions_by_id ON holdfast_sessions (id) WHERE trashed IS NULL;
CREATE INDEX IF NOT EXISTS holdfast_sessions_by_time ON holdfast_sessions (stamp, id) WHERE trashed IS NULL;
CREATE INDEX IF NOT EXISTS holdfast_sessions_open ON holdfast_sessions (closed) WHERE closed = 0 AND trashed IS NULL;
CREATE TABLE IF NOT EXISTS holdfast_segments (
  session INTEGER NOT NULL,
  number INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  first INTEGER NOT NULL,
  PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS holdfast_lines (place INTEGER PRIMARY KEY, line BLOB NOT NULL, pieces INTEGER) STRICT;
CREATE TABLE IF NOT EXISTS holdfast_pieces (
  place INTEGER NOT NULL,
  piece INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (place, piece)
) STRICT;
`;

/** A row of a Durable Object's database holds at most 2 MB. */
const PIECE_BYTES = 1_000_000;
/** The limits of one read; the first one reached ends it. */
const CHUNK_BYTES = 1024 * 1024;
const CHUNK_ROWS = 512;
/** A place must be a safe integer: the database takes and gives numbers of JavaScript. */
const SEQS = 2 ** 32;
const KEY_MAX = 2 ** 21 - 1;
const NEWLINE = 0x0a;

/** A session according to its row. */
export interface SessionRow extends ListRow {
  readonly key: number;
  readonly id: string;
}

/** Every statement of the store. Throws STORE_FULL and STORE_IO. */
export class Rows {
  readonly #storage: DurableObjectStorage;
  readonly #url: string;

  /** Creates the tables. Throws FORMAT_NEWER. */
  constructor(storage: DurableObjectStorage, url: string) {
    this.#storage = storage;
    this.#url = url;
    this.transaction(() => {
      this.#run(SCHEMA);
      const [found] = this.#all("SELECT version FROM holdfast_schema");
      if (!found) this.#run("INSERT INTO holdfast_schema VALUES (?)", SCHEMA_VERSION);
      else if (found["version"] !== SCHEMA_VERSION) throw schemaNewer(found["version"]);
    });
  }

  /** All or nothing. */
  transaction<T>(work: () => T): T {
    try {
      return this.#storage.transactionSync(work);
    } catch (error) {
      throw storageFailure(error, this.#url);
    }
  }

  /** Writes the lines of a unit, each with its newline. The caller manages the transaction. */
  insertUnit(key: number, first: number, unit: Buffer): void {
    for (let start = 0, seq = first; start < unit.length; seq++) {
      const end = unit.indexOf(NEWLINE, start);
      this.insertLine(key, seq, unit.subarray(start, end));
      start = end + 1;
    }
  }

  insertLine(key: number, seq: number, line: Uint8Array): void {
    if (seq >= SEQS) throw tooMany(`a journal in a Durable Object holds at most ${SEQS - 1} records`);
    const place = placeOf(key, seq);
    const rest: Uint8Array[] = [];
    for (let at = PIECE_BYTES; at < line.length; at += PIECE_BYTES) rest.push(line.subarray(at, at + PIECE_BYTES));
    const put = "INSERT INTO holdfast_lines (place, line, pieces) VALUES (?, ?, ?)";
    this.#run(put, place, line.subarray(0, PIECE_BYTES), rest.length || null);
    for (const [piece, bytes] of rest.entries())
      this.#run("INSERT INTO holdfast_pieces (place, piece, bytes) VALUES (?, ?, ?)", place, piece, bytes);
  }

  /** The lines from seq `from` to seq `to`, in chunks. Lines never change, so others can write in between. */
  *readChunks(key: number, from: number, to: number): Generator<readonly Line[]> {
    const select = "SELECT place, line, pieces FROM holdfast_lines WHERE place BETWEEN ? AND ? ORDER BY place LIMIT ?";
    for (let next = from; next <= to; ) {
      const lines: Line[] = [];
      let bytes = 0;
      for (const row of this.#each(select, placeOf(key, next), placeOf(key, to), CHUNK_ROWS)) {
        const line = { seq: (row["place"] as number) - placeOf(key, 0), bytes: this.#lineIn(row) };
        lines.push(line);
        bytes += line.bytes.length;
        if (bytes >= CHUNK_BYTES) break;
      }
      if (lines.length > 0) yield lines;
      next = lines.length < CHUNK_ROWS && bytes < CHUNK_BYTES ? to + 1 : lines.at(-1)!.seq + 1;
    }
  }

  readLine(key: number, seq: number): Buffer | null {
    const [row] = this.#all("SELECT place, line, pieces FROM holdfast_lines WHERE place = ?", placeOf(key, seq));
    return row ? this.#lineIn(row) : null;
  }

  /** 0 if there are no lines. */
  newestSeq(key: number): number {
    const [row] = this.#all(
      "SELECT max(place) AS place FROM holdfast_lines WHERE place BETWEEN ? AND ?",
      placeOf(key, 0),
      placeOf(key, SEQS - 1),
    );
    return typeof row?.["place"] === "number" ? row["place"] - placeOf(key, 0) : 0;
  }

  insertSegment(key: number, { number, epoch, first }: Segment): void {
    this.#run(
      "INSERT INTO holdfast_segments (session, number, epoch, first) VALUES (?, ?, ?, ?)",
      key,
      number,
      epoch,
      first,
    );
  }

  /** In order. */
  segments(key: number): Segment[] {
    const rows = this.#all("SELECT number, epoch, first FROM holdfast_segments WHERE session = ? ORDER BY number", key);
    return rows as unknown as Segment[];
  }

  /** A session that is not in the trash. */
  find(id: string): SessionRow | null {
    const [row] = this.#all("SELECT * FROM holdfast_sessions WHERE id = ? AND trashed IS NULL", id);
    return row ? sessionIn(row) : null;
  }

  /** The row is that of an empty journal. `trashedMs`: it is born in the trash, where nobody sees it. */
  insert(id: string, trashedMs: number | null = null): number {
    const [row] = this.#all(
      "INSERT INTO holdfast_sessions (id, stamp, at, head, closed, summary, trashed) VALUES (?, '', '', 0, 0, 'null', ?) RETURNING key",
      id,
      trashedMs,
    );
    const key = row!["key"] as number;
    if (key > KEY_MAX) throw tooMany(`a Durable Object holds at most ${KEY_MAX} sessions`);
    return key;
  }

  update(
    key: number,
    { at, stamp, head }: Pick<ListRow, "at" | "stamp" | "head">,
    closed: boolean,
    summary: Json,
  ): void {
    this.#run(
      "UPDATE holdfast_sessions SET stamp = ?, at = ?, head = ?, closed = ?, summary = ? WHERE key = ?",
      ...[stamp, at, head, closed ? 1 : 0, JSON.stringify(summary), key],
    );
  }

  /** A writer has started: from now on the row may be older than the journal. */
  reopen(key: number): void {
    this.#run("UPDATE holdfast_sessions SET closed = 0 WHERE key = ?", key);
  }

  /** The sessions that no writer has closed. */
  open(): SessionRow[] {
    return this.#all("SELECT * FROM holdfast_sessions WHERE closed = 0 AND trashed IS NULL").map(sessionIn);
  }

  /** The others, newest first, after this place. Consume or abandon it inside one call. */
  *closed(stamp: string, id: string): Generator<SessionRow> {
    const select =
      "SELECT * FROM holdfast_sessions WHERE trashed IS NULL AND closed = 1 AND (stamp, id) < (?, ?) ORDER BY stamp DESC, id DESC";
    for (const row of this.#each(select, stamp, id)) yield sessionIn(row);
  }

  trash(key: number, nowMs: number | null): void {
    this.#run("UPDATE holdfast_sessions SET trashed = ? WHERE key = ?", nowMs, key);
  }

  /** The last one deleted first. Without a head, it is being copied in. */
  trashed(): (SessionRow & { readonly trashedMs: number })[] {
    const rows = this.#all("SELECT * FROM holdfast_sessions WHERE trashed IS NOT NULL ORDER BY trashed DESC, key DESC");
    return rows.map((row) => ({ ...sessionIn(row), trashedMs: row["trashed"] as number }));
  }

  /** Removes a session, and all that belongs to it. */
  remove(key: number): void {
    const extent = [placeOf(key, 0), placeOf(key, SEQS - 1)] as const;
    this.transaction(() => {
      this.#run("DELETE FROM holdfast_pieces WHERE place BETWEEN ? AND ?", ...extent);
      this.#run("DELETE FROM holdfast_lines WHERE place BETWEEN ? AND ?", ...extent);
      this.#run("DELETE FROM holdfast_segments WHERE session = ?", key);
      this.#run("DELETE FROM holdfast_sessions WHERE key = ?", key);
    });
  }

  #lineIn(row: SqlRow): Buffer {
    const line = Buffer.from(row["line"] as ArrayBuffer);
    if (row["pieces"] === null) return line;
    const pieces = this.#all(
      "SELECT bytes FROM holdfast_pieces WHERE place = ? ORDER BY piece",
      row["place"] as number,
    );
    return Buffer.concat([line, ...pieces.map(({ bytes }) => Buffer.from(bytes as ArrayBuffer))]);
  }

  #all(query: string, ...values: SqlValue[]): SqlRow[] {
    return [...this.#each(query, ...values)];
  }

  #run(query: string, ...values: SqlValue[]): void {
    this.#all(query, ...values);
  }

  *#each(query: string, ...values: SqlValue[]): Generator<SqlRow> {
    try {
      yield* this.#storage.sql.exec(query, ...values);
    } catch (error) {
      throw storageFailure(error, this.#url);
    }
  }
}

function placeOf(key: number, seq: number): number {
  return key * SEQS + seq;
}

function sessionIn(row: SqlRow): SessionRow {
  const columns = row as unknown as Omit<SessionRow, "closed" | "summary"> & { readonly [name: string]: unknown };
  const { key, id, stamp, at, head } = columns;
  const summary = JSON.parse(row["summary"] as string) as Json;
  return { key, id, stamp, at, head, closed: row["closed"] === 1, summary };
}

function tooMany(why: string): HoldfastError {
  return new HoldfastError("STORE_FULL", `Nothing was written: ${why}. Continue in another one.`, {});
}

function schemaNewer(found: SqlRow[string] | undefined): HoldfastError {
  const message =
    `The tables of this Durable Object have the version ${String(found)}, but this version of @holdfast/cloudflare knows only ${SCHEMA_VERSION}. ` +
    "Nothing was touched and nothing is lost. Open it with a newer version.";
  return new HoldfastError("FORMAT_NEWER", message, { found: Number(found), known: SCHEMA_VERSION });
}
