import type { Unit } from "../contract/record.ts";
import { type Fields, fieldsOf, listIn, textIn } from "../contract/shapes.ts";
import type { MessageShape } from "../mend/messages.ts";

/** Messages as the Messages API of Anthropic has them: several agents keep a list of them. */

export function isMessage(value: unknown): boolean {
  const { role, content } = fieldsOf(value);
  return (role === "user" || role === "assistant") && (typeof content === "string" || Array.isArray(content));
}

export function unitsOfMessage({ role, content }: Fields): readonly Unit[] {
  const type = role === "user" ? "user" : "assistant";
  if (typeof content === "string") return content === "" ? [] : [{ type, content }];
  return listIn(content).map((block): Unit => {
    const part = fieldsOf(block);
    switch (part["type"]) {
      case "thinking":
      case "redacted_thinking":
        return { type: "reasoning", text: textIn(part["thinking"] ?? part["text"]) ?? "" };
      case "tool_use":
        return { type: "call", id: String(part["id"]), name: String(part["name"]), input: part["input"] };
      case "tool_result": {
        const { tool_use_id, content: output, is_error } = part;
        return { type: "result", call: String(tool_use_id), content: output, isError: is_error === true };
      }
      default:
        return { type, content: block };
    }
  });
}

export const ANTHROPIC: MessageShape = {
  roleOf: ({ role }) => (role === "user" || role === "assistant" ? role : null),
  blocksOf: ({ content }) => (typeof content === "string" ? [{ type: "text", text: content }] : listIn(content)),
  withBlocks: (message, blocks) => {
    const [only] = blocks;
    const text = typeof message["content"] === "string" && blocks.length === 1 ? textIn(fieldsOf(only)["text"]) : null;
    return { ...message, content: text ?? blocks };
  },
  callOf(block) {
    const { type, id, name, input } = fieldsOf(block);
    return type === "tool_use" ? { id: String(id), name: String(name), input } : null;
  },
  resultOf(block) {
    const { type, tool_use_id, content } = fieldsOf(block);
    return type === "tool_result" ? { call: String(tool_use_id), content } : null;
  },
  textOf(block) {
    const { type, text } = fieldsOf(block);
    return type === "text" ? textIn(text) : null;
  },
  withInput: (block, input) => ({ ...fieldsOf(block), input }),
  withContent: (block, content) => ({ ...fieldsOf(block), content }),
  withText: (block, text) => ({ ...fieldsOf(block), text }),
  textBlock: (text) => ({ type: "text", text }),
  resultBlock: (call, _name, text) => ({ type: "tool_result", tool_use_id: call, content: text, is_error: true }),
  resultMessage: (blocks) => ({ role: "user", content: blocks }),
};
