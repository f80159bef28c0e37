import type { ModelMessage, ToolSet } from "ai";
import {
  type CallPolicy,
  decideCall,
  type Interruption,
  type OpenCall,
  type Reading,
  type Session,
  type Turn,
} from "holdfast";
import { missingTools, rulesFor, settledCalls, type ToolRules } from "../tool-rules.ts";
import { isClientTool, ownTool } from "./content.ts";
import type { ApprovalAnswer, ResumeSettings } from "./surface.ts";

/**
 * Resumes the interrupted turn, up to the point where its open calls can run. Null if there is nothing to ask the model
 * now: it had answered, which ends the turn; or calls wait for a person or for the application, which leaves it as it
 * is.
 */
export async function resumeTurn(
  session: Session<ModelMessage>,
  { calls, draft, approvals }: Pick<ResumeSettings, "calls" | "draft" | "approvals">,
  { tools, rules }: TodaysTools,
): Promise<Turn<ModelMessage> | null> {
  const { interruption } = session;
  if (interruption?.answered) {
    await session.completeTurn();
    return null;
  }
  const requests = interruption ? openRequests(session, interruption) : new Map<string, OpenCall>();
  const open = interruption?.calls ?? [];
  const waiting = policyFor(open.filter((call) => awaitsResult(call, session, tools)));
  const policy = { ...waiting, tools: rulesFor(Object.keys(tools), rules) };
  const decided = await settledCalls(session, calls, policy, rules);
  const isWaiting = requests.size > 0 || open.some((call) => decideCall(call, policy) === "wait");
  if (approvals === undefined && calls === undefined && isWaiting) return null;
  const answers = approvals === undefined ? null : answersTo(requests, approvals);
  if (approvals) refuseApproved(requests, approvals, tools);
  const turn = await session.resumeTurn({ calls: decided, ...(draft ? { draft } : {}) });
  if (answers) await turn.append(answers);
  return turn;
}

/** The tools of this program, and what it says about them. */
export interface TodaysTools {
  readonly tools: ToolSet;
  readonly rules: ToolRules;
}

/** Nobody could run what is about to be approved. */
function refuseApproved(
  requests: ReadonlyMap<string, OpenCall>,
  approvals: readonly ApprovalAnswer[],
  tools: ToolSet,
): void {
  const approved = approvals.flatMap(({ approvalId, approved }) => (approved ? requests.get(approvalId)! : []));
  const missing = approved.filter(({ name, state }) => state !== "provider" && !ownTool(tools, name));
  if (missing.length > 0) throw missingTools(missing);
}

/** Whether the application, or its browser, is yet to give the result of a call. */
function awaitsResult({ name, state: of }: OpenCall, { state }: Session<ModelMessage>, tools?: ToolSet): boolean {
  return isClientTool(tools, name) && (of === "never-started" || state === "waiting");
}

/** What a program of the AI SDK does with open calls. Those given wait for a result that it does not make itself. */
export function policyFor(waiting: Iterable<OpenCall>): CallPolicy {
  return { runs: true, asks: true, facts: Object.fromEntries([...waiting].map(({ id }) => [id, { waits: true }])) };
}

/** This turn's unanswered approval requests, by id, and the call of each. The provider may be the one to run it. */
export function openRequests(
  { entries }: Pick<Reading<ModelMessage>, "entries">,
  { turn, calls }: Pick<Interruption<ModelMessage>, "turn" | "calls">,
): Map<string, OpenCall> {
  const waiting = calls.filter(({ state }) => state === "awaiting" || state === "provider");
  const found = new Map<string, OpenCall>();
  for (const { message, turn: of } of entries) {
    for (const part of of === turn && typeof message.content !== "string" ? message.content : []) {
      if (part.type === "tool-approval-response") found.delete(part.approvalId);
      if (part.type !== "tool-approval-request") continue;
      const call = waiting.findLast(({ id }) => id === part.toolCallId);
      if (call) found.set(part.approvalId, call);
    }
  }
  return found;
}

/** Throws if a request stays unanswered: the model cannot be asked while a call has neither a result nor a denial. */
function answersTo(requests: ReadonlyMap<string, OpenCall>, approvals: readonly ApprovalAnswer[]): ModelMessage {
  const answered = new Set(approvals.map(({ approvalId }) => approvalId));
  if (answered.size < approvals.length) throw refusal("one request has two answers");
  const unknown = approvals.find(({ approvalId }) => !requests.has(approvalId));
  if (unknown) throw refusal(`there is no open request ${JSON.stringify(unknown.approvalId)}`);
  const missing = [...requests.keys()].find((approvalId) => !answered.has(approvalId));
  if (missing !== undefined) throw refusal(`the answer to ${JSON.stringify(missing)} is missing`);
  return {
    role: "tool",
    content: approvals.map(({ approvalId, approved, reason }) => ({
      type: "tool-approval-response" as const,
      approvalId,
      approved,
      ...(reason === undefined ? {} : { reason }),
      ...(requests.get(approvalId)?.state === "provider" ? { providerExecuted: true } : {}),
    })),
  };
}

function refusal(why: string): Error {
  return new Error(`The turn was not resumed: ${why}. Nothing was recorded. Answer all open requests in one call.`);
}
