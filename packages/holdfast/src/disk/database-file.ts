import { DatabaseSync } from "node:sqlite";
import { errnoOf } from "../errors.ts";
import type { Disk, DiskStat } from "./disk.ts";
import { tolerate } from "./failure.ts";
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

function sideFiles(path: string): string[] {
  return SIDE_ENDINGS.map((ending) => path + ending);
}

/**
 * Creates the file of a database that has no files beside it, before SQLite sees it, with our own mode (C24). SQLite
 * follows links and waits on FIFOs, so its files are checked first: PATH_UNSAFE, STORE_FORBIDDEN. ESTALE if the file
 * has disappeared in the meantime.
 */
export function makeDatabaseFile(disk: Disk, path: string): DiskStat {
  for (const file of sideFiles(path)) {
    const found = disk.stat(file);
    // Whose it is, nobody knows: SQLite would take it for this database's.
    if (found && !isRemoved(disk, file, found)) assertStoreFile(file, found);
  }
  let made = disk.stat(path);
  if (!made) {
    try {
      disk.open(path, "create").close();
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
    }
    made = disk.stat(path);
  }
  if (!made) throw Object.assign(new Error(`${path} was removed`), { code: "ESTALE" });
  assertStoreFile(path, made);
  return made;
}

/** Removes a database and what is beside it. Leaves what cannot be removed and what is not a file. */
export function removeDatabase(disk: Disk, path: string): void {
  for (const file of [path, ...sideFiles(path)]) {
    tolerate(() => {
      const found = disk.stat(file);
      if (found) isRemoved(disk, file, found);
    }, undefined);
  }
}

/** Not if it is no file, or in a read-only folder. */
function isRemoved(disk: Disk, file: string, { kind }: DiskStat): boolean {
  if (kind !== "file") return false;
  return tolerate(() => {
    disk.remove(file);
    return true;
  }, false);
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
