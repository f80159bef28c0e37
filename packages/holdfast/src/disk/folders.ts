import { dirname } from "node:path";
import { errnoOf } from "../errors.ts";
import type { Disk } from "./disk.ts";
import { isForbidden } from "./failure.ts";

/** Errors from file systems that cannot sync a folder. */
const CANNOT_SYNC = new Set(["EINVAL", "ENOTSUP", "EOPNOTSUPP"]);

/** Creates a folder and its missing parents. Returns those it created; `syncNames` makes them durable. */
export function makeFolders(disk: Disk, path: string): string[] {
  const missing: string[] = [];
  for (let at = path; !disk.stat(at) && at !== dirname(at); at = dirname(at)) missing.unshift(at);
  return missing.filter((folder) => disk.makeFolder(folder));
}

/**
 * Makes durable the names in a folder and on the path to it. All of them, up to the root of the file system: another
 * process may have just created one and not synced it yet. Folders this process may not read are skipped, because
 * others created them for their own use; but those this process created (`made`) must be synced.
 */
export function syncNames(disk: Disk, path: string, made: readonly string[]): void {
  disk.syncFolder(path);
  for (let at = path; at !== dirname(at); at = dirname(at)) {
    try {
      disk.syncFolder(dirname(at));
    } catch (error) {
      if (made.includes(at) || !(isForbidden(error) || CANNOT_SYNC.has(errnoOf(error) ?? ""))) throw error;
    }
  }
}
