import { isWellFormed } from "../text/well-formed.ts";
import { decodeBytes, encodeBytes } from "./bytes.ts";
import type { Dialect, Entry, SdkPart, View } from "./dialect.ts";
import { BEGINNING, MergedRoles } from "./order/merge-roles.ts";
import { phrase } from "./order/phrase.ts";
import { NAMELESS, type Plan, planView, type ShownCall } from "./order/plan.ts";
import { hasOnly, RegularOrder } from "./order/regular.ts";
import { equal } from "./order/sameness.ts";
import {
  callIn,
  contentParts,
  geminiReading,
  isResult,
  isThought,
  providerCallIn,
  providerResultIn,
  ROLES,
  resultIn,
  roleOf,
} from "./parts/gemini.ts";
import {
  atOnce,
  inputObject,
  isBlank,
  listOf,
  mapItems,
  quote,
  type Shape,
  sameItems,
  shapeOf,
  textOf,
  without,
} from "./shape.ts";

/** `Content` of @google/genai. */
export interface GeminiContent {
  role?: string;
  parts?: SdkPart[];
}

/** What the API accepts in place of a missing signature (ai.google.dev, "Thought signatures"). */
const NO_SIGNATURE = "skip_thought_signature_validator";

const MANNER = { speaks, needsIds: false, idsUniqueIn: "exchange", together: () => true, pauses: false } as const;

export const gemini: Dialect<GeminiContent> = {
  name: "gemini",
  check,
  encode: encodeBytes,
  decode: (stored) => decodeBytes(stored) as GeminiContent,
  ...geminiReading,
  result: ({ id, name }, outcome) => {
    const { failed, text, json } = phrase(outcome);
    const response = failed ? { error: text } : { output: json };
    // Keeps a stand-in id, so that the result finds its call among others of that name; `arrange` removes it.
    return { role: "user", parts: [{ functionResponse: { id, name, response } }] };
  },
  incomplete: (text) => (isBlank(text) ? null : { role: "model", parts: [{ text }] }),
  boundary: (text) => ({ role: "user", parts: [{ text }] }),
  same: (a, b) => a === b || equal(bareOf(a), bareOf(b)),
  arrange,
};

function check(content: unknown): string | null {
  const shape = shapeOf(content);
  if (!shape) return "a content must be an object with a role and parts";
  const { role, parts } = shape;
  if (role !== undefined && !ROLES.has(role)) return `role is ${quote(role)}`;
  if (!Array.isArray(parts)) return "parts is not a list";
  for (const [index, part] of parts.entries()) {
    const found = shapeOf(part);
    if (!found) return `parts[${index}] is not an object`;
    if (typeof found["type"] === "string") return `parts[${index}] has a type, like parts of another dialect`;
  }
  return null;
}

/**
 * A missing role means the user's, and a call without arguments has none: the SDK omits both, and the API adds them.
 */
function bareOf(content: unknown): unknown {
  const shape = shapeOf(content);
  if (!shape) return content;
  const parts = contentParts(content).map((part) => {
    const call = callIn(part);
    return call ? { ...part, functionCall: { ...call, args: call["args"] ?? {} } } : part;
  });
  return { ...shape, role: shape["role"] ?? "user", parts };
}

/**
 * The user's turn first, neighbours joined. A turn with calls is followed by one with exactly as many responses, in
 * order, and nothing else. What the user said goes in the next turn.
 */
function arrange(entries: readonly Entry<GeminiContent>[], view: View): GeminiContent[] {
  const plan = planView(entries, view, gemini, MANNER);
  const turns = new MergedRoles<GeminiContent>();
  const resultsAt = atOnce((at) => contentParts(entries[at]!.message).filter(isResult));
  for (const { assistant, others, calls } of plan.exchanges) {
    for (const at of assistant) {
      const content = entries[at]!.message;
      const parts = modelParts(content, at, plan);
      if (turns.last === null && parts.length > 0) turns.add("user", [{ text: BEGINNING }], null);
      turns.add("model", parts, wholeOf(content, parts, "model"));
    }
    for (const call of calls) {
      if (call.call.by !== "agent" || !call.answer) continue;
      turns.add("responses", [responsePart(call, resultsAt(call.answer.entry))], null);
    }
    for (const at of others) {
      const content = entries[at]!.message;
      if (roleOf(content) === "other") continue;
      const parts = spoken(content);
      turns.add("user", parts, wholeOf(content, parts, "user"));
    }
  }
  return turns.messages((role, parts) => ({ role: role === "model" ? "model" : "user", parts: parts as Shape[] }));
}

function speaks(content: GeminiContent): boolean {
  const role = roleOf(content);
  return (role === "user" || role === "tool") && spoken(content).length > 0;
}

function spoken(content: GeminiContent): readonly Shape[] {
  return mapItems(contentParts(content), (part) => (isResult(part) || isEmpty(part) ? null : part));
}

/** A signature may be on a part without text. */
function isEmpty(part: Shape): boolean {
  for (const name in part) if (name !== "thought" && name !== "text" && part[name] !== undefined) return false;
  return isBlank(part["text"]);
}

function wholeOf(content: GeminiContent, parts: readonly Shape[], role: string): GeminiContent | null {
  const isAll = sameItems(listOf(content.parts), parts);
  const isOnly = Object.keys(content).every((name) => name === "role" || name === "parts");
  return isAll && isOnly && content.role === role ? content : null;
}

function modelParts(content: GeminiContent, at: number, plan: Plan): readonly Shape[] {
  const stale = plan.stale(at);
  const wasSigned = contentParts(content).some(({ thoughtSignature }) => thoughtSignature !== undefined);
  let needsSignature = plan.foreign(at) || (stale && wasSigned);
  let call = 0;
  let result = 0;
  return mapItems(contentParts(content), (recorded) => {
    if (isResult(recorded) || (stale && isThought(recorded))) return null;
    // A signature covers its part unchanged.
    const isBroken = "thoughtSignature" in recorded && !stale && !isWellFormed(recorded);
    const isSpent = isBroken || (stale && "thoughtSignature" in recorded);
    const part = isSpent ? without(recorded, "thoughtSignature") : recorded;
    if (providerResultIn(part)) return plan.answered(at, result++)?.call.by === "provider" ? part : null;
    if (callIn(part) || providerCallIn(part)) {
      const shown = plan.called(at, call++);
      if (!shown) return null;
      if (shown.call.by === "provider") return part;
      const sent = sentCall(part, shown.id, shown.call.name);
      // Only the first call of a step needs one.
      if (!needsSignature && !isBroken && !(sent !== part && "thoughtSignature" in part)) return sent;
      needsSignature = false;
      return { ...sent, thoughtSignature: NO_SIGNATURE };
    }
    return isEmpty(part) ? null : part;
  });
}

function sentCall(part: Shape, id: string, name: string): Shape {
  const call = callIn(part)!;
  const args = call["args"] === undefined ? undefined : inputObject(call["args"]);
  if (args === call["args"] && textOf(call["id"]) === id && name !== "") return part;
  return { ...part, functionCall: { ...withId(call, id), name: name || NAMELESS, ...(args ? { args } : {}) } };
}

function withId(shape: Shape, id: string): Shape {
  return id ? { ...shape, id } : without(shape, "id");
}

/** Sets the name and id of its call, and makes the response an object. */
function responsePart({ answer, call, id }: ShownCall, results: readonly Shape[]): Shape {
  const found = results[answer!.index] ?? {};
  const result = resultIn(found) ?? {};
  const response = shapeOf(result["response"]) ?? { output: result["response"] ?? null };
  const name = call.name || NAMELESS;
  const fits = result["name"] === name && textOf(result["id"]) === id && result["response"] === response;
  return fits ? found : { ...found, functionResponse: { ...withId(result, id), name, response } };
}

/** Without the provider's calls. Calls may lack ids: then the results have none either. */
export class RegularGemini extends RegularOrder<GeminiContent> {
  pass(entry: Entry<GeminiContent>, out: GeminiContent[]): boolean {
    const { message } = entry;
    if (!shapeOf(message) || !hasOnly(message, "role", "parts")) return false;
    const { role, parts } = message;
    if ((role !== "model" && role !== "user") || !Array.isArray(parts) || parts.length === 0) return false;
    const isFit = role === "model" ? this.#passModel(entry, parts) : this.#passUser(entry, parts);
    if (isFit) out.push(message);
    return isFit;
  }

  #passModel(entry: Entry<GeminiContent>, parts: readonly unknown[]): boolean {
    if (!this.isSettled || this.last === null || this.last === "assistant") return false;
    this.last = "assistant";
    // They are unique in each exchange.
    this.ids.clear();
    for (let i = 0; i < parts.length; i++) {
      const part = shapeOf(parts[i]);
      if (!part || isResult(part) || providerCallIn(part) || providerResultIn(part)) return false;
      const call = callIn(part);
      if (!call) {
        if (isEmpty(part)) return false;
        continue;
      }
      const id = textOf(call["id"]);
      const name = textOf(call["name"]);
      // A stand-in for a missing id contains the sign.
      if (id.includes("#") || sentCall(part, id, name) !== part) return false;
      if (id === "") this.awaits(entry, id, name);
      else if (!this.calls(entry, id, name)) return false;
    }
    return true;
  }

  /** All responses in one turn, and nothing else in it. */
  #passUser(entry: Entry<GeminiContent>, parts: readonly unknown[]): boolean {
    if (this.last === "user") return false;
    const isAnswer = !this.isSettled;
    this.last = isAnswer ? "tool" : "user";
    for (let i = 0; i < parts.length; i++) {
      const part = shapeOf(parts[i]);
      if (!part) return false;
      const result = resultIn(part);
      if (!isAnswer) {
        if (result || isEmpty(part)) return false;
        continue;
      }
      const call = result && this.answers(entry, i);
      if (!call || result["name"] !== call.name || textOf(result["id"]) !== call.id) return false;
      if (!shapeOf(result["response"])) return false;
    }
    return this.isSettled;
  }
}
