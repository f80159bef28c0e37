import type { Dialect } from "../dialects/dialect.ts";
import { wellFormed } from "../text/well-formed.ts";
import type { Comparison, Slot } from "./comparison.ts";

/**
 * For each message of the array, its matching slot or null. The first `same` match by position. The rest are matched by
 * reference, which is free, and then by content, which is rarely needed: messages of different sorts never match. Among
 * several candidates the last one wins, because mostly the end is kept.
 */
export function matchedSlots<M>(slots: readonly Slot<M>[], same: number, comparison: Comparison<M>): (number | null)[] {
  const { array, dialect } = comparison;
  const matches: (number | null)[] = new Array(array.length).fill(null);
  for (let at = 0; at < same; at++) matches[at] = at;
  const byObject = new Map<M, number>();
  for (let slot = same; slot < slots.length; slot++) byObject.set(slots[slot]!.given, slot);
  const taken = new Set<number>();
  for (let at = array.length - 1; at >= same; at--) {
    const slot = byObject.get(array.objects[at]!);
    if (slot === undefined || taken.has(slot) || !comparison.isUnchanged(slots, slot, at)) continue;
    taken.add(slot);
    matches[at] = slot;
  }
  for (const { messages, slots: gone } of gapsIn(matches, slots.length)) {
    if (messages.length === 0 || gone.length === 0) continue;
    const free = new Map<string, number[]>();
    for (const slot of gone) add(free, sortOf(slots[slot]!.recorded, dialect), slot);
    for (const at of messages.toReversed()) {
      const candidates = free.get(sortOf(comparison.stored(at), dialect)) ?? [];
      const found = candidates.findLastIndex((slot) => comparison.same(slots[slot]!.recorded, at));
      if (found >= 0) matches[at] = candidates.splice(found, 1)[0]!;
    }
  }
  return matches;
}

/** For each message in a gap, at most this many slots are compared from either end of the gap. */
const NEAR_MAX = 64;

/** Consecutive unmatched messages, and the slots that they may correspond to. */
export interface Gap {
  readonly messages: readonly number[];
  readonly slots: readonly number[];
}

/**
 * Between two matched messages: the slots between theirs, if those are in order; otherwise all unmatched slots. If the
 * array has dropped nearly everything, only the slots at both ends of the gap are compared, not those in between (P7).
 */
export function gapsIn(matches: readonly (number | null)[], count: number): Gap[] {
  const known = new Set(matches);
  const gaps: Gap[] = [];
  let messages: number[] = [];
  let before = -1;
  let isInOrder = true;
  const add = (next: number): void => {
    if (next <= before) isInOrder = false;
    if (messages.length > 0)
      gaps.push({ messages, slots: isInOrder ? nearEnds(before + 1, next, messages.length) : [] });
    messages = [];
  };
  for (const [at, slot] of matches.entries()) {
    if (slot === null) {
      messages.push(at);
      continue;
    }
    add(slot);
    before = slot;
  }
  add(count);
  if (isInOrder) return gaps;
  const free = Array.from({ length: count }, (_, slot) => slot).filter((slot) => !known.has(slot));
  return [{ messages: gaps.flatMap((gap) => gap.messages), slots: free }];
}

function nearEnds(from: number, to: number, messages: number): number[] {
  const near = NEAR_MAX * messages;
  const isAll = to - from <= 2 * near;
  const length = isAll ? to - from : 2 * near;
  return Array.from({ length }, (_, n) => (isAll || n < near ? from + n : to - length + n));
}

function sortOf<M>(message: M, dialect: Dialect<M>): string {
  return JSON.stringify(wellFormed([placesOf(message, dialect), dialect.text(message).slice(0, 200)]));
}

/**
 * Its role, the calls that it makes, and the calls that it answers. A changed message that keeps these keeps its place
 * in the conversation.
 */
export function placesOf<M>(message: M, dialect: Dialect<M>): string {
  const calls = dialect.calls(message).map(({ id, by }) => [by, id]);
  const results = dialect.results(message).map(({ call }) => call);
  return JSON.stringify(wellFormed([dialect.role(message), calls, results]));
}

/** Whether it makes or answers calls. */
export function isNamed<M>(message: M, dialect: Dialect<M>): boolean {
  return dialect.calls(message).length + dialect.results(message).length > 0;
}

export function add<K>(lists: Map<K, number[]>, key: K, item: number): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}
