import type { ModelMessage } from "ai";
import type { Interruption, Session, Turn } from "holdfast";
import type { TurnResult } from "../../agent/loop.ts";
import type { AgentRuntime } from "../../agent/runtime.ts";
import { explainFailure, isStoreFailure, stepLimitError } from "../failures.ts";
import type { ChatStateStore } from "./chat-state-store.ts";

/** Ends a turn that was interrupted between its answer and its end. Does not ask the model again. */
export async function completeAnsweredTurn(session: Session<ModelMessage>): Promise<void> {
  if (!session.interruption?.answered) return;
  try {
    await session.completeTurn();
  } catch (error) {
    // A full disk can still be read, and `resumeTurn` completes the turn later.
    if (!isStoreFailure(error)) throw error;
  }
}

/**
 * Resumes the interrupted turn after the commands that outlived its agent have ended (R7b). Null if it was stopped
 * during that wait, or if the turn already had its answer and is completed now.
 */
export async function resumeTurn(
  session: Session<ModelMessage>,
  agent: AgentRuntime,
  state: ChatStateStore,
  {
    interruption: { answered, calls },
    ...wanted
  }: {
    readonly interruption: Interruption<ModelMessage>;
    readonly processes: "wait" | "stop";
    readonly signal: AbortSignal;
  },
): Promise<Turn<ModelMessage> | null> {
  if (answered) {
    await session.completeTurn();
    state.update({ status: "idle", interruption: null });
    state.emitRecorded({ type: "turn.ended", outcome: "completed", denied: 0 });
    return null;
  }
  const waits = (pid: number): void => {
    const text = `Waiting for process ${pid}, which outlived its agent.`;
    state.emit({ type: "notice", level: "info", text });
  };
  let turn: Turn<ModelMessage> | null = null;
  // Waiting counts as running: it is visible and can be stopped.
  state.update({ status: "running" }, { type: "changed" });
  try {
    const isOver = await agent.settleCommands(calls, { ...wanted, waits });
    if (isOver) turn = await agent.resumeTurn();
  } finally {
    if (turn === null) state.update({ status: "interrupted" }, { type: "changed" });
  }
  return turn;
}

/** Records how the turn ended, and emits the event. Throws store errors. */
export async function endTurn(
  session: Session<ModelMessage>,
  turn: Turn<ModelMessage>,
  result: Exclude<TurnResult, { kind: "waiting" | "handed-over" }>,
  state: ChatStateStore,
  facts: { readonly stoppedBy: string | null; readonly model: string; readonly inspect: () => Promise<void> },
): Promise<void> {
  const denied = state.deniedIn(turn.number);
  switch (result.kind) {
    case "completed":
      await turn.end();
      state.update({ status: "idle" });
      state.emitRecorded({ type: "turn.ended", outcome: "completed", denied });
      return;
    case "aborted": {
      // `stop` has already recorded it; this covers any other cause of the signal.
      await turn.abort({ by: facts.stoppedBy ?? "user" });
      const how = session.interruption?.how;
      state.update({ status: "idle" });
      const by = how?.kind === "aborted" ? { by: how.by } : {};
      state.emitRecorded({ type: "turn.ended", outcome: "aborted", denied, ...by });
      return;
    }
    default: {
      const error = result.kind === "limit" ? stepLimitError(result.steps) : result.error;
      if (isStoreFailure(error)) throw error;
      const failure = explainFailure(error, facts.model);
      await turn.fail(failure.message);
      await facts.inspect();
      state.update({ status: "interrupted", failure });
      state.emitRecorded({ type: "turn.ended", outcome: "failed", error: failure, denied });
    }
  }
}
