import type { StoredMessage } from "../admit/admit.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { type Item, isShown } from "../conversation/item.ts";
import type { SessionRecord } from "../conversation/records/records.ts";
import type { Dialect, Entry } from "../dialects/dialect.ts";
import { isHoldfastError } from "../errors.ts";
import type { ReplaceOptions } from "../replace/epoch.ts";
import { encodeMessage, type ReplaceInput } from "../replace/retained.ts";
import type { Comparison, Slot } from "./comparison.ts";
import type { GivenArray } from "./given-array.ts";
import { add, gapsIn, isNamed, placesOf } from "./match.ts";
import type { TurnNow } from "./new-messages.ts";
import type { Difference } from "./recorded-array.ts";

/** The records of a new epoch with these entries. Throws what `replace` throws. */
export type Replace<M> = (
  entries: readonly ReplaceInput<M>[],
  options: Pick<ReplaceOptions, "reason" | "renewed">,
) => readonly SessionRecord[];

/** A new epoch that starts as the array does. */
export interface Rewrite<M> {
  readonly records: readonly SessionRecord[];
  readonly reason: "compaction" | "rewind" | "clear";
  /** The array up to its first new message; `id`: the entry of the epoch. */
  readonly slots: readonly Slot<M>[];
  /** The ids of messages not recorded before. */
  readonly added: readonly string[];
}

export interface RewriteParts<M> extends Pick<Difference<M>, "slots" | "matches"> {
  readonly conversation: Conversation<M>;
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
export function rewrite<M>(parts: RewriteParts<M>, replaced: Replace<M>): Rewrite<M> {
  const plan = new Plan(parts);
  plan.retain();
  plan.keepOthers();
  return plan.record(replaced);
}

class Plan<M> {
  readonly #parts: RewriteParts<M>;
  readonly #dialect: Dialect<M>;
  readonly #matches: readonly (number | null)[];
  /** For each unknown message, the slot that it replaces. */
  readonly #changed: readonly (number | null)[];
  readonly #cut: number;
  readonly #kept: RetainedMessage<M>[] = [];
  readonly #ids = new Set<string>();
  readonly #added: string[] = [];
  /** The ids of new entries, by those of the entries that they replace. */
  readonly #renewed = new Map<string, string>();

  constructor(parts: RewriteParts<M>) {
    this.#parts = parts;
    this.#dialect = parts.conversation.dialect;
    this.#matches = parts.matches;
    this.#changed = changedIn(parts);
    this.#cut = cutOf(parts, this.#changed);
  }

  retain(): void {
    const { slots, conversation } = this.#parts;
    const groups = groupsOf(slots, conversation.items, new Set([...this.#matches, ...this.#changed]));
    for (let at = 0; at < this.#cut; at++) {
      const slot = this.#matches[at]!;
      const changed = this.#changed[at]!;
      if (slot !== null) this.#carryKnown(groups.get(slot)!, slot, at);
      else if (changed !== null) this.#carryChanged(groups.get(changed)!, changed, at);
      else this.#added.push(this.#fresh(at).id);
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
      this.#added.push(this.#fresh(at).id);
      return;
    }
    const { synthetic: _synthetic, incomplete: _incomplete, ...like } = old.entry;
    for (const item of group.items) {
      if (item !== old) {
        this.#keep(item, null);
        continue;
      }
      const made = this.#fresh(at, like);
      this.#added.push(made.id);
      this.#renewed.set(old.entry.id, made.id);
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
    const { conversation, seenSeq } = this.#parts;
    const others = conversation.items.filter(
      ({ entry, from }) => !this.#ids.has(entry.id) && (from === "result" || entry.seq > seenSeq),
    );
    if (others.length === 0) return;
    const open = this.#openCalls();
    for (const item of others) {
      const { message } = item.entry;
      const answers = item.from === "result" ? this.#dialect.results(message).map(({ call }) => call) : [];
      if (item.from === "message" ? isShown(item) : answers.some((call) => (open.get(call) ?? 0) > 0))
        this.#keep(item, null);
    }
  }

  /** How many calls of each id have no result. */
  #openCalls(): Map<string, number> {
    const open = new Map<string, number>();
    const count = (id: string, by: number): unknown => open.set(id, (open.get(id) ?? 0) + by);
    for (const { given } of this.#kept) {
      const { message } = given.entry!;
      for (const { id } of this.#dialect.calls(message)) count(id, 1);
      for (const { call } of this.#dialect.results(message)) count(call, -1);
    }
    return open;
  }

  record(replaced: Replace<M>): Rewrite<M> {
    const { slots, comparison } = this.#parts;
    const before = this.#matches.slice(0, this.#cut);
    const isPrefix = before.every((slot, at) => slot === at);
    const reason = before.length === 0 ? "clear" : isPrefix ? "rewind" : "compaction";
    const records = this.#records((entries) => replaced(entries, { reason, renewed: this.#renewed }));
    const ids = new Map(this.#kept.map(({ given, at }) => [at, given.entry!.id]));
    const after = before.map((slot, at) => {
      const recorded = slot === null ? comparison.stored(at) : slots[slot]!.recorded;
      return { given: comparison.array.objects[at]!, recorded, id: ids.get(at) ?? null };
    });
    return { records, reason, slots: after, added: this.#added };
  }

  /** Responses and pairs that the array splits are recorded again as they are: part of a step is not a step (R3). */
  #records(replaced: (entries: readonly ReplaceInput<M>[]) => readonly SessionRecord[]): readonly SessionRecord[] {
    for (;;) {
      try {
        return replaced(this.#kept.map(({ given }) => given));
      } catch (error) {
        if (!isHoldfastError(error, "STEP_SPLIT")) throw error;
        const { conversation } = this.#parts;
        const steps = new Set((error.facts["ids"] as string[]).map((id) => conversation.find(id)?.entry.step));
        if (!this.#renew(({ entry }) => steps.has(entry.step)) && !this.#renew(() => true)) throw error;
      }
    }
  }

  /** Of these, what the model is not shown stays in the journal alone. False if there are none. */
  #renew(isWanted: (item: Item<M>) => boolean): boolean {
    const { conversation, fresh } = this.#parts;
    let isRenewed = false;
    const kept = this.#kept.splice(0).flatMap((one): RetainedMessage<M>[] => {
      const { id } = one.given.entry!;
      const item = conversation.find(id);
      if (!item || !isWanted(item)) return [one];
      isRenewed = true;
      if (!isShown(item)) return [];
      const { entry, redacted, role } = item;
      const stored = one.given.stored ?? { stored: encodeMessage(this.#dialect, entry.message), redacted, role };
      const made = fresh(stored, entry);
      this.#renewed.set(id, made.id);
      return [{ given: { entry: made, stored }, at: one.at }];
    });
    this.#kept.push(...kept);
    return isRenewed;
  }
}

/** Messages that make or answer the same calls as an unmatched slot: they are changed, and replace it. */
function changedIn<M>({ slots, matches, conversation, comparison, growing }: RewriteParts<M>): (number | null)[] {
  const { dialect } = conversation;
  const changed: (number | null)[] = new Array(matches.length).fill(null);
  for (const { messages, slots: gone } of gapsIn(matches, slots.length)) {
    const named = messages.filter((at) => at < growing && isNamed(comparison.array.content(at), dialect));
    if (named.length === 0) continue;
    const free = new Map<string, number[]>();
    for (const slot of gone.toReversed()) add(free, placesOf(slots[slot]!.recorded, dialect), slot);
    for (const at of named) changed[at] = free.get(placesOf(comparison.array.content(at), dialect))?.pop() ?? null;
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
