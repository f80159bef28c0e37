import type { Disk, DiskFile } from "../../disk/disk.ts";
import { isFull } from "../../disk/failure.ts";
import { putAll } from "../../disk/put-all.ts";
import { errnoOf, HoldfastError } from "../../errors.ts";
import type { Database } from "./database/database.ts";
import { isIoError } from "./database/failure.ts";

const CHUNK_BYTES = 1024 * 1024;

/**
 * After a failed fsync the kernel treats the lost pages as clean, and the next fsync succeeds (S9); and a hole in the
 * log loses every commit after it. Writing the same bytes to the same place does not help: ext4 has given them blocks
 * that stay marked as unwritten, and after the next mount they are NULs, although the fsync was confirmed (measured on
 * Linux 6.18, with its default options). So the commits are moved into the database file and the log is truncated: what
 * is written to it then gets new blocks.
 *
 * Returns false if there is no space for a trial write.
 */
export function emptyLog(disk: Disk, database: Database, log: DiskFile): boolean {
  for (let failures = 0; ; ) {
    if (!tryDisk(disk, `${database.file}-trial`, log)) return false;
    try {
      database.checkpoint("TRUNCATE");
      return true;
    } catch (error) {
      // SQLite's own descriptor may not have received the old failure yet, and reports it before it writes anything.
      // Once.
      if (!isIoError(error) || ++failures > 1) throw error;
    }
  }
}

/**
 * Rewrites the bytes of the log in place: the remaining option if nothing is known to have failed and there is no
 * space.
 */
export function rewriteLog(log: DiskFile): void {
  copyLog(log, (bytes, at) => log.writeAt(bytes, at));
}

/**
 * Writes as many bytes as the log has to a temporary file: if the disk fails at this, it must not be trusted with the
 * database file, whose blocks cannot be replaced. Returns false if there is no space.
 */
function tryDisk(disk: Disk, path: string, log: DiskFile): boolean {
  if (disk.stat(path)) disk.remove(path);
  const file = disk.open(path, "create");
  try {
    try {
      copyLog(log, (bytes) => file.write(bytes));
    } catch (error) {
      if (isFull(error)) return false;
      throw error;
    }
    try {
      file.syncNow();
    } catch (error) {
      // ENOSPC from here is a failed fsync, not a full disk (S9).
      const message = `The disk of ${log.path} does not confirm writes. Acknowledged records are safe, and nothing was changed. Check the disk, and reopen the session.`;
      throw new HoldfastError("SYNC_FAILED", message, { path, errno: errnoOf(error) ?? null }, error);
    }
    return true;
  } finally {
    file.close();
    disk.remove(path);
  }
}

function copyLog(log: DiskFile, write: (bytes: Uint8Array, at: number) => number): void {
  const { size } = log.stat();
  const bytes = Buffer.allocUnsafe(Math.min(size, CHUNK_BYTES));
  for (let at = 0; at < size; ) {
    const length = log.read(bytes, 0, Math.min(bytes.length, size - at), at);
    if (length === 0) return;
    putAll(bytes.subarray(0, length), (rest) => {
      const written = write(rest, at);
      at += written;
      return written;
    });
  }
}
