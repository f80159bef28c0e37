import { type HoldfastError, isHoldfastError } from "../../errors.ts";
import type { Appended, AppendOptions, Durability, FollowOptions, Journal, Written } from "../../journal/contract.ts";
import type { Ledger } from "../../journal/ledger.ts";
import { assertEpoch, closedRecord } from "../../journal/lifecycle.ts";
import { tellAll } from "../../journal/listeners.ts";
import type { JournalRecord, NewRecord } from "../../journal/record.ts";
import { journalClosed } from "../../journal/refusals.ts";
import { flushAtExit } from "../exit.ts";
import type { Lease } from "../lease.ts";
import { isBusy, isRefusal, isSqliteError, syncFailed, writeFailure } from "./database/failure.ts";
import type { Wal } from "./database/wal.ts";
import { Waiters } from "./waiters.ts";
import type { WriteQueue } from "./write-queue.ts";
import type { SessionWriter } from "./writer.ts";

/** Unsynced bytes, and a catalogue row that is behind, wait less than a second (S10). */
const BACKGROUND_MS = 900;

export interface JournalParts {
  readonly id: string;
  readonly ledger: Ledger;
  readonly writer: SessionWriter;
  readonly writeQueue: WriteQueue;
  readonly wal: Wal;
  readonly lease: Lease;
  readonly durability: Durability;
  /** Written right before this writer's first record after those of `create`. */
  readonly opened: NewRecord;
  /** This writer created the session. */
  readonly created: boolean;
  /** The newest segment has another format: this writer's first record starts a new one (S16). */
  readonly startSegment: boolean;
  readonly follow: (options: FollowOptions) => AsyncIterable<JournalRecord>;
  readonly onAcknowledged: () => void;
  /** Called once, while the lease is still held. */
  readonly onClose: () => void;
}

/**
 * The writer of one session in an SQLite store. Assigning the seq, encoding and committing are one synchronous step;
 * the sync follows, is shared by all waiters, and acknowledges what was committed before it was issued (S10).
 */
export class SqliteJournal implements Journal {
  readonly id: string;
  readonly #parts: JournalParts;
  readonly #ledger: Ledger;
  readonly #waiters = new Waiters();
  /** Keyed appends that wait for their turn. */
  readonly #later = new Map<string, Promise<Appended>>();
  readonly #failureListeners = new Set<(error: HoldfastError) => void>();
  readonly #stopExit: () => void;
  #landing = 0;
  #inFlight: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #unsyncedSince = 0;
  #acknowledged: number;
  #opened = false;
  #segmentStarted: boolean;
  #wrote: boolean;
  #failure: HoldfastError | null = null;
  #failureTold = false;
  #closing: Promise<void> | null = null;
  #ended = false;

  constructor(parts: JournalParts) {
    this.id = parts.id;
    this.#parts = parts;
    this.#ledger = parts.ledger;
    this.#acknowledged = parts.ledger.head;
    this.#segmentStarted = !parts.startSegment;
    this.#wrote = parts.created;
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
    const durability = options?.durability ?? this.#parts.durability;
    try {
      const appended = this.#write(records, options?.key);
      return appended instanceof Promise ? this.#land(appended, durability) : this.#reach(appended, durability);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  appendSync(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Appended {
    // Waiting writes go first, and one of them may have the same key.
    this.#parts.writeQueue.runNow(() => null);
    this.#assertOpen();
    const key = options?.key;
    const unit = unitOf(records);
    const appended =
      (key === undefined ? undefined : this.#ledger.find(key)) ??
      this.#parts.writeQueue.runNow(() => this.#writeUnit(unit, key));
    if ((options?.durability ?? this.#parts.durability) !== "process" || this.#isOverdue()) this.flushSync();
    else this.#committed();
    return appended;
  }

  async flush(): Promise<void> {
    await this.#parts.writeQueue.idle();
    if (this.#failure) throw this.#tell(this.#failure);
    await this.#durableAt(this.#ledger.head);
  }

  flushSync(): void {
    if (this.#ended) return;
    this.#parts.writeQueue.runNow(() => null);
    if (this.#failure) throw this.#tell(this.#failure);
    if (this.#ledger.durable >= this.#ledger.head) return;
    try {
      this.#parts.wal.syncNow();
      this.#parts.lease.assertHeld();
    } catch (error) {
      throw this.#tell(this.fail(error));
    }
    this.#ledger.setDurable(this.#ledger.head);
    this.#settle();
  }

  async epoch(build: () => readonly NewRecord[]): Promise<Appended> {
    this.#assertOpen();
    let records: readonly NewRecord[] | undefined;
    const appended = this.#parts.writeQueue.run(
      () => {
        this.#assertWritable();
        // Called once, at the instant when nothing can come before it any more: on the first attempt, because later
        // appends queue behind it.
        records ??= build();
        assertEpoch(this.id, records);
        return this.#commit(records, () => {
          const prepared = this.#parts.writer.begin(records!);
          this.#segmentStarted = true;
          this.#parts.wal.grew(prepared.bytes.length);
          return { seq: prepared.seq + 1, last: prepared.last };
        });
      },
      () => {
        if (records) records = copyOf(records);
      },
    );
    return appended instanceof Promise ? this.#land(appended, "power") : this.#reach(appended, "power");
  }

  follow(options: FollowOptions = {}): AsyncIterable<JournalRecord> {
    return this.#parts.follow(options);
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

  /** Accepts no more appends; pending ones are in doubt. */
  fail(error: unknown): HoldfastError {
    if (this.#failure || this.#ended) return this.#failure ?? syncFailed(this.id, this.#ledger, error);
    const failure = isHoldfastError(error) ? error : syncFailed(this.id, this.#ledger, error);
    this.#failure = failure;
    if (this.#waiters.rejectAll(failure)) this.#failureTold = true;
    tellAll(this.#failureListeners, failure);
    return failure;
  }

  async #close(): Promise<void> {
    const { writeQueue, lease } = this.#parts;
    try {
      await writeQueue.idle();
      if (!this.#failure) await this.#durableAt(this.#ledger.head);
      if (!this.#failure && this.#wrote) await this.#writeClosed();
    } finally {
      await this.#inFlight;
      if (this.#timer) clearTimeout(this.#timer);
      this.#timer = null;
      this.#ended = true;
      this.#stopExit();
      this.#parts.onClose();
      lease.release();
      this.#parts.onAcknowledged();
    }
    if (this.#failure && !this.#failureTold) throw this.#tell(this.#failure);
  }

  /** Everything is synced; writes the record that says so, and syncs that (S7). */
  async #writeClosed(): Promise<void> {
    const { writeQueue, writer } = this.#parts;
    try {
      await writeQueue.run(() => this.#put(() => writer.put(this.#ledger.prepare([closedRecord()]))));
      await writeQueue.run(() => this.#put(() => writer.saveRow(true)));
    } catch (error) {
      // A full disk keeps out the mark, not the records: the next writer finds an unclean end with all of them.
      if (!isHoldfastError(error, "STORE_FULL", "STORE_IO")) throw error;
    }
    await this.#durableAt(this.#ledger.head);
  }

  /** The synchronous step of every append; a promise if it has to wait for its turn. */
  #write(records: NewRecord | readonly NewRecord[], key: string | undefined): Appended | Promise<Appended> {
    this.#assertOpen();
    if (key !== undefined) {
      const known = this.#ledger.find(key) ?? this.#later.get(key);
      if (known) return known;
    }
    let unit = unitOf(records);
    const appended = this.#parts.writeQueue.run(
      () => this.#writeUnit(unit, key),
      () => {
        this.#ledger.prepare(unit);
        unit = copyOf(unit);
      },
    );
    if (key !== undefined && appended instanceof Promise) {
      this.#later.set(key, appended);
      const forget = (): boolean => this.#later.delete(key);
      appended.then(forget, forget);
    }
    return appended;
  }

  #writeUnit(unit: readonly NewRecord[], key: string | undefined): Appended {
    this.#assertWritable();
    return this.#commit(unit, () => {
      const prepared = this.#ledger.prepare(unit, key);
      this.#parts.writer.put(prepared);
      this.#parts.wal.grew(prepared.bytes.length);
      return { seq: prepared.seq, last: prepared.last };
    });
  }

  /**
   * A writer's first record is preceded by the records every writer starts with, but not if its own records are refused
   * (R16).
   */
  #commit(records: readonly NewRecord[], write: () => Appended): Appended {
    const { writer, opened } = this.#parts;
    return this.#put(() => {
      if (!this.#opened || !this.#segmentStarted) {
        this.#ledger.prepare(records);
        if (!this.#segmentStarted) writer.begin(null);
        this.#segmentStarted = true;
        if (!this.#opened) writer.putOpened(this.#ledger.prepare([opened]));
        this.#opened = true;
      }
      return write();
    });
  }

  /**
   * Translates SQLite's errors; the ledger's refusals already are HoldfastErrors. Busy errors pass through: the queue
   * retries.
   */
  #put<T>(write: () => T): T {
    try {
      const result = write();
      this.#wrote = true;
      return result;
    } catch (error) {
      if (isBusy(error) || !isSqliteError(error)) throw error;
      const failure = writeFailure(error, this.id, this.#ledger, this.#parts.wal.path);
      if (isRefusal(failure)) throw failure;
      if (failure.code === "SYNC_FAILED") this.#parts.wal.doubt(error);
      throw this.#tell(this.fail(failure));
    }
  }

  /**
   * A write that waited for its turn ran outside its caller's call: it is acknowledged only when the caller is told.
   */
  async #land(later: Promise<Appended>, durability: Durability): Promise<Appended> {
    this.#landing++;
    let appended: Appended;
    try {
      appended = await later;
    } finally {
      this.#landing--;
    }
    return this.#reach(appended, durability);
  }

  #reach(appended: Appended, durability: Durability): Promise<Appended> {
    const wait = durability !== "process" || this.#isOverdue();
    if (wait && appended.last > this.#ledger.durable) return this.#durableAt(appended.last).then(() => appended);
    try {
      this.#committed();
    } catch (error) {
      return Promise.reject(error);
    }
    return Promise.resolve(appended);
  }

  /**
   * Records whose sync nobody awaits are acknowledged only if they are where others, and the next process, find them
   * (S12).
   */
  #committed(): void {
    try {
      if (this.#ledger.head > this.#ledger.durable) this.#parts.wal.assertMine();
    } catch (error) {
      throw this.#tell(this.fail(error));
    }
    this.#unsynced();
  }

  #durableAt(seq: number): Promise<void> {
    if (seq <= this.#ledger.durable) return Promise.resolve();
    if (this.#failure) return Promise.reject(this.#tell(this.#failure));
    const durable = this.#waiters.waitFor(seq);
    if (!this.#inFlight) this.#sync();
    return durable;
  }

  #sync(): void {
    const { wal, lease } = this.#parts;
    const sync = async (): Promise<void> => {
      let covers = 0;
      try {
        await wal.sync(() => {
          covers = this.#ledger.head;
        });
        lease.assertHeld();
      } catch (error) {
        this.#inFlight = null;
        this.fail(error);
        return;
      }
      this.#inFlight = null;
      this.#synced(covers);
    };
    this.#inFlight = sync();
  }

  #synced(covers: number): void {
    if (this.#failure) return;
    this.#ledger.setDurable(covers);
    this.#settle();
    if (!this.#waiters.none) this.#sync();
    else this.#unsynced();
  }

  /** Settles those that wait for what is durable now. */
  #settle(): void {
    this.#waiters.settle(this.#ledger.durable);
    this.#noteAcknowledged();
  }

  /** The background has work to do within a second. */
  #unsynced(): void {
    this.#noteAcknowledged();
    if (this.#timer !== null || this.#closing) return;
    if (this.#ledger.head <= this.#ledger.durable && !this.#parts.writer.rowIsBehind) return;
    this.#unsyncedSince = performance.now();
    this.#timer = setTimeout(() => this.#background(), BACKGROUND_MS);
    this.#timer.unref();
  }

  /** A caller that never yields keeps the timer from firing: then an append waits for the sync itself. */
  #isOverdue(): boolean {
    const now = performance.now();
    if (this.#timer === null || now - this.#unsyncedSince <= BACKGROUND_MS) return false;
    this.#unsyncedSince = now;
    return true;
  }

  #background(): void {
    this.#timer = null;
    if (this.#failure || this.#ended) return;
    try {
      this.#parts.writer.saveRow(false);
    } catch (error) {
      // The row is derived, and another process may be writing, or the disk may be full: lists do without it, and the
      // next round tries again.
      if (!isSqliteError(error)) throw error;
      const { code } = writeFailure(error, this.id, this.#ledger, this.#parts.wal.path);
      if (code === "SYNC_FAILED") this.#parts.wal.doubt(error);
    }
    if (!this.#inFlight && this.#ledger.head > this.#ledger.durable) this.#sync();
    else this.#unsynced();
  }

  #noteAcknowledged(): void {
    const all = this.#waiters.none && this.#landing === 0;
    const acknowledged = all ? this.#ledger.head : this.#ledger.durable;
    if (acknowledged <= this.#acknowledged) return;
    this.#acknowledged = acknowledged;
    this.#parts.onAcknowledged();
  }

  #tell(failure: HoldfastError): HoldfastError {
    this.#failureTold = true;
    return failure;
  }

  #assertOpen(): void {
    if (this.#closing) throw journalClosed(this.id);
    this.#assertWritable();
  }

  #assertWritable(): void {
    if (this.#failure) throw this.#tell(this.#failure);
  }
}

function unitOf(records: NewRecord | readonly NewRecord[]): readonly NewRecord[] {
  return Array.isArray(records) ? (records as readonly NewRecord[]) : [records as NewRecord];
}

/** Later changes by the caller do not affect what is stored. The records have been checked: they are JSON. */
function copyOf(records: readonly NewRecord[]): readonly NewRecord[] {
  return JSON.parse(JSON.stringify(records)) as NewRecord[];
}
