import { HoldfastError } from "holdfast";
import { openMemoryStore } from "holdfast/internal";
import type {
  Capabilities,
  Journal,
  JournalAppended,
  JournalAppendOptions,
  JournalStore,
  NewRecord,
} from "holdfast/store";

type Wait = () => Promise<void>;

/**
 * A store as one behind a network is: it writes in the order of the calls, but later, and its answers come out of step.
 * `wait` says how much later; there is no way to write inside a call.
 */
export async function openLaterStore(
  options: Parameters<typeof openMemoryStore>[0],
  wait: Wait,
): Promise<JournalStore> {
  const inner = await openMemoryStore(options);
  const capabilities: Capabilities = { ...inner.capabilities, sync: false };
  return new Proxy(inner, {
    get(target, name) {
      if (name === "capabilities") return capabilities;
      if (name === "create") {
        return async (...given: Parameters<JournalStore["create"]>) =>
          new LaterJournal(await target.create(...given), wait);
      }
      if (name === "open") {
        return async (...given: Parameters<JournalStore["open"]>) => {
          const opened = await target.open(...given);
          return { ...opened, journal: new LaterJournal(opened.journal, wait) };
        };
      }
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

class LaterJournal implements Journal {
  readonly #inner: Journal;
  readonly #wait: Wait;
  #last: Promise<unknown> = Promise.resolve();
  #head: number;
  #at: string;

  constructor(inner: Journal, wait: Wait) {
    this.#inner = inner;
    this.#wait = wait;
    this.#head = inner.head;
    this.#at = inner.at;
  }

  get id(): string {
    return this.#inner.id;
  }
  get head(): number {
    return this.#head;
  }
  get at(): string {
    return this.#at;
  }
  get durable(): number {
    return this.#head;
  }
  get failure(): HoldfastError | null {
    return this.#inner.failure;
  }

  append(records: NewRecord | readonly NewRecord[], options?: JournalAppendOptions): Promise<JournalAppended> {
    let copy: NewRecord[];
    try {
      copy = structuredClone(Array.isArray(records) ? records : [records]) as NewRecord[];
    } catch (error) {
      return Promise.reject(
        new HoldfastError("RECORD_NOT_JSON", String(error), { path: "", why: "it cannot be cloned" }),
      );
    }
    return this.#inOrder(() => this.#inner.append(copy, options));
  }

  appendSync(): never {
    throw new HoldfastError("NOT_SUPPORTED", "There is no such way.");
  }

  async flush(): Promise<void> {
    await this.#last;
    await this.#inner.flush();
  }

  flushSync(): never {
    throw new HoldfastError("NOT_SUPPORTED", "There is no such way.");
  }

  epoch(build: () => readonly NewRecord[]): Promise<JournalAppended> {
    return this.#inOrder(() => this.#inner.epoch(build));
  }

  follow(...given: Parameters<Journal["follow"]>): ReturnType<Journal["follow"]> {
    return this.#inner.follow(...given);
  }

  onWritten(...given: Parameters<Journal["onWritten"]>): () => void {
    return this.#inner.onWritten(...given);
  }

  onFailure(listener: (error: HoldfastError) => void): () => void {
    return this.#inner.onFailure(listener);
  }

  async close(): Promise<void> {
    await this.#last;
    await this.#inner.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Written one after the other; each is answered when its own time has come. */
  #inOrder(write: () => Promise<JournalAppended>): Promise<JournalAppended> {
    const written = this.#last.then(this.#wait).then(write);
    this.#last = written.catch(() => undefined);
    return written.then(async (appended) => {
      await this.#wait();
      this.#head = Math.max(this.#head, appended.last);
      this.#at = this.#inner.at;
      return appended;
    });
  }
}
