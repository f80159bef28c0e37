import { isWellFormedText, wellFormed, wellFormedText } from "../../text/well-formed.ts";
import { type Shape, shapeOf } from "../shape.ts";

/** Deeper than the journal takes (S5): told apart by identity alone. */
const DEPTH_MAX = 1000;

/** Is the member as good as not there? */
type IsAbsent = (member: unknown) => boolean;
const isUndefined: IsAbsent = (member) => member === undefined;
const isNullish: IsAbsent = (member) => member === undefined || member === null;

/**
 * Deep equality as JSON sees it: a member that is undefined is not there. Bytes and URLs by what they hold. A text and what is sent of
 * it are equal: an application that was handed the one may hand it back for the other.
 */
export function equal(a: unknown, b: unknown): boolean {
  return isEqual(a, b, isUndefined, 0);
}

/** The same for an API in which null says no more than nothing: its SDKs put such members in and leave them out as they like. */
export function equalButForNulls(a: unknown, b: unknown): boolean {
  return isEqual(a, b, isNullish, 0);
}

function isEqual(a: unknown, b: unknown, isAbsent: IsAbsent, depth: number): boolean {
  // As JSON sees it, there is one zero.
  if (a === b || Object.is(a, b)) return true;
  if (typeof a === "string" && typeof b === "string") {
    return a.length === b.length && wellFormedText(a) === wellFormedText(b);
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || depth > DEPTH_MAX) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => isEqual(item, b[index], isAbsent, depth + 1));
  }
  if (a instanceof URL || b instanceof URL) return a instanceof URL && b instanceof URL && a.href === b.href;
  const [left, right] = [viewOf(a), viewOf(b)];
  if (left || right) return left !== null && right !== null && left.equals(right);
  const [from, to] = [namedAsSent(a as Shape), namedAsSent(b as Shape)];
  const names = Object.keys(from).filter((name) => !isAbsent(from[name]));
  if (names.length !== Object.keys(to).filter((name) => !isAbsent(to[name])).length) return false;
  return names.every((name) => Object.hasOwn(to, name) && isEqual(from[name], to[name], isAbsent, depth + 1));
}

function namedAsSent(shape: Shape): Shape {
  for (const name in shape) if (!isWellFormedText(name)) return wellFormed(shape);
  return shape;
}

function viewOf(value: object): Buffer | null {
  if (value instanceof ArrayBuffer) return Buffer.from(value);
  return ArrayBuffer.isView(value) ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : null;
}

/**
 * A message with its content as a list of parts without cache marks. Who moves a mark to the last message writes its content as a list to have
 * a place for it, so that a text and a list of that one text are the same.
 */
export function unmarked(message: unknown, plain: (part: Shape) => Shape): unknown {
  const shape = shapeOf(message);
  if (!shape) return message;
  const { content } = shape;
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  if (!Array.isArray(parts)) return plain(shape);
  return {
    ...plain(shape),
    content: parts.map((part) => {
      const of = shapeOf(part);
      return of ? plain(of) : (part as unknown);
    }),
  };
}
