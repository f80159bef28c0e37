import type { Call, Dialect } from "../dialects/dialect.ts";
import { type Item, isShown } from "./item.ts";

/** What `pair` (dialects/pairing.ts) knows of a dialect besides. */
type Interleaved = { readonly interleaved?: boolean };

/** A call of the section. */
export interface SectionCall<M> {
  readonly item: Item<M>;
  readonly index: number;
  readonly call: Call;
  /** What holds its result. */
  answer: Item<M> | null;
}

/**
 * The live end of a conversation: the assistant's last messages in a row, and what came behind them. Only here may a result still be placed: once the assistant has spoken again, the past
 * is frozen (R1). Kept up as records come, so that an append costs the same whatever the length. It decides what is late and what is taken; what is shown
 * as open, `pair` decides, as it does for the view.
 */
export class Section<M> {
  readonly items: Item<M>[] = [];
  readonly #dialect: Dialect<M>;
  readonly #past: Set<string>;
  readonly #byId = new Map<string, SectionCall<M>[]>();
  readonly #byPlace = new Map<string, SectionCall<M>>();
  #closed = false;

  /** `past`: the ids of all calls that were made before. */
  constructor(dialect: Dialect<M>, past: Set<string>) {
    this.#dialect = dialect;
    this.#past = past;
  }

  /** The next message of the assistant's begins another section. */
  get isClosed(): boolean {
    return this.#closed;
  }

  get calls(): Iterable<SectionCall<M>> {
    return this.#byPlace.values();
  }

  add(item: Item<M>): void {
    this.items.push(item);
    if (!isShown(item)) return;
    const { id: message } = item.entry;
    if (item.role === "assistant") {
      const calls = this.#dialect.calls(item.entry.message);
      for (let index = 0; index < calls.length; index++) {
        const call = calls[index]!;
        const found: SectionCall<M> = { item, index, call, answer: null };
        const same = this.#byId.get(call.id);
        if (same) same.push(found);
        else this.#byId.set(call.id, [found]);
        this.#byPlace.set(placeOf(message, index), found);
      }
    } else {
      const { interleaved } = this.#dialect as Interleaved;
      this.#closed ||= item.role === "tool" ? interleaved !== true : item.role !== "other";
    }
    for (const { call } of this.#dialect.results(item.entry.message)) {
      const open = this.open(call);
      if (open) open.answer = item;
    }
  }

  /** The call that an id means: the newest that has no result (R9). */
  open(id: string): SectionCall<M> | null {
    return this.#newest(id, ({ answer }) => answer === null);
  }

  /** The newest whose result no message holds. */
  unheld(id: string): SectionCall<M> | null {
    return this.#newest(id, ({ answer }) => answer?.from === "result");
  }

  /** A call of this section has the id. */
  knows(id: string): boolean {
    return this.#byId.has(id);
  }

  at(message: string, index: number): SectionCall<M> | null {
    return this.#byPlace.get(placeOf(message, index)) ?? null;
  }

  /** All calls that these results answer were made before this section, or have been closed by a repair: the model may have seen that. */
  isLate(results: readonly { readonly call: string }[]): boolean {
    if (results.length === 0) return false;
    return results.every(({ call }) => {
      const same = this.#byId.get(call);
      return same ? same.every(({ answer }) => answer?.from === "repair") : this.#past.has(call);
    });
  }

  /** Takes back a result that no message held, until now. */
  release(call: SectionCall<M>): Item<M> | null {
    const { answer } = call;
    call.answer = null;
    const at = answer ? this.items.lastIndexOf(answer) : -1;
    if (at >= 0) this.items.splice(at, 1);
    return answer;
  }

  /** The section that comes after this one. */
  next(): Section<M> {
    for (const id of this.#byId.keys()) this.#past.add(id);
    return new Section(this.#dialect, this.#past);
  }

  #newest(id: string, fits: (call: SectionCall<M>) => boolean): SectionCall<M> | null {
    let found: SectionCall<M> | null = null;
    for (const candidate of this.#byId.get(id) ?? []) {
      if (fits(candidate) && (!found || candidate.item !== found.item)) found = candidate;
    }
    return found;
  }
}

function placeOf(message: string, index: number): string {
  return `${index} ${message}`;
}
