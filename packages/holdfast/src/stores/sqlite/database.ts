import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { Disk, DiskStat } from "../../disk/disk.ts";
import { diskFailure } from "../../disk/failure.ts";
import { errnoOf, HoldfastError } from "../../errors.ts";
import { storeClosed } from "../../journal/refusals.ts";
import { isBusy, sqliteFailure } from "./failure.ts";
import { prepareSchema } from "./schema.ts";

/** Before it, a WAL that several processes write to can be corrupted (S21). */
const SQLITE_VERSION_MIN = "3.51.3";
/** The transaction of another writer takes microseconds, so it is waited for inside the call for this long. */
const SPIN_MS = 2;
/** After this long of trying again, somebody is told. */
export const BUSY_MS = 10_000;
/** The log keeps no more than this after a large record has been through it. */
const WAL_BYTES_KEPT = 16 * 1024 * 1024;

/**
 * One connection to the database file of a store. All its transactions begin and end inside one call, so it never holds a lock, nor a
 * snapshot that keeps others from tidying up, while JavaScript waits for something.
 */
export class Database {
  readonly file: string;
  readonly #disk: Disk;
  readonly #sqlite: DatabaseSync;
  readonly #identity: DiskStat;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #passive: StatementSync;
  readonly #truncate: StatementSync;
  #closed = false;

  private constructor(disk: Disk, file: string, sqlite: DatabaseSync, identity: DiskStat) {
    this.#disk = disk;
    this.file = file;
    this.#sqlite = sqlite;
    this.#identity = identity;
    this.#begin = sqlite.prepare("BEGIN IMMEDIATE");
    this.#commit = sqlite.prepare("COMMIT");
    this.#passive = sqlite.prepare("PRAGMA wal_checkpoint(PASSIVE)");
    this.#truncate = sqlite.prepare("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  /** Opens the file, or makes it. Throws PATH_UNSAFE, STORE_URL_INVALID, STORE_FORBIDDEN, STORE_FULL, STORE_IO, FORMAT_NEWER, NOT_SUPPORTED. */
  static async open(disk: Disk, file: string): Promise<Database> {
    assertSqliteVersion(process.versions["sqlite"] ?? "none");
    makeFile(disk, file);
    const identity = disk.stat(file);
    let sqlite: DatabaseSync | undefined;
    try {
      // `mode=rw`: if the file has gone meanwhile, SQLite must not make one with a mode of its own.
      const url = pathToFileURL(file);
      url.searchParams.set("mode", "rw");
      sqlite = new DatabaseSync(url, { timeout: 0 });
      const opened = sqlite;
      await retryBusy(() => prepareSchema(opened, file));
      sqlite.exec(`PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=${WAL_BYTES_KEPT}; PRAGMA secure_delete=FAST`);
      // SQLite keeps the errors of its own checkpoints to itself, so the store makes them (P8); this is for what it may have miscounted.
      sqlite.exec("PRAGMA wal_autocheckpoint=10000");
      // Without these, fsync on macOS leaves the bytes in the drive's cache.
      sqlite.exec("PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON");
      const database = new Database(disk, file, sqlite, identity!);
      database.assertMine();
      return database;
    } catch (error) {
      sqlite?.close();
      throw sqliteFailure(error, "open the store", file, "Nothing was written to it.");
    }
  }

  prepare(sql: string): StatementSync {
    return this.#sqlite.prepare(sql);
  }

  /** All of it or nothing. `work` is synchronous. Throws what SQLite throws. */
  transaction<T>(work: () => T): T {
    this.#begin.run();
    try {
      const result = work();
      this.#commit.run();
      return result;
    } catch (error) {
      // A full disk and I/O errors end the transaction by themselves.
      if (this.#sqlite.isTransaction) this.#sqlite.exec("ROLLBACK");
      throw error;
    }
  }

  /**
   * Moves commits from the log to the database file and syncs that: as many as readers allow (PASSIVE), or all of them, and the log is cut to
   * nothing (TRUNCATE). Whether all were moved. Throws what SQLite throws.
   */
  checkpoint(mode: "PASSIVE" | "TRUNCATE"): boolean {
    const { busy, log, checkpointed } = (mode === "PASSIVE" ? this.#passive : this.#truncate).get()!;
    return busy === 0 && log === checkpointed;
  }

  /** Tries `work` again for a moment while somebody else is writing, then throws what SQLite throws. */
  spin<T>(work: () => T): T {
    let until = 0;
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!isBusy(error)) throw error;
        const now = performance.now();
        if (until === 0) until = now + SPIN_MS;
        else if (now > until) throw error;
      }
    }
  }

  /** Tries `work` again while somebody else is writing, without blocking this process. Throws our errors. */
  async retry<T>(what: string, work: () => T): Promise<T> {
    try {
      return await retryBusy(() => {
        this.#assertOpen();
        return this.spin(work);
      });
    } catch (error) {
      throw sqliteFailure(error, what, this.file, "Nothing was written.");
    }
  }

  /** Is the file that the name leads to still the one that is open (S12)? */
  assertMine(): void {
    assertSame(this.#disk, this.file, this.#identity);
  }

  close(): void {
    this.#closed = true;
    this.#sqlite.close();
  }

  #assertOpen(): void {
    if (this.#closed) throw storeClosed(`sqlite:${this.file}`);
  }
}

/** Throws FILE_REPLACED if the name leads to another file, or to none. */
export function assertSame(disk: Disk, path: string, { dev, ino }: DiskStat): void {
  const found = disk.stat(path);
  if (found && found.dev === dev && found.ino === ino) return;
  const what = found ? "was replaced by another file" : "is gone";
  const message =
    `The database file ${path} ${what}. What was acknowledged before is not affected by this process; what waited is in doubt. ` +
    "Look at who moved it, and open the store again.";
  throw new HoldfastError("FILE_REPLACED", message, { path });
}

/** For callers that may block: sleeps between tries, up to BUSY_MS. */
export function retryBlocking<T>(work: () => T): T {
  const until = performance.now() + BUSY_MS;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw error;
      Atomics.wait(NEVER, 0, 0, 1);
    }
  }
}

const NEVER = new Int32Array(new SharedArrayBuffer(4));

async function retryBusy<T>(work: () => T): Promise<T> {
  const until = performance.now() + BUSY_MS;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw error;
    }
    await sleep(busyPauseMs());
  }
}

/** Not the same for all, or else those who wait meet again and again. */
export function busyPauseMs(): number {
  return 1 + Math.random() * 4;
}

/** Throws NOT_SUPPORTED if this SQLite is too old to be trusted. */
export function assertSqliteVersion(version: string): void {
  const found = version.split(".").map(Number);
  const needed = SQLITE_VERSION_MIN.split(".").map(Number);
  for (let i = 0; i < needed.length; i++) {
    const difference = (found[i] ?? 0) - needed[i]!;
    if (difference > 0) return;
    if (!(difference === 0)) {
      const message =
        `This Node has SQLite ${version}, and the SQLite store needs ${SQLITE_VERSION_MIN} or newer: before it, a file that several ` +
        "processes write to can be corrupted. Nothing was touched. Use a newer Node, or the folder store.";
      throw new HoldfastError("NOT_SUPPORTED", message, { found: version, needed: SQLITE_VERSION_MIN });
    }
  }
}

/** The file is there and regular before SQLite sees it, with a mode of ours: SQLite gives `-wal` and `-shm` the same one (C24). */
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
    for (const path of [file, `${file}-wal`, `${file}-shm`, `${file}-journal`]) {
      const found = disk.stat(path);
      if (!found || found.kind === "file") continue;
      const message = `${path} is a ${found.kind}, and a file belongs there. Nothing was touched. Name another file, or look at who put it there.`;
      throw new HoldfastError("PATH_UNSAFE", message, { path, found: found.kind });
    }
  } catch (error) {
    throw diskFailure(error, "make the database file", file, "Nothing was written.");
  }
}

function makeFolders(disk: Disk, folder: string): void {
  if (disk.stat(folder) || folder === dirname(folder)) return;
  makeFolders(disk, dirname(folder));
  disk.makeFolder(folder);
  disk.syncFolder(dirname(folder));
}
