import { setTimeout as sleep } from "node:timers/promises";
import { removeDatabase } from "../disk/database-file.ts";
import { DerivedDatabase, type DerivedSchema } from "../disk/derived-database.ts";
import { descriptorFailure } from "../disk/descriptors.ts";
import type { Disk } from "../disk/disk.ts";
import { diskFailure, isGeneral } from "../disk/failure.ts";
import { SQLITE, sqliteCode } from "../disk/sqlite-error.ts";
import { errnoOf, isHoldfastError } from "../errors.ts";
import { jitter } from "../jitter.ts";
import type { Answer, TextTables } from "../journal/texts.ts";
import { SCHEMA, Tables } from "./tables.ts";

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

/** Where an index is kept: in a file that several processes share, in the store's own tables, or in memory. */
export class Base {
  readonly tables: TextTables;
  /** Null if it is in the store. */
  readonly database: DerivedDatabase | null;

  private constructor(tables: TextTables, database: DerivedDatabase | null) {
    this.tables = tables;
    this.database = database;
  }

  static inStore(tables: TextTables): Base {
    return new Base(tables, null);
  }

  static inMemory(schema = SCHEMA): Base {
    const database = DerivedDatabase.inMemory(schema);
    return new Base(new Tables(database), database);
  }

  /** Throws errors of SQLite and of the disk. */
  static inFile(disk: Disk, path: string, schema = SCHEMA): Base {
    try {
      const database = DerivedDatabase.open(disk, path, schema, { survivesPowerCut: true });
      return new Base(new Tables(database), database);
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      // If something that is not our file is in its place, the search does not fail: the index is kept in memory.
      throw Object.assign(new Error(error.message, { cause: error }), { code: "ELOOP" });
    }
  }

  get isFile(): boolean {
    return this.database?.isFile === true;
  }

  get isInStore(): boolean {
    return this.database === null;
  }

  /** Does the name still refer to the open file? */
  isInPlace(): boolean {
    return this.database?.isInPlace() ?? true;
  }

  close(): void {
    try {
      this.database?.close();
    } catch (error) {
      // Only a restart of the system makes a difference: then it is built again.
      if (sqliteCode(error) === undefined && errnoOf(error) === undefined) throw error;
    }
  }
}

/** How often an index is rebuilt before one in memory replaces it. */
const TRIES_MAX = 2;

export interface BaseOptions {
  readonly disk: Disk;
  readonly patienceMs: number;
  /** That of `Tables`, perhaps with more tables. */
  readonly schema?: DerivedSchema;
}

/** The index in its file, built again if it is unusable; in memory, if there is no path or no file can be used. */
export async function openBase(path: string | null, { disk, patienceMs, schema }: BaseOptions): Promise<Base> {
  for (let tries = 1; path !== null; tries++) {
    try {
      return await patiently(patienceMs, () => Base.inFile(disk, path, schema));
    } catch (error) {
      if (!(error instanceof IndexFailure)) throw error;
      if (error.why !== "content" || tries > TRIES_MAX) break;
      removeDatabase(disk, path);
    }
  }
  return Base.inMemory(schema);
}

/**
 * Retries for `patienceMs` while another process is writing, without blocking this one. Throws IndexFailure for
 * failures of the index, STORE_IO while no descriptor is free; other errors pass through unchanged.
 */
export async function patiently<T>(patienceMs: number, work: () => Answer<T>): Promise<T> {
  const until = performance.now() + patienceMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (isHoldfastError(error)) throw error;
      if (sqliteCode(error) === undefined && errnoOf(error) === undefined) throw error;
      // Nothing is wrong with the index, and the next call can use it.
      const momentary = isGeneral(error) ? error : descriptorFailure();
      if (momentary !== null)
        throw diskFailure(momentary, "use the search index", "search.sqlite", "The sessions are not affected.");
      const failure = new IndexFailure(error);
      if (failure.why !== "busy" || performance.now() >= until) throw failure;
    }
    await sleep(jitter(3));
  }
}

const WHY = new Map<number, IndexFailure["why"]>([
  [SQLITE.BUSY, "busy"],
  [SQLITE.LOCKED, "busy"],
  [SQLITE.PROTOCOL, "busy"],
  [SQLITE.PERM, "place"],
  [SQLITE.READONLY, "place"],
  [SQLITE.FULL, "place"],
  [SQLITE.CANTOPEN, "place"],
  [SQLITE.AUTH, "place"],
]);
const PLACE_ERRNOS = new Set(["EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EFBIG", "ELOOP", "ENOENT", "ENOTDIR"]);

function reasonOf(error: unknown): IndexFailure["why"] {
  const code = sqliteCode(error);
  if (code !== undefined) return WHY.get(code) ?? "content";
  const errno = errnoOf(error) ?? "";
  // Another process is recreating it right now.
  if (errno === "ESTALE") return "busy";
  return PLACE_ERRNOS.has(errno) ? "place" : "content";
}
