import { isJsonObject, isToolName } from "./arguments.ts";
import { canonical } from "./canonical.ts";
import { checkUnicode } from "./unicode.ts";
import { type Add, isNonEmpty, isObject, type Json, judge, listOf, rowOf, type Violation } from "./violation.ts";

type Rule =
  | "openai-responses-1"
  | "openai-responses-2"
  | "openai-responses-3"
  | "openai-responses-4"
  | "openai-responses-ids"
  | "openai-responses-order"
  | "openai-responses-shape"
  | "openai-responses-unicode";

/** Responses, `POST /v1/responses`. Numbers as in the project's list of provider rules. */
export const openaiResponsesRules: Record<Rule, string> = {
  "openai-responses-1": "a function or custom call has its output after it, an output has its call, each once",
  "openai-responses-2": "reasoning is followed by the item that it led to, and that item is preceded by its reasoning",
  "openai-responses-3":
    "with store: false there are full items only, and reasoning carries its encrypted content unchanged",
  "openai-responses-4": "computer, shell and patch calls have outputs of their own kind, and approvals their requests",
  "openai-responses-ids": "item ids are unique and of their type's prefix; call ids are unique and not too long",
  "openai-responses-order": "nothing comes between the items of one response, or between its calls and their outputs",
  "openai-responses-shape": "items, roles, content and names are those of the API",
  "openai-responses-unicode": "well-formed Unicode without NUL, in texts and in names of members",
};

/** An item of a response, or just its id. */
export type RespondedItem = string | Json;

export interface OpenaiResponsesOptions {
  /**
   * The content of each response, in order. The API knows it by the item ids; with it, the validator can tell which
   * item a reasoning item led to. Complete items are also compared: reasoning goes back unchanged.
   */
  readonly responses?: readonly (readonly RespondedItem[])[];
  /** Treated as `false` unless the request or this says otherwise: what must survive cannot refer to a server. */
  readonly store?: boolean;
}

/** Calls that we answer: the type of the output, and the field of the call that the output names. */
const OUTPUTS: Record<string, { output: string; rule: "openai-responses-1" | "openai-responses-4" }> = {
  function_call: { output: "function_call_output", rule: "openai-responses-1" },
  custom_tool_call: { output: "custom_tool_call_output", rule: "openai-responses-1" },
  computer_call: { output: "computer_call_output", rule: "openai-responses-4" },
  shell_call: { output: "shell_call_output", rule: "openai-responses-4" },
  apply_patch_call: { output: "apply_patch_call_output", rule: "openai-responses-4" },
};

/** Items that occur only in a response: one of these may follow reasoning. */
const RESPONDED = [
  ...Object.keys(OUTPUTS),
  "reasoning",
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "image_generation_call",
  "local_shell_call",
  "tool_search_call",
  "mcp_call",
  "mcp_list_tools",
  "mcp_approval_request",
  "program",
  "compaction",
];

/** Items that we add, besides messages. */
const ADDED = [
  ...Object.values(OUTPUTS).map(({ output }) => output),
  "local_shell_call_output",
  "tool_search_output",
  "mcp_approval_response",
  "program_output",
];

/** "Expected an ID that begins with 'fc'." */
const PREFIXES: Record<string, string> = {
  message: "msg",
  function_call: "fc",
  reasoning: "rs",
  custom_tool_call: "ctc",
};

const CALL_ID_MAX = 64;
const NAME_MAX = 128;

/** Checks the input of a request. `request` is the body, or just its list of items. A string is one user message. */
export function validateOpenaiResponses(request: unknown, options: OpenaiResponsesOptions = {}): Violation[] {
  return judge<Rule>((add) => {
    checkUnicode(request, "openai-responses-unicode", add);
    if (isObject(request) && isNonEmpty(request["input"])) return;
    const input = listOf(request, "input");
    if (input === undefined || input.length === 0) {
      add("openai-responses-shape", "input", "input is a string or a list of items");
      return;
    }
    const store =
      (isObject(request) && typeof request["store"] === "boolean" ? request["store"] : options.store) ?? false;
    const items = input.map((item) => (isObject(item) ? item : {}));
    checkItems(items, store, add);
    checkPairs(items, add);
    checkIds(items, add);
    checkReasoning(items, add);
    if (options.responses) {
      const places = placesOf(options.responses);
      checkResponses(items, places, add);
      checkTogether(items, places, add);
    }
  });
}

/** A message may omit its type. */
function typeOf(item: Json | undefined): string {
  if (item === undefined) return "";
  return typeof item["type"] === "string" ? item["type"] : typeof item["role"] === "string" ? "message" : "";
}

function isResponded(item: Json | undefined): boolean {
  const type = typeOf(item);
  return type === "message" ? item?.["role"] === "assistant" : RESPONDED.includes(type);
}

function checkItems(items: readonly Json[], store: boolean, add: Add<Rule>): void {
  for (const [i, item] of items.entries()) {
    const at = `input.${i}`;
    const type = typeOf(item);
    if (type === "item_reference") {
      if (!store) add("openai-responses-3", at, "items are not persisted when store is false: nothing to refer to");
    } else if (type === "message") checkMessage(item, at, add);
    else if (!RESPONDED.includes(type) && !ADDED.includes(type)) {
      add("openai-responses-shape", `${at}.type`, `${JSON.stringify(item["type"])} is no type of item`);
    }
    if (type === "reasoning") {
      if (!Array.isArray(item["summary"]))
        add("openai-responses-shape", `${at}.summary`, "missing required field summary");
      if (!store && !isNonEmpty(item["encrypted_content"])) {
        add("openai-responses-3", at, "reasoning without encrypted_content cannot be read when store is false");
      }
    }
    if (type === "function_call") {
      if (!isToolName(item["name"], NAME_MAX))
        add("openai-responses-shape", `${at}.name`, `a name matches ^[a-zA-Z0-9_-]{1,${NAME_MAX}}$`);
      if (typeof item["arguments"] !== "string" || !isJsonObject(item["arguments"])) {
        add("openai-responses-shape", `${at}.arguments`, "arguments are the JSON text of an object");
      }
    }
    if (type === "custom_tool_call" && typeof item["input"] !== "string") {
      add("openai-responses-shape", `${at}.input`, "input is a string");
    }
    if (type === "function_call_output" || type === "custom_tool_call_output") {
      const output = item["output"];
      if (typeof output !== "string" && !(Array.isArray(output) && output.every(isInputPart))) {
        add("openai-responses-shape", `${at}.output`, "output is a string or a list of input parts");
      }
    }
  }
}

function isInputPart(part: unknown): boolean {
  return isObject(part) && ["input_text", "input_image", "input_file", "input_audio"].includes(String(part["type"]));
}

function checkMessage(item: Json, at: string, add: Add<Rule>): void {
  const role = item["role"];
  if (!["user", "assistant", "system", "developer"].includes(String(role))) {
    add("openai-responses-shape", `${at}.role`, `${JSON.stringify(role)} is not a role`);
  }
  const content = item["content"];
  if (typeof content === "string") return;
  if (!Array.isArray(content) || content.length === 0) {
    add("openai-responses-shape", `${at}.content`, "content is a string or a list of parts");
    return;
  }
  for (const [j, part] of content.entries()) {
    const type = isObject(part) ? part["type"] : undefined;
    const fits = role === "assistant" ? type === "output_text" || type === "refusal" : isInputPart(part);
    if (!fits)
      add("openai-responses-shape", `${at}.content.${j}`, `${JSON.stringify(type)} is not a part of a ${role} message`);
  }
}

/** Rules 1, 4 and order. */
function checkPairs(items: readonly Json[], add: Add<Rule>): void {
  const open = new Map<string, { at: string; rule: Rule; output: string; message?: string }>();
  const requests = new Set<unknown>();
  for (const [i, item] of items.entries()) {
    const at = `input.${i}`;
    const type = typeOf(item);
    const id = String(item["call_id"]);
    if (type === "mcp_approval_request") requests.add(item["id"]);
    if (type === "mcp_approval_response" && !requests.delete(item["approval_request_id"])) {
      add("openai-responses-4", at, `no approval request ${item["approval_request_id"]} is open`);
    }
    const pair = rowOf(OUTPUTS, type);
    if (pair) {
      if (open.has(`${pair.output} ${id}`)) add("openai-responses-ids", at, `call_id ${id} is open already`);
      open.set(`${pair.output} ${id}`, { at, ...pair });
      continue;
    }
    const kind = Object.values(OUTPUTS).find(({ output }) => output === type);
    if (kind) {
      const call = open.get(`${type} ${id}`);
      if (call === undefined) add(kind.rule, at, `no open tool call found for ${type} with call_id ${id}`);
      else if (call.message) add("openai-responses-order", at, `${call.message} comes between the call and its output`);
      open.delete(`${type} ${id}`);
    } else if (type === "message" && item["role"] !== "assistant") {
      for (const call of open.values()) call.message ??= at;
    }
  }
  for (const [key, { at, rule }] of open) add(rule, at, `no tool output found for ${key.split(" ")[1]}`);
}

function checkIds(items: readonly Json[], add: Add<Rule>): void {
  const ids = new Set<unknown>();
  const calls = new Set<unknown>();
  for (const [i, item] of items.entries()) {
    const at = `input.${i}`;
    const type = typeOf(item);
    const { id, call_id: callId } = item;
    if (id !== undefined && id !== null) {
      const prefix = rowOf(PREFIXES, type);
      if (!isNonEmpty(id) || id.length > CALL_ID_MAX) add("openai-responses-ids", `${at}.id`, "1 to 64 characters");
      else if (prefix && !id.startsWith(prefix))
        add("openai-responses-ids", `${at}.id`, `an id that begins with ${prefix}`);
      if (ids.has(id)) add("openai-responses-ids", at, `duplicate item found with id ${id}`);
      ids.add(id);
    }
    if (rowOf(OUTPUTS, type)) {
      if (!isNonEmpty(callId) || callId.length > CALL_ID_MAX) {
        add("openai-responses-ids", `${at}.call_id`, "a call_id of 1 to 64 characters");
      }
      if (calls.has(callId)) add("openai-responses-ids", at, `call_id ${callId} was used before`);
      calls.add(callId);
    }
  }
}

/** Rule 2, as far as the input alone shows it. */
function checkReasoning(items: readonly Json[], add: Add<Rule>): void {
  for (const [i, item] of items.entries()) {
    if (typeOf(item) !== "reasoning") continue;
    const next = items[i + 1];
    if (!isResponded(next) && typeOf(next) !== "item_reference") {
      add("openai-responses-2", `input.${i}`, "reasoning was provided without its required following item");
    }
  }
}

interface Place {
  readonly response: readonly RespondedItem[];
  readonly index: number;
}

/** The position of each item. Items of a stateless response may have no ids: nothing is known about those. */
function placesOf(responses: readonly (readonly RespondedItem[])[]): Map<unknown, Place> {
  const places = new Map<unknown, Place>();
  for (const items of responses) {
    const response = items.filter((item) => isNonEmpty(idOf(item)));
    for (const [index, item] of response.entries()) places.set(idOf(item), { response, index });
  }
  return places;
}

/** Rule 2 and the second half of rule 3, using the content of the responses. */
function checkResponses(items: readonly Json[], places: ReadonlyMap<unknown, Place>, add: Add<Rule>): void {
  const seen = new Set<unknown>();
  for (const [i, item] of items.entries()) {
    const at = `input.${i}`;
    const { id } = item;
    const place = places.get(id);
    if (typeOf(item) === "reasoning") {
      if (place === undefined) {
        if (isNonEmpty(id)) add("openai-responses-2", at, `no response contained ${id}`);
      } else {
        const follower = place.response[place.index + 1];
        if (follower === undefined || items[i + 1]?.["id"] !== idOf(follower)) {
          const wanted = follower === undefined ? "its response ended there" : `${idOf(follower)} must follow`;
          add("openai-responses-2", at, `reasoning was provided without its required following item: ${wanted}`);
        }
        const came = place.response[place.index];
        if (isObject(came) && canonical(reasoningOf(came)) !== canonical(reasoningOf(item))) {
          add("openai-responses-3", at, "reasoning was changed: encrypted content and summary go back as they came");
        }
      }
    } else if (place) {
      const cause = place.response.slice(0, place.index).findLast(isReasoning);
      if (cause !== undefined && !seen.has(idOf(cause))) {
        add("openai-responses-2", at, `${id} was provided without its required reasoning item ${idOf(cause)}`);
      }
      const late = place.response.slice(place.index + 1).find((other) => seen.has(idOf(other)));
      if (late !== undefined) add("openai-responses-2", at, `${id} came before ${idOf(late)} in its response`);
    }
    seen.add(id);
  }
}

/** Order: no message splits a response, and its outputs come before the next response. */
function checkTogether(items: readonly Json[], places: ReadonlyMap<unknown, Place>, add: Add<Rule>): void {
  let current: readonly RespondedItem[] | undefined;
  let message: string | undefined;
  const open = new Map<unknown, readonly RespondedItem[]>();
  for (const [i, item] of items.entries()) {
    const at = `input.${i}`;
    const type = typeOf(item);
    const place = places.get(item["id"]);
    // The provider answers some calls itself, in the same response.
    if (type.endsWith("_output")) open.delete(item["call_id"]);
    if (place) {
      if (place.response === current && message) {
        add("openai-responses-order", at, `${message} comes between the items of one response`);
      }
      for (const [callId, response] of open) {
        if (response === place.response) continue;
        add("openai-responses-order", at, `the output of ${callId} is still to come`);
        open.delete(callId);
      }
      if (rowOf(OUTPUTS, type)) open.set(item["call_id"], place.response);
      current = place.response;
      message = undefined;
    } else if (type === "message" && item["role"] !== "assistant") message ??= at;
  }
}

function idOf(item: RespondedItem): unknown {
  return typeof item === "string" ? item : item["id"];
}

function isReasoning(item: RespondedItem): boolean {
  return typeof item === "string" ? item.startsWith("rs_") : item["type"] === "reasoning";
}

function reasoningOf({ encrypted_content, summary }: Json): unknown {
  return { encrypted_content, summary };
}
