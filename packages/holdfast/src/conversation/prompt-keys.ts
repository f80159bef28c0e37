import type { PromptKey, TurnKeys } from "./records/records.ts";

/** Where the prompt with a key is: in a turn, or still in the queue. */
export type PromptPlace =
  | { readonly digest: string; readonly turn: number; readonly queued?: undefined }
  | { readonly digest: string; readonly queued: string; readonly turn?: undefined };

/** How many keys one record carries into a new epoch. */
const KEYS_OF_RECORD = 10_000;

/** The keys that prompts were given, for as long as the session lives: a key stands for one turn. */
export class PromptKeys {
  readonly #places = new Map<string, PromptPlace>();

  clear(): void {
    this.#places.clear();
  }

  /** `key`: its digest. */
  find(key: string): PromptPlace | null {
    return this.#places.get(key) ?? null;
  }

  start({ promptKey, promptDigest: digest }: PromptKey, turn: number): void {
    if (promptKey !== undefined && digest !== undefined) this.#places.set(promptKey, { digest, turn });
  }

  /** A key that has its turn keeps it. */
  enqueue({ promptKey, promptDigest: digest }: PromptKey, queued: string): void {
    if (promptKey === undefined || digest === undefined) return;
    if (this.#places.get(promptKey)?.turn === undefined) this.#places.set(promptKey, { digest, queued });
  }

  /** The prompt leaves the queue. Withdrawn (null), its key is free again: nobody has answered it. */
  take(item: PromptKey, turn: number | null): void {
    if (turn !== null) this.start(item, turn);
    else if (item.promptKey !== undefined && this.find(item.promptKey)?.turn === undefined)
      this.#places.delete(item.promptKey);
  }

  carry({ keys }: TurnKeys): void {
    for (const [key, digest, turn] of keys) this.#places.set(key, { digest, turn });
  }

  /** The records that carry the keys of turns into a new epoch. Those in the queue go with their prompts. */
  saved(): TurnKeys[] {
    const keys: TurnKeys["keys"] = [];
    for (const [key, { digest, turn }] of this.#places) if (turn !== undefined) keys.push([key, digest, turn]);
    const records: TurnKeys[] = [];
    for (let at = 0; at < keys.length; at += KEYS_OF_RECORD)
      records.push({ kind: "turn.keys", keys: keys.slice(at, at + KEYS_OF_RECORD), carried: true });
    return records;
  }
}
