import { randomUUID } from "node:crypto";
import { dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { putAll } from "../../../disk/put-all.ts";
import { errnoOf, HoldfastError } from "../../../errors.ts";

/**
 * A database file can have several names: hard links, or a mount of this one file, in a container for instance. The log
 * and the leases are next to the name, so each name has its own, and anything acknowledged under one name is lost under
 * the other. So the database itself records the name it is used under. A name is identified by a random id in the
 * folder `-locks` next to it: the id survives restarts, mounting the folder under any path, and moving everything
 * together.
 */
export const NAME_SCHEMA = `
CREATE TABLE IF NOT EXISTS used_as (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  name TEXT NOT NULL,
  path TEXT NOT NULL,
  folder TEXT NOT NULL,
  file TEXT NOT NULL,
  open INTEGER NOT NULL
) STRICT;
`;

/** A name of the database: where it is, as seen from this process. */
export interface Name {
  /** The id in the folder `-locks` next to it. */
  readonly name: string;
  readonly path: string;
  /** Device and inode of the folder and of the file. */
  readonly folder: string;
  readonly file: string;
}

/** The name the database was last used under. */
export interface Recorded extends Name {
  /** The log next to that name may still hold records written under it. */
  readonly open: boolean;
}

/** What is visible of a recorded name now. */
export interface Sight {
  /** It is not the current name, but refers to the same file. */
  readonly isSameFile: boolean;
  /** It is in the same folder as the current name. */
  readonly isSameFolder: boolean;
  /** Its folder is where it was, so anything absent from it is gone. */
  readonly isFolderSeen: boolean;
  /** Bytes in the log next to it. */
  readonly logBytes: number;
}

/** `mine`: continue. `take`: continue once nobody uses the file, and record this name. */
export type Verdict = "mine" | "take" | "two-names" | "log-left-behind" | "log-not-seen";

/**
 * What opening a database under `here` means, given what it records about itself. `logBytes`: size of the log next to
 * `here`.
 */
export function judgeName(recorded: Recorded | null, here: Name, sight: Sight, logBytes: number): Verdict {
  if (!recorded) return "take";
  if (recorded.name === here.name) return sight.isSameFile && !sight.isSameFolder ? "two-names" : "mine";
  // Someone removed the folder with the id, or a bit of it is wrong.
  if (recorded.path === here.path && recorded.folder === here.folder) return "mine";
  // A copy: its content is all it has.
  if (inodeOf(recorded.file) !== inodeOf(here.file)) return "take";
  if (sight.isSameFile) return "two-names";
  // Moved, or used by a process whose folders are not visible from here.
  if (!recorded.open || logBytes > 0) return "take";
  if (sight.isFolderSeen) return sight.logBytes > 0 ? "log-left-behind" : "take";
  return "log-not-seen";
}

/** A device number can change with every boot; an inode number does not. */
function inodeOf(identity: string): string {
  return identity.slice(identity.indexOf(":") + 1);
}

/** `folder`: the one with the id. It exists. Only one process at a time may call this. */
export function nameOf(disk: Disk, file: string, folder: string): Name {
  return {
    name: readId(disk, join(folder, "name")) ?? makeId(disk, folder),
    path: file,
    folder: identityOf(disk.stat(folderOf(file))),
    file: identityOf(disk.stat(file)),
  };
}

/** Throws the disk's errors. */
export function lookAt(disk: Disk, recorded: Recorded, here: Name): Sight {
  const look = (path: string): DiskStat | null => {
    try {
      return disk.stat(path);
    } catch (error) {
      // It cannot be read: treated like absent, but `isFolderSeen` tells them apart.
      if (errnoOf(error) === undefined) throw error;
      return null;
    }
  };
  const folder = identityOf(look(folderOf(recorded.path)));
  return {
    isSameFile: recorded.path !== here.path && identityOf(look(recorded.path)) === here.file,
    isSameFolder: folder === here.folder,
    isFolderSeen: folder === recorded.folder,
    logBytes: look(`${recorded.path}-wal`)?.size ?? 0,
  };
}

/** Null if the database does not record a name, or not in a readable form. */
export function readRecorded(sqlite: DatabaseSync): Recorded | null {
  const table = sqlite.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'used_as'").get();
  if (!table) return null;
  const text = (column: string): string => `CASE typeof(${column}) WHEN 'text' THEN ${column} ELSE '' END AS ${column}`;
  const columns = ["name", "path", "folder", "file"].map(text).join(", ");
  const row = sqlite.prepare(`SELECT ${columns}, open IS NOT 0 AS open FROM used_as LIMIT 1`).get();
  return row ? ({ ...row, open: row["open"] === 1 } as unknown as Recorded) : null;
}

export function writeRecorded(sqlite: DatabaseSync, { name, path, folder, file }: Name, open: boolean): void {
  const put = sqlite.prepare(
    "INSERT OR REPLACE INTO used_as (only, name, path, folder, file, open) VALUES (1, ?, ?, ?, ?, ?)",
  );
  put.run(name, path, folder, file, open ? 1 : 0);
}

export function isSameRecord(recorded: Recorded | null, here: Name): boolean {
  return (["name", "path", "folder", "file"] as const).every((member) => recorded?.[member] === here[member]);
}

/** The error for a verdict that refuses. */
export function refuseName(verdict: Verdict, recorded: Recorded, here: Name): HoldfastError {
  const log = `${recorded.path}-wal`;
  switch (verdict) {
    case "two-names":
      return refusal(
        here,
        recorded,
        `it is the same file as ${recorded.path}, and is used under that name. Each name has a separate log, and what is written under one would be lost under the other`,
        "Open it under that name, or make a copy.",
      );
    case "log-left-behind":
      return refusal(
        here,
        recorded,
        `it was moved here without its log, and the newest records are in ${log}`,
        `Move that file to ${here.path}-wal, and open the store again.`,
      );
    default:
      return refusal(
        here,
        recorded,
        `it was used as ${recorded.path} and not closed there, and the newest records may be in ${log}, which is not visible from here`,
        `Open and close it where that log is, or move the log to ${here.path}-wal. If the log is lost for good, a copy of ${here.path} can be opened.`,
      );
  }
}

export function inUseElsewhere(recorded: Recorded, here: Name): HoldfastError {
  return refusal(
    here,
    recorded,
    `it is in use now as ${recorded.path}, perhaps in another container. Each name has a separate log, and what is written under one would be lost under the other`,
    "Mount its folder, not the file alone, and open it there.",
  );
}

export function hasSeveralNames(path: string, links: number): HoldfastError {
  const message =
    `The store ${path} was not opened: the file has ${links} names (hard links). Each name has a separate log, and what is written under one ` +
    "would be lost under the other. Nothing was touched. Remove the other names, or make a copy.";
  return new HoldfastError("PATH_UNSAFE", message, { path, links });
}

function refusal(here: Name, recorded: Recorded, why: string, advice: string): HoldfastError {
  const message = `The store ${here.path} was not opened: ${why}. Nothing was touched. ${advice}`;
  return new HoldfastError("PATH_UNSAFE", message, { path: here.path, usedAs: recorded.path });
}

/** The dot makes it check the folder itself, not a link to it. */
function folderOf(path: string): string {
  return `${dirname(path)}/.`;
}

export function identityOf(stat: DiskStat | null): string {
  return stat ? `${stat.dev}:${stat.ino}` : "";
}

const ID_BYTES = 36;

function readId(disk: Disk, path: string): string | null {
  if (disk.stat(path)?.kind !== "file") return null;
  const file = disk.open(path, "read");
  try {
    const bytes = Buffer.alloc(ID_BYTES);
    const id = bytes.toString("latin1", 0, file.read(bytes, 0, ID_BYTES, 0));
    return /^[0-9a-f-]{36}$/.test(id) ? id : null;
  } finally {
    file.close();
  }
}

function makeId(disk: Disk, folder: string): string {
  const id = randomUUID();
  const temporary = join(folder, "name.tmp");
  if (disk.stat(temporary)) disk.remove(temporary);
  const file = disk.open(temporary, "create");
  try {
    putAll(Buffer.from(`${id}\n`), (rest) => file.write(rest));
    file.syncNow();
  } finally {
    file.close();
  }
  disk.rename(temporary, join(folder, "name"));
  // The record in the database names this id, and is durable, so the id must be durable too.
  disk.syncFolder(folder);
  disk.syncFolder(dirname(folder));
  return id;
}
