import { closeSync, readSync } from "node:fs";

const CHUNK_BYTES = 2 ** 18;
const FIRST_CHUNK_BYTES = 2 ** 15;
const ZSTD_MAGIC = 0xfd2fb528;

/** A file that is open for reading. It has the size it had when it was opened: what is added later is not read. */
export class SourceFile implements Disposable {
  readonly path: string;
  readonly size: number;
  /** Of a compressed file: whether it ends too early. */
  readonly isCut: boolean;
  readonly isExpanded: boolean;
  #descriptor: number | null;

  constructor(path: string, descriptor: number, size: number, expanded: { readonly isCut: boolean } | null = null) {
    this.path = path;
    this.size = size;
    this.isExpanded = expanded !== null;
    this.isCut = expanded?.isCut ?? false;
    this.#descriptor = descriptor;
  }

  /** Fewer bytes than asked for only at the end of the file. */
  read(offset: number, length: number): Uint8Array {
    const bytes = Buffer.allocUnsafeSlow(Math.max(0, Math.min(length, this.size - offset)));
    let count = 0;
    while (count < bytes.length) {
      const more = readSync(this.#opened(), bytes, count, bytes.length - count, offset + count);
      // The file was cut off since it was opened.
      if (more === 0) break;
      count += more;
    }
    return bytes.subarray(0, count);
  }

  /** Each chunk has a buffer of its own, so parts of it may be kept. */
  *chunks(from = 0, to = this.size): Generator<Uint8Array> {
    // Small ones first: many only look at the beginning.
    let size = FIRST_CHUNK_BYTES;
    for (let offset = from; offset < to; ) {
      const bytes = this.read(offset, Math.min(size, to - offset));
      if (bytes.length === 0) return;
      offset += bytes.length;
      size = Math.min(2 * size, CHUNK_BYTES);
      yield bytes;
    }
  }

  isZstd(): boolean {
    const head = this.read(0, 4);
    return head.length === 4 && Buffer.from(head).readUInt32LE() === ZSTD_MAGIC;
  }

  #opened(): number {
    if (this.#descriptor === null) throw new Error(`${this.path} is closed`);
    return this.#descriptor;
  }

  [Symbol.dispose](): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}
