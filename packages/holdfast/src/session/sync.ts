import type { Entry } from "../dialects/dialect.ts";
import { isHoldfastError } from "../errors.ts";
import { newId } from "../journal/id.ts";
import type { JournalRecord } from "../journal/record.ts";
import { asRecorded, type Given } from "./carried.ts";
import type { Conversation } from "./conversation.ts";
import type { ReplaceOptions } from "./epoch.ts";
import type { Host } from "./host.ts";
import { asMessageError, type StoredMessage } from "./intake.ts";
import { isShown } from "./item.ts";
import { messagesOf } from "./messages.ts";
import type { SessionRecord } from "./records.ts";
import { openCalls } from "./resume.ts";
import type { Draft, SyncOptions } from "./surface.ts";
import { planEdits } from "./sync-edit.ts";
import { GivenArray } from "./sync-given.ts";
import {
  Comparison,
  droppedFrom,
  JOINED_MAX,
  type Slot,
  slotOf,
  slotsOfArranged,
  slotsOfItems,
  slotsOfOthers,
  slotsOfView,
  viewSlots,
} from "./sync-known.ts";
import { matchedSlots } from "./sync-match.ts";
import { own, ownerOf, syncForeign, syncRewrite } from "./sync-owners.ts";
import { isAnswer, planNew, type SyncStep, type TurnNow } from "./sync-plan.ts";
import { planRewrite, type Rewrite, type RewriteParts, tornApart } from "./sync-rewrite.ts";
import { appendUnit, resumeUnit, startUnit, type Unit } from "./sync-turn.ts";
import { LiveTurn } from "./turn.ts";
import { taken } from "./unit.ts";
import { arranged } from "./view.ts";

/** What a sync needs of its session. */
export interface SyncSession<M> {
  messages(): readonly M[];
  /** How often the application has looked at them. */
  looks(): number;
  turn(): LiveTurn<M> | null;
  /** The turn that is open from now on, or none. */
  take(turn: LiveTurn<M> | null): void;
  /** A new epoch, at one instant: `build` answers what it holds, and what else is to be recorded with it. */
  epoch(build: (replaced: Replace<M>) => readonly SessionRecord[]): Promise<void>;
  /** An empty conversation, in the dialect of this one. */
  empty(): Conversation<M>;
}

/** The records of a new epoch with these entries. Throws what `replace` throws. */
type Replace<M> = (
  entries: readonly Given<M>[],
  options: Pick<ReplaceOptions, "reason" | "renewed">,
) => readonly SessionRecord[];

type Span = { readonly from: number; readonly to: number };

/** An array that was given to `sync`, as it was then. */
export interface Arrival<M> {
  readonly array: GivenArray<M>;
  readonly open: boolean;
  readonly rewrite: SyncOptions<M>["rewrite"];
  readonly key: SyncOptions<M>["key"];
}

/** How an array differs from what is recorded. */
interface Difference<M> {
  /** The first message that is not what is recorded there. */
  readonly index: number;
  /** What the array was, or should have been. */
  readonly slots: readonly Slot<M>[];
  readonly matches: readonly (number | null)[];
}

/**
 * Records an array of messages as it grows (R14). The array is the truth of what the model sees: what it holds is recorded once, and nothing is shown later that it did not hold. That is why a prompt that follows an interrupted turn
 * gets no boundary here: signed reasoning behind it would be bound to a past without one (R1).
 */
export class Sync<M> {
  readonly #host: Host<M>;
  readonly #session: SyncSession<M>;
  /** The array, as far as it is recorded; null until the first sync. */
  #slots: Slot<M>[] | null = null;
  /** The epoch that the slots are of. */
  #epoch = 0;
  /** Items with a greater seq were recorded by others. */
  #seq = 0;
  /** The array holds results that the view made up, and that are not recorded yet. */
  #holdsClosings = false;
  #draft: { readonly draft: Draft<M>; readonly turn: LiveTurn<M>; pushed: string } | null = null;
  /** How often the application had looked at the messages of the session at the last sync. */
  #looks = -1;
  /** The objects of the array that was given last, synced or not. */
  #lastGiven: readonly M[] = [];

  constructor(host: Host<M>, session: SyncSession<M>) {
    this.#host = host;
    this.#session = session;
  }

  /** Inside the call. `isToWait`: other calls come first, and the application may go on with its messages meanwhile. Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON. */
  taken(given: readonly M[], options: SyncOptions<M>, isToWait: boolean): Arrival<M> {
    const { open, rewrite, key } = options ?? {};
    const array = new GivenArray(given, this.#host.intake, key);
    if (isToWait) array.holdSince(this.#lastGiven);
    this.#lastGiven = array.objects;
    return { array, open: open === true, rewrite, key };
  }

  async sync({ array, open, rewrite, key }: Arrival<M>): Promise<{ appended: string[]; epoch: boolean }> {
    this.#host.assertOpen();
    const { conversation, intake } = this.#host;
    const comparison = new Comparison(intake, array, key);
    const isFirst = conversation.turn === null && conversation.items.length === 0;
    const wasKnown = this.#slots !== null;
    const looks = this.#session.looks();
    const difference = this.#recognise(comparison);
    // All that is not known is looked at before anything is recorded.
    array.hold((at) => (difference === null ? at >= this.#slots!.length : difference.matches[at] === null));
    // Examples that an application gives to all its sessions belong to none of them.
    const shared = isFirst ? array.contents(0).findLastIndex((message) => conversation.dialect.role(message) === "user") : 0;
    const appended: string[] = [];
    let epoch = false;
    if (difference === null) this.#refuseForeign(array, this.#slots!.length);
    else {
      if (rewrite === "error") throw syncRewrite(this.#host.id, difference.index);
      this.#refuseForeign(array, 0, difference.matches);
      if (!wasKnown && rewrite !== "epoch") this.#refuseDropping(difference);
      const done = await this.#change(difference, comparison, open);
      epoch = done.epoch;
      appended.push(...done.ids);
    }
    const { dialect } = conversation;
    const known = this.#slots!.length;
    const steps = planNew(array.contents(known), known, { dialect, turn: this.#turnNow(conversation), open });
    await this.#keepDraft(array, steps);
    for (const step of steps) {
      const ids = await this.#do(step, array);
      appended.push(...ids);
      for (const n of ids.keys()) {
        const at = (step as Span).from + n;
        if (at >= shared) own(array.objects[at], this.#host.id);
      }
    }
    this.#looks = looks;
    return { appended, epoch: epoch || steps.some(({ kind }) => kind === "import") };
  }

  /**
   * Finds what is known at the beginning of the array: by the array as it was, else by what the session shows, else by what is recorded. Null if all that is there is known.
   */
  #recognise(comparison: Comparison<M>): Difference<M> | null {
    const { conversation } = this.#host;
    const { dialect } = conversation;
    if (this.#slots && this.#epoch !== conversation.epochSeq) this.#slots = null;
    const slots = this.#slots;
    const same = slots ? comparison.firstDifference(slots) : 0;
    if (slots && same === slots.length) {
      for (const slot of slotsOfOthers(this.#others(), same, comparison)) slots.push(slot);
      for (const slot of this.#closingSlots(slots.length, comparison)) slots.push(slot);
      return null;
    }
    const known = slots && this.#differenceFrom(slots, same, comparison);
    if (known && this.#isOfThisArray(known, comparison.array)) return known;
    const anew = this.#slotsAnew(comparison);
    if (anew) {
      this.#take(anew);
      // What this session handed out is its own; what was found to be the same may be anybody's.
      for (const { given, recorded } of anew) if (given === recorded) own(given, this.#host.id);
      return null;
    }
    if (known) return known;
    // The first sync of this process: whether the array came from what is shown or from what is recorded, nobody says.
    const { items } = conversation;
    const shown = viewSlots(this.#session.messages(), items);
    const recorded = items.filter(({ superseded }) => !superseded).map(({ entry }) => slotOf(entry.message, entry.message, entry.id));
    const [one, other] = [shown, recorded].map((all) => {
      const index = comparison.firstDifference(all);
      const matches = matchedSlots(all, index, comparison, dialect);
      const known = matches.filter((slot) => slot !== null).length;
      return { index, slots: all, matches, known, dropped: droppedFrom(items, all, matches) };
    });
    return other!.dropped < one!.dropped || other!.known > one!.known ? other! : one!;
  }

  /** With what others have recorded since, as far as the array has it. */
  #differenceFrom(slots: readonly Slot<M>[], same: number, comparison: Comparison<M>): Difference<M> {
    const others = this.#others().map(({ message, id }) => slotOf(message, message, id));
    const matches = matchedSlots([...slots, ...others], same, comparison, this.#host.conversation.dialect);
    if (others.length === 0) return { index: same, slots, matches };
    const found = new Set(matches);
    const all = [...slots];
    const places = new Map<number, number>();
    for (const [n, slot] of others.entries()) {
      if (found.has(slots.length + n)) places.set(slots.length + n, all.push(slot) - 1);
    }
    return { index: same, slots: all, matches: matches.map((slot) => (slot === null ? null : (places.get(slot) ?? slot))) };
  }

  /**
   * It is the array of the last sync, changed by the application, and not one that was loaded from what the session shows since. Nobody has looked at that; or some of its messages are the very objects, and none of the others is frozen, as
   * those of the session are; or it has left out so many that it cannot be all of what is shown.
   */
  #isOfThisArray({ slots, matches }: Difference<M>, { objects }: GivenArray<M>): boolean {
    if (this.#session.looks() === this.#looks) return true;
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

  #slotsAnew(comparison: Comparison<M>): Slot<M>[] | null {
    const { conversation } = this.#host;
    const { items, dialect } = conversation;
    const view = this.#session.messages();
    const isCut = openCalls(conversation).length > 0;
    const bare = isCut ? arranged(conversation, { next: "model", made: [], without: new Set() }) : null;
    const ways: [holdsClosings: boolean, find: () => Slot<M>[] | null][] = [
      [isCut, () => slotsOfView(view, items, comparison)],
      [false, () => bare && slotsOfView(bare, items, comparison)],
      [false, () => slotsOfItems(items, comparison)],
      [isCut, () => slotsOfArranged(view, items, comparison, dialect)],
      [false, () => bare && slotsOfArranged(bare, items, comparison, dialect)],
    ];
    for (const [holdsClosings, find] of ways) {
      const slots = find();
      if (!slots) continue;
      this.#holdsClosings = holdsClosings;
      return slots;
    }
    return null;
  }

  /** Results that the view makes up for the calls of a turn that is over, and that the application has taken into its array: nobody said them (P3). */
  #closingSlots(known: number, comparison: Comparison<M>): Slot<M>[] {
    const { conversation } = this.#host;
    const { array } = comparison;
    if (this.#session.looks() === this.#looks || this.#openTurn() || known >= array.length || array.role(known) !== "tool") return [];
    if (openCalls(conversation).length === 0) return [];
    const bare = arranged(conversation, { next: "model", made: [], without: new Set() });
    const made = messagesOf(conversation, { kind: "still" }).slice(bare.length);
    const slots: Slot<M>[] = [];
    for (const message of made) {
      const at = known + slots.length;
      if (at >= array.length || !comparison.same(message, at)) return [];
      slots.push(slotOf(array.objects[at]!, message, null));
    }
    this.#holdsClosings = slots.length > 0;
    return slots;
  }

  #take(slots: Slot<M>[]): void {
    this.#slots = slots;
    this.#epoch = this.#host.conversation.epochSeq;
    this.#seq = this.#host.conversation.head;
  }

  /** What was recorded since by other calls. */
  #others(): Entry<M>[] {
    const { items } = this.#host.conversation;
    let from = items.length;
    while (from > 0 && items[from - 1]!.entry.seq > this.#seq) from -= 1;
    return items.slice(from).map(({ entry }) => entry);
  }

  /** One message of the assistant's is enough: prompts and what the system says may be given to many. */
  #refuseForeign(array: GivenArray<M>, from: number, matches: Difference<M>["matches"] = []): void {
    const { id } = this.#host;
    for (let at = from; at < array.length; at++) {
      const owner = ownerOf(array.objects[at]);
      if (owner === null || owner === id || typeof matches[at] === "number") continue;
      if (array.role(at) === "assistant") throw syncForeign(id, owner, at);
    }
  }

  /** An agent that forgot to load the conversation, or has loaded an older one, would clear what is recorded by its first sync. */
  #refuseDropping(difference: Difference<M>): void {
    const dropped = droppedFrom(this.#host.conversation.items, difference.slots, difference.matches);
    if (dropped > 0) throw syncRewrite(this.#host.id, difference.index, dropped);
  }

  #turnNow(conversation: Conversation<M>, isOpen = this.#openTurn() !== null): TurnNow {
    if (!isOpen) return conversation.turn === null ? "none" : "over";
    const { items, dialect } = conversation;
    const last = items.findLast(isShown);
    const response: M[] = [];
    for (let at = items.length - 1; at >= 0 && last; at--) {
      const item = items[at]!;
      if (!isShown(item)) continue;
      if (item.entry.step !== last.entry.step) break;
      response.unshift(item.entry.message);
    }
    return isAnswer(response, dialect) ? "answered" : "open";
  }

  #openTurn(): LiveTurn<M> | null {
    const turn = this.#session.turn();
    return turn && !turn.isOver ? turn : null;
  }

  async #do(step: SyncStep, array: GivenArray<M>): Promise<readonly string[]> {
    const { conversation, intake } = this.#host;
    switch (step.kind) {
      case "start": {
        const { unit, ids } = startUnit(conversation, intake, storedIn(array, step));
        await this.#open(conversation.turns + 1, unit);
        return this.#recorded(step, array, ids);
      }
      case "import": {
        const entries = conversation.items.map(({ entry }) => asRecorded(entry));
        const added = storedIn(array, step).map((stored): Given<M> => ({ entry: this.#fresh(stored), stored }));
        await this.#session.epoch((replaced) => replaced([...entries, ...added], { reason: "import" }));
        this.#epoch = conversation.epochSeq;
        return this.#recorded(
          step,
          array,
          added.map(({ entry }) => entry!.id),
        );
      }
      case "resume":
        await this.#open(conversation.turns, resumeUnit(conversation, this.#holdsClosings));
        this.#holdsClosings = false;
        return [];
      case "append":
        return this.#recorded(step, array, await this.#append(array, step));
      case "draft":
        this.#push(array, step);
        return [];
      case "end":
        await this.#openTurn()?.end();
        return [];
    }
  }

  /** The turn is there while its unit is written, as others see it. */
  async #open(number: number, unit: readonly SessionRecord[]): Promise<void> {
    const turn = new LiveTurn(this.#host, number);
    const appended = this.#host.log.append(unit);
    this.#session.take(turn);
    try {
      await appended;
    } catch (error) {
      if (this.#session.turn() === turn) this.#session.take(null);
      throw asMessageError(error);
    }
  }

  #recorded({ from }: Span, array: GivenArray<M>, ids: readonly string[]): readonly string[] {
    const { conversation } = this.#host;
    for (const [n, id] of ids.entries()) {
      const entry = conversation.find(id)?.entry;
      const object = array.objects[from + n]!;
      this.#slots!.push(slotOf(object, entry?.message ?? array.content(from + n), id));
      this.#seq = Math.max(this.#seq, entry?.seq ?? 0);
    }
    return ids;
  }

  async #append(array: GivenArray<M>, span: Span): Promise<readonly string[]> {
    const turn = this.#openTurn()!;
    const draft = this.#draftFor(turn, array, span);
    const given = taken(storedIn(array, span));
    if (!draft) {
      const { ids } = await turn.appendTaken(given);
      if (given.isAnswer) this.#draft = null;
      return ids;
    }
    try {
      const { ids } = await turn.appendTaken(given, {}, draft);
      this.#draft = null;
      return ids;
    } catch (error) {
      // Its words did not survive an append that failed, or another draft: the message itself is here.
      if (!isHoldfastError(error, "DRAFT_DISCARDED")) throw error;
      const { ids } = await turn.appendTaken(given, { id: draft.id });
      this.#draft = null;
      return ids;
    }
  }

  /** The draft that these messages finish. */
  #draftFor(turn: LiveTurn<M> | null, array: GivenArray<M>, span: Span): Draft<M> | null {
    const draft = this.#draft;
    if (!draft || draft.turn !== turn || array.role(span.from) !== "assistant") return null;
    return this.#textOf(array, span).startsWith(draft.pushed) ? draft.draft : null;
  }

  #push(array: GivenArray<M>, span: Span): void {
    const turn = this.#openTurn()!;
    const text = this.#textOf(array, span);
    let draft = this.#draft;
    if (!draft || draft.turn !== turn || !text.startsWith(draft.pushed)) {
      draft = { draft: turn.draft(), turn, pushed: "" };
      this.#draft = draft;
    }
    if (text.length > draft.pushed.length) draft.draft.push({ text: text.slice(draft.pushed.length) });
    draft.pushed = text;
  }

  /** The message that grew is gone from the array: so are its words. */
  async #keepDraft(array: GivenArray<M>, steps: readonly SyncStep[]): Promise<void> {
    const draft = this.#draft;
    if (!draft) return;
    const at = this.#slots!.length;
    const first = steps.find((step): step is SyncStep & Span => "from" in step);
    const isThere = first?.from === at && array.role(at) === "assistant";
    if (isThere && draft.turn === this.#openTurn()) return;
    this.#draft = null;
    await draft.draft.discard("it is no longer in the messages");
  }

  #textOf(array: GivenArray<M>, { from, to }: Span): string {
    const { dialect } = this.#host.conversation;
    const texts = [];
    for (let at = from; at < to; at++) texts.push(dialect.text(array.content(at)));
    return texts.filter((text) => text !== "").join("\n");
  }

  /** Makes what is recorded what the array is: by edits where little has changed, else by a new epoch. Either is one unit: a kill finds the old conversation or the new one. */
  async #change(
    difference: Difference<M>,
    comparison: Comparison<M>,
    open: boolean,
  ): Promise<{ ids: readonly string[]; epoch: boolean }> {
    const { conversation } = this.#host;
    const { array } = comparison;
    let growing = array.length;
    while (open && growing > 0 && array.role(growing - 1) === "assistant") growing -= 1;
    const edits = planEdits({ ...difference, conversation, comparison, growing, newId });
    if (!edits) {
      // It is written later, and holds all of the array.
      array.hold(() => true);
      return { ids: await this.#rewrite(difference, comparison, { growing, open }), epoch: true };
    }
    await this.#host.log.append(edits.records);
    this.#slots = edits.slots;
    this.#epoch = conversation.epochSeq;
    this.#seq = Math.max(this.#seq, conversation.head);
    return { ids: edits.added, epoch: false };
  }

  /**
   * One epoch, with all of the array in it: what is new stands behind what is carried, in the records that it would have been appended by. Between the two a kill would take what had been acknowledged, and is in the array in other words.
   */
  async #rewrite(
    difference: Difference<M>,
    comparison: Comparison<M>,
    { growing, open }: { readonly growing: number; readonly open: boolean },
  ): Promise<readonly string[]> {
    const { array } = comparison;
    const turn = this.#openTurn();
    let written: Written<M> | null = null;
    const write = (): Promise<void> =>
      this.#session.epoch((replaced) => {
        written = this.#written({ difference, comparison, growing, open, turn }, replaced);
        return written.records;
      });
    // Whether there is an answer in it, only the epoch itself knows; a draft that waits for nothing waits shortly.
    await (turn ? turn.recordedBy(write, array.length > 0 && array.role(array.length - 1) === "assistant" && !open) : write());
    return this.#settle(written!, array, turn);
  }

  #written(parts: WriteParts<M>, replaced: Replace<M>): Written<M> {
    const { difference, comparison, growing, open, turn } = parts;
    const { conversation, intake, log } = this.#host;
    const { array } = comparison;
    const { dialect } = conversation;
    const rewriteParts: RewriteParts<M> = {
      ...difference,
      ...{ items: conversation.items, changed: conversation.changed, dialect, comparison, isOpen: turn !== null, growing },
      seenSeq: this.#slots ? this.#seq : conversation.head,
      find: (id) => conversation.find(id),
      fresh: (stored, like) => this.#fresh(stored, like),
    };
    let plan = planRewrite(rewriteParts);
    const records: SessionRecord[] = [];
    try {
      records.push(...replaced(plan.entries, { reason: plan.reason, renewed: plan.renewed.byOld }));
    } catch (error) {
      if (!isHoldfastError(error, "STEP_SPLIT")) throw error;
      plan = tornApart(plan, rewriteParts);
      records.push(...replaced(plan.entries, { reason: plan.reason, renewed: plan.renewed.byOld }));
    }
    // What comes behind it is made as if it were there already.
    const ahead = this.#session.empty();
    let { head: seq } = conversation;
    const fold = (unit: readonly SessionRecord[]): void => {
      for (const record of unit) ahead.add({ ...record, seq: ++seq, at: conversation.at } as unknown as JournalRecord);
    };
    fold(records);
    const add = (unit: readonly SessionRecord[]): void => {
      fold(unit);
      records.push(...unit);
    };
    let isOpen = turn !== null;
    let opened: number | null = null;
    const end = (): void => {
      add([{ kind: "turn.ended", turn: ahead.turns, outcome: "completed" }]);
      isOpen = false;
      opened = null;
    };
    // Of a turn whose prompt was taken back nothing is left to go on with. A compaction may well drop it, and goes on.
    if (turn && plan.reason !== "compaction" && !ahead.find(turn.prompt.id)) end();
    const steps = planNew(array.contents(plan.cut), plan.cut, { dialect, turn: this.#turnNow(ahead, isOpen), open });
    const ids: string[] = [];
    let draft: Draft<M> | null = null;
    for (const step of steps) {
      // Without any turn, and a message that still grows: they come behind the epoch.
      if (step.kind === "import" || step.kind === "draft") break;
      if (step.kind === "end") end();
      else if (step.kind === "resume") {
        add(resumeUnit(ahead, this.#holdsClosings));
        isOpen = true;
        opened = ahead.turns;
      } else {
        const messages = storedIn(array, step);
        const isStart = step.kind === "start";
        if (!isStart && opened === null) draft ??= this.#draftFor(turn, array, step);
        const { unit, ids: made }: Unit = isStart
          ? startUnit(ahead, intake, messages)
          : appendUnit(ahead, intake, messages, { since: log.since, id: draft && ids.length === 0 ? draft.id : undefined });
        add(unit);
        ids.push(...made);
        if (isStart) opened = ahead.turns;
        isOpen ||= isStart;
      }
    }
    return { plan, records, ids, opened, isTurnOver: turn !== null && (!isOpen || ahead.turns !== turn.number) };
  }

  #settle({ plan, ids, opened, isTurnOver }: Written<M>, array: GivenArray<M>, turn: LiveTurn<M> | null): readonly string[] {
    const { conversation } = this.#host;
    this.#take(
      plan.slots.map(({ given, recorded }, at) => {
        const place = plan.places[at] ?? null;
        const id = place === null ? null : plan.entries[place]!.entry!.id;
        return slotOf(given, (id === null ? null : conversation.find(id)?.entry.message) ?? recorded, id);
      }),
    );
    this.#recorded({ from: plan.cut, to: plan.cut + ids.length }, array, ids);
    for (const n of ids.keys()) own(array.objects[plan.cut + n], this.#host.id);
    if (isTurnOver) turn?.wasEnded();
    if (opened !== null) this.#session.take(new LiveTurn(this.#host, opened));
    this.#holdsClosings = false;
    return [...plan.added, ...ids];
  }

  #fresh(stored: StoredMessage, like?: Entry<M>): Entry<M> {
    const { intake, conversation } = this.#host;
    const { head: seq, turns } = conversation;
    const id = newId();
    const { turn = turns, metadata = {}, model, synthetic, incomplete } = like ?? {};
    const at = like?.at ?? new Date().toISOString();
    return {
      ...{ id, seq, at, turn, step: id, message: intake.decoded(stored), metadata },
      ...(model === undefined ? {} : { model }),
      ...(synthetic === undefined ? {} : { synthetic }),
      ...(incomplete ? { incomplete } : {}),
    };
  }
}

interface WriteParts<M> {
  readonly difference: Difference<M>;
  readonly comparison: Comparison<M>;
  readonly growing: number;
  readonly open: boolean;
  readonly turn: LiveTurn<M> | null;
}

/** A new epoch, and what it makes of the array and the turn. */
interface Written<M> {
  readonly plan: Rewrite<M>;
  readonly records: readonly SessionRecord[];
  /** Of the messages behind those that are carried. */
  readonly ids: readonly string[];
  /** The number of a turn that began in it, or went on, and is open. */
  readonly opened: number | null;
  /** The turn that was open is not any more. */
  readonly isTurnOver: boolean;
}

function storedIn<M>(array: GivenArray<M>, { from, to }: Span): StoredMessage[] {
  return Array.from({ length: to - from }, (_, n) => array.held(from + n).stored);
}
