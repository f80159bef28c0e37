import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { jsonSchema, type LanguageModel, type ToolSet, tool } from "ai";

/** The agent of a chat server that is killed many times. It asks a person, beside tools that run freely. */

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type Prompt = Parameters<Model["doStream"]>[0]["prompt"];
type Part = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

const STEPS: readonly { readonly words: string; readonly calls: readonly string[] }[] = [
  { words: "I look, and ask.", calls: ["look", "send"] },
  { words: "I ask for two.", calls: ["send", "send"] },
  { words: "I look, ask, and ask for the time.", calls: ["look", "send", "local_time"] },
  { words: "All is well.", calls: [] },
];

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A pure function of what it is sent: it goes on behind the steps that it finds. */
async function* answer(prompt: Prompt): AsyncGenerator<Part> {
  const asked = prompt.findLastIndex(
    ({ role, content }) => role === "user" && JSON.stringify(content).includes("Please work"),
  );
  const step = prompt.slice(asked).filter(({ role }) => role === "assistant").length;
  const { words, calls } = STEPS[step] ?? STEPS.at(-1)!;
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "t" };
  for (const delta of words.split(/(?<= )/)) {
    await sleep(5);
    yield { type: "text-delta", id: "t", delta };
  }
  yield { type: "text-end", id: "t" };
  for (const [n, toolName] of calls.entries())
    yield { type: "tool-call", toolCallId: `call_${asked}_${step}_${n}`, toolName, input: "{}" };
  const reason = calls.length > 0 ? "tool-calls" : "stop";
  yield { type: "finish", finishReason: { unified: reason, raw: reason }, usage: USAGE };
}

export const model: Model = {
  specificationVersion: "v4",
  provider: "test",
  modelId: "test-1",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("this model only streams")),
  doStream: async ({ prompt }) => ({ stream: ReadableStream.from(answer(prompt)) }),
};

const inputSchema = jsonSchema<object>({ type: "object" });
const execute = async (_: object, { toolCallId }: { toolCallId: string }): Promise<string> => {
  appendFileSync("effects", `${toolCallId}\n`);
  await sleep(20);
  return "Done.";
};

export const tools: ToolSet = {
  look: tool({ inputSchema, execute }),
  send: tool({ inputSchema, execute, needsApproval: true }),
  local_time: tool({ inputSchema }),
};
