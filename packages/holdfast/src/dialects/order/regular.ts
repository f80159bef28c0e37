import type { Entry } from "../dialect.ts";

/** A call that the next result must answer. */
export interface AwaitedCall {
  readonly id: string;
  readonly name: string;
  /** The entry that makes it, and the index of the call in that entry. */
  readonly entry: string;
  readonly index: number;
}

/**
 * Recognises a regular conversation, entry by entry: one in which a dialect's `arrange` would move, rename, join,
 * change and leave out nothing, because each call is answered right behind it, in order. Most conversations are
 * regular, and showing them takes no plan. In doubt a conversation is not regular: then `arrange` decides.
 *
 * A regular entry makes no call that the provider runs, and its results answer calls of the same exchange that had no
 * result.
 *
 * Assumes that all texts are well-formed, and that no reasoning is stale or foreign (plan.ts).
 */
export abstract class RegularOrder<M> {
  /** The role of the entry before. */
  protected last: "system" | "user" | "assistant" | "tool" | null = null;
  /** The ids of the calls so far. */
  protected ids: Set<string> = new Set();
  #calls: AwaitedCall[] = [];
  #answered = 0;

  /** Adds what the model is shown of the next entry to `out`. False: the conversation is not regular. */
  abstract pass(entry: Entry<M>, out: M[]): boolean;

  /** No call waits for its result, so the messages so far are a whole view. */
  get isSettled(): boolean {
    return this.#answered === this.#calls.length;
  }

  /** The entry makes this call. False if its id is missing or was used before. */
  protected calls(entry: Entry<M>, id: unknown, name: string): boolean {
    if (typeof id !== "string" || id === "") return false;
    const before = this.ids.size;
    if (this.ids.add(id).size === before) return false;
    this.awaits(entry, id, name);
    return true;
  }

  /** The same, for a call that may lack an id. */
  protected awaits(entry: Entry<M>, id: string, name: string): void {
    if (this.isSettled) {
      this.#calls = [];
      this.#answered = 0;
    }
    const before = this.#calls[this.#calls.length - 1];
    const index = before?.entry === entry.id ? before.index + 1 : 0;
    this.#calls.push({ id, name, entry: entry.id, index });
  }

  /** The call that the result at `index` of an entry must answer; null if there is none. */
  protected answers({ call }: Entry<M>, index: number): AwaitedCall | null {
    const next = this.#calls[this.#answered];
    if (!next) return null;
    if (call && (index > 0 || call.message !== next.entry || call.index !== next.index)) return null;
    this.#answered += 1;
    return next;
  }
}

/** Whether these are the names of all members, in this order. */
export function hasOnly(message: object, first: string, second: string): boolean {
  let at = 0;
  for (const name in message) {
    if (name !== (at === 0 ? first : second)) return false;
    at += 1;
  }
  return at === 2;
}
