import type { ShownFile } from "./file.ts";
import { fileOf } from "./file.ts";
import { call, type Ids, type Part, type ResultContent, reasoning, result, text } from "./part.ts";
import { printed, type Shape, shapeOf, shapesOf, textOf } from "./shape.ts";

export function anthropicParts({ content, role }: Shape, { calls, results }: Ids): Part[] {
  if (typeof content === "string") return text(content);
  let nextCall = 0;
  let nextResult = 0;
  return shapesOf(content).flatMap((block): Part[] => {
    const type = textOf(block["type"]);
    if (type === "text") return text(textOf(block["text"]));
    if (type === "thinking") return reasoning(textOf(block["thinking"]));
    if (type === "image" || type === "document") return [{ type: "file", file: sourceFile(block) }];
    if (type === "tool_use" || type === "server_tool_use" || type === "mcp_tool_use") return call(calls[nextCall++]);
    if (type === "tool_result" && role === "user") return result(results[nextResult++], readResult(block));
    const isProviders = type.endsWith("_tool_result") && typeof block["tool_use_id"] === "string";
    return isProviders && role === "assistant" ? result(results[nextResult++], readResult(block)) : [];
  });
}

function readResult({ content, is_error }: Shape): ResultContent {
  const inner = shapeOf(content);
  const failed = is_error === true || textOf(inner?.["type"]).endsWith("_error");
  if (typeof content === "string") return { text: content, failed };
  if (inner) return { text: printed(inner), json: inner, failed };
  const blocks = shapesOf(content);
  const texts: string[] = [];
  const files: ShownFile[] = [];
  for (const block of blocks) {
    if (block["type"] === "text") texts.push(textOf(block["text"]));
    else if (block["type"] === "image" || block["type"] === "document") files.push(sourceFile(block));
    else texts.push(printed(withoutSeals(block)));
  }
  return { text: texts.join("\n"), failed, files };
}

/** What only the provider can read says nothing to people. */
function withoutSeals(block: Shape): Shape {
  return Object.fromEntries(Object.entries(block).filter(([name]) => !name.startsWith("encrypted_")));
}

function sourceFile(block: Shape): ShownFile {
  const source = shapeOf(block["source"]) ?? {};
  const type = source["media_type"] ?? (block["type"] === "image" ? "image" : undefined);
  const name = block["title"];
  if (source["type"] === "text") return fileOf({ type: "text", text: source["data"] }, "text/plain", name);
  return fileOf(source["data"] ?? source["url"], type, name);
}
