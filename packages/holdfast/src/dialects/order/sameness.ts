import { isWellFormedText, wellFormed, wellFormedText } from "../../text/well-formed.ts";
import { type Shape, shapeOf } from "../shape.ts";

/** Deeper than the journal accepts (S5): compared by identity only. */
const DEPTH_MAX = 1000;

/** Whether the member counts as missing. */
type IsAbsent = (member: unknown) => boolean;
const isUndefined: IsAbsent = (member) => member === undefined;
const isNullish: IsAbsent = (member) => member === undefined || member === null;

/**
 * Deep equality as JSON sees it: an undefined member is missing. Bytes and URLs are compared by content. A text equals
 * what is sent of it: an application may hand back either.
 */
export function equal(a: unknown, b: unknown): boolean {
  return isEqual(a, b, isUndefined, 0);
}

/** Like `equal`, for an API in which null means nothing: its SDKs add and drop such members freely. */
export function equalButForNulls(a: unknown, b: unknown): boolean {
  return isEqual(a, b, isNullish, 0);
}

function isEqual(a: unknown, b: unknown, isAbsent: IsAbsent, depth: number): boolean {
  // JSON has only one zero.
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
 * A message with its content as a list of parts without cache marks. Moving a mark to the last message turns its
 * content into a list, so a string and a list of that one text are the same.
 */
export function stripMarks(message: unknown, plain: (part: Shape) => Shape): unknown {
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
