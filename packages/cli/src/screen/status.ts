import type { ChatState } from "../host/host.ts";
import { plainLine } from "../terminal/index.ts";
import { cut, type Line, lineWidth, type Span, span } from "./line.ts";
import { elapsedWords, folderWords, tokensWords } from "./words.ts";

const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

export interface StatusFacts {
  /** A count that grows while something runs. */
  readonly frame: number;
  /** How long the turn has been running. */
  readonly elapsedMs: number;
  /** Something else that is under way, such as a compaction. */
  readonly busy: string | null;
  /** What the next key would do. */
  readonly hint: string;
  /** Word from sessions that are not on the screen. */
  readonly elsewhere: string;
}

export function spinner(frame: number): string {
  return SPINNER[frame % SPINNER.length]!;
}

/** One row: state at the left, where we are at the right. What does not fit goes, the least important first. */
export function statusLine(state: ChatState, facts: StatusFacts, columns: number): Line {
  const left: Span[] = [...stateSpans(state, facts)];
  if (facts.elsewhere !== "") left.push(span(`  ${facts.elsewhere}`, { colour: "yellow" }));
  if (facts.hint !== "") left.push(span(`  ${facts.hint}`, { dim: true }));
  const room = columns - 2;
  const pieces = [
    windowWords(state.window),
    plainLine(state.model),
    folderWords(state.cwd, Math.max(12, Math.floor(columns / 4))),
    state.title === "" ? "" : plainLine(state.title).slice(0, 40),
  ].filter((piece) => piece !== "");
  let right = "";
  for (const piece of pieces) {
    const longer = right === "" ? piece : `${right} · ${piece}`;
    if (lineWidth(left) + longer.length + 2 <= room) right = longer;
  }
  const gap = Math.max(2, columns - lineWidth(left) - lineWidth([span(right)]));
  return cut([...left, ...(right === "" ? [] : [span(" ".repeat(gap)), span(right, { dim: true })])], columns);
}

function stateSpans(state: ChatState, { frame, elapsedMs, busy }: StatusFacts): Span[] {
  if (busy !== null) return [span(`${spinner(frame)} ${busy}`, { colour: "cyan" })];
  switch (state.status) {
    case "running":
      return [span(`${spinner(frame)} working ${elapsedWords(elapsedMs)}`, { colour: "cyan" })];
    case "waiting":
      return [span("? waits for your word", { colour: "yellow" })];
    case "interrupted":
      return [span("! interrupted", { colour: "yellow" })];
    case "idle":
      return state.failure === null ? [span("ready", { colour: "green" })] : [span("✗ failed", { colour: "red" })];
  }
}

function windowWords({ usedTokens, maxTokens }: ChatState["window"]): string {
  if (maxTokens <= 0) return usedTokens > 0 ? `${tokensWords(usedTokens)} tokens` : "";
  const share = Math.round((usedTokens / maxTokens) * 100);
  return `${share}% of ${tokensWords(maxTokens)}`;
}
