import { type Fields, fieldsOf, textIn, timeIn } from "../../contract/shapes.ts";
import { isMessage, unitsOfMessage } from "../../document/anthropic.ts";
import type { DocumentRules } from "../../document/parse-document.ts";
import type { DocumentFormat } from "../../document/read-document.ts";
import type { Understood } from "../../jsonl/read-lines.ts";

/**
 * What Cline keeps. The command: `{version, sessionId, …, messages, system_prompt}`. The extension of editors: a list
 * of messages for the model, and a list of what was shown to the user. Both write the whole file each time.
 */

function understandMessage(value: unknown): Understood | null {
  if (!isMessage(value)) return null;
  const fields = fieldsOf(value);
  const units = unitsOfMessage(fields);
  // Messages of the extension have no id: those of their calls and results are as good.
  const named = units.find((unit) => unit.type === "call" || unit.type === "result");
  const own = named?.type === "call" ? `call ${named.id}` : named?.type === "result" ? `result ${named.call}` : null;
  return { kind: String(fields["role"]), id: textIn(fields["id"]) ?? own, at: timeIn(fields["ts"]), units };
}

/** `<id>.messages.json` of the command. */
export const sessionFormat: DocumentFormat = {
  list: "messages",
  isRecord: isMessage,
  understand: understandMessage,
};

/** `api_conversation_history.json` of the extension. */
export const taskFormat: DocumentFormat = { list: null, isRecord: isMessage, understand: understandMessage };

/** `ui_messages.json` of the extension: what is in it repeats what the model was told. */
export const screenFormat: DocumentFormat = {
  list: null,
  isRecord: isScreenMessage,
  understand: (value) =>
    isScreenMessage(value)
      ? { kind: `shown ${String(fieldsOf(value)["type"])}`, at: timeIn(fieldsOf(value)["ts"]) }
      : null,
};

export function isScreenMessage(value: unknown): boolean {
  const { ts, type } = fieldsOf(value);
  return typeof ts === "number" && (type === "say" || type === "ask");
}

/** `state/taskHistory.json` of the extension. */
export const historyRules: DocumentRules = {
  list: null,
  isRecord(value) {
    const { id, ts, task } = fieldsOf(value);
    return typeof id === "string" && typeof ts === "number" && typeof task === "string";
  },
};

/** A message of the conversation, as another place has it. */
export interface TwinMessage {
  readonly role: "user" | "assistant";
  /** What was said in it, to recognize it. */
  readonly texts: readonly string[];
  readonly calls: readonly string[];
  /** Whether all of it is there. */
  readonly isWhole: boolean;
  readonly message: Fields;
}

/** What the user was shown, as messages for the model: calls are only there as text. */
export function messagesOfScreen(shown: readonly unknown[]): TwinMessage[] {
  const messages: TwinMessage[] = [];
  let waiting: string[] = [];
  const add = (role: "user" | "assistant", text: string, isWhole: boolean): void => {
    const last = messages.at(-1);
    if (text.trim() === "") return;
    if (last?.role === role) messages.pop();
    const texts = last?.role === role ? [...last.texts, text] : [text];
    const content = texts.map((each) => ({ type: "text", text: each }));
    const all = isWhole && (last?.role !== role || last.isWhole);
    messages.push({ role, texts, calls: [], isWhole: all, message: { role, content } });
  };
  for (const each of shown) {
    const fields = fieldsOf(each);
    const text = textIn(fields["text"]) ?? "";
    const kind = textIn(fields["say"] ?? fields["ask"]) ?? "";
    if (fields["partial"] === true) continue;
    if (kind === "api_req_started") {
      // It has the whole request: the task, feedback and results.
      const request = textIn(fieldsOf(parsed(text))["request"]) ?? "";
      if (request !== "") add("user", request, true);
      else for (const said of waiting) add("user", said, false);
      waiting = [];
    } else if (kind === "task" || (kind === "text" && messages.length === 0)) waiting.push(`<task>\n${text}\n</task>`);
    else if (kind === "user_feedback") waiting.push(`<feedback>\n${text}\n</feedback>`);
    else if (kind === "command_output") waiting.push(text);
    else if (kind === "text" || kind === "completion_result") add("assistant", text, kind === "text");
    else if (kind === "followup" || kind === "plan_mode_respond") {
      const { question, response } = fieldsOf(parsed(text));
      add("assistant", textIn(question ?? response) ?? text, false);
    } else if (kind === "tool" || kind === "command" || kind === "use_mcp_server")
      add("assistant", `[${kind}] ${text}`, false);
  }
  for (const said of waiting) add("user", said, false);
  return messages;
}

const TYPES: ReadonlySet<string> = new Set([
  "text",
  "thinking",
  "redacted_thinking",
  "tool_use",
  "tool_result",
  "image",
  "file",
]);
/** The index trims what it has, and leaves the names of fields out. */
const OF_INDEX = "[holdfast doctor took this result from Cline's search index.]";
const LOST_INPUT = "The input of this call was lost. Cline's search index had these values of it.";

/** A row of the search index: the words of a message line by line, each block behind a line with its type. */
export function messageOfIndex(role: "user" | "assistant", content: string): TwinMessage {
  const blocks: { readonly type: string; readonly lines: string[] }[] = [];
  for (const line of content.split("\n"))
    if (TYPES.has(line)) blocks.push({ type: line, lines: [] });
    else blocks.at(-1)?.lines.push(line);
  const made = blocks.map(({ type, lines }): Fields => {
    if (type === "text") return { type, text: lines.join("\n") };
    const [id, name, ...values] = lines;
    if (type === "tool_use") return { type, id, name, input: { holdfast_doctor: LOST_INPUT, values } };
    // Of others, the index has the kind alone.
    return type === "tool_result"
      ? { type, tool_use_id: id, name, content: `${values.join("\n")}\n${OF_INDEX}` }
      : { type };
  });
  return {
    role,
    texts: made.flatMap(({ text }) => (typeof text === "string" ? [text] : [])),
    calls: made.flatMap(({ id, tool_use_id }) => textIn(id ?? tool_use_id) ?? []),
    isWhole: made.every(({ type }) => type === "text" || type === "tool_result"),
    message: { role, content: made },
  };
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
