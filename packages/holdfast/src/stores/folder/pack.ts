import { join } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import type { Disk } from "../../disk/disk.ts";
import { diskFailure } from "../../disk/failure.ts";
import { HoldfastError } from "../../errors.ts";
import { giveBirth } from "./birth.ts";
import { encodeFrameTable, readAt, readFrames } from "./frames.ts";
import { openSource, type Segment, type Source } from "./segment.ts";

/** A frame holds whole lines; one line that is longer has a frame of its own. */
const FRAME_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;
/** Without the checksum most flipped bits come out as wrong bytes (S17). The content size is always in, since input is given as a whole. */
const PARAMETERS = { [constants.ZSTD_c_checksumFlag]: 1, [constants.ZSTD_c_contentSizeFlag]: 1 };

/** Replaces a plain segment by its packed form. Under the lease. Returns how many bytes it takes now. */
export function packSegment(disk: Disk, folder: string, segment: Segment): number {
  const path = join(folder, segment.name);
  const packedName = `${segment.name}.zst`;
  try {
    // Sealed segments were synced before their successor was born, but the copy is made from the cache: sync what it is compared with.
    const tail = segment.tail?.name ?? null;
    for (const name of tail === null ? [segment.name] : [segment.name, tail]) syncFile(disk, join(folder, name));
    const source = openSource(disk, folder, segment);
    try {
      const check = (temporary: string) => assertSame(disk, temporary, source);
      giveBirth(disk, folder, packedName, (put) => writeFrames(source, put), { check });
    } finally {
      source.close();
    }
    disk.remove(path);
    // After its segment: without it, bytes that do not count would.
    if (tail !== null) disk.remove(join(folder, tail));
    disk.syncFolder(folder);
    return disk.stat(join(folder, packedName))!.size;
  } catch (error) {
    throw diskFailure(error, "pack a segment", path, "The segment is as it was, or packed: both read the same.");
  }
}

function syncFile(disk: Disk, path: string): void {
  // Windows syncs only what may be written to.
  const file = disk.open(path, "update");
  try {
    file.syncNow();
  } finally {
    file.close();
  }
}

function writeFrames(source: Source, put: (bytes: Uint8Array) => void): void {
  const frames: { packedSize: number; size: number }[] = [];
  for (const lines of wholeLines(source)) {
    const packed = zstdCompressSync(lines, { params: PARAMETERS });
    put(packed);
    frames.push({ packedSize: packed.length, size: lines.length });
  }
  put(encodeFrameTable(frames));
}

/** Pieces of about a frame's size that end where a line ends. */
function* wholeLines(source: Source): Generator<Buffer> {
  const size = source.size();
  for (let position = 0; position < size; ) {
    let bytes = readAt(source, position, Math.min(FRAME_BYTES, size - position));
    let end = bytes.lastIndexOf(NEWLINE) + 1;
    while (end === 0 && position + bytes.length < size) {
      bytes = readAt(source, position, Math.min(bytes.length * 2, size - position));
      end = bytes.indexOf(NEWLINE) + 1;
    }
    const piece = end === 0 ? bytes : bytes.subarray(0, end);
    yield piece;
    position += piece.length;
  }
}

/** Read back and compared byte by byte before it takes the original's place. */
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
