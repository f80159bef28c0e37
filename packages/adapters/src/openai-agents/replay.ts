import type { AgentInputItem, AgentOutputItem, ModelRequest } from "@openai/agents";
import type { Entry } from "holdfast";
import { openaiAgents, type RecordedItem } from "../dialects/openai-agents.ts";
import { isCall, isResult, type ResultItem, sentCopy } from "./items.ts";

/** The outcome of a call, as recorded. */
export interface RecordedOutcome {
  readonly item: ResultItem;
  /** What the tool returned, where the model is shown something else. */
  readonly value?: unknown;
  /** Nobody knows how the call ended: the model is told how far it got. */
  readonly isMadeUp: boolean;
}

/** What is recorded of a turn, for the SDK to go through again without asking anybody. */
export interface Replay {
  /** The conversation when the turn began. */
  readonly input: AgentInputItem[];
  /** The responses of the turn, in order. */
  readonly responses: AgentOutputItem[][];
  readonly outcomes: ReadonlyMap<string, RecordedOutcome>;
}

/** If a compaction has removed the turn's beginning, everything before the last response counts as the input. */
export function replayOf(entries: readonly Entry<RecordedItem>[], turn: number, prompt: string): Replay {
  const isAnswer = ({ message, turn: of }: Entry<RecordedItem>): boolean =>
    of === turn && openaiAgents.role(message) === "assistant";
  // As in the session's own view, what is hidden in a turn is hidden from the next turn on. But an answer of this turn
  // that is hidden was rejected, and would be again.
  const isHidden = (entry: Entry<RecordedItem>): boolean =>
    entry.metadata.hiddenFromModel === true && (entry.turn !== turn || isAnswer(entry));
  const shown = entries.filter((entry) => !entry.replacedBy && !entry.late && !isHidden(entry));
  const first = shown.findIndex(isAnswer);
  const last = shown.findLast(isAnswer)?.step;
  const isWhole = shown.some(({ id }) => id === prompt);
  const from = isWhole ? first : shown.findIndex((entry) => isAnswer(entry) && entry.step === last);
  const before = from < 0 ? shown : shown.slice(0, from);
  const responses = new Map<string, AgentOutputItem[]>();
  const outcomes = new Map<string, RecordedOutcome>();
  for (const entry of from < 0 ? [] : shown.slice(from)) {
    const item = sentCopy(entry.message);
    if (isResult(item)) {
      const { value, synthetic } = entry;
      outcomes.set(item.callId, { item, isMadeUp: synthetic !== undefined, ...(value === undefined ? {} : { value }) });
    } else if (isAnswer(entry) && !entry.incomplete) {
      responses.set(entry.step, [...(responses.get(entry.step) ?? []), item as AgentOutputItem]);
    }
  }
  const input = openaiAgents.arrange(before, { changedAt: null, next: "model" }).map(sentCopy);
  return { input, responses: [...responses.values()], outcomes };
}

/** A recorded response without what the SDK must not, or cannot, process again. */
export interface ReplayedResponse {
  /** Null if nothing of it is left to process. */
  readonly output: AgentOutputItem[] | null;
  /** Open calls of tools that do not exist any more. */
  readonly gone: readonly { readonly id: string; readonly name: string }[];
}

/**
 * Functions are processed again, since their recorded outcomes are returned without running them. So are hand-offs
 * that took place. The SDK would run other calls itself, so those that have an outcome are left out.
 */
export function replayable(
  response: readonly AgentOutputItem[],
  outcomes: ReadonlyMap<string, RecordedOutcome>,
  { tools, handoffs }: Pick<ModelRequest, "tools" | "handoffs">,
): ReplayedResponse {
  const functions = new Set(tools.flatMap((tool) => (tool.type === "function" ? [tool.name] : [])));
  const transfers = new Set(handoffs.map(({ toolName }) => toolName));
  const others = new Set(tools.map(({ type }) => type));
  const gone: { id: string; name: string }[] = [];
  const output = response.filter((item) => {
    if (!isCall(item)) return true;
    const outcome = outcomes.get(item.callId);
    if (item.type !== "function_call") {
      const isThere = others.has(
        item.type === "computer_call" ? "computer" : item.type === "shell_call" ? "shell" : "apply_patch",
      );
      if (!outcome && !isThere) gone.push({ id: item.callId, name: item.type });
      return !outcome && isThere;
    }
    if (transfers.has(item.name)) return !outcome || transferredTo(outcome) !== null;
    if (functions.has(item.name)) return true;
    if (!outcome) gone.push({ id: item.callId, name: item.name });
    return false;
  });
  const isEmptied = response.some(isCall) && !output.some(isCall);
  return { output: isEmptied ? null : output, gone };
}

/** The name of the agent that a hand-off led to. Null if it did not take place, as far as anybody knows. */
export function transferredTo({ item, isMadeUp }: RecordedOutcome): string | null {
  if (isMadeUp || item.type !== "function_call_result") return null;
  try {
    const { assistant } = JSON.parse(outputText(item)) as { readonly assistant?: unknown };
    return typeof assistant === "string" ? assistant : null;
  } catch {
    return null;
  }
}

export function outputText({ output }: Extract<ResultItem, { type: "function_call_result" }>): string {
  if (typeof output === "string") return output;
  return !Array.isArray(output) && output.type === "text" ? output.text : JSON.stringify(output);
}
