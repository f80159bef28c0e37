import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { isHoldfastError } from "../../../errors.ts";
import { storeClosed } from "../../../journal/refusals.ts";
import { Rows } from "../rows/rows.ts";
import { assertSame, type Connection } from "./connection.ts";
import { isBusy, isCorrupt, isSqliteError, sqliteFailure } from "./failure.ts";
import type { FlagLock } from "./flag-lock.ts";
import { isSameRecord, type Name, readRecorded, writeRecorded } from "./name.ts";

/** The transaction of another writer takes microseconds, so it is waited for inside the call for this long. */
const SPIN_MS = 2;
/** After this long of trying again, somebody is told. */
export const BUSY_MS = 10_000;
/** How long a reader that stays in the log is waited for before the first write under a name. */
const RECORD_MS = 500;
/** How long others are waited for when the store is closed. */
const CLOSE_MS = 1000;

/** A database that can be read. */
export interface Reads {
  readonly file: string;
  /** What whoever opens it is told. */
  readonly warnings: readonly string[];
  /** Runs `work` as one read, as soon as it can be done, without blocking this process. Throws our errors. */
  read<T>(what: string, work: (rows: Rows) => T): Promise<T>;
  /** The same while nobody else does anything to the database: what `work` finds damaged is so. */
  readAlone<T>(what: string, work: (rows: Rows) => T): Promise<T>;
}

export interface DatabaseParts {
  readonly disk: Disk;
  readonly file: string;
  readonly connection: Connection;
  readonly lock: FlagLock;
  readonly name: Name;
  /** The file and its log, as they were opened. */
  readonly identity: DiskStat;
  readonly log: DiskStat;
}

/**
 * The database file of a store, for reading and writing. All its transactions begin and end inside one call, so it
 * never holds a lock, nor a snapshot that keeps others from tidying up, while JavaScript waits for something.
 */
export class Database implements Reads {
  readonly file: string;
  readonly warnings: readonly string[] = [];
  readonly rows: Rows;
  readonly #parts: DatabaseParts;
  readonly #sqlite: DatabaseSync;
  readonly #lock: FlagLock;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #passive: StatementSync;
  readonly #truncate: StatementSync;
  #isRecorded = false;
  #closed = false;

  /** Throws what SQLite throws. */
  constructor(parts: DatabaseParts) {
    const { sqlite } = parts.connection;
    this.#parts = parts;
    this.file = parts.file;
    this.#sqlite = sqlite;
    this.#lock = parts.lock;
    this.#begin = sqlite.prepare("BEGIN IMMEDIATE");
    this.#commit = sqlite.prepare("COMMIT");
    this.#passive = sqlite.prepare("PRAGMA main.wal_checkpoint(PASSIVE)");
    this.#truncate = sqlite.prepare("PRAGMA main.wal_checkpoint(TRUNCATE)");
    this.rows = new Rows(sqlite);
  }

  /** One statement that writes, and commits by itself. Throws what SQLite throws. */
  write<T>(work: () => T): T {
    return this.#lock.use("write", work);
  }

  /** All of it or nothing. `work` is synchronous. Throws what SQLite throws. */
  transaction<T>(work: () => T): T {
    return this.#lock.use("write", () => {
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
    });
  }

  /**
   * Moves commits from the log to the database file and syncs that: as many as readers allow (PASSIVE), or all of them,
   * and the log is cut to nothing (TRUNCATE). Whether all were moved. Throws what SQLite throws, and FILE_REPLACED.
   */
  checkpoint(mode: "PASSIVE" | "TRUNCATE"): boolean {
    return this.#lock.use("alone", () => {
      // Somebody else's log would not be ours: what is moved out of it would replace newer pages by older ones.
      this.assertMine();
      const { busy, log, checkpointed } = (mode === "PASSIVE" ? this.#passive : this.#truncate).get()!;
      return busy === 0 && log === checkpointed;
    });
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

  async read<T>(what: string, work: (rows: Rows) => T): Promise<T> {
    return this.retry(what, () => {
      try {
        return this.#lock.use("read", () => work(this.rows));
      } catch (error) {
        // A reader that has lost its locks can see pages of different times: only what is damaged for a second look is
        // damaged.
        if (!isCorrupt(error)) throw error;
        return this.#lock.use("alone", () => work(this.rows));
      }
    });
  }

  readAlone<T>(what: string, work: (rows: Rows) => T): Promise<T> {
    return this.retry(what, () => this.#lock.use("alone", () => work(this.rows)));
  }

  /** Throws FILE_REPLACED if the database, or its log, is no longer the file that was opened (S12). */
  assertMine(): void {
    const { disk, identity, log } = this.#parts;
    assertSame(disk, this.file, identity);
    assertSame(disk, `${this.file}-wal`, log);
  }

  /** The same of the file that keeps users out of each other's way. */
  assertShared(): void {
    this.#lock.assertInPlace();
  }

  /**
   * The database file, not the log, says that something is written under this name from now on. A reader that stays in
   * the log can keep this from happening: then it is left out, since that reader is nobody of ours.
   */
  async recordUse(): Promise<void> {
    if (this.#isRecorded) return;
    const until = performance.now() + RECORD_MS;
    const record = (): boolean =>
      this.#lock.use("alone", () => {
        const { name } = this.#parts;
        const recorded = readRecorded(this.#sqlite);
        if (recorded?.open && isSameRecord(recorded, name)) return true;
        this.transaction(() => writeRecorded(this.#sqlite, name, true));
        return this.checkpoint("PASSIVE");
      });
    while (!(await this.retry("record the use of the store", record)) && performance.now() < until)
      await sleep(busyPauseMs());
    this.#isRecorded = true;
  }

  /**
   * `isTrusted`: the log is known to be in order, so that whoever is the last one may move it to the database. Whatever
   * goes wrong, the log stays where it is, and nothing is lost.
   */
  async close(isTrusted: boolean): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const { connection } = this.#parts;
    try {
      if (isTrusted) await retryBusy(() => this.#lock.use("alone", () => this.#endIfLast()), CLOSE_MS);
    } catch (error) {
      if (!isSqliteError(error) && !isHoldfastError(error)) throw error;
    } finally {
      connection.leave();
      this.#lock.close();
    }
  }

  #endIfLast(): void {
    if (this.#lock.isShared()) return;
    this.assertMine();
    if (readRecorded(this.#sqlite)?.open) {
      this.transaction(() => writeRecorded(this.#sqlite, this.#parts.name, false));
      if (!this.checkpoint("TRUNCATE")) return;
    }
    this.#parts.connection.end();
  }

  #assertOpen(): void {
    if (this.#closed) throw storeClosed(`sqlite:${this.file}`);
  }
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

export async function retryBusy<T>(work: () => T, forMs = BUSY_MS): Promise<T> {
  const until = performance.now() + forMs;
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
