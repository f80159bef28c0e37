import { setTimeout as sleep } from "node:timers/promises";
import type { Disk, DiskFile } from "../../disk/disk.ts";
import { isFull } from "../../disk/failure.ts";
import { putAll } from "../../disk/put-all.ts";
import { errnoOf, HoldfastError } from "../../errors.ts";
import { busyPauseMs, type Database } from "./database/database.ts";
import { isBusy, isIoError } from "./database/failure.ts";

const CHUNK_BYTES = 1024 * 1024;
/** How long readers in other processes get to leave the log. */
const EMPTY_MS = 500;

/**
 * After a failed fsync the kernel treats the lost pages as clean, and the next fsync succeeds (S9); and a hole in the
 * log loses every commit after it. Writing the same bytes to the same place does not help: ext4 has given them blocks
 * that stay marked as unwritten, and after the next mount they are NULs, although the fsync was confirmed (measured on
 * Linux 6.18, with its default options). So the commits are moved into the database file and the log is truncated: what
 * is written to it then gets new blocks.
 *
 * Returns false if that is not possible, because someone is still reading the log or there is no space for a trial
 * write.
 */
export async function emptyLog(disk: Disk, database: Database, log: DiskFile): Promise<boolean> {
  for (let failures = 0, trial = true, until = 0; ; ) {
    if (trial) {
      if (!(await inWriteLock(database, () => tryDisk(disk, `${database.file}-trial`, log)))) return false;
      trial = false;
      // Not before: the trial may take longer than that.
      until = performance.now() + EMPTY_MS;
    }
    try {
      if (database.checkpoint("TRUNCATE")) return true;
      if (performance.now() > until) return false;
    } catch (error) {
      if (isBusy(error)) {
        if (performance.now() > until) return false;
        await sleep(busyPauseMs());
        continue;
      }
      // SQLite's own descriptor may not have received the old failure yet, and reports it before it writes anything.
      // Once.
      if (!isIoError(error) || ++failures > 1) throw error;
      trial = true;
    }
    await sleep(busyPauseMs());
  }
}

/**
 * Rewrites the bytes of the log in place: the remaining option if nothing is known to have failed and the log cannot be
 * emptied.
 */
export async function rewriteLog(database: Database, log: DiskFile): Promise<void> {
  await inWriteLock(database, () => copyLog(log, (bytes, at) => log.writeAt(bytes, at)));
}

/** Writers wait, including those that would restart the log: none of its bytes change in the meantime. */
function inWriteLock<T>(database: Database, work: () => T): Promise<T> {
  return database.retry("maintain the log", () => database.transaction(work));
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
