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
 * Refuses files that cannot belong to this store: PATH_UNSAFE, STORE_FORBIDDEN. Anyone who can write to a store's
 * folders, or an archive, may have put a file there: a link would lead elsewhere, a FIFO would hang its reader, and
 * another user's session would be resumed as one's own.
 *
 * Root's files are accepted: an attacker who could plant those needs no tricks. Root itself accepts everyone's files,
 * because root maintains other users' stores. The number of names does not matter for reading: hard-link snapshots (`cp
 * -al`, `rsync --link-dest`) are backups like any other.
 */
export function assertStoreFile(path: string, { kind, owner }: DiskStat): void {
  if (kind !== "file") {
    const message = `${path} is ${WORDS[kind]}, but a file belongs there. It was not opened, and nothing was touched. Find out who put it there, and remove it.`;
    throw new HoldfastError("PATH_UNSAFE", message, { path, kind });
  }
  const user = process.geteuid?.();
  if (user === undefined || owner === undefined || user === 0 || owner === user || owner === 0) return;
  const message =
    `${path} belongs to another user (uid ${owner}; this process runs as ${user}). It was not opened, and nothing was touched. A store belongs to one ` +
    `user: change the owner of its files ("chown -R ${user}"), or have the other user copy the session. If a mount shows the wrong owner, set the owner in its mount options.`;
  throw new HoldfastError("STORE_FORBIDDEN", message, { path, owner, user });
}

/**
 * Refuses a store's folder, or the file of an SQLite store, that another user of the machine created or can write to
 * (STORE_FORBIDDEN): its content would be resumed, trusted and deleted as one's own. Checked before anything in it is
 * touched. Accepts the same owners as above, but refuses a world-writable one even for root. A group with the owner's
 * number is the owner's private group, as most systems create it.
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
      `${path} belongs to another user (uid ${owner}; this process runs as ${user}). It was not opened, and nothing was touched. A store belongs to one user: ` +
      `use another one, or have its owner copy the sessions; if it is yours, change its owner ("chown -R ${user}").`;
    throw new HoldfastError("STORE_FORBIDDEN", message, { path, owner, user });
  }
  if ((mode & 0o002) === 0 && ((mode & 0o020) === 0 || group === owner)) return;
  const shown = mode.toString(8).padStart(4, "0");
  const message =
    `Other users of this machine can write to ${path} (its mode is ${shown}): they could change sessions, or add their own. It was not opened, and nothing was touched. ` +
    `Check its content, run "chmod -R go-w" on it, and try again. For a mount without modes, set one in its mount options (umask=077).`;
  throw new HoldfastError("STORE_FORBIDDEN", message, { path, mode: shown, user });
}

/**
 * Does the file have other names? Then writing to it changes a snapshot, or someone's file that was linked into the
 * store.
 */
export function hasOtherNames({ links }: DiskStat): boolean {
  return links > 1;
}

/** Something other than a folder is at the path. */
export function notAFolder(path: string, kind: FileKind): HoldfastError {
  const what = kind === "file" ? "a file" : WORDS[kind];
  const message = `${path} is ${what}, but a folder belongs there. It was not followed, and nothing was touched. Find out who put it there.`;
  return new HoldfastError("PATH_UNSAFE", message, { path, kind });
}
