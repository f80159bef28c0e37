import type { Pages } from "./pages.ts";

/** What the cells of a table's leaf hold: a number, and a record with the values of a row. */

/** A text is kept as bytes: they may be no UTF-8, and must come out as they went in. */
export type Value = null | bigint | number | { readonly text: Buffer } | { readonly blob: Buffer };

export interface SalvagedRow {
  readonly rowid: bigint;
  readonly values: readonly Value[];
  /** Whether the end of it is missing: it was on a page that cannot be read. */
  readonly isCut: boolean;
}

const BYTES_MAX = 2 ** 28;
const COLUMNS_MAX = 2_000;

/** Says of a page of overflowing text that it is in use; false if it cannot be one. */
export type Take = (page: number) => boolean;

/** Null if there is no row. */
export function rowAt(pages: Pages, page: Buffer, at: number, take: Take): SalvagedRow | null {
  const reader = new Varints(page, pages.usable);
  const length = Number(reader.next(at));
  const rowid = reader.next(reader.end);
  if (reader.isOver || length < 1 || length > Math.min(BYTES_MAX, pages.count * pages.size)) return null;
  const payload = payloadAt(pages, page, reader.end, length, take);
  return payload && recordIn(payload, length, rowid);
}

/** The numbers of the children of an interior page. */
export function childAt(page: Buffer, at: number): number {
  return at + 4 <= page.length ? page.readUInt32BE(at) : 0;
}

function payloadAt(pages: Pages, page: Buffer, at: number, length: number, take: Take): Buffer | null {
  const { usable } = pages;
  const most = usable - 35;
  const least = Math.floor(((usable - 12) * 32) / 255) - 23;
  const even = least + ((length - least) % (usable - 4));
  const local = length <= most ? length : even <= most ? even : least;
  if (at + local > usable) return null;
  if (local === length) return page.subarray(at, at + local);
  if (at + local + 4 > usable) return null;
  const pieces = [page.subarray(at, at + local)];
  let count = local;
  let next = page.readUInt32BE(at + local);
  while (count < length) {
    const more = next > 1 && take(next) ? pages.page(next) : null;
    if (more === null || isZero(more)) break;
    const piece = more.subarray(4, Math.min(usable, 4 + length - count));
    pieces.push(piece);
    count += piece.length;
    next = more.readUInt32BE(0);
  }
  return Buffer.concat(pieces);
}

const isZero = (bytes: Buffer): boolean => bytes.every((byte) => byte === 0);

function recordIn(payload: Buffer, length: number, rowid: bigint): SalvagedRow | null {
  const reader = new Varints(payload, payload.length);
  const head = Number(reader.next(0));
  if (reader.isOver || head < 1 || head > payload.length) return null;
  const types: number[] = [];
  for (let at = reader.end; at < head; at = reader.end) {
    types.push(Number(reader.next(at)));
    if (reader.isOver || reader.end > head || types.length > COLUMNS_MAX) return null;
  }
  const sizes = types.map(sizeOf);
  // It says its own length twice: nothing else does.
  if (sizes.includes(-1) || head + sizes.reduce((sum, size) => sum + size, 0) !== length) return null;
  const isCut = payload.length < length;
  const values: Value[] = [];
  let at = head;
  for (const [index, type] of types.entries()) {
    const size = sizes[index]!;
    const bytes = payload.subarray(at, at + size);
    values.push(bytes.length === size || type >= 12 ? valueIn(type, bytes) : null);
    at += size;
  }
  return { rowid, values, isCut };
}

function sizeOf(type: number): number {
  if (type >= 12) return (type - (type % 2 === 0 ? 12 : 13)) / 2;
  return [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, -1, -1][type]!;
}

function valueIn(type: number, bytes: Buffer): Value {
  if (type >= 12) return type % 2 === 0 ? { blob: bytes } : { text: bytes };
  if (type === 0) return null;
  if (type === 7) return bytes.readDoubleBE(0);
  if (type >= 8) return BigInt(type - 8);
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return BigInt.asIntN(bytes.length * 8, value);
}

class Varints {
  /** Behind the last one. */
  end = 0;
  isOver = false;
  readonly #bytes: Buffer;
  readonly #limit: number;

  constructor(bytes: Buffer, limit: number) {
    this.#bytes = bytes;
    this.#limit = limit;
  }

  next(at: number): bigint {
    let value = 0n;
    for (let n = 0; n < 9; n++) {
      if (at + n >= this.#limit) {
        this.isOver = true;
        return 0n;
      }
      const byte = this.#bytes[at + n]!;
      this.end = at + n + 1;
      if (n === 8) return BigInt.asIntN(64, (value << 8n) | BigInt(byte));
      value = (value << 7n) | BigInt(byte & 0x7f);
      if (byte < 0x80) return value;
    }
    return value;
  }
}
