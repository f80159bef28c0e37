import { constants, crc32, zstdCompressSync } from "node:zlib";
import type { DiskFile } from "holdfast/disk";
import { describe, expect, test } from "vitest";
import { RECORD_BYTES_MAX, SEGMENT_BYTES_MAX } from "../../../../../src/journal/record.ts";
import { plainSizeOf, readAt, readFrames } from "../../../../../src/stores/folder/files/frames.ts";
import { frameEnd, frameHeader } from "../../../../../src/stores/folder/files/zstd.ts";
import { randomOf } from "../../../../hostile/hostile-store.ts";

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
const whole = Buffer.concat(packed);
/** What early versions wrote behind the frames: readers need not know what it says. */
const tabled = Buffer.concat([whole, Buffer.from("5e2a4d180c000000010203040506070868667374", "hex")]);
const offsets = plains.map((_, i) => plains.slice(0, i).reduce((sum, { length }) => sum + length, 0));
const starts = packed.map((_, i) => packed.slice(0, i).reduce((sum, { length }) => sum + length, 0));

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
  test("all of them, with a table behind them and without", () => {
    expect(read(whole)).toEqual(expected);
    expect(read(tabled)).toEqual(expected);
    expect(read(tabled.subarray(0, -5))).toEqual(expected);
    expect(read(Buffer.alloc(0))).toEqual([]);
  });

  test("who reads from the middle, or looks at the first frame, reads little of the others", () => {
    const middle = new MemoryFile(whole);
    expect([...readFrames(middle.file, offsets[2]! + 10)].map(({ offset }) => offset)).toEqual(offsets.slice(2));
    const rest = packed.slice(2).reduce((sum, { length }) => sum + length, 0);
    expect(middle.read_).toBeLessThan(rest + 5 * 64);
    const first = new MemoryFile(whole);
    for (const _frame of readFrames(first.file)) break;
    expect(first.read_).toBeLessThan(packed[0]!.length + 64);
    expect(plainSizeOf(new MemoryFile(whole).file)).toBe(plains.reduce((sum, { length }) => sum + length, 0));
    expect(plainSizeOf(new MemoryFile(tabled).file)).toBe(plainSizeOf(new MemoryFile(whole).file));
  });

  test("from a place between two frames", () => {
    expect(read(whole, offsets[1]!)).toEqual(expected.slice(1));
    expect(read(whole, offsets[1]! - 1)).toEqual(expected);
    expect(read(tabled, offsets[3]! + 1)).toEqual(expected.slice(3));
  });

  test("a damaged frame costs that frame", () => {
    for (const bytes of [whole, tabled]) {
      for (const [i, at] of starts.entries()) {
        // Some single bits of a frame mean nothing; all of a stretch cannot.
        const damaged = flipped(bytes, ...Array.from({ length: 20 }, (_, n) => at + 60 + n));
        expect(read(damaged)).toEqual(expected.map((frame, n) => (n === i ? { ...frame, bytes: null } : frame)));
      }
    }
  });

  test("the beginning of a frame damaged: the others are found, and what is between them is one stray", () => {
    for (const [i, at] of starts.entries()) {
      const found = read(flipped(whole, at));
      const others = expected.filter((_, n) => n !== i).map(({ bytes }) => bytes);
      expect(found.filter(({ bytes }) => bytes !== null).map(({ bytes }) => bytes)).toEqual(others);
      expect(found.filter(({ bytes }) => bytes === null)).toHaveLength(1);
      const strays = [...readFrames(new MemoryFile(flipped(whole, at)).file)].filter(({ bytes }) => !bytes);
      expect(strays, "its length is unknown").toEqual([{ offset: offsets[i], size: 1, bytes: null }]);
    }
  });

  test.each([1, MIB - 2, MIB - 1, MIB, MIB + 1])(
    "a frame behind %i bytes of garbage is found, also across two reads",
    (garbage) => {
      const bytes = Buffer.concat([Buffer.alloc(garbage), packed[0]!, packed[1]!]);
      expect(read(bytes).map(({ bytes: plain }) => plain)).toEqual([null, expected[0]!.bytes, expected[1]!.bytes]);
    },
  );

  test("a frame that the disk cannot read costs that frame", () => {
    const refusing = (from: number, to: number): DiskFile => {
      const { file } = new MemoryFile(whole);
      return {
        ...file,
        read: (into, offset, length, position) => {
          if (length > 64 && position >= from && position < to)
            throw Object.assign(new Error("EIO: i/o error, read"), { code: "EIO" });
          return file.read(into, offset, length, position);
        },
      };
    };
    const frames = [...readFrames(refusing(starts[1]!, starts[2]!))];
    expect(frames.map(({ bytes }) => shown(bytes))).toEqual(expected.map(({ bytes }, i) => (i === 1 ? null : bytes)));
  });

  test("exactly these bytes are read, however few come at a time, or none", () => {
    const few = (bytes: Buffer, atOnce: number) => ({
      read: (into: Uint8Array, offset: number, length: number, position: number) =>
        bytes.copy(into, offset, position, Math.min(bytes.length, position + Math.min(length, atOnce))),
    });
    const text = Buffer.from("0123456789");
    for (const atOnce of [1, 3, 100]) {
      expect(readAt(few(text, atOnce), 2, 5).toString()).toBe("23456");
      expect(readAt(few(text, atOnce), 10, 0)).toHaveLength(0);
      expect(() => readAt(few(text, atOnce), 8, 3)).toThrow(expect.objectContaining({ code: "EIO" }));
    }
  });

  test("the size of a block damaged: neither the frame before nor the ones behind are lost", () => {
    for (const [i, at] of starts.entries()) {
      const { blocksAt } = frameHeader(new MemoryFile(whole).file, at)!;
      for (const byte of [0, 1, 2]) {
        const found = read(flipped(whole, blocksAt + byte));
        const others = expected.filter((_, n) => n !== i).map(({ bytes }) => bytes);
        expect(found.filter(({ bytes }) => bytes !== null).map(({ bytes }) => bytes)).toEqual(others);
      }
    }
  });

  test("a frame followed by garbage is read if its checksum is right", () => {
    const bytes = Buffer.concat([packed[0]!, Buffer.from("garbage"), packed[1]!]);
    expect(read(bytes).map(({ bytes: plain }) => plain)).toEqual([expected[0]!.bytes, null, expected[1]!.bytes]);
  });

  test("a checksum flag that flipped costs no line: they have their own checksums", () => {
    const bytes = Buffer.from(whole);
    bytes[starts[1]! + 4]! ^= 0b100;
    const found = [...readFrames(new MemoryFile(bytes).file)].flatMap(({ bytes: plain }) => plain ?? []);
    expect(found.map((plain, i) => plain.equals(plains[i]!))).toEqual(plains.map(() => true));
  });
});

describe("what a frame may not be", () => {
  test("larger than a record: it is not unpacked", () => {
    const large = pack(Buffer.alloc(RECORD_BYTES_MAX + 1));
    expect(read(large)).toEqual([{ offset: 0, bytes: null }]);
    const largest = pack(Buffer.alloc(RECORD_BYTES_MAX));
    expect(read(largest)[0]!.bytes).toBe(shown(Buffer.alloc(RECORD_BYTES_MAX)));
  });

  test("without its size", () => {
    const silent = pack(Buffer.alloc(1000, "x\n"), { [constants.ZSTD_c_contentSizeFlag]: 0 });
    expect(frameHeader(new MemoryFile(silent).file, 0)?.size).toBeNull();
    expect(read(silent)).toEqual([{ offset: 0, bytes: null }]);
  });

  test("of another size than it says itself", () => {
    const lying = pack(Buffer.alloc(1000, "x\n"));
    // A single segment of two bytes: the size less 256 stands behind magic number and descriptor.
    lying.writeUInt16LE(2000 - 256, 5);
    expect(frameHeader(new MemoryFile(lying).file, 0)?.size).toBe(2000);
    expect(read(lying)).toEqual([{ offset: 0, bytes: null }]);
  });

  test("all frames together hold no more than a segment: what is behind that is not unpacked", () => {
    const frame = pack(Buffer.alloc(RECORD_BYTES_MAX));
    const count = SEGMENT_BYTES_MAX / RECORD_BYTES_MAX;
    const bomb = Buffer.concat(Array.from({ length: count + 10 }, () => frame));
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

test("the size of a file of bombs is not looked at to its end, though each must be unpacked to be told from damage", () => {
  const bomb = Buffer.concat([pack(Buffer.alloc(RECORD_BYTES_MAX)), Buffer.from("garbage")]);
  const count = SEGMENT_BYTES_MAX / RECORD_BYTES_MAX;
  const bombs = new MemoryFile(Buffer.concat(Array.from({ length: 2 * count }, () => bomb)));
  expect(plainSizeOf(bombs.file)).toBeLessThanOrEqual(SEGMENT_BYTES_MAX + RECORD_BYTES_MAX);
});

describe("what only looks like frames costs little", () => {
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

describe("the header of a frame, in every form that RFC 8878 knows", () => {
  const magic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
  interface Form {
    readonly descriptor: number;
    readonly bytes: Buffer;
    readonly size: number | null;
  }
  /** Content sizes of 0, 1, 2, 4 or 8 bytes; with and without window, dictionary and checksum. */
  const forms: Form[] = [];
  for (const isSingle of [false, true]) {
    for (const [flag, sizeBytes] of [isSingle ? 1 : 0, 2, 4, 8].entries()) {
      for (const [dictionaryFlag, dictionaryBytes] of [0, 1, 2, 4].entries()) {
        for (const checksum of [0, 0b100]) {
          const descriptor = (flag << 6) | (isSingle ? 0b100000 : 0) | checksum | dictionaryFlag;
          const content = Buffer.alloc(sizeBytes);
          for (let i = 0; i < Math.min(sizeBytes, 6); i++) content[i] = 0x11 * (i + 1);
          const bytes = Buffer.concat([
            magic,
            Buffer.from([descriptor]),
            Buffer.alloc(isSingle ? 0 : 1, 0x58),
            Buffer.alloc(dictionaryBytes, 0x77),
            content,
          ]);
          const sizes = new Map([
            [1, 0x11],
            [2, 0x2211 + 256],
            [4, 0x44332211],
            [8, 0x665544332211],
          ]);
          forms.push({ descriptor, bytes, size: sizes.get(sizeBytes) ?? null });
        }
      }
    }
  }

  test("its size, its checksum and where its blocks start", () => {
    expect(forms).toHaveLength(64);
    for (const { descriptor, bytes, size } of forms) {
      const { file } = new MemoryFile(Buffer.concat([Buffer.from("xyz"), bytes, Buffer.alloc(20)]));
      const where = `descriptor ${descriptor.toString(2)}`;
      expect(frameHeader(file, 3), where).toEqual({
        blocksAt: 3 + bytes.length,
        size,
        hasChecksum: (descriptor & 0b100) !== 0,
      });
      expect(frameHeader(file, 2), where).toBeNull();
      const reserved = Buffer.concat([bytes, Buffer.alloc(20)]);
      reserved[4]! |= 0b1000;
      expect(frameHeader(new MemoryFile(reserved).file, 0), where).toBeNull();
    }
  });

  test("cut off, it is none", () => {
    for (const { descriptor, bytes } of forms) {
      for (let length = 0; length < bytes.length; length++)
        expect(frameHeader(new MemoryFile(bytes.subarray(0, length)).file, 0), `${descriptor}, ${length}`).toBeNull();
    }
  });

  test("a size that is no exact number is none", () => {
    const { bytes } = forms.find(({ descriptor }) => descriptor === 0b11000000)!;
    const at = bytes.length - 8;
    for (const [size, expected] of [
      [BigInt(Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER],
      [BigInt(Number.MAX_SAFE_INTEGER) + 1n, null],
      [2n ** 64n - 1n, null],
    ] as const) {
      const copy = Buffer.from(bytes);
      copy.writeBigUInt64LE(size, at);
      expect(frameHeader(new MemoryFile(copy).file, 0)).toMatchObject({ size: expected });
    }
  });
});

describe("the blocks of a frame", () => {
  const RAW = 0;
  const REPEATED = 1;
  const COMPRESSED = 2;
  const RESERVED = 3;
  const BLOCK_BYTES_MAX = 128 * 1024;
  const block = (type: number, size: number, isLast: boolean): Buffer => {
    const header = Buffer.alloc(3);
    header.writeUIntLE((size << 3) | (type << 1) | (isLast ? 1 : 0), 0, 3);
    return Buffer.concat([header, Buffer.alloc(type === REPEATED ? 1 : size)]);
  };
  const frame = (hasChecksum: boolean, ...blocks: Buffer[]): Buffer =>
    Buffer.concat([
      Buffer.from([0x28, 0xb5, 0x2f, 0xfd, hasChecksum ? 0b100100 : 0b100000, 9]),
      ...blocks,
      Buffer.alloc(hasChecksum ? 4 : 0),
    ]);
  const endOf = (bytes: Buffer, end = bytes.length, blocks = 100): number | null =>
    frameEnd(new MemoryFile(Buffer.concat([bytes, Buffer.alloc(10)])).file, 0, end, { blocks });

  test.each([true, false])("of each type, with a checksum: %s", (hasChecksum) => {
    const bytes = frame(hasChecksum, block(RAW, 7, false), block(REPEATED, 99, false), block(COMPRESSED, 5, true));
    expect(endOf(bytes)).toBe(bytes.length);
    for (let end = 0; end < bytes.length; end++) expect(endOf(bytes, end), `${end}`).toBeNull();
    expect(endOf(bytes, bytes.length, 3)).toBe(bytes.length);
    expect(endOf(bytes, bytes.length, 2), "three blocks are more than may be examined").toBeNull();
  });

  test("of the reserved type, or larger than a block may be: it is no frame", () => {
    expect(endOf(frame(false, block(RESERVED, 5, true)))).toBeNull();
    for (const type of [RAW, REPEATED, COMPRESSED]) {
      const largest = frame(false, block(type, BLOCK_BYTES_MAX, true));
      expect(endOf(largest)).toBe(largest.length);
      expect(endOf(frame(false, block(type, BLOCK_BYTES_MAX + 1, true)))).toBeNull();
    }
  });

  test("the budget is shared by all frames", () => {
    const bytes = frame(false, block(RAW, 1, false), block(RAW, 1, true));
    const budget = { blocks: 5 };
    const { file } = new MemoryFile(bytes);
    const ends = Array.from({ length: 3 }, () => frameEnd(file, 0, bytes.length, budget));
    expect(ends).toEqual([bytes.length, bytes.length, null]);
  });

  test("whose header is cut off", () => {
    const bytes = frame(false, block(RAW, 1, false));
    for (const left of [0, 1, 2]) {
      const cut = Buffer.concat([bytes, Buffer.alloc(left)]);
      expect(frameEnd(new MemoryFile(cut).file, 0, 1000, { blocks: 100 })).toBeNull();
    }
  });
});
