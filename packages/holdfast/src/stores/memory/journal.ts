import { HoldfastError } from "../../errors.ts";
import type { Appended, AppendOptions, Durability, FollowOptions, Journal, Written } from "../../journal/contract.ts";
import type { Ledger, Prepared } from "../../journal/ledger.ts";
import { assertEpoch, closedRecord, segmentRecord } from "../../journal/lifecycle.ts";
import { tellAll } from "../../journal/listeners.ts";
import type { JournalRecord, NewRecord } from "../../journal/record.ts";
import { journalClosed } from "../../journal/refusals.ts";
import type { MemorySession } from "./session.ts";

export interface MemoryWriter {
  readonly session: MemorySession;
  readonly ledger: Ledger;
  readonly durability: Durability;
  /** Written right before this writer's first record; a writer that only reads writes nothing. */
  readonly opened: NewRecord;
  /** This writer created the session. */
  readonly created: boolean;
  readonly follow: (options?: FollowOptions) => AsyncIterable<JournalRecord>;
  /** Reports the stamp of the records just written. */
  readonly onWritten: (stamp: string) => void;
  /** Releases the lease. */
  readonly release: () => void;
}

/** The writer of a session in memory. `durable` here means as durable as this store gets. */
export class MemoryJournal implements Journal {
  readonly #writer: MemoryWriter;
  readonly #session: MemorySession;
  readonly #ledger: Ledger;
  readonly #listeners = new Set<(error: HoldfastError) => void>();
  #announced = false;
  #wrote: boolean;
  #closed = false;
  #failure: HoldfastError | null = null;

  constructor(writer: MemoryWriter) {
    this.#writer = writer;
    this.#session = writer.session;
    this.#ledger = writer.ledger;
    this.#wrote = writer.created;
  }

  get id(): string {
    return this.#session.id;
  }
  get head(): number {
    return this.#ledger.head;
  }
  get at(): string {
    return this.#ledger.at;
  }
  get durable(): number {
    return this.#ledger.durable;
  }
  get failure(): HoldfastError | null {
    return this.#failure;
  }

  async append(records: NewRecord | readonly NewRecord[], options: AppendOptions = {}): Promise<Appended> {
    const appended = this.#write(records, options.key);
    // Acknowledged later than written, as on a disk: followers and appends of the same tick can tell the difference.
    await null;
    this.#acknowledge(appended.last, options.durability ?? this.#writer.durability);
    return appended;
  }

  appendSync(records: NewRecord | readonly NewRecord[], options: AppendOptions = {}): Appended {
    const appended = this.#write(records, options.key);
    this.#acknowledge(appended.last, options.durability ?? this.#writer.durability);
    return appended;
  }

  async flush(): Promise<void> {
    this.flushSync();
  }

  flushSync(): void {
    // Closing has already synced everything.
    if (this.#closed) return;
    this.#acknowledge(this.#ledger.head, "power");
  }

  async epoch(build: () => readonly NewRecord[]): Promise<Appended> {
    this.#assertWritable();
    const records = build();
    assertEpoch(this.id, records);
    const prepared = this.#announce(() => this.#ledger.prepareSegment([this.#header(), ...records]));
    this.#session.beginSegment(prepared.bytes);
    this.#ledger.commit(prepared);
    this.#writer.onWritten(this.#ledger.stamp);
    this.#ledger.forgetOldKeys();
    this.#wrote = true;
    // A segment is durable before anyone can see it (S15), and so is everything before it.
    this.#acknowledge(prepared.last, "power");
    // The store adds the header: report only the caller's own records.
    return { seq: prepared.seq + 1, last: prepared.last };
  }

  follow(options?: FollowOptions): AsyncIterable<JournalRecord> {
    return this.#writer.follow(options);
  }

  onWritten(listener: (written: Written) => void): () => void {
    return this.#ledger.onWritten(listener);
  }

  onFailure(listener: (error: HoldfastError) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#failure) throw this.#failure;
    try {
      this.#acknowledge(this.#ledger.head, "power");
      if (!this.#wrote) return;
      const prepared = this.#ledger.prepare([closedRecord()]);
      this.#put(prepared);
      this.#acknowledge(prepared.last, "power");
    } finally {
      this.#writer.release();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Treats the process as dead for this journal: what was not acknowledged stays in doubt. */
  lose(): void {
    if (this.#closed || this.#failure) return;
    const message =
      `The lease of session ${this.id} is gone, and another writer may be active. Acknowledged records are safe; ` +
      "pending ones are in doubt. Reopen the session.";
    this.#failure = new HoldfastError("LEASE_LOST", message, { session: this.id });
    tellAll(this.#listeners, this.#failure);
  }

  #write(records: NewRecord | readonly NewRecord[], key: string | undefined): Appended {
    this.#assertWritable();
    const known = key === undefined ? undefined : this.#ledger.find(key);
    if (known) return known;
    const unit = Array.isArray(records) ? (records as readonly NewRecord[]) : [records as NewRecord];
    if (unit.length === 0) {
      const message = "Nothing was written: a unit needs at least one record. The journal stays usable.";
      throw new HoldfastError("RECORD_INVALID", message, { session: this.id });
    }
    const prepared = this.#announce(() => this.#ledger.prepare(unit, key));
    this.#put(prepared);
    return { seq: prepared.seq, last: prepared.last };
  }

  /**
   * Prepares what will be written, with `opened` before it if that is still missing, but never writes `opened` for
   * invalid records.
   */
  #announce(prepare: () => Prepared): Prepared {
    const prepared = prepare();
    if (this.#announced) return prepared;
    this.#put(this.#ledger.prepare([this.#writer.opened]));
    this.#announced = true;
    return prepare();
  }

  #put(prepared: Prepared): void {
    this.#session.add(prepared.bytes);
    this.#ledger.commit(prepared);
    this.#writer.onWritten(this.#ledger.stamp);
    this.#wrote = true;
  }

  #header(): NewRecord {
    const segment = this.#session.segments.length + 1;
    return segmentRecord({ session: this.id, segment, epoch: segment, keys: this.#ledger.keysToCarry() });
  }

  #acknowledge(seq: number, durability: Durability): void {
    if (this.#failure) throw this.#failure;
    if (durability !== "process") this.#ledger.setDurable(seq);
    this.#session.acknowledge(seq);
  }

  #assertWritable(): void {
    if (this.#closed) throw journalClosed(this.id);
    if (this.#failure) throw this.#failure;
  }
}
