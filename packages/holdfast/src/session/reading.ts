import type { Entry } from "../dialects/dialect.ts";
import type { Holder, Recovery } from "../journal/contract.ts";
import type { Conversation } from "./conversation.ts";
import { handedOut } from "./handed-out.ts";
import { type Life, messagesOf } from "./messages.ts";
import { deepFreeze } from "./plain-copy.ts";
import { interruptionOf } from "./resume.ts";
import type { Attributes, Interruption, Queued, Reading, Usage } from "./surface.ts";
import { unsentIn } from "./unsent.ts";

/** What a conversation looks like from outside. Everything is made when it is asked for, and kept until the conversation changes. */
export class View<M> implements Omit<Reading<M>, "id" | "recovery" | "holder"> {
  readonly #conversation: Conversation<M>;
  readonly #life: () => Life;
  readonly #cache = new Map<string, { readonly version: string; readonly value: unknown }>();

  constructor(conversation: Conversation<M>, life: () => Life) {
    this.#conversation = conversation;
    this.#life = life;
  }

  get messages(): readonly M[] {
    return this.#handedOut(this.shown);
  }
  /** The same as they are here, for comparing. */
  get shown(): readonly M[] {
    return this.#kept("messages", () => messagesOf(this.#conversation, this.#life()));
  }
  get entries(): readonly Entry<M>[] {
    return this.#handedOut(
      this.#kept("entries", () => Object.freeze(this.#conversation.items.map(({ entry }) => entry))),
    );
  }
  get interruption(): Interruption<M> | null {
    return this.#handedOut(
      this.#kept("interruption", () =>
        this.#life().kind === "live" ? null : deepFreeze(interruptionOf(this.#conversation)),
      ),
    );
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
  get warnings(): readonly string[] {
    const { items, dialect } = this.#conversation;
    return this.#kept("warnings", () => Object.freeze(unsentIn(items, dialect)));
  }

  /** Only a dialect that decodes can have made bytes. */
  #handedOut<T>(value: T): T {
    return this.#conversation.dialect.decode ? handedOut(value) : value;
  }

  #kept<T>(name: string, make: () => T): T {
    const version = `${this.#conversation.version} ${this.#life().kind}`;
    const kept = this.#cache.get(name);
    if (kept?.version === version) return kept.value as T;
    const value = make();
    this.#cache.set(name, { version, value });
    return value;
  }
}

/** A look at a session from outside. */
export function readingOf<M>(
  id: string,
  conversation: Conversation<M>,
  found: { readonly recovery: Recovery; readonly holder: Holder | null },
): Reading<M> {
  const { turn } = conversation;
  // Whoever holds it works on the turn that is open: that one is running, not interrupted.
  const isRunning = found.holder !== null && turn !== null && turn.ended === null && turn.suspended === null;
  const life: Life = isRunning ? { kind: "live", since: 0 } : { kind: "still" };
  const view = new View(conversation, () => life);
  return {
    id,
    recovery: found.recovery,
    holder: found.holder,
    get messages() {
      return view.messages;
    },
    get entries() {
      return view.entries;
    },
    get interruption() {
      return view.interruption;
    },
    get queue() {
      return view.queue;
    },
    get usage() {
      return view.usage;
    },
    get usageByTurn() {
      return view.usageByTurn;
    },
    get attributes() {
      return view.attributes;
    },
    get warnings() {
      return view.warnings;
    },
  };
}
