import type { Unit } from "../../contract/record.ts";
import { type Fields, fieldsOf, listIn, textIn, timeIn } from "../../contract/shapes.ts";
import type { LineFormat, Understood } from "../../jsonl/read-lines.ts";
import type { MessageShape } from "../../mend/messages.ts";

/** Messages of goose: in rows of its database, and in the lines of older versions, behind one with facts. */

export function unitsOfMessage({ role, content }: Fields): readonly Unit[] {
  const type = role === "user" ? "user" : "assistant";
  return listIn(content).map((block): Unit => {
    const fields = fieldsOf(block);
    const call = SHAPE.callOf(block);
    if (call) return { type: "call", ...call };
    const result = SHAPE.resultOf(block);
    if (result) return { type: "result", ...result, isError: isError(fields["toolResult"]) };
    if (fields["type"] === "thinking" || fields["type"] === "redactedThinking")
      return { type: "reasoning", text: textIn(fields["thinking"]) ?? "" };
    if (fields["type"] === "systemNotification") return { type: "system", content: block };
    const { data, mimeType } = fields;
    if (fields["type"] !== "image") return { type, content: block };
    return { type, content: { type: "image", source: { type: "base64", media_type: mimeType, data } } };
  });
}

/** What a call or a result holds: its form depends on the version. */
function outcomeIn(outcome: unknown): unknown {
  const fields = fieldsOf(outcome);
  return fields["value"] ?? fields["Ok"] ?? fields["error"] ?? fields["Err"];
}

function isError(outcome: unknown): boolean {
  const fields = fieldsOf(outcome);
  return fields["status"] === "error" || "Err" in fields || fieldsOf(outcomeIn(outcome))["isError"] === true;
}

const withValue = (outcome: unknown, value: unknown): Fields =>
  "Ok" in fieldsOf(outcome) ? { Ok: value } : { status: "success", value };

export const SHAPE: MessageShape = {
  roleOf: ({ role }) => (role === "user" || role === "assistant" ? role : null),
  blocksOf: ({ content }) => listIn(content),
  withBlocks: (message, blocks) => ({ ...message, content: blocks }),
  callOf(block) {
    const { type, id, toolCall } = fieldsOf(block);
    if (type !== "toolRequest" && type !== "frontendToolRequest") return null;
    const value = fieldsOf(outcomeIn(toolCall));
    // A tool without parameters has no arguments.
    return { id: String(id), name: textIn(value["name"]) ?? "unknown", input: value["arguments"] ?? {} };
  },
  resultOf(block) {
    const { type, id, toolResult } = fieldsOf(block);
    if (type !== "toolResponse") return null;
    const value = outcomeIn(toolResult);
    return { call: String(id), content: fieldsOf(value)["content"] ?? value };
  },
  textOf(block) {
    const { type, text } = fieldsOf(block);
    return type === "text" ? textIn(text) : null;
  },
  withInput(block, input) {
    const { toolCall } = fieldsOf(block);
    return {
      ...fieldsOf(block),
      toolCall: withValue(toolCall, { ...fieldsOf(outcomeIn(toolCall)), arguments: input }),
    };
  },
  withContent(block, content) {
    const { toolResult } = fieldsOf(block);
    const value = outcomeIn(toolResult);
    const inner = Array.isArray(value) ? content : { ...fieldsOf(value), content };
    return { ...fieldsOf(block), toolResult: withValue(toolResult, inner) };
  },
  withText: (block, text) => ({ ...fieldsOf(block), text }),
  textBlock: (text) => ({ type: "text", text }),
  resultBlock: (call, _name, text) => ({
    type: "toolResponse",
    id: call,
    toolResult: { status: "success", value: { content: [{ type: "text", text }], isError: true } },
  }),
  resultMessage: (blocks, { created }) => ({ role: "user", created, content: blocks }),
};

export const isContent = (value: unknown): value is unknown[] =>
  Array.isArray(value) && value.every((block) => typeof fieldsOf(block)["type"] === "string");

/** The lines of older versions. */
export const format: LineFormat = {
  isRecord: (value) => kindOf(fieldsOf(value)) !== null,
  isHeader: (value) => kindOf(fieldsOf(value)) === "facts",
  understand(value): Understood | null {
    const fields = fieldsOf(value);
    const kind = kindOf(fields);
    if (kind === null) return null;
    const title = textIn(fields["description"]);
    if (kind === "facts") return { kind, units: title ? [{ type: "title", text: title }] : [] };
    const at = timeIn(fields["created"]);
    return { kind, at: at === null ? null : at * 1_000, units: unitsOfMessage(fields) };
  },
};

function kindOf({ working_dir, description, message_count, role, content }: Fields): string | null {
  if ((role === "user" || role === "assistant") && isContent(content)) return role;
  // Many a file of JSON has a description.
  const isHeader = typeof working_dir === "string" || (typeof description === "string" && message_count !== undefined);
  return role === undefined && isHeader ? "facts" : null;
}
