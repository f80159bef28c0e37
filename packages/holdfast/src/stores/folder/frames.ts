import type { DiskFile } from "../../disk/disk.ts";

/** One zstd frame of a packed segment: where it stands in the file, and which bytes of the segment it holds (S17). */
export interface Frame {
  readonly packedOffset: number;
  readonly packedSize: number;
  readonly offset: number;
  readonly size: number;
}

/** The magic number of a skippable frame, which zstdcat passes over. */
const SKIPPABLE = 0x184d2a5e;
const MAGIC = Buffer.from("hfst");
const ENTRY_BYTES = 8;
/** Entry count and magic, at the very end of the file. */
const FOOTER_BYTES = 8;

/** The skippable frame at the end of a packed segment: for each frame its packed and its plain size, then their number. */
export function encodeFrameTable(frames: readonly Pick<Frame, "packedSize" | "size">[]): Buffer {
  const content = frames.length * ENTRY_BYTES + FOOTER_BYTES;
  const bytes = Buffer.allocUnsafe(8 + content);
  bytes.writeUInt32LE(SKIPPABLE, 0);
  bytes.writeUInt32LE(content, 4);
  let at = 8;
  for (const frame of frames) {
    bytes.writeUInt32LE(frame.packedSize, at);
    bytes.writeUInt32LE(frame.size, at + 4);
    at += ENTRY_BYTES;
  }
  bytes.writeUInt32LE(frames.length, at);
  MAGIC.copy(bytes, at + 4);
  return bytes;
}

/** The frames of a packed segment. An unreadable table gives none: the caller finds every record of it missing. */
export function readFrameTable(file: DiskFile): Frame[] {
  const { size } = file.stat();
  const footer = Buffer.alloc(FOOTER_BYTES);
  if (size < FOOTER_BYTES || file.read(footer, 0, FOOTER_BYTES, size - FOOTER_BYTES) !== FOOTER_BYTES) return [];
  const count = footer.readUInt32LE(0);
  const tableBytes = count * ENTRY_BYTES;
  const tableAt = size - FOOTER_BYTES - tableBytes;
  if (!footer.subarray(4).equals(MAGIC) || tableAt < 0) return [];
  const table = Buffer.alloc(tableBytes);
  file.read(table, 0, tableBytes, tableAt);
  const frames: Frame[] = [];
  let packedOffset = 0;
  let offset = 0;
  for (let i = 0; i < count; i++) {
    const frame = {
      packedOffset,
      packedSize: table.readUInt32LE(i * ENTRY_BYTES),
      offset,
      size: table.readUInt32LE(i * ENTRY_BYTES + 4),
    };
    packedOffset += frame.packedSize;
    offset += frame.size;
    if (packedOffset > tableAt) return [];
    frames.push(frame);
  }
  return frames;
}
