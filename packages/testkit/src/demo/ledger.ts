import { isDeepStrictEqual } from "node:util";
import type { JournalRecord } from "holdfast";
import { validateAnthropic } from "../providers/anthropic.ts";
import type { DemoEvent } from "./events.ts";
import type { Message } from "./model.ts";

export interface DemoReceipt {
  readonly kills: number;
  /** Told as kept, and how many of them are not there. */
  readonly kept: number;
  readonly lost: number;
  readonly requests: number;
  /** What the provider would have refused. */
  readonly refused: readonly string[];
  /** After the kill in mid-sentence the model was asked with the very same messages. */
  readonly sameRequest: boolean;
  /** What the tools did to the world, in order. */
  readonly world: readonly string[];
  readonly completed: boolean;
  readonly balances: boolean;
}

/** What the agents said, held against what the journal has. */
export class Ledger {
  readonly #kept: { readonly what: string; readonly id: string }[] = [];
  readonly #requests: { readonly life: number; readonly messages: readonly Message[] }[] = [];
  #session = "";
  #lives = 0;
  #lost = 0;
  #completed = false;
  /** What the model has streamed of the message that is not whole yet. */
  streamed = "";

  hear(event: DemoEvent): void {
    if (event.e === "opened") {
      this.#session = event.session;
      this.#lives += 1;
      this.streamed = "";
    }
    if (event.e === "request") this.#requests.push({ life: this.#lives, messages: event.messages });
    if (event.e === "word") this.streamed += event.text;
    if (event.e === "answer") this.streamed = "";
    if (event.e === "kept") this.#kept.push(event);
  }

  get session(): string {
    return this.#session;
  }

  /** Everything that was said to be kept must be among the records of the journal. */
  check(records: readonly JournalRecord[]): void {
    const there = new Set(
      records.map(({ kind, ...record }) => `${kind} ${String(kind === "message" ? record["id"] : record["call"])}`),
    );
    this.#lost += this.#kept.filter(({ what, id }) => !there.has(`${what} ${id}`)).length;
    this.#completed = records.some(({ kind, ...record }) => kind === "turn.ended" && record["outcome"] === "completed");
  }

  receipt(world: readonly string[]): DemoReceipt {
    const refused = this.#requests.flatMap(({ messages }) =>
      validateAnthropic(messages).map(({ rule, at, why }) => `${rule} at ${at}: ${why}`),
    );
    const before = this.#requests.findLast(({ life }) => life === 2);
    const after = this.#requests.find(({ life }) => life === 3);
    const sameRequest = before !== undefined && isDeepStrictEqual(before.messages, after?.messages);
    const once = new Set(world).size === world.length;
    const isRight = this.#lost === 0 && refused.length === 0 && sameRequest && once && this.#completed;
    return {
      kills: this.#lives - 1,
      kept: this.#kept.length,
      lost: this.#lost,
      requests: this.#requests.length,
      refused,
      sameRequest,
      world,
      completed: this.#completed,
      balances: isRight,
    };
  }
}
