import {
  InputGuardrailTripwireTriggered,
  ModelBehaviorError,
  ModelRefusalError,
  OutputGuardrailTripwireTriggered,
  type RunResult,
  type StreamedRunResult,
} from "@openai/agents";
import type { Session, Turn } from "holdfast";
import { openaiAgents, type RecordedItem } from "../dialects/openai-agents.ts";
import { isCall } from "./items.ts";
import type { AgentRunLog } from "./run-log.ts";
import type { AnyAgent, RunOutcome } from "./surface.ts";

export function outcomeOf(result: RunResult<unknown, AnyAgent> | StreamedRunResult<unknown, AnyAgent>): RunOutcome {
  if (result.interruptions.length > 0) return { kind: "waiting" };
  // Asking for the final output of a run that has none makes the SDK warn.
  const isFinal = result.state._currentStep?.type === "next_step_final_output";
  const isStopped = "cancelled" in result && result.cancelled && !isFinal;
  return isStopped ? { kind: "aborted" } : { kind: "completed" };
}

export function outcomeOfError(error: unknown, { aborted, reason }: AbortSignal): RunOutcome {
  const isTimeout = (aborted ? reason : error)?.name === "TimeoutError";
  const isAbort = error instanceof Error && error.name === "AbortError";
  return (aborted || isAbort) && !isTimeout ? { kind: "aborted" } : { kind: "failed", error };
}

/** Ends the turn the way the run ended. */
export async function endAs(outcome: RunOutcome, runLog: AgentRunLog, session: Session<RecordedItem>): Promise<void> {
  // A turn whose answer was recorded, and that needed nothing else.
  if (!runLog.turn && outcome.kind === "completed") return session.completeTurn();
  const turn = runLog.turn ?? (await session.resumeTurn());
  switch (outcome.kind) {
    case "completed":
      return turn.end();
    case "handed-over":
      return;
    case "aborted":
      return turn.abort({ by: "the application" });
    case "failed": {
      const { error } = outcome;
      await closeUnstarted(error, turn);
      await hideRejected(error, turn.number, session);
      // Nobody would ever answer a prompt that is rejected again and again.
      return error instanceof InputGuardrailTripwireTriggered ? turn.end() : turn.fail(error);
    }
    case "waiting": {
      const calls = turn.open.flatMap(({ id, state }) =>
        state === "awaiting" || state === "never-started" ? [id] : [],
      );
      return turn.suspend({ reason: "approval", ...(calls.length > 0 ? { calls } : {}) });
    }
  }
}

/** A check that failed on a call (`needsApproval`, a guardrail) would fail each time: the model is asked instead. */
async function closeUnstarted(error: unknown, turn: Turn<RecordedItem>): Promise<void> {
  const why = error instanceof Error ? error.message : String(error);
  for (const { id, state } of turn.open)
    if (state === "never-started") await turn.toolEnded(id, { error: `Not run: the run had failed. (${why})` });
}

/**
 * What was rejected is kept from the model in later turns: the prompt and all about it, or the answer. `resume` does
 * not go through a hidden answer again, and asks the model instead.
 */
async function hideRejected(error: unknown, turn: number, session: Session<RecordedItem>): Promise<void> {
  const all = session.entries.filter((entry) => entry.turn === turn);
  const last = all.findLast(({ message }) => openaiAgents.role(message) === "assistant");
  const answer = last ? all.slice(all.findIndex(({ step }) => step === last.step)) : [];
  const isPrompt = error instanceof InputGuardrailTripwireTriggered;
  const isUnfit = error instanceof ModelBehaviorError || error instanceof ModelRefusalError;
  const isAnswer =
    error instanceof OutputGuardrailTripwireTriggered || (isUnfit && !answer.some(({ message }) => isCall(message)));
  for (const { id } of isPrompt ? all : isAnswer ? answer : []) await session.patch(id, { hiddenFromModel: true });
}
