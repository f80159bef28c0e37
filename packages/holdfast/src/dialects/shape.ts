import { isWellFormed, wellFormed } from "../text/well-formed.ts";

/**
 * Reads data written by others. These functions return for any input, so that a dialect is total without checks at
 * every step.
 */

export type Shape = { readonly [member: string]: unknown };

export function shapeOf(value: unknown): Shape | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Shape) : null;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of a list; anything else in it is skipped. Returns the same list if there is nothing else. */
export function shapesOf(value: unknown): readonly Shape[] {
  if (!Array.isArray(value)) return NONE;
  for (let i = 0; i < value.length; i++) {
    if (!shapeOf(value[i])) return value.filter((item) => shapeOf(item) !== null) as Shape[];
  }
  return value as Shape[];
}

/** Those that match; the same list if all do. */
export function only(list: readonly Shape[], is: (shape: Shape) => boolean): readonly Shape[] {
  let count = 0;
  for (let i = 0; i < list.length; i++) if (is(list[i]!)) count += 1;
  return count === list.length ? list : count === 0 ? NONE : list.filter(is);
}

/** Shared: most messages neither call nor answer, and a conversation has many. */
export const NONE: readonly never[] = Object.freeze([]);

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A short string in quotation marks; for anything else its type, since the value may be large or not valid in JSON. */
export function quote(value: unknown): string {
  return typeof value === "string" && value.length <= 64 ? JSON.stringify(value) : `of the type ${typeof value}`;
}

/** Providers refuse empty text, and some refuse white space. */
export function isBlank(value: unknown): boolean {
  return typeof value !== "string" || value.trim() === "";
}

export function without(shape: Shape, ...names: string[]): Shape {
  const rest: Record<string, unknown> = { ...shape };
  for (const name of names) delete rest[name];
  return rest;
}

/** Returns the same list if nothing changed: recorded messages are passed on untouched wherever possible. */
export function mapItems<T>(items: readonly T[], change: (item: T, index: number) => T | null): readonly T[] {
  let out: T[] | null = null;
  for (let index = 0; index < items.length; index++) {
    const item = items[index]!;
    const next = change(item, index);
    if (next !== item) out ??= items.slice(0, index);
    if (out && next !== null) out.push(next);
  }
  return out ?? items;
}

/** Caches the function's result for the last number: one message may hold many results. */
export function atOnce<T>(find: (at: number) => T): (at: number) => T {
  let last = -1;
  let found: T | undefined;
  return (at) => {
    if (at !== last) found = find(at);
    last = at;
    return found as T;
  };
}

/** The list with one more item. Most lists here have at most one item, and push would reserve room for many. */
export function grown<T>(list: readonly T[], item: T): T[] {
  if (list.length === 0) return [item];
  (list as T[]).push(item);
  return list as T[];
}

/** Whether two lists hold the same items, by identity. */
export function sameItems(list: readonly unknown[], other: readonly unknown[]): boolean {
  if (list === other) return true;
  if (list.length !== other.length) return false;
  for (let i = 0; i < list.length; i++) if (list[i] !== other[i]) return false;
  return true;
}

/**
 * Tool input as the object that providers require, even if it was cut off in the stream, is null, or is not an object
 * (C30). Text and what it says, parsed, give the same object: `calls` parses some text, and the input of a call must
 * not depend on the dialect that it is sent in.
 */
export function inputObject(value: unknown): Shape {
  const shape = shapeOf(value);
  if (shape) return shape;
  if (value === null || value === undefined) return {};
  if (typeof value !== "string") return { unparsed: value };
  if (value.trim() === "") return {};
  const parsed = parsedJson(value);
  return parsed === undefined ? { unparsed: value } : inputObject(parsed);
}

/** Half a character, or a NUL, escaped in JSON: models write such tool input. */
const ESCAPED = /\\u(?:d[89a-f]|0000)/i;

/** The same as JSON text: unchanged, byte for byte, if it is the JSON of an object that can be sent. */
export function inputText(value: unknown): string {
  const parsed = typeof value === "string" ? shapeOf(parsedJson(value)) : null;
  if (parsed && !(ESCAPED.test(value as string) && !isWellFormed(parsed))) return value as string;
  return JSON.stringify(wellFormed(parsed ?? inputObject(value))) ?? "{}";
}

/** Deeper than the journal accepts (S5): walking through it would overflow the stack. */
const DEPTH_MAX = 1000;

/** Undefined if it is not JSON, or nested too deep. */
export function parsedJson(text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown;
    return text.length > 2 * DEPTH_MAX && isDeep(value, 0) ? undefined : value;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isDeep(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depth > DEPTH_MAX) return true;
  for (const member of Object.values(value)) if (isDeep(member, depth + 1)) return true;
  return false;
}

/** Content is a string, or a list of parts that have a type. */
export function contentOf(message: unknown): readonly Shape[] {
  const content = shapeOf(message)?.["content"];
  return typeof content === "string" ? [{ type: "text", text: content }] : shapesOf(content);
}

/** Null if it is not a part with text. */
export const textIn = ({ type, text: words }: Shape): string | null => (type === "text" ? textOf(words) : null);

/** The text of several parts, for people: adjacent pieces of one text are joined, anything else starts a new line. */
export function joinedText(parts: readonly unknown[], textIn: (part: Shape) => string | null, apart: boolean): string {
  let out = "";
  let adjacent = false;
  for (const part of parts) {
    const shape = shapeOf(part);
    const text = shape ? textIn(shape) : null;
    if (text !== null && text !== "") {
      out += out === "" || (adjacent && !apart) ? text : `\n${text}`;
      adjacent = true;
    } else {
      adjacent = false;
    }
  }
  return out;
}
