import { wellFormedText } from "../text/well-formed.ts";
import type { Dialect, Entry, SdkPart } from "./dialect.ts";
import { BEGINNING } from "./order/merge-roles.ts";
import type { Reader } from "./order/pairing.ts";
import { phrase } from "./order/phrase.ts";
import { RegularOrder } from "./order/regular.ts";
import { equal } from "./order/sameness.ts";
import { acpReading, bareOf, CHUNKS, callIn, isEnd, isPrompt } from "./parts/acp.ts";
import { isBlank, mapItems, type Shape, shapeOf, shapesOf, textOf, without } from "./shape.ts";

/**
 * What an ACP agent and its client say to each other: the parameters of a `session/prompt`, of a `session/update` (or
 * only its `update`), or of a `session/request_permission`, which may introduce a tool call. The view is what
 * `session/load` replays, as updates: for a client, not for a model. `"sessionUpdate" in message` tells an update from
 * the rest; a session of updates only is `create<SessionUpdate>({ dialect: "acp" })`.
 */
export type AcpMessage =
  | { sessionUpdate: SdkPart; [field: string]: SdkPart }
  | { sessionId?: string; update: SdkPart; _meta?: SdkPart }
  | { sessionId?: string; prompt: SdkPart[]; _meta?: SdkPart }
  | { sessionId?: string; toolCall: SdkPart; options?: SdkPart[]; _meta?: SdkPart };

export const acp: Dialect<AcpMessage> & Pick<Reader<AcpMessage>, "interleaved"> = {
  name: "acp",
  interleaved: true,
  check,
  ...acpReading,
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
  const shape = bareOf(message);
  if (!shape) return "it is neither a prompt, nor a session update, nor a request for permission";
  if (isPrompt(shape)) return shapesOf(shape["prompt"]).length > 0 ? null : "a prompt needs at least one block";
  const { sessionUpdate, toolCall } = shape;
  if (sessionUpdate === undefined) {
    if (!shapeOf(toolCall)) return "it has neither a sessionUpdate nor a toolCall to ask permission for";
    return textOf(shapeOf(toolCall)!["toolCallId"]) ? null : "toolCall has no toolCallId";
  }
  if (typeof sessionUpdate !== "string") return "sessionUpdate is not a string";
  if (CHUNKS.has(sessionUpdate) && !shapeOf(shape["content"])) return "the content of a chunk is not a block";
  if (sessionUpdate === "tool_call" || sessionUpdate === "tool_call_update") {
    return textOf(shape["toolCallId"]) ? null : "toolCallId is missing";
  }
  return null;
}

/**
 * Each call is announced once, where it first appeared, and ended once, where it ended, with everything said about it
 * in between: before the next prompt, and never once the agent has spoken after that prompt (R1). Transient updates are
 * left out: notices, intermediate steps, terminals (their ids die with the client). A call that did not end stays open:
 * a client accepts that, and `result` reports its outcome.
 */
function arrange(entries: readonly Entry<AcpMessage>[]): AcpMessage[] {
  let turn: Replayed = { updates: [], hasAgent: false };
  const turns = [turn];
  const known = new Map<string, Known>();
  const ids = new Set<string>();
  for (const { message } of entries) {
    const shape = bareOf(message);
    if (!shape) continue;
    const role = acp.role(message);
    if (role === "user" && turn.hasAgent) {
      turn = { updates: [], hasAgent: false };
      turns.push(turn);
    }
    turn.hasAgent ||= role === "assistant";
    const call = callIn(shape);
    if (!call) {
      const updates = isPrompt(shape) ? chunksOf(shape["prompt"]) : [shape];
      for (const update of updates) if (isShown(update)) turn.updates.push(update as AcpMessage);
      continue;
    }
    const id = textOf(call["toolCallId"]);
    const seen = known.get(id);
    if (!seen || beginsAgain(shape, call, seen, turns.length - 1)) {
      // Also if only its end was recorded: it ran, and that is worth showing.
      const isEnded = shape["sessionUpdate"] !== undefined && isEnd(call);
      const sent = sentId(id, ids);
      known.set(id, { id: sent, since: [], ended: isEnded, turn: turns.length - 1 });
      turn.updates.push(withId(announce(shape, call, id), sent));
    } else if (!seen.ended && (seen.turn === turns.length - 1 || (seen.turn === turns.length - 2 && !turn.hasAgent))) {
      seen.since.push(call);
      seen.ended = isEnd(call) && shape["sessionUpdate"] !== undefined;
      if (seen.ended) turns[seen.turn]!.updates.push(withId(endUpdate(call, seen.since), seen.id));
    }
  }
  return withBeginning(turns.flatMap(({ updates }) => updates));
}

/** A turn starts with the user's message: if the first one is no longer shown, a placeholder replaces it. */
function withBeginning(updates: AcpMessage[]): AcpMessage[] {
  const isSpoken = (update: AcpMessage): boolean => {
    const kind = textOf(shapeOf(update)?.["sessionUpdate"]);
    return kind === "tool_call" || CHUNKS.has(kind);
  };
  const first = updates.find(isSpoken);
  if (first === undefined || shapeOf(first)!["sessionUpdate"] === "user_message_chunk") return updates;
  return updates.toSpliced(updates.indexOf(first), 0, chunk("user_message_chunk", BEGINNING));
}

/** A call that was announced. */
interface Known {
  /** The id that is sent. */
  readonly id: string;
  /** What was said about it since, in order. */
  readonly since: Shape[];
  ended: boolean;
  readonly turn: number;
}

/**
 * Agents use the id of a call again, in a later turn or in a later step of the same one: the SDK's own example does,
 * and agents that pass on the ids of a small model. Only an announcement begins a call; a late report does not.
 */
function beginsAgain(message: Shape, call: Shape, { ended, turn }: Known, current: number): boolean {
  if (message["sessionUpdate"] === "tool_call_update") return false;
  return turn !== current || (ended && !isEnd(call));
}

/** Ids that are used again, and ids that differ only in halves of characters, which are not sent. */
function sentId(id: string, ids: Set<string>): string {
  let sent = wellFormedText(id);
  while (ids.has(sent)) sent += "_";
  ids.add(sent);
  return sent;
}

function withId(update: AcpMessage, toolCallId: string): AcpMessage {
  return (update as Shape)["toolCallId"] === toolCallId ? update : ({ ...update, toolCallId } as AcpMessage);
}

/** A prompt, and what the agent did about it. */
interface Replayed {
  readonly updates: AcpMessage[];
  hasAgent: boolean;
}

/** One update per block, as an agent replays a prompt. */
function chunksOf(prompt: unknown): Shape[] {
  return shapesOf(prompt).map((content) => ({ sessionUpdate: "user_message_chunk", content }));
}

function isShown(shape: Shape): boolean {
  const { sessionUpdate, content } = shape;
  if (typeof sessionUpdate !== "string") return false;
  if (sessionUpdate === "notice" || sessionUpdate === "tool_call" || sessionUpdate === "tool_call_update") return false;
  const block = shapeOf(content);
  return !CHUNKS.has(sessionUpdate) || (block !== null && !(block["type"] === "text" && block["text"] === ""));
}

function announce(message: Shape, call: Shape, id: string): AcpMessage {
  const settled = withoutTerminals(call);
  const title = textOf(call["title"]) || textOf(call["name"]) || textOf(call["kind"]) || id;
  if (message["sessionUpdate"] === "tool_call" && call["title"] === title) return settled as AcpMessage;
  return { ...settled, sessionUpdate: "tool_call", title } as AcpMessage;
}

function endUpdate(update: Shape, since: readonly Shape[]): AcpMessage {
  // Once for all of it: an agent may report on a call thousands of times.
  const settled = withoutTerminals(Object.fromEntries(since.flatMap((said) => Object.entries(said))));
  const isAll = update["sessionUpdate"] === "tool_call_update" && equal(settled, update);
  return (isAll ? update : { ...settled, sessionUpdate: "tool_call_update" }) as AcpMessage;
}

function withoutTerminals(call: Shape): Shape {
  const { content } = call;
  if (!Array.isArray(content)) return call;
  const kept = mapItems(content as readonly unknown[], (item) =>
    shapeOf(item)?.["type"] === "terminal" ? null : item,
  );
  if (kept === content) return call;
  return kept.length > 0 ? { ...call, content: kept } : without(call, "content");
}

/** Each call is announced, and ends in the same turn without further reports. */
export class RegularAcp extends RegularOrder<AcpMessage> {
  /** The turn in which a call was announced; null if it has ended. */
  readonly #announced = new Map<string, number | null>();
  #turn = 0;
  #hasAgent = false;
  #hasBegun = false;

  /** A call that did not end stays open. */
  override get isSettled(): boolean {
    return true;
  }

  pass({ message }: Entry<AcpMessage>, out: AcpMessage[]): boolean {
    const shape = bareOf(message);
    if (!shape) return true;
    const role = acp.role(message);
    if (role === "user" && this.#hasAgent) {
      this.#turn += 1;
      this.#hasAgent = false;
    }
    this.#hasAgent ||= role === "assistant";
    if (callIn(shape)) return this.#passCall(shape, out);
    const updates = isPrompt(shape) ? chunksOf(shape["prompt"]) : [shape];
    for (const update of updates) {
      if (!isShown(update)) continue;
      const kind = update["sessionUpdate"];
      if (CHUNKS.has(kind) && !this.#hasBegun) {
        if (kind !== "user_message_chunk") return false;
        this.#hasBegun = true;
      }
      out.push(update as AcpMessage);
    }
    return true;
  }

  #passCall(call: Shape, out: AcpMessage[]): boolean {
    const { sessionUpdate, title, content } = call;
    const id = textOf(call["toolCallId"]);
    if (!this.#hasBegun) return false;
    if (Array.isArray(content) && withoutTerminals(call) !== call) return false;
    if (sessionUpdate === "tool_call") {
      if (this.#announced.has(id) || typeof title !== "string" || title === "") return false;
      this.#announced.set(id, isEnd(call) ? null : this.#turn);
    } else {
      if (sessionUpdate !== "tool_call_update" || this.#announced.get(id) !== this.#turn || !isEnd(call)) return false;
      this.#announced.set(id, null);
    }
    out.push(call as AcpMessage);
    return true;
  }
}
