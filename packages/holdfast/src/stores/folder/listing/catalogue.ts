import { DatabaseSync } from "node:sqlite";
import { hasSchema, makeDatabaseFile, removeDatabase } from "../../../disk/database-file.ts";
import type { Disk } from "../../../disk/disk.ts";
import { sqliteCode, sqliteErrcode } from "../../../disk/node-disk.ts";
import { errnoOf } from "../../../errors.ts";
import { DEEP_CHARS_MIN, isNestedTooDeep } from "../../../journal/lines/json-text.ts";
import type { Json } from "../../../journal/record.ts";
import type { Row } from "./row-from-files.ts";

const SCHEMA_VERSION = 2;
const SCHEMA = `CREATE TABLE sessions (id TEXT PRIMARY KEY, segment INTEGER NOT NULL, size INTEGER NOT NULL, mtime REAL NOT NULL,
  at TEXT NOT NULL, stamp TEXT NOT NULL, head INTEGER NOT NULL, closed INTEGER NOT NULL, summary TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_stamp ON sessions (stamp);
PRAGMA user_version=${SCHEMA_VERSION};`;
/** A catalogue is read as a whole. A larger one is not ours: it would hold half a million sessions. */
const BYTES_MAX = 512 * 1024 * 1024;
const SUMMARY_CHARS_MAX = 1024 * 1024;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_FULL = 13;
const SQLITE_IOERR_SHMSIZE = 4874;

/**
 * The rows of a list, kept across processes in an SQLite file. It is derived: if deleted, it is rebuilt, and its own
 * failures never surface as errors (S20). A busy catalogue is skipped, and a later list repairs it.
 */
export class Catalogue {
  readonly #disk: Disk;
  readonly #path: string;
  #database: DatabaseSync | null = null;
  #rows: Map<string, Row> | null = null;
  #version = -1;

  constructor(disk: Disk, path: string) {
    this.#disk = disk;
    this.#path = path;
  }

  /** The known rows by id; null if they cannot be read. The caller may read the map until the next call. */
  load(): Map<string, Row> | null {
    return this.#guarded((database) => {
      const version = (database.prepare("PRAGMA data_version").get() as { data_version: number }).data_version;
      if (!this.#rows || version !== this.#version) {
        this.#rows = readRows(database);
        this.#version = version;
      }
      return this.#rows;
    }, this.#rows);
  }

  /** The newest known stamp; undefined if there is none. */
  newest(): string | undefined {
    return this.#guarded((database) => {
      const { newest } = database.prepare("SELECT max(stamp) AS newest FROM sessions").get() as { newest: unknown };
      return typeof newest === "string" ? newest : undefined;
    }, undefined);
  }

  put(rows: readonly Row[], gone: readonly string[] = []): void {
    if (rows.length === 0 && gone.length === 0) return;
    for (const row of rows) this.#rows?.set(row.id, row);
    for (const id of gone) this.#rows?.delete(id);
    this.#guarded((database) => writeRows(database, rows, gone), undefined);
  }

  close(): void {
    this.#database?.close();
    this.#database = null;
    this.#rows = null;
  }

  #guarded<T>(use: (database: DatabaseSync) => T, otherwise: T): T {
    for (let tries = 0; tries < 2; tries++) {
      try {
        this.#database ??= this.#open();
        return use(this.#database);
      } catch (error) {
        const code = sqliteCode(error);
        if (code === SQLITE_BUSY || code === SQLITE_LOCKED) return otherwise;
        // Nothing is wrong with it: it is used again when there is space.
        if (isFull(error)) return otherwise;
        if (code === undefined && errnoOf(error) === undefined && !(error instanceof SyntaxError)) throw error;
        // Damaged, of another schema, or unreadable: rebuild it, once.
        this.#discard();
      }
    }
    return otherwise;
  }

  #open(): DatabaseSync {
    const { size } = makeDatabaseFile(this.#disk, this.#path);
    if (size > BYTES_MAX) throw unusable("too large");
    const database = new DatabaseSync(this.#path, { timeout: 20 });
    try {
      database.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF");
      if (versionOf(database) === 0) makeSchema(database);
      if (versionOf(database) !== SCHEMA_VERSION || !hasSchema(database, SCHEMA)) throw unusable("another schema");
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  #discard(): void {
    this.close();
    // What is not ours to remove stays: lists are answered from the files.
    removeDatabase(this.#disk, this.#path);
  }
}

/** There is no space to write it, or even to share it with other processes. */
function isFull(error: unknown): boolean {
  return sqliteCode(error) === SQLITE_FULL || sqliteErrcode(error) === SQLITE_IOERR_SHMSIZE;
}

function versionOf(database: DatabaseSync): number {
  return (database.prepare("PRAGMA user_version").get() as { user_version: number }).user_version;
}

function makeSchema(database: DatabaseSync): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have created it first.
    if (versionOf(database) === 0) database.exec(SCHEMA);
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function unusable(why: string): Error {
  return Object.assign(new Error(`the catalogue is unusable: ${why}`), { code: "EINVAL" });
}

/** Throws SyntaxError for a row that no version of Holdfast has written. */
function readRows(database: DatabaseSync): Map<string, Row> {
  const statement = database.prepare("SELECT id, segment, size, mtime, at, stamp, head, closed, summary FROM sessions");
  statement.setReturnArrays(true);
  const rows = new Map<string, Row>();
  // All at once: iterating over them takes three times as long.
  for (const columns of statement.all() as unknown as unknown[][]) {
    const [id, segment, size, mtimeMs, at, stamp, head, closed, text] = columns;
    const isOurs =
      typeof id === "string" &&
      isCount(segment) &&
      isCount(size) &&
      typeof mtimeMs === "number" &&
      typeof at === "string" &&
      typeof stamp === "string" &&
      isCount(head) &&
      typeof text === "string" &&
      text.length <= SUMMARY_CHARS_MAX;
    const summary = isOurs ? (JSON.parse(text) as Json) : null;
    if (!isOurs || (text.length >= DEEP_CHARS_MIN && isNestedTooDeep(summary)))
      throw new SyntaxError("the catalogue holds an invalid row");
    // Someone has put something else there: the session's files decide.
    if (typeof summary !== "object" || Array.isArray(summary)) continue;
    rows.set(id, { id, segment, size, mtimeMs, at, stamp, head, closed: closed === 1, summary });
  }
  return rows;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function writeRows(database: DatabaseSync, rows: readonly Row[], gone: readonly string[]): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    const put = database.prepare("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const { id, segment, size, mtimeMs, at, stamp, head, closed, summary } of rows) {
      const text = JSON.stringify(summary);
      // A list rebuilds the row of such a session each time.
      if (text.length > SUMMARY_CHARS_MAX) continue;
      put.run(id, segment, size, mtimeMs, at, stamp, head, closed ? 1 : 0, text);
    }
    const remove = database.prepare("DELETE FROM sessions WHERE id = ?");
    for (const id of gone) remove.run(id);
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}
