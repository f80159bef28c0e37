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
  /** By `place`, the call that a result answers. A result that is not in here is an orphan, a second one, or late. */
  readonly answers: ReadonlyMap<string, PairedCall>;
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
  const counts = new Map<string, number>();
  return (name) => {
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    return standIn(name, count);
  };
}

export function place(entry: number, index: number): string {
  return `${entry}.${index}`;
}

/** Works for every dialect, one's own too, and in time that grows with the conversation, not with its square. */
export function pair<M>(
  entries: readonly Entry<M>[],
  dialect: Pick<Dialect<M>, "role" | "calls" | "results">,
): Pairing {
  const sections: Section[] = [];
  const answers = new Map<string, PairedCall>();
  const provider = new OpenCalls();
  let open = new OpenCalls();
  let current: Section = { assistant: [], others: [], calls: [] };
  let closed = false;
  sections.push(current);

  for (const [at, entry] of entries.entries()) {
    const results: readonly FoundResult[] = dialect.results(entry.message);
    // A late result is for people: it does not part the assistant's messages, and answers nothing.
    if (entry.late && results.length > 0) {
      current.others.push(at);
      continue;
    }
    const isAssistants = dialect.role(entry.message) === "assistant";
    if (isAssistants) {
      if (closed) {
        current = { assistant: [], others: [], calls: [] };
        closed = false;
        sections.push(current);
        open = new OpenCalls();
      }
      current.assistant.push(at);
      for (const [index, call] of dialect.calls(entry.message).entries()) {
        const found: PairedCall = { call, section: sections.length - 1, entry: at, index, answer: null };
        current.calls.push(found);
        (call.by === "agent" ? open : provider).add(found);
      }
    } else {
      current.others.push(at);
      closed = true;
    }
    for (const [index, result] of results.entries()) {
      const exact = result.idless ? null : (open.takeExact(result.call) ?? provider.takeExact(result.call));
      const isGuessed = exact === null && !isAssistants && !open.knows(result) && !provider.knows(result);
      const call = exact ?? (isGuessed ? open.guess(result) : null);
      if (!call) continue;
      call.answer = { entry: at, index };
      answers.set(place(at, index), call);
    }
  }
  return { sections, answers };
}

/** Calls that have no result yet. */
class OpenCalls {
  readonly #byId = new Map<string, PairedCall[]>();
  readonly #idless = new Queues();
  readonly #all = new Queues();

  add(found: PairedCall): void {
    const same = this.#byId.get(found.call.id);
    if (same) same.push(found);
    else this.#byId.set(found.call.id, [found]);
    this.#all.add(found);
    if (found.call.idless) this.#idless.add(found);
  }

  /** Whether a result has an id that a call has, or had: one more result for it is a second one, not one that lost its id. */
  knows({ call, idless }: FoundResult): boolean {
    return !idless && this.#byId.has(call);
  }

  /** Where an id is missing on either side, by order and name. */
  guess({ name, idless }: FoundResult): PairedCall | null {
    return this.#idless.first(name) ?? (idless ? this.#all.first(name) : null);
  }

  /** Of several calls with one id, those of the newest message come first, in their order (R9). */
  takeExact(id: string): PairedCall | null {
    const same = this.#byId.get(id);
    if (!same) return null;
    let found = same.length - 1;
    while (found >= 0 && same[found]!.answer) found -= 1;
    if (found < 0) {
      same.length = 0;
      return null;
    }
    for (let i = found - 1; i >= 0 && same[i]!.entry === same[found]!.entry; i--) if (!same[i]!.answer) found = i;
    return same.splice(found, 1)[0]!;
  }
}

/** Calls in their order, of each name and of all together. */
class Queues {
  readonly #queues = new Map<string | undefined, { readonly calls: PairedCall[]; from: number }>();

  add(found: PairedCall): void {
    for (const name of [found.call.name, undefined]) {
      const queue = this.#queues.get(name);
      if (queue) queue.calls.push(found);
      else this.#queues.set(name, { calls: [found], from: 0 });
    }
  }

  /** The first one that has no result. */
  first(name: string | undefined): PairedCall | null {
    const queue = this.#queues.get(name);
    if (!queue) return null;
    while (queue.from < queue.calls.length && queue.calls[queue.from]!.answer) queue.from += 1;
    return queue.calls[queue.from] ?? null;
  }
}
