import type { Dialect } from "../dialects/dialect.ts";
import { type CallFilter, type FoundCall, type FoundResult, OpenCalls } from "../dialects/order/open-calls.ts";
import { Pairer, type Reader } from "../dialects/order/pairing.ts";
import { grown } from "../dialects/shape.ts";
import { type Item, isShown } from "./item.ts";

const NONE: readonly never[] = [];
/** Up to this many, a linear search is faster than an index. */
const FEW = 8;

/** A call of the exchange. */
export interface ExchangeCall<M> {
  readonly item: Item<M>;
  /** The index of the message in the exchange that makes it, and the index of the call in that message. */
  readonly entry: number;
  readonly index: number;
  readonly call: FoundCall;
  /** The item that holds its result. */
  answer: Item<M> | null;
  /** A person's decision about it; null if nobody was asked or nobody has answered. */
  approved: boolean | null;
}

/**
 * The live end of a conversation: the assistant's last consecutive messages, and everything after them. Only here can a
 * result still be placed: once the assistant speaks again, the past is frozen (R1). Updated record by record, so an
 * append costs the same at any length.
 */
export class Exchange<M> {
  #items: readonly Item<M>[] = NONE;
  readonly #dialect: Dialect<M>;
  readonly #pairer: Pairer<ExchangeCall<M>>;
  /** The ids of all earlier calls made to the agent's tools. A set of them is made when one is looked for: rarely. */
  readonly #pastIds: string[] = [];
  #past: Set<string> | null = null;
  /** Earlier items whose calls have not been read. */
  #passedOver: (readonly Item<M>[])[] = [];
  /** Withdrawn items that are still in the list; removed at the next read. */
  readonly #withdrawn = new Set<Item<M>>();
  #count = 0;
  #calls: readonly ExchangeCall<M>[] = NONE;
  /** Built when needed: most exchanges have few calls and end soon. */
  #byId: Map<string, ExchangeCall<M>[]> | null = null;
  #byApproval: Map<string, ExchangeCall<M>> | null = null;
  #unheld: OpenCalls<ExchangeCall<M>> | null = null;

  constructor(dialect: Dialect<M> & Pick<Reader<M>, "interleaved">) {
    this.#dialect = dialect;
    this.#pairer = new Pairer(dialect.interleaved);
  }

  get items(): readonly Item<M>[] {
    if (this.#withdrawn.size > 0) {
      this.#items = this.#items.filter((item) => !this.#withdrawn.has(item));
      this.#withdrawn.clear();
    }
    return this.#items;
  }

  /** Whether the assistant's next message starts another exchange. */
  get isClosed(): boolean {
    return this.#pairer.isClosed;
  }

  /** Whether every call has its result. */
  get isAnswered(): boolean {
    const calls = this.#calls;
    for (let i = 0; i < calls.length; i++) if (!calls[i]!.answer) return false;
    return true;
  }

  /** In order. */
  get calls(): readonly ExchangeCall<M>[] {
    return this.#calls;
  }

  /**
   * Returns the items that it replaces: results that no message held until now (R6). `known`: the results in its
   * message, if the caller has read them.
   */
  add(item: Item<M>, known?: readonly FoundResult[]): readonly Item<M>[] {
    const isAssistants = item.role === "assistant";
    // Messages hidden from the model do not separate visible ones.
    const isSeen = isShown(item);
    if (isSeen && this.#pairer.enter(item.role)) this.#begin();
    this.#items = grown(this.#items, item);
    this.#count += 1;
    if (!isSeen) return NONE;
    const { message, call: place } = item.entry;
    if (isAssistants) this.#addCalls(item);
    else if (this.#byApproval) this.#decide(message);
    const results = known ?? this.#dialect.results(message);
    if (results.length === 0) return NONE;
    let replaced: readonly Item<M>[] = NONE;
    const isFree = item.from === "message" && !(place && this.#pairer.callsOf(place.message));
    for (let index = 0; index < results.length; index++) {
      const result = results[index]!;
      const open = this.#pairer.answered(result, index, isAssistants, place);
      const call = open ?? (isFree ? this.#unheldBy(result) : null);
      if (!call) continue;
      if (call.answer) {
        replaced = grown(replaced, call.answer);
        this.#withdrawn.add(call.answer);
      }
      call.answer = item;
    }
    return replaced;
  }

  /** The call that an id refers to: the newest one without a result (R9). */
  open(id: string): ExchangeCall<M> | null {
    return this.#pairer.open(id);
  }

  /** The newest call whose result is in no message. */
  unheld(id: string): ExchangeCall<M> | null {
    return this.#unheldCalls().take(id);
  }

  /** Whether a call of this exchange has the id. */
  knows(id: string): boolean {
    return this.#with(id).length > 0;
  }

  at(message: string, index: number): ExchangeCall<M> | null {
    return this.#pairer.callsOf(message)?.[index] ?? null;
  }

  /**
   * Whether every call that these results answer was made before this exchange or was closed by a repair, which the
   * model may have seen.
   */
  isLate(results: readonly { readonly call: string }[]): boolean {
    if (results.length === 0) return false;
    for (let i = 0; i < results.length; i++) if (!this.#isOver(results[i]!.call)) return false;
    return true;
  }

  #isOver(id: string): boolean {
    const calls = this.#calls.length <= FEW ? this.#calls : this.#with(id);
    let isKnown = false;
    for (let i = 0; i < calls.length; i++) {
      const { call, answer } = calls[i]!;
      if (call.id !== id) continue;
      if (answer?.from !== "repair") return false;
      isKnown = true;
    }
    return isKnown || this.#pastCalls().has(id);
  }

  #pastCalls(): Set<string> {
    const past = this.#past ?? new Set(this.#pastIds);
    this.#past = past;
    for (const items of this.#passedOver.splice(0)) {
      for (const { role, entry } of items) {
        if (role !== "assistant") continue;
        for (const { id, by } of this.#dialect.calls(entry.message)) if (by === "agent") past.add(id);
      }
    }
    return past;
  }

  /**
   * Ends the exchange: these items follow it and are over, and the next one to add is the assistant's, which starts
   * another. They must be regular (order/regular.ts): of their calls, nothing but the ids matters any more.
   */
  passOver(items: readonly Item<M>[]): void {
    this.#passedOver.push(items);
    this.#pairer.close();
  }

  /** Forgets this exchange but keeps what is known about earlier ones. */
  clear(): void {
    this.#pairer.restart();
    this.#forget();
  }

  #begin(): void {
    for (let i = 0; i < this.#calls.length; i++) {
      const { call } = this.#calls[i]!;
      if (call.by !== "agent") continue;
      this.#pastIds.push(call.id);
      this.#past?.add(call.id);
    }
    this.#forget();
  }

  #forget(): void {
    this.#items = NONE;
    this.#withdrawn.clear();
    this.#count = 0;
    this.#calls = NONE;
    this.#byId = null;
    this.#byApproval = null;
    this.#unheld = null;
  }

  #addCalls(item: Item<M>): void {
    const entry = this.#count;
    const made: readonly FoundCall[] = this.#dialect.calls(item.entry.message);
    let calls: readonly ExchangeCall<M>[] = NONE;
    for (let index = 0; index < made.length; index++) {
      const call = made[index]!;
      if (call.requested && this.open(call.id)) continue;
      const found: ExchangeCall<M> = { item, entry, index, call, answer: null, approved: null };
      calls = grown(calls, found);
      this.#calls = grown(this.#calls, found);
      this.#unheld?.add(found);
      if (this.#byId) addTo(this.#byId, call.id, found);
      if (call.approval !== undefined) {
        this.#byApproval ??= new Map();
        if (!this.#byApproval.has(call.approval)) this.#byApproval.set(call.approval, found);
      }
    }
    this.#pairer.called(item.entry.id, calls);
  }

  /** The first decision counts. */
  #decide(message: M): void {
    for (const { approval, approved } of this.#dialect.approvals?.(message) ?? []) {
      const call = this.#byApproval!.get(approval);
      if (call) call.approved ??= approved;
    }
  }

  #with(id: string): readonly ExchangeCall<M>[] {
    if (this.#calls.length <= FEW) return this.#calls.filter(({ call }) => call.id === id);
    if (!this.#byId) {
      this.#byId = new Map();
      for (const found of this.#calls) addTo(this.#byId, found.call.id, found);
    }
    return this.#byId.get(id) ?? NONE;
  }

  /** In the same order as an open call is found (`Pairer.answered`): views, which know nothing of it, must agree. */
  #unheldBy(result: FoundResult): ExchangeCall<M> | null {
    return result.idless ? this.#unheldCalls().guess(result) : this.unheld(result.call);
  }

  /** The calls whose results are in no message. */
  #unheldCalls(): OpenCalls<ExchangeCall<M>> {
    if (!this.#unheld) {
      this.#unheld = new OpenCalls<ExchangeCall<M>>(UNHELD);
      for (const found of this.#calls) this.#unheld.add(found);
    }
    return this.#unheld;
  }
}

const UNHELD: CallFilter<ExchangeCall<unknown>> = {
  is: ({ answer }) => answer?.from === "result",
  isOver: ({ answer }) => answer !== null && answer.from !== "result",
};

function addTo<M>(map: Map<string, ExchangeCall<M>[]>, key: string, call: ExchangeCall<M>): void {
  const calls = map.get(key);
  if (calls) calls.push(call);
  else map.set(key, [call]);
}
