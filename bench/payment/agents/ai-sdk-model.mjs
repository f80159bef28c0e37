// The scripted model as a model of the AI SDK.
import { askModel } from "./world.mjs";

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

async function generate({ prompt }) {
  const { call, text } = await askModel(prompt);
  const content = call
    ? [{ type: "tool-call", toolCallId: call.id, toolName: call.name, input: JSON.stringify(call.input) }]
    : [{ type: "text", text }];
  const reason = call ? "tool-calls" : "stop";
  return { content, finishReason: { unified: reason, raw: reason }, usage: USAGE, warnings: [] };
}

async function* stream(options) {
  const { content, finishReason, usage } = await generate(options);
  yield { type: "stream-start", warnings: [] };
  for (const part of content) {
    if (part.type === "tool-call") {
      yield { type: "tool-input-start", id: part.toolCallId, toolName: part.toolName };
      yield { type: "tool-input-delta", id: part.toolCallId, delta: part.input };
      yield { type: "tool-input-end", id: part.toolCallId };
      yield part;
    } else {
      yield { type: "text-start", id: "0" };
      yield { type: "text-delta", id: "0", delta: part.text };
      yield { type: "text-end", id: "0" };
    }
  }
  yield { type: "finish", finishReason, usage };
}

export const model = {
  specificationVersion: "v4",
  provider: "scripted",
  modelId: "scripted",
  supportedUrls: {},
  doGenerate: generate,
  doStream: async (options) => ({ stream: ReadableStream.from(stream(options)) }),
};
