import { defined } from "../../defined.ts";
import type { ShownFile } from "./file.ts";
import { fileOf } from "./file.ts";
import { call, type Ids, type Part, type ProgressPart, type ResultContent, reasoning, result, text } from "./part.ts";
import { printed, type Shape, shapeOf, shapesOf, textOf } from "./shape.ts";

export function acpParts(message: Shape, { calls, results }: Ids): Part[] {
  const shape = message["sessionUpdate"] === undefined ? (shapeOf(message["update"]) ?? message) : message;
  const kind = shape["sessionUpdate"];
  if (kind === undefined && Array.isArray(shape["prompt"])) return shapesOf(shape["prompt"]).flatMap(blockParts);
  const content = shapeOf(shape["content"]);
  if (kind === "agent_thought_chunk") return reasoning(textOf(content?.["text"]));
  if (kind === "user_message_chunk" || kind === "agent_message_chunk") return content ? blockParts(content) : [];
  if (kind === "plan") return text(planText(shape));
  const made = calls.flatMap(call);
  if (results.length > 0) return [...made, ...result(results[0], readResult(shape))];
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
  if (block["type"] === "text") return text(textOf(block["text"]));
  const file = fileIn(block);
  return file ? [{ type: "file", file }] : [];
}

function fileIn(block: Shape): ShownFile | null {
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
  const files: ShownFile[] = [];
  for (const item of shapesOf(content)) {
    const block = shapeOf(item["content"]);
    if (item["type"] === "content" && block) {
      const file = fileIn(block);
      if (file) files.push(file);
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
    textOf(value) === ""
      ? []
      : textOf(value)
          .split("\n")
          .map((line) => `${mark}${line}`);
  return [textOf(path), ...lines(oldText, "- "), ...lines(newText, "+ ")].join("\n");
}
