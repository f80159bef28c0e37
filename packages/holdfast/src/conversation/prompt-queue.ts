import { defined } from "../defined.ts";
import type { Metadata } from "../dialects/dialect.ts";
import type { PromptKeys } from "./prompt-keys.ts";
import type { PromptKey, QueuedItem, QueueTake } from "./records/records.ts";
import { deepFreeze } from "./snapshot.ts";

export interface Queued<M> {
  readonly id: string;
  readonly prompt: M;
  readonly at: string;
  readonly metadata: Metadata;
}

type QueuedHere<M> = Queued<M> & Readonly<PromptKey> & { readonly model?: string };

const EMPTY: Metadata = Object.freeze({});

/** Prompts that wait for their turn. */
export class PromptQueue<M> {
  readonly #keys: PromptKeys;
  readonly #items = new Map<string, QueuedHere<M>>();

  constructor(keys: PromptKeys) {
    this.#keys = keys;
  }

  find(id: string): QueuedHere<M> | null {
    return this.#items.get(id) ?? null;
  }

  get all(): QueuedHere<M>[] {
    return [...this.#items.values()];
  }

  clear(): void {
    this.#items.clear();
  }

  put({ id, queuedAt, metadata, ...rest }: QueuedItem, prompt: M): void {
    const { model, promptKey, promptDigest } = rest;
    const item = { id, prompt, at: queuedAt, metadata: deepFreeze(metadata ?? EMPTY) };
    this.#keys.enqueue(rest, id);
    this.#items.set(id, Object.freeze({ ...item, ...defined({ model, promptKey, promptDigest }) }));
  }

  /** A prompt that steers a turn is answered by that turn. */
  take({ id, withdrawn }: QueueTake, turn: number): void {
    const item = this.#items.get(id);
    if (item) this.#keys.take(item, withdrawn ? null : turn);
    this.#items.delete(id);
  }
}
