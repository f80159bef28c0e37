import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { hasSchema, makeDatabaseFile } from "../disk/database-file.ts";
import type { Disk, DiskStat } from "../disk/disk.ts";
import { sqliteCode } from "../disk/node-disk.ts";
import { errnoOf, isHoldfastError } from "../errors.ts";
import type { Answer, TextTables } from "../journal/texts.ts";
import { SCHEMA, SCHEMA_VERSION, Tables } from "./tables.ts";

const PERM = 3;
const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const FULL = 13;
const CANTOPEN = 14;
const PROTOCOL = 15;
const AUTH = 23;

/** The maximum log size to keep after a large session has been indexed. */
const WAL_BYTES_KEPT = 4 * 1024 * 1024;

/**
 * Something is wrong with the index, and with nothing else: `busy`, another process has it locked; `place`, the disk is
 * full or not writable; `content`, the index is damaged, was made by another version, or has been closed or replaced in
 * the meantime.
 */
export class IndexFailure extends Error {
  readonly why: "busy" | "place" | "content";

  constructor(cause: unknown) {
    super("the search index failed", { cause });
    this.why = reasonOf(cause);
  }
}

interface OpenFile {
  readonly disk: Disk;
  readonly path: string;
  readonly identity: DiskStat;
}

/** Where an index is kept: in a file that several processes share, in the store's own tables, or in memory. */
export class Base {
  readonly tables: TextTables;
  readonly #database: DatabaseSync | null;
  readonly #file: OpenFile | null;

  private constructor(tables: TextTables, database: DatabaseSync | null, file: OpenFile | null) {
    this.tables = tables;
    this.#database = database;
    this.#file = file;
  }

  static inStore(tables: TextTables): Base {
    return new Base(tables, null, null);
  }

  static inMemory(): Base {
    const database = new DatabaseSync(":memory:");
    database.exec(SCHEMA);
    return new Base(new Tables(database), database, null);
  }

  /** Throws errors of SQLite and of the disk. */
  static inFile(disk: Disk, path: string): Base {
    const file = { disk, path, identity: makeFile(disk, path) };
    let database: DatabaseSync | null = null;
    try {
      // `mode=rw`: if the file has disappeared, SQLite must not create one with its own mode.
      const url = pathToFileURL(path);
      url.searchParams.set("mode", "rw");
      database = new DatabaseSync(url, { timeout: 0 });
      // A power cut can lose part of the log, which is then indexed again. Checkpoints are synced, so nothing else is
      // lost.
      database.exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=${WAL_BYTES_KEPT}`);
      prepareSchema(database);
      if (!hasSchema(database, SCHEMA)) throw anotherSchema();
      if (!isInPlace(file)) throw stale(path);
      return new Base(new Tables(database), database, file);
    } catch (error) {
      database?.close();
      throw isInPlace(file) ? error : stale(path, error);
    }
  }

  get isFile(): boolean {
    return this.#file !== null;
  }

  get isInStore(): boolean {
    return this.#database === null;
  }

  /** Does the name still refer to the open file? Someone may have deleted the file: it is derived (C22). */
  isInPlace(): boolean {
    return this.#file === null || isInPlace(this.#file);
  }

  close(): void {
    if (this.#database?.isOpen) this.#database.close();
  }
}

function isInPlace({ disk, path, identity }: OpenFile): boolean {
  try {
    const found = disk.stat(path);
    return found?.dev === identity.dev && found.ino === identity.ino;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return false;
  }
}

/** The file was replaced or deleted while it was being opened. */
function stale(path: string, cause?: unknown): Error {
  return Object.assign(new Error(`${path} was replaced`, { cause }), { code: "ESTALE" });
}

/**
 * Retries for `patienceMs` while another process is writing, without blocking this one. Throws IndexFailure for
 * failures of the index; other errors pass through unchanged.
 */
export async function patiently<T>(patienceMs: number, work: () => Answer<T>): Promise<T> {
  const until = performance.now() + patienceMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (isHoldfastError(error)) throw error;
      if (sqliteCode(error) === undefined && errnoOf(error) === undefined) throw error;
      const failure = new IndexFailure(error);
      if (failure.why !== "busy" || performance.now() >= until) throw failure;
    }
    // Randomised, so that waiting processes do not keep colliding.
    await sleep(1 + Math.random() * 4);
  }
}

/**
 * If something that is not our file is in place of the index, the search does not fail: the index is kept in memory.
 */
function makeFile(disk: Disk, path: string): DiskStat {
  try {
    return makeDatabaseFile(disk, path);
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    throw Object.assign(new Error(error.message, { cause: error }), { code: "ELOOP" });
  }
}

function prepareSchema(database: DatabaseSync): void {
  if (versionOf(database) === SCHEMA_VERSION) return;
  database.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have created it first.
    const version = versionOf(database);
    if (version === 0) database.exec(SCHEMA);
    else if (version !== SCHEMA_VERSION) throw anotherSchema();
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function anotherSchema(): Error {
  return Object.assign(new Error("another schema"), { code: "EINVAL" });
}

function versionOf(database: DatabaseSync): number {
  return (database.prepare("PRAGMA user_version").get() as { user_version: number }).user_version;
}

const WHY = new Map<number, IndexFailure["why"]>([
  [BUSY, "busy"],
  [LOCKED, "busy"],
  [PROTOCOL, "busy"],
  [PERM, "place"],
  [READONLY, "place"],
  [FULL, "place"],
  [CANTOPEN, "place"],
  [AUTH, "place"],
]);
const PLACE_ERRNOS = new Set([
  "EACCES",
  "EPERM",
  "EROFS",
  "ENOSPC",
  "EDQUOT",
  "EFBIG",
  "ELOOP",
  "ENOENT",
  "ENOTDIR",
  "EMFILE",
]);

function reasonOf(error: unknown): IndexFailure["why"] {
  const code = sqliteCode(error);
  if (code !== undefined) return WHY.get(code) ?? "content";
  const errno = errnoOf(error) ?? "";
  // Another process is recreating it right now.
  if (errno === "ESTALE") return "busy";
  return PLACE_ERRNOS.has(errno) ? "place" : "content";
}
