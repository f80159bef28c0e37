import type { Json } from "../../journal/record.ts";
import type { Outcome } from "../dialect.ts";
import { shapeOf } from "../shape.ts";

/** A tool's outcome, as text and as JSON. */
export interface Phrase {
  readonly failed: boolean;
  /** Strings unchanged, anything else as JSON; for an error, its message. */
  readonly text: string;
  /** The value as JSON carries it, copied; null if it cannot. */
  readonly json: Json;
}

/** Total: a tool may return or throw anything. */
export function phrase(outcome: Outcome): Phrase {
  const shape = shapeOf(outcome);
  const error = shape?.["error"];
  if (error !== undefined) {
    const text = errorText(error);
    return { failed: true, text, json: text };
  }
  const value = shape?.["value"];
  if (typeof value === "string") return { failed: false, text: value, json: value };
  const json = jsonText(value);
  if (json !== null) return { failed: false, text: json, json: JSON.parse(json) as Json };
  const text = value === undefined ? "" : print(value);
  return { failed: false, text, json: value === undefined ? null : text };
}

/** For dialects that have no error flag: like most agents, they start the text of an error with the word. */
export function markedText({ failed, text }: Phrase): string {
  return failed && !saysError(text) ? `Error: ${text}` : text;
}

/** Whether text carries that mark. */
export function saysError(text: string): boolean {
  return /^Error\b/.test(text);
}

function errorText(error: unknown): string {
  const message = typeof error === "string" ? error : messageOf(error);
  if (message !== null && message.trim() !== "") return message;
  return "failed without a message";
}

function messageOf(error: unknown): string | null {
  const shape = shapeOf(error);
  if (!shape) return jsonText(error) ?? print(error);
  const { message, name } = read(shape);
  if (typeof message === "string" && message !== "") return message;
  if (error instanceof Error && typeof name === "string") return name;
  return jsonText(error) ?? print(error);
}

/** A custom error may have a getter that throws. */
function read(shape: { readonly [member: string]: unknown }): { message: unknown; name: unknown } {
  try {
    return { message: shape["message"], name: shape["name"] };
  } catch {
    return { message: undefined, name: undefined };
  }
}

/** Null if JSON cannot represent it (undefined, functions) or throws (cycles, BigInt). */
function jsonText(value: unknown): string | null {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return null;
  try {
    return JSON.stringify(value) ?? null;
  } catch {
    return null;
  }
}

function print(value: unknown): string {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `(${value.byteLength} bytes)`;
  try {
    return String(value);
  } catch {
    return "(a value that cannot be printed)";
  }
}
