import { quote, type Shape, shapeOf, textOf } from "./shape.ts";

/** The items of the Responses API, and what each requires. */

/** Calls that the agent answers, each with the type of its answer. */
export const OUTPUT_OF = new Map<unknown, string>([
  ["function_call", "function_call_output"],
  ["custom_tool_call", "custom_tool_call_output"],
  ["local_shell_call", "local_shell_call_output"],
  ["shell_call", "shell_call_output"],
  ["apply_patch_call", "apply_patch_call_output"],
  ["computer_call", "computer_call_output"],
  ["tool_search_call", "tool_search_output"],
]);
export const OUTPUTS = new Set<unknown>(OUTPUT_OF.values());

export function check(item: unknown): string | null {
  const shape = shapeOf(item);
  if (!shape) return "an item must be an object with a type or a role";
  const { type, role, content } = shape;
  if (isMessage(item)) {
    if (!ROLES.has(role)) return `role is ${quote(role)}`;
    if (typeof content === "string") return null;
    if (!Array.isArray(content)) return "content is neither a string nor a list of parts";
    for (const [index, part] of content.entries()) {
      const kind = shapeOf(part)?.["type"];
      if (typeof kind !== "string") return `content[${index}] is not a part with a type`;
      if (FOREIGN.has(kind)) return `content[${index}] is of the type "${kind}", which belongs to another dialect`;
    }
    return null;
  }
  if (typeof type === "string") return checkTyped(shape, type);
  return typeof shape["id"] === "string" ? null : "an item needs a type, or a role and content";
}

/** Types that other SDKs give messages and items. Read as items of this API, they would count as the assistant's. */
const FOREIGN_TYPES = new Set([
  "human",
  "ai",
  "user",
  "assistant",
  "system",
  "developer",
  "tool",
  "function",
  "generic",
  "remove",
  "constructor",
]);

/** Types that may lack the id that links a call and its output: they are the server's, or use another id. */
const OTHER_IDS = new Set(["local_shell_call", "local_shell_call_output", "tool_search_call", "tool_search_output"]);

function checkTyped(item: Shape, type: string): string | null {
  if (FOREIGN_TYPES.has(type) || type.endsWith("_result"))
    return `its type is ${quote(type)}, which belongs to another SDK`;
  if (type === "mcp_approval_response" && !textOf(item["approval_request_id"])) return "approval_request_id is missing";
  const isBound = OUTPUT_OF.has(type) || OUTPUTS.has(type);
  if (isBound && !OTHER_IDS.has(type) && !textOf(item["call_id"])) {
    return "callId" in item ? "call_id is missing: callId belongs to another SDK" : "call_id is missing";
  }
  const isCalled = type === "function_call" || type === "custom_tool_call";
  return isCalled && !textOf(item["name"]) ? "name is missing" : null;
}

export const ROLES = new Map<unknown, "system" | "user" | "assistant">([
  ["system", "system"],
  ["developer", "system"],
  ["user", "user"],
  ["assistant", "assistant"],
]);
const FOREIGN = new Set(["tool_use", "tool_result", "tool-call", "tool-result", "image_url"]);

export function isMessage(item: unknown): boolean {
  const type = shapeOf(item)?.["type"];
  return type === "message" || ((type === undefined || type === null) && shapeOf(item)?.["role"] !== undefined);
}
