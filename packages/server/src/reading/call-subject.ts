import { shorten } from "./shorten.ts";

/** What different agents call the thing that a tool works on. */
const SUBJECTS = [
  ...["path", "file_path", "filePath", "file", "filename", "target_file", "command", "cmd", "pattern", "query", "url"],
  ...["task", "prompt", "description"],
];
const CHARACTERS_MAX = 120;

/** What a call works on, on one line, from its input, which a model wrote; "" if it does not say. Never throws. */
export function callSubject(input: unknown): string {
  if (typeof input !== "object" || input === null) return "";
  const shape = input as Readonly<Record<string, unknown>>;
  for (const name of SUBJECTS) {
    const value = shape[name];
    const words = Array.isArray(value) ? value.filter((part) => typeof part === "string").join(" ") : value;
    if (typeof words !== "string" || words.trim() === "") continue;
    return shorten(words, CHARACTERS_MAX).replaceAll(/\s+/g, " ").trim();
  }
  return "";
}
