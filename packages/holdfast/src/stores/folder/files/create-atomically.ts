import { join } from "node:path";
import type { Disk } from "../../../disk/disk.ts";
import { diskFailure } from "../../../disk/failure.ts";
import { errnoOf, HoldfastError } from "../../../errors.ts";
import { newId } from "../../../journal/id.ts";

/** The ending of files that do not count yet. */
export const TEMPORARY = ".tmp";

/** File systems where a file has one name only (FAT, some FUSE mounts) say one of these to a second one. */
const ONE_NAME_ONLY = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

export interface BirthOptions {
  /** Looks at the bytes before they have the name, and may throw. */
  readonly check?: (temporary: string) => void;
  /**
   * The name must be free: of two writers who want it, one gets it, and the other one LEASE_LOST. Else the name is
   * taken over.
   */
  readonly unlessThere?: boolean;
}

/**
 * A file that is there whole or not at all (S15): written under another name, synced, given its name, and the name
 * synced. Whoever sees the name sees all the bytes, also after a power cut.
 *
 * Throws STORE_FULL, STORE_IO or STORE_FORBIDDEN while the name does not exist, and SYNC_FAILED when it does but may
 * not last.
 */
export function createAtomically(
  disk: Disk,
  folder: string,
  name: string,
  write: (put: (bytes: Uint8Array) => void) => void,
  options: BirthOptions = {},
): void {
  // A name of its own: somebody who was replaced, and does not know it yet, may be at the same work.
  const temporary = join(folder, `${name}.${newId().slice(-12)}${TEMPORARY}`);
  const path = join(folder, name);
  try {
    const file = disk.open(temporary, "create");
    try {
      write((bytes) => putAll(bytes, (rest) => file.write(rest)));
      // Before the name: one that is durable before its bytes would be a segment of zeros.
      file.syncNow();
    } finally {
      file.close();
    }
    options.check?.(temporary);
    if (options.unlessThere) nameOnce(disk, temporary, path);
    else disk.rename(temporary, path);
  } catch (error) {
    tidy(disk, temporary);
    throw diskFailure(error, "write a new file", path, "Nothing that was there is affected.");
  }
  try {
    disk.syncFolder(folder);
  } catch (error) {
    const message = `The new file ${path} is there, but the disk did not confirm its name. What was acknowledged is safe. Open the session again.`;
    throw new HoldfastError("SYNC_FAILED", message, { path, errno: errnoOf(error) ?? "unknown" }, error);
  }
}

/** A rename would put a writer's file in the place of another one's. */
function nameOnce(disk: Disk, temporary: string, path: string): void {
  try {
    disk.link(temporary, path);
  } catch (error) {
    const errno = errnoOf(error) ?? "";
    if (errno === "EEXIST" || (ONE_NAME_ONLY.has(errno) && disk.stat(path))) throw nameTaken(path, error);
    if (!ONE_NAME_ONLY.has(errno)) throw error;
    disk.rename(temporary, path);
    return;
  }
  tidy(disk, temporary);
}

function nameTaken(path: string, cause: unknown): HoldfastError {
  const message =
    `Another writer has made ${path}, so this one no longer holds the session. What was acknowledged is safe; what waited is in doubt. ` +
    "Close this journal, and open the session again.";
  return new HoldfastError("LEASE_LOST", message, { path }, cause);
}

/** Writes all of it; a write that takes nothing is a full disk. */
export function putAll(bytes: Uint8Array, write: (rest: Uint8Array) => number): void {
  for (let done = 0; done < bytes.length; ) {
    const written = write(done === 0 ? bytes : bytes.subarray(done));
    if (written === 0) throw Object.assign(new Error("the write took no bytes"), { code: "ENOSPC" });
    done += written;
  }
}

export function removeStray(disk: Disk, path: string): void {
  if (disk.stat(path)) disk.remove(path);
}

/**
 * A temporary file that stays is removed by the next writer; if there was a failure, that is what the caller must hear
 * of.
 */
function tidy(disk: Disk, path: string): void {
  try {
    removeStray(disk, path);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
  }
}
