import type { Unit } from "../../contract/record.ts";
import { type Fields, fieldsOf, listIn, textIn, timeIn } from "../../contract/shapes.ts";
import type { LineFormat, Understood } from "../../jsonl/read-lines.ts";

/**
 * The events of GitHub Copilot CLI, `{type, data, id, timestamp, parentId}`: each names one before it. Those of
 * sub-agents stand among them, with an `agentId`.
 */

const AREAS: ReadonlySet<string> = new Set([
  ...["session", "user", "assistant", "system", "tool", "subagent", "model", "hook", "skill", "abort", "permission"],
]);

export const format: LineFormat = {
  isRecord(value) {
    const { type, data, id, timestamp, parentId } = fieldsOf(value);
    const isEvent = typeof type === "string" && typeof id === "string" && typeof timestamp === "string";
    return isEvent && typeof data === "object" && data !== null && parentId !== undefined;
  },

  isHeader(value) {
    const { type, data } = fieldsOf(value);
    return type === "session.start" && typeof fieldsOf(data)["sessionId"] === "string";
  },

  understand(value): Understood | null {
    const fields = fieldsOf(value);
    const type = textIn(fields["type"]);
    if (type === null) return null;
    const data = fieldsOf(fields["data"]);
    const agent = textIn(fields["agentId"]);
    return {
      kind: AREAS.has(type.split(".")[0]!) ? type : "unknown",
      id: textIn(fields["id"]),
      parent: textIn(fields["parentId"]),
      at: timeIn(fields["timestamp"]),
      units: unitsOf(type, data, agent),
      // The start of a sub-agent belongs to the conversation that asked for it.
      ...(agent !== null && type !== "subagent.started" ? { thread: agent } : {}),
      ...(type === "tool.execution_start" ? { repeats: [callUnit(data["toolName"], data)] } : {}),
    };
  },
};

export function isOfCopilot(value: unknown): boolean {
  const type = String(fieldsOf(value)["type"]);
  return format.isRecord(value) && type.includes(".") && AREAS.has(type.split(".")[0]!);
}

function unitsOf(type: string, data: Fields, agent: string | null): readonly Unit[] {
  switch (type) {
    case "user.message":
      return [{ type: "user", content: data["content"] }];
    case "system.message":
      return [{ type: "system", content: data["content"] }];
    case "assistant.message": {
      const reasoning = textIn(data["reasoningText"]);
      const text = textIn(data["content"]) ?? "";
      return [
        ...(reasoning === null ? [] : [{ type: "reasoning", text: reasoning } as const]),
        ...(text === "" ? [] : [{ type: "assistant", content: text } as const]),
        ...listIn(data["toolRequests"]).map((request) => callUnit(fieldsOf(request)["name"], fieldsOf(request))),
      ];
    }
    case "tool.execution_complete": {
      const { content, message } = fieldsOf(data["result"] ?? data["error"]);
      // What the model is shown of it; the rest is for the screen.
      const shown = textIn(content) ?? textIn(message) ?? data["result"] ?? data["error"] ?? null;
      return [{ type: "result", call: String(data["toolCallId"]), content: shown, isError: data["success"] !== true }];
    }
    case "subagent.started":
      return [{ type: "subagent", thread: agent ?? String(data["toolCallId"]), call: textIn(data["toolCallId"]) }];
    case "session.compaction_complete":
      return data["success"] === true ? [{ type: "compaction", summary: textIn(data["summaryContent"]) }] : [];
    default:
      return [];
  }
}

/** A tool without parameters may be called with nothing; older versions kept the input as text. */
function callUnit(name: unknown, { toolCallId, arguments: input }: Fields): Unit {
  return { type: "call", id: String(toolCallId), name: String(name), input: inputOf(input) };
}

function inputOf(input: unknown): unknown {
  if (input === undefined || input === "") return {};
  if (typeof input !== "string") return input;
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}
