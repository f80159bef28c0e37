import type { CallDecision, CallState, Turn } from "holdfast";
import { lives } from "../../holdfast/test/journals/lives.ts";

/** A state that a call can be in, and what happens to it, as the table of journals has them. */
export interface CallRow {
  readonly state: CallState;
  readonly decision: CallDecision;
}

/** Each once, without calls that a person has denied: only messages of the AI SDK say so. */
export function callRows(): CallRow[] {
  const all = lives().flatMap(({ expected }) => Object.values(expected.calls));
  const rows = new Map(all.map(([state, decision]) => [`${state} ${decision}`, { state, decision }]));
  rows.delete("awaiting tell-model");
  return [...rows.values()];
}

/** Brings the open call `a` of a turn into this state. Its store records starts unless the state is `unrecorded`. */
export async function bringTo<M>(turn: Turn<M>, { state, decision }: CallRow): Promise<void> {
  if (state === "outcome-unknown") await turn.toolStarted("a", decision === "run-again" ? { replay: "safe" } : {});
  if (state === "awaiting") await turn.suspend({ reason: "approval", calls: ["a"] });
}
