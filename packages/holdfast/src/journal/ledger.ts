import { HoldfastError } from "../errors.ts";
import { type Appended, rowIn, type Summariser, type Written } from "./contract.ts";
import { assertKey, Encoder } from "./lines/encode.ts";
import { assertPlain } from "./lines/plain.ts";
import { tellAll } from "./listeners.ts";
import { aheadAfter, OrderClock, stampOf } from "./order.ts";
import type { JournalRecord, Json, NewRecord } from "./record.ts";

/** How many keys outlive the epoch they were used in. */
const KEYS_CARRIED = 256;
/**
 * The row is written to the journal at least this often, so that a list never reads far back, however long a turn is
 * (P7, S20).
 */
const ROW_EVERY_BYTES = 32 * 1024;

/** A unit that is encoded but does not count yet. `bytes` is valid until the next unit is prepared. */
export interface Prepared extends Appended, Written {
  readonly bytes: Buffer;
  readonly key: string | undefined;
  readonly mark: number | undefined;
  readonly row: Json;
  readonly ahead: number;
  /** The unit contains the row. */
  readonly carries: boolean;
}

/**
 * What a writer knows about its journal: the next seq, what is durable, which keys were used, and the catalogue row. It
 * encodes records as lines, and counts them only once the store reports them written. Every store's writer has one.
 */
export class Ledger {
  readonly #encoder = new Encoder();
  readonly #summariser: Summariser | undefined;
  readonly #clock: OrderClock;
  #keys = new Map<string, Appended>();
  #head = 0;
  #durable = 0;
  /** The newest mark in the journal (S7). */
  #marked = 0;
  /** Excludes the records in `#unadded`. */
  #row: Json = null;
  /**
   * The records since the newest row in the journal, not folded into it yet: nearly always a later one carries a newer
   * row, which makes that unnecessary.
   */
  #unadded: JournalRecord[] = [];
  /** Bytes written since the journal last contained the row. */
  #bytesSinceRow = 0;
  #lastAt = "";
  /** How far the order of lists is ahead of the newest record's time, according to the journal. */
  #ahead = 0;
  #atMs = Number.NaN;
  #at = "";
  readonly #listeners = new Set<(written: Written) => void>();

  /** `clock`: one for all sessions of a store, so that they sort correctly. */
  constructor(options: {
    readonly clock: OrderClock | (() => number);
    readonly summariser?: Summariser | undefined;
  }) {
    this.#clock = typeof options.clock === "function" ? new OrderClock(options.clock) : options.clock;
    this.#summariser = options.summariser;
  }

  get head(): number {
    return this.#head;
  }
  get durable(): number {
    return this.#durable;
  }
  get row(): Json {
    if (this.#unadded.length > 0) {
      for (const record of this.#unadded.splice(0)) this.#row = this.#add(this.#row, record);
    }
    return this.#row;
  }
  /** When the newest record was written. */
  get at(): string {
    return this.#lastAt;
  }
  /** The session's sort key in lists. */
  get stamp(): string {
    return stampOf(this.#lastAt, this.#ahead);
  }

  /** Takes in the next record that is already in the journal. */
  absorb(record: JournalRecord): void {
    this.#head = record.seq;
    this.#lastAt = record.at;
    this.#ahead = aheadAfter(this.#ahead, record);
    if (record.key !== undefined)
      this.#keys.set(record.key, { seq: record.seq, last: record.seq + (record.unit ?? 1) - 1 });
    if (record.kind === "segment" && Array.isArray(record["keys"])) {
      for (const carried of record["keys"]) {
        if (isCarriedKey(carried)) this.#keys.set(carried[0], { seq: carried[1], last: carried[2] });
      }
    }
    if (record.synced !== undefined && record.synced > this.#marked) this.#marked = record.synced;
    const carried = rowIn(record, this.#summariser);
    if (carried !== undefined) {
      this.#row = carried;
      this.#unadded = [];
    } else if (this.#summariser) this.#unadded.push(record);
  }

  /**
   * Everything in the journal was absorbed, and `next` is the next seq (damaged lines that stay in place use up seqs
   * too). What the caller does to the records from now on has no effect on the row.
   */
  continueAt(next: number): void {
    this.#head = next - 1;
    this.#row = this.row;
  }

  /** Every record up to `seq` is durable. */
  setDurable(seq: number): void {
    if (seq > this.#durable) this.#durable = seq;
  }

  /** The append or epoch that used this key, if any. Throws RECORD_INVALID. */
  find(key: string): Appended | undefined {
    assertKey(key);
    return this.#keys.get(key);
  }

  /** Encodes one unit with the next seqs. Throws RECORD_INVALID, RECORD_NOT_JSON, RECORD_TOO_LARGE. */
  prepare(records: readonly NewRecord[], key?: string): Prepared {
    const mark = this.#durable > this.#marked ? this.#durable : undefined;
    return this.#encode(records, { mark, key, born: false });
  }

  /**
   * Encodes the first records of a segment, starting with `segment`. They are durable before anyone can see them (S15).
   * Their first and last record say so, which distinguishes a damaged line among them from a tear.
   */
  prepareSegment(records: readonly NewRecord[]): Prepared {
    return this.#encode(records, { mark: this.#head + records.length, key: undefined, born: true });
  }

  /** The unit is written: it counts from now on, and listeners hear of it. */
  commit(prepared: Prepared): void {
    this.stage(prepared);
    this.tell(prepared);
  }

  /** Counts a unit that the store writes later. Once it is written, the store calls `tell`. */
  stage(prepared: Prepared): void {
    this.#head = prepared.last;
    this.#lastAt = prepared.at;
    this.#ahead = prepared.ahead;
    this.#row = prepared.row;
    this.#bytesSinceRow = (prepared.carries ? 0 : this.#bytesSinceRow) + prepared.bytes.length;
    if (prepared.mark !== undefined) this.#marked = prepared.mark;
    if (prepared.key !== undefined) this.#keys.set(prepared.key, { seq: prepared.seq, last: prepared.last });
  }

  /** `Journal.onWritten` */
  onWritten(listener: (written: Written) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  tell(written: Written): void {
    if (this.#listeners.size > 0) tellAll(this.#listeners, written);
  }

  /**
   * Remembers the current state. The returned function restores it, for a store that learns only later that nothing was
   * written. Records that became durable in between stay durable: they were written before the mark.
   */
  mark(): () => void {
    const head = this.#head;
    const marked = this.#marked;
    const row = this.#row;
    const bytesSinceRow = this.#bytesSinceRow;
    const lastAt = this.#lastAt;
    const ahead = this.#ahead;
    const keys = this.#keys;
    const keyCount = keys.size;
    return () => {
      this.#head = head;
      this.#marked = marked;
      this.#row = row;
      this.#bytesSinceRow = bytesSinceRow;
      this.#lastAt = lastAt;
      this.#ahead = ahead;
      // Keys are only ever appended, and an old epoch's keys never change.
      this.#keys = keys;
      for (const key of [...keys.keys()].slice(keyCount)) keys.delete(key);
    };
  }

  /**
   * The newest keys, for the header of a segment that starts an epoch. That of the epoch itself is among them, with the
   * place that its `count` records will have after the header.
   */
  keysToCarry(key: string | undefined, count: number): Json {
    const carried: Json[] = [...this.#keys].slice(-KEYS_CARRIED).map(([old, { seq, last }]) => [old, seq, last]);
    return key === undefined ? carried : [...carried, [key, this.#head + 2, this.#head + 1 + count]];
  }

  /** From now on, only the carried keys are remembered, and that of the epoch. */
  forgetOldKeys(key: string | undefined, { seq, last }: Appended): void {
    // A new map: the old one may have to be restored.
    this.#keys = new Map([...this.#keys].slice(-KEYS_CARRIED));
    if (key !== undefined) this.#keys.set(key, { seq, last });
  }

  #encode(
    records: readonly NewRecord[],
    options: { readonly mark: number | undefined; readonly key: string | undefined; readonly born: boolean },
  ): Prepared {
    const seq = this.#head + 1;
    if (!Number.isSafeInteger(this.#head + records.length)) throw noNumbersLeft(this.#head);
    const at = this.#now();
    const { ahead } = this.#clock;
    let { row } = this;
    let carried = false;
    const summary = (i: number): string | undefined => {
      const record = records[i]!;
      if (this.#summariser?.concerns?.(row, record) !== false) row = this.#add(row, { ...record, seq: seq + i, at });
      const isDue = i === records.length - 1 && !carried && this.#bytesSinceRow >= ROW_EVERY_BYTES;
      const carries =
        isDue || record.kind === "segment" || record.kind === "closed" || this.#summariser?.carries(record);
      if (!carries || row === null) return undefined;
      // A third-party summariser must not produce a line that no reader accepts.
      assertPlain(row, "summary");
      carried = true;
      return JSON.stringify(row);
    };
    const bytes = this.#encoder.encode(records, {
      seq,
      at,
      synced: options.mark,
      syncedLast: options.born,
      ahead,
      // A segment is read on its own, so its header carries this.
      aheadFirst: ahead !== (options.born ? 0 : this.#ahead),
      key: options.key,
      unit: !options.born,
      summary: this.#summariser ? summary : undefined,
    });
    const last = seq + records.length - 1;
    return { seq, last, at, records, bytes, key: options.key, mark: options.mark, row, ahead, carries: carried };
  }

  #add(row: Json, record: Parameters<Summariser["add"]>[1]): Json {
    return this.#summariser ? this.#summariser.add(row, record) : row;
  }

  /** Formatting a date costs as much as the checksum: once per millisecond is enough. */
  #now(): string {
    const now = this.#clock.now();
    if (now !== this.#atMs) {
      this.#at = new Date(now).toISOString();
      this.#atMs = now;
    }
    return this.#at;
  }
}

/** Only a tampered journal gets here: no reader accepts a record with a higher number. */
function noNumbersLeft(head: number): HoldfastError {
  const message =
    `Nothing was written: the journal has a record ${head}, and no higher record number is left. Its content can still be read. ` +
    "Find out who wrote that record. To continue, fork the session.";
  return new HoldfastError("STORE_FULL", message, { limit: Number.MAX_SAFE_INTEGER });
}

/** The form `keysToCarry` writes. A later minor version may write something else here (C21). */
function isCarriedKey(value: unknown): value is [key: string, seq: number, last: number] {
  if (!Array.isArray(value)) return false;
  const [key, seq, last] = value;
  return typeof key === "string" && Number.isSafeInteger(seq) && Number.isSafeInteger(last);
}
