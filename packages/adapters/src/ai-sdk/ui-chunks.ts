import { getToolName, isToolUIPart, type UIMessage, type UIMessageChunk } from "ai";

type Part = UIMessage["parts"][number];
export type ToolPart = Extract<Part, { toolCallId: string }>;

/**
 * An answer as the stream that would have produced it: a reloaded page gets it before the rest of the running stream.
 * Starts with `start`, and has no end.
 */
export function uiChunks({ id, metadata, parts }: UIMessage): UIMessageChunk[] {
  return [
    { type: "start", messageId: id, ...(metadata === undefined ? {} : { messageMetadata: metadata }) },
    ...parts.flatMap((part, at) => chunksOf(part, `${id}.${at}`)),
  ];
}

/** One part. `id`: for text and reasoning, unique in the message. */
export function chunksOf(part: Part, id: string): UIMessageChunk[] {
  if (isToolUIPart(part)) return toolChunks(part);
  switch (part.type) {
    case "step-start":
      return [{ type: "start-step" }];
    case "text":
    case "reasoning": {
      const { type, text, providerMetadata } = part;
      const citations = type === "text" && part.citations ? { citations: part.citations } : {};
      return [
        { type: `${type}-start`, id },
        { type: `${type}-delta`, id, delta: text },
        { type: `${type}-end`, id, ...citations, ...(providerMetadata ? { providerMetadata } : {}) },
      ] as UIMessageChunk[];
    }
    default:
      // Files, sources, application data, steering: the part is its own chunk.
      return [part as UIMessageChunk];
  }
}

function toolChunks(part: ToolPart): UIMessageChunk[] {
  const { toolCallId, input, providerExecuted, callProviderMetadata, approval, title, toolMetadata } = part;
  const call = {
    toolCallId,
    toolName: getToolName(part),
    ...(part.type === "dynamic-tool" ? { dynamic: true } : {}),
    ...(providerExecuted === undefined ? {} : { providerExecuted }),
    ...(callProviderMetadata ? { providerMetadata: callProviderMetadata } : {}),
    ...(title === undefined ? {} : { title }),
    ...(toolMetadata === undefined ? {} : { toolMetadata }),
  };
  if (part.state === "input-streaming") {
    const delta = part.rawInput ? [{ type: "tool-input-delta", toolCallId, inputTextDelta: part.rawInput }] : [];
    return [{ type: "tool-input-start", ...call }, ...delta] as UIMessageChunk[];
  }
  return [
    { type: "tool-input-available", ...call, input },
    ...(approval ? approvalChunks(toolCallId, approval) : []),
    ...outcomeChunks(part, providerExecuted),
  ] as UIMessageChunk[];
}

export function approvalChunks(toolCallId: string, approval: NonNullable<ToolPart["approval"]>): UIMessageChunk[] {
  const { id: approvalId, approved, reason, requestReason, descriptor, isAutomatic, signature } = approval;
  const request = {
    type: "tool-approval-request",
    approvalId,
    toolCallId,
    ...("inputSchemaInput" in approval ? { inputSchemaInput: approval.inputSchemaInput } : {}),
    ...(descriptor === undefined ? {} : { approvalDescriptor: descriptor }),
    ...(requestReason === undefined ? {} : { reason: requestReason }),
    ...(isAutomatic === undefined ? {} : { isAutomatic }),
    ...(signature === undefined ? {} : { signature }),
  };
  if (approved === undefined) return [request as UIMessageChunk];
  const response = {
    type: "tool-approval-response",
    approvalId,
    approved,
    ...(reason === undefined ? {} : { reason }),
  };
  return [request, response] as UIMessageChunk[];
}

export function outcomeChunks(part: ToolPart, providerExecuted: boolean | undefined): UIMessageChunk[] {
  const { toolCallId } = part;
  const by = providerExecuted === undefined ? {} : { providerExecuted };
  const metadata =
    "resultProviderMetadata" in part && part.resultProviderMetadata
      ? { providerMetadata: part.resultProviderMetadata }
      : {};
  switch (part.state) {
    case "output-available": {
      const preliminary = part.preliminary === undefined ? {} : { preliminary: part.preliminary };
      return [{ type: "tool-output-available", toolCallId, output: part.output, ...by, ...metadata, ...preliminary }];
    }
    case "output-error":
      return [{ type: "tool-output-error", toolCallId, errorText: part.errorText, ...by, ...metadata }];
    case "output-denied":
      return [{ type: "tool-output-denied", toolCallId }];
    default:
      return [];
  }
}
