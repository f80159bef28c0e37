import type { ConversationView, Unit } from "../../contract/record.ts";
import { type Fields, fieldsOf, listIn, textIn, timeIn } from "../../contract/shapes.ts";
import type { LineFormat, Understood } from "../../jsonl/read-lines.ts";

/**
 * The lines of Gemini CLI: facts of the session (again after each start), messages (one with the id of an earlier one
 * replaces it), `$set` (facts that changed, or a snapshot of all messages), `$rewindTo` (back to a message).
 */

const MESSAGES: ReadonlySet<string> = new Set(["user", "gemini", "info", "error", "warning"]);
const CLOSE_BRACE = 0x7d;
const COMMA = 0x2c;
const SNAPSHOT = Buffer.from('{"$set":{"messages":[');

export const format: LineFormat = {
  // It reads lines with Node's readline, which ends them there.
  breaksAtSeparators: true,

  isRecord: (value) => kindOf(fieldsOf(value)) !== null,

  /** The messages of a snapshot look like lines of their own. */
  isInside: (before) =>
    SNAPSHOT.every((byte, at) => before[at] === byte) &&
    (before.length === SNAPSHOT.length || (before.at(-2) === CLOSE_BRACE && before.at(-1) === COMMA)),

  isHeader: (value) => kindOf(fieldsOf(value)) === "facts",

  understand(value): Understood | null {
    const fields = fieldsOf(value);
    const kind = kindOf(fields);
    if (kind === null) return null;
    if (kind !== "facts" && kind !== "$set" && kind !== "$rewindTo")
      return { kind, id: textIn(fields["id"]), at: timeIn(fields["timestamp"]), units: unitsOf(fields) };
    const set = kind === "$set" ? fieldsOf(fields["$set"]) : fields;
    const messages = listIn(set["messages"]).flatMap((message) => unitsOf(fieldsOf(message)));
    const title = textIn(set["summary"]);
    return {
      kind: kind === "$set" && "messages" in set ? "snapshot" : kind,
      at: timeIn(set["lastUpdated"]),
      units: [
        ...(title === null ? [] : [{ type: "title", text: title } as const]),
        ...(kind === "facts" ? messages : []),
      ],
      ...(kind === "$set" ? { repeats: messages } : {}),
      ...viewOf(kind, kind === "$rewindTo" ? fields : set),
    };
  },
};

/** A snapshot takes the place of all messages before it; a step back takes a message away, and all that follow it. */
function viewOf(kind: string, fields: Fields): { view?: () => ConversationView } {
  const to = textIn(fields["$rewindTo"]);
  if (to !== null) return { view: () => ({ type: "back", to }) };
  if (kind !== "$set" || !("messages" in fields)) return {};
  const said = (message: unknown) => ({ id: textIn(fieldsOf(message)["id"]), units: unitsOf(fieldsOf(message)) });
  return { view: () => ({ type: "instead", said: listIn(fields["messages"]).map(said) }) };
}

function kindOf(fields: Fields): string | null {
  const { id, type, timestamp, content, sessionId, projectHash, $set, $rewindTo } = fields;
  if (typeof $rewindTo === "string") return "$rewindTo";
  if (typeof $set === "object" && $set !== null) return "$set";
  if (typeof sessionId === "string" && typeof projectHash === "string") return "facts";
  const isMessage = typeof id === "string" && typeof timestamp === "string" && content !== undefined;
  return isMessage && MESSAGES.has(String(type)) ? String(type) : null;
}

/** What a message says. In a snapshot, that of the model may consist of parts, as those of the user do. */
export function unitsOf(message: Fields): readonly Unit[] {
  const { type, content } = message;
  if (type !== "user" && type !== "gemini") return [{ type: "system", content }];
  const parts = typeof content === "string" ? (content === "" ? [] : [{ text: content }]) : listIn(content);
  const said = parts.map((part) => partUnit(type === "user" ? "user" : "assistant", fieldsOf(part)));
  const thoughts = listIn(message["thoughts"]).map((thought): Unit => {
    const { subject, description } = fieldsOf(thought);
    return { type: "reasoning", text: [subject, description].filter((text) => text).join(": ") };
  });
  // A snapshot has each call twice: where it was said, and with its result.
  const known = new Set(said.flatMap((unit) => (unit.type === "call" ? [unit.id] : [])));
  const calls = listIn(message["toolCalls"]).flatMap((call) => callUnits(fieldsOf(call)));
  return [...thoughts, ...said, ...calls.filter((unit) => unit.type !== "call" || !known.has(unit.id))];
}

function partUnit(type: "user" | "assistant", part: Fields): Unit {
  const { text, thought, functionCall, functionResponse } = part;
  if (functionCall !== undefined) {
    const { id, name, args } = fieldsOf(functionCall);
    return { type: "call", id: String(id), name: String(name), input: args };
  }
  if (functionResponse !== undefined) {
    const { id, response } = fieldsOf(functionResponse);
    return { type: "result", call: String(id), content: contentOf(response), isError: "error" in fieldsOf(response) };
  }
  if (thought === true) return { type: "reasoning", text: textIn(text) ?? "" };
  if (type === "user" && /^\s*<session_context>/.test(textIn(text) ?? "")) return { type: "system", content: part };
  return { type, content: part };
}

/** A call is recorded when it has ended, with its result. */
function callUnits({ id, name, args, result, status }: Fields): readonly Unit[] {
  const call: Unit = { type: "call", id: String(id), name: String(name), input: args };
  if (result === undefined || result === null) return [call];
  return [call, { type: "result", call: String(id), content: resultOf(result, id), isError: status !== "success" }];
}

/** The result stands in the parts that the model is sent; in a snapshot, the first of a batch has those of all. */
function resultOf(result: unknown, id: unknown): unknown {
  const all = listIn(result);
  if (all.length === 0) return result;
  const own = all.filter((part) => fieldsOf(fieldsOf(part)["functionResponse"])["id"] === id);
  return (own.length > 0 ? own : all).map((part) => {
    const { functionResponse } = fieldsOf(part);
    return functionResponse === undefined ? part : contentOf(fieldsOf(functionResponse)["response"]);
  });
}

/** What a tool said, if that is all that its response has. */
function contentOf(response: unknown): unknown {
  const [[name, value] = [], ...rest] = Object.entries(fieldsOf(response));
  return rest.length === 0 && (name === "output" || name === "error") && typeof value === "string" ? value : response;
}
