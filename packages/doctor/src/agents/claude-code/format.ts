import type { Unit } from "../../contract/record.ts";
import { fieldsOf, listIn, textIn, timeIn } from "../../contract/shapes.ts";
import type { LineFormat, Understood } from "../../jsonl/read-lines.ts";

/**
 * The lines of Claude Code. Those with a `uuid` are the conversation, a tree by `parentUuid`; the others are notes
 * about the session, such as its title or the last prompt, and may be repeated.
 */

/** Notes without a `uuid`: what is known of them is that they are no part of the tree. */
const NOTES: ReadonlySet<string> = new Set([
  ...["summary", "custom-title", "ai-title", "last-prompt", "mode", "permission-mode", "agent-name", "agent-color"],
  ...["agent-setting", "tag", "queue-operation", "file-history-snapshot", "pr-link", "worktree-state", "cost-state"],
  ...["api-request", "api-request-blob", "api-request-shape", "tools-used", "atis-latch", "content-replacement"],
  ...["attribution-snapshot", "task-summary", "result", "started", "frame-link", "saved_hook_context"],
]);
const CHAINED: ReadonlySet<string> = new Set(["user", "assistant", "system", "attachment", "progress"]);

export const format: LineFormat = {
  isRecord(value) {
    const { type, uuid, parentUuid, sessionId, message, leafUuid, messageId } = fieldsOf(value);
    if (typeof type !== "string") return false;
    if (typeof uuid === "string")
      return parentUuid !== undefined || typeof sessionId === "string" || message !== undefined;
    return (
      typeof sessionId === "string" || typeof leafUuid === "string" || (NOTES.has(type) && messageId !== undefined)
    );
  },

  understand(value): Understood | null {
    const fields = fieldsOf(value);
    const type = textIn(fields["type"]);
    if (type === null) return null;
    if (typeof fields["uuid"] !== "string")
      return NOTES.has(type) ? { kind: type, units: noteUnits(type, fields) } : null;
    const understood = {
      kind: CHAINED.has(type) ? type : "unknown",
      id: fields["uuid"],
      parent: textIn(fields["parentUuid"]),
      at: timeIn(fields["timestamp"]),
      units: unitsOf(type, fields),
    };
    const agent = fields["isSidechain"] === true ? textIn(fields["agentId"]) : null;
    return agent === null ? understood : { ...understood, thread: agent };
  },
};

function noteUnits(type: string, fields: Readonly<Record<string, unknown>>): readonly Unit[] {
  const text =
    textIn(fields["customTitle"]) ??
    textIn(fields["aiTitle"]) ??
    (type === "summary" ? textIn(fields["summary"]) : null);
  return text === null ? [] : [{ type: "title", text }];
}

function unitsOf(type: string, fields: Readonly<Record<string, unknown>>): readonly Unit[] {
  if (type === "system") {
    if (fields["subtype"] !== "compact_boundary") return [];
    const { uuids } = fieldsOf(fieldsOf(fields["compactMetadata"])["preservedMessages"]);
    return [{ type: "compaction", summary: null, retained: listIn(uuids).map(String) }];
  }
  if (type !== "user" && type !== "assistant") return [];
  const { content } = fieldsOf(fields["message"]);
  if (type === "user" && fields["isCompactSummary"] === true)
    return [{ type: "compaction", summary: typeof content === "string" ? content : JSON.stringify(content) }];
  if (typeof content === "string") return [{ type, content }];
  return listIn(content).flatMap((block): Unit[] => {
    const part = fieldsOf(block);
    switch (part["type"]) {
      case "thinking":
      case "redacted_thinking":
        return [{ type: "reasoning", text: textIn(part["thinking"]) ?? "" }];
      case "tool_use":
        return [{ type: "call", id: String(part["id"]), name: String(part["name"]), input: part["input"] }];
      case "tool_result": {
        const agent = textIn(fieldsOf(fields["toolUseResult"])["agentId"]);
        const call = String(part["tool_use_id"]);
        const result = { type: "result", call, content: part["content"], isError: part["is_error"] === true } as const;
        return agent === null ? [result] : [result, { type: "subagent", thread: agent, call }];
      }
      default:
        return [{ type, content: block }];
    }
  });
}

/**
 * Whether a record is an answer that no model gave: Claude Code writes it in the place of one that did not come. At the
 * end of a session, several versions resume with it, and the API refuses its id. A notice of an error of the API is not
 * sent, and harmless.
 */
export function isPlaceholder(value: unknown): boolean {
  const { type, message, isApiErrorMessage } = fieldsOf(value);
  if (type !== "assistant" || isApiErrorMessage === true) return false;
  const { model, content, usage, stop_reason, id } = fieldsOf(message);
  const { input_tokens, output_tokens } = fieldsOf(usage);
  const [only, ...more] = listIn(content).map((block) => fieldsOf(block));
  const text = typeof content === "string" ? content : more.length === 0 ? only?.["text"] : undefined;
  const isMade = model === "<synthetic>" || text === "<synthetic>";
  const isUnsaid = output_tokens === 0 && !input_tokens && stop_reason !== "tool_use";
  return isMade && isUnsaid && !String(id).startsWith("msg_");
}
