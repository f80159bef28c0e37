import { createHash } from "node:crypto";
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { type Outcome, outcomeOf, UNANSWERED } from "./outcome.ts";
import { readProgress, type SavedProgress } from "./progress.ts";

/** A call made since the task was stated, and what is known about it. */
export interface PastCall {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly outcome: Outcome;
}

/** What the messages say. */
export interface Talk {
  /** The prompts in progress: the last one, and those before it that were neither answered nor left (steering). */
  readonly prompts: readonly string[];
  /** The calls since the first of those. */
  readonly calls: readonly PastCall[];
  /** What a summary says about earlier work. */
  readonly carried: SavedProgress | null;
  /** How often the current turn was interrupted. */
  readonly interruptions: number;
  /** The last message, or the system prompt, asks for a summary of the conversation. */
  readonly isSummaryAsked: boolean;
  /** The assistant has answered the prompts, or the turn was left. */
  readonly isOver: boolean;
  /** Where the messages end: a summary covers everything up to here. */
  readonly through: SavedProgress["through"];
}

/**
 * Holdfast's boundaries (view/model-words.ts), and a dialect's words before a conversation that the assistant starts.
 */
const LEFT = /^\[The turn before this was interrupted: [\s\S]*\]$/;
const GO_ON = /^\[This turn was interrupted: [\s\S]*(?:Go on with|Continue) the task from here\.\]$/;
const BEGINNING = "(The conversation starts here.)";
const SUMMARY = /^\[Summary of the conversation so far\]/;
/** A prompt that only means: continue the previous task. */
const CONTINUE = /^(please\s+)?(continue|go on|carry on|keep going|resume|finish( it| the task)?|proceed)[.!\s]*$/i;
const SUMMARISE =
  /^\W*(please\s+)?(summari[sz]e\b|compact\b|(write|give|create|provide|make)\s(?!\S+:).{0,40}\bsummary\b)/i;
const OF_THE_TALK = /\b(conversation|context|session|transcript|so far|compact)/i;

interface Reading {
  prompts: string[];
  calls: PastCall[];
  carried: SavedProgress | null;
  interruptions: number;
  /** The assistant answered without a call, or the turn was left: the next prompt starts a new task. */
  isOver: boolean;
}

export function readTalk(prompt: LanguageModelV4Prompt): Talk {
  const asksAt = summaryAskedAt(prompt);
  const messages = asksAt === null ? prompt : prompt.filter((_, index) => index !== asksAt);
  const results = resultsIn(messages);
  const reading: Reading = { prompts: [], calls: [], carried: null, interruptions: 0, isOver: true };
  for (const message of withoutCovered(messages)) {
    if (message.role === "user") for (const text of textsOf(message)) userSaid(reading, text);
    if (message.role === "assistant") assistantSaid(reading, message, results);
  }
  const { prompts, calls, carried, interruptions, isOver } = reading;
  const through = endOf(messages);
  return { prompts, calls, carried, interruptions, isOver, isSummaryAsked: asksAt !== null, through };
}

/** Drops messages after a summary that the summary already covers. */
function withoutCovered(messages: readonly LanguageModelV4Message[]): readonly LanguageModelV4Message[] {
  const summaryAt = messages.findLastIndex((message) => carriedOf(message) !== null);
  if (summaryAt < 0) return messages;
  const behind = messages.slice(summaryAt + 1);
  const { call, since, last } = carriedOf(messages[summaryAt]!)!.through;
  const called = call === "" ? -1 : behind.findLastIndex((message) => idsIn(message).includes(call));
  // If that call is not among them, no message that the summary covers has calls.
  const firstCall = behind.findIndex((message) => idsIn(message).length > 0);
  const plain = firstCall < 0 ? behind : behind.slice(0, firstCall);
  const end = called < 0 ? plain.findLastIndex((message) => digestOf(message) === last) : called + since;
  return [...messages.slice(0, summaryAt + 1), ...behind.slice(end + 1)];
}

function carriedOf(message: LanguageModelV4Message): SavedProgress | null {
  return message.role === "user" ? readProgress(textsOf(message).join("\n")) : null;
}

/**
 * Identified by what is never shortened: the last call, and the number of messages after it. Without a recent call, by
 * the text of the last message.
 */
function endOf(messages: readonly LanguageModelV4Message[]): SavedProgress["through"] {
  const at = messages.findLastIndex((message) => idsIn(message).length > 0);
  const call = at < 0 ? "" : idsIn(messages[at]!).at(-1)!;
  const last = messages.length > 0 ? digestOf(messages.at(-1)!) : "";
  return { call, since: messages.length - 1 - at, last };
}

function idsIn(message: LanguageModelV4Message): string[] {
  if (message.role !== "assistant" && message.role !== "tool") return [];
  return message.content.flatMap((part) =>
    part.type === "tool-call" || part.type === "tool-result" ? [part.toolCallId] : [],
  );
}

function digestOf({ role, content }: LanguageModelV4Message): string {
  const words = typeof content === "string" ? content : content.map((part) => (part.type === "text" ? part.text : ""));
  return createHash("sha256")
    .update(JSON.stringify([role, words]))
    .digest("hex")
    .slice(0, 16);
}

function summaryAskedAt(prompt: LanguageModelV4Prompt): number | null {
  const last = prompt.at(-1);
  if (last?.role === "user" && asksForSummary(textsOf(last).join("\n"))) return prompt.length - 1;
  const first = prompt[0];
  return first?.role === "system" && asksForSummary(first.content) ? 0 : null;
}

function asksForSummary(text: string): boolean {
  return SUMMARISE.test(text) && OF_THE_TALK.test(text.slice(0, 300));
}

function userSaid(reading: Reading, said: string): void {
  const text = said.trim();
  if (text === "" || text === BEGINNING) return;
  const carried = readProgress(text);
  if (carried) {
    reading.carried = carried;
    reading.prompts = [...carried.tasks.map((task) => task.text)];
    reading.calls = [];
    reading.isOver = carried.isOver;
    reading.interruptions = carried.interruptions;
    return;
  }
  if (SUMMARY.test(text)) return;
  if (GO_ON.test(text)) {
    reading.interruptions++;
    reading.isOver = false;
    return;
  }
  if (LEFT.test(text)) {
    reading.interruptions++;
    reading.isOver = true;
    return;
  }
  // After a summary, the prompt of the current turn is repeated.
  if (reading.carried && !reading.isOver && reading.calls.length === 0 && reading.prompts.includes(text)) return;
  if (CONTINUE.test(text) && reading.prompts.length > 0) {
    reading.isOver = false;
    return;
  }
  if (reading.isOver) {
    reading.prompts = [];
    reading.calls = [];
    reading.carried = null;
    reading.interruptions = 0;
  }
  reading.prompts.push(text);
  reading.isOver = false;
}

type AssistantMessage = Extract<LanguageModelV4Message, { role: "assistant" }>;

function assistantSaid(reading: Reading, message: AssistantMessage, results: ReadonlyMap<string, Outcome>): void {
  let hasCalls = false;
  for (const part of message.content) {
    if (part.type !== "tool-call") continue;
    hasCalls = true;
    reading.calls.push({
      id: part.toolCallId,
      name: part.toolName,
      input: inputOf(part.input),
      outcome: results.get(part.toolCallId) ?? UNANSWERED,
    });
  }
  reading.isOver = !hasCalls;
}

function resultsIn(messages: readonly LanguageModelV4Message[]): Map<string, Outcome> {
  const results = new Map<string, Outcome>();
  for (const message of messages) {
    if (message.role !== "tool" && message.role !== "assistant") continue;
    for (const part of message.content) {
      if (part.type === "tool-result") results.set(part.toolCallId, outcomeOf(part.output));
    }
  }
  return results;
}

function textsOf(message: Extract<LanguageModelV4Message, { role: "user" }>): string[] {
  return message.content.flatMap((part) => (part.type === "text" ? [part.text] : []));
}

/** A call that was cut off or is not JSON has no usable input. */
function inputOf(input: unknown): Record<string, unknown> {
  return typeof input === "object" && input !== null ? (input as Record<string, unknown>) : {};
}
