import type { Conversation } from "../../conversation/conversation.ts";
import { isShown } from "../../conversation/item.ts";
import type { RepairEntry, SessionRecord } from "../../conversation/records/records.ts";
import { liveRepairs } from "../../view/messages.ts";
import type { SessionContext } from "./context.ts";

/** The newest record when the model was asked, and what it was shown for calls without a result. */
interface SentRequest {
  /** The array of a sync may grow by items of a response that has begun already. */
  readonly by: "request" | "sync";
  readonly head: number;
  readonly entries: readonly RepairEntry[];
}

const NO_RECORDS: readonly SessionRecord[] = Object.freeze([]);

/** When the model was asked in this turn: its answer had not seen anything recorded since (R1). */
export class SentRequests<M> {
  readonly #context: SessionContext<M>;
  readonly #turn: number;
  #last: SentRequest | null = null;

  constructor(context: SessionContext<M>, turn: number) {
    this.#context = context;
    this.#turn = turn;
  }

  /** Returns the request that is sent: that of an earlier process, if the provider has accepted it. */
  ask(): Conversation<M>["accepted"] {
    const { accepted } = this.#context.conversation;
    // The first request here is the same.
    const earlier = this.#last === null && accepted?.turn === this.#turn ? accepted : null;
    this.#last = earlier ? { by: "request", head: earlier.asked, entries: [] } : this.#now("request");
    return earlier;
  }

  /** For sync: the model was asked with the array, and its answer has begun to grow there. */
  answerBegins(): void {
    if (!this.#isSinceAnswer()) this.#last = this.#now("sync");
  }

  /** The record of what the last request can be fetched by. */
  accepted(id: string, handle: Extract<SessionRecord, { kind: "draft.accepted" }>["handle"]): SessionRecord {
    const { head, entries } = this.#last!;
    const calls = entries.length > 0 ? { calls: true as const } : {};
    return { kind: "draft.accepted", id, turn: this.#turn, asked: head, handle, ...calls };
  }

  /**
   * The model has continued without the results of some calls: from here on the past is frozen, with the words it saw.
   * An answer with a draft was requested when the draft began.
   */
  repairs(hasDraft: boolean): readonly SessionRecord[] {
    const { items, epochSeq, exchange } = this.#context.conversation;
    const asked = hasDraft && this.#last && this.#last.head >= epochSeq ? this.#last : null;
    const last = items.at(-1);
    if (asked && last && last.entry.seq > asked.head && last.role !== "assistant") {
      return [{ kind: "repair", turn: this.#turn, asked: asked.head, entries: [...asked.entries] }];
    }
    // Items of one response may arrive one by one while tools run. Anything after the next request is another response.
    const isAnother = exchange.isClosed || this.#isSinceAnswer();
    const entries = isAnother ? this.#shownForOpenCalls() : [];
    return entries.length > 0 ? [{ kind: "repair", turn: this.#turn, entries }] : NO_RECORDS;
  }

  #now(by: SentRequest["by"]): SentRequest {
    return { by, head: this.#context.conversation.head, entries: this.#shownForOpenCalls() };
  }

  #shownForOpenCalls(): RepairEntry[] {
    const { conversation, log } = this.#context;
    return liveRepairs(conversation, log.since);
  }

  #isSinceAnswer(): boolean {
    if (this.#last?.by !== "request") return false;
    const last = this.#context.conversation.items.findLast((item) => item.role === "assistant" && isShown(item));
    return this.#last.head >= (last?.entry.seq ?? 0);
  }
}
