import { isObject } from "./violation.ts";

/** A tool name that OpenAI accepts. */
export function isToolName(name: unknown, charactersMax: number): boolean {
  return typeof name === "string" && name.length <= charactersMax && /^[a-zA-Z0-9_-]+$/.test(name);
}

/** Arguments must be the JSON text of an object: an empty string or half an object is not. */
export function isJsonObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
