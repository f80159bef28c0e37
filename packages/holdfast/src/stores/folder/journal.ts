import { basename } from "node:path";
import { HoldfastError, isHoldfastError } from "../../errors.ts";
import type { Appended } from "../../journal/contract.ts";
import type { Prepared } from "../../journal/ledger.ts";
import { assertEpoch } from "../../journal/lifecycle.ts";
import type { NewRecord } from "../../journal/record.ts";
import { journalClosed } from "../../journal/refusals.ts";
import { CommitQueue } from "../commit-queue.ts";
import type { JournalBaseParts } from "../journal-base.ts";
import type { Lease } from "../lease.ts";
import type { SegmentWriter } from "./writer.ts";

/** If there was no space for a new segment, the old one grows by this much before the next attempt. */
const ROLL_RETRY_BYTES = 1024 * 1024;

export interface JournalParts extends JournalBaseParts {
  readonly writer: SegmentWriter;
  readonly lease: Lease;
  readonly segmentBytesMax: number;
  /** Runs once, before the first append. */
  readonly beforeFirst: (() => void) | undefined;
  /** This writer may not append to the newest segment: the first append starts a new one. */
  readonly startSegment: boolean;
  /** Called once, while the lease is still held. */
  readonly onClose: (isClosed: boolean) => void;
}

/**
 * The writer of one session in a folder store. Its own: segments, which grow to a limit, and files that may be gone.
 */
export class FolderJournal extends CommitQueue {
  readonly #parts: JournalParts;
  readonly #writer: SegmentWriter;
  #rollAt: number;
  #settledEnd = false;
  #startedSegment = false;

  constructor(parts: JournalParts) {
    super(parts);
    this.#parts = parts;
    this.#writer = parts.writer;
    this.#rollAt = parts.segmentBytesMax;
  }

  protected beginEpoch(build: () => readonly NewRecord[], key: string | undefined): Promise<Appended> {
    return new Promise((resolve, reject) => {
      // A segment is left only while no sync is running: that sync could receive the report of a failure, and ours
      // would then miss it.
      this.whenQuiet(() => {
        try {
          resolve(this.#switch(build, key));
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  protected put(unit: readonly NewRecord[], key: string | undefined): Appended {
    if (!this.isStarted) this.start(unit, key);
    if (this.#writer.size >= this.#rollAt && !this.isSyncing) {
      this.#roll();
      this.assertOpen();
    }
    const prepared = this.ledger.prepare(unit, key);
    this.#put(prepared);
    return { seq: prepared.seq, last: prepared.last };
  }

  protected putClosed(closed: NewRecord): void {
    this.#put(this.ledger.prepare([closed]));
  }

  protected writeOpened(): void {
    const { opened, beforeFirst, startSegment } = this.#parts;
    try {
      if (beforeFirst && !this.#settledEnd) {
        beforeFirst();
        this.#settledEnd = true;
        this.ledger.setDurable(this.ledger.head);
      }
      if (startSegment && !this.#startedSegment) {
        this.#writer.next(null);
        this.#startedSegment = true;
      }
    } catch (error) {
      throw this.#refusalOrFailure(error);
    }
    // At the size limit, `opened` still goes to the old segment, so that a list sees that the session has continued.
    this.#put(this.ledger.prepare([opened]));
  }

  protected issueSync(onIssue: () => void): Promise<void> {
    onIssue();
    return this.#writer.sync();
  }

  protected override syncIfFast(): boolean {
    return this.#writer.syncIfFast();
  }

  protected issueSyncNow(): void {
    this.#writer.syncNow();
  }

  protected assertSynced(): void {
    this.#writer.assertMine();
  }

  protected assertWritten(): void {
    // A repeated key can be answered before this writer has a segment of its own to check.
    if (this.isBehind && !this.#parts.lease.isSure) this.#writer.assertMine();
  }

  protected override afterSync(): void {
    // Nothing may come after `closed`, not even the header of a new segment.
    if (this.#writer.size >= this.#rollAt && !this.failure && !this.isClosing) this.#roll();
  }

  protected release(isClosed: boolean): void {
    const closedAt = isClosed ? { segment: basename(this.#writer.path), bytes: this.#writer.size } : undefined;
    try {
      this.#parts.onClose(isClosed);
      this.#writer.close();
    } finally {
      this.#parts.lease.release(closedAt);
    }
  }

  protected inDoubt(cause: unknown): HoldfastError {
    const { durable, head } = this.ledger;
    const message =
      `The disk did not confirm records ${durable + 1} to ${head} of session ${this.id}: they are in doubt, and a power cut could lose them. ` +
      `Everything up to ${durable} is safe. Close this journal, and reopen the session: that rewrites them, and shows what is there.`;
    const facts = { session: this.id, durable, from: durable + 1, to: head };
    return new HoldfastError("SYNC_FAILED", message, facts, cause);
  }

  #put(prepared: Prepared): void {
    try {
      this.#writer.put(prepared);
    } catch (error) {
      throw this.#refusalOrFailure(error);
    }
  }

  #switch(build: () => readonly NewRecord[], key: string | undefined): Appended {
    this.assertNotFailed();
    if (this.isEnded) throw journalClosed(this.id);
    const records = build();
    assertEpoch(this.id, records);
    this.startEpoch(records);
    try {
      this.syncNow();
      const prepared = this.#writer.next(records, key);
      this.#rollAt = this.#writer.size + this.#parts.segmentBytesMax;
      this.settle();
      return { seq: prepared.seq + 1, last: prepared.last };
    } catch (error) {
      throw this.#refusalOrFailure(error);
    }
  }

  /** Starts a new segment at the size limit. If there is no space for it, the old one stays in use. */
  #roll(): void {
    try {
      this.syncNow();
      this.#writer.next(null);
      this.#rollAt = this.#writer.size + this.#parts.segmentBytesMax;
    } catch (error) {
      this.#refusalOrFailure(error);
      this.#rollAt = this.#writer.size + ROLL_RETRY_BYTES;
    }
  }

  /** A refusal leaves the journal as it was; any other error disables it until it is reopened (P8). */
  #refusalOrFailure(error: unknown): unknown {
    // An error that is neither the disk's nor ours (a summariser that throws) happened before anything was written.
    if (!(error instanceof HoldfastError)) return error;
    const goesOn = [
      "STORE_FULL",
      "STORE_IO",
      "STORE_FORBIDDEN",
      "RECORD_INVALID",
      "RECORD_NOT_JSON",
      "RECORD_TOO_LARGE",
    ] as const;
    if (isHoldfastError(error, ...goesOn)) return error;
    return this.told(this.fail(error));
  }
}
