import type { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { openWithoutWaiting } from "../../../disk/database-file.ts";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { HoldfastError } from "../../../errors.ts";

/**
 * An SQLite connection to a database in WAL mode that can be closed without touching the log. By default, SQLite treats
 * the last one to close, according to its locks, as the only user: it moves the log into the database and deletes it.
 * But locks get lost (see FlagLock). If the log is deleted while others use it, or is moved into the database a second
 * time by a process whose log is no longer theirs, the database is destroyed.
 *
 * So the file is attached to its own connection a second time, as a read-only keeper. Whatever closes the connection
 * (this class, the garbage collector, Node at the end of a thread), SQLite closes the first of the two first and sees
 * that it is not alone; and the second may not delete.
 */
export class Connection {
  readonly sqlite: DatabaseSync;

  private constructor(sqlite: DatabaseSync) {
    this.sqlite = sqlite;
  }

  /** Throws SQLite's errors. */
  static open(file: string): Connection {
    const sqlite = connect(file, "rw");
    try {
      sqlite.prepare("ATTACH ? AS keeper").run(urlOf(file, "ro").href);
      // It takes effect only after it has read something.
      sqlite.prepare("SELECT count(*) FROM keeper.sqlite_schema").get();
      return new Connection(sqlite);
    } catch (error) {
      sqlite.close();
      throw error;
    }
  }

  /** Closes the connection and leaves the log to other users, or to the next one. */
  leave(): void {
    if (this.sqlite.isOpen) this.sqlite.close();
  }

  /** Closes the connection as the last user: SQLite moves the log into the database and deletes it. */
  end(): void {
    this.sqlite.exec("DETACH keeper");
    this.sqlite.close();
  }
}

export function connect(file: string, mode: Mode): DatabaseSync {
  return openWithoutWaiting(urlOf(file, mode), mode !== "rw");
}

/** `immutable`: reads the file as it is, without locks and without its log. */
type Mode = "rw" | "ro" | "immutable";

function urlOf(file: string, mode: Mode): URL {
  const url = pathToFileURL(file);
  // Never `rwc`: if the file has disappeared, SQLite must not create one with its own mode.
  url.searchParams.set("mode", mode === "rw" ? "rw" : "ro");
  if (mode === "immutable") url.searchParams.set("immutable", "1");
  return url;
}

export function pragma(sqlite: DatabaseSync, text: string, name = text): unknown {
  return sqlite.prepare(`PRAGMA ${text}`).get()?.[name];
}

/** Throws FILE_REPLACED if the name refers to another file, or to none. */
export function assertSame(disk: Disk, path: string, { dev, ino }: DiskStat): void {
  const found = disk.stat(path);
  if (found && found.dev === dev && found.ino === ino) return;
  const what = found ? "was replaced by another file" : "is gone";
  const message =
    `The database file ${path} ${what}. This process did not affect acknowledged records; pending ones are in doubt. ` +
    "Find out who moved it, and reopen the store.";
  throw new HoldfastError("FILE_REPLACED", message, { path });
}
