import { closeSync, constants, fchmodSync, lstatSync, mkdirSync, openSync, realpathSync, type Stats } from "node:fs";
import { join } from "node:path";
import { CommandError, EXIT } from "./exit.ts";

/**
 * Folders that only this user can write to, below a root that the user named. A store, or what lies beside it, may have
 * been prepared by somebody
 * else: a link in it could make us read or delete whatever it leads to. The root itself may be a link, since the user
 * named it.
 */

/** Why this is no folder of this user alone; null if it is one. */
export function whyNotOwn(found: Stats): string | null {
  if (found.isSymbolicLink()) return "is a symbolic link";
  if (!found.isDirectory()) return "is not a folder";
  return whyNotPrivate(found);
}

/** The same for whatever it is: its owner, and who may write to it. Windows has neither in these terms. */
export function whyNotPrivate({ uid, mode }: Stats): string | null {
  const user = process.getuid?.();
  if (user === undefined) return null;
  if (uid !== user) return `belongs to another user (${uid})`;
  return (mode & 0o022) === 0 ? null : "is writable by other users";
}

/** A folder below the root, by its real path; null if it is not there, or a reason why it is not to be used. */
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
 * The same, made where it is not there. One of this user's that others may write to is closed to them. Throws
 * CommandError PATH_UNSAFE, and what the system says.
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

/** Through a descriptor: by its name, what a link leads to would be changed. */
function closeToOthers(path: string): void {
  let folder: number;
  try {
    folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    // A link, no folder, or another user's: what looks next says so.
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
