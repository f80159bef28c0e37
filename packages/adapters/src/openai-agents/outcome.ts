import type { RunResult, StreamedRunResult } from "@openai/agents";
import type { Session } from "holdfast";
import type { RecordedItem } from "./dialect.ts";
import type { RunRecorder } from "./recorder.ts";
import type { AnyAgent, RunOutcome } from "./surface.ts";

export function outcomeOf(result: RunResult<unknown, AnyAgent> | StreamedRunResult<unknown, AnyAgent>): RunOutcome {
  if (result.interruptions.length > 0) return { kind: "waiting" };
  // Asking for the final output of a run that has none makes the SDK warn.
  const isFinal = result.state._currentStep?.type === "next_step_final_output";
  const isStopped = "cancelled" in result && result.cancelled && !isFinal;
  return isStopped ? { kind: "aborted" } : { kind: "completed" };
}

export function outcomeOfError({ turn }: RunRecorder, error: unknown): RunOutcome {
  const isAbort = error instanceof Error && error.name === "AbortError";
  return isAbort || turn?.signal.aborted ? { kind: "aborted" } : { kind: "failed", error };
}

/** Ends the turn the way the run ended. */
export async function endAs(outcome: RunOutcome, recorder: RunRecorder, session: Session<RecordedItem>): Promise<void> {
  // A turn whose answer was recorded, and that needed nothing else.
  if (!recorder.turn && outcome.kind === "completed") return session.endTurn();
  const turn = recorder.turn ?? (await session.resumeTurn());
  switch (outcome.kind) {
    case "completed":
      return turn.end();
    case "aborted":
      return turn.abort({ by: "the application" });
    case "failed":
      return turn.fail(outcome.error);
    case "waiting": {
      const calls = turn.open.flatMap(({ id, state }) =>
        state === "awaiting" || state === "never-started" ? [id] : [],
      );
      return turn.suspend({ reason: "approval", ...(calls.length > 0 ? { calls } : {}) });
    }
  }
}
