import { DatabaseSync } from "node:sqlite";
import { errnoOf } from "../errors.ts";
import type { Disk, DiskStat } from "./disk.ts";
import { assertStoreFile } from "./file-rules.ts";

/** Suffixes of the files SQLite keeps next to a database. */
const SIDE_ENDINGS = ["-wal", "-shm", "-journal"];

/** Opens a database; SQLite never waits for its locks. Throws SQLite's errors. */
export function openWithoutWaiting(url: URL, readOnly: boolean): DatabaseSync {
  const database = new DatabaseSync(url, { timeout: 0, readOnly });
  // Deno ignores `timeout` if `readOnly` is set: each probe of a lock would block this process for five seconds.
  if (readOnly) database.exec("PRAGMA busy_timeout=0");
  return database;
}

/** The database and the files SQLite keeps next to it. */
export function databaseFiles(path: string): string[] {
  return [path, ...SIDE_ENDINGS.map((ending) => path + ending)];
}

/**
 * Creates the file before SQLite sees it, with our own mode: SQLite gives its side files the same mode (C24). SQLite
 * follows links and waits on FIFOs, so all of these files are checked first: PATH_UNSAFE, STORE_FORBIDDEN. ESTALE if
 * the file has disappeared in the meantime.
 */
export function makeDatabaseFile(disk: Disk, path: string): DiskStat {
  if (!disk.stat(path)) {
    // SQLite would take a deleted file's log for this one's.
    removeDatabase(disk, path);
    try {
      disk.open(path, "create").close();
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
    }
  }
  let made: DiskStat | null = null;
  for (const file of databaseFiles(path)) {
    const found = disk.stat(file);
    if (found) assertStoreFile(file, found);
    if (file === path) made = found;
  }
  if (!made) throw Object.assign(new Error(`${path} was removed`), { code: "ESTALE" });
  return made;
}

/** Removes a database and its side files. Leaves what cannot be removed and what is not a file. */
export function removeDatabase(disk: Disk, path: string): void {
  for (const file of databaseFiles(path)) {
    try {
      if (disk.stat(file)?.kind === "file") disk.remove(file);
    } catch (error) {
      // Already gone, or no permission to remove it (a read-only folder).
      if (errnoOf(error) === undefined) throw error;
    }
  }
}

/**
 * Does the database contain exactly what `schema` creates? A view in place of a table can keep a query busy forever.
 */
export function hasSchema(database: DatabaseSync, schema: string): boolean {
  const model = new DatabaseSync(":memory:");
  try {
    model.exec(schema);
    return schemaText(database) === schemaText(model);
  } finally {
    model.close();
  }
}

function schemaText(database: DatabaseSync): string {
  return JSON.stringify(
    database.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").all(),
  );
}
