import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { WalPages } from "./wal.ts";

/** The pages of an SQLite file and of its log, as they lie on the disk: nothing in the header is needed. */

const MAGIC = "SQLite format 3\0";
/** The same in every database. */
const FRACTIONS = "402020";
const SIZES = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
const SAMPLES = 400;
const HEADER_BYTES = 100;

export type Encoding = "utf8" | "utf16le" | "utf16be";
const ENCODINGS: readonly (Encoding | undefined)[] = ["utf8", "utf8", "utf16le", "utf16be"];

export type PageKind = "table-interior" | "table-leaf" | "index-interior" | "index-leaf";
const KINDS: ReadonlyMap<number, PageKind> = new Map([
  [0x02, "index-interior"],
  [0x05, "table-interior"],
  [0x0a, "index-leaf"],
  [0x0d, "table-leaf"],
]);

/** A page of a tree. */
export interface TreePage {
  readonly kind: PageKind;
  /** Where its cells begin; those outside of the page are left out. */
  readonly cells: readonly number[];
  /** The last child of an interior page. */
  readonly right: number;
}

export class Pages implements Disposable {
  readonly size: number;
  /** Without what is reserved at the end of each page. */
  readonly usable: number;
  readonly count: number;
  readonly encoding: Encoding;
  /** The first bytes of the file, if they are those of a database. */
  readonly header: Buffer | null;
  readonly #descriptor: number;
  readonly #wal: WalPages | null;

  constructor(path: string) {
    this.#descriptor = openSync(path, "r");
    const bytes = fstatSync(this.#descriptor).size;
    this.#wal = WalPages.open(`${path}-wal`);
    const head = this.#readAt(0, HEADER_BYTES);
    const said = head.length === HEADER_BYTES ? head.readUInt16BE(16) : 0;
    this.size = this.#wal?.size ?? this.#likelySize(bytes, said === 1 ? 65536 : said);
    this.count = Math.max(Math.ceil(bytes / this.size), this.#wal?.last ?? 0);
    const first = this.page(1);
    const isHeader = first?.toString("latin1", 0, 16) === MAGIC && first.toString("hex", 21, 24) === FRACTIONS;
    this.header = isHeader ? first.subarray(0, HEADER_BYTES) : null;
    const reserved = this.header?.[20] ?? 0;
    this.usable = this.size - (this.size - reserved < 480 ? 0 : reserved);
    this.encoding = ENCODINGS[this.header?.readUInt32BE(56) ?? 1] ?? "utf8";
  }

  /** From 1. Null if the file has no such page, or only the beginning of it. */
  page(number: number): Buffer | null {
    if (!Number.isInteger(number) || number < 1 || number > this.count) return null;
    const logged = this.#wal?.page(number);
    if (logged) return logged;
    const bytes = this.#readAt((number - 1) * this.size, this.size);
    return bytes.length === this.size ? bytes : null;
  }

  /** The page as part of a tree; null if it is none. */
  tree(number: number): TreePage | null {
    const page = this.page(number);
    return page && treeIn(page, number === 1 ? 100 : 0, this.usable);
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
    this.#wal?.[Symbol.dispose]();
  }

  /** The size in which the most pages look like those of a tree: the header may be gone, or wrong. */
  #likelySize(bytes: number, said: number): number {
    const shares = SIZES.map((size) => ({ size, share: this.#share(bytes, size) }));
    // A page that is taken for a larger one looks like a page too.
    const best = shares.reduce((a, b) => (b.share > a.share * 1.3 ? b : a));
    if (best.share > 0.1) return best.size;
    if (SIZES.includes(said)) return said;
    return best.share > 0 ? best.size : 4096;
  }

  #share(bytes: number, size: number): number {
    const count = Math.floor(bytes / size);
    const step = Math.max(1, Math.floor(count / SAMPLES));
    let found = 0;
    let tried = 0;
    for (let number = 2; number <= count; number += step, tried++) {
      const page = this.#readAt((number - 1) * size, size);
      const tree = treeIn(page, 0, size);
      if (tree && tree.cells.length > 0 && tree.cells.length === page.readUInt16BE(3)) found++;
    }
    return found / Math.max(1, tried);
  }

  #readAt(offset: number, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    let count = 0;
    while (count < length) {
      const more = readSync(this.#descriptor, bytes, count, length - count, offset + count);
      if (more === 0) break;
      count += more;
    }
    return bytes.subarray(0, count);
  }
}

function treeIn(page: Buffer, start: number, usable: number): TreePage | null {
  if (page.length < start + 12) return null;
  const kind = KINDS.get(page[start]!);
  if (!kind) return null;
  const isLeaf = kind.endsWith("leaf");
  const pointers = start + (isLeaf ? 8 : 12);
  const count = page.readUInt16BE(start + 3);
  if (pointers + 2 * count > usable) return null;
  const cells: number[] = [];
  for (let n = 0; n < count; n++) {
    const at = page.readUInt16BE(pointers + 2 * n);
    if (at >= pointers + 2 * count && at < usable) cells.push(at);
  }
  return { kind, cells, right: isLeaf ? 0 : page.readUInt32BE(start + 8) };
}
