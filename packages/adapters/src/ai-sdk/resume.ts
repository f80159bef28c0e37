import type { ModelMessage } from "ai";
import type { Interruption, OpenCall, Session, Turn } from "holdfast";
import type { ApprovalAnswer, ResumeSettings } from "./surface.ts";

/**
 * Goes on with the interrupted turn, up to where its open calls can be run. Null if there is nothing to ask the model now: it had answered, which ends the turn, or calls wait for a person, which leaves it as it is.
 */
export async function resumeTurn(
  session: Session<ModelMessage>,
  { calls, draft, approvals }: Pick<ResumeSettings, "calls" | "draft" | "approvals">,
): Promise<Turn<ModelMessage> | null> {
  const { interruption } = session;
  if (interruption?.answered) {
    await session.endTurn();
    return null;
  }
  const requests = interruption ? openRequests(session, interruption) : new Map<string, boolean>();
  if (approvals === undefined && calls === undefined && requests.size > 0) return null;
  const answers = approvals === undefined ? null : answersTo(requests, approvals);
  const turn = await session.resumeTurn({ calls: calls ?? kept, ...(draft ? { draft } : {}) });
  if (answers) await turn.append(answers);
  return turn;
}

/** What waits for a person goes on waiting; what was never started, or may be run twice, is run; of the rest the model is told how far it came. */
function kept({ state, replay }: OpenCall): "keep" | "close" {
  return state === "awaiting" || state === "never-started" || replay === "safe" ? "keep" : "close";
}

/** The requests for approval of this turn that nobody has answered, by their ids; whether the provider is to run the call. */
function openRequests(
  { entries }: Session<ModelMessage>,
  { turn, calls }: Interruption<ModelMessage>,
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

/** Throws if a request is left without an answer: the model cannot be asked with a call that has neither result nor denial. */
function answersTo(requests: ReadonlyMap<string, boolean>, approvals: readonly ApprovalAnswer[]): ModelMessage {
  const answered = new Set(approvals.map(({ approvalId }) => approvalId));
  if (answered.size < approvals.length) throw refused("one request is answered twice");
  const unknown = approvals.find(({ approvalId }) => !requests.has(approvalId));
  if (unknown) throw refused(`nothing waits for the answer to ${JSON.stringify(unknown.approvalId)}`);
  const missing = [...requests.keys()].find((approvalId) => !answered.has(approvalId));
  if (missing !== undefined) throw refused(`the answer to ${JSON.stringify(missing)} is missing`);
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

function refused(why: string): Error {
  return new Error(
    `The turn was not resumed: ${why}. Nothing was recorded. Give the answers to all requests that are open, together.`,
  );
}
