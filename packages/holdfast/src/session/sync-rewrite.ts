import type { Dialect, Entry } from "../dialects/dialect.ts";
import { wellFormed } from "../dialects/well-formed.ts";
import type { Item } from "./item.ts";
import { type Comparison, type Slot, slotOf } from "./sync-known.ts";
import { pairsIn, stepsOf } from "./whole-steps.ts";

/** A new epoch that begins as the array does. */
export interface Rewrite<M> {
  /** The messages before this one are in it; those from here on come as new ones. */
  readonly cut: number;
  readonly reason: "compaction" | "rewind" | "clear";
  readonly entries: readonly Entry<M>[];
  /** For each message before the cut, its place among the entries; null where there is not one for it alone. */
  readonly places: readonly (number | null)[];
  /** Those messages, with what is recorded of them until now. */
  readonly slots: readonly Slot<M>[];
  /** For each message the slot that it is known from. */
  readonly matches: readonly (number | null)[];
  /** Of messages that were not recorded before. */
  readonly added: readonly string[];
}

export interface RewriteParts<M> {
  readonly messages: readonly M[];
  /** What the array was, or should have been. */
  readonly slots: readonly Slot<M>[];
  /** So many of its messages are still in their place. */
  readonly same: number;
  readonly items: readonly Item<M>[];
  readonly dialect: Dialect<M>;
  readonly comparison: Comparison<M>;
  /** A turn is open: then the array is what the model sees of it, and no prompt begins in it. */
  readonly isOpen: boolean;
  /** From here on the assistant's messages still grow. */
  readonly growing: number;
  /** A new entry, like another if it takes the place of that one. */
  fresh(message: M, like?: Entry<M>): Entry<M>;
}

/** Slots and the items that they show. Where the view joins neighbours, several of one stand for several of the other. */
interface Group<M> {
  readonly slots: number[];
  readonly items: Item<M>[];
}

/**
 * The array no longer begins with what is recorded (R14 g). Messages that are known keep their entries, with ids, turns, metadata and marks (P3), and so does what was recorded beside the array behind them: outcomes of tools, what is hidden
 * from the model. Up to the last known message the array becomes the new epoch; what comes after it is new. Where nothing is known, the last prompt and what follows it is new.
 */
export function planRewrite<M>(parts: RewriteParts<M>): Rewrite<M> {
  const { messages, slots, items } = parts;
  const matches = matched(parts);
  const cut = cutOf(parts, matches);
  const groups = groupsOf(slots, items);
  const kept: { entry: Entry<M>; at: number | null }[] = [];
  const added: string[] = [];
  for (let at = 0; at < cut; at++) {
    const slot = matches[at]!;
    const group = slot === null ? null : groups.get(slot)!;
    if (slot === null) {
      const entry = parts.fresh(messages[at]!);
      kept.push({ entry, at });
      added.push(entry.id);
    } else if (isWhole(group!, matches, at)) {
      if (group!.slots[0] !== slot) continue;
      for (const { entry } of group!.items) kept.push({ entry, at: entry.id === slots[slot]!.id ? at : null });
    } else if (group!.items.length > 0) {
      // Else it was made up for a view, and is made up again where it is needed.
      const isMade = group!.items.every(({ entry }) => entry.synthetic !== undefined);
      kept.push({ entry: parts.fresh(messages[at]!, isMade ? group!.items[0]!.entry : undefined), at });
    }
  }
  const entries = unsplit(
    kept.map(({ entry }) => entry),
    parts,
  );
  const places: (number | null)[] = new Array(cut).fill(null);
  for (const [n, { at }] of kept.entries()) if (at !== null) places[at] = n;
  const isPrefix = matches.slice(0, cut).every((slot, at) => slot === at);
  const reason = cut === 0 ? "clear" : isPrefix ? "rewind" : "compaction";
  const isKept = new Set(entries.map(({ id }) => id));
  const before = messages.slice(0, cut).map((message, at) => {
    const slot = matches[at]!;
    return slotOf(message, slot === null ? message : slots[slot]!.recorded, null);
  });
  return { cut, reason, entries, places, slots: before, matches, added: added.filter((id) => isKept.has(id)) };
}

/** For each message the slot that it is known from. The last of several that are the same: what is kept is mostly the end. */
function matched<M>({ messages, slots, same, comparison, dialect }: RewriteParts<M>): (number | null)[] {
  const free = new Map<string, number[]>();
  const byReference = new Map<M, number>();
  for (let slot = same; slot < slots.length; slot++) {
    const { given, recorded } = slots[slot]!;
    byReference.set(given, slot);
    const sort = sortOf(recorded, dialect);
    const list = free.get(sort);
    if (list) list.push(slot);
    else free.set(sort, [slot]);
  }
  const taken = new Set<number>();
  const matches: (number | null)[] = new Array(messages.length).fill(null);
  for (let at = messages.length - 1; at >= same; at--) {
    const message = messages[at]!;
    const known = byReference.get(message);
    const candidates = known === undefined ? [] : [known];
    const stored = comparison.stored(message);
    if (stored !== null) candidates.push(...(free.get(sortOf(stored, dialect)) ?? []).toReversed());
    const found = candidates.find((slot) => !taken.has(slot) && comparison.same(slots[slot]!.recorded, message));
    if (found === undefined) continue;
    taken.add(found);
    matches[at] = found;
  }
  for (let at = 0; at < same; at++) matches[at] = at;
  return matches;
}

/** Messages of different sorts are not the same: so that few are compared. */
function sortOf<M>(message: M, dialect: Dialect<M>): string {
  const calls = dialect.calls(message).map(({ id }) => id);
  const results = dialect.results(message).map(({ call }) => call);
  const text = dialect.text(message).slice(0, 200);
  return JSON.stringify(wellFormed([dialect.role(message), calls, results, text]));
}

function cutOf<M>(
  { messages, dialect, isOpen, growing }: RewriteParts<M>,
  matches: readonly (number | null)[],
): number {
  const last = matches.findLastIndex((slot) => slot !== null);
  if (last >= 0) return last + 1;
  if (isOpen) return growing;
  let prompt = messages.findLastIndex((message) => dialect.role(message) === "user");
  while (prompt > 0 && dialect.role(messages[prompt - 1]!) === "system") prompt -= 1;
  return Math.max(prompt, 0);
}

/** The group of each slot. Items that no slot shows belong to the one before them; those that may have been joined into slots without an entry, to those. */
function groupsOf<M>(slots: readonly Slot<M>[], items: readonly Item<M>[]): Map<number, Group<M>> {
  const places = new Map(items.map(({ entry }, at) => [entry.id, at]));
  const groups = new Map<number, Group<M>>();
  let current: Group<M> = { slots: [], items: [] };
  let next = 0;
  for (const [slot, { id }] of slots.entries()) {
    const place = id === null ? -1 : (places.get(id) ?? -1);
    if (place >= next) {
      current.items.push(...items.slice(next, place));
      // Before the first one there may be items that are kept from the model.
      const before = current.slots.length === 0 ? current.items : [];
      current = { slots: [slot], items: [...before, items[place]!] };
      next = place + 1;
    } else if (current.slots.length > 0 && slots[current.slots.at(-1)!]!.id === null) {
      current.slots.push(slot);
    } else {
      const before = current.slots.length === 0 ? current.items : [];
      current = { slots: [slot], items: before };
    }
    groups.set(slot, current);
  }
  current.items.push(...items.slice(next));
  return groups;
}

/** All slots of the group stand side by side in the array, as they did; this one of them at `at`. */
function isWhole<M>({ slots, items }: Group<M>, matches: readonly (number | null)[], at: number): boolean {
  const first = at - slots.indexOf(matches[at]!);
  return items.length > 0 && slots.every((slot, n) => matches[first + n] === slot);
}

/** Responses and pairs that the array has torn apart are recorded anew, as they are: what is left of a step is no step (R3). */
function unsplit<M>(given: readonly Entry<M>[], { items, dialect, fresh }: RewriteParts<M>): Entry<M>[] {
  const recorded = new Set(items.map(({ entry }) => entry.id));
  const entries = [...given];
  const steps = [...stepsOf(items).values()].filter((step) => step.length > 1);
  const pairs = pairsIn(items, dialect);
  for (let isDone = false; !isDone; ) {
    const places = new Map(entries.map(({ id }, at) => [id, at]));
    const torn = new Set<string>();
    for (const step of steps) {
      const first = places.get(step[0]!);
      const isTogether = first !== undefined && step.every((id, n) => places.get(id) === first + n);
      if (!isTogether) for (const id of step) torn.add(id);
    }
    const answered = new Set<string>();
    for (const { id, message } of entries) {
      if (!recorded.has(id)) for (const { call } of dialect.results(message)) answered.add(call);
    }
    for (const { item, answer, call } of pairs) {
      if (!answer) continue;
      const [caller, result] = [item.entry.id, answer.item.entry.id];
      if (!places.has(caller) || torn.has(caller)) torn.add(result);
      else if (!places.has(result) && !answered.has(call.id)) torn.add(caller);
    }
    isDone = true;
    for (const id of torn) {
      const at = places.get(id);
      if (at === undefined) continue;
      entries[at] = fresh(entries[at]!.message, entries[at]!);
      isDone = false;
    }
  }
  return entries;
}
