import { digest } from "./canonical.ts";
import { checkUnicode } from "./unicode.ts";
import { type Add, isNonEmpty, isObject, type Json, judge, listOf, unknownKeys, type Violation } from "./violation.ts";

type Rule = "gemini-1" | "gemini-2" | "gemini-3" | "gemini-4" | "gemini-5" | "gemini-shape" | "gemini-unicode";

/** `models.generateContent`. Numbers as in the project's list of provider rules. */
export const geminiRules: Record<Rule, string> = {
  "gemini-1": "a function call turn is followed by a turn of as many function responses, same names, and nothing else",
  "gemini-2": "a function call turn comes directly after a user turn or a function response turn",
  "gemini-3":
    "thought signatures go back in the part they came in; each step of the current turn has one on its first call",
  "gemini-4": "the conversation ends with a user turn or a function response turn",
  "gemini-5": "a response has its call's id; where there are no ids, responses come in the order of the calls",
  "gemini-shape": "roles and parts are those of the API, and none is empty",
  "gemini-unicode": "well-formed Unicode without NUL, in texts and in names of members",
};

export interface GeminiOptions {
  /**
   * `bound`: every signature must be the one that {@link signPart} gives to its part. `opaque`: for other signatures,
   * checks only that they are there. `optional`: models before Gemini 3, which require none.
   */
  readonly signatures?: "bound" | "opaque" | "optional";
}

const DATA = [
  "text",
  "inlineData",
  "fileData",
  "functionCall",
  "functionResponse",
  "executableCode",
  "codeExecutionResult",
  "toolCall",
  "toolResponse",
];

const PART_KEYS = [
  ...DATA,
  "thought",
  "thoughtSignature",
  "videoMetadata",
  "mediaResolution",
  "partMetadata",
  "mediaProcessing",
];

/** Documented values for calls that no Gemini model made: the API skips its check. */
const SKIP = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

interface Turn {
  readonly at: string;
  readonly role: string;
  readonly parts: readonly Json[];
}

/** The signature that a model would put on this part. It covers the part, so it cannot move to another one. */
export function signPart(part: Json): string {
  const { thoughtSignature: _, ...rest } = part;
  return Buffer.from(`thought.${digest(rest)}`).toString("base64");
}

/** Checks the contents of a request. `request` is the body, or just its list of contents. */
export function validateGemini(request: unknown, options: GeminiOptions = {}): Violation[] {
  return judge<Rule>((add) => {
    const contents = listOf(request, "contents");
    if (contents === undefined || contents.length === 0) {
      add("gemini-shape", "contents", "contents are required");
      return;
    }
    checkUnicode(request, "gemini-unicode", add);
    const turns = contents.map((content, i) => turnOf(content, `contents.${i}`, add));
    for (const turn of turns) checkParts(turn, add);
    checkOrder(turns, add);
    checkResponses(turns, add);
    checkSignatures(turns, options.signatures ?? "bound", add);
  });
}

function turnOf(content: unknown, at: string, add: Add<Rule>): Turn {
  if (!isObject(content)) {
    add("gemini-shape", at, "a content is an object");
    return { at, role: "", parts: [] };
  }
  for (const key of unknownKeys(content, ["role", "parts"])) add("gemini-shape", `${at}.${key}`, "unknown name");
  const role = content["role"] ?? "user";
  if (role !== "user" && role !== "model" && role !== "function") {
    add("gemini-shape", `${at}.role`, "please use a valid role: user, model");
  }
  const parts = Array.isArray(content["parts"]) ? content["parts"] : [];
  if (parts.length === 0) add("gemini-shape", `${at}.parts`, "contents.parts must not be empty");
  return { at, role: String(role), parts: parts.map((part) => (isObject(part) ? part : {})) };
}

function checkParts({ at, role, parts }: Turn, add: Add<Rule>): void {
  for (const [j, part] of parts.entries()) {
    const place = `${at}.parts.${j}`;
    for (const key of unknownKeys(part, PART_KEYS)) add("gemini-shape", `${place}.${key}`, "unknown name");
    const data = DATA.filter((key) => part[key] !== undefined);
    if (data.length !== 1) {
      add("gemini-shape", place, `a part holds one kind of data, found ${data.join(" and ") || "none"}`);
      continue;
    }
    const call = part["functionCall"];
    const response = part["functionResponse"];
    // A signature may come in a part with empty text; no other text may be empty.
    if (data[0] === "text" && !isNonEmpty(part["text"]) && !isNonEmpty(part["thoughtSignature"])) {
      add("gemini-shape", place, "text must not be empty");
    }
    if (call !== undefined) {
      if (role !== "model") add("gemini-shape", place, "only the model calls functions");
      if (!isObject(call) || !isNonEmpty(call["name"])) add("gemini-shape", place, "a function call has a name");
      else if (call["args"] !== undefined && !isObject(call["args"])) {
        add("gemini-shape", `${place}.functionCall.args`, "args are an object");
      }
    }
    if (response !== undefined) {
      if (role === "model") add("gemini-shape", place, "the model answers no functions");
      if (!isObject(response) || !isNonEmpty(response["name"])) add("gemini-shape", place, "a response has a name");
      else if (!isObject(response["response"])) {
        add("gemini-shape", `${place}.functionResponse.response`, "response is an object");
      }
    } else if (role === "function") add("gemini-shape", place, "a function turn holds function responses only");
    if (data[0] === "inlineData" || data[0] === "fileData") checkMedia(part, place, add);
  }
}

function checkMedia(part: Json, at: string, add: Add<Rule>): void {
  const media = part["inlineData"] ?? part["fileData"];
  const source = isObject(media) ? (media["data"] ?? media["fileUri"]) : undefined;
  if (!isObject(media) || !isNonEmpty(source) || (part["inlineData"] && !isNonEmpty(media["mimeType"]))) {
    add("gemini-shape", at, "media has its bytes or its uri, and a mimeType");
  }
}

function callsOf(turn: Turn | undefined): Json[] {
  if (turn?.role !== "model") return [];
  return turn.parts.map((part) => part["functionCall"]).filter(isObject);
}

function responsesOf(turn: Turn | undefined): Json[] {
  if (turn === undefined || turn.role === "model") return [];
  return turn.parts.map((part) => part["functionResponse"]).filter(isObject);
}

/** Rules 2 and 4. */
function checkOrder(turns: readonly Turn[], add: Add<Rule>): void {
  for (const [i, turn] of turns.entries()) {
    const before = turns[i - 1];
    if (callsOf(turn).length > 0 && (before === undefined || before.role === "model")) {
      add("gemini-2", turn.at, "a function call turn comes immediately after a user turn or a function response turn");
    }
  }
  // Not documented, but rejected by earlier models, and never right: a conversation begins with a prompt.
  if (turns[0]?.role === "model" && callsOf(turns[0]).length === 0) {
    add("gemini-shape", turns[0].at, "the first turn is the user's");
  }
  const last = turns.at(-1);
  if (last?.role === "model") add("gemini-4", last.at, "requests ending with a model turn are not supported");
}

/** Rules 1 and 5. */
function checkResponses(turns: readonly Turn[], add: Add<Rule>): void {
  for (const [i, turn] of turns.entries()) {
    const calls = callsOf(turn);
    const next = turns[i + 1];
    if (calls.length > 0 && next !== undefined) {
      const responses = responsesOf(next);
      if (responses.length !== calls.length) {
        add("gemini-1", next.at, `${calls.length} function calls, ${responses.length} function responses`);
      } else if (names(calls).sort().join() !== names(responses).sort().join()) {
        add("gemini-1", next.at, `calls ${names(calls)}, responses ${names(responses)}`);
      } else checkMatch(calls, responses, next.at, add);
    }
    const responses = responsesOf(turn);
    if (responses.length === 0) continue;
    if (callsOf(turns[i - 1]).length === 0) {
      add("gemini-1", turn.at, "a function response turn comes immediately after a function call turn");
    }
    // Vertex reads what follows the responses as a model turn; a separate user turn is accepted everywhere.
    if (responses.length !== turn.parts.length) {
      add("gemini-1", turn.at, "a function response turn holds function responses only");
    }
  }
}

function names(list: readonly Json[]): string[] {
  return list.map((item) => String(item["name"]));
}

function checkMatch(calls: readonly Json[], responses: readonly Json[], at: string, add: Add<Rule>): void {
  const open = new Map<unknown, Json>();
  for (const call of calls) {
    if (call["id"] !== undefined && open.has(call["id"])) add("gemini-5", at, `two calls have the id ${call["id"]}`);
    if (call["id"] !== undefined) open.set(call["id"], call);
  }
  const unnamed = calls.filter((call) => call["id"] === undefined);
  for (const response of responses) {
    const id = response["id"];
    const call = id === undefined ? unnamed.shift() : open.get(id);
    open.delete(id);
    if (call === undefined)
      add("gemini-5", at, `the response of ${response["name"]} matches no call by its id (${id})`);
    else if (call["name"] !== response["name"]) {
      add("gemini-5", at, `the response of ${response["name"]} answers a call of ${call["name"]}`);
    }
  }
}

/** Rule 3. */
function checkSignatures(turns: readonly Turn[], signatures: string, add: Add<Rule>): void {
  for (const { at, parts } of turns) {
    for (const [j, part] of parts.entries()) {
      const signature = part["thoughtSignature"];
      if (signature === undefined) continue;
      const known = signatures !== "bound" || SKIP.includes(String(signature)) || signature === signPart(part);
      if (!isNonEmpty(signature) || !known)
        add("gemini-3", `${at}.parts.${j}`, "invalid or corrupted thought signature");
    }
  }
  if (signatures === "optional") return;
  // The current turn begins at the last user content that has anything but function responses.
  const start = turns.findLastIndex(
    ({ role, parts }) => role !== "model" && parts.some((part) => part["functionResponse"] === undefined),
  );
  for (const { at, role, parts } of turns.slice(start + 1)) {
    const first = parts.findIndex((part) => part["functionCall"] !== undefined);
    if (role === "model" && first !== -1 && parts[first]?.["thoughtSignature"] === undefined) {
      add("gemini-3", `${at}.parts.${first}`, "function call is missing a thought_signature");
    }
  }
}
