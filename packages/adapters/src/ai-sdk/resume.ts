import type { ModelMessage, ToolSet } from "ai";
import type { Interruption, OpenCall, Reading, Session, Turn } from "holdfast";
import { isClientTool } from "./content.ts";
import type { ApprovalAnswer, ResumeSettings } from "./surface.ts";

/**
 * Resumes the interrupted turn, up to the point where its open calls can run. Null if there is nothing to ask the model
 * now: it had answered, which ends the turn; or calls wait for a person or for the application, which leaves it as it
 * is.
 */
export async function resumeTurn(
  session: Session<ModelMessage>,
  { calls, draft, approvals }: Pick<ResumeSettings, "calls" | "draft" | "approvals">,
  tools?: ToolSet,
): Promise<Turn<ModelMessage> | null> {
  const { interruption } = session;
  if (interruption?.answered) {
    await session.endTurn();
    return null;
  }
  const requests = interruption ? openRequests(session, interruption) : new Map<string, boolean>();
  const isWaiting = requests.size > 0 || (interruption !== null && awaitsResult(interruption, tools));
  if (approvals === undefined && calls === undefined && isWaiting) return null;
  const answers = approvals === undefined ? null : answersTo(requests, approvals);
  const turn = await session.resumeTurn({ calls: calls ?? keepOrClose, ...(draft ? { draft } : {}) });
  if (answers) await turn.append(answers);
  return turn;
}

/** Whether the application, or its browser, is yet to give the result of a call. */
function awaitsResult({ calls, how }: Interruption<ModelMessage>, tools: ToolSet | undefined): boolean {
  return calls.some(
    ({ name, state }) => isClientTool(tools, name) && (state === "never-started" || how.kind === "suspended"),
  );
}

/**
 * Calls that wait for a person stay open. Calls that never started, or are safe to repeat, run. For the others, the
 * model is told how far each got.
 */
export function keepOrClose({ state, replay }: OpenCall): "keep" | "close" {
  return state === "awaiting" || state === "never-started" || replay === "safe" ? "keep" : "close";
}

/** This turn's unanswered approval requests, by id, and whether the provider runs the call. */
export function openRequests(
  { entries }: Pick<Reading<ModelMessage>, "entries">,
  { turn, calls }: Pick<Interruption<ModelMessage>, "turn" | "calls">,
): Map<string, boolean> {
  const isByProvider = new Map(
    calls.flatMap(({ id, state }) =>
      state === "awaiting" || state === "provider" ? [[id, state === "provider"]] : [],
    ),
  );
  const found = new Map<string, boolean>();
  for (const { message, turn: of } of entries) {
    for (const part of of === turn && typeof message.content !== "string" ? message.content : []) {
      if (part.type === "tool-approval-response") found.delete(part.approvalId);
      if (part.type !== "tool-approval-request") continue;
      const byProvider = isByProvider.get(part.toolCallId);
      if (byProvider !== undefined) found.set(part.approvalId, byProvider);
    }
  }
  return found;
}

/** Throws if a request stays unanswered: the model cannot be asked while a call has neither a result nor a denial. */
function answersTo(requests: ReadonlyMap<string, boolean>, approvals: readonly ApprovalAnswer[]): ModelMessage {
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
      ...(requests.get(approvalId) ? { providerExecuted: true } : {}),
    })),
  };
}

function refusal(why: string): Error {
  return new Error(`The turn was not resumed: ${why}. Nothing was recorded. Answer all open requests in one call.`);
}
