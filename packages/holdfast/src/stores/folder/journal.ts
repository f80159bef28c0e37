import { basename } from "node:path";
import { HoldfastError, isHoldfastError } from "../../errors.ts";
import type { Appended, AppendOptions, Durability, FollowOptions, Journal, Written } from "../../journal/contract.ts";
import type { Ledger, Prepared } from "../../journal/ledger.ts";
import { assertEpoch, closedRecord } from "../../journal/lifecycle.ts";
import { tellAll } from "../../journal/listeners.ts";
import type { JournalRecord, NewRecord } from "../../journal/record.ts";
import { journalClosed } from "../../journal/refusals.ts";
import { flushAtExit } from "../exit.ts";
import type { Lease } from "../lease.ts";
import type { SegmentWriter } from "./writer.ts";

/** Unsynced bytes wait at most this long (S10). */
const BACKGROUND_MS = 1000;
/** If there was no space for a new segment, the old one grows by this much before the next attempt. */
const ROLL_RETRY_BYTES = 1024 * 1024;

export interface JournalParts {
  readonly id: string;
  readonly ledger: Ledger;
  readonly writer: SegmentWriter;
  readonly lease: Lease;
  readonly durability: Durability;
  readonly segmentBytesMax: number;
  /** Written before this writer's first record; null once written. */
  readonly opened: NewRecord | null;
  /** Runs once, before the first append. */
  readonly beforeFirst: (() => void) | undefined;
  /** This writer may not append to the newest segment: the first append starts a new one. */
  readonly startSegment: boolean;
  /** This writer created the session, so it has already written to it. */
  readonly created: boolean;
  readonly follow: (options: FollowOptions) => AsyncIterable<JournalRecord>;
  /** Called once, while the lease is still held. */
  readonly onClose: (closed: boolean) => void;
}

interface Waiter {
  readonly last: number;
  readonly resolve: () => void;
  readonly reject: (error: HoldfastError) => void;
}

/**
 * The writer of one session in a folder store. Assigning the seq, encoding and writing are one synchronous step, so
 * file order is seq order. One sync runs at a time, and it acknowledges what was written before it was issued (S10).
 */
export class FolderJournal implements Journal {
  readonly id: string;
  readonly #parts: JournalParts;
  readonly #ledger: Ledger;
  readonly #writer: SegmentWriter;
  #waiters: Waiter[] = [];
  readonly #failureListeners = new Set<(error: HoldfastError) => void>();
  readonly #followers = new Set<() => void>();
  /** Callbacks that wait for the current sync to end. */
  readonly #quiet: (() => void)[] = [];
  readonly #stopExit: () => void;
  #inFlight: Promise<void> | null = null;
  #requested = false;
  #timer: NodeJS.Timeout | null = null;
  #unsyncedSince = 0;
  #acknowledged: number;
  #rollAt: number;
  #started: boolean;
  #settledEnd = false;
  #startedSegment = false;
  #failure: HoldfastError | null = null;
  #failureTold = false;
  #closing: Promise<void> | null = null;
  #ended = false;

  constructor(parts: JournalParts) {
    this.id = parts.id;
    this.#parts = parts;
    this.#ledger = parts.ledger;
    this.#writer = parts.writer;
    this.#rollAt = parts.segmentBytesMax;
    this.#acknowledged = parts.ledger.head;
    this.#started = parts.opened === null;
    this.#stopExit = flushAtExit(this);
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
  /** Every record up to here has been acknowledged: what followers in this process may see (S19). */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  append(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Promise<Appended> {
    try {
      const appended = this.#write(records, options?.key);
      const durability = options?.durability ?? this.#parts.durability;
      if (durability !== "process" || this.#isOverdue()) return this.#durableAt(appended.last, appended);
      this.#written();
      return Promise.resolve(appended);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  appendSync(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Appended {
    const appended = this.#write(records, options?.key);
    const durability = options?.durability ?? this.#parts.durability;
    if (durability !== "process" || this.#isOverdue()) this.flushSync();
    else this.#written();
    return appended;
  }

  flush(): Promise<void> {
    if (this.#failure) return Promise.reject(this.#tell(this.#failure));
    return this.#started ? this.#durableAt(this.#ledger.head, undefined) : Promise.resolve();
  }

  flushSync(): void {
    if (this.#failure) throw this.#tell(this.#failure);
    if (this.#ended || !this.#started || this.#ledger.durable >= this.#ledger.head) return;
    try {
      this.#syncNow();
    } catch (error) {
      throw this.#tell(this.#fail(error));
    }
  }

  epoch(build: () => readonly NewRecord[]): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#assertOpen();
      this.#whenQuiet(() => {
        try {
          resolve(this.#switch(build));
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  follow(options: FollowOptions = {}): AsyncIterable<JournalRecord> {
    return this.#parts.follow(options);
  }

  /** Calls back when more has been acknowledged. */
  onAcknowledged(listener: () => void): () => void {
    this.#followers.add(listener);
    return () => this.#followers.delete(listener);
  }

  onWritten(listener: (written: Written) => void): () => void {
    return this.#ledger.onWritten(listener);
  }

  onFailure(listener: (error: HoldfastError) => void): () => void {
    this.#failureListeners.add(listener);
    return () => this.#failureListeners.delete(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    let closed = false;
    try {
      if (!this.#failure && (this.#started || this.#parts.created)) closed = await this.#writeClosed();
    } finally {
      while (this.#inFlight) await this.#inFlight;
      this.#clearTimer();
      this.#ended = true;
      this.#stopExit();
      const closedAt = closed ? { segment: basename(this.#writer.path), bytes: this.#writer.size } : undefined;
      try {
        this.#parts.onClose(closed);
        this.#writer.close();
      } finally {
        this.#parts.lease.release(closedAt);
      }
      for (const wake of this.#followers) wake();
    }
    if (this.#failure && !this.#failureTold) throw this.#tell(this.#failure);
  }

  /**
   * Syncs everything, writes the mark that says so, and syncs that (S7). Returns false if there was no space for the
   * mark.
   */
  async #writeClosed(): Promise<boolean> {
    await this.#durableAt(this.#ledger.head, undefined);
    try {
      this.#writer.put(this.#ledger.prepare([closedRecord()]));
    } catch (error) {
      // A full disk keeps out the mark, not the records: the next writer finds an unclean end with all of them.
      if (isHoldfastError(error, "STORE_FULL", "STORE_IO")) return false;
      throw this.#tell(this.#fail(error));
    }
    await this.#durableAt(this.#ledger.head, undefined);
    return true;
  }

  /** The synchronous step of every append. */
  #write(records: NewRecord | readonly NewRecord[], key: string | undefined): Appended {
    this.#assertOpen();
    if (key !== undefined) {
      const found = this.#ledger.find(key);
      if (found) return found;
    }
    const unit = Array.isArray(records) ? (records as readonly NewRecord[]) : [records as NewRecord];
    if (unit.length === 0) throw new HoldfastError("RECORD_INVALID", "Nothing was written: the append has no records.");
    if (!this.#started) this.#start(unit, key);
    if (this.#writer.size >= this.#rollAt) this.#rollOver();
    const prepared = this.#ledger.prepare(unit, key);
    this.#put(prepared);
    return { seq: prepared.seq, last: prepared.last };
  }

  /**
   * Under `process`, acknowledges what the kernel has. A sync checks that the session still belongs to this writer;
   * here, nothing else does.
   */
  #written(): void {
    if (!this.#parts.lease.isSure) {
      try {
        this.#writer.assertMine();
      } catch (error) {
        throw this.#tell(this.#fail(error));
      }
    }
    this.#unsynced();
  }

  /**
   * `opened` precedes a writer's first record; a writer that only reads, or whose first record is refused, writes
   * nothing (R16).
   */
  #start(records: readonly NewRecord[], key?: string): void {
    const { opened, beforeFirst, startSegment } = this.#parts;
    if (this.#started || !opened) return;
    this.#ledger.prepare(records, key);
    try {
      if (beforeFirst && !this.#settledEnd) {
        beforeFirst();
        this.#settledEnd = true;
        this.#ledger.setDurable(this.#ledger.head);
      }
      if (startSegment && !this.#startedSegment) {
        this.#writer.next(null);
        this.#startedSegment = true;
      }
    } catch (error) {
      throw this.#refusalOrFailure(error);
    }
    // At the size limit, `opened` still goes to the old segment, so that a list sees that the session has continued.
    this.#put(this.#ledger.prepare([opened]));
    this.#started = true;
  }

  #put(prepared: Prepared): void {
    try {
      this.#writer.put(prepared);
    } catch (error) {
      throw this.#refusalOrFailure(error);
    }
  }

  /** Now, or when the current sync has ended. */
  #rollOver(): void {
    if (this.#inFlight) return;
    this.#roll();
    this.#assertOpen();
  }

  /**
   * A segment is left only while no sync is running: that sync could receive the report of a failure, and ours would
   * then miss it.
   */
  #whenQuiet(run: () => void): void {
    if (this.#inFlight) this.#quiet.push(run);
    else run();
  }

  #switch(build: () => readonly NewRecord[]): Appended {
    if (this.#failure) throw this.#tell(this.#failure);
    if (this.#ended) throw journalClosed(this.id);
    const records = build();
    assertEpoch(this.id, records);
    this.#start(records);
    try {
      this.#syncNow();
      const prepared = this.#writer.next(records);
      this.#rollAt = this.#writer.size + this.#parts.segmentBytesMax;
      this.#settle();
      return { seq: prepared.seq + 1, last: prepared.last };
    } catch (error) {
      throw this.#refusalOrFailure(error);
    }
  }

  /** Starts a new segment at the size limit. If there is no space for it, the old one stays in use. */
  #roll(): void {
    try {
      this.#syncNow();
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
    return this.#tell(this.#fail(error));
  }

  /** Resolves with `value`: one promise per append, not two. */
  #durableAt<T>(seq: number, value: T): Promise<T> {
    if (seq <= this.#ledger.durable) return Promise.resolve(value);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ last: seq, resolve: () => resolve(value), reject });
      this.#request();
    });
  }

  /** In a microtask, so that the appends of one tick share one sync. */
  #request(): void {
    if (this.#requested || this.#inFlight) return;
    this.#requested = true;
    queueMicrotask(() => {
      this.#requested = false;
      if (!this.#failure && !this.#inFlight && this.#ledger.head > this.#ledger.durable) this.#sync();
    });
  }

  #sync(): void {
    const covers = this.#ledger.head;
    this.#inFlight = this.#writer.sync().then(
      () => this.#synced(covers),
      (error) => {
        this.#inFlight = null;
        this.#fail(error);
      },
    );
  }

  #synced(covers: number): void {
    this.#inFlight = null;
    if (this.#failure) return;
    try {
      this.#writer.assertMine();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#ledger.setDurable(covers);
    this.#clearTimer();
    this.#settle();
    for (const run of this.#quiet.splice(0)) run();
    // Nothing may come after `closed`, not even the header of a new segment.
    if (this.#writer.size >= this.#rollAt && !this.#failure && !this.#closing) this.#roll();
    if (this.#failure || this.#ended) return;
    if (this.#waiters.length > 0) this.#sync();
    else if (this.#ledger.head > this.#ledger.durable) this.#unsynced();
  }

  #syncNow(): void {
    if (this.#ledger.durable >= this.#ledger.head) return;
    try {
      this.#writer.syncNow();
      this.#writer.assertMine();
    } catch (error) {
      throw error instanceof HoldfastError ? error : syncFailed(this.id, this.#ledger, error);
    }
    this.#ledger.setDurable(this.#ledger.head);
    this.#clearTimer();
    this.#settle();
  }

  /** Settles those that wait for what is durable now. A repeated key can wait for less than the entries before it. */
  #settle(): void {
    const { durable } = this.#ledger;
    const waiting = this.#waiters.filter(({ last }) => last > durable);
    if (waiting.length < this.#waiters.length) {
      for (const { last, resolve } of this.#waiters) if (last <= durable) resolve();
      this.#waiters = waiting;
    }
    this.#noteAcknowledged();
  }

  #unsynced(): void {
    this.#noteAcknowledged();
    if (this.#timer !== null || this.#ledger.durable >= this.#ledger.head) return;
    this.#unsyncedSince = performance.now();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (!this.#failure && !this.#inFlight && this.#ledger.head > this.#ledger.durable) this.#sync();
    }, BACKGROUND_MS);
    this.#timer.unref();
  }

  #clearTimer(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /**
   * A caller that never yields keeps the timer from firing: then an append waits for the sync itself, which lets the
   * timer fire.
   */
  #isOverdue(): boolean {
    return this.#timer !== null && performance.now() - this.#unsyncedSince > BACKGROUND_MS;
  }

  #noteAcknowledged(): void {
    const acknowledged = this.#waiters.length === 0 ? this.#ledger.head : this.#ledger.durable;
    if (acknowledged <= this.#acknowledged) return;
    this.#acknowledged = acknowledged;
    for (const wake of this.#followers) wake();
  }

  /** Accepts no more appends; pending ones are in doubt. */
  #fail(error: unknown): HoldfastError {
    if (this.#failure) return this.#failure;
    const failure = error instanceof HoldfastError ? error : syncFailed(this.id, this.#ledger, error);
    this.#failure = failure;
    if (this.#waiters.length > 0) this.#failureTold = true;
    for (const waiter of this.#waiters.splice(0)) waiter.reject(failure);
    for (const run of this.#quiet.splice(0)) run();
    tellAll(this.#failureListeners, failure);
    return failure;
  }

  #tell(failure: HoldfastError): HoldfastError {
    this.#failureTold = true;
    return failure;
  }

  #assertOpen(): void {
    if (this.#failure) throw this.#tell(this.#failure);
    if (this.#closing) throw journalClosed(this.id);
  }
}

function syncFailed(session: string, ledger: Ledger, cause: unknown): HoldfastError {
  const from = ledger.durable + 1;
  const message =
    `The disk did not confirm records ${from} to ${ledger.head} of session ${session}: they are in doubt, and a power cut could lose them. ` +
    `Everything up to ${ledger.durable} is safe. Close this journal, and reopen the session: that rewrites them, and shows what is there.`;
  return new HoldfastError("SYNC_FAILED", message, { session, durable: ledger.durable, from, to: ledger.head }, cause);
}
