type Word = { readonly approved: boolean; readonly reason?: string };

/** The questions that are put to a person, until all of them are answered or withdrawn. */
export class Permissions {
  #open = new Set<string>();
  #words = new Map<string, Word>();
  #done: ((words: Map<string, Word> | null) => void) | null = null;
  #asked = Promise.withResolvers<void>();

  /** Resolves when the next question is put. */
  get asked(): Promise<void> {
    return this.#asked.promise;
  }

  /** Null if the questions were withdrawn. */
  ask(calls: readonly string[]): Promise<Map<string, Word> | null> {
    this.#open = new Set(calls);
    this.#words = new Map();
    const answered = new Promise<Map<string, Word> | null>((resolve) => {
      this.#done = resolve;
    });
    this.#asked.resolve();
    this.#asked = Promise.withResolvers();
    return answered;
  }

  answer(call: string, approved: boolean, reason?: string): void {
    if (!this.#open.delete(call)) return;
    this.#words.set(call, { approved, ...(reason ? { reason } : {}) });
    if (this.#open.size === 0) this.#finish(this.#words);
  }

  withdraw(): void {
    this.#finish(null);
  }

  #finish(words: Map<string, Word> | null): void {
    this.#done?.(words);
    this.#done = null;
    this.#open.clear();
  }
}
