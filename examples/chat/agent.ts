import { setTimeout as sleep } from "node:timers/promises";
import { jsonSchema, type LanguageModel, type ToolSet, tool } from "ai";

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type Prompt = Parameters<Model["doStream"]>[0]["prompt"];
type Part = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

const nothing = jsonSchema<object>({ type: "object", properties: {} });

export const tools: ToolSet = {
  send_mail: tool({
    description: "Sends a mail. Takes ten seconds, so that you can kill the server meanwhile.",
    inputSchema: nothing,
    execute: async (_, { abortSignal }) => {
      console.log(`the mail is on its way (kill -9 ${process.pid} now, and start me again)`);
      await sleep(10_000, undefined, abortSignal && { signal: abortSignal });
      return "Sent.";
    },
  }),
  publish: tool({
    description: "Publishes the report, once a person agrees.",
    inputSchema: nothing,
    needsApproval: true,
    execute: async () => "Published.",
  }),
  // No `execute`: the page runs it.
  local_time: tool({ description: "What time it is where the user is.", inputSchema: nothing }),
};

const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 42, text: 42, reasoning: 0 },
};

/** A stand-in for a model of the AI SDK, so that the example needs no key and no network. */
export const model: Model = {
  specificationVersion: "v4",
  provider: "examples",
  modelId: "chat",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("this model only streams")),
  doStream: async ({ prompt, abortSignal }) => ({ stream: ReadableStream.from(answer(prompt, abortSignal)) }),
};

async function* answer(prompt: Prompt, signal: AbortSignal | undefined): AsyncGenerator<Part> {
  const { text, toolName } = replyTo(prompt);
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "0" };
  for (const delta of text.split(/(?<= )/)) {
    await sleep(60, undefined, signal && { signal });
    yield { type: "text-delta", id: "0", delta };
  }
  yield { type: "text-end", id: "0" };
  if (toolName) yield { type: "tool-call", toolCallId: `call_${prompt.length}_${toolName}`, toolName, input: "{}" };
  const reason = toolName ? "tool-calls" : "stop";
  yield { type: "finish", finishReason: { unified: reason, raw: reason }, usage: USAGE };
}

const TOOL_OF = { mail: "send_mail", publish: "publish", time: "local_time" };

function replyTo(prompt: Prompt): { readonly text: string; readonly toolName?: string } {
  const last = prompt.findLastIndex(({ role }) => role === "user");
  const asked = JSON.stringify(prompt[last]?.content);
  const results = prompt.slice(last + 1).flatMap(({ role, content }) => (role === "tool" ? content : []));
  if (results.length > 0) {
    const said = results.map((part) => (part.type === "tool-result" ? JSON.stringify(part.output) : "")).join(" ");
    return { text: `That is done. The tool said: ${said}` };
  }
  for (const [word, toolName] of Object.entries(TOOL_OF))
    if (asked.includes(word)) return { text: `I call ${toolName}. `, toolName };
  if (asked.includes("story"))
    return { text: "Once upon a time there was a process that nobody could kill. ".repeat(20) };
  return { text: "Ask me for a story, to send a mail, to publish the report, or what time it is." };
}
