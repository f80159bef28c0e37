import type { Unit } from "../../contract/record.ts";
import { type Fields, fieldsOf, listIn, textIn, timeIn } from "../../contract/shapes.ts";
import type { LineFormat, Understood } from "../../jsonl/read-lines.ts";

/**
 * The lines of DeepSeek Harness: a header, then `{type, seq, time, data}`. `seq` counts without a gap; the pieces of an
 * answer are packed, and such a line has `seq0`, the first of its numbers.
 */

const AREAS: ReadonlySet<string> = new Set([
  ...["permission", "sandbox", "approval", "agent", "turn", "step", "user", "session", "request", "assistant", "tool"],
  ...["text-chunks", "reasoning-chunks", "tool-call-chunks"],
]);

/** The newest version that is known of. */
export const VERSION_MAX = 4;

export const format: LineFormat = {
  isRecord(value) {
    const { type, seq, seq0, time, time0, data } = fieldsOf(value);
    if (typeof type !== "string") return false;
    if (type === "session") return isHeader(value);
    return Number.isInteger(seq ?? seq0) && typeof (time ?? time0) === "number" && typeof data === "object";
  },

  isHeader,

  understand(value): Understood | null {
    const fields = fieldsOf(value);
    const type = textIn(fields["type"]);
    if (type === null) return null;
    const number = fields["seq"] ?? fields["seq0"];
    const data = fieldsOf(fields["data"]);
    const repeats = repeatsIn(type, data);
    return {
      kind: AREAS.has(type.split("/")[0]!) ? type : "unknown",
      sequence: Number.isInteger(number) ? Number(number) : null,
      at: timeIn(fields["time"] ?? fields["time0"] ?? fields["createdAt"]),
      units: unitsIn(type, data),
      ...(repeats.length > 0 && { repeats }),
    };
  },
};

/** Whether a line was written by DeepSeek Harness. */
export function isOfDsh(value: unknown): boolean {
  const area = String(fieldsOf(value)["type"]).split("/")[0]!;
  return format.isRecord(value) && AREAS.has(area);
}

/** How many numbers a line has. */
export function numbersIn(value: unknown): number {
  const { seq0, data } = fieldsOf(value);
  return seq0 === undefined ? 1 : listIn(fieldsOf(data)["dt"]).length + 1;
}

function isHeader(value: unknown): boolean {
  const { type, version, id, cwd } = fieldsOf(value);
  return (
    type === "session" &&
    Number.isInteger(version) &&
    typeof id === "string" &&
    ["string", "undefined"].includes(typeof cwd)
  );
}

function unitsIn(type: string, data: Fields): readonly Unit[] {
  switch (type) {
    case "user/message": {
      const { content, source } = data;
      return [{ type: fieldsOf(source)["kind"] === "user" ? "user" : "system", content }];
    }
    case "assistant/message":
      return listIn(fieldsOf(data["message"])["content"]).flatMap(unitsOfAnswer);
    case "tool/result":
      return listIn(fieldsOf(data["message"])["content"]).flatMap(unitsOfResult);
    case "session/title": {
      const title = textIn(data["title"]);
      return title === null ? [] : [{ type: "title", text: title }];
    }
    default:
      return [];
  }
}

function unitsOfAnswer(block: unknown): readonly Unit[] {
  const fields = fieldsOf(block);
  const { type, text, content } = fields;
  if (type === "reasoning") return [{ type: "reasoning", text: textIn(text) ?? "" }];
  if (type === "text") return [{ type: "assistant", content: text }];
  if (type === "tool-call") return [callUnit(fields["id"], fields)];
  return [{ type: "assistant", content: content ?? block }];
}

function unitsOfResult(block: unknown): readonly Unit[] {
  const { type, toolCallId, content, isError } = fieldsOf(block);
  if (type !== "tool-result") return [];
  const [only, ...others] = listIn(content);
  const text = others.length === 0 ? textIn(fieldsOf(only)["text"]) : null;
  return [{ type: "result", call: String(toolCallId), content: text ?? content, isError: isError === true }];
}

function callUnit(id: unknown, { name, arguments: input }: Fields): Unit {
  return { type: "call", id: String(id), name: String(name), input: inputOf(input) };
}

/** A tool without parameters may be called with nothing. */
function inputOf(input: unknown): unknown {
  if (input === "") return {};
  if (typeof input !== "string") return input;
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}

function repeatsIn(type: string, data: Fields): readonly Unit[] {
  if (type === "tool/call") return [callUnit(data["callId"], data)];
  if (type !== "agent/inbox/spliced") return [];
  return listIn(data["inserted"]).map((message) => ({ type: "user", content: fieldsOf(message)["content"] }));
}
