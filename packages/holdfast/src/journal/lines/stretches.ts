import { type JournalRecord, RECORD_BYTES_MAX } from "../record.ts";
import { decodeLine, isTrailer, LINE_START, TRAILER_BYTES, TRAILER_START } from "./decode.ts";

/** How many stretches of a damaged line are tried (S2). */
const STRETCHES_MAX = 16;
/** The characters before and after an object nested in JSON: `:` `,` `[`, and `,` `}` `]`. */
const BEFORE_INNER = new Set([0x3a, 0x2c, 0x5b]);
const AFTER_INNER = new Set([0x2c, 0x7d, 0x5d]);
/** Characters that an editor may leave after a line: carriage return, comma, space, tab. */
const BEHIND_LINE = new Set([0x0d, 0x2c, 0x20, 0x09]);
const NEWLINE = 0x0a;

/** A whole record inside a damaged line, with its start and end in the segment. */
export interface Stretch {
  readonly head: number;
  readonly end: number;
  readonly record: JournalRecord;
}

/**
 * Finds the whole records in one damaged line (FORMAT.md, section 2). A line longer than a record may be arrives in
 * parts, so that a file without newlines takes no more memory than two records.
 */
export class StretchSearch {
  /** Where the line starts. */
  readonly start: number;
  /** Where the last record found ends; `start` if there is none. */
  taken: number;
  readonly #recordBytesMax: number;
  #tries = 0;
  /** The byte before the next part. */
  #before = NEWLINE;

  constructor(start: number, recordBytesMax: number = RECORD_BYTES_MAX) {
    this.start = start;
    this.taken = start;
    this.#recordBytesMax = recordBytesMax;
  }

  /** No more stretches are tried in this line. */
  get isOver(): boolean {
    return this.#tries >= STRETCHES_MAX;
  }

  /**
   * The records that start in `part[0, until)`. A whole record that starts there ends within `part`, which is at
   * `offset`.
   */
  first(part: Buffer, offset: number, until: number): Stretch[] {
    const found = this.#find(part, offset, until, -1);
    this.#before = part[until - 1]!;
    return found;
  }

  /** The records in the last part of the line, whose content ends at `contentEnd`. `ended`: the line has a newline. */
  last(part: Buffer, offset: number, contentEnd: number, ended: boolean): Stretch[] {
    const found = this.#find(part, offset, part.length, contentEnd);
    // A payload can contain a record as an object, byte for byte. Damage to the line around it must not turn it into a
    // record: a record in the position of a nested object counts only if it reaches the end of its line, which a nested
    // object never does.
    const taken = (found.at(-1)?.end ?? this.taken) - offset;
    if (!ended || taken >= contentEnd || !isTrailer(part, contentEnd - TRAILER_BYTES)) return found;
    const from = Math.max(0, taken, contentEnd - this.#recordBytesMax + 1);
    for (
      let head = part.indexOf(LINE_START, from);
      head !== -1 && !this.isOver;
      head = part.indexOf(LINE_START, head + 1)
    ) {
      const record = this.#isInner(part, head, taken) ? this.#try(part, head, contentEnd) : null;
      if (record) return [...found, { head: offset + head, end: offset + contentEnd, record }];
    }
    return found;
  }

  #find(part: Buffer, offset: number, until: number, contentEnd: number): Stretch[] {
    const found: Stretch[] = [];
    let taken = this.taken - offset;
    let head = part.indexOf(LINE_START, Math.max(0, taken));
    // The first stop after the heads examined so far, kept so that each head does not search for it again.
    let nearest = 0;
    while (head !== -1 && head < until && !this.isOver) {
      if (nearest <= head) nearest = nextStop(part, head, contentEnd);
      // Once no line end follows, no further start matters.
      if (nearest === -1) break;
      if (!this.#isInner(part, head, taken)) {
        for (
          let stop = nearest;
          stop !== -1 && stop - head < this.#recordBytesMax && !this.isOver;
          stop = nextStop(part, stop, contentEnd)
        ) {
          const record = this.#try(part, head, stop);
          if (!record) continue;
          found.push({ head: offset + head, end: offset + stop, record });
          taken = stop;
          break;
        }
      }
      head = part.indexOf(LINE_START, Math.max(head + 1, taken));
    }
    return found;
  }

  /** Is it in the position of a nested object? */
  #isInner(part: Buffer, head: number, taken: number): boolean {
    return head > taken && BEFORE_INNER.has(head === 0 ? this.#before : part[head - 1]!);
  }

  #try(part: Buffer, head: number, stop: number): JournalRecord | null {
    this.#tries++;
    return decodeLine(part, head, stop);
  }
}

/** The end of the next trailer after `from` that does not belong to a nested object; -1 if there is none. */
function nextStop(line: Buffer, from: number, contentEnd: number): number {
  for (
    let at = line.indexOf(TRAILER_START, Math.max(0, from - TRAILER_BYTES + 1));
    at !== -1;
    at = line.indexOf(TRAILER_START, at + 1)
  ) {
    const stop = at + TRAILER_BYTES;
    if (stop > from && isTrailer(line, at) && (stop === contentEnd || !AFTER_INNER.has(line[stop]!))) return stop;
  }
  return -1;
}

/** Where a line's content ends, without what an editor may have left after it. */
export function lineContentEnd(line: Buffer): number {
  let end = line.length;
  while (end > 0 && BEHIND_LINE.has(line[end - 1]!)) end--;
  return end;
}
