import { HoldfastError, isHoldfastError } from "../errors.ts";
import type { Appended, AppendOptions, Durability } from "../journal/contract.ts";
import { closedRecord } from "../journal/lifecycle.ts";
import type { NewRecord } from "../journal/record.ts";
import { flushAtExit } from "./exit.ts";
import { JournalBase, type JournalBaseParts, unitOf } from "./journal-base.ts";

/** Unsynced bytes wait less than a second (S10). */
const BACKGROUND_MS = 900;

interface Waiter {
  readonly last: number;
  /** What it resolves with. */
  readonly value: unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: HoldfastError) => void;
}

/**
 * The writer of one session in a store that writes inside the call, and syncs later. Who waits for what (S10):
 * assigning the seq, encoding and writing are one synchronous step, so journal order is seq order. One sync runs at a
 * time, and it acknowledges what was written before it was issued. Under `process`, a written record is acknowledged at
 * once, and synced in the background within a second.
 */
export abstract class CommitQueue extends JournalBase {
  readonly #waiters: Waiter[] = [];
  /** Callbacks that wait for the current sync to end. */
  readonly #quiet: (() => void)[] = [];
  /** Keyed epochs that are not written yet. */
  readonly #later = new Map<string, Promise<Appended>>();
  readonly #followers = new Set<() => void>();
  readonly #stopExit: () => void;
  #inFlight: Promise<void> | null = null;
  #isRequested = false;
  #timer: NodeJS.Timeout | null = null;
  #unsyncedSince = 0;
  #acknowledged: number;

  constructor(parts: JournalBaseParts) {
    super(parts);
    this.#acknowledged = parts.ledger.head;
    this.#stopExit = flushAtExit(this);
  }

  /** Every record up to here has been acknowledged: what followers in this process may see (S19). */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Calls back when more has been acknowledged, and when the journal is closed. */
  onAcknowledged(listener: () => void): () => void {
    this.#followers.add(listener);
    return () => this.#followers.delete(listener);
  }

  append(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Promise<Appended> {
    try {
      const durability = options?.durability ?? this.durability;
      this.assertOpen();
      const key = options?.key;
      const known = key === undefined ? undefined : this.#known(key);
      if (known instanceof Promise) return known.then((appended) => this.reach(appended, durability));
      return this.reach(known ?? this.put(unitOf(records), key), durability);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  appendSync(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Appended {
    this.assertOpen();
    const key = options?.key;
    const known = key === undefined ? undefined : this.ledger.find(key);
    const appended = known ?? this.put(unitOf(records), key);
    if ((options?.durability ?? this.durability) !== "process" || this.#isOverdue()) this.flushSync();
    else this.#acknowledgeWritten();
    return appended;
  }

  epoch(build: () => readonly NewRecord[], { key }: Pick<AppendOptions, "key"> = {}): Promise<Appended> {
    try {
      this.assertOpen();
      if (key === undefined) return this.beginEpoch(build, key);
      const known = this.#known(key);
      if (known instanceof Promise) return known;
      return known ? this.reach(known, "power") : this.#awaited(key, this.beginEpoch(build, key));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async flush(): Promise<void> {
    this.assertNotFailed();
    if (this.hasWritten) await this.#durableAt(this.ledger.head, undefined);
  }

  flushSync(): void {
    this.assertNotFailed();
    if (this.isEnded) return;
    try {
      if (this.isBehind) this.syncNow();
      else this.#assertThere();
    } catch (error) {
      throw this.told(this.fail(error));
    }
  }

  /** Starts a new epoch; durable when it resolves. */
  protected abstract beginEpoch(build: () => readonly NewRecord[], key: string | undefined): Promise<Appended>;

  /** Writes one unit. */
  protected abstract put(unit: readonly NewRecord[], key: string | undefined): Appended;

  /** Writes `closed`. Throws STORE_FULL or STORE_IO if there is no space for it. */
  protected abstract putClosed(closed: NewRecord): void;

  /** Calls `onIssue`; resolves when everything that was written before that is on stable storage. */
  protected abstract issueSync(onIssue: () => void): Promise<void>;

  /** The same, inside the call. */
  protected abstract issueSyncNow(): void;

  /**
   * The same, inside the call, if that is fast: asked when one caller waits. Returns false if nothing was synced.
   * Throws what `assertSynced` throws.
   */
  protected syncIfFast(): boolean {
    return false;
  }

  /** After a sync in the background: is what was synced still this writer's (S12)? Throws if not. */
  protected abstract assertSynced(): void;

  /** The same, before records are acknowledged that no sync has confirmed. */
  protected abstract assertWritten(): void;

  /** Called once, while the lease is still held: releases it. `isClosed`: `closed` is written. */
  protected abstract release(isClosed: boolean): void;

  /** Something that this writer wrote is not known to be durable. */
  protected get isBehind(): boolean {
    return this.hasWritten && this.ledger.head > this.ledger.durable;
  }

  /** The store has other work for the background. */
  protected get isUntidy(): boolean {
    return false;
  }

  protected tidy(): void {}

  /** Called after each sync in the background, while no sync is running. */
  protected afterSync(): void {}

  protected get isSyncing(): boolean {
    return this.#inFlight !== null;
  }

  /** Calls `run` now, or when the current sync has ended. */
  protected whenQuiet(run: () => void): void {
    if (this.#inFlight) this.#quiet.push(run);
    else run();
  }

  /** Answers an append that is written. */
  protected reach(appended: Appended, durability: Durability): Promise<Appended> {
    if (durability !== "process" || this.#isOverdue()) return this.#durableAt(appended.last, appended);
    this.#acknowledgeWritten();
    return Promise.resolve(appended);
  }

  /** Throws SYNC_FAILED, or what `assertSynced` throws. */
  protected syncNow(): void {
    if (!this.isBehind) return;
    try {
      this.issueSyncNow();
      this.assertSynced();
    } catch (error) {
      throw error instanceof HoldfastError ? error : this.inDoubt(error);
    }
    this.#settleUpTo(this.ledger.head);
  }

  /** Settles those that wait for what is durable now. A repeated key can wait for less than the entries before it. */
  protected settle(): void {
    const { durable } = this.ledger;
    const waiters = this.#waiters;
    let left = 0;
    for (let i = 0; i < waiters.length; i++) {
      const waiter = waiters[i]!;
      if (waiter.last <= durable) waiter.resolve(waiter.value as never);
      else waiters[left++] = waiter;
    }
    waiters.length = left;
    this.#noteAcknowledged();
  }

  protected rejectWaiting(failure: HoldfastError): boolean {
    const waiting = this.#waiters.splice(0);
    for (const { reject } of waiting) reject(failure);
    for (const run of this.#quiet.splice(0)) run();
    return waiting.length > 0;
  }

  protected async end(): Promise<void> {
    let isClosed = false;
    try {
      if (!this.failure && this.hasWritten) isClosed = await this.#writeClosed();
    } finally {
      while (this.#inFlight) await this.#inFlight;
      this.#clearTimer();
      this.#stopExit();
      this.release(isClosed);
      for (const wake of this.#followers) wake();
    }
  }

  /**
   * Syncs everything, writes the mark that says so, and syncs that (S7). Returns false if there was no space for the
   * mark.
   */
  async #writeClosed(): Promise<boolean> {
    await this.#durableAt(this.ledger.head, undefined);
    let isClosed = true;
    try {
      this.putClosed(closedRecord());
    } catch (error) {
      // A full disk keeps out the mark, not the records: the next writer finds an unclean end with all of them.
      if (!isHoldfastError(error, "STORE_FULL", "STORE_IO")) throw error;
      isClosed = false;
    }
    await this.#durableAt(this.ledger.head, undefined);
    return isClosed;
  }

  #known(key: string): Appended | Promise<Appended> | undefined {
    return this.ledger.find(key) ?? this.#later.get(key);
  }

  /** Until it is written, the key is known from here. */
  #awaited(key: string, appended: Promise<Appended>): Promise<Appended> {
    this.#later.set(key, appended);
    const forget = (): boolean => this.#later.delete(key);
    appended.then(forget, forget);
    return appended;
  }

  /** Resolves with `value`: one promise per append, not two. */
  #durableAt<T>(seq: number, value: T): Promise<T> {
    if (this.failure) return Promise.reject(this.told(this.failure));
    if (seq <= this.ledger.durable) return this.#stillThere(value);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ last: seq, value, resolve, reject });
      this.#request();
    });
  }

  async #stillThere<T>(value: T): Promise<T> {
    try {
      this.#assertThere();
      return value;
    } catch (error) {
      throw this.told(this.fail(error));
    }
  }

  /** What is durable can be gone nevertheless: somebody may have replaced the file since. Throws FILE_REPLACED. */
  #assertThere(): void {
    // Closing checks it with the sync of its mark.
    if (!this.hasWritten || this.isClosing) return;
    this.assertSynced();
    this.assertWritten();
  }

  /** In a microtask, so that the appends of one tick share one sync. */
  #request(): void {
    if (this.#isRequested || this.#inFlight) return;
    this.#isRequested = true;
    queueMicrotask(() => {
      this.#isRequested = false;
      if (!this.failure && !this.#inFlight && this.isBehind) this.#sync();
    });
  }

  #sync(): void {
    if (this.#waiters.length === 1 && this.#syncHere()) return;
    let covers = 0;
    const onIssue = (): void => {
      covers = this.ledger.head;
    };
    this.#inFlight = this.issueSync(onIssue).then(
      () => this.#syncedInBackground(covers),
      (error) => {
        this.#inFlight = null;
        this.fail(error);
      },
    );
  }

  /** Returns false if the sync is left to `issueSync`. */
  #syncHere(): boolean {
    const covers = this.ledger.head;
    try {
      if (!this.syncIfFast()) return false;
    } catch (error) {
      this.fail(error);
      return true;
    }
    this.#synced(covers);
    return true;
  }

  #syncedInBackground(covers: number): void {
    this.#inFlight = null;
    if (this.failure) return;
    try {
      this.assertSynced();
    } catch (error) {
      this.fail(error);
      return;
    }
    this.#synced(covers);
  }

  #synced(covers: number): void {
    this.#settleUpTo(covers);
    if (this.#quiet.length > 0) for (const run of this.#quiet.splice(0)) run();
    this.afterSync();
    if (this.failure || this.isEnded) return;
    if (this.#waiters.length > 0) this.#sync();
    else this.#unsynced();
  }

  #settleUpTo(durable: number): void {
    this.ledger.setDurable(durable);
    if (!this.isUntidy) this.#clearTimer();
    this.settle();
  }

  /** Under `process`, acknowledges what is written. A sync checks whose it is; here, nothing else does. */
  #acknowledgeWritten(): void {
    try {
      this.assertWritten();
    } catch (error) {
      throw this.told(this.fail(error));
    }
    this.#unsynced();
  }

  #unsynced(): void {
    this.#noteAcknowledged();
    if (this.#timer !== null || this.isClosing || !(this.isBehind || this.isUntidy)) return;
    this.#unsyncedSince = performance.now();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.failure || this.isEnded) return;
      // Closing leaves everything tidy, and says that the session is closed.
      if (!this.isClosing) this.tidy();
      if (!this.#inFlight && this.isBehind) this.#sync();
      else this.#unsynced();
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
    if (this.#timer === null || performance.now() - this.#unsyncedSince <= BACKGROUND_MS) return false;
    this.#unsyncedSince = performance.now();
    return true;
  }

  #noteAcknowledged(): void {
    const acknowledged = this.#waiters.length === 0 ? this.ledger.head : this.ledger.durable;
    if (acknowledged <= this.#acknowledged) return;
    this.#acknowledged = acknowledged;
    for (const wake of this.#followers) wake();
  }
}
