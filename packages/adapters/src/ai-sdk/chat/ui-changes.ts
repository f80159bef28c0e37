import { isDeepStrictEqual } from "node:util";
import { isToolUIPart, type UIMessage, type UIMessageChunk } from "ai";
import { approvalChunks, chunksOf, outcomeChunks, type ToolPart } from "../ui-chunks.ts";

type Part = UIMessage["parts"][number];
type Words = Extract<Part, { type: "text" | "reasoning" }>;

/** A text or reasoning part that this stream has begun and not ended, by its position in the message. */
export type OpenWords = Map<number, string>;

/**
 * The chunks that turn what a page shows of an answer into what it should show. A step that cannot be continued, for
 * example because its text was streamed again, is cleared and sent as a whole. Only the last step of `before` can be
 * changed: earlier ones are over.
 */
export function uiChanges(
  before: readonly Part[],
  after: readonly Part[],
  prefix: string,
  open: OpenWords = new Map(),
): UIMessageChunk[] {
  const [shown, wanted] = [lastStep(before), stepsOf(after)];
  const chunks: UIMessageChunk[] = [];
  const isStarted = before.some(({ type }) => type === "step-start");
  const start = wanted[shown.number] ?? null;
  // Tools of earlier steps may have got their outcomes in the meantime.
  for (const part of after.slice(0, start?.at ?? after.length)) {
    const known = before.slice(0, shown.at).find((one) => isSameCall(one, part));
    if (known) chunks.push(...toolChanges(known as ToolPart, part as ToolPart));
  }
  let from = after.length;
  if (start) {
    const isContinued = shown.parts.every((part, n) => canContinue(part, start.parts[n], open.has(shown.at + n)));
    if (!isContinued) {
      chunks.push({ type: "reset-step" } as UIMessageChunk);
      open.clear();
    }
    from = start.at + start.parts.length;
    for (const [n, part] of start.parts.entries()) {
      const known = isContinued ? shown.parts[n] : undefined;
      const at = start.at + n;
      chunks.push(...(known ? partChanges(known, part, at, open) : newPart(part, at, prefix, open)));
    }
    if (!isStarted && after[0]?.type === "step-start" && shown.parts.length === 0)
      chunks.unshift({ type: "start-step" });
  } else if (shown.parts.length > 0) {
    chunks.push({ type: "reset-step" } as UIMessageChunk);
    open.clear();
  }
  for (let at = from; at < after.length; at++) chunks.push(...newPart(after[at]!, at, prefix, open));
  return chunks;
}

/** Text that is still streamed gets no end. */
function newPart(part: Part, at: number, prefix: string, open: OpenWords): UIMessageChunk[] {
  const id = `${prefix}.${at}`;
  const chunks = chunksOf(part, id);
  if (!isWords(part) || part.state !== "streaming") return chunks;
  open.set(at, id);
  return chunks.slice(0, -1);
}

interface Step {
  /** The position of its first part. */
  readonly at: number;
  readonly parts: readonly Part[];
}

/** By `step-start`. Parts before the first mark are a step, too. */
function stepsOf(parts: readonly Part[]): Step[] {
  const marks = parts.flatMap(({ type }, at) => (type === "step-start" ? [at + 1] : []));
  const starts = parts[0]?.type === "step-start" ? marks : [0, ...marks];
  return starts.map((at, n) => ({
    at,
    parts: parts.slice(at, n + 1 < starts.length ? starts[n + 1]! - 1 : undefined),
  }));
}

function lastStep(parts: readonly Part[]): Step & { readonly number: number } {
  const steps = stepsOf(parts);
  return { ...steps.at(-1)!, number: steps.length - 1 };
}

function isSameCall(one: Part, other: Part): boolean {
  return isToolUIPart(one) && isToolUIPart(other) && one.toolCallId === other.toolCallId && one.type === other.type;
}

function canContinue(shown: Part, wanted: Part | undefined, isOpen: boolean): boolean {
  if (!wanted || shown.type !== wanted.type) return false;
  if (isToolUIPart(shown)) return isSameCall(shown, wanted);
  if (isWords(shown))
    return isOpen ? (wanted as Words).text.startsWith(shown.text) : (wanted as Words).text === shown.text;
  return isDeepStrictEqual(shown, wanted);
}

function isWords(part: Part): part is Words {
  return part.type === "text" || part.type === "reasoning";
}

function partChanges(shown: Part, wanted: Part, at: number, open: OpenWords): UIMessageChunk[] {
  if (isToolUIPart(shown)) return toolChanges(shown, wanted as ToolPart);
  const id = open.get(at);
  if (!isWords(wanted) || id === undefined) return [];
  const delta = wanted.text.slice((shown as Words).text.length);
  const chunks: unknown[] = delta === "" ? [] : [{ type: `${wanted.type}-delta`, id, delta }];
  if (wanted.state !== "streaming") {
    const { providerMetadata } = wanted;
    chunks.push({ type: `${wanted.type}-end`, id, ...(providerMetadata ? { providerMetadata } : {}) });
    open.delete(at);
  }
  return chunks as UIMessageChunk[];
}

/** A complete input is sent once: pages may run a client-side tool when it arrives. */
function toolChanges(shown: ToolPart, wanted: ToolPart): UIMessageChunk[] {
  if (wanted.state === "input-streaming") {
    const known = "rawInput" in shown && typeof shown.rawInput === "string" ? shown.rawInput : "";
    const delta = (wanted.rawInput ?? "").slice(known.length);
    return delta === "" ? [] : [{ type: "tool-input-delta", toolCallId: wanted.toolCallId, inputTextDelta: delta }];
  }
  const { approval, providerExecuted, toolCallId } = wanted;
  const isNew = shown.state === "input-streaming";
  const [input] = isNew ? chunksOf({ ...wanted, approval: undefined } as Part, "") : [];
  const isAsked = approval && (isNew || !isDeepStrictEqual(shown.approval, approval));
  return [
    ...(input ? [input] : []),
    ...(isAsked ? approvalChunks(toolCallId, approval) : []),
    ...(shown.state === wanted.state ? [] : outcomeChunks(wanted, providerExecuted)),
  ];
}
