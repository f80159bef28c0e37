import { type HoldfastError, isHoldfastError } from "../../errors.ts";
import type { Appended } from "../../journal/contract.ts";
import { assertEpoch } from "../../journal/lifecycle.ts";
import type { NewRecord } from "../../journal/record.ts";
import { CommitQueue } from "../commit-queue.ts";
import type { JournalBaseParts } from "../journal-base.ts";
import { isRefusal, isSqliteError, syncFailed, writeFailure } from "./database/failure.ts";
import type { Wal } from "./database/wal.ts";
import type { SessionWriter } from "./writer.ts";

export interface JournalParts extends JournalBaseParts {
  readonly writer: SessionWriter;
  readonly wal: Wal;
  /** The newest segment has another format: this writer's first record starts a new one (S16). */
  readonly startSegment: boolean;
  /** Called once: ends the lease. */
  readonly onClose: () => void;
}

/**
 * The writer of one session in an SQLite store. Its own: the sync is shared by all sessions, and the catalogue row is
 * saved in the background.
 */
export class SqliteJournal extends CommitQueue {
  readonly #parts: JournalParts;
  #segmentStarted: boolean;

  constructor(parts: JournalParts) {
    super(parts);
    this.#parts = parts;
    this.#segmentStarted = !parts.startSegment;
  }

  protected async beginEpoch(build: () => readonly NewRecord[], key: string | undefined): Promise<Appended> {
    const records = build();
    assertEpoch(this.id, records);
    const appended = this.#attempt(() => {
      this.startEpoch(records);
      const prepared = this.#parts.writer.begin(records, key);
      this.#segmentStarted = true;
      this.#parts.wal.grew(prepared.bytes.length);
      return { seq: prepared.seq + 1, last: prepared.last };
    });
    return this.reach(appended, "power");
  }

  protected put(unit: readonly NewRecord[], key: string | undefined): Appended {
    return this.#attempt(() => {
      this.start(unit, key);
      const prepared = this.ledger.prepare(unit, key);
      this.#parts.writer.put(prepared);
      this.#parts.wal.grew(prepared.bytes.length);
      return { seq: prepared.seq, last: prepared.last };
    });
  }

  protected putClosed(closed: NewRecord): void {
    this.#attempt(() => {
      this.#parts.writer.put(this.ledger.prepare([closed]));
      this.#parts.writer.saveRow(true);
    });
  }

  protected writeOpened(): void {
    const { writer, opened } = this.#parts;
    if (!this.#segmentStarted) writer.begin(null);
    this.#segmentStarted = true;
    writer.putOpened(this.ledger.prepare([opened]));
  }

  protected issueSync(onIssue: () => void): Promise<void> {
    return this.#parts.wal.sync(onIssue);
  }

  protected issueSyncNow(): void {
    this.#parts.wal.syncNow();
  }

  /** Every sync of the log ends with the same check. */
  protected assertSynced(): void {}

  /** Are the records where the next process finds them? */
  protected assertWritten(): void {
    this.#parts.wal.assertMine();
  }

  protected override get isUntidy(): boolean {
    return this.#parts.writer.rowIsBehind;
  }

  protected override tidy(): void {
    try {
      this.#parts.writer.saveRow(false);
    } catch (error) {
      // The row is derived, and the disk may be full: lists do without it, and the next round tries again. Nobody waits
      // for this: a refusal that lasts is reported by the next append, or by `close`.
      if (isHoldfastError(error)) return;
      if (!isSqliteError(error)) throw error;
      const { code } = writeFailure(error, this.id, this.ledger, this.#parts.wal.path);
      if (code === "SYNC_FAILED") this.#parts.wal.doubt(error);
    }
  }

  protected release(): void {
    this.#parts.onClose();
  }

  protected inDoubt(cause: unknown): HoldfastError {
    return syncFailed(this.id, this.ledger, cause);
  }

  /** Translates SQLite's errors; the ledger's refusals already are HoldfastErrors. */
  #attempt<T>(write: () => T): T {
    try {
      return write();
    } catch (error) {
      if (!isSqliteError(error)) throw error;
      const failure = writeFailure(error, this.id, this.ledger, this.#parts.wal.path);
      if (isRefusal(failure)) throw failure;
      if (failure.code === "SYNC_FAILED") this.#parts.wal.doubt(error);
      throw this.told(this.fail(failure));
    }
  }
}
