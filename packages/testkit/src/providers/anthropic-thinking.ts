import { type AnthropicRule, isThinking, type PlacedMessage } from "./anthropic-blocks.ts";
import { canonical, digest } from "./canonical.ts";
import { type Add, isNonEmpty, isObject, type Json } from "./violation.ts";

/** What comes before all messages and is covered by a signature too. */
export interface AnthropicFrame {
  readonly system?: unknown;
  readonly tools?: unknown;
}

/**
 * The signature that a model with preserved thinking would give to `text` after this prefix.
 *
 * It covers system, tools and every block before the thinking block, except cache marks. Earlier thinking blocks are
 * not part of it, but the one directly before is named: leading thinking blocks may be left out of a request, one in
 * the middle may not (platform.claude.com, "Preserved thinking").
 *
 * @param prefixMessages the messages before the block. If blocks of the same message come before it, the last message
 * of the prefix holds those.
 */
export function signThinking(prefixMessages: readonly unknown[], text: string, frame: AnthropicFrame = {}): string {
  return sign("sig", prefixMessages, text, frame);
}

/** The `data` of a redacted thinking block after this prefix. */
export function signRedacted(prefixMessages: readonly unknown[], frame: AnthropicFrame = {}): string {
  return sign("red", prefixMessages, "", frame);
}

/** A response's content with every thinking block signed, as if the model had answered `request` with it. */
export function signResponse(
  request: AnthropicFrame & { readonly messages: readonly unknown[] },
  content: readonly Json[],
): Json[] {
  const signed: Json[] = [];
  for (const block of content) {
    const prefix =
      signed.length === 0 ? request.messages : [...request.messages, { role: "assistant", content: signed }];
    if (block["type"] === "thinking") {
      signed.push({ ...block, signature: signThinking(prefix, String(block["thinking"]), request) });
    } else if (block["type"] === "redacted_thinking") {
      signed.push({ ...block, data: signRedacted(prefix, request) });
    } else signed.push(block);
  }
  return signed;
}

function sign(kind: string, prefix: readonly unknown[], text: string, frame: AnthropicFrame): string {
  const before = lastMark(prefix);
  return `${kind}.${binding(prefix, text, frame)}.${before === undefined ? "first" : digest(before)}`;
}

function binding(prefix: readonly unknown[], text: string, frame: AnthropicFrame): string {
  const system = typeof frame.system === "string" ? [{ type: "text", text: frame.system }] : frame.system;
  return digest({
    system: Array.isArray(system) ? system.map(withoutMark) : null,
    tools: Array.isArray(frame.tools) ? frame.tools.map(withoutMark) : null,
    messages: prefix.map(stripped).filter((message) => message !== undefined),
    text,
  });
}

/** A message without thinking and cache marks; a string is shorthand for one text block. */
function stripped(message: unknown): unknown {
  if (!isObject(message)) return message;
  const content = message["content"];
  if (typeof content === "string") return { ...message, content: [{ type: "text", text: content }] };
  if (!Array.isArray(content)) return message;
  const kept = content.filter((block) => !(isObject(block) && isThinking(String(block["type"]))));
  return kept.length === 0 ? undefined : { ...message, content: kept.map(withoutMark) };
}

function withoutMark(block: unknown): unknown {
  if (!isObject(block)) return block;
  const { cache_control: _, ...rest } = block;
  if (rest["type"] === "tool_result" && Array.isArray(rest["content"])) {
    return { ...rest, content: rest["content"].map(withoutMark) };
  }
  return rest;
}

function lastMark(prefix: readonly unknown[]): unknown {
  const marks = prefix.flatMap((message) => thinkingOf(isObject(message) ? message["content"] : undefined).map(markOf));
  return marks.at(-1);
}

function thinkingOf(content: unknown): Json[] {
  if (!Array.isArray(content)) return [];
  return content.filter((block): block is Json => isObject(block) && isThinking(String(block["type"])));
}

function markOf(block: Json): unknown {
  return block["type"] === "thinking" ? block["signature"] : block["data"];
}

/** Rule 7: every thinking block has its signature, and the signature matches what comes before it. */
export function checkThinking(
  request: { readonly messages: readonly unknown[] } & AnthropicFrame,
  placed: readonly PlacedMessage[],
  signatures: "bound" | "present",
  add: Add<AnthropicRule>,
): void {
  for (const [i, { role, blocks }] of placed.entries()) {
    const last = blocks.at(-1);
    if (role === "assistant" && last && isThinking(last.type)) {
      add("anthropic-7", last.at, "the final block in an assistant message cannot be thinking");
    }
    for (const [j, { at, type, block }] of blocks.entries()) {
      if (!isThinking(type) || role !== "assistant") continue;
      const mark = markOf(block);
      if (!isNonEmpty(mark)) {
        add("anthropic-7", at, `${type}.${type === "thinking" ? "signature" : "data"}: field required`);
        continue;
      }
      if (type === "thinking" && typeof block["thinking"] !== "string") {
        add("anthropic-7", at, "thinking.thinking: field required");
        continue;
      }
      if (signatures === "present") continue;
      const prefix = prefixOf(request.messages, i, j);
      const text = type === "thinking" ? String(block["thinking"]) : "";
      const [kind, bound, before] = mark.split(".");
      if (kind !== (type === "thinking" ? "sig" : "red") || bound !== binding(prefix, text, request)) {
        add("anthropic-7", at, "the block was changed, or is bound to a different conversation");
        continue;
      }
      const earlier = lastMark(prefix);
      if (earlier !== undefined && before !== digest(earlier)) {
        add("anthropic-7", at, "the thinking block before it is not the one that stood there");
      }
    }
  }
}

function prefixOf(messages: readonly unknown[], i: number, j: number): unknown[] {
  const message = messages[i];
  const before = messages.slice(0, i);
  if (j === 0 || !isObject(message) || !Array.isArray(message["content"])) return before;
  return [...before, { role: message["role"], content: message["content"].slice(0, j) }];
}

/** The assistant's messages of a running tool loop: everything since the last user message without results. */
function openLoop(placed: readonly PlacedMessage[]): PlacedMessage[] {
  const last = placed.at(-1);
  if (last?.role !== "user" || !last.blocks.some(({ type }) => type === "tool_result")) return [];
  const start = placed.findLastIndex(
    ({ role, blocks }) => role === "user" && !blocks.some(({ type }) => type === "tool_result"),
  );
  return placed.slice(start + 1).filter(({ role }) => role === "assistant");
}

/** Rule 7, manual mode of older models: "a final assistant message must start with a thinking block". */
export function checkThinkingFirst(placed: readonly PlacedMessage[], add: Add<AnthropicRule>): void {
  const first = openLoop(placed)[0];
  const block = first?.blocks[0];
  if (block !== undefined && !isThinking(block.type)) {
    add("anthropic-7", block.at, `expected thinking or redacted_thinking, but found ${block.type}`);
  }
}

/** Rule 7: in a running tool loop, the thinking of each response goes back complete and in order. */
export function checkEchoed(
  placed: readonly PlacedMessage[],
  responses: readonly (readonly unknown[])[],
  add: Add<AnthropicRule>,
): void {
  for (const { at, blocks } of openLoop(placed)) {
    const ids = blocks.filter(({ type }) => type === "tool_use").map(({ block }) => block["id"]);
    const response = responses.find((content) =>
      content.some((block) => isObject(block) && block["type"] === "tool_use" && ids.includes(block["id"])),
    );
    if (response === undefined) continue;
    const sent = blocks.filter(({ type }) => isThinking(type)).map(({ block }) => block);
    if (canonical(sent) !== canonical(thinkingOf(response))) {
      add("anthropic-7", at, "thinking blocks in the latest assistant message cannot be modified or left out");
    }
  }
}
