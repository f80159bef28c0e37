import type { AgentInputItem, AgentOutputItem } from "@openai/agents";
import { newId } from "holdfast";
import type { RecordedItem } from "../dialects/openai-agents.ts";

export type CallItem = Extract<
  AgentOutputItem,
  { type: "function_call" | "shell_call" | "apply_patch_call" | "computer_call" }
>;
export type ResultItem = Extract<
  AgentInputItem,
  { type: "function_call_result" | "shell_call_output" | "apply_patch_call_output" | "computer_call_result" }
>;

const CALLS = new Set<unknown>(["function_call", "shell_call", "apply_patch_call", "computer_call"]);
const RESULTS = new Set<unknown>([
  "function_call_result",
  "shell_call_output",
  "apply_patch_call_output",
  "computer_call_result",
]);

export function isCall(item: AgentInputItem): item is CallItem {
  return CALLS.has(item.type);
}

export function isResult(item: AgentInputItem): item is ResultItem {
  return RESULTS.has(item.type);
}

/** A copy that the SDK may change, without what only the journal needs. */
export function sentCopy(item: RecordedItem): AgentInputItem {
  const { needsApproval: _, ...sent } = structuredClone(item);
  return sent as AgentInputItem;
}

/**
 * Some servers use a call id twice, or leave it empty. Starts and outcomes are recorded by call id, so each call gets
 * one that is unique in the session. A good id stays as it is.
 */
export function withUniqueCallIds(output: AgentOutputItem[], isTaken: (callId: string) => boolean): AgentOutputItem[] {
  const seen = new Set<string>();
  return output.map((item) => {
    if (!isCall(item)) return item;
    const isFree = item.callId !== "" && !seen.has(item.callId) && !isTaken(item.callId);
    const callId = isFree ? item.callId : `call_${newId()}`;
    seen.add(callId);
    return isFree ? item : { ...item, callId };
  });
}

/** The output of a function tool as the SDK shows it to the model. */
export function functionResult(
  { name, namespace, callId, caller }: Extract<CallItem, { type: "function_call" }>,
  output: unknown,
): ResultItem {
  const parts = structured(output);
  return {
    type: "function_call_result",
    name,
    ...(typeof namespace === "string" ? { namespace } : {}),
    callId,
    status: "completed",
    output: parts ?? { type: "text", text: textOf(output) },
    ...(caller ? { caller } : {}),
  } as ResultItem;
}

/** As the SDK prints a value that is not text. */
function textOf(output: unknown): string {
  if (typeof output !== "object" || output === null) return String(output);
  try {
    return JSON.stringify(output);
  } catch {
    return "[object with circular references]";
  }
}

/** Text, images and files that a tool returned as such. Null if it returned anything else. */
function structured(output: unknown): unknown[] | null {
  const list = Array.isArray(output) ? output : [output];
  const parts = list.map(part);
  return parts.length > 0 && parts.every((one) => one !== null) ? parts : null;
}

interface Rich {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly image?: unknown;
  readonly detail?: unknown;
  readonly file?: unknown;
  readonly filename?: unknown;
}

function part(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return null;
  const { type, text, image, detail, file, filename } = value as Rich;
  if (type === "text" && typeof text === "string") return { type: "input_text", text };
  if (type === "image") {
    const source = mediaOf(image);
    return source && { type: "input_image", image: source, ...(typeof detail === "string" ? { detail } : {}) };
  }
  if (type !== "file") return null;
  const source = mediaOf(file);
  const named = filename ?? (file as Rich | undefined)?.filename;
  return source && { type: "input_file", file: source, ...(typeof named === "string" ? { filename: named } : {}) };
}

function mediaOf(media: unknown): unknown {
  if (typeof media === "string") return media;
  if (typeof media !== "object" || media === null) return null;
  const { url, data, mediaType, fileId, id } = media as Readonly<Record<string, unknown>>;
  if (typeof url === "string") return url;
  if (typeof (fileId ?? id) === "string") return { id: fileId ?? id };
  const base64 = data instanceof Uint8Array ? Buffer.from(data).toString("base64") : data;
  if (typeof base64 !== "string") return null;
  return base64.startsWith("data:") || typeof mediaType !== "string" ? base64 : `data:${mediaType};base64,${base64}`;
}
