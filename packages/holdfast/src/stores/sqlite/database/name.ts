import { basename, dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { tolerate } from "../../../disk/failure.ts";
import { HoldfastError } from "../../../errors.ts";

/**
 * The log is next to the database file, under the same name. If the file is moved without it, or has another name
 * (the mount of this one file in a container, for instance), the newest records are elsewhere. So the database itself
 * records where it is used, and whether its log may hold records.
 */
export const NAME_SCHEMA = `
CREATE TABLE used_as (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  path TEXT NOT NULL,
  folder TEXT NOT NULL,
  file TEXT NOT NULL,
  open INTEGER NOT NULL
) STRICT;
`;

/** Where a database is, as seen from this process. */
export interface Name {
  readonly path: string;
  /** Device and inode of the folder and of the file. */
  readonly folder: string;
  readonly file: string;
}

/** Where the database was last used. */
export interface RecordedName extends Name {
  /** The log there may still hold records. */
  readonly open: boolean;
}

export function nameOf(disk: Disk, file: string): Name {
  return { path: file, folder: identityOf(disk.stat(folderOf(file))), file: identityOf(disk.stat(file)) };
}

/** Does a database that is opened under `here` have everything that was written to it? Throws PATH_UNSAFE if not. */
export function assertLogHere(disk: Disk, recorded: RecordedName, here: Name): void {
  // The same name in the same folder, however the folder is reached, and wherever it was moved.
  if (basename(recorded.path) === basename(here.path) && inodeOf(recorded.folder) === inodeOf(here.folder)) return;
  // A copy: its content is all it has.
  if (inodeOf(recorded.file) !== inodeOf(here.file)) return;
  // It was closed, or the log was moved along.
  if (!recorded.open || (disk.stat(`${here.path}-wal`)?.size ?? 0) > 0) return;
  const isFolderSeen = identityOf(look(disk, folderOf(recorded.path))) === recorded.folder;
  const log = `${recorded.path}-wal`;
  if (isFolderSeen && (look(disk, log)?.size ?? 0) === 0) return;
  const message =
    `The store ${here.path} was not opened: it was used as ${recorded.path} and not closed there, and the newest records are in ${log}` +
    `${isFolderSeen ? "" : ", which is not visible from here"}. Nothing was touched. Open it under that name, or move the log to ${here.path}-wal. ` +
    `If the log is lost for good, a copy of ${here.path} can be opened.`;
  throw new HoldfastError("PATH_UNSAFE", message, { path: here.path, usedAs: recorded.path });
}

/** A device number can change with every boot; an inode number does not. */
function inodeOf(identity: string): string {
  return identity.slice(identity.indexOf(":") + 1);
}

/** Null also if it may not be looked at. */
function look(disk: Disk, path: string): DiskStat | null {
  return tolerate(() => disk.stat(path), null);
}

/** Null if the database does not record a name, or not in a readable form. */
export function readRecorded(sqlite: DatabaseSync): RecordedName | null {
  const table = sqlite.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'used_as'").get();
  if (!table) return null;
  const text = (column: string): string => `CASE typeof(${column}) WHEN 'text' THEN ${column} ELSE '' END AS ${column}`;
  const columns = ["path", "folder", "file"].map(text).join(", ");
  const row = sqlite.prepare(`SELECT ${columns}, open IS NOT 0 AS open FROM used_as LIMIT 1`).get();
  return row ? ({ ...row, open: row["open"] === 1 } as unknown as RecordedName) : null;
}

export function writeRecorded(sqlite: DatabaseSync, { path, folder, file }: Name, open: boolean): void {
  const put = sqlite.prepare("INSERT OR REPLACE INTO used_as (only, path, folder, file, open) VALUES (1, ?, ?, ?, ?)");
  put.run(path, folder, file, open ? 1 : 0);
}

export function isSameRecord(recorded: RecordedName | null, here: Name): boolean {
  return (["path", "folder", "file"] as const).every((member) => recorded?.[member] === here[member]);
}

/** The dot makes it check the folder itself, not a link to it. */
function folderOf(path: string): string {
  return `${dirname(path)}/.`;
}

export function identityOf(stat: DiskStat | null): string {
  return stat ? `${stat.dev}:${stat.ino}` : "";
}
