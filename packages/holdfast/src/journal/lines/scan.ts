import { type JournalRecord, RECORD_BYTES_MAX } from "../record.ts";
import { Chain } from "./chain.ts";
import { decodeLine, isForeign } from "./decode.ts";
import { lineContentEnd, stretchesIn } from "./stretches.ts";

export type { Stray } from "./chain.ts";

const NEWLINE = 0x0a;

/** A line of this size or more is not searched for whole records, and need not be held in memory. */
export const ENDLESS_LINE_BYTES: number = 2 * RECORD_BYTES_MAX;

/**
 * Whole records and stray bytes found in one segment, whose bytes are fed in order. Pure: `decideTail` decides what
 * they mean together.
 */
export class Scan extends Chain {
  /** Offsets of records and strays at which no line starts, because they follow something else in the same line. */
  readonly inline = new Set<number>();
  /** Where the bytes seen so far end. */
  end = 0;
  /** The last line is a whole record that lacks its newline (S2). */
  unended = false;
  /** The last line lacks its newline, whether it is a record or not. */
  ragged = false;
  /** Where the line of the newest record ends. */
  #recordEnd = -1;
  /** Where the current line starts, if it is endless so far. */
  #endlessFrom: number | null = null;

  /**
   * Takes the lines of `bytes[from, to)`, whose first byte is at `offset` in the segment. Returns where the unfinished
   * line at the end starts: feed it again with what follows.
   */
  feed(bytes: Buffer, from: number, to: number, offset: number): number {
    // No search may run past its own bytes, or many short lines cost the square of their number (S4).
    const window = to < bytes.length ? bytes.subarray(0, to) : bytes;
    let start = from;
    for (;;) {
      const newline = window.indexOf(NEWLINE, start);
      if (newline === -1) break;
      this.#line(window, start, newline, offset + start - from, true);
      start = newline + 1;
    }
    this.end = offset + start - from;
    return start;
  }

  /** Takes the rest at the end of the input: a last line without a newline. */
  finish(bytes: Buffer, from: number, to: number, offset: number): void {
    this.end = offset + to - from;
    this.ragged = to > from || this.#endlessFrom !== null;
    if (this.ragged) this.#line(bytes, from, to, offset, false);
    this.unended = this.ragged && this.#recordEnd === this.end;
  }

  /** Takes ENDLESS_LINE_BYTES or more of a line whose newline has not been seen yet (S4). */
  passEndless(offset: number, end: number): void {
    this.#endlessFrom ??= offset;
    this.end = end;
  }

  /** Bytes that cannot be read as lines: in a damaged packed frame, or beyond the maximum segment size. */
  oversize(offset: number, end: number): void {
    this.stray(offset, end, "corrupt", true);
    this.inline.add(end);
    this.end = end;
  }

  #line(bytes: Buffer, start: number, end: number, offset: number, ended: boolean): void {
    const next = offset + end - start + (ended ? 1 : 0);
    if (this.#endlessFrom !== null || end - start >= ENDLESS_LINE_BYTES) {
      this.stray(this.#endlessFrom ?? offset, next, "corrupt", true);
      this.#endlessFrom = null;
      return;
    }
    const record = decodeLine(bytes, start, end);
    if (record) this.#whole(record, offset, next);
    else if (isForeign(bytes, start, end)) this.stray(offset, next, "foreign", true);
    else this.#damaged(bytes.subarray(start, end), offset, next);
  }

  /** NUL runs, glued fragments and flipped newlines cost no whole record (S2). */
  #damaged(line: Buffer, offset: number, next: number): void {
    const contentEnd = lineContentEnd(line);
    let taken = 0;
    for (const { head, end, record } of stretchesIn(line, contentEnd, next > offset + line.length)) {
      if (head > 0) this.inline.add(offset + head);
      if (head > taken) {
        if (taken > 0) this.inline.add(offset + taken);
        this.stray(offset + taken, offset + head, "corrupt", false);
      }
      taken = end;
      // A record that ends where its line's content ends extends to the start of the next line.
      this.#whole(record, offset + head, end === contentEnd ? next : offset + end);
    }
    // Characters that an editor may have left after the last record are not a stray.
    if (taken > 0 && taken === contentEnd) return;
    if (taken > 0) this.inline.add(offset + taken);
    this.stray(offset + taken, next, "corrupt", true);
  }

  #whole(record: JournalRecord, offset: number, end: number): void {
    if (this.add(record, offset, end)) this.#recordEnd = end;
  }
}

/** Scans a part of a segment that is entirely in memory: the lines from `offset` on. */
export function scanBytes(bytes: Buffer, offset = 0): Scan {
  const scan = new Scan();
  const rest = scan.feed(bytes, 0, bytes.length, offset);
  scan.finish(bytes, rest, bytes.length, offset + rest);
  return scan;
}
