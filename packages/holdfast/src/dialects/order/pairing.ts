import type { Json } from "../../journal/record.ts";
import type { Dialect, Entry } from "../dialect.ts";
import { grown, NONE } from "../shape.ts";
import { type Answerable, type FoundCall, type FoundResult, OpenCalls } from "./open-calls.ts";

export type { FoundCall, FoundResult };

/** Which result answers which call, in a list of entries. */
export interface Pairing {
  readonly exchanges: readonly PairedExchange[];
  /** By entry and index. */
  readonly calls: readonly (readonly PairedCall[] | undefined)[];
  /**
   * By entry and index, the call that a result answers. A result without one is an orphan, a second result, or late.
   */
  readonly answers: readonly (readonly (PairedCall | undefined)[] | undefined)[];
}

export interface PairedExchange {
  /** Indices into the list of entries. */
  readonly assistant: readonly number[];
  readonly others: readonly number[];
  readonly calls: readonly PairedCall[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export interface PairedCall {
  readonly call: FoundCall;
  readonly exchange: number;
  /** The index of the entry that makes the call, and the index of the call in that entry. */
  readonly entry: number;
  readonly index: number;
  answer: ResultPlace | null;
  /** The id that is sent (plan.ts). Null: it is not sent, or that is not decided yet. */
  id: string | null;
}

/** A result: the index of its entry, and its index in that entry. */
export interface ResultPlace {
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

/**
 * Decides which result answers which call, message by message: live, at resume, and in views. This is the only place
 * that decides it; `open-calls` holds the search by id. Works for every dialect, including the application's own; a
 * message costs the same at any length.
 *
 * A conversation consists of exchanges: one or more consecutive assistant messages, and what others said after them. A
 * result counts if it is in its call's own exchange, and the first one counts: once the assistant has spoken again, the
 * past is frozen, and later results are late (R1). Results of the provider's own calls may come in a later exchange
 * (R8).
 */
export class Pairer<C extends Answerable> {
  readonly #isInterleaved: boolean;
  readonly #open = new OpenCalls<C>();
  /** The provider's calls of this exchange, and of earlier ones. */
  readonly #provider = new OpenCalls<C>();
  readonly #earlier = new OpenCalls<C>();
  /** The ids of this exchange's assistant messages, and their calls. */
  #messages: readonly string[] = NONE;
  #calls: readonly (readonly C[])[] = NONE;
  #byMessage: Map<string, readonly C[]> | null = null;
  #isClosed = false;

  constructor(isInterleaved = false) {
    this.#isInterleaved = isInterleaved;
  }

  /** Whether the assistant's next message starts another exchange. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Call it first for every message that the model is shown. Returns whether the message starts an exchange. */
  enter(role: ReturnType<Dialect<never>["role"]>): boolean {
    if (role !== "assistant") {
      this.#isClosed ||= closesExchange(role, this.#isInterleaved);
      return false;
    }
    if (!this.#isClosed) return false;
    this.#earlier.absorb(this.#provider);
    this.restart();
    return true;
  }

  /** The assistant's next message starts another exchange. */
  close(): void {
    this.#isClosed = true;
  }

  /** Forgets this exchange, not the ones before it. */
  restart(): void {
    this.#open.clear();
    this.#provider.clear();
    this.#messages = NONE;
    this.#calls = NONE;
    this.#byMessage = null;
    this.#isClosed = false;
  }

  /** Adds the calls of an assistant message. */
  called(message: string, calls: readonly C[]): void {
    for (let i = 0; i < calls.length; i++) {
      const one = calls[i]!;
      (one.call.by === "agent" ? this.#open : this.#provider).add(one);
    }
    this.#messages = grown(this.#messages, message);
    this.#calls = grown(this.#calls, calls);
    this.#byMessage?.set(message, calls);
  }

  /** The calls of a message of this exchange; undefined if it is not the assistant's, or not in this exchange. */
  callsOf(message: string): readonly C[] | undefined {
    if (!this.#byMessage) {
      this.#byMessage = new Map();
      for (let i = 0; i < this.#messages.length; i++) this.#byMessage.set(this.#messages[i]!, this.#calls[i]!);
    }
    return this.#byMessage.get(message);
  }

  /** The call of this exchange that an id refers to: the newest one without a result (R9). */
  open(id: string): C | null {
    return this.#open.take(id) ?? this.#provider.take(id);
  }

  /** The call that a message's result answers, if any. `made`: the one call that the message was made for. */
  answered(result: FoundResult, index: number, isAssistants: boolean, made: Entry<unknown>["call"]): C | null {
    const own = made && this.callsOf(made.message);
    if (own) {
      const call = index === 0 ? own[made.index] : undefined;
      return call && !call.answer ? call : null;
    }
    const exact = result.idless ? null : (this.open(result.call) ?? this.#earlier.take(result.call));
    if (exact || isAssistants || this.#knows(result)) return exact;
    return this.#open.guess(result);
  }

  #knows(result: FoundResult): boolean {
    return this.#open.knows(result) || this.#provider.knows(result) || this.#earlier.knows(result);
  }
}

/** Whether the assistant's next message starts another exchange, after a message with this role, which is another's. */
export function closesExchange(role: ReturnType<Dialect<never>["role"]>, isInterleaved: boolean): boolean {
  return role === "tool" ? !isInterleaved : role !== "other";
}

/** In linear time. */
export function pair<M>(entries: readonly Entry<M>[], dialect: Reader<M>): Pairing {
  const called: (readonly PairedCall[] | undefined)[] = new Array(entries.length);
  const answers: ((PairedCall | undefined)[] | undefined)[] = new Array(entries.length);
  const pairer = new Pairer<PairedCall>(dialect.interleaved);
  let current: Mutable<PairedExchange> = { assistant: NONE, others: NONE, calls: NONE };
  const exchanges: PairedExchange[] = [current];

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
    if (pairer.enter(role)) {
      current = { assistant: NONE, others: NONE, calls: NONE };
      exchanges.push(current);
    }
    if (isAssistants) {
      current.assistant = grown(current.assistant, at);
      const made = dialect.calls(entry.message);
      const calls: readonly PairedCall[] = made.length === 0 ? NONE : pairedCalls(made, exchanges.length - 1, at);
      pairer.called(entry.id, calls);
      for (let index = 0; index < calls.length; index++) current.calls = grown(current.calls, calls[index]!);
      if (calls.length > 0) called[at] = calls;
    } else current.others = grown(current.others, at);
    for (let index = 0; index < results.length; index++) {
      const call = pairer.answered(results[index]!, index, isAssistants, entry.call);
      if (!call) continue;
      call.answer = { entry: at, index };
      const of = answers[at] ?? new Array(results.length);
      of[index] = call;
      answers[at] = of;
    }
  }
  return { exchanges, calls: called, answers };
}

function pairedCalls(calls: readonly FoundCall[], exchange: number, entry: number): PairedCall[] {
  const found: PairedCall[] = new Array(calls.length);
  for (let index = 0; index < calls.length; index++)
    found[index] = { call: calls[index]!, exchange, entry, index, answer: null, id: null };
  return found;
}

/**
 * Whether a message that is recorded need not be made again: the tries so far do not count any more. What an agent says
 * in pieces is lost to it when it dies; the result of a call is not.
 */
export function isProgress<M>(dialect: Dialect<M> & Pick<Reader<M>, "interleaved">, stored: Json): boolean {
  if (dialect.interleaved !== true) return true;
  return dialect.results(dialect.decode ? dialect.decode(stored) : (stored as M)).length > 0;
}
