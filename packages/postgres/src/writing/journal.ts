import { type HoldfastError, isHoldfastError } from "holdfast";
import { assertEpoch, closedRecord, notSupported, type Segment, unitOf } from "holdfast/internal";
import {
  type Durability,
  type JournalAppended,
  type JournalAppendOptions,
  JournalBase,
  type JournalBaseParts,
  type NewRecord,
  segmentRecord,
} from "holdfast/store";
import type { Database } from "../connection/database.ts";
import { headMovedBack, isPassing, leaseLost, outcomeUnknown } from "../failure.ts";
import type { Lease, Leases } from "../leases/leases.ts";
import type { Catalogue } from "../listing/catalogue.ts";
import { type HeadState, headStateOf } from "../listing/head-state.ts";
import type { Lines } from "../reading/lines.ts";
import { WriteBatch } from "./session-batch.ts";
import type { Batcher, Write } from "./statement-batcher.ts";
import { commitWith, type Transaction, transactionFor } from "./transactions.ts";

/** How long the catalogue row, and records written with `process`, may lag behind (S10, S20). */
const BACKGROUND_MS = 900;
/** How long nothing is appended before the row counts as settled, which costs two updates of its indexes. */
const SETTLE_MS = 30_000;
/** The size of one statement, if more is pending. */
const BATCH_BYTES = 1024 * 1024;
const PAUSE_MS = 20;
const PAUSE_MS_MAX = 1000;

export interface JournalParts extends JournalBaseParts {
  readonly url: string;
  readonly lease: Lease;
  readonly leases: Leases;
  readonly batcher: Batcher;
  readonly lines: Lines;
  readonly catalogue: Catalogue;
  readonly database: Database;
  /** The newest segment. */
  readonly segment: Segment;
  /** The newest segment has another format: this writer starts a new one (S16). */
  readonly startSegment: boolean;
  /** How long to retry an append while the server is away. */
  readonly patienceMs: number;
  readonly onAcknowledged: () => void;
  /** Returns the lease. `isAway`: the server did not answer just now. */
  readonly release: (isAway: boolean) => Promise<void>;
}

/**
 * The writer of one session in a database. Records are numbered and encoded inside the call, in order. One statement is
 * in flight at a time; later appends go into the next one. A statement is written completely or not at all. If no
 * answer comes, it is sent again with the same expected head, which cannot write it twice (S25). If it fails, nothing
 * after it is written either, and the journal continues from before it.
 */
export class PostgresJournal extends JournalBase {
  readonly #parts: JournalParts;
  /** By key: appends without an answer yet. */
  readonly #keys = new Map<string, Promise<JournalAppended>>();
  /** Not sent yet; units are added to the last one. */
  #batches: WriteBatch[] = [];
  /** Runs until nothing is left to send. */
  #working: Promise<void> | null = null;
  /** The state up to the newest acknowledged record. */
  #acknowledged: HeadState;
  #segment: Segment;
  /** The newest segment has another format. */
  #needsSegment: boolean;
  #isBuilding = false;
  /** The next unit begins a batch of its own. */
  #isApart = false;
  /**
   * Resolves when the application's transaction is settled. Appends wait for that: if it is rolled back, nothing may
   * have been numbered after it.
   */
  #gate: Promise<unknown> | null = null;
  /** The catalogue row may be settled: the next append must say that it no longer is. */
  #mayBeSettled = false;
  #appendedAt = performance.now();
  #timer: NodeJS.Timeout | null = null;
  #waitsToSettle = false;
  #tidying: Promise<void> | null = null;

  constructor(parts: JournalParts) {
    super(parts);
    this.#parts = parts;
    this.#acknowledged = headStateOf(parts.ledger);
    this.#segment = parts.segment;
    this.#needsSegment = parts.startSegment;
  }

  override get head(): number {
    // An epoch starts after everything appended before it.
    return this.#isBuilding ? this.ledger.head : this.#acknowledged.head;
  }
  override get at(): string {
    return this.#acknowledged.at;
  }

  append(records: NewRecord | readonly NewRecord[], options: JournalAppendOptions = {}): Promise<JournalAppended> {
    try {
      this.assertOpen();
      return this.#append(unitOf(records), options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #append(unit: readonly NewRecord[], options: JournalAppendOptions): Promise<JournalAppended> {
    const { key, durability = this.durability } = options;
    try {
      this.assertNotFailed();
      const known = key === undefined ? undefined : (this.#keys.get(key) ?? this.ledger.find(key));
      if (known) return this.#again(known, durability);
      if (this.#gate) return this.#afterGate(this.#gate, unit, options);
      const transaction = transactionFor(unit, this.#parts.database, () => this.ledger.prepare(unit, key));
      this.#isApart = transaction !== null;
      this.start(unit, key);
      const appended = this.#add(unit, transaction ? "power" : durability, key);
      if (transaction) this.#commitWith(transaction, appended);
      if (key !== undefined) this.#awaited(key, appended);
      return appended;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Until it is answered, the key is known from here. */
  #awaited(key: string, appended: Promise<JournalAppended>): void {
    this.#keys.set(key, appended);
    const forget = (): boolean => this.#keys.delete(key);
    appended.then(forget, forget);
  }

  /** Reads and copies the unit inside the call: later changes by the caller have no effect. */
  #afterGate(
    gate: Promise<unknown>,
    unit: readonly NewRecord[],
    options: JournalAppendOptions,
  ): Promise<JournalAppended> {
    this.ledger.prepare(unit, options.key);
    const copy = structuredClone(unit);
    return gate.then(() => this.#append(copy, options));
  }

  appendSync(): never {
    throw notSupported("appendSync", this.#parts.url, "Use append.");
  }

  flushSync(): never {
    throw notSupported("flushSync", this.#parts.url, "Use flush.");
  }

  async flush(): Promise<void> {
    await this.#settled();
    this.assertNotFailed();
    // Closing checks it with its mark.
    if (this.#isBehind || !this.isClosing) await this.#confirm();
    this.assertNotFailed();
  }

  epoch(build: () => readonly NewRecord[], options: Pick<JournalAppendOptions, "key"> = {}): Promise<JournalAppended> {
    const { key } = options;
    try {
      this.assertOpen();
      const known = key === undefined ? undefined : (this.#keys.get(key) ?? this.ledger.find(key));
      if (known) return this.#again(known, "power");
      if (this.#gate) return this.#gate.then(() => this.epoch(build, options));
      const records = this.#build(build);
      // Reject a bad unit before writing anything for it.
      const check = (): unknown => this.ledger.prepareSegment([{ kind: "segment" }, ...records]);
      check();
      const transaction = transactionFor(records, this.#parts.database, check);
      this.#isApart = transaction !== null;
      this.startEpoch(records);
      const batch = this.#currentBatch();
      const prepared = this.ledger.prepareSegment([
        this.#nextSegment(batch, { key, count: records.length }),
        ...records,
      ]);
      batch.add(this.ledger, prepared);
      // The store adds the header: the caller gets the range of its own records.
      const appended = { seq: prepared.seq + 1, last: prepared.last };
      this.ledger.forgetOldKeys(key, appended);
      this.#send();
      const waiting = batch.wait(appended, "power");
      if (key !== undefined) this.#awaited(key, waiting);
      if (transaction) this.#commitWith(transaction, waiting);
      return waiting;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  protected rejectWaiting(failure: HoldfastError): boolean {
    const batches = this.#batches.splice(0);
    for (const batch of batches) batch.reject(failure);
    return batches.length > 0;
  }

  protected inDoubt(cause: unknown): HoldfastError {
    return outcomeUnknown(this.id, this.ledger.durable, cause);
  }

  protected async end(): Promise<void> {
    const { release } = this.#parts;
    let isAway = false;
    try {
      // Includes what was appended meanwhile.
      await this.#settled();
      if (this.#timer) clearTimeout(this.#timer);
      this.#timer = null;
      await this.#tidying;
      if (!this.failure && this.hasWritten) {
        // The `closed` mark covers everything before it, so that must be durable first.
        if (this.#isBehind) await this.#confirm();
        if (!this.failure) await this.#writeClosed();
      }
    } catch (error) {
      isAway = true;
      throw error;
    } finally {
      await release(isAway || this.failure !== null);
    }
  }

  async #writeClosed(): Promise<void> {
    const { catalogue, lease } = this.#parts;
    try {
      await this.#add([closedRecord()], "power");
      await catalogue.save(lease, this.#acknowledged, "closed");
    } catch (error) {
      // Without the mark, the next writer finds an unclean end, and all records.
      if (!isHoldfastError(error, "STORE_FULL", "STORE_IO")) throw error;
    }
  }

  /** The newest batch is committed with this transaction. Its first reaction is to let in those that wait behind it. */
  #commitWith(transaction: Transaction, appended: Promise<unknown>): void {
    this.#batches.at(-1)!.transaction = transaction;
    const open = (): void => {
      this.#gate = null;
    };
    this.#gate = appended.then(open, open);
  }

  async #settled(): Promise<void> {
    while (this.#gate || this.#working) {
      await this.#gate;
      await this.#working;
    }
  }

  /** The batch that is being filled. */
  #currentBatch(): WriteBatch {
    const last = this.#batches.at(-1);
    if (last && last.bytes < BATCH_BYTES && !this.#isApart) return last;
    this.#isApart = false;
    const rewindLedger = this.ledger.mark();
    const [segment, needsSegment, isStarted] = [this.#segment, this.#needsSegment, this.isStarted];
    const batch = new WriteBatch(this.ledger, () => {
      rewindLedger();
      this.#segment = segment;
      this.#needsSegment = needsSegment;
      this.isStarted = isStarted;
    });
    this.#batches.push(batch);
    return batch;
  }

  #add(unit: readonly NewRecord[], durability: Durability, key?: string): Promise<JournalAppended> {
    const prepared = this.ledger.prepare(unit, key);
    const batch = this.#currentBatch();
    batch.add(this.ledger, prepared);
    this.#send();
    return batch.wait({ seq: prepared.seq, last: prepared.last }, durability);
  }

  /** Answers a repeated key. The first append with it may have asked for less than this one. */
  async #again(known: JournalAppended | Promise<JournalAppended>, durability: Durability): Promise<JournalAppended> {
    const appended = await known;
    if (durability === "process") return appended;
    await this.#confirm();
    this.assertNotFailed();
    return appended;
  }

  #build(build: () => readonly NewRecord[]): readonly NewRecord[] {
    this.#isBuilding = true;
    try {
      const records = build();
      assertEpoch(this.id, records);
      return records;
    } finally {
      this.#isBuilding = false;
    }
  }

  protected writeOpened(isEpoch: boolean): void {
    // An epoch starts a segment itself.
    if (this.#needsSegment && !isEpoch) {
      const batch = this.#currentBatch();
      batch.add(this.ledger, this.ledger.prepareSegment([this.#nextSegment(batch, null)]));
    }
    const prepared = this.ledger.prepare([this.opened]);
    const batch = this.#currentBatch();
    batch.add(this.ledger, prepared);
    batch.opens = true;
  }

  #nextSegment(batch: WriteBatch, ofEpoch: { key: string | undefined; count: number } | null): NewRecord {
    const number = this.#segment.number + 1;
    const epoch = ofEpoch ? number : this.#segment.epoch;
    const segment = { number, epoch, first: this.ledger.head + 1 };
    this.#segment = segment;
    this.#needsSegment = false;
    batch.segments.push(segment);
    const keys = ofEpoch ? { keys: this.ledger.keysToCarry(ofEpoch.key, ofEpoch.count) } : {};
    return segmentRecord({ session: this.id, segment: number, epoch, ...keys });
  }

  #send(): void {
    this.#working ??= this.#work().finally(() => {
      this.#working = null;
      // Records appended after its last check.
      if (this.#batches.length > 0) this.#send();
    });
  }

  /** Never rejects. */
  async #work(): Promise<void> {
    // Wait for the end of this task, so that calls made one after the other share a statement.
    await null;
    for (let batch = this.#batches.shift(); batch; batch = this.#batches.shift()) await this.#write(batch);
    this.#background();
  }

  async #write(batch: WriteBatch): Promise<void> {
    const { lease, leases } = this.#parts;
    // A list settles the rows of a worker whose lease has expired.
    if (this.#mayBeSettled || leases.isOverdue) batch.opens = true;
    try {
      const write = batch.write(lease);
      await (batch.transaction ? this.#commit(batch.transaction, write) : this.#put(write));
    } catch (error) {
      const { metrics } = this.#parts.database;
      if (isHoldfastError(error, "LEASE_LOST", "SYNC_FAILED", "FILE_REPLACED")) {
        if (error.code === "SYNC_FAILED") metrics.count("appendsInDoubt", batch.units);
        batch.reject(this.told(error));
        this.fail(error);
        return;
      }
      // Neither this batch nor what was encoded after it is written: continue from before it.
      const behind = this.#batches.splice(0);
      batch.rewind();
      for (const one of [batch, ...behind]) metrics.count("appendsFailed", one.units);
      for (const one of [batch, ...behind]) one.reject(error);
      return;
    }
    if (batch.opens) this.#mayBeSettled = false;
    this.#acknowledged = batch.headState;
    this.#appendedAt = performance.now();
    if (batch.durability !== "process") this.ledger.setDurable(batch.headState.head);
    batch.resolve(this.ledger);
    this.#parts.database.metrics.appended(batch);
    this.#parts.onAcknowledged();
  }

  /**
   * Retries until it is certain whether the write happened. Throws LEASE_LOST, FILE_REPLACED, SYNC_FAILED (in doubt),
   * or the database's error if nothing was written.
   */
  async #put(write: Write): Promise<void> {
    const { patienceMs, database, batcher } = this.#parts;
    const until = performance.now() + patienceMs;
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      let cause: unknown;
      try {
        if ((await batcher.put(write)) === "written") return;
        if (await this.#isWritten(write)) return;
      } catch (error) {
        if (isHoldfastError(error)) throw error;
        cause = error;
        // A server that reports an error and then crashes (a full WAL disk) may still have written it.
        if (!isPassing(error)) {
          if (await this.#isWritten(write)) return;
          throw database.failure(error, "append to the journal");
        }
      }
      if (this.failure || performance.now() + pauseMs > until)
        throw outcomeUnknown(this.id, this.ledger.durable, cause);
      await database.pause(pauseMs);
    }
  }

  #commit(transaction: Transaction, write: Write): Promise<void> {
    const { database, patienceMs } = this.#parts;
    const inDoubt = (cause: unknown): HoldfastError => outcomeUnknown(this.id, this.ledger.durable, cause);
    const isWritten = (): Promise<boolean> => this.#isWritten(write);
    return commitWith(transaction, write, { session: this.id, database, patienceMs, isWritten, inDoubt });
  }

  /** True: it is written. False: it is not, and may be sent again. Throws if it never can be. */
  async #isWritten(write: Write): Promise<boolean> {
    const { lease, head, count, lines, durability } = write;
    const { leases } = this.#parts;
    try {
      const found = await leases.inspect(lease);
      if (found?.isOurs && found.head === head) return false;
      const line = await this.#parts.lines.one(lease.place, head + count);
      // Nobody else writes a line with the same checksum there.
      if (line?.equals(lines.subarray(lines.lastIndexOf("\n") + 1))) {
        if (durability === "process") return true;
        // The backend may have been terminated before it waited for the disk or a standby.
        const durable = await leases.makeDurable(lease);
        return durable && durable.head >= head + count ? true : await this.#isWritten(write);
      }
      throw found?.isOurs && found.head < head ? headMovedBack(this.id, head, found.head) : leaseLost(this.id);
    } catch (error) {
      if (isHoldfastError(error, "STORE_IO")) throw outcomeUnknown(this.id, this.ledger.durable, error);
      throw error;
    }
  }

  get #isBehind(): boolean {
    return this.ledger.durable < this.head;
  }

  /**
   * Makes everything read and acknowledged durable. Fails the journal if the server lacks it: it may have crashed, or
   * another one may have taken its place. Throws STORE_IO.
   */
  async #confirm(): Promise<void> {
    const { head } = this;
    const { leases, lease } = this.#parts;
    const found = await (this.#isBehind ? leases.makeDurable(lease) : leases.inspect(lease));
    if (!found?.isOurs) this.fail(leaseLost(this.id));
    else if (found.head < head) this.fail(headMovedBack(this.id, head, found.head));
    else this.ledger.setDurable(head);
  }

  #background(): void {
    if (this.isClosing || this.failure) return;
    const isBehind = this.#parts.catalogue.isBehind(this.#parts.lease.place, this.head) || this.durable < this.head;
    if (!isBehind && (this.#mayBeSettled || !this.hasWritten)) return;
    // What is behind does not wait until the row could be settled.
    if (this.#timer && !(isBehind && this.#waitsToSettle)) return;
    if (this.#timer) clearTimeout(this.#timer);
    this.#waitsToSettle = !isBehind;
    const waitMs = isBehind ? BACKGROUND_MS : Math.max(BACKGROUND_MS, SETTLE_MS - this.#idleMs);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#tidying = this.#tidy().finally(() => {
        this.#tidying = null;
      });
    }, waitMs);
    this.#timer.unref();
  }

  get #idleMs(): number {
    return performance.now() - this.#appendedAt;
  }

  /** Never rejects: the row is derived, and the next append retries what is not yet durable. */
  async #tidy(): Promise<void> {
    if (this.failure || this.isClosing) return;
    const { catalogue, lease } = this.#parts;
    const isLeft = this.#idleMs >= SETTLE_MS && !this.#working;
    // Before it is sent: an append that comes now is sent before the row is settled, or unsettles it.
    if (isLeft) this.#mayBeSettled = true;
    try {
      // First: what a crash of the server has taken must not appear in lists.
      if (this.#isBehind) await this.#confirm();
      if (this.failure) return;
      await catalogue.save(lease, this.#acknowledged, isLeft ? "left" : "live");
      this.#background();
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
    }
  }
}
