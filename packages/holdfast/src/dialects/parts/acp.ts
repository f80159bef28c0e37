import { defined } from "../../defined.ts";
import type { FileContent, Part, ProgressPart } from "../dialect.ts";
import type { FoundCall, FoundResult } from "../order/pairing.ts";
import { joinedText, type Shape, shapeOf, shapesOf, textIn, textOf } from "../shape.ts";
import { fileOf } from "./file.ts";
import { file, printed, type Reading, type ResultContent, reasoning, text, traffic } from "./part.ts";

export const CHUNKS = new Map<unknown, "user" | "assistant">([
  ["user_message_chunk", "user"],
  ["agent_message_chunk", "assistant"],
  ["agent_thought_chunk", "assistant"],
]);

const OF_THE_AGENT = new Set<unknown>(["tool_call", "tool_call_update", "plan"]);

export const acpReading: Reading = {
  role: (message) => {
    const shape = bareOf(message);
    if (!shape) return "other";
    if (isPrompt(shape)) return "user";
    if (shape["sessionUpdate"] === "tool_call_update" && isEnd(shape)) return "tool";
    const chunk = CHUNKS.get(shape["sessionUpdate"]);
    return chunk ?? (OF_THE_AGENT.has(shape["sessionUpdate"]) || callIn(shape) ? "assistant" : "other");
  },
  text: (message) => {
    const shape = bareOf(message);
    if (shape && isPrompt(shape)) return joinedText(shapesOf(shape["prompt"]), textIn, true);
    const kind = shape?.["sessionUpdate"];
    const content = shapeOf(shape?.["content"]);
    return !content || !CHUNKS.has(kind) || kind === "agent_thought_chunk" ? "" : (textIn(content) ?? "");
  },
  calls: callsOf,
  results: resultsOf,
  parts: partsOf,
};

/** Removes the envelope that names the session. */
export function bareOf(message: unknown): Shape | null {
  const shape = shapeOf(message);
  return shape && shape["sessionUpdate"] === undefined ? (shapeOf(shape["update"]) ?? shape) : shape;
}

export const isPrompt = ({ sessionUpdate, prompt }: Shape): boolean =>
  sessionUpdate === undefined && Array.isArray(prompt);

/** The call that a message is about, with everything the message says about it. */
export function callIn(shape: Shape): Shape | null {
  const { sessionUpdate, toolCall } = shape;
  const call =
    sessionUpdate === "tool_call" || sessionUpdate === "tool_call_update"
      ? shape
      : sessionUpdate === undefined
        ? shapeOf(toolCall)
        : null;
  return call && textOf(call["toolCallId"]) ? call : null;
}

export function isEnd({ status }: Shape): boolean {
  return status === "completed" || status === "failed";
}

/**
 * A call is made where it is announced, or where permission for it is requested. An update alone makes no call: the
 * call may have been announced earlier. Permission that was requested may have been given: the answer is no message of
 * the conversation, so a requested call counts like any other, and nobody claims that it did not run.
 */
function callsOf(message: unknown): FoundCall[] {
  const shape = bareOf(message);
  const call = shape && callIn(shape);
  if (!call || shape["sessionUpdate"] === "tool_call_update") return [];
  const id = textOf(call["toolCallId"]);
  const name = textOf(call["name"]) || textOf(call["title"]) || textOf(call["kind"]) || id;
  const isRequest = shape["sessionUpdate"] === undefined;
  return [{ id, name, input: call["rawInput"], by: "agent", ...(isRequest ? { requested: true } : {}) }];
}

function resultsOf(message: unknown): FoundResult[] {
  const shape = bareOf(message);
  const call = shape && callIn(shape);
  return call && shape["sessionUpdate"] !== undefined && isEnd(call) ? [{ call: textOf(call["toolCallId"]) }] : [];
}

function partsOf(message: unknown): Part[] {
  const shape = bareOf(message) ?? {};
  const kind = shape["sessionUpdate"];
  if (isPrompt(shape)) return shapesOf(shape["prompt"]).flatMap(blockParts);
  const content = shapeOf(shape["content"]);
  if (kind === "agent_thought_chunk") return reasoning(textOf(content?.["text"]));
  if (CHUNKS.has(kind)) return content ? blockParts(content) : [];
  if (kind === "plan") return text(planText(shape));
  const calls = callsOf(message);
  const results = resultsOf(message);
  const next = traffic(calls, results);
  const made = calls.flatMap(next.call);
  if (results.length > 0) return [...made, ...next.result(readResult(shape))];
  if (kind === "tool_call_update") return [progress(shape)];
  // A call may be announced as running already.
  return kind === "tool_call" && shape["status"] === "in_progress" ? [...made, progress(shape)] : made;
}

function progress(update: Shape): ProgressPart {
  const name = textOf(update["name"]) || textOf(update["title"]);
  const { rawInput } = update;
  return {
    type: "progress",
    call: textOf(update["toolCallId"]),
    ...(name ? { name } : {}),
    ...defined({ input: rawInput }),
    text: readResult(update).text,
    running: update["status"] === "in_progress",
  };
}

function planText({ entries }: Shape): string {
  return shapesOf(entries)
    .map(({ content, status }) => `${status === "completed" ? "[x]" : "[ ]"} ${textOf(content)}`)
    .join("\n");
}

function blockParts(block: Shape): Part[] {
  const found = fileIn(block);
  return found ? file(found) : text(textIn(block) ?? "");
}

function fileIn(block: Shape): FileContent | null {
  const { type } = block;
  if (type === "image" || type === "audio") return fileOf(block["data"] || block["uri"], block["mimeType"]);
  if (type === "resource_link") return fileOf(block["uri"], block["mimeType"], block["name"]);
  const resource = type === "resource" ? shapeOf(block["resource"]) : null;
  if (!resource) return null;
  if (typeof resource["text"] === "string")
    return fileOf({ type: "text", text: resource["text"] }, resource["mimeType"] ?? "text/plain", resource["uri"]);
  return fileOf(resource["blob"], resource["mimeType"], resource["uri"]);
}

function readResult({ content, rawOutput, status }: Shape): ResultContent {
  const failed = status === "failed";
  const texts: string[] = [];
  const files: FileContent[] = [];
  for (const item of shapesOf(content)) {
    const block = shapeOf(item["content"]);
    if (item["type"] === "content" && block) {
      const found = fileIn(block);
      if (found) files.push(found);
      else texts.push(textOf(block["text"]));
    } else if (item["type"] === "diff") texts.push(diffText(item));
  }
  if (texts.length === 0 && files.length === 0 && rawOutput !== undefined) {
    return typeof rawOutput === "string"
      ? { text: rawOutput, failed }
      : { text: printed(rawOutput), json: rawOutput, failed };
  }
  return { text: texts.join("\n"), failed, files };
}

function diffText({ path, oldText, newText }: Shape): string {
  const lines = (value: unknown, mark: string): string[] =>
    textOf(value) === "" ? [] : [mark + textOf(value).replaceAll("\n", `\n${mark}`)];
  return [textOf(path), ...lines(oldText, "- "), ...lines(newText, "+ ")].join("\n");
}
