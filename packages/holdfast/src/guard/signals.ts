import { constants } from "node:os";
import type { Guarded } from "../session/guarded.ts";
import { Roster } from "./roster.ts";

/**
 * How long a store that cannot write synchronously may delay the signal's effect. Supervisors wait ten seconds or more.
 */
const WAIT_MS_MAX = 5_000;

/**
 * Deno still catches a signal for a moment after its last listener is gone, so one that the guard raises can come back
 * to it. Within this time, it is not a new one.
 */
const ECHO_MS = process.versions["deno"] === undefined ? 0 : 1_000;

/** One signal, and the targets to notify of it. */
class SignalWatch {
  readonly #signal: NodeJS.Signals;
  readonly roster = new Roster(
    () => this.#listen(),
    () => this.#stop(),
  );
  #listening = false;
  /** Waiting for pending writes before ending the process. */
  #raising = false;
  #raisedAt = Number.NEGATIVE_INFINITY;

  constructor(signal: NodeJS.Signals) {
    this.#signal = signal;
  }

  #listen(): void {
    if (this.#listening || this.roster.empty) return;
    // Before the host's listeners: one of them may call process.exit(), and `once` listeners are still counted.
    process.prependListener(this.#signal, this.#heard);
    this.#listening = true;
  }

  #stop(): void {
    process.off(this.#signal, this.#heard);
    this.#listening = false;
  }

  readonly #heard = (): void => {
    // Not listening: an earlier listener has released the guard. Raising: a closed terminal often sends SIGHUP twice
    // (kernel and shell), and the first is still being handled.
    if (!this.#listening || this.#raising) return;
    const alone = process.listenerCount(this.#signal) === 1;
    if (alone && performance.now() - this.#raisedAt < ECHO_MS) {
      this.#raise();
      return;
    }
    const pending = this.roster.tell(Object.freeze({ signal: this.#signal }));
    if (!alone) this.#stepAside();
    else if (pending.length === 0) this.#raise();
    else {
      this.#raising = true;
      // Even if the guard is released in the meantime: it withheld the signal from the process, so it must deliver it.
      whenSettled(pending, () => this.#raise());
    }
  };

  /**
   * The host decides what the signal does. Listeners such as signal-exit's end the process only if they find no other
   * listener: with this one in the list, each would leave it to the other, and the process would never end. So this
   * listener removes itself while they run. (A second copy of this module does the same, so the last one raises.) While
   * a `once` listener runs, the process has no listener left, and a repeated signal ends it at once, as it would
   * without a guard: the record of the first is on disk.
   */
  #stepAside(): void {
    this.#stop();
    process.nextTick(() => this.#listen());
  }

  /** With no listener the signal has its default effect, and the parent sees which signal ended the process. */
  #raise(): void {
    this.#raising = false;
    this.#raisedAt = performance.now();
    this.#stop();
    try {
      process.kill(process.pid, this.#signal);
    } catch {
      // Windows can receive SIGHUP and SIGBREAK but cannot raise them: use the status that shells report for a process
      // ended by a signal.
      process.exit(128 + constants.signals[this.#signal]);
    }
    // Still alive: the signal ends nothing by default (SIGWINCH), or a listener added in the meantime handled it.
    setImmediate(() => this.#listen()).unref();
  }
}

/** Or when the time is up. */
export function whenSettled(pending: readonly Promise<void>[], then: () => void): void {
  // Deliberately keeps the process alive: with an empty event loop it would end with status 0 instead of by the signal.
  const timer = setTimeout(done, WAIT_MS_MAX);
  let over = false;
  function done(): void {
    if (over) return;
    over = true;
    clearTimeout(timer);
    then();
  }
  void Promise.allSettled(pending).then(done);
}

const watches = new Map<NodeJS.Signals, SignalWatch>();

/** Notifies `target` of this signal until the returned function is called. */
export function watchSignal(signal: NodeJS.Signals, target: Guarded): () => void {
  const watch = watches.get(signal) ?? new SignalWatch(signal);
  watches.set(signal, watch);
  return watch.roster.join(target);
}
