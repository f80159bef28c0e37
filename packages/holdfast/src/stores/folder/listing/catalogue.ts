import type { DatabaseSync, StatementSync } from "node:sqlite";
import { removeDatabase } from "../../../disk/database-file.ts";
import { DerivedDatabase, type DerivedSchema } from "../../../disk/derived-database.ts";
import { descriptorFailure } from "../../../disk/descriptors.ts";
import type { Disk } from "../../../disk/disk.ts";
import { isGeneral } from "../../../disk/failure.ts";
import { SQLITE, sqliteCode, sqliteErrcode } from "../../../disk/sqlite-error.ts";
import { errnoOf } from "../../../errors.ts";
import type { Listed } from "../../../journal/contract.ts";
import { DEEP_CHARS_MIN, isNestedTooDeep } from "../../../journal/lines/json-text.ts";
import type { Json } from "../../../journal/record.ts";
import type { Row } from "./row-from-files.ts";

/** The rows are stored in the order of lists, so that a page of them is read without the others. */
const SCHEMA: DerivedSchema = {
  version: 4,
  sql: `CREATE TABLE sessions (id TEXT NOT NULL, segment INTEGER NOT NULL, size INTEGER NOT NULL, mtime REAL NOT NULL,
  at TEXT NOT NULL, stamp TEXT NOT NULL, head INTEGER NOT NULL, closed INTEGER NOT NULL, summary TEXT NOT NULL,
  PRIMARY KEY (stamp, id)) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_by_id ON sessions (id);
CREATE INDEX sessions_not_closed ON sessions (id) WHERE closed = 0;
CREATE TABLE checks (key INTEGER PRIMARY KEY CHECK (key = 1), state TEXT NOT NULL) STRICT`,
};
const COLUMNS = "id, segment, size, mtime, at, stamp, head, closed, summary";
/** So few that the text of a row is garbage before the collector copies it, which would take longer than reading it. */
const BATCH_ROWS = 128;
/** A catalogue is read as a whole. A larger one is not ours: it would hold half a million sessions. */
const BYTES_MAX = 512 * 1024 * 1024;
const SUMMARY_CHARS_MAX = 1024 * 1024;
/** How long a busy catalogue is waited for. */
const BUSY_MS = 20;

/**
 * The rows of a list, kept across processes in an SQLite file. It is derived: if deleted, it is rebuilt, and its own
 * failures never surface as errors (S20). A busy catalogue is skipped, and a later list repairs it.
 */
export class Catalogue {
  readonly #disk: Disk;
  readonly #path: string;
  #database: DerivedDatabase | null = null;
  #rows: Map<string, Row> | null = null;
  #version = -1;
  /** The version that the last `load` or `check` saw. */
  #seen = -1;

  constructor(disk: Disk, path: string) {
    this.#disk = disk;
    this.#path = path;
  }

  /** The known rows by id; null if they cannot be read. The caller may read the map until the next call. */
  load(): Map<string, Row> | null {
    return this.#read((database) => {
      const version = dataVersionOf(database);
      if (!this.#rows || version !== this.#version) {
        this.#rows = readRows(database);
        this.#version = version;
      }
      this.#seen = version;
      return this.#rows;
    }, this.#rows);
  }

  /** The newest known stamp; undefined if there is none. */
  newest(): string | undefined {
    return this.#read((database) => {
      const { newest } = database.prepare("SELECT max(stamp) AS newest FROM sessions").get() as { newest: unknown };
      return typeof newest === "string" ? newest : undefined;
    }, undefined);
  }

  /** The rows of these sessions, as far as there are any; null if they cannot be read. */
  rowsOf(ids: Iterable<string>): Map<string, Row> | null {
    return this.#read((database) => {
      const statement = database.prepare(`SELECT ${COLUMNS} FROM sessions WHERE id = ?`);
      statement.setReturnArrays(true);
      const rows = new Map<string, Row>();
      for (const id of ids) {
        const columns = statement.get(id) as unknown as unknown[] | undefined;
        const row = columns && rowOf(columns);
        if (row) rows.set(id, row);
      }
      return rows;
    }, null);
  }

  /** The ids of all sessions whose last record is not `closed`; null if they cannot be read. */
  notClosed(): string[] | null {
    return this.#read((database) => {
      const found = database.prepare("SELECT id FROM sessions WHERE closed = 0").all();
      return found.map(({ id }) => String(id));
    }, null);
  }

  /**
   * Calls back with batches of rows in the order of lists, beginning after a place in it. All of them are of the same
   * instant. Null if they cannot be read, or if `check` is not the last one any more.
   */
  inOrder<T>(
    check: Check,
    { after, limit }: { readonly after: Pick<Row, "stamp" | "id"> | null; readonly limit: number },
    use: (batches: Iterable<readonly Listed[]>) => T,
  ): T | null {
    return this.#read((database) => {
      // A catalogue that was made again is empty at first.
      if (checkIn(database)?.at !== check.at) return null;
      return use(readInOrder(database, after, limit));
    }, null);
  }

  /** What the last call of `putChecked` left; null if there is nothing, or it cannot be read. */
  check(): Check | null {
    return this.#read((database) => {
      this.#seen = dataVersionOf(database);
      return checkIn(database);
    }, null);
  }

  /** The holder of a session's lease knows its row, or that it is gone. Returns whether the catalogue has it. */
  put(rows: readonly Row[], gone: readonly string[] = []): boolean {
    this.#remember(rows, gone);
    const isWhole = this.#write((database) => writeRows(database, rows, gone), false);
    // Others use another file by now if somebody has removed this one.
    return isWhole && this.#database?.isInPlace() === true;
  }

  /**
   * Stores what a list has found in the files since `load` or `check`, and that it has found everything. If others have
   * written to the catalogue meanwhile, it stores only rows that nobody has replaced: the holder of a session's lease
   * knows better. Returns whether `check` was stored.
   */
  putChecked(
    known: ReadonlyMap<string, Row>,
    rows: readonly Row[],
    gone: readonly string[],
    check: Check | null,
  ): boolean {
    if (rows.length === 0 && gone.length === 0 && !check) return false;
    const isStored = this.#write((database) => {
      const isMine = dataVersionOf(database) === this.#seen;
      const isSame = (id: string): boolean => isMine || hasSameRow(database, id, known.get(id));
      const same = rows.filter(({ id }) => isSame(id));
      const isWhole = writeRows(database, same, gone.filter(isSame));
      if (!check || !isMine || !isWhole) return false;
      database.prepare("INSERT OR REPLACE INTO checks VALUES (1, ?)").run(JSON.stringify(check));
      return true;
    }, false);
    this.#remember(rows, gone);
    return isStored;
  }

  /** From now on, a list has to look at every session, and so does one that is under way. */
  forgetCheck(): void {
    const isForgotten = this.#write((database) => {
      // Also if there is none: the catalogue gets another version, and `putChecked` stores no check.
      database.exec("INSERT OR REPLACE INTO checks VALUES (1, 'null')");
      return true;
    }, false);
    // Removing it takes no space.
    if (!isForgotten) this.#discard();
  }

  #discard(): void {
    this.close();
    // What is not ours to remove stays: lists are answered from the files.
    removeDatabase(this.#disk, this.#path);
  }

  #remember(rows: readonly Row[], gone: readonly string[]): void {
    for (const row of rows) this.#rows?.set(row.id, row);
    for (const id of gone) this.#rows?.delete(id);
  }

  close(): void {
    this.#database?.close();
    this.#database = null;
    this.#rows = null;
  }

  #read<T>(use: (database: DatabaseSync) => T, otherwise: T): T {
    return this.#guarded((database) => database.read(() => use(database.sqlite)), otherwise);
  }

  #write<T>(use: (database: DatabaseSync) => T, otherwise: T): T {
    return this.#guarded((database) => database.write(() => use(database.sqlite)), otherwise);
  }

  #guarded<T>(use: (database: DerivedDatabase) => T, otherwise: T): T {
    for (let tries = 0; tries < 2; tries++) {
      try {
        // If somebody has removed the file, what this process sees in it is known to nobody else.
        if (this.#database && !this.#database.isInPlace()) this.close();
        this.#database ??= this.#open();
        return use(this.#database);
      } catch (error) {
        const code = sqliteCode(error);
        if (code === SQLITE.BUSY || code === SQLITE.LOCKED) return otherwise;
        // Nothing is wrong with it: it is used again when there is space, or a descriptor.
        if (isFull(error) || isGeneral(error) || descriptorFailure() !== null) return otherwise;
        if (code === undefined && errnoOf(error) === undefined && !(error instanceof SyntaxError)) throw error;
        // Damaged, of another schema, or unreadable: rebuild it, once.
        this.#discard();
      }
    }
    return otherwise;
  }

  #open(): DerivedDatabase {
    if ((this.#disk.stat(this.#path)?.size ?? 0) > BYTES_MAX)
      throw Object.assign(new Error("the catalogue is too large"), { code: "EFBIG" });
    // After a power cut, what is missing in it is found in the files.
    return DerivedDatabase.open(this.#disk, this.#path, SCHEMA, { timeoutMs: BUSY_MS });
  }
}

/**
 * At the time `at`, every session was looked at, and had a row that matched its files. Writers had announced
 * those in `unsettled` when the folder of the leases was in the given state.
 */
export interface Check {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly bootId: string;
  /** States of folders (`stateOf`). */
  readonly sessions: string;
  readonly leases?: string;
  readonly unsettled?: readonly string[];
  /** Too many sessions are unsettled for looking at them one by one. */
  readonly isHopeless?: true;
}

/** There is no space to write it (IOERR_WRITE: or the quota is used up). */
function isFull(error: unknown): boolean {
  const errcode = sqliteErrcode(error);
  return sqliteCode(error) === SQLITE.FULL || errcode === SQLITE.IOERR_WRITE;
}

function dataVersionOf(database: DatabaseSync): number {
  return (database.prepare("PRAGMA data_version").get() as { data_version: number }).data_version;
}

function checkIn(database: DatabaseSync): Check | null {
  const found = database.prepare("SELECT state FROM checks").get();
  const check = found ? (JSON.parse(String(found["state"])) as Check | null) : null;
  return check && (check.unsettled === undefined || Array.isArray(check.unsettled)) ? check : null;
}

function readRows(database: DatabaseSync): Map<string, Row> {
  const statement = database.prepare(`SELECT ${COLUMNS} FROM sessions`);
  statement.setReturnArrays(true);
  const rows = new Map<string, Row>();
  // All at once: iterating over them takes three times as long.
  for (const columns of statement.all() as unknown as unknown[][]) {
    const row = rowOf(columns);
    if (row) rows.set(row.id, row);
  }
  return rows;
}

function* readInOrder(
  database: DatabaseSync,
  place: Pick<Row, "stamp" | "id"> | null,
  limit: number,
): Generator<readonly Listed[]> {
  const next = selectInOrder(database, "WHERE (stamp, id) < (?, ?)");
  let count = Math.min(limit, BATCH_ROWS);
  // The first of all without a condition: a row with another kind of stamp, which it would leave out, comes first.
  let found = place ? next.all(place.stamp, place.id, count) : selectInOrder(database, "").all(count);
  for (;;) {
    const batch = (found as unknown as unknown[][]).map(listedOf);
    yield batch;
    const last = batch.at(-1);
    if (!last || batch.length < count) return;
    count = BATCH_ROWS;
    found = next.all(last.stamp ?? last.at, last.id, count);
  }
}

function selectInOrder(database: DatabaseSync, where: string): StatementSync {
  const columns = "id, at, nullif(stamp, at), head, closed, summary";
  const statement = database.prepare(`SELECT ${columns} FROM sessions ${where} ORDER BY stamp DESC, id DESC LIMIT ?`);
  statement.setReturnArrays(true);
  return statement;
}

function listedOf(columns: readonly unknown[]): Listed {
  // By index: taking an array apart uses its iterator, ten thousand times.
  const id = columns[0];
  const at = columns[1];
  const stamp = columns[2];
  const head = columns[3];
  const summary = summaryIn(columns[5]);
  const isOurs =
    typeof id === "string" && typeof at === "string" && (stamp === null || typeof stamp === "string") && isCount(head);
  if (!isOurs || summary === undefined) throw new SyntaxError("the catalogue holds an invalid row");
  const closed = columns[4] === 1;
  return stamp === null ? { id, at, head, closed, summary } : { id, at, stamp, head, closed, summary };
}

/** Undefined if someone has put something else there. Throws SyntaxError for what no version of Holdfast writes. */
function summaryIn(text: unknown): Json | undefined {
  if (typeof text !== "string" || text.length > SUMMARY_CHARS_MAX)
    throw new SyntaxError("the catalogue holds an invalid row");
  const summary = JSON.parse(text) as Json;
  if (text.length >= DEEP_CHARS_MIN && isNestedTooDeep(summary))
    throw new SyntaxError("the catalogue holds an invalid row");
  return typeof summary !== "object" || Array.isArray(summary) ? undefined : summary;
}

/** Null if someone has put something else there: then the session's files decide. Throws SyntaxError, as above. */
function rowOf([id, segment, size, mtimeMs, at, stamp, head, closed, text]: readonly unknown[]): Row | null {
  const isOurs =
    typeof id === "string" &&
    isCount(segment) &&
    isCount(size) &&
    typeof mtimeMs === "number" &&
    typeof at === "string" &&
    typeof stamp === "string" &&
    isCount(head);
  if (!isOurs) throw new SyntaxError("the catalogue holds an invalid row");
  const summary = summaryIn(text);
  if (summary === undefined) return null;
  return { id, segment, size, mtimeMs, at, stamp, head, closed: closed === 1, summary };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Has nobody replaced or removed the row since it was read? */
function hasSameRow(database: DatabaseSync, id: string, known: Row | undefined): boolean {
  const found = database.prepare("SELECT segment, size, mtime FROM sessions WHERE id = ?").get(id);
  if (!found || !known) return !found && !known;
  return found["segment"] === known.segment && found["size"] === known.size && found["mtime"] === known.mtimeMs;
}

/** In a transaction. Returns whether it has stored all of them. */
function writeRows(database: DatabaseSync, rows: readonly Row[], gone: readonly string[]): boolean {
  let isWhole = true;
  const put = database.prepare("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const { id, segment, size, mtimeMs, at, stamp, head, closed, summary } of rows) {
    const text = JSON.stringify(summary);
    // A list rebuilds the row of such a session each time.
    if (text.length > SUMMARY_CHARS_MAX || !isPlain(stamp)) isWhole = false;
    else put.run(id, segment, size, mtimeMs, at, stamp, head, closed ? 1 : 0, text);
  }
  const remove = database.prepare("DELETE FROM sessions WHERE id = ?");
  for (const id of gone) remove.run(id);
  return isWhole;
}

/** SQLite and JavaScript sort other text differently. */
function isPlain(stamp: string): boolean {
  return /^[\x20-\x7e]*$/.test(stamp);
}
