import { type Line, messageOf } from "../record/message.ts";
import { type LongLine, longLineIn } from "./long-line.ts";

const NEWLINE = 0x0a;

/** Twice what a record can hold: no message that can be recorded is longer. */
export const LINE_BYTES_MAX: number = 128 * 1024 * 1024;

/** So many pieces are kept before they become one: a piece of one byte takes a hundred times its size. */
const PIECES_MAX = 1024;

/**
 * Splits a stream of bytes into lines, before anything is decoded, and parses each: nobody else does either. A line has
 * its newline unless it is the last. No more than `bytesMax` of it are kept: a longer one is reported as soon as it is
 * too long, and the rest of it is dropped.
 */
export class LineReader {
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

  push(chunk: Buffer): (Line | LongLine)[] {
    const lines: (Line | LongLine)[] = [];
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
  end(): Line | null {
    const parts = this.#parts;
    this.#parts = [];
    this.#pieces = 0;
    this.#bytes = 0;
    this.#isTooLong = false;
    return parts.length === 0 ? null : lineIn(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
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

function lineIn(raw: Buffer): Line {
  return { ...messageOf(parsed(raw)), raw };
}

function parsed(raw: Buffer): unknown {
  try {
    return JSON.parse(raw.toString("utf8"));
  } catch {
    return undefined;
  }
}
