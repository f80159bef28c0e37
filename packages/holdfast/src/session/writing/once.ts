import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { invalid, keyTaken } from "../../admit/refusals.ts";
import type { SessionRecord } from "../../conversation/records/records.ts";
import type { Appended } from "../../journal/contract.ts";
import type { JournalRecord } from "../../journal/record.ts";

/** The keys of the application's calls, in the journal beside those of other appends. */
const PREFIX = "once:";
const DIGEST_CHARS = 22;
const KEY_CHARS_MAX = 256;

/** A call made with a key: where it was recorded, and a digest of its content. */
interface KeyedAppend extends Appended {
  readonly digest: string;
}

/** The calls of a session that were made with a key. */
export class OnceKeys {
  readonly #made = new Map<string, KeyedAppend>();

  static in(records: readonly JournalRecord[]): OnceKeys {
    const keys = new OnceKeys();
    for (const record of records) keys.absorb(record);
    return keys;
  }

  /** Takes in the next record of the current epoch, whose first one has the keys from before it. */
  absorb(record: JournalRecord): void {
    const carried = record.kind === "segment" ? record["keys"] : undefined;
    if (Array.isArray(carried))
      for (const one of carried) if (isCarried(one)) this.#take(one[0], { seq: one[1], last: one[2] });
    const { seq, unit = 1, key } = record;
    if (key !== undefined) this.#take(key, { seq, last: seq + unit - 1 });
  }

  /** Throws KEY_TAKEN if the call with this key had different content. */
  find(key: string, digest: string): Appended | null {
    const made = this.#made.get(key);
    if (!made) return null;
    if (made.digest !== digest) throw keyTaken(key);
    return { seq: made.seq, last: made.last };
  }

  add(key: string, digest: string, { seq, last }: Appended): void {
    this.#made.set(key, { digest, seq, last });
  }

  #take(recorded: string, place: Appended): void {
    if (!recorded.startsWith(PREFIX)) return;
    const digest = recorded.slice(PREFIX.length, PREFIX.length + DIGEST_CHARS);
    this.add(recorded.slice(PREFIX.length + DIGEST_CHARS + 1), digest, place);
  }
}

/** Throws RECORD_INVALID. */
export function assertKey(key: unknown): asserts key is string {
  if (typeof key !== "string" || key === "" || key.length > KEY_CHARS_MAX || !key.isWellFormed())
    throw invalid(`a key must be a text of 1 to ${KEY_CHARS_MAX} characters`);
}

/** Throws RECORD_INVALID. */
export function digestOf(key: unknown, content: unknown): string {
  assertKey(key);
  if (typeof content !== "string") throw invalid("the content of a call with a key must be given as a text");
  return createHash("sha256").update(content).digest("base64url").slice(0, DIGEST_CHARS);
}

/** What the journal holds as the key of the unit. */
export function recordedKey(key: string, digest: string): string {
  return `${PREFIX}${digest}:${key}`;
}

/** A call that is being made with a key. The first unit that it writes takes the key. */
interface Call {
  readonly owner: object;
  /** Streamed text is the call's own unit, not a by-product of it. */
  readonly streams: boolean;
  /** The call of another session inside whose work it is made. */
  readonly outer: Call | undefined;
  /** As recorded; null while nothing may take it. */
  key: string | null;
  unit: Promise<Appended> | null;
}

/** Follows a call through everything it awaits, so that nothing else that the session writes takes its key. */
const calls = new AsyncLocalStorage<Call>();

/** The call of this owner inside whose work this is; undefined if there is none, or its work is over. */
function callOf(owner: object): Call | undefined {
  let call = calls.getStore();
  while (call && call.owner !== owner) call = call.outer;
  return call?.key === null ? undefined : call;
}

const STREAMS = Symbol("streams");

/**
 * Calls with the same key are made one after another, and so are those that stream, since they share the draft. All
 * others run at the same time: a stop must not wait for the tool that it stops.
 */
export class KeyedCalls {
  readonly #owner: object;
  /** The end of the newest call with each key, and of the newest that streams. */
  readonly #last = new Map<string | symbol, Promise<void>>();

  /** `owner`: what `writeKeyed` is called for. */
  constructor(owner: object) {
    this.#owner = owner;
  }

  /** Throws RECORD_INVALID inside another call, for which it might have to wait. */
  async run<T>(key: string, streams: boolean, run: () => Promise<T>): Promise<T> {
    if (callOf(this.#owner)) throw invalid(`the call with the key ${JSON.stringify(key)} is made inside another`);
    const names = streams ? [key, STREAMS] : [key];
    const before = names.flatMap((name) => this.#last.get(name) ?? []);
    const { promise: over, resolve } = Promise.withResolvers<void>();
    for (const name of names) this.#last.set(name, over);
    try {
      if (before.length > 0) await Promise.all(before);
      const call: Call = { owner: this.#owner, streams, outer: calls.getStore(), key: null, unit: null };
      return await calls.run(call, run);
    } finally {
      for (const name of names) if (this.#last.get(name) === over) this.#last.delete(name);
      resolve();
    }
  }

  /** Resolves when the call with this key is over; at once inside a call, which might ask about itself. */
  async over(key: string): Promise<void> {
    if (!callOf(this.#owner)) await this.#last.get(key);
  }
}

/**
 * Runs `work` inside `KeyedCalls.run`. `onRecorded` gets the unit that took the key, even if `work` rejects after it
 * has written that. Resolves with the unit; null if there is none.
 */
export async function withKey(
  key: string,
  work: () => Promise<unknown>,
  onRecorded: (unit: Appended) => void,
): Promise<Appended | null> {
  const call = calls.getStore()!;
  call.key = key;
  try {
    await work();
  } finally {
    call.key = null;
    const unit = await call.unit?.catch(() => null);
    if (unit) onRecorded(unit);
  }
  return call.unit;
}

/** Writes a unit that begins with a record of this kind, with the key of the call that writes it, if it has one. */
export function writeKeyed(
  owner: object,
  kind: SessionRecord["kind"] | undefined,
  write: (key: string | undefined) => Promise<Appended>,
): Promise<Appended> {
  const made = callOf(owner);
  // A call that ends a draft writes that first: if the process died in between, only the key would be there.
  if (!made || made.unit || (kind === "draft" && !made.streams)) return write(undefined);
  const appended = write(made.key!);
  made.unit = appended;
  appended.catch(() => {
    // Nothing was written, so the next unit is the first: a tool's outcome that is too large is recorded in words.
    made.unit = null;
  });
  return appended;
}

function isCarried(value: unknown): value is [key: string, seq: number, last: number] {
  return Array.isArray(value) && typeof value[0] === "string" && value.slice(1, 3).every(Number.isSafeInteger);
}
