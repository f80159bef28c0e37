import type { AiSdkRule, SdkMessage } from "./ai-sdk-parts.ts";
import { type Add, isObject } from "./violation.ts";

/**
 * Rule 3. The SDK raises InvalidToolApprovalError and ToolCallNotFoundForApprovalError for the last message only. A
 * mismatched pair is wrong anywhere, and so are contradictory answers.
 */
export function checkApprovals(messages: readonly SdkMessage[], add: Add<AiSdkRule>): void {
  const calls = new Set<unknown>();
  const requested = new Map<unknown, unknown>();
  const answers = new Map<unknown, boolean>();
  const denied = new Set<unknown>();
  for (const { role, parts } of messages) {
    // A request may come before its call in the same message.
    for (const { type, part } of parts) if (role === "assistant" && type === "tool-call") calls.add(part["toolCallId"]);
    for (const { at, type, part } of parts) {
      const id = part["approvalId"];
      if (type === "tool-approval-request") {
        if (requested.has(id)) add("ai-sdk-3", at, `approvalId ${id} was used before`);
        if (!calls.has(part["toolCallId"])) add("ai-sdk-3", at, `tool call ${part["toolCallId"]} not found`);
        requested.set(id, part["toolCallId"]);
      } else if (type === "tool-approval-response") {
        if (!requested.has(id)) add("ai-sdk-3", at, `no tool-approval-request has the approvalId ${id}`);
        else if (answers.has(id)) add("ai-sdk-3", at, `${id} was answered before`);
        answers.set(id, part["approved"] === true);
        if (part["approved"] === false) denied.add(requested.get(id));
      } else if (type === "tool-result" && denied.has(part["toolCallId"])) {
        const output = part["output"];
        if (!isObject(output) || output["type"] !== "execution-denied") {
          add("ai-sdk-3", at, `${part["toolCallId"]} was denied: its result is of type execution-denied`);
        }
      }
    }
  }
}
