import { endsNow, type Guarded, onClosed } from "../session/guarded.ts";
import type { Store } from "../session/store-surface.ts";
import type { Session } from "../session/surface.ts";
import { writingOf } from "./roster.ts";
import { watchSignal, whenSettled } from "./signals.ts";
import { watchStdin } from "./stdin.ts";
import { watchUncaught } from "./uncaught.ts";

/** The signals that end an agent from outside. Not SIGINT: the host decides what Ctrl+C means. */
const SIGNALS: readonly NodeJS.Signals[] =
  process.platform === "win32" ? ["SIGHUP", "SIGBREAK"] : ["SIGTERM", "SIGHUP"];

export interface GuardOptions {
  /**
   * Replaces the default SIGTERM and SIGHUP (on Windows: SIGHUP and SIGBREAK). SIGINT is guarded only if listed here.
   */
  readonly signals?: readonly NodeJS.Signals[];
  /**
   * Also treat the end of stdin as an ending, for agents driven over a pipe. It is noticed only while the host reads
   * `process.stdin`, because `guard` reads nothing from it. It does not end the process.
   */
  readonly stdin?: boolean;
}

/** Call it, or dispose it, to stop guarding. */
export interface Guard extends Disposable {
  (): void;
  /**
   * Resolves when the ending is recorded, for hosts that end the process themselves: at once in stores that write
   * synchronously, and within five seconds in any store. Never rejects.
   */
  written(): Promise<void>;
}

/**
 * Makes the journal record why the process ended (R17, C6). On SIGTERM, SIGHUP and uncaught errors, every open turn of
 * the session (or of all sessions of the store) gets a `signal` record, after the text its draft has gathered
 * (redacted, and without a possible start of a secret). Then everything is flushed. All of this happens inside the
 * listener, before the host's listeners run.
 *
 * *Durable*: when the host's own listeners run, and so when the parent sees the process end, the record and everything
 * before it survive a power cut. A store that cannot write synchronously gets up to five seconds if nothing else
 * listens to the signal; a host that listens awaits `written()` of the returned guard before it ends the process. In
 * such a store, the record may be missing after an uncaught error, or if a listener ends the process at once.
 * Everything acknowledged before is safe with or without a guard.
 *
 * *The signal keeps its effect.* If nothing else listens to it, the process ends by that same signal, and its parent
 * sees that. If the host listens, even with `once`, the host decides: it may drain or continue, and may still append,
 * because the turn is not ended. The next signal is recorded again, and has its default effect if no listener is left
 * by then. (A `once` listener that the host puts before the guard's with `prependOnceListener` is gone before the guard
 * can see it: use `once`.) After an uncaught error, output and exit status are Node's.
 *
 * *Not done*: it ends no turn, closes nothing and leaves SIGINT alone. Nothing can catch SIGKILL: the next `resume`
 * finds a turn with no record of its end, and reports "killed".
 *
 * Guards of several sessions share one listener per signal. Call the returned guard, dispose it, or close the session
 * or the store, and no listener stays behind. Throws only TypeError, at once: the target is not a session or store, or
 * a signal cannot be listened to.
 *
 * @example using _ = guard(session);
 */
export function guard(
  // biome-ignore lint/suspicious/noExplicitAny: the application defines the message type.
  target: Pick<Session<any>, "close"> | Pick<Store, "close">,
  options: GuardOptions = {},
): Guard {
  if (!isGuarded(target)) {
    throw new TypeError("guard needs a session or a store created by openStore. This is neither: nothing is guarded.");
  }
  const signals = new Set(options.signals ?? SIGNALS);
  for (const signal of signals) {
    if (signal !== "SIGKILL" && signal !== "SIGSTOP") continue;
    throw new TypeError(`No process can listen to ${signal}: nothing is guarded. Leave it out of "signals".`);
  }
  const undo = [...signals].map((signal) => watchSignal(signal, target));
  undo.push(watchUncaught(target));
  if (options.stdin) undo.push(watchStdin(target));
  // Last: a target that is already closed may call back at once.
  undo.push(target[onClosed](release));

  function release(): void {
    for (const one of undo.splice(0)) one();
  }
  const written = (): Promise<void> => new Promise((resolve) => whenSettled([writingOf(target)], resolve));
  return Object.assign(release, { [Symbol.dispose]: release, written });
}

function isGuarded(target: unknown): target is Guarded {
  if (typeof target !== "object" || target === null) return false;
  const { [endsNow]: tell, [onClosed]: closed } = target as Partial<Guarded>;
  return typeof tell === "function" && typeof closed === "function";
}
