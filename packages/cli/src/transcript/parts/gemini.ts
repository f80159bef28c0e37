import { fileOf } from "./file.ts";
import { call, type Ids, type Part, type ResultContent, reasoning, result, text } from "./part.ts";
import { printed, type Shape, shapeOf, shapesOf, textOf } from "./shape.ts";

export function geminiParts(content: Shape, { calls, results }: Ids): Part[] {
  let nextCall = 0;
  let nextResult = 0;
  const isModels = content["role"] === "model";
  return shapesOf(content["parts"]).flatMap((part): Part[] => {
    const inline = shapeOf(part["inlineData"]);
    if (inline) return [{ type: "file", file: fileOf(inline["data"], inline["mimeType"], inline["displayName"]) }];
    const stored = shapeOf(part["fileData"]);
    if (stored) return [{ type: "file", file: fileOf(stored["fileUri"], stored["mimeType"], stored["displayName"]) }];
    if (isModels && (part["functionCall"] || part["toolCall"] || part["executableCode"]))
      return call(calls[nextCall++]);
    const response = shapeOf(part["functionResponse"]);
    if (response && !isModels) return result(results[nextResult++], readResult(response));
    const own = shapeOf(part["toolResponse"]) ?? shapeOf(part["codeExecutionResult"]);
    if (own && isModels) return result(results[nextResult++], readProviderResult(own));
    const words = textOf(part["text"]);
    return part["thought"] === true ? reasoning(words) : text(words);
  });
}

/** `error` for what went wrong; `output`, `result`, or the whole object, for what came of it. */
function readResult({ response, parts }: Shape): ResultContent {
  const shape = shapeOf(response);
  const files = shapesOf(parts).flatMap((part) => {
    const inline = shapeOf(part["inlineData"]);
    return inline ? [fileOf(inline["data"], inline["mimeType"], inline["displayName"])] : [];
  });
  const error = shape?.["error"];
  if (error !== undefined && error !== null) return { text: printed(error), failed: true, files };
  const names = Object.keys(shape ?? {});
  const isWrapped = names.length === 1 && (names[0] === "output" || names[0] === "result");
  const value = isWrapped ? shape![names[0]!] : (shape ?? response);
  if (typeof value === "string") return { text: value, failed: false, files };
  return { text: value === null ? "" : printed(value), json: value, failed: false, files };
}

function readProviderResult(own: Shape): ResultContent {
  const outcome = textOf(own["outcome"]);
  const failed = outcome !== "" && outcome !== "OUTCOME_OK";
  return { text: textOf(own["output"]) || printed(own["response"] ?? ""), failed };
}
