import type { CallWords, FileChange, ToolKind } from "@holdfast/acp";
import { PLAN, planInSummary, planOf } from "../transcript/plan.ts";
import { shapeOf } from "../transcript/shape.ts";
import { callWords } from "../transcript/words.ts";

const KINDS: ReadonlyMap<string, ToolKind> = new Map([
  ["read", "read"],
  ["list", "read"],
  ["search", "search"],
  ["write", "edit"],
  ["edit", "edit"],
  ["shell", "execute"],
  [PLAN, "think"],
]);

/** What an editor shows of a call of this agent. */
export const wordsForEditors: CallWords = {
  title: (call) => callWords(call),
  kind: ({ name }) => KINDS.get(name) ?? "other",
  path: ({ name, input }) => (KINDS.has(name) && name !== "shell" && name !== PLAN ? stringIn(input, "path") : null),
  change: ({ name, input }) => changeOf(name, input),
  plan: planOf,
  planInSummary,
};

function changeOf(name: string, input: unknown): FileChange | null {
  const path = stringIn(input, "path");
  if (path === null) return null;
  const content = stringIn(input, "content");
  // What was in the file before is not recorded, so the whole content is shown as new.
  if (name === "write" && content !== null) return { path, oldText: null, newText: content };
  const [old, fresh] = [stringIn(input, "old"), stringIn(input, "new")];
  return name === "edit" && old !== null && fresh !== null ? { path, oldText: old, newText: fresh } : null;
}

function stringIn(input: unknown, name: string): string | null {
  const value = shapeOf(input)?.[name];
  return typeof value === "string" ? value : null;
}
