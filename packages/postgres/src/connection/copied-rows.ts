/** At the start of the data, before flags and an extension, whose length follows. */
const SIGNATURE = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");
const FLAGS_BYTES = 4;
const LENGTH_BYTES = 4;
const COUNT_BYTES = 2;
/** In place of the number of columns, after the last row. */
const END = -1;

/**
 * The rows of `COPY (SELECT <bigint>, <text>) TO STDOUT (FORMAT binary)`, from the pieces that arrive. The server sends
 * a row in each piece, but what is between them need not: a row may arrive in several pieces, and a piece may hold
 * several rows.
 */
export class CopiedRows {
  readonly #take: (number: number, text: Buffer) => void;
  #hasBegun = false;
  /** The start of a row whose end has not arrived. */
  #rest: Buffer | null = null;

  /** `text` is valid during the call. */
  constructor(take: (number: number, text: Buffer) => void) {
    this.#take = take;
  }

  /** Throws what `take` throws. */
  add(piece: Buffer): void {
    const bytes = this.#rest ? Buffer.concat([this.#rest, piece]) : piece;
    let at = this.#hasBegun ? 0 : headerEnd(bytes);
    this.#hasBegun ||= at > 0;
    while (this.#hasBegun) {
      const end = rowEnd(bytes, at);
      if (end < 0) break;
      const numberAt = at + COUNT_BYTES + LENGTH_BYTES;
      const textAt = numberAt + bytes.readInt32BE(at + COUNT_BYTES) + LENGTH_BYTES;
      at = end;
      // Every line that is read passes here: a BigInt would take longer than the rest.
      const number = bytes.readInt32BE(numberAt) * 2 ** 32 + bytes.readUInt32BE(numberAt + 4);
      this.#take(number, bytes.subarray(textAt, end));
    }
    // The driver uses the memory of a piece again.
    const isOver = this.#hasBegun && bytes.length - at >= COUNT_BYTES && bytes.readInt16BE(at) === END;
    this.#rest = at === bytes.length || isOver ? null : Buffer.from(bytes.subarray(at));
  }
}

/** Where the rows start; 0 if that has not arrived. */
function headerEnd(bytes: Buffer): number {
  const lengthAt = SIGNATURE.length + FLAGS_BYTES;
  if (bytes.length < lengthAt + LENGTH_BYTES) return 0;
  if (!bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE))
    throw new Error("the server sent something else than rows");
  const end = lengthAt + LENGTH_BYTES + bytes.readInt32BE(lengthAt);
  return bytes.length < end ? 0 : end;
}

/** Where the row at `at` ends; -1 if its end has not arrived, or it is the end of the data. */
function rowEnd(bytes: Buffer, at: number): number {
  if (bytes.length < at + COUNT_BYTES) return -1;
  let end = at + COUNT_BYTES;
  for (let columns = bytes.readInt16BE(at); columns > 0; columns--) {
    if (bytes.length < end + LENGTH_BYTES) return -1;
    end += LENGTH_BYTES + bytes.readInt32BE(end);
  }
  return end === at + COUNT_BYTES || bytes.length < end ? -1 : end;
}
