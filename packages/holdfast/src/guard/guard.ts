import { endsNow, type Guarded, onClosed } from "../session/guarded.ts";
import type { Session, Store } from "../session/surface.ts";
import { writingOf } from "./roster.ts";
import { watchSignal, whenSettled } from "./signals.ts";
import { watchStdin } from "./stdin.ts";
import { watchUncaught } from "./uncaught.ts";

/** What ends an agent from outside. Not SIGINT: what Ctrl+C means is the host's to say. */
const SIGNALS: readonly NodeJS.Signals[] =
  process.platform === "win32" ? ["SIGHUP", "SIGBREAK"] : ["SIGTERM", "SIGHUP"];

export interface GuardOptions {
  /** Instead of SIGTERM and SIGHUP (on Windows: SIGHUP and SIGBREAK). SIGINT is guarded only if it is named here. */
  readonly signals?: readonly NodeJS.Signals[];
  /**
   * The end of stdin counts as an ending too: for agents that are driven over a pipe. It is noticed only while the host reads `process.stdin`, since `guard` takes nothing from it. The process is not ended.
   */
  readonly stdin?: boolean;
}

/** Call it, or dispose it, to guard no more. */
export interface Guard extends Disposable {
  (): void;
  /** Resolves when what was to be recorded of an ending is, for hosts that end the process themselves: at once in stores that write synchronously, and within five seconds in any. Never rejects. */
  written(): Promise<void>;
}

/**
 * Lets the journal say why the process ended (R17, C6). On SIGTERM and SIGHUP, and on an error that nobody caught, every open turn of the session (or of all sessions of the store) gets a `signal`
 * record, after the text that its draft has gathered (with redaction, without what may be the beginning of a secret); then everything is flushed. All of it inside the listener, ahead of the host's listeners.
 *
 * *Durable*: when the host's own listeners run, and so when the parent sees the end of the process, the record and all before it survive a power cut. A store that has no synchronous way to write is given up to five
 * seconds, if nobody else listens to the signal; a host that does awaits `written()` of what is returned here before it ends the process. After an error that nobody caught, or beside a listener that ends the process at once, its record may be missing. What was acknowledged before is safe with or without a guard.
 *
 * *The signal keeps its effect.* If nobody else listens to it, the process ends by that same signal, which is what its parent sees. If the host listens, also by `once`, the host decides: it may drain, or go on, and may still
 * append, since the turn is not ended. The next signal is recorded again, and has its default effect if no listener is left by then. (A `once` listener that the host puts in front of the guard's with `prependOnceListener` is gone before the
 * guard can see it: use `once`.) After an error that nobody caught, output and exit status are Node's.
 *
 * *Not done*: no turn is ended, nothing is closed, SIGINT is not touched, and SIGKILL cannot be heard by anybody: the next `resume` finds a turn without a word about its end, and says "killed".
 *
 * Guards of several sessions share one listener for each signal. Call what is returned, dispose it, or close the session or the store: then no listener stays behind. Throws nothing but TypeError, at once: the target is
 * no session or store, or a signal cannot be listened to.
 *
 * @example
 * using _ = guard(session);
 */
export function guard(
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  target: Pick<Session<any>, "close"> | Pick<Store, "close">,
  options: GuardOptions = {},
): Guard {
  if (!isGuarded(target)) {
    throw new TypeError(
      "guard needs a session or a store as openStore makes them. This is neither: nothing is guarded.",
    );
  }
  const signals = new Set(options.signals ?? SIGNALS);
  for (const signal of signals) {
    if (signal !== "SIGKILL" && signal !== "SIGSTOP") continue;
    throw new TypeError(`No process can listen to ${signal}: nothing is guarded. Leave it out of "signals".`);
  }
  const undo = [...signals].map((signal) => watchSignal(signal, target));
  undo.push(watchUncaught(target));
  if (options.stdin) undo.push(watchStdin(target));
  // Last: a target that is closed already may call back at once.
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
