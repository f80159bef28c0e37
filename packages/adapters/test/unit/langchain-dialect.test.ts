import { describeDialect } from "@holdfast/testkit";
import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { langchain } from "../../src/langchain/index.ts";

const reasoned = new AIMessage({
  content: [
    { type: "reasoning", reasoning: "First I look.", signature: "c2ln" },
    { type: "text", text: "I look.", citations: [{ url: "https://example.com" }] },
  ],
  id: "run-1",
  name: "agent",
  tool_calls: [{ type: "tool_call", id: "c1", name: "look", args: { at: { deep: [1, 2] } } }],
  additional_kwargs: { reasoning_content: "First I look." },
  response_metadata: { model: "m", finish_reason: "tool_calls" },
  // Its type says that this message has none.
  usage_metadata: {
    input_tokens: 3,
    output_tokens: 4,
    total_tokens: 7,
    input_token_details: { cache_read: 1 },
  } as never,
});

describeDialect<BaseMessage>(
  {
    dialect: langchain,
    user: (text) => new HumanMessage({ content: text }),
    step: ({ text, calls }) => [
      new AIMessage({
        content: text ?? "",
        tool_calls: calls.map(({ id, name, input }) => ({ type: "tool_call", id, name, args: { ...input } })),
      }),
    ],
    result: ({ id, name }, text) => new ToolMessage({ content: text, tool_call_id: id, name }),
    samples: [
      reasoned,
      new AIMessageChunk({
        content: "half",
        id: "run-2",
        tool_call_chunks: [{ type: "tool_call_chunk", id: "c2", name: "look", args: "{}", index: 0 }],
      }),
      new HumanMessage({
        content: [
          { type: "text", text: "see" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
        ],
        id: "h1",
      }),
      new ToolMessage({ content: "done", tool_call_id: "c1", name: "look", status: "error", artifact: { rows: [1] } }),
      new SystemMessage({ content: "Be brief." }),
    ],
  },
  { describe, test },
);

test("a message comes back with its reasoning, metadata and usage, as an instance of its class", () => {
  const back = langchain.decode!(JSON.parse(JSON.stringify(langchain.encode!(reasoned))));
  expect(back).toBeInstanceOf(AIMessage);
  expect(back).toEqual(reasoned);
});

test("an answer of reasoning alone is an answer", () => {
  const message = new AIMessage({ content: [{ type: "reasoning", reasoning: "Hm." }] });
  const entry = { id: "1", seq: 1, at: "", turn: 1, step: "1", message, metadata: {} };
  expect(langchain.arrange([entry], { changedAt: null, next: "prompt" })).toEqual([message]);
});
