import type {
  AssistantContent,
  ContentPart,
  LanguageModelMiddleware,
  ModelMessage,
  ToolContent,
  ToolResultPart,
  ToolSet,
} from "ai";
import { mutableCopy } from "./mutable-copy.ts";

/** What the model is asked with. */
export type ModelParams = Parameters<NonNullable<LanguageModelMiddleware["wrapStream"]>>[0]["params"];

/** A part of a response, as the SDK passes it to `onLanguageModelCallEnd`. */
export type Part = ContentPart<ToolSet>;
export type CallPart = Extract<Part, { type: "tool-call" }>;
export type Output = ToolResultPart["output"];
type Tool = ToolSet[string];

/**
 * The approval decision for a call, made before the call is recorded; request and response as the SDK will make them.
 */
export interface Decision {
  readonly approvalId: string;
  readonly status: "user-approval" | "approved" | "denied";
  readonly reason: string | undefined;
  readonly signature: string | undefined;
}

/**
 * A copy: others use the same parts while we decide what to record (R19). Properties that the SDK stores under a symbol
 * are copied too.
 */
export function snapshot<P extends Part>(part: P): P {
  const copy: Record<string, unknown> = { ...part };
  for (const symbol of Object.getOwnPropertySymbols(part))
    Object.defineProperty(copy, symbol, Object.getOwnPropertyDescriptor(part, symbol)!);
  for (const name of ["input", "output", "providerMetadata"] as const)
    if (name in copy) copy[name] = mutableCopy(copy[name]);
  // The bytes may belong to the application, too.
  if (part.type === "file" || part.type === "reasoning-file")
    copy["file"] = { base64: part.file.base64, mediaType: part.file.mediaType };
  return copy as P;
}

/** What is known of a response besides its parts. */
export interface ResponseFacts {
  /** By call id. */
  readonly decisions: ReadonlyMap<string, Decision>;
  /** The names of tools that nobody runs, since a call of one ends the run (`hasToolCall`): its input is the answer. */
  readonly finals: ReadonlySet<string>;
  readonly isStream: boolean;
}

/**
 * The messages of one response, as the SDK makes them (in `toResponseMessages`, which it does not export): the
 * assistant's message, and a tool message for calls answered without running anything. `isStream`: `streamText` puts an
 * approval request after its call, `generateText` after everything.
 */
export async function responseMessages(
  parts: readonly Part[],
  tools: ToolSet | undefined,
  { decisions, finals, isStream }: ResponseFacts,
): Promise<ModelMessage[]> {
  const content: Exclude<AssistantContent, string> = [];
  const requests: Exclude<AssistantContent, string> = [];
  const answers: ToolContent = [];
  for (const part of parts) {
    const made = await assistantPart(part, tools);
    if (made) content.push(made);
    if (part.type !== "tool-call") continue;
    const decision = decisions.get(part.toolCallId);
    if (decision) (isStream ? content : requests).push(requestPart(part, decision));
    answers.push(...answersTo(part, decision, finals.has(part.toolName)));
  }
  content.push(...requests);
  const messages: ModelMessage[] = [];
  if (content.length > 0) messages.push({ role: "assistant", content });
  if (answers.length > 0) messages.push({ role: "tool", content: answers });
  return messages;
}

type AssistantPart = Exclude<AssistantContent, string>[number];

async function assistantPart(part: Part, tools: ToolSet | undefined): Promise<AssistantPart | null> {
  const options = "providerMetadata" in part && part.providerMetadata ? { providerOptions: part.providerMetadata } : {};
  switch (part.type) {
    case "text":
      return part.text === "" && part.providerMetadata == null ? null : { type: "text", text: part.text, ...options };
    case "reasoning":
      return { type: "reasoning", text: part.text, ...options };
    case "custom":
      return { type: "custom", kind: part.kind, ...options };
    case "file":
    case "reasoning-file":
      return { type: part.type, data: part.file.base64, mediaType: part.file.mediaType, ...options };
    case "tool-call":
      return {
        type: "tool-call",
        toolCallId: part.toolCallId,
        toolName: part.toolName,
        input: part.invalid && typeof part.input !== "object" ? {} : inputOf(part.input),
        ...(part.providerExecuted === undefined ? {} : { providerExecuted: part.providerExecuted }),
        ...options,
      };
    case "tool-result":
    case "tool-error": {
      if (!part.providerExecuted) return null;
      const { toolCallId, toolName, input } = part;
      const output =
        part.type === "tool-error"
          ? ({ type: "error-json", value: jsonOf(part.error) } as Output)
          : await modelOutput(ownTool(tools, toolName), toolCallId, input, part.output);
      return { type: "tool-result", toolCallId, toolName, output, ...options };
    }
    case "tool-approval-request": {
      // MCP tools that run on the provider's side.
      const { approvalId, toolCall, isAutomatic } = part;
      const automatic = isAutomatic === undefined ? {} : { isAutomatic };
      return { type: "tool-approval-request", approvalId, toolCallId: toolCall.toolCallId, ...automatic };
    }
    default:
      return null;
  }
}

function requestPart(call: CallPart, { approvalId, status, reason, signature }: Decision): AssistantPart {
  const before = schemaInput(call);
  return {
    type: "tool-approval-request",
    approvalId,
    toolCallId: call.toolCallId,
    ...(status === "user-approval" ? (reason == null ? {} : { reason }) : { isAutomatic: true }),
    ...(signature === undefined ? {} : { signature }),
    ...(before && JSON.stringify(before.value) !== JSON.stringify(call.input)
      ? { inputSchemaInput: before.value }
      : {}),
  } as AssistantPart;
}

/**
 * The model's input before the schema changed it. The SDK stores it under its own symbol, and needs it to check an
 * approved call again.
 */
function schemaInput(call: CallPart): { readonly value: unknown } | null {
  const symbol = Object.getOwnPropertySymbols(call).find(({ description }) =>
    description?.includes("input-schema-input"),
  );
  return symbol ? { value: (call as unknown as Record<symbol, unknown>)[symbol] } : null;
}

/** The result of a call whose input is the answer. */
export const TAKEN: Output = { type: "text", value: "This was the answer, and ended the turn." };

/** Calls that nobody runs are answered in the unit that records them: after a crash they must not look runnable. */
function answersTo(call: CallPart, decision: Decision | undefined, isFinal: boolean): ToolContent {
  const { toolCallId, toolName, providerExecuted } = call;
  if (call.invalid) {
    if (providerExecuted) return [];
    return [{ type: "tool-result", toolCallId, toolName, output: errorOutput(messageOf(call.error)) }];
  }
  if (!decision && isFinal) return [{ type: "tool-result", toolCallId, toolName, output: TAKEN }];
  if (!decision || decision.status === "user-approval") return [];
  const { approvalId, status, reason } = decision;
  const why = reason === undefined ? {} : { reason };
  const by = providerExecuted === undefined ? {} : { providerExecuted };
  const response = {
    type: "tool-approval-response" as const,
    approvalId,
    approved: status === "approved",
    ...why,
    ...by,
  };
  if (status === "approved") return [response];
  return [response, { type: "tool-result", toolCallId, toolName, output: { type: "execution-denied", ...why } }];
}

/** What the model sees of a tool's value (the SDK's `createToolModelOutput`). */
export async function modelOutput(
  tool: Tool | undefined,
  toolCallId: string,
  input: unknown,
  output: unknown,
): Promise<Output> {
  if (tool?.toModelOutput)
    return plainOutput(await tool.toModelOutput({ toolCallId, input: input as never, output: output as never }));
  return typeof output === "string"
    ? { type: "text", value: output }
    : ({ type: "json", value: jsonOf(output) } as Output);
}

export function errorOutput(error: unknown): Output {
  return { type: "error-text", value: messageOf(error) };
}

/** The name may come from the model: ignore properties that objects inherit. */
export function ownTool(tools: ToolSet | undefined, name: string): Tool | undefined {
  return tools && Object.hasOwn(tools, name) ? tools[name] : undefined;
}

/** A tool that the application or its browser runs itself. */
export function isClientTool(tools: ToolSet | undefined, name: string): boolean {
  const tool = ownTool(tools, name);
  return tool !== undefined && typeof tool.execute !== "function" && tool.type !== "provider";
}

/** The SDK's wording of errors for the model. For values it cannot word (a symbol, a function), the language's own. */
export function messageOf(error: unknown): string {
  if (error === null || error === undefined) return "unknown error";
  if (typeof error === "string") return error;
  return error instanceof Error ? error.toString() : (JSON.stringify(error) ?? String(error));
}

/**
 * A schema may turn the input into dates, sets or class instances. Providers' packages send them as JSON, so they are
 * recorded as JSON.
 */
export function inputOf(input: unknown): unknown {
  return input === undefined ? input : jsonOf(input);
}

/** The same for a tool's output. The dialect handles bytes and URLs in content. */
export function plainOutput(output: Output): Output {
  return output?.type === "json" || output?.type === "error-json"
    ? ({ ...output, value: jsonOf(output.value) } as Output)
    : output;
}

/** A tool's value at the moment it returns. The session words values that JSON cannot represent, and bytes. */
export function returnedValue(value: unknown): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    return value;
  try {
    return jsonOf(value);
  } catch {
    return value;
  }
}

function jsonOf(value: unknown): unknown {
  const text = value === undefined ? undefined : JSON.stringify(value);
  return text === undefined ? null : JSON.parse(text);
}
