import { callStateWords } from "@holdfast/server/internal/contract";
import type { Item } from "../api/wire.ts";

/** What a row is, for people who hear the page. */
export function itemLabel(item: Item): string {
  switch (item.kind) {
    case "prompt":
      return `Prompt, turn ${item.turn}`;
    case "answer":
      return "Answer";
    case "reasoning":
      return "Reasoning";
    case "call":
      return `Tool call: ${item.name}, ${callStateWords[item.state]}`;
    case "note":
      return "Note";
  }
}

const SUBJECTS = [
  "path",
  "file_path",
  "filePath",
  "file",
  "filename",
  "command",
  "cmd",
  "pattern",
  "query",
  "url",
  "task",
  "prompt",
  "description",
];

/** What a call works on, on one line: the part of the input that a person recognises. */
export function subjectOf(input: unknown): string {
  if (typeof input === "string") return input.slice(0, 300).replaceAll(/\s+/g, " ");
  if (typeof input !== "object" || input === null) return input === undefined || input === null ? "" : String(input);
  const shape = input as Readonly<Record<string, unknown>>;
  const found = SUBJECTS.map((name) => shape[name]).find((value) => typeof value === "string" && value.trim() !== "");
  if (typeof found === "string") return found.slice(0, 300).replaceAll(/\s+/g, " ").trim();
  const members = Object.entries(shape).map(([name, value]) => {
    const words = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    return `${name}: ${words.slice(0, 100)}`;
  });
  return members.join(", ").slice(0, 300).replaceAll(/\s+/g, " ");
}
