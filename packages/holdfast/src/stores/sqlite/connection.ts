import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Disk, DiskStat } from "../../disk/disk.ts";
import { HoldfastError } from "../../errors.ts";

/** Neither the garbage collector nor the end of a thread may close one of these in an order of its own. */
const open = new Set<Connection>();

/**
 * A connection of SQLite's to a database in WAL mode, that can be left without touching the log. By itself SQLite takes whoever closes last, as far as its locks
 * tell, for the only one: it moves the log to the database, and deletes it. But locks get lost (see FlagLock), and a log that is
 * deleted, or moved to the database a second time by somebody whose log is no longer the one of the others, destroys the database.
 *
 * So there is a keeper, which can only read: while it is there SQLite sees that it is not alone, and a reader that closes last may not delete.
 * It is opened second, since at the end of a thread Node closes what was opened first.
 */
export class Connection {
  readonly sqlite: DatabaseSync;
  readonly #keeper: DatabaseSync;

  private constructor(sqlite: DatabaseSync, keeper: DatabaseSync) {
    this.sqlite = sqlite;
    this.#keeper = keeper;
  }

  /** Throws what SQLite throws. */
  static open(file: string): Connection {
    const sqlite = connect(file, "rw");
    let keeper: DatabaseSync | undefined;
    try {
      keeper = connect(file, "ro");
      // The keeper counts only when it has read something.
      keeper.prepare("PRAGMA user_version").get();
      const connection = new Connection(sqlite, keeper);
      open.add(connection);
      return connection;
    } catch (error) {
      sqlite.close();
      keeper?.close();
      throw error;
    }
  }

  /** Closes it, and leaves the log to others, or to the next one. */
  leave(): void {
    if (!open.delete(this)) return;
    this.sqlite.close();
    this.#keeper.close();
  }

  /** Closes it as the last one: SQLite moves the log to the database, and deletes it. */
  end(): void {
    if (!open.delete(this)) return;
    this.#keeper.close();
    this.sqlite.close();
  }
}

/** `immutable`: reads the file as it is, without locks and without its log. */
export function connect(file: string, mode: "rw" | "ro" | "immutable"): DatabaseSync {
  const url = pathToFileURL(file);
  // Never `rwc`: if the file has gone meanwhile, SQLite must not make one with a mode of its own.
  url.searchParams.set("mode", mode === "rw" ? "rw" : "ro");
  if (mode === "immutable") url.searchParams.set("immutable", "1");
  return new DatabaseSync(url, { timeout: 0, readOnly: mode !== "rw" });
}

export function pragma(sqlite: DatabaseSync, text: string, name = text): unknown {
  return sqlite.prepare(`PRAGMA ${text}`).get()?.[name];
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
