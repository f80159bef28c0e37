import type { Call } from "../dialect.ts";
import { grown, NONE } from "../shape.ts";

/** A call as the built-in dialects find it. */
export interface FoundCall extends Call {
  /** It came without an id, and `id` is a stand-in (R9). */
  readonly idless?: true;
  /** The id of the provider's call that makes this one. */
  readonly caller?: string;
  /** The message only requests permission for it: if a call with this id is open, it is that one. */
  readonly requested?: true;
  /** A provider's call that is never left for the next request to finish: without its result it is not sent. */
  readonly atOnce?: true;
}

export interface FoundResult {
  readonly call: string;
  readonly name?: string;
  /** It came without an id: it answers the first call of its name that has no result yet. */
  readonly idless?: true;
}

/** A call that waits for its result, or has it. */
export interface Answerable {
  readonly call: FoundCall;
  /** The index of the entry that makes the call. */
  readonly entry: number;
  /** Null: there is none yet. */
  readonly answer: unknown;
}

/** Most exchanges have few calls: up to this many, a linear search is faster than an index. */
const FEW = 8;

/** Which calls are searched for. */
export interface CallFilter<T> {
  is(call: T): boolean;
  /** It is not wanted, and never will be again. */
  isOver(call: T): boolean;
}

const UNANSWERED: CallFilter<Answerable> = { is: ({ answer }) => !answer, isOver: ({ answer }) => answer !== null };

/** Calls that have no result yet, or are wanted for another reason. */
export class OpenCalls<T extends Answerable> {
  readonly #wanted: CallFilter<T>;
  #calls: readonly T[] = NONE;
  #index: Index<T> | null = null;

  constructor(wanted: CallFilter<T> = UNANSWERED) {
    this.#wanted = wanted;
  }

  add(found: T): void {
    this.#calls = grown(this.#calls, found);
    this.#index?.add(found);
  }

  clear(): void {
    this.#calls = NONE;
    this.#index = null;
  }

  /** Takes over the calls of another list, which is empty afterwards. */
  absorb(other: OpenCalls<T>): void {
    for (let i = 0; i < other.#calls.length; i++) this.add(other.#calls[i]!);
    other.clear();
  }

  /** Whether a result has an id that a call has or had: then it is a second result, not one that lost its id. */
  knows({ call, idless }: FoundResult): boolean {
    if (idless) return false;
    return this.#isFew() ? this.#calls.some(({ call: { id } }) => id === call) : this.#indexed().byId.has(call);
  }

  /** By id: among several calls with one id, those of the newest message come first, in order (R9). */
  take(id: string): T | null {
    if (!this.#isFew()) return this.#indexed().newest(id);
    let found: T | null = null;
    const calls = this.#calls;
    for (let i = 0; i < calls.length; i++) {
      const candidate = calls[i]!;
      if (candidate.call.id !== id || !this.#wanted.is(candidate)) continue;
      if (!found || candidate.entry !== found.entry) found = candidate;
    }
    return found;
  }

  /** By order and name, if either side lacks an id. */
  guess({ name, idless }: FoundResult): T | null {
    const { idless: without, all } = this.#indexed();
    const key = name ? `of ${name}` : ANY;
    return without.get(key)?.first() ?? (idless ? (all.get(key)?.first() ?? null) : null);
  }

  #isFew(): boolean {
    return this.#calls.length <= FEW;
  }

  #indexed(): Index<T> {
    if (!this.#index) {
      this.#index = new Index<T>(this.#wanted);
      for (const call of this.#calls) this.#index.add(call);
    }
    return this.#index;
  }
}

class Index<T extends Answerable> {
  readonly #wanted: CallFilter<T>;
  /** For each id, its calls grouped by message. */
  readonly byId = new Map<string, Queue<T>[]>();
  readonly idless = new Map<string, Queue<T>>();
  readonly all = new Map<string, Queue<T>>();

  constructor(wanted: CallFilter<T>) {
    this.#wanted = wanted;
  }

  add(found: T): void {
    const { id, name, idless } = found.call;
    const same = this.byId.get(id);
    const last = same?.at(-1);
    if (last && last.entry === found.entry) last.calls.push(found);
    else if (same) same.push(new Queue(found, this.#wanted));
    else this.byId.set(id, [new Queue(found, this.#wanted)]);
    for (const queues of idless ? [this.all, this.idless] : [this.all]) {
      for (const key of [`of ${name}`, ANY]) {
        const queue = queues.get(key);
        if (queue) queue.calls.push(found);
        else queues.set(key, new Queue(found, this.#wanted));
      }
    }
  }

  newest(id: string): T | null {
    const same = this.byId.get(id) ?? [];
    for (let at = same.length - 1; at >= 0; at--) {
      const found = same[at]!.first();
      if (found) return found;
      if (same[at]!.isOver && at === same.length - 1) same.pop();
    }
    return null;
  }
}

const ANY = "any";

/** Calls in order. */
class Queue<T extends Answerable> {
  /** The entry of the first one. */
  readonly entry: number;
  readonly calls: T[];
  readonly #wanted: CallFilter<T>;
  #from = 0;

  constructor(call: T, wanted: CallFilter<T>) {
    this.entry = call.entry;
    this.calls = [call];
    this.#wanted = wanted;
  }

  /** None of them will be wanted again. */
  get isOver(): boolean {
    return this.#from >= this.calls.length;
  }

  /** The first wanted one. */
  first(): T | null {
    while (this.#from < this.calls.length && this.#wanted.isOver(this.calls[this.#from]!)) this.#from += 1;
    for (let at = this.#from; at < this.calls.length; at++) {
      if (this.#wanted.is(this.calls[at]!)) return this.calls[at]!;
    }
    return null;
  }
}
