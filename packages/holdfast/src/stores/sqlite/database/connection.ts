import type { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { openWithoutWaiting } from "../../../disk/database-file.ts";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { HoldfastError } from "../../../errors.ts";

/**
 * SQLite keeps its lock on the file until the connection ends, and the index of the log in this process's
 * own memory: there is no `-shm`, so nothing that others do to one can harm this process. The VFS `unix-excl` does the
 * same, takes as long, and is missing on Windows (decision 7).
 */
export function connect(file: string): DatabaseSync {
  const url = pathToFileURL(file);
  // Never `rwc`: if the file has disappeared, SQLite must not create one with its own mode.
  url.searchParams.set("mode", "rw");
  const sqlite = openWithoutWaiting(url, false);
  // Before the first read: later, the index would stay where it is.
  sqlite.exec("PRAGMA locking_mode=EXCLUSIVE");
  return sqlite;
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
