import { reading } from "../admit/admit.ts";
import { invalid, turnUnanswered } from "../admit/refusals.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { SessionRecord } from "../conversation/records/records.ts";
import type { CallPolicy } from "../view/decide-call.ts";
import { interruptionOf } from "../view/interruption.ts";
import type { ResumeOptions } from "../view/repairs.ts";

/** Completes an interrupted turn that lacks only its end. Throws TURN_UNANSWERED. */
export function endAnswered<M>(session: string, conversation: Conversation<M>): SessionRecord[] {
  const { number, resumes, ended } = conversation.turn!;
  if (!interruptionOf(conversation)?.answered) throw turnUnanswered(session, number);
  // The first end counts, so an aborted turn is resumed before it ends again.
  const resumed: SessionRecord[] = ended ? [{ kind: "turn.resumed", turn: number, n: resumes + 1 }] : [];
  return [...resumed, { kind: "turn.ended", turn: number, outcome: "completed" }];
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
