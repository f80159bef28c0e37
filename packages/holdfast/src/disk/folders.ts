import { dirname } from "node:path";
import { errnoOf } from "../errors.ts";
import type { Disk } from "./disk.ts";
import { isForbidden } from "./failure.ts";

/** File systems that cannot sync a folder say one of these. */
const CANNOT_SYNC = new Set(["EINVAL", "ENOTSUP", "EOPNOTSUPP"]);

/** Makes a folder, and those above it that are missing. Returns the ones that it made; `syncNames` makes them durable. */
export function makeFolders(disk: Disk, path: string): string[] {
  const missing: string[] = [];
  for (let at = path; !disk.stat(at) && at !== dirname(at); at = dirname(at)) missing.unshift(at);
  return missing.filter((folder) => disk.makeFolder(folder));
}

/**
 * Makes the names on the way to a folder durable, and those in it. All of them up to the root of the file system: another process may have made one of them a moment ago, and not have synced it
 * yet. Those that may not be read are somebody else's, who did not make them for us; but what this process made itself (`made`) must be synced.
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
