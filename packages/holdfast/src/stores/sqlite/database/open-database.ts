import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { diskFailure } from "../../../disk/failure.ts";
import { makeFolders, syncNames } from "../../../disk/folders.ts";
import { isMountPoint } from "../../../disk/node-disk.ts";
import { errnoOf, HoldfastError } from "../../../errors.ts";
import { identity } from "../../lease-note.ts";
import { connect, pragma } from "./connection.ts";
import { Database } from "./database.ts";
import { isBusy, sqliteFailure } from "./failure.ts";
import { FileLock, inUse, lockPath } from "./file-lock.ts";
import { makeTables, readVersion } from "./schema.ts";

/** The maximum log size to keep after a large record has passed through it. */
const WAL_BYTES_KEPT = 16 * 1024 * 1024;
/** How long to wait for another program that only reads the file briefly. */
const OTHERS_MS = 1000;
const RETRY_MS = 10;
/** The smallest SQLite page: a database file has at least this size, or is empty. */
const PAGE_BYTES_MIN = 512;

/** Who opens it, for those who cannot. */
export interface Opener {
  readonly app: string;
  readonly since: string;
}

/**
 * Opens an existing database file (`makeFile`) for reading and writing. Throws STORE_BUSY, PATH_UNSAFE,
 * STORE_URL_INVALID, STORE_FORBIDDEN, STORE_FULL, STORE_IO, FORMAT_NEWER, NOT_SUPPORTED, JOURNAL_UNREADABLE.
 */
export async function openDatabase(disk: Disk, file: string, opener: Opener): Promise<Database> {
  try {
    // Create nothing next to a file that is not ours.
    if (!disk.stat(lockPath(file))) await patiently(() => assertOurs(file));
    const lock = await FileLock.take(disk, file);
    try {
      return await patiently(() => openLocked(disk, file, lock, opener));
    } catch (error) {
      lock.release();
      throw isBusy(error) ? lock.refusal() : error;
    }
  } catch (error) {
    if (isBusy(error)) throw inUse(disk, file);
    throw sqliteFailure(error, "open the store", file, "Nothing was written to it.");
  }
}

/** Waits for another program that has the file open. */
async function patiently<T>(open: () => T): Promise<T> {
  const until = performance.now() + OTHERS_MS;
  for (;;) {
    try {
      return open();
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw error;
    }
    await sleep(RETRY_MS);
  }
}

function openLocked(disk: Disk, file: string, lock: FileLock, { app, since }: Opener): Database {
  // Before it is opened: if the name leads to another file afterwards, it may be that one.
  const before = mustStat(disk, file);
  const sqlite = connect(file);
  try {
    if (readVersion(sqlite, file) === 0 || pragma(sqlite, "journal_mode") !== "wal") prepare(sqlite, file);
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
    const [opened, log] = [mustStat(disk, file), mustStat(disk, `${file}-wal`)];
    if (identity(opened) !== identity(before)) throw wentAway(file);
    const database = new Database({ disk, file, sqlite, lock, identity: opened, log });
    lock.announce(app, since);
    return database;
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

/** Creates what is missing. */
function prepare(sqlite: DatabaseSync, path: string): void {
  sqlite.exec("PRAGMA synchronous=FULL; PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON");
  const mode = pragma(sqlite, "journal_mode=WAL", "journal_mode");
  if (mode !== "wal") throw noLog(path, mode);
  sqlite.exec("BEGIN IMMEDIATE");
  try {
    makeTables(sqlite, path);
    sqlite.exec("COMMIT");
  } catch (error) {
    if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
    throw error;
  }
  sqlite.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
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
  const sqlite = connect(file);
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

/**
 * The file exists and is regular before SQLite sees it, with our own mode: SQLite gives its side files the same mode
 * (C24).
 */
export function makeFile(disk: Disk, file: string): DiskStat {
  try {
    if (!disk.stat(file)) {
      const made = makeFolders(disk, dirname(file));
      try {
        disk.open(file, "create").close();
      } catch (error) {
        if (errnoOf(error) !== "EEXIST") throw error;
      }
      syncNames(disk, dirname(file), made);
    }
    for (const path of [file, `${file}-wal`, `${file}-journal`]) assertRegular(disk, path);
    const found = mustStat(disk, file);
    if (found.links > 1) throw hasSeveralNames(file, found.links);
    if (isMountPoint(file)) throw mountedAlone(file);
    // SQLite would treat it as an empty database. If a process was killed while creating it, there is a journal next to
    // it.
    const isTooSmall = found.size > 0 && found.size < PAGE_BYTES_MIN;
    if (isTooSmall && !disk.stat(`${file}-journal`)) throw notADatabase(file);
    return found;
  } catch (error) {
    throw diskFailure(error, "create the database file", file, "Nothing was written.");
  }
}

function assertRegular(disk: Disk, path: string): void {
  const found = disk.stat(path);
  if (!found || found.kind === "file") return;
  const message = `${path} is a ${found.kind}, but a file belongs there. Nothing was touched. Use another file, or find out who put it there.`;
  throw new HoldfastError("PATH_UNSAFE", message, { path, found: found.kind });
}

/** Each name would have its own log and its own lock. */
function hasSeveralNames(path: string, links: number): HoldfastError {
  const message =
    `The store ${path} was not opened: the file has ${links} names (hard links), and what is written under one may be missing under the other. ` +
    "Nothing was touched. Remove the other names, or make a copy.";
  return new HoldfastError("PATH_UNSAFE", message, { path, links });
}

/** The log would stay on this side of the mount: in a container, it would end with it. */
function mountedAlone(path: string): HoldfastError {
  const message =
    `The store ${path} was not opened: this file alone is mounted here, so the newest records would be in a log that is missing where the file comes from. ` +
    "Nothing was touched. Mount the folder that contains it.";
  return new HoldfastError("PATH_UNSAFE", message, { path });
}
