import { isObject } from "./violation.ts";

/** Arguments are the JSON text of an object: an empty string or half an object is not. */
export function isJsonObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
