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
  const replay = new Replay();
  for (const { message } of entries) replay.add(message);
  return withBeginning(replay.turns.flatMap(({ updates }) => updates));
}

/** What is replayed, message by message. */
class Replay {
  readonly turns: Replayed[] = [{ updates: [], hasAgent: false }];
  readonly #known = new Map<string, AnnouncedCall>();
  readonly #ids = new Set<string>();

  /** False if it is not regular: it changes an earlier turn, or a call begins again. */
  add(message: AcpMessage): boolean {
    const shape = bareOf(message);
    if (!shape) return true;
    const role = acp.role(message);
    if (role === "user" && this.turns.at(-1)!.hasAgent) this.turns.push({ updates: [], hasAgent: false });
    const turn = this.turns.at(-1)!;
    turn.hasAgent ||= role === "assistant";
    const call = callIn(shape);
    if (call) return this.#addCall(shape, call, turn);
    const updates = isPrompt(shape) ? chunksOf(shape["prompt"]) : [shape];
    for (const update of updates) if (isShown(update)) turn.updates.push(update as AcpMessage);
    return true;
  }

  #addCall(shape: Shape, call: Shape, turn: Replayed): boolean {
    const current = this.turns.length - 1;
    const id = textOf(call["toolCallId"]);
    const seen = this.#known.get(id);
    const { sessionUpdate } = shape;
    if (!seen || beginsAgain(shape, call, seen, current)) {
      // Also if only its end was recorded: it ran, and that is worth showing.
      const isEnded = sessionUpdate !== undefined && isEnd(call);
      const sent = sentId(id, this.#ids);
      this.#known.set(id, { id: sent, since: [], ended: isEnded, turn: current });
      turn.updates.push(withId(announce(shape, call, id), sent));
      return !seen && sessionUpdate === "tool_call";
    }
    const isInTime = seen.turn === current || (seen.turn === current - 1 && !turn.hasAgent);
    if (seen.ended || !isInTime) return false;
    seen.since.push(call);
    seen.ended = isEnd(call) && sessionUpdate !== undefined;
    if (seen.ended) this.turns[seen.turn]!.updates.push(withId(endUpdate(call, seen.since), seen.id));
    return seen.turn === current && sessionUpdate === "tool_call_update";
  }
}

/** A turn starts with the user's message: if the first one is no longer shown, a placeholder replaces it. */
function withBeginning(updates: AcpMessage[]): AcpMessage[] {
  const first = updates.findIndex(isSpoken);
  if (first < 0 || isUsers(updates[first]!)) return updates;
  return updates.toSpliced(first, 0, chunk("user_message_chunk", BEGINNING));
}

function isSpoken({ sessionUpdate }: Shape): boolean {
  return sessionUpdate === "tool_call" || CHUNKS.has(sessionUpdate);
}

function isUsers({ sessionUpdate }: Shape): boolean {
  return sessionUpdate === "user_message_chunk";
}

/** A call that was announced. */
interface AnnouncedCall {
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
function beginsAgain(message: Shape, call: Shape, { ended, turn }: AnnouncedCall, current: number): boolean {
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

/** Each call is announced once, and what is said about it later is said in the same turn. */
export class RegularAcp extends RegularOrder<AcpMessage> {
  readonly #replay = new Replay();
  #hasBegun = false;

  /** A call that did not end stays open. */
  override get isSettled(): boolean {
    return true;
  }

  pass({ message }: Entry<AcpMessage>, out: AcpMessage[]): boolean {
    if (!this.#replay.add(message)) return false;
    for (const update of this.#replay.turns.at(-1)!.updates.splice(0)) {
      if (!this.#hasBegun && isSpoken(update) && !isUsers(update)) return false;
      this.#hasBegun ||= isUsers(update);
      out.push(update);
    }
    return true;
  }
}
