import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { diskFailure } from "../../../disk/failure.ts";
import { errnoOf, HoldfastError, isHoldfastError } from "../../../errors.ts";
import { Connection, connect, pragma } from "./connection.ts";
import { Database, retryBusy } from "./database.ts";
import { isBusy, sqliteFailure } from "./failure.ts";
import { FlagLock } from "./flag-lock.ts";
import {
  hasSeveralNames,
  identityOf,
  inUseElsewhere,
  judgeName,
  lookAt,
  type Name,
  nameOf,
  type Recorded,
  readRecorded,
  refuseName,
  writeRecorded,
} from "./name.ts";
import { makeTables, readVersion, SCHEMA_VERSION } from "./schema.ts";

/** Older versions can corrupt a WAL that several processes write to (S21). */
const SQLITE_VERSION_MIN = "3.51.3";
/** The maximum log size to keep after a large record has passed through it. */
const WAL_BYTES_KEPT = 16 * 1024 * 1024;
/** How long to wait for a process that only reads the file briefly, before it counts as using another name. */
const ELSEWHERE_MS = 1000;
/** The smallest SQLite page: a database file has at least this size, or is empty. */
const PAGE_BYTES_MIN = 512;

/**
 * Opens a database file for reading and writing, or creates it. Throws PATH_UNSAFE, STORE_URL_INVALID, STORE_FORBIDDEN,
 * STORE_FULL, STORE_IO, FORMAT_NEWER, NOT_SUPPORTED, JOURNAL_UNREADABLE.
 */
export async function openDatabase(disk: Disk, file: string): Promise<Database> {
  makeFile(disk, file);
  const folder = `${file}-locks`;
  const found = LOG_FILES.some((ending) => disk.stat(file + ending));
  try {
    // Create nothing next to a file that is not ours.
    if (!disk.stat(folder)) await retryBusy(() => assertOurs(file));
    disk.makeFolder(folder);
    const lock = FlagLock.open(disk, folder);
    try {
      const patience = new Patience();
      return await retryBusy(() => lock.use("alone", () => openAlone(disk, file, folder, lock, patience)));
    } catch (error) {
      if (!found && isHoldfastError(error, "PATH_UNSAFE")) await tidyUp(disk, file, lock);
      lock.close();
      throw error;
    }
  } catch (error) {
    throw sqliteFailure(error, "open the store", file, "Nothing was written to it.");
  }
}

/** Waits for somebody who has the file open. It starts with the first refusal: waiting for flags does not count. */
class Patience {
  #until = 0;

  isOver(): boolean {
    const now = performance.now();
    this.#until ||= now + ELSEWHERE_MS;
    return now > this.#until;
  }
}

/** Throws NOT_SUPPORTED if this SQLite is too old to be safe. */
export function assertSqliteVersion(version: string): void {
  const found = version.split(".").map(Number);
  const needed = SQLITE_VERSION_MIN.split(".").map(Number);
  for (let i = 0; i < needed.length; i++) {
    const difference = (found[i] ?? 0) - needed[i]!;
    if (difference > 0) return;
    if (!(difference === 0)) {
      const message =
        `This Node has SQLite ${version}, but the SQLite store needs ${SQLITE_VERSION_MIN} or newer: with older versions, a file that several ` +
        "processes write to can be corrupted. Nothing was touched. Use a newer Node, or the folder store.";
      throw new HoldfastError("NOT_SUPPORTED", message, { found: version, needed: SQLITE_VERSION_MIN });
    }
  }
}

/** Runs while no other Holdfast process uses the database under this name. */
function openAlone(disk: Disk, file: string, folder: string, lock: FlagLock, patience: Patience): Database {
  const name = nameOf(disk, file, folder);
  let connection = Connection.open(file);
  try {
    const previous = previousUse(disk, connection.sqlite, name);
    if (previous !== "this") {
      connection.leave();
      takeFile(file, name, previous, patience);
      connection = Connection.open(file);
    }
    const { sqlite } = connection;
    sqlite.exec(`PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=${WAL_BYTES_KEPT}; PRAGMA secure_delete=FAST`);
    // An invalid page is refused when it is read, not when it is written to.
    sqlite.exec("PRAGMA cell_size_check=ON");
    // SQLite hides the errors of its own checkpoints, so the store makes them itself (P8); this is for what it may have
    // miscounted.
    sqlite.exec("PRAGMA wal_autocheckpoint=10000");
    // Without these, fsync on macOS leaves the bytes in the drive's cache.
    sqlite.exec("PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON");
    // Starts a write, so that a missing permission is reported now.
    sqlite.exec("BEGIN IMMEDIATE; COMMIT");
    const [identity, log] = [mustStat(disk, file), mustStat(disk, `${file}-wal`)];
    if (name.file !== identityOf(identity)) throw wentAway(file);
    return new Database({ disk, file, connection, lock, name, identity, log });
  } catch (error) {
    connection.leave();
    throw error;
  }
}

/**
 * The name the database was used under so far, if any; "this" if it is the same name and nothing is missing. Throws
 * PATH_UNSAFE if it must keep that name.
 */
function previousUse(disk: Disk, sqlite: DatabaseSync, name: Name): Recorded | null | "this" {
  const version = readVersion(sqlite, name.path);
  if (version === 0 || pragma(sqlite, "journal_mode") !== "wal") return null;
  const recorded = readRecorded(sqlite);
  if (!recorded) return null;
  const logBytes = disk.stat(`${name.path}-wal`)?.size ?? 0;
  const verdict = judgeName(recorded, name, lookAt(disk, recorded, name), logBytes);
  if (verdict === "mine") return version === SCHEMA_VERSION ? "this" : null;
  if (verdict !== "take") throw refuseName(verdict, recorded, name);
  return recorded;
}

/**
 * Creates what is missing and records the name in the database file itself, where everyone sees it under any name. Only
 * while nobody else has the file open: that is a lock on the file itself, which works under every name. Throws errors
 * that `isBusy` recognises.
 */
function takeFile(file: string, name: Name, previous: Recorded | null, patience: Patience): void {
  const sqlite = connect(file, "rw");
  try {
    sqlite.exec("PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=FULL");
    sqlite.exec("PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON");
    const mode = pragma(sqlite, "journal_mode=WAL", "journal_mode");
    if (mode !== "wal") throw noLog(file, mode);
    sqlite.exec("BEGIN IMMEDIATE");
    try {
      makeTables(sqlite, file);
      writeRecorded(sqlite, name, false);
      sqlite.exec("COMMIT");
    } catch (error) {
      if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
      throw error;
    }
    sqlite.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
  } catch (error) {
    if (previous && isBusy(error) && patience.isOver()) throw inUseElsewhere(previous, name);
    throw error;
  } finally {
    sqlite.close();
  }
}

function notADatabase(file: string): HoldfastError {
  const message = `The store ${file} was not opened: the file is not an SQLite database. Nothing was touched. Use another file.`;
  return new HoldfastError("STORE_URL_INVALID", message, { path: file });
}

function noLog(file: string, mode: unknown): HoldfastError {
  const message = `The store ${file} cannot be used: SQLite uses the journal mode "${mode}" there instead of "wal". Nothing was written. Keep it on a local file system.`;
  return new HoldfastError("NOT_SUPPORTED", message, { path: file, journalMode: String(mode) });
}

/** Throws STORE_URL_INVALID for another program's database, and so on. */
function assertOurs(file: string): void {
  const sqlite = connect(file, "rw");
  try {
    readVersion(sqlite, file);
  } finally {
    sqlite.close();
  }
}

function mustStat(disk: Disk, path: string): DiskStat {
  const stat = disk.stat(path);
  if (!stat) throw wentAway(path);
  return stat;
}

function wentAway(path: string): HoldfastError {
  const message = `${path} was replaced or removed while it was being opened. Nothing was written. Open the store again.`;
  return new HoldfastError("FILE_REPLACED", message, { path });
}

const LOG_FILES = ["-wal", "-shm"];

/** Removes the empty log next to a name that is not used. If that fails, it stays: the refusal is what matters. */
async function tidyUp(disk: Disk, file: string, lock: FlagLock): Promise<void> {
  const removeLog = (): void => {
    if (lock.isShared() || (disk.stat(`${file}-wal`)?.size ?? 0) > 0) return;
    for (const ending of LOG_FILES) if (disk.stat(file + ending)) disk.remove(file + ending);
  };
  try {
    await retryBusy(() => lock.use("alone", removeLog));
  } catch (error) {
    if (!isBusy(error) && errnoOf(error) === undefined) throw error;
  }
}

/**
 * The file exists and is regular before SQLite sees it, with our own mode: SQLite gives `-wal` and `-shm` the same mode
 * (C24).
 */
function makeFile(disk: Disk, file: string): void {
  try {
    makeFolders(disk, dirname(file));
    if (!disk.stat(file)) {
      try {
        disk.open(file, "create").close();
      } catch (error) {
        if (errnoOf(error) !== "EEXIST") throw error;
      }
      disk.syncFolder(dirname(file));
    }
    for (const path of [file, `${file}-wal`, `${file}-shm`, `${file}-journal`]) assertRegular(disk, path);
    const { links, size } = mustStat(disk, file);
    if (links > 1) throw hasSeveralNames(file, links);
    // SQLite would treat it as an empty database. If a process was killed while creating it, there is a journal next to
    // it.
    if (size > 0 && size < PAGE_BYTES_MIN && !disk.stat(`${file}-journal`)) throw notADatabase(file);
  } catch (error) {
    throw diskFailure(error, "create the database file", file, "Nothing was written.");
  }
}

export function assertRegular(disk: Disk, path: string): void {
  const found = disk.stat(path);
  if (!found || found.kind === "file") return;
  const message = `${path} is a ${found.kind}, but a file belongs there. Nothing was touched. Use another file, or find out who put it there.`;
  throw new HoldfastError("PATH_UNSAFE", message, { path, found: found.kind });
}

function makeFolders(disk: Disk, folder: string): void {
  if (disk.stat(folder) || folder === dirname(folder)) return;
  makeFolders(disk, dirname(folder));
  disk.makeFolder(folder);
  disk.syncFolder(dirname(folder));
}
