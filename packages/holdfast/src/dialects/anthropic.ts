import { defined } from "../defined.ts";
import { beginningOf } from "../text/well-formed.ts";
import type { Dialect, Entry, SdkPart, View } from "./dialect.ts";
import { BEGINNING, MergedRoles } from "./order/merge-roles.ts";
import { phrase } from "./order/phrase.ts";
import { NAMELESS, type Plan, planView, type ShownCall } from "./order/plan.ts";
import { hasOnly, RegularOrder } from "./order/regular.ts";
import { equal, stripMarks } from "./order/sameness.ts";
import {
  anthropicReading,
  callerOf,
  isCall,
  isProviderResult,
  isResult,
  resultBlocks,
  roleOf,
} from "./parts/anthropic.ts";
import {
  atOnce,
  contentOf,
  inputObject,
  isBlank,
  listOf,
  mapItems,
  quote,
  type Shape,
  sameItems,
  shapeOf,
  shapesOf,
  textOf,
  without,
} from "./shape.ts";

/** `MessageParam` of @anthropic-ai/sdk. Also accepts a `Message` as returned by the API. */
export interface AnthropicMessage {
  role: "user" | "assistant" | "system";
  content: string | SdkPart[];
}

/** The API accepts four cache marks per request. Two are left for system and tools, which Holdfast does not see. */
const CACHE_MARKS_MAX = 2;

/** "tool_use.name: String should have at most 200 characters": models have put whole commands there. */
const NAME_LENGTH_MAX = 200;

/** Blocks whose position is part of what was signed. */
const STAYS = new Set(["thinking", "redacted_thinking", "fallback"]);

/** Blocks that show that a message was made for another API. */
const FOREIGN = new Set(["tool-call", "tool-result", "image_url", "input_text", "output_text", "function_call"]);

const fit = (id: string): string => (/[^a-zA-Z0-9_-]/.test(id) ? id.replaceAll(/[^a-zA-Z0-9_-]/g, "_") : id);
const MANNER = { speaks, needsIds: true, fit, idsUniqueIn: "conversation", together: () => true } as const;

export const anthropic: Dialect<AnthropicMessage> = {
  name: "anthropic",
  check,
  ...anthropicReading,
  result: ({ id }, outcome) => {
    const { failed, text } = phrase(outcome);
    const block = { type: "tool_result", tool_use_id: id, content: text, ...(failed ? { is_error: true } : {}) };
    return { role: "user", content: [block] };
  },
  incomplete: (text) => (isBlank(text) ? null : { role: "assistant", content: text }),
  boundary: (text) => ({ role: "user", content: text }),
  same: (a, b) => a === b || equal(stripMarks(a, withoutMarks), stripMarks(b, withoutMarks)),
  unsent: (step) =>
    step.some((message) => contentOf(message).some((block) => isReasoning(block) && isSpent(block, false)))
      ? "A thinking block was recorded without its signature: no request will contain it, since the API refuses it. " +
        "Record the message as the API returned it; when streaming, include the signature_delta."
      : null,
  arrange,
};

function check(message: unknown): string | null {
  const shape = shapeOf(message);
  if (!shape) return "a message must be an object with a role and content";
  const { role, content } = shape;
  if (role !== "user" && role !== "assistant" && role !== "system") return `role is ${quote(role)}`;
  if (typeof content === "string") return null;
  if (!Array.isArray(content)) return "content is neither a string nor a list of blocks";
  for (let index = 0; index < content.length; index++) {
    const block = shapeOf(content[index]);
    const type = block?.["type"];
    if (typeof type !== "string") return `content[${index}] is not a block with a type`;
    if (FOREIGN.has(type)) return `content[${index}] is of the type "${type}", which belongs to another dialect`;
    if (type === "text" && typeof block?.["text"] !== "string") return `content[${index}] has no text`;
  }
  return null;
}

const isEmpty = ({ type, text }: Shape): boolean => type === "text" && isBlank(text);
const isReasoning = ({ type }: Shape): boolean => type === "thinking" || type === "redacted_thinking";
/** Also drops null members such as `citations`: the API includes them in its answers but does not require them. */
function withoutMarks(part: Shape): Shape {
  const empty = Object.keys(part).filter((name) => name === "cache_control" || part[name] === null);
  const bare = empty.length > 0 ? without(part, ...empty) : part;
  const { content } = bare;
  if (!isResult(bare) || !Array.isArray(content)) return bare;
  return { ...bare, content: shapesOf(content).map(withoutMarks) };
}

/**
 * Alternating turns, starting with the user's. The assistant's calls are followed by one user message: first their
 * results, in call order, then what the user said. System messages wait until the user has spoken, and are placed right
 * before the assistant's next message or at the end, the only places where the API accepts them. They are the one
 * exception to R1, while the user is still speaking.
 */
function arrange(entries: readonly Entry<AnthropicMessage>[], view: View): AnthropicMessage[] {
  const plan = planView(entries, view, anthropic, MANNER);
  const turns = new MergedRoles<AnthropicMessage>();
  const callers = new Set<string>();
  const resultsAt = atOnce((at) => resultBlocks(entries[at]!.message));
  let held: AnthropicMessage[] = [];
  const release = (): void => {
    if (held.length === 0 || turns.last !== "user") return;
    for (const message of held) {
      const blocks = spoken(message);
      turns.add("system", blocks, wholeOf(message, blocks), without(message as never, "content"));
    }
    held = [];
  };
  const { exchanges } = plan;
  for (let exchange = 0; exchange < exchanges.length; exchange++) {
    const { assistant, others, calls } = exchanges[exchange]!;
    for (let i = 0; i < assistant.length; i++) {
      const at = assistant[i]!;
      const message = entries[at]!.message;
      const blocks = assistantBlocks(message, at, plan, callers);
      if (turns.last === null && blocks.length > 0) turns.add("user", [{ type: "text", text: BEGINNING }], null);
      if (blocks.length > 0) release();
      turns.add("assistant", blocks, wholeOf(message, blocks));
    }
    for (let i = 0; i < calls.length; i++) {
      const call = calls[i]!;
      if (call.call.by !== "agent" || !call.answer) continue;
      const blocks = [answerBlock(call, resultsAt(call.answer.entry))];
      turns.add("user", blocks, wholeOf(entries[call.answer.entry]!.message, blocks));
    }
    for (let i = 0; i < others.length; i++) {
      const message = entries[others[i]!]!.message;
      const role = roleOf(message);
      const blocks = role === "user" || role === "tool" ? spoken(message) : [];
      if (role === "system") held.push(message);
      else if (blocks.length > 0) turns.add("user", blocks, wholeOf(message, blocks));
    }
  }
  // While results are pending, the user's turn is not over.
  if (exchanges.at(-1)!.calls.every(({ answer }) => answer !== null)) release();
  const make = (role: string, blocks: readonly Shape[], rest: Shape): AnthropicMessage => {
    const content = role === "assistant" ? callsLast(blocks) : blocks;
    return { ...rest, role, content } as unknown as AnthropicMessage;
  };
  return withFewMarks(turns.messages(make));
}

function speaks(message: AnthropicMessage): boolean {
  return roleOf(message) !== "other" && spoken(message).length > 0;
}

function spoken(message: AnthropicMessage): readonly Shape[] {
  return mapItems(contentOf(message), (block) => (isResult(block) || isEmpty(block) ? null : block));
}

/**
 * The recorded message, if these blocks are all of its content. The API refuses its other members, such as a response's
 * usage, in a request.
 */
function wholeOf(message: AnthropicMessage, blocks: readonly Shape[]): AnthropicMessage | null {
  const { content, role } = message;
  if (role !== "system") for (const name in message) if (name !== "role" && name !== "content") return null;
  if (typeof content === "string") return blocks.length === 1 ? message : null;
  return sameItems(listOf(content), blocks) ? message : null;
}

function assistantBlocks(message: AnthropicMessage, at: number, plan: Plan, callers: Set<string>): readonly Shape[] {
  let call = 0;
  let result = 0;
  const blocks = mapItems(contentOf(message), (block) => {
    if (isResult(block) || isEmpty(block) || (isReasoning(block) && isSpent(block, plan.stale(at)))) return null;
    if (isProviderResult(block)) {
      const by = plan.answered(at, result++)?.call.by;
      return by === "provider" ? withCaller(block, callers) : null;
    }
    if (!isCall(block)) return block;
    const shown = plan.called(at, call++);
    if (!shown) return null;
    if (shown.call.by === "agent") return withCaller(sentCall(block, shown.id, shown.call.name), callers);
    callers.add(shown.id);
    return withCaller(block, callers);
  });
  return callsLast(withoutReasoningAtEnd(blocks));
}

/** Trims a response that was cut off while reasoning: the API refuses a message that ends with it. */
function withoutReasoningAtEnd(blocks: readonly Shape[]): readonly Shape[] {
  let end = blocks.length;
  while (end > 0 && isReasoning(blocks[end - 1]!)) end -= 1;
  return end === blocks.length ? blocks : blocks.slice(0, end);
}

/** Reasoning that may no longer be sent (R1, R4), or never could be: the API refuses it without its signature (C30). */
function isSpent({ type, signature, data }: Shape, stale: boolean): boolean {
  if (type === "thinking") return stale || textOf(signature) === "";
  return type === "redacted_thinking" && (stale || textOf(data) === "");
}

function sentCall(block: Shape, id: string, called: string): Shape {
  const input = inputObject(block["input"]);
  const name = beginningOf(called, NAME_LENGTH_MAX) || NAMELESS;
  const fits = block["id"] === id && block["name"] === name && block["input"] === input;
  return fits ? block : { ...block, id, name, input };
}

/** A caller that is not shown cannot be referred to. */
function withCaller(block: Shape, callers: ReadonlySet<string>): Shape {
  const caller = callerOf(block);
  return caller && !callers.has(caller) ? without(block, "caller") : block;
}

/**
 * The API expects results right after the calls: text that the assistant added after a call is moved before it, but
 * never across reasoning.
 */
function callsLast(blocks: readonly Shape[]): readonly Shape[] {
  let end = blocks.length;
  while (end > 0 && blocks[end - 1]!["type"] === "tool_use") end -= 1;
  while (end > 0 && blocks[end - 1]!["type"] !== "tool_use") end -= 1;
  if (end === 0) return blocks;
  const out: Shape[] = [];
  const calls: Shape[] = [];
  for (const block of blocks) {
    if (block["type"] === "tool_use") {
      calls.push(block);
    } else {
      if (STAYS.has(textOf(block["type"]))) out.push(...calls.splice(0));
      out.push(block);
    }
  }
  out.push(...calls);
  return sameItems(out, blocks) ? blocks : out;
}

function answerBlock({ answer, id }: ShownCall, results: readonly Shape[]): Shape {
  const found = results[answer!.index]!;
  const block = isResult(found) ? found : { type: "tool_result" };
  const content = resultContent(block);
  if (block["tool_use_id"] === id && block["content"] === content) return block;
  const { content: _, ...rest } = block;
  return { ...rest, tool_use_id: id, ...defined({ content }) };
}

/**
 * Drops empty text, and anything but text from an error. An error never ends up empty; any other result may
 * (undefined).
 */
function resultContent({ content, is_error }: Shape): unknown {
  const nothing = is_error === true ? "failed without a message" : undefined;
  if (typeof content === "string") return isBlank(content) ? nothing : content;
  if (!Array.isArray(content)) return nothing;
  const kept = mapItems(content as readonly unknown[], (item) => {
    const block = shapeOf(item);
    return !block || isEmpty(block) || (is_error === true && block["type"] !== "text") ? null : item;
  });
  return kept.length > 0 ? kept : nothing;
}

/** Keeps the newest marks: marks move along with the conversation, and older ones would exceed the API's limit. */
function withFewMarks(messages: AnthropicMessage[]): AnthropicMessage[] {
  let marks = 0;
  const trimmed = (block: Shape): Shape => {
    const marked = shapeOf(block["cache_control"]) !== null;
    if (marked) marks += 1;
    const bare = marked && marks > CACHE_MARKS_MAX ? without(block, "cache_control") : block;
    const { content } = bare;
    if (!isResult(bare) || !Array.isArray(content)) return bare;
    const inner = fewer(content as readonly Shape[]);
    return inner === content ? bare : { ...bare, content: inner };
  };
  const fewer = (blocks: readonly Shape[]): readonly Shape[] => {
    let out: Shape[] | null = null;
    for (let i = blocks.length - 1; i >= 0; i--) {
      const block = blocks[i]!;
      const kept = block["cache_control"] !== undefined || isResult(block) ? trimmed(block) : block;
      if (kept === block) continue;
      out ??= [...blocks];
      out[i] = kept;
    }
    return out ?? blocks;
  };
  for (let i = messages.length - 1; i >= 0; i--) {
    const { content } = messages[i]!;
    if (typeof content === "string") continue;
    const kept = fewer(content as unknown as readonly Shape[]);
    if (kept !== (content as unknown)) messages[i] = { ...messages[i]!, content: kept as never };
  }
  return messages;
}

/** Without cache marks, whose number depends on what follows, and without the provider's calls. */
export class RegularAnthropic extends RegularOrder<AnthropicMessage> {
  pass(entry: Entry<AnthropicMessage>, out: AnthropicMessage[]): boolean {
    const { message } = entry;
    if (!shapeOf(message) || !hasOnly(message, "role", "content")) return false;
    const { role, content } = message;
    const isAssistants = role === "assistant";
    if (!isAssistants && role !== "user") return false;
    // Neighbours of one role are joined, and the user begins.
    if (isAssistants ? this.last === null || this.last === "assistant" : this.last === "user") return false;
    const isFit =
      typeof content === "string"
        ? this.isSettled && !isBlank(content)
        : Array.isArray(content) &&
          (isAssistants ? this.#passAssistant(entry, content) : this.#passUser(entry, content));
    this.last = isAssistants ? "assistant" : "user";
    if (isFit) out.push(message);
    return isFit;
  }

  #passAssistant(entry: Entry<AnthropicMessage>, blocks: readonly unknown[]): boolean {
    if (!this.isSettled) return false;
    for (let i = 0; i < blocks.length; i++) {
      const block = shapeOf(blocks[i]);
      if (!block || block["cache_control"] !== undefined) return false;
      const { type } = block;
      if (type === "tool_use") {
        const id = textOf(block["id"]);
        const name = textOf(block["name"]);
        if (fit(id) !== id || sentCall(block, id, name) !== block || !this.calls(entry, id, name)) return false;
        if (block["caller"] !== undefined) return false;
        continue;
      }
      // The calls come last.
      if (!this.isSettled) return false;
      if (type === "text" ? isBlank(block["text"]) : !isReasoning(block) || isSpent(block, false)) return false;
      if (type !== "text" && i === blocks.length - 1) return false;
    }
    return blocks.length > 0;
  }

  /** All results in one message, first of all. */
  #passUser(entry: Entry<AnthropicMessage>, blocks: readonly unknown[]): boolean {
    for (let i = 0; i < blocks.length; i++) {
      const block = shapeOf(blocks[i]);
      if (!block || block["cache_control"] !== undefined) return false;
      if (isResult(block)) {
        const { tool_use_id, content } = block;
        const call = this.answers(entry, i);
        if (!call || call.id !== tool_use_id || resultContent(block) !== content) return false;
        if (Array.isArray(content) && shapesOf(content).some((inner) => inner["cache_control"] !== undefined))
          return false;
      } else if (!this.isSettled || isEmpty(block)) return false;
    }
    return this.isSettled && blocks.length > 0;
  }
}
