/** What stops the work of a chat whose turn goes on in the next process. */
export const HAND_OVER = "hand-over";

/** What a chat is working on: one thing at a time, which can be stopped at any moment, even before it has a turn. */
export class ActiveWork {
  readonly #changed: (isBusy: boolean) => void;
  #now: PromiseWithResolvers<void> | null = null;
  #halt = new AbortController();
  /** Queued prompts do not start by themselves. */
  isPaused = false;

  constructor(changed: (isBusy: boolean) => void) {
    this.#changed = changed;
  }

  /** Resolves when the work is done; null if there is none. */
  get finished(): Promise<void> | null {
    return this.#now?.promise ?? null;
  }

  /** Fires when someone stops the current work. */
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
    this.#changed(true);
  }

  /** Starts the next piece of work: a stop of the previous one does not apply to it. */
  startNext(): void {
    this.#halt = new AbortController();
  }

  end(): void {
    this.#now?.resolve();
    this.#now = null;
    this.#changed(false);
  }

  stop(by: string): void {
    this.isPaused = true;
    this.#halt.abort(new DOMException(by, "AbortError"));
  }
}
