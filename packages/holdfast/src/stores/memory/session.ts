import type { FollowOptions, VerbatimLine } from "../../journal/contract.ts";
import { Account, type Line, recordsOf, type Segment } from "../../journal/lines/account.ts";
import { decodeLine } from "../../journal/lines/decode.ts";
import { segmentAt } from "../../journal/lines/verbatim.ts";
import { cursorOf, type JournalRecord } from "../../journal/record.ts";
import { cursorStale } from "../../journal/refusals.ts";

const NEWLINE = 0x0a;

/**
 * One journal: its exact lines, each with its newline. Line i has seq i + 1, because a unit is added as a whole and
 * nothing is ever cut. Records are decoded and their checksums verified on every read, so readers never share an
 * object.
 */
export class MemorySession {
  readonly id: string;
  readonly lines: Buffer[] = [];
  /** Where each segment starts. Each starts an epoch: there is no size limit here. */
  readonly segments: number[] = [];
  deleted = false;
  /** How many lines were acknowledged: followers get only these. */
  #acknowledged = 0;
  /** Among the adopted segments. */
  #newest: Segment | null = null;
  readonly #waiting = new Set<() => void>();

  constructor(id: string) {
    this.id = id;
  }

  get head(): number {
    return this.lines.length;
  }
  /** The line that starts the current epoch. */
  get epochAt(): number {
    return this.segments.at(-1) ?? 0;
  }

  /** Keeps a copy: the encoder's bytes are valid only until the next record is encoded. */
  add(unit: Buffer): void {
    const bytes = Buffer.from(unit);
    for (let start = 0; start < bytes.length; ) {
      const end = bytes.indexOf(NEWLINE, start) + 1;
      this.lines.push(bytes.subarray(start, end));
      start = end;
    }
  }

  beginSegment(unit: Buffer): void {
    this.segments.push(this.lines.length);
    this.add(unit);
  }

  /** Adds a line as it was elsewhere. Seqs that had no line there count as damaged here. */
  adopt({ record, bytes }: VerbatimLine): void {
    while (this.lines.length < record.seq - 1) this.lines.push(Buffer.from("\n"));
    const begins = segmentAt(record, this.#newest);
    // Here each segment starts an epoch: a header that only continues one is a line like any other.
    if (begins && (begins.number === begins.epoch || !this.#newest)) this.segments.push(this.lines.length);
    this.#newest = begins ?? this.#newest;
    this.lines.push(Buffer.concat([bytes, Buffer.from("\n")]));
  }

  acknowledge(seq: number): void {
    if (seq <= this.#acknowledged) return;
    this.#acknowledged = seq;
    this.wake();
  }

  /** Something has changed: followers check again. */
  wake(): void {
    for (const resume of [...this.#waiting]) resume();
  }

  /** All lines, or those of the current epoch. */
  read(what: "all" | "epoch"): Account {
    const segments = what === "all" ? this.#segments() : this.#segments().slice(-1);
    const account = new Account(segments, { keep: what === "epoch" });
    account.add(this.#linesFrom(segments[0]?.first ?? 1));
    account.end(this.head);
    return account;
  }

  history(from: number): AsyncGenerator<JournalRecord> {
    return recordsOf([this.#linesFrom(Math.max(1, from))], this.#segments());
  }

  async *follow(after: FollowOptions["after"], signal: AbortSignal): AsyncGenerator<JournalRecord> {
    let at = typeof after === "string" ? this.#locate(after) : Math.max(0, after ?? 0);
    for (;;) {
      while (at < this.#acknowledged && !signal.aborted) {
        const record = this.#decode(at++);
        if (record) yield record;
      }
      if (signal.aborted || this.deleted) return;
      await this.#change(signal);
    }
  }

  /** The newest records, newest first, for a reader that stops when it has seen enough. */
  *backwards(): Generator<JournalRecord, undefined> {
    for (let i = this.lines.length - 1; i >= 0; i--) {
      const record = this.#decode(i);
      if (record) yield record;
    }
  }

  /** The line after the one the cursor names. */
  #locate(cursor: string): number {
    const seq = Number(cursor.slice(0, cursor.indexOf("-")));
    const record = Number.isSafeInteger(seq) ? this.#decode(seq - 1) : null;
    if (!record || cursorOf(record) !== cursor) throw cursorStale(this.id, cursor);
    return seq;
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const resume = () => {
        this.#waiting.delete(resume);
        signal.removeEventListener("abort", resume);
        resolve();
      };
      this.#waiting.add(resume);
      signal.addEventListener("abort", resume);
    });
  }

  #decode(i: number): JournalRecord | null {
    const line = this.lines[i];
    return line ? decodeLine(line, 0, line.length - 1) : null;
  }

  #segments(): Segment[] {
    return this.segments.map((start, i) => ({ number: i + 1, epoch: i + 1, first: start + 1 }));
  }

  #linesFrom(seq: number): Line[] {
    return this.lines.slice(seq - 1).map((line, i) => ({ seq: seq + i, bytes: line.subarray(0, -1) }));
  }
}
