import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { jsonSchema, type LanguageModel, type ToolSet, tool } from "ai";

/**
 * The agent of a chat server: beside it as `agent.ts`. It waits where the test says so, until the test lets it go on.
 */

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type Prompt = Parameters<Model["doStream"]>[0]["prompt"];
type Part = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Says where it is, and waits there until there is a file of that name. */
async function pause(name: string): Promise<void> {
  console.log(name);
  while (!existsSync(name)) await sleep(5);
}

/** A pure function of what it is sent. */
function replyTo(prompt: Prompt): { words: string; tools?: readonly string[] } {
  const last = prompt.findLastIndex(({ role }) => role === "user");
  const asked = JSON.stringify(prompt[last]);
  const done = prompt.slice(last + 1).filter(({ role }) => role === "tool").length;
  if (asked.includes("look") && done === 0) return { words: "I look first.", tools: ["look"] };
  if (asked.includes("send") && done === 0) return { words: "May I?", tools: ["send"] };
  if (asked.includes("both") && done === 0) return { words: "I carry it. May I?", tools: ["carry", "send"] };
  if (asked.includes("carry") && done === 0) return { words: "I carry it.", tools: ["carry"] };
  if (asked.includes("time") && done === 0) return { words: "I ask.", tools: ["local_time"] };
  if (JSON.stringify(prompt.slice(last)).includes("unknown")) return { words: "Please check: all is well." };
  return { words: `That was prompt ${prompt.filter(({ role }) => role === "user").length}: all is well.` };
}

async function* answer(prompt: Prompt): AsyncGenerator<Part> {
  appendFileSync("asked", `${JSON.stringify(prompt)}\n`);
  const { words, tools: called = [] } = replyTo(prompt);
  yield { type: "stream-start", warnings: [] };
  yield { type: "reasoning-start", id: "r" };
  yield { type: "reasoning-delta", id: "r", delta: "Hm." };
  yield { type: "reasoning-end", id: "r" };
  yield { type: "text-start", id: "t" };
  const [first, ...rest] = words.split(/(?<= )/);
  yield { type: "text-delta", id: "t", delta: first! };
  if (called.length === 0) await pause("speaking");
  for (const delta of rest) yield { type: "text-delta", id: "t", delta };
  yield { type: "text-end", id: "t" };
  for (const [n, toolName] of called.entries()) {
    const toolCallId = `call_${prompt.length}${n > 0 ? `_${n}` : ""}`;
    yield { type: "tool-call", toolCallId, toolName, input: '{"at":"here"}' };
  }
  const reason = called.length > 0 ? "tool-calls" : "stop";
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

const place = jsonSchema<{ at: string }>({ type: "object", properties: { at: { type: "string" } } });
const execute = async ({ at }: { at: string }, { toolCallId }: { toolCallId: string }): Promise<object> => {
  appendFileSync("effects", `${toolCallId}\n`);
  return { seen: at };
};

export const tools: ToolSet = {
  look: tool({
    inputSchema: place,
    execute,
    toModelOutput: () => ({ type: "text", value: "Seen." }),
  }),
  send: tool({ inputSchema: place, execute, needsApproval: true }),
  carry: tool({
    inputSchema: place,
    execute: async (input, options) => {
      const seen = await execute(input, options);
      await pause("carrying");
      return seen;
    },
  }),
  local_time: tool({ inputSchema: place }),
};
