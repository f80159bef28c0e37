import type { Call, Dialect, Entry } from "./dialect.ts";

/**
 * Which result answers which call: the one place where that is decided, for `arrange` and for whoever asks what is still open.
 *
 * A conversation falls into sections: one or more messages of the assistant's in a row, and what others said behind them. The result of a call
 * counts if it stands in the call's own section, and the first one that there is counts: once the assistant has spoken again, the past is
 * frozen, and what comes then is late (R1). Results of the provider's own calls may come in a later section (R8).
 */
export interface Pairing {
  readonly sections: readonly Section[];
  /** By entry and index. */
  readonly calls: readonly (readonly PairedCall[] | undefined)[];
  /** By entry and index, the call that a result answers. A result that has none is an orphan, a second one, or late. */
  readonly answers: readonly (readonly (PairedCall | undefined)[] | undefined)[];
}

export interface Section {
  /** Places in the list of entries. */
  readonly assistant: number[];
  readonly others: number[];
  readonly calls: PairedCall[];
}

export interface PairedCall {
  readonly call: FoundCall;
  readonly section: number;
  /** Which entry makes the call, and as its how many-eth. */
  readonly entry: number;
  readonly index: number;
  answer: Place | null;
  /** As it is to be sent (plan.ts). Null: it is not, or that is not decided yet. */
  id: string | null;
}

/** A result: which entry holds it, and as its how many-eth. */
export interface Place {
  readonly entry: number;
  readonly index: number;
}

/** A call as the built-in dialects find it. */
export interface FoundCall extends Call {
  /** It came without an id, and `id` is a stand-in (R9). */
  readonly idless?: true;
  /** The id of the provider's call in whose course this one is made. */
  readonly caller?: string;
}

export interface FoundResult {
  readonly call: string;
  readonly name?: string;
  /** It came without an id: it answers the first call of its name that has no result yet. */
  readonly idless?: true;
}

/** The name under which a call without an id is known: the how many-eth such call of that tool in its message. */
export function standIn(name: string, count: number): string {
  return `${name}#${count}`;
}

/** Counts the calls or results without an id in one message, and names them. */
export function standIns(): (name: string) => string {
  // Made when it is needed: nearly every call has an id.
  let counts: Map<string, number> | null = null;
  return (name) => {
    counts ??= new Map();
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    return standIn(name, count);
  };
}

export interface Reader<M> extends Pick<Dialect<M>, "role" | "calls" | "results"> {
  /** The assistant speaks while its tools run: a result does not end its part of the section. */
  readonly interleaved?: boolean;
}

/** Works for every dialect, one's own too, and in time that grows with the conversation, not with its square. */
export function pair<M>(entries: readonly Entry<M>[], dialect: Reader<M>): Pairing {
  const sections: Section[] = [];
  const called: PairedCall[][] = [];
  const answers: (PairedCall | undefined)[][] = [];
  const provider = new OpenCalls();
  const open = new OpenCalls();
  let current: Section = { assistant: [], others: [], calls: [] };
  let closed = false;
  sections.push(current);

  for (let at = 0; at < entries.length; at++) {
    const entry = entries[at]!;
    const results: readonly FoundResult[] = dialect.results(entry.message);
    // A late result is for people: it does not part the assistant's messages, and answers nothing.
    if (entry.late && results.length > 0) {
      current.others.push(at);
      continue;
    }
    const role = dialect.role(entry.message);
    const isAssistants = role === "assistant";
    if (isAssistants) {
      if (closed) {
        current = { assistant: [], others: [], calls: [] };
        closed = false;
        sections.push(current);
        open.clear();
      }
      current.assistant.push(at);
      const calls = dialect.calls(entry.message);
      if (calls.length > 0) {
        const section = sections.length - 1;
        const found: PairedCall[] = [];
        for (let index = 0; index < calls.length; index++) {
          const one = { call: calls[index]!, section, entry: at, index, answer: null, id: null };
          (one.call.by === "agent" ? open : provider).add(one);
          found.push(one);
          current.calls.push(one);
        }
        called[at] = found;
      }
    } else {
      current.others.push(at);
      closed ||= role === "tool" ? dialect.interleaved !== true : role !== "other";
    }
    for (let index = 0; index < results.length; index++) {
      const result = results[index]!;
      const exact = result.idless ? null : (open.take(result.call) ?? provider.take(result.call));
      const isGuessed = exact === null && !isAssistants && !open.knows(result) && !provider.knows(result);
      const call = exact ?? (isGuessed ? open.guess(result) : null);
      if (!call) continue;
      call.answer = { entry: at, index };
      const of = answers[at] ?? [];
      of[index] = call;
      answers[at] = of;
    }
  }
  return { sections, calls: called, answers };
}

/** Most sections have few calls: up to here, looking through them is faster than an index. */
const FEW = 8;

/** Calls that have no result yet. */
class OpenCalls {
  readonly #calls: PairedCall[] = [];
  #index: Index | null = null;

  add(found: PairedCall): void {
    this.#calls.push(found);
    this.#index?.add(found);
  }

  clear(): void {
    this.#calls.length = 0;
    this.#index = null;
  }

  /** Whether a result has an id that a call has, or had: one more result for it is a second one, not one that lost its id. */
  knows({ call, idless }: FoundResult): boolean {
    if (idless) return false;
    return this.#isFew() ? this.#calls.some(({ call: { id } }) => id === call) : this.#indexed().byId.has(call);
  }

  /** By its id: of several calls with one, those of the newest message come first, in their order (R9). */
  take(id: string): PairedCall | null {
    if (!this.#isFew()) return this.#indexed().newest(id);
    let found: PairedCall | null = null;
    for (const candidate of this.#calls) {
      if (candidate.call.id !== id || candidate.answer) continue;
      if (!found || candidate.entry !== found.entry) found = candidate;
    }
    return found;
  }

  /** Where an id is missing on either side, by order and name. */
  guess({ name, idless }: FoundResult): PairedCall | null {
    const { idless: without, all } = this.#indexed();
    const key = name ? `of ${name}` : ANY;
    return without.get(key)?.first() ?? (idless ? (all.get(key)?.first() ?? null) : null);
  }

  #isFew(): boolean {
    return this.#calls.length <= FEW;
  }

  #indexed(): Index {
    if (!this.#index) {
      this.#index = new Index();
      for (const call of this.#calls) this.#index.add(call);
    }
    return this.#index;
  }
}

class Index {
  /** For each id, the calls of each message that makes them. */
  readonly byId = new Map<string, Queue[]>();
  readonly idless = new Map<string, Queue>();
  readonly all = new Map<string, Queue>();

  add(found: PairedCall): void {
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

  newest(id: string): PairedCall | null {
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
class Queue {
  /** The entry of the first one. */
  readonly entry: number;
  readonly calls: PairedCall[];
  #from = 0;

  constructor(call: PairedCall) {
    this.entry = call.entry;
    this.calls = [call];
  }

  /** The first one that has no result. */
  first(): PairedCall | null {
    while (this.#from < this.calls.length && this.calls[this.#from]!.answer) this.#from += 1;
    return this.calls[this.#from] ?? null;
  }
}
