import { HoldfastError } from "../errors.ts";
import type { DiskStat, FileKind } from "./disk.ts";

const WORDS: Record<Exclude<FileKind, "file">, string> = {
  folder: "a folder",
  link: "a symbolic link",
  fifo: "a named pipe",
  socket: "a socket",
  device: "a device",
  other: "something else",
};

/**
 * Refuses what is no file of this store: PATH_UNSAFE, STORE_FORBIDDEN. What is found under a store's names may have been put there by anybody who can write to its
 * folders, or by an archive: a link would lead elsewhere, a FIFO would hang whoever reads it, and another user's session would be resumed as one's own.
 *
 * Root's files are taken: who could plant those needs no tricks. Root itself takes everybody's: it is there to look after stores that are not its own. The number of
 * names does not matter for reading: snapshots by hard links (`cp -al`, `rsync --link-dest`) are backups like any other.
 */
export function assertStoreFile(path: string, { kind, owner }: DiskStat): void {
  if (kind !== "file") {
    const message = `${path} is ${WORDS[kind]}, and a file belongs there. It was not opened, and nothing was touched. Look at who put it there, and remove it.`;
    throw new HoldfastError("PATH_UNSAFE", message, { path, kind });
  }
  const user = process.geteuid?.();
  if (user === undefined || owner === undefined || user === 0 || owner === user || owner === 0) return;
  const message =
    `${path} belongs to another user (number ${owner}, and this process runs as ${user}). It was not opened, and nothing was touched. A store belongs to one ` +
    `user: change the owner of its files ("chown -R ${user}"), or have the other user copy the session. A mount that shows other owners can be told whose the files are.`;
  throw new HoldfastError("STORE_FORBIDDEN", message, { path, owner, user });
}

/** Is it somewhere else too? What is written here then changes a snapshot, or somebody's file that was linked into the store. */
export function hasOtherNames({ links }: DiskStat): boolean {
  return links > 1;
}

/** What stands where a folder belongs. */
export function notAFolder(path: string, kind: FileKind): HoldfastError {
  const what = kind === "file" ? "a file" : WORDS[kind];
  const message = `${path} is ${what}, and a folder belongs there. It was not followed, and nothing was touched. Look at who put it there.`;
  return new HoldfastError("PATH_UNSAFE", message, { path, kind });
}
