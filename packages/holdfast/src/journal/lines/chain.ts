import { HoldfastError } from "../../errors.ts";
import type { JournalRecord } from "../record.ts";

/** The maximum number of strays in one segment. Each takes memory, and 60 MB of newlines would take gigabytes. */
export const STRAYS_MAX = 1024 * 1024;

/** Bytes that belong to no whole record. */
export interface Stray {
  readonly offset: number;
  readonly end: number;
  readonly why: "corrupt" | "foreign";
  /** How many whole records precede it. */
  readonly after: number;
  /** It takes the place of a line (and so of a seq). False for bytes next to a whole record in the same line. */
  readonly line: boolean;
}

/**
 * The whole records that belong to a segment. Numbers only grow: a whole record whose number does not was pasted in or
 * misdirected by a disk, or the records before it were. Such lines are strays like any other, and cost nothing but
 * themselves (P9).
 */
export class Chain {
  readonly records: JournalRecord[] = [];
  readonly offsets: number[] = [];
  /** For each record, the highest mark up to it, and how many damaged lines precede it. */
  readonly #marks: number[] = [];
  readonly #lines: number[] = [];
  readonly #damage: Stray[] = [];
  #lineCount = 0;
  /** Where each whole record that does not count starts, and where it ends, if known. */
  readonly #outcasts = new Map<number, number | null>();
  #strays: readonly Stray[] | null = null;

  /** The highest mark in any whole record (S7). */
  get mark(): number {
    return this.#marks.at(-1) ?? 0;
  }

  /** The same, for the first `count` records. */
  markOf(count: number): number {
    return this.#marks[count - 1] ?? 0;
  }

  /** In file order. */
  get strays(): readonly Stray[] {
    if (this.#outcasts.size === 0) return this.#damage;
    this.#strays ??= this.#allStrays();
    return this.#strays;
  }

  /** Throws JOURNAL_UNREADABLE if there are too many. */
  stray(offset: number, end: number, why: Stray["why"], line: boolean): void {
    this.#strays = null;
    this.#count();
    this.#damage.push({ offset, end, why, after: this.records.length, line });
    if (line) this.#lineCount++;
  }

  /** Takes the next whole record. Returns false if it does not count. Throws JOURNAL_UNREADABLE if too many do not. */
  add(record: JournalRecord, offset: number, end: number): boolean {
    this.#strays = null;
    const last = this.records[this.records.length - 1];
    if (last !== undefined && record.seq <= last.seq) {
      const from = indexFrom(this.records, record.seq);
      this.#count();
      if (!this.#intruded(from, record)) {
        this.#outcasts.set(offset, end);
        return false;
      }
      for (const ousted of this.offsets.splice(from)) this.#outcasts.set(ousted, null);
      this.records.length = this.#marks.length = this.#lines.length = from;
    }
    const mark = this.mark;
    this.#marks.push(record.synced !== undefined && record.synced > mark ? record.synced : mark);
    this.#lines.push(this.#lineCount);
    this.records.push(record);
    this.offsets.push(offset);
    return true;
  }

  #count(): void {
    if (this.#damage.length + this.#outcasts.size < STRAYS_MAX) return;
    const message =
      `The journal cannot be read: more than ${STRAYS_MAX} pieces of one segment belong to no record, so it is not a journal segment. ` +
      "Nothing was touched. Look at the file, and restore it from a backup.";
    throw new HoldfastError("JOURNAL_UNREADABLE", message, { strays: STRAYS_MAX });
  }

  /**
   * Are the records from `from` on the ones that do not belong here, rather than `record`? They are if they came with a
   * jump that no damage explains. Only what precedes `record` decides, so bytes that are cut off later make no
   * difference.
   */
  #intruded(from: number, record: JournalRecord): boolean {
    const first = this.records[from]!;
    if (first.seq === record.seq && first.crc === record.crc) return false;
    // A segment starts with its header (S15).
    if (from === 0) return record.kind === "segment" && first.kind !== "segment";
    return first.seq - this.records[from - 1]!.seq - 1 > this.#lines[from]! - this.#lines[from - 1]!;
  }

  /** A record that was cast out ends where the next item starts, because that item replaced it. */
  #allStrays(): Stray[] {
    const strays = [...this.#damage];
    for (const [offset, end] of this.#outcasts) {
      strays.push({ offset, end: end ?? Number.POSITIVE_INFINITY, why: "corrupt", after: 0, line: false });
    }
    strays.sort((a, b) => a.offset - b.offset);
    let after = 0;
    return strays.map((stray, i) => {
      while (after < this.offsets.length && this.offsets[after]! < stray.offset) after++;
      const { end } = stray;
      const next = Math.min(this.offsets[after] ?? end, strays[i + 1]?.offset ?? end);
      return { ...stray, after, end: end === Number.POSITIVE_INFINITY ? next : end };
    });
  }
}

/** The index of the first of these records whose number is at least `seq`. */
export function indexFrom(records: readonly JournalRecord[], seq: number): number {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (records[middle]!.seq < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}
