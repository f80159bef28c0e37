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
import { langchain } from "../../../src/langchain/index.ts";

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

const arranged = (...messages: BaseMessage[]): BaseMessage[] =>
  langchain.arrange(
    messages.map((message, at) => ({
      ...{ id: `${at}`, seq: at + 1, at: "", turn: 1, step: `${at}`, message, metadata: {} },
    })),
    { changedAt: null, next: "model" },
  );

test("a prompt with an empty text beside a picture keeps the picture", () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
  const [sent] = arranged(new HumanMessage({ content: [{ type: "text", text: "" }, image], id: "h1" }));
  expect(sent!.content).toEqual([image]);
  expect(sent!.id).toBe("h1");
});

test("a call id that a server uses again is replaced everywhere, and the rest of the messages stays", () => {
  const content = [...(reasoned.content as object[]), { type: "tool_use", id: "c1", name: "look", input: {} }];
  const again = (): AIMessage =>
    new AIMessage({
      ...{ content: content as never, id: "run-3", tool_calls: reasoned.tool_calls! },
      additional_kwargs: { reasoning_content: "Hm.", tool_calls: [{ id: "c1", type: "function" } as never] },
      response_metadata: { model: "m" },
    });
  const result = (): ToolMessage =>
    new ToolMessage({ content: "done", tool_call_id: "c1", name: "look", status: "error", artifact: { rows: [1] } });
  const [, first, , second, last] = arranged(new HumanMessage("Go."), again(), result(), again(), result());
  expect(first).toEqual(again());
  const id = (second as AIMessage).tool_calls![0]!.id!;
  expect(id).not.toBe("c1");
  const renamed = JSON.parse(JSON.stringify(again()).replaceAll('"c1"', JSON.stringify(id)));
  expect(second).toBeInstanceOf(AIMessage);
  expect(JSON.parse(JSON.stringify(second))).toEqual(renamed);
  expect(last).toMatchObject({ tool_call_id: id, name: "look", status: "error", artifact: { rows: [1] } });
});

test("a call without an id gets one, and so does its result", () => {
  const asks = new AIMessage({ content: "", tool_calls: [{ type: "tool_call", name: "look", args: { at: 1 } }] });
  const [, asked, result] = arranged(
    new HumanMessage("Go."),
    asks,
    new ToolMessage({ content: "x", tool_call_id: "" }),
  );
  const [call] = (asked as AIMessage).tool_calls!;
  expect(call).toMatchObject({ name: "look", args: { at: 1 } });
  expect(call!.id).toBeTruthy();
  expect((result as ToolMessage).tool_call_id).toBe(call!.id);
});
