import { zstdDecompressSync } from "node:zlib";
import type { DiskFile } from "../../disk/disk.ts";
import { RECORD_BYTES_MAX } from "../../journal/record.ts";

/** One frame of a packed segment, unpacked: which bytes of the segment it holds. Null bytes: the frame is damaged. */
export interface Frame {
  readonly offset: number;
  readonly size: number;
  readonly bytes: Buffer | null;
}

interface TableEntry {
  readonly packedSize: number;
  readonly size: number;
}

/** The magic number of a skippable frame, which zstdcat passes over. */
const SKIPPABLE = 0x184d2a5e;
const FRAME_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const TABLE_MAGIC = Buffer.from("hfst");
const ENTRY_BYTES = 8;
const HEADER_BYTES = 8;
/** Entry count and magic, at the very end of the file. */
const FOOTER_BYTES = 8;
/** Compressed bytes can look like the beginning of a frame: so many of them in one frame are seen through. */
const FALSE_MAGICS_MAX = 4;

/** The skippable frame at the end of a packed segment: for each frame its packed and its plain size, then their number. */
export function encodeFrameTable(frames: readonly TableEntry[]): Buffer {
  const content = frames.length * ENTRY_BYTES + FOOTER_BYTES;
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + content);
  bytes.writeUInt32LE(SKIPPABLE, 0);
  bytes.writeUInt32LE(content, 4);
  let at = HEADER_BYTES;
  for (const frame of frames) {
    bytes.writeUInt32LE(frame.packedSize, at);
    bytes.writeUInt32LE(frame.size, at + 4);
    at += ENTRY_BYTES;
  }
  bytes.writeUInt32LE(frames.length, at);
  TABLE_MAGIC.copy(bytes, at + 4);
  return bytes;
}

/** The frames of a packed segment, one in memory at a time. A damaged table costs nothing: the frames are then found by their beginnings. */
export function* readFrames(file: DiskFile): Generator<Frame> {
  const { size } = file.stat();
  const table = readTable(file, size);
  if (!table) return yield* findFrames(file, size);
  let packedOffset = 0;
  let offset = 0;
  for (const entry of table) {
    const bytes = unpack(readAt(file, packedOffset, entry.packedSize), entry.size);
    yield { offset, size: entry.size, bytes: bytes?.length === entry.size ? bytes : null };
    packedOffset += entry.packedSize;
    offset += entry.size;
  }
}

/** Null if the table does not fit the file. */
function readTable(file: DiskFile, size: number): TableEntry[] | null {
  if (size < HEADER_BYTES + FOOTER_BYTES) return null;
  const footer = readAt(file, size - FOOTER_BYTES, FOOTER_BYTES);
  const count = footer.readUInt32LE(0);
  const tableBytes = count * ENTRY_BYTES;
  const tableAt = size - FOOTER_BYTES - tableBytes;
  if (!footer.subarray(4).equals(TABLE_MAGIC) || tableAt < HEADER_BYTES) return null;
  const table = readAt(file, tableAt, tableBytes);
  const entries: TableEntry[] = [];
  let packed = 0;
  for (let at = 0; at < tableBytes; at += ENTRY_BYTES) {
    const entry = { packedSize: table.readUInt32LE(at), size: table.readUInt32LE(at + 4) };
    packed += entry.packedSize;
    entries.push(entry);
  }
  return packed === tableAt - HEADER_BYTES ? entries : null;
}

function* findFrames(file: DiskFile, size: number): Generator<Frame> {
  const packed = readAt(file, 0, size);
  const starts: number[] = [];
  for (let at = packed.indexOf(FRAME_MAGIC); at !== -1; at = packed.indexOf(FRAME_MAGIC, at + 1)) starts.push(at);
  const table = packed.lastIndexOf(Buffer.from([0x5e, 0x2a, 0x4d, 0x18]));
  starts.push(table > (starts.at(-1) ?? 0) ? table : size);
  let offset = 0;
  for (let i = 0; i + 1 < starts.length; ) {
    let next = i + 1;
    let bytes: Buffer | null = null;
    for (; next < starts.length && next <= i + 1 + FALSE_MAGICS_MAX; next++) {
      bytes = unpack(packed.subarray(starts[i]!, starts[next]!), RECORD_BYTES_MAX);
      if (bytes) break;
    }
    if (!bytes) next = i + 1;
    yield { offset, size: bytes?.length ?? 1, bytes };
    offset += bytes?.length ?? 1;
    i = next;
  }
}

function unpack(packed: Buffer, sizeMax: number): Buffer | null {
  try {
    return zstdDecompressSync(packed, { maxOutputLength: Math.max(1, sizeMax) });
  } catch (error) {
    // The frame's own checksum or structure is broken: its lines are lost, those of the other frames are not (P9).
    if (error instanceof Error && "code" in error) return null;
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
