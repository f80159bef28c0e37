import type { SourceFile } from "./source-file.ts";

/** Where the frames of a Zstandard file lie (RFC 8878). Node's own reader stops behind the first one. */

export interface Frame {
  readonly offset: number;
  /** To the end of the file, if the frame has no end. */
  readonly length: number;
  readonly isCut: boolean;
}

const MAGIC = 0xfd2fb528;
/** Frames that are to be passed over have one of sixteen numbers. */
const SKIPPABLE = 0x184d2a50;
const HEADER_BYTES_MAX = 18;
const RLE_BLOCK = 1;

/** The frames in their order. What follows the last one and is none is left out. */
export function* framesOf(file: SourceFile): Generator<Frame> {
  for (let offset = 0; offset < file.size; ) {
    const head = Buffer.from(file.read(offset, HEADER_BYTES_MAX));
    if (head.length >= 8 && (head.readUInt32LE() & 0xfffffff0) >>> 0 === SKIPPABLE) {
      offset += 8 + head.readUInt32LE(4);
      continue;
    }
    if (head.length < 5 || head.readUInt32LE() !== MAGIC) return;
    const end = endOf(file, offset, head[4]!);
    const isCut = end === null || end > file.size;
    yield { offset, length: (isCut ? file.size : end) - offset, isCut };
    if (isCut) return;
    offset = end;
  }
}

const AHEAD_BYTES = 2 ** 16;

/** Behind the last block of a frame; null if the file ends before it. */
function endOf(file: SourceFile, offset: number, descriptor: number): number | null {
  const isSingle = (descriptor >> 5) & 1;
  const sizeFlag = descriptor >> 6;
  const sizeBytes = sizeFlag === 0 ? isSingle : 2 ** sizeFlag;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!;
  let at = offset + 5 + (1 - isSingle) + dictionaryBytes + sizeBytes;
  // Blocks may be small: one read is for many of them.
  let ahead = Buffer.alloc(0);
  let from = at;
  for (;;) {
    if (at < from || at + 3 > from + ahead.length) {
      from = at;
      ahead = Buffer.from(file.read(at, AHEAD_BYTES));
    }
    if (ahead.length < 3) return null;
    const block = ahead.readUIntLE(at - from, 3);
    at += 3 + (((block >> 1) & 3) === RLE_BLOCK ? 1 : block >> 3);
    if (block & 1) return at + ((descriptor >> 2) & 1 ? 4 : 0);
  }
}
