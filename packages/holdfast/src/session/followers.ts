import type { Journal } from "../journal/contract.ts";
import type { JournalRecord } from "../journal/record.ts";

/** Followers of a session through its writer: they receive everything it wrote, and nothing else (C18). */
export class Followers {
  readonly #journal: Journal;
  readonly #following = new Set<{ last: number; readonly over: AbortController }>();
  /** The writer's last record; null while it is open. */
  #end: number | null = null;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  async *follow({ after = 0, signal }: { after?: number; signal?: AbortSignal }): AsyncGenerator<JournalRecord> {
    const follower = { last: after, over: new AbortController() };
    const signals = signal ? [signal, follower.over.signal] : [follower.over.signal];
    this.#following.add(follower);
    this.#release(follower);
    try {
      for await (const record of this.#journal.follow({ after, signal: AbortSignal.any(signals) })) {
        yield record;
        follower.last = record.seq;
        this.#release(follower);
      }
    } finally {
      this.#following.delete(follower);
    }
  }

  /** The writer has ended. Followers continue to its last record; after a failure that is unknown, so they stop. */
  end(): void {
    this.#end = this.#journal.failure ? 0 : this.#journal.head;
    for (const follower of this.#following) this.#release(follower);
  }

  #release({ last, over }: { readonly last: number; readonly over: AbortController }): void {
    if (this.#end !== null && last >= this.#end) over.abort();
  }
}
