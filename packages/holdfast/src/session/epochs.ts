import type { Conversation } from "../conversation/conversation.ts";
import type { AppStateRecord, SessionRecord } from "../conversation/records/records.ts";
import { defined } from "../defined.ts";
import type { Dialect } from "../dialects/dialect.ts";
import type { JournalStore } from "../journal/contract.ts";
import { newId } from "../journal/id.ts";
import type { JournalRecord } from "../journal/record.ts";
import { type ReplaceOptions, replacement } from "../replace/epoch.ts";
import { type ReplaceInput, toGiven } from "../replace/retained.ts";
import { rewoundPart, stateOfPart } from "../replace/state-of-part.ts";
import { undoFrom, undone, undoRecords } from "../replace/undo.ts";
import type { SyncSession } from "../sync/sync.ts";
import type { TurnActivity } from "../view/messages.ts";
import type { SessionContext } from "./turn/context.ts";

interface EpochParts<M> {
  readonly store: JournalStore;
  /** Folds records into a new conversation in this session's dialect. */
  readonly fold: (dialect: Dialect<M>) => Conversation<M>;
  readonly activity: () => TurnActivity;
}

/** Replaces the conversation of a session, and takes that back. */
export class Epochs<M> {
  readonly #context: SessionContext<M>;
  readonly #parts: EpochParts<M>;

  constructor(context: SessionContext<M>, parts: EpochParts<M>) {
    this.#context = context;
    this.#parts = parts;
  }

  async begin(build: Parameters<SyncSession<M>["epoch"]>[0]): Promise<void> {
    const { log, conversation } = this.#context;
    this.#context.assertOpen();
    const undo = conversation.epochSeq || 1;
    const records = (appState?: readonly AppStateRecord[]): readonly SessionRecord[] =>
      build((items, given) =>
        replacement(conversation, items, { ...given, ...this.#replacer(), undo, ...defined({ appState }) }, newId),
      );
    const part = conversation.appState.isUsed ? rewoundPart(conversation, records()) : null;
    if (!part) return log.epoch(() => records());
    const { head } = conversation;
    await log.journal.flush();
    const state = (await stateOfPart(() => this.#parts.store.history(this.#context.id), part)) ?? undefined;
    // What was recorded meanwhile is kept, and its state is the newest.
    await log.epoch(() => records(conversation.items.some(({ entry }) => entry.seq > head) ? undefined : state));
  }

  /** Messages in flight when the application chose what to keep: it could not know about them, so they are kept. */
  since(head: number, epochSeq: number): ReplaceInput<M>[] {
    const { items, epochSeq: current } = this.#context.conversation;
    if (current !== epochSeq) return [];
    const since = items.filter(({ entry, from }) => entry.seq > head && (from === "message" || from === "result"));
    return since.map(({ entry }) => toGiven(entry));
  }

  async undo(): Promise<void> {
    const { log, conversation, id } = this.#context;
    this.#context.assertOpen();
    const { epochSeq, dialect } = conversation;
    const from = undoFrom(conversation);
    await log.journal.flush();
    const meanwhile: JournalRecord[] = [];
    const stop = log.tap((record) => meanwhile.push(record));
    try {
      const records = await Array.fromAsync(this.#parts.store.history(id, from));
      const old = undone(records, epochSeq, this.#parts.fold(dialect));
      const read = records.at(-1)?.seq ?? 0;
      await log.epoch(() => {
        for (const record of meanwhile) if (record.seq > read) old.add(record);
        return undoRecords(old, this.#replacer(), newId);
      });
    } finally {
      stop();
    }
  }

  #replacer(): Pick<ReplaceOptions, "activity" | "intents"> {
    return { activity: this.#parts.activity(), intents: this.#context.log.intents };
  }
}
