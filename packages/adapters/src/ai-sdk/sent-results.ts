import type { ModelMessage } from "ai";
import type { OpenCall, Outcome } from "holdfast";
import { type ModelParams, messageOf, type Output, plainOutput } from "./content.ts";
import { mutableCopy } from "./mutable-copy.ts";

/**
 * Results that the SDK made for calls that are open here: calls that were not approved, and approved ones whose input
 * no longer fits. The SDK reports them to nobody; they appear only in the request. They are recorded exactly as they
 * are sent.
 */
export function resultsIn(
  prompt: ModelParams["prompt"],
  open: readonly OpenCall[],
): { readonly call: string; readonly outcome: Outcome; readonly shown: ModelMessage }[] {
  if (open.length === 0) return [];
  const behind = prompt.slice(prompt.findLastIndex(({ role }) => role === "assistant") + 1);
  const waiting = new Set(open.map(({ id }) => id));
  return behind.flatMap((message) => {
    if (message.role !== "tool") return [];
    return message.content.flatMap((part) => {
      if (part.type !== "tool-result" || !waiting.delete(part.toolCallId)) return [];
      // Copies, because they are recorded one after the other.
      const { toolCallId, toolName, providerOptions } = mutableCopy(part);
      const output = mutableCopy(plainOutput(part.output as Output));
      const options = providerOptions === undefined ? {} : { providerOptions };
      const shown = { type: "tool-result" as const, toolCallId, toolName, output, ...options };
      return [{ call: toolCallId, outcome: outcomeOf(output), shown: { role: "tool" as const, content: [shown] } }];
    });
  });
}

function outcomeOf(output: Output): Outcome {
  if (output.type === "execution-denied") return { error: output.reason ?? "was not approved, did not run" };
  if (output.type === "error-text" || output.type === "error-json") return { error: messageOf(output.value) };
  return { value: output.value };
}
