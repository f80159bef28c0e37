import type { Json } from "../journal/record.ts";
import { isPlain } from "../text/well-formed.ts";

/**
 * Encodes bytes and URLs in messages as JSON, and back, exactly (R19, C39): `{"$holdfast":"Uint8Array","base64":"…"}`.
 * A caller's object that has a member of that name is wrapped (`{"$holdfast":"object","of":{…}}`), so that it is not
 * mistaken for bytes. Anything else that JSON cannot carry stays unchanged, for the caller to refuse with its path
 * (MESSAGE_NOT_JSON).
 */
const TAG = "$holdfast";

/** Deeper than the journal accepts (S5): left unchanged, and refused there. */
const DEPTH_MAX = 1000;

/** Returns the same value if there was nothing to encode. */
export function encodeBytes(value: unknown): Json {
  return encodeValue(value, []) as Json;
}

function encodeValue(value: unknown, ancestors: object[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof URL) return { [TAG]: "URL", href: value.href };
  const bytes = bytesOf(value);
  if (bytes) return bytes;
  if (ancestors.length > DEPTH_MAX || ancestors.includes(value)) return value;
  ancestors.push(value);
  const out = Array.isArray(value)
    ? eachItem(value, encodeValue, ancestors)
    : eachMember(value, encodeValue, ancestors);
  ancestors.pop();
  return isPlain(value) && Object.hasOwn(value, TAG) ? { [TAG]: "object", of: out } : out;
}

function bytesOf(value: object): Json | null {
  if (Buffer.isBuffer(value)) return { [TAG]: "Buffer", base64: value.toString("base64") };
  if (value instanceof ArrayBuffer) return { [TAG]: "ArrayBuffer", base64: Buffer.from(value).toString("base64") };
  // Exactly this class: an instance of another would not come back as what was given.
  if (Object.getPrototypeOf(value) !== Uint8Array.prototype) return null;
  const { buffer, byteOffset, byteLength } = value as Uint8Array;
  return { [TAG]: "Uint8Array", base64: Buffer.from(buffer, byteOffset, byteLength).toString("base64") };
}

/** The inverse. Anything that is not a well-formed tag is left unchanged. */
export function decodeBytes(stored: unknown): unknown {
  return decodeValue(stored, 0);
}

function decodeValue(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) return eachItem(value, decodeValue, depth + 1);
  if (!Object.hasOwn(value, TAG)) return eachMember(value, decodeValue, depth + 1);
  const { [TAG]: tag, base64, href, of } = value as { [member: string]: unknown };
  if (tag === "object" && typeof of === "object" && of !== null) return eachMember(of, decodeValue, depth + 1);
  if (tag === "URL" && typeof href === "string" && URL.canParse(href)) return new URL(href);
  if (typeof base64 !== "string") return value;
  const bytes = Buffer.from(base64, "base64");
  if (tag === "Buffer") return bytes;
  if (tag === "Uint8Array") return new Uint8Array(bytes);
  if (tag === "ArrayBuffer") return new Uint8Array(bytes).buffer;
  return value;
}

/** Every message passes here: non-objects are skipped, and no closures are created. */
function eachItem<C>(
  items: readonly unknown[],
  change: (item: unknown, context: C) => unknown,
  context: C,
): readonly unknown[] {
  let copy: unknown[] | null = null;
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (typeof item !== "object") continue;
    const next = change(item, context);
    if (next === item) continue;
    copy ??= [...items];
    copy[i] = next;
  }
  return copy ?? items;
}

function eachMember<C>(value: object, change: (member: unknown, context: C) => unknown, context: C): object {
  if (!isPlain(value)) return value;
  let copy: Record<string, unknown> | null = null;
  // A plain object: all its enumerable members are its own.
  for (const name in value) {
    const member = (value as { readonly [name: string]: unknown })[name];
    if (typeof member !== "object") continue;
    const next = change(member, context);
    if (next === member) continue;
    copy ??= { ...value };
    // Not by assignment: a member may be named __proto__.
    Object.defineProperty(copy, name, { value: next, enumerable: true, writable: true, configurable: true });
  }
  return copy ?? value;
}
