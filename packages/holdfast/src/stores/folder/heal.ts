import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Disk, DiskFile } from "../../disk/disk.ts";
import { diskFailure } from "../../disk/failure.ts";
import { errnoOf, HoldfastError, isHoldfastError } from "../../errors.ts";
import { giveBirth, putAll, removeStray, TEMPORARY } from "./birth.ts";
import type { EpochFiles } from "./epoch.ts";
import { readAt } from "./frames.ts";
import { readTail, tailName } from "./segment.ts";

const CHUNK_BYTES = 1024 * 1024;
const NEWLINE = Buffer.from("\n");
const QUARANTINE = "quarantine";

/** What healing left: the size of the newest segment, up to which seq all is durable, and where cut bytes are kept. */
export interface Healed {
  readonly size: number;
  readonly durable: number;
  readonly quarantine?: string;
  /** What must be done before the first append, and is not worth it for one who only looks. */
  readonly beforeFirst?: () => void;
}

/**
 * Makes the newest segment one that can be appended to, and everything that `epoch` shows durable (S8, S9). Under the lease. Runs again from the
 * start if it is interrupted: each step leaves a journal that reads the same. `mark` is a line that goes behind what stays, in the same step.
 */
export function heal(disk: Disk, folder: string, epoch: EpochFiles, mark: Uint8Array): Healed {
  const { name } = epoch.last;
  const path = join(folder, name);
  try {
    removeTemporaries(disk, folder);
    // A writer that was killed between rename and sync has left names that only the kernel knows of.
    disk.syncFolder(folder);
    if (epoch.last.tail) finishTail(disk, folder, name, epoch.last.tail);
    const { cut, unended, durableEnd, durable, next } = epoch.tail;
    const { size } = epoch;
    if (cut === null && !unended && durableEnd >= size) return { size, durable };
    if (cut === null && !unended && !epoch.recovery.unclean) {
      // Behind the last mark there is `closed` alone, which nobody was promised; but what is appended behind it will be.
      // Its bytes are taken now: a cache that is dropped later may have nothing to give.
      const bytes = readRange(disk, path, durableEnd, size);
      return { size, durable, beforeFirst: () => closeAgain(disk, folder, name, durableEnd, bytes) };
    }
    const file = disk.open(path, "update");
    try {
      // First the copy, and durable, then the cut: no byte is ever in neither place (P2).
      const quarantine = cut === null ? undefined : keepAside(disk, folder, name, file, cut, size);
      const kept = readAt(file, durableEnd, (cut ?? size) - durableEnd);
      const tail = Buffer.concat([kept, unended ? NEWLINE : Buffer.alloc(0), mark]);
      writeAgain(disk, folder, name, file, durableEnd, tail);
      return { size: durableEnd + tail.length, durable: next - 1, ...(quarantine === undefined ? {} : { quarantine }) };
    } finally {
      file.close();
    }
  } catch (error) {
    const safety = "Nothing was lost: no byte is cut before it is kept aside. Reading still works.";
    throw diskFailure(error, "make the journal ready for writing", path, safety);
  }
}

/** The same for the last word of a writer that ended in order. Throws STORE_FULL with nothing changed, else SYNC_FAILED (in doubt). */
function closeAgain(disk: Disk, folder: string, name: string, offset: number, bytes: Buffer): void {
  const path = join(folder, name);
  let file: DiskFile | undefined;
  try {
    file = disk.open(path, "update");
    writeAgain(disk, folder, name, file, offset, bytes);
  } catch (error) {
    if (isHoldfastError(error, "STORE_FULL")) throw error;
    const message = `The disk did not confirm the end of ${path}. What was acknowledged is safe. Close this journal, and open the session again.`;
    throw new HoldfastError("SYNC_FAILED", message, { path, errno: errnoOf(error) ?? "unknown" }, error);
  } finally {
    file?.close();
  }
}

/**
 * The bytes behind the last mark, made durable whatever happened before. After a failed fsync the kernel takes lost pages for clean (S9); and on ext4 writing them
 * again in place is not enough: fdatasync confirms it, and zeros come back (measured on Linux 6.18, with blocks that had never been written). Only what is cut off and
 * written anew gets new blocks. Until that is done the bytes stand in a file of their own, which readers read instead.
 */
function writeAgain(disk: Disk, folder: string, segment: string, file: DiskFile, offset: number, bytes: Buffer): void {
  const name = tailName(segment, offset);
  giveBirth(disk, folder, name, (put) => put(bytes));
  replaceTail(file, offset, bytes);
  disk.remove(join(folder, name));
  // Before anything is appended: a tail that came back after a power cut would take the place of what was acknowledged since.
  disk.syncFolder(folder);
}

function readRange(disk: Disk, path: string, from: number, to: number): Buffer {
  const file = disk.open(path, "read");
  try {
    return readAt(file, from, to - from);
  } finally {
    file.close();
  }
}

/** Somebody was interrupted in `writeAgain`. */
function finishTail(
  disk: Disk,
  folder: string,
  segment: string,
  tail: { readonly name: string; readonly offset: number },
): void {
  const bytes = readTail(disk, folder, tail.name);
  if (!bytes) return;
  const file = disk.open(join(folder, segment), "update");
  try {
    replaceTail(file, tail.offset, bytes);
  } finally {
    file.close();
  }
  disk.remove(join(folder, tail.name));
  disk.syncFolder(folder);
}

function replaceTail(file: DiskFile, offset: number, bytes: Buffer): void {
  file.truncate(offset);
  let done = 0;
  putAll(bytes, (rest) => {
    const written = file.writeAt(rest, offset + done);
    done += written;
    return written;
  });
  file.syncNow();
}

/** Copies `[from, to)` to `quarantine/<segment>-<offset>-<crc>.torn`, durably. Returns its path. */
function keepAside(disk: Disk, folder: string, segment: string, file: DiskFile, from: number, to: number): string {
  const quarantine = join(folder, QUARANTINE);
  if (disk.makeFolder(quarantine)) disk.syncFolder(folder);
  let crc = 0;
  eachChunk(file, from, to, (bytes) => {
    crc = crc32(bytes, crc);
  });
  const name = `${segment}-${from}-${crc.toString(16).padStart(8, "0")}.torn`;
  giveBirth(disk, quarantine, name, (put) => eachChunk(file, from, to, put));
  return join(quarantine, name);
}

function eachChunk(file: DiskFile, from: number, to: number, use: (bytes: Buffer, position: number) => void): void {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(1, to - from)));
  for (let position = from; position < to; ) {
    const read = file.read(buffer, 0, Math.min(buffer.length, to - position), position);
    if (read === 0) throw Object.assign(new Error("the file ended early"), { code: "EIO" });
    use(buffer.subarray(0, read), position);
    position += read;
  }
}

/** What an interrupted writer left half done does not count, and is in nobody's use while we hold the lease (S15). */
function removeTemporaries(disk: Disk, folder: string): void {
  for (const name of disk.list(folder)) if (name.endsWith(TEMPORARY)) removeStray(disk, join(folder, name));
  const quarantine = join(folder, QUARANTINE);
  if (disk.stat(quarantine)?.kind !== "folder") return;
  for (const name of disk.list(quarantine)) if (name.endsWith(TEMPORARY)) removeStray(disk, join(quarantine, name));
}
