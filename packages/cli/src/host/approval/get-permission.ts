import type { ModelMessage } from "ai";
import type { Turn } from "holdfast";
import type { Approval, AskedCall } from "../../agent/open-calls.ts";
import type { AgentRuntime } from "../../agent/runtime.ts";
import type { Decision } from "../../tools/permission/decide.ts";
import type { PermissionAsk } from "../host.ts";
import { describeApprovals, type Question } from "./approval-request.ts";
import { type Answer, applyRules, buildApprovalMessage, selectApproved } from "./permission-prompts.ts";

export interface Asker {
  /** Who decides on a call that no rule allows. */
  readonly asks: "person" | "nobody";
  /** Returns the questions that were not answered before the turn was resumed. */
  readonly takeAnswered: (questions: readonly Question[], answers: Map<string, Answer>) => readonly Question[];
  /** A rule denied it, or nobody is there to ask. */
  readonly denied: (call: AskedCall, decision: Decision) => void;
  /** The turn waits meanwhile. Null if the questions were withdrawn. */
  readonly ask: (asks: readonly PermissionAsk[]) => Promise<ReadonlyMap<string, Answer> | null>;
}

/**
 * Gets a decision on each call, from the rules or a person, and records it; the turn waits, even across processes (R7,
 * C37). Returns the turn in which the approved calls run; null if nobody decided.
 */
export async function getPermission(
  agent: AgentRuntime,
  turn: Turn<ModelMessage>,
  approvals: readonly Approval[],
  { asks, takeAnswered, denied: onDenied, ask }: Asker,
): Promise<Turn<ModelMessage> | null> {
  const { session } = agent;
  const decide = (name: string, input: unknown): Decision => agent.decide(name, input);
  const { answers, undecided: open, denied } = applyRules(approvals, decide, asks);
  const undecided = takeAnswered(open, answers);
  for (const { call, decision } of denied) onDenied(call, decision);
  if (undecided.length > 0) {
    const described = await describeApprovals(undecided, agent);
    await turn.suspend({ reason: "permission", calls: undecided.map(({ call }) => call) });
    const given = await ask(described);
    if (!given) return null;
    for (const [call, answer] of given) answers.set(call, answer);
  }
  const goesOn = undecided.length > 0 ? await session.resumeTurn({ calls: () => "keep" }) : turn;
  for (const { toolCallId, input } of approvals)
    if (answers.get(toolCallId)?.approved) agent.approve(goesOn, toolCallId, input);
  // Record this before the answer: an approval that does not say what it covers would allow nothing.
  await agent.approvals.record(selectApproved(answers));
  await goesOn.append(buildApprovalMessage(approvals, answers));
  return goesOn;
}
