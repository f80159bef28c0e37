import type { FileContent, Part } from "../dialect.ts";
import { type FoundCall, type FoundResult, standIns } from "../order/pairing.ts";
import { joinedText, type Shape, shapeOf, shapesOf, textOf } from "../shape.ts";
import { fileOf } from "./file.ts";
import { file, printed, type Reading, type ResultContent, reasoning, text, traffic } from "./part.ts";

export const geminiReading: Reading = {
  role: roleOf,
  text: (content) => {
    const textIn = (part: Shape): string | null => (isThought(part) ? null : textOf(part["text"]));
    return joinedText(contentParts(content), textIn, roleOf(content) !== "assistant");
  },
  calls: callsOf,
  results: resultsOf,
  parts: partsOf,
};

export const ROLES = new Set<unknown>(["user", "model", "function", "tool"]);

export function contentParts(content: unknown): readonly Shape[] {
  return shapesOf(shapeOf(content)?.["parts"]);
}

/** A missing role means the user's. User content that holds results is not a prompt, whatever else it holds. */
export function roleOf(content: unknown): "user" | "assistant" | "tool" | "other" {
  const shape = shapeOf(content);
  if (!shape || (shape["role"] !== undefined && !ROLES.has(shape["role"]))) return "other";
  if (shape["role"] === "model") return "assistant";
  return contentParts(content).some(isResult) ? "tool" : "user";
}

export const isThought = (part: Shape): boolean => part["thought"] === true;
export const callIn = (part: Shape): Shape | null => shapeOf(part["functionCall"]);
export const resultIn = (part: Shape): Shape | null => shapeOf(part["functionResponse"]);
export const isResult = (part: Shape): boolean => resultIn(part) !== null;
export const providerCallIn = (part: Shape): Shape | null =>
  shapeOf(part["toolCall"]) ?? shapeOf(part["executableCode"]);
export const providerResultIn = (part: Shape): Shape | null =>
  shapeOf(part["toolResponse"]) ?? shapeOf(part["codeExecutionResult"]);

/** Code execution may lack an id; its result then follows it directly. */
function providerName(part: Shape): string {
  const server = shapeOf(part["toolCall"]) ?? shapeOf(part["toolResponse"]);
  return server ? textOf(server["toolType"]) || "server tool" : "code execution";
}

function callsOf(content: unknown): FoundCall[] {
  if (roleOf(content) !== "assistant") return [];
  const nextStandIn = standIns();
  const found: FoundCall[] = [];
  for (const part of contentParts(content)) {
    const call = callIn(part);
    const server = call ? null : providerCallIn(part);
    if (call) {
      const id = textOf(call["id"]);
      const name = textOf(call["name"]);
      const idless = id ? {} : { idless: true as const };
      found.push({ id: id || nextStandIn(name), name, input: call["args"] ?? {}, by: "agent", ...idless });
    } else if (server) {
      const name = providerName(part);
      const input = server["args"] ?? server["code"];
      found.push({ id: textOf(server["id"]) || nextStandIn(name), name, input, by: "provider" });
    }
  }
  return found;
}

function resultsOf(content: unknown): FoundResult[] {
  const role = roleOf(content);
  const nextStandIn = standIns();
  if (role === "assistant") {
    return contentParts(content)
      .filter(providerResultIn)
      .map((part) => ({ call: textOf(providerResultIn(part)!["id"]) || nextStandIn(providerName(part)) }));
  }
  return contentParts(content)
    .filter((part) => role === "tool" && isResult(part))
    .map((part) => {
      const result = resultIn(part)!;
      const name = textOf(result["name"]);
      const id = textOf(result["id"]);
      const known = name ? { name } : {};
      return id ? { call: id, ...known } : { call: nextStandIn(name), idless: true, ...known };
    });
}

function partsOf(content: unknown): Part[] {
  const next = traffic(callsOf(content), resultsOf(content));
  const isModels = roleOf(content) === "assistant";
  return contentParts(content).flatMap((part): Part[] => {
    const made = isModels && (callIn(part) ?? providerCallIn(part)) ? next.call() : [];
    const answer = isModels ? providerResultIn(part) : resultIn(part);
    const told = answer ? next.result(isModels ? readProviderResult(answer) : readResult(answer)) : [];
    if (made.length > 0 || answer) return [...made, ...told];
    const found = fileIn(part);
    if (found) return file(found);
    return isThought(part) ? reasoning(textOf(part["text"])) : text(textOf(part["text"]));
  });
}

function fileIn(part: Shape): FileContent | null {
  const inline = shapeOf(part["inlineData"]);
  if (inline) return fileOf(inline["data"], inline["mimeType"], inline["displayName"]);
  const stored = shapeOf(part["fileData"]);
  return stored && fileOf(stored["fileUri"], stored["mimeType"], stored["displayName"]);
}

/** `error` for what went wrong; `output`, `result`, or the whole object, for what came of it. */
function readResult({ response, parts }: Shape): ResultContent {
  const shape = shapeOf(response);
  const files = shapesOf(parts).flatMap((part) => (shapeOf(part["inlineData"]) ? [fileIn(part)!] : []));
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
