import type { Dialect, View } from "../dialects/dialect.ts";
import { pair } from "../dialects/order/pairing.ts";
import { type Item, isShown } from "./item.ts";
import type { Checkpoint } from "./records/records.ts";

/**
 * Changes of the past that the application requested: hiding, editing, another model. Hiding and editing take effect
 * together, at the start of a turn. Signed reasoning between the first changed position and the end at that time is no
 * longer sent (R1); later reasoning was signed over the changed past.
 */
export class PendingEdits<M> {
  #from: string | null;
  #until: string | null;
  #isPending: boolean;

  constructor({ changed, pending }: Pick<Checkpoint, "changed" | "pending"> = {}) {
    this.#from = changed?.from ?? null;
    this.#until = changed?.until ?? null;
    this.#isPending = pending === true;
  }

  /** Something will be hidden, shown or replaced. */
  note(): void {
    this.#isPending = true;
  }

  get isPending(): boolean {
    return this.#isPending;
  }

  saved(): { from: string; until: string } | null {
    return this.#from !== null && this.#until !== null ? { from: this.#from, until: this.#until } : null;
  }

  /** Applies the noted changes. Returns true if that changed what is shown. */
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
    const before = this.#from === null ? -1 : items.findIndex(({ entry }) => entry.id === this.#from);
    if (before < 0 || from < before) this.#from = items[from]!.entry.id;
    this.#until = items.at(-1)!.entry.id;
    return true;
  }

  /** What the dialect needs to know about the changes, for a view of these items. Calls no function of the dialect. */
  seen(items: readonly Item<M>[]): Pick<View, "changedAt" | "changedUntil" | "redactedAt" | "model"> {
    const seen: { changedAt: string | null; changedUntil?: string; redactedAt?: string; model?: string } = {
      changedAt: null,
    };
    let first: string | null = null;
    let last: string | null = null;
    let isInside = false;
    let isPast = false;
    for (const item of items) {
      const { id, model } = item.entry;
      if (id === this.#from) isInside = true;
      if (isShown(item)) {
        first ??= id;
        if (item.redacted) seen.redactedAt ??= id;
        // Another model: the previous model's reasoning is not sent again, even if that model returns (R4).
        if (model !== undefined && model !== seen.model) {
          if (seen.model !== undefined && last !== null) {
            seen.changedAt = first;
            seen.changedUntil = last;
          }
          seen.model = model;
        }
        if (isInside && !isPast) {
          seen.changedAt ??= id;
          seen.changedUntil = id;
        }
        last = id;
      }
      if (id === this.#until) isPast = true;
    }
    return seen;
  }
}

/** What to hide from the model: whole steps, and never a call without its result or a result without its call (R3). */
function hiddenOf<M>(items: readonly Item<M>[], dialect: Dialect<M>): boolean[] {
  const kept = items.filter(({ entry }) => entry.replacedBy === undefined);
  const steps = new Set<string>();
  for (const { entry } of items) {
    if (entry.replacedBy !== undefined || entry.metadata.hiddenFromModel === true) steps.add(entry.step);
  }
  const stepOf = (at: number): string => kept[at]!.entry.step;
  const { calls, answers } = pair(
    kept.map(({ entry }) => entry),
    dialect,
  );
  const answered = calls.flat().filter((call) => call?.answer);
  for (let before = -1; before !== steps.size; ) {
    before = steps.size;
    for (const call of answered) if (steps.has(stepOf(call!.answer!.entry))) steps.add(stepOf(call!.entry));
    for (const [at, of] of answers.entries()) {
      const isGone = of?.length && of.every((call) => call && steps.has(stepOf(call.entry)));
      // A message that also has text stays; its results are then orphans.
      if (isGone && dialect.text(kept[at]!.entry.message).trim() === "") steps.add(stepOf(at));
    }
  }
  return items.map(({ entry }) => steps.has(entry.step));
}
