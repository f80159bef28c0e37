import type { Dialect } from "../dialects/dialect.ts";
import type { Comparison, Slot } from "./sync-known.ts";

/**
 * For each message of the array the slot that it is known from, or null. The first `same` are in their places. First by reference, which costs nothing; what is left is compared, and few are: messages of different sorts are not the
 * same. Of several that are, the last one counts: what is kept is mostly the end.
 */
export function matchedSlots<M>(
  slots: readonly Slot<M>[],
  same: number,
  comparison: Comparison<M>,
  dialect: Dialect<M>,
): (number | null)[] {
  const { array } = comparison;
  const matches: (number | null)[] = new Array(array.length).fill(null);
  for (let at = 0; at < same; at++) matches[at] = at;
  const byObject = new Map<M, number>();
  for (let slot = same; slot < slots.length; slot++) byObject.set(slots[slot]!.given, slot);
  const taken = new Set<number>();
  const unknown: number[] = [];
  for (let at = array.length - 1; at >= same; at--) {
    const slot = byObject.get(array.objects[at]!);
    if (slot !== undefined && !taken.has(slot) && comparison.isUnchanged(slots, slot, at)) {
      taken.add(slot);
      matches[at] = slot;
    } else unknown.push(at);
  }
  if (unknown.length === 0) return matches;
  const free = new Map<string, number[]>();
  for (let slot = same; slot < slots.length; slot++) {
    if (!taken.has(slot)) add(free, sortOf(slots[slot]!.recorded, dialect), slot);
  }
  if (free.size === 0) return matches;
  for (const at of unknown) {
    const candidates = free.get(sortOf(comparison.stored(at), dialect)) ?? [];
    const found = candidates.findLastIndex((slot) => comparison.same(slots[slot]!.recorded, at));
    if (found >= 0) matches[at] = candidates.splice(found, 1)[0]!;
  }
  return matches;
}

function sortOf<M>(message: M, dialect: Dialect<M>): string {
  return JSON.stringify([placesOf(message, dialect), dialect.text(message).slice(0, 200)]);
}

/** Who says it, which calls it makes, and which it answers. A message that has been changed without a change of these has its place in the conversation still. */
export function placesOf<M>(message: M, dialect: Dialect<M>): { role: string; calls: string[]; results: string[] } {
  return {
    role: dialect.role(message),
    calls: dialect.calls(message).map(({ id, by }) => `${by} ${id}`),
    results: dialect.results(message).map(({ call }) => call),
  };
}

export function add<K>(lists: Map<K, number[]>, key: K, item: number): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}
