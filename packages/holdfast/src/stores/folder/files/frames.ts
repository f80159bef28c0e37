import { zstdDecompressSync } from "node:zlib";
import type { DiskFile } from "../../../disk/disk.ts";
import { RECORD_BYTES_MAX, SEGMENT_BYTES_MAX } from "../../../journal/record.ts";
import { FRAME_MAGIC, frameEnd, frameHeader } from "./zstd.ts";

/**
 * One unpacked frame of a packed segment, and which bytes of the segment it holds. Null bytes: it is damaged, or not a
 * frame.
 */
export interface Frame {
  readonly offset: number;
  readonly size: number;
  readonly bytes: Buffer | null;
}

/** A skippable frame, which zstdcat ignores, ends the file: early versions wrote a table of the frames there. */
const SKIPPABLE_MAGIC = Buffer.from([0x5e, 0x2a, 0x4d, 0x18]);
/** Incompressible data grows slightly. */
const PACKED_BYTES_MAX = RECORD_BYTES_MAX + RECORD_BYTES_MAX / 256 + 1024;
/** At most this many false frame starts are skipped, and at most this many blocks examined. */
const FALSE_STARTS_MAX = 1024;
const BLOCKS_MAX = 256 * 1024;
const CHUNK_BYTES = 1024 * 1024;
/** Node does not unpack into a smaller buffer. */
const MIN_CHUNK_BYTES = 64;

/**
 * The frames of a packed segment that extend beyond the plain byte `from`, one in memory at a time. A frame is never
 * unpacked beyond the size it declares, nor if it declares no size or more than a record can have: a hundred kilobytes
 * of zstd can hold gigabytes. Together, the frames hold no more than a segment may.
 */
export function* readFrames(file: DiskFile, from = 0): Generator<Frame> {
  for (const { offset, size, unpack } of framesInBounds(file))
    if (offset + size > from) yield { offset, size, bytes: unpack() };
}

/** The plain size of a packed segment, as its frames declare it. */
export function plainSizeOf(file: DiskFile): number {
  let end = 0;
  for (const { offset, size } of framesInBounds(file)) end = offset + size;
  return end;
}

/** The frame that reaches beyond what a segment may hold is damage, and the last. */
function* framesInBounds(file: DiskFile): Generator<PackedFrame & { readonly offset: number }> {
  let offset = 0;
  for (const { size, unpack } of findFrames(file)) {
    const isTooFar = offset + size > SEGMENT_BYTES_MAX;
    yield { offset, size, unpack: isTooFar ? () => null : unpack };
    if (isTooFar) return;
    offset += size;
  }
}

interface PackedFrame {
  readonly size: number;
  readonly unpack: () => Buffer | null;
}

/**
 * A frame's blocks show where it ends. If neither a frame nor the end of the file follows, that end is wrong, unless
 * the frame can be unpacked. After a damaged frame, the next one is found by its magic number: what precedes it is one
 * stray, of one byte because the length of its lines is unknown.
 */
function* findFrames(file: DiskFile): Generator<PackedFrame> {
  const end = Math.min(file.stat().size, SEGMENT_BYTES_MAX);
  const budget = { blocks: BLOCKS_MAX };
  let isDamaged = false;
  for (let at = 0, falseStarts = 0; at < end && falseStarts < FALSE_STARTS_MAX; ) {
    if (isAt(file, at, SKIPPABLE_MAGIC)) return;
    const frame = frameAt(file, at, end, budget);
    if (frame) {
      yield frame;
      at = frame.end;
    } else {
      if (!isDamaged) yield { size: 1, unpack: () => null };
      falseStarts++;
      at = nextMagic(file, at + 1, end);
    }
    isDamaged = frame === null;
  }
}

function frameAt(
  file: DiskFile,
  at: number,
  fileEnd: number,
  budget: { blocks: number },
): (PackedFrame & { readonly end: number }) | null {
  const end = frameEnd(file, at, fileEnd, budget);
  const size = frameHeader(file, at)?.size ?? null;
  if (end === null || size === null || size > RECORD_BYTES_MAX) return null;
  if (end === fileEnd || isAt(file, end, FRAME_MAGIC) || isAt(file, end, SKIPPABLE_MAGIC)) {
    return { size, end, unpack: () => unpack(file, at, end - at, size) };
  }
  const bytes = unpack(file, at, end - at, size);
  return bytes && { size, end, unpack: () => bytes };
}

function isAt(file: DiskFile, position: number, magic: Buffer): boolean {
  const bytes = Buffer.alloc(magic.length);
  return file.read(bytes, 0, bytes.length, position) === bytes.length && bytes.equals(magic);
}

/** Where the next frame or a table may start; `end` if nowhere. */
function nextMagic(file: DiskFile, from: number, end: number): number {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let position = from; position < end; ) {
    const read = file.read(buffer, 0, Math.min(buffer.length, end - position), position);
    if (read < FRAME_MAGIC.length) return end;
    const found = [FRAME_MAGIC, SKIPPABLE_MAGIC]
      .map((magic) => buffer.subarray(0, read).indexOf(magic))
      .filter((i) => i !== -1);
    if (found.length > 0) return position + Math.min(...found);
    position += read - (FRAME_MAGIC.length - 1);
  }
  return end;
}

/** Null if the frame is damaged, has not the size that it declares, or is larger than any writer makes. */
function unpack(file: DiskFile, position: number, packedSize: number, size: number): Buffer | null {
  if (packedSize > PACKED_BYTES_MAX) return null;
  try {
    const bytes = decompress(readAt(file, position, packedSize), Math.max(MIN_CHUNK_BYTES, size));
    return bytes?.length === size ? bytes : null;
  } catch (error) {
    // The disk cannot read it.
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}

/** Null if the frame's checksum or structure is broken: its lines are lost, those of other frames are not (P9). */
function decompress(packed: Buffer, room: number): Buffer | null {
  try {
    return zstdDecompressSync(packed, { maxOutputLength: room, chunkSize: room });
  } catch (error) {
    // Only the bytes can be at fault. The error has a `code` in Node and Bun, and none in Deno.
    if (error instanceof Error) return null;
    throw error;
  }
}

/** Exactly these bytes of a file. */
export function readAt(file: Pick<DiskFile, "read">, position: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let done = 0; done < length; ) {
    const read = file.read(bytes, done, length - done, position + done);
    if (read === 0) throw Object.assign(new Error("the file ended early"), { code: "EIO" });
    done += read;
  }
  return bytes;
}
