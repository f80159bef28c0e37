import { beginningOf } from "../text/well-formed.ts";
import type { Dialect, Entry, SdkPart, View } from "./dialect.ts";
import { markedText, phrase } from "./order/phrase.ts";
import { ID_LENGTH_MAX, openaiName, type Plan, planView, type ShownCall } from "./order/plan.ts";
import { RegularOrder } from "./order/regular.ts";
import { equalButForNulls, stripMarks } from "./order/sameness.ts";
import { openaiChatReading, ROLES, roleOf } from "./parts/openai-chat.ts";
import {
  inputText,
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

/** `ChatCompletionMessageParam` of openai. Also accepts what compatible servers send, with fields of their own. */
export type OpenAIChatMessage =
  | { role: "system" | "developer" | "user"; content: string | SdkPart[]; [field: string]: SdkPart }
  | { role: "assistant"; content?: string | SdkPart[] | null; tool_calls?: SdkPart[]; [field: string]: SdkPart }
  | { role: "tool"; tool_call_id: string; content: string | SdkPart[]; [field: string]: SdkPart }
  | { role: "function"; name: string; content: string | null; [field: string]: SdkPart };

/** Parts that show that a message was made for another API. */
const FOREIGN = new Set(["tool_use", "tool_result", "tool-call", "tool-result", "input_text", "output_text"]);

/** "Invalid 'messages[9].tool_calls[0].function.name'": the names of earlier calls are validated like tool names. */
const NAME_LENGTH_MAX = 64;

const fit = (id: string): string => beginningOf(id, ID_LENGTH_MAX);
const MANNER = { speaks, needsIds: true, fit, idsUniqueIn: "conversation", together: () => false } as const;

export const openaiChat: Dialect<OpenAIChatMessage> = {
  name: "openai-chat",
  check,
  ...openaiChatReading,
  result: ({ id }, outcome) =>
    ({ role: "tool", tool_call_id: id, content: markedText(phrase(outcome)) }) as OpenAIChatMessage,
  incomplete: (text) => (isBlank(text) ? null : { role: "assistant", content: text }),
  boundary: (text) => ({ role: "user", content: text }),
  same: (a, b) => a === b || equalButForNulls(bareOf(a), bareOf(b)),
  arrange,
};

function check(message: unknown): string | null {
  const shape = shapeOf(message);
  if (!shape) return "a message must be an object with a role and content";
  const { role, content } = shape;
  if (!ROLES.has(role)) return `role is ${quote(role)}`;
  if (typeof content === "string") return null;
  if (content === null || content === undefined) {
    if (role === "assistant") return null;
    return "content is missing";
  }
  if (!Array.isArray(content)) return "content is neither a string nor a list of parts";
  for (const [index, part] of content.entries()) {
    const type = shapeOf(part)?.["type"];
    if (typeof type !== "string") return `content[${index}] is not a part with a type`;
    if (FOREIGN.has(type)) return `content[${index}] is of the type "${type}", which belongs to another dialect`;
  }
  return null;
}

/**
 * Members that are not compared: cache marks, for servers that pass them on to a provider; extra members of a response;
 * and what the SDK has parsed.
 */
const BESIDES = ["cache_control", "annotations", "logprobs", "parsed"];

function withoutMarks(part: Shape): Shape {
  return BESIDES.some((name) => name in part) ? without(part, ...BESIDES) : part;
}

/** The part of a message that is sent, without marks: the SDK's own runner adds and drops the rest. */
function bareOf(message: unknown): unknown {
  const bare = shapeOf(stripMarks(message, withoutMarks));
  if (!bare) return message;
  const { tool_calls, content, audio, ...rest } = bare;
  const calls = shapesOf(tool_calls);
  const isSilent = shapeOf(message)?.["content"] === "" || listOf(content).length === 0;
  return {
    ...rest,
    ...(isSilent ? {} : { content }),
    ...(shapeOf(audio) ? { audio: shapeOf(audio)!["id"] } : {}),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(withoutParsed) }),
  };
}

function withoutParsed(call: Shape): Shape {
  const target = shapeOf(call["function"]);
  return target && "parsed_arguments" in target ? { ...call, function: without(target, "parsed_arguments") } : call;
}

/** After each message with calls, before anything else, a tool message for each call, in call order. */
function arrange(entries: readonly Entry<OpenAIChatMessage>[], view: View): OpenAIChatMessage[] {
  const plan = planView(entries, view, openaiChat, MANNER);
  const out: OpenAIChatMessage[] = [];
  for (const { assistant, others, calls } of plan.exchanges) {
    const answers = Map.groupBy(calls, ({ entry }) => entry);
    for (const at of assistant) {
      const message = sentAssistant(entries[at]!.message, at, plan);
      if (message) out.push(message);
      const answered = answers.get(at);
      if (!answered) continue;
      const isLegacy = shapesOf(shapeOf(entries[at]!.message)?.["tool_calls"]).length === 0;
      for (const call of answered) if (call.answer) out.push(sentAnswer(entries, isLegacy, call));
    }
    for (const at of others) {
      const message = sentOther(entries[at]!.message);
      if (message) out.push(message);
    }
  }
  return out;
}

function speaks(message: OpenAIChatMessage): boolean {
  return sentOther(message) !== null;
}

/** Null if it is empty. */
function sentOther(message: OpenAIChatMessage): OpenAIChatMessage | null {
  const role = roleOf(message);
  if (role !== "user" && role !== "system") return null;
  const content = fillContent(message.content);
  return content === null
    ? null
    : content === message.content
      ? message
      : ({ ...message, content } as OpenAIChatMessage);
}

/** Content without empty text; null if nothing is left. */
function fillContent(content: unknown): string | readonly SdkPart[] | null {
  if (typeof content === "string") return isBlank(content) ? null : content;
  if (!Array.isArray(content)) return null;
  const parts = mapItems(content as readonly SdkPart[], (part) => {
    const shape = shapeOf(part);
    return !shape || (shape["type"] === "text" && isBlank(shape["text"])) ? null : part;
  });
  return parts.length > 0 ? parts : null;
}

function sentAssistant(message: OpenAIChatMessage, at: number, plan: Plan): OpenAIChatMessage | null {
  const recorded = message as unknown as Shape;
  let sent: Shape = withSignedReasoning(recorded, plan.stale(at));
  const calls = recorded["tool_calls"];
  if (calls !== undefined) {
    // A step with a call that is left out is left out itself.
    const shown = mapItems(shapesOf(calls), (call, index) => sentCall(call, plan.called(at, index)!.id));
    // The API refuses an empty list.
    if (shown.length === 0) sent = without(sent, "tool_calls");
    else if (!sameItems(listOf(calls), shown)) sent = { ...sent, tool_calls: shown };
  }
  const legacy = shapeOf(recorded["function_call"]);
  if (legacy && sent["tool_calls"] !== undefined) {
    sent = without(sent, "function_call");
  } else if (legacy) {
    const text = inputText(legacy["arguments"]);
    const name = openaiName(legacy["name"], NAME_LENGTH_MAX);
    const fits = text === legacy["arguments"] && name === legacy["name"];
    if (!fits) sent = { ...sent, function_call: { ...legacy, name, arguments: text } };
  }
  const content = fillContent(recorded["content"]);
  const isCalling = sent["tool_calls"] !== undefined || shapeOf(sent["function_call"]) !== null;
  if (!isCalling && content === null && isBlank(sent["refusal"]) && !shapeOf(sent["audio"])) return null;
  // Beside calls, a refusal or audio, null and an empty string are valid; an empty list is not.
  if (content !== recorded["content"] && Array.isArray(recorded["content"])) sent = { ...sent, content };
  return sent === recorded ? message : (sent as unknown as OpenAIChatMessage);
}

/** Servers that pass reasoning through add a list of details, some of them signed or encrypted (R1, R4). */
function withSignedReasoning(message: Shape, stale: boolean): Shape {
  const details = message["reasoning_details"];
  if (!stale || !Array.isArray(details)) return message;
  const kept = shapesOf(details).filter(({ signature, data }) => textOf(signature) === "" && textOf(data) === "");
  if (kept.length === details.length) return message;
  return kept.length > 0 ? { ...message, reasoning_details: kept } : without(message, "reasoning_details");
}

/** Arguments are the JSON text of an object, even if the stream was cut off (C30). */
function sentCall(call: Shape, id: string): Shape {
  const renamed = call["id"] === id ? call : { ...call, id };
  const kind = shapeOf(call["custom"]) ? "custom" : "function";
  const target = shapeOf(call[kind]);
  if (!target) return renamed;
  const name = openaiName(target["name"], NAME_LENGTH_MAX);
  const named = name === target["name"] ? target : { ...target, name };
  const text = kind === "custom" ? target["arguments"] : inputText(target["arguments"]);
  const filled = text === target["arguments"] ? named : { ...named, arguments: text };
  return filled === target ? renamed : { ...renamed, [kind]: filled };
}

function sentAnswer(
  entries: readonly Entry<OpenAIChatMessage>[],
  isLegacy: boolean,
  shown: ShownCall,
): OpenAIChatMessage {
  const { message } = entries[shown.answer!.entry]!;
  const recorded = message as unknown as Shape;
  const content = fillContent(recorded["content"]) ?? "";
  const role = isLegacy ? "function" : "tool";
  const name = openaiName(shown.call.name, NAME_LENGTH_MAX);
  const fits = isLegacy ? recorded["name"] === name : recorded["tool_call_id"] === shown.id;
  if (recorded["role"] === role && fits && (content === recorded["content"] || recorded["content"] === ""))
    return message;
  const key = isLegacy ? { name } : { tool_call_id: shown.id };
  return { ...without(recorded, "tool_call_id", "name"), role, ...key, content } as unknown as OpenAIChatMessage;
}

export class RegularOpenAIChat extends RegularOrder<OpenAIChatMessage> {
  pass(entry: Entry<OpenAIChatMessage>, out: OpenAIChatMessage[]): boolean {
    const { message } = entry;
    const role = roleOf(message);
    const isFit =
      role === "tool"
        ? this.#passAnswer(entry)
        : role === "assistant"
          ? this.isSettled && this.#passAssistant(entry)
          : role !== "other" && this.isSettled && sentOther(message) === message;
    if (isFit) out.push(message);
    return isFit;
  }

  #passAssistant(entry: Entry<OpenAIChatMessage>): boolean {
    const { content, tool_calls, function_call } = entry.message as unknown as Shape;
    if (shapeOf(function_call)) return false;
    if (tool_calls === undefined || Array.isArray(content)) {
      const filled = fillContent(content);
      if (filled === null || filled !== content) return false;
    }
    if (tool_calls === undefined) return true;
    if (!Array.isArray(tool_calls)) return false;
    for (let i = 0; i < tool_calls.length; i++) {
      const call = shapeOf(tool_calls[i]);
      const id = textOf(call?.["id"]);
      if (!call || fit(id) !== id || sentCall(call, id) !== call || !this.calls(entry, id, "")) return false;
    }
    return tool_calls.length > 0;
  }

  #passAnswer(entry: Entry<OpenAIChatMessage>): boolean {
    const { role, tool_call_id, content } = entry.message as unknown as Shape;
    const call = role === "tool" ? this.answers(entry, 0) : null;
    return call !== null && call.id === tool_call_id && (fillContent(content) ?? "") === content;
  }
}
