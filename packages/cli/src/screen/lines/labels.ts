import { failureOf } from "../../failure.ts";
import { homeFolder } from "../../home.ts";
import type { ChatState } from "../../host/host.ts";
import { shortId } from "../../short-id.ts";
import { fit, plainLine } from "../../terminal/index.ts";
import type { CallState } from "../../transcript/item.ts";
import { callStateWords, callWords } from "../../transcript/words.ts";
import type { Colour } from "./line.ts";

export { shortId };

const SUMMARY_COLUMNS_MAX = 200;

/** What a call does, on one line, without the name of the tool. */
export function callSummary(call: { readonly name: string; readonly input: unknown }): string {
  const words = callWords(call, SUMMARY_COLUMNS_MAX);
  return words.startsWith(call.name) ? words.slice(call.name.length).replace(/^:? /u, "") : words;
}

export const CALL_STATES: Record<
  CallState | "answered",
  { readonly mark: string; readonly words: string; readonly colour: Colour }
> = {
  open: { mark: "○", words: callStateWords.open, colour: "grey" },
  waiting: { mark: "?", words: callStateWords.waiting, colour: "yellow" },
  // A person has decided, and others have not.
  answered: { mark: "○", words: "answered", colour: "grey" },
  running: { mark: "●", words: callStateWords.running, colour: "cyan" },
  // Its mark says it.
  done: { mark: "✓", words: "", colour: "green" },
  failed: { mark: "✗", words: callStateWords.failed, colour: "red" },
  denied: { mark: "⊘", words: callStateWords.denied, colour: "yellow" },
  unknown: { mark: "!", words: callStateWords.unknown, colour: "yellow" },
  "not-run": { mark: "–", words: callStateWords["not-run"], colour: "grey" },
};

/** A folder in short form, with ~ for the home folder. */
export function folderWords(cwd: string, columns: number, home: string | null = homeFolder()): string {
  const short =
    home === null ? cwd : cwd === home ? "~" : cwd.startsWith(`${home}/`) ? `~${cwd.slice(home.length)}` : cwd;
  const harmless = plainLine(short);
  if (harmless.length <= columns) return harmless;
  // The end of a path says more than its start.
  return `…${harmless.slice(harmless.length - columns + 1)}`;
}

/** The name people know a session by: its title, or else its first prompt. */
export function chatName({ title, items, id }: Pick<ChatState, "title" | "items" | "id">, columns: number): string {
  const first = items.find((item) => item.kind === "prompt");
  return excerpt(title || (first?.kind === "prompt" ? first.text : "") || shortId(id), columns);
}

/** The start of a text, on one line. */
export function excerpt(text: string, columns: number): string {
  return fit(plainLine(text.slice(0, columns * 8)), columns);
}

export function tokensWords(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 999_500) return `${(count / 1_000).toFixed(count < 9_950 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

export function elapsedWords(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** An error message with its hints. */
export function errorWords(error: unknown): string {
  const { message, hints } = failureOf(error);
  return [message, ...hints].join(" ");
}
