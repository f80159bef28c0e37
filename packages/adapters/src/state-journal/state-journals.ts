import type { FoldedState, StateJournal } from "./state-journal.ts";

/** Journals that stay in memory after their last use. Each may have files open until it is released. */
const IN_MEMORY_MAX = 64;

/** The sessions that this process has used last, by name. */
export class StateJournals<S extends FoldedState> {
  readonly #journals = new Map<string, StateJournal<S>>();
  /** The one that was asked first comes first. */
  readonly #releasing = new Map<StateJournal<S>, Promise<void>>();

  get(name: string, make: () => StateJournal<S>): StateJournal<S> {
    const journal = this.#journals.get(name) ?? make();
    // The least recently used comes first.
    this.#journals.delete(name);
    this.#journals.set(name, journal);
    for (const [oldest, other] of this.#journals) {
      if (this.#journals.size <= IN_MEMORY_MAX) break;
      if (other === journal) continue;
      if (other.isIdle) this.#journals.delete(oldest);
      else this.#releaseEarly(other);
    }
    // A caller that never lets the event loop turn would open files, and none could be closed.
    const [released] = this.#releasing.values();
    if (released && journal.isIdle) journal.waitFor(released);
    return journal;
  }

  /** A process that uses a thousand sessions in a second would run out of files before their time is over. */
  #releaseEarly(journal: StateJournal<S>): void {
    if (this.#releasing.has(journal)) return;
    const done = (): void => void this.#releasing.delete(journal);
    // What could not be written was reported to its caller.
    this.#releasing.set(journal, journal.release().then(done, done));
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
