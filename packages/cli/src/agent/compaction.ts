import { generateText, jsonSchema, type ModelMessage, type ToolSet, tool } from "ai";
import { dialects, type Entry, type Json, type Session, type Usage } from "holdfast";
import { defined } from "../defined.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import { BETWEEN_TURNS, sumUsage, usageOf } from "../store/usage.ts";
import { type PlanStep, planInSummary, planOf, withPlan } from "../transcript/plan.ts";
import { SUMMARY_HEAD } from "../transcript/summary.ts";

/** Compact before the next request when the conversation fills more than this share of the window. */
const FULL = 0.8;
/** Keep the newest messages unchanged, up to this share of the window. */
const KEPT = 0.2;

/** A rough estimate; providers count exactly, but only afterwards. */
const CHARACTERS_PER_TOKEN = 4;

export const SUMMARISE =
  "Summarise this conversation so that the work can continue without it. State the task in the user's own words, what has been done, what was found, what remains to be done, and what is uncertain. Do not call tools.";

export function isNearlyFull(usedTokens: number, windowTokens: number): boolean {
  return usedTokens > windowTokens * FULL;
}

export function estimateTokens(messages: readonly unknown[]): number {
  let characters = 0;
  for (const message of messages) characters += charactersOf(message);
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}

/** An image costs about as much as this many characters, however many bytes it has. */
const IMAGE_CHARACTERS = "x".repeat(6000);

function charactersOf(message: unknown): number {
  return JSON.stringify(message, function (this: unknown, key, value: unknown) {
    const isFile = key === "data" && (this as { readonly type?: unknown }).type === "data";
    return isFile && typeof value === "string" && value.length > IMAGE_CHARACTERS.length ? IMAGE_CHARACTERS : value;
  }).length;
}

/**
 * Replaces the conversation with a summary, the prompt of the running or interrupted turn, and the newest messages.
 * Requests the summary first; then the replacement is atomic (C7), and can be undone until the next turn.
 */
export async function compact(
  session: Session<ModelMessage>,
  { model, windowTokens, providerOptions }: Pick<ResolvedModel, "model" | "windowTokens" | "providerOptions">,
  signal?: AbortSignal,
): Promise<{ readonly before: number; readonly after: number }> {
  const before = session.messages.length;
  const messages = [...fitWindow(session.messages, windowTokens), { role: "user", content: SUMMARISE } as const];
  const { text, usage } = await generateText({
    model,
    messages,
    maxRetries: 3,
    ...declareTools(messages),
    ...defined({ providerOptions, abortSignal: signal }),
  });
  // Record the cost even if the summary turns out to be unusable.
  const { inputTokens, outputTokens } = usage;
  await recordUsage(session, {
    ...defined({ inputTokens, outputTokens }),
  });
  if (text.trim() === "") {
    throw new Error("the model returned an empty summary; the conversation is unchanged");
  }
  const summary: ModelMessage = { role: "user", content: withPlan(`${SUMMARY_HEAD}\n\n${text}`, latestPlan(session)) };
  const prompt = session.turn?.prompt ?? session.interruption?.prompt;
  const tail = newestEntries(session.entries, windowTokens * KEPT * CHARACTERS_PER_TOKEN);
  const isKept = !prompt || tail.some(({ id }) => id === prompt.id);
  await session.replace([summary, ...(isKept ? [] : [prompt]), ...tail], { reason: "compaction" });
  return { before, after: session.messages.length };
}

function latestPlan({ entries }: Session<ModelMessage>): PlanStep[] | null {
  const { calls, text } = dialects["ai-sdk"];
  for (const { message } of entries.toReversed()) {
    const plan =
      calls(message)
        .map(planOf)
        .findLast((one) => one !== null) ?? planInSummary(text(message));
    if (plan) return plan;
  }
  return null;
}

async function recordUsage(session: Session<ModelMessage>, usage: Usage): Promise<void> {
  if (session.turn) return session.turn.usage(usage);
  const all = sumUsage([usageOf({ id: session.id, attributes: session.attributes, usage: {} }), usage]);
  await session.note(BETWEEN_TURNS, { session: session.id, usage: all as Json });
}

/**
 * Providers such as Anthropic reject a conversation with calls of tools that the request does not declare. Declares
 * them, and forbids calling them.
 */
function declareTools(messages: readonly ModelMessage[]): { tools?: ToolSet; toolChoice?: "none" } {
  const names = new Set<string>();
  for (const message of messages)
    for (const { name, by } of dialects["ai-sdk"].calls(message)) if (by === "agent") names.add(name);
  if (names.size === 0) return {};
  const inputSchema = jsonSchema({ type: "object", additionalProperties: true });
  const tools = Object.fromEntries([...names].map((name) => [name, tool({ description: "Not now.", inputSchema })]));
  return { tools: tools as ToolSet, toolChoice: "none" };
}

/**
 * The newest entries visible to the model, up to this many characters; stops at the first that does not fit. Keeps or
 * drops a response together with all of its results: `replace` keeps them together, and would bring back the large
 * ones.
 */
export function newestEntries(entries: readonly Entry<ModelMessage>[], charactersMax: number): Entry<ModelMessage>[] {
  const kept: Entry<ModelMessage>[] = [];
  let results: Entry<ModelMessage>[] = [];
  let characters = 0;
  for (const entry of entries.toReversed()) {
    if (entry.replacedBy || entry.metadata.hiddenFromModel || entry.late) continue;
    characters += charactersOf(entry.message);
    if (characters > charactersMax) break;
    results.unshift(entry);
    if (entry.message.role === "tool") continue;
    kept.unshift(...results);
    results = [];
  }
  return kept;
}

/** Texts this long are cut to their beginning when space runs out. */
const LONG = 400;
const BEGINNING = 200;

/**
 * Makes room for the summary. Shortens the oldest results first, which take the most space, then the content of writes,
 * which is in the files. Signatures cover what came before them, so this drops reasoning and provider options (R1).
 */
export function fitWindow(messages: readonly ModelMessage[], windowTokens: number): readonly ModelMessage[] {
  let excess = (estimateTokens(messages) - windowTokens * FULL) * CHARACTERS_PER_TOKEN;
  if (excess <= 0) return messages;
  const short = (text: string): string => {
    if (excess <= 0 || text.length < LONG) return text;
    const value = `${text.slice(0, BEGINNING).toWellFormed()}\n[shortened]`;
    excess -= text.length - value.length;
    return value;
  };
  const results = messages.map((message): ModelMessage => {
    if (message.role !== "tool") return message;
    const content = message.content.map((part) => {
      if (part.type !== "tool-result") return part;
      const { output } = part;
      if (output.type !== "text" && output.type !== "error-text") return part;
      return { ...part, output: { ...output, value: short(output.value) } };
    });
    return { ...message, content };
  });
  return results.flatMap((message): ModelMessage[] => {
    if (message.role !== "assistant" || typeof message.content === "string") return [message];
    const content = message.content.flatMap((part) => {
      if (part.type === "reasoning" || part.type === "reasoning-file") return [];
      if ("providerExecuted" in part && part.providerExecuted) return [part];
      const { providerOptions: _signed, ...plain } = part as typeof part & { providerOptions?: unknown };
      return [
        plain.type === "tool-call" && plain.toolName === "write"
          ? { ...plain, input: shortenInput(plain.input, short) }
          : plain,
      ] as (typeof part)[];
    });
    return content.length === 0 ? [] : [{ role: "assistant", content }];
  });
}

function shortenInput(input: unknown, short: (text: string) => string): unknown {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return input;
  const members = Object.entries(input).map(([name, value]) => [
    name,
    typeof value === "string" ? short(value) : value,
  ]);
  return Object.fromEntries(members);
}
