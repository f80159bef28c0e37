import type { Unit } from "../../contract/record.ts";
import { type Fields, fieldsOf, textIn } from "../../contract/shapes.ts";

/**
 * What OpenCode says of a session: messages, and their parts, as objects of JSON. They are the same in the rows of its
 * database and in the files of older versions.
 */

/** A message, as far as its parts need to know. */
export interface MessageFacts {
  readonly role: "user" | "assistant" | null;
  /** Whether its text is the summary that stands for all that was before it. */
  readonly isSummary: boolean;
  readonly parent: string | null;
  /** Whether the conversation goes on after it. */
  readonly isLast: boolean;
  /** Parts that stay in view beside a summary. */
  readonly retained: readonly string[];
}

const PARTS: ReadonlySet<string> = new Set([
  ...["text", "reasoning", "tool", "file", "compaction", "subtask", "step-start", "step-finish", "snapshot", "patch"],
  ...["agent", "retry"],
]);

/** What OpenCode tells its model of a call that was running when it was killed. It keeps none of this. */
const INTERRUPTED = "[Tool execution was interrupted]";

export function messageFacts(value: Fields, isLast: boolean): MessageFacts {
  const { role, summary, finish, error, parentID } = value;
  const isSummary = summary === true && finish !== undefined && error === undefined;
  return {
    role: role === "user" || role === "assistant" ? role : null,
    isSummary,
    parent: textIn(parentID),
    isLast,
    retained: [],
  };
}

export function kindOfPart(value: Fields): string {
  const type = textIn(value["type"]) ?? "";
  return PARTS.has(type) ? type : "unknown";
}

export function unitsOfPart(value: Fields, message: MessageFacts): readonly Unit[] {
  switch (value["type"]) {
    case "text":
      return unitsOfText(value, message);
    case "reasoning":
      return [{ type: "reasoning", text: textIn(value["text"]) ?? "" }];
    case "file":
      return [{ type: "user", content: contentOfFile(value) }];
    case "subtask":
      return [{ type: "user", content: textIn(value["prompt"]) ?? "" }];
    case "tool":
      return unitsOfTool(value, message.isLast);
    default:
      return [];
  }
}

/** A call that was running when OpenCode was killed: it stays so for ever. */
export function isInterrupted(value: Fields): boolean {
  const status = fieldsOf(value["state"])["status"];
  return value["type"] === "tool" && (status === "running" || status === "pending");
}

/** A call that ended, without what came of it. */
export function lacksResult(value: Fields): boolean {
  const { status, output, error } = fieldsOf(value["state"]);
  if (value["type"] !== "tool") return false;
  if (status === "completed") return typeof output !== "string";
  return status === "error" ? typeof error !== "string" : !isInterrupted(value);
}

function unitsOfText({ text, ignored }: Fields, { role, isSummary, retained }: MessageFacts): readonly Unit[] {
  const content = textIn(text) ?? "";
  if (content === "" || ignored === true) return [];
  if (isSummary) return [{ type: "compaction", summary: content, retained }];
  return [role === "user" ? { type: "user", content } : { type: "assistant", content }];
}

function unitsOfTool({ tool, callID, state, id }: Fields, isLast: boolean): readonly Unit[] {
  const { input, output, error, metadata, status } = fieldsOf(state);
  const call = textIn(callID) ?? String(id);
  const units: Unit[] = [{ type: "call", id: call, name: String(tool), input }];
  const child = textIn(fieldsOf(metadata)["sessionId"]);
  if (child !== null) units.push({ type: "subagent", thread: child, call });
  const isError = status === "error";
  const content = isError ? textIn(error) : textIn(output);
  if (content !== null) units.push({ type: "result", call, content, isError });
  else if ((status === "running" || status === "pending") && !isLast)
    units.push({ type: "result", call, content: INTERRUPTED, isError: true });
  return units;
}

const DATA_URL = /^data:(image\/[\w.+-]+);base64,/;

function contentOfFile({ mime, filename, url }: Fields): unknown {
  const address = textIn(url) ?? "";
  const image = DATA_URL.exec(address);
  if (!image) return { type: "file", mime, filename, url };
  const source = { type: "base64", media_type: image[1], data: address.slice(image[0].length) };
  return [{ type: "image", source }];
}
