import type { ModelMessage } from "ai";
import { type OpenCall, wellFormed } from "holdfast";
import { mutableCopy } from "./mutable-copy.ts";

/**
 * Restores the model's original input in the open calls of these messages. `session.messages` has the sent form, with
 * U+FFFD for half a character or a NUL. But the SDK runs approved calls from its messages and checks their signatures,
 * so a tool must run with what the person approved. `recordModel` makes the request well-formed again.
 */
export function restoreInputs(messages: ModelMessage[], open: readonly OpenCall[]): ModelMessage[] {
  for (const { id, input } of open) {
    const sent = wellFormed(input);
    if (sent === input) continue;
    const part = messages.flatMap(callsIn).findLast(({ toolCallId }) => toolCallId === id);
    // Ids can repeat (R9): compare the input to identify the call.
    if (part && JSON.stringify(part.input) === JSON.stringify(sent)) part.input = mutableCopy(input);
  }
  return messages;
}

function callsIn({ role, content }: ModelMessage) {
  if (role !== "assistant" || typeof content === "string") return [];
  return content.filter((part) => part.type === "tool-call");
}
