import type { ModelMessage } from "ai";
import { type OpenCall, wellFormed } from "holdfast";
import { copied } from "./copied.ts";

/**
 * Gives the open calls in these messages the input that the model asked for. `session.messages` has it as it is sent, with U+FFFD for
 * half a character or a NUL. But the SDK runs approved calls from its messages, and checks their signatures: a tool runs
 * with what the person approved. `recordedModel` makes the request well-formed again.
 */
export function withOwnInputs(messages: ModelMessage[], open: readonly OpenCall[]): ModelMessage[] {
  for (const { id, input } of open) {
    const sent = wellFormed(input);
    if (sent === input) continue;
    const part = messages.flatMap(callsIn).findLast(({ toolCallId }) => toolCallId === id);
    // Ids may come again (R9): the input tells whether it is this call.
    if (part && JSON.stringify(part.input) === JSON.stringify(sent)) part.input = copied(input);
  }
  return messages;
}

function callsIn({ role, content }: ModelMessage) {
  if (role !== "assistant" || typeof content === "string") return [];
  return content.filter((part) => part.type === "tool-call");
}
