import type { Json } from "holdfast";
import type { AnyContext, Decision } from "./run-log.ts";
import type { AnyAgent, AnyState } from "./surface.ts";

/** The name of the note that holds what became of the approvals of the open turn. */
export const NOTE = "openai-agents.decisions";

/** By call id. */
export type Decisions = Readonly<Record<string, Decision>>;

/**
 * The states of agents that are tools and wait for an approval inside, as the SDK writes them. By call id. As values
 * and not as text, so that each text in them is redacted by itself.
 */
export type WaitingAgents = Readonly<Record<string, Json>>;

export interface Approvals {
  /** What a person has decided about calls of the turn. */
  readonly decisions: Decisions;
  /** Nothing has run in these since they began to wait: the note is replaced before they go on. */
  readonly waiting: WaitingAgents;
}

/** What was decided about the calls that this state waits for, but not about those inside of agents that are tools. */
export function decisionsOf(state: AnyState, context: AnyContext, isOfTurn: (agent: AnyAgent) => boolean): Decisions {
  const found: Record<string, Decision> = {};
  for (const item of state.getInterruptions()) {
    const { rawItem, name } = item;
    const callId = "callId" in rawItem ? rawItem.callId : rawItem.id;
    // The ids of calls inside belong to another conversation: one of them may be equal to an id of the turn.
    if (!callId || !name || !isOfTurn(item.agent)) continue;
    const approved = context.isToolApproved({ toolName: name, callId });
    if (approved === undefined) continue;
    const message = approved ? undefined : context.getRejectionMessage(name, callId);
    found[callId] = { approved, ...(message === undefined ? {} : { message }) };
  }
  return found;
}

/** Of the calls with these ids, those that wait inside. The SDK's keys end with the call id. */
export function waitingIn(state: AnyState, callIds: readonly string[]): WaitingAgents {
  const longestFirst = callIds.toSorted((a, b) => b.length - a.length);
  const found: Record<string, Json> = {};
  for (const [key, serialized] of state._pendingAgentToolRuns) {
    const callId = longestFirst.find((id) => key.endsWith(`:${id}`));
    if (callId !== undefined) found[callId] = JSON.parse(serialized) as Json;
  }
  return found;
}

/** Those recorded for this turn. */
export function approvalsIn(notes: Readonly<Record<string, Json>> | undefined, turn: number): Approvals {
  const note = notes?.[NOTE] as ({ readonly turn?: number } & Partial<Approvals>) | undefined;
  const { decisions = {}, waiting = {} } = note?.turn === turn ? note : {};
  return { decisions, waiting };
}
