import type { ModelMessage } from "ai";
import type { Session, Turn } from "holdfast";
import type { Worked } from "../../agent/loop.ts";
import type { Board } from "./chat-state-store.ts";
import { failureShown, isStoreFailure, tooManySteps } from "./describe.ts";

/** Records how the turn ended, and tells of it. Throws what the store says. */
export async function conclude(
  session: Session<ModelMessage>,
  turn: Turn<ModelMessage>,
  worked: Exclude<Worked, { kind: "waiting" }>,
  board: Board,
  facts: { readonly stoppedBy: string | null; readonly model: string; readonly look: () => Promise<void> },
): Promise<void> {
  const denied = board.deniedIn(turn.number);
  switch (worked.kind) {
    case "completed":
      await turn.end();
      board.change({ status: "idle" });
      board.record({ type: "turn.ended", outcome: "completed", denied });
      return;
    case "aborted": {
      // `stop` has recorded it; if something else fired the signal, this does.
      await turn.abort({ by: facts.stoppedBy ?? "user" });
      const how = session.interruption?.how;
      board.change({ status: "idle" });
      const by = how?.kind === "aborted" ? { by: how.by } : {};
      board.record({ type: "turn.ended", outcome: "aborted", denied, ...by });
      return;
    }
    default: {
      const error = worked.kind === "limit" ? tooManySteps(worked.steps) : worked.error;
      if (isStoreFailure(error)) throw error;
      const failure = failureShown(error, facts.model);
      await turn.fail(failure.message);
      await facts.look();
      board.change({ status: "interrupted", failure });
      board.record({ type: "turn.ended", outcome: "failed", error: failure, denied });
    }
  }
}
