import { beginningOf } from "../text/well-formed.ts";
import type { Dialect, Entry, SdkPart, View } from "./dialect.ts";
import { idOf, repeatedIn, withIdOnce, withoutId } from "./openai-item-ids.ts";
import { check, isMessage, OUTPUT_OF } from "./openai-responses-items.ts";
import { markedText, phrase, saysError } from "./order/phrase.ts";
import { groupsOf, ID_LENGTH_MAX, openaiName, type Plan, planView, type ShownCall } from "./order/plan.ts";
import { RegularOrder } from "./order/regular.ts";
import { equalButForNulls } from "./order/sameness.ts";
import {
  openaiResponsesReading,
  PROVIDER_CALLS,
  resultsOf,
  roleOf,
  textIn,
  UNSPEAKABLE,
} from "./parts/openai-responses.ts";
import {
  inputText,
  isBlank,
  joinedText,
  listOf,
  mapItems,
  type Shape,
  shapeOf,
  shapesOf,
  textOf,
  without,
} from "./shape.ts";

/** `ResponseInputItem` of openai: a message, or an item with a type. Also accepts an item of a response's `output`. */
export type OpenAIResponsesItem =
  | {
      type?: "message";
      role: "user" | "assistant" | "system" | "developer";
      content: string | SdkPart[];
      [field: string]: SdkPart;
    }
  | { type?: "item_reference" | null; id: string }
  | { type: SdkPart; [field: string]: SdkPart };

/**
 * Items that the API accepts only with their id: without the reasoning that the id refers to, they are not sent at all.
 */
const NEEDS_ID = new Set<unknown>([
  ...PROVIDER_CALLS,
  "mcp_list_tools",
  "mcp_approval_request",
  "computer_call",
  "local_shell_call",
]);
const NAME_LENGTH_MAX = 128;

const fit = (id: string): string => beginningOf(id, ID_LENGTH_MAX);
const MANNER = { speaks, needsIds: true, fit, idsUniqueIn: "conversation", together } as const;

export const openaiResponses: Dialect<OpenAIResponsesItem> = {
  name: "openai-responses",
  check,
  ...openaiResponsesReading,
  result: ({ id, name }, outcome) =>
    UNSPEAKABLE.has(name)
      ? null
      : ({ type: "function_call_output", call_id: id, output: markedText(phrase(outcome)) } as OpenAIResponsesItem),
  incomplete: (text) => (isBlank(text) ? null : message("assistant", text)),
  boundary: (text) => message("user", text),
  same: (a, b) => a === b || equalButForNulls(bareOf(a), bareOf(b)),
  unsent,
  arrange,
};

/** Drops what the SDK has parsed, and the empty lists of a response. */
function bareOf(item: unknown): unknown {
  const shape = shapeOf(item);
  if (!shape) return item;
  const bare = "parsed_arguments" in shape ? without(shape, "parsed_arguments") : shape;
  const { content } = bare;
  if (!Array.isArray(content)) return bare;
  return { ...bare, content: shapesOf(content).map(barePart) };
}

function barePart(part: Shape): Shape {
  const names = ["annotations", "logprobs"].filter((name) => listOf(part[name]).length === 0);
  return without(part, "parsed", ...names);
}

function message(role: string, content: string): OpenAIResponsesItem {
  return { type: "message", role, content } as OpenAIResponsesItem;
}

function unsent(step: readonly OpenAIResponsesItem[]): string | null {
  for (let i = 0; i < step.length; i++) {
    if (shapeOf(step[i])?.["type"] !== "reasoning") continue;
    if (!isSealed(step[i]!)) {
      return (
        "A reasoning item was recorded without encrypted_content: no request will contain it, and the items that it led to are sent without their ids. " +
        'Ask for it with include: ["reasoning.encrypted_content"] and store: false.'
      );
    }
    if (i === step.length - 1) {
      return (
        "A reasoning item was recorded without the item that it led to: no request will contain it, since the API refuses it on its own. " +
        "Append all items of a response together, with turn.append([...response.output]) or draft.commit."
      );
    }
  }
  return null;
}

function isSealed(item: OpenAIResponsesItem): boolean {
  return textOf((item as Shape)["encrypted_content"]) !== "";
}

/**
 * The items of one response together, in order; then the agent's outputs, in call order; then what others said. An item
 * made after reasoning refers to it by id: without that reasoning it is sent without its id, and an item that needs its
 * id is not sent.
 */
function arrange(entries: readonly Entry<OpenAIResponsesItem>[], view: View): OpenAIResponsesItem[] {
  const plan = planView(entries, view, openaiResponses, MANNER);
  const out: OpenAIResponsesItem[] = [];
  const sent: Sent = {
    entries: new Set(),
    loose: new Set(),
    ids: new Set(),
    isLoose: false,
    step: null,
    isWhole: true,
  };
  for (const { assistant, others, calls } of plan.exchanges) {
    const outputs = Map.groupBy(calls.filter(isOurs), ({ entry }) => entry);
    const provided = Map.groupBy(others.filter(isProvided(entries, plan)), (at) => plan.answered(at, 0)!.entry);
    for (const group of groupsOf(entries, assistant, MANNER)) {
      for (const item of sentItems(entries, group, plan, sent)) out.push(item);
      const theirs = group.flatMap((at) => provided.get(at) ?? []);
      for (const at of theirs.sort((a, b) => a - b)) {
        const isLoose = sent.loose.has(plan.answered(at, 0)!.entry);
        out.push(isLoose ? withoutId(entries[at]!.message) : withIdOnce(entries[at]!.message, sent.ids));
      }
      for (const at of group) {
        for (const call of sent.entries.has(at) ? (outputs.get(at) ?? []) : [])
          out.push(withIdOnce(sentOutput(entries, call), sent.ids));
      }
    }
    for (const at of others) {
      const { message } = entries[at]!;
      const role = roleOf(message);
      if (role === "tool" || role === "other" || !isSent(message, at, plan)) continue;
      // An approval is sent with the request that it is for.
      const answered = plan.answered(at, 0);
      if (!answered || sent.entries.has(answered.entry)) out.push(withIdOnce(fillItem(message), sent.ids));
    }
  }
  return out;
}

/** What has been sent so far. */
interface Sent {
  readonly entries: Set<number>;
  /** Those sent without their reasoning, and so without their id. */
  readonly loose: Set<number>;
  /** Item ids: the API refuses a request with a repeated id. */
  readonly ids: Set<string>;
  /** Reasoning was left out, and the next item may have come from it. */
  isLoose: boolean;
  /**
   * The last step, and whether it was recorded at once: then its response is complete. For items recorded one by one,
   * the start of the next response is unknown.
   */
  step: string | null;
  isWhole: boolean;
}

/** Whether a tool item holds the output of a call that the provider ran. */
function isProvided(entries: readonly Entry<OpenAIResponsesItem>[], plan: Plan): (at: number) => boolean {
  return (at) => roleOf(entries[at]!.message) === "tool" && plan.answered(at, 0)?.call.by === "provider";
}

/** Items of one step, or of one response that an agent appended item by item. */
function together(entries: readonly Entry<OpenAIResponsesItem>[], at: number, next: number): boolean {
  return entries[at]?.step === entries[next]?.step || (isAlone(entries, at) && isAlone(entries, next));
}

function isAlone(entries: readonly Entry<OpenAIResponsesItem>[], at: number): boolean {
  const step = entries[at]?.step;
  return entries[at - 1]?.step !== step && entries[at + 1]?.step !== step;
}

function sentItems(
  entries: readonly Entry<OpenAIResponsesItem>[],
  group: readonly number[],
  plan: Plan,
  sent: Sent,
): OpenAIResponsesItem[] {
  const items = group.filter((at) => {
    const { message } = entries[at]!;
    return isSent(message, at, plan) && !(plan.stale(at) && PROVIDER_CALLS.has(message.type));
  });
  const repeated = repeatedIn(entries, items, sent.ids);
  const kept = withFollowers(entries, items, plan, repeated);
  const out: OpenAIResponsesItem[] = [];
  const { step } = entries[group[0]!]!;
  const isWhole = !isAlone(entries, group[0]!);
  if (step !== sent.step && (isWhole || sent.isWhole)) sent.isLoose = false;
  sent.step = step;
  sent.isWhole = isWhole;
  for (const at of items) {
    const { message } = entries[at]!;
    if (message.type === "reasoning") sent.isLoose = !kept.has(at);
    const isWithoutId = sent.isLoose || repeated.has(at);
    if (!kept.has(at) || (isWithoutId && NEEDS_ID.has(message.type))) continue;
    const isLoose = isWithoutId || plan.stale(at);
    sent.entries.add(at);
    if (isLoose) sent.loose.add(at);
    const item = sentItem(message, at, plan, isLoose);
    const id = idOf(item);
    if (id !== "") sent.ids.add(id);
    out.push(item);
  }
  return out;
}

const isOurs = ({ call, answer }: ShownCall): boolean => call.by === "agent" && answer !== null;

function speaks(item: OpenAIResponsesItem): boolean {
  return isMessage(item) && roleOf(item) !== "other" && fillItem(item) !== EMPTY;
}

/** Whether it is not empty and, if it answers a call, that call is there and this is its first answer. */
function isSent(item: OpenAIResponsesItem, at: number, plan: Plan): boolean {
  if (fillItem(item) === EMPTY) return false;
  const [result] = resultsOf(item);
  return result === undefined || plan.answered(at, 0)?.call.by === "provider";
}

const EMPTY = {} as OpenAIResponsesItem;

/** A message without empty text. */
function fillItem(item: OpenAIResponsesItem): OpenAIResponsesItem {
  if (!isMessage(item)) return item;
  const { content } = item as Shape;
  if (typeof content === "string") return isBlank(content) ? EMPTY : item;
  if (!Array.isArray(content)) return EMPTY;
  const parts = mapItems(content as readonly unknown[], (part) => {
    const shape = shapeOf(part);
    const text = shape ? textIn(shape) : "";
    return text !== null && isBlank(text) ? null : part;
  });
  if (parts.length === 0) return EMPTY;
  return parts === content ? item : ({ ...item, content: parts } as OpenAIResponsesItem);
}

/**
 * Reasoning is sent with the item that it led to, or not at all. That is the next item of its step. An item recorded
 * separately may be another response, requested after this one ended in its reasoning or lost its end with the process,
 * and the API refuses the reasoning before such an item. Without its encrypted content, reasoning is only a reference
 * to what the server may have forgotten (R4, C30).
 */
function withFollowers(
  entries: readonly Entry<OpenAIResponsesItem>[],
  items: readonly number[],
  plan: Plan,
  repeated: ReadonlySet<number>,
): ReadonlySet<number> {
  const kept = new Set<number>();
  for (const at of items.toReversed()) {
    const { message } = entries[at]!;
    const mayBeSent = isSealed(message) && !plan.stale(at) && !repeated.has(at);
    let next = at + 1;
    while (entries[next]?.late) next += 1;
    const isFollowed = kept.has(next) && !repeated.has(next) && entries[at]!.step === entries[next]!.step;
    if (message.type !== "reasoning" || (mayBeSent && isFollowed)) kept.add(at);
  }
  return kept;
}

function sentItem(item: OpenAIResponsesItem, at: number, plan: Plan, loose: boolean): OpenAIResponsesItem {
  const full = fillItem(item) as Shape;
  const bare = (loose && !NEEDS_ID.has(full["type"]) ? withoutId(full as OpenAIResponsesItem) : full) as Shape;
  const shown = plan.called(at, 0);
  if (!shown || shown.call.by === "provider") return bare as OpenAIResponsesItem;
  const isNamed = bare["type"] === "function_call" || bare["type"] === "custom_tool_call";
  const name = isNamed ? openaiName(bare["name"], NAME_LENGTH_MAX) : bare["name"];
  const fits = bare["call_id"] === shown.id && bare["name"] === name;
  const renamed = fits ? bare : { ...bare, call_id: shown.id, ...(isNamed ? { name } : {}) };
  if (bare["type"] === "custom_tool_call") {
    return (typeof bare["input"] === "string" ? renamed : { ...renamed, input: "" }) as OpenAIResponsesItem;
  }
  if (bare["type"] !== "function_call") return renamed as OpenAIResponsesItem;
  const text = inputText(bare["arguments"]);
  return (text === bare["arguments"] ? renamed : { ...renamed, arguments: text }) as OpenAIResponsesItem;
}

/** The output in the type that the call requires: `result` phrases a function's output. */
function sentOutput(entries: readonly Entry<OpenAIResponsesItem>[], shown: ShownCall): OpenAIResponsesItem {
  const call = shapeOf(entries[shown.entry]!.message)!;
  const output = shapeOf(entries[shown.answer!.entry]!.message)!;
  const type = OUTPUT_OF.get(call["type"])!;
  const caller = shapeOf(output["caller"]) ?? shapeOf(call["caller"]);
  const base = { call_id: shown.id, ...(caller ? { caller } : {}) };
  if (output["type"] === type) {
    const fits = output["call_id"] === shown.id && (output["caller"] ?? null) === caller;
    return (fits ? output : { ...output, ...base }) as OpenAIResponsesItem;
  }
  const told = output["output"];
  const text = typeof told === "string" ? told : joinedText(shapesOf(told), textIn, true);
  const failed = saysError(text);
  if (type === "shell_call_output") {
    const outcome = { type: "exit", exit_code: failed ? 1 : 0 };
    const stream = failed ? { stdout: "", stderr: text } : { stdout: text, stderr: "" };
    return { type, ...base, output: [{ ...stream, outcome }] } as OpenAIResponsesItem;
  }
  if (type === "apply_patch_call_output") {
    return { type, ...base, status: failed ? "failed" : "completed", output: text } as OpenAIResponsesItem;
  }
  const isRich = type === "function_call_output" || type === "custom_tool_call_output";
  return { type, ...base, output: isRich && Array.isArray(told) ? told : text } as OpenAIResponsesItem;
}

/** Messages, reasoning and calls of functions, each item id once. */
export class RegularOpenAIResponses extends RegularOrder<OpenAIResponsesItem> {
  readonly #itemIds = new Set<string>();
  /** The step of the last item, if that is the assistant's. */
  #step: string | null = null;
  /** The last item is reasoning, which is sent only with the next item of its step. */
  #isLedOn = false;

  override get isSettled(): boolean {
    return super.isSettled && !this.#isLedOn;
  }

  pass(entry: Entry<OpenAIResponsesItem>, out: OpenAIResponsesItem[]): boolean {
    const item = shapeOf(entry.message);
    if (!item || !this.#passItem(entry, item)) return false;
    const id = textOf(item["id"]);
    if (id !== "") {
      if (this.#itemIds.has(id)) return false;
      this.#itemIds.add(id);
    }
    out.push(entry.message);
    return true;
  }

  #passItem(entry: Entry<OpenAIResponsesItem>, item: Shape): boolean {
    const { type } = item;
    if (type === "function_call_output") {
      const call = this.#isLedOn ? null : this.answers(entry, 0);
      this.#step = null;
      return call !== null && call.id === item["call_id"] && item["caller"] === undefined;
    }
    const isWords = isMessage(item);
    const role = roleOf(item);
    if (isWords ? role === "other" || fillItem(entry.message) !== entry.message : !REGULAR.has(type)) return false;
    if (role !== "assistant") {
      this.#step = null;
      return this.isSettled;
    }
    // The items of a response come before all outputs.
    if (!this.isSettled && entry.step !== this.#step) return false;
    this.#step = entry.step;
    this.#isLedOn = type === "reasoning";
    if (type === "reasoning") return isSealed(entry.message);
    return isWords || this.#passCall(entry, item);
  }

  #passCall(entry: Entry<OpenAIResponsesItem>, item: Shape): boolean {
    const { call_id, name, arguments: text, caller, environment } = item;
    if (caller !== undefined || environment !== undefined || openaiName(name, NAME_LENGTH_MAX) !== name) return false;
    if (inputText(text) !== text || textOf(call_id).length > ID_LENGTH_MAX) return false;
    return this.calls(entry, call_id, name);
  }
}

const REGULAR = new Set<unknown>(["function_call", "reasoning"]);
