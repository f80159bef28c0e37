import {
  type AnthropicRule,
  checkBlocks,
  isServerCall,
  isServerResult,
  type PlacedMessage,
  placeMessages,
} from "./anthropic-blocks.ts";
import { checkEchoed, checkThinking, checkThinkingFirst } from "./anthropic-thinking.ts";
import { checkUnicode } from "./unicode.ts";
import { type Add, isObject, judge, listOf, type Violation } from "./violation.ts";

/** Messages API, `POST /v1/messages`. Numbers as in the project's list of provider rules. */
export const anthropicRules: Record<AnthropicRule, string> = {
  "anthropic-1": "every tool_use is answered in the next message, which is the user's",
  "anthropic-2": "in that message the results come first",
  "anthropic-3": "a tool_result answers a tool_use of the message before it, and each is answered once",
  "anthropic-4": "call ids are unique in the conversation",
  "anthropic-5": "text is neither empty nor only white space, and no content is empty",
  "anthropic-6": "the first message is the user's",
  "anthropic-7": "thinking goes back unmodified, with a signature that fits everything before it",
  "anthropic-8": "the conversation ends with a user message",
  "anthropic-9": "a server tool's call has its result before the conversation continues, and is not ours to answer",
  "anthropic-shape": "roles, block types and fields are those of the API",
  "anthropic-unicode": "well-formed Unicode without NUL, in texts and in names of members",
};

export interface AnthropicOptions {
  /** Models before Claude 4.6 continue a final assistant message. */
  readonly prefill?: boolean;
  /** The last response had stop_reason `pause_turn`: it goes back unchanged. */
  readonly paused?: boolean;
  /** `present` for models that do not bind a signature to its prefix, or for signatures that this kit did not make. */
  readonly signatures?: "bound" | "present";
  /** Claude Opus 4.8 and later accept a message of role `system` directly after a user message. */
  readonly systemMessages?: boolean;
  /** The original content of each response: a running tool loop must send its thinking back complete. */
  readonly responses?: readonly (readonly unknown[])[];
}

/**
 * Checks the messages of a request to the Messages API. `request` is the body, or just its list of messages.
 *
 * Stricter than the documentation in one point: it says that adjacent messages of one role are combined, but this
 * rejects results spread over two user messages, and a call whose result comes after a second assistant message.
 */
export function validateAnthropic(request: unknown, options: AnthropicOptions = {}): Violation[] {
  return judge<AnthropicRule>((add) => {
    const messages = listOf(request, "messages");
    if (messages === undefined || messages.length === 0) {
      add("anthropic-shape", "messages", "at least one message is required");
      return;
    }
    const body = isObject(request) ? request : {};
    const placed = placeMessages(messages);
    checkUnicode(request, "anthropic-unicode", add);
    checkBlocks(messages, placed, options.systemMessages === true, add);
    checkEnds(placed, options, add);
    checkCalls(placed, add);
    checkServerCalls(placed, add);
    const frame = { system: body["system"], tools: body["tools"] };
    checkThinking({ ...frame, messages }, placed, options.signatures ?? "bound", add);
    const thinking = body["thinking"];
    if (isObject(thinking) && thinking["type"] === "enabled") checkThinkingFirst(placed, add);
    if (options.responses) checkEchoed(placed, options.responses, add);
  });
}

function checkEnds(placed: readonly PlacedMessage[], options: AnthropicOptions, add: Add<AnthropicRule>): void {
  const first = placed[0];
  if (first && first.role !== "user") add("anthropic-6", first.at, "first message must use the user role");
  for (const [i, { at, role }] of placed.entries()) {
    if (role === "system" && placed[i - 1]?.role !== "user") {
      add("anthropic-shape", at, "a system message must come directly after a user message");
    }
  }
  const last = placed.at(-1);
  if (last?.role !== "assistant") return;
  const waits = openServerCalls(last).length > 0;
  if (!options.prefill && !options.paused && !waits) {
    add("anthropic-8", last.at, "this model does not support prefill: the conversation must end with a user message");
  }
  const block = last.blocks.at(-1);
  if (options.prefill && block?.type === "text" && /\s$/.test(String(block.block["text"]))) {
    add("anthropic-5", block.at, "final assistant content cannot end with trailing whitespace");
  }
}

function checkCalls(placed: readonly PlacedMessage[], add: Add<AnthropicRule>): void {
  const seen = new Set<unknown>();
  const servers = new Set<unknown>();
  for (const [i, { role, blocks }] of placed.entries()) {
    if (role === "assistant") {
      const next = placed[i + 1];
      const answered = next?.role === "user" ? callsAnsweredBy(next) : [];
      for (const { at, type, block } of blocks) {
        if (type !== "tool_use" && !isServerCall(type)) continue;
        if (seen.has(block["id"])) add("anthropic-4", at, `id ${block["id"]} was used before`);
        seen.add(block["id"]);
        if (isServerCall(type)) servers.add(block["id"]);
        if (type === "tool_use" && !answered.includes(block["id"])) {
          add("anthropic-1", at, `${block["id"]} has no tool_result immediately after`);
        }
      }
    } else if (role === "user") checkResults(placed[i - 1], blocks, servers, add);
  }
}

function callsAnsweredBy({ blocks }: PlacedMessage): unknown[] {
  return blocks.filter(({ type }) => type === "tool_result").map(({ block }) => block["tool_use_id"]);
}

function checkResults(
  before: PlacedMessage | undefined,
  blocks: PlacedMessage["blocks"],
  servers: ReadonlySet<unknown>,
  add: Add<AnthropicRule>,
): void {
  const calls = new Set<unknown>();
  if (before?.role === "assistant") {
    for (const { type, block } of before.blocks) if (type === "tool_use") calls.add(block["id"]);
  }
  const answered = new Set<unknown>();
  let other = false;
  for (const { at, type, block } of blocks) {
    if (type !== "tool_result") {
      other = true;
      continue;
    }
    const id = block["tool_use_id"];
    if (other) add("anthropic-2", at, "a tool_result comes after other content of its message");
    if (servers.has(id)) add("anthropic-9", at, `${id} is a server tool's call: not ours to answer`);
    else if (!calls.has(id)) add("anthropic-3", at, `unexpected tool_use_id ${id}: no such call in the message before`);
    else if (answered.has(id)) add("anthropic-3", at, `${id} has more than one result`);
    answered.add(id);
  }
}

/** The type of the block that holds a server tool's result. */
function resultTypeOf(type: string, name: unknown): string {
  if (type === "mcp_tool_use") return "mcp_tool_result";
  return String(name).startsWith("tool_search_tool_") ? "tool_search_tool_result" : `${name}_tool_result`;
}

function openServerCalls({ blocks }: PlacedMessage): unknown[] {
  const answered = blocks.filter(({ type }) => isServerResult(type)).map(({ block }) => block["tool_use_id"]);
  const calls = blocks.filter(({ type }) => isServerCall(type)).map(({ block }) => block["id"]);
  return calls.filter((id) => !answered.includes(id));
}

function checkServerCalls(placed: readonly PlacedMessage[], add: Add<AnthropicRule>): void {
  const open = new Map<unknown, { at: string; i: number; result: string }>();
  for (const [i, { role, blocks }] of placed.entries()) {
    if (role !== "assistant") continue;
    for (const { at, type, block } of blocks) {
      if (isServerCall(type)) open.set(block["id"], { at, i, result: resultTypeOf(type, block["name"]) });
      else if (isServerResult(type)) {
        const call = open.get(block["tool_use_id"]);
        if (call === undefined)
          add("anthropic-9", at, `no open server call ${block["tool_use_id"]} before this result`);
        else if (call.result !== type) add("anthropic-9", at, `the call before needs a ${call.result}, found ${type}`);
        open.delete(block["tool_use_id"]);
      }
    }
  }
  const last = placed.findLastIndex(({ role }) => role === "assistant");
  for (const [id, { at, i, result }] of open) {
    // A paused turn ends with its open call; a turn that waits for our tools continues with their results.
    const resumes = i === last && (last === placed.length - 1 || hasClientCall(placed[last]));
    if (!resumes) add("anthropic-9", at, `${id} was found without a corresponding ${result} block`);
  }
}

function hasClientCall(message: PlacedMessage | undefined): boolean {
  return message?.blocks.some(({ type }) => type === "tool_use") === true;
}
