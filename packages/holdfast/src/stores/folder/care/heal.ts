import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Disk, DiskFile } from "../../../disk/disk.ts";
import { diskFailure } from "../../../disk/failure.ts";
import { hasOtherNames } from "../../../disk/file-rules.ts";
import { HoldfastError } from "../../../errors.ts";
import { newId } from "../../../journal/id.ts";
import { FORMAT, SEGMENT_BYTES_MAX } from "../../../journal/record.ts";
import type { ClosedAt } from "../../lease.ts";
import { claimNext, isClaimed, replaced } from "../files/claim.ts";
import { createAtomically, removeStray, TEMPORARY } from "../files/create-atomically.ts";
import { readAt } from "../files/frames.ts";
import { assertEpochFormat, type EpochFiles, readEpoch } from "../files/read-epoch.ts";
import { listSegments, type Segment, tailName, tailsOf } from "../files/segment.ts";

const CHUNK_BYTES = 1024 * 1024;
const NEWLINE = Buffer.from("\n");
const QUARANTINE = "quarantine";

/**
 * Opens the current epoch for writing; null if there is no segment. If the last writer closed the journal and said so,
 * `claim` is null: this writer continues in the same segment. Otherwise it claims its own segment before it reads the
 * journal. A segment of another format is never appended to (S16), nor one that has other names.
 */
export async function openEpoch(
  disk: Disk,
  folder: string,
  id: string,
  lastClose: ClosedAt | null,
): Promise<{ readonly epoch: EpochFiles; readonly claim: number | null } | null> {
  const found = lastClose && disk.stat(join(folder, lastClose.segment));
  if (found && found.size === lastClose.bytes && !hasOtherNames(found)) {
    const epoch = await readEpoch(disk, folder);
    // A claim may be left from a segment for which there was no space.
    const canGoOn = epoch && isClosedAt(epoch, lastClose) && !isClaimed(disk, folder, epoch.last.number + 1);
    if (canGoOn) return { epoch, claim: null };
  }
  const newest = listSegments(disk, folder).at(-1);
  if (!newest) return null;
  await assertWritable(disk, folder, id, newest);
  const claim = claimNext(disk, folder);
  const epoch = await readEpoch(disk, folder);
  // A writer that claimed a later number has started it: that segment is not ours to end.
  if (epoch && epoch.last.number >= claim) throw replaced(folder);
  return epoch && { epoch, claim };
}

/**
 * Before anything is touched, refuses a session that can be read but not written, because no writer of this version
 * leaves such a newest segment. Throws FORMAT_NEWER, JOURNAL_UNREADABLE.
 */
async function assertWritable(disk: Disk, folder: string, id: string, newest: Segment): Promise<void> {
  if (newest.packed) throw packedAtItsEnd(id, newest.name);
  const bytes = disk.stat(join(folder, newest.name))?.size ?? 0;
  // Bytes after a tail do not count and are not copied.
  if (bytes > SEGMENT_BYTES_MAX && !newest.tail) throw tooLargeToHeal(id, newest.name, bytes);
  await assertEpochFormat(disk, folder);
}

/**
 * No writer makes such a file. The bytes beyond its end would have to be copied before the session can continue, and
 * may be anything.
 */
function tooLargeToHeal(id: string, name: string, bytes: number): HoldfastError {
  const message =
    `The newest segment of session ${id} (${name}) has ${bytes} bytes, but Holdfast never writes more than ${SEGMENT_BYTES_MAX}: someone has changed it, so it cannot be written to. ` +
    "Nothing was touched, and reading works. Restore it from a backup, or cut off what does not belong to it.";
  return new HoldfastError("JOURNAL_UNREADABLE", message, { session: id, segment: name, bytes });
}

/** Only older epochs are packed: the plain segment was lost, or is in a backup. */
function packedAtItsEnd(id: string, name: string): HoldfastError {
  const message =
    `The newest segment of session ${id} is packed (${name}), so it cannot be written to. Nothing was touched, and reading works. ` +
    "Restore the plain segment: `zstdcat` unpacks it from the packed one.";
  return new HoldfastError("JOURNAL_UNREADABLE", message, { session: id, segment: name });
}

function isClosedAt({ last, size, recovery, format }: EpochFiles, { segment, bytes }: ClosedAt): boolean {
  return last.name === segment && size === bytes && !last.tail && !recovery.unclean && format === FORMAT;
}

/** The state after healing. */
export interface HealthyEnd {
  /** Every record up to this seq is durable. */
  readonly durable: number;
  /** Where the newest segment ends, and the next one continues. */
  readonly end: number;
  readonly quarantine?: string;
  /** Work to do before the first append, and to skip for a writer that only reads. */
  readonly beforeFirst: () => void;
}

/**
 * Makes everything in `epoch` durable (S8, S9). The caller has claimed the next segment and continues there: the writer
 * of the newest segment may have lost its lease without knowing it, and may still append. So no byte of that segment is
 * changed. It is sealed: a file next to it, its tail, says where it ends.
 *
 * If interrupted, it runs again from the start: each step leaves a journal that reads the same.
 */
export function heal(disk: Disk, folder: string, epoch: EpochFiles): HealthyEnd {
  const { name } = epoch.last;
  const path = join(folder, name);
  const beforeFirst = () => stir(disk, path);
  try {
    prepare(disk, folder);
    const { cut, unended, durableEnd, durable, next } = epoch.tail;
    const { size } = epoch;
    const head = next - 1;
    if (epoch.last.tail) return { durable: head, end: epoch.last.tail.offset, beforeFirst };
    const isClosed = !epoch.recovery.unclean && durable >= head - 1;
    const file = disk.open(path, "read");
    try {
      if (isClosed || (cut === null && !unended && durableEnd >= size)) {
        // After the last mark there is at most `closed`, which nobody was promised; but records appended after it will
        // be promised. Read its bytes now: once the cache is dropped, they may be gone.
        const kept = readAt(file, durableEnd, size - durableEnd);
        let isSealed = false;
        const sealFirst = () => {
          if (!isSealed) {
            seal(disk, folder, name, durableEnd, (put) => {
              put(kept);
              if (unended) put(NEWLINE);
            });
          }
          isSealed = true;
          beforeFirst();
        };
        return { durable, end: durableEnd, beforeFirst: sealFirst };
      }
      const quarantine = cut === null ? undefined : keepAside(disk, folder, name, file, cut, size);
      seal(disk, folder, name, durableEnd, (put) => {
        eachChunk(file, durableEnd, cut ?? size, put);
        if (unended) put(NEWLINE);
      });
      const found = quarantine === undefined ? {} : { quarantine };
      return { durable: head, end: durableEnd, beforeFirst, ...found };
    } finally {
      file.close();
    }
  } catch (error) {
    throw diskFailure(error, "prepare the journal for writing", path, "Nothing was lost. Reading still works.");
  }
}

/** Prepares for writing, even where there is nothing to heal. Throws the disk's errors. */
export function prepare(disk: Disk, folder: string): void {
  removeTemporaries(disk, folder);
  // A writer killed between creating a name and syncing it has left a name that only the kernel knows.
  disk.syncFolder(folder);
}

/**
 * Ends the segment at `offset`, followed by these bytes, which are durable when this returns, whatever happened before.
 * After a failed fsync the kernel treats lost pages as clean (S9), and on ext4 rewriting them in place is not enough:
 * fdatasync confirms it, and zeros come back (measured on Linux 6.18, with blocks that had never been written). A new
 * file gets new blocks.
 */
function seal(
  disk: Disk,
  folder: string,
  segment: string,
  offset: number,
  write: (put: (bytes: Uint8Array) => void) => void,
): void {
  createAtomically(disk, folder, tailName(segment, offset), write, { unlessThere: true });
}

/**
 * To see whether a session has changed, a list checks the newest segment it knows. Bytes after its tail do not count,
 * but its size shows the change. A segment with other names is left unchanged, and lists do not rely on it.
 */
function stir(disk: Disk, path: string): void {
  try {
    const file = disk.open(path, "append");
    try {
      if (hasOtherNames(file.stat())) return;
      file.write(NEWLINE);
      file.syncNow();
    } finally {
      file.close();
    }
  } catch (error) {
    throw diskFailure(error, "append to the journal", path, "Nothing of this append was written.");
  }
}

/** Copies `[from, to)` durably to `quarantine/<segment>-<offset>-<crc>.torn`. Returns the copy's path. */
function keepAside(disk: Disk, folder: string, segment: string, file: DiskFile, from: number, to: number): string {
  const quarantine = join(folder, QUARANTINE);
  if (disk.makeFolder(quarantine)) disk.syncFolder(folder);
  let crc = 0;
  eachChunk(file, from, to, (bytes) => {
    crc = crc32(bytes, crc);
  });
  const name = `${segment}-${from}-${crc.toString(16).padStart(8, "0")}.torn`;
  createAtomically(disk, quarantine, name, (put) => eachChunk(file, from, to, put));
  return join(quarantine, name);
}

function eachChunk(file: DiskFile, from: number, to: number, use: (bytes: Buffer) => void): void {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(1, to - from)));
  for (let position = from; position < to; ) {
    const read = file.read(buffer, 0, Math.min(buffer.length, to - position), position);
    if (read === 0) throw Object.assign(new Error("the file ended early"), { code: "EIO" });
    use(buffer.subarray(0, read));
    position += read;
  }
}

/**
 * Moves tails of segment `number`, which is about to be created, to the quarantine. Someone removed the segment they
 * belonged to; next to the new one they would replace its bytes. The creator of a segment has claimed its number, so
 * nobody is creating a tail for it.
 */
export function setTailsAside(disk: Disk, folder: string, number: number): void {
  const quarantine = join(folder, QUARANTINE);
  try {
    const tails = tailsOf(disk, folder, number);
    if (tails.length === 0) return;
    disk.makeFolder(quarantine);
    // Under a unique name: one with the same offset may already be there.
    for (const name of tails) disk.rename(join(folder, name), join(quarantine, `${name}-${newId().slice(-12)}`));
    disk.syncFolder(quarantine);
    disk.syncFolder(folder);
  } catch (error) {
    throw diskFailure(error, "start a new segment", folder, "Existing data is not affected.");
  }
}

/** What an interrupted writer left half done does not count, and while we hold the lease nobody uses it (S15). */
function removeTemporaries(disk: Disk, folder: string): void {
  for (const name of disk.list(folder)) if (name.endsWith(TEMPORARY)) removeStray(disk, join(folder, name));
  const quarantine = join(folder, QUARANTINE);
  if (disk.stat(quarantine)?.kind !== "folder") return;
  for (const name of disk.list(quarantine)) if (name.endsWith(TEMPORARY)) removeStray(disk, join(quarantine, name));
}
