import { join } from "node:path";
import type { Disk } from "../../../disk/disk.ts";
import { diskFailure, tolerate } from "../../../disk/failure.ts";
import { putAll } from "../../../disk/put-all.ts";
import { errnoOf, HoldfastError } from "../../../errors.ts";
import { newId } from "../../../journal/id.ts";
import { replaced } from "./claim.ts";

/** The suffix of files that do not count yet. */
export const TEMPORARY = ".tmp";

/** Errors for a second name on file systems where a file can have only one (FAT, some FUSE mounts). */
const ONE_NAME_ONLY = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

export interface NamingOptions {
  /** Checks the bytes before they get the name; may throw. */
  readonly check?: (temporary: string) => void;
  /**
   * The name must be free: of two writers that want it, one gets it and the other gets LEASE_LOST. Otherwise, an
   * existing file is replaced.
   */
  readonly unlessThere?: boolean;
}

/**
 * Creates a file that is there whole or not at all (S15): written under another name, synced, given its name, which is
 * then synced. Anyone who sees the name sees all the bytes, even after a power cut.
 *
 * Throws STORE_FULL, STORE_IO or STORE_FORBIDDEN while the name does not exist, and SYNC_FAILED when it exists but may
 * not last.
 */
export function createAtomically(
  disk: Disk,
  folder: string,
  name: string,
  write: (put: (bytes: Uint8Array) => void) => void,
  options: NamingOptions = {},
): void {
  // A unique name: a replaced writer that does not know it yet may be doing the same.
  const temporary = join(folder, `${name}.${newId().slice(-12)}${TEMPORARY}`);
  const path = join(folder, name);
  try {
    const file = disk.open(temporary, "create");
    try {
      write((bytes) => putAll(bytes, (rest) => file.write(rest)));
      // Before the name: if the name became durable before its bytes, it would be a segment of zeros.
      file.syncNow();
    } finally {
      file.close();
    }
    options.check?.(temporary);
    if (options.unlessThere) nameOnce(disk, temporary, folder, path);
    else disk.rename(temporary, path);
  } catch (error) {
    tidy(disk, temporary);
    throw diskFailure(error, "write a new file", path, "Existing data is not affected.");
  }
  try {
    disk.syncFolder(folder);
  } catch (error) {
    const message = `The new file ${path} exists, but the disk did not confirm its name. Acknowledged records are safe. Reopen the session.`;
    throw new HoldfastError("SYNC_FAILED", message, { path, errno: errnoOf(error) ?? "unknown" }, error);
  }
}

/** A rename would replace another writer's file. */
function nameOnce(disk: Disk, temporary: string, folder: string, path: string): void {
  try {
    disk.link(temporary, path);
  } catch (error) {
    const errno = errnoOf(error) ?? "";
    if (errno === "EEXIST" || (ONE_NAME_ONLY.has(errno) && disk.stat(path))) throw replaced(folder, error);
    if (!ONE_NAME_ONLY.has(errno)) throw error;
    disk.rename(temporary, path);
    return;
  }
  tidy(disk, temporary);
}

export function removeStray(disk: Disk, path: string): void {
  if (disk.stat(path)) disk.remove(path);
}

/** The next writer removes a temporary file that stays; after a failure, the caller must see that failure. */
function tidy(disk: Disk, path: string): void {
  tolerate(() => removeStray(disk, path), undefined);
}
