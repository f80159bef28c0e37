import { type Add, isNonEmpty, isObject, type Json, rowOf, unknownKeys } from "./violation.ts";

export type AnthropicRule =
  | "anthropic-1"
  | "anthropic-2"
  | "anthropic-3"
  | "anthropic-4"
  | "anthropic-5"
  | "anthropic-6"
  | "anthropic-7"
  | "anthropic-8"
  | "anthropic-9"
  | "anthropic-shape"
  | "anthropic-unicode";

/** A block and its path; `block` is an empty object if the request has something else there. */
export interface PlacedBlock {
  readonly at: string;
  readonly type: string;
  readonly block: Json;
}

export interface PlacedMessage {
  readonly at: string;
  readonly role: string;
  readonly blocks: readonly PlacedBlock[];
}

const USER_BLOCKS = ["text", "image", "document", "search_result", "tool_result", "container_upload"];
const ASSISTANT_BLOCKS = ["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"];
const RESULT_BLOCKS = ["text", "image", "document", "search_result", "tool_reference"];
const IMAGE_TYPES = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/** For anything else in these blocks, the API answers "extra inputs are not permitted". */
const KEYS: Record<string, readonly string[]> = {
  text: ["type", "text", "cache_control", "citations"],
  image: ["type", "source", "cache_control", "transformations"],
  thinking: ["type", "thinking", "signature"],
  redacted_thinking: ["type", "data"],
  tool_use: ["type", "id", "name", "input", "cache_control", "caller", "toolset_name"],
  tool_result: ["type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"],
};

/** Reported by the API for calls that were sent back: models have put a whole command into the name. */
const NAME_MAX = 200;

/** The documentation allows four cache marks per request; those of system and tools are not counted here. */
const CACHE_MARKS_MAX = 4;

export function isThinking(type: string): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

/**
 * Results of server tools are in the assistant's content: `web_search_tool_result`, `mcp_tool_result`, not
 * `tool_result`.
 */
export function isServerResult(type: string): boolean {
  return type.endsWith("_tool_result");
}

export function isServerCall(type: string): boolean {
  return type === "server_tool_use" || type === "mcp_tool_use";
}

/** Blocks with their paths. A string counts as one text block, as documented. */
export function placeMessages(messages: readonly unknown[]): PlacedMessage[] {
  return messages.map((message, i) => {
    const at = `messages.${i}`;
    if (!isObject(message)) return { at, role: "", blocks: [] };
    const role = typeof message["role"] === "string" ? message["role"] : "";
    const content = message["content"];
    if (typeof content === "string") {
      const block = { type: "text", text: content };
      return { at, role, blocks: content === "" ? [] : [{ at: `${at}.content`, type: "text", block }] };
    }
    const list = Array.isArray(content) ? content : [];
    return { at, role, blocks: list.map((block, j) => placeBlock(block, `${at}.content.${j}`)) };
  });
}

function placeBlock(value: unknown, at: string): PlacedBlock {
  const block = isObject(value) ? value : {};
  const type = block["type"];
  return { at, type: typeof type === "string" ? type : "", block };
}

/** Rule 5, and the format of every message and block. */
export function checkBlocks(
  messages: readonly unknown[],
  placed: readonly PlacedMessage[],
  systemMessages: boolean,
  add: Add<AnthropicRule>,
): void {
  for (const [i, { at, role, blocks }] of placed.entries()) {
    const message = messages[i];
    if (!isObject(message)) {
      add("anthropic-shape", at, "a message is an object");
      continue;
    }
    for (const key of unknownKeys(message, ["role", "content"])) {
      add("anthropic-shape", `${at}.${key}`, "extra inputs are not permitted");
    }
    const known = role === "user" || role === "assistant" || (role === "system" && systemMessages);
    if (!known)
      add("anthropic-shape", `${at}.role`, `role ${JSON.stringify(message["role"])} is not user or assistant`);
    const content = message["content"];
    if (typeof content !== "string" && !Array.isArray(content)) {
      add("anthropic-shape", `${at}.content`, "content is a string or a list of blocks");
    } else if (content.length === 0) {
      add("anthropic-5", `${at}.content`, "all messages must have non-empty content");
    }
    for (const block of blocks) if (known) checkBlock(block, role, add);
  }
  const marks = placed.flatMap((message) => message.blocks.flatMap(markedBlocks));
  if (marks.length > CACHE_MARKS_MAX) {
    add(
      "anthropic-shape",
      marks[CACHE_MARKS_MAX] ?? "messages",
      `more than ${CACHE_MARKS_MAX} blocks with cache_control`,
    );
  }
}

function markedBlocks({ at, block }: PlacedBlock): string[] {
  const inner = Array.isArray(block["content"]) ? block["content"] : [];
  const marked = inner.flatMap((value, k) => (isObject(value) && value["cache_control"] ? [`${at}.content.${k}`] : []));
  return block["cache_control"] ? [at, ...marked] : marked;
}

function checkBlock({ at, type, block }: PlacedBlock, role: string, add: Add<AnthropicRule>): void {
  const fits =
    role === "system"
      ? type === "text"
      : role === "user"
        ? USER_BLOCKS.includes(type)
        : ASSISTANT_BLOCKS.includes(type) || isServerResult(type);
  if (!fits) {
    add("anthropic-shape", at, `a block of type ${JSON.stringify(block["type"])} does not belong in a ${role} message`);
    return;
  }
  for (const key of unknownKeys(block, rowOf(KEYS, type) ?? Object.keys(block))) {
    add("anthropic-shape", `${at}.${key}`, "extra inputs are not permitted");
  }
  if (type === "text") checkText(block, at, add);
  else if (type === "image") checkImage(block, at, add);
  else if (type === "tool_use") checkToolUse(block, at, add);
  else if (type === "tool_result") checkToolResult(block, at, add);
  else if (isServerCall(type)) checkServerCall(block, at, add);
  else if (isServerResult(type)) {
    if (!isNonEmpty(block["tool_use_id"])) add("anthropic-shape", `${at}.tool_use_id`, "field required");
    if (block["content"] === undefined) add("anthropic-shape", `${at}.content`, "field required");
  }
}

function checkText(block: Json, at: string, add: Add<AnthropicRule>): void {
  const text = block["text"];
  if (typeof text !== "string") add("anthropic-shape", `${at}.text`, "text is a string");
  else if (text === "") add("anthropic-5", at, "text content blocks must be non-empty");
  else if (text.trim() === "") add("anthropic-5", at, "text content blocks must contain non-whitespace text");
}

function checkImage(block: Json, at: string, add: Add<AnthropicRule>): void {
  const source = block["source"];
  const type = isObject(source) ? source["type"] : undefined;
  if (!isObject(source)) add("anthropic-shape", `${at}.source`, "an image has a source");
  else if (type === "base64") {
    const data = source["data"];
    if (!isNonEmpty(data) || !/^[A-Za-z0-9+/]+={0,2}$/.test(data) || data.length % 4 !== 0) {
      add("anthropic-shape", `${at}.source.data`, "image data is base64");
    }
    if (!IMAGE_TYPES.includes(String(source["media_type"]))) {
      add("anthropic-shape", `${at}.source.media_type`, `media type is not one of ${IMAGE_TYPES.join(", ")}`);
    }
  } else if (type === "url") {
    if (!/^https?:\/\//.test(String(source["url"]))) add("anthropic-shape", `${at}.source.url`, "url is not http(s)");
  } else if (type !== "file" || !isNonEmpty(source["file_id"])) {
    add("anthropic-shape", `${at}.source`, "an image source is base64, url or file");
  }
}

function checkToolUse(block: Json, at: string, add: Add<AnthropicRule>): void {
  if (typeof block["id"] !== "string" || !/^[a-zA-Z0-9_-]+$/.test(block["id"])) {
    add("anthropic-shape", `${at}.id`, "a tool_use id matches ^[a-zA-Z0-9_-]+$");
  }
  if (!isNonEmpty(block["name"])) add("anthropic-shape", `${at}.name`, "field required");
  else if (block["name"].length > NAME_MAX) {
    add("anthropic-shape", `${at}.name`, `string should have at most ${NAME_MAX} characters`);
  }
  if (!isObject(block["input"])) add("anthropic-shape", `${at}.input`, "input is an object");
}

function checkServerCall(block: Json, at: string, add: Add<AnthropicRule>): void {
  const pattern = block["type"] === "server_tool_use" ? /^srvtoolu_[a-zA-Z0-9_]+$/ : /^[a-zA-Z0-9_-]+$/;
  if (typeof block["id"] !== "string" || !pattern.test(block["id"])) {
    add("anthropic-shape", `${at}.id`, `id matches ${pattern.source}`);
  }
  if (!isNonEmpty(block["name"])) add("anthropic-shape", `${at}.name`, "field required");
  if (!isObject(block["input"])) add("anthropic-shape", `${at}.input`, "input is an object");
}

function checkToolResult(block: Json, at: string, add: Add<AnthropicRule>): void {
  if (!isNonEmpty(block["tool_use_id"])) add("anthropic-shape", `${at}.tool_use_id`, "field required");
  const failed = block["is_error"];
  if (failed !== undefined && typeof failed !== "boolean") add("anthropic-shape", `${at}.is_error`, "a boolean");
  const content = block["content"];
  const empty = content === undefined || content === "" || (Array.isArray(content) && content.length === 0);
  if (failed === true && empty) add("anthropic-5", at, "content cannot be empty if is_error is true");
  if (content === undefined || typeof content === "string") return;
  if (!Array.isArray(content)) {
    add("anthropic-shape", `${at}.content`, "the content of a tool_result is a string or a list of blocks");
    return;
  }
  for (const [k, value] of content.entries()) {
    const inner = placeBlock(value, `${at}.content.${k}`);
    if (!RESULT_BLOCKS.includes(inner.type)) {
      add("anthropic-shape", inner.at, `a tool_result has no block of type ${JSON.stringify(inner.block["type"])}`);
    } else if (failed === true && inner.type !== "text") {
      add("anthropic-shape", inner.at, "all content must be type text if is_error is true");
    } else checkBlock(inner, "user", add);
  }
}
