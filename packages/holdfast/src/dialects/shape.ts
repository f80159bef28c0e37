/** Reading what others wrote: whatever it is, these answer, so that a dialect is total without asking at every step. */

export type Shape = { readonly [member: string]: unknown };

export function shapeOf(value: unknown): Shape | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Shape) : null;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of a list; whatever else is in it is passed over. */
export function shapesOf(value: unknown): Shape[] {
  const found: Shape[] = [];
  for (const item of listOf(value)) {
    const shape = shapeOf(item);
    if (shape) found.push(shape);
  }
  return found;
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Providers refuse text that is empty, and some refuse white space. */
export function isBlank(value: unknown): boolean {
  return typeof value !== "string" || value.trim() === "";
}

export function without(shape: Shape, ...names: string[]): Shape {
  const rest: Record<string, unknown> = { ...shape };
  for (const name of names) delete rest[name];
  return rest;
}

/** The very same list if nothing was changed: what was recorded is handed on untouched wherever that is possible. */
export function mapped<T>(items: readonly T[], change: (item: T, index: number) => T | null): readonly T[] {
  const out: T[] = [];
  let changed = false;
  for (const [index, item] of items.entries()) {
    const next = change(item, index);
    if (next !== item) changed = true;
    if (next !== null) out.push(next);
  }
  return changed ? out : items;
}

/** Tool input as the object that providers want: also input that was cut off in the stream, null, or not an object (C30). */
export function inputObject(value: unknown): Shape {
  const shape = shapeOf(value);
  if (shape) return shape;
  if (value === null || value === undefined) return {};
  if (typeof value !== "string") return { unparsed: value };
  if (value.trim() === "") return {};
  const parsed = parsedJson(value);
  return parsed === null ? {} : (shapeOf(parsed) ?? { unparsed: value });
}

/** The same as JSON text: byte for byte as it came, if that is the JSON of an object. */
export function inputText(value: unknown): string {
  if (typeof value === "string" && shapeOf(parsedJson(value))) return value;
  return JSON.stringify(inputObject(value)) ?? "{}";
}

/** Undefined if it is not JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The text of several parts, for people: pieces of one text as one, anything else in between as a line of its own. */
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
