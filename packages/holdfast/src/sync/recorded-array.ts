import type { Conversation } from "../conversation/conversation.ts";
import type { Entry } from "../dialects/dialect.ts";
import { arrangeView } from "../view/arrange.ts";
import { openCalls } from "../view/interruption.ts";
import { messagesOf } from "../view/messages.ts";
import {
  arrangedSlots,
  type Comparison,
  droppedFrom,
  JOINED_MAX,
  type Slot,
  slotsOfItems,
  slotsOfOthers,
  slotsOfView,
  viewSlots,
} from "./comparison.ts";
import type { GivenArray } from "./given-array.ts";
import { matchedSlots } from "./match.ts";

/** How an array differs from the recorded conversation. */
export interface Difference<M> {
  /** The index of the first message that differs. */
  readonly index: number;
  /** What the array was, or should have been. */
  readonly slots: readonly Slot<M>[];
  /** For each message, its matching slot. */
  readonly matches: readonly (number | null)[];
}

/** What else is known about the session. */
export interface SessionView<M> {
  /** What the model is shown. */
  messages(): readonly M[];
  hasOpenTurn(): boolean;
}

/** The recorded part of the application's array. */
export class RecordedArray<M> {
  readonly #conversation: Conversation<M>;
  readonly #around: SessionView<M>;
  #slots: Slot<M>[] | null = null;
  /** The epoch that the slots belong to. */
  #epoch = 0;
  /** Items with a greater seq were recorded by other calls. */
  #seq = 0;

  constructor(conversation: Conversation<M>, around: SessionView<M>) {
    this.#conversation = conversation;
    this.#around = around;
  }

  /** The array holds results that the view synthesized and that are not recorded yet. */
  holdsRepairs = false;

  /** False until the first sync. */
  get isKnown(): boolean {
    return this.#slots !== null;
  }

  get length(): number {
    return this.#slots?.length ?? 0;
  }

  /** Items with a greater seq were recorded outside the array. */
  get seenSeq(): number {
    return this.#slots ? this.#seq : this.#conversation.head;
  }

  /** The array starts with these slots. */
  take(slots: Slot<M>[]): void {
    this.#slots = slots;
    this.#epoch = this.#conversation.epochSeq;
    this.#seq = Math.max(this.#seq, this.#conversation.head);
  }

  /** These messages were recorded after the others, from `from` on in the array. */
  add(array: GivenArray<M>, from: number, ids: readonly string[]): void {
    this.#epoch = this.#conversation.epochSeq;
    for (const [n, id] of ids.entries()) {
      const entry = this.#conversation.find(id)?.entry;
      const recorded = entry?.message ?? array.content(from + n);
      this.#slots!.push({ given: array.objects[from + n]!, recorded, id });
      this.#seq = Math.max(this.#seq, entry?.seq ?? 0);
    }
  }

  /**
   * Finds the known beginning of the array: by the previous array, else by what the session shows, else by what is
   * recorded. Null if the array starts with the recorded conversation.
   */
  recognise(comparison: Comparison<M>): Difference<M> | null {
    if (this.#slots && this.#epoch !== this.#conversation.epochSeq) this.#slots = null;
    const slots = this.#slots;
    const same = slots ? comparison.firstDifference(slots) : 0;
    if (slots && same === slots.length) {
      for (const slot of slotsOfOthers(this.#others(), same, comparison)) slots.push(slot);
      for (const slot of this.#closingSlots(slots.length, comparison)) slots.push(slot);
      return null;
    }
    const shown = this.#isLoadedAgain(comparison.array) ? this.#loaded(comparison, slotsOfView) : null;
    if (shown) {
      this.take(shown);
      return null;
    }
    const known = slots && this.#differenceFrom(slots, same, comparison);
    if (known && this.#isOfThisArray(known, comparison.array)) return known;
    const loaded =
      this.#loaded(comparison, slotsOfView) ??
      this.#asRecorded(comparison) ??
      (known && isInPlace(known) ? null : this.#loaded(comparison, arrangedSlots));
    if (loaded) {
      this.take(loaded);
      return null;
    }
    return known ?? this.#firstDifference(comparison);
  }

  /** The messages that are objects handed out by the session. */
  *handedOut(): Iterable<M> {
    for (const { given, recorded } of this.#slots ?? []) if (given === recorded) yield given;
  }

  /** The first sync of this process: the array may come from what is shown or from what is recorded. */
  #firstDifference(comparison: Comparison<M>): Difference<M> {
    const { items } = this.#conversation;
    const shown = viewSlots(this.#around.messages(), items);
    const recorded = items
      .filter(({ superseded }) => !superseded)
      .map(({ entry: { message, id } }) => ({ given: message, recorded: message, id }));
    const [one, other] = [shown, recorded].map((slots) => {
      const index = comparison.firstDifference(slots);
      const matches = matchedSlots(slots, index, comparison);
      const known = matches.filter((slot) => slot !== null).length;
      return { index, slots, matches, known, dropped: droppedFrom(items, slots, matches) };
    });
    return other!.dropped < one!.dropped || other!.known > one!.known ? other! : one!;
  }

  /** Includes what other calls have recorded since, as far as the array has it. */
  #differenceFrom(slots: readonly Slot<M>[], same: number, comparison: Comparison<M>): Difference<M> {
    const others = this.#others().map(({ message, id }) => ({ given: message, recorded: message, id }));
    const matches = matchedSlots([...slots, ...others], same, comparison);
    if (others.length === 0) return { index: same, slots, matches };
    const found = new Set(matches);
    const all = [...slots];
    const places = new Map<number, number>();
    for (const [n, slot] of others.entries()) {
      if (found.has(slots.length + n)) places.set(slots.length + n, all.push(slot) - 1);
    }
    const moved = matches.map((slot) => (slot === null ? null : (places.get(slot) ?? slot)));
    return { index: same, slots: all, matches: moved };
  }

  /**
   * Whether it is the last sync's array, changed by the application, rather than one loaded since from what the session
   * shows. True if some of its messages are the same objects and none of the others is frozen, as the session's are; or
   * if it has dropped too much to be all of what is shown.
   */
  #isOfThisArray({ slots, matches }: Difference<M>, { objects }: GivenArray<M>): boolean {
    let known = 0;
    let isShared = false;
    let isFrozen = false;
    for (const [at, slot] of matches.entries()) {
      if (slot === null) isFrozen ||= Object.isFrozen(objects[at]);
      else known += 1;
      isShared ||= slot !== null && slots[slot]!.given === objects[at];
    }
    return (isShared && !isFrozen) || slots.length - known > (matches.length - known) * JOINED_MAX;
  }

  /** Whether it starts with the very objects that the session shows: it was loaded again, after an edit for example. */
  #isLoadedAgain({ objects }: GivenArray<M>): boolean {
    const view = this.#around.messages();
    return view.length > 0 && view.length <= objects.length && view.every((message, at) => message === objects[at]);
  }

  /** The array starts with what is recorded, message by message. */
  #asRecorded(comparison: Comparison<M>): Slot<M>[] | null {
    const slots = slotsOfItems(this.#conversation.items, comparison);
    if (slots) this.holdsRepairs = false;
    return slots;
  }

  /**
   * The array starts with what the session shows: with or without the results that it synthesizes for a turn that was
   * cut off.
   */
  #loaded(comparison: Comparison<M>, find: typeof slotsOfView<M>): Slot<M>[] | null {
    const { items } = this.#conversation;
    const isCut = openCalls(this.#conversation).length > 0;
    const slots = find(this.#around.messages(), items, comparison);
    if (slots) this.holdsRepairs = isCut;
    if (slots || !isCut) return slots;
    const bare = find(this.#withoutRepairs(), items, comparison);
    if (bare) this.holdsRepairs = false;
    return bare;
  }

  /**
   * Results that the view synthesized for calls of a turn that is over, and that the application copied into its array:
   * nobody said them (P3).
   */
  #closingSlots(known: number, comparison: Comparison<M>): Slot<M>[] {
    const { array } = comparison;
    const isPossible = !this.#around.hasOpenTurn() && known < array.length;
    if (!isPossible || array.role(known) !== "tool" || openCalls(this.#conversation).length === 0) return [];
    const made = messagesOf(this.#conversation, { kind: "idle" }).slice(this.#withoutRepairs().length);
    const slots: Slot<M>[] = [];
    for (const message of made) {
      const at = known + slots.length;
      if (at >= array.length || !comparison.same(message, at)) return [];
      slots.push({ given: array.objects[at]!, recorded: message, id: null });
    }
    this.holdsRepairs = slots.length > 0;
    return slots;
  }

  #withoutRepairs(): readonly M[] {
    return arrangeView(this.#conversation, { next: "model", made: [], without: new Set() });
  }

  /** What other calls have recorded since. */
  #others(): Entry<M>[] {
    const { items } = this.#conversation;
    let from = items.length;
    while (from > 0 && items[from - 1]!.entry.seq > this.#seq) from -= 1;
    return items.slice(from).map(({ entry }) => entry);
  }
}

/** Whether every message is in its old position, known or changed: none was joined with another. */
function isInPlace<M>({ slots, matches }: Difference<M>): boolean {
  return matches.length >= slots.length && matches.every((slot, at) => slot === null || slot === at);
}
