import { Chain, type Stray } from "./chain.ts";
import { decodeLine, isForeign, isTrailer, LINE_START, TRAILER_BYTES, TRAILER_START } from "./decode.ts";
import { type JournalRecord, RECORD_BYTES_MAX } from "./record.ts";

export type { Stray } from "./chain.ts";

/** How many stretches of a damaged line are tried (S2). */
const STRETCHES_MAX = 16;
const NEWLINE = 0x0a;
/** What stands before an object inside JSON, and after it: `:` `,` `[`, and `,` `}` `]`. */
const BEFORE_INNER = new Set([0x3a, 0x2c, 0x5b]);
const AFTER_INNER = new Set([0x2c, 0x7d, 0x5d]);
/** What an editor may leave behind a line: carriage return, comma, space, tab. */
const BEHIND_LINE = new Set([0x0d, 0x2c, 0x20, 0x09]);

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
    this.ragged = to > from;
    if (this.ragged) this.#line(bytes, from, to, offset, false);
    this.unended = this.ragged && this.#recordEnd === this.end;
  }

  /** Bytes that can be no record, because they are longer than one may be and no record begins in them. */
  oversize(offset: number, end: number): void {
    this.#chain.stray(offset, end, "corrupt", true);
    this.inline.add(end);
    this.end = end;
  }

  #line(bytes: Buffer, start: number, end: number, offset: number, ended: boolean): void {
    const record = end - start <= RECORD_BYTES_MAX ? decodeLine(bytes, start, end) : null;
    const next = offset + end - start + (ended ? 1 : 0);
    if (record) this.#whole(record, offset, next);
    else if (isForeign(bytes, start, end)) this.#chain.stray(offset, next, "foreign", true);
    else this.#stretches(bytes.subarray(start, end), offset, next);
  }

  /** NUL runs, glued fragments and flipped newlines cost nothing that is whole (S2). */
  #stretches(line: Buffer, offset: number, next: number): void {
    const ended = next > offset + line.length;
    const contentEnd = lineContentEnd(line);
    let taken = 0;
    for (const [head, stop, record] of wholeStretches(line, contentEnd, ended)) {
      if (head > 0) this.inline.add(offset + head);
      if (head > taken) {
        if (taken > 0) this.inline.add(offset + taken);
        this.#chain.stray(offset + taken, offset + head, "corrupt", false);
      }
      taken = stop === contentEnd ? line.length : stop;
      this.#whole(record, offset + head, taken === line.length ? next : offset + taken);
    }
    if (taken === line.length && taken > 0) return;
    if (taken > 0) this.inline.add(offset + taken);
    this.#chain.stray(offset + taken, next, "corrupt", true);
  }

  #whole(record: JournalRecord, offset: number, end: number): void {
    if (this.#chain.add(record, offset, end)) this.#recordEnd = end;
  }
}

type Stretch = [head: number, stop: number, record: JournalRecord];

/** The whole records in a damaged line, in order. */
function wholeStretches(line: Buffer, contentEnd: number, ended: boolean): Stretch[] {
  const found: Stretch[] = [];
  const stops = trailerEnds(line, contentEnd);
  const inner: number[] = [];
  let taken = 0;
  let tries = 0;
  const attempt = (head: number, stop: number): boolean => {
    tries++;
    const record = decodeLine(line, head, stop);
    if (!record) return false;
    found.push([head, stop, record]);
    taken = stop;
    return true;
  };

  for (let head = line.indexOf(LINE_START), next = 0; head !== -1 && tries < STRETCHES_MAX; ) {
    while (next < stops.length && stops[next]! <= head) next++;
    // Where no line ends any more, no start needs to be looked at.
    if (next === stops.length) break;
    if (head > taken && BEFORE_INNER.has(line[head - 1]!)) inner.push(head);
    else for (let i = next; i < stops.length && tries < STRETCHES_MAX; i++) if (attempt(head, stops[i]!)) break;
    head = line.indexOf(LINE_START, Math.max(head + 1, taken));
  }

  // A payload can hold a record as an object, byte for byte. It must not come to life because the line around it is damaged: what stands where
  // an object inside another one would, counts only if it reaches the end of its line, as such an object never does.
  if (ended && taken < contentEnd && stops.at(-1) === contentEnd) {
    for (const head of inner) {
      if (tries >= STRETCHES_MAX) break;
      if (head >= taken && attempt(head, contentEnd)) break;
    }
  }
  return found;
}

/** Where trailers end, but for those of objects inside others. */
function trailerEnds(line: Buffer, contentEnd: number): number[] {
  const stops: number[] = [];
  for (let at = line.indexOf(TRAILER_START); at !== -1; at = line.indexOf(TRAILER_START, at + 1)) {
    const stop = at + TRAILER_BYTES;
    if (isTrailer(line, at) && (stop === contentEnd || !AFTER_INNER.has(line[stop]!))) stops.push(stop);
  }
  return stops;
}

function lineContentEnd(line: Buffer): number {
  let end = line.length;
  while (end > 0 && BEHIND_LINE.has(line[end - 1]!)) end--;
  return end;
}

/** Scans a segment that is in memory as a whole. */
export function scanBytes(bytes: Buffer): Scan {
  const scan = new Scan();
  const rest = scan.feed(bytes, 0, bytes.length, 0);
  scan.finish(bytes, rest, bytes.length, rest);
  return scan;
}
