import type { ConversationView, Unit } from "../../contract/record.ts";
import { type Fields, fieldsOf, listIn, textIn, timeIn } from "../../contract/shapes.ts";
import type { LineFormat, Understood } from "../../jsonl/read-lines.ts";

/**
 * The lines of a Codex rollout: `{timestamp, ordinal, type, payload}`. Older versions wrote no `ordinal`. What the
 * model is shown are the `response_item` lines since the last `compacted`; `event_msg` lines say most of it again.
 */

export const TYPES: ReadonlySet<string> = new Set([
  ...["session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "token_usage_record"],
  ...["inter_agent_communication", "inter_agent_communication_metadata", "security_risk_score", "ghost_snapshot"],
]);

/** What Codex itself says to the model in the name of the user. */
const CONTEXT =
  /^\s*(?:<(?:environment_context|user_instructions|permissions|skills|apps|plugins|INSTRUCTIONS)|# AGENTS\.md)/;

export const format: LineFormat = {
  isRecord(value) {
    const { timestamp, type, payload } = fieldsOf(value);
    return typeof timestamp === "string" && typeof type === "string" && typeof payload === "object";
  },

  isHeader(value) {
    const { type, payload } = fieldsOf(value);
    return type === "session_meta" && typeof fieldsOf(payload)["id"] === "string";
  },

  understand(value): Understood | null {
    const { timestamp, ordinal, type, payload } = fieldsOf(value);
    if (typeof type !== "string") return null;
    const fields = fieldsOf(payload);
    const detail = textIn(fields["type"]);
    return {
      kind: TYPES.has(type) ? (detail === null ? type : `${type}/${detail}`) : "unknown",
      id: idOf(timestamp, ordinal, type, fields),
      sequence: typeof ordinal === "number" ? ordinal : null,
      at: timeIn(timestamp),
      units: unitsOf(type, fields),
      ...(type === "event_msg" ? { repeats: repeatsOf(fields) } : {}),
      ...(type === "compacted" && Array.isArray(fields["replacement_history"]) ? { view: () => viewOf(fields) } : {}),
    };
  },
};

/**
 * Two processes that write at once give the same number to different records, but not at the same millisecond: what has
 * both in common is one record. Records without a number are one if an item of the conversation is.
 */
function idOf(timestamp: unknown, ordinal: unknown, type: string, payload: Fields): string | null {
  if (typeof ordinal === "number") return `${ordinal} ${String(timestamp)} ${type}`;
  if (type !== "response_item") return null;
  const item = textIn(payload["id"]) ?? textIn(payload["call_id"]);
  return `${String(timestamp)} ${String(payload["type"])} ${item ?? JSON.stringify(payload)}`;
}

function unitsOf(type: string, payload: Fields): readonly Unit[] {
  if (type === "compacted") return [{ type: "compaction", summary: textIn(payload["message"]) }];
  return type === "response_item" ? itemUnits(payload) : [];
}

/** A compaction writes all that the model is shown from then on. */
const viewOf = (payload: Fields): ConversationView => ({
  type: "instead",
  said: listIn(payload["replacement_history"]).map((item) => ({ id: null, units: itemUnits(fieldsOf(item)) })),
});

function itemUnits(item: Fields): readonly Unit[] {
  const call = textIn(item["call_id"]);
  switch (item["type"]) {
    case "message":
      return listIn(item["content"]).map((part): Unit => messageUnit(item["role"], part));
    case "agent_message":
      return [{ type: "system", content: item["content"] }];
    case "reasoning":
      return [{ type: "reasoning", text: textsOf(item["summary"]) || textsOf(item["content"]) }];
    case "function_call":
      return [{ type: "call", id: String(call), name: String(item["name"]), input: inputOf(item["arguments"]) }];
    case "tool_search_call":
      return call === null ? [] : [{ type: "call", id: call, name: "tool_search", input: item["arguments"] }];
    case "custom_tool_call": {
      // Its input is a text of any kind, such as a patch.
      const input = typeof item["input"] === "string" ? { input: item["input"] } : null;
      return [{ type: "call", id: String(call), name: String(item["name"]), input }];
    }
    case "local_shell_call":
      return [{ type: "call", id: call ?? String(item["id"]), name: "local_shell", input: item["action"] }];
    case "function_call_output":
    case "custom_tool_call_output":
      return call === null ? [] : [{ type: "result", call, content: item["output"], isError: false }];
    case "tool_search_output":
      return call === null ? [] : [{ type: "result", call, content: item["tools"], isError: false }];
    case "web_search_call":
    case "image_generation_call":
      return [{ type: "assistant", content: item }];
    case "compaction":
    case "compaction_summary":
    case "context_compaction":
      return [{ type: "compaction", summary: null }];
    default:
      return [];
  }
}

function messageUnit(role: unknown, content: unknown): Unit {
  if (role === "assistant") return { type: "assistant", content };
  const isContext = role !== "user" || CONTEXT.test(textIn(fieldsOf(content)["text"]) ?? "");
  return { type: isContext ? "system" : "user", content };
}

/** A tool without parameters may be called with nothing. */
function inputOf(text: unknown): unknown {
  if (text === "") return {};
  if (typeof text !== "string") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** What an event says again of an item of the conversation. */
function repeatsOf(event: Fields): readonly Unit[] {
  const item = fieldsOf(event["item"]);
  const text = (content: string): unknown => ({ type: "text", text: content });
  switch (event["type"]) {
    case "user_message":
      return [{ type: "user", content: text(String(event["message"])) }];
    case "agent_message":
      return [{ type: "assistant", content: text(String(event["message"])) }];
    case "agent_reasoning":
      return [{ type: "reasoning", text: String(event["text"]) }];
    case "item_completed":
      break;
    default:
      return [];
  }
  switch (item["type"]) {
    case "UserMessage":
      return listIn(item["content"]).map((content): Unit => ({ type: "user", content }));
    case "AgentMessage":
      return [{ type: "assistant", content: text(textsOf(item["content"])) }];
    case "Reasoning":
      return [{ type: "reasoning", text: listIn(item["summary_text"]).join("\n") }];
    case "CommandExecution": {
      const [id, isError] = [String(item["id"]), item["exit_code"] !== 0];
      return [
        { type: "call", id, name: "exec_command", input: { command: item["command"], cwd: item["cwd"] } },
        { type: "result", call: id, content: item["aggregated_output"], isError },
      ];
    }
    default:
      return [];
  }
}

function textsOf(parts: unknown): string {
  return listIn(parts)
    .map((part) => textIn(fieldsOf(part)["text"]) ?? "")
    .join("\n");
}
