import type { Dialect } from "../dialects/dialect.ts";
import { answeredBy, type FoundCall, type FoundResult, OpenCalls, type Wanted } from "../dialects/order/open-calls.ts";
import type { Reader } from "../dialects/order/pairing.ts";
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
 * append costs the same at any length. It pairs message by message, as `pair` does for the view.
 */
export class Exchange<M> {
  #items: readonly Item<M>[] = NONE;
  readonly #dialect: Dialect<M> & Pick<Reader<M>, "interleaved">;
  /** The ids of all earlier calls made to the agent's tools. */
  readonly #past = new Set<string>();
  /** Withdrawn items that are still in the list; removed at the next read. */
  readonly #withdrawn = new Set<Item<M>>();
  #count = 0;
  readonly #open = new OpenCalls<ExchangeCall<M>>();
  readonly #provider = new OpenCalls<ExchangeCall<M>>();
  #calls: readonly ExchangeCall<M>[] = NONE;
  /** Built when needed: most exchanges have few calls and end soon. */
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

  /** Whether the assistant's next message starts another exchange. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** In order. */
  get calls(): readonly ExchangeCall<M>[] {
    return this.#calls;
  }

  /** Returns the items that it replaces: results that no message held until now (R6). */
  add(item: Item<M>): readonly Item<M>[] {
    const isAssistants = item.role === "assistant";
    // Messages hidden from the model do not separate visible ones.
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

  /** The call that an id refers to: the newest one without a result (R9). */
  open(id: string): ExchangeCall<M> | null {
    return this.#open.take(id) ?? this.#provider.take(id);
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
    return this.#placed().get(message)?.[index] ?? null;
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
    return isKnown || this.#past.has(id);
  }

  /** Starts a new exchange when the assistant speaks again. */
  #begin(): void {
    for (let i = 0; i < this.#calls.length; i++) {
      const { call } = this.#calls[i]!;
      if (call.by === "agent") this.#past.add(call.id);
    }
    this.clear();
  }

  /** Forgets this exchange but keeps what is known about earlier ones. */
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

  /** The calls whose results are in no message. */
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
