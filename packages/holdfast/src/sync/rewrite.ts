import type { StoredMessage } from "../admit/admit.ts";
import { type Item, isShown } from "../conversation/item.ts";
import type { Dialect, Entry } from "../dialects/dialect.ts";
import { encodeMessage, type ReplaceInput } from "../replace/retained.ts";
import { around, pairsIn, stepsOf } from "../replace/step-integrity.ts";
import { type Comparison, type Slot, slotOf } from "./comparison.ts";
import type { GivenArray } from "./given-array.ts";
import { add, gapsIn, placesOf } from "./match.ts";
import type { TurnNow } from "./new-messages.ts";

/** A new epoch that starts as the array does. */
export interface Rewrite<M> {
  /** Messages before this one are retained; those from here on are new. */
  readonly cut: number;
  readonly reason: "compaction" | "rewind" | "clear";
  readonly entries: readonly ReplaceInput<M>[];
  /** Entries that replace others. */
  readonly renewed: Renewals;
  /** For each message before the cut, its index among the entries; null if it has none of its own. */
  readonly places: readonly (number | null)[];
  /** Those messages, with what is recorded for them so far. */
  readonly slots: readonly Slot<M>[];
  /** The ids of messages not recorded before. */
  readonly added: readonly string[];
}

export interface RewriteParts<M> {
  /** What the array was, or should have been. */
  readonly slots: readonly Slot<M>[];
  readonly matches: readonly (number | null)[];
  readonly items: readonly Item<M>[];
  readonly changed: { readonly isPending: boolean };
  find(id: string): Item<M> | null;
  readonly dialect: Dialect<M>;
  readonly comparison: Comparison<M>;
  /** While a turn is open, the array is what the model sees, and no prompt starts a turn in it. */
  readonly turnNow: TurnNow;
  /** From here on the assistant's messages are still growing. */
  readonly growing: number;
  /**
   * Items with a greater seq were recorded outside the array since it was last synced, so the array did not drop them.
   */
  readonly seenSeq: number;
  /** A new entry, modelled on the one that it replaces, if any. */
  fresh(stored: StoredMessage, like?: Entry<M>): Entry<M>;
}

/** Which entries replace which. */
export class Renewals {
  readonly #byOld = new Map<string, string>();
  readonly #origins = new Map<string, string>();

  constructor(before?: Renewals) {
    if (before) for (const [old, id] of before.#byOld) this.add(old, id);
  }

  add(old: string, id: string): void {
    const origin = this.#origins.get(old) ?? old;
    this.#origins.set(id, origin);
    this.#byOld.set(origin, id);
  }

  /** New entry ids, keyed by the ids of the entries that they replace. */
  get byOld(): ReadonlyMap<string, string> {
    return this.#byOld;
  }
}

/** Slots and the items that they show. Where the view joins neighbours, several slots correspond to several items. */
interface Group<M> {
  readonly slots: number[];
  readonly items: Item<M>[];
}

interface RetainedMessage<M> {
  readonly given: ReplaceInput<M>;
  /** The array's message for it. */
  readonly at: number | null;
}

/**
 * The array no longer starts with the recorded conversation (R14 g). Known messages keep their entries, with ids,
 * turns, metadata and marks (P3). So does everything recorded after them outside the array: tool outcomes, messages
 * hidden from the model. The array up to its last known message becomes the new epoch; the rest is new. If nothing is
 * known, the last prompt and what follows it are new.
 */
export function planRewrite<M>(parts: RewriteParts<M>): Rewrite<M> {
  const plan = new Plan(parts);
  plan.retain();
  plan.keepOthers();
  plan.unsplit();
  return plan.done();
}

/**
 * Like `planRewrite`, but with only new entries, even where the array splits steps or pairs: the array is what the
 * model sees.
 */
export function tornApart<M>(rewrite: Rewrite<M>, parts: RewriteParts<M>): Rewrite<M> {
  const renewed = new Renewals(rewrite.renewed);
  return { ...rewrite, renewed, entries: rewrite.entries.map((given) => renewal(given, parts, renewed)) };
}

function renewal<M>(
  { entry, stored }: ReplaceInput<M>,
  { find, dialect, fresh }: RewriteParts<M>,
  renewed: Renewals,
): ReplaceInput<M> {
  const { id, message } = entry!;
  const redacted = find(id)?.redacted ?? false;
  const form = stored ?? { stored: encodeMessage(dialect, message), redacted, role: dialect.role(message) };
  const made = fresh(form, entry!);
  renewed.add(id, made.id);
  return { entry: made, stored: form };
}

class Plan<M> {
  readonly #parts: RewriteParts<M>;
  readonly #matches: readonly (number | null)[];
  /** For each unknown message, the slot that it replaces. */
  readonly #changed: readonly (number | null)[];
  readonly #cut: number;
  readonly #kept: RetainedMessage<M>[] = [];
  readonly #ids = new Set<string>();
  readonly #added = new Set<string>();
  readonly #renewed = new Renewals();

  constructor(parts: RewriteParts<M>) {
    this.#parts = parts;
    this.#matches = parts.matches;
    this.#changed = changedIn(parts);
    this.#cut = cutOf(parts, this.#changed);
  }

  retain(): void {
    const { slots, items } = this.#parts;
    const groups = groupsOf(slots, items, new Set([...this.#matches, ...this.#changed]));
    for (let at = 0; at < this.#cut; at++) {
      const slot = this.#matches[at]!;
      const changed = this.#changed[at]!;
      if (slot !== null) this.#carryKnown(groups.get(slot)!, slot, at);
      else if (changed !== null) this.#carryChanged(groups.get(changed)!, changed, at);
      else this.#added.add(this.#fresh(at).id);
    }
  }

  #carryKnown(group: Group<M>, slot: number, at: number): void {
    const { slots } = this.#parts;
    if (isWhole(group, this.#matches, at)) {
      if (group.slots[0] !== slot) return;
      for (const item of group.items) this.#keep(item, item.entry.id === slots[slot]!.id ? at : null);
    } else if (group.items.length > 0) {
      // Otherwise it was synthesized for a view, and will be again where it is needed.
      const isMade = group.items.every(({ entry }) => entry.synthetic !== undefined);
      this.#fresh(at, isMade ? group.items[0]!.entry : undefined);
    }
  }

  /** Items recorded outside the array after the old entry, such as outcomes, stay after the new one. */
  #carryChanged(group: Group<M>, slot: number, at: number): void {
    const { id } = this.#parts.slots[slot]!;
    const old = group.slots.length === 1 ? group.items.find(({ entry }) => entry.id === id) : undefined;
    if (!old) {
      this.#added.add(this.#fresh(at).id);
      return;
    }
    const { synthetic: _synthetic, incomplete: _incomplete, ...like } = old.entry;
    for (const item of group.items) {
      if (item !== old) {
        this.#keep(item, null);
        continue;
      }
      const made = this.#fresh(at, like);
      this.#added.add(made.id);
      this.#renewed.add(old.entry.id, made.id);
    }
  }

  #keep(item: Item<M>, at: number | null): void {
    if (item.superseded || this.#ids.has(item.entry.id)) return;
    this.#ids.add(item.entry.id);
    this.#kept.push({ given: { entry: item.entry, stored: null }, at });
  }

  #fresh(at: number, like?: Entry<M>): Entry<M> {
    const { comparison, fresh } = this.#parts;
    const { stored } = comparison.array.held(at);
    const entry = fresh(stored, like);
    this.#ids.add(entry.id);
    this.#kept.push({ given: { entry, stored }, at });
    return entry;
  }

  /**
   * Keeps what the application could not have dropped: items that other calls have recorded since, and outcomes of
   * calls that the array still makes without a result.
   */
  keepOthers(): void {
    const { items, seenSeq, dialect } = this.#parts;
    const others = items.filter(
      ({ entry, from }) => !this.#ids.has(entry.id) && (from === "result" || entry.seq > seenSeq),
    );
    if (others.length === 0) return;
    const open = this.#openCalls();
    for (const item of others) {
      const { message } = item.entry;
      const answers = item.from === "result" ? dialect.results(message).map(({ call }) => call) : [];
      if (item.from === "message" ? isShown(item) : answers.some((call) => (open.get(call) ?? 0) > 0))
        this.#keep(item, null);
    }
  }

  /** How many calls of each id have no result. */
  #openCalls(): Map<string, number> {
    const { dialect } = this.#parts;
    const open = new Map<string, number>();
    const count = (id: string, by: number): unknown => open.set(id, (open.get(id) ?? 0) + by);
    for (const { given } of this.#kept) {
      const { message } = given.entry!;
      for (const { id } of dialect.calls(message)) count(id, 1);
      for (const { call } of dialect.results(message)) count(call, -1);
    }
    return open;
  }

  /** Responses and pairs that the array has split are recorded again as they are: part of a step is not a step (R3). */
  unsplit(): void {
    const { dialect, find } = this.#parts;
    const items = around(this.#parts, new Set(this.#kept.map(({ given }) => given.entry!.id)));
    const steps = [...stepsOf(items).values()].filter((step) => step.length > 1);
    const pairs = pairsIn(items, dialect);
    for (let isDone = false; !isDone; ) {
      const places = new Map(this.#kept.map(({ given }, at) => [given.entry!.id, at]));
      const apart = new Set<string>();
      for (const step of steps) {
        const first = places.get(step[0]!);
        const isTogether = first !== undefined && step.every((id, n) => places.get(id) === first + n);
        if (!isTogether) for (const id of step) apart.add(id);
      }
      const answered = new Set<string>();
      for (const { given } of this.#kept) {
        const { id, message } = given.entry!;
        if (!find(id)) for (const { call } of dialect.results(message)) answered.add(call);
      }
      for (const { item, answer, call } of pairs) {
        if (!answer) continue;
        const [caller, result] = [item.entry.id, answer.item.entry.id];
        if (!places.has(caller) || apart.has(caller)) apart.add(result);
        else if (!places.has(result) && !answered.has(call.id)) apart.add(caller);
      }
      isDone = true;
      for (const id of apart) {
        const at = places.get(id);
        if (at === undefined) continue;
        const { given, at: of } = this.#kept[at]!;
        this.#kept[at] = { given: renewal(given, this.#parts, this.#renewed), at: of };
        isDone = false;
      }
    }
  }

  done(): Rewrite<M> {
    const { slots, comparison } = this.#parts;
    const cut = this.#cut;
    const places: (number | null)[] = new Array(cut).fill(null);
    for (const [n, { at }] of this.#kept.entries()) if (at !== null) places[at] = n;
    const before = this.#matches.slice(0, cut);
    const isPrefix = before.every((slot, at) => slot === at);
    const ids = new Set(this.#kept.map(({ given }) => given.entry!.id));
    return {
      cut,
      reason: cut === 0 ? "clear" : isPrefix ? "rewind" : "compaction",
      entries: this.#kept.map(({ given }) => given),
      renewed: this.#renewed,
      places,
      slots: before.map((slot, at) => {
        const given = comparison.array.objects[at]!;
        return slotOf(given, slot === null ? comparison.stored(at) : slots[slot]!.recorded, null);
      }),
      added: [...this.#added].filter((id) => ids.has(id)),
    };
  }
}

/** Messages that make or answer the same calls as an unmatched slot: they are changed, and replace it. */
function changedIn<M>({ slots, matches, dialect, comparison, growing }: RewriteParts<M>): (number | null)[] {
  const changed: (number | null)[] = new Array(matches.length).fill(null);
  for (const { messages, slots: gone } of gapsIn(matches, slots.length)) {
    const named = messages.flatMap((at) => {
      const places = at < growing ? placesOf(comparison.array.content(at), dialect) : null;
      return places && places.calls.length + places.results.length > 0 ? [{ at, places: JSON.stringify(places) }] : [];
    });
    const free = new Map<string, number[]>();
    for (const slot of named.length === 0 ? [] : gone.toReversed()) {
      add(free, JSON.stringify(placesOf(slots[slot]!.recorded, dialect)), slot);
    }
    for (const { at, places } of named) changed[at] = free.get(places)?.pop() ?? null;
  }
  return changed;
}

function cutOf<M>(
  { comparison: { array }, matches, turnNow, growing }: RewriteParts<M>,
  changed: readonly (number | null)[],
): number {
  const last = matches.findLastIndex((slot, at) => slot !== null || changed[at] !== null);
  if (turnNow === "none") return Math.max(last + 1, beforeAnyPrompt(array, growing));
  if (last >= 0) return last + 1;
  if (turnNow !== "over") return growing;
  let prompt = array.length - 1;
  while (prompt >= 0 && array.role(prompt) !== "user") prompt -= 1;
  while (prompt > 0 && array.role(prompt - 1) === "system") prompt -= 1;
  return Math.max(prompt, 0);
}

/** What the assistant said before any turn, such as a greeting, and everything before that. */
function beforeAnyPrompt<M>(array: GivenArray<M>, growing: number): number {
  let end = 0;
  while (end < growing && array.role(end) !== "user") end += 1;
  while (end > 0 && array.role(end - 1) !== "assistant") end -= 1;
  return end;
}

/**
 * The groups of these slots. Items that no slot shows belong to the slot before them; items that may have been joined
 * belong to the slots without an entry.
 */
function groupsOf<M>(
  slots: readonly Slot<M>[],
  items: readonly Item<M>[],
  wanted: ReadonlySet<number | null>,
): Map<number, Group<M>> {
  const places = new Map(items.map(({ entry }, at) => [entry.id, at]));
  const groups = new Map<number, Group<M>>();
  let current: Group<M> | null = { slots: [], items: [] };
  let next = 0;
  for (let slot = 0; slot < slots.length; slot++) {
    const { id } = slots[slot]!;
    const place = id === null ? -1 : (places.get(id) ?? -1);
    if (place >= next) {
      for (let at = next; current && at < place; at++) current.items.push(items[at]!);
      // Items hidden from the model may precede the first one.
      const before: Item<M>[] = current?.slots.length === 0 ? current.items : [];
      current = wanted.has(slot) || before.length > 0 ? { slots: [slot], items: [...before, items[place]!] } : null;
      next = place + 1;
    } else if (current && current.slots.length > 0 && slots[current.slots.at(-1)!]!.id === null) {
      current.slots.push(slot);
    } else {
      current = { slots: [slot], items: current?.slots.length === 0 ? current.items : [] };
    }
    if (current) groups.set(slot, current);
  }
  for (let at = next; current && at < items.length; at++) current.items.push(items[at]!);
  return groups;
}

/** Whether all slots of the group are contiguous in the array, in order, with this one at `at`. */
function isWhole<M>({ slots, items }: Group<M>, matches: readonly (number | null)[], at: number): boolean {
  const first = at - slots.indexOf(matches[at]!);
  return items.length > 0 && slots.every((slot, n) => matches[first + n] === slot);
}
