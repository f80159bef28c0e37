import { inspect, types } from "node:util";
import type { Guarded } from "../session/guarded.ts";
import { Roster } from "./roster.ts";

/** Enough to recognise an error by; a message can hold a whole response. */
const WORDS_CHARS_MAX = 2_000;

const roster = new Roster(
  () => process.prependListener("uncaughtExceptionMonitor", heard),
  () => process.off("uncaughtExceptionMonitor", heard),
);

/** The monitor changes neither what is printed nor the exit status, which a listener for `uncaughtException` would. It must not throw: that would be status 7. */
function heard(error: unknown, origin: NodeJS.UncaughtExceptionOrigin): void {
  roster.tell(Object.freeze({ signal: origin, error: wordsOf(error) }));
}

/** Tells `target` of an error that nobody caught until the returned function is called. */
export function watchUncaught(target: Guarded): () => void {
  return roster.join(target);
}

/** Anything can be thrown, also what throws when it is looked at. */
function wordsOf(error: unknown): string {
  try {
    return textOf(error).slice(0, WORDS_CHARS_MAX).toWellFormed();
  } catch {
    return "a value that cannot be put into words";
  }
}

function textOf(error: unknown): string {
  if (typeof error === "string") return error;
  if (error instanceof Error || types.isNativeError(error)) return String(error.message || error.name);
  return inspect(error);
}
