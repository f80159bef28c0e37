import type { FileContent, Part } from "../dialect.ts";
import { isMessage, OUTPUT_OF, OUTPUTS, ROLES } from "../openai-responses-items.ts";
import { type FoundCall, type FoundResult, standIn } from "../order/pairing.ts";
import { saysError } from "../order/phrase.ts";
import { joinedText, type Shape, shapeOf, shapesOf, textOf } from "../shape.ts";
import { fileOf } from "./file.ts";
import { audioType, readInput } from "./openai-chat.ts";
import { file, printed, type Reading, type ResultContent, reasoning, text, traffic } from "./part.ts";

export const openaiResponsesReading: Reading = {
  role: roleOf,
  text: (item) => {
    const content = isMessage(item) ? shapeOf(item)?.["content"] : undefined;
    if (typeof content === "string") return content;
    return joinedText(shapesOf(content), textIn, roleOf(item) !== "assistant");
  },
  calls: callsOf,
  results: resultsOf,
  parts: partsOf,
};

/**
 * Calls that require a screenshot or a list of tools: their outputs cannot express an error. Such a call is named after
 * its type.
 */
export const UNSPEAKABLE = new Set(["computer_call", "tool_search_call"]);

/** Calls that the provider runs itself, and that hold their own result. */
export const PROVIDER_CALLS = new Set<unknown>([
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "image_generation_call",
  "mcp_call",
]);

const UNFINISHED = new Set<unknown>(["in_progress", "searching", "interpreting", "generating", "calling", "queued"]);

/** Everything the model made is the assistant's, including its provider's own results. */
export function roleOf(item: unknown): "system" | "user" | "assistant" | "tool" | "other" {
  const shape = shapeOf(item);
  if (!shape) return "other";
  const { type, role, execution } = shape;
  if (isMessage(item)) return ROLES.get(role) ?? "other";
  if (type === "tool_search_output") return execution === "client" ? "tool" : "assistant";
  // The output of a shell that the provider runs is in the response, with an id.
  if (type === "shell_call_output" && typeof shape["id"] === "string") return "assistant";
  if (OUTPUTS.has(type)) return "tool";
  if (type === "mcp_approval_response") return "user";
  if (type === "additional_tools" || type === "compaction_trigger") return "system";
  // A reference points to what only the server has (R4).
  return typeof type === "string" && type !== "item_reference" ? "assistant" : "other";
}

export function textIn({ type, text, refusal }: Shape): string | null {
  if (type === "refusal") return textOf(refusal);
  return type === "input_text" || type === "output_text" || type === "text" ? textOf(text) : null;
}

function callsOf(item: unknown): FoundCall[] {
  const shape = shapeOf(item);
  if (!shape) return [];
  const { type, environment, execution } = shape;
  if (OUTPUT_OF.has(type)) {
    const isHosted = shapeOf(environment)?.["type"] === "container_reference";
    const isServers = type === "tool_search_call" && execution !== "client";
    const id = textOf(shape["call_id"]) || (type === "local_shell_call" || isServers ? textOf(shape["id"]) : "");
    const name = UNSPEAKABLE.has(textOf(type)) ? textOf(type) : textOf(shape["name"]) || textOf(type);
    const caller = textOf(shapeOf(shape["caller"])?.["caller_id"]);
    return [
      {
        id: id || standIn(name, 0),
        name,
        // Few look at it, and parsing it costs more than the rest of the call.
        get input() {
          return inputOf(shape);
        },
        ...(isHosted || isServers ? { by: "provider", atOnce: true } : { by: "agent" }),
        ...(id ? {} : { idless: true }),
        ...(caller ? { caller } : {}),
      },
    ];
  }
  const id = textOf(type === "program" ? shape["call_id"] : shape["id"]);
  const name = textOf(shape["name"]) || textOf(type);
  const found = { id, name, input: inputOf(shape), by: "provider" } as const;
  if (type === "mcp_approval_request") return [{ ...found, awaiting: true }];
  return id && (type === "program" || PROVIDER_CALLS.has(type)) ? [found] : [];
}

/** Where each kind of call holds its input, besides `arguments`, the only one that is JSON text. */
const INPUTS = ["input", "action", "actions", "operation", "code", "queries", "revised_prompt"];

function inputOf(item: Shape): unknown {
  const { arguments: text } = item;
  if (text !== undefined && text !== null) return readInput(text);
  const name = INPUTS.find((one) => item[one] !== undefined && item[one] !== null);
  return name === undefined ? undefined : item[name];
}

export function resultsOf(item: unknown): FoundResult[] {
  const shape = shapeOf(item);
  if (!shape) return [];
  const { type } = shape;
  if (OUTPUTS.has(type) || type === "program_output") {
    const call = textOf(shape["call_id"]) || textOf(shape["id"]);
    return [call ? { call } : { call, idless: true }];
  }
  if (type === "mcp_approval_response") return [{ call: textOf(shape["approval_request_id"]) }];
  // The provider's call holds its own result, once there is one.
  return PROVIDER_CALLS.has(type) && textOf(shape["id"]) && !UNFINISHED.has(shape["status"])
    ? [{ call: textOf(shape["id"]) }]
    : [];
}

function partsOf(item: unknown): Part[] {
  const shape = shapeOf(item) ?? {};
  const { type, content } = shape;
  if (type === "mcp_approval_response") {
    const approval = textOf(shape["approval_request_id"]);
    return [{ type: "approval", approval, approved: shape["approve"] === true }];
  }
  if (type === "reasoning") {
    const words = [...shapesOf(shape["summary"]), ...shapesOf(content)].map((part) => textOf(part["text"]));
    return reasoning(words.filter((one) => one !== "").join("\n\n"));
  }
  const calls = callsOf(item);
  const results = resultsOf(item);
  const next = traffic(calls, results);
  if (calls.length + results.length > 0) {
    return [...calls.flatMap(next.call), ...results.flatMap(() => next.result(readResult(shape)))];
  }
  if (typeof content === "string") return text(content);
  return shapesOf(content).flatMap((part) => {
    const found = fileIn(part);
    return found ? file(found) : text(textIn(part) ?? textOf(part["text"]));
  });
}

function fileIn(part: Shape): FileContent | null {
  switch (part["type"]) {
    case "input_image":
    case "computer_screenshot":
      return fileOf(part["image_url"], "image");
    case "input_file":
      return fileOf(part["file_data"] ?? part["file_url"], "", part["filename"]);
    case "input_audio": {
      const audio = shapeOf(part["input_audio"]) ?? {};
      return fileOf(audio["data"], audioType(audio["format"]));
    }
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
  const files: FileContent[] = [];
  if (!Array.isArray(output)) return { text: printed(output), json: output };
  for (const part of shapesOf(output)) {
    const found = fileIn(part);
    const { stdout, stderr, logs } = part;
    if (found) files.push(found);
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
