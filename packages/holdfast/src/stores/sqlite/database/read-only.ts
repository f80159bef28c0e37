import type { DatabaseSync } from "node:sqlite";
import type { Disk } from "../../../disk/disk.ts";
import { HoldfastError } from "../../../errors.ts";
import { storeClosed } from "../../../journal/refusals.ts";
import { Rows } from "../rows/rows.ts";
import { connect } from "./connection.ts";
import type { Reads } from "./database.ts";
import { isSqliteError, sqliteFailure } from "./failure.ts";
import { identityOf, readRecorded } from "./name.ts";
import { readVersion } from "./schema.ts";

/**
 * A database that this process may not write to: on a read-only medium, or another user's. It creates neither files nor
 * locks next to it, so the owner finds it unchanged.
 *
 * SQLite is told that the file does not change, and every read checks that. A log that has content cannot be read
 * without writing, and skipping it would skip the newest records.
 */
export class ReadOnlyDatabase implements Reads {
  readonly file: string;
  readonly warnings: readonly string[];
  readonly #disk: Disk;
  readonly #forbidden: string;
  readonly #sqlite: DatabaseSync;
  readonly #rows: Rows;
  /** What must not change while it is open. */
  readonly #stamp: string;

  private constructor(disk: Disk, file: string, forbidden: string) {
    this.file = file;
    this.#disk = disk;
    this.#forbidden = forbidden;
    // Before opening: a change in between is then detected.
    this.#stamp = stampOf(disk, file);
    if ((disk.stat(`${file}-wal`)?.size ?? 0) > 0) throw logNotRead(file);
    this.#sqlite = connect(file, "immutable");
    try {
      if (readVersion(this.#sqlite, file) === 0) throw isEmpty(file);
      this.#rows = new Rows(this.#sqlite);
      this.warnings = warningsOf(disk, file, this.#sqlite);
    } catch (error) {
      this.#sqlite.close();
      throw error;
    }
  }

  /**
   * `forbidden`: the system error that says why it may not be written to. Throws STORE_FORBIDDEN, STORE_URL_INVALID,
   * FORMAT_NEWER, JOURNAL_UNREADABLE, STORE_IO.
   */
  static open(disk: Disk, file: string, forbidden: string): ReadOnlyDatabase {
    try {
      return new ReadOnlyDatabase(disk, file, forbidden);
    } catch (error) {
      throw sqliteFailure(error, "open the store for reading", file, "Nothing was touched.");
    }
  }

  async read<T>(what: string, work: (rows: Rows) => T): Promise<T> {
    if (!this.#sqlite.isOpen) throw storeClosed(`sqlite:${this.file}`);
    try {
      const result = work(this.#rows);
      if (this.#hasChanged()) throw this.#changed(what);
      return result;
    } catch (error) {
      // A mix of an old page and a new one is not damage.
      if (isSqliteError(error) && this.#hasChanged()) throw this.#changed(what);
      throw sqliteFailure(error, what, this.file, "Nothing was touched.");
    }
  }

  /** The error that every write throws. */
  refuse(what: string): HoldfastError {
    const why =
      this.#forbidden === "EROFS"
        ? "the file system is mounted read-only"
        : "this process may not write to the file or its folder";
    const message =
      `Could not ${what}: the store ${this.file} is open read-only, because ${why} (${this.#forbidden}). Nothing was written. ` +
      "Check the owner and the mode of both, and how the file system is mounted.";
    return new HoldfastError("STORE_FORBIDDEN", message, { path: this.file, errno: this.#forbidden });
  }

  close(): void {
    if (this.#sqlite.isOpen) this.#sqlite.close();
  }

  #hasChanged(): boolean {
    return this.#stamp !== stampOf(this.#disk, this.file);
  }

  #changed(what: string): HoldfastError {
    const message = `Could not ${what}: another process has since opened the store ${this.file} for writing. Nothing was touched. Open it again when that process has closed it.`;
    return new HoldfastError("STORE_BUSY", message, { url: `sqlite:${this.file}`, holder: null, sameProcess: false });
  }
}

function stampOf(disk: Disk, file: string): string {
  const found = disk.stat(file);
  const log = disk.stat(`${file}-wal`)?.size ?? 0;
  return `${identityOf(found)} ${found?.size} ${found?.mtimeMs} ${log}`;
}

function warningsOf(disk: Disk, file: string, sqlite: DatabaseSync): string[] {
  const found = disk.stat(file);
  const warnings: string[] = [];
  if ((found?.links ?? 1) > 1)
    warnings.push(
      `${file} has other names (hard links). What was written under one of those may be missing here, until it is closed there.`,
    );
  const recorded = readRecorded(sqlite);
  if (recorded?.open && recorded.file === identityOf(found))
    warnings.push(
      `${file} was not closed by its last writer, and its log (${recorded.path}-wal) is not here: the newest records may be missing.`,
    );
  return warnings;
}

function logNotRead(file: string): HoldfastError {
  const message =
    `The store ${file} was not opened: it is in use or was not closed, and its log ${file}-wal, which holds the newest records, cannot be read without write access. ` +
    "Nothing was touched. Close it where it is in use, or copy both files to a writable folder and open the copy.";
  return new HoldfastError("STORE_FORBIDDEN", message, { path: `${file}-wal` });
}

function isEmpty(file: string): HoldfastError {
  const message = `There is no store in ${file}: the file is empty and not writable. Nothing was touched. Use another file, or check its owner and mode.`;
  return new HoldfastError("STORE_FORBIDDEN", message, { path: file });
}
