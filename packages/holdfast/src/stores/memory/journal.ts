import { HoldfastError } from "../../errors.ts";
import type { Appended } from "../../journal/contract.ts";
import type { Prepared } from "../../journal/ledger.ts";
import { assertEpoch, segmentRecord } from "../../journal/lifecycle.ts";
import type { NewRecord } from "../../journal/record.ts";
import { CommitQueue } from "../commit-queue.ts";
import type { JournalBaseParts } from "../journal-base.ts";
import type { MemorySession } from "./session.ts";

export interface JournalParts extends JournalBaseParts {
  readonly session: MemorySession;
  /** Reports the stamp of the records just written. */
  readonly onWritten: (stamp: string) => void;
  /** Releases the lease. */
  readonly release: () => void;
}

/** The writer of a session in memory. `durable` here means as durable as this store gets. */
export class MemoryJournal extends CommitQueue {
  readonly #parts: JournalParts;
  readonly #session: MemorySession;

  constructor(parts: JournalParts) {
    super(parts);
    this.#parts = parts;
    this.#session = parts.session;
    this.onAcknowledged(() => this.#session.acknowledge(this.acknowledged));
  }

  protected async beginEpoch(build: () => readonly NewRecord[], key: string | undefined): Promise<Appended> {
    const records = build();
    assertEpoch(this.id, records);
    this.startEpoch(records);
    const segment = this.#session.segments.length + 1;
    const keys = this.ledger.keysToCarry(key, records.length);
    const header = segmentRecord({ session: this.id, segment, epoch: segment, keys });
    const prepared = this.ledger.prepareSegment([header, ...records]);
    this.#session.beginSegment(prepared.bytes);
    this.#commit(prepared);
    // The store adds the header: report only the caller's own records.
    const appended = { seq: prepared.seq + 1, last: prepared.last };
    this.ledger.forgetOldKeys(key, appended);
    // A segment is durable before anyone can see it (S15), and so is everything before it.
    this.syncNow();
    return appended;
  }

  /** Treats the process as dead for this journal: what was not acknowledged stays in doubt. */
  lose(): void {
    const message =
      `The lease of session ${this.id} is gone, and another writer may be active. Acknowledged records are safe; ` +
      "pending ones are in doubt. Reopen the session.";
    this.fail(new HoldfastError("LEASE_LOST", message, { session: this.id }));
  }

  protected put(unit: readonly NewRecord[], key: string | undefined): Appended {
    this.start(unit, key);
    return this.#put(this.ledger.prepare(unit, key));
  }

  protected putClosed(closed: NewRecord): void {
    this.#put(this.ledger.prepare([closed]));
  }

  protected writeOpened(): void {
    this.#put(this.ledger.prepare([this.opened]));
  }

  protected async issueSync(onIssue: () => void): Promise<void> {
    onIssue();
  }

  protected issueSyncNow(): void {}

  protected assertSynced(): void {}

  protected assertWritten(): void {}

  protected override async end(): Promise<void> {
    await super.end();
    if (this.failure) throw this.failure;
  }

  protected release(): void {
    // Another writer may have the lease by now.
    if (!this.failure) this.#parts.release();
  }

  protected inDoubt(cause: unknown): HoldfastError {
    return new HoldfastError("SYNC_FAILED", `The outcome is unknown: ${String(cause)}`, { session: this.id }, cause);
  }

  #put(prepared: Prepared): Appended {
    this.#session.add(prepared.bytes);
    this.#commit(prepared);
    return { seq: prepared.seq, last: prepared.last };
  }

  #commit(prepared: Prepared): void {
    this.ledger.commit(prepared);
    this.#parts.onWritten(this.ledger.stamp);
  }
}
