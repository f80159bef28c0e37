import { type JournalRecord, RECORD_BYTES_MAX } from "../record.ts";
import { Chain, type Stray } from "./chain.ts";
import { decodeLine, isForeign } from "./decode.ts";
import { lineContentEnd, type Stretch, StretchSearch } from "./stretches.ts";

export type { Stray } from "./chain.ts";

const NEWLINE = 0x0a;

/**
 * Whole records and stray bytes, out of the bytes of one segment, fed in order. Pure: what they mean together is `decideTail`'s business.
 */
export class Scan {
  readonly #chain = new Chain();
  readonly records: JournalRecord[] = this.#chain.records;
  /** Where each record's line begins. */
  readonly offsets: number[] = this.#chain.offsets;
  /** Those offsets, of records and strays, at which no line begins: they stand behind something else in one line. */
  readonly inline = new Set<number>();
  /** Where the bytes seen so far end. */
  end = 0;
  /** The last line is a whole record that lacks its newline (S2). */
  unended = false;
  /** The last line lacks its newline, whatever it is. */
  ragged = false;
  /** Where the line of the newest record ends. */
  #recordEnd = -1;
  /** The line that is longer than a record may be, and has not ended yet. */
  #long: StretchSearch | null = null;

  /** In the order of the file. Known when all has been fed. */
  get strays(): readonly Stray[] {
    return this.#chain.strays;
  }

  /** The highest mark in any whole record (S7). */
  get mark(): number {
    return this.#chain.mark;
  }

  /** The same, of the first so many records. */
  markOf(count: number): number {
    return this.#chain.markOf(count);
  }

  /**
   * Takes the lines of `bytes[from, to)`, whose first byte stands at `offset` of the segment. Returns where the unfinished line at the end
   * begins: feed it again with what follows.
   */
  feed(bytes: Buffer, from: number, to: number, offset: number): number {
    // No search may go on beyond the bytes that are its business, or else many short lines cost the square of their number (S4).
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

  /** Takes what is left when there is no more: a last line without a newline. */
  finish(bytes: Buffer, from: number, to: number, offset: number): void {
    this.end = offset + to - from;
    this.ragged = to > from || this.#long !== null;
    if (this.ragged) this.#line(bytes, from, to, offset, false);
    this.unended = this.ragged && this.#recordEnd === this.end;
  }

  /**
   * Takes a part of a line whose newline is not in sight, and which is longer than a record may be: the whole records in it count, the rest does not (S4).
   * Returns where those bytes begin that must be fed again with what follows, because a record may begin in them.
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

  /** Bytes that cannot be read as lines: of a packed frame that is damaged, or beyond the size that a segment may have. */
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

  /** NUL runs, glued fragments and flipped newlines cost nothing that is whole (S2). */
  #endDamaged(line: Buffer, offset: number, next: number): void {
    const contentEnd = lineContentEnd(line);
    const search = this.#long ?? new StretchSearch(offset);
    const end = offset + line.length;
    this.#long = null;
    this.#takeFound(search, search.last(line, offset, contentEnd, next > end), offset + contentEnd, next);
    // What an editor may have left behind the last record is no stray.
    if (search.taken === offset + contentEnd && search.taken > search.start) return;
    if (search.taken > search.start) this.inline.add(search.taken);
    this.#chain.stray(search.taken, next, "corrupt", true);
  }

  /** A record that ends with the content of its line, at `end`, ends where the next line begins. */
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

/** Scans a segment that is in memory as a whole. */
export function scanBytes(bytes: Buffer): Scan {
  const scan = new Scan();
  const rest = scan.feed(bytes, 0, bytes.length, 0);
  scan.finish(bytes, rest, bytes.length, rest);
  return scan;
}
