import type { Dialect, Entry } from "../dialect.ts";
import { grown, NONE } from "../shape.ts";
import { answeredBy, type FoundCall, type FoundResult, OpenCalls } from "./open-calls.ts";

export type { FoundCall, FoundResult };

/**
 * Which result answers which call. This is the only place that decides it, for `arrange` and for everything that asks
 * which calls are open.
 * A conversation consists of exchanges: one or more consecutive assistant messages, and what others said after them. A
 * result counts if it is in its call's own exchange, and the first one counts: once the assistant has spoken again, the
 * past is frozen, and later results are late (R1). Results of the provider's own calls may come in a later exchange
 * (R8).
 */
export interface Pairing {
  readonly exchanges: readonly Exchange[];
  /** By entry and index. */
  readonly calls: readonly (readonly PairedCall[] | undefined)[];
  /**
   * By entry and index, the call that a result answers. A result without one is an orphan, a second result, or late.
   */
  readonly answers: readonly (readonly (PairedCall | undefined)[] | undefined)[];
}

export interface Exchange {
  /** Indices into the list of entries. */
  readonly assistant: readonly number[];
  readonly others: readonly number[];
  readonly calls: readonly PairedCall[];
}

type Made<T> = { -readonly [K in keyof T]: T[K] };

export interface PairedCall {
  readonly call: FoundCall;
  readonly exchange: number;
  /** The index of the entry that makes the call, and the index of the call in that entry. */
  readonly entry: number;
  readonly index: number;
  answer: Place | null;
  /** The id that is sent (plan.ts). Null: it is not sent, or that is not decided yet. */
  id: string | null;
}

/** A result: the index of its entry, and its index in that entry. */
export interface Place {
  readonly entry: number;
  readonly index: number;
}

/** The stand-in id of a call without an id: the tool's name, and the number of such calls before it in the message. */
export function standIn(name: string, count: number): string {
  return `${name}#${count}`;
}

/** Counts and names the calls or results without an id in one message. */
export function standIns(): (name: string) => string {
  // Created when needed: nearly every call has an id.
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

/** Works for every dialect, including the application's own, in linear time. */
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
    // A late result is for people: it does not separate the assistant's messages, and answers nothing.
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
  // A result made for one call answers only that call.
  const call = index === 0 ? called[own]?.[place!.index] : undefined;
  return call && !call.answer ? call : null;
}

/** The positions of an exchange's messages, by id. Rarely needed. */
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
