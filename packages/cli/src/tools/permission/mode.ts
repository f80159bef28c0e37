import type { Mode } from "@holdfast/server/contract";
import type { Decision } from "./decide.ts";

export type { Mode };

/** In the order in which the person switches through them. */
export const MODES = ["ask", "accept edits", "plan"] as const satisfies readonly Mode[];

/** The mode that follows this one when the person switches. */
export function nextMode(mode: Mode): Mode {
  return MODES[(MODES.indexOf(mode) + 1) % MODES.length]!;
}

/** The rules that a mode adds to those that allow. */
export function allowedIn(mode: Mode): readonly string[] {
  return mode === "accept edits" ? ["write", "edit"] : [];
}

const READING = new Set(["read", "list", "search", "plan"]);
const DENIAL =
  "Not run: the user has switched to plan mode, in which nothing is changed and no command runs. " +
  "Read what you need, then answer with a plan. The user switches the mode to let you carry it out.";

/** The decision about a call, in this mode. */
export function decisionIn(mode: Mode, name: string, decision: Decision): Decision {
  if (mode !== "plan" || READING.has(name) || decision.verdict === "deny") return decision;
  return { ...decision, verdict: "deny", isAllowable: false, denial: DENIAL };
}

/** What the model is told from the start of each turn; null if there is nothing to say. */
export function wordsOf(mode: Mode): string | null {
  return mode === "plan"
    ? "The user is in plan mode: change nothing, and run no commands. Read what you need, then answer with a plan."
    : null;
}
