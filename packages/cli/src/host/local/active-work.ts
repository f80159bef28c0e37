/** What a chat is at work on: one thing at a time, which can be stopped at any instant, also before it has a turn. */
export class ActiveWork {
  #now: PromiseWithResolvers<void> | null = null;
  #halt = new AbortController();
  /** Prompts that wait in the queue are not begun by themselves. */
  isPaused = false;

  /** Resolves when nothing is at work any more; null if nothing is. */
  get finished(): Promise<void> | null {
    return this.#now?.promise ?? null;
  }

  /** Fires when somebody stops what is at work now. */
  get signal(): AbortSignal {
    return this.#halt.signal;
  }

  /** Who stopped it; null if nobody did. */
  get stoppedBy(): string | null {
    return this.#halt.signal.aborted ? (this.#halt.signal.reason as Error).message : null;
  }

  start(): void {
    this.#now = Promise.withResolvers();
    this.startNext();
  }

  /** Another thing, right behind the last one: what was stopped before is not this one. */
  startNext(): void {
    this.#halt = new AbortController();
  }

  end(): void {
    this.#now?.resolve();
    this.#now = null;
  }

  stop(by: string): void {
    this.isPaused = true;
    this.#halt.abort(new DOMException(by, "AbortError"));
  }
}
