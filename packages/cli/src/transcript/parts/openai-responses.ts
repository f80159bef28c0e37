import type { ShownFile } from "./file.ts";
import { fileOf } from "./file.ts";
import { saysError } from "./openai-chat.ts";
import { call, type Ids, type Part, type ResultContent, reasoning, result, text } from "./part.ts";
import { printed, type Shape, shapeOf, shapesOf, textOf } from "./shape.ts";

export function openaiResponsesParts(item: Shape, { calls, results }: Ids): Part[] {
  const { type, content } = item;
  if (type === "mcp_approval_response") {
    const approval = textOf(item["approval_request_id"]);
    return [{ type: "approval", approval, approved: item["approve"] === true }];
  }
  if (type === "reasoning") {
    const words = [...shapesOf(item["summary"]), ...shapesOf(content)].map((part) => textOf(part["text"]));
    return reasoning(words.filter((one) => one !== "").join("\n\n"));
  }
  const told = results.length > 0 ? readResult(item) : null;
  if (calls.length > 0 || told) return [...calls.flatMap(call), ...(told ? result(results[0], told) : [])];
  return contentParts(content);
}

function contentParts(content: unknown): Part[] {
  if (typeof content === "string") return text(content);
  return shapesOf(content).flatMap((part): Part[] => {
    const file = fileIn(part);
    if (file) return [{ type: "file", file }];
    return text(part["type"] === "refusal" ? textOf(part["refusal"]) : textOf(part["text"]));
  });
}

function fileIn(part: Shape): ShownFile | null {
  switch (part["type"]) {
    case "input_image":
      return fileOf(part["image_url"], "image");
    case "input_file":
      return fileOf(part["file_data"] ?? part["file_url"], "", part["filename"]);
    case "input_audio": {
      const audio = shapeOf(part["input_audio"]) ?? {};
      return fileOf(audio["data"], `audio/${textOf(audio["format"]) || "wav"}`);
    }
    case "computer_screenshot":
      return fileOf(part["image_url"], "image");
    default:
      return null;
  }
}

/** Also of the provider's calls, which hold their own result. */
function readResult(item: Shape): ResultContent {
  const failed = item["status"] === "failed" || item["status"] === "incomplete";
  if (item["type"] === "image_generation_call" && typeof item["result"] === "string") {
    return { text: "", failed, files: [fileOf(item["result"], "image/png")] };
  }
  const error = item["error"];
  if (error !== undefined && error !== null)
    return { text: textOf(shapeOf(error)?.["message"]) || printed(error), failed: true };
  const output = item["output"] ?? item["outputs"] ?? item["results"] ?? item["result"] ?? item["tools"];
  if (output === undefined || output === null) return { text: "", failed };
  if (typeof output === "string") return { text: output, failed: failed || saysError(output) };
  const shape = shapeOf(output);
  const file = shape && fileIn(shape);
  if (file) return { text: "", failed, files: [file] };
  return { ...list(output), failed: failed || exitedBadly(output) };
}

function list(output: unknown): Pick<ResultContent, "text" | "files" | "json"> {
  const texts: string[] = [];
  const files: ShownFile[] = [];
  if (!Array.isArray(output)) return { text: printed(output), json: output };
  for (const part of shapesOf(output)) {
    const file = fileIn(part);
    const { stdout, stderr, logs } = part;
    if (file) files.push(file);
    else if (typeof part["text"] === "string") texts.push(part["text"]);
    else if (typeof stdout === "string" || typeof stderr === "string") texts.push(textOf(stdout) + textOf(stderr));
    else texts.push(typeof logs === "string" ? logs : printed(part));
  }
  return { text: texts.join("\n"), files };
}

function exitedBadly(output: unknown): boolean {
  return shapesOf(output).some((part) => {
    const outcome = shapeOf(part["outcome"]);
    return (
      outcome?.["type"] === "timeout" || (typeof outcome?.["exit_code"] === "number" && outcome["exit_code"] !== 0)
    );
  });
}
