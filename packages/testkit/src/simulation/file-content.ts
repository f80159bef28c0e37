import type { Survival } from "./survival.ts";

export const PAGE_BYTES = 4096;
export const SECTOR_BYTES = 512;

const ZEROS = new Uint8Array(PAGE_BYTES);

/** Never changed, only replaced: copies of a file share their pages. */
interface Page {
  /** What is certainly on the disk. */
  readonly durable: Uint8Array;
  /** What the page has contained since, oldest first; each may have reached the disk. */
  readonly dirty: readonly Uint8Array[];
  /** What a failed fsync left in the cache: it can be read, nothing will write it, and it is not on the disk. */
  readonly lost: Uint8Array | null;
  /**
   * Its block had never been written when an fsync failed on it: data written to it in place is lost again, even if
   * fsync confirms it.
   */
  readonly stuck: boolean;
}

const UNTOUCHED: Page = { durable: ZEROS, dirty: [], lost: null, stuck: false };

/** What a running fsync will make durable: the state when it was issued. */
export interface Capture {
  readonly pages: ReadonlyMap<number, Uint8Array>;
  readonly sizeIndex: number;
}

/** The bytes of one file, as the page cache and the disk know them (S22). */
export class FileContent {
  #pages: Page[] = [];
  /** The sizes since the durable one, which is the first. */
  #sizes: number[] = [0];
  /** How many sizes came before the first one kept: a capture names a size by its number. */
  #sizesBefore = 0;

  get size(): number {
    return this.#sizes.at(-1)!;
  }

  get durableSize(): number {
    return this.#sizes[0]!;
  }

  /** What is read now would be read after any crash. */
  get isDurable(): boolean {
    return this.#sizes.length === 1 && this.#pages.every((page) => page.dirty.length === 0 && page.lost === null);
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    const count = Math.max(0, Math.min(length, into.length - offset, this.size - position));
    for (let done = 0; done < count; ) {
      const at = position + done;
      const within = at % PAGE_BYTES;
      const part = Math.min(PAGE_BYTES - within, count - done);
      into.set(this.#cached(Math.floor(at / PAGE_BYTES)).subarray(within, within + part), offset + done);
      done += part;
    }
    return count;
  }

  bytes(): Uint8Array {
    const bytes = new Uint8Array(this.size);
    this.read(bytes, 0, bytes.length, 0);
    return bytes;
  }

  write(bytes: Uint8Array, position: number): void {
    for (let done = 0; done < bytes.length; ) {
      const at = position + done;
      const within = at % PAGE_BYTES;
      const part = Math.min(PAGE_BYTES - within, bytes.length - done);
      const index = Math.floor(at / PAGE_BYTES);
      const changed = this.#cached(index).slice();
      changed.set(bytes.subarray(done, done + part), within);
      this.#dirty(index, changed);
      done += part;
    }
    this.#resize(Math.max(this.size, position + bytes.length));
  }

  /** The kernel clears what is cut off, so a file that grows again has zeros there. */
  truncate(size: number): void {
    const first = Math.floor(size / PAGE_BYTES);
    for (let index = first; index < this.#pages.length; index++) {
      const within = index === first ? size % PAGE_BYTES : 0;
      // A block that is cut off completely is freed; what grows there later gets another one.
      if (within === 0) this.#pages[index] = { ...this.#pages[index]!, stuck: false };
      const cached = this.#cached(index);
      if (cached.subarray(within).every((byte) => byte === 0)) continue;
      const cut = cached.slice();
      cut.fill(0, within);
      this.#dirty(index, cut);
    }
    this.#resize(size);
  }

  capture(): Capture {
    const pages = new Map<number, Uint8Array>();
    for (const [index, page] of this.#pages.entries()) {
      const version = page?.dirty.at(-1);
      if (version !== undefined) pages.set(index, version);
    }
    return { pages, sizeIndex: this.#sizesBefore + this.#sizes.length - 1 };
  }

  /** The fsync succeeded: what it captured is durable; what was written since may or may not be. */
  settle(capture: Capture): void {
    for (const [index, version] of capture.pages) {
      const page = this.#pages[index]!;
      const at = page.dirty.lastIndexOf(version);
      // If the page is no longer dirty with this version, another fsync settled or lost it.
      if (at < 0) continue;
      const dirty = page.dirty.slice(at + 1);
      this.#pages[index] = page.stuck
        ? { ...page, dirty, lost: version }
        : { ...page, durable: version, dirty, lost: null };
    }
    const dropped = Math.max(0, capture.sizeIndex - this.#sizesBefore);
    this.#sizes.splice(0, dropped);
    this.#sizesBefore += dropped;
  }

  /** The fsync failed: the kernel marks the pages clean anyway (S9). The next fsync still writes the size. */
  lose(capture: Capture): void {
    for (const [index, version] of capture.pages) {
      const page = this.#pages[index]!;
      const at = page.dirty.lastIndexOf(version);
      const stuck = page.stuck || index * PAGE_BYTES >= this.durableSize;
      if (at >= 0) this.#pages[index] = { ...page, dirty: page.dirty.slice(at + 1), lost: version, stuck };
    }
  }

  /** Memory pressure drops clean pages from the cache; they are read from the disk again. */
  dropCache(): void {
    this.#pages = this.#pages.map((page) => (page.lost === null ? page : { ...page, lost: null }));
  }

  /** The file on disk after a power cut. */
  afterCrash(survival: Survival): FileContent {
    const after = new FileContent();
    const count = this.#pages.reduce((dirty, page) => dirty + (page.dirty.length > 0 ? 1 : 0), 0);
    let ordinal = 0;
    after.#pages = this.#pages.map((page) => {
      if (page.dirty.length === 0) return { ...page, lost: null, stuck: false };
      const versions = page.stuck ? [page.durable] : [page.durable, ...page.dirty];
      const choice = survival.page({ ordinal: ordinal++, count, versions: versions.length });
      const mixed = new Uint8Array(PAGE_BYTES);
      for (let sector = 0; sector < PAGE_BYTES / SECTOR_BYTES; sector++) {
        const start = sector * SECTOR_BYTES;
        mixed.set(versions[choice(sector)]!.subarray(start, start + SECTOR_BYTES), start);
      }
      return { durable: mixed, dirty: [], lost: null, stuck: false };
    });
    const size = this.#sizes.length === 1 ? this.durableSize : survival.size(this.#sizes);
    after.#sizes = [size];
    after.#clearBeyond(size);
    return after;
  }

  copy(): FileContent {
    const copy = new FileContent();
    copy.#pages = this.#pages.slice();
    copy.#sizes = this.#sizes.slice();
    copy.#sizesBefore = this.#sizesBefore;
    return copy;
  }

  /** Sets durable bytes directly: for tests that need a file, or damage. */
  static durable(bytes: Uint8Array): FileContent {
    const content = new FileContent();
    content.write(bytes, 0);
    content.settle(content.capture());
    return content;
  }

  #cached(index: number): Uint8Array {
    const page = this.#pages[index] ?? UNTOUCHED;
    return page.dirty.at(-1) ?? page.lost ?? page.durable;
  }

  #dirty(index: number, version: Uint8Array): void {
    while (this.#pages.length <= index) this.#pages.push(UNTOUCHED);
    const page = this.#pages[index]!;
    // A lost page that is written again is dirty as a whole, and the next fsync writes all of it.
    this.#pages[index] = { ...page, dirty: [...page.dirty, version], lost: null };
  }

  #resize(size: number): void {
    if (size !== this.size) this.#sizes.push(size);
  }

  #clearBeyond(size: number): void {
    this.#pages.length = Math.min(this.#pages.length, Math.ceil(size / PAGE_BYTES));
    const within = size % PAGE_BYTES;
    const last = this.#pages.at(-1);
    if (last === undefined || within === 0 || this.#pages.length !== Math.ceil(size / PAGE_BYTES)) return;
    const cut = last.durable.slice();
    cut.fill(0, within);
    this.#pages[this.#pages.length - 1] = { ...UNTOUCHED, durable: cut };
  }
}
