import type { DatabaseSync } from "node:sqlite";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { HoldfastError } from "../../../errors.ts";
import { storeClosed } from "../../../journal/refusals.ts";
import { Rows } from "../rows/rows.ts";
import { connect } from "./connection.ts";
import { type Reads, retryBusy } from "./database.ts";
import { busy, isCantOpen, isSqliteError, sqliteFailure } from "./failure.ts";
import { identityOf, readRecorded } from "./name.ts";
import { readVersion } from "./schema.ts";

/**
 * A database that this process may not write to: on a read-only medium, or another user's. It creates neither files nor
 * locks next to it, so the owner finds it unchanged.
 *
 * If the log and its index exist, SQLite reads through them. If there is no log, or an empty one, SQLite is told that
 * the file does not change, and needs neither; this is checked before and after each read. A log that has content but
 * no index cannot be read without writing, and skipping it would skip the newest records.
 */
export class ReadOnlyDatabase implements Reads {
  readonly file: string;
  readonly warnings: readonly string[];
  readonly #disk: Disk;
  readonly #forbidden: string;
  #open: OpenFile;
  #closed = false;

  private constructor(disk: Disk, file: string, forbidden: string, open: OpenFile) {
    this.file = file;
    this.#disk = disk;
    this.#forbidden = forbidden;
    this.#open = open;
    this.warnings = warningsOf(disk, file, open);
  }

  /**
   * `forbidden`: the system error that says why it may not be written to. Throws STORE_FORBIDDEN, STORE_URL_INVALID,
   * FORMAT_NEWER, JOURNAL_UNREADABLE, STORE_IO.
   */
  static async open(disk: Disk, file: string, forbidden: string): Promise<ReadOnlyDatabase> {
    try {
      return await retryBusy(() => new ReadOnlyDatabase(disk, file, forbidden, openFile(disk, file)));
    } catch (error) {
      throw sqliteFailure(error, "open the store for reading", file, "Nothing was touched.");
    }
  }

  async read<T>(what: string, work: (rows: Rows) => T): Promise<T> {
    try {
      return await retryBusy(() => {
        if (this.#closed) throw storeClosed(`sqlite:${this.file}`);
        this.#refresh();
        let result: T;
        try {
          result = work(this.#open.rows);
        } catch (error) {
          // A mix of an old page and a new one is not damage.
          if (isSqliteError(error) && this.#isStale()) throw busy("the database was changed while it was read");
          throw error;
        }
        if (this.#isStale()) throw busy("the database was changed while it was read");
        return result;
      });
    } catch (error) {
      throw sqliteFailure(error, what, this.file, "Nothing was touched.");
    }
  }

  readAlone<T>(what: string, work: (rows: Rows) => T): Promise<T> {
    return this.read(what, work);
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

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#open.sqlite.close();
  }

  #isStale(): boolean {
    return this.#open.stamp !== stampOf(this.#disk, this.file, this.#open.mode);
  }

  #refresh(): void {
    if (!this.#isStale()) return;
    const next = openFile(this.#disk, this.file);
    this.#open.sqlite.close();
    this.#open = next;
  }
}

interface OpenFile {
  readonly sqlite: DatabaseSync;
  readonly rows: Rows;
  readonly mode: Mode;
  /** What must not change while it is open in this mode. */
  readonly stamp: string;
}

type Mode = "ro" | "immutable";

function openFile(disk: Disk, file: string): OpenFile {
  const log = disk.stat(`${file}-wal`);
  const hasIndex = disk.stat(`${file}-shm`) !== null;
  if (log && hasIndex) {
    try {
      return openAs(disk, file, "ro");
    } catch (error) {
      if (!isCantOpen(error) || log.size > 0) throw isCantOpen(error) ? logNotRead(file, error) : error;
    }
  } else if ((log?.size ?? 0) > 0) throw logNotRead(file);
  return openAs(disk, file, "immutable");
}

function openAs(disk: Disk, file: string, mode: Mode): OpenFile {
  // Before opening: a change in between is then detected.
  const stamp = stampOf(disk, file, mode);
  const sqlite = connect(file, mode);
  try {
    if (readVersion(sqlite, file) === 0) throw isEmpty(file);
    return { sqlite, rows: new Rows(sqlite), mode, stamp };
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

/** With the log and its index, SQLite itself detects changes. */
function stampOf(disk: Disk, file: string, mode: Mode): string {
  const found = disk.stat(file);
  if (mode === "ro") return identityOf(found);
  const log = disk.stat(`${file}-wal`)?.size ?? 0;
  return `${identityOf(found)} ${found?.size} ${found?.mtimeMs} ${log}`;
}

function warningsOf(disk: Disk, file: string, { sqlite, mode }: OpenFile): string[] {
  const found = disk.stat(file);
  const warnings: string[] = [];
  if ((found?.links ?? 1) > 1)
    warnings.push(
      `${file} has other names (hard links). What was written under one of those may be missing here, until it is closed there.`,
    );
  const recorded = readRecorded(sqlite);
  if (mode === "immutable" && recorded?.open && recorded.file === identityOf(found as DiskStat))
    warnings.push(
      `${file} was not closed by its last writer, and its log (${recorded.path}-wal) is not here: the newest records may be missing.`,
    );
  return warnings;
}

function logNotRead(file: string, cause?: unknown): HoldfastError {
  const message =
    `The store ${file} was not opened: its log ${file}-wal holds records that are not in the database file yet, and it cannot be read without write access. ` +
    "Nothing was touched. Copy both files to a writable folder, and open the copy.";
  return new HoldfastError("STORE_FORBIDDEN", message, { path: `${file}-wal` }, cause);
}

function isEmpty(file: string): HoldfastError {
  const message = `There is no store in ${file}: the file is empty and not writable. Nothing was touched. Use another file, or check its owner and mode.`;
  return new HoldfastError("STORE_FORBIDDEN", message, { path: file });
}

/**
 * A disk on which nothing is created, even where that is allowed: in a world-writable folder, such files would get in
 * the owner's way.
 */
export function withoutWriting(disk: Disk): Disk {
  const refuse = (): never => {
    throw Object.assign(new Error("EROFS: the store is open read-only"), { code: "EROFS" });
  };
  return {
    ...disk,
    open: (path, mode) => (mode === "read" ? disk.open(path, mode) : refuse()),
    makeFolder: refuse,
    rename: refuse,
    link: refuse,
    remove: refuse,
    removeFolder: refuse,
    lock: refuse,
    hardLock: refuse,
  };
}
