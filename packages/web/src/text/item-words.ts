import type { CallItem, Interruption, Item } from "../api/wire.ts";

export const STATE_WORDS: Readonly<Record<CallItem["state"], string>> = {
  open: "no result yet",
  waiting: "waiting for approval",
  running: "running",
  done: "done",
  failed: "failed",
  denied: "denied",
  unknown: "outcome unknown",
  "not-run": "did not run",
};

/** How a turn was interrupted, as a sentence. */
export function interruptionSentence({ turn, how, resumes }: Interruption): string {
  const again =
    resumes === 0 ? "" : resumes === 1 ? " It had been resumed once." : ` It had been resumed ${resumes} times.`;
  return `Turn ${turn} ${howWords(how)}.${again}`;
}

function howWords(how: Interruption["how"]): string {
  const member = (name: string): string => String(how[name] ?? "");
  switch (how.kind) {
    case "killed":
      return "was interrupted: its process died";
    case "signal":
      return `was interrupted by ${member("signal")}`;
    case "aborted":
      return `was stopped by ${member("by")}${how["reason"] === undefined ? "" : ` (${member("reason")})`}`;
    case "failed":
      return `failed: ${member("error").replace(/\.$/, "")}`;
    case "suspended":
      return how["reason"] === "permission" ? "is waiting for approval" : `is waiting: ${member("reason")}`;
  }
}

type InterruptedCall = Interruption["calls"][number];

/** The calls of an interrupted turn, by what is known of them. */
export function sortCalls(calls: readonly InterruptedCall[]): {
  readonly unknown: readonly InterruptedCall[];
  readonly neverRan: readonly InterruptedCall[];
  readonly waiting: readonly InterruptedCall[];
} {
  return {
    unknown: calls.filter(({ state }) => state === "outcome-unknown" || state === "unrecorded" || state === "provider"),
    neverRan: calls.filter(({ state }) => state === "never-started"),
    waiting: calls.filter(({ state }) => state === "awaiting"),
  };
}

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
      return `Tool call: ${item.name}, ${STATE_WORDS[item.state]}`;
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
