import { checkApprovals } from "./ai-sdk-approvals.ts";
import { type AiSdkRule, checkMessages, type SdkMessage, sdkMessages } from "./ai-sdk-parts.ts";
import { checkUnicode } from "./unicode.ts";
import { type Add, type Json, judge, listOf, type Violation } from "./violation.ts";

/** AI SDK 7, a list of `ModelMessage`. Numbers as in the project's list of provider rules. */
export const aiSdkRules: Record<AiSdkRule, string> = {
  "ai-sdk-1": "a call has its result before the next user message and before the end (MissingToolResultsError)",
  "ai-sdk-2":
    "what the SDK accepts and a provider rejects: orphans, duplicates, wrong positions, repeated ids, empty parts, ends",
  "ai-sdk-3": "an approval response has its request, and the request has its call",
  "ai-sdk-shape": "messages and parts are those of modelMessageSchema",
  "ai-sdk-unicode": "well-formed Unicode without NUL, in texts and in names of members",
};

export interface AiSdkOptions {
  /** Not a request but a view: it may end with an unanswered approval request. */
  readonly waiting?: boolean;
  /** Allowed by the SDK's `allowSystemInMessages`. */
  readonly systemMessages?: boolean;
  /** Models that continue a final assistant message. */
  readonly prefill?: boolean;
}

/**
 * Checks messages as `generateText({ messages })` does, and as the providers behind it would. Verified against ai
 * 7.0.169: `ai-sdk-1` is `MissingToolResultsError`. It exempts the provider's own calls, and approvals whose answer is
 * in the last message, but not a pending approval. The SDK itself rejects nothing of `ai-sdk-2`.
 */
export function validateAiSdk(request: unknown, options: AiSdkOptions = {}): Violation[] {
  return judge<AiSdkRule>((add) => {
    const list = listOf(request, "messages");
    if (list === undefined || list.length === 0) {
      add("ai-sdk-shape", "messages", "messages must not be empty");
      return;
    }
    checkUnicode(request, "ai-sdk-unicode", add);
    const messages = sdkMessages(list);
    checkMessages(messages, options.systemMessages === true, add);
    checkApprovals(messages, add);
    checkCalls(messages, options, add);
    checkProviderCalls(messages, add);
    checkEnds(messages, options, add);
  });
}

/** The SDK adds the results of answered approvals itself, if the answers are in the last message. */
function callsThatRunNext(messages: readonly SdkMessage[]): Set<unknown> {
  const last = messages.at(-1);
  const answered = new Set<unknown>();
  if (last?.role !== "tool") return answered;
  for (const { type, part } of last.parts) if (type === "tool-approval-response") answered.add(part["approvalId"]);
  return new Set(
    requests(messages)
      .filter((request) => answered.has(request["approvalId"]))
      .map(callOf),
  );
}

function requests(messages: readonly SdkMessage[]): Json[] {
  return messages.flatMap(({ parts }) =>
    parts.filter(({ type }) => type === "tool-approval-request").map((p) => p.part),
  );
}

function callOf(part: Json): unknown {
  return part["toolCallId"];
}

function pendingAtEnd(messages: readonly SdkMessage[]): Set<unknown> {
  const start = messages.findLastIndex(({ role }) => role === "assistant");
  return new Set(requests(messages.slice(start)).map(callOf));
}

interface OpenCall {
  readonly at: string;
  readonly name: unknown;
  /** Set as soon as anything but a tool message follows the call. */
  between?: string;
}

/** Rule 1, and everything in rule 2 about the positions of calls and results. */
function checkCalls(messages: readonly SdkMessage[], options: AiSdkOptions, add: Add<AiSdkRule>): void {
  const open = new Map<unknown, OpenCall>();
  const seen = new Set<unknown>();
  const missing = (spared: ReadonlySet<unknown>) => {
    for (const [id, { at }] of open)
      if (!spared.has(id)) add("ai-sdk-1", at, `tool result is missing for tool call ${id}`);
    open.clear();
  };
  for (const { at, role, parts } of messages) {
    if (role === "user" || role === "system") missing(new Set());
    if (role !== "tool") for (const call of open.values()) call.between ??= at;
    for (const { at: place, type, part } of parts) {
      const id = part["toolCallId"];
      if (role === "assistant" && type === "tool-call") {
        if (seen.has(id)) add("ai-sdk-2", place, `toolCallId ${id} was used before`);
        seen.add(id);
        if (part["providerExecuted"] !== true) open.set(id, { at: place, name: part["toolName"] });
      } else if (role === "tool" && type === "tool-result") {
        const call = open.get(id);
        if (call === undefined) add("ai-sdk-2", place, `no open call ${id}: the result is orphaned or a second one`);
        else if (call.between) add("ai-sdk-2", place, `${call.between} comes between the call and its result`);
        if (call && call.name !== part["toolName"]) add("ai-sdk-2", place, `the call's tool is ${call.name}`);
        open.delete(id);
      }
    }
  }
  const spared = callsThatRunNext(messages);
  missing(options.waiting ? new Set([...spared, ...pendingAtEnd(messages)]) : spared);
}

/** Rule 2: a provider's own call has its result in the assistant's content, there or in a later step. */
function checkProviderCalls(messages: readonly SdkMessage[], add: Add<AiSdkRule>): void {
  const open = new Map<unknown, { at: string; i: number }>();
  for (const [i, { role, parts }] of messages.entries()) {
    if (role !== "assistant") continue;
    for (const { at, type, part } of parts) {
      if (type === "tool-call" && part["providerExecuted"] === true) open.set(part["toolCallId"], { at, i });
      else if (type === "tool-result") {
        if (!open.delete(part["toolCallId"])) {
          add(
            "ai-sdk-2",
            at,
            `a result in an assistant message answers a call of the provider, not ${part["toolCallId"]}`,
          );
        }
      }
    }
  }
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const goesOn = messages.slice(last + 1).some(({ role }) => role === "user" || role === "system");
  for (const [id, { at, i }] of open) {
    if (i !== last || goesOn)
      add("ai-sdk-2", at, `the provider's call ${id} has no result, and the conversation continues`);
  }
}

function checkEnds(messages: readonly SdkMessage[], options: AiSdkOptions, add: Add<AiSdkRule>): void {
  const first = messages.find(({ role }) => role !== "system");
  if (first && first.role !== "user") add("ai-sdk-2", first.at, "the first message is the user's");
  const last = messages.at(-1);
  if (last?.role !== "assistant" || options.prefill) return;
  const answered = last.parts.filter(({ type }) => type === "tool-result").map(({ part }) => part["toolCallId"]);
  const paused = last.parts.some(
    ({ type, part }) =>
      type === "tool-call" && part["providerExecuted"] === true && !answered.includes(part["toolCallId"]),
  );
  const waits = options.waiting && last.parts.some(({ type }) => type === "tool-approval-request");
  if (!paused && !waits) add("ai-sdk-2", last.at, "the conversation ends with an assistant message");
}
