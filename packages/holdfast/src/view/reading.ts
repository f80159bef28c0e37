import type { Conversation } from "../conversation/conversation.ts";
import type { DraftContent } from "../conversation/draft-state.ts";
import type { Queued } from "../conversation/prompt-queue.ts";
import type { Attributes } from "../conversation/records/attributes.ts";
import type { Usage } from "../conversation/records/usage.ts";
import { deepFreeze } from "../conversation/snapshot.ts";
import type { Entry } from "../dialects/dialect.ts";
import { type Holder, hasWritten, type Recovery } from "../journal/contract.ts";
import type { Json } from "../journal/record.ts";
import { lastTurnOf, type SessionState, sessionState } from "../session-state.ts";
import { handedOut } from "./handed-out.ts";
import { callsInFlight, type Interruption, interruptionOf, type OpenCall } from "./interruption.ts";
import { messagesOf, type TurnActivity } from "./messages.ts";
import { unsentIn } from "./unsent.ts";

/** A read-only view of a session's conversation. */
export interface Reading<M> {
  readonly id: string;
  /**
   * For the model: always accepted by its provider unchanged (P4), and only appended to (R1). Frozen. Reading has no
   * effect: to ask the model, call `turn.request()`. Throws MESSAGE_UNFIT if the dialect, one of your own, can no
   * longer read a recorded message.
   */
  readonly messages: readonly M[];
  /**
   * For people: one entry per recorded message and per recorded result, in order. Hidden, replaced, late and
   * synthesized entries are marked.
   */
  readonly entries: readonly Entry<M>[];
  /** The session's state, the same in every list and on every surface. */
  readonly state: SessionState;
  /** The calls without a result, whether the last turn is running or was cut off. */
  readonly calls: readonly OpenCall[];
  /** What was in flight when the last turn was cut off (P5); null if it completed or is running. */
  readonly interruption: Interruption<M> | null;
  /** The number of the turn in progress, in this process or the one that holds the session; null between turns. */
  readonly running: number | null;
  /**
   * What the answer in progress, or one that broke off, has streamed so far, except for the last `draftMs`; null if
   * there is none. It is recorded, but no message yet: the complete answer replaces it.
   */
  readonly draft: DraftContent | null;
  /** Prompts waiting for their turn. */
  readonly queue: readonly Queued<M>[];
  /** The total of all turns. */
  readonly usage: Usage;
  /** By turn number, for the turns of the current epoch. */
  readonly usageByTurn: ReadonlyMap<number, Usage>;
  /** What was wrong with the journal when it was opened, and how it was repaired. */
  readonly recovery: Recovery;
  /** The process that is writing to it now. */
  readonly holder: Holder | null;
  readonly attributes: Attributes;
  /** The last value of each name that was recorded with a message (`appState` of `startTurn`, `append`, `tool`). */
  readonly appState: Readonly<Record<string, Json>>;
  /** The newest record that a view from `store.read` shows, for `store.follow`. A session open for writing has none. */
  readonly cursor?: string;
  /**
   * Recorded content that no request contains, because its provider would refuse it: for example, reasoning without its
   * encrypted content or its signature. Written for developers; empty if there is none. Each is also emitted as a Node
   * warning (`process.emitWarning`, code `HOLDFAST_UNSENT`), once per process.
   */
  readonly warnings: readonly string[];
}

/** What a conversation shows. */
const SHOWN = [
  ...(["messages", "entries", "state", "calls", "interruption", "running", "draft", "queue"] as const),
  ...(["usage", "usageByTurn", "attributes", "appState", "warnings"] as const),
];

/** The public view of a conversation. Everything is computed on demand and cached until the conversation changes. */
export class LiveReading<M> implements Pick<Reading<M>, (typeof SHOWN)[number]> {
  readonly #conversation: Conversation<M>;
  readonly #activity: () => TurnActivity;
  readonly #cache = new Map<string, { readonly version: string; readonly value: unknown }>();

  constructor(conversation: Conversation<M>, activity: () => TurnActivity) {
    this.#conversation = conversation;
    this.#activity = activity;
  }

  get messages(): readonly M[] {
    return this.#handedOut(this.shown);
  }
  /** The messages without defensive copies, for comparison. */
  protected get shown(): readonly M[] {
    return this.#kept("messages", () => messagesOf(this.#conversation, this.#activity()));
  }
  /** For a caller that may change the array. V8 copies an array that is not frozen far faster than a frozen one. */
  protected copyMessages(): M[] {
    const { shown } = this;
    const messages = this.#handedOut(shown);
    return messages === shown ? this.#kept("unfrozen messages", () => [...shown]).slice() : [...messages];
  }
  get entries(): readonly Entry<M>[] {
    return this.#handedOut(
      this.#kept("entries", () => Object.freeze(this.#conversation.items.map(({ entry }) => entry))),
    );
  }
  get state(): SessionState {
    return this.#activity().kind === "active" ? "running" : sessionState(lastTurnOf(this.#conversation.turn), false);
  }
  get calls(): readonly OpenCall[] {
    return this.#handedOut(this.#kept("calls", () => deepFreeze(callsInFlight(this.#conversation))));
  }
  get interruption(): Interruption<M> | null {
    return this.#handedOut(
      this.#kept("interruption", () =>
        this.#activity().kind === "active" ? null : deepFreeze(interruptionOf(this.#conversation)),
      ),
    );
  }
  get running(): number | null {
    return this.#activity().kind === "active" ? (this.#conversation.turn?.number ?? null) : null;
  }
  get draft(): DraftContent | null {
    return this.#kept("draft", () => deepFreeze(this.#conversation.draft?.content ?? null));
  }
  get queue(): readonly Queued<M>[] {
    return this.#handedOut(this.#kept("queue", () => Object.freeze(this.#conversation.queue)));
  }
  get usage(): Usage {
    return deepFreeze(this.#conversation.usage);
  }
  get usageByTurn(): ReadonlyMap<number, Usage> {
    return this.#kept("usageByTurn", () => new Map(deepFreeze([...this.#conversation.usageByTurn])));
  }
  get attributes(): Attributes {
    return this.#kept("attributes", () => deepFreeze(this.#conversation.attributes));
  }
  get appState(): Readonly<Record<string, Json>> {
    return this.#kept("appState", () => Object.freeze(this.#conversation.appState.current));
  }
  get warnings(): readonly string[] {
    const { items, dialect } = this.#conversation;
    return this.#kept("warnings", () => Object.freeze(unsentIn(items, dialect)));
  }

  #handedOut<T>(value: T): T {
    return this.#conversation.mayHoldBytes ? handedOut(value) : value;
  }

  #kept<T>(name: string, make: () => T): T {
    const version = `${this.#conversation.version} ${this.#activity().kind}`;
    const kept = this.#cache.get(name);
    if (kept?.version === version) return kept.value as T;
    const value = make();
    this.#cache.set(name, { version, value });
    return value;
  }
}

/** A view of a session without its lease. */
export function readingOf<M>(
  id: string,
  conversation: Conversation<M>,
  found: { readonly recovery: Recovery; readonly holder: Holder | null; readonly cursor?: string },
): Reading<M> {
  const { turn, at, writer } = conversation;
  const isOpen = turn !== null && turn.ended === null && turn.suspended === null;
  // The lease holder works on the turn that it has open, unless it has only opened the session of a dead writer.
  const isRunning = isOpen && turn.writers.has(writer) && found.holder !== null && hasWritten(found.holder, at);
  const activity: TurnActivity = isRunning ? { kind: "active", since: 0 } : { kind: "idle" };
  const view = new LiveReading(conversation, () => activity);
  const reading = { id, ...found };
  // Its own members, so that `{ ...reading }` and JSON have them.
  for (const name of SHOWN) Object.defineProperty(reading, name, { get: () => view[name], enumerable: true });
  return reading as Reading<M>;
}
