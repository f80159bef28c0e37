import {
  type Durability,
  type FollowOptions,
  HoldfastError,
  isHoldfastError,
  type Journal,
  type JournalAppended,
  type JournalAppendOptions,
  type JournalRecord,
  type NewRecord,
} from "holdfast";
import {
  closedRecord,
  journalClosed,
  type Ledger,
  notSupported,
  type Segment,
  segmentRecord,
  tellAll,
} from "holdfast/kit";
import type { Batch, Write } from "./batch.ts";
import type { Catalogue } from "./catalogue.ts";
import type { Database } from "./database.ts";
import { inDoubt, isPassing, leaseLost, wentBack } from "./failure.ts";
import type { Lease, Leases } from "./leases.ts";
import type { Lines } from "./lines.ts";
import { Lot, type Standing, standingOf } from "./lot.ts";

/** The catalogue's row, and what was written with `process`, are behind for less than a second (S10, S20). */
const BACKGROUND_MS = 900;
/** What goes in one statement, if more waits. */
const LOT_BYTES = 1024 * 1024;
const PAUSE_MS = 20;
const PAUSE_MS_MAX = 1000;

export interface JournalParts {
  readonly id: string;
  readonly url: string;
  readonly lease: Lease;
  readonly leases: Leases;
  readonly ledger: Ledger;
  readonly batch: Batch;
  readonly lines: Lines;
  readonly catalogue: Catalogue;
  readonly database: Database;
  readonly durability: Durability;
  readonly opened: NewRecord;
  /** This writer has made the session. */
  readonly created: boolean;
  /** The newest one. */
  readonly segment: Segment;
  /** That is of another format: what this writer writes begins a new one (S16). */
  readonly startSegment: boolean;
  /** How long an append is tried again while the server is away. */
  readonly patienceMs: number;
  readonly follow: (options: FollowOptions) => AsyncIterable<JournalRecord>;
  readonly onAcknowledged: (head: number) => void;
  /** Gives the lease back. `isAway`: the server did not answer just now. */
  readonly release: (isAway: boolean) => Promise<void>;
}

/** What the journal must know again if a lot is not written. */
interface State {
  readonly segment: Segment;
  readonly isOpened: boolean;
  readonly needsSegment: boolean;
}

/**
 * The writer of one session in a database. Records are numbered and encoded inside the call, in order. One statement at a time is under way; what is appended meanwhile goes in the next one. A statement is written as a whole or not at all;
 * where no answer comes, it is sent again with the same expected head, which cannot write it twice (S25). If it is refused, nothing behind it is written either, and the journal goes on from where it was.
 */
export class PostgresJournal implements Journal {
  readonly id: string;
  readonly #parts: JournalParts;
  readonly #ledger: Ledger;
  readonly #listeners = new Set<(error: HoldfastError) => void>();
  /** By key: appends that are not answered yet. */
  readonly #keys = new Map<string, Promise<JournalAppended>>();
  /** Not sent yet; units are added to the last one. */
  #lots: Lot[] = [];
  /** Until nothing is left to send. */
  #working: Promise<void> | null = null;
  /** As far as it is acknowledged. */
  #standing: Standing;
  #state: State;
  #wrote: boolean;
  #isBuilding = false;
  #timer: NodeJS.Timeout | null = null;
  #tidying: Promise<void> | null = null;
  #failure: HoldfastError | null = null;
  #failureTold = false;
  #closing: Promise<void> | null = null;

  constructor(parts: JournalParts) {
    this.id = parts.id;
    this.#parts = parts;
    this.#ledger = parts.ledger;
    this.#standing = standingOf(parts.ledger);
    this.#state = { segment: parts.segment, isOpened: false, needsSegment: parts.startSegment };
    this.#wrote = parts.created;
  }

  get head(): number {
    // The instant of an epoch is behind all that was appended before it.
    return this.#isBuilding ? this.#ledger.head : this.#standing.head;
  }
  get at(): string {
    return this.#standing.at;
  }
  get durable(): number {
    return this.#ledger.durable;
  }
  get failure(): HoldfastError | null {
    return this.#failure;
  }

  append(records: NewRecord | readonly NewRecord[], options: JournalAppendOptions = {}): Promise<JournalAppended> {
    const { key, durability = this.#parts.durability } = options;
    try {
      this.#assertOpen();
      const known = key === undefined ? undefined : (this.#keys.get(key) ?? this.#ledger.find(key));
      if (known) return Promise.resolve(known);
      const unit = Array.isArray(records) ? (records as readonly NewRecord[]) : [records as NewRecord];
      // Refused before anything is written for its sake.
      if (!this.#state.isOpened || this.#state.needsSegment) this.#ledger.prepare(unit, key);
      this.#addOpening();
      const appended = this.#add(unit, durability, key);
      if (key !== undefined) {
        this.#keys.set(key, appended);
        const forget = (): boolean => this.#keys.delete(key);
        appended.then(forget, forget);
      }
      return appended;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  appendSync(): never {
    throw notSupported("appendSync", this.#parts.url, "Append, and wait.");
  }

  flushSync(): never {
    throw notSupported("flushSync", this.#parts.url, "Flush, and wait.");
  }

  async flush(): Promise<void> {
    await this.#working;
    if (this.#failure) throw this.#tell(this.#failure);
    await this.#makeDurable();
  }

  epoch(build: () => readonly NewRecord[]): Promise<JournalAppended> {
    try {
      this.#assertOpen();
      const records = this.#built(build);
      // Refused before anything is written for its sake.
      this.#ledger.prepareSegment([{ kind: "segment" }, ...records]);
      this.#addOpened();
      const lot = this.#lot();
      const prepared = this.#ledger.prepareSegment([this.#nextSegment(lot, true), ...records]);
      lot.add(this.#ledger, prepared);
      this.#ledger.forgetOldKeys();
      // The header is the store's own: the caller is told of the records that it gave.
      const appended = { seq: prepared.seq + 1, last: prepared.last, at: this.#ledger.at };
      this.#send();
      return lot.wait(appended, "power");
    } catch (error) {
      return Promise.reject(error);
    }
  }

  follow(options: FollowOptions = {}): AsyncIterable<JournalRecord> {
    return this.#parts.follow(options);
  }

  onFailure(listener: (error: HoldfastError) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Takes no more appends; what waits is rejected. */
  fail(failure: HoldfastError): HoldfastError {
    if (this.#failure) return this.#failure;
    this.#failure = failure;
    for (const lot of this.#lots.splice(0)) {
      this.#failureTold = true;
      lot.reject(failure);
    }
    tellAll(this.#listeners, failure);
    return failure;
  }

  async #close(): Promise<void> {
    const { release } = this.#parts;
    let isAway = false;
    try {
      // Also what was appended while it was working.
      while (this.#working) await this.#working;
      if (this.#timer) clearTimeout(this.#timer);
      this.#timer = null;
      await this.#tidying;
      if (!this.#failure && this.#wrote) {
        // So that the mark which it carries covers all before it.
        await this.#makeDurable();
        await this.#writeClosed();
      }
    } catch (error) {
      isAway = true;
      throw error;
    } finally {
      await release(isAway || this.#failure !== null);
    }
    if (this.#failure && !this.#failureTold) throw this.#tell(this.#failure);
  }

  async #writeClosed(): Promise<void> {
    const { catalogue, lease } = this.#parts;
    try {
      await this.#add([closedRecord()], "power");
      await catalogue.save(lease.place, this.#standing, true);
    } catch (error) {
      // No mark: the next writer finds an unclean end, and all of it.
      if (!isHoldfastError(error, "STORE_FULL", "STORE_IO")) throw error;
    }
  }

  /** The one that is being filled. */
  #lot(): Lot {
    const last = this.#lots.at(-1);
    if (last && last.bytes < LOT_BYTES) return last;
    const rewindLedger = this.#ledger.mark();
    const state = this.#state;
    const lot = new Lot(this.#ledger, () => {
      rewindLedger();
      this.#state = state;
    });
    this.#lots.push(lot);
    return lot;
  }

  #add(unit: readonly NewRecord[], durability: Durability, key?: string): Promise<JournalAppended> {
    const prepared = this.#ledger.prepare(unit, key);
    const lot = this.#lot();
    lot.add(this.#ledger, prepared);
    this.#send();
    return lot.wait({ seq: prepared.seq, last: prepared.last, at: this.#ledger.at }, durability);
  }

  #built(build: () => readonly NewRecord[]): readonly NewRecord[] {
    this.#isBuilding = true;
    try {
      return epochOf(build());
    } finally {
      this.#isBuilding = false;
    }
  }

  /** Before a writer's first record comes what every writer begins with. */
  #addOpening(): void {
    if (this.#state.needsSegment) {
      const lot = this.#lot();
      lot.add(this.#ledger, this.#ledger.prepareSegment([this.#nextSegment(lot, false)]));
    }
    this.#addOpened();
  }

  #addOpened(): void {
    if (this.#state.isOpened) return;
    const prepared = this.#ledger.prepare([this.#parts.opened]);
    const lot = this.#lot();
    lot.add(this.#ledger, prepared);
    lot.opens = true;
    this.#state = { ...this.#state, isOpened: true };
  }

  #nextSegment(lot: Lot, isEpoch: boolean): NewRecord {
    const number = this.#state.segment.number + 1;
    const epoch = isEpoch ? number : this.#state.segment.epoch;
    const segment = { number, epoch, first: this.#ledger.head + 1 };
    this.#state = { ...this.#state, segment, needsSegment: false };
    lot.segments.push(segment);
    const keys = isEpoch ? { keys: this.#ledger.keysToCarry() } : {};
    return segmentRecord({ session: this.id, segment: number, epoch, ...keys });
  }

  #send(): void {
    this.#working ??= this.#work().finally(() => {
      this.#working = null;
      // What was appended just now, after it had looked for the last time.
      if (this.#lots.length > 0) this.#send();
    });
  }

  /** Never rejects. */
  async #work(): Promise<void> {
    // A moment later, so that those who are called one after the other go together.
    await null;
    for (let lot = this.#lots.shift(); lot; lot = this.#lots.shift()) await this.#write(lot);
    this.#background();
  }

  async #write(lot: Lot): Promise<void> {
    try {
      await this.#put(lot.write(this.#parts.lease));
    } catch (error) {
      if (isHoldfastError(error, "LEASE_LOST", "SYNC_FAILED", "FILE_REPLACED")) {
        this.#failureTold = true;
        lot.reject(error);
        this.fail(error);
        return;
      }
      // Nothing of it is written, nor is what was encoded behind it: the journal goes on from where it was.
      const behind = this.#lots.splice(0);
      lot.rewind();
      for (const one of [lot, ...behind]) one.reject(error);
      return;
    }
    this.#wrote = true;
    this.#standing = lot.standing;
    if (lot.durability !== "process") this.#ledger.setDurable(lot.standing.head);
    lot.resolve();
    this.#parts.onAcknowledged(lot.standing.head);
  }

  /** Until it is known to be written, or not. Throws LEASE_LOST, FILE_REPLACED, SYNC_FAILED (in doubt), or what the database says: then nothing of it is there. */
  async #put(write: Write): Promise<void> {
    const { patienceMs, database, batch } = this.#parts;
    const until = performance.now() + patienceMs;
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      let cause: unknown;
      try {
        if ((await batch.put(write)) === "written") return;
        if (await this.#stands(write)) return;
      } catch (error) {
        if (isHoldfastError(error)) throw error;
        cause = error;
        // A server that says no and dies of it (a full disk of its log) may have written it all the same.
        if (!isPassing(error)) {
          if (await this.#stands(write)) return;
          throw database.failure(error, "append to the journal");
        }
      }
      if (this.#failure || performance.now() + pauseMs > until) throw inDoubt(this.id, this.#ledger.durable, cause);
      await database.pause(pauseMs);
    }
  }

  /** True: it is written. False: it is not, and may be sent again. Throws if it can never be. */
  async #stands({ lease, head, count, lines, durability }: Write): Promise<boolean> {
    const { leases } = this.#parts;
    try {
      const found = await leases.standing(lease);
      if (found?.isOurs && found.head === head) return false;
      const line = await this.#parts.lines.one(lease.place, head + count);
      // Nobody else writes the same checksum there.
      if (line?.equals(lines.subarray(lines.lastIndexOf("\n") + 1))) {
        // Whoever was to wait for the disk, or for a standby, may have been ended before.
        if (durability !== "process") await leases.sync();
        return true;
      }
      throw found?.isOurs && found.head < head ? wentBack(this.id, head, found.head) : leaseLost(this.id);
    } catch (error) {
      if (isHoldfastError(error, "STORE_IO")) throw inDoubt(this.id, this.#ledger.durable, error);
      throw error;
    }
  }

  /** A commit that is waited for brings all before it to the disk. */
  async #makeDurable(): Promise<void> {
    const { head } = this;
    if (this.#ledger.durable >= head) return;
    await this.#parts.leases.sync();
    this.#ledger.setDurable(head);
  }

  #background(): void {
    if (this.#timer || this.#closing || this.#failure) return;
    if (!this.#parts.catalogue.isBehind(this.#parts.lease.place, this.head) && this.durable >= this.head) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#tidying = this.#tidy().finally(() => {
        this.#tidying = null;
      });
    }, BACKGROUND_MS);
    this.#timer.unref();
  }

  /** Never rejects: the row is derived, and what is not durable yet is tried again with the next append. */
  async #tidy(): Promise<void> {
    if (this.#failure || this.#closing) return;
    try {
      await this.#parts.catalogue.save(this.#parts.lease.place, this.#standing, false);
      await this.#makeDurable();
      this.#background();
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
    }
  }

  #tell(failure: HoldfastError): HoldfastError {
    this.#failureTold = true;
    return failure;
  }

  #assertOpen(): void {
    if (this.#closing) throw journalClosed(this.id);
    if (this.#failure) throw this.#tell(this.#failure);
  }
}

function epochOf(records: readonly NewRecord[]): readonly NewRecord[] {
  if (records[0]?.kind === "epoch") return records;
  const message = 'The epoch was not begun: its first record must be of kind "epoch". The old epoch goes on.';
  throw new HoldfastError("RECORD_INVALID", message);
}
