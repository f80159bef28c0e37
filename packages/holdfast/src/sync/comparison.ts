import type { Admission } from "../admit/admit.ts";
import { type Item, isShown } from "../conversation/item.ts";
import { SYNCED } from "../conversation/records.ts";
import type { Dialect, Entry } from "../dialects/dialect.ts";
import { originalOf } from "../view/arrange.ts";
import { stepsOfGiven } from "../view/unsent.ts";
import { type GivenArray, type Held, TAIL_MAX } from "./given-array.ts";

/** A message of the application's array, and what is recorded of it. */
export interface Slot<M> {
  /** The object that stood in the array. */
  given: M;
  /** What Holdfast has of it. */
  readonly recorded: M;
  /** Its entry; null if it is one that the view made: several that were joined, or what was made up (P3). */
  readonly id: string | null;
  /** What the application's `key` said of it. */
  key?: string;
}

export function slotOf<M>(given: M, recorded: M, id: string | null): Slot<M> {
  return { given, recorded, id };
}

/** Compares what is recorded with what an array holds (R14 b, c). */
export class Comparison<M> {
  readonly array: GivenArray<M>;
  readonly #admission: Admission<M>;
  readonly #key: ((message: M) => unknown) | undefined;

  constructor(admission: Admission<M>, array: GivenArray<M>, key?: (message: M) => unknown) {
    this.#admission = admission;
    this.array = array;
    this.#key = key;
  }

  /** Equal but for cache marks, and for what redaction and the dialect's encoding do to it. */
  same(recorded: M, at: number): boolean {
    return recorded === this.array.objects[at] || this.sameAs(recorded, this.array.held(at));
  }

  sameAs(recorded: M, { content, stored }: Held<M>): boolean {
    const { dialect, redactor } = this.#admission;
    return dialect.same(recorded, content) || (redactor !== null && this.#admission.same(recorded, stored));
  }

  /** As it would come back from the journal. */
  stored(at: number): M {
    const { content, stored } = this.array.held(at);
    return this.#admission.redactor ? this.#admission.decoded(stored) : content;
  }

  fits(slot: Slot<M>, at: number): boolean {
    if (slot.given === this.array.objects[at]) return true;
    const key = this.array.key(at);
    if (key !== "") {
      slot.key ??= this.#keyOf(slot.given);
      if (slot.key !== "") return slot.key === key;
    }
    return this.same(slot.recorded, at);
  }

  /** The first message that is not the one of its slot; the number of slots if all are. By reference this looks at no message but the last few. */
  firstDifference(slots: readonly Slot<M>[]): number {
    const { array } = this;
    const end = Math.min(slots.length, array.length);
    let at = 0;
    for (; at < end; at++) {
      const slot = slots[at]!;
      if (slot.given === array.objects[at]) continue;
      if (!this.fits(slot, at)) return at;
      // From now on by reference.
      slot.given = array.objects[at]!;
    }
    return Math.min(at, this.#firstWrittenInto(slots, end));
  }

  /** Is it still what is recorded in the slot that it is known from? Far back in the array nobody writes into a message any more. */
  isUnchanged(slots: readonly Slot<M>[], slot: number, at: number): boolean {
    const isOld = at < this.array.length - TAIL_MAX && slot < slots.length - TAIL_MAX;
    return isOld || this.same(slots[slot]!.recorded, at);
  }

  #keyOf(message: M): string {
    const key = this.#key?.(message);
    return typeof key === "string" ? key : "";
  }

  /** Objects that were written into after they were recorded, from the assistant's last message on. */
  #firstWrittenInto(slots: readonly Slot<M>[], end: number): number {
    const { dialect } = this.#admission;
    let first = end;
    for (let at = end - 1; at >= Math.max(0, end - TAIL_MAX); at--) {
      const { recorded } = slots[at]!;
      if (!this.same(recorded, at)) first = at;
      if (dialect.role(recorded) === "assistant") break;
    }
    return first;
  }
}

/** The slots of an array that begins with what the model is shown, message by message; null if it does not. */
export function slotsOfView<M>(
  view: readonly M[],
  items: readonly Item<M>[],
  comparison: Comparison<M>,
): Slot<M>[] | null {
  if (view.length > comparison.array.length) return null;
  const slots = viewSlots(view, items);
  return comparison.firstDifference(slots) === slots.length ? slots : null;
}

/** What the model is shown, as if the application had it in its array. */
export function viewSlots<M>(view: readonly M[], items: readonly Item<M>[]): Slot<M>[] {
  const ids = new Map<M, string>();
  for (const { entry } of items) ids.set(entry.message, entry.id);
  return view.map((message) => slotOf(message, message, ids.get(originalOf(message)) ?? null));
}

/**
 * The slots of an array that begins with the messages as they were recorded: that of an agent that stored its own. What Holdfast made up, what is kept from the model, and results that no message holds
 * may stand in it or not.
 */
export function slotsOfItems<M>(items: readonly Item<M>[], comparison: Comparison<M>): Slot<M>[] | null {
  const { array } = comparison;
  const slots: Slot<M>[] = [];
  for (const item of items) {
    const { message, id } = item.entry;
    const slot = slotOf(message, message, id);
    const at = slots.length;
    if (at < array.length && !item.superseded && comparison.fits(slot, at)) {
      slot.given = array.objects[at]!;
      slots.push(slot);
    } else if (!isOptional(item)) {
      return null;
    }
  }
  return comparison.firstDifference(slots) === slots.length ? slots : null;
}

/** An array that begins with what is recorded has few messages behind that when a process syncs it for the first time. */
const NEW_MAX = 32;

/**
 * The slots of an array that begins with what the model is shown, once both are arranged: that of an agent that was given a view, said more, and stored the whole. Where the dialect joins neighbours, the
 * view has joined since what the array has apart.
 */
export function slotsOfArranged<M>(
  view: readonly M[],
  items: readonly Item<M>[],
  comparison: Comparison<M>,
  dialect: Dialect<M>,
): Slot<M>[] | null {
  const { array } = comparison;
  if (view.length === 0) return null;
  const messages = array.objects.map((_, at) => comparison.stored(at));
  const steps = stepsOfGiven(messages, dialect, String);
  const entries = messages.map((message, at) => {
    return { id: String(at), seq: at, at: "", turn: 0, step: steps[at]!, message, metadata: {} };
  });
  const isShown = (end: number, until: number): boolean => {
    const arranged = dialect.arrange(entries.slice(0, end), { changedAt: null, next: "model" });
    const fits = until === view.length ? arranged.length === until : arranged.length >= until;
    return (
      fits &&
      view.slice(0, until).every((message, at) => message === arranged[at] || dialect.same(message, arranged[at]!))
    );
  };
  // Its last message may still be joined with what follows.
  if (!isShown(array.length, view.length - 1)) return null;
  for (let end = array.length; end > Math.max(0, array.length - NEW_MAX); end--) {
    if (isShown(end, view.length)) return anchored(end, items, comparison);
  }
  return null;
}

/** So many entries may have been joined into one message. */
export const JOINED_MAX = 64;

/** With the entries of those messages that were recorded as they are. */
function anchored<M>(end: number, items: readonly Item<M>[], comparison: Comparison<M>): Slot<M>[] {
  let next = 0;
  return comparison.array.objects.slice(0, end).map((object, at) => {
    const ahead = items.slice(next, next + JOINED_MAX);
    const found = ahead.findIndex(({ entry }) => comparison.same(entry.message, at));
    if (found < 0) return slotOf(object, comparison.stored(at), null);
    next += found + 1;
    const { entry } = ahead[found]!;
    return slotOf(object, entry.message, entry.id);
  });
}

/** An array of the application's own need not hold it. What an array itself has brought is not among that, in whatever way it is recorded. */
export function isOptional<M>(item: Item<M>): boolean {
  if (!isShown(item)) return true;
  const { synthetic } = item.entry;
  return synthetic === undefined ? item.from !== "message" : synthetic !== SYNCED;
}

/** How many of the recorded messages an array does not have, of which these messages are known from these slots. */
export function droppedFrom<M>(
  items: readonly Item<M>[],
  slots: readonly Slot<M>[],
  matches: readonly (number | null)[],
): number {
  const known = new Set(matches);
  const inSlots = new Map(slots.map(({ id }, at) => [id, known.has(at)]));
  // Several entries may have been joined into one slot, which has no id then. Which ones those are, nobody has to know.
  const isJoinThere = slots.every(({ id }, at) => id !== null || known.has(at));
  return items.filter((item) => !isOptional(item) && !(inSlots.get(item.entry.id) ?? isJoinThere)).length;
}

/**
 * What was recorded since by other calls, `turn.append` say, and has come to stand in the array too: slots for as many of the messages from `known` on as are found among those, in order.
 */
export function slotsOfOthers<M>(others: readonly Entry<M>[], known: number, comparison: Comparison<M>): Slot<M>[] {
  const { array } = comparison;
  const slots: Slot<M>[] = [];
  let next = 0;
  for (let at = known; at < array.length; at++) {
    const found = others.findIndex(({ message }, n) => n >= next && comparison.same(message, at));
    if (found < 0) break;
    const { message, id } = others[found]!;
    slots.push(slotOf(array.objects[at]!, message, id));
    next = found + 1;
  }
  return slots;
}
