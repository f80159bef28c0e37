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

/**
 * Refuses a folder of a store, or the file of an SQLite store, that another user of the machine made or can write to (STORE_FORBIDDEN): what is put there would be resumed, believed and deleted as one's own. Asked before anything in
 * it is touched. Whose files are taken: see above; but what everybody can write to is refused for root, too. A group with the number of the owner is the owner's alone, as most systems make them.
 */
export function assertStorePlace(
  path: string,
  found: Pick<DiskStat, "owner" | "group" | "mode"> | null,
  user: number | undefined = process.geteuid?.(),
): void {
  const { owner, group, mode } = found ?? {};
  if (user === undefined || owner === undefined || mode === undefined) return;
  if (owner !== user && owner !== 0 && user !== 0) {
    const message =
      `${path} belongs to another user (number ${owner}, and this process runs as ${user}). It was not opened, and nothing was touched. A store belongs to one user: ` +
      `name another, or have its owner copy the sessions; if it is yours, make it so ("chown -R ${user}").`;
    throw new HoldfastError("STORE_FORBIDDEN", message, { path, owner, user });
  }
  if ((mode & 0o002) === 0 && ((mode & 0o020) === 0 || group === owner)) return;
  const shown = mode.toString(8).padStart(4, "0");
  const message =
    `Other users of this machine can write to ${path} (its mode is ${shown}): they could change sessions, or add their own. It was not opened, and nothing was touched. ` +
    `Look at what is in it, close it with "chmod -R go-w", and try again. A mount that knows no modes can be told one (umask=077).`;
  throw new HoldfastError("STORE_FORBIDDEN", message, { path, mode: shown, user });
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
