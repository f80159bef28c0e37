import type { Dialect, Entry } from "../dialect.ts";
import { grown, NONE } from "../shape.ts";
import { answeredBy, type FoundCall, type FoundResult, OpenCalls } from "./open-calls.ts";

export type { FoundCall, FoundResult };

/**
 * Which result answers which call: the one place where that is decided, for `arrange` and for whoever asks what is still open.
 *
 * A conversation falls into exchanges: one or more messages of the assistant's in a row, and what others said behind them. The result of a call
 * counts if it stands in the call's own exchange, and the first one that there is counts: once the assistant has spoken again, the past is
 * frozen, and what comes then is late (R1). Results of the provider's own calls may come in a later exchange (R8).
 */
export interface Pairing {
  readonly exchanges: readonly Exchange[];
  /** By entry and index. */
  readonly calls: readonly (readonly PairedCall[] | undefined)[];
  /** By entry and index, the call that a result answers. A result that has none is an orphan, a second one, or late. */
  readonly answers: readonly (readonly (PairedCall | undefined)[] | undefined)[];
}

export interface Exchange {
  /** Places in the list of entries. */
  readonly assistant: readonly number[];
  readonly others: readonly number[];
  readonly calls: readonly PairedCall[];
}

type Made<T> = { -readonly [K in keyof T]: T[K] };

export interface PairedCall {
  readonly call: FoundCall;
  readonly exchange: number;
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
  /** The assistant speaks while its tools run: a result does not end its part of the exchange. */
  readonly interleaved?: boolean;
}

/** Works for every dialect, one's own too, and in time that grows with the conversation, not with its square. */
export function pair<M>(entries: readonly Entry<M>[], dialect: Reader<M>): Pairing {
  const exchanges: Exchange[] = [];
  const called: (PairedCall[] | undefined)[] = new Array(entries.length);
  const answers: ((PairedCall | undefined)[] | undefined)[] = new Array(entries.length);
  const provider = new OpenCalls<PairedCall>();
  const open = new OpenCalls<PairedCall>();
  let current: Made<Exchange> = { assistant: NONE, others: NONE, calls: NONE };
  const places = new Places(entries, current);
  let closed = false;
  exchanges.push(current);

  for (let at = 0; at < entries.length; at++) {
    const entry = entries[at]!;
    const results: readonly FoundResult[] = dialect.results(entry.message);
    // A late result is for people: it does not part the assistant's messages, and answers nothing.
    if (entry.late && results.length > 0) {
      current.others = grown(current.others, at);
      continue;
    }
    const role = dialect.role(entry.message);
    const isAssistants = role === "assistant";
    if (isAssistants) {
      if (closed) {
        current = { assistant: NONE, others: NONE, calls: NONE };
        closed = false;
        exchanges.push(current);
        open.clear();
        places.begin(current);
      }
      current.assistant = grown(current.assistant, at);
      places.add(at);
      const calls = dialect.calls(entry.message);
      if (calls.length > 0) {
        const exchange = exchanges.length - 1;
        const found: PairedCall[] = new Array(calls.length);
        for (let index = 0; index < calls.length; index++) {
          const one = { call: calls[index]!, exchange, entry: at, index, answer: null, id: null };
          (one.call.by === "agent" ? open : provider).add(one);
          found[index] = one;
          current.calls = grown(current.calls, one);
        }
        called[at] = found;
      }
    } else {
      current.others = grown(current.others, at);
      closed ||= role === "tool" ? dialect.interleaved !== true : role !== "other";
    }
    const own = entry.call ? places.of(entry.call.message) : -1;
    const isPlaced = own >= 0;
    for (let index = 0; index < results.length; index++) {
      const result = results[index]!;
      const call = isPlaced ? openAt(called, own, entry.call, index) : answeredBy(result, isAssistants, open, provider);
      if (!call) continue;
      call.answer = { entry: at, index };
      const of = answers[at] ?? new Array(results.length);
      of[index] = call;
      answers[at] = of;
    }
  }
  return { exchanges, calls: called, answers };
}

function openAt(
  called: readonly (readonly PairedCall[] | undefined)[],
  own: number,
  place: Entry<unknown>["call"],
  index: number,
): PairedCall | null {
  // What was made for one call answers that one, and nothing besides.
  const call = index === 0 ? called[own]?.[place!.index] : undefined;
  return call && !call.answer ? call : null;
}

/** Where the messages of a exchange stand, by their ids. Nearly no exchange needs to know. */
class Places {
  readonly #entries: readonly Entry<unknown>[];
  #exchange: Exchange;
  #byId: Map<string, number> | null = null;

  constructor(entries: readonly Entry<unknown>[], exchange: Exchange) {
    this.#entries = entries;
    this.#exchange = exchange;
  }

  add(at: number): void {
    this.#byId?.set(this.#entries[at]!.id, at);
  }

  begin(exchange: Exchange): void {
    this.#exchange = exchange;
    this.#byId = null;
  }

  /** -1 if it is not in this exchange. */
  of(id: string): number {
    this.#byId ??= new Map(this.#exchange.assistant.map((at) => [this.#entries[at]!.id, at]));
    return this.#byId.get(id) ?? -1;
  }
}
