import type { ModelMessage } from "ai";
import type { Interruption, Session, Turn } from "holdfast";
import type { Equipment } from "../agent/equipment.ts";
import { resume } from "../agent/reopened.ts";
import type { Board } from "./board.ts";

/** Goes on with the interrupted turn, behind the commands that outlived its agent (R7b). Null if that was stopped while it waited for them. */
export async function takeUp(
  session: Session<ModelMessage>,
  equipment: Equipment,
  board: Board,
  {
    calls,
    ...wanted
  }: {
    readonly calls: Interruption<ModelMessage>["calls"];
    readonly processes: "wait" | "stop";
    readonly signal: AbortSignal;
  },
): Promise<Turn<ModelMessage> | null> {
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
