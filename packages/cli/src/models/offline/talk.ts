import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { type Carried, carriedIn } from "./carried.ts";
import { type Outcome, outcomeOf, UNANSWERED } from "./outcome.ts";

/** A call that was made since the task was stated, and what is known of it. */
export interface PastCall {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly outcome: Outcome;
}

/** What the messages come to. */
export interface Talk {
  /** The prompts that are at work: the last one, and those before it that nobody has answered or left (steering). */
  readonly prompts: readonly string[];
  /** The calls since the first of those. */
  readonly calls: readonly PastCall[];
  /** What a summary tells of the work before. */
  readonly carried: Carried | null;
  /** How often the turn at work was interrupted. */
  readonly interruptions: number;
  /** The last message asks for a summary of the conversation. */
  readonly isSummaryAsked: boolean;
  /** The last words that the assistant said before. */
  readonly lastAnswer: string;
}

/** Holdfast's boundaries (session/words.ts), and what a dialect puts before a conversation that begins with the assistant. */
const LEFT = /^\[The turn before this was interrupted: [\s\S]*\]$/;
const GO_ON = /^\[This turn was interrupted: [\s\S]*Go on with the task from here\.\]$/;
const BEGINNING = "(The conversation starts here.)";
const SUMMARY = /^\[Summary of the conversation so far\]/;
/** A prompt that only means: the task before this one. */
const CONTINUE = /^(please\s+)?(continue|go on|carry on|keep going|resume|finish( it| the task)?|proceed)[.!\s]*$/i;
const SUMMARISE = /\bsummar(y|ise|ize)\b/i;
const OF_THE_TALK = /\b(conversation|context|session|transcript|so far|compact)/i;

interface Reading {
  prompts: string[];
  calls: PastCall[];
  carried: Carried | null;
  interruptions: number;
  /** The assistant answered without calling anything, or the turn was left: the next prompt begins anew. */
  isOver: boolean;
  lastAnswer: string;
}

export function readTalk(prompt: LanguageModelV4Prompt): Talk {
  const asksAt = summaryAskedAt(prompt);
  const messages = asksAt === null ? prompt : prompt.filter((_, index) => index !== asksAt);
  const results = resultsIn(messages);
  const reading: Reading = {
    prompts: [],
    calls: [],
    carried: null,
    interruptions: 0,
    isOver: true,
    lastAnswer: "",
  };
  for (const message of messages) {
    if (message.role === "user") for (const text of textsOf(message)) userSaid(reading, text);
    if (message.role === "assistant") assistantSaid(reading, message, results);
  }
  const { prompts, carried, interruptions, lastAnswer } = reading;
  return {
    prompts,
    calls: callsAfter(reading.calls, carried?.through),
    carried,
    interruptions,
    isSummaryAsked: asksAt !== null,
    lastAnswer,
  };
}

function summaryAskedAt(prompt: LanguageModelV4Prompt): number | null {
  const last = prompt.at(-1);
  if (last?.role === "user") {
    const text = textsOf(last).join("\n");
    // A summary that is handed on is not asked for.
    if (!SUMMARY.test(text) && SUMMARISE.test(text) && OF_THE_TALK.test(text)) return prompt.length - 1;
  }
  const first = prompt[0];
  if (first?.role !== "system") return null;
  const beginning = first.content.slice(0, 300);
  return /^\W*(please\s+)?summar(ise|ize)\b/i.test(beginning) && OF_THE_TALK.test(beginning) ? 0 : null;
}

function userSaid(reading: Reading, said: string): void {
  const text = said.trim();
  if (text === "" || text === BEGINNING) return;
  const carried = carriedIn(text);
  if (carried) {
    reading.carried = carried;
    reading.prompts = [...carried.tasks.map((task) => task.text)];
    reading.calls = [];
    reading.isOver = carried.isOver;
    return;
  }
  if (SUMMARY.test(text)) return;
  if (GO_ON.test(text)) {
    reading.interruptions++;
    reading.isOver = false;
    return;
  }
  if (LEFT.test(text)) {
    reading.isOver = true;
    return;
  }
  // Behind a summary the prompt of the turn at work stands once more.
  if (reading.carried && reading.calls.length === 0 && reading.prompts.includes(text)) return;
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
  const words: string[] = [];
  for (const part of message.content) {
    if (part.type === "text") words.push(part.text);
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
  if (!hasCalls) reading.lastAnswer = words.join("");
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

/** The newest messages stand behind a summary that tells of them already. */
function callsAfter(calls: readonly PastCall[], through: string | undefined): readonly PastCall[] {
  const at = through === undefined ? -1 : calls.findIndex(({ id }) => id === through);
  return at < 0 ? calls : calls.slice(at + 1);
}

function textsOf(message: Extract<LanguageModelV4Message, { role: "user" }>): string[] {
  return message.content.flatMap((part) => (part.type === "text" ? [part.text] : []));
}

/** A call that was cut off, or is not JSON, has no input to go by. */
function inputOf(input: unknown): Record<string, unknown> {
  return typeof input === "object" && input !== null ? (input as Record<string, unknown>) : {};
}
