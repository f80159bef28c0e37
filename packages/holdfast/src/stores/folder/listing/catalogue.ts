import type { DatabaseSync } from "node:sqlite";
import { removeDatabase } from "../../../disk/database-file.ts";
import { DerivedDatabase, type DerivedSchema } from "../../../disk/derived-database.ts";
import { descriptorFailure } from "../../../disk/descriptors.ts";
import type { Disk } from "../../../disk/disk.ts";
import { isGeneral } from "../../../disk/failure.ts";
import { SQLITE, sqliteCode, sqliteErrcode } from "../../../disk/sqlite-error.ts";
import { errnoOf } from "../../../errors.ts";
import { DEEP_CHARS_MIN, isNestedTooDeep } from "../../../journal/lines/json-text.ts";
import type { Json } from "../../../journal/record.ts";
import type { Row } from "./row-from-files.ts";

/** The rows are stored in the order of lists: what is in order takes no time to sort. */
const SCHEMA: DerivedSchema = {
  version: 5,
  sql: `CREATE TABLE sessions (id TEXT NOT NULL, segment INTEGER NOT NULL, size INTEGER NOT NULL, mtime REAL NOT NULL,
  at TEXT NOT NULL, stamp TEXT NOT NULL, head INTEGER NOT NULL, closed INTEGER NOT NULL, summary TEXT NOT NULL,
  PRIMARY KEY (stamp, id)) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_by_id ON sessions (id)`,
};
const COLUMNS = "id, segment, size, mtime, at, stamp, head, closed, summary";
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

  /** Stores what is known of these sessions. A row that is not stored, or is out of date, is made from the files. */
  put(rows: readonly Row[], gone: readonly string[]): void {
    for (const row of rows) this.#rows?.set(row.id, row);
    for (const id of gone) this.#rows?.delete(id);
    if (rows.length + gone.length === 0) return;
    this.#guarded((database) => database.write(() => writeRows(database.sqlite, rows, gone)), undefined);
  }

  #discard(): void {
    this.close();
    // What is not ours to remove stays: lists are answered from the files.
    removeDatabase(this.#disk, this.#path);
  }

  close(): void {
    this.#database?.close();
    this.#database = null;
    this.#rows = null;
  }

  #read<T>(use: (database: DatabaseSync) => T, otherwise: T): T {
    return this.#guarded((database) => database.read(() => use(database.sqlite)), otherwise);
  }

  #guarded<T>(use: (database: DerivedDatabase) => T, otherwise: T): T {
    for (let tries = 0; tries < 2; tries++) {
      try {
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

/** There is no space to write it (IOERR_WRITE: or the quota is used up). */
function isFull(error: unknown): boolean {
  const errcode = sqliteErrcode(error);
  return sqliteCode(error) === SQLITE.FULL || errcode === SQLITE.IOERR_WRITE;
}

function dataVersionOf(database: DatabaseSync): number {
  return (database.prepare("PRAGMA data_version").get() as { data_version: number }).data_version;
}

function readRows(database: DatabaseSync): Map<string, Row> {
  const statement = database.prepare(`SELECT ${COLUMNS} FROM sessions`);
  statement.setReturnArrays(true);
  // All at once: iterating over them takes three times as long.
  const rows = (statement.all() as unknown as unknown[][]).map(rowOf);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Throws SyntaxError for what no version of Holdfast writes. */
function rowOf([id, segment, size, mtimeMs, at, stamp, head, closed, text]: readonly unknown[]): Row {
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
  const summary = isOurs ? (JSON.parse(text) as Json) : undefined;
  const isTooDeep = isOurs && text.length >= DEEP_CHARS_MIN && isNestedTooDeep(summary);
  if (!isOurs || isTooDeep || typeof summary !== "object" || Array.isArray(summary))
    throw new SyntaxError("the catalogue holds an invalid row");
  return { id, segment, size, mtimeMs, at, stamp, head, closed: closed === 1, summary };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** In a transaction. */
function writeRows(database: DatabaseSync, rows: readonly Row[], gone: readonly string[]): void {
  const put = database.prepare("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const { id, segment, size, mtimeMs, at, stamp, head, closed, summary } of rows) {
    const text = JSON.stringify(summary);
    // A list makes a row with a larger one from the files each time.
    if (text.length <= SUMMARY_CHARS_MAX) put.run(id, segment, size, mtimeMs, at, stamp, head, closed ? 1 : 0, text);
  }
  const remove = database.prepare("DELETE FROM sessions WHERE id = ?");
  for (const id of gone) remove.run(id);
}
