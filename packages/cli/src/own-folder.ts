import { closeSync, constants, fchmodSync, lstatSync, mkdirSync, openSync, realpathSync, type Stats } from "node:fs";
import { join } from "node:path";
import { CommandError, EXIT } from "./exit.ts";

/**
 * Folders below a user-given root that only this user can write to. Someone else may have prepared a store or the files
 * beside it: a link there could make us read or delete its target. The root itself may be a link, because the user
 * named it.
 */

/** Why this is not a folder that only this user can write to; null if it is. */
export function whyNotOwn(found: Stats): string | null {
  if (found.isSymbolicLink()) return "is a symbolic link";
  if (!found.isDirectory()) return "is not a folder";
  return whyNotPrivate(found);
}

/** The same for any kind of file: checks owner and write permission. Windows has no equivalent of either. */
export function whyNotPrivate({ uid, mode }: Stats): string | null {
  const user = process.getuid?.();
  if (user === undefined) return null;
  if (uid !== user) return `belongs to another user (${uid})`;
  return (mode & 0o022) === 0 ? null : "is writable by other users";
}

/** The real path of a folder below the root; null if it does not exist, or the reason not to use it. */
export function findOwnFolder(root: string, names: readonly string[]): string | { readonly why: string } | null {
  try {
    let path = realpathSync(root);
    for (const name of names) {
      path = join(path, name);
      const found = lstatSync(path, { throwIfNoEntry: false });
      if (!found) return null;
      const why = whyNotOwn(found);
      if (why !== null) return { why: `${path} ${why}` };
    }
    return path;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw error;
  }
}

/**
 * Like `findOwnFolder`, but creates what is missing, and removes other users' write permission from the user's own
 * folders. Throws CommandError PATH_UNSAFE, and system errors.
 */
export function makeOwnFolder(root: string, names: readonly string[]): string {
  mkdirSync(root, { recursive: true, mode: 0o700 });
  let path = realpathSync(root);
  for (const name of names) {
    path = join(path, name);
    makeOne(path);
    if (process.getuid && (lstatSync(path).mode & 0o022) !== 0) closeToOthers(path);
    const why = whyNotOwn(lstatSync(path));
    if (why !== null) throw unsafe(path, why);
  }
  return path;
}

function makeOne(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** Uses a descriptor, because a path could be a link, and chmod would change its target. */
function closeToOthers(path: string): void {
  let folder: number;
  try {
    folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    // A link, not a folder, or another user's: the caller's next check reports it.
    if (error instanceof Error && "code" in error) return;
    throw error;
  }
  try {
    fchmodSync(folder, 0o700);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
  } finally {
    closeSync(folder);
  }
}

function unsafe(path: string, why: string): CommandError {
  const message = `${path} ${why}. Holdfast stores files there, so it must be a folder that only you can write to. Nothing in it was read or changed. If you did not set it up this way, do not trust this store; otherwise move it away and try again.`;
  return new CommandError(EXIT.store, "PATH_UNSAFE", message);
}
