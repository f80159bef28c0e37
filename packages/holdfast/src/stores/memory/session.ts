import { type FollowOptions, rowIn, type Summariser, type VerbatimLine } from "../../journal/contract.ts";
import { crcIn, startAfter } from "../../journal/cursor.ts";
import { Account, type Line, recordsOf, type Segment } from "../../journal/lines/account.ts";
import { decodeLine } from "../../journal/lines/decode.ts";
import { segmentAt } from "../../journal/lines/verbatim.ts";
import { type ListRow, RowFold } from "../../journal/list-row.ts";
import type { JournalRecord } from "../../journal/record.ts";
import { Wake } from "../wake.ts";

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
  readonly #followers = new Set<Wake>();

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
    for (const follower of this.#followers) follower.up();
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
    const wake = new Wake(signal);
    this.#followers.add(wake);
    try {
      let at = await startAfter(this.id, after ?? 0, async (seq) => this.#crcAt(seq));
      while (!signal.aborted) {
        while (at < this.#acknowledged && !signal.aborted) {
          const record = this.#decode(at++);
          if (record) yield record;
        }
        if (this.deleted) return;
        if (!signal.aborted) await wake.wait();
      }
    } finally {
      this.#followers.delete(wake);
      wake.end();
    }
  }

  /** The newest records, newest first, for a reader that stops when it has seen enough. */
  *backwards(): Generator<JournalRecord, undefined> {
    for (let i = this.lines.length - 1; i >= 0; i--) {
      const record = this.#decode(i);
      if (record) yield record;
    }
  }

  /** What a list shows: the newest summary, and the records after it folded in (S20). Null if nothing is whole. */
  row(summariser?: Summariser): (ListRow & { readonly id: string }) | null {
    const later: JournalRecord[] = [];
    for (const record of this.backwards()) {
      later.push(record);
      if (rowIn(record, summariser) !== undefined) break;
    }
    const fold = new RowFold(null, summariser);
    for (const record of later.reverse()) fold.add(record.seq, record);
    return later.length > 0 ? { ...fold.row, id: this.id, head: this.head } : null;
  }

  #crcAt(seq: number): string | null {
    const line = this.lines[seq - 1];
    return line ? crcIn(line.subarray(0, -1)) : null;
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
