import { type LongLine, longLineIn } from "./long-line.ts";

const NEWLINE = 0x0a;

/** Twice what a record can hold: no message that can be recorded is longer. */
export const LINE_BYTES_MAX: number = 128 * 1024 * 1024;

/** So many pieces are kept before they become one: a piece of one byte takes a hundred times its size. */
const PIECES_MAX = 1024;

/** A line with its bytes, and with its newline unless it is the last; or what is known of one that is too long. */
export type Line = Buffer | LongLine;

/**
 * Splits a stream of bytes into lines, before anything is decoded. No more than `bytesMax` of a line are kept: a longer
 * one is reported as soon as it is too long, and the rest of it is dropped.
 */
export class LineSplitter {
  readonly #bytesMax: number;
  #parts: Buffer[] = [];
  /** How many parts at the end are as they came. */
  #pieces = 0;
  #bytes = 0;
  /** The line was reported. Nothing of it is kept. */
  #isTooLong = false;

  constructor(bytesMax: number = LINE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  push(chunk: Buffer): Line[] {
    const lines: Line[] = [];
    for (let start = 0; start < chunk.length; ) {
      const newline = chunk.indexOf(NEWLINE, start);
      const end = newline === -1 ? chunk.length : newline + 1;
      const long = this.#add(chunk.subarray(start, end));
      if (long) lines.push(long);
      if (newline !== -1) {
        const line = this.end();
        if (line) lines.push(line);
      }
      start = end;
    }
    return lines;
  }

  /** What came after the last newline; null if nothing did, or if it was too long. */
  end(): Buffer | null {
    const parts = this.#parts;
    this.#parts = [];
    this.#pieces = 0;
    this.#bytes = 0;
    this.#isTooLong = false;
    return parts.length === 0 ? null : parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  /** Returns the line if it becomes too long by this. */
  #add(part: Buffer): LongLine | null {
    if (this.#isTooLong) return null;
    this.#parts.push(part);
    this.#bytes += part.length;
    this.#pieces += 1;
    if (this.#pieces === PIECES_MAX) {
      this.#parts.push(Buffer.concat(this.#parts.splice(-PIECES_MAX)));
      this.#pieces = 0;
    }
    if (this.#bytes <= this.#bytesMax) return null;
    const long = longLineIn(this.#parts);
    this.#parts = [];
    this.#isTooLong = true;
    return long;
  }
}
