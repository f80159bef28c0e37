import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { storeClosed } from "../../../journal/refusals.ts";
import { Rows } from "../rows/rows.ts";
import { assertSame } from "./connection.ts";
import { sqliteFailure } from "./failure.ts";
import type { FileLock } from "./file-lock.ts";

export interface DatabaseParts {
  readonly disk: Disk;
  readonly file: string;
  readonly sqlite: DatabaseSync;
  readonly lock: FileLock;
  /** The file and its log, as opened. */
  readonly identity: DiskStat;
  readonly log: DiskStat;
}

/**
 * The database file of a store, for reading and writing. Every transaction starts and ends inside one call, so nobody
 * ever waits for another one.
 */
export class Database {
  readonly file: string;
  /** Warnings for the caller that opens it. */
  readonly warnings: readonly string[];
  readonly rows: Rows;
  readonly #parts: DatabaseParts;
  readonly #logPath: string;
  readonly #sqlite: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  #closed = false;

  /** Throws SQLite's errors. */
  constructor(parts: DatabaseParts) {
    const { sqlite } = parts;
    this.#parts = parts;
    this.file = parts.file;
    this.warnings = parts.lock.warnings;
    this.#logPath = `${parts.file}-wal`;
    this.#sqlite = sqlite;
    this.#begin = sqlite.prepare("BEGIN IMMEDIATE");
    this.#commit = sqlite.prepare("COMMIT");
    this.rows = new Rows(sqlite);
  }

  /** All or nothing. `work` is synchronous. Throws SQLite's errors. */
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
   * Moves all commits from the log to the database file and syncs it; TRUNCATE then truncates the log. Throws SQLite's
   * errors and FILE_REPLACED.
   */
  checkpoint(mode: "PASSIVE" | "TRUNCATE"): void {
    // Another log must not be moved: it would replace newer pages with older ones.
    this.assertMine();
    this.#sqlite.prepare(`PRAGMA main.wal_checkpoint(${mode})`).get();
  }

  /** Throws HoldfastError. */
  attempt<T>(what: string, work: (rows: Rows) => T): T {
    if (this.#closed) throw storeClosed(`sqlite:${this.file}`);
    try {
      return work(this.rows);
    } catch (error) {
      throw sqliteFailure(error, what, this.file, "Nothing was written.");
    }
  }

  /** Throws FILE_REPLACED if the database, or its log, is no longer the file that was opened (S12). */
  assertMine(): void {
    const { disk, identity, log } = this.#parts;
    assertSame(disk, this.file, identity);
    assertSame(disk, this.#logPath, log);
  }

  /** SQLite moves the log into the database file, syncs it, and removes the log. If that fails, the log stays. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#sqlite.close();
    } finally {
      this.#parts.lock.release();
    }
  }
}
