import type { DialectName } from "holdfast";
import { expect, test } from "vitest";
import { toDialect } from "../../../../src/export/dialects/to-dialect.ts";

const read = (messages: readonly unknown[]) => ({
  messages,
  attributes: { title: "", dialect: "ai-sdk", labels: {}, notes: {} },
});
const PNG = "iVBORw0KGgo=";

const conversation = [
  { role: "system", content: "Be brief." },
  {
    role: "user",
    content: [
      { type: "text", text: "Look." },
      { type: "image", image: new Uint8Array(Buffer.from(PNG, "base64")) },
      { type: "file", mediaType: "image/svg+xml", data: "PHN2Zz4=", filename: "a.svg" },
    ],
  },
  {
    role: "assistant",
    content: [
      { type: "reasoning", text: "Hm.", providerOptions: { anthropic: { signature: "s" } } },
      { type: "text", text: "I look." },
      { type: "tool-call", toolCallId: "c1", toolName: "read", input: { path: "a" } },
      { type: "tool-call", toolCallId: "c2", toolName: "read", input: { path: "b" } },
    ],
  },
  {
    role: "tool",
    content: [
      { type: "tool-result", toolCallId: "c1", toolName: "read", output: { type: "json", value: { lines: 2 } } },
      { type: "tool-result", toolCallId: "c2", toolName: "read", output: { type: "error-text", value: "none" } },
    ],
  },
  { role: "assistant", content: "One is there." },
  { role: "user", content: "Thanks." },
];
const SVG = "[File a.svg: image/svg+xml, 5 bytes]";
const SYSTEM = "[System message: Be brief.]";

const said: Readonly<Record<Exclude<DialectName, "ai-sdk">, readonly unknown[]>> = {
  anthropic: [
    {
      role: "user",
      content: [
        { type: "text", text: SYSTEM },
        { type: "text", text: "Look." },
        { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
        { type: "text", text: SVG },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "text", text: "I look." },
        { type: "tool_use", id: "c1", name: "read", input: { path: "a" } },
        { type: "tool_use", id: "c2", name: "read", input: { path: "b" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "c1", content: '{"lines":2}' },
        { type: "tool_result", tool_use_id: "c2", content: "none", is_error: true },
      ],
    },
    { role: "assistant", content: [{ type: "text", text: "One is there." }] },
    { role: "user", content: [{ type: "text", text: "Thanks." }] },
  ],
  "openai-chat": [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "Look." },
        { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
        { type: "text", text: SVG },
      ],
    },
    {
      role: "assistant",
      content: "I look.",
      tool_calls: [
        { id: "c1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } },
        { id: "c2", type: "function", function: { name: "read", arguments: '{"path":"b"}' } },
      ],
    },
    { role: "tool", tool_call_id: "c1", content: '{"lines":2}' },
    { role: "tool", tool_call_id: "c2", content: "Error: none" },
    { role: "assistant", content: "One is there." },
    { role: "user", content: "Thanks." },
  ],
  "openai-responses": [
    { type: "message", role: "developer", content: "Be brief." },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "Look." },
        { type: "input_image", image_url: `data:image/png;base64,${PNG}`, detail: "auto" },
        { type: "input_text", text: SVG },
      ],
    },
    { type: "message", role: "assistant", content: "I look." },
    { type: "function_call", call_id: "c1", name: "read", arguments: '{"path":"a"}' },
    { type: "function_call", call_id: "c2", name: "read", arguments: '{"path":"b"}' },
    { type: "function_call_output", call_id: "c1", output: '{"lines":2}' },
    { type: "function_call_output", call_id: "c2", output: "Error: none" },
    { type: "message", role: "assistant", content: "One is there." },
    { type: "message", role: "user", content: "Thanks." },
  ],
  gemini: [
    {
      role: "user",
      parts: [{ text: SYSTEM }, { text: "Look." }, { inlineData: { mimeType: "image/png", data: PNG } }, { text: SVG }],
    },
    {
      role: "model",
      parts: [
        { text: "I look." },
        {
          functionCall: { id: "c1", name: "read", args: { path: "a" } },
          thoughtSignature: "skip_thought_signature_validator",
        },
        { functionCall: { id: "c2", name: "read", args: { path: "b" } } },
      ],
    },
    {
      role: "user",
      parts: [
        { functionResponse: { id: "c1", name: "read", response: { output: { lines: 2 } } } },
        { functionResponse: { id: "c2", name: "read", response: { error: "none" } } },
      ],
    },
    { role: "model", parts: [{ text: "One is there." }] },
    { role: "user", parts: [{ text: "Thanks." }] },
  ],
  acp: [
    { sessionUpdate: "user_message_chunk", content: { type: "text", text: SYSTEM } },
    { sessionUpdate: "user_message_chunk", content: { type: "text", text: "Look." } },
    { sessionUpdate: "user_message_chunk", content: { type: "image", data: PNG, mimeType: "image/png" } },
    { sessionUpdate: "user_message_chunk", content: { type: "image", data: "PHN2Zz4=", mimeType: "image/svg+xml" } },
    { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "Hm." } },
    { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "I look." } },
    { sessionUpdate: "tool_call", toolCallId: "c1", title: "read", status: "pending", rawInput: { path: "a" } },
    { sessionUpdate: "tool_call", toolCallId: "c2", title: "read", status: "pending", rawInput: { path: "b" } },
    {
      sessionUpdate: "tool_call_update",
      toolCallId: "c1",
      status: "completed",
      content: [{ type: "content", content: { type: "text", text: '{"lines":2}' } }],
    },
    {
      sessionUpdate: "tool_call_update",
      toolCallId: "c2",
      status: "failed",
      content: [{ type: "content", content: { type: "text", text: "none" } }],
    },
    { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "One is there." } },
    { sessionUpdate: "user_message_chunk", content: { type: "text", text: "Thanks." } },
  ],
};

test.each(Object.entries(said))("a conversation of the AI SDK's, word for word in %s", (to, expected) => {
  expect(toDialect(read(conversation), to as DialectName)).toEqual(expected);
});

test("and in the AI SDK's from another: reasoning without its signature, results with the names of their calls", () => {
  const messages = said.acp;
  const reading = { messages, attributes: { title: "", dialect: "acp", labels: {}, notes: {} } };
  const output = (type: string, value: string) => ({ type, value });
  expect(toDialect(reading, "ai-sdk").slice(1)).toEqual([
    {
      role: "user",
      content: [{ type: "text", text: "Look." }],
    },
    { role: "user", content: [{ type: "file", data: PNG, mediaType: "image/png" }] },
    { role: "user", content: [{ type: "file", data: "PHN2Zz4=", mediaType: "image/svg+xml" }] },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "I look." },
        { type: "tool-call", toolCallId: "c1", toolName: "read", input: { path: "a" } },
        { type: "tool-call", toolCallId: "c2", toolName: "read", input: { path: "b" } },
      ],
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "c1", toolName: "read", output: output("text", '{"lines":2}') },
        { type: "tool-result", toolCallId: "c2", toolName: "read", output: output("error-text", "none") },
      ],
    },
    { role: "assistant", content: [{ type: "text", text: "One is there." }] },
    { role: "user", content: [{ type: "text", text: "Thanks." }] },
  ]);
});
