import type { FileContent, Part } from "../dialect.ts";
import { type FoundCall, type FoundResult, standIns } from "../order/pairing.ts";
import { contentOf, joinedText, NONE, only, type Shape, shapeOf, shapesOf, textIn, textOf } from "../shape.ts";
import { fileOf } from "./file.ts";
import { file, printed, type Reading, type ResultContent, reasoning, text, traffic } from "./part.ts";

export const anthropicReading: Reading = {
  role: roleOf,
  text: (message) => joinedText(contentOf(message), textIn, roleOf(message) !== "assistant"),
  calls: callsOf,
  results: resultsOf,
  parts: partsOf,
};

/** A user message that holds results is not a prompt, whatever else it holds. */
export function roleOf(message: unknown): "system" | "user" | "assistant" | "tool" | "other" {
  const shape = shapeOf(message);
  const role = shape?.["role"];
  if (role === "user") return holdsResults(shape!["content"]) ? "tool" : "user";
  return role === "assistant" || role === "system" ? role : "other";
}

export const isResult = ({ type }: Shape): boolean => type === "tool_result";
export const isCall = ({ type }: Shape): boolean =>
  type === "tool_use" || type === "server_tool_use" || type === "mcp_tool_use";

/** The result of a server tool is in an assistant message (R8). */
export const isProviderResult = ({ type, tool_use_id }: Shape): boolean =>
  typeof tool_use_id === "string" && typeof type === "string" && type.endsWith("_tool_result");

function holdsResults(content: unknown): boolean {
  if (!Array.isArray(content)) return false;
  for (let i = 0; i < content.length; i++) if (shapeOf(content[i])?.["type"] === "tool_result") return true;
  return false;
}

function callsOf(message: unknown): FoundCall[] {
  if (roleOf(message) !== "assistant") return [];
  const blocks = shapesOf(shapeOf(message)?.["content"]);
  const found: FoundCall[] = [];
  let nextStandIn: ReturnType<typeof standIns> | null = null;
  for (let i = 0; i < blocks.length; i++) {
    const block = blocks[i]!;
    if (!isCall(block)) continue;
    const id = textOf(block["id"]);
    const name = textOf(block["name"]);
    const caller = callerOf(block);
    const by = block["type"] === "tool_use" ? "agent" : "provider";
    if (!id) nextStandIn ??= standIns();
    const call = { id: id || nextStandIn!(name), name, input: block["input"], by } as const;
    found.push(id && !caller ? call : { ...call, ...(id ? null : { idless: true }), ...(caller ? { caller } : null) });
  }
  return found;
}

/** In programmatic tool calling, the code execution that makes the call. */
export const callerOf = (block: Shape): string => textOf(shapeOf(block["caller"])?.["tool_id"]);

export function resultBlocks(message: unknown): readonly Shape[] {
  const role = roleOf(message);
  if (role !== "tool" && role !== "assistant") return NONE;
  return only(shapesOf(shapeOf(message)?.["content"]), role === "tool" ? isResult : isProviderResult);
}

function resultsOf(message: unknown): FoundResult[] {
  return resultBlocks(message).map(foundResult);
}

function foundResult(block: Shape): FoundResult {
  const call = textOf(block["tool_use_id"]);
  return call ? { call } : { call, idless: true };
}

function partsOf(message: unknown): Part[] {
  const next = traffic(callsOf(message), resultsOf(message));
  const isAnswer = roleOf(message) === "assistant" ? isProviderResult : isResult;
  return contentOf(message).flatMap((block): Part[] => {
    if (isCall(block)) return next.call();
    if (isAnswer(block)) return next.result(readResult(block));
    if (isFile(block)) return sourceFiles(block).flatMap(file);
    if (block["type"] === "search_result") return file(textFile(block["content"], block["title"]));
    return block["type"] === "thinking" ? reasoning(textOf(block["thinking"])) : text(textIn(block) ?? "");
  });
}

const isFile = ({ type }: Shape): boolean => type === "image" || type === "document";

function readResult({ content, is_error }: Shape): ResultContent {
  const inner = shapeOf(content);
  const failed = is_error === true || textOf(inner?.["type"]).endsWith("_error");
  if (typeof content === "string") return { text: content, failed };
  if (inner) return { text: printed(inner), json: inner, failed };
  const blocks = shapesOf(content);
  const texts = blocks.filter((block) => !isFile(block)).map((block) => textIn(block) ?? printed(withoutSeals(block)));
  return { text: texts.join("\n"), failed, files: blocks.filter(isFile).flatMap(sourceFiles) };
}

/** What only the provider can read says nothing to people. */
function withoutSeals(block: Shape): Shape {
  return Object.fromEntries(Object.entries(block).filter(([name]) => !name.startsWith("encrypted_")));
}

/** A document may consist of blocks of text and images. */
function sourceFiles(block: Shape): FileContent[] {
  const source = shapeOf(block["source"]);
  if (source?.["type"] !== "content") return [sourceFile(block)];
  const { content } = source;
  return [textFile(content, block["title"]), ...shapesOf(content).filter(isFile).map(sourceFile)];
}

function textFile(content: unknown, name: unknown): FileContent {
  const words = contentOf({ content }).flatMap((block) => textIn(block) ?? []);
  return fileOf({ type: "text", text: words.join("\n") }, "text/plain", name);
}

function sourceFile(block: Shape): FileContent {
  const source = shapeOf(block["source"]) ?? {};
  const type = source["media_type"] ?? (block["type"] === "image" ? "image" : undefined);
  const name = block["title"];
  if (source["type"] === "text") return fileOf({ type: "text", text: source["data"] }, "text/plain", name);
  return fileOf(source["data"] ?? source["url"], type, name);
}
