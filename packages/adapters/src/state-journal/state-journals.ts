import type { FoldedState, StateJournal } from "./state-journal.ts";

/** Journals that stay in memory after their last use. */
const IN_MEMORY_MAX = 64;

/** The sessions that this process has used last, by name. */
export class StateJournals<S extends FoldedState> {
  readonly #journals = new Map<string, StateJournal<S>>();

  get(name: string, make: () => StateJournal<S>): StateJournal<S> {
    const journal = this.#journals.get(name) ?? make();
    // The least recently used comes first.
    this.#journals.delete(name);
    this.#journals.set(name, journal);
    for (const [oldest, other] of this.#journals) {
      if (this.#journals.size <= IN_MEMORY_MAX) break;
      if (other.isIdle && other !== journal) this.#journals.delete(oldest);
    }
    return journal;
  }

  /** Lets other processes write to the session at once. */
  async release(name: string): Promise<void> {
    await this.#journals.get(name)?.release();
  }

  async delete(name: string, journal: StateJournal<S>): Promise<void> {
    await journal.delete();
    this.#journals.delete(name);
  }

  /** Waits for what is being written, and releases all of them. */
  async releaseAll(): Promise<void> {
    await Promise.all([...this.#journals.values()].map((journal) => journal.release()));
  }
}
