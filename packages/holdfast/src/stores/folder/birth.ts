import { join } from "node:path";
import type { Disk } from "../../disk/disk.ts";
import { diskFailure } from "../../disk/failure.ts";
import { errnoOf, HoldfastError } from "../../errors.ts";

/** The ending of files that do not count yet. */
export const TEMPORARY = ".tmp";

/**
 * A file that is there whole or not at all (S15): written under another name, synced, renamed, and the name synced. Whoever sees the
 * name sees all the bytes, also after a power cut.
 *
 * `check` may look at the bytes before they have the name, and throw.
 *
 * Throws STORE_FULL, STORE_IO or STORE_FORBIDDEN while the name does not exist, and SYNC_FAILED when it does but may not last.
 */
export function giveBirth(
  disk: Disk,
  folder: string,
  name: string,
  write: (put: (bytes: Uint8Array) => void) => void,
  check?: (temporary: string) => void,
): void {
  const temporary = join(folder, name + TEMPORARY);
  const path = join(folder, name);
  try {
    removeStray(disk, temporary);
    const file = disk.open(temporary, "create");
    try {
      write((bytes) => putAll(bytes, (rest) => file.write(rest)));
      // Before the rename: a name that is durable before its bytes would be a segment of zeros.
      file.syncNow();
    } finally {
      file.close();
    }
    check?.(temporary);
    disk.rename(temporary, path);
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

/** On the way out of a failure, which is what the caller must hear of: a temporary file that stays is removed by the next writer. */
function tidy(disk: Disk, path: string): void {
  try {
    removeStray(disk, path);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
  }
}
