import { setTimeout } from "node:timers/promises";
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { brokenConnection, statusError, windowError } from "./failures.ts";
import { type Reply, replyTo } from "./reply.ts";
import { streamOf } from "./stream.ts";

export interface OfflineOptions {
  /** Before each delta. */
  readonly delayMs?: number;
  /** Larger requests are refused, as by a provider. */
  readonly windowTokens?: number;
}

const CHARACTERS_PER_TOKEN = 4;

/**
 * The model that needs neither key nor network: a pure function of the messages it is sent. It understands a few kinds
 * of task (docs/guides/offline-model.md), and works through them with the agent's tools, guided by their results.
 */
export function offlineModel({ delayMs = 0, windowTokens = 32_000 }: OfflineOptions = {}): LanguageModelV4 {
  const prepare = async (
    options: LanguageModelV4CallOptions,
  ): Promise<{ reply: Reply; usage: LanguageModelV4Usage }> => {
    options.abortSignal?.throwIfAborted();
    const reply = replyTo(options);
    const usage = usageOf(options, reply);
    const tokens = usage.inputTokens.total ?? 0;
    // Never refuse a summary: it is what helps when the window is full.
    if (tokens > windowTokens && !reply.isSummary) throw await windowError(tokens, windowTokens);
    if (reply.failure?.kind === "status") throw await statusError(reply.failure.status);
    if (reply.failure?.kind === "unreachable") throw brokenConnection("ECONNREFUSED");
    return { reply, usage };
  };
  return {
    specificationVersion: "v4",
    provider: "offline",
    modelId: "offline",
    supportedUrls: {},
    doGenerate: async (options) => {
      const { reply, usage } = await prepare(options);
      // As long as streaming it would take.
      if (delayMs > 0) await setTimeout(delayMs * deltasOf(reply), undefined, signalOf(options));
      if (reply.failure?.kind === "hang") await never(options.abortSignal);
      if (reply.failure && reply.failure.kind !== "refuse" && reply.failure.kind !== "empty") {
        throw brokenConnection("UND_ERR_SOCKET");
      }
      return { content: contentOf(reply), finishReason: finishOf(reply), usage, warnings: [] };
    },
    doStream: async (options) => {
      const { reply, usage } = await prepare(options);
      return {
        stream: streamOf(reply, { usage, finishReason: finishOf(reply), delayMs, signal: options.abortSignal }),
      };
    },
  };
}

/** A limit for long summaries, which nobody watches being streamed. */
const DELTAS_MAX = 60;

function deltasOf({ reasoning, text }: Reply): number {
  return Math.min(DELTAS_MAX, `${reasoning} ${text}`.split(" ").length);
}

function signalOf({ abortSignal }: LanguageModelV4CallOptions): { signal?: AbortSignal } {
  return abortSignal ? { signal: abortSignal } : {};
}

function contentOf(reply: Reply): LanguageModelV4Content[] {
  if (reply.failure) return [];
  const content: LanguageModelV4Content[] = [];
  if (reply.reasoning !== "") content.push({ type: "reasoning", text: reply.reasoning });
  if (reply.text !== "") content.push({ type: "text", text: reply.text });
  for (const { id, name, input } of reply.calls) {
    content.push({ type: "tool-call", toolCallId: id, toolName: name, input: JSON.stringify(input) });
  }
  return content;
}

function finishOf({ calls, failure }: Reply): LanguageModelV4FinishReason {
  if (failure?.kind === "refuse") return { unified: "content-filter", raw: "refusal" };
  if (failure?.kind === "error" || failure?.kind === "malformed") return { unified: "error", raw: "error" };
  return calls.length > 0 ? { unified: "tool-calls", raw: "tool_use" } : { unified: "stop", raw: "end_turn" };
}

/** Estimated from the number of characters: good enough to watch a window fill up. */
function usageOf({ prompt, tools }: LanguageModelV4CallOptions, reply: Reply): LanguageModelV4Usage {
  const input = tokensOf(JSON.stringify(prompt)) + tokensOf(JSON.stringify(tools ?? []));
  const reasoning = tokensOf(reply.reasoning);
  const text = tokensOf(reply.text) + reply.calls.reduce((sum, { input }) => sum + tokensOf(JSON.stringify(input)), 0);
  return {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: text + reasoning, text, reasoning },
  };
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

/** Waits until it is aborted. */
function never(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    // A promise alone does not keep the process alive; a hanging server's open connection would.
    const alive = setInterval(() => {}, 60_000);
    signal?.addEventListener("abort", () => {
      clearInterval(alive);
      reject(signal.reason);
    });
  });
}
