import type { Dialect } from "../dialects/dialect.ts";
import { answeredBy, type FoundCall, type FoundResult, OpenCalls, type Wanted } from "../dialects/order/open-calls.ts";
import type { Reader } from "../dialects/order/pairing.ts";
import { grown } from "../dialects/shape.ts";
import { type Item, isShown } from "./item.ts";

const NONE: readonly never[] = [];
/** Up to here, looking through them is faster than an index. */
const FEW = 8;

/** A call of the exchange. */
export interface ExchangeCall<M> {
  readonly item: Item<M>;
  /** Which of the exchange's messages makes it, and as its how many-eth call. */
  readonly entry: number;
  readonly index: number;
  readonly call: FoundCall;
  /** What holds its result. */
  answer: Item<M> | null;
  /** What a person decided of it; null if nobody was asked, or has answered. */
  approved: boolean | null;
}

/**
 * The live end of a conversation: the assistant's last messages in a row, and what came behind them. Only here may a result still be placed: once the assistant has spoken again, the past
 * is frozen (R1). Kept up as records come, so that an append costs the same whatever the length. It pairs as `pair` does for the view, message by message.
 */
export class Exchange<M> {
  #items: readonly Item<M>[] = NONE;
  readonly #dialect: Dialect<M> & Pick<Reader<M>, "interleaved">;
  /** The ids of all calls of the agent's that were made before. */
  readonly #past = new Set<string>();
  /** Withdrawn items that still stand in the list: taken out when somebody looks. */
  readonly #withdrawn = new Set<Item<M>>();
  #count = 0;
  readonly #open = new OpenCalls<ExchangeCall<M>>();
  readonly #provider = new OpenCalls<ExchangeCall<M>>();
  #calls: readonly ExchangeCall<M>[] = NONE;
  /** Made when they are needed: nearly every exchange has few calls, and is soon over. */
  #byId: Map<string, ExchangeCall<M>[]> | null = null;
  #byMessage: Map<string, ExchangeCall<M>[]> | null = null;
  #byApproval: Map<string, ExchangeCall<M>> | null = null;
  #unheld: OpenCalls<ExchangeCall<M>> | null = null;
  #closed = false;

  constructor(dialect: Dialect<M>) {
    this.#dialect = dialect;
  }

  get items(): readonly Item<M>[] {
    if (this.#withdrawn.size > 0) {
      this.#items = this.#items.filter((item) => !this.#withdrawn.has(item));
      this.#withdrawn.clear();
    }
    return this.#items;
  }

  /** The next message of the assistant's begins another exchange. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** In their order. */
  get calls(): readonly ExchangeCall<M>[] {
    return this.#calls;
  }

  /** Answers the items whose place it takes: results that no message held until now (R6). */
  add(item: Item<M>): readonly Item<M>[] {
    const isAssistants = item.role === "assistant";
    // What the model does not see does not part what it does.
    const isSeen = isShown(item);
    if (isAssistants && isSeen && this.#closed) this.#begin();
    this.#items = grown(this.#items, item);
    this.#count += 1;
    if (!isSeen) return NONE;
    const { message, call: place } = item.entry;
    if (isAssistants) this.#addCalls(item);
    else {
      const { interleaved } = this.#dialect;
      this.#closed ||= item.role === "tool" ? interleaved !== true : item.role !== "other";
      if (this.#byApproval) this.#decide(message);
    }
    const results: readonly FoundResult[] = this.#dialect.results(message);
    if (results.length === 0) return NONE;
    let replaced: readonly Item<M>[] = NONE;
    const own = place && this.#placed().has(place.message) ? this.at(place.message, place.index) : undefined;
    for (let index = 0; index < results.length; index++) {
      const result = results[index]!;
      const open = answeredBy(result, isAssistants, this.#open, this.#provider);
      const call = own === undefined ? (open ?? (item.from === "message" ? this.#unheldBy(result) : null)) : own;
      if (!call || (own !== undefined && (index > 0 || call.answer))) continue;
      if (call.answer) {
        replaced = grown(replaced, call.answer);
        this.#withdrawn.add(call.answer);
      }
      call.answer = item;
    }
    return replaced;
  }

  /** The call that an id means: the newest that has no result (R9). */
  open(id: string): ExchangeCall<M> | null {
    return this.#open.take(id) ?? this.#provider.take(id);
  }

  /** The newest whose result no message holds. */
  unheld(id: string): ExchangeCall<M> | null {
    return this.#unheldCalls().take(id);
  }

  /** A call of this exchange has the id. */
  knows(id: string): boolean {
    return this.#with(id).length > 0;
  }

  at(message: string, index: number): ExchangeCall<M> | null {
    return this.#placed().get(message)?.[index] ?? null;
  }

  /** All calls that these results answer were made before this exchange, or have been closed by a repair: the model may have seen that. */
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
    return isKnown || this.#past.has(id);
  }

  /** The assistant speaks again. */
  #begin(): void {
    for (let i = 0; i < this.#calls.length; i++) {
      const { call } = this.#calls[i]!;
      if (call.by === "agent") this.#past.add(call.id);
    }
    this.clear();
  }

  /** As if nothing of this exchange had been said; what was before it stays known. */
  clear(): void {
    this.#items = NONE;
    this.#withdrawn.clear();
    this.#count = 0;
    this.#open.clear();
    this.#provider.clear();
    this.#calls = NONE;
    this.#byId = null;
    this.#byMessage = null;
    this.#byApproval = null;
    this.#unheld = null;
    this.#closed = false;
  }

  #addCalls(item: Item<M>): void {
    const entry = this.#count;
    const calls: readonly FoundCall[] = this.#dialect.calls(item.entry.message);
    this.#byMessage?.set(item.entry.id, []);
    for (let index = 0; index < calls.length; index++) {
      const call = calls[index]!;
      const found: ExchangeCall<M> = { item, entry, index, call, answer: null, approved: null };
      this.#calls = grown(this.#calls, found);
      (call.by === "provider" ? this.#provider : this.#open).add(found);
      this.#unheld?.add(found);
      if (this.#byId) addTo(this.#byId, call.id, found);
      if (this.#byMessage) addTo(this.#byMessage, item.entry.id, found);
      if (call.approval !== undefined) {
        this.#byApproval ??= new Map();
        if (!this.#byApproval.has(call.approval)) this.#byApproval.set(call.approval, found);
      }
    }
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

  #placed(): ReadonlyMap<string, readonly ExchangeCall<M>[]> {
    if (!this.#byMessage) {
      this.#byMessage = new Map();
      for (const item of this.items) {
        if (item.role === "assistant" && isShown(item)) this.#byMessage.set(item.entry.id, []);
      }
      for (const found of this.#calls) addTo(this.#byMessage, found.item.entry.id, found);
    }
    return this.#byMessage;
  }

  #unheldBy({ call, name, idless }: FoundResult): ExchangeCall<M> | null {
    return idless ? this.#unheldCalls().first(name) : this.unheld(call);
  }

  /** Those whose result no message holds. */
  #unheldCalls(): OpenCalls<ExchangeCall<M>> {
    if (!this.#unheld) {
      this.#unheld = new OpenCalls<ExchangeCall<M>>(UNHELD);
      for (const found of this.#calls) this.#unheld.add(found);
    }
    return this.#unheld;
  }
}

const UNHELD: Wanted<ExchangeCall<unknown>> = {
  is: ({ answer }) => answer?.from === "result",
  isOver: ({ answer }) => answer !== null && answer.from !== "result",
};

function addTo<M>(map: Map<string, ExchangeCall<M>[]>, key: string, call: ExchangeCall<M>): void {
  const calls = map.get(key);
  if (calls) calls.push(call);
  else map.set(key, [call]);
}
