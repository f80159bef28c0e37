import { fileOf } from "./file.ts";
import { call, type Ids, type Part, type ResultContent, reasoning, result, text } from "./part.ts";
import { printed, type Shape, shapeOf, shapesOf, textOf } from "./shape.ts";

export function aiSdkParts(message: Shape, { calls, results }: Ids): Part[] {
  const { content } = message;
  if (typeof content === "string") return text(content);
  let nextCall = 0;
  let nextResult = 0;
  return shapesOf(content).flatMap((part): Part[] => {
    switch (part["type"]) {
      case "text":
        return text(textOf(part["text"]));
      case "reasoning":
        return reasoning(textOf(part["text"]));
      case "image":
        return [{ type: "file", file: fileOf(part["image"], part["mediaType"] ?? "image") }];
      case "file":
        return [{ type: "file", file: fileOf(part["data"], part["mediaType"], part["filename"]) }];
      case "tool-call":
        return call(calls[nextCall++]);
      case "tool-result":
        return result(results[nextResult++], readResult(shapeOf(part["output"]) ?? {}));
      case "tool-approval-response": {
        const reason = textOf(part["reason"]);
        const approval = textOf(part["approvalId"]);
        return [{ type: "approval", approval, approved: part["approved"] === true, ...(reason ? { reason } : {}) }];
      }
      default:
        return [];
    }
  });
}

function readResult({ type, value, reason }: Shape): ResultContent {
  if (type === "execution-denied") return { text: textOf(reason) || "Denied.", failed: true, denied: true };
  const failed = type === "error-text" || type === "error-json";
  if (type !== "content") {
    return typeof value === "string" ? { text: value, failed } : { text: printed(value), json: value, failed };
  }
  const parts = shapesOf(value);
  const texts = parts.flatMap((part) => (part["type"] === "text" ? [textOf(part["text"])] : []));
  const files = parts.flatMap((part) => {
    const kind = textOf(part["type"]);
    if (!/^(file|image|media)/.test(kind)) return [];
    const type = part["mediaType"] ?? (kind.startsWith("image") ? "image" : undefined);
    return [fileOf(part["data"] ?? part["url"], type, part["filename"])];
  });
  return { text: texts.join("\n"), failed: false, files };
}
