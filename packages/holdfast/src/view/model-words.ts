import { endedAs } from "../session-state.ts";
import { oneLine } from "../text/one-line.ts";
import type { CallStep, How, OpenCall } from "./interruption.ts";

/**
 * Text phrased for the model is bounded: an SDK's error may run to pages, and every open call repeats it. Longer text
 * is cut between characters and ends with "…"; the journal has all of it.
 */
const REASON_CHARS = 300;
/** For names: who stopped the turn, a signal, a tool. */
const NAME_CHARS = 80;
/** At most this many tools are named; the others are counted. */
const NAMES_MAX = 20;

/** Why something happened, as the model is told. */
export function reasonWords(reason: string): string {
  return oneLine(reason, REASON_CHARS);
}

function nameWords(name: string): string {
  return oneLine(name, NAME_CHARS);
}

/** What happened to the turn. */
export function because(how: How): string {
  switch (how.kind) {
    case "killed":
      return "the process died";
    case "signal":
      return how.signal.startsWith("SIG")
        ? `the process was ended by ${nameWords(how.signal)}`
        : `the process ended (${nameWords(how.signal)})`;
    case "aborted":
      if (endedAs("aborted", how.by) === "cut") return "the program was closed";
      return `${nameWords(how.by) || "the application"} stopped it${how.reason ? ` (${reasonWords(how.reason)})` : ""}`;
    case "failed":
      return `it failed${how.error ? ` (${reasonWords(how.error)})` : ""}`;
    case "handed-over":
      return "the program was restarted";
    case "suspended":
      if (how.parked !== undefined) return `it was given up (${reasonWords(how.reason)})`;
      return `it ${how.until === undefined ? "waited for a person" : "was paused"} (${reasonWords(how.reason)})`;
    case "completed":
      return "the turn had ended";
  }
}

/** The result given to a call that has none. */
export function resultWords(
  state: OpenCall["state"],
  how: How,
  { unstarted, steps }: Pick<OpenCall, "unstarted" | "steps"> = {},
): string {
  switch (state) {
    case "never-started":
      // It is known not to have taken effect as a whole, but an earlier run finished some of its work.
      if (steps?.some((step) => step.state !== "failed"))
        return `Not run to its end: ${because(how)}.${stepSentence(steps)} Check before repeating it.`;
      if (unstarted !== undefined) return notHappenedWords(unstarted, how);
      return `Not run: ${because(how)} before this call was started. It never started: it is safe to run it.`;
    case "unrecorded":
      return `No result was recorded: ${because(how)}. This call may have run: check before repeating it.`;
    case "awaiting":
      return "This call was not approved, and did not run.";
    case "outcome-unknown":
    case "provider":
      if (how.kind === "aborted")
        return `Was running when ${because(how)}: it may have taken effect.${stepSentence(steps)} Check before repeating it.`;
      return `Started, then ${because(how)}: outcome unknown.${stepSentence(steps)} It may have taken effect: check before repeating it.`;
  }
}

/** The source of what a probe found (P3). */
export const PROBED = "probe";

function notHappenedWords(source: string, how: How): string {
  const why = `Started, then ${because(how)}.`;
  if (source !== PROBED) return `${why} It did not take effect: it is safe to run it.`;
  return `${why} Settled by asking the service: it did not take effect, so it is safe to run it.`;
}

/** How far a call got, step by step: a phrase, for the model and for people; null if it has no steps. */
export function stepWords(steps: readonly CallStep[] = []): string | null {
  if (steps.length === 0) return null;
  const named = (state: CallStep["state"]): string[] =>
    steps.filter((step) => step.state === state).map(({ name }) => name);
  const [finished, failed, unknown] = [named("finished"), named("failed"), named("unknown")];
  const parts = [`${finished.length} of ${steps.length} started steps finished`];
  if (finished.length > 0) parts[0] += ` (${listNames(finished)})`;
  if (failed.length > 0) parts.push(`failed: ${listNames(failed)}`);
  if (unknown.length > 0) parts.push(`outcome unknown: ${listNames(unknown)}`);
  return parts.join("; ");
}

/** The steps that an earlier run recorded and this one did not ask for, for people. */
export function unusedWords(name: string, steps: readonly string[]): string {
  const shown = steps.slice(0, 5).map(nameWords).join(", ");
  const names = steps.length > 5 ? `${shown} and ${steps.length - 5} more` : shown;
  return `${nameWords(name)} ran again and did not ask for steps that an earlier run had recorded: ${names}. If their names have changed, their work may have been done twice.`;
}

function stepSentence(steps: readonly CallStep[] | undefined): string {
  const words = stepWords(steps);
  return words === null ? "" : ` ${words}.`;
}

/** The result given to a call that was started before the turn was cut off, if nobody can tell what happened to it. */
export function inDoubtWords({ steps }: Pick<OpenCall, "steps">): string {
  return `Started before the turn was cut off: outcome unknown.${stepSentence(steps)} It may have taken effect: check before repeating it.`;
}

/** An outcome that is known because the tool's service was asked (P3). `text`: the outcome as the model reads it. */
export function settledWords(text: string | undefined): string {
  const why = "The turn was cut off while this ran. Settled by asking the service: it took effect.";
  return text === undefined ? why : `${why} Result: ${text}`;
}

/** The same for a call that failed. */
export function settledErrorWords(error: string): string {
  return `The turn was cut off while this ran. Settled by asking the service: it failed. ${error}`;
}

/** The same during the turn. */
export function runningWords(isRunning: boolean): string {
  return isRunning ? "Still running: there is no result yet." : "Not run yet: there is no result.";
}

/** Placed before a new prompt. */
export function boundaryWords(how: How, tools: ToolNames, isCutOff: boolean): string {
  const cut = isCutOff ? " The last answer was cut off." : "";
  return `[The turn before this was interrupted: ${because(how)}. It was not completed.${cut}${toolWords(tools)}]`;
}

/** Placed before the model is asked to continue the same turn. */
export function goOnWords(how: How, tools: ToolNames, isCutOff: boolean): string {
  const cut = isCutOff ? " The answer above was cut off." : "";
  // It was to pause, so there is nothing to report.
  if (how.kind === "handed-over" || (how.kind === "suspended" && how.until !== undefined))
    return `[${cut}${toolWords(tools)} Continue the task from here.]`.replace("[ ", "[");
  return `[This turn was interrupted: ${because(how)}.${cut}${toolWords(tools)} Continue the task from here.]`;
}

/** Tools whose calls were lost. */
export interface ToolNames {
  readonly started: readonly string[];
  readonly ended: readonly string[];
  readonly failed: readonly string[];
}

function toolWords({ started, ended, failed }: ToolNames): string {
  const parts: string[] = [];
  if (started.length > 0)
    parts.push(` Started, with an unknown outcome: ${listNames(started)}. Check before repeating.`);
  if (ended.length > 0) parts.push(` Ran to completion, but the call was not recorded: ${listNames(ended)}.`);
  if (failed.length > 0) parts.push(` Failed, and the call was not recorded: ${listNames(failed)}.`);
  return parts.join("");
}

function listNames(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_MAX).map((name) => nameWords(name) || "a tool without a name");
  const rest = names.length - shown.length;
  return rest > 0 ? `${shown.join(", ")}, and ${rest} more` : shown.join(", ");
}
