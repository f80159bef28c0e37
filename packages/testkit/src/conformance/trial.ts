import assert from "node:assert/strict";
import type { ErrorCode, HoldfastError, JournalRecord } from "holdfast";
import type { JournalStore } from "holdfast/store";
import type { Place, Step, SubjectCapabilities, SubjectOptions } from "./subject.ts";

/** How long a case waits for something to arrive. A store that never delivers it is wrong, not slow. */
const PATIENCE_MS = 20_000;

/** One run of one case: its own place, and everything to end afterwards. */
export class Trial {
  readonly capabilities: SubjectCapabilities;
  /** Fires when the trial is over, so that no follower outlives it. */
  readonly signal: AbortSignal;
  readonly #place: Place;
  readonly #patienceMs: number;
  readonly #ending = new AbortController();
  readonly #stores: JournalStore[] = [];

  constructor(place: Place, capabilities: SubjectCapabilities, patienceMs: number = PATIENCE_MS) {
    this.#place = place;
    this.capabilities = capabilities;
    this.#patienceMs = patienceMs;
    this.signal = this.#ending.signal;
  }

  /** Opens the same place each time. */
  async open(options?: SubjectOptions): Promise<JournalStore> {
    const store = await this.#place.open(options);
    this.#stores.push(store);
    return store;
  }

  /**
   * Has another writer append to a session and be killed. Returns `store`. If only one process can use the place at a
   * time, all stores are closed before that, and the returned one is opened again.
   */
  async writeAndDie(
    store: JournalStore,
    id: string,
    steps: readonly Step[],
    options?: SubjectOptions,
  ): Promise<JournalStore> {
    assert.ok(this.#place.writeAndDie, "the subject states `dies`, and has no writeAndDie");
    const { shared } = this.capabilities;
    if (!shared) for (const open of this.#stores) await open.close();
    await this.#place.writeAndDie(id, steps);
    return shared ? store : this.open(options);
  }

  /** Follows from now on, until the trial ends. */
  follow(records: AsyncIterable<JournalRecord>): Follower {
    return new Follower(records, (promise, what) => this.within(promise, what));
  }

  /** The value of `promise`; fails if it does not settle. */
  async within<T>(promise: Promise<T>, what: string, patienceMs: number = this.#patienceMs): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new assert.AssertionError({ message: `${what}: never` })), patienceMs);
    });
    try {
      return await Promise.race([promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async end(): Promise<void> {
    this.#ending.abort();
    try {
      for (const store of this.#stores) await this.within(store.close(), "closing the store");
    } finally {
      await this.#place.remove();
    }
  }
}

type Within = <T>(promise: Promise<T>, what: string) => Promise<T>;

export class Follower {
  readonly #iterator: AsyncIterator<JournalRecord>;
  readonly #within: Within;

  constructor(records: AsyncIterable<JournalRecord>, within: Within) {
    this.#iterator = records[Symbol.asyncIterator]();
    this.#within = within;
  }

  /** The next records, exactly this many. */
  async next(count: number): Promise<JournalRecord[]> {
    const records: JournalRecord[] = [];
    while (records.length < count) {
      const what = `record ${records.length + 1} of ${count} of a follower`;
      const { done, value } = await this.#within(this.#iterator.next(), what);
      assert.ok(!done, `a follower ended before ${what}`);
      records.push(value);
    }
    return records;
  }

  /** Everything up to and including the first record for which `isLast` is true. */
  async until(isLast: (record: JournalRecord) => boolean): Promise<JournalRecord[]> {
    const records: JournalRecord[] = [];
    do records.push(...(await this.next(1)));
    while (!isLast(records.at(-1)!));
    return records;
  }

  /** What still arrives until the follower ends by itself. */
  async rest(): Promise<JournalRecord[]> {
    const records: JournalRecord[] = [];
    for (;;) {
      const { done, value } = await this.#within(this.#iterator.next(), "the end of a follower");
      if (done) return records;
      records.push(value);
    }
  }

  async stop(): Promise<void> {
    await this.#within(Promise.resolve(this.#iterator.return?.()), "a follower that is given up");
  }
}

export async function all(records: AsyncIterable<JournalRecord>): Promise<JournalRecord[]> {
  const found: JournalRecord[] = [];
  for await (const record of records) found.push(record);
  return found;
}

/** A promise to await later. If the case fails before that, its rejection must not be unhandled. */
export function later<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** The error that `work` throws or rejects with: it must be a HoldfastError with one of these codes. */
export async function refusal(work: () => unknown, ...codes: ErrorCode[]): Promise<HoldfastError> {
  let result: unknown;
  try {
    result = await work();
  } catch (error) {
    const { name, code, message } = error as HoldfastError;
    assert.equal(name, "HoldfastError", `expected ${codes.join(" or ")}, found ${String(error)}`);
    assert.ok(codes.includes(code), `expected ${codes.join(" or ")}, found ${code}: ${message}`);
    assert.ok(message.length > 0);
    return error as HoldfastError;
  }
  assert.fail(`expected ${codes.join(" or ")}, but it went well: ${JSON.stringify(result) ?? "undefined"}`);
}

/** A clock that advances by a second each time it is read, and can be set. */
export function steppingClock(
  startMs = Date.parse("2030-01-01T00:00:00Z"),
): (() => number) & { set(ms: number): void } {
  let now = startMs;
  const clock = () => {
    now += 1000;
    return now;
  };
  return Object.assign(clock, {
    set(ms: number) {
      now = ms;
    },
  });
}
