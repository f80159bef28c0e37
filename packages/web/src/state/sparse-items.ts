import type { Item } from "../api/wire.ts";

/**
 * The items of a conversation, of which only some are loaded. Never mutated. `undefined` stands for one that is not
 * loaded yet: a conversation can have 100,000, and a person looks at twenty.
 */
export type SparseItems = readonly (Item | undefined)[];

export const PAGE = 100;

/** With a range filled in; `count` is how many there are now. */
export function withRange(items: SparseItems, from: number, loaded: readonly Item[], count: number): SparseItems {
  const next = items.slice(0, count);
  next.length = count;
  for (const [index, item] of loaded.entries()) if (from + index < count) next[from + index] = item;
  return next;
}

/** With `remove` items at an index replaced by others. */
export function withSplice(items: SparseItems, at: number, remove: number, insert: readonly Item[]): SparseItems {
  const next = items.slice();
  if (next.length < at) next.length = at;
  next.splice(at, remove, ...insert);
  return next;
}

/** The pages that must be loaded to show a range, as the indexes that they begin with. */
export function missingPages(items: SparseItems, from: number, to: number): number[] {
  const pages: number[] = [];
  const last = Math.min(to, items.length - 1);
  for (let page = Math.floor(Math.max(0, from) / PAGE) * PAGE; page <= last; page += PAGE) {
    for (let index = page; index < Math.min(page + PAGE, items.length); index++) {
      if (items[index]) continue;
      pages.push(page);
      break;
    }
  }
  return pages;
}

/** The id of the message that an item belongs to: several items of one message differ in the number after it. */
export function messageOf(id: string): string {
  return id.replace(/\.\d+$/, "");
}

/** Calls that one message makes: they run side by side, and are drawn side by side in the row of the first. */
export function parallelCalls(items: SparseItems, index: number): Extract<Item, { kind: "call" }>[] | null {
  const first = items[index];
  if (first?.kind !== "call") return null;
  const before = items[index - 1];
  const message = messageOf(first.id);
  if (before?.kind === "call" && messageOf(before.id) === message) return null;
  const group = [first];
  for (let at = index + 1; at < items.length; at++) {
    const item = items[at];
    if (item?.kind !== "call" || messageOf(item.id) !== message) break;
    group.push(item);
  }
  return group;
}

/** How many items two conversations begin with in common: a fork keeps the ids. */
export function commonLength(one: SparseItems, other: SparseItems): number {
  let length = 0;
  while (length < one.length && length < other.length && one[length]?.id === other[length]?.id && one[length])
    length += 1;
  return length;
}
