import type { Unit } from "../../contract/record.ts";
import { type Fields, fieldsOf, listIn, textIn, timeIn } from "../../contract/shapes.ts";
import type { LineFormat, Understood } from "../../jsonl/read-lines.ts";

/**
 * The lines of pi: a header, then entries that form a tree by `parentId`. The conversation is the way from the last
 * line back to its root. Version 1 had no ids: its lines simply follow each other.
 */

const ENTRIES: ReadonlySet<string> = new Set([
  ...["message", "model_change", "thinking_level_change", "compaction", "branch_summary", "custom", "custom_message"],
  ...["label", "session_info", "usage", "context_edit"],
]);
/** The newest version whose sessions were read. */
export const VERSION_MAX = 3;

/** The folder in which the sessions of a project are. */
export const folderFor = (cwd: string): string => `--${cwd.replace(/^[/\\]/, "").replaceAll(/[/\\:]/g, "-")}--`;

export const format: LineFormat = {
  isRecord(value) {
    const { type, id, parentId, timestamp } = fieldsOf(value);
    if (typeof type !== "string" || typeof timestamp !== "string") return false;
    if (type === "session") return typeof id === "string";
    return (typeof id === "string" && parentId !== undefined) || (id === undefined && ENTRIES.has(type));
  },

  isHeader(value) {
    const { type, id } = fieldsOf(value);
    return type === "session" && typeof id === "string";
  },

  understand(value): Understood | null {
    const fields = fieldsOf(value);
    const type = textIn(fields["type"]);
    if (type === null) return null;
    return {
      kind: type === "session" || ENTRIES.has(type) ? type : "unknown",
      id: textIn(fields["id"]),
      parent: textIn(fields["parentId"]),
      at: timeIn(fields["timestamp"]),
      units: unitsOf(type, fields),
    };
  },
};

/** Whether a line was written by pi, and not by another agent that has types and ids too. */
export function isOfPi(value: unknown): boolean {
  const type = String(fieldsOf(value)["type"]);
  return format.isRecord(value) && (type === "session" || ENTRIES.has(type));
}

function unitsOf(type: string, entry: Fields): readonly Unit[] {
  switch (type) {
    case "message":
      return messageUnits(fieldsOf(entry["message"]));
    case "compaction":
      return [{ type: "compaction", summary: textIn(entry["summary"]) }];
    case "branch_summary":
      return [{ type: "system", content: entry["summary"] }];
    case "custom_message":
      return [{ type: "system", content: entry["content"] }];
    case "session_info":
      return typeof entry["name"] === "string" ? [{ type: "title", text: entry["name"] }] : [];
    default:
      return [];
  }
}

function messageUnits(message: Fields): readonly Unit[] {
  const { role, content } = message;
  switch (role) {
    case "user":
      return (typeof content === "string" ? [content] : listIn(content)).map((each) => ({
        type: "user",
        content: each,
      }));
    case "assistant":
      return listIn(content).map((block) => blockUnit(fieldsOf(block), message["stopReason"]));
    case "toolResult": {
      const call = String(message["toolCallId"]);
      return [{ type: "result", call, content, isError: message["isError"] === true }];
    }
    // A command that the user ran.
    case "bashExecution":
      return [{ type: "user", content: message }];
    default:
      return typeof role === "string" ? [{ type: "system", content: content ?? message["summary"] }] : [];
  }
}

function blockUnit(block: Fields, stopReason: unknown): Unit {
  if (block["type"] === "thinking") return { type: "reasoning", text: textIn(block["thinking"]) ?? "" };
  // Of an answer that broke off, no call is run, and pi shows the model nothing of it.
  const isBroken = stopReason === "error" || stopReason === "aborted";
  if (block["type"] === "toolCall" && !isBroken)
    return { type: "call", id: String(block["id"]), name: String(block["name"]), input: block["arguments"] };
  return { type: "assistant", content: block };
}
