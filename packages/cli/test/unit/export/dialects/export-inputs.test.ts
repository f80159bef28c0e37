import { type DialectName, dialects } from "holdfast";
import { describe, expect, test } from "vitest";
import { inputObject } from "../../../../../holdfast/src/dialects/shape.ts";
import { entry } from "../../../../../holdfast/test/unit/dialects/dialect-conversations.ts";
import { toDialect } from "../../../../src/export/dialects/to-dialect.ts";

/** Arguments that models and servers have sent, besides the JSON of an object. */
const odd = ['{"path":"a.t', "[1,2]", '"words"', '"{\\"a\\":1}"', "7", "null", "", "  ", "words", '{"a":1}'];

const chat = (args: string): unknown[] => [
  { role: "user", content: "go" },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "call_1", type: "function", function: { name: "read", arguments: args } }],
  },
  { role: "tool", tool_call_id: "call_1", content: "done" },
  { role: "user", content: "and now?" },
];

const inputIn = (messages: readonly unknown[], name: DialectName): unknown =>
  messages.flatMap((message) => dialects[name].calls(message))[0]!.input;

describe.each(odd)("a call with the arguments %j", (args) => {
  const messages = chat(args);
  const entries = messages.map((message, at) => entry(message, at));
  const resumed = inputIn(dialects["openai-chat"].arrange(entries, { changedAt: null, next: "model" }), "openai-chat");
  const reading = { messages, attributes: { title: "", dialect: "openai-chat", labels: {}, notes: {} } };

  test.each(["ai-sdk", "anthropic", "openai-responses", "gemini"] as const)(
    "has the same input on resume and in an export to %s",
    (to) => {
      expect(inputIn(toDialect(reading, to), to)).toEqual(resumed);
    },
  );

  test("has, for a client, the input that was recorded", () => {
    expect(inputObject(inputIn(toDialect(reading, "acp"), "acp"))).toEqual(resumed);
  });
});
