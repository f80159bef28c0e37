import { nothingToResume } from "../../admit/refusals.ts";
import type { Conversation } from "../../conversation/conversation.ts";
import type { SessionRecord, Suspension } from "../../conversation/records/records.ts";
import { nextResume, type TurnState } from "../../conversation/turn-state.ts";
import { defined } from "../../defined.ts";
import { howOf } from "../../view/interruption.ts";

// What a worker records of a turn that is interrupted, besides what an application can. All throw NOTHING_TO_RESUME.

/** Its try begins: the nth since the last progress. `hasWritten`: this process has written to the session. */
export function tryRecord<M>(
  session: string,
  conversation: Conversation<M>,
  hasWritten: boolean,
  worker: string | undefined,
): Extract<SessionRecord, { kind: "turn.claimed" }> {
  const { number: turn, isTried, attempts } = unfinished(session, conversation);
  const n = isTried && hasWritten ? attempts : attempts + 1;
  return { kind: "turn.claimed", turn, n, ...defined({ worker }) };
}

/** It pauses, is parked, or is to be tried again. */
export function pauseRecords<M>(
  session: string,
  conversation: Conversation<M>,
  suspension: Suspension,
): SessionRecord[] {
  const turn = unfinished(session, conversation);
  const { number, ended } = turn;
  // Of an ended turn, a suspension has no effect.
  const resumed: SessionRecord[] = ended ? [{ kind: "turn.resumed", turn: number, n: nextResume(turn) }] : [];
  return [...resumed, { kind: "turn.suspended", turn: number, ...suspension }];
}

/** It continues. */
export function resumedRecord<M>(
  session: string,
  conversation: Conversation<M>,
): Extract<SessionRecord, { kind: "turn.resumed" }> {
  const turn = unfinished(session, conversation);
  return { kind: "turn.resumed", turn: turn.number, n: nextResume(turn) };
}

function unfinished<M>(session: string, { turn, turns }: Conversation<M>): TurnState<M> {
  if (!turn || howOf(turn).kind === "completed") throw nothingToResume(session, turns);
  return turn;
}
