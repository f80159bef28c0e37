import { callStateWords } from "@holdfast/server/internal/contract";
import type { Mark, MarkKind, StepSpan, ToolSpan, TurnSpan } from "../state/read-timeline.ts";
import { countWords, durationWords } from "../text/durations.ts";
import type { Bar } from "./layout.ts";

export const TURN_WORDS: Readonly<Record<TurnSpan["outcome"], string>> = {
  completed: "completed",
  aborted: "stopped",
  failed: "failed",
  left: "left unfinished",
  waiting: "waiting for a person",
  running: "running",
  interrupted: "interrupted",
};

export const MARK_WORDS: Readonly<Record<MarkKind, string>> = {
  died: "Process died",
  signal: "Received a signal",
  stopped: "Stopped",
  "not-run": "Calls never started",
  failed: "Failed",
  waiting: "Waited for a person",
  resumed: "Resumed",
  replaced: "Conversation replaced",
};

/** What a bar shows, for a tooltip and for people who cannot see it. */
export function barWords(
  bar: Bar,
  nowMs: number,
): { readonly title: string; readonly detail: string; readonly lines?: readonly string[] } {
  const { span } = bar;
  const length = durationWords(Math.max(0, (span.endMs ?? nowMs) - span.startMs));
  if (span.count > 1) {
    const worst =
      span.kind === "turn" ? TURN_WORDS[span.outcome] : span.kind === "tool" ? callStateWords[span.outcome] : "";
    const isNotable = worst !== "" && worst !== "completed" && worst !== "done";
    return {
      title: countWords(span.count, MANY[span.kind]),
      detail: `in ${length}${isNotable ? ` · at least one ${worst}` : ""} · zoom in to see each`,
    };
  }
  switch (span.kind) {
    case "turn":
      return {
        title: `Turn ${span.turn}: ${span.text || "(no text)"}`,
        detail: `${TURN_WORDS[span.outcome]} · ${length}`,
      };
    case "model": {
      const wait = span.firstMs === null ? "" : ` · first word after ${durationWords(span.firstMs - span.startMs)}`;
      return {
        title: span.model ?? "Model",
        detail: `${length}${wait}${span.message === null ? " · no answer recorded" : ""}`,
      };
    }
    case "tool":
      return {
        title: span.about === "" ? span.name : `${span.name} ${span.about}`,
        detail: `${callStateWords[span.outcome]} · ${length}`,
        lines: stepLines(span, nowMs),
      };
  }
}

const STEPS_SHOWN_MAX = 8;

/** The steps of a tool. If there are too many, those that did not finish come first. */
function stepLines({ steps, moreSteps, unusedSteps }: ToolSpan, nowMs: number): string[] {
  const all = steps.length + moreSteps;
  const sorted =
    all > STEPS_SHOWN_MAX
      ? steps.toSorted((a, b) => Number(a.outcome === "done") - Number(b.outcome === "done"))
      : steps;
  const shown = sorted.slice(0, STEPS_SHOWN_MAX);
  const lines = shown.map(({ name, startMs, endMs, outcome, settled }: StepSpan) => {
    // It was not timed, but asked about.
    const how = settled === "" ? durationWords(Math.max(0, (endMs ?? nowMs) - startMs)) : settled;
    return `${name}: ${callStateWords[outcome]} · ${how}`;
  });
  const rest = all - shown.length;
  if (rest > 0) lines.push(shown.length === 0 ? countWords(rest, "step") : `and ${countWords(rest, "more step")}`);
  return unusedSteps === "" ? lines : [...lines, unusedSteps];
}

const MANY = { turn: "turn", model: "model call", tool: "tool call" } as const;

export function markWords({ kind, words, turn, atMs, count }: Mark): string {
  const time = new Date(atMs).toLocaleTimeString("en", {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hour12: false,
  });
  const said = words === "" ? MARK_WORDS[kind] : words.slice(0, 1).toUpperCase() + words.slice(1);
  const more = count > 1 ? ` (and ${count - 1} more here)` : "";
  return `${said.replace(/[.]$/, "")}${more} · ${turn === null || turn === 0 ? "" : `turn ${turn}, `}${time}`;
}
