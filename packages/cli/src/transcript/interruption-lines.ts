import type { Interruption } from "holdfast";
import { plainLine } from "../terminal/plain.ts";
import { callWords } from "./words.ts";

const STATES: Readonly<Record<Interruption<unknown>["calls"][number]["state"], string>> = {
  "never-started": "never started",
  "outcome-unknown": "started, outcome unknown",
  unrecorded: "started, outcome unknown",
  awaiting: "waiting for approval",
  provider: "run by the provider, outcome unknown",
};

/** What was in flight when the last turn was cut off (P5), for people. */
export function interruptionLines({ turn, how, calls, draft, resumes }: Interruption<unknown>): string[] {
  const times = resumes > 0 ? `, after it had been resumed ${resumes === 1 ? "once" : `${resumes} times`}` : "";
  const lines = [`Turn ${turn} ${endWords(how)}${times}.`];
  for (const call of calls) lines.push(`  ${callWords(call)}: ${STATES[call.state]}`);
  if (draft) lines.push(`  ${draft.text.length + draft.reasoning.length} characters of the answer had been streamed`);
  return lines;
}

function endWords(how: Interruption<unknown>["how"]): string {
  switch (how.kind) {
    case "killed":
      return "was interrupted: its process died";
    case "signal":
      return `was interrupted by ${plainLine(how.signal)}`;
    case "aborted":
      return `was stopped by ${plainLine(how.by)}${how.reason === undefined ? "" : ` (${plainLine(how.reason)})`}`;
    case "failed":
      return `failed: ${plainLine(how.error)}`;
    case "suspended":
      return how.reason === "permission" ? "is waiting for approval" : `is waiting: ${plainLine(how.reason)}`;
  }
}
