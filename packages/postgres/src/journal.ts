import { setTimeout as sleep } from "node:timers/promises";
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
import { inDoubt, isPassing, leaseLost } from "./failure.ts";
import type { Lease } from "./leases.ts";
import type { Lines } from "./lines.ts";

/** The catalogue's row, and what was written with `process`, are behind for less than a second (S10, S20). */
const BACKGROUND_MS = 900;
/** What goes in one statement, if more waits. */
const STATEMENT_CHARACTERS = 1024 * 1024;
const PAUSE_MS = 20;
const PAUSE_MS_MAX = 1000;

export interface JournalParts {
  readonly id: string;
  readonly url: string;
  readonly lease: Lease;
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
  /** Gives the lease back. */
  readonly release: () => Promise<void>;
}

interface Pending {
  /** Null for an epoch, whose records are asked for when its turn has come. */
  readonly unit: readonly NewRecord[] | null;
  readonly build: () => readonly NewRecord[];
  readonly key: string | undefined;
  readonly durability: Durability;
  readonly resolve: (appended: JournalAppended) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The writer of one session in a database. One statement at a time is under way; what is appended meanwhile goes in the next one, in order. A statement is written as a whole or not at all; where no answer comes, it is sent again with the same
 * expected head, which cannot write it twice (S25).
 */
export class PostgresJournal implements Journal {
  readonly id: string;
  readonly #parts: JournalParts;
  readonly #ledger: Ledger;
  readonly #listeners = new Set<(error: HoldfastError) => void>();
  readonly #keys = new Map<string, Promise<JournalAppended>>();
  #pending: Pending[] = [];
  /** Until nothing is pending. */
  #working: Promise<void> | null = null;
  /** Acknowledged. */
  #head: number;
  #at: string;
  #segment: Segment;
  #isOpened = false;
  #needsSegment: boolean;
  #wrote: boolean;
  #timer: NodeJS.Timeout | null = null;
  #failure: HoldfastError | null = null;
  #failureTold = false;
  #closing: Promise<void> | null = null;

  constructor(parts: JournalParts) {
    this.id = parts.id;
    this.#parts = parts;
    this.#ledger = parts.ledger;
    this.#head = parts.ledger.head;
    this.#at = parts.ledger.at;
    this.#segment = parts.segment;
    this.#needsSegment = parts.startSegment;
    this.#wrote = parts.created;
  }

  get head(): number {
    return this.#head;
  }
  get at(): string {
    return this.#at;
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
      // Refused inside the call, before anything is written for its sake; and what the caller changes later changes nothing stored.
      this.#ledger.prepare(unit, key);
      const copy = JSON.parse(JSON.stringify(unit)) as NewRecord[];
      const appended = this.#put({ unit: copy, build: () => copy, key, durability });
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
      return this.#put({ unit: null, build, key: undefined, durability: "power" });
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

  /** Takes no more appends; what waits is in doubt. */
  fail(failure: HoldfastError): HoldfastError {
    if (this.#failure) return this.#failure;
    this.#failure = failure;
    for (const { reject } of this.#pending.splice(0)) {
      this.#failureTold = true;
      reject(failure);
    }
    tellAll(this.#listeners, failure);
    return failure;
  }

  async #close(): Promise<void> {
    const { catalogue, lease, release } = this.#parts;
    try {
      await this.#working;
      if (!this.#failure && this.#wrote) {
        const unit = [closedRecord()];
        await this.#put({ unit, build: () => unit, key: undefined, durability: "power" });
        await catalogue.save(lease.place, this.#ledger, true);
      }
    } catch (error) {
      // No space for the mark: the next writer finds an unclean end, and all of it.
      if (!isHoldfastError(error, "STORE_FULL", "STORE_IO")) throw error;
    } finally {
      if (this.#timer) clearTimeout(this.#timer);
      this.#timer = null;
      await release();
    }
    if (this.#failure && !this.#failureTold) throw this.#tell(this.#failure);
  }

  #put(what: Omit<Pending, "resolve" | "reject">): Promise<JournalAppended> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ ...what, resolve, reject });
      this.#working ??= this.#work().finally(() => {
        this.#working = null;
      });
    });
  }

  /** Never rejects. */
  async #work(): Promise<void> {
    // A moment later, so that those who are called one after the other go together.
    await null;
    while (this.#pending.length > 0) await this.#writeSome();
    this.#background();
  }

  async #writeSome(): Promise<void> {
    const rewind = this.#ledger.mark();
    const before = { segment: this.#segment, isOpened: this.#isOpened, needsSegment: this.#needsSegment };
    const batch = new Lot(this.#ledger.head);
    const taken: { readonly pending: Pending; readonly appended: JournalAppended }[] = [];
    let durability: Durability = "process";
    while (this.#pending.length > 0 && batch.characters < STATEMENT_CHARACTERS) {
      const next = this.#pending[0]!;
      // An epoch begins with its own statement: its records are asked for when all before them are acknowledged.
      if (next.unit === null && taken.length > 0) break;
      this.#pending.shift();
      const inner = this.#ledger.mark();
      const size = batch.size;
      try {
        const appended =
          next.unit === null ? this.#addEpoch(batch, epochOf(next.build())) : this.#addUnit(batch, next.unit, next.key);
        taken.push({ pending: next, appended });
        if (next.durability !== "process") durability = "power";
      } catch (error) {
        inner();
        batch.cutTo(size);
        if (taken.length === 0) {
          this.#segment = before.segment;
          this.#isOpened = before.isOpened;
          this.#needsSegment = before.needsSegment;
        }
        next.reject(error);
      }
      if (next.unit === null) break;
    }
    if (taken.length === 0) return;
    try {
      await this.#send(batch, durability);
    } catch (error) {
      if (isHoldfastError(error, "LEASE_LOST", "SYNC_FAILED")) {
        this.#failureTold = true;
        for (const { pending } of taken) pending.reject(error);
        this.fail(error);
        return;
      }
      // Nothing of it was written: the journal goes on.
      rewind();
      this.#segment = before.segment;
      this.#isOpened = before.isOpened;
      this.#needsSegment = before.needsSegment;
      for (const { pending } of taken) pending.reject(error);
      return;
    }
    this.#wrote = true;
    this.#head = this.#ledger.head;
    this.#at = this.#ledger.at;
    if (durability !== "process") this.#ledger.setDurable(this.#head);
    for (const { pending, appended } of taken) pending.resolve(appended);
    this.#parts.onAcknowledged(this.#head);
  }

  /** Before a writer's first record comes what every writer begins with. */
  #addOpening(batch: Lot): void {
    if (this.#needsSegment) {
      batch.add(this.#ledger, this.#ledger.prepareSegment([this.#nextSegment(batch, false)]));
      this.#needsSegment = false;
    }
    if (!this.#isOpened) {
      batch.add(this.#ledger, this.#ledger.prepare([this.#parts.opened]));
      batch.opens = true;
      this.#isOpened = true;
    }
  }

  #addUnit(batch: Lot, unit: readonly NewRecord[], key: string | undefined): JournalAppended {
    this.#addOpening(batch);
    const prepared = this.#ledger.prepare(unit, key);
    batch.add(this.#ledger, prepared);
    return { seq: prepared.seq, last: prepared.last, at: this.#ledger.at };
  }

  #addEpoch(batch: Lot, records: readonly NewRecord[]): JournalAppended {
    // Refused before anything is written for its sake.
    this.#ledger.prepareSegment([{ kind: "segment" }, ...records]);
    if (!this.#isOpened) {
      batch.add(this.#ledger, this.#ledger.prepare([this.#parts.opened]));
      batch.opens = true;
      this.#isOpened = true;
    }
    const prepared = this.#ledger.prepareSegment([this.#nextSegment(batch, true), ...records]);
    batch.add(this.#ledger, prepared);
    this.#ledger.forgetOldKeys();
    this.#needsSegment = false;
    // The header is the store's own: the caller is told of the records that it gave.
    return { seq: prepared.seq + 1, last: prepared.last, at: this.#ledger.at };
  }

  #nextSegment(batch: Lot, isEpoch: boolean): NewRecord {
    const number = this.#segment.number + 1;
    const epoch = isEpoch ? number : this.#segment.epoch;
    this.#segment = { number, epoch, first: this.#ledger.head + 1 };
    batch.segment = this.#segment;
    const keys = isEpoch ? { keys: this.#ledger.keysToCarry() } : {};
    return segmentRecord({ session: this.id, segment: number, epoch, ...keys });
  }

  /** Until it is known to be written, or not. Throws LEASE_LOST, SYNC_FAILED (in doubt), or what the database says: then nothing of it is there. */
  async #send(batch: Lot, durability: Durability): Promise<void> {
    const { lease, patienceMs, database } = this.#parts;
    const { head, count, segment, opens } = batch;
    const write: Write = { lease, head, count, lines: batch.text(), durability, segment, opens };
    const until = performance.now() + patienceMs;
    let wasSent = false;
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      try {
        if ((await this.#parts.batch.put(write)) === "written") return;
        // An attempt whose answer was lost may have written it.
        if (wasSent && (await this.#stands(write))) return;
        throw leaseLost(this.id);
      } catch (error) {
        if (isHoldfastError(error)) throw error;
        if (!isPassing(error)) throw database.failure(error, "append to the journal");
        if (this.#failure || performance.now() + pauseMs > until) throw inDoubt(this.id, this.#ledger.durable, error);
        wasSent = true;
      }
      await sleep(pauseMs);
    }
  }

  /** Is our last line where it belongs? Nobody else writes the same checksum there. */
  async #stands({ lease, head, count, lines }: Write): Promise<boolean> {
    const found = await this.#parts.lines.one(lease.place, head + count);
    return found?.toString() === lines.slice(lines.lastIndexOf("\n") + 1);
  }

  /** A commit that is waited for brings all before it to the disk. */
  async #makeDurable(): Promise<void> {
    const { head } = this;
    if (this.#ledger.durable >= head) return;
    if (!(await this.#parts.catalogue.sync(this.#parts.lease))) throw this.#tell(this.fail(leaseLost(this.id)));
    this.#ledger.setDurable(head);
  }

  #background(): void {
    if (this.#timer || this.#closing || this.#failure) return;
    if (!this.#parts.catalogue.isBehind(this.#parts.lease.place, this.#ledger.head)) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#tidy();
    }, BACKGROUND_MS);
    this.#timer.unref();
  }

  /** Never rejects: the row is derived, and what is not durable yet is tried again with the next append. */
  async #tidy(): Promise<void> {
    if (this.#failure || this.#closing) return;
    try {
      if (!this.#working) await this.#parts.catalogue.save(this.#parts.lease.place, this.#ledger, false);
      await this.#makeDurable();
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
    }
    this.#background();
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

/** Lines that go together. */
class Lot {
  /** The newest seq before them. */
  readonly head: number;
  segment: Segment | null = null;
  opens = false;
  characters = 0;
  count = 0;
  readonly #texts: string[] = [];

  constructor(head: number) {
    this.head = head;
  }

  get size(): number {
    return this.#texts.length;
  }

  add(ledger: Ledger, prepared: ReturnType<Ledger["prepare"]>): void {
    const text = prepared.bytes.toString("utf8", 0, prepared.bytes.length - 1);
    this.#texts.push(text);
    this.characters += text.length;
    this.count += prepared.last - prepared.seq + 1;
    ledger.commit(prepared);
  }

  cutTo(size: number): void {
    for (const text of this.#texts.splice(size)) {
      this.characters -= text.length;
      this.count -= text.split("\n").length;
    }
  }

  text(): string {
    return this.#texts.join("\n");
  }
}

function epochOf(records: readonly NewRecord[]): readonly NewRecord[] {
  if (records[0]?.kind === "epoch") return records;
  const message = 'The epoch was not begun: its first record must be of kind "epoch". The old epoch goes on.';
  throw new HoldfastError("RECORD_INVALID", message);
}
