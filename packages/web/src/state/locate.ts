import { messageOf, PAGE, type SparseItems } from "./sparse-items.ts";

/** Items of which only some are loaded, and the way to load more. */
export interface Pages {
  items(): SparseItems;
  /** Loads the page that begins at this index. */
  load(page: number): Promise<void>;
}

export interface Wanted {
  readonly message?: string;
  readonly call?: string;
  /** When it was recorded; null if that is not known. */
  readonly atMs: number | null;
}

/** When a message was recorded, from its id: Holdfast's own ids begin with the time (UUID version 7). */
export function timeInId(id: string): number | null {
  const [, high, low] = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-/.exec(id) ?? [];
  return high === undefined ? null : Number.parseInt(high + low!, 16);
}

/**
 * The index of a message or call, or else of the item nearest to the time. Items are nearly in the order of their
 * times, so a search by halves loads about ten pages of a conversation with 100,000 items. Null if there are none.
 */
export async function locate(pages: Pages, { message, call, atMs }: Wanted): Promise<number | null> {
  const exact = (): number =>
    pages.items().findIndex((item) => {
      if (!item) return false;
      if (call !== undefined) return item.kind === "call" && item.call === call;
      return message !== undefined && (item.id === message || messageOf(item.id) === message);
    });
  const known = exact();
  if (known >= 0) return known;
  if (pages.items().length === 0) return null;
  if (atMs === null) return everywhere(pages, exact);
  let [low, high] = [0, Math.ceil(pages.items().length / PAGE) - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const time = await timeOf(pages, middle * PAGE);
    if (time <= atMs) low = middle;
    else high = middle - 1;
  }
  // Times are not strictly in order: what is wanted may be in a neighbour.
  for (const page of [low, low + 1, low - 1]) {
    if (page < 0 || page * PAGE >= pages.items().length) continue;
    await ensure(pages, page * PAGE);
    const found = exact();
    if (found >= 0) return found;
  }
  return nearest(pages.items(), low * PAGE, atMs);
}

async function everywhere(pages: Pages, exact: () => number): Promise<number | null> {
  for (let page = Math.floor((pages.items().length - 1) / PAGE) * PAGE; page >= 0; page -= PAGE) {
    await ensure(pages, page);
    const found = exact();
    if (found >= 0) return found;
  }
  return null;
}

async function ensure(pages: Pages, page: number): Promise<void> {
  const items = pages.items();
  for (let at = page; at < Math.min(page + PAGE, items.length); at++) {
    if (items[at]) continue;
    await pages.load(page);
    return;
  }
}

async function timeOf(pages: Pages, index: number): Promise<number> {
  if (!pages.items()[index]) await pages.load(index);
  const item = pages.items()[index];
  return item ? Date.parse(item.at) : Number.POSITIVE_INFINITY;
}

function nearest(items: SparseItems, page: number, atMs: number): number {
  let best = page;
  let distance = Number.POSITIVE_INFINITY;
  for (let at = page; at < Math.min(items.length, page + PAGE); at++) {
    const item = items[at];
    if (!item) continue;
    const away = Math.abs(Date.parse(item.at) - atMs);
    if (away < distance) [best, distance] = [at, away];
  }
  return best;
}
