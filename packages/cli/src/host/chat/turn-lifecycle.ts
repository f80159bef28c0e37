import type { ModelMessage } from "ai";
import type { Interruption, Session, Turn } from "holdfast";
import { resume } from "../../agent/open-calls.ts";
import type { Equipment } from "../../agent/runtime.ts";
import type { Board } from "./chat-state-store.ts";
import { isStoreFailure } from "./describe.ts";

/** Ends a turn that was cut off between its answer and its end. The model is not asked again. */
export async function completeAnswered(session: Session<ModelMessage>): Promise<void> {
  if (!session.interruption?.answered) return;
  try {
    await session.endTurn();
  } catch (error) {
    // What is on a full disk can still be read, and `takeUp` completes it later.
    if (!isStoreFailure(error)) throw error;
  }
}

/**
 * Goes on with the interrupted turn, behind the commands that outlived its agent (R7b). Null if it was stopped while it
 * waited for them, or if the turn had been answered and is completed now.
 */
export async function takeUp(
  session: Session<ModelMessage>,
  equipment: Equipment,
  board: Board,
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
    board.change({ status: "idle", interruption: null });
    board.record({ type: "turn.ended", outcome: "completed", denied: 0 });
    return null;
  }
  const waits = (pid: number): void => {
    const text = `Waiting for the process ${pid}, which outlived its agent.`;
    board.tell({ type: "notice", level: "info", text });
  };
  let turn: Turn<ModelMessage> | null = null;
  // To wait is work already: it is seen, and can be stopped.
  board.change({ status: "running" }, { type: "changed" });
  try {
    const isOver = await equipment.outlived(calls, { ...wanted, waits });
    if (isOver) turn = await resume(session, await equipment.know(calls));
  } finally {
    if (turn === null) board.change({ status: "interrupted" }, { type: "changed" });
  }
  return turn;
}
