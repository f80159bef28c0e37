import { checkUnicode } from "./unicode.ts";
import { type Add, isNonEmpty, isObject, type Json, judge, rowOf, type Violation } from "./violation.ts";

type Rule = "acp-1" | "acp-2" | "acp-3" | "acp-4" | "acp-shape" | "acp-unicode";

/** Agent Client Protocol, version 1: the rules of a consistent session transcript. */
export const acpRules: Record<Rule, string> = {
  "acp-1": "a tool call is opened once, and updates refer to one that was opened",
  "acp-2": "a call that is completed or failed stays so, and every call is at the end of its turn",
  "acp-3": "content blocks have the fields of their type, and a prompt is not empty",
  "acp-4": "a turn starts with the user's message, and the chunks of one message are adjacent",
  "acp-shape": "updates are those of the protocol, and of one session",
  "acp-unicode": "well-formed Unicode without NUL, in texts and in names of members",
};

export interface AcpOptions {
  /** The transcript ends inside a running turn: its calls may be open. */
  readonly running?: boolean;
}

const CHUNKS = ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"];
const OTHERS = [
  "plan",
  "available_commands_update",
  "current_mode_update",
  "config_option_update",
  "session_info_update",
  "usage_update",
  "notice",
  "compaction_update",
  "compaction_summary_chunk",
];
const STATUSES = ["pending", "in_progress", "completed", "failed"];

/** Required fields by the type of a content block. */
const BLOCKS: Record<string, readonly string[]> = {
  text: ["text"],
  image: ["data", "mimeType"],
  audio: ["data", "mimeType"],
  resource_link: ["name", "uri"],
  resource: ["resource"],
};

/**
 * Checks a transcript: prompts (`{ sessionId, prompt }`) and updates (`{ sessionId, update }`, or the update alone), in
 * order.
 *
 * The protocol does not say that calls end with their turn, but a client that loads such a session would show them as
 * running forever.
 */
export function validateAcp(transcript: unknown, options: AcpOptions = {}): Violation[] {
  return judge<Rule>((add) => {
    if (!Array.isArray(transcript)) {
      add("acp-shape", "", "a transcript is a list");
      return;
    }
    checkUnicode(transcript, "acp-unicode", add);
    const calls = new Map<unknown, { at: string; status: unknown }>();
    const closed = new Set<unknown>();
    let message: { kind: string; id: unknown } | undefined;
    let started = false;
    let session: unknown;
    const endTurn = () => {
      for (const [id, { at, status }] of calls) {
        if (status !== "completed" && status !== "failed") add("acp-2", at, `tool call ${id} is left ${status}`);
      }
      calls.clear();
    };
    const opened = new Set<unknown>();
    for (const [i, entry] of transcript.entries()) {
      const at = `${i}`;
      if (!isObject(entry)) {
        add("acp-shape", at, "an entry is an object");
        continue;
      }
      if (entry["sessionId"] !== undefined) {
        session ??= entry["sessionId"];
        if (session !== entry["sessionId"]) add("acp-shape", at, "updates of two sessions in one transcript");
      }
      if (entry["prompt"] !== undefined) {
        endTurn();
        started = true;
        message = undefined;
        checkPrompt(entry["prompt"], `${at}.prompt`, add);
        continue;
      }
      const update = isObject(entry["update"]) ? entry["update"] : entry;
      const kind = String(update["sessionUpdate"]);
      if (CHUNKS.includes(kind)) {
        const id = update["messageId"] ?? undefined;
        const goesOn = message !== undefined && message.kind === kind && message.id === id;
        if (!goesOn) {
          if (kind === "user_message_chunk") endTurn();
          if (message?.id !== undefined) closed.add(message.id);
          if (id !== undefined && closed.has(id)) add("acp-4", at, `message ${id} continues after another message`);
          message = { kind, id };
        }
        if (kind === "user_message_chunk") started = true;
        checkBlock(update["content"], `${at}.content`, add);
      } else if (kind === "tool_call") {
        if (opened.has(update["toolCallId"])) add("acp-1", at, `tool call ${update["toolCallId"]} is opened twice`);
        checkCall(update, at, add);
        if (!isNonEmpty(update["title"])) add("acp-shape", `${at}.title`, "required");
        opened.add(update["toolCallId"]);
        calls.set(update["toolCallId"], { at, status: update["status"] ?? "pending" });
      } else if (kind === "tool_call_update") {
        checkCall(update, at, add);
        const call = calls.get(update["toolCallId"]);
        if (!opened.has(update["toolCallId"])) add("acp-1", at, `no tool call ${update["toolCallId"]} was opened`);
        else if (call && isFinal(call.status) && (update["status"] ?? call.status) !== call.status) {
          add("acp-2", at, `tool call ${update["toolCallId"]} was ${call.status} already`);
        } else if (call) call.status = update["status"] ?? call.status;
      } else if (!OTHERS.includes(kind)) add("acp-shape", at, `${kind} is not a session update`);
      const spoken = kind === "tool_call" || kind === "agent_message_chunk" || kind === "agent_thought_chunk";
      if (spoken && !started) {
        add("acp-4", at, "the agent speaks before the user");
        started = true;
      }
    }
    if (!options.running) endTurn();
  });
}

function isFinal(status: unknown): boolean {
  return status === "completed" || status === "failed";
}

function checkPrompt(prompt: unknown, at: string, add: Add<Rule>): void {
  if (!Array.isArray(prompt) || prompt.length === 0) add("acp-3", at, "a prompt holds content blocks");
  else for (const [j, block] of prompt.entries()) checkBlock(block, `${at}.${j}`, add);
}

function checkBlock(block: unknown, at: string, add: Add<Rule>): void {
  const fields = isObject(block) ? rowOf(BLOCKS, block["type"]) : undefined;
  if (!isObject(block) || fields === undefined) {
    add("acp-3", at, `a content block is of type ${Object.keys(BLOCKS).join(", ")}`);
    return;
  }
  for (const field of fields) {
    const fits = field === "resource" ? isObject(block[field]) : typeof block[field] === "string";
    if (!fits) add("acp-3", `${at}.${field}`, "required");
  }
}

function checkCall(update: Json, at: string, add: Add<Rule>): void {
  if (!isNonEmpty(update["toolCallId"])) add("acp-shape", `${at}.toolCallId`, "required");
  const status = update["status"];
  if (status !== undefined && status !== null && !STATUSES.includes(String(status))) {
    add("acp-shape", `${at}.status`, `${JSON.stringify(status)} is not a status`);
  }
  const content = update["content"];
  if (content === undefined || content === null) return;
  if (!Array.isArray(content)) add("acp-3", `${at}.content`, "a list");
  else {
    for (const [j, item] of content.entries()) {
      const place = `${at}.content.${j}`;
      const type = isObject(item) ? item["type"] : undefined;
      if (isObject(item) && type === "content") checkBlock(item["content"], `${place}.content`, add);
      else if (isObject(item) && type === "diff") {
        if (typeof item["path"] !== "string" || typeof item["newText"] !== "string") {
          add("acp-3", place, "a diff has path and newText");
        }
      } else if (!isObject(item) || type !== "terminal" || !isNonEmpty(item["terminalId"])) {
        add("acp-3", place, "tool call content is content, diff or terminal");
      }
    }
  }
}
