import { isJsonObject, isToolName } from "./arguments.ts";
import { checkUnicode } from "./unicode.ts";
import { type Add, isNonEmpty, isObject, type Json, judge, listOf, rowOf, type Violation } from "./violation.ts";

type Rule = "openai-chat-1" | "openai-chat-2" | "openai-chat-shape" | "openai-chat-unicode";

/** Chat Completions, `POST /v1/chat/completions`. Numbers as in the project's list of provider rules. */
export const openaiChatRules: Record<Rule, string> = {
  "openai-chat-1":
    "an assistant message with tool_calls is followed by a tool message for each id, before anything else",
  "openai-chat-2":
    "a tool message answers an open call of the assistant message before it; arguments are a JSON string",
  "openai-chat-shape": "roles, content, ids and names are those of the API",
  "openai-chat-unicode": "well-formed Unicode without NUL, in texts and in names of members",
};

export interface OpenaiChatOptions {
  /** `string` accepts arguments that are not JSON, as OpenAI itself does; many compatible servers parse them. */
  readonly arguments?: "json" | "string";
}

/** Reported by the API: "string too long. Expected a string with maximum length 64"; 40 for older models. */
const CALL_ID_MAX = 64;

/** The API checks the names of earlier calls like those of tools: a name that a model made up is rejected. */
const NAME_MAX = 64;

const PARTS: Record<string, readonly string[]> = {
  system: ["text"],
  developer: ["text"],
  user: ["text", "image_url", "input_audio", "file"],
  assistant: ["text", "refusal"],
  tool: ["text"],
};

/** Checks the messages of a request. `request` is the body, or just its list of messages. */
export function validateOpenaiChat(request: unknown, options: OpenaiChatOptions = {}): Violation[] {
  return judge<Rule>((add) => {
    const messages = listOf(request, "messages");
    if (messages === undefined || messages.length === 0) {
      add("openai-chat-shape", "messages", "expected an array with minimum length 1");
      return;
    }
    checkUnicode(request, "openai-chat-unicode", add);
    /** Calls of the last assistant message, and whether each was answered. */
    let calls = new Map<unknown, { at: string; answered: boolean }>();
    const leave = () => {
      for (const [id, { at, answered }] of calls) {
        if (!answered) add("openai-chat-1", at, `tool_call_id ${id} did not have a response message`);
      }
      calls = new Map();
    };
    for (const [i, message] of messages.entries()) {
      const at = `messages.${i}`;
      if (!isObject(message)) {
        add("openai-chat-shape", at, "a message is an object");
        leave();
        continue;
      }
      checkContent(message, at, add);
      if (message["role"] === "tool") {
        const call = calls.get(message["tool_call_id"]);
        if (call === undefined) {
          add("openai-chat-2", at, "messages with role tool must be a response to a preceding message with tool_calls");
        } else if (call.answered) add("openai-chat-2", at, `${message["tool_call_id"]} has more than one response`);
        else call.answered = true;
        continue;
      }
      leave();
      if (message["role"] === "assistant") calls = callsOf(message, at, options, add);
    }
    leave();
  });
}

function callsOf(
  message: Json,
  at: string,
  options: OpenaiChatOptions,
  add: Add<Rule>,
): Map<unknown, { at: string; answered: boolean }> {
  const found = new Map<unknown, { at: string; answered: boolean }>();
  const list = message["tool_calls"];
  if (list === undefined || list === null) return found;
  if (!Array.isArray(list) || list.length === 0) {
    add("openai-chat-shape", `${at}.tool_calls`, "expected an array with minimum length 1");
    return found;
  }
  for (const [j, call] of list.entries()) {
    const place = `${at}.tool_calls.${j}`;
    if (!isObject(call)) {
      add("openai-chat-shape", place, "a tool call is an object");
      continue;
    }
    const id = call["id"];
    if (!isNonEmpty(id)) add("openai-chat-shape", `${place}.id`, "missing required parameter");
    else if (id.length > CALL_ID_MAX) add("openai-chat-shape", `${place}.id`, `longer than ${CALL_ID_MAX} characters`);
    if (found.has(id)) add("openai-chat-shape", `${place}.id`, `${id} is used twice in one message`);
    found.set(id, { at: place, answered: false });
    checkCall(call, place, options, add);
  }
  return found;
}

function checkCall(call: Json, at: string, options: OpenaiChatOptions, add: Add<Rule>): void {
  const custom = call["type"] === "custom";
  if (!custom && call["type"] !== "function") {
    add("openai-chat-shape", `${at}.type`, "a tool call is of type function or custom");
    return;
  }
  const part = custom ? call["custom"] : call["function"];
  if (!isObject(part) || !isToolName(part["name"], NAME_MAX)) {
    add("openai-chat-shape", at, `a name matches ^[a-zA-Z0-9_-]+$, and has at most ${NAME_MAX} characters`);
    return;
  }
  if (custom) {
    if (typeof part["input"] !== "string") add("openai-chat-shape", `${at}.custom.input`, "input is a string");
  } else if (typeof part["arguments"] !== "string") {
    add("openai-chat-2", `${at}.function.arguments`, "arguments are a string, not a value");
  } else if (options.arguments !== "string" && !isJsonObject(part["arguments"])) {
    add("openai-chat-2", `${at}.function.arguments`, "arguments are not the JSON of an object");
  }
}

function checkContent(message: Json, at: string, add: Add<Rule>): void {
  const role = String(message["role"]);
  const allowed = rowOf(PARTS, role);
  if (allowed === undefined) {
    add("openai-chat-shape", `${at}.role`, `${JSON.stringify(message["role"])} is not one of ${Object.keys(PARTS)}`);
    return;
  }
  if (role === "tool" && !isNonEmpty(message["tool_call_id"])) {
    add("openai-chat-shape", `${at}.tool_call_id`, "missing required parameter");
  }
  if (role !== "assistant" && message["tool_calls"] !== undefined) {
    add("openai-chat-shape", `${at}.tool_calls`, "only an assistant message has tool_calls");
  }
  const content = message["content"];
  if (content === undefined || content === null) {
    const spared = ["tool_calls", "refusal", "audio", "function_call"].some((key) => message[key] != null);
    if (role !== "assistant" || !spared) {
      add("openai-chat-shape", `${at}.content`, "expected a string, got null: allowed only beside tool_calls");
    }
  } else if (Array.isArray(content)) {
    if (content.length === 0) add("openai-chat-shape", `${at}.content`, "expected an array with minimum length 1");
    for (const [j, part] of content.entries()) {
      const type = isObject(part) ? part["type"] : undefined;
      if (!allowed.includes(String(type))) {
        add("openai-chat-shape", `${at}.content.${j}`, `a ${role} message has no part of type ${JSON.stringify(type)}`);
      } else if (type === "text" && isObject(part) && typeof part["text"] !== "string") {
        add("openai-chat-shape", `${at}.content.${j}.text`, "text is a string");
      }
    }
  } else if (typeof content !== "string") {
    add("openai-chat-shape", `${at}.content`, "content is a string or a list of parts");
  }
}
