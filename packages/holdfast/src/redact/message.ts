import { parsedJson } from "../dialects/shape.ts";
import type { Json } from "../journal/record.ts";
import type { Redactor } from "./redactor.ts";

type Members = { readonly [member: string]: Json | undefined };

/** Deeper than the journal accepts (S5): left as it is, and refused there. */
const DEPTH_MAX = 1000;

/** A longer value is not considered a secret because of its name. */
const NAMED_MAX = 4096;

/**
 * Members that identify, find and link messages and their parts, in any dialect. Not texts, whatever they look like.
 */
const STRUCTURE = new Set([
  ...["id", "type", "role", "name", "kind", "status", "model", "object", "format", "index", "detail", "phase"],
  ...["tool_use_id", "tool_call_id", "call_id", "toolCallId", "toolName", "tool_name", "toolType"],
  ...["caller", "caller_id"],
  ...["mimeType", "mime_type", "mediaType", "media_type", "encoding", "cache_control", "cacheControl"],
  ...["approvalId", "approval_request_id", "item_id", "itemId", "response_id", "previous_response_id", "container_id"],
  ...["file_id", "fileId", "messageId", "message_id", "sessionId", "sessionUpdate", "terminalId", "server_label"],
  ...["stop_reason", "stop_sequence", "finish_reason", "finishReason", "execution", "namespace"],
]);

/** Members that hold a tool's input or output: the application's own JSON, which has no message structure. */
const FREE = new Set(["input", "args", "arguments", "rawInput", "rawOutput", "response", "value"]);

/** The same for a tool that the provider defined, whose own type is structure. */
const TYPED = new Set(["action", "operation"]);

/** Members that hold a call's input as JSON text, which must stay parseable. */
const JSON_TEXT = new Set(["input", "args", "arguments"]);

/** Members that hold bytes. */
const BYTES = new Set(["data", "image", "blob", "base64", "file_data", "b64_json", "result", "partial_image_b64"]);

const BASE64 = /^[A-Za-z0-9+/=\s]*$/;
/** In the application's own JSON, anything shorter is ambiguous. */
const ENCODED_MIN = 256;

/** Members that hold a provider's metadata for a part. */
const OPTIONS = ["providerOptions", "providerMetadata", "extra_content", "provider_specific_fields"];

/** What a provider signed and expects back unchanged. */
const SIGNED = new Set([
  ...["signature", "thoughtSignature", "thought_signature", "redactedData", "reasoning_details"],
  ...["reasoningEncryptedContent", "fingerprint"],
]);

/**
 * A stored message of any dialect, with its texts redacted. Leaves alone ids and other structure, bytes, member names,
 * and parts covered by a signature, which stay identical to the last byte because the provider rejects them otherwise.
 * A call's input that is JSON text stays JSON. Returns the same value if nothing changed.
 */
export function redactMessage(message: Json, redact: Redactor): { value: Json; changed: boolean } {
  const value = ofMessage(message, redact, 0);
  return { value, changed: value !== message };
}

/**
 * The same for the application's own JSON (a tool's input or output, a note): every text in it, under any member name.
 */
export function redactJson(json: Json, redact: Redactor): { value: Json; changed: boolean } {
  const value = ofJson(json, redact, 0);
  return { value, changed: value !== json };
}

function ofMessage(value: Json, redact: Redactor, depth: number): Json {
  if (typeof value === "string") return ofText(value, redact);
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) return eachItem(value, (item) => ofMessage(item, redact, depth + 1));
  const members = value as Members;
  if (isCovered(members)) return value;
  if (isTag(members)) return ofTag(members, redact, (inner) => ofMessage(inner, redact, depth + 1));
  return eachMember(members, (member, name) => {
    if (STRUCTURE.has(name) || OPTIONS.includes(name) || isBytes(members, name)) return member;
    if (typeof member === "string" && JSON_TEXT.has(name)) return ofJsonText(member, redact);
    // In the AI SDK, `content` is again a list of parts.
    if (FREE.has(name) && members["type"] !== "content") return ofJson(member, redact, depth + 1);
    if (TYPED.has(name)) return ofJson(member, redact, depth + 1, "type");
    return ofMessage(member, redact, depth + 1);
  });
}

function ofJson(value: Json, redact: Redactor, depth: number, kept?: string): Json {
  if (typeof value === "string") return ofText(value, redact);
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) return eachItem(value, (item) => ofJson(item, redact, depth + 1));
  const members = value as Members;
  if (isTag(members)) return ofTag(members, redact, (inner) => ofJson(inner, redact, depth + 1));
  return eachMember(members, (member, name) => {
    if (name === kept) return member;
    return typeof member === "string" ? redactNamed(name, member, redact) : ofJson(member, redact, depth + 1);
  });
}

function ofText(value: string, redact: Redactor): string {
  return value === "" || isDataUrl(value) ? value : redact(value);
}

/** `{"password":"…"}`: the value alone does not show what it is. */
function redactNamed(name: string, value: string, redact: Redactor): string {
  if (BYTES.has(name) && value.length >= ENCODED_MIN && BASE64.test(value)) return value;
  const redacted = ofText(value, redact);
  if (redacted !== value || value.length > NAMED_MAX || !/^[\w.-]{1,64}$/.test(name)) return redacted;
  const start = `${name}=`;
  const assignment = redact(start + value);
  return assignment.startsWith(start) ? assignment.slice(start.length) : value;
}

/** Written again only if something in it changed: then numbers are as JavaScript reads them. */
function ofJsonText(json: string, redact: Redactor): string {
  const parsed = parsedJson(json) as Json | undefined;
  // Cut off in the stream, or never JSON.
  if (typeof parsed !== "object" || parsed === null) return ofText(json, redact);
  const redacted = ofJson(parsed, redact, 0);
  return redacted === parsed ? json : JSON.stringify(redacted);
}

function isCovered(members: Members): boolean {
  const { type } = members;
  if (type === "redacted_thinking") return true;
  // From the Responses API. The AI SDK also has parts of that type, which only their options can mark as signed.
  if (type === "reasoning" && (members["summary"] !== undefined || members["id"] !== undefined)) return true;
  if (typeof type === "string" && type.startsWith("reasoning.") && members["data"] !== undefined) return true;
  for (const [name, member] of Object.entries(members)) {
    if (isSignature(name, member) && name !== "reasoning_details") return true;
  }
  // Reasoning that the provider knows by id belongs to the provider; for a text, the id is only a name.
  const isNamed = (name: string): boolean => type === "reasoning" && name === "itemId";
  return OPTIONS.some((name) => isSigned(members[name], isNamed));
}

/** Options are keyed by provider, then by name. */
function isSigned(options: Json | undefined, isNamed: (name: string) => boolean): boolean {
  if (typeof options !== "object" || options === null) return false;
  return [options, ...Object.values(options)].some(
    (own) =>
      typeof own === "object" &&
      own !== null &&
      Object.entries(own).some(([name, member]) => isNamed(name) || isSignature(name, member)),
  );
}

function isSignature(name: string, member: Json | undefined): boolean {
  const isThere = member !== undefined && member !== null && member !== "";
  return isThere && (SIGNED.has(name) || /^encrypted/i.test(name));
}

/** A document may have text in place of bytes, and an image a URL. */
function isBytes(members: Members, name: string): boolean {
  const member = members[name];
  if (!BYTES.has(name) || typeof member !== "string" || members["type"] === "text") return false;
  return BASE64.test(member) && (name !== "result" || members["type"] === "image_generation_call");
}

function isDataUrl(value: string): boolean {
  return value.startsWith("data:") && /^data:[^,\s]{0,256};base64,/i.test(value);
}

/** Bytes and URLs, as dialects store them (R19). */
function isTag(members: Members): boolean {
  return typeof members["$holdfast"] === "string";
}

function ofTag(members: Members, redact: Redactor, ofInner: (inner: Json) => Json): Json {
  if (members["$holdfast"] === "object") {
    return eachMember(members, (member, name) => (name === "of" ? ofInner(member) : member));
  }
  if (members["$holdfast"] !== "URL") return members;
  return eachMember(members, (member, name) => {
    if (name !== "href" || typeof member !== "string") return member;
    const redacted = ofText(member, redact);
    // It is read back as a URL.
    return URL.canParse(redacted) ? redacted : "redacted:";
  });
}

function eachItem(items: readonly Json[], change: (item: Json) => Json): Json {
  let copy: Json[] | null = null;
  for (const [index, item] of items.entries()) {
    const next = change(item);
    if (next === item) continue;
    copy ??= [...items];
    copy[index] = next;
  }
  return copy ?? items;
}

function eachMember(members: Members, change: (member: Json, name: string) => Json): Json {
  let copy: Record<string, Json | undefined> | null = null;
  for (const [name, member] of Object.entries(members)) {
    if (member === undefined) continue;
    const next = change(member, name);
    if (next === member) continue;
    copy ??= { ...members };
    // Not by assignment: a member may be named __proto__.
    Object.defineProperty(copy, name, { value: next, enumerable: true, writable: true, configurable: true });
  }
  return copy ?? members;
}
