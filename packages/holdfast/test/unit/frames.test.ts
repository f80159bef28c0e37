import { constants, crc32, zstdCompressSync } from "node:zlib";
import type { DiskFile } from "holdfast/disk";
import { describe, expect, test } from "vitest";
import { RECORD_BYTES_MAX, SEGMENT_BYTES_MAX } from "../../src/journal/record.ts";
import { encodeFrameTable, plainSizeOf, readFrames } from "../../src/stores/folder/files/frames.ts";
import { frameEnd, frameHeader } from "../../src/stores/folder/files/zstd.ts";
import { randomOf } from "../hostile/hostile-store.ts";

const MIB = 1024 * 1024;

/**
 * A packed segment in memory that counts what is read of it, and refuses to be read in pieces that are larger than any
 * frame.
 */
class MemoryFile {
  read_ = 0;
  readonly bytes: Buffer;
  /** As if the file were this large. */
  readonly size: number;

  constructor(bytes: Buffer, size = bytes.length) {
    this.bytes = bytes;
    this.size = size;
  }

  get file(): DiskFile {
    return {
      stat: () => ({ kind: "file", size: this.size, dev: 1, ino: 1, mtimeMs: 0 }),
      read: (into: Uint8Array, offset: number, length: number, position: number) => {
        expect(length).toBeLessThan(RECORD_BYTES_MAX + MIB);
        const count = Math.max(0, Math.min(length, this.size - position));
        into.fill(0, offset, offset + count);
        if (position < this.bytes.length)
          this.bytes.copy(into, offset, position, Math.min(this.bytes.length, position + count));
        this.read_ += count;
        return count;
      },
    } as DiskFile;
  }
}

const pack = (plain: Buffer, params: Record<number, number> = {}): Buffer =>
  zstdCompressSync(plain, {
    params: { [constants.ZSTD_c_checksumFlag]: 1, [constants.ZSTD_c_contentSizeFlag]: 1, ...params },
  });

/** Lines that cannot be compressed much, so that bytes of the file are bytes of its lines. */
const random = randomOf(17);
const lines = (count: number): Buffer =>
  Buffer.from(
    Array.from(
      { length: count },
      () => `${Array.from({ length: 16 }, () => random(2 ** 32).toString(36)).join("")}\n`,
    ).join(""),
  );

const plains = [lines(900), lines(300), lines(700), lines(1), lines(500)];
const packed = plains.map((plain) => pack(plain));
const table = encodeFrameTable(plains.map((plain, i) => ({ packedSize: packed[i]!.length, size: plain.length })));
const whole = Buffer.concat([...packed, table]);
const offsets = plains.map((_, i) => plains.slice(0, i).reduce((sum, { length }) => sum + length, 0));
const starts = packed.map((_, i) => packed.slice(0, i).reduce((sum, { length }) => sum + length, 0));
const withoutTable = whole.subarray(0, whole.length - 5);

/** Short enough to be shown where they differ. */
const shown = (plain: Buffer | null): string | null => plain && `${plain.length} bytes, ${crc32(plain).toString(16)}`;
const read = (bytes: Buffer, from = 0): { offset: number; bytes: string | null }[] =>
  [...readFrames(new MemoryFile(bytes).file, from)].map(({ offset, bytes: plain }) => ({
    offset,
    bytes: shown(plain),
  }));
const expected = plains.map((plain, i) => ({ offset: offsets[i]!, bytes: shown(plain) }));

function flipped(bytes: Buffer, ...at: number[]): Buffer {
  const copy = Buffer.from(bytes);
  for (const i of at) copy[i]! ^= 0x40;
  return copy;
}

describe("frames of a packed segment", () => {
  test("all of them, by the table and without it", () => {
    expect(read(whole)).toEqual(expected);
    expect(read(withoutTable)).toEqual(expected);
    expect(read(Buffer.concat(packed))).toEqual(expected);
    expect(read(Buffer.alloc(0))).toEqual([]);
  });

  test("the table is used: who reads from the middle, or looks at the first frame, reads no other", () => {
    const middle = new MemoryFile(whole);
    expect([...readFrames(middle.file, offsets[2]! + 10)].map(({ offset }) => offset)).toEqual(offsets.slice(2));
    const rest = packed.slice(2).reduce((sum, { length }) => sum + length, 0);
    expect(middle.read_).toBeLessThan(rest + table.length + 5 * 32);
    const first = new MemoryFile(whole);
    for (const _frame of readFrames(first.file)) break;
    expect(first.read_).toBeLessThan(packed[0]!.length + table.length + 64);
    expect(plainSizeOf(new MemoryFile(whole).file)).toBe(plains.reduce((sum, { length }) => sum + length, 0));
    expect(plainSizeOf(new MemoryFile(withoutTable).file)).toBe(0);
  });

  test("from a place between two frames", () => {
    expect(read(whole, offsets[1]!)).toEqual(expected.slice(1));
    expect(read(whole, offsets[1]! - 1)).toEqual(expected);
    expect(read(withoutTable, offsets[3]! + 1)).toEqual(expected.slice(3));
  });

  test("a damaged frame costs that frame, with the table and without it", () => {
    for (const bytes of [whole, withoutTable]) {
      for (const [i, at] of starts.entries()) {
        // Some single bits of a frame mean nothing; all of a stretch cannot.
        const damaged = flipped(bytes, ...Array.from({ length: 20 }, (_, n) => at + 60 + n));
        expect(read(damaged)).toEqual(expected.map((frame, n) => (n === i ? { ...frame, bytes: null } : frame)));
      }
    }
  });

  test("the table damaged, and the beginning of a frame: the others are found, and what is between them is one stray", () => {
    for (const [i, at] of starts.entries()) {
      const found = read(flipped(withoutTable, at));
      const others = expected.filter((_, n) => n !== i).map(({ bytes }) => bytes);
      expect(found.filter(({ bytes }) => bytes !== null).map(({ bytes }) => bytes)).toEqual(others);
      expect(found.filter(({ bytes }) => bytes === null)).toHaveLength(1);
    }
  });

  test("the table damaged, and the size of a block: neither the frame before nor the ones behind are lost", () => {
    for (const [i, at] of starts.entries()) {
      const { blocksAt } = frameHeader(new MemoryFile(whole).file, at)!;
      for (const byte of [0, 1, 2]) {
        const found = read(flipped(withoutTable, blocksAt + byte));
        const others = expected.filter((_, n) => n !== i).map(({ bytes }) => bytes);
        expect(found.filter(({ bytes }) => bytes !== null).map(({ bytes }) => bytes)).toEqual(others);
      }
    }
  });

  test("a frame followed by garbage, without a table, is read if its checksum is right", () => {
    const bytes = Buffer.concat([packed[0]!, Buffer.from("garbage"), packed[1]!]);
    expect(read(bytes).map(({ bytes: plain }) => plain)).toEqual([expected[0]!.bytes, null, expected[1]!.bytes]);
  });

  test.each([
    ["a wrong packed size", (copy: Buffer) => copy.writeUInt32LE(7, whole.length - table.length + 8)],
    ["a wrong count", (copy: Buffer) => copy.writeUInt32LE(3, whole.length - 8)],
    ["a count of four billion", (copy: Buffer) => copy.writeUInt32LE(0xffff_ffff, whole.length - 8)],
    ["a wrong end", (copy: Buffer) => copy.write("HFST", whole.length - 4)],
  ])("a table with %s is none, and costs nothing", (_what, damage) => {
    const copy = Buffer.from(whole);
    damage(copy);
    expect(read(copy)).toEqual(expected);
  });

  test("a checksum flag that flipped costs nothing: the lines have their own checksums", () => {
    const bytes = Buffer.from(whole);
    bytes[starts[1]! + 4]! ^= 0b100;
    const frames = [...readFrames(new MemoryFile(bytes).file)];
    expect(frames.map(({ bytes: read }, i) => read?.equals(plains[i]!))).toEqual(plains.map(() => true));
  });

  test("a table with a wrong plain size costs that frame", () => {
    const copy = Buffer.from(whole);
    copy.writeUInt32LE(plains[0]!.length + 1, whole.length - table.length + 12);
    const found = read(copy);
    expect(found[0]!.bytes).toBeNull();
    expect(found.slice(1).map(({ bytes }) => bytes)).toEqual(expected.slice(1).map(({ bytes }) => bytes));
  });
});

describe("what a frame may not be", () => {
  const tabled = (frame: Buffer, size: number): Buffer =>
    Buffer.concat([frame, encodeFrameTable([{ packedSize: frame.length, size }])]);

  test("larger than a record: it is not unpacked", () => {
    const large = pack(Buffer.alloc(RECORD_BYTES_MAX + 1));
    expect(read(tabled(large, RECORD_BYTES_MAX + 1))).toEqual([{ offset: 0, bytes: null }]);
    expect(read(large)).toEqual([{ offset: 0, bytes: null }]);
    const largest = pack(Buffer.alloc(RECORD_BYTES_MAX));
    expect(read(tabled(largest, RECORD_BYTES_MAX))[0]!.bytes).toBe(shown(Buffer.alloc(RECORD_BYTES_MAX)));
  });

  test("without its size", () => {
    const silent = pack(Buffer.alloc(1000, "x\n"), { [constants.ZSTD_c_contentSizeFlag]: 0 });
    expect(frameHeader(new MemoryFile(silent).file, 0)?.size).toBeNull();
    expect(read(tabled(silent, 1000))).toEqual([{ offset: 0, bytes: null }]);
    expect(read(silent)).toEqual([{ offset: 0, bytes: null }]);
  });

  test("of another size than the table says, or than it says itself", () => {
    const frame = pack(Buffer.alloc(1000, "x\n"));
    for (const size of [999, 1001]) expect(read(tabled(frame, size))).toEqual([{ offset: 0, bytes: null }]);
    const lying = Buffer.from(frame);
    // A single segment of two bytes: the size less 256 stands behind magic number and descriptor.
    lying.writeUInt16LE(2000 - 256, 5);
    expect(frameHeader(new MemoryFile(lying).file, 0)?.size).toBe(2000);
    expect(read(tabled(lying, 2000))).toEqual([{ offset: 0, bytes: null }]);
  });

  test("all frames together hold no more than a segment: what is behind that is not unpacked", () => {
    const frame = pack(Buffer.alloc(RECORD_BYTES_MAX));
    const count = SEGMENT_BYTES_MAX / RECORD_BYTES_MAX;
    const entries = Array.from({ length: count + 10 }, () => ({ packedSize: frame.length, size: RECORD_BYTES_MAX }));
    const bomb = Buffer.concat([...entries.map(() => frame), encodeFrameTable(entries)]);
    let plain = 0;
    const found: boolean[] = [];
    for (const { offset, size, bytes } of readFrames(new MemoryFile(bomb).file, SEGMENT_BYTES_MAX - RECORD_BYTES_MAX)) {
      plain += bytes?.length ?? 0;
      found.push(bytes !== null);
      expect(offset + size).toBeLessThanOrEqual(SEGMENT_BYTES_MAX + RECORD_BYTES_MAX);
    }
    expect(found).toEqual([true, false]);
    expect(plain).toBe(RECORD_BYTES_MAX);
  });
});

describe("without a table, what only looks like frames costs little", () => {
  const magic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
  test.each([
    ["beginnings of frames", Buffer.alloc(4 * MIB, magic)],
    // A descriptor with the size, and then blocks of no bytes, none of them the last.
    [
      "frames of a million empty blocks",
      Buffer.alloc(4 * MIB, Buffer.concat([magic, Buffer.from([0x20, 0x01]), Buffer.alloc(64)])),
    ],
    ["random bytes", Buffer.from(Array.from({ length: MIB }, () => random(256)))],
  ])("%s", (_what, bytes) => {
    const file = new MemoryFile(bytes);
    const found = [...readFrames(file.file)];
    expect(found.length).toBeLessThan(10);
    expect(found.every(({ bytes: plain }) => plain === null)).toBe(true);
    expect(file.read_, "of what was read, most was read once").toBeLessThan(1100 * MIB);
  });

  test("a file of 200 GB that is not there", () => {
    const file = new MemoryFile(Buffer.concat(packed), 200e9);
    const plain = [...readFrames(file.file)].map(({ bytes }) => shown(bytes));
    expect(plain).toEqual([...expected.map(({ bytes }) => bytes), null]);
    expect(file.read_).toBeLessThan(SEGMENT_BYTES_MAX + 10 * MIB);
  });
});

describe("where a frame ends, by its blocks", () => {
  test("as far as it goes, and no further", () => {
    const { file } = new MemoryFile(whole);
    for (const [i, at] of starts.entries()) {
      const end = at + packed[i]!.length;
      const budget = { blocks: 100 };
      expect(frameEnd(file, at, whole.length, budget)).toBe(end);
      expect(frameEnd(file, at, end, budget)).toBe(end);
      expect(frameEnd(file, at, end - 1, budget)).toBeNull();
      expect(frameEnd(file, at + 1, whole.length, budget)).toBeNull();
      expect(frameEnd(file, at, whole.length, { blocks: 0 })).toBeNull();
    }
  });

  test("blocks that are repeated bytes, raw bytes and compressed ones, with a checksum and without", () => {
    for (const plain of [
      Buffer.alloc(3 * MIB, 7),
      Buffer.from(Array.from({ length: 300_000 }, () => random(256))),
      lines(5000),
      Buffer.alloc(0),
      Buffer.from("x"),
    ]) {
      for (const checksum of [0, 1]) {
        const frame = pack(plain, { [constants.ZSTD_c_checksumFlag]: checksum });
        const { file } = new MemoryFile(Buffer.concat([frame, frame]));
        expect(frameHeader(file, 0)).toMatchObject({ size: plain.length, hasChecksum: checksum === 1 });
        expect(frameEnd(file, 0, 2 * frame.length, { blocks: 1000 })).toBe(frame.length);
      }
    }
  });
});
