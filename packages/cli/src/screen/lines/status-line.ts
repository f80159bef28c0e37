import type { ChatState } from "../../host/host.ts";
import { plainLine } from "../../terminal/index.ts";
import { elapsedWords, excerpt, folderWords, tokensWords } from "./labels.ts";
import { cut, type Line, lineWidth, type Span, span } from "./line.ts";

const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

export interface StatusFacts {
  /** A counter that advances while something runs. */
  readonly frame: number;
  /** How long the turn has been running. */
  readonly elapsedMs: number;
  /** Another operation in progress, such as a compaction. */
  readonly busy: string | null;
  /** What the next key would do. */
  readonly hint: string;
  /** News from sessions that are not on the screen. */
  readonly elsewhere: string;
}

export function spinner(frame: number): string {
  return SPINNER[frame % SPINNER.length]!;
}

/** One row: the state, then where we are. Leaves out details that do not fit. */
export function statusLine(state: ChatState, facts: StatusFacts, columns: number): Line {
  const spans: Span[] = stateSpans(state, facts);
  if (state.mode !== "ask") spans.push(span(` · ${state.mode}`, { colour: "yellow" }));
  if (facts.hint !== "") spans.push(span(` · ${facts.hint}`, { dim: true }));
  if (facts.elsewhere !== "") spans.push(span(` · ${facts.elsewhere}`, { colour: "yellow" }));
  const pieces = [
    plainLine(state.model),
    windowWords(state.window),
    folderWords(state.cwd, Math.max(12, Math.floor(columns / 3))),
    excerpt(state.title, 40),
  ];
  for (const piece of pieces) {
    const next = span(` · ${piece}`, { dim: true });
    if (piece !== "" && lineWidth([...spans, next]) <= columns) spans.push(next);
  }
  return cut(spans, columns);
}

/** The same words as in `holdfast ls`. */
function stateSpans(state: ChatState, { frame, elapsedMs, busy }: StatusFacts): Span[] {
  if (busy !== null) return [span(`${spinner(frame)} ${busy}`, { colour: "cyan" })];
  if (state.isCompacting) return [span(`${spinner(frame)} compacting ${elapsedWords(elapsedMs)}`, { colour: "cyan" })];
  if (state.status === "running")
    return [span(`${spinner(frame)} running ${elapsedWords(elapsedMs)}`, { colour: "cyan" })];
  const status = state.status === "waiting" ? "waiting" : state.account.state;
  if (status === "waiting") return [span("? waiting for approval", { colour: "yellow" })];
  if (status !== "idle" && status !== "running") return [span(`! ${status}`, { colour: "yellow" })];
  return state.queue.length > 0 ? [span("queued", { colour: "yellow" })] : [span("idle", { colour: "green" })];
}

function windowWords({ usedTokens, maxTokens }: ChatState["window"]): string {
  if (maxTokens <= 0) return usedTokens > 0 ? `${tokensWords(usedTokens)} tokens` : "";
  const share = Math.round((usedTokens / maxTokens) * 100);
  return `${share}% of ${tokensWords(maxTokens)}`;
}
