import type { Unit } from "../../contract/record.ts";
import { type Fields, fieldsOf, listIn, textIn, timeIn } from "../../contract/shapes.ts";
import type { LineFormat, Understood } from "../../jsonl/read-lines.ts";
import type { MessageShape } from "../../mend/messages.ts";

/**
 * The lines of zot: `meta` first (again when the model changes: the last one counts), `message`, `usage`, `rename`. The
 * blocks of a message have no type: their fields tell what they are.
 */

const ROLES: ReadonlySet<string> = new Set(["user", "assistant", "tool", "system"]);

export const format: LineFormat = {
  isRecord: (value) => kindOf(fieldsOf(value)) !== null,
  isHeader: (value) => kindOf(fieldsOf(value)) === "meta",

  understand(value): Understood | null {
    const fields = fieldsOf(value);
    const kind = kindOf(fields);
    if (kind === null) return null;
    const title = textIn(fields["title"]) ?? textIn(fieldsOf(fields["meta"])["title"]);
    if (kind !== "message") return { kind, units: title ? [{ type: "title", text: title }] : [] };
    const message = fieldsOf(fields["message"]);
    return { kind: String(message["role"]), id: idOf(message), at: timeIn(message["time"]), units: unitsOf(message) };
  },
};

function kindOf({ type, meta, message, cumulative, usage, title }: Fields): string | null {
  if (type === "meta") return typeof fieldsOf(meta)["id"] === "string" ? "meta" : null;
  if (type === "message") {
    const { role, content } = fieldsOf(message);
    return ROLES.has(String(role)) && (Array.isArray(content) || content === null) ? "message" : null;
  }
  if (type === "usage") return typeof (cumulative ?? usage) === "object" ? "usage" : null;
  return type === "rename" && typeof title === "string" ? "rename" : null;
}

/** A message has no id; no call is made twice, none is answered twice, and the time of a message is exact. */
function idOf(message: Fields): string | null {
  const { role, time, content } = message;
  const named = unitsOf(message).find((unit) => unit.type === "call" || unit.type === "result");
  if (named?.type === "call") return `call ${named.id}`;
  if (named?.type === "result") return `result ${named.call}`;
  const isTimed = typeof time === "string" && /\.\d{4,}/.test(time);
  return isTimed ? `${role} ${time} ${JSON.stringify(content).length}` : null;
}

function unitsOf({ role, content }: Fields): readonly Unit[] {
  const type = role === "user" || role === "tool" ? "user" : "assistant";
  return listIn(content).map((block): Unit => {
    const {
      reasoning_id,
      encrypted_content,
      summary,
      id,
      name,
      arguments: input,
      call_id,
      is_error,
      text,
    } = fieldsOf(block);
    if (reasoning_id || encrypted_content) return { type: "reasoning", text: textIn(summary) ?? "" };
    if (name && id) return { type: "call", id: String(id), name: String(name), input };
    if (call_id) {
      const shown = listIn(fieldsOf(block)["content"]).map(said);
      return { type: "result", call: String(call_id), content: shown, isError: is_error === true };
    }
    if (role === "system") return { type: "system", content: textIn(text) ?? block };
    return { type, content: said(block) };
  });
}

/** Pictures as other agents have them. */
function said(block: unknown): unknown {
  const { mime_type, data, text } = fieldsOf(block);
  if (typeof mime_type === "string" && mime_type !== "")
    return { type: "image", source: { type: "base64", media_type: mime_type, data } };
  return { type: "text", text: textIn(text) ?? "" };
}

/** The messages, without the lines around them. */
export const SHAPE: MessageShape = {
  roleOf({ role }) {
    if (role === "assistant") return "assistant";
    return role === "user" || role === "tool" ? "user" : null;
  },
  blocksOf: ({ content }) => listIn(content),
  withBlocks: (message, blocks) => ({
    ...message,
    // What is no result any more was said by the user.
    ...(message["role"] === "tool" && blocks.every((block) => !fieldsOf(block)["call_id"]) ? { role: "user" } : {}),
    content: blocks,
  }),
  callOf(block) {
    const { id, name, arguments: input } = fieldsOf(block);
    return id && name ? { id: String(id), name: String(name), input } : null;
  },
  resultOf(block) {
    const { call_id, content } = fieldsOf(block);
    return call_id ? { call: String(call_id), content } : null;
  },
  textOf(block) {
    const fields = fieldsOf(block);
    return Object.keys(fields).length === 1 ? textIn(fields["text"]) : null;
  },
  withInput: (block, input) => ({ ...fieldsOf(block), arguments: input }),
  withContent: (block, content) => ({ ...fieldsOf(block), content }),
  withText: (block, text) => ({ ...fieldsOf(block), text }),
  textBlock: (text) => ({ text }),
  resultBlock: (call, _name, text) => ({ call_id: call, content: [{ text }], is_error: true }),
  resultMessage: (blocks, before) => ({ role: "tool", content: blocks, time: before["time"] }),
};
