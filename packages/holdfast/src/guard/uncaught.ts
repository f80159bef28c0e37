import { inspect, types } from "node:util";
import type { Guarded } from "../session/guarded.ts";
import { Roster } from "./roster.ts";

/** Enough to recognise an error; a message can contain a whole response. */
const WORDS_CHARS_MAX = 2_000;

/** Bun ends the process for a rejection that nobody handles, as Node does, but does not tell the monitor. */
const IS_BUN = process.versions["bun"] !== undefined;
/** Marks this listener in other copies of this module too. */
const RETHROWS = Symbol.for("holdfast.rethrowsRejections");
/** What a rejection was rethrown for, so that it is recorded as what it is. */
let rejection: { readonly reason: unknown } | null = null;

/** If only guards listen, the rejection ends the process all the same, as an exception. A host that listens decides. */
const rethrow = Object.assign(
  (reason: unknown): void => {
    if (process.listeners("unhandledRejection").some((listener) => !(RETHROWS in listener))) return;
    rejection = { reason };
    throw reason;
  },
  { [RETHROWS]: true },
);

const roster = new Roster(
  () => {
    process.prependListener("uncaughtExceptionMonitor", heard);
    if (IS_BUN) process.on("unhandledRejection", rethrow);
  },
  () => {
    process.off("uncaughtExceptionMonitor", heard);
    process.off("unhandledRejection", rethrow);
  },
);

/**
 * Unlike an `uncaughtException` listener, the monitor changes neither the output nor the exit status. It must not
 * throw: that would exit with status 7.
 */
function heard(error: unknown, origin: NodeJS.UncaughtExceptionOrigin): void {
  const isRejection = rejection !== null && rejection.reason === error;
  rejection = null;
  roster.tell(Object.freeze({ signal: isRejection ? "unhandledRejection" : origin, error: wordsOf(error) }));
}

/** Notifies `target` of an uncaught error until the returned function is called. */
export function watchUncaught(target: Guarded): () => void {
  return roster.join(target);
}

/** Anything can be thrown, including a value that throws when inspected. */
function wordsOf(error: unknown): string {
  try {
    return textOf(error).slice(0, WORDS_CHARS_MAX).toWellFormed();
  } catch {
    return "a value that cannot be printed";
  }
}

function textOf(error: unknown): string {
  if (typeof error === "string") return error;
  if (error instanceof Error || types.isNativeError(error)) return String(error.message || error.name);
  return inspect(error);
}
