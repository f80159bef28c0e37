/** What `guard` needs of a session or a store, and nobody else: how to tell it that the process is about to end. */
export const endsNow = Symbol("holdfast.endsNow");
export const onClosed = Symbol("holdfast.onClosed");

export interface Ending {
  /** `SIGTERM`, or `uncaughtException`, or `stdin`. */
  readonly signal: string;
  /** The words of an error that nobody caught. */
  readonly error?: string;
}

export interface Guarded {
  /**
   * Writes a `signal` record to each open turn, after what its draft has gathered, and flushes. Never throws. Done when it returns; where the store has no synchronous way (capability `sync: false`), when the promise resolves.
   */
  [endsNow](ending: Ending): void | Promise<void>;
  /** Calls back when it has been closed. Returns the way to stop that. */
  [onClosed](listener: () => void): () => void;
}
