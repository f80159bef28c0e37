import { type Admission, reading, type StoredMessage } from "../admit/admit.ts";
import { invalid } from "../admit/refusals.ts";
import { type AdmittedMessages, toAdmitted } from "../admit/to-records.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { SessionRecord } from "../conversation/records/records.ts";
import { defined } from "../defined.ts";
import type { Entry } from "../dialects/dialect.ts";
import { newId } from "../journal/id.ts";
import { type ReplaceInput, toGiven } from "../replace/retained.ts";
import { Comparison, droppedFrom } from "./comparison.ts";
import { planEdits } from "./edits.ts";
import { GivenArray, type SyncOptions } from "./given-array.ts";
import { planNew, type SyncStep, turnNow } from "./new-messages.ts";
import { own, ownerOf, syncForeign, syncRewrite } from "./owners.ts";
import { type Difference, RecordedArray } from "./recorded-array.ts";
import { type Replace, type Rewrite, rewrite } from "./rewrite.ts";
import { resumeUnit, startUnit } from "./units.ts";

/** What a sync needs from its session, which alone decides what a turn is. */
export interface SyncSession<M> {
  readonly id: string;
  readonly conversation: Conversation<M>;
  readonly admission: Admission<M>;
  /** Throws SESSION_CLOSED. */
  assertOpen(): void;
  messages(): readonly M[];
  append(unit: readonly SessionRecord[]): Promise<unknown>;
  turn(): SyncTurn<M> | null;
  /** Starts or resumes a turn: `unit` records it. */
  openTurn(number: number, unit: readonly SessionRecord[]): Promise<unknown>;
  /** Starts a new epoch atomically: `build` returns its records. */
  epoch(build: (replaced: Replace<M>) => readonly SessionRecord[]): Promise<void>;
}

/** What a sync does with an open turn. */
export interface SyncTurn<M> {
  readonly number: number;
  readonly prompt: Entry<M>;
  readonly isOver: boolean;
  draft(): SyncDraft;
  /** An answer finishes the draft. */
  appendAdmitted(
    messages: AdmittedMessages,
    options: { readonly end: boolean },
  ): Promise<{ readonly ids: readonly string[] }>;
  end(): Promise<void>;
}

export interface SyncDraft {
  push(delta: { readonly text: string }): void;
  discard(reason: string): Promise<void>;
}

type Span = { readonly from: number; readonly to: number };

/** An array given to `sync`, as it was at that time. */
export interface Arrival<M> {
  readonly array: GivenArray<M>;
  readonly open: boolean;
  readonly rewrite: SyncOptions["rewrite"];
}

/**
 * Records an array of messages as it grows (R14). The array determines what the model sees: its content is recorded
 * once, and nothing is shown later that it did not hold. That is why a prompt after an interrupted turn gets no
 * boundary here: signed reasoning after it would be bound to a past without one (R1).
 */
export class Sync<M> {
  readonly #session: SyncSession<M>;
  readonly #recorded: RecordedArray<M>;
  #draft: { readonly draft: SyncDraft; readonly turn: SyncTurn<M>; pushed: string } | null = null;
  /** The objects of the array given last, synced or not. */
  #lastGiven: readonly M[] = [];

  constructor(session: SyncSession<M>) {
    this.#session = session;
    this.#recorded = new RecordedArray(session.conversation, {
      messages: () => session.messages(),
      hasOpenTurn: () => this.#openTurn() !== null,
    });
  }

  /**
   * Runs during the call. `isToWait`: other calls come first, and the application may change its messages meanwhile.
   * Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON, RECORD_INVALID, RECORD_NOT_JSON.
   */
  admit(given: readonly M[], options: SyncOptions, isToWait: boolean): Arrival<M> {
    const { open, rewrite } = reading("options", () => ({ ...options }));
    if (rewrite !== undefined && rewrite !== "epoch" && rewrite !== "error") {
      throw invalid('`rewrite` must be "epoch" or "error"');
    }
    const array = new GivenArray(given, this.#session.admission);
    if (isToWait) array.holdSince(this.#lastGiven);
    this.#lastGiven = array.objects;
    return { array, open: open === true, rewrite };
  }

  async sync({ array, open, rewrite }: Arrival<M>): Promise<{ appended: string[]; epoch: boolean }> {
    this.#session.assertOpen();
    const { conversation, admission, id } = this.#session;
    const recorded = this.#recorded;
    const comparison = new Comparison(admission, array);
    const isFirst = conversation.turn === null && conversation.items.length === 0;
    const wasKnown = recorded.isKnown;
    const difference = recorded.recognise(comparison);
    // Objects that this session handed out are its own; objects that merely have equal content may be anyone's.
    if (difference === null && !wasKnown) for (const object of recorded.handedOut()) own(object, id);
    // All unknown messages are checked before anything is recorded.
    array.hold((at) => (difference === null ? at >= recorded.length : difference.matches[at] === null));
    // Examples that an application gives to all its sessions belong to none of them.
    const shared = isFirst ? array.objects.findLastIndex((_, at) => array.role(at) === "user") : 0;
    const appended: string[] = [];
    let epoch = false;
    if (difference === null) this.#refuseForeign(array, recorded.length);
    else {
      if (rewrite === "error") throw syncRewrite(id, difference.index);
      this.#refuseForeign(array, 0, difference.matches);
      if (!wasKnown && rewrite !== "epoch") this.#refuseDropping(difference);
      const done = await this.#change(difference, comparison, open);
      epoch = done.epoch;
      appended.push(...done.ids);
    }
    const known = recorded.length;
    const turn = turnNow(conversation, this.#openTurn() !== null);
    const steps = planNew(array.contents(known), known, { dialect: conversation.dialect, turn, open });
    await this.#keepDraft(array, steps);
    for (const step of steps) {
      const ids = await this.#do(step, array);
      appended.push(...ids);
      for (const n of ids.keys()) {
        const at = (step as Span).from + n;
        if (at >= shared) own(array.objects[at], id);
      }
    }
    return { appended, epoch: epoch || steps.some(({ kind }) => kind === "import") };
  }

  /** One assistant message is enough: prompts and system messages may be given to many sessions. */
  #refuseForeign(array: GivenArray<M>, from: number, matches: Difference<M>["matches"] = []): void {
    const { id } = this.#session;
    for (let at = from; at < array.length; at++) {
      const owner = ownerOf(array.objects[at]);
      if (owner === null || owner === id || typeof matches[at] === "number") continue;
      if (array.role(at) === "assistant") throw syncForeign(id, owner, at);
    }
  }

  /**
   * An agent that forgot to load the conversation, or loaded an older one, would drop recorded messages with its first
   * sync.
   */
  #refuseDropping({ index, slots, matches }: Difference<M>): void {
    const dropped = droppedFrom(this.#session.conversation.items, slots, matches);
    if (dropped > 0) throw syncRewrite(this.#session.id, index, dropped);
  }

  #openTurn(): SyncTurn<M> | null {
    const turn = this.#session.turn();
    return turn && !turn.isOver ? turn : null;
  }

  async #do(step: SyncStep, array: GivenArray<M>): Promise<readonly string[]> {
    const { conversation, admission } = this.#session;
    switch (step.kind) {
      case "start": {
        const { unit, ids } = startUnit(conversation, admission, array.storedIn(step));
        await this.#session.openTurn(conversation.turns + 1, unit);
        return this.#added(step, array, ids);
      }
      case "import": {
        const entries = conversation.items.map(({ entry }) => toGiven(entry));
        const added = array.storedIn(step).map((stored): ReplaceInput<M> => ({ entry: this.#fresh(stored), stored }));
        await this.#session.epoch((replaced) => replaced([...entries, ...added], { reason: "import" }));
        const ids = added.map(({ entry }) => entry!.id);
        return this.#added(step, array, ids);
      }
      case "resume":
        await this.#session.openTurn(conversation.turns, resumeUnit(conversation, this.#recorded.holdsRepairs));
        this.#recorded.holdsRepairs = false;
        return [];
      case "append":
        return this.#added(step, array, await this.#append(array, step));
      case "draft":
        this.#push(array, step);
        return [];
      case "end":
        await this.#openTurn()?.end();
        return [];
    }
  }

  #added({ from }: Span, array: GivenArray<M>, ids: readonly string[]): readonly string[] {
    this.#recorded.add(array, from, ids);
    return ids;
  }

  async #append(array: GivenArray<M>, span: Span & { readonly end?: true }): Promise<readonly string[]> {
    const given = toAdmitted(array.storedIn(span));
    const { ids } = await this.#openTurn()!.appendAdmitted(given, { end: span.end === true });
    if (given.isAnswer) this.#draft = null;
    return ids;
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

  /** The growing message is gone from the array, so its draft is discarded. */
  async #keepDraft(array: GivenArray<M>, steps: readonly SyncStep[]): Promise<void> {
    const draft = this.#draft;
    if (!draft) return;
    const at = this.#recorded.length;
    const first = steps.find((step): step is SyncStep & Span => "from" in step);
    const isThere = first?.from === at && array.role(at) === "assistant";
    if (isThere && draft.turn === this.#openTurn()) return;
    this.#draft = null;
    await draft.draft.discard("it is no longer in the messages");
  }

  #textOf(array: GivenArray<M>, { from, to }: Span): string {
    const { dialect } = this.#session.conversation;
    const texts = [];
    for (let at = from; at < to; at++) texts.push(dialect.text(array.content(at)));
    return texts.filter((text) => text !== "").join("\n");
  }

  /**
   * Makes the known part of the array the recorded conversation: by edits if little has changed, otherwise by a new
   * epoch. Either is one unit. What is new is recorded after that, as it would be at the end of any array: a kill in
   * between leaves the conversation without the end that the application has replaced, and without the new one.
   */
  async #change(
    difference: Difference<M>,
    comparison: Comparison<M>,
    open: boolean,
  ): Promise<{ ids: readonly string[]; epoch: boolean }> {
    const { conversation } = this.#session;
    const { array } = comparison;
    let growing = array.length;
    while (open && growing > 0 && array.role(growing - 1) === "assistant") growing -= 1;
    const edits = planEdits({ ...difference, conversation, comparison, growing, newId });
    if (edits) {
      await this.#session.append(edits.records);
      this.#recorded.take(edits.slots);
      return { ids: edits.added, epoch: false };
    }
    // It is written later, and holds all of this array.
    array.hold(() => true);
    const turn = this.#openTurn();
    let written: Rewrite<M> | null = null;
    await this.#session.epoch((replaced) => {
      written = rewrite(
        {
          ...{ ...difference, conversation, comparison, growing },
          turnNow: turnNow(conversation, turn !== null),
          seenSeq: this.#recorded.seenSeq,
          fresh: (stored, like) => this.#fresh(stored, like),
        },
        replaced,
      );
      return written.records;
    });
    const { reason, slots, added } = written!;
    this.#recorded.take(
      slots.map((slot) => {
        const item = slot.id === null ? null : conversation.find(slot.id);
        return item ? { ...slot, recorded: item.entry.message } : slot;
      }),
    );
    // A turn whose prompt was removed cannot continue. A compaction may drop the prompt, and the turn continues.
    if (turn && reason !== "compaction" && !conversation.find(turn.prompt.id)) await turn.end();
    return { ids: added, epoch: true };
  }

  #fresh(stored: StoredMessage, like?: Entry<M>): Entry<M> {
    const { admission, conversation } = this.#session;
    const { head: seq, turns } = conversation;
    const id = newId();
    const { turn = turns, metadata = {}, model, synthetic, incomplete } = like ?? {};
    const at = like?.at ?? new Date().toISOString();
    return {
      ...{ id, seq, at, turn, step: id, message: admission.decoded(stored), metadata },
      ...defined({ model, synthetic, incomplete }),
    };
  }
}
