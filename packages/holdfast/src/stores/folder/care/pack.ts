import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import type { Disk } from "../../../disk/disk.ts";
import { diskFailure } from "../../../disk/failure.ts";
import { HoldfastError } from "../../../errors.ts";
import { RECORD_BYTES_MAX, SEGMENT_BYTES_MAX } from "../../../journal/record.ts";
import { createAtomically } from "../files/create-atomically.ts";
import { readAt, readFrames } from "../files/frames.ts";
import { openSource, type Segment, type Source } from "../files/segment.ts";

/**
 * A frame holds whole lines; a longer line gets a separate frame. A flipped bit costs its frame (P9), so frames are
 * small: compared with 1 MiB, a typical session's packed file grows by 5 %.
 */
const FRAME_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
/** zstd's own numbers: asking `node:zlib` for them would load it before it is needed. */
const [COMPRESSION_LEVEL, CONTENT_SIZE_FLAG, CHECKSUM_FLAG] = [100, 200, 201] as const;
/** Without the checksum, most flipped bits come out as wrong bytes (S17). */
const PARAMETERS = { [COMPRESSION_LEVEL]: 6, [CHECKSUM_FLAG]: 1, [CONTENT_SIZE_FLAG]: 1 };

/**
 * Replaces a plain segment with its packed form, under the lease. Returns its new size in bytes; null if it stays
 * plain, because it exceeds the maximum segment size or has a line that is not a record and fits in no frame.
 */
export function packSegment(disk: Disk, folder: string, segment: Segment): number | null {
  const path = join(folder, segment.name);
  const packedName = `${segment.name}.zst`;
  try {
    // A sealed segment was synced before its successor was created, but the copy is made from the cache: sync what it
    // is compared with.
    const tail = segment.tail?.name ?? null;
    for (const name of tail === null ? [segment.name] : [segment.name, tail]) syncFile(disk, join(folder, name));
    const source = openSource(disk, folder, segment);
    try {
      if (!fitsFrames(source)) return null;
      const check = (temporary: string) => assertSame(disk, temporary, source);
      createAtomically(disk, folder, packedName, (put) => writeFrames(source, put), { check });
    } finally {
      source.close();
    }
    disk.remove(path);
    disk.syncFolder(folder);
    if (tail !== null) {
      // Only after the segment is gone for good: if a power cut restored the segment without its tail, it would hide
      // the packed copy, and the tail's content would be lost.
      disk.remove(join(folder, tail));
      disk.syncFolder(folder);
    }
    return disk.stat(join(folder, packedName))!.size;
  } catch (error) {
    throw diskFailure(error, "pack a segment", path, "The segment is unchanged or packed: both read the same.");
  }
}

function syncFile(disk: Disk, path: string): void {
  // Windows syncs only files that are open for writing.
  const file = disk.open(path, "update");
  try {
    file.syncNow();
  } finally {
    file.close();
  }
}

function writeFrames(source: Source, put: (bytes: Uint8Array) => void): void {
  // Node knows the size of an input that is passed as a whole; Deno must be told, or the frame does not declare it.
  for (const lines of wholeLines(source))
    put(zstdCompressSync(lines, { params: PARAMETERS, pledgedSrcSize: lines.length }));
}

/** Readers do not unpack a frame larger than a record. */
function fitsFrames(source: Source): boolean {
  if (source.size() > SEGMENT_BYTES_MAX) return false;
  for (const lines of wholeLines(source)) if (lines.length > RECORD_BYTES_MAX) return false;
  return true;
}

/** Pieces of about a frame's size that end at a line end, or are too long for a frame. */
function* wholeLines(source: Source): Generator<Buffer> {
  const size = source.size();
  for (let position = 0; position < size; ) {
    let bytes = readAt(source, position, Math.min(FRAME_BYTES, size - position));
    let end = bytes.lastIndexOf(NEWLINE) + 1;
    while (end === 0 && bytes.length <= RECORD_BYTES_MAX && position + bytes.length < size) {
      bytes = readAt(source, position, Math.min(bytes.length * 2, size - position));
      end = bytes.indexOf(NEWLINE) + 1;
    }
    const piece = end === 0 ? bytes : bytes.subarray(0, end);
    yield piece;
    position += piece.length;
  }
}

/** Reads the copy back and compares it byte by byte before it replaces the original. */
function assertSame(disk: Disk, path: string, source: Source): void {
  const packed = disk.open(path, "read");
  try {
    let end = 0;
    for (const { offset, size, bytes } of readFrames(packed)) {
      if (!bytes?.equals(readAt(source, offset, size))) throw differs(path);
      end = offset + size;
    }
    if (end !== source.size()) throw differs(path);
  } finally {
    packed.close();
  }
}

function differs(path: string): HoldfastError {
  const message = `The packed copy ${path} did not read back as the original, and was removed. The original is untouched. Check the disk.`;
  return new HoldfastError("STORE_IO", message, { path });
}
