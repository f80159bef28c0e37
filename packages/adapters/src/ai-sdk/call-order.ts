import type { ModelParams } from "./content.ts";

type Prompt = ModelParams["prompt"];
const LAST = Number.MAX_SAFE_INTEGER;

type ToolPart = Extract<Prompt[number], { role: "tool" }>["content"][number];

/**
 * Puts the results of each message in the order of its calls. The SDK does so too, except for approved calls, whose
 * results it puts last. The session shows them in call order from then on, and what the model has seen must not change
 * (R1).
 */
export function inCallOrder(prompt: Prompt): Prompt {
  let order: ReadonlyMap<string, number> = new Map();
  return prompt.map((message) => {
    if (message.role === "assistant") {
      order = new Map(
        message.content.flatMap((part, at) => (part.type === "tool-call" ? [[part.toolCallId, at]] : [])),
      );
    }
    if (message.role !== "tool") return message;
    const results = message.content.filter((part) => part.type === "tool-result");
    const place = (part: ToolPart): number =>
      part.type === "tool-result" ? (order.get(part.toolCallId) ?? LAST) : LAST;
    const sorted = results.toSorted((a, b) => place(a) - place(b));
    if (sorted.every((part, at) => part === results[at])) return message;
    return {
      ...message,
      content: message.content.map((part) => (part.type === "tool-result" ? sorted.shift()! : part)),
    };
  });
}
