import { constants } from "node:os";
import type { Guarded } from "../session/guarded.ts";
import { Roster } from "./roster.ts";

/** How long a store without a synchronous way may take before the signal has its effect. Supervisors lose their patience after ten seconds or more. */
const WAIT_MS_MAX = 5_000;

/** One signal, and all who want to be told of it. */
class SignalWatch {
  readonly #signal: NodeJS.Signals;
  readonly roster = new Roster(
    () => this.#listen(),
    () => this.#stop(),
  );
  #listening = false;
  /** Waits for what is being written, and then ends the process. */
  #raising = false;

  constructor(signal: NodeJS.Signals) {
    this.#signal = signal;
  }

  #listen(): void {
    if (this.#listening || this.roster.empty) return;
    // Ahead of the host's listeners: one of them may call process.exit(), and those of `once` are still counted.
    process.prependListener(this.#signal, this.#heard);
    this.#listening = true;
  }

  #stop(): void {
    process.off(this.#signal, this.#heard);
    this.#listening = false;
  }

  readonly #heard = (): void => {
    // Not listening: a listener before this one has released the guard. Raising: a closed terminal often sends SIGHUP twice (kernel and shell); the first one is on its way.
    if (!this.#listening || this.#raising) return;
    const alone = process.listenerCount(this.#signal) === 1;
    const pending = this.roster.tell(Object.freeze({ signal: this.#signal }));
    if (!alone) this.#stepAside();
    else if (pending.length === 0) this.#raise();
    else {
      this.#raising = true;
      // Also if the guard is released meanwhile: the signal was taken from the process, and is owed to it.
      whenSettled(pending, () => this.#raise());
    }
  };

  /**
   * The host decides what the signal does. Listeners such as those of signal-exit end the process only if they find no listener but their own: with this one in the list each would leave it to the other, and
   * the process would not end at all. So it is not in the list while they run. (A second copy of this module does the same, and so the last one raises.)
   * While a `once` listener runs, the process then has no listener, and the same signal once more ends it at once, as it would without a guard: the record of the first is on disk.
   */
  #stepAside(): void {
    this.#stop();
    process.nextTick(() => this.#listen());
  }

  /** Without a listener the signal has its default effect, and the parent sees which signal ended the process. */
  #raise(): void {
    this.#raising = false;
    this.#stop();
    try {
      process.kill(process.pid, this.#signal);
    } catch {
      // Windows can be told of SIGHUP and SIGBREAK, but cannot raise them: the status that shells give to a process that ended by a signal.
      process.exit(128 + constants.signals[this.#signal]);
    }
    // Still here: a signal that ends nothing by default (SIGWINCH), or one that a listener took which came meanwhile.
    setImmediate(() => this.#listen()).unref();
  }
}

/** Or when the time is over. */
export function whenSettled(pending: readonly Promise<void>[], then: () => void): void {
  // Keeps the process alive on purpose: if the loop ran empty, it would end with status 0 and not by the signal.
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

/** Tells `target` of this signal until the returned function is called. */
export function watchSignal(signal: NodeJS.Signals, target: Guarded): () => void {
  const watch = watches.get(signal) ?? new SignalWatch(signal);
  watches.set(signal, watch);
  return watch.roster.join(target);
}
