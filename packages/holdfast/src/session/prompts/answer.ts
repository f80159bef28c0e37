import type { Conversation } from "../../conversation/conversation.ts";
import type { TurnState } from "../../conversation/turn-state.ts";
import { defined } from "../../defined.ts";
import type { Entry } from "../../dialects/dialect.ts";
import type { JournalStore } from "../../journal/contract.ts";
import type { JournalRecord } from "../../journal/record.ts";
import { sessionNotFound } from "../../journal/refusals.ts";
import { endedAs } from "../../session-state.ts";
import { handedOut } from "../../view/handed-out.ts";

/** How a turn ended, and what it produced. */
export interface Answer<M> {
  readonly turn: number;
  /** `left`: another prompt took its place. */
  readonly outcome: "completed" | "aborted" | "failed" | "left";
  readonly by?: string;
  readonly reason?: string;
  readonly error?: string;
  /** The turn's messages, its prompt included, as the conversation had them when the turn ended. */
  readonly entries: readonly Entry<M>[];
}

/** It has ended, and not because its process did. */
export function isOver<M>({ ended }: Pick<TurnState<M>, "ended">): boolean {
  return ended !== null && endedAs(ended.outcome, ended.by) !== "cut";
}

/** Folds a journal up to the end of the turn of one key. */
class AnswerSearch<M> {
  readonly #conversation: Conversation<M>;
  readonly #key: string;
  answer: Answer<M> | null = null;

  constructor(conversation: Conversation<M>, key: string) {
    this.#conversation = conversation;
    this.#key = key;
  }

  /** The turn of the key; null: it waits in the queue, or nobody has used the key. */
  get turn(): number | null {
    return this.#conversation.promptKeys.find(this.#key)?.turn ?? null;
  }
  get isKnown(): boolean {
    return this.#conversation.promptKeys.find(this.#key) !== null;
  }
  /** The turn may still end: it is the last one, and not over. */
  get isPending(): boolean {
    const { turn } = this.#conversation;
    return this.turn === null || (turn?.number === this.turn && !isOver(turn));
  }

  add(record: JournalRecord): void {
    this.#conversation.add(record);
    const { turn } = this.#conversation;
    if (!turn || turn.number !== this.turn) return;
    if (record.kind === "turn.resumed") this.answer = null;
    else if (record.kind === "turn.ended" && isOver(turn)) this.answer ??= this.#answerOf(turn);
  }

  #answerOf({ number, ended }: TurnState<M>): Answer<M> {
    const { outcome, by, reason, error } = ended!;
    const entries = this.#conversation.items.map(({ entry }) => entry).filter((entry) => entry.turn === number);
    return { turn: number, outcome, ...defined({ by, reason, error }), entries: handedOut(entries) };
  }
}

export interface AnswerParts<M> {
  readonly store: JournalStore;
  readonly session: string;
  /** The digest of the key. */
  readonly key: string;
  /** An empty conversation of the session. */
  readonly fold: () => Conversation<M>;
  /** Throws STORE_CLOSED. */
  readonly assertOpen: () => void;
  readonly signal?: AbortSignal | undefined;
}

/** Of what an epoch begins with, none is of these kinds. */
const NOT_CARRIED: ReadonlySet<string> = new Set([
  "queue.take",
  "turn.started",
  "turn.resumed",
  "turn.ended",
  "opened",
]);

/**
 * The answer to the prompt with this key, when its turn is over, whichever process works on it; null if no prompt has
 * the key. Reads the journal only. Throws what the signal says, SESSION_NOT_FOUND, store errors.
 */
export async function findAnswer<M>(parts: AnswerParts<M>): Promise<Answer<M> | null> {
  const { store, session, key, fold, assertOpen, signal } = parts;
  signal?.throwIfAborted();
  const current = new AnswerSearch(fold(), key);
  const { records } = await store.read(session);
  for (const record of records) current.add(record);
  if (!current.isKnown || current.answer) return current.answer;
  if (!current.isPending) return answerBefore(parts);
  for await (const record of store.follow(session, { after: records.at(-1)!.seq, ...defined({ signal }) })) {
    current.add(record);
    if (current.answer) return current.answer;
    // An epoch brings the keys along, each in a record behind its beginning: until then none is known.
    if (!current.isKnown && NOT_CARRIED.has(record.kind)) return null;
    if (!current.isPending) return answerBefore(parts);
  }
  signal?.throwIfAborted();
  assertOpen();
  throw sessionNotFound(session);
}

/** The turn ended in an earlier epoch. */
async function answerBefore<M>({ store, session, key, fold, signal }: AnswerParts<M>): Promise<Answer<M> | null> {
  const all = new AnswerSearch(fold(), key);
  for await (const record of store.history(session)) {
    signal?.throwIfAborted();
    all.add(record);
  }
  const { turn, answer } = all;
  // Its end was lost to damage.
  return answer ?? (turn === null ? null : { turn, outcome: "left", entries: [] });
}
