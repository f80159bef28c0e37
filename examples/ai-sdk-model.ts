import { setTimeout as sleep } from "node:timers/promises";
import type { LanguageModel } from "ai";

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type Prompt = Parameters<Model["doStream"]>[0]["prompt"];
type Part = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

const PLAN = ["read_notes", "send_mail", "post_summary"];
const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 42, text: 42, reasoning: 0 },
};

/**
 * A stand-in for a model of the AI SDK, so that the example needs no key and no network. It reads what it is told of
 * calls that were cut off, as a real model would.
 */
export const planner: Model = {
  specificationVersion: "v4",
  provider: "examples",
  modelId: "planner",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("this model only streams")),
  doStream: async ({ prompt, abortSignal }) => ({ stream: ReadableStream.from(answer(prompt, abortSignal)) }),
};

async function* answer(prompt: Prompt, signal: AbortSignal | undefined): AsyncGenerator<Part> {
  const { text, calls } = plan(prompt);
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "0" };
  for (const delta of text.split(/(?<= )/)) {
    await sleep(30, undefined, signal && { signal });
    yield { type: "text-delta", id: "0", delta };
  }
  yield { type: "text-end", id: "0" };
  for (const toolName of calls) {
    yield { type: "tool-call", toolCallId: `call_${prompt.length}_${toolName}`, toolName, input: "{}" };
  }
  const reason = calls.length > 0 ? "tool-calls" : "stop";
  yield { type: "finish", finishReason: { unified: reason, raw: reason }, usage: USAGE };
}

function plan(prompt: Prompt): { text: string; calls: readonly string[] } {
  const results = prompt.flatMap(({ role, content }) => (role === "tool" ? content : []));
  if (results.length === 0) return { text: "I will read the notes, send the mail and post the summary.", calls: PLAN };
  const unknown = results.flatMap((part) =>
    part.type === "tool-result" && JSON.stringify(part.output).includes("heck before") ? part.toolName : [],
  );
  const doubt =
    unknown.length > 0 ? `, but I do not know whether ${unknown.join(" and ")} took effect: please check` : "";
  return { text: `That is all done${doubt}.`, calls: [] };
}
