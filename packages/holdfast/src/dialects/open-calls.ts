import type { Call } from "./dialect.ts";
import { grown, NONE } from "./shape.ts";

/** A call as the built-in dialects find it. */
export interface FoundCall extends Call {
  /** It came without an id, and `id` is a stand-in (R9). */
  readonly idless?: true;
  /** The id of the provider's call in whose course this one is made. */
  readonly caller?: string;
  /** The provider's, which it never leaves for the next request to finish: without its result it is not sent. */
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
  /** Which entry makes the call. */
  readonly entry: number;
  /** Null: there is none yet. */
  readonly answer: unknown;
}

/** The call that a result in a message answers, if any. `isAssistants`: the message is. */
export function answeredBy<T extends Answerable>(
  result: FoundResult,
  isAssistants: boolean,
  open: OpenCalls<T>,
  provider: OpenCalls<T>,
): T | null {
  const exact = result.idless ? null : (open.take(result.call) ?? provider.take(result.call));
  if (exact) return exact;
  const isGuessed = !isAssistants && !open.knows(result) && !provider.knows(result);
  return isGuessed ? open.guess(result) : null;
}

/** Most sections have few calls: up to here, looking through them is faster than an index. */
const FEW = 8;

/** Calls that have no result yet. */
export class OpenCalls<T extends Answerable> {
  #calls: readonly T[] = NONE;
  #index: Index<T> | null = null;

  add(found: T): void {
    this.#calls = grown(this.#calls, found);
    this.#index?.add(found);
  }

  clear(): void {
    this.#calls = NONE;
    this.#index = null;
  }

  /** Whether a result has an id that a call has, or had: one more result for it is a second one, not one that lost its id. */
  knows({ call, idless }: FoundResult): boolean {
    if (idless) return false;
    return this.#isFew() ? this.#calls.some(({ call: { id } }) => id === call) : this.#indexed().byId.has(call);
  }

  /** By its id: of several calls with one, those of the newest message come first, in their order (R9). */
  take(id: string): T | null {
    if (!this.#isFew()) return this.#indexed().newest(id);
    let found: T | null = null;
    const calls = this.#calls;
    for (let i = 0; i < calls.length; i++) {
      const candidate = calls[i]!;
      if (candidate.call.id !== id || candidate.answer) continue;
      if (!found || candidate.entry !== found.entry) found = candidate;
    }
    return found;
  }

  /** Where an id is missing on either side, by order and name. */
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
      this.#index = new Index<T>();
      for (const call of this.#calls) this.#index.add(call);
    }
    return this.#index;
  }
}

class Index<T extends Answerable> {
  /** For each id, the calls of each message that makes them. */
  readonly byId = new Map<string, Queue<T>[]>();
  readonly idless = new Map<string, Queue<T>>();
  readonly all = new Map<string, Queue<T>>();

  add(found: T): void {
    const { id, name, idless } = found.call;
    const same = this.byId.get(id);
    const last = same?.at(-1);
    if (last && last.entry === found.entry) last.calls.push(found);
    else if (same) same.push(new Queue(found));
    else this.byId.set(id, [new Queue(found)]);
    for (const queues of idless ? [this.all, this.idless] : [this.all]) {
      for (const key of [`of ${name}`, ANY]) {
        const queue = queues.get(key);
        if (queue) queue.calls.push(found);
        else queues.set(key, new Queue(found));
      }
    }
  }

  newest(id: string): T | null {
    const same = this.byId.get(id);
    for (let last = same?.at(-1); last; last = same?.at(-1)) {
      const found = last.first();
      if (found) return found;
      same!.pop();
    }
    return null;
  }
}

const ANY = "any";

/** Calls in their order. */
class Queue<T extends Answerable> {
  /** The entry of the first one. */
  readonly entry: number;
  readonly calls: T[];
  #from = 0;

  constructor(call: T) {
    this.entry = call.entry;
    this.calls = [call];
  }

  /** The first one that has no result. */
  first(): T | null {
    while (this.#from < this.calls.length && this.calls[this.#from]!.answer) this.#from += 1;
    return this.calls[this.#from] ?? null;
  }
}
