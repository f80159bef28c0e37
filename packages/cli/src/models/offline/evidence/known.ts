import { textRead } from "./output.ts";
import { samePath } from "./path.ts";
import type { PastCall } from "./talk.ts";

/** A call to make. */
export interface WantedCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/**
 * What is known so far, and which tools there are. Derived from the messages and never stored: the same messages give
 * the same answers.
 */
export interface KnownFacts {
  readonly calls: readonly PastCall[];
  /** The tools that the request offers; null: any (a summary is requested, and nothing is called). */
  readonly tools: ReadonlySet<string> | null;
  /** How many calls may be made at once. */
  readonly parallelMax: number;
}

/** The state of a question: answered by the call before index `to`, hopeless, or yet to be asked. */
export type Answerability =
  | { readonly state: "known"; readonly text: string; readonly to: number }
  | { readonly state: "missing"; readonly to: number }
  | { readonly state: "hopeless"; readonly why: string; readonly to: number }
  | { readonly state: "ask"; readonly calls: readonly WantedCall[] };

/** A call that keeps being interrupted is abandoned: something kills the agent each time. */
const INTERRUPTED_MAX = 60;
/** How often the same call may fail. */
export const FAILED_MAX = 2;

/** Asking again would have the same result. */
export const FORGOTTEN = "what it answers does not fit into my window";

export function has(known: KnownFacts, tool: string): boolean {
  return known.tools === null || known.tools.has(tool);
}

/** For read-only tools: asks again until there is an answer. */
export function look(
  known: KnownFacts,
  wanted: WantedCall,
  matches: (call: PastCall) => boolean,
  from: number,
): Answerability {
  if (!has(known, wanted.name)) return { state: "hopeless", why: `there is no tool "${wanted.name}"`, to: from };
  let interrupted = 0;
  let failed = 0;
  for (let at = known.calls.length - 1; at >= from; at--) {
    const call = known.calls[at]!;
    if (call.name !== wanted.name || !matches(call)) continue;
    const { kind, text } = call.outcome;
    if (kind === "done") return { state: "known", text, to: at + 1 };
    if (kind === "denied") return { state: "hopeless", why: describeDenial(text), to: at + 1 };
    if (kind === "failed" && isMissing(text)) return { state: "missing", to: at + 1 };
    if (kind === "failed" && ++failed >= FAILED_MAX) return { state: "hopeless", why: oneLine(text), to: at + 1 };
    // A file can be read in smaller parts; these results cannot.
    if (kind === "forgotten" && (wanted.name === "list" || wanted.name === "search")) {
      return { state: "hopeless", why: FORGOTTEN, to: at + 1 };
    }
    if (kind !== "failed" && ++interrupted >= INTERRUPTED_MAX) {
      return { state: "hopeless", why: "it was interrupted too often", to: at + 1 };
    }
  }
  return { state: "ask", calls: [wanted] };
}

/** The current text of a file: a read counts only if nothing tried to change the file after it. */
export function lookAt(known: KnownFacts, path: string, from: number): Answerability {
  const changedAt = known.calls.findLastIndex((call) => isChangeOf(call, path) && mayHaveRun(call));
  const found = look(
    known,
    { name: "read", input: { path } },
    ({ input }) => samePath(input["path"], path) && input["offset"] === undefined,
    Math.max(from, changedAt + 1),
  );
  if (found.state !== "known") return found;
  const text = textRead(found.text);
  return text === null ? { state: "hopeless", why: "it is not a text", to: found.to } : { ...found, text };
}

export function isChangeOf(call: PastCall, path: string): boolean {
  return (call.name === "write" || call.name === "edit") && samePath(call.input["path"], path);
}

export function mayHaveRun({ outcome }: PastCall): boolean {
  return outcome.kind !== "not-run" && outcome.kind !== "denied";
}

export function wasInterruptedTooOften(calls: readonly PastCall[]): boolean {
  return calls.length >= INTERRUPTED_MAX;
}

/** Only the first sentence of the reason: the rest is advice for a model. */
export function describeDenial(reason: string): string {
  const [first] = oneLine(reason.replace(/^This call did not run: /, "")).split(/\.(?: |$)/, 1);
  return first ? `it was not allowed (${first})` : "it was not allowed";
}

export function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 160 ? `${line.slice(0, 160)}…` : line;
}

/** Whether a tool reports that a path does not exist. */
function isMissing(text: string): boolean {
  return /ENOENT|no such file|does not exist/i.test(text);
}

/** Compares two texts of a file, ignoring the last line break, which not all tools show. */
export function sameText(a: string, b: string): boolean {
  return a === b || a.replace(/\n$/, "") === b.replace(/\n$/, "");
}
