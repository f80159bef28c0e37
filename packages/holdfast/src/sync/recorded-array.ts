import type { Conversation } from "../conversation/conversation.ts";
import type { Entry } from "../dialects/dialect.ts";
import { arranged } from "../view/arrange.ts";
import { openCalls } from "../view/interruption.ts";
import { messagesOf } from "../view/messages.ts";
import {
  type Comparison,
  droppedFrom,
  JOINED_MAX,
  type Slot,
  slotOf,
  slotsOfArranged,
  slotsOfItems,
  slotsOfOthers,
  slotsOfView,
  viewSlots,
} from "./comparison.ts";
import type { GivenArray } from "./given-array.ts";
import { matchedSlots } from "./match.ts";

/** How an array differs from what is recorded. */
export interface Difference<M> {
  /** The first message that is not what is recorded there. */
  readonly index: number;
  /** What the array was, or should have been. */
  readonly slots: readonly Slot<M>[];
  /** For each message the slot that it is known from. */
  readonly matches: readonly (number | null)[];
}

/** What is known of the session besides its conversation. */
export interface Surroundings<M> {
  /** What the model is shown. */
  messages(): readonly M[];
  /** How often the application has looked at that. */
  looks(): number;
  hasOpenTurn(): boolean;
}

/** The application's array, as far as it is recorded. */
export class RecordedArray<M> {
  readonly #conversation: Conversation<M>;
  readonly #around: Surroundings<M>;
  #slots: Slot<M>[] | null = null;
  /** The epoch that the slots are of. */
  #epoch = 0;
  /** Items with a greater seq were recorded by others. */
  #seq = 0;
  /** How often the application had looked at the messages at the last sync. */
  #looks = -1;

  constructor(conversation: Conversation<M>, around: Surroundings<M>) {
    this.#conversation = conversation;
    this.#around = around;
  }

  /** The array holds results that the view made up, and that are not recorded yet. */
  holdsRepairs = false;

  /** False until the first sync. */
  get isKnown(): boolean {
    return this.#slots !== null;
  }

  get length(): number {
    return this.#slots?.length ?? 0;
  }

  /** Items with a greater seq were recorded beside the array. */
  get seenSeq(): number {
    return this.#slots ? this.#seq : this.#conversation.head;
  }

  /** It is all recorded now. `looks`: how often the application had looked when it was given. */
  synced(looks: number): void {
    this.#looks = looks;
  }

  /** The array begins with these. */
  take(slots: Slot<M>[]): void {
    this.#slots = slots;
    this.#epoch = this.#conversation.epochSeq;
    this.#seq = Math.max(this.#seq, this.#conversation.head);
  }

  /** These messages were recorded behind the others, from `from` on in the array. */
  add(array: GivenArray<M>, from: number, ids: readonly string[]): void {
    this.#epoch = this.#conversation.epochSeq;
    for (const [n, id] of ids.entries()) {
      const entry = this.#conversation.find(id)?.entry;
      this.#slots!.push(slotOf(array.objects[from + n]!, entry?.message ?? array.content(from + n), id));
      this.#seq = Math.max(this.#seq, entry?.seq ?? 0);
    }
  }

  /**
   * Finds what is known at the beginning of the array: by the array as it was, else by what the session shows, else by what is recorded. Null if all that is there is known.
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
    const shown = this.#isLoadedAgain(comparison.array) ? this.#loaded(comparison, "as shown") : null;
    if (shown) {
      this.take(shown);
      return null;
    }
    const known = slots && this.#differenceFrom(slots, same, comparison);
    if (known && this.#isOfThisArray(known, comparison.array)) return known;
    const loaded =
      this.#loaded(comparison, "as shown") ??
      this.#loaded(comparison, "as recorded") ??
      (known && isInPlace(known) ? null : this.#loaded(comparison, "once arranged"));
    if (loaded) {
      this.take(loaded);
      return null;
    }
    return known ?? this.#firstDifference(comparison);
  }

  /** Those messages that are objects which the session handed out. */
  *handedOut(): Iterable<M> {
    for (const { given, recorded } of this.#slots ?? []) if (given === recorded) yield given;
  }

  /** The first sync of this process: whether the array came from what is shown or from what is recorded, nobody says. */
  #firstDifference(comparison: Comparison<M>): Difference<M> {
    const { items, dialect } = this.#conversation;
    const shown = viewSlots(this.#around.messages(), items);
    const recorded = items
      .filter(({ superseded }) => !superseded)
      .map(({ entry }) => slotOf(entry.message, entry.message, entry.id));
    const [one, other] = [shown, recorded].map((slots) => {
      const index = comparison.firstDifference(slots);
      const matches = matchedSlots(slots, index, comparison, dialect);
      const known = matches.filter((slot) => slot !== null).length;
      return { index, slots, matches, known, dropped: droppedFrom(items, slots, matches) };
    });
    return other!.dropped < one!.dropped || other!.known > one!.known ? other! : one!;
  }

  /** With what others have recorded since, as far as the array has it. */
  #differenceFrom(slots: readonly Slot<M>[], same: number, comparison: Comparison<M>): Difference<M> {
    const others = this.#others().map(({ message, id }) => slotOf(message, message, id));
    const matches = matchedSlots([...slots, ...others], same, comparison, this.#conversation.dialect);
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
   * It is the array of the last sync, changed by the application, and not one that was loaded from what the session shows since. Nobody has looked at that; or some of its messages are the very objects, and none of the others is frozen, as
   * those of the session are; or it has left out so many that it cannot be all of what is shown.
   */
  #isOfThisArray({ slots, matches }: Difference<M>, { objects }: GivenArray<M>): boolean {
    if (this.#around.looks() === this.#looks) return true;
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

  /** It begins with the very objects that the session shows: whatever the array was before, it was loaded again, behind an edit say. */
  #isLoadedAgain({ objects }: GivenArray<M>): boolean {
    if (this.#around.looks() === this.#looks) return false;
    const view = this.#around.messages();
    return view.length <= objects.length && view.every((message, at) => message === objects[at]);
  }

  /** "once arranged": it may differ in what the model is not shown. */
  #loaded(comparison: Comparison<M>, how: "as shown" | "as recorded" | "once arranged"): Slot<M>[] | null {
    const { items, dialect } = this.#conversation;
    const view = this.#around.messages();
    const isCut = openCalls(this.#conversation).length > 0;
    const bare = isCut ? this.#withoutRepairs() : null;
    const ways: Record<typeof how, [holdsRepairs: boolean, find: () => Slot<M>[] | null][]> = {
      "as shown": [
        [isCut, () => slotsOfView(view, items, comparison)],
        [false, () => bare && slotsOfView(bare, items, comparison)],
      ],
      "as recorded": [[false, () => slotsOfItems(items, comparison)]],
      "once arranged": [
        [isCut, () => slotsOfArranged(view, items, comparison, dialect)],
        [false, () => bare && slotsOfArranged(bare, items, comparison, dialect)],
      ],
    };
    for (const [holdsRepairs, find] of ways[how]) {
      const slots = find();
      if (!slots) continue;
      this.holdsRepairs = holdsRepairs;
      return slots;
    }
    return null;
  }

  /** Results that the view makes up for the calls of a turn that is over, and that the application has taken into its array: nobody said them (P3). */
  #closingSlots(known: number, comparison: Comparison<M>): Slot<M>[] {
    const { array } = comparison;
    const isPossible = this.#around.looks() !== this.#looks && !this.#around.hasOpenTurn() && known < array.length;
    if (!isPossible || array.role(known) !== "tool" || openCalls(this.#conversation).length === 0) return [];
    const made = messagesOf(this.#conversation, { kind: "idle" }).slice(this.#withoutRepairs().length);
    const slots: Slot<M>[] = [];
    for (const message of made) {
      const at = known + slots.length;
      if (at >= array.length || !comparison.same(message, at)) return [];
      slots.push(slotOf(array.objects[at]!, message, null));
    }
    this.holdsRepairs = slots.length > 0;
    return slots;
  }

  #withoutRepairs(): readonly M[] {
    return arranged(this.#conversation, { next: "model", made: [], without: new Set() });
  }

  /** What was recorded since by other calls. */
  #others(): Entry<M>[] {
    const { items } = this.#conversation;
    let from = items.length;
    while (from > 0 && items[from - 1]!.entry.seq > this.#seq) from -= 1;
    return items.slice(from).map(({ entry }) => entry);
  }
}

/** Every message stands where it stood, known or changed: none was joined with another. */
function isInPlace<M>({ slots, matches }: Difference<M>): boolean {
  return matches.length >= slots.length && matches.every((slot, at) => slot === null || slot === at);
}
