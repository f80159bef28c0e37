import type { Dialect, Entry } from "../dialects/dialect.ts";
import { isHoldfastError } from "../errors.ts";
import type { Intake } from "./intake.ts";
import { type Item, isShown } from "./item.ts";
import { stepsOfGiven } from "./unsent.ts";
import { originalOf } from "./view.ts";

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

/** So many of the last known messages are compared though they are the same objects: agents go on writing into those. */
const TAIL_MAX = 8;

/** Compares what is recorded with what an array holds (R14 b, c). */
export class Comparison<M> {
  readonly #intake: Intake<M>;
  readonly #key: ((message: M) => string) | undefined;

  constructor(intake: Intake<M>, key?: (message: M) => string) {
    this.#intake = intake;
    this.#key = key;
  }

  /** Equal but for cache marks, and for what redaction and the dialect's encoding do to it. */
  same(recorded: M, given: M): boolean {
    if (recorded === given) return true;
    const { dialect } = this.#intake;
    if (dialect.same(recorded, given)) return true;
    const stored = this.stored(given);
    return stored !== null && stored !== given && dialect.same(recorded, stored);
  }

  /** As it would come back from the journal; null if it could not be recorded. */
  stored(given: M): M | null {
    const { dialect, redactor } = this.#intake;
    if (!redactor && !dialect.encode) return given;
    try {
      const { stored } = this.#intake.message(given);
      return dialect.decode ? dialect.decode(stored) : (stored as M);
    } catch (error) {
      // Whoever appends it hears why.
      if (isHoldfastError(error)) return null;
      throw error;
    }
  }

  /** Empty: there is none, and the messages themselves are compared. */
  key(message: M): string {
    const key: unknown = this.#key?.(message);
    return typeof key === "string" ? key : "";
  }

  fits(slot: Slot<M>, given: M): boolean {
    if (slot.given === given) return true;
    const key = this.key(given);
    if (key !== "") {
      slot.key ??= this.key(slot.given);
      if (slot.key !== "") return slot.key === key;
    }
    return this.same(slot.recorded, given);
  }

  /** The first message that is not the one of its slot; the number of slots if all are. By reference this looks at no message but the last few. */
  firstDifference(slots: readonly Slot<M>[], messages: readonly M[]): number {
    const end = Math.min(slots.length, messages.length);
    let at = 0;
    for (; at < end; at++) {
      const slot = slots[at]!;
      if (slot.given === messages[at]) continue;
      if (!this.fits(slot, messages[at]!)) return at;
      // From now on by reference.
      slot.given = messages[at]!;
    }
    return Math.min(at, this.#firstWrittenInto(slots, messages, end));
  }

  /** Objects that were written into after they were recorded, from the assistant's last message on. */
  #firstWrittenInto(slots: readonly Slot<M>[], messages: readonly M[], end: number): number {
    const { dialect } = this.#intake;
    let first = end;
    for (let at = end - 1; at >= Math.max(0, end - TAIL_MAX); at--) {
      const { recorded } = slots[at]!;
      if (!this.same(recorded, messages[at]!)) first = at;
      if (dialect.role(recorded) === "assistant") break;
    }
    return first;
  }
}

/** The slots of an array that begins with what the model is shown, message by message; null if it does not. */
export function slotsOfView<M>(
  view: readonly M[],
  messages: readonly M[],
  items: readonly Item<M>[],
  comparison: Comparison<M>,
): Slot<M>[] | null {
  if (view.length > messages.length) return null;
  const slots = viewSlots(view, items);
  return comparison.firstDifference(slots, messages) === slots.length ? slots : null;
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
export function slotsOfItems<M>(
  items: readonly Item<M>[],
  messages: readonly M[],
  comparison: Comparison<M>,
): Slot<M>[] | null {
  const slots: Slot<M>[] = [];
  for (const item of items) {
    const { message, id } = item.entry;
    const slot = slotOf(message, message, id);
    const at = slots.length;
    if (at < messages.length && comparison.fits(slot, messages[at]!)) {
      slot.given = messages[at]!;
      slots.push(slot);
    } else if (!isOptional(item)) {
      return null;
    }
  }
  return comparison.firstDifference(slots, messages) === slots.length ? slots : null;
}

/** An array that begins with what is recorded has few messages behind that when a process syncs it for the first time. */
const NEW_MAX = 32;

/**
 * The slots of an array that begins with what the model is shown, once both are arranged: that of an agent that was given a view, said more, and stored the whole. Where the dialect joins neighbours, the
 * view has joined since what the array has apart.
 */
export function slotsOfArranged<M>(
  view: readonly M[],
  messages: readonly M[],
  items: readonly Item<M>[],
  comparison: Comparison<M>,
  dialect: Dialect<M>,
): Slot<M>[] | null {
  const steps = stepsOfGiven(messages, dialect, String);
  const entries = messages.map((message, at) => {
    return { id: String(at), seq: at, at: "", turn: 0, step: steps[at]!, message, metadata: {} };
  });
  const isShown = (end: number, until: number): boolean => {
    const arranged = dialect.arrange(entries.slice(0, end), { changedAt: null, next: "model" });
    const fits = until === view.length ? arranged.length === until : arranged.length >= until;
    return fits && view.slice(0, until).every((message, at) => comparison.same(message, arranged[at]!));
  };
  // Its last message may still be joined with what follows.
  if (view.length === 0 || !isShown(messages.length, view.length - 1)) return null;
  for (let end = messages.length; end > Math.max(0, messages.length - NEW_MAX); end--) {
    if (isShown(end, view.length)) return anchored(messages.slice(0, end), items, comparison);
  }
  return null;
}

/** So many entries may have been joined into one message. */
const AHEAD_MAX = 64;

/** With the entries of those messages that were recorded as they are. */
function anchored<M>(messages: readonly M[], items: readonly Item<M>[], comparison: Comparison<M>): Slot<M>[] {
  let next = 0;
  return messages.map((message) => {
    const ahead = items.slice(next, next + AHEAD_MAX);
    const found = ahead.findIndex(({ entry }) => comparison.same(entry.message, message));
    if (found < 0) return slotOf(message, comparison.stored(message) ?? message, null);
    next += found + 1;
    const { entry } = ahead[found]!;
    return slotOf(message, entry.message, entry.id);
  });
}

function isOptional<M>(item: Item<M>): boolean {
  return item.from !== "message" || item.entry.synthetic !== undefined || !isShown(item);
}

/**
 * What was recorded since by other calls, `turn.append` say, and has come to stand in the array too: slots for as many of the messages from `known` on as are found among those, in order.
 */
export function slotsOfOthers<M>(
  others: readonly Entry<M>[],
  messages: readonly M[],
  known: number,
  comparison: Comparison<M>,
): Slot<M>[] {
  const slots: Slot<M>[] = [];
  let next = 0;
  for (let at = known; at < messages.length; at++) {
    const found = others.findIndex(({ message }, n) => n >= next && comparison.same(message, messages[at]!));
    if (found < 0) break;
    const { message, id } = others[found]!;
    slots.push(slotOf(messages[at]!, message, id));
    next = found + 1;
  }
  return slots;
}
