import type { Item } from "../contract/item.ts";

/** Which items are asked for: one of these, or the first ones. */
export interface RangeQuery {
  readonly from?: number | undefined;
  readonly last?: number | undefined;
  readonly around?: string | undefined;
  readonly near?: string | undefined;
  readonly limit: number;
}

export interface Range {
  readonly begin: number;
  readonly end: number;
  /** Of what `around` or `near` asks for. */
  readonly found: number | null;
}

export function rangeOf(items: readonly Item[], { from = 0, last, around, near, limit }: RangeQuery): Range {
  if (last !== undefined) return { begin: Math.max(0, items.length - last), end: items.length, found: null };
  if (around === undefined && near === undefined) return { begin: from, end: from + limit, found: null };
  const nearMs = near === undefined ? null : Date.parse(near);
  const exact = around === undefined ? -1 : indexOf(items, around, nearMs);
  const found = exact >= 0 || nearMs === null ? exact : nearest(items, nearMs, () => true);
  if (found < 0) return { begin: items.length, end: items.length, found: null };
  const begin = Math.max(0, found - Math.floor(limit / 2));
  return { begin, end: begin + limit, found };
}

/** The first item with this id or of this message, or else the call with this id: the nearest one, if it repeats. */
function indexOf(items: readonly Item[], wanted: string, nearMs: number | null): number {
  const index = items.findIndex(({ id }) => id === wanted || isPartOf(id, wanted));
  return index >= 0 ? index : nearest(items, nearMs ?? 0, (item) => item.kind === "call" && item.call === wanted);
}

/** Several items of one message differ in the number after its id. */
function isPartOf(id: string, message: string): boolean {
  return id.startsWith(message) && /^\.\d+$/.test(id.slice(message.length));
}

/** All times are looked at: they are not in order if a clock was wrong. */
function nearest(items: readonly Item[], ms: number, isWanted: (item: Item) => boolean): number {
  let [best, distance] = [-1, Number.POSITIVE_INFINITY];
  for (const [index, item] of items.entries()) {
    if (!isWanted(item)) continue;
    const away = Math.abs(Date.parse(item.at) - ms);
    if (away < distance) [best, distance] = [index, away];
  }
  return best;
}
