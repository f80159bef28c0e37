import { type HoldfastError, isHoldfastError } from "holdfast";
import { assertEpoch, notSupported } from "holdfast/internal";
import {
  CommitQueue,
  type JournalAppended,
  type JournalBaseParts,
  type NewRecord,
  type Prepared,
  segmentRecord,
} from "holdfast/store";
import type { Rows } from "./rows.ts";
import { syncFailed } from "./storage.ts";

export interface JournalParts extends JournalBaseParts {
  readonly rows: Rows;
  /** The key of the session's row. */
  readonly key: number;
  /** The head for which that row was last written. */
  readonly savedHead: number;
  /** The number of the newest segment. */
  readonly segment: number;
  readonly url: string;
  /** Resolves when all that was written before is durable. */
  readonly sync: () => Promise<void>;
  /** Reports the stamp of the records just written. */
  readonly onStamp: (stamp: string) => void;
  /** Ends the lease. */
  readonly onClose: () => void;
}

/**
 * The writer of one session in a Durable Object. A write is one synchronous transaction; `sync` of the object says when
 * it is durable.
 */
export class DurableJournal extends CommitQueue {
  readonly #parts: JournalParts;
  readonly #rows: Rows;
  readonly #key: number;
  #segment: number;
  #savedHead: number;

  constructor(parts: JournalParts) {
    super(parts);
    this.#parts = parts;
    this.#rows = parts.rows;
    this.#key = parts.key;
    this.#segment = parts.segment;
    this.#savedHead = parts.savedHead;
  }

  override appendSync(): never {
    this.assertOpen();
    throw notSupported("appendSync", this.#parts.url, "A Durable Object confirms its writes later: use append.");
  }

  override flushSync(): never {
    throw notSupported("flushSync", this.#parts.url, "A Durable Object confirms its writes later: use flush.");
  }

  protected async beginEpoch(build: () => readonly NewRecord[], key: string | undefined): Promise<JournalAppended> {
    const records = build();
    assertEpoch(this.id, records);
    this.startEpoch(records);
    const number = this.#segment + 1;
    const keys = this.ledger.keysToCarry(key, records.length);
    const header = segmentRecord({ session: this.id, segment: number, epoch: number, keys });
    const prepared = this.ledger.prepareSegment([header, ...records]);
    this.#write(prepared, () => {
      this.#rows.insertSegment(this.#key, { number, epoch: number, first: prepared.seq });
    });
    this.#segment = number;
    const appended = { seq: prepared.seq + 1, last: prepared.last };
    this.ledger.forgetOldKeys(key, appended);
    return this.reach(appended, "power");
  }

  protected put(unit: readonly NewRecord[], key: string | undefined): JournalAppended {
    this.start(unit, key);
    const prepared = this.ledger.prepare(unit, key);
    this.#write(prepared);
    return { seq: prepared.seq, last: prepared.last };
  }

  protected putClosed(closed: NewRecord): void {
    this.#rows.transaction(() => {
      this.#write(this.ledger.prepare([closed]));
      this.#saveRow(true);
    });
  }

  protected writeOpened(): void {
    this.#write(this.ledger.prepare([this.opened]), () => this.#rows.reopen(this.#key));
  }

  protected issueSync(onIssue: () => void): Promise<void> {
    onIssue();
    return this.#parts.sync();
  }

  protected issueSyncNow(): void {}

  protected assertSynced(): void {}

  protected assertWritten(): void {}

  protected override get isUntidy(): boolean {
    return this.ledger.head !== this.#savedHead;
  }

  protected override tidy(): void {
    try {
      this.#saveRow(false);
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      // The row is derived: lists fold the later lines into the old one. What the database refuses is reported by the
      // next append, or by `close`.
    }
  }

  protected release(): void {
    this.#parts.onClose();
  }

  protected inDoubt(cause: unknown): HoldfastError {
    return syncFailed(this.id, this.#parts.url, cause);
  }

  #write(prepared: Prepared, besides: () => void = () => {}): void {
    this.#rows.transaction(() => {
      besides();
      this.#rows.insertUnit(this.#key, prepared.seq, prepared.bytes);
    });
    this.ledger.commit(prepared);
    this.#parts.onStamp(this.ledger.stamp);
  }

  #saveRow(closed: boolean): void {
    if (!this.isUntidy) return;
    this.#rows.update(this.#key, this.ledger, closed, this.ledger.row);
    this.#savedHead = this.ledger.head;
  }
}
