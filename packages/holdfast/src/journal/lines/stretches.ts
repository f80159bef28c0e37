import { type JournalRecord, RECORD_BYTES_MAX } from "../record.ts";
import { decodeLine, isTrailer, LINE_START, TRAILER_BYTES, TRAILER_START } from "./decode.ts";

/** How many stretches of a damaged line are tried (S2). */
const STRETCHES_MAX = 16;
/** The characters before and after an object nested in JSON: `:` `,` `[`, and `,` `}` `]`. */
const BEFORE_INNER = new Set([0x3a, 0x2c, 0x5b]);
const AFTER_INNER = new Set([0x2c, 0x7d, 0x5d]);
/** Characters that an editor may leave after a line: carriage return, comma, space, tab. */
const BEHIND_LINE = new Set([0x0d, 0x2c, 0x20, 0x09]);

/** A whole record inside a damaged line, with its start and end in the line. */
export interface Stretch {
  readonly head: number;
  readonly end: number;
  readonly record: JournalRecord;
}

/**
 * The whole records in a damaged line (FORMAT.md, section 2), whose content ends at `contentEnd`. `ended`: the line has
 * a newline.
 */
export function stretchesIn(line: Buffer, contentEnd: number, ended: boolean): Stretch[] {
  const found: Stretch[] = [];
  let tries = 0;
  /** Where the last record found ends. */
  let taken = 0;
  const isRecord = (head: number, end: number): boolean => {
    tries++;
    const record = decodeLine(line, head, end);
    if (!record) return false;
    found.push({ head, end, record });
    taken = end;
    return true;
  };
  /** Is it in the position of a nested object? */
  const isInner = (head: number): boolean => head > taken && BEFORE_INNER.has(line[head - 1]!);

  // The first stop after the heads examined so far, kept so that each head does not search for it again.
  let nearest = 0;
  let head = line.indexOf(LINE_START);
  while (head !== -1 && tries < STRETCHES_MAX) {
    if (nearest <= head) nearest = nextStop(line, head, contentEnd);
    // Once no line end follows, no further start matters.
    if (nearest === -1) break;
    for (
      let stop = isInner(head) ? -1 : nearest;
      stop !== -1 && stop - head < RECORD_BYTES_MAX && tries < STRETCHES_MAX;
      stop = nextStop(line, stop, contentEnd)
    ) {
      if (isRecord(head, stop)) break;
    }
    head = line.indexOf(LINE_START, Math.max(head + 1, taken));
  }

  // A payload can contain a record as an object, byte for byte. Damage to the line around it must not turn it into a
  // record: a record in the position of a nested object counts only if it reaches the end of its line, which a nested
  // object never does.
  if (!ended || taken >= contentEnd || !isTrailer(line, contentEnd - TRAILER_BYTES)) return found;
  head = line.indexOf(LINE_START, Math.max(taken, contentEnd - RECORD_BYTES_MAX + 1));
  while (head !== -1 && tries < STRETCHES_MAX) {
    if (isInner(head) && isRecord(head, contentEnd)) break;
    head = line.indexOf(LINE_START, head + 1);
  }
  return found;
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
