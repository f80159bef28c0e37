import { credentials } from "holdfast";
import { parsedJson } from "../transcript/shape.ts";

/** Deeper than any journal holds (S5). */
const DEPTH_MAX = 1000;
/** Longer values are not secrets just because of the name that they are assigned to. */
const NAMED_MAX = 4096;
/** Members that hold bytes. A shorter value may be anything. */
const BYTES = new Set(["data", "image", "blob", "base64", "file_data", "b64_json", "result", "partial_image_b64"]);
const ENCODED_MIN = 256;
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;
/** Signed or encrypted by a provider: not text, and invalid once changed. */
const SEALED = /^(?:signature|thought_?signature|redactedData|fingerprint|crc)$|^encrypted|EncryptedContent$/i;
/** JSON in a text, which must stay valid JSON. */
const JSON_TEXT = new Set(["input", "args", "arguments"]);

/**
 * Replaces the credentials in the texts of any value, as `credentials` does, including values that only their member's
 * name gives away (`{"password":"…"}`), and those inside JSON in a text. Returns the same value if there are none.
 */
export function redactDeep<T>(value: T): T {
  return ofValue(value, 0) as T;
}

function ofValue(value: unknown, depth: number): unknown {
  if (typeof value === "string") return ofText(value);
  if (value instanceof URL) {
    const href = ofText(value.href);
    return href === value.href ? value : URL.canParse(href) ? new URL(href) : new URL("redacted:");
  }
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX || isBinary(value)) return value;
  if (Array.isArray(value)) {
    let changed = false;
    const items = value.map((item: unknown) => {
      const next = ofValue(item, depth + 1);
      changed ||= next !== item;
      return next;
    });
    return changed ? items : value;
  }
  let copy: Record<string, unknown> | null = null;
  for (const [name, member] of Object.entries(value)) {
    const next = ofMember(name, member, depth);
    if (next === member) continue;
    copy ??= { ...value };
    // Not by assignment: a member may be named __proto__.
    Object.defineProperty(copy, name, { value: next, enumerable: true, writable: true, configurable: true });
  }
  return copy ?? value;
}

function ofMember(name: string, member: unknown, depth: number): unknown {
  if (typeof member !== "string") return ofValue(member, depth + 1);
  if (SEALED.test(name)) return member;
  if (BYTES.has(name) && member.length >= ENCODED_MIN && BASE64.test(member)) return member;
  if (JSON_TEXT.has(name)) {
    const parsed = depth > DEPTH_MAX ? null : parsedJson(member);
    if (typeof parsed === "object" && parsed !== null) return ofJsonText(member, depth);
  }
  const text = ofText(member);
  if (text !== member || member.length > NAMED_MAX || !/^[\w.-]{1,64}$/.test(name)) return text;
  const start = `${name}=`;
  const assignment = credentials(start + member);
  return assignment.startsWith(start) ? assignment.slice(start.length) : member;
}

/**
 * Redacts the strings of a JSON text where they stand. All else stays as it was written: numbers that JavaScript would
 * round, members that stand twice.
 */
function ofJsonText(json: string, depth: number): string {
  let out = "";
  let done = 0;
  let key: { readonly name: string; readonly valueAt: number } | null = null;
  let end = 0;
  for (let start = json.indexOf('"'); start >= 0; start = json.indexOf('"', end)) {
    end = endOfString(json, start);
    const value = JSON.parse(json.slice(start, end)) as string;
    COLON.lastIndex = end;
    if (COLON.test(json)) {
      key = { name: value, valueAt: COLON.lastIndex };
      continue;
    }
    const next = key?.valueAt === start ? ofMember(key.name, value, depth + 1) : ofText(value);
    if (next === value) continue;
    out += json.slice(done, start) + JSON.stringify(next);
    done = end;
  }
  return out + json.slice(done);
}

const COLON = /\s*:\s*/y;

/** Not by an expression: a string may have megabytes. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at + 1;
}

function ofText(text: string): string {
  const isBytes = text.startsWith("data:") && /^data:[^,\s]{0,256};base64,/i.test(text.slice(0, 300));
  return text === "" || isBytes ? text : credentials(text);
}

function isBinary(value: object): boolean {
  return ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
}
