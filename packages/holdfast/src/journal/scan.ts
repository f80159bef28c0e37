import { decodeLine, isForeign, isTrailer, LINE_START, TRAILER_BYTES, TRAILER_START } from "./decode.ts";
import { type JournalRecord, RECORD_BYTES_MAX } from "./record.ts";

/** Bytes that belong to no whole record. */
export interface Stray {
  readonly offset: number;
  readonly end: number;
  readonly why: "corrupt" | "foreign";
  /** How many whole records stand before it. */
  readonly after: number;
  /** It takes the place of a line (and so of a seq). False for what merely stands beside a whole record in one line. */
  readonly line: boolean;
}

/** How many stretches of a damaged line are tried (S2). */
const STRETCHES_MAX = 16;
const NEWLINE = 0x0a;

/**
 * Whole records and stray bytes, out of the bytes of one segment, fed in order. Pure: what they mean together is `decideTail`'s business.
 */
export class Scan {
  readonly records: JournalRecord[] = [];
  /** Where each record's line begins. */
  readonly offsets: number[] = [];
  readonly strays: Stray[] = [];
  /** The highest mark in any whole record (S7). */
  mark = 0;
  /** Where the bytes seen so far end. */
  end = 0;
  /** The last line is a whole record that lacks its newline (S2). */
  unended = false;

  /**
   * Takes the lines of `bytes[from, to)`, whose first byte stands at `offset` of the segment. Returns where the unfinished line at the end
   * begins: feed it again with what follows.
   */
  feed(bytes: Buffer, from: number, to: number, offset: number): number {
    let start = from;
    for (;;) {
      const newline = bytes.indexOf(NEWLINE, start);
      if (newline === -1 || newline >= to) break;
      this.#line(bytes, start, newline, offset + start - from, true);
      start = newline + 1;
    }
    this.end = offset + start - from;
    return start;
  }

  /** Takes what is left when there is no more: a last line without a newline. */
  finish(bytes: Buffer, from: number, to: number, offset: number): void {
    if (to > from) {
      const before = this.records.length;
      this.#line(bytes, from, to, offset, false);
      const stray = this.strays.at(-1);
      this.unended = this.records.length > before && !(stray && stray.end === offset + to - from);
    }
    this.end = offset + to - from;
  }

  /** Bytes that can be no record, because they are longer than one may be and no record begins in them. */
  oversize(offset: number, end: number): void {
    this.#stray(offset, end, "corrupt", true);
    this.end = end;
  }

  #line(bytes: Buffer, start: number, end: number, offset: number, ended: boolean): void {
    const record = end - start <= RECORD_BYTES_MAX ? decodeLine(bytes, start, end) : null;
    if (record) this.#whole(record, offset, offset + end - start + (ended ? 1 : 0));
    else if (isForeign(bytes, start, end)) this.#stray(offset, offset + end - start + (ended ? 1 : 0), "foreign", true);
    else this.#stretches(bytes, start, end, offset, ended);
  }

  /** NUL runs, glued fragments and flipped newlines cost nothing that is whole (S2). */
  #stretches(bytes: Buffer, start: number, end: number, offset: number, ended: boolean): void {
    const base = offset - start;
    const before = this.records.length;
    let taken = start;
    let from = start;
    for (let tries = 0; tries < STRETCHES_MAX; ) {
      const head = bytes.indexOf(LINE_START, from);
      if (head === -1 || head >= end) break;
      let found = -1;
      for (let trailer = bytes.indexOf(TRAILER_START, head); tries < STRETCHES_MAX; ) {
        if (trailer === -1 || trailer + TRAILER_BYTES > end) break;
        if (isTrailer(bytes, trailer)) {
          tries++;
          const record = decodeLine(bytes, head, trailer + TRAILER_BYTES);
          if (record) {
            found = trailer + TRAILER_BYTES;
            if (head > taken) this.#stray(base + taken, base + head, "corrupt", false);
            this.#whole(record, base + head, base + found);
            break;
          }
        }
        trailer = bytes.indexOf(TRAILER_START, trailer + 1);
      }
      if (found === -1) from = head + 1;
      else taken = from = found;
    }
    if (taken < end || this.records.length === before) {
      this.#stray(base + taken, base + end + (ended ? 1 : 0), "corrupt", true);
    }
  }

  #whole(record: JournalRecord, offset: number, end: number): void {
    const count = this.records.length;
    const last = this.records[count - 1];
    if (last && record.seq <= last.seq) {
      const beforeLast = this.records[count - 2];
      const lastJumped =
        beforeLast !== undefined && last.seq > beforeLast.seq + 1 && this.strays.at(-1)?.after !== count;
      if (lastJumped && record.seq > beforeLast.seq) {
        // The one before was pasted in from elsewhere: its number fits neither what precedes nor what follows.
        this.records.pop();
        const strayOffset = this.offsets.pop()!;
        this.#stray(strayOffset, offset, "corrupt", false);
      } else {
        this.#stray(offset, end, "corrupt", false);
        return;
      }
    }
    if (record.synced !== undefined && record.synced > this.mark) this.mark = record.synced;
    this.records.push(record);
    this.offsets.push(offset);
  }

  #stray(offset: number, end: number, why: Stray["why"], line: boolean): void {
    this.strays.push({ offset, end, why, after: this.records.length, line });
  }
}

/** Scans a segment that is in memory as a whole. */
export function scanBytes(bytes: Buffer): Scan {
  const scan = new Scan();
  const rest = scan.feed(bytes, 0, bytes.length, 0);
  scan.finish(bytes, rest, bytes.length, rest);
  return scan;
}
