import { HoldfastError } from "../errors.ts";
import type { Appended, AppendOptions, Durability, FollowOptions, Journal, Written } from "../journal/contract.ts";
import type { Ledger } from "../journal/ledger.ts";
import { tellAll } from "../journal/listeners.ts";
import type { JournalRecord, NewRecord } from "../journal/record.ts";
import { journalClosed } from "../journal/refusals.ts";

export interface JournalBaseParts {
  readonly id: string;
  readonly ledger: Ledger;
  /** What an append waits for by default. */
  readonly durability: Durability;
  /** Written right before this writer's first record after those of `create`. */
  readonly opened: NewRecord;
  /** This writer created the session, so it has already written to it. */
  readonly created: boolean;
  readonly follow: (options: FollowOptions) => AsyncIterable<JournalRecord>;
}

/** What the writers of all stores share: how a journal starts, fails and closes. */
export abstract class JournalBase implements Journal {
  readonly id: string;
  protected readonly ledger: Ledger;
  protected readonly durability: Durability;
  protected readonly opened: NewRecord;
  /** `opened` is written. */
  protected isStarted = false;
  readonly #created: boolean;
  readonly #follow: JournalBaseParts["follow"];
  readonly #failureListeners = new Set<(error: HoldfastError) => void>();
  #failure: HoldfastError | null = null;
  /** A caller has received the failure. */
  #isFailureTold = false;
  #closing: Promise<void> | null = null;
  #isEnded = false;

  constructor(parts: JournalBaseParts) {
    this.id = parts.id;
    this.ledger = parts.ledger;
    this.durability = parts.durability;
    this.opened = parts.opened;
    this.#created = parts.created;
    this.#follow = parts.follow;
  }

  get head(): number {
    return this.ledger.head;
  }
  get at(): string {
    return this.ledger.at;
  }
  get durable(): number {
    return this.ledger.durable;
  }
  get failure(): HoldfastError | null {
    return this.#failure;
  }
  protected get isClosing(): boolean {
    return this.#closing !== null;
  }
  protected get isEnded(): boolean {
    return this.#isEnded;
  }
  /** This writer wrote something, so it writes `closed` too. */
  protected get hasWritten(): boolean {
    return this.isStarted || this.#created;
  }

  abstract append(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Promise<Appended>;
  abstract appendSync(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Appended;
  abstract flush(): Promise<void>;
  abstract flushSync(): void;
  abstract epoch(build: () => readonly NewRecord[], options?: Pick<AppendOptions, "key">): Promise<Appended>;

  follow(options: FollowOptions = {}): AsyncIterable<JournalRecord> {
    return this.#follow(options);
  }

  onWritten(listener: (written: Written) => void): () => void {
    return this.ledger.onWritten(listener);
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

  /** Accepts no more appends; pending ones are in doubt. The first failure counts. */
  fail(error: unknown): HoldfastError {
    if (this.#failure) return this.#failure;
    const failure = error instanceof HoldfastError ? error : this.inDoubt(error);
    if (this.#isEnded) return failure;
    this.#failure = failure;
    if (this.rejectWaiting(failure)) this.#isFailureTold = true;
    tellAll(this.#failureListeners, failure);
    return failure;
  }

  /** The failure, for a caller that receives it. If nobody has, `close` rejects with it. */
  protected told(failure: HoldfastError): HoldfastError {
    this.#isFailureTold = true;
    return failure;
  }

  protected assertOpen(): void {
    if (this.#closing) throw journalClosed(this.id);
    this.assertNotFailed();
  }

  protected assertNotFailed(): void {
    if (this.#failure) throw this.told(this.#failure);
  }

  /**
   * Writes what precedes a writer's first records: a writer that only reads, or whose first records are refused, writes
   * nothing (R16).
   */
  protected start(records: readonly NewRecord[], key?: string): void {
    if (this.isStarted) return;
    this.ledger.prepare(records, key);
    this.writeOpened(false);
    this.isStarted = true;
  }

  /** The same for the records of an epoch, which may be larger than a unit. */
  protected startEpoch(records: readonly NewRecord[]): void {
    if (this.isStarted) return;
    this.ledger.prepareSegment([{ kind: "segment" }, ...records]);
    this.writeOpened(true);
    this.isStarted = true;
  }

  /**
   * Writes `opened`, and before it the header of a new segment if this writer may not append to the newest one.
   * `isEpoch`: a new segment follows in any case.
   */
  protected abstract writeOpened(isEpoch: boolean): void;

  /** Rejects the appends that are in doubt. Returns whether there were any. */
  protected abstract rejectWaiting(failure: HoldfastError): boolean;

  /** The failure that an error which is not a HoldfastError amounts to. */
  protected abstract inDoubt(cause: unknown): HoldfastError;

  /** Writes `closed` if possible, and releases the lease in any case. */
  protected abstract end(): Promise<void>;

  async #close(): Promise<void> {
    try {
      await this.end();
    } finally {
      this.#isEnded = true;
    }
    if (this.#failure && !this.#isFailureTold) throw this.told(this.#failure);
  }
}

export function unitOf(records: NewRecord | readonly NewRecord[]): readonly NewRecord[] {
  return Array.isArray(records) ? (records as readonly NewRecord[]) : [records as NewRecord];
}
