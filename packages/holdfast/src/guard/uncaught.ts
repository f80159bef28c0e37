import { inspect, types } from "node:util";
import type { Guarded } from "../session/guarded.ts";
import { Roster } from "./roster.ts";

/** Enough to recognise an error; a message can contain a whole response. */
const WORDS_CHARS_MAX = 2_000;

const roster = new Roster(
  () => process.prependListener("uncaughtExceptionMonitor", heard),
  () => process.off("uncaughtExceptionMonitor", heard),
);

/**
 * Unlike an `uncaughtException` listener, the monitor changes neither the output nor the exit status. It must not
 * throw: that would exit with status 7.
 */
function heard(error: unknown, origin: NodeJS.UncaughtExceptionOrigin): void {
  roster.tell(Object.freeze({ signal: origin, error: wordsOf(error) }));
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
