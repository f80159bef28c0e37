import type { Damage, Recovery } from "../contract.ts";
import { assertFormat } from "../lifecycle.ts";
import type { JournalRecord } from "../record.ts";
import { decodeLine, isForeign } from "./decode.ts";

/** A line as a database has it, without its newline. */
export interface Line {
  readonly seq: number;
  readonly bytes: Buffer;
  /** The same, by a database that hands it out as text. */
  readonly text?: string;
}

export interface Segment {
  readonly number: number;
  readonly epoch: number;
  /** The seq of its first record. */
  readonly first: number;
}

/** The record of a line whose checksum, and whose seq, are right; null for any other. */
export function recordOf(line: Line): JournalRecord | null {
  return decoded(line, bytesOf(line));
}

function decoded({ seq, text }: Line, bytes: Buffer): JournalRecord | null {
  const record = decodeLine(bytes, 0, bytes.length, text);
  return record?.seq === seq ? record : null;
}

/** Where most texts are encoded: bytes that are needed for a moment only. Three for a character is the most. */
const scratch = Buffer.allocUnsafeSlow(256 * 1024);

/** Of a text, until the next is asked for. */
function bytesOf(line: Line): Buffer {
  const { text } = line;
  if (text === undefined) return line.bytes;
  return text.length * 3 > scratch.length ? Buffer.from(text) : scratch.subarray(0, scratch.write(text));
}

/**
 * What the lines of a journal mean, where a database keeps them in rows. A commit is there as a whole or not at all, so nothing here is ever torn (S6, S7): a line that is not whole was
 * durable once and is damaged, whatever the marks say; it stays in place, its row tells its seq, and it costs that record alone.
 *
 * A place is told as in a file: `segment` is the number of the segment, `offset` the byte that the line would begin at if the segment were
 * written out, a newline after each line.
 */
export class Account {
  readonly records: JournalRecord[] = [];
  readonly damaged: Damage[] = [];
  readonly missing: { from: number; to: number }[] = [];
  /** How many whole records there were; `records` holds them only if they are to be kept. */
  count = 0;
  bytes = 0;
  /** As the newest header names it; null if that is damaged. */
  format: unknown = null;
  readonly #segments: readonly Segment[];
  readonly #keep: boolean;
  #segment = 0;
  #offset = 0;
  #next: number;
  /** Where the last unit that began says that it ends. */
  #unitEnd = 0;
  #last: JournalRecord | null = null;

  /** `segments` begin with the one that the first line is of. */
  constructor(segments: readonly Segment[], options: { readonly keep: boolean }) {
    this.#segments = segments;
    this.#keep = options.keep;
    this.#next = segments[0]?.first ?? 1;
  }

  /** The seq of the next record. */
  get next(): number {
    return this.#next;
  }

  add(lines: readonly Line[]): void {
    for (const line of lines) this.take(line);
  }

  /** There are no more lines; records up to `head` are known to have been there. */
  end(head: number): void {
    this.#skipTo(Math.max(head, this.#unitEnd) + 1);
  }

  recovery(): Recovery {
    const unclean = this.#last?.kind !== "closed" || this.#last.seq !== this.#next - 1;
    return { unclean, cutBytes: 0, damaged: this.damaged, missing: this.missing };
  }

  /** Throws FORMAT_NEWER, JOURNAL_UNREADABLE at a header that says so. */
  take(line: Line): void {
    this.#skipTo(line.seq);
    this.#next = line.seq + 1;
    while ((this.#segments[this.#segment + 1]?.first ?? Number.POSITIVE_INFINITY) <= line.seq) {
      this.#segment++;
      this.#offset = 0;
    }
    const encoded = bytesOf(line);
    const bytes = encoded.length + 1;
    const record = decoded(line, encoded);
    if (line.seq === this.#segments[this.#segment]?.first) {
      if (record) assertFormat(record);
      this.format = record?.["format"] ?? null;
    }
    if (record) {
      this.count++;
      if (this.#keep) this.records.push(record);
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
