import type { AgentInputItem } from "@openai/agents";
import { type Call, type Dialect, dialects, mapDialect, type OpenAIResponsesItem } from "holdfast";

/** An item as it is recorded. */
export type RecordedItem = AgentInputItem & {
  /** The call waits for a person's approval. Recorded with the call, and never sent. */
  readonly needsApproval?: true;
};

type Shape = Readonly<Record<PropertyKey, unknown>>;

/** What an item was converted from: the Responses dialect copies it along when it changes an item. */
const SOURCE = Symbol("the item of the Agents SDK");

const base = dialects["openai-responses"];

const mapped = mapDialect<RecordedItem, OpenAIResponsesItem>(base, { name: "openai-agents", to, from });

/**
 * The items of the OpenAI Agents SDK (`AgentInputItem`). They are stored as they are, with their `providerData`; the
 * rules are those of the Responses API, whose items these resemble.
 */
export const openaiAgents: Dialect<AgentInputItem> = Object.assign(mapped, {
  calls: (
    (calls) =>
    (message: RecordedItem): Call[] => {
      const found = calls(message);
      return message?.needsApproval === true ? found.map((call) => ({ ...call, awaiting: true })) : found;
    }
  )(mapped.calls),
  result: (call: Parameters<Dialect<RecordedItem>["result"]>[0], outcome: Parameters<typeof mapped.result>[1]) => {
    const made = base.result(call, outcome);
    return made === null ? null : resultFrom(made as Shape, call.name);
  },
});

/** Types that have another name in the Responses API. */
const TYPES: Readonly<Record<string, string>> = {
  function_call_result: "function_call_output",
  computer_call_result: "computer_call_output",
};
const AGENTS_TYPES = Object.fromEntries(Object.entries(TYPES).map(([ours, theirs]) => [theirs, ours]));

function to(item: RecordedItem): OpenAIResponsesItem {
  const shape = shapeOf(item);
  if (!shape) throw new TypeError("an item must be an object");
  return { ...converted(shape), [SOURCE]: item } as unknown as OpenAIResponsesItem;
}

function converted(item: Shape): Shape {
  const { type, callId, caller, ...rest } = item;
  const providerData = shapeOf(item["providerData"]) ?? {};
  if (type === undefined || type === null || type === "message")
    return { ...item, content: contentTo(item["content"]) };
  if (type === "hosted_tool_call") return { ...providerData, ...rest, type: hostedType(item, providerData) };
  if (type === "unknown") return { ...rest, ...providerData, type: providerData["type"] ?? "unknown" };
  if (type === "reasoning") {
    const encrypted = providerData["encrypted_content"] ?? providerData["encryptedContent"];
    const summary = listOf(item["content"]).map((part) => ({ ...shapeOf(part), type: "summary_text" }));
    return { ...rest, type, summary, content: item["rawContent"], encrypted_content: encrypted };
  }
  return {
    ...rest,
    type: TYPES[String(type)] ?? type,
    ...(callId === undefined ? {} : { call_id: callId }),
    ...(shapeOf(caller) ? { caller: { ...shapeOf(caller), caller_id: shapeOf(caller)!["callerId"] } } : {}),
    ...("output" in item ? { output: outputTo(item["output"]) } : {}),
  };
}

/** The SDK keeps the provider's own type in the data of the call. */
function hostedType(item: Shape, providerData: Shape): string {
  const type = String(providerData["type"] ?? item["name"]);
  return /_(call|request|response|tools)$/.test(type) ? type : `${type}_call`;
}

function contentTo(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content.map((part) => {
    const shape = shapeOf(part);
    if (shape?.["type"] === "input_image" && typeof shape["image"] === "string")
      return { ...shape, image_url: shape["image"], [SOURCE]: part };
    if (shape?.["type"] === "input_file" && typeof shape["file"] === "string")
      return { ...shape, file_data: shape["file"], [SOURCE]: part };
    return part;
  });
}

function outputTo(output: unknown): unknown {
  const shape = shapeOf(output);
  if (!shape) return contentTo(output);
  if (shape["type"] === "text") return shape["text"];
  if (shape["type"] === "computer_screenshot") return { ...shape, image_url: shape["data"] };
  return [shape];
}

/** An item that Holdfast made, or a recorded one with the changes that the provider requires. */
function from(item: OpenAIResponsesItem): RecordedItem {
  const changed = item as unknown as Shape;
  const source = shapeOf(changed[SOURCE]);
  if (!source || (TYPES[String(source["type"])] ?? source["type"]) !== changed["type"]) return made(changed);
  const { id, ...rest } = source;
  return {
    ...rest,
    ...(changed["id"] === undefined ? {} : { id }),
    ...("callId" in source ? { callId: changed["call_id"] } : {}),
    ...(source["type"] === "function_call" ? { name: changed["name"], arguments: changed["arguments"] } : {}),
    ...(isMessage(source) ? { content: contentFrom(changed["content"]) } : {}),
  } as unknown as RecordedItem;
}

function contentFrom(content: unknown): unknown {
  return Array.isArray(content) ? content.map((part) => (part as Shape | null)?.[SOURCE] ?? part) : content;
}

function made(item: Shape): RecordedItem {
  const { type, role, content, call_id, output } = item;
  if (role === "assistant") {
    const parts = [{ type: "output_text", text: content }];
    return { type: "message", role, status: "completed", content: parts } as unknown as RecordedItem;
  }
  if (role !== undefined) return { type: "message", role, content } as unknown as RecordedItem;
  if (type === "function_call_output") return resultFrom(item, "");
  const outputs = type === "shell_call_output" ? listOf(output).map(shellOutput) : output;
  const { caller: _, call_id: __, ...rest } = item;
  const named = { ...rest, type: AGENTS_TYPES[String(type)] ?? type, callId: call_id, output: outputs };
  return named as unknown as RecordedItem;
}

function resultFrom({ call_id, output }: Shape, name: string): RecordedItem {
  const text = { type: "text", text: output };
  return { type: "function_call_result", name, callId: call_id, status: "completed", output: text } as RecordedItem;
}

function shellOutput(output: unknown): unknown {
  const { outcome, ...rest } = shapeOf(output) ?? {};
  const { exit_code, ...how } = shapeOf(outcome) ?? {};
  return { ...rest, outcome: exit_code === undefined ? how : { ...how, exitCode: exit_code } };
}

function isMessage({ type }: Shape): boolean {
  return type === undefined || type === null || type === "message";
}

function shapeOf(value: unknown): Shape | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Shape) : null;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
