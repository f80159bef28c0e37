import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { errnoOf, isHoldfastError } from "../../../errors.ts";
import { storeClosed } from "../../../journal/refusals.ts";
import { Rows } from "../rows/rows.ts";
import { assertSame, type Connection } from "./connection.ts";
import { isBusy, isCorrupt, isSqliteError, sqliteFailure } from "./failure.ts";
import { blockFor, type FlagLock } from "./flag-lock.ts";
import { isSameRecord, type Name, readRecorded, writeRecorded } from "./name.ts";

/** Another writer's transaction takes microseconds, so the call itself waits this long for it. */
const SPIN_MS = 2;
/**
 * After a call has waited in vain, no other call waits for this long: a thousand sessions that wait for their turn at
 * the same time would leave this process no time for anything else.
 */
const SPIN_REST_MS = 20;
/** After retrying for this long, an error is reported. */
export const BUSY_MS = 10_000;
/** How long to wait for a reader that stays in the log before the first write under a name. */
const RECORD_MS = 500;
/** How long to wait for others when the store is closed. */
const CLOSE_MS = 1000;

/** A readable database. */
export interface Reads {
  readonly file: string;
  /** Warnings for the caller that opens it. */
  readonly warnings: readonly string[];
  /** Runs `work` as one read as soon as possible, without blocking this process. Throws HoldfastError. */
  read<T>(what: string, work: (rows: Rows) => T): Promise<T>;
  /** The same while nobody else uses the database: damage that `work` finds is real. */
  readAlone<T>(what: string, work: (rows: Rows) => T): Promise<T>;
}

export interface DatabaseParts {
  readonly disk: Disk;
  readonly file: string;
  readonly connection: Connection;
  readonly lock: FlagLock;
  readonly name: Name;
  /** The file and its log, as opened. */
  readonly identity: DiskStat;
  readonly log: DiskStat;
}

/**
 * The database file of a store, for reading and writing. Every transaction starts and ends inside one call, so while
 * JavaScript waits it holds no lock, and no snapshot that keeps others from checkpointing.
 */
export class Database implements Reads {
  readonly file: string;
  readonly warnings: readonly string[] = [];
  readonly rows: Rows;
  readonly #parts: DatabaseParts;
  readonly #logPath: string;
  readonly #sqlite: DatabaseSync;
  readonly #lock: FlagLock;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #passive: StatementSync;
  readonly #truncate: StatementSync;
  #isRecorded = false;
  #restUntil = 0;
  #closed = false;

  /** Throws SQLite's errors. */
  constructor(parts: DatabaseParts) {
    const { sqlite } = parts.connection;
    this.#parts = parts;
    this.file = parts.file;
    this.#logPath = `${parts.file}-wal`;
    this.#sqlite = sqlite;
    this.#lock = parts.lock;
    this.#begin = sqlite.prepare("BEGIN IMMEDIATE");
    this.#commit = sqlite.prepare("COMMIT");
    this.#passive = sqlite.prepare("PRAGMA main.wal_checkpoint(PASSIVE)");
    this.#truncate = sqlite.prepare("PRAGMA main.wal_checkpoint(TRUNCATE)");
    this.rows = new Rows(sqlite);
  }

  /** Runs one writing statement, which commits by itself. Throws SQLite's errors. */
  write<T>(work: () => T): T {
    return this.#lock.use("write", work);
  }

  /** All or nothing. `work` is synchronous. Throws SQLite's errors. */
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
   * Moves commits from the log to the database file and syncs it: as many as readers allow (PASSIVE), or all of them,
   * truncating the log (TRUNCATE). Returns whether all were moved. Throws SQLite's errors and FILE_REPLACED.
   */
  checkpoint(mode: "PASSIVE" | "TRUNCATE"): boolean {
    return this.#lock.use("alone", () => {
      // Another process's log must not be moved: it would replace newer pages with older ones.
      this.assertMine();
      const { busy, log, checkpointed } = (mode === "PASSIVE" ? this.#passive : this.#truncate).get()!;
      return busy === 0 && log === checkpointed;
    });
  }

  /** Retries `work` briefly while another process is writing, then throws SQLite's error. Tries once in any case. */
  spin<T>(work: () => T): T {
    let until = 0;
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!isBusy(error)) throw error;
        const now = performance.now();
        if (now < this.#restUntil) throw error;
        if (until === 0) until = now + SPIN_MS;
        else if (now > until) {
          this.#restUntil = now + SPIN_REST_MS;
          throw error;
        }
      }
    }
  }

  /** Retries `work` while another process is writing, without blocking this one. Throws HoldfastError. */
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
        // A reader that has lost its locks can see pages from different times: only damage that a second read confirms
        // is real.
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
    assertSame(disk, this.#logPath, log);
  }

  /** The same check for the file that coordinates users (FlagLock). */
  assertShared(): void {
    this.#lock.assertInPlace();
  }

  /**
   * Records in the database file, not in the log, that this name is in use for writing. A reader that stays in the log
   * can prevent this; then it is skipped, because that reader is not Holdfast.
   */
  async recordUse(): Promise<void> {
    if (this.#isRecorded) return;
    let isWritten = false;
    const record = (): boolean =>
      this.#lock.use("alone", () => {
        const { name } = this.#parts;
        // Not again after it was written here: it would be found in the log.
        const recorded = isWritten ? null : readRecorded(this.#sqlite);
        if (recorded?.open && isSameRecord(recorded, name)) return true;
        if (!isWritten) this.transaction(() => writeRecorded(this.#sqlite, name, true));
        isWritten = true;
        return this.checkpoint("PASSIVE");
      });
    let until = 0;
    while (!(await this.retry("record the use of the store", record))) {
      // Not from the beginning: the first attempt may have waited for other processes.
      until ||= performance.now() + RECORD_MS;
      if (performance.now() > until) break;
      await sleep(busyPauseMs());
    }
    this.#isRecorded = true;
  }

  /**
   * `isTrusted`: the log is known to be intact, so the last user may move it into the database. If anything goes wrong,
   * the log stays where it is, and nothing is lost.
   */
  async close(isTrusted: boolean): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const { connection } = this.#parts;
    try {
      const leave = (): void => {
        this.#endIfLast();
        connection.leave();
        this.#lock.leave();
      };
      if (isTrusted) await retryBusy(() => this.#lock.use("alone", leave), CLOSE_MS);
    } catch (error) {
      if (!isSqliteError(error) && !isHoldfastError(error) && errnoOf(error) === undefined) throw error;
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

/** For callers that may block: sleeps between attempts. Tries once in any case. */
export function retryBlocking<T>(work: () => T, until = performance.now() + BUSY_MS): T {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw error;
      blockFor(1);
    }
  }
}

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

/** Randomised, so that waiting processes do not keep colliding. */
export function busyPauseMs(): number {
  return 1 + Math.random() * 4;
}
