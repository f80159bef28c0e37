import { describe, expect, it } from "vitest";
import {
  openaiChatConversation,
  openaiResponsesConversation,
  openaiResponsesItems,
  validateOpenaiChat,
  validateOpenaiResponses,
} from "../../../src/providers/index.ts";
import { expectRefused, mutantsOf, rulesOf } from "./providers-mutants.ts";

describe("openai-chat", () => {
  const { messages } = openaiChatConversation;

  it("one edit of the messages is refused wherever calls and results are touched", () => {
    const edits = { message: { role: "user", content: "By the way." } };
    expectRefused(mutantsOf(messages, edits), (list) => validateOpenaiChat({ messages: list }), {
      "prompts and answers are free": ["double 0 1 5 8 9", "drop 0 1 5 8 9", "swap 0 8"],
      "a prompt may stand wherever no result is due": ["message before 0 1 2 5 6 8 9 10"],
      "results have no order among themselves": ["swap 3"],
    });
  });

  it("one edit of a message's calls is refused", () => {
    const edits = { parts: "tool_calls", message: { role: "user", content: "By the way." } };
    const inside = mutantsOf(messages, edits).filter(({ name }) => name.includes("."));
    expectRefused(inside, (list) => validateOpenaiChat({ messages: list }), {
      "calls have no order among themselves": ["swap 2.0"],
    });
  });

  it("every prefix is judged by its open calls alone", () => {
    const open = messages.map((_, i) => validateOpenaiChat({ messages: messages.slice(0, i + 1) }).length);
    expect(open).toEqual([0, 0, 2, 1, 0, 0, 1, 0, 0, 0]);
  });

  it("arguments that are no JSON pass only where that is asked for", () => {
    const call = { id: "a", type: "function", function: { name: "read", arguments: '{"pa' } };
    const request = [
      { role: "user", content: "Hello." },
      { role: "assistant", tool_calls: [call] },
      { role: "tool", tool_call_id: "a", content: "done" },
    ];
    expect(rulesOf(validateOpenaiChat(request))).toEqual(["openai-chat-2"]);
    expect(validateOpenaiChat(request, { arguments: "string" })).toEqual([]);
  });
});

describe("openai-responses", () => {
  const { input } = openaiResponsesConversation;
  const edits = { message: { role: "user", content: "By the way." } };

  it("one edit of the input is refused wherever items of a response or outputs are touched", () => {
    const validate = (list: readonly unknown[]) =>
      validateOpenaiResponses({ store: false, input: list }, { responses: openaiResponsesItems });
    expectRefused(mutantsOf(input, edits), validate, {
      "prompts are free": ["double 0 7 14", "drop 0 7 14", "message before 0 1 7 8 11 14 15"],
      "a search that came before any reasoning depends on nothing": ["drop 11"],
      "an output may stand directly behind its call": ["swap 4"],
      "outputs have no order among themselves": ["swap 5"],
    });
  });

  it("without a record of the responses, reasoning and pairs are still judged", () => {
    expectRefused(mutantsOf(input, edits), (list) => validateOpenaiResponses({ store: false, input: list }), {
      "prompts are free": ["double 0 7 14", "drop 0 7 14", "message before 0 1 7 8 11 14 15"],
      "outputs stand anywhere behind their calls and before a prompt": ["swap 4 5 10"],
      "which items came in one response is not known": ["drop 1 2 8 11 12", "swap 1 2 3 11", "message before 3 12"],
    });
  });

  it("an item that changed is refused", () => {
    const change = (index: number, fields: object) => ({
      store: false,
      input: input.map((item, i) => (i === index ? { ...item, ...fields } : item)),
    });
    const judged = (index: number, fields: object) =>
      rulesOf(validateOpenaiResponses(change(index, fields), { responses: openaiResponsesItems }));
    expect(judged(1, {})).toEqual([]);
    expect(judged(1, { encrypted_content: "x" })).toEqual(["openai-responses-3"]);
    expect(judged(1, { encrypted_content: undefined })).toEqual(["openai-responses-3"]);
    expect(judged(1, { summary: [{ type: "summary_text", text: "x" }] })).toEqual(["openai-responses-3"]);
    expect(judged(1, { id: "rs_9" })).toEqual(["openai-responses-2"]);
    expect(judged(2, { id: undefined })).toEqual(["openai-responses-2"]);
    expect(judged(2, { id: "msg_9" })).toEqual(["openai-responses-2"]);
    expect(judged(3, { call_id: "call_9" })).toContain("openai-responses-1");
    expect(judged(5, { call_id: "call_9" })).toContain("openai-responses-1");
    expect(judged(5, { type: "custom_tool_call_output" })).toContain("openai-responses-1");
  });

  it("every prefix is judged by its open calls, its last reasoning and nothing else", () => {
    const judged = input.map((_, i) =>
      rulesOf(validateOpenaiResponses({ input: input.slice(0, i + 1) }, { responses: openaiResponsesItems })),
    );
    const [calls, reasoning] = [["openai-responses-1"], ["openai-responses-2"]];
    expect(judged).toEqual([
      [],
      reasoning,
      [],
      calls,
      calls,
      calls,
      [],
      [],
      reasoning,
      calls,
      [],
      [],
      reasoning,
      [],
      [],
    ]);
  });

  it("store is taken from the request, then from the options, and is false otherwise", () => {
    const list = [
      { role: "user", content: "Hello." },
      { type: "item_reference", id: "msg_1" },
    ];
    expect(rulesOf(validateOpenaiResponses({ input: list }))).toEqual(["openai-responses-3"]);
    expect(validateOpenaiResponses({ input: list }, { store: true })).toEqual([]);
    expect(validateOpenaiResponses({ input: list, store: true })).toEqual([]);
    expect(rulesOf(validateOpenaiResponses({ input: list, store: false }, { store: true }))).toEqual([
      "openai-responses-3",
    ]);
  });
});
