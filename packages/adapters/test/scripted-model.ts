import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { generateText, type ModelMessage } from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { mutableCopy } from "../src/ai-sdk/mutable-copy.ts";

export type Content = LanguageModelV4Content;

/** One answer of the model: its parts, or what it does instead of answering. */
export type Step =
  | readonly Content[]
  | { readonly content: readonly Content[]; readonly finish: LanguageModelV4GenerateResult["finishReason"]["unified"] }
  | ((options: LanguageModelV4CallOptions) => Step | Promise<Step>)
  /** The parts of a stream as they are; for `streamText` alone. */
  | { readonly stream: ReadableStream<LanguageModelV4StreamPart> };

export const USAGE: LanguageModelV4Usage = {
  inputTokens: { total: 7, noCache: 4, cacheRead: 2, cacheWrite: 1 },
  outputTokens: { total: 5, text: 3, reasoning: 2 },
};

export const text = (words: string): Content => ({ type: "text", text: words });
export const call = (toolCallId: string, toolName: string, input: unknown = {}): Content => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input: JSON.stringify(input),
});

/** A model that answers as the script says, streamed or not, and keeps the prompts that it was sent. */
export function scripted(...steps: Step[]): MockLanguageModelV4 & { readonly prompts: LanguageModelV4Prompt[] } {
  const prompts: LanguageModelV4Prompt[] = [];
  const next = async (options: LanguageModelV4CallOptions): Promise<Exclude<Step, (...all: never[]) => unknown>> => {
    prompts.push(mutableCopy(options.prompt));
    let step = steps.shift();
    while (typeof step === "function") step = await step(options);
    if (!step) throw new Error("the script is over");
    return step;
  };
  const model = new MockLanguageModelV4({
    provider: "scripted.test",
    modelId: "scripted-1",
    doGenerate: async (options) => {
      const step = await next(options);
      if ("stream" in step) throw new Error("this step can only be streamed");
      const { content, finish } = answerOf(step);
      return { content: [...content], finishReason: { unified: finish, raw: finish }, usage: USAGE, warnings: [] };
    },
    doStream: async (options) => {
      const step = await next(options);
      if ("stream" in step) return { stream: step.stream };
      const { content, finish } = answerOf(step);
      return { stream: streamOf([...content.flatMap(streamed), finished(finish)]) };
    },
  });
  return Object.assign(model, { prompts });
}

export function streamOf(parts: LanguageModelV4StreamPart[]): ReadableStream<LanguageModelV4StreamPart> {
  return simulateReadableStream({ chunks: [{ type: "stream-start", warnings: [] }, ...parts] });
}

export function finished(reason: LanguageModelV4GenerateResult["finishReason"]["unified"]): LanguageModelV4StreamPart {
  return { type: "finish", finishReason: { unified: reason, raw: reason }, usage: USAGE };
}

function answerOf(step: Extract<Step, readonly Content[] | { content: unknown }>): {
  content: readonly Content[];
  finish: LanguageModelV4GenerateResult["finishReason"]["unified"];
} {
  if ("content" in step) return step;
  const calls = step.some((part) => part.type === "tool-call" && !part.providerExecuted);
  return { content: step, finish: calls ? "tool-calls" : "stop" };
}

/** A part as a provider streams it: in pieces, with a part of its own for each text. */
export function streamed(part: Content, index: number): LanguageModelV4StreamPart[] {
  const id = `p${index}`;
  switch (part.type) {
    case "text":
    case "reasoning": {
      const { type, providerMetadata } = part;
      const half = Math.ceil(part.text.length / 2);
      const deltas = [part.text.slice(0, half), part.text.slice(half)].filter((delta) => delta !== "");
      return [
        { type: `${type}-start`, id },
        ...deltas.map((delta) => ({ type: `${type}-delta` as const, id, delta })),
        { type: `${type}-end`, id, ...(providerMetadata ? { providerMetadata } : {}) },
      ];
    }
    case "tool-call": {
      if (part.providerExecuted) return [part];
      const half = Math.ceil(part.input.length / 2);
      return [
        { type: "tool-input-start", id: part.toolCallId, toolName: part.toolName },
        { type: "tool-input-delta", id: part.toolCallId, delta: part.input.slice(0, half) },
        { type: "tool-input-delta", id: part.toolCallId, delta: part.input.slice(half) },
        { type: "tool-input-end", id: part.toolCallId },
        part,
      ];
    }
    default:
      return [part];
  }
}

/** What the SDK would send for these messages. */
export async function promptOf(messages: readonly ModelMessage[]): Promise<LanguageModelV4Prompt> {
  const model = scripted([text("heard")]);
  await generateText({ model, messages: messages.map(mutableCopy) });
  return model.prompts[0]!;
}
