import type { Damage, Recovery } from "../contract.ts";
import { assertFormat } from "../lifecycle.ts";
import type { JournalRecord } from "../record.ts";
import { decodeLine, isForeign } from "./decode.ts";

/** A line as stored in a database, without its newline. */
export interface Line {
  readonly seq: number;
  readonly bytes: Buffer;
  /** The same line as text, if the database returns text. */
  readonly text?: string;
}

export interface Segment {
  readonly number: number;
  readonly epoch: number;
  /** The seq of the segment's first record. */
  readonly first: number;
}

/** The record of a line whose checksum and seq are right; null otherwise. */
export function recordOf(line: Line): JournalRecord | null {
  return decodeAt(line, bytesOf(line));
}

function decodeAt({ seq, text }: Line, bytes: Buffer): JournalRecord | null {
  const record = decodeLine(bytes, 0, bytes.length, text);
  return record?.seq === seq ? record : null;
}

/**
 * Scratch space for encoding most texts, whose bytes are needed only briefly. A character takes at most three bytes.
 */
const scratch = Buffer.allocUnsafeSlow(256 * 1024);

/** Valid until the next call. */
function bytesOf(line: Line): Buffer {
  const { text } = line;
  if (text === undefined) return line.bytes;
  return text.length * 3 > scratch.length ? Buffer.from(text) : scratch.subarray(0, scratch.write(text));
}

/** The whole records of a database's lines, for `history`. Throws FORMAT_NEWER if a header calls for it. */
export async function* recordsOf(
  chunks: AsyncIterable<readonly Line[]> | Iterable<readonly Line[]>,
  segments: readonly Segment[],
): AsyncGenerator<JournalRecord> {
  const headers = new Set(segments.map(({ first }) => first));
  for await (const lines of chunks) {
    for (const line of lines) {
      const record = recordOf(line);
      if (record && headers.has(record.seq)) assertFormat(record);
      if (record) yield record;
    }
  }
}

/**
 * What the lines of a journal mean when a database stores them in rows. A commit is there as a whole or not at all, so
 * nothing is ever torn (S6, S7). A line that is not whole was durable once and is damaged, regardless of the marks. It
 * stays in place, its row gives its seq, and only that record is lost.
 *
 * Positions are given as in a file: `segment` is the segment's number, `offset` the byte at which the line would start
 * if the segment were written out with a newline after each line.
 */
export class Account {
  readonly records: JournalRecord[] = [];
  readonly damaged: Damage[] = [];
  readonly missing: { from: number; to: number }[] = [];
  /** The number of whole records; `records` holds them only with `keep`, unless `onRecord` is given. */
  count = 0;
  bytes = 0;
  /** From the newest header; null if that is damaged. */
  format: unknown = null;
  readonly #segments: readonly Segment[];
  readonly #onRecord: (record: JournalRecord) => void;
  #segment = 0;
  #offset = 0;
  #next: number;
  /** The end of the newest unit, as its first record gives it. */
  #unitEnd = 0;
  #last: JournalRecord | null = null;

  /** `segments` starts with the segment of the first line. `onRecord` gets each whole record instead of `records`. */
  constructor(
    segments: readonly Segment[],
    options: { readonly keep: boolean; readonly onRecord?: ((record: JournalRecord) => void) | undefined },
  ) {
    this.#segments = segments;
    this.#onRecord = options.onRecord ?? (options.keep ? (record) => this.records.push(record) : () => undefined);
    this.#next = segments[0]?.first ?? 1;
  }

  /** The seq of the next record. */
  get next(): number {
    return this.#next;
  }

  add(lines: readonly Line[]): void {
    for (const line of lines) this.take(line);
  }

  /** There are no more lines; records up to `head` are known to have existed. */
  end(head: number): void {
    this.#skipTo(Math.max(head, this.#unitEnd) + 1);
  }

  recovery(): Recovery {
    const unclean = this.#last?.kind !== "closed" || this.#last.seq !== this.#next - 1;
    return { unclean, cutBytes: 0, damaged: this.damaged, missing: this.missing };
  }

  /** Throws FORMAT_NEWER or JOURNAL_UNREADABLE if a header calls for it. */
  take(line: Line): void {
    this.#skipTo(line.seq);
    this.#next = line.seq + 1;
    while ((this.#segments[this.#segment + 1]?.first ?? Number.POSITIVE_INFINITY) <= line.seq) {
      this.#segment++;
      this.#offset = 0;
    }
    const encoded = bytesOf(line);
    const bytes = encoded.length + 1;
    const record = decodeAt(line, encoded);
    if (line.seq === this.#segments[this.#segment]?.first) {
      if (record) assertFormat(record);
      this.format = record?.["format"] ?? null;
    }
    if (record) {
      this.count++;
      this.#onRecord(record);
      if (record.unit !== undefined) this.#unitEnd = record.seq + record.unit - 1;
      this.#last = record;
    } else {
      this.damaged.push({
        segment: segmentName(this.#segments[this.#segment]?.number ?? 1),
        offset: this.#offset,
        bytes,
        seq: line.seq,
        why: isForeign(line.bytes, 0, line.bytes.length) ? "foreign" : "corrupt",
      });
    }
    this.#offset += bytes;
    this.bytes += bytes;
  }

  #skipTo(seq: number): void {
    if (seq <= this.#next) return;
    this.missing.push({ from: this.#next, to: seq - 1 });
    this.#next = seq;
  }
}

function segmentName(number: number): string {
  return String(number).padStart(6, "0");
}
