import type { Admission } from "../admit/admit.ts";
import { type Item, isShown } from "../conversation/item.ts";
import { SYNCED } from "../conversation/records/records.ts";
import type { Dialect, Entry } from "../dialects/dialect.ts";
import { originalOf } from "../view/arrange.ts";
import { stepsIn } from "../view/unsent.ts";
import { type GivenArray, TAIL_MAX } from "./given-array.ts";

/** A message of the application's array, and what is recorded for it. */
export interface Slot<M> {
  /** The object in the array. */
  given: M;
  /** Holdfast's version of it. */
  readonly recorded: M;
  /** Its entry; null if the view made it, by joining several messages or by synthesizing one (P3). */
  readonly id: string | null;
}

/** Compares the recorded conversation with an array (R14 b, c). */
export class Comparison<M> {
  readonly array: GivenArray<M>;
  readonly #admission: Admission<M>;

  constructor(admission: Admission<M>, array: GivenArray<M>) {
    this.#admission = admission;
    this.array = array;
  }

  get dialect(): Dialect<M> {
    return this.#admission.dialect;
  }

  /** Equal except for cache marks, and for the effects of redaction and the dialect's encoding. */
  same(recorded: M, at: number): boolean {
    if (recorded === this.array.objects[at]) return true;
    const { content, stored } = this.array.held(at);
    const { dialect, redactor } = this.#admission;
    return dialect.same(recorded, content) || (redactor !== null && this.#admission.same(recorded, stored));
  }

  /** The message as it would be read back from the journal. */
  stored(at: number): M {
    const { content, stored } = this.array.held(at);
    return this.#admission.redactor ? this.#admission.decoded(stored) : content;
  }

  /**
   * The index of the first message that differs from its slot; the number of slots if none does. Objects that are the
   * same are compared by content only among the last few messages.
   */
  firstDifference(slots: readonly Slot<M>[]): number {
    const { array } = this;
    const end = Math.min(slots.length, array.length);
    let at = 0;
    for (; at < end; at++) {
      const slot = slots[at]!;
      if (slot.given === array.objects[at]) continue;
      if (!this.same(slot.recorded, at)) return at;
      // Recognized by reference from now on.
      slot.given = array.objects[at]!;
    }
    return Math.min(at, this.#firstWrittenInto(slots, end));
  }

  /**
   * Whether it still equals what is recorded in its slot. Applications do not change messages far back in the array.
   */
  isUnchanged(slots: readonly Slot<M>[], slot: number, at: number): boolean {
    const isOld = at < this.array.length - TAIL_MAX && slot < slots.length - TAIL_MAX;
    return isOld || this.same(slots[slot]!.recorded, at);
  }

  /** Finds objects changed after they were recorded, from the assistant's last message on. */
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

/** The slots of an array that starts with what the model is shown, message by message; null if it does not. */
export function slotsOfView<M>(
  view: readonly M[],
  items: readonly Item<M>[],
  comparison: Comparison<M>,
): Slot<M>[] | null {
  if (view.length > comparison.array.length) return null;
  const slots = viewSlots(view, items);
  return comparison.firstDifference(slots) === slots.length ? slots : null;
}

/** What the model is shown, as if it were the application's array. */
export function viewSlots<M>(view: readonly M[], items: readonly Item<M>[]): Slot<M>[] {
  const ids = new Map<M, string>();
  for (const { entry } of items) ids.set(entry.message, entry.id);
  return view.map((message) => ({ given: message, recorded: message, id: ids.get(originalOf(message)) ?? null }));
}

/**
 * The slots of an array that starts with the messages as recorded: the array of an agent that stored its own.
 * Synthesized messages, messages hidden from the model, and results that no message holds are optional in it.
 */
export function slotsOfItems<M>(items: readonly Item<M>[], comparison: Comparison<M>): Slot<M>[] | null {
  const { array } = comparison;
  const slots: Slot<M>[] = [];
  for (const item of items) {
    const { message, id } = item.entry;
    const at = slots.length;
    if (at < array.length && !item.superseded && comparison.same(message, at)) {
      slots.push({ given: array.objects[at]!, recorded: message, id });
    } else if (!isOptional(item)) {
      return null;
    }
  }
  return comparison.firstDifference(slots) === slots.length ? slots : null;
}

/** When a process first syncs an array that starts with the recorded conversation, few messages follow it. */
const NEW_MAX = 32;

/**
 * The slots of an array that starts with what the model is shown, once both are arranged: the array of an agent that
 * received a view, added to it, and stored all of it. Where the dialect joins neighbours, the view may have joined
 * messages that are separate in the array.
 */
export function arrangedSlots<M>(
  view: readonly M[],
  items: readonly Item<M>[],
  comparison: Comparison<M>,
): Slot<M>[] | null {
  const { array, dialect } = comparison;
  if (view.length === 0) return null;
  const messages = array.objects.map((_, at) => comparison.stored(at));
  const steps = stepsIn(messages, dialect, String);
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
  // Its last message may still be joined with the next one.
  if (!isShown(array.length, view.length - 1)) return null;
  for (let end = array.length; end > Math.max(0, array.length - NEW_MAX); end--) {
    if (isShown(end, view.length)) return anchor(end, items, comparison);
  }
  return null;
}

/** At most this many entries can be joined into one message. */
export const JOINED_MAX = 64;

/** Adds the entries of messages that were recorded unchanged. */
function anchor<M>(end: number, items: readonly Item<M>[], comparison: Comparison<M>): Slot<M>[] {
  let next = 0;
  return comparison.array.objects.slice(0, end).map((object, at) => {
    const ahead = items.slice(next, next + JOINED_MAX);
    const found = ahead.findIndex(({ entry }) => comparison.same(entry.message, at));
    if (found < 0) return { given: object, recorded: comparison.stored(at), id: null };
    next += found + 1;
    const { entry } = ahead[found]!;
    return { given: object, recorded: entry.message, id: entry.id };
  });
}

/**
 * Whether an application's own array may lack it. Messages that came from an array are never optional, however they are
 * recorded.
 */
export function isOptional<M>(item: Item<M>): boolean {
  if (!isShown(item)) return true;
  const { synthetic } = item.entry;
  return synthetic === undefined ? item.from !== "message" : synthetic !== SYNCED;
}

/** How many recorded messages the array lacks, given the slots that its messages match. */
export function droppedFrom<M>(
  items: readonly Item<M>[],
  slots: readonly Slot<M>[],
  matches: readonly (number | null)[],
): number {
  const known = new Set(matches);
  const inSlots = new Map(slots.map(({ id }, at) => [id, known.has(at)]));
  // A slot of several joined entries has no id. Which entries those are does not matter here.
  const isJoinThere = slots.every(({ id }, at) => id !== null || known.has(at));
  return items.filter((item) => !isOptional(item) && !(inSlots.get(item.entry.id) ?? isJoinThere)).length;
}

/**
 * Messages recorded since by other calls, such as `turn.append`, that are also in the array: slots for as many of the
 * messages from `known` on as match them, in order.
 */
export function slotsOfOthers<M>(others: readonly Entry<M>[], known: number, comparison: Comparison<M>): Slot<M>[] {
  const { array } = comparison;
  const slots: Slot<M>[] = [];
  let next = 0;
  for (let at = known; at < array.length; at++) {
    const found = others.findIndex(({ message }, n) => n >= next && comparison.same(message, at));
    if (found < 0) break;
    const { message, id } = others[found]!;
    slots.push({ given: array.objects[at]!, recorded: message, id });
    next = found + 1;
  }
  return slots;
}
