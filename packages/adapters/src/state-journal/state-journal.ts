import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError, type JournalRecord } from "holdfast";
import type { Journal, JournalStore, NewRecord } from "holdfast/store";

/** Writes that are waiting are appended together, and share one sync. */
const BATCH_MAX = 64;

/** How often a lease that another process holds is asked for. */
const RETRY_MS = 50;

/** What the records of a session fold into. */
export interface FoldedState {
  /** The last record of the journal that is in it. */
  end: { readonly seq: number; readonly at: string } | null;
  /** Adds a record of the journal. */
  read(record: JournalRecord): void;
}

/** A change of a session's state. */
export interface Change<S> {
  /** Resolves when everything is serialized. */
  readonly ready?: Promise<unknown>;
  /** Makes its records and adds them to the state; throws before it adds anything. */
  plan(state: S): NewRecord[];
}

interface QueuedChange<S> extends Change<S> {
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

export interface StateJournalParts<S> {
  readonly journals: JournalStore;
  readonly session: string;
  /** The name under which the lease is held. */
  readonly app: string;
  /** The first record of the session. */
  readonly attributes: NewRecord;
  /** How long the lease is kept after the last write. */
  readonly releaseMs: number;
  /** How long to wait for a lease that another process holds. Default: not at all. */
  readonly waitMs?: number;
  /** The state of a session without records. */
  empty(): S;
}

/** One session that is written by change: its journal while this process writes to it, and its state. */
export class StateJournal<S extends FoldedState> {
  readonly #parts: StateJournalParts<S>;
  readonly #waiting: QueuedChange<S>[] = [];
  #journal: Journal | null = null;
  #state: S | null = null;
  #timer: NodeJS.Timeout | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isWriting = false;

  constructor(parts: StateJournalParts<S>) {
    this.#parts = parts;
  }

  /** Durable when it resolves. Throws SESSION_BUSY while another process writes to the session, and store errors. */
  write(change: Change<S>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const { ready = Promise.resolve() } = change;
    this.#waiting.push({ ready, plan: (state) => change.plan(state), done: resolve, failed: reject });
    if (!this.#isWriting) {
      this.#isWriting = true;
      void this.#inOrder(() => this.#writeWaiting());
    }
    return promise;
  }

  /** The state as it is stored now, also by other processes; null if there is no such session. */
  read(): Promise<S | null> {
    return this.#inOrder(() => this.#caughtUp());
  }

  /** The state as far as this process knows it. */
  get inMemory(): S | null {
    return this.#state;
  }

  /** Nothing is being written, and the lease is free. */
  get isIdle(): boolean {
    return !this.#isWriting && this.#journal === null;
  }

  /** Releases the lease. The state stays in memory. */
  release(): Promise<void> {
    return this.#inOrder(() => this.#release());
  }

  /** What is asked of it from now on is done afterwards. */
  waitFor(other: Promise<void>): void {
    void this.#inOrder(() => other);
  }

  /** Runs alone, with the lease; null if there is no such session. */
  exclusively<T>(act: (journal: Journal, state: S) => Promise<T>): Promise<T | null> {
    return this.#inOrder(async () => {
      if (!(await this.#open())) return null;
      try {
        return await act(this.#journal!, this.#state!);
      } finally {
        // What it wrote is read again.
        this.#state = null;
        await this.#release();
      }
    });
  }

  delete(): Promise<void> {
    return this.#inOrder(async () => {
      await this.#release();
      this.#state = null;
      try {
        await this.#parts.journals.delete(this.#parts.session);
      } catch (error) {
        if (!isHoldfastError(error, "SESSION_NOT_FOUND")) throw error;
      }
    });
  }

  #inOrder<T>(act: () => Promise<T>): Promise<T> {
    const result = this.#last.then(act, act);
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #writeWaiting(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      while (this.#waiting.length > 0) await this.#writeBatch(this.#waiting.splice(0, BATCH_MAX));
    } finally {
      this.#isWriting = false;
      this.#timer = setTimeout(() => void this.release().catch(() => undefined), this.#parts.releaseMs).unref();
    }
  }

  /** Never rejects: each change learns what happened to it. */
  async #writeBatch(batch: readonly QueuedChange<S>[]): Promise<void> {
    const ready: QueuedChange<S>[] = [];
    for (const change of batch) {
      try {
        await change.ready;
        ready.push(change);
      } catch (error) {
        change.failed(error);
      }
    }
    if (ready.length === 0) return;
    const planned: QueuedChange<S>[] = [];
    try {
      await this.#append((state) => {
        planned.length = 0;
        return ready.flatMap((change) => {
          try {
            const records = change.plan(state);
            planned.push(change);
            return records;
          } catch (error) {
            change.failed(error);
            return [];
          }
        });
      });
      for (const change of planned) change.done();
    } catch (error) {
      // The state is ahead of the journal: it is read again.
      this.#state = null;
      if (this.#journal?.failure) await this.#release().catch(() => undefined);
      const isOneOfThem = isHoldfastError(error, "RECORD_TOO_LARGE", "RECORD_INVALID", "RECORD_NOT_JSON");
      if (isOneOfThem && ready.length > 1) {
        await this.#release();
        for (const change of ready) await this.#writeBatch([change]);
      } else {
        for (const change of ready) change.failed(error);
      }
    }
  }

  async #append(plan: (state: S) => NewRecord[]): Promise<void> {
    if (!(await this.#open())) {
      const state = this.#parts.empty();
      const records = plan(state);
      if (records.length === 0) return;
      if (await this.#create(state, records)) return;
      // Another process has just created it.
      await this.#open();
    }
    const records = plan(this.#state!);
    if (records.length === 0) return;
    await this.#journal!.append(records);
    this.#noteEnd();
  }

  /** False if the session exists. */
  async #create(state: S, records: readonly NewRecord[]): Promise<boolean> {
    const { journals, session, attributes, app } = this.#parts;
    try {
      const first = [attributes, ...records];
      this.#journal = await this.#unlessBusy(() => journals.create(session, first, { app }));
    } catch (error) {
      if (isHoldfastError(error, "SESSION_EXISTS")) return false;
      throw error;
    }
    this.#state = state;
    this.#noteEnd();
    return true;
  }

  #noteEnd(): void {
    const { head, at } = this.#journal!;
    this.#state!.end = { seq: head, at };
  }

  /** Takes the lease. False if there is no such session. */
  async #open(): Promise<boolean> {
    if (this.#journal && this.#state) return true;
    if (this.#journal) await this.#release();
    const { journals, session, app } = this.#parts;
    try {
      const { journal, records } = await this.#unlessBusy(() => journals.open(session, { app }));
      this.#journal = journal;
      this.#state = continued(this.#state, records) ?? this.#fold(records);
      return true;
    } catch (error) {
      if (isHoldfastError(error, "SESSION_NOT_FOUND")) return false;
      throw error;
    }
  }

  async #unlessBusy<T>(act: () => Promise<T>): Promise<T> {
    const { waitMs = 0 } = this.#parts;
    for (let waitedMs = 0; ; waitedMs += RETRY_MS) {
      try {
        return await act();
      } catch (error) {
        if (!isHoldfastError(error, "SESSION_BUSY") || waitedMs >= waitMs) throw error;
        await sleep(RETRY_MS);
      }
    }
  }

  #fold(records: Iterable<JournalRecord>): S {
    const state = this.#parts.empty();
    for (const record of records) state.read(record);
    return state;
  }

  async #caughtUp(): Promise<S | null> {
    if (this.#journal && this.#state) return this.#state;
    const { journals, session } = this.#parts;
    try {
      this.#state = (await this.#readOn()) ?? this.#fold((await journals.read(session)).records);
    } catch (error) {
      if (!isHoldfastError(error, "SESSION_NOT_FOUND")) throw error;
      this.#state = null;
    }
    return this.#state;
  }

  /** Reads what was written since. Null if that cannot be told. */
  async #readOn(): Promise<S | null> {
    const state = this.#state;
    if (!state?.end) return null;
    const records = [];
    for await (const record of this.#parts.journals.history(this.#parts.session, state.end.seq)) records.push(record);
    return continued(state, records);
  }

  async #release(): Promise<void> {
    clearTimeout(this.#timer);
    const journal = this.#journal;
    this.#journal = null;
    await journal?.close();
  }
}

/** The state with the records after its end; null if the records do not continue it. */
function continued<S extends FoldedState>(state: S | null, records: readonly JournalRecord[]): S | null {
  const end = state?.end;
  if (!state || !end) return null;
  const at = records.findIndex(({ seq }) => seq === end.seq);
  if (at < 0 || records[at]!.at !== end.at) return null;
  for (const record of records.slice(at + 1)) state.read(record);
  return state;
}
