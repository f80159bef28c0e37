import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { HoldfastError } from "../../../errors.ts";

/**
 * A connection of SQLite's to a database in WAL mode, that can be left without touching the log. By itself SQLite takes
 * whoever closes last, as far as its locks tell, for the only one: it moves the log to the database, and deletes it.
 * But locks get lost (see FlagLock), and a log that is deleted, or moved to the database a second time by somebody
 * whose log is no longer the one of the others, destroys the database.
 *
 * So the file is attached to its own connection once more, as a keeper that can only read. Whoever closes the
 * connection (this class, the garbage collector, Node at the end of a thread): SQLite closes the first of the two
 * first, sees that it is not alone, and the second may not delete.
 */
export class Connection {
  readonly sqlite: DatabaseSync;

  private constructor(sqlite: DatabaseSync) {
    this.sqlite = sqlite;
  }

  /** Throws what SQLite throws. */
  static open(file: string): Connection {
    const sqlite = connect(file, "rw");
    try {
      sqlite.prepare("ATTACH ? AS keeper").run(urlOf(file, "ro").href);
      // It counts only when it has read something.
      sqlite.prepare("SELECT count(*) FROM keeper.sqlite_schema").get();
      return new Connection(sqlite);
    } catch (error) {
      sqlite.close();
      throw error;
    }
  }

  /** Closes it, and leaves the log to others, or to the next one. */
  leave(): void {
    if (this.sqlite.isOpen) this.sqlite.close();
  }

  /** Closes it as the last one: SQLite moves the log to the database, and deletes it. */
  end(): void {
    this.sqlite.exec("DETACH keeper");
    this.sqlite.close();
  }
}

export function connect(file: string, mode: Mode): DatabaseSync {
  return new DatabaseSync(urlOf(file, mode), { timeout: 0, readOnly: mode !== "rw" });
}

/** `immutable`: reads the file as it is, without locks and without its log. */
type Mode = "rw" | "ro" | "immutable";

function urlOf(file: string, mode: Mode): URL {
  const url = pathToFileURL(file);
  // Never `rwc`: if the file has gone meanwhile, SQLite must not make one with a mode of its own.
  url.searchParams.set("mode", mode === "rw" ? "rw" : "ro");
  if (mode === "immutable") url.searchParams.set("immutable", "1");
  return url;
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
