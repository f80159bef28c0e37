import { type AnthropicMessage, dialects, type JournalRecord, type Json, newId, type Usage } from "holdfast";
import type { NewRecord } from "holdfast/store";
import { labelsOf } from "./keys.ts";
import type { StartedCall, TranscriptState } from "./state.ts";
import type { SessionEntry, SessionKey } from "./surface.ts";

/**
 * Entries of a transcript as records, and back. An entry that says something is a `message` record in Anthropic's form,
 * which `holdfast show`, `search` and `export` understand; the rest of it is the record's `entry`. Every other entry is
 * a `claude.entry` record. Nothing is stored twice.
 */

type Shape = Readonly<Record<string, Json>>;

/** The text that Claude Code adds when a person stops it. */
const STOPPED = "[Request interrupted by user";

/** A copy that later changes by the caller do not affect. Throws a TypeError if it is not JSON. */
export function copyEntries(entries: readonly SessionEntry[]): Shape[] {
  return (JSON.parse(JSON.stringify(entries)) as Json[]).map((entry) => {
    if (typeof entry === "object" && entry !== null && !Array.isArray(entry)) return entry as Shape;
    throw new TypeError("An entry of a transcript must be an object. Nothing was stored.");
  });
}

/** The records of the entries that are not stored yet. Adds them to the state. */
export function entryRecords(state: TranscriptState, key: SessionKey, entries: readonly Shape[]): NewRecord[] {
  const records: NewRecord[] = [];
  const add = (record: NewRecord): void => {
    state.add(record);
    records.push(record);
  };
  let isAnswer = false;
  for (const entry of entries) {
    if (state.hasUuid(entry["uuid"])) continue;
    if (!state.hasEntries) add({ kind: "session", labels: labelsOf(key) });
    const message = messageIn(entry, key);
    if (isAnswer && message?.role === "user") endTurn(state, add);
    if (!message || isKnownPrompt(state, entry, message)) add({ kind: "claude.entry", entry });
    else isAnswer = addMessage(state, entry, message, add);
    addAttributes(state, entry, add);
  }
  if (isAnswer) endTurn(state, add);
  return records;
}

function endTurn(state: TranscriptState, add: (record: NewRecord) => void): void {
  const { turns: turn, status } = state.turn;
  if (status === "open") add({ kind: "turn.ended", turn, outcome: "completed" });
}

/** The entry that a record holds; null if it holds none. */
export function entryIn(record: JournalRecord): SessionEntry | null {
  const entry = record["entry"] as Shape | undefined;
  // A copy in a later epoch: the original is in an earlier one.
  if (!entry || record["carried"] === true) return null;
  if (record.kind === "claude.entry") return { ...entry } as SessionEntry;
  if (record.kind !== "message") return null;
  return {
    ...entry,
    message: { ...(entry["message"] as Shape), ...(record["message"] as Shape) },
  } as unknown as SessionEntry;
}

/** The turn that a record of this transcript belongs to. It is resumed if it had ended. */
export function openTurn(state: TranscriptState, add: (record: NewRecord) => void): number {
  const { turns, status, resumes } = state.turn;
  if (turns > 0 && status !== "open") add({ kind: "turn.resumed", turn: turns, n: resumes + 1 });
  // A sub-agent's call can start before its prompt is mirrored: that will be the first turn.
  return Math.max(turns, 1);
}

export function startTurn(
  state: TranscriptState,
  message: AnthropicMessage,
  members: Shape,
  add: (record: NewRecord) => void,
): void {
  const id = newId();
  const { turns, status } = state.turn;
  if (turns > 0 && status === "open") add({ kind: "turn.ended", turn: turns, outcome: "left" });
  add({ kind: "turn.started", turn: turns + 1, prompt: id });
  add({ kind: "message", id, turn: turns + 1, step: id, message: message as unknown as Json, ...members });
  if (turns > 0) return;
  // A turn begins without open calls, so those that started before it are recorded again.
  for (const call of state.interruptedCalls) for (const record of callRecords(call, null)) add(record);
}

/** The records of a call that has started, and may have ended. */
export function callRecords(call: StartedCall, place: { message: string; index: number } | null): NewRecord[] {
  const { id, turn, name, input, ended } = call;
  const common = { turn, call: id, message: null, ...place, name };
  const start = { kind: "tool.started", ...common, input, intents: true };
  return ended ? [start, { kind: "tool.ended", id: newId(), ...common, ...ended }] : [start];
}

/** Returns whether the model's answer is complete. */
function addMessage(
  state: TranscriptState,
  entry: Shape,
  message: AnthropicMessage,
  add: (record: NewRecord) => void,
): boolean {
  const { role: _, content: __, ...envelope } = entry["message"] as Shape;
  const members = { entry: { ...entry, message: envelope } };
  const isResult = dialects.anthropic.results(message).length > 0;
  const isStop = message.role === "user" && dialects.anthropic.text(message).startsWith(STOPPED);
  const isOfThisTurn = isResult || isStop || state.prompt(entry["promptId"]) !== null;
  if (state.turn.turns === 0 || (message.role === "user" && !isOfThisTurn)) {
    startTurn(state, message, members, add);
    return false;
  }
  const turn = openTurn(state, add);
  const id = newId();
  const response = envelope["id"];
  const before = typeof response === "string" && message.role === "assistant" ? state.stepOf(response) : null;
  const model = envelope["model"];
  const named = typeof model === "string" && message.role === "assistant" ? { model } : {};
  add({ kind: "message", id, turn, step: before ?? id, message: message as unknown as Json, ...named, ...members });
  // Claude Code writes an entry for each block of a response, and repeats the usage in each.
  const usage = message.role === "assistant" && before === null ? usageIn(envelope["usage"]) : null;
  if (usage) add({ kind: "usage", turn, usage });
  if (isStop) add({ kind: "turn.ended", turn, outcome: "aborted", by: "user" });
  const reason = envelope["stop_reason"];
  const isLast = typeof reason === "string" && reason !== "tool_use" && reason !== "pause_turn";
  return message.role === "assistant" && isLast && dialects.anthropic.calls(message).length === 0;
}

/** What an entry says to a person; null if it says nothing. */
function messageIn(entry: Shape, { subpath }: SessionKey): AnthropicMessage | null {
  const { type, isMeta, isSidechain, isCompactSummary } = entry;
  if (type !== "user" && type !== "assistant") return null;
  if (isMeta === true || isCompactSummary === true || (isSidechain === true && subpath === undefined)) return null;
  const { role, content } = (entry["message"] ?? {}) as Shape;
  if (role !== type || (typeof content !== "string" && !Array.isArray(content))) return null;
  const message = { role, content } as unknown as AnthropicMessage;
  return dialects.anthropic.check(message) === null ? message : null;
}

/** A hook has recorded this prompt: it is shown once. */
function isKnownPrompt(state: TranscriptState, entry: Shape, message: AnthropicMessage): boolean {
  if (message.role !== "user" || dialects.anthropic.results(message).length > 0) return false;
  return state.prompt(entry["promptId"])?.isMirrored === false;
}

function addAttributes(state: TranscriptState, entry: Shape, add: (record: NewRecord) => void): void {
  const { type, cwd, customTitle, aiTitle } = entry;
  if (state.cwd === undefined && typeof cwd === "string") add({ kind: "session", cwd });
  if (type === "custom-title" && typeof customTitle === "string")
    add({ kind: "session", title: customTitle, own: true });
  else if (type === "ai-title" && typeof aiTitle === "string" && !state.hasOwnTitle)
    add({ kind: "session", title: aiTitle });
}

function usageIn(usage: Json | undefined): { [member: string]: Json } | null {
  if (typeof usage !== "object" || usage === null) return null;
  const spent = usage as Shape;
  const counts: Record<keyof Usage, Json | undefined> = {
    inputTokens: spent["input_tokens"],
    outputTokens: spent["output_tokens"],
    cacheReadTokens: spent["cache_read_input_tokens"],
    cacheWriteTokens: spent["cache_creation_input_tokens"],
  } as Record<keyof Usage, Json | undefined>;
  const known = Object.entries(counts).filter(([, count]) => typeof count === "number");
  return known.length > 0 ? Object.fromEntries(known as [string, Json][]) : null;
}
