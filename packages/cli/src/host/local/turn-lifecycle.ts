import type { ModelMessage } from "ai";
import type { Interruption, Session, Turn } from "holdfast";
import type { TurnResult } from "../../agent/loop.ts";
import { resumeInterrupted } from "../../agent/open-calls.ts";
import type { AgentRuntime } from "../../agent/runtime.ts";
import { explainFailure, isStoreFailure, stepLimitError } from "../failures.ts";
import type { ChatStateStore } from "./chat-state-store.ts";

/** Ends a turn that was cut off between its answer and its end. The model is not asked again. */
export async function completeAnsweredTurn(session: Session<ModelMessage>): Promise<void> {
  if (!session.interruption?.answered) return;
  try {
    await session.endTurn();
  } catch (error) {
    // What is on a full disk can still be read, and `resumeTurn` completes it later.
    if (!isStoreFailure(error)) throw error;
  }
}

/**
 * Goes on with the interrupted turn, behind the commands that outlived its agent (R7b). Null if it was stopped while it
 * waited for them, or if the turn had been answered and is completed now.
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
    await session.endTurn();
    state.update({ status: "idle", interruption: null });
    state.emitRecorded({ type: "turn.ended", outcome: "completed", denied: 0 });
    return null;
  }
  const waits = (pid: number): void => {
    const text = `Waiting for process ${pid}, which outlived its agent.`;
    state.emit({ type: "notice", level: "info", text });
  };
  let turn: Turn<ModelMessage> | null = null;
  // To wait is work already: it is seen, and can be stopped.
  state.update({ status: "running" }, { type: "changed" });
  try {
    const isOver = await agent.settleCommands(calls, { ...wanted, waits });
    if (isOver) turn = await resumeInterrupted(session, await agent.inspectCalls(calls));
  } finally {
    if (turn === null) state.update({ status: "interrupted" }, { type: "changed" });
  }
  return turn;
}

/** Records how the turn ended, and tells of it. Throws what the store says. */
export async function endTurn(
  session: Session<ModelMessage>,
  turn: Turn<ModelMessage>,
  result: Exclude<TurnResult, { kind: "waiting" }>,
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
      // `stop` has recorded it; if something else fired the signal, this does.
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
