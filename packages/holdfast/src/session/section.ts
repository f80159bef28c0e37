import type { Dialect } from "../dialects/dialect.ts";
import { answeredBy, type FoundCall, type FoundResult, OpenCalls } from "../dialects/open-calls.ts";
import type { Reader } from "../dialects/pairing.ts";
import { type Item, isShown } from "./item.ts";

/** A call of the section. */
export interface SectionCall<M> {
  readonly item: Item<M>;
  /** Which of the section's messages makes it, and as its how many-eth call. */
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
export class Section<M> {
  readonly items: Item<M>[] = [];
  readonly #dialect: Dialect<M> & Pick<Reader<M>, "interleaved">;
  readonly #past: Set<string>;
  readonly #open = new OpenCalls<SectionCall<M>>();
  readonly #provider = new OpenCalls<SectionCall<M>>();
  readonly #byId = new Map<string, SectionCall<M>[]>();
  readonly #byMessage = new Map<string, readonly SectionCall<M>[]>();
  #byApproval: Map<string, SectionCall<M>> | null = null;
  #closed = false;

  /** `past`: the ids of all calls of the agent's that were made before. */
  constructor(dialect: Dialect<M>, past: Set<string>) {
    this.#dialect = dialect;
    this.#past = past;
  }

  /** The next message of the assistant's begins another section. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** In their order. */
  get calls(): SectionCall<M>[] {
    return [...this.#byMessage.values()].flat();
  }

  /** Answers the items whose place it takes: results that no message held until now (R6). */
  add(item: Item<M>): Item<M>[] {
    this.items.push(item);
    if (!isShown(item)) return [];
    const { message, call: place } = item.entry;
    const isAssistants = item.role === "assistant";
    if (isAssistants) this.#addCalls(item);
    else {
      const { interleaved } = this.#dialect;
      this.#closed ||= item.role === "tool" ? interleaved !== true : item.role !== "other";
      if (this.#byApproval) this.#decide(message);
    }
    const replaced: Item<M>[] = [];
    const results: readonly FoundResult[] = this.#dialect.results(message);
    const own = place && this.#byMessage.has(place.message) ? this.at(place.message, place.index) : undefined;
    for (let index = 0; index < results.length; index++) {
      const result = results[index]!;
      const open = answeredBy(result, isAssistants, this.#open, this.#provider);
      const call = own === undefined ? (open ?? (item.from === "message" ? this.#unheldBy(result) : null)) : own;
      if (!call || (own !== undefined && (index > 0 || call.answer))) continue;
      if (call.answer) replaced.push(this.#withdrawn(call.answer));
      call.answer = item;
    }
    return replaced;
  }

  /** The call that an id means: the newest that has no result (R9). */
  open(id: string): SectionCall<M> | null {
    return this.#open.take(id) ?? this.#provider.take(id);
  }

  /** The newest whose result no message holds. */
  unheld(id: string): SectionCall<M> | null {
    return firstOfNewest(this.#byId.get(id) ?? [], ({ answer }) => answer?.from === "result");
  }

  /** A call of this section has the id. */
  knows(id: string): boolean {
    return this.#byId.has(id);
  }

  at(message: string, index: number): SectionCall<M> | null {
    return this.#byMessage.get(message)?.[index] ?? null;
  }

  /** All calls that these results answer were made before this section, or have been closed by a repair: the model may have seen that. */
  isLate(results: readonly { readonly call: string }[]): boolean {
    if (results.length === 0) return false;
    return results.every(({ call }) => {
      const same = this.#byId.get(call);
      return same ? same.every(({ answer }) => answer?.from === "repair") : this.#past.has(call);
    });
  }

  /** The section that comes after this one. */
  next(): Section<M> {
    for (const [id, calls] of this.#byId) if (calls.some(({ call: { by } }) => by === "agent")) this.#past.add(id);
    return new Section(this.#dialect, this.#past);
  }

  #addCalls(item: Item<M>): void {
    const entry = this.items.length;
    const made: SectionCall<M>[] = [];
    for (const [index, call] of (this.#dialect.calls(item.entry.message) as FoundCall[]).entries()) {
      const found: SectionCall<M> = { item, entry, index, call, answer: null, approved: null };
      made.push(found);
      (call.by === "provider" ? this.#provider : this.#open).add(found);
      const same = this.#byId.get(call.id);
      if (same) same.push(found);
      else this.#byId.set(call.id, [found]);
      if (call.approval !== undefined) {
        this.#byApproval ??= new Map();
        if (!this.#byApproval.has(call.approval)) this.#byApproval.set(call.approval, found);
      }
    }
    this.#byMessage.set(item.entry.id, made);
  }

  /** The first decision counts. */
  #decide(message: M): void {
    for (const { approval, approved } of this.#dialect.approvals?.(message) ?? []) {
      const call = this.#byApproval!.get(approval);
      if (call) call.approved ??= approved;
    }
  }

  #unheldBy({ call, name, idless }: FoundResult): SectionCall<M> | null {
    if (!idless) return this.unheld(call);
    return (
      this.calls.find(
        ({ answer, call: made }) => answer?.from === "result" && (name === undefined || made.name === name),
      ) ?? null
    );
  }

  #withdrawn(answer: Item<M>): Item<M> {
    const at = this.items.lastIndexOf(answer);
    if (at >= 0) this.items.splice(at, 1);
    return answer;
  }
}

/** Of several calls with one id, those of the newest message come first, in their order. */
function firstOfNewest<M>(
  calls: readonly SectionCall<M>[],
  fits: (call: SectionCall<M>) => boolean,
): SectionCall<M> | null {
  let found: SectionCall<M> | null = null;
  for (const candidate of calls) {
    if (fits(candidate) && (!found || candidate.entry !== found.entry)) found = candidate;
  }
  return found;
}
