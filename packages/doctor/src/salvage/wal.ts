import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";

/** The pages in a write-ahead log that were committed, as SQLite itself would take them. */

const HEADER_BYTES = 32;
const FRAME_BYTES = 24;
const MAGIC = 0x377f0682;

export class WalPages implements Disposable {
  readonly size: number;
  /** How many pages the database has after the last commit. */
  readonly last: number;
  readonly #descriptor: number;
  /** Where the newest content of each page is. */
  readonly #offsets: ReadonlyMap<number, number>;

  private constructor(descriptor: number, size: number, last: number, offsets: ReadonlyMap<number, number>) {
    this.#descriptor = descriptor;
    this.size = size;
    this.last = last;
    this.#offsets = offsets;
  }

  /** Null if there is none, or nothing in it counts. */
  static open(path: string): WalPages | null {
    if (!existsSync(path)) return null;
    const descriptor = openSync(path, "r");
    const wal = read(descriptor);
    if (wal) return new WalPages(descriptor, wal.size, wal.last, wal.offsets);
    closeSync(descriptor);
    return null;
  }

  page(number: number): Buffer | null {
    const offset = this.#offsets.get(number);
    return offset === undefined ? null : readAt(this.#descriptor, offset, this.size);
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

function read(descriptor: number) {
  const header = readAt(descriptor, 0, HEADER_BYTES);
  if (header === null || (header.readUInt32BE(0) & 0xfffffffe) >>> 0 !== MAGIC) return null;
  const size = header.readUInt32BE(8);
  if (size < 512 || size > 65536 || (size & (size - 1)) !== 0) return null;
  const isBig = (header.readUInt32BE(0) & 1) === 1;
  let sums = summed([0, 0], header.subarray(0, 24), isBig);
  if (sums[0] !== header.readUInt32BE(24) || sums[1] !== header.readUInt32BE(28)) return null;
  const bytes = fstatSync(descriptor).size;
  const offsets = new Map<number, number>();
  const open = new Map<number, number>();
  let last = 0;
  for (let at = HEADER_BYTES; at + FRAME_BYTES + size <= bytes; at += FRAME_BYTES + size) {
    const frame = readAt(descriptor, at, FRAME_BYTES + size);
    if (frame === null || frame.compare(header, 16, 24, 8, 16) !== 0) break;
    sums = summed(summed(sums, frame.subarray(0, 8), isBig), frame.subarray(FRAME_BYTES), isBig);
    if (sums[0] !== frame.readUInt32BE(16) || sums[1] !== frame.readUInt32BE(20)) break;
    open.set(frame.readUInt32BE(0), at + FRAME_BYTES);
    const pages = frame.readUInt32BE(4);
    if (pages === 0) continue;
    // A commit: what came since the one before it counts from now on.
    for (const [page, offset] of open) offsets.set(page, offset);
    open.clear();
    last = pages;
  }
  return last === 0 ? null : { size, last, offsets };
}

function summed([first, second]: readonly [number, number], bytes: Buffer, isBig: boolean): [number, number] {
  let [a, b] = [first, second];
  for (let at = 0; at + 8 <= bytes.length; at += 8) {
    a = (a + (isBig ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at)) + b) >>> 0;
    b = (b + (isBig ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4)) + a) >>> 0;
  }
  return [a, b];
}

function readAt(descriptor: number, offset: number, length: number): Buffer | null {
  const bytes = Buffer.alloc(length);
  return readSync(descriptor, bytes, 0, length, offset) === length ? bytes : null;
}
