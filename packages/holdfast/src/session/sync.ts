import type { Entry } from "../dialects/dialect.ts";
import { isHoldfastError } from "../errors.ts";
import { newId } from "../journal/id.ts";
import type { Host } from "./host.ts";
import { asMessageError } from "./intake.ts";
import { isShown } from "./item.ts";
import type { SessionRecord } from "./records.ts";
import { openCalls } from "./resume.ts";
import type { Draft, SyncOptions } from "./surface.ts";
import {
  Comparison,
  type Slot,
  slotOf,
  slotsOfArranged,
  slotsOfItems,
  slotsOfOthers,
  slotsOfView,
  viewSlots,
} from "./sync-known.ts";
import { own, ownerOf, syncForeign, syncRewrite } from "./sync-owners.ts";
import { isAnswer, planNew, type SyncStep, type TurnNow } from "./sync-plan.ts";
import { planRewrite, type Rewrite } from "./sync-rewrite.ts";
import { resumeUnit, startUnit } from "./sync-turn.ts";
import { LiveTurn } from "./turn.ts";
import { arranged } from "./view.ts";

/** What a sync needs of its session. */
export interface SyncSession<M> {
  messages(): readonly M[];
  turn(): LiveTurn<M> | null;
  /** The turn that is open from now on, or none. */
  take(turn: LiveTurn<M> | null): void;
  replace(items: Entry<M>[], reason: "compaction" | "clear" | "rewind" | "import"): Promise<void>;
}

type Span = { readonly from: number; readonly to: number };

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

  constructor(host: Host<M>, session: SyncSession<M>) {
    this.#host = host;
    this.#session = session;
  }

  async sync(
    given: readonly M[],
    { open = false, rewrite, key }: SyncOptions<M> = {},
  ): Promise<{ appended: string[]; epoch: boolean }> {
    this.#host.assertOpen();
    // The application may go on with its array while this waits for the disk.
    const messages = [...given];
    const appended: string[] = [];
    const comparison = new Comparison(this.#host.intake, key);
    const { conversation } = this.#host;
    const isFirst = conversation.turn === null && conversation.items.length === 0;
    // Examples that an application gives to all its sessions belong to none of them.
    const shared = isFirst ? messages.findLastIndex((message) => conversation.dialect.role(message) === "user") : 0;
    const wasKnown = this.#slots !== null;
    const difference = this.#recognise(messages, comparison);
    if (difference === null) {
      this.#refuseForeign(messages, this.#slots!.length);
    } else {
      if (rewrite === "error") throw syncRewrite(this.#host.id, difference);
      const plan = this.#planRewrite(messages, comparison, open);
      this.#refuseForeign(messages, 0, plan.matches);
      // An agent that forgot to load the conversation before it went on would clear it by its first sync.
      const isStrange = !wasKnown && !plan.matches.some((match) => typeof match === "number");
      if (isStrange && rewrite !== "epoch" && conversation.items.length > 0)
        throw syncRewrite(this.#host.id, difference);
      await this.#rewrite(plan);
      appended.push(...plan.added);
    }
    const { dialect } = conversation;
    const steps = planNew(messages, this.#slots!.length, { dialect, turn: this.#turnNow(), open });
    await this.#keepDraft(messages, steps);
    for (const step of steps) {
      const ids = await this.#do(step, messages);
      for (const [n, id] of ids.entries()) {
        appended.push(id);
        const at = (step as Span).from + n;
        if (at >= shared) own(messages[at], this.#host.id);
      }
    }
    return { appended, epoch: difference !== null || steps.some(({ kind }) => kind === "import") };
  }

  /**
   * Finds what is known at the beginning of the array: by the array as it was, else by what the session shows, else by what is recorded. Null if all that is there is known; else
   * the first place that is not what it should be.
   */
  #recognise(messages: readonly M[], comparison: Comparison<M>): number | null {
    const { conversation } = this.#host;
    if (this.#slots && this.#epoch !== conversation.epochSeq) this.#slots = null;
    const slots = this.#slots;
    const same = slots ? comparison.firstDifference(slots, messages) : 0;
    if (slots && same === slots.length) {
      for (const slot of slotsOfOthers(this.#others(), messages, same, comparison)) slots.push(slot);
      return null;
    }
    const anew = this.#slotsAnew(messages, comparison);
    if (!anew) {
      const shown = slots ?? viewSlots(this.#session.messages(), conversation.items);
      return slots ? same : comparison.firstDifference(shown, messages);
    }
    this.#take(anew);
    // What this session handed out is its own; what was found to be the same may be anybody's.
    for (const { given, recorded } of anew) if (given === recorded) own(given, this.#host.id);
    return null;
  }

  #slotsAnew(messages: readonly M[], comparison: Comparison<M>): Slot<M>[] | null {
    const { conversation } = this.#host;
    const { items, dialect } = conversation;
    const view = this.#session.messages();
    const isCut = openCalls(conversation).length > 0;
    const bare = isCut ? arranged(conversation, { next: "model", made: [], without: new Set() }) : null;
    const ways: [holdsClosings: boolean, find: () => Slot<M>[] | null][] = [
      [isCut, () => slotsOfView(view, messages, items, comparison)],
      [false, () => bare && slotsOfView(bare, messages, items, comparison)],
      [false, () => slotsOfItems(items, messages, comparison)],
      [isCut, () => slotsOfArranged(view, messages, items, comparison, dialect)],
      [false, () => bare && slotsOfArranged(bare, messages, items, comparison, dialect)],
    ];
    for (const [holdsClosings, find] of ways) {
      const slots = find();
      if (!slots) continue;
      this.#holdsClosings = holdsClosings;
      return slots;
    }
    return null;
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
  #refuseForeign(messages: readonly M[], from: number, matches: Rewrite<M>["matches"] = []): void {
    const { id, conversation } = this.#host;
    for (let at = from; at < messages.length; at++) {
      const owner = ownerOf(messages[at]);
      if (owner === null || owner === id || typeof matches[at] === "number") continue;
      if (conversation.dialect.role(messages[at]!) === "assistant") throw syncForeign(id, owner, at);
    }
  }

  #turnNow(): TurnNow {
    const { conversation } = this.#host;
    if (!this.#openTurn()) return conversation.turn === null ? "none" : "over";
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

  async #do(step: SyncStep, messages: readonly M[]): Promise<readonly string[]> {
    const { conversation } = this.#host;
    switch (step.kind) {
      case "start": {
        const { unit, ids } = startUnit(this.#host, messages.slice(step.from, step.to));
        await this.#open(conversation.turns + 1, unit);
        return this.#recorded(step, messages, ids);
      }
      case "import": {
        const entries = conversation.items.map(({ entry }) => entry);
        const added = messages.slice(step.from, step.to).map((message) => this.#fresh(message));
        await this.#session.replace([...entries, ...added], "import");
        this.#epoch = conversation.epochSeq;
        return this.#recorded(
          step,
          messages,
          added.map(({ id }) => id),
        );
      }
      case "resume":
        await this.#open(conversation.turns, resumeUnit(conversation, this.#holdsClosings));
        this.#holdsClosings = false;
        return [];
      case "append":
        return this.#recorded(
          step,
          messages,
          await this.#append(messages.slice(step.from, step.to), step.end === true),
        );
      case "draft":
        this.#push(messages.slice(step.from, step.to));
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

  #recorded({ from }: Span, messages: readonly M[], ids: readonly string[]): readonly string[] {
    const { conversation } = this.#host;
    for (const [n, id] of ids.entries()) {
      const entry = conversation.find(id)?.entry;
      this.#slots!.push(slotOf(messages[from + n]!, entry?.message ?? messages[from + n]!, id));
      this.#seq = Math.max(this.#seq, entry?.seq ?? 0);
    }
    return ids;
  }

  async #append(response: M[], end: boolean): Promise<readonly string[]> {
    const turn = this.#openTurn()!;
    const draft = this.#draft;
    const { dialect } = this.#host.conversation;
    const isAnswer = dialect.role(response[0]!) === "assistant";
    if (!draft || draft.turn !== turn || !isAnswer || !this.#textOf(response).startsWith(draft.pushed)) {
      const { ids } = await turn.append(response, { end });
      if (isAnswer) this.#draft = null;
      return ids;
    }
    const { id } = draft.draft;
    try {
      const { ids } = await draft.draft.commit(response, { end });
      this.#draft = null;
      return ids;
    } catch (error) {
      // Its words did not survive an append that failed, or another draft: the message itself is here.
      if (!isHoldfastError(error, "DRAFT_DISCARDED")) throw error;
      const { ids } = await turn.append(response, { id, end });
      this.#draft = null;
      return ids;
    }
  }

  #push(response: M[]): void {
    const turn = this.#openTurn()!;
    const text = this.#textOf(response);
    let draft = this.#draft;
    if (!draft || draft.turn !== turn || !text.startsWith(draft.pushed)) {
      draft = { draft: turn.draft(), turn, pushed: "" };
      this.#draft = draft;
    }
    if (text.length > draft.pushed.length) draft.draft.push({ text: text.slice(draft.pushed.length) });
    draft.pushed = text;
  }

  /** The message that grew is gone from the array: so are its words. */
  async #keepDraft(messages: readonly M[], steps: readonly SyncStep[]): Promise<void> {
    const draft = this.#draft;
    if (!draft) return;
    const at = this.#slots!.length;
    const first = steps.find((step): step is SyncStep & Span => "from" in step);
    const isThere = first?.from === at && this.#host.conversation.dialect.role(messages[at]!) === "assistant";
    if (isThere && draft.turn === this.#openTurn()) return;
    this.#draft = null;
    await draft.draft.discard("it is no longer in the messages");
  }

  #textOf(response: readonly M[]): string {
    const { dialect } = this.#host.conversation;
    return response
      .map((message) => dialect.text(message))
      .filter((text) => text !== "")
      .join("\n");
  }

  #planRewrite(messages: readonly M[], comparison: Comparison<M>, open: boolean): Rewrite<M> {
    const { items, dialect } = this.#host.conversation;
    let growing = messages.length;
    while (open && growing > 0 && dialect.role(messages[growing - 1]!) === "assistant") growing -= 1;
    const plan = (slots: readonly Slot<M>[]): Rewrite<M> => {
      const same = comparison.firstDifference(slots, messages);
      const isOpen = this.#openTurn() !== null;
      const fresh = (message: M, like?: Entry<M>): Entry<M> => this.#fresh(message, like);
      return planRewrite({ messages, slots, same, items, dialect, comparison, isOpen, growing, fresh });
    };
    if (this.#slots) return plan(this.#slots);
    // The first sync of this process: whether the array came from what is shown or from what is recorded, nobody says.
    const shown = plan(viewSlots(this.#session.messages(), items));
    const recorded = plan(items.map(({ entry }) => slotOf(entry.message, entry.message, entry.id)));
    const known = ({ matches }: Rewrite<M>): number => matches.filter((slot) => slot !== null).length;
    return known(recorded) > known(shown) ? recorded : shown;
  }

  async #rewrite({ reason, entries, places, slots }: Rewrite<M>): Promise<void> {
    const { conversation } = this.#host;
    const turn = this.#openTurn();
    const kept = await this.#replace(entries, reason);
    this.#take(
      slots.map(({ given, recorded }, at) => {
        const place = places[at] ?? null;
        const id = place === null ? null : kept[place]!.id;
        return slotOf(given, (id === null ? null : conversation.find(id)?.entry.message) ?? recorded, id);
      }),
    );
    // Of a turn whose prompt was taken back nothing is left to go on with. A compaction may well drop it, and goes on.
    if (turn && reason !== "compaction" && !conversation.find(turn.prompt.id)) await turn.end();
  }

  async #replace(entries: readonly Entry<M>[], reason: Rewrite<M>["reason"]): Promise<readonly Entry<M>[]> {
    try {
      await this.#session.replace([...entries], reason);
      return entries;
    } catch (error) {
      if (!isHoldfastError(error, "STEP_SPLIT")) throw error;
      // The array is what the model sees, whatever it has torn apart: then all of it counts as new.
      const anew = entries.map((entry) => this.#fresh(entry.message, entry));
      await this.#session.replace(anew, reason);
      return anew;
    }
  }

  #fresh(message: M, like?: Entry<M>): Entry<M> {
    const { head: seq, turns } = this.#host.conversation;
    const id = newId();
    const { turn = turns, metadata = {}, model, synthetic, incomplete } = like ?? {};
    const at = like?.at ?? new Date().toISOString();
    return {
      id,
      seq,
      at,
      turn,
      step: id,
      message,
      metadata,
      ...(model === undefined ? {} : { model }),
      ...(synthetic === undefined ? {} : { synthetic }),
      ...(incomplete ? { incomplete } : {}),
    };
  }
}
