import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Disk, DiskFile } from "../../../disk/disk.ts";
import { diskFailure } from "../../../disk/failure.ts";
import { hasOtherNames } from "../../../disk/file-rules.ts";
import { newId } from "../../../journal/id.ts";
import { FORMAT_MAJOR, FORMAT_MINOR } from "../../../journal/record.ts";
import type { ClosedAt } from "../../lease.ts";
import { claimNext, isClaimed, replaced } from "../files/claim.ts";
import { createAtomically, removeStray, TEMPORARY } from "../files/create-atomically.ts";
import { type EpochFiles, readEpoch } from "../files/epoch.ts";
import { readAt } from "../files/frames.ts";
import { listSegments, tailName, tailsOf } from "../files/segment.ts";

const CHUNK_BYTES = 1024 * 1024;
const NEWLINE = Buffer.from("\n");
const QUARANTINE = "quarantine";

const FORMAT = `${FORMAT_MAJOR}.${FORMAT_MINOR}`;

/**
 * The current epoch, for somebody who wants to write; null if there is no segment. Where the last writer closed the
 * journal, and said so, `claim` is null: this one goes on in the same segment. Else it has claimed a segment of its
 * own, before it read the journal. A segment of another format is not appended to (S16), nor one that has other names.
 */
export async function openEpoch(
  disk: Disk,
  folder: string,
  lastClose: ClosedAt | null,
): Promise<{ readonly epoch: EpochFiles; readonly claim: number | null } | null> {
  const found = lastClose && disk.stat(join(folder, lastClose.segment));
  if (found && found.size === lastClose.bytes && !hasOtherNames(found)) {
    const epoch = await readEpoch(disk, folder);
    // A claim may be left of a segment that found no space.
    const canGoOn = epoch && isClosedAt(epoch, lastClose) && !isClaimed(disk, folder, epoch.last.number + 1);
    if (canGoOn) return { epoch, claim: null };
  }
  if (listSegments(disk, folder).length === 0) return null;
  const claim = claimNext(disk, folder);
  const epoch = await readEpoch(disk, folder);
  // Somebody who claimed a later number has begun it: that segment is not ours to end.
  if (epoch && epoch.last.number >= claim) throw replaced(folder);
  return epoch && { epoch, claim };
}

function isClosedAt({ last, size, recovery, format }: EpochFiles, { segment, bytes }: ClosedAt): boolean {
  return last.name === segment && size === bytes && !last.tail && !recovery.unclean && format === FORMAT;
}

/** What healing left. */
export interface Healed {
  /** Every record up to this seq is durable. */
  readonly durable: number;
  /** Where the newest segment ends, for the next one to go on from. */
  readonly end: number;
  readonly quarantine?: string;
  /** What must be done before the first append, and is not worth it for one who only looks. */
  readonly beforeFirst: () => void;
}

/**
 * Makes everything that `epoch` shows durable (S8, S9). The caller has claimed the next segment, and goes on there:
 * whoever wrote the newest one may still be alive, if he lost his lease without knowing it, and append to it. So no
 * byte of that segment is changed. It is sealed: a file beside it, its tail, says where it ends.
 *
 * Runs again from the start if it is interrupted: each step leaves a journal that reads the same.
 */
export function heal(disk: Disk, folder: string, epoch: EpochFiles): Healed {
  const { name } = epoch.last;
  const path = join(folder, name);
  const beforeFirst = () => stir(disk, path);
  try {
    prepare(disk, folder);
    const { cut, unended, durableEnd, durable, next } = epoch.tail;
    const { size } = epoch;
    const head = next - 1;
    if (epoch.last.tail) return { durable: head, end: epoch.last.tail.offset, beforeFirst };
    if (!epoch.recovery.unclean || (cut === null && !unended && durableEnd >= size)) {
      // What is behind the last mark is `closed` at most, which nobody was promised; but what is appended behind it
      // will be. Its bytes are taken now: a cache that is dropped later may have nothing to give.
      const kept = readRange(disk, path, durableEnd, size);
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
    const file = disk.open(path, "read");
    try {
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
    throw diskFailure(error, "make the journal ready for writing", path, "Nothing was lost. Reading still works.");
  }
}

/** What comes before any writing, also where there is nothing to heal. Throws what the disk throws. */
export function prepare(disk: Disk, folder: string): void {
  removeTemporaries(disk, folder);
  // A writer that was killed between giving a name and syncing it has left one that only the kernel knows of.
  disk.syncFolder(folder);
}

/**
 * The segment ends at `offset`, followed by these bytes, which are durable when this returns whatever happened before.
 * After a failed fsync the kernel takes lost pages for clean (S9); and on ext4 writing them again in place is not
 * enough: fdatasync confirms it, and zeros come back (measured on Linux 6.18, with blocks that had never been written).
 * A new file gets new blocks.
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
 * A list asks the newest segment that it knows whether the session has gone on. Behind its tail no byte of it counts,
 * but its size tells. One that has other names is not changed, and lists do not ask it.
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

function readRange(disk: Disk, path: string, from: number, to: number): Buffer {
  const file = disk.open(path, "read");
  try {
    return readAt(file, from, to - from);
  } finally {
    file.close();
  }
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
 * Moves tails of segment `number`, which is about to be made, to the quarantine. Somebody removed the segment that they
 * belonged to; beside the new one they would take the place of its bytes. Whoever makes a segment has claimed its
 * number, so that nobody is making a tail for it.
 */
export function setTailsAside(disk: Disk, folder: string, number: number): void {
  const quarantine = join(folder, QUARANTINE);
  try {
    const tails = tailsOf(disk, folder, number);
    if (tails.length === 0) return;
    disk.makeFolder(quarantine);
    // Under a name of its own: one of the same offset may be there already.
    for (const name of tails) disk.rename(join(folder, name), join(quarantine, `${name}-${newId().slice(-12)}`));
    disk.syncFolder(quarantine);
    disk.syncFolder(folder);
  } catch (error) {
    throw diskFailure(error, "begin a new segment", folder, "Nothing that was there is affected.");
  }
}

/** What an interrupted writer left half done does not count, and is in nobody's use while we hold the lease (S15). */
function removeTemporaries(disk: Disk, folder: string): void {
  for (const name of disk.list(folder)) if (name.endsWith(TEMPORARY)) removeStray(disk, join(folder, name));
  const quarantine = join(folder, QUARANTINE);
  if (disk.stat(quarantine)?.kind !== "folder") return;
  for (const name of disk.list(quarantine)) if (name.endsWith(TEMPORARY)) removeStray(disk, join(quarantine, name));
}
