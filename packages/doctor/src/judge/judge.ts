import { isPoisoned } from "../contract/poisoned.ts";
import { type Problem, problem } from "../contract/problem.ts";
import type { Place, SessionRecord } from "../contract/record.ts";
import type { ConversationRules } from "../contract/rules.ts";
import { hashOf, IdTable } from "./id-table.ts";
import { ThreadIds } from "./thread-ids.ts";

/**
 * Finds what is wrong with a conversation whose records can be read: calls and results that do not belong together,
 * chains with a gap, records that stand there twice. Takes the records one by one, and keeps numbers of them.
 */
export class ConversationJudge {
  readonly #rules: ConversationRules;
  readonly #threads = new Map<string, ThreadJudge>();
  readonly #bytesAt: (place: Place, length: number) => Uint8Array;

  /** `bytesAt` reads a record again, to compare it with another of the same id. */
  constructor(rules: ConversationRules, bytesAt: (place: Place, length: number) => Uint8Array) {
    this.#rules = rules;
    this.#bytesAt = bytesAt;
  }

  add(record: SessionRecord): readonly Problem[] {
    let thread = this.#threads.get(record.thread);
    if (!thread) {
      thread = new ThreadJudge(this.#rules, this.#bytesAt);
      this.#threads.set(record.thread, thread);
    }
    return thread.add(record);
  }

  *end(): Generator<Problem> {
    for (const thread of this.#threads.values()) yield* thread.end();
  }

  /** Calls that were running when the session was interrupted, and that the agent itself closes. */
  get callsInterrupted(): number {
    return [...this.#threads.values()].reduce((sum, { callsInterrupted }) => sum + callsInterrupted, 0);
  }
}

/** Most records are as they should be: this runs for every line of a file of gigabytes. */
const NONE: readonly Problem[] = [];

interface OpenCall {
  readonly place: Place;
  readonly name: string;
  readonly exchange: number;
}

class ThreadJudge {
  readonly #rules: ConversationRules;
  readonly #ids: ThreadIds;
  readonly #open = new Map<string, OpenCall>();
  /** Calls that have their results. There may be a million. */
  readonly #closed = new IdTable();
  /** Results whose calls have not come yet. */
  readonly #early = new Map<string, Place>();
  /** A user's prompt, or an answer of the model to results, begins a new one. */
  #exchange = 0;
  #sawResult = false;
  #sequence: number | null = null;
  callsInterrupted = 0;

  constructor(rules: ConversationRules, bytesAt: (place: Place, length: number) => Uint8Array) {
    this.#rules = rules;
    this.#ids = new ThreadIds(bytesAt);
  }

  add(record: SessionRecord): readonly Problem[] {
    if (record.id !== null) {
      const hash = hashOf(record.id);
      if (this.#ids.has(hash) && !this.#rules.repeatsIds) {
        const again = this.#ids.addAgain(record, hash);
        return again ? [again] : NONE;
      }
      this.#ids.add(record, hash);
    }
    const found: Problem[] = [];
    if (this.#rules.chain === "parents" && record.parent !== null) this.#ids.follow(record.parent, record.place);
    if (this.#rules.sequence === "rising" && record.sequence !== null) {
      if (this.#sequence !== null && record.sequence <= this.#sequence)
        found.push(
          problem("overlapping-sequence", record.place, { detail: `${record.sequence} after ${this.#sequence}` }),
        );
      this.#sequence = record.sequence;
    }
    for (const unit of record.units) {
      if (unit.type === "user") {
        if (this.#rules.leavesOpenCalls === true) this.#interrupt();
        this.#exchange++;
      } else if (unit.type === "result") {
        this.#sawResult = true;
        if (isPoisoned(unit.content)) found.push(problem("poisoned-result", record.place, { detail: unit.call }));
        this.#result(unit.call, record.place);
      } else if (unit.type === "assistant" || unit.type === "reasoning" || unit.type === "call") {
        // An answer shows that the calls before it were not interrupted.
        const isAnswer = unit.type === "assistant" && this.#rules.leavesOpenCalls === true;
        if (this.#sawResult || (isAnswer && this.#open.size > 0)) this.#exchange++;
        this.#sawResult = false;
        if (unit.type === "call") this.#call(unit, record, found);
      }
    }
    return found.length > 0 ? found : NONE;
  }

  /** The user went on: what was running then will have no result. */
  #interrupt(): void {
    for (const [call, { exchange }] of this.#open) {
      if (exchange !== this.#exchange) continue;
      this.#open.delete(call);
      this.#closed.set(call, 1);
      this.callsInterrupted++;
    }
  }

  #call(
    unit: { readonly id: string; readonly name: string; readonly input: unknown },
    { place, state }: SessionRecord,
    found: Problem[],
  ): void {
    const isObject = typeof unit.input === "object" && unit.input !== null && !Array.isArray(unit.input);
    // Of half a record, the input is half; that is reported already.
    if (!isObject && state !== "partial") found.push(problem("bad-tool-input", place, { detail: unit.name }));
    const early = this.#early.get(unit.id);
    if (early) {
      this.#early.delete(unit.id);
      this.#closed.set(unit.id, 1);
      found.push(problem("result-before-call", early, { detail: unit.name }));
    } else if (!this.#isClosed(unit.id)) {
      this.#open.set(unit.id, { place, name: unit.name, exchange: this.#exchange });
    }
  }

  #isClosed(call: string): boolean {
    return this.#closed.get(call) !== undefined;
  }

  #result(call: string, place: Place): void {
    if (this.#open.delete(call)) this.#closed.set(call, 1);
    else if (!this.#isClosed(call)) this.#early.set(call, place);
  }

  *end(): Generator<Problem> {
    yield* this.#ids.end();
    for (const [, { place, name, exchange }] of this.#open) {
      if (this.#rules.closesOpenCalls && exchange === this.#exchange) this.callsInterrupted++;
      else yield problem("call-without-result", place, { detail: name });
    }
    for (const [call, place] of this.#early) yield problem("result-without-call", place, { detail: call });
  }
}
