import { isHoldfastError } from "holdfast";
import type { Journal, JournalStore, NewRecord } from "holdfast/store";
import { ThreadState } from "./state.ts";

/** The name under which threads are listed, and their lease is held. */
export const APP = "langgraph";

/** Writes that are waiting are appended together, and share one sync. */
const BATCH_MAX = 64;

/** A change of a thread. */
export interface Change {
  /** Resolves when everything is serialized. */
  readonly ready: Promise<unknown>;
  /** Makes its records and adds them to the state; throws before it adds anything. */
  plan(state: ThreadState): NewRecord[];
}

interface Waiting extends Change {
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

export interface ThreadParts {
  readonly journals: JournalStore;
  readonly session: string;
  /** The first record of the session. */
  readonly attributes: NewRecord;
  /** How long the lease is kept after the last write. */
  readonly releaseMs: number;
}

/** One thread: its journal while this process writes to it, and its state. */
export class Thread {
  readonly #parts: ThreadParts;
  readonly #waiting: Waiting[] = [];
  #journal: Journal | null = null;
  #state: ThreadState | null = null;
  #timer: NodeJS.Timeout | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isWriting = false;

  constructor(parts: ThreadParts) {
    this.#parts = parts;
  }

  /** Durable when it resolves. Throws SESSION_BUSY while another process writes to the thread, and store errors. */
  write(change: Change): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ ready: change.ready, plan: (state) => change.plan(state), done: resolve, failed: reject });
    if (!this.#isWriting) {
      this.#isWriting = true;
      void this.#inOrder(() => this.#writeWaiting());
    }
    return promise;
  }

  /** The state as it is stored now, also by other processes; null if there is no such thread. */
  read(): Promise<ThreadState | null> {
    return this.#inOrder(() => this.#caughtUp());
  }

  /** The state as far as this process knows it. */
  get inMemory(): ThreadState | null {
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

  /** Runs alone, with the lease; null if there is no such thread. */
  exclusively<T>(act: (journal: Journal, state: ThreadState) => Promise<T>): Promise<T | null> {
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
  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    const ready: Waiting[] = [];
    for (const change of batch) {
      try {
        await change.ready;
        ready.push(change);
      } catch (error) {
        change.failed(error);
      }
    }
    if (ready.length === 0) return;
    const planned: Waiting[] = [];
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

  async #append(plan: (state: ThreadState) => NewRecord[]): Promise<void> {
    if (!(await this.#open())) {
      const state = new ThreadState();
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

  /** False if the thread exists. */
  async #create(state: ThreadState, records: readonly NewRecord[]): Promise<boolean> {
    const { journals, session, attributes } = this.#parts;
    try {
      this.#journal = await journals.create(session, [attributes, ...records], { app: APP });
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

  /** Takes the lease. False if there is no such thread. */
  async #open(): Promise<boolean> {
    if (this.#journal && this.#state) return true;
    if (this.#journal) await this.#release();
    const { journals, session } = this.#parts;
    try {
      const { journal, records } = await journals.open(session, { app: APP });
      this.#journal = journal;
      this.#state = continued(this.#state, records) ?? ThreadState.of(records);
      return true;
    } catch (error) {
      if (isHoldfastError(error, "SESSION_NOT_FOUND")) return false;
      throw error;
    }
  }

  async #caughtUp(): Promise<ThreadState | null> {
    if (this.#journal && this.#state) return this.#state;
    const { journals, session } = this.#parts;
    try {
      this.#state = (await this.#readOn()) ?? ThreadState.of((await journals.read(session)).records);
    } catch (error) {
      if (!isHoldfastError(error, "SESSION_NOT_FOUND")) throw error;
      this.#state = null;
    }
    return this.#state;
  }

  /** Reads what was written since. Null if that cannot be told. */
  async #readOn(): Promise<ThreadState | null> {
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
function continued(
  state: ThreadState | null,
  records: readonly Parameters<ThreadState["read"]>[0][],
): ThreadState | null {
  const end = state?.end;
  if (!end) return null;
  const at = records.findIndex(({ seq }) => seq === end.seq);
  if (at < 0 || records[at]!.at !== end.at) return null;
  for (const record of records.slice(at + 1)) state.read(record);
  return state;
}
