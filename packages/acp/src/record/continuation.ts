import { type Account, type AcpMessage, dialects, type Reading } from "holdfast";
import { objectOf, type Params, stringOf } from "./message.ts";

/** The newest calls are named. */
const CALLS_MAX = 50;
const NAME_CHARS = 120;

export interface Continuation {
  readonly text: string;
  /** What the person had asked for in this turn, as they wrote it: the agent may have lost it. */
  readonly request: readonly Params[];
}

/** What an agent is told when its interrupted turn goes on: what had happened to each call, and the request. */
export function continuationOf(
  { entries, interruption }: Reading<AcpMessage>,
  { words, calls }: Account,
): Continuation {
  const turn = interruption?.turn ?? null;
  const own = entries.filter((entry) => entry.turn === turn);
  const open = new Map(calls.map((call) => [call.id, call]));
  const begun = begunIn(own);
  const openLines = calls.map(({ id, name, words }) => {
    // An agent that says so before it asks for permission has not begun: then the words say that it waits.
    const isBegun = begun.has(id) && open.get(id)?.effect === "possible";
    return `${quoted(name)}: ${isBegun ? "was reported as running; " : ""}${words}.`;
  });
  const lines = [...endedCalls(own), ...openLines];
  const named = lines.slice(-CALLS_MAX);
  const how = interruption?.how;
  const isHandedOver = how?.kind === "handed-over" && calls.every(({ effect }) => effect === "none");
  const why = how?.kind === "suspended" ? how.reason : words.status;
  const text = [
    isHandedOver
      ? "[The program that runs you was restarted between two steps."
      : `[Your turn was cut off, and you were started again (${why}). Nobody has written since.`,
    ...(lines.length === 0 ? ["You had made no tool call in this turn."] : ["Your tool calls in this turn:"]),
    ...(named.length < lines.length ? [`- ${lines.length - named.length} earlier calls are left out.`] : []),
    ...named.map((line) => `- ${line}`),
    ...(open.size > 0 ? ["If a call may have taken effect, look whether it has before you make it again."] : []),
    "Continue the task from here. The request that it began with is repeated below, in case you no longer have it.]",
  ];
  return { text: text.join("\n"), request: requestIn(interruption?.prompt.message) };
}

function requestIn(message: AcpMessage | undefined): readonly Params[] {
  const blocks = objectOf(message)?.["prompt"];
  return (Array.isArray(blocks) ? blocks : []).map(objectOf).filter((block) => block !== null);
}

/** The calls that the agent has reported as running. */
function begunIn(entries: Reading<AcpMessage>["entries"]): ReadonlySet<unknown> {
  const updates = entries.map(({ message }) => objectOf(message) ?? {});
  return new Set(updates.filter(({ status }) => status === "in_progress").map(({ toolCallId }) => toolCallId));
}

/** The calls that ended, in order, with how. One that a crash ended has the words that were recorded for it then. */
function endedCalls(entries: Reading<AcpMessage>["entries"]): string[] {
  const { acp } = dialects;
  const names = new Map<string, string>();
  const lines: string[] = [];
  for (const { message, synthetic } of entries) {
    for (const { id, name } of acp.calls(message)) names.set(id, name);
    for (const { call } of acp.results(message)) {
      const update = objectOf(message) ?? {};
      const status = synthetic === undefined ? String(update["status"]) : saidIn(update);
      lines.push(`${quoted(names.get(call) ?? call)}: ${status.replace(/\.$/, "")}.`);
    }
  }
  return lines;
}

function saidIn({ content }: Params): string {
  const first = Array.isArray(content) ? objectOf(objectOf(content[0])?.["content"]) : null;
  return stringOf(first?.["text"]) ?? "interrupted";
}

/** On one line, and recognizable as a name: an agent may call its tools anything. */
function quoted(name: string): string {
  const line = name.replaceAll(/\s+/g, " ");
  return JSON.stringify(line.length > NAME_CHARS ? `${line.slice(0, NAME_CHARS).toWellFormed()}…` : line);
}
