import { HoldfastError } from "../errors.ts";
import { type Appended, rowIn, type Summariser } from "./contract.ts";
import { Encoder } from "./lines/encode.ts";
import { assertPlain } from "./lines/plain.ts";
import { aheadAfter, OrderClock, stampOf } from "./order.ts";
import type { JournalRecord, Json, NewRecord } from "./record.ts";

/** How many keys outlive the epoch that they were used in. */
const KEYS_CARRIED = 256;
/** The row stands in the journal at least this often, so that a list never reads far back, however long a turn is (P7, S20). */
const ROW_EVERY_BYTES = 32 * 1024;
/** Records found without a row behind them are put into it at last when there are so many. */
const UNADDED_MAX = 256;

/** A unit that is encoded but does not count yet. `bytes` is good until the next one is prepared. */
export interface Prepared extends Appended {
  readonly bytes: Buffer;
  readonly key: string | undefined;
  readonly mark: number | undefined;
  readonly row: Json;
  readonly ahead: number;
  /** The row stands in it. */
  readonly carries: boolean;
}

/**
 * What a writer knows of its journal: the next seq, what is durable, the keys that were used, and the catalogue row. It turns records into
 * lines, and counts them only when the store says that they are written. Every store's writer has one.
 */
export class Ledger {
  readonly #encoder = new Encoder();
  readonly #summariser: Summariser | undefined;
  readonly #clock: OrderClock;
  #keys = new Map<string, Appended>();
  #head = 0;
  #durable = 0;
  /** The newest mark that stands in the journal (S7). */
  #marked = 0;
  /** Without what is `#unadded`. */
  #row: Json = null;
  /** Found in the journal, and not put into the row yet: nearly always a newer row stands behind them, and they need not be. */
  #unadded: JournalRecord[] = [];
  /** Written since the row last stood in the journal. */
  #bytesSinceRow = 0;
  #lastAt = "";
  /** By how much the order of lists is ahead of the newest record's time, as the journal says. */
  #ahead = 0;
  #atMs = Number.NaN;
  #at = "";

  /** `clock`: one for all sessions of a store, so that their order is right. */
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
    for (const record of this.#unadded.splice(0)) this.#row = this.#add(this.#row, record);
    return this.#row;
  }
  /** When the newest record was written. */
  get at(): string {
    return this.#lastAt;
  }
  /** Where the session stands in lists. */
  get stamp(): string {
    return stampOf(this.#lastAt, this.#ahead);
  }

  /** A record that is in the journal already, in order. */
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
    const row = rowIn(record, this.#summariser);
    if (row !== undefined) {
      this.#row = row;
      this.#unadded = [];
    } else if (this.#summariser && this.#unadded.push(record) >= UNADDED_MAX) {
      this.#row = this.row;
    }
  }

  /** The next record is to be `next` (damaged lines that stay in place have taken numbers too). */
  skipTo(next: number): void {
    this.#head = next - 1;
  }

  /** Every record up to `seq` is durable. */
  setDurable(seq: number): void {
    if (seq > this.#durable) this.#durable = seq;
  }

  /** The append that used this key, if there was one. */
  find(key: string): Appended | undefined {
    return this.#keys.get(key);
  }

  /** Encodes one unit with the next seqs. Throws RECORD_INVALID, RECORD_NOT_JSON, RECORD_TOO_LARGE. */
  prepare(records: readonly NewRecord[], key?: string): Prepared {
    const mark = this.#durable > this.#marked ? this.#durable : undefined;
    return this.#encode(records, { mark, key, born: false });
  }

  /**
   * Encodes the first records of a segment, `segment` first. They are durable before anybody sees them (S15), and say so on their first and
   * last record, so that one damaged line among them is told from a tear.
   */
  prepareSegment(records: readonly NewRecord[]): Prepared {
    return this.#encode(records, { mark: this.#head + records.length, key: undefined, born: true });
  }

  commit(prepared: Prepared): void {
    this.#head = prepared.last;
    this.#lastAt = this.#at;
    this.#ahead = prepared.ahead;
    this.#row = prepared.row;
    this.#bytesSinceRow = (prepared.carries ? 0 : this.#bytesSinceRow) + prepared.bytes.length;
    if (prepared.mark !== undefined) this.#marked = prepared.mark;
    if (prepared.key !== undefined) this.#keys.set(prepared.key, { seq: prepared.seq, last: prepared.last });
  }

  /**
   * Remembers where the journal stands: what is returned brings it back there, for a store that learns only later that nothing was written. What became durable meanwhile stays durable: only what came
   * before can have.
   */
  mark(): () => void {
    const head = this.#head;
    const marked = this.#marked;
    const row = this.#row;
    const unadded = [...this.#unadded];
    const bytesSinceRow = this.#bytesSinceRow;
    const lastAt = this.#lastAt;
    const ahead = this.#ahead;
    const keys = this.#keys;
    const keyCount = keys.size;
    return () => {
      this.#head = head;
      this.#marked = marked;
      this.#row = row;
      this.#unadded = [...unadded];
      this.#bytesSinceRow = bytesSinceRow;
      this.#lastAt = lastAt;
      this.#ahead = ahead;
      // A key is only ever added, at the end; and those of an old epoch stay as they were.
      this.#keys = keys;
      for (const key of [...keys.keys()].slice(keyCount)) keys.delete(key);
    };
  }

  /** The newest keys, for the header of a segment that begins an epoch. */
  keysToCarry(): Json {
    return [...this.#keys].slice(-KEYS_CARRIED).map(([key, { seq, last }]) => [key, seq, last]);
  }

  /** Only the carried keys are remembered from now on. */
  forgetOldKeys(): void {
    // A new map: the old one may have to come back.
    this.#keys = new Map([...this.#keys].slice(-KEYS_CARRIED));
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
      row = this.#add(row, { ...record, seq: seq + i, at });
      const isDue = i === records.length - 1 && !carried && this.#bytesSinceRow >= ROW_EVERY_BYTES;
      const carries =
        isDue || record.kind === "segment" || record.kind === "closed" || this.#summariser?.carries(record);
      if (!carries || row === null) return undefined;
      // A summariser of somebody else's must not make a line that no reader takes.
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
      // A segment is read by itself: its header says it.
      aheadFirst: ahead !== (options.born ? 0 : this.#ahead),
      key: options.key,
      unit: !options.born,
      summary: this.#summariser ? summary : undefined,
    });
    const last = seq + records.length - 1;
    return { seq, last, bytes, key: options.key, mark: options.mark, row, ahead, carries: carried };
  }

  #add(row: Json, record: Parameters<Summariser["add"]>[1]): Json {
    return this.#summariser ? this.#summariser.add(row, record) : row;
  }

  /** Formatting a date costs as much as the checksum: once a millisecond is enough. */
  #now(): string {
    const now = this.#clock.now();
    if (now !== this.#atMs) {
      this.#at = new Date(now).toISOString();
      this.#atMs = now;
    }
    return this.#at;
  }
}

/** Only a journal that somebody tampered with gets there: nobody can read a record with a number beyond these. */
function noNumbersLeft(head: number): HoldfastError {
  const message =
    `Nothing was written: the journal has a record ${head}, and there are no numbers left behind that. What is in it can be read. ` +
    "Look at who made that record; to go on, fork the session.";
  return new HoldfastError("STORE_FULL", message, { limit: Number.MAX_SAFE_INTEGER });
}

/** As `keysToCarry` writes them. A later minor version may write something else there (C21). */
function isCarriedKey(value: unknown): value is [key: string, seq: number, last: number] {
  if (!Array.isArray(value)) return false;
  const [key, seq, last] = value;
  return typeof key === "string" && Number.isSafeInteger(seq) && Number.isSafeInteger(last);
}
