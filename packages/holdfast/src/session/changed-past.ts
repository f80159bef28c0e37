import type { Dialect } from "../dialects/dialect.ts";
import { pair } from "../dialects/pairing.ts";
import type { Item } from "./item.ts";

/**
 * Changes of the past that the application asked for: hiding and editing. They come into force all at once, at the start of a turn, and signed reasoning between the first place that changed and what was the end then is no longer
 * sent (R1): what came later was signed over the changed past.
 */
export class ChangedPast<M> {
  #from: string | null;
  #until: string | null;
  #isPending = false;

  constructor(saved?: { readonly from: string; readonly until: string }) {
    this.#from = saved?.from ?? null;
    this.#until = saved?.until ?? null;
  }

  /** Something is to be hidden, shown or replaced. */
  note(): void {
    this.#isPending = true;
  }

  saved(): { from: string; until: string } | null {
    return this.#from !== null && this.#until !== null ? { from: this.#from, until: this.#until } : null;
  }

  /** Puts in force what was noted. True if that changed what is shown. */
  settle(items: readonly Item<M>[], dialect: Dialect<M>): boolean {
    if (!this.#isPending) return false;
    this.#isPending = false;
    const hidden = hiddenOf(items, dialect);
    let from = -1;
    for (const [at, item] of items.entries()) {
      if (item.hidden === hidden[at]) continue;
      item.hidden = hidden[at]!;
      if (from < 0) from = at;
    }
    if (from < 0) return false;
    const until = items.at(-1)!.entry.id;
    const before = this.#from === null ? -1 : items.findIndex(({ entry }) => entry.id === this.#from);
    if (before < 0 || from < before) this.#from = items[from]!.entry.id;
    this.#until = until;
    return true;
  }

  /** The ends of the stretch among those entries that are shown: null if nothing there changed. */
  among(
    items: readonly Item<M>[],
    isShown: (item: Item<M>) => boolean,
  ): { readonly from: string; readonly until: string | null } | null {
    let from: string | null = null;
    let until: string | null = null;
    let isInside = false;
    let isPast = false;
    for (const item of items) {
      if (item.entry.id === this.#from) isInside = true;
      // The agent may have sent what was not redacted: nobody knows what was signed behind it.
      if (item.redacted && from === null && isShown(item)) return { from: item.entry.id, until: null };
      if (isInside && !isPast && isShown(item)) {
        from ??= item.entry.id;
        until = item.entry.id;
      }
      if (item.entry.id === this.#until) isPast = true;
    }
    if (from === null) return null;
    const redacted = items.some((item) => item.redacted && isShown(item));
    return { from, until: redacted ? null : until };
  }
}

/** What the model is not to see: by whole steps, and never a call without its result or a result without its call (R3). */
function hiddenOf<M>(items: readonly Item<M>[], dialect: Dialect<M>): boolean[] {
  const steps = new Set<string>();
  for (const { entry, leftOut } of items) {
    const isGone = leftOut || entry.replacedBy !== undefined || entry.metadata.hiddenFromModel === true;
    if (isGone) steps.add(entry.step);
  }
  const kept = items.filter(({ entry }) => entry.replacedBy === undefined);
  const { calls } = pair(
    kept.map(({ entry }) => entry),
    dialect,
  );
  for (let before = -1; before !== steps.size; ) {
    before = steps.size;
    for (const found of calls.flat()) {
      if (found?.answer && steps.has(kept[found.answer.entry]!.entry.step)) steps.add(kept[found.entry]!.entry.step);
    }
  }
  return items.map(({ entry }) => steps.has(entry.step));
}
