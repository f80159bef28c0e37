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
  const isOver = await equipment.outlived(calls, { ...wanted, waits });
  return isOver ? await resume(session, await equipment.know(calls)) : null;
}
