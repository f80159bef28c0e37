import { type HoldfastError, isHoldfastError } from "../../errors.ts";
import type { Appended } from "../../journal/contract.ts";
import { assertEpoch } from "../../journal/lifecycle.ts";
import type { NewRecord } from "../../journal/record.ts";
import { CommitQueue } from "../commit-queue.ts";
import type { JournalBaseParts } from "../journal-base.ts";
import type { Lease } from "../lease.ts";
import { isBusy, isRefusal, isSqliteError, syncFailed, writeFailure } from "./database/failure.ts";
import type { Wal } from "./database/wal.ts";
import type { WriteQueue } from "./write-queue.ts";
import type { SessionWriter } from "./writer.ts";

export interface JournalParts extends JournalBaseParts {
  readonly writer: SessionWriter;
  readonly writeQueue: WriteQueue;
  readonly wal: Wal;
  readonly lease: Lease;
  /** The newest segment has another format: this writer's first record starts a new one (S16). */
  readonly startSegment: boolean;
  /** Called once, while the lease is still held. */
  readonly onClose: () => void;
}

/**
 * The writer of one session in an SQLite store. Its own: a write waits for its turn while another process writes, the
 * sync is shared by all sessions, and the catalogue row is saved in the background.
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
    let records: readonly NewRecord[] | undefined;
    const appended = this.#parts.writeQueue.run(
      () => {
        this.assertNotFailed();
        // Called once, at the instant when nothing can come before it any more: on the first attempt, because later
        // appends queue behind it.
        records ??= build();
        assertEpoch(this.id, records);
        return this.#attempt(() => {
          this.startEpoch(records!);
          const prepared = this.#parts.writer.begin(records!, key);
          this.#segmentStarted = true;
          this.#parts.wal.grew(prepared.bytes.length);
          return { seq: prepared.seq + 1, last: prepared.last };
        });
      },
      () => {
        if (records) records = copyOf(records);
      },
    );
    return appended instanceof Promise ? this.land(appended, "power") : this.reach(appended, "power");
  }

  protected put(unit: readonly NewRecord[], key: string | undefined): Appended | Promise<Appended> {
    let given = unit;
    return this.#parts.writeQueue.run(
      () => this.#writeUnit(given, key),
      () => {
        this.ledger.prepare(given);
        given = copyOf(given);
      },
    );
  }

  protected putNow(unit: readonly NewRecord[], key: string | undefined): Appended {
    return this.#parts.writeQueue.runNow(() => this.#writeUnit(unit, key));
  }

  protected async putClosed(closed: NewRecord): Promise<void> {
    const { writeQueue, writer } = this.#parts;
    await writeQueue.run(() => this.#attempt(() => writer.put(this.ledger.prepare([closed]))));
    await writeQueue.run(() => this.#attempt(() => writer.saveRow(true)));
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

  protected assertSynced(): void {
    this.#parts.lease.assertHeld();
  }

  /** Are the records where others, and the next process, find them? */
  protected assertWritten(): void {
    this.#parts.wal.assertMine();
  }

  protected override allWritten(): Promise<void> {
    return this.#parts.writeQueue.idle();
  }

  protected override writeWaiting(): void {
    this.#parts.writeQueue.runNow(() => null);
  }

  protected override get isUntidy(): boolean {
    return this.#parts.writer.rowIsBehind;
  }

  protected override tidy(): void {
    try {
      this.#parts.writer.saveRow(false);
    } catch (error) {
      // The row is derived, and another process may be writing, or the disk may be full: lists do without it, and the
      // next round tries again. Nobody waits for this: a refusal that lasts is reported by the next append, or by
      // `close`.
      if (isHoldfastError(error)) return;
      if (!isSqliteError(error)) throw error;
      const { code } = writeFailure(error, this.id, this.ledger, this.#parts.wal.path);
      if (code === "SYNC_FAILED") this.#parts.wal.doubt(error);
    }
  }

  protected release(): void {
    this.#parts.onClose();
    this.#parts.lease.release();
  }

  protected inDoubt(cause: unknown): HoldfastError {
    return syncFailed(this.id, this.ledger, cause);
  }

  #writeUnit(unit: readonly NewRecord[], key: string | undefined): Appended {
    this.assertNotFailed();
    return this.#attempt(() => {
      this.start(unit, key);
      const prepared = this.ledger.prepare(unit, key);
      this.#parts.writer.put(prepared);
      this.#parts.wal.grew(prepared.bytes.length);
      return { seq: prepared.seq, last: prepared.last };
    });
  }

  /**
   * Translates SQLite's errors; the ledger's refusals already are HoldfastErrors. Busy errors pass through: the queue
   * retries.
   */
  #attempt<T>(write: () => T): T {
    try {
      return write();
    } catch (error) {
      if (isBusy(error) || !isSqliteError(error)) throw error;
      const failure = writeFailure(error, this.id, this.ledger, this.#parts.wal.path);
      if (isRefusal(failure)) throw failure;
      if (failure.code === "SYNC_FAILED") this.#parts.wal.doubt(error);
      throw this.told(this.fail(failure));
    }
  }
}

/** Later changes by the caller do not affect what is stored. The records have been checked: they are JSON. */
function copyOf(records: readonly NewRecord[]): readonly NewRecord[] {
  return JSON.parse(JSON.stringify(records)) as NewRecord[];
}
