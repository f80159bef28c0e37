import { type Admission, reading } from "../../admit/admit.ts";
import { invalid, turnUnanswered } from "../../admit/refusals.ts";
import type { Conversation } from "../../conversation/conversation.ts";
import type { SessionRecord } from "../../conversation/records/records.ts";
import { nextResume } from "../../conversation/turn-state.ts";
import { newId } from "../../journal/id.ts";
import type { CallPolicy } from "../../view/decide-call.ts";
import { interruptionOf } from "../../view/interruption.ts";
import { planResume, type ResumeOptions } from "../../view/repairs.ts";

/** Completes an interrupted turn that lacks only its end. Throws TURN_UNANSWERED. */
export function endAnswered<M>(session: string, conversation: Conversation<M>): SessionRecord[] {
  const { number, ended } = conversation.turn!;
  if (!interruptionOf(conversation)?.answered) throw turnUnanswered(session, number);
  // The first end counts, so an aborted turn is resumed before it ends again.
  const resumed: SessionRecord[] = ended
    ? [{ kind: "turn.resumed", turn: number, n: nextResume(conversation.turn!) }]
    : [];
  return [...resumed, { kind: "turn.ended", turn: number, outcome: "completed" }];
}

/** The unit that resumes the turn. */
export function resumeRecords<M>(
  conversation: Conversation<M>,
  admission: Admission<M>,
  options: ResumeOptions,
): SessionRecord[] {
  const turn = conversation.turn!;
  const { number } = turn;
  const { entries, outcomes, unstarted } = planResume(conversation, options, (text) => admission.text(text));
  const unit: SessionRecord[] = outcomes.map(({ call, outcome }) => {
    const result = admission.outcome(outcome);
    const { id, message, index, name } = call;
    return { kind: "tool.ended", id: newId(), turn: number, call: id, message, index, name, ...result };
  });
  for (const { id, message, index } of unstarted)
    unit.push({ kind: "tool.unstarted", turn: number, call: id, message: message!, index, source: "application" });
  if (entries.length > 0) unit.push({ kind: "repair", turn: number, entries });
  unit.push({ kind: "turn.resumed", turn: number, n: nextResume(turn) });
  return unit;
}

/** A copy of the options given to `resumeTurn`, taken at the call (R19). Throws RECORD_INVALID, RECORD_NOT_JSON. */
export function resumeGiven(options: ResumeOptions): ResumeOptions {
  const { calls = "close", draft = "discard" } = reading("options", () => ({ ...options }));
  const isPolicy = typeof calls === "object" && calls !== null;
  if (typeof calls !== "function" && calls !== "close" && calls !== "rerun" && !isPolicy) {
    throw invalid('`calls` is "close", "rerun", a policy, or a function');
  }
  if (draft !== "discard" && draft !== "keep") throw invalid('`draft` is "discard" or "keep"');
  return { calls: isPolicy ? reading("options", () => policyOf(calls)) : calls, draft };
}

function policyOf({ runs = false, asks = false, facts = {}, tools }: CallPolicy): CallPolicy {
  return { runs, asks, facts: { ...facts }, ...(tools ? { tools: { ...tools } } : {}) };
}
