import { isObject } from "./violation.ts";

/** A name of a tool as OpenAI takes it. */
export function isToolName(name: unknown, charactersMax: number): boolean {
  return typeof name === "string" && name.length <= charactersMax && /^[a-zA-Z0-9_-]+$/.test(name);
}

/** Arguments are the JSON text of an object: an empty string or half an object is not. */
export function isJsonObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
