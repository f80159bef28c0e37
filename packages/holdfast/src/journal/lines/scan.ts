import { type JournalRecord, RECORD_BYTES_MAX } from "../record.ts";
import { Chain, type Stray } from "./chain.ts";
import { decodeLine, isForeign } from "./decode.ts";
import { lineContentEnd, type Stretch, StretchSearch } from "./stretches.ts";

export type { Stray } from "./chain.ts";

const NEWLINE = 0x0a;

/**
 * Whole records and stray bytes found in one segment, whose bytes are fed in order. Pure: `decideTail` decides what
 * they mean together.
 */
export class Scan {
  readonly #chain = new Chain();
  readonly records: JournalRecord[] = this.#chain.records;
  /** Where each record's line starts. */
  readonly offsets: number[] = this.#chain.offsets;
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
  /** The current line, if it is longer than a record may be and has not ended yet. */
  #long: StretchSearch | null = null;

  /** In file order. Known once everything has been fed. */
  get strays(): readonly Stray[] {
    return this.#chain.strays;
  }

  /** The highest mark in any whole record (S7). */
  get mark(): number {
    return this.#chain.mark;
  }

  /** The same, for the first `count` records. */
  markOf(count: number): number {
    return this.#chain.markOf(count);
  }

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
    this.ragged = to > from || this.#long !== null;
    if (this.ragged) this.#line(bytes, from, to, offset, false);
    this.unended = this.ragged && this.#recordEnd === this.end;
  }

  /**
   * Takes part of a line that is longer than a record may be and whose newline has not been seen yet: the whole records
   * in it count, the rest does not (S4). Returns where the bytes start that must be fed again with what follows,
   * because a record may start in them.
   */
  feedLong(bytes: Buffer, from: number, to: number, offset: number): number {
    const search = this.#long ?? new StretchSearch(offset);
    this.#long = search;
    const part = bytes.subarray(from, to);
    const until = search.isOver ? part.length : part.length - RECORD_BYTES_MAX;
    if (!search.isOver) this.#takeFound(search, search.first(part, offset, until), -1, -1);
    this.end = offset + until;
    return from + until;
  }

  /** Bytes that cannot be read as lines: in a damaged packed frame, or beyond the maximum segment size. */
  oversize(offset: number, end: number): void {
    this.#chain.stray(offset, end, "corrupt", true);
    this.inline.add(end);
    this.end = end;
  }

  #line(bytes: Buffer, start: number, end: number, offset: number, ended: boolean): void {
    const next = offset + end - start + (ended ? 1 : 0);
    const record = this.#long ? null : decodeLine(bytes, start, end);
    if (record) this.#whole(record, offset, next);
    else if (!this.#long && isForeign(bytes, start, end)) this.#chain.stray(offset, next, "foreign", true);
    else this.#endDamaged(bytes.subarray(start, end), offset, next);
  }

  /** NUL runs, glued fragments and flipped newlines cost no whole record (S2). */
  #endDamaged(line: Buffer, offset: number, next: number): void {
    const contentEnd = lineContentEnd(line);
    const search = this.#long ?? new StretchSearch(offset);
    const end = offset + line.length;
    this.#long = null;
    this.#takeFound(search, search.last(line, offset, contentEnd, next > end), offset + contentEnd, next);
    // Characters that an editor may have left after the last record are not a stray.
    if (search.taken === offset + contentEnd && search.taken > search.start) return;
    if (search.taken > search.start) this.inline.add(search.taken);
    this.#chain.stray(search.taken, next, "corrupt", true);
  }

  /** A record that ends where its line's content ends, at `end`, extends to the start of the next line. */
  #takeFound(search: StretchSearch, found: readonly Stretch[], end: number, next: number): void {
    for (const { head, end: stop, record } of found) {
      if (head > search.start) this.inline.add(head);
      if (head > search.taken) {
        if (search.taken > search.start) this.inline.add(search.taken);
        this.#chain.stray(search.taken, head, "corrupt", false);
      }
      search.taken = stop;
      this.#whole(record, head, stop === end ? next : stop);
    }
  }

  #whole(record: JournalRecord, offset: number, end: number): void {
    if (this.#chain.add(record, offset, end)) this.#recordEnd = end;
  }
}

/** Scans a segment that is entirely in memory. */
export function scanBytes(bytes: Buffer): Scan {
  const scan = new Scan();
  const rest = scan.feed(bytes, 0, bytes.length, 0);
  scan.finish(bytes, rest, bytes.length, rest);
  return scan;
}
