/** Used only by `guard`, to tell a session or a store that the process is about to end. */
export const endsNow = Symbol("holdfast.endsNow");
export const onClosed = Symbol("holdfast.onClosed");

export interface Ending {
  /** `SIGTERM`, or `uncaughtException`. */
  readonly signal: string;
  /** The text of an uncaught error. */
  readonly error?: string;
}

export interface Guarded {
  /** Writes a `signal` record to each open turn and flushes. Never throws. Returns a promise if the store is async. */
  [endsNow](ending: Ending): void | Promise<void>;
  /** Calls `listener` when it has been closed. Returns a function that removes the listener. */
  [onClosed](listener: () => void): () => void;
}
