import { isDeepStrictEqual } from "node:util";
import type { ModelMessage, UIMessage, UIMessageChunk } from "ai";
import type { DraftContent, JournalRecord, Reading, Store } from "holdfast";
import type { UIMessagesOptions } from "../ui-messages.ts";
import type { ChunkSource, Numbered } from "./chunk-log.ts";
import { draftParts } from "./draft-parts.ts";
import { endOfAnswer } from "./end-of-answer.ts";
import { shownIn } from "./state.ts";
import { type OpenWords, uiChanges } from "./ui-changes.ts";
import { isHandedOver } from "./waits.ts";

type Part = UIMessage["parts"][number];

/** A writer that was killed records nothing: after this long without a record, we look whether it is still there. */
const LOOK_AFTER_MS = 1000;

export interface Followed {
  readonly store: Store;
  readonly session: string;
  readonly options: UIMessagesOptions;
  readonly onError: (error: unknown) => string;
  /** What the page has of the answer already. */
  readonly shown?: readonly Part[];
}

/**
 * The answer that another process is making, read from the journal: text arrives as often as that process records it.
 * Recorded messages are read again at each step; between them the pieces of text are added as they come.
 */
export function followAnswer(first: Reading<ModelMessage>, followed: Followed): ChunkSource {
  const turn = (first.running ?? first.interruption?.turn)!;
  const stop = new AbortController();
  const answer = new FollowedAnswer(first, followed, turn);
  let records: { readonly iterator: AsyncIterator<JournalRecord>; readonly stop: AbortController } | null = null;
  /** Still waited for after a look. */
  let next: Promise<IteratorResult<JournalRecord>> | null = null;
  let isOver = false;
  const follow = (): NonNullable<typeof records> => {
    const own = new AbortController();
    const signal = AbortSignal.any([stop.signal, own.signal]);
    const found = followed.store.follow(followed.session, answer.cursor, { signal });
    return { iterator: found[Symbol.asyncIterator](), stop: own };
  };
  const changes = async (): Promise<UIMessageChunk[]> => {
    records ??= follow();
    next ??= records.iterator.next();
    const found = await orLater(next);
    // A tool that runs for minutes costs a look at the lease, not a reading of the whole conversation.
    if (found === "later" && (await answer.isStillMade())) return [];
    if (found !== "later") next = null;
    if (found !== "later" && !found.done && answer.addsText(found.value)) return answer.changes();
    // By its signal: a generator that waits for a record cannot return before there is one.
    records.stop.abort();
    next?.catch(() => undefined);
    records = null;
    next = null;
    return answer.readAgain(await followed.store.read<ModelMessage>(followed.session));
  };
  let isFirst = true;
  return {
    next: async () => {
      const chunks: UIMessageChunk[] = [];
      if (isFirst) chunks.push(...answer.beginning());
      isFirst = false;
      try {
        while (chunks.length === 0 && !isOver && !stop.signal.aborted) {
          chunks.push(...(await changes()));
          isOver = answer.isOver;
        }
      } catch (error) {
        isOver = true;
        if (!stop.signal.aborted) chunks.push({ type: "error", errorText: followed.onError(error) });
      }
      if (isOver) stop.abort();
      if (chunks.length === 0) return null;
      return chunks.map((chunk): Numbered => ({ id: null, chunk }));
    },
    cancel: () => stop.abort(),
  };
}

class FollowedAnswer {
  readonly #followed: Followed;
  readonly #turn: number;
  readonly #id: string;
  readonly #open: OpenWords = new Map();
  #reading: Reading<ModelMessage>;
  /** What is recorded of the answer. */
  #message: UIMessage | undefined;
  #draft: DraftContent | null;
  #shown: readonly Part[];
  isOver = false;

  constructor(reading: Reading<ModelMessage>, followed: Followed, turn: number) {
    this.#followed = followed;
    this.#turn = turn;
    this.#id = `${reading.id}.${turn}`;
    this.#reading = reading;
    this.#message = this.#find(reading);
    this.#draft = reading.draft;
    this.#shown = followed.shown ?? [];
  }

  #find(reading: Reading<ModelMessage>): UIMessage | undefined {
    return shownIn(reading, this.#followed.options).find(({ id }) => id === this.#id);
  }

  /** By the process that made it when the journal was last read. */
  async isStillMade(): Promise<boolean> {
    const { store, session } = this.#followed;
    return isDeepStrictEqual(await store.holder(session), this.#reading.holder);
  }

  get cursor(): string | undefined {
    return this.#reading.cursor;
  }

  beginning(): UIMessageChunk[] {
    return [{ type: "start", messageId: this.#id }, ...this.changes()];
  }

  /** Whether the record is a piece of the answer; anything else is read again. */
  addsText({ kind, id, parts, discarded }: JournalRecord): boolean {
    if (kind !== "draft" || discarded !== undefined) return false;
    const old = this.#draft?.id === id ? this.#draft : null;
    const draft = { id: String(id), text: "", reasoning: "", gap: false, ...old, calls: [...(old?.calls ?? [])] };
    for (const { text = "", reasoning = "", call, input } of parts as unknown as readonly Piece[]) {
      draft.text += text;
      draft.reasoning += reasoning;
      if (call) draft.calls.push({ ...call, input: "" });
      // Inputs of parallel calls interleave, and a piece names its part: the order is known when they are read again.
      if (input !== undefined && draft.calls.length > 1) return false;
      const last = draft.calls.at(-1);
      if (input !== undefined && last) draft.calls = [{ ...last, input: last.input + input }];
    }
    this.#draft = draft;
    return true;
  }

  readAgain(reading: Reading<ModelMessage>): UIMessageChunk[] {
    this.#reading = reading;
    this.#message = this.#find(reading);
    this.#draft = reading.draft;
    // Handed over, and open in a process that is about to continue it.
    const isTaken = isHandedOver(reading) && reading.holder !== null && reading.interruption?.turn === this.#turn;
    this.isOver = reading.running !== this.#turn && !isTaken;
    return this.changes();
  }

  changes(): UIMessageChunk[] {
    const { options, onError } = this.#followed;
    const message = this.#message;
    const recorded = message?.parts ?? [];
    const parts = this.#draft && !this.isOver ? [...recorded, ...draftParts(this.#draft, options)] : recorded;
    const chunks = uiChanges(this.#shown, parts, this.#id, this.#open);
    // A step that was cleared is still there, empty.
    this.#shown = stepsIn(this.#shown) > stepsIn(parts) ? [...parts, { type: "step-start" }] : parts;
    if (!this.isOver) return chunks;
    return [...chunks, endOfAnswer(this.#reading, this.#turn, message, options, onError)];
  }
}

interface Piece {
  readonly text?: string;
  readonly reasoning?: string;
  readonly call?: { readonly id: string; readonly name: string };
  readonly input?: string;
}

function stepsIn(parts: readonly Part[]): number {
  return parts.filter(({ type }) => type === "step-start").length;
}

async function orLater<T>(value: Promise<T>): Promise<T | "later"> {
  const { promise, resolve } = Promise.withResolvers<"later">();
  const timer = setTimeout(() => resolve("later"), LOOK_AFTER_MS);
  try {
    return await Promise.race([value, promise]);
  } finally {
    clearTimeout(timer);
  }
}
