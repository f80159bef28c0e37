import type { Json } from "holdfast";
import type { AnyContext, Decision } from "./recorder.ts";
import type { AnyState } from "./surface.ts";

/** The name of the note that holds what a person has decided in the open turn. */
export const NOTE = "openai-agents.decisions";

/** By call id. */
export type Decisions = Readonly<Record<string, Decision>>;

/** What was decided about the calls that this state waits for. */
export function decisionsOf(state: AnyState, context: AnyContext): Decisions {
  const found: Record<string, Decision> = {};
  for (const item of state.getInterruptions()) {
    const { rawItem, name } = item;
    const callId = "callId" in rawItem ? rawItem.callId : rawItem.id;
    if (!callId || !name) continue;
    const approved = context.isToolApproved({ toolName: name, callId });
    if (approved === undefined) continue;
    const message = approved ? undefined : context.getRejectionMessage(name, callId);
    found[callId] = { approved, ...(message === undefined ? {} : { message }) };
  }
  return found;
}

/** Those recorded for this turn. */
export function decisionsIn(notes: Readonly<Record<string, Json>> | undefined, turn: number): Decisions {
  const note = notes?.[NOTE] as { readonly turn?: number; readonly decisions?: Decisions } | undefined;
  return note?.turn === turn ? (note.decisions ?? {}) : {};
}
