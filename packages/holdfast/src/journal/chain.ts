import type { JournalRecord } from "./record.ts";

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

interface Rival {
  readonly record: JournalRecord;
  readonly offset: number;
  readonly lines: number;
}

/**
 * The whole records of a segment that are its own. Numbers only grow: a whole record whose number does not was pasted in or misdirected by a disk,
 * or else those before it were. Such lines are strays like any other, and cost nothing but themselves (P9).
 */
export class Chain {
  readonly records: JournalRecord[] = [];
  readonly offsets: number[] = [];
  /** For each record, the highest mark up to it, and how many damaged lines stand before it. */
  readonly #marks: number[] = [];
  readonly #lines: number[] = [];
  readonly #damage: Stray[] = [];
  #lineCount = 0;
  /** The newest whole records, if their numbers were taken when they came. */
  #rivals: Rival[] = [];
  /** Where every whole record begins that at some time was not in the chain, and where it ends, if that is known. */
  readonly #contested = new Map<number, number | null>();
  #strays: readonly Stray[] | null = null;

  /** The highest mark in any whole record (S7). */
  get mark(): number {
    return this.#marks.at(-1) ?? 0;
  }

  /** In the order of the file. */
  get strays(): readonly Stray[] {
    if (this.#contested.size === 0) return this.#damage;
    this.#strays ??= this.#allStrays();
    return this.#strays;
  }

  stray(offset: number, end: number, why: Stray["why"], line: boolean): void {
    this.#strays = null;
    this.#damage.push({ offset, end, why, after: this.records.length, line });
    if (line) this.#lineCount++;
  }

  /** Takes the next whole record. False if it does not count. */
  add(record: JournalRecord, offset: number, end: number): boolean {
    this.#strays = null;
    const last = this.records[this.records.length - 1];
    if (last === undefined || record.seq > last.seq) {
      if (this.#rivals.length > 0) this.#rivals = [];
      this.#push(record, offset, this.#lineCount);
      return true;
    }
    this.#contested.set(offset, end);
    if (record.seq <= (this.#rivals.at(-1)?.record.seq ?? 0)) this.#rivals = [];
    this.#rivals.push({ record, offset, lines: this.#lineCount });
    return this.#settle();
  }

  #push(record: JournalRecord, offset: number, lines: number): void {
    const mark = this.mark;
    this.#marks.push(record.synced !== undefined && record.synced > mark ? record.synced : mark);
    this.#lines.push(lines);
    this.records.push(record);
    this.offsets.push(offset);
  }

  /** The rivals win if they are more than those in their way, or if those came with a jump that no damage explains. */
  #settle(): boolean {
    const first = this.#rivals[0]!;
    const from = firstNotBelow(this.records.length, (i) => this.records[i]!.seq, first.record.seq);
    let wins = this.#rivals.length > this.records.length - from;
    if (!wins && from > 0) {
      const before = this.records[from - 1]!.seq;
      const lines = this.#lines[from - 1]!;
      const jumped = this.records[from]!.seq - before - 1 > this.#lines[from]! - lines;
      const fits = first.record.seq - before - 1 <= first.lines - lines;
      wins = jumped && (fits || this.#rivals.length > 1);
    }
    if (!wins) return false;
    for (const offset of this.offsets.splice(from)) {
      if (!this.#contested.has(offset)) this.#contested.set(offset, null);
    }
    this.records.length = this.#marks.length = this.#lines.length = from;
    for (const { record, offset, lines } of this.#rivals) this.#push(record, offset, lines);
    this.#rivals = [];
    return true;
  }

  #allStrays(): Stray[] {
    const inChain = new Set(this.offsets);
    const lost: Stray[] = [];
    for (const [offset, end] of this.#contested) {
      if (!inChain.has(offset)) lost.push({ offset, end: end ?? -1, why: "corrupt", after: 0, line: false });
    }
    const strays = [...this.#damage, ...lost].sort((a, b) => a.offset - b.offset);
    let after = 0;
    return strays.map((stray, i) => {
      while (after < this.offsets.length && this.offsets[after]! < stray.offset) after++;
      // What has no end of its own ends where the next thing begins: it lost its place to a record that stands behind it.
      const next = Math.min(
        this.offsets[after] ?? Number.POSITIVE_INFINITY,
        strays[i + 1]?.offset ?? Number.POSITIVE_INFINITY,
      );
      return { ...stray, after, end: stray.end === -1 ? next : stray.end };
    });
  }
}

function firstNotBelow(count: number, at: (i: number) => number, value: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
