import type { ToolSet, UIMessage } from "ai";
import type { DraftContent } from "holdfast";
import { ownTool } from "../content.ts";

type Part = UIMessage["parts"][number];

/** What an answer in progress has streamed, as the last step of its message. */
export function draftParts(
  { reasoning, text, calls }: DraftContent,
  {
    tools,
    sendReasoning = true,
  }: { readonly tools?: ToolSet | undefined; readonly sendReasoning?: boolean | undefined },
): Part[] {
  const parts: unknown[] = [{ type: "step-start" }];
  if (reasoning !== "" && sendReasoning) parts.push({ type: "reasoning", text: reasoning, state: "streaming" });
  if (text !== "") parts.push({ type: "text", text, state: "streaming" });
  for (const { id: toolCallId, name: toolName, input: rawInput } of calls) {
    const tool = ownTool(tools, toolName);
    const isDynamic = tools !== undefined && (tool === undefined || tool.type === "dynamic");
    const kind = isDynamic ? { type: "dynamic-tool", toolName } : { type: `tool-${toolName}` };
    parts.push({ ...kind, toolCallId, state: "input-streaming", input: undefined, rawInput });
  }
  return parts as Part[];
}
