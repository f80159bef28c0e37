import { DatabaseSync } from "node:sqlite";
import { errnoOf } from "../errors.ts";
import type { Disk, DiskStat } from "./disk.ts";
import { assertStoreFile } from "./file-rules.ts";

/** What SQLite keeps beside a database. */
const SIDE_ENDINGS = ["-wal", "-shm", "-journal"];

/** The database and the files that SQLite keeps beside it. */
export function databaseFiles(path: string): string[] {
  return [path, ...SIDE_ENDINGS.map((ending) => path + ending)];
}

/**
 * The file is there before SQLite sees it, with a mode of ours: SQLite gives the files beside it the same one (C24). SQLite follows links and waits for FIFOs, so all of them are
 * looked at first: PATH_UNSAFE, STORE_FORBIDDEN. ESTALE if the file has gone meanwhile.
 */
export function makeDatabaseFile(disk: Disk, path: string): DiskStat {
  if (!disk.stat(path)) {
    // The log of a file that was deleted would be taken for this one's.
    removeDatabase(disk, path);
    try {
      disk.open(path, "create").close();
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
    }
  }
  for (const file of databaseFiles(path)) {
    const found = disk.stat(file);
    if (found) assertStoreFile(file, found);
  }
  const made = disk.stat(path);
  if (!made) throw Object.assign(new Error(`${path} was removed`), { code: "ESTALE" });
  return made;
}

/** Removes a database and what SQLite keeps beside it. What cannot be removed, and what is no file, stays. */
export function removeDatabase(disk: Disk, path: string): void {
  for (const file of databaseFiles(path)) {
    try {
      if (disk.stat(file)?.kind === "file") disk.remove(file);
    } catch (error) {
      // Gone already, or not ours to remove (a read-only folder).
      if (errnoOf(error) === undefined) throw error;
    }
  }
}

/** Does the database hold what `schema` makes, and nothing else? A view in place of a table can keep whoever asks it busy for ever. */
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
