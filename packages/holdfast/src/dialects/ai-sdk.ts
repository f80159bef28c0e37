import { isWellFormed } from "../text/well-formed.ts";
import { decodeBytes, encodeBytes } from "./bytes.ts";
import type { Dialect, Entry, SdkPart, View } from "./dialect.ts";
import { BEGINNING } from "./order/merge-roles.ts";
import { phrase } from "./order/phrase.ts";
import { NAMELESS, type Plan, planView, type ShownCall } from "./order/plan.ts";
import { RegularOrder } from "./order/regular.ts";
import { equal, stripMarks } from "./order/sameness.ts";
import { aiSdkReading, isCall, isRequest, isResult, responsesIn, resultParts, roleOf } from "./parts/ai-sdk.ts";
import {
  atOnce,
  contentOf,
  grown,
  inputObject,
  isBlank,
  listOf,
  mapItems,
  NONE,
  only,
  quote,
  type Shape,
  sameItems,
  shapeOf,
  shapesOf,
  without,
} from "./shape.ts";

/** `ModelMessage` of ai 5 to 7. */
export type AiSdkMessage =
  | { role: "system"; content: string; providerOptions?: SdkPart }
  | { role: "user" | "assistant"; content: string | SdkPart[]; providerOptions?: SdkPart }
  | { role: "tool"; content: SdkPart[]; providerOptions?: SdkPart };

/** Parts that show that a message was made for another API. */
const FOREIGN = new Set(["tool_use", "tool_result", "image_url", "input_text", "output_text", "function_call"]);

/** Provider options that a provider signed or knows by id. Like reasoning, they are bound to what came before them. */
const SIGNED = ["thoughtSignature", "itemId", "reasoningEncryptedContent", "reasoning_details"];

/** Provider options that are cache marks. */
const MARKS = ["cacheControl", "cache_control", "cachePoint"];

const MANNER = { speaks, needsIds: true, idsUniqueIn: "conversation", together: () => false } as const;

export const aiSdk: Dialect<AiSdkMessage> = {
  name: "ai-sdk",
  check,
  encode: encodeBytes,
  decode: (stored) => decodeBytes(stored) as AiSdkMessage,
  ...aiSdkReading,
  result: ({ id, name, denied }, outcome) => {
    const { failed, text, json } = phrase(outcome);
    const output = denied
      ? { type: "execution-denied", reason: text }
      : failed
        ? { type: "error-text", value: text }
        : typeof json === "string"
          ? { type: "text", value: text }
          : { type: "json", value: json };
    const part = { type: "tool-result", toolCallId: id, toolName: name, output };
    return { role: "tool", content: [part] };
  },
  incomplete: (text) => (isBlank(text) ? null : { role: "assistant", content: text }),
  boundary: (text) => ({ role: "user", content: text }),
  same: (a, b) => a === b || equal(stripMarks(a, withoutMarks), stripMarks(b, withoutMarks)),
  arrange,
};

function check(message: unknown): string | null {
  const shape = shapeOf(message);
  if (!shape) return "a message must be an object with a role and content";
  const { role, content } = shape;
  if (roleOf(message) === "other") return `role is ${quote(role)}`;
  if (typeof content === "string" && role !== "tool") return null;
  if (!Array.isArray(content) || role === "system") return "content is not valid for that role";
  for (const [index, part] of content.entries()) {
    const type = shapeOf(part)?.["type"];
    if (typeof type !== "string") return `content[${index}] is not a part with a type`;
    if (FOREIGN.has(type)) return `content[${index}] is of the type "${type}", which belongs to another dialect`;
    if (type === "text" && typeof shapeOf(part)?.["text"] !== "string") return `content[${index}] has no text`;
  }
  return null;
}

/** A message or part without its cache marks, and without options that are empty then. */
function withoutMarks(part: Shape): Shape {
  const output = shapeOf(part["output"]);
  const bare = withOptions(part);
  return output ? { ...bare, output: withOptions(output) } : bare;
}

/** With only those options that say something. */
function withOptions(part: Shape): Shape {
  const bare = changedOptions(part, MARKS);
  const options = shapeOf(bare["providerOptions"]);
  if (!options) return bare;
  const said = Object.entries(options).filter(([, value]) => Object.keys(shapeOf(value) ?? { value }).length > 0);
  const rest = without(bare, "providerOptions");
  return said.length > 0 ? { ...rest, providerOptions: Object.fromEntries(said) } : rest;
}

/** A copy without these options of any provider. */
function changedOptions(part: Shape, names: readonly string[]): Shape {
  const options = shapeOf(part["providerOptions"]);
  if (!options) return part;
  const kept: [string, unknown][] = [];
  let changed = false;
  for (const [provider, value] of Object.entries(options)) {
    const own = shapeOf(value);
    const isHeld = own !== null && names.some((name) => name in own);
    const rest = isHeld ? without(own, ...names) : value;
    changed ||= isHeld;
    if (!isHeld || Object.keys(rest as object).length > 0) kept.push([provider, rest]);
  }
  if (!changed) return part;
  const bare = without(part, "providerOptions");
  return kept.length > 0 ? { ...bare, providerOptions: Object.fromEntries(kept) } : bare;
}

/**
 * The user's message first; consecutive assistant messages joined; after each message with calls, a result for each
 * call, in call order, preceded by the approvals that were given.
 */
function arrange(entries: readonly Entry<AiSdkMessage>[], view: View): AiSdkMessage[] {
  const plan = planView(entries, view, aiSdk, MANNER);
  const out: AiSdkMessage[] = [];
  /** The content of the last message, if it was joined here. */
  let made: Shape[] = [];
  const resultsAt = atOnce((at) => resultParts(entries[at]!.message));
  let hasBegun = false;
  const { exchanges } = plan;
  for (let exchange = 0; exchange < exchanges.length; exchange++) {
    const { assistant, others, calls } = exchanges[exchange]!;
    let approvals: Map<unknown, PlacedPart> | null = null;
    let next = 0;
    for (let i = 0; i < assistant.length; i++) {
      const at = assistant[i]!;
      const message = sentAssistant(entries[at]!.message, at, plan);
      if (message && !hasBegun) out.push({ role: "user", content: BEGINNING });
      hasBegun ||= message !== null;
      const last = out.at(-1);
      if (message && last?.role === "assistant") {
        // Once the list is ours, it grows in place: there may be many neighbours.
        if ((last.content as unknown) !== made) made = [...contentOf(last)];
        for (const part of contentOf(message)) made.push(part);
        out[out.length - 1] = joinMessages(last, message, made);
      } else if (message) out.push(message);
      let found: readonly PlacedPart[] = NONE;
      for (const request of message ? only(shapesOf(message.content), isRequest) : NONE) {
        approvals ??= approvalsIn(entries, others);
        const approval = approvals.get(request["approvalId"]);
        if (approval) found = grown(found, approval);
      }
      const isApproved = found.length > 0;
      // The calls of an exchange are in the order of its messages.
      for (; next < calls.length && calls[next]!.entry === at; next++) {
        const call = calls[next]!;
        if (call.answer === null || !isInToolMessage(entries, call) || isAnothers(call, plan)) continue;
        found = grown(found, { at: call.answer.entry, part: sentResult(call, resultsAt(call.answer.entry)) });
      }
      if (found.length === 1) out.push(toolMessage(entries, found[0]!.at, [found[0]!.part]));
      else if (found.length > 1) out.push(...toolMessages(entries, found, isApproved));
    }
    for (let i = 0; i < others.length; i++) {
      const message = sentOther(entries[others[i]!]!.message);
      if (!message) continue;
      out.push(message);
      hasBegun ||= message.role !== "system";
    }
  }
  return out;
}

/** Not every provider package joins them, and Gemini refuses a call after another turn of the model. */
function joinMessages(first: AiSdkMessage, second: AiSdkMessage, content: readonly Shape[]): AiSdkMessage {
  return { ...first, ...second, content: content as never };
}

interface PlacedPart {
  readonly at: number;
  readonly part: Shape;
}

/** The first response to each request: the SDK uses that one, and throws on a response without its request. */
function approvalsIn(entries: readonly Entry<AiSdkMessage>[], others: readonly number[]): Map<unknown, PlacedPart> {
  const found = new Map<unknown, PlacedPart>();
  for (const at of others) {
    const { message } = entries[at]!;
    for (const part of responsesIn(message)) {
      if (!found.has(part["approvalId"])) found.set(part["approvalId"], { at, part });
    }
  }
  return found;
}

/** Results of the provider's own calls stay where the SDK put them, usually in the assistant's message (R8). */
function isInToolMessage(entries: readonly Entry<AiSdkMessage>[], { call, answer }: ShownCall): boolean {
  return call.by === "agent" || roleOf(entries[answer!.entry]!.message) === "tool";
}

/**
 * Neighbours from one message stay in one message, with its other content; a whole message is passed on unchanged.
 * Approvals and results share a message: the SDK looks only at the last message for what it may run and what has
 * already run (C37).
 */
function toolMessages(
  entries: readonly Entry<AiSdkMessage>[],
  found: readonly PlacedPart[],
  isApproved: boolean,
): AiSdkMessage[] {
  const groups: { at: number; parts: Shape[] }[] = [];
  for (const { at, part } of found) {
    const last = groups.at(-1);
    if (last && (last.at === at || isApproved)) last.parts.push(part);
    else groups.push({ at, parts: [part] });
  }
  return groups.map(({ at, parts }) => toolMessage(entries, at, parts));
}

function toolMessage(entries: readonly Entry<AiSdkMessage>[], at: number, parts: readonly Shape[]): AiSdkMessage {
  const { message } = entries[at]!;
  return roleOf(message) === "tool" ? withParts(message, parts)! : ({ role: "tool", content: parts } as never);
}

function speaks(message: AiSdkMessage): boolean {
  return sentOther(message) !== null;
}

/** Null if it is empty. */
function sentOther(message: AiSdkMessage): AiSdkMessage | null {
  const role = roleOf(message);
  if (role !== "user" && role !== "system") return null;
  return withParts(
    message,
    mapItems(contentOf(message), (part) => (isEmpty(part) ? null : part)),
  );
}

function withParts(message: AiSdkMessage, parts: readonly Shape[]): AiSdkMessage | null {
  if (parts.length === 0) return null;
  const { content } = message;
  if (typeof content === "string") return message;
  return sameItems(listOf(content), parts) ? message : { ...message, content: parts as never };
}

/** Google also signs parts without text. */
function isEmpty(part: Shape): boolean {
  return part["type"] === "text" && isBlank(part["text"]) && changedOptions(part, SIGNED) === part;
}

function sentAssistant(recorded: AiSdkMessage, at: number, plan: Plan): AiSdkMessage | null {
  const stale = plan.stale(at);
  const message = stale ? (changedOptions(recorded as never, SIGNED) as unknown as AiSdkMessage) : recorded;
  // Among several calls with one id, the first request is for the first call.
  const ids = only(shapesOf(message.content), isRequest).length > 0 ? new Map<unknown, string>() : null;
  let call = 0;
  let result = 0;
  const parts = mapItems(contentOf(message), (found) => {
    if (stale && isSignedReasoning(found)) return null;
    const part = stale ? changedOptions(found, SIGNED) : found;
    if (isResult(part)) {
      const answered = plan.answered(at, result++);
      return answered?.call.by === "provider" && !isAnothers(answered, plan) ? part : null;
    }
    if (!isCall(part)) return isEmpty(part) ? null : part;
    const shown = plan.called(at, call++);
    if (!shown || isAnothers(shown, plan)) return null;
    if (ids && !ids.has(part["toolCallId"])) ids.set(part["toolCallId"], shown.id);
    return shown.call.by === "provider" ? part : sentCall(part, shown);
  });
  return withParts(message, withoutReasoningAtEnd(ids ? sentRequests(parts, ids) : parts));
}

/**
 * Only the provider that ran a call itself knows it: another provider's package sends it as the agent's call, or throws
 * (R4). The provider of a model is unknown here, so the call is dropped when the model changes.
 */
function isAnothers({ call, entry, answer }: ShownCall, plan: Plan): boolean {
  if (call.by !== "provider") return false;
  return plan.foreign(entry) || (answer !== null && plan.foreign(answer.entry));
}

/** The SDK throws on a request for a missing call. */
function sentRequests(parts: readonly Shape[], ids: ReadonlyMap<unknown, string>): readonly Shape[] {
  const spent = new Set<unknown>();
  return mapItems(parts, (part) => {
    if (!isRequest(part)) return part;
    const id = ids.get(part["toolCallId"]);
    if (id === undefined || spent.has(part["approvalId"])) return null;
    spent.add(part["approvalId"]);
    return part["toolCallId"] === id ? part : { ...part, toolCallId: id };
  });
}

/**
 * Providers require reasoning to be followed by what it led to: a response cut off while reasoning is sent without it.
 */
function withoutReasoningAtEnd(parts: readonly Shape[]): readonly Shape[] {
  const end = parts.findLastIndex((part) => !isReasoning(part));
  return end === parts.length - 1 ? parts : parts.slice(0, end + 1);
}

const isReasoning = ({ type }: Shape): boolean => type === "reasoning" || type === "reasoning-file";

/** Reasoning with provider options is signed, encrypted, or known by its id. Without them it is plain text. */
function isSignedReasoning(part: Shape): boolean {
  return isReasoning(part) && shapeOf(withoutMarks(part)["providerOptions"]) !== null;
}

function sentCall(part: Shape, { id, call }: ShownCall): Shape {
  const input = inputObject(part["input"]);
  const isAsItCame = part["providerOptions"] === undefined || isWellFormed(input);
  if (part["toolCallId"] === id && part["input"] === input && isAsItCame && call.name !== "") return part;
  // A signature covers its call unchanged. Google's package replaces it with a mark that the API accepts.
  return { ...changedOptions(part, SIGNED), toolCallId: id, toolName: call.name || NAMELESS, input };
}

function sentResult({ answer, call, id }: ShownCall, results: readonly Shape[]): Shape {
  const part = results[answer!.index]!;
  const output = sentOutput(shapeOf(part["output"]) ?? NOTHING);
  const toolName = call.name || NAMELESS;
  const fits = part["toolCallId"] === id && part["toolName"] === toolName && part["output"] === output;
  return fits ? part : { ...part, toolCallId: id, toolName, output };
}

const NOTHING: Shape = Object.freeze({ type: "text", value: "" });

/** The packages pass on what providers refuse: empty text among other content, and an error without text. */
function sentOutput(output: Shape): Shape {
  const { type, value } = output;
  if (type === "error-text" && isBlank(value)) return { ...output, value: "failed without a message" };
  if (type !== "content" || !Array.isArray(value)) return output;
  const kept = mapItems(value as readonly unknown[], (item) => {
    const shape = shapeOf(item);
    return shape?.["type"] === "text" && isBlank(shape["text"]) ? null : item;
  });
  if (kept.length === 0) return NOTHING;
  return kept === value ? output : { ...output, value: kept };
}

/** Without approvals and the provider's calls. */
export class RegularAiSdk extends RegularOrder<AiSdkMessage> {
  #hasBegun = false;

  pass(entry: Entry<AiSdkMessage>, out: AiSdkMessage[]): boolean {
    const { message } = entry;
    const role = roleOf(message);
    if (role === "other" || !this.#passContent(entry, role)) return false;
    this.last = role;
    this.#hasBegun ||= role === "user";
    out.push(message);
    return true;
  }

  #passContent(entry: Entry<AiSdkMessage>, role: "system" | "user" | "assistant" | "tool"): boolean {
    const { content } = entry.message;
    // Only results may follow a call; the user begins, and neighbours are joined.
    if (role !== "tool" && !this.isSettled) return false;
    if (role === "assistant" && (!this.#hasBegun || this.last === "assistant")) return false;
    if (typeof content === "string") return role !== "tool" && !isBlank(content);
    if (!Array.isArray(content)) return false;
    for (let i = 0; i < content.length; i++) {
      const part = shapeOf(content[i]);
      if (!part) return false;
      const isFit =
        role === "tool"
          ? this.#passResult(entry, part, i)
          : role === "assistant"
            ? this.#passPart(entry, part)
            : !isEmpty(part);
      if (!isFit) return false;
    }
    return content.length > 0 && !(role === "assistant" && isReasoning(content[content.length - 1]));
  }

  #passPart(entry: Entry<AiSdkMessage>, part: Shape): boolean {
    if (isResult(part) || isRequest(part)) return false;
    if (!isCall(part)) return !isEmpty(part);
    const { toolCallId, toolName, input, providerExecuted } = part;
    if (providerExecuted === true || typeof toolName !== "string" || toolName === "" || !shapeOf(input)) return false;
    return this.calls(entry, toolCallId, toolName);
  }

  #passResult(entry: Entry<AiSdkMessage>, part: Shape, index: number): boolean {
    if (!isResult(part)) return false;
    const call = this.answers(entry, index);
    const output = shapeOf(part["output"]);
    if (!call || !output || sentOutput(output) !== output) return false;
    return part["toolCallId"] === call.id && part["toolName"] === call.name;
  }
}
