import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { OpenCall, ResumeOptions, Session, Turn } from "holdfast";
import { copyOf } from "./dialect.ts";

/**
 * Resumes the turn. Null if there is nothing to ask the model now: it had answered, which ends the turn; or the turn
 * waits for a person, which leaves it suspended. No tool runs here: only the agent knows which calls need approval or
 * are forbidden. Its next run gets the answer whose calls are open instead of asking the model, and takes it from
 * there.
 */
export async function resumeTurn(
  session: Session<BaseMessage>,
  { calls, draft }: ResumeOptions,
): Promise<Turn<BaseMessage> | null> {
  const { interruption } = session;
  if (interruption?.answered) {
    await session.endTurn();
    return null;
  }
  const { state } = session;
  if (calls === undefined && state === "waiting") return null;
  // If a middleware has failed on these calls, it would fail on them each time: the model is asked instead.
  const policy = { runs: state !== "failed", asks: true };
  return session.resumeTurn({ calls: calls ?? policy, ...(draft ? { draft } : {}) });
}

/** The position of the answer whose calls are open. -1 if none is. */
function openAnswerAt(messages: readonly BaseMessage[], open: readonly OpenCall[]): number {
  const ids = new Set(open.map(({ id }) => id));
  return messages.findLastIndex((message) => callIds(message).some((id) => ids.has(id)));
}

/** What a run begins with: an answer whose calls are open comes from `openAnswer`, when the agent asks the model. */
export function runMessages({ messages, turn }: Session<BaseMessage>): readonly BaseMessage[] {
  const at = openAnswerAt(messages, turn?.open ?? []);
  return at < 0 ? messages : messages.slice(0, at);
}

/** Marks an answer in the agent's state that lacks those of its calls that had ended before. */
const RESUMED = "holdfast_resumed";

/**
 * The answer whose calls are open, if the agent does not have it: in place of the model's. Only with its open calls, so
 * that no person is asked about the others.
 */
export function openAnswer(
  { messages }: Session<BaseMessage>,
  open: readonly OpenCall[],
  request: readonly BaseMessage[],
): AIMessage | null {
  const answer = messages[openAnswerAt(messages, open)];
  if (!answer || request.some((message) => hasCallOf(message, answer))) return null;
  const { content, id, additional_kwargs, response_metadata, usage_metadata, tool_calls } = copyOf(answer) as AIMessage;
  const ids = new Set(open.map((call) => call.id));
  return new AIMessage({
    content,
    additional_kwargs,
    response_metadata: { ...response_metadata, [RESUMED]: true },
    tool_calls: (tool_calls ?? []).filter((call) => ids.has(call.id ?? "")),
    ...(id === undefined ? {} : { id }),
    ...(usage_metadata ? { usage_metadata } : {}),
  });
}

/** A request that shows resumed answers as the session has them: with all their calls, and what came after them. */
export function restoreAnswers(request: BaseMessage[], { messages }: Session<BaseMessage>): BaseMessage[] {
  const resumed = request.filter(({ response_metadata }) => response_metadata?.[RESUMED] === true);
  if (resumed.length === 0) return request;
  return request.flatMap((message) => {
    if (resumed.includes(message)) {
      const at = messages.findLastIndex((one) => hasCallOf(message, one));
      const length = messages.slice(at + 1).findIndex((one) => AIMessage.isInstance(one));
      return messages.slice(at, length < 0 ? undefined : at + 1 + length).map(copyOf);
    }
    return ToolMessage.isInstance(message) && resumed.some((one) => callIds(one).includes(message.tool_call_id))
      ? []
      : [message];
  });
}

function callIds(message: BaseMessage): string[] {
  return AIMessage.isInstance(message) ? (message.tool_calls ?? []).map(({ id }) => id ?? "") : [];
}

function hasCallOf(message: BaseMessage, answer: BaseMessage): boolean {
  const ids = callIds(answer);
  return callIds(message).some((id) => ids.includes(id));
}
