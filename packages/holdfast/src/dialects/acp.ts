import type { Dialect, Entry } from "./dialect.ts";
import type { FoundCall, FoundResult } from "./pairing.ts";
import { phrase } from "./phrase.ts";
import { equal } from "./sameness.ts";
import { isBlank, mapped, type Shape, shapeOf, textOf, without } from "./shape.ts";

/**
 * What an ACP agent and its client say to each other: the `update` of a `session/update`, or the parameters of a `session/request_permission`, since a tool call may be born in
 * one. A prompt is one `user_message_chunk` per block. The view is what `session/load` replays: for a client, not for a model.
 */
export interface AcpMessage {
  readonly sessionUpdate?: string;
  readonly toolCall?: object;
}

const CHUNKS = new Map<unknown, "user" | "assistant">([
  ["user_message_chunk", "user"],
  ["agent_message_chunk", "assistant"],
  ["agent_thought_chunk", "assistant"],
]);

/** All that a call goes through is the agent's side of the turn, and text may stand between a call and its end. */
const OF_THE_AGENT = new Set<unknown>(["tool_call", "tool_call_update", "plan"]);

export const acp: Dialect<AcpMessage> = {
  name: "acp",
  check,
  role: (message) => {
    const shape = shapeOf(message);
    if (!shape) return "other";
    const chunk = CHUNKS.get(shape["sessionUpdate"]);
    return chunk ?? (OF_THE_AGENT.has(shape["sessionUpdate"]) || callIn(shape) ? "assistant" : "other");
  },
  text: (message) => {
    const shape = shapeOf(message);
    const kind = shape?.["sessionUpdate"];
    const content = shapeOf(shape?.["content"]);
    if (!CHUNKS.has(kind) || kind === "agent_thought_chunk" || content?.["type"] !== "text") return "";
    return textOf(content["text"]);
  },
  calls: callsOf,
  results: resultsOf,
  result: ({ id }, outcome) => {
    const { failed, text } = phrase(outcome);
    const content = text === "" ? [] : [{ type: "content", content: { type: "text", text } }];
    const status = failed ? "failed" : "completed";
    return { sessionUpdate: "tool_call_update", toolCallId: id, status, content } as AcpMessage;
  },
  incomplete: (text) => (isBlank(text) ? null : chunk("agent_message_chunk", text)),
  boundary: (text) => chunk("user_message_chunk", text),
  same: (a, b) => a === b || equal(a, b),
  arrange,
};

function chunk(sessionUpdate: string, text: string): AcpMessage {
  return { sessionUpdate, content: { type: "text", text } } as AcpMessage;
}

function check(message: unknown): string | null {
  const shape = shapeOf(message);
  if (!shape) return "it is neither a session update nor a request for permission";
  const { sessionUpdate, toolCall } = shape;
  if (sessionUpdate === undefined) {
    if (!shapeOf(toolCall)) return "it has no sessionUpdate, and no toolCall to ask permission for";
    return textOf(shapeOf(toolCall)!["toolCallId"]) ? null : "toolCall has no toolCallId";
  }
  if (typeof sessionUpdate !== "string") return "sessionUpdate is not a text";
  if (CHUNKS.has(sessionUpdate) && !shapeOf(shape["content"])) return "a chunk has a block for its content";
  if (sessionUpdate === "tool_call" || sessionUpdate === "tool_call_update") {
    return textOf(shape["toolCallId"]) ? null : "toolCallId is missing";
  }
  return null;
}

/** The call that a message is about, with whatever it says of it. */
function callIn(shape: Shape): Shape | null {
  const { sessionUpdate, toolCall } = shape;
  const call =
    sessionUpdate === "tool_call" || sessionUpdate === "tool_call_update"
      ? shape
      : sessionUpdate === undefined
        ? shapeOf(toolCall)
        : null;
  return call && textOf(call["toolCallId"]) ? call : null;
}

function isEnd({ status }: Shape): boolean {
  return status === "completed" || status === "failed";
}

/** A call is made where it is announced, or where permission is asked for it. An update alone makes none: its call may have been announced before. */
function callsOf(message: unknown): FoundCall[] {
  const shape = shapeOf(message);
  const call = shape && callIn(shape);
  if (!call || shape["sessionUpdate"] === "tool_call_update") return [];
  const id = textOf(call["toolCallId"]);
  const name = textOf(call["name"]) || textOf(call["title"]) || textOf(call["kind"]) || id;
  const asked = shape["sessionUpdate"] === undefined ? { awaiting: true } : {};
  return [{ id, name, input: call["rawInput"], by: "agent", ...asked }];
}

function resultsOf(message: unknown): FoundResult[] {
  const shape = shapeOf(message);
  const call = shape && callIn(shape);
  return call && shape["sessionUpdate"] !== undefined && isEnd(call) ? [{ call: textOf(call["toolCallId"]) }] : [];
}

/**
 * Each call is announced once, where it was first seen, and ended once, where it ended, with all that was said of it in between. What is only for the moment is
 * left out: notices, steps in between, terminals (their ids die with the client). A call that did not end stays open: to a client that is no
 * error, and `result` says what became of it.
 */
function arrange(entries: readonly Entry<AcpMessage>[]): AcpMessage[] {
  const out: AcpMessage[] = [];
  const known = new Map<string, { since: Shape; ended: boolean }>();
  for (const { message } of entries) {
    const shape = shapeOf(message);
    if (!shape) continue;
    const call = callIn(shape);
    if (!call) {
      if (typeof shape["sessionUpdate"] === "string" && isShown(shape)) out.push(message);
      continue;
    }
    const id = textOf(call["toolCallId"]);
    const seen = known.get(id);
    if (!seen) {
      known.set(id, { since: {}, ended: shape["sessionUpdate"] !== undefined && isEnd(call) });
      out.push(announced(shape, call, id));
    } else if (!seen.ended) {
      seen.since = { ...seen.since, ...call };
      seen.ended = isEnd(call) && shape["sessionUpdate"] !== undefined;
      if (seen.ended) out.push(ended(call, seen.since));
    }
  }
  return out;
}

function isShown(shape: Shape): boolean {
  const { sessionUpdate, content } = shape;
  if (sessionUpdate === "notice" || sessionUpdate === "tool_call" || sessionUpdate === "tool_call_update") return false;
  const block = shapeOf(content);
  return !CHUNKS.has(sessionUpdate) || (block !== null && !(block["type"] === "text" && block["text"] === ""));
}

function announced(message: Shape, call: Shape, id: string): AcpMessage {
  const settled = withoutTerminals(call);
  const title = textOf(call["title"]) || textOf(call["name"]) || textOf(call["kind"]) || id;
  if (message["sessionUpdate"] === "tool_call" && call["title"] === title) return settled as AcpMessage;
  return { ...settled, sessionUpdate: "tool_call", title } as AcpMessage;
}

function ended(update: Shape, since: Shape): AcpMessage {
  const settled = withoutTerminals(since);
  const isAll = update["sessionUpdate"] === "tool_call_update" && equal(settled, update);
  return (isAll ? update : { ...settled, sessionUpdate: "tool_call_update" }) as AcpMessage;
}

function withoutTerminals(call: Shape): Shape {
  const { content } = call;
  if (!Array.isArray(content)) return call;
  const kept = mapped(content as readonly unknown[], (item) => (shapeOf(item)?.["type"] === "terminal" ? null : item));
  if (kept === content) return call;
  return kept.length > 0 ? { ...call, content: kept } : without(call, "content");
}
