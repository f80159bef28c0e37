import type { Entry } from "../dialects/dialect.ts";
import type { Conversation } from "./conversation.ts";
import { type Item, isShown } from "./item.ts";
import { deepFreeze } from "./plain-copy.ts";

export interface ViewParts<M> {
  /** What will come behind it. */
  readonly next: "prompt" | "model";
  /** Entries that are made up for this view, behind all others. */
  readonly made: readonly Entry<M>[];
  /** Steps that cannot be shown. */
  readonly without: ReadonlySet<string>;
}

/** The conversation as the model is to see it: what is shown, arranged by the dialect (P4, R1). */
export function arranged<M>(conversation: Conversation<M>, { next, made, without }: ViewParts<M>): readonly M[] {
  const { items, dialect, changed } = conversation;
  const isIn = (item: Item<M>): boolean => isShown(item) && (without.size === 0 || !without.has(item.entry.step));
  const entries: Entry<M>[] = [];
  let model: string | undefined;
  let isRedacted = false;
  for (const item of items) {
    if (!isIn(item)) continue;
    entries.push(item.entry);
    // Whoever was asked last, or is about to be: reasoning of others is left out (R4).
    model = item.entry.model ?? model;
    isRedacted ||= item.redacted;
  }
  for (const entry of made) entries.push(entry);
  const stretch = isRedacted || changed.saved() ? changed.among(items, isIn) : null;
  const view = {
    changedAt: stretch?.from ?? null,
    ...(stretch?.until ? { changedUntil: stretch.until } : {}),
    ...(model === undefined ? {} : { model }),
    next,
  };
  return deepFreeze(dialect.arrange(entries, view));
}
