import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { OpenCall, ResumeOptions, Session, Turn } from "holdfast";
import { LACKS_TOOL, rulesFor, settledCalls, type ToolRules } from "../tool-rules.ts";
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
  rules: ToolRules,
): Promise<Turn<BaseMessage> | null> {
  const { interruption } = session;
  if (interruption?.answered) {
    await session.completeTurn();
    return null;
  }
  const { state } = session;
  const lacksTool = interruption?.how.kind === "suspended" && interruption.how.reason === LACKS_TOOL;
  if (calls === undefined && state === "waiting" && !lacksTool) return null;
  // The agent has the tools, and refuses to run what is gone.
  const names = (interruption?.calls ?? []).map(({ name }) => name);
  // If a middleware has failed on these calls, it would fail on them each time: the model is asked instead.
  const policy = { runs: state !== "failed", asks: true, tools: rulesFor(names, rules) };
  const decided = await settledCalls(session, calls, policy, rules);
  const isDecided = interruption?.how.kind === "suspended" && interruption.how.reason === WAITS_INSIDE;
  return session.resumeTurn({ calls: isDecided ? goingOn(decided) : decided, ...(draft ? { draft } : {}) });
}

/** Why a turn is suspended whose tools, or another part of the agent, wait in an `interrupt()`. */
export const WAITS_INSIDE = "interrupt";

/**
 * LangGraph calls a tool that waits in an `interrupt()` once more, from its beginning. So what has started is one that
 * may start again, if it is to stay open.
 */
function goingOn(calls: NonNullable<ResumeOptions["calls"]>): NonNullable<ResumeOptions["calls"]> {
  if (typeof calls !== "function") return calls;
  return (call) => {
    const decision = calls(call);
    return decision === "keep" && call.state === "outcome-unknown" ? "did-not-happen" : decision;
  };
}

/** Names, in an answer that a resumed run goes on with, the entry that it comes from. */
const RESUMED = "holdfast_resumed";

type Conversation = Pick<Session<BaseMessage>, "messages" | "entries">;
type Answer = Conversation["entries"][number] & { readonly message: AIMessage };

/** The recorded answer whose calls are open. By its entry: servers repeat call ids (R9). */
function openAnswerOf({ entries }: Conversation, open: readonly OpenCall[]): Answer | undefined {
  const made = open.find(({ message }) => message !== null)?.message;
  return entries.find((entry): entry is Answer => entry.id === made && AIMessage.isInstance(entry.message));
}

/** Where the session's messages have this answer. They name repeated calls otherwise, and lack what is hidden. */
function positionOf(id: string, { messages, entries }: Conversation): number {
  const from = entries.findIndex((entry) => entry.id === id);
  const behind = entries.slice(from + 1).filter(({ message, replacedBy }) => !replacedBy && hasCalls(message));
  const positions = messages.flatMap((message, at) => (hasCalls(message) ? [at] : []));
  return positions.at(-1 - behind.length)!;
}

/** What a run begins with: an answer whose calls are open comes from `openAnswer`, when the agent asks the model. */
export function runMessages(session: Conversation, open: readonly OpenCall[]): readonly BaseMessage[] {
  const answer = openAnswerOf(session, open);
  return answer ? session.messages.slice(0, positionOf(answer.id, session)) : session.messages;
}

/** What follows the answer whose calls are open in the agent's messages. Null if the agent lacks that answer. */
export function behindOpenAnswer(
  given: readonly BaseMessage[],
  session: Conversation,
  open: readonly OpenCall[],
): readonly BaseMessage[] | null {
  const answer = openAnswerOf(session, open);
  if (!answer) return null;
  const at = given.findLastIndex((one) => isAnswer(one, answer, session));
  return at < 0 ? null : given.slice(at + 1);
}

/** Another middleware may have replaced it. Without an id it was recorded elsewhere, and the agent cannot have it. */
function isAnswer(one: BaseMessage, answer: Answer, { entries }: Conversation): boolean {
  if (one.response_metadata?.[RESUMED] === answer.id) return true;
  const { id } = answer.message;
  if (id === undefined || one.id === id) return id !== undefined;
  const isOther = one.id !== undefined && entries.some(({ message }) => message.id === one.id);
  return !isOther && callIds(one).some((call) => callIds(answer.message).includes(call));
}

/**
 * The answer whose calls are open, in place of the model's. Only with its open calls, so that no person is asked about
 * the others.
 */
export function openAnswer(session: Conversation, open: readonly OpenCall[]): AIMessage | null {
  const answer = openAnswerOf(session, open);
  if (!answer) return null;
  const { content, id, additional_kwargs, response_metadata, usage_metadata, tool_calls } = copyOf(
    answer.message,
  ) as AIMessage;
  const ids = new Set(open.map((call) => call.id));
  return new AIMessage({
    content,
    additional_kwargs,
    response_metadata: { ...response_metadata, [RESUMED]: answer.id },
    tool_calls: tool_calls!.filter((call) => ids.has(call.id!)),
    ...(id === undefined ? {} : { id }),
    ...(usage_metadata ? { usage_metadata } : {}),
  });
}

/** A request that shows resumed answers as the session has them: with all their calls, and what came after them. */
export function restoreAnswers(request: BaseMessage[], session: Conversation): BaseMessage[] {
  const { messages } = session;
  let resumed: BaseMessage | null = null;
  return request.flatMap((message) => {
    if (AIMessage.isInstance(message)) resumed = null;
    const entry: unknown = message.response_metadata?.[RESUMED];
    if (typeof entry === "string") {
      resumed = message;
      const at = positionOf(entry, session);
      const length = messages.slice(at + 1).findIndex((one) => AIMessage.isInstance(one));
      return messages.slice(at, length < 0 ? undefined : at + 1 + length).map(copyOf);
    }
    const isShown = resumed && ToolMessage.isInstance(message) && callIds(resumed).includes(message.tool_call_id);
    return isShown ? [] : [message];
  });
}

function callIds(message: BaseMessage): string[] {
  return AIMessage.isInstance(message) ? (message.tool_calls ?? []).map(({ id }) => id ?? "") : [];
}

function hasCalls(message: BaseMessage): boolean {
  return callIds(message).length > 0;
}
