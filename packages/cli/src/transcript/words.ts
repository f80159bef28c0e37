export { callStateWords } from "@holdfast/server/internal/contract";

import type { CallItem } from "./item.ts";
import { planOf } from "./plan.ts";
import { parsedJson, print, type Shape, shapeOf } from "./shape.ts";

/** Longer ones are cut. */
const LINE_MAX = 120;

/** What a call does, on one line, for people: `read src/a.ts`, `shell: npm test`. Harmless on any terminal (C25). */
export function callWords({ name, input }: Pick<CallItem, "name" | "input">, max = LINE_MAX): string {
  const shape = shapeOf(typeof input === "string" ? (parsedJson(input) ?? input) : input);
  const said = shape ? known(name, shape) : null;
  return oneLine(said ?? generic(name, shape ?? input), max);
}

/** Common names for the same tools, and the input members that name their target. */
const FILES = new Set([
  "read",
  "write",
  "edit",
  "list",
  "readfile",
  "writefile",
  "editfile",
  "listfiles",
  "ls",
  "multiedit",
  "delete",
]);
const SEARCHES = new Set(["search", "grep", "glob", "find", "websearch", "toolsearch"]);
const SHELLS = new Set(["shell", "bash", "exec", "runcommand", "terminal", "localshellcall", "shellcall"]);
const PATHS = ["path", "file_path", "filePath", "filename", "file", "dir", "directory"];
const COMMANDS = ["command", "cmd", "commands", "script"];
const PATTERNS = ["pattern", "query", "regex", "q", "text"];

function known(name: string, input: Shape): string | null {
  const plain = name.toLowerCase().replaceAll(/[^a-z]/g, "");
  const plan = planOf({ name, input });
  if (plan) return `${name}: ${plan.filter(({ status }) => status === "completed").length} of ${plan.length} done`;
  if (SHELLS.has(plain)) {
    const command = member(shapeOf(input["action"]) ?? input, COMMANDS);
    return command === null ? null : `${name}: ${command}`;
  }
  if (SEARCHES.has(plain)) {
    const pattern = member(input, PATTERNS);
    const path = member(input, PATHS);
    return pattern === null ? null : `${name} ${JSON.stringify(pattern)}${path === null ? "" : ` in ${path}`}`;
  }
  if (!FILES.has(plain)) return null;
  const path = member(input, PATHS);
  return path === null ? null : `${name} ${path}`;
}

function member(input: Shape, names: readonly string[]): string | null {
  for (const one of names) {
    const value = input[one];
    if (typeof value === "string" && value.trim() !== "") return value.slice(0, 1000);
    if (Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === "string"))
      return value.join(" ");
  }
  return null;
}

/** Short members first: long ones are contents. */
function generic(name: string, input: unknown): string {
  const shape = shapeOf(input);
  if (!shape)
    return input === undefined || input === null || input === "" ? name : `${name} ${print(input).slice(0, 1000)}`;
  const members = Object.entries(shape).filter(([, value]) => value !== undefined);
  if (members.length === 0) return name;
  const told = members.map(
    ([key, value]) =>
      `${key}: ${typeof value === "string" ? JSON.stringify(value.slice(0, 200)) : print(value).slice(0, 200)}`,
  );
  const [only] = members;
  if (members.length === 1 && typeof only![1] === "string") return `${name} ${only![1].slice(0, 1000)}`;
  return `${name} (${told.toSorted((a, b) => a.length - b.length).join(", ")})`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is to be found.
const HARMFUL = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** Collapses white space; shows control characters and those that change the writing direction. */
export function oneLine(text: string, max = LINE_MAX): string {
  // Reads only the beginning: a text can have megabytes.
  const flat = text
    .slice(0, max * 4)
    .replaceAll(/\s+/g, " ")
    .trim();
  const safe = flat.replaceAll(HARMFUL, "\ufffd");
  const characters = [...safe];
  return characters.length > max || text.length > max * 4
    ? `${characters
        .slice(0, max - 1)
        .join("")
        .trimEnd()}…`
    : safe;
}
