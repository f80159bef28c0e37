import type { Dialect, Entry } from "../dialects/dialect.ts";

/** An entry of the conversation, and how it is shown to the model. */
export interface Item<M> {
  entry: Entry<M>;
  /** The record it came from: a `message`, a `tool.ended` whose result is in no message yet, a `repair`, an `edit`. */
  readonly from: "message" | "result" | "repair" | "edit";
  readonly role: ReturnType<Dialect<M>["role"]>;
  /** Currently hidden from the model. Messages to be hidden or replaced from the next turn on are still shown (R1). */
  hidden: boolean;
  /** Some of its text was redacted. */
  readonly redacted: boolean;
  /** The application's array dropped or replaced it. It is kept for people until the next epoch. */
  superseded?: true;
}

/** Late results are shown to people only (R1). */
export function isShown<M>({ entry, hidden }: Item<M>): boolean {
  return !hidden && entry.late !== true;
}

/**
 * Items by id. Ids that Holdfast makes increase, so an id above all others is known to be new, and the item is entered
 * when an older one is looked for. Most journals are read without that.
 */
export class ItemIndex<M> {
  readonly #entered = new Map<string, Item<M>>();
  #waiting: Item<M>[] = [];
  /** No item has an id above this. */
  #highest = "";

  has(id: string): boolean {
    return this.find(id) !== null;
  }

  find(id: string): Item<M> | null {
    // An application may pass anything, and a symbol cannot be compared.
    if (typeof id !== "string" || id > this.#highest) return null;
    return this.#all().get(id) ?? null;
  }

  /** `has` must be false for its id. */
  add(item: Item<M>): void {
    const { id } = item.entry;
    if (id > this.#highest) {
      this.#highest = id;
      this.#waiting.push(item);
    } else this.#entered.set(id, item);
  }

  remove({ entry }: Item<M>): void {
    this.#all().delete(entry.id);
  }

  #all(): Map<string, Item<M>> {
    if (this.#waiting.length > 0) {
      for (const item of this.#waiting) this.#entered.set(item.entry.id, item);
      this.#waiting = [];
    }
    return this.#entered;
  }
}
