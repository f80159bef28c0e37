import type { DiskFile } from "../../../disk/disk.ts";

/** What a zstd frame (RFC 8878) reveals without unpacking it. */

export const FRAME_MAGIC: Buffer = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
/** Magic number, descriptor, window, dictionary, content size. */
const HEADER_BYTES_MAX = 4 + 1 + 1 + 4 + 8;
const BLOCK_HEADER_BYTES = 3;
const BLOCK_BYTES_MAX = 128 * 1024;
const CHECKSUM_BYTES = 4;

interface FrameHeader {
  /** Where the first block starts. */
  readonly blocksAt: number;
  /** The plain size the frame declares; null if it declares none, or an invalid one. */
  readonly size: number | null;
  readonly hasChecksum: boolean;
}

/** The header of the frame at `position`; null if none starts there. */
export function frameHeader(file: DiskFile, position: number): FrameHeader | null {
  const bytes = Buffer.alloc(HEADER_BYTES_MAX);
  const read = file.read(bytes, 0, bytes.length, position);
  if (read < 6 || !bytes.subarray(0, 4).equals(FRAME_MAGIC)) return null;
  const descriptor = bytes[4]!;
  // A reserved bit must not be set.
  if ((descriptor & 0b1000) !== 0) return null;
  const isSingle = (descriptor & 0b100000) !== 0;
  const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6]!;
  const sizeAt = 5 + (isSingle ? 0 : 1) + [0, 1, 2, 4][descriptor & 0b11]!;
  if (sizeAt + sizeBytes > read) return null;
  const hasChecksum = (descriptor & 0b100) !== 0;
  return { blocksAt: position + sizeAt + sizeBytes, size: sizeIn(bytes, sizeAt, sizeBytes), hasChecksum };
}

function sizeIn(bytes: Buffer, at: number, length: number): number | null {
  if (length === 0) return null;
  if (length === 8) {
    const size = bytes.readBigUInt64LE(at);
    return size <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(size) : null;
  }
  return bytes.readUIntLE(at, length) + (length === 2 ? 256 : 0);
}

/**
 * Where the frame that starts at `position` ends, by its block sizes; null if it is not a frame, or does not end before
 * `end`. `budget` is how many more blocks may be examined: other data can look like a frame with millions.
 */
export function frameEnd(file: DiskFile, position: number, end: number, budget: { blocks: number }): number | null {
  const header = frameHeader(file, position);
  if (!header) return null;
  const bytes = Buffer.alloc(BLOCK_HEADER_BYTES);
  let at = header.blocksAt;
  while (budget.blocks-- > 0) {
    if (file.read(bytes, 0, BLOCK_HEADER_BYTES, at) < BLOCK_HEADER_BYTES) return null;
    const block = bytes.readUIntLE(0, BLOCK_HEADER_BYTES);
    const type = (block >> 1) & 0b11;
    const size = block >> 3;
    if (type === 3 || size > BLOCK_BYTES_MAX) return null;
    // A block of type 1 is one byte, repeated `size` times.
    at += BLOCK_HEADER_BYTES + (type === 1 ? 1 : size);
    if (at > end) return null;
    if ((block & 1) === 0) continue;
    at += header.hasChecksum ? CHECKSUM_BYTES : 0;
    return at <= end ? at : null;
  }
  return null;
}
