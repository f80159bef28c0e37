import type { DialectName } from "holdfast";
import { CommandError, EXIT } from "../exit.ts";

/** `messages`: in the session's own dialect. */
export type Format = "markdown" | "html" | "jsonl" | "messages" | DialectName;

/** Listed here so that a command line can be checked without loading the library. */
const DIALECTS: Readonly<Record<DialectName, true>> = {
  "ai-sdk": true,
  anthropic: true,
  "openai-chat": true,
  "openai-responses": true,
  gemini: true,
  acp: true,
};
export const dialectNames = Object.keys(DIALECTS) as readonly DialectName[];
export const formats: readonly Format[] = ["markdown", "html", "jsonl", "messages", ...dialectNames];

const BY_EXTENSION = new Map<string, Format>([
  ["md", "markdown"],
  ["markdown", "markdown"],
  ["html", "html"],
  ["htm", "html"],
  ["jsonl", "jsonl"],
  ["ndjson", "jsonl"],
  ["json", "messages"],
]);

/** The requested format, else the one of the file's name, else Markdown. Throws CommandError USAGE. */
export function formatFor(given: string | undefined, output: string | undefined): Format {
  if (given !== undefined) {
    const found = given === "md" ? "markdown" : formats.find((one) => one === given.toLowerCase());
    if (found) return found;
    throw usage(`Unknown format "${given.slice(0, 40)}". Use one of ${formats.join(", ")}.`);
  }
  if (output === undefined) return "markdown";
  const extension = /\.([^./\\]+)$/.exec(output)?.[1]?.toLowerCase();
  const format = BY_EXTENSION.get(extension ?? "");
  if (format) return format;
  throw usage(`Unknown format "${output.slice(-80)}". Give --format, one of ${formats.join(", ")}.`);
}

function usage(message: string): CommandError {
  return new CommandError(EXIT.usage, "USAGE", `${message} Nothing was written.`);
}
