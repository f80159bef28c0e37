import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { invalid, keyTaken } from "../admit/refusals.ts";
import type { SessionRecord } from "../conversation/records.ts";
import type { Appended } from "../journal/contract.ts";
import type { JournalRecord } from "../journal/record.ts";

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
export function digestOf(key: unknown, content: unknown): string {
  if (typeof key !== "string" || key === "" || key.length > KEY_CHARS_MAX || !key.isWellFormed())
    throw invalid(`a key must be a text of 1 to ${KEY_CHARS_MAX} characters`);
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
  /** The call whose work makes this one. */
  readonly outer: Call | undefined;
  /** The calls that must end before this one can. */
  readonly waits: Set<Call>;
  readonly over: Promise<void>;
  /** As recorded; null while nothing may take it. */
  key: string | null;
  unit: Promise<Appended> | null;
}

/** Follows a call through everything it awaits, so that nothing else that the session writes takes its key. */
const calls = new AsyncLocalStorage<Call>();

/**
 * Calls with the same key are made one after another, and so are those that stream, since they share the draft. All
 * others run at the same time: a stop must not wait for the tool that it stops.
 */
export class KeyedCalls {
  readonly #owner: object;
  /** The newest call with each key; and the newest that streams, by the streaming call inside which it is made. */
  readonly #last = new Map<string | object, Call>();

  /** `owner`: what `writeKeyed` is called for. */
  constructor(owner: object) {
    this.#owner = owner;
  }

  /** Throws RECORD_INVALID if the call would wait for itself. */
  async run<T>(key: string, streams: boolean, run: () => Promise<T>): Promise<T> {
    const outer = calls.getStore();
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const call: Call = { owner: this.#owner, streams, outer, waits: new Set(), over, key: null, unit: null };
    const draft = [...around(outer)].find((one) => one.owner === this.#owner && one.streams) ?? this;
    const names = streams ? [key, draft] : [key];
    const before = names.flatMap((name) => this.#last.get(name) ?? []);
    if (isBehind(before, outer))
      throw invalid(`the call with the key ${JSON.stringify(key)} is made inside itself, and would wait for itself`);
    for (const name of names) this.#last.set(name, call);
    try {
      if (before.length > 0) await waitFor(before, call);
      return await calls.run(call, run);
    } finally {
      for (const name of names) if (this.#last.get(name) === call) this.#last.delete(name);
      resolve();
    }
  }

  /** Resolves when the call with this key is over; at once for a call that asks about itself. */
  async over(key: string): Promise<void> {
    const last = this.#last.get(key);
    const asking = calls.getStore();
    if (last && !isBehind([last], asking)) await waitFor([last], asking);
  }
}

/** The call itself, and those inside whose work it is made. */
function* around(call: Call | undefined): Generator<Call> {
  for (let one = call; one; one = one.outer) yield one;
}

/** Does one of these end only after `call`? Each is looked at once: many can wait for the same. */
function isBehind(these: readonly Call[], call: Call | undefined): boolean {
  const ends = new Set(around(call));
  const seen = new Set(ends.size > 0 ? these : []);
  for (const one of seen) {
    if (ends.has(one)) return true;
    for (const next of one.waits) seen.add(next);
  }
  return false;
}

async function waitFor(before: readonly Call[], call: Call | undefined): Promise<void> {
  const waiting = [...around(call)];
  for (const one of waiting) for (const other of before) one.waits.add(other);
  await Promise.all(before.map(({ over }) => over));
  for (const one of waiting) for (const other of before) one.waits.delete(other);
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
  let call = calls.getStore();
  while (call && call.owner !== owner) call = call.outer;
  // A call that ends a draft writes that first: if the process died in between, only the key would be there.
  if (!call || call.key === null || call.unit || (kind === "draft" && !call.streams)) return write(undefined);
  const made = call;
  const appended = write(call.key);
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
