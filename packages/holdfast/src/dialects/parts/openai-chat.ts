import type { FileContent, Part } from "../dialect.ts";
import { type FoundCall, type FoundResult, standIns } from "../order/pairing.ts";
import { saysError } from "../order/phrase.ts";
import { joinedText, parsedJson, type Shape, shapeOf, shapesOf, textOf } from "../shape.ts";
import { fileOf } from "./file.ts";
import { file, type Reading, reasoning, text, traffic } from "./part.ts";

export const openaiChatReading: Reading = {
  role: roleOf,
  text: (message) => {
    if (roleOf(message) === "tool") return "";
    const content = shapeOf(message)?.["content"];
    if (typeof content === "string") return content;
    return joinedText(shapesOf(content), textIn, true) || textOf(shapeOf(message)?.["refusal"]);
  },
  calls: callsOf,
  results: resultsOf,
  parts: partsOf,
};

export const ROLES = new Map<unknown, "system" | "user" | "assistant" | "tool">([
  ["system", "system"],
  ["developer", "system"],
  ["user", "user"],
  ["assistant", "assistant"],
  ["tool", "tool"],
  ["function", "tool"],
]);

export function roleOf(message: unknown): "system" | "user" | "assistant" | "tool" | "other" {
  return ROLES.get(shapeOf(message)?.["role"]) ?? "other";
}

function textIn({ type, text: words, refusal }: Shape): string | null {
  return type === "text" ? textOf(words) : type === "refusal" ? textOf(refusal) : null;
}

function callsOf(message: unknown): FoundCall[] {
  const shape = shapeOf(message);
  if (!shape || roleOf(message) !== "assistant") return [];
  const nextStandIn = standIns();
  const calls: FoundCall[] = shapesOf(shape["tool_calls"]).map((call) => {
    const id = textOf(call["id"]);
    const custom = shapeOf(call["custom"]);
    const target = custom ?? shapeOf(call["function"]);
    const name = textOf(target?.["name"]);
    const found = callOf(id || nextStandIn(name), name, () =>
      custom ? custom["input"] : readInput(target?.["arguments"]),
    );
    return id ? found : { ...found, idless: true };
  });
  const legacy = shapeOf(shape["function_call"]);
  if (legacy && calls.length === 0) {
    const name = textOf(legacy["name"]);
    calls.push({ id: nextStandIn(name), name, input: readInput(legacy["arguments"]), by: "agent", idless: true });
  }
  return calls;
}

/** Few look at the input, and parsing it costs more than the rest of the call. */
function callOf(id: string, name: string, read: () => unknown): FoundCall {
  return {
    id,
    name,
    get input() {
      return read();
    },
    by: "agent",
  };
}

/** Tool input that is JSON text; text that is not JSON, as it is. */
export function readInput(json: unknown): unknown {
  const parsed = typeof json === "string" ? parsedJson(json) : undefined;
  return parsed === undefined ? json : parsed;
}

function resultsOf(message: unknown): FoundResult[] {
  const shape = shapeOf(message);
  if (!shape || roleOf(message) !== "tool") return [];
  const call = textOf(shape["tool_call_id"]);
  if (call) return [{ call }];
  const name = textOf(shape["name"]);
  return [{ call: standIns()(name), idless: true, ...(name ? { name } : {}) }];
}

function partsOf(message: unknown): Part[] {
  const shape = shapeOf(message) ?? {};
  const calls = callsOf(message);
  const results = resultsOf(message);
  const next = traffic(calls, results);
  const said = contentParts(shape["content"]);
  if (results.length > 0) {
    const words = said.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
    const files = said.flatMap((part) => (part.type === "file" ? [part.file] : []));
    return next.result({ text: words, failed: saysError(words), files });
  }
  const refused = said.length === 0 ? text(textOf(shape["refusal"])) : [];
  return [...reasoning(thought(shape)), ...said, ...refused, ...calls.flatMap(next.call)];
}

/** Servers that show their reasoning do it under one of these names. */
function thought({ reasoning_content, reasoning: plain, reasoning_details }: Shape): string {
  const shown = textOf(reasoning_content) || textOf(plain);
  if (shown) return shown;
  return shapesOf(reasoning_details)
    .map(({ text: words, summary }) => textOf(words) || textOf(summary))
    .filter((words) => words !== "")
    .join("\n");
}

function contentParts(content: unknown): Part[] {
  if (typeof content === "string") return text(content);
  return shapesOf(content).flatMap((part): Part[] => {
    const found = fileIn(part);
    return found ? file(found) : text(textIn(part) ?? "");
  });
}

function fileIn(part: Shape): FileContent | null {
  const inner = shapeOf(part[textOf(part["type"])]) ?? {};
  switch (part["type"]) {
    case "image_url":
      return fileOf(inner["url"] ?? part["image_url"], "");
    case "input_audio":
      return fileOf(inner["data"], audioType(inner["format"]));
    case "file":
      return fileOf(inner["file_data"], "", inner["filename"]);
    default:
      return null;
  }
}

export function audioType(format: unknown): string {
  return format === "mp3" ? "audio/mpeg" : `audio/${textOf(format) || "wav"}`;
}
