import { describe, expect, it } from "vitest";
import {
  anthropicConversation,
  anthropicResponses,
  signResponse,
  signThinking,
  validateAnthropic,
} from "../../../src/providers/index.ts";
import { expectRefused, mutantsOf, rulesOf } from "./providers-mutants.ts";

type Item = Readonly<Record<string, unknown>>;

const { messages, ...frame } = anthropicConversation;
const edits = {
  parts: "content",
  message: { role: "user", content: "By the way." },
  text: { type: "text", text: "By the way." },
  empty: { type: "text", text: "" },
};
const prompt = { role: "user", content: "Hello." };

function unsigned(list: readonly Item[]): Item[] {
  return list.map((message) => ({
    ...message,
    content: (message["content"] as Item[]).filter((block) => !String(block["type"]).endsWith("thinking")),
  }));
}

describe("one edit of a conversation with signed thinking", () => {
  it("is refused, but behind the last thinking block and at its front", () => {
    expectRefused(mutantsOf(messages, edits), (list) => validateAnthropic({ ...frame, messages: list }), {
      "the last answer and the prompt behind it are covered by no signature": [
        "double 5.1 6 6.0",
        "text before 5.1 5.2 6.0 6.1",
        "message before 6 7",
      ],
      "leading thinking may be left out": ["drop 1.0"],
      "the last thinking may be left out, once its turn is over": ["drop 5.0"],
      "so may the last answer: its neighbours are joined": ["drop 5"],
    });
  });
});

describe("one edit of the same conversation without thinking", () => {
  it("is refused wherever calls, results, ends or empties are touched", () => {
    expectRefused(mutantsOf(unsigned(messages), edits), (list) => validateAnthropic({ messages: list }), {
      "neighbours of one role are joined": ["double 0 5 6", "drop 5"],
      "a prompt may stand wherever no result is due": ["message before 0 1 3 5 6 7"],
      "text and images of a prompt are free": [
        "double 0.0 0.1 2.2 6.0",
        "drop 0.0 0.1 2.2",
        "swap 0.0",
        "text before 0.0 0.1 0.2 2.2 2.3 4.1 6.0 6.1",
      ],
      "text of an answer is free, also behind its calls": [
        "double 1.0 3.2 5.0",
        "drop 1.0 3.2",
        "swap 1.0 3.1 3.2",
        "text before 1.0 1.1 1.2 1.3 3.0 3.1 3.2 3.3 3.4 5.0 5.1",
      ],
      "calls and results have no order among themselves": ["swap 1.1 2.0"],
    });
  });
});

describe("signatures", () => {
  const sent = { system: "S", tools: [{ name: "t" }], messages: [prompt] };
  const content = signResponse(sent, [
    { type: "thinking", thinking: "one" },
    { type: "text", text: "Hm." },
    { type: "thinking", thinking: "two" },
    { type: "text", text: "Hi." },
  ]);
  const next = { ...sent, messages: [prompt, { role: "assistant", content }, prompt] };

  it("fit the request that they answered", () => {
    expect(validateAnthropic(next)).toEqual([]);
    expect(content[0]?.["signature"]).toBe(signThinking([prompt], "one", sent));
  });

  it("do not fit a changed text, another signature or another place", () => {
    const [one, hm, two, hi] = content as [Item, Item, Item, Item];
    const variants = [
      [{ ...one, thinking: "One" }, hm, two, hi],
      [{ ...one, signature: two["signature"] }, hm, two, hi],
      [{ ...one, signature: `${one["signature"]}0` }, hm, two, hi],
      [one, two, hm, hi],
      [two, hm, one, hi],
      [one, { ...hm, text: "Hmm." }, two, hi],
      [{ ...one, type: "redacted_thinking", data: one["signature"] }, hm, two, hi],
    ];
    for (const variant of variants) {
      const request = { ...sent, messages: [prompt, { role: "assistant", content: variant }, prompt] };
      expect(rulesOf(validateAnthropic(request)), JSON.stringify(variant)).toContain("anthropic-7");
    }
  });

  it("fit when a string becomes a block with a cache mark, and the mark moves on", () => {
    const block = { type: "text", text: "Hello.", cache_control: { type: "ephemeral" } };
    const marked = { role: "user", content: [block] };
    const system = [{ type: "text", text: "S", cache_control: { type: "ephemeral" } }];
    expect(validateAnthropic({ ...next, system, messages: [marked, ...next.messages.slice(1)] })).toEqual([]);
  });

  it("do not fit when input of a call has a key of that name", () => {
    const use = { type: "tool_use", id: "a", name: "t", input: { cache_control: 1 } };
    const done = { role: "user", content: [{ type: "tool_result", tool_use_id: "a" }] };
    const before = { messages: [prompt, { role: "assistant", content: [use] }, done] };
    const words = [
      { type: "thinking", thinking: "x" },
      { type: "text", text: "Done." },
    ];
    const answer = { role: "assistant", content: signResponse(before, words) };
    const changed = { role: "assistant", content: [{ ...use, input: {} }] };
    expect(validateAnthropic({ messages: [...before.messages, answer, prompt] })).toEqual([]);
    expect(rulesOf(validateAnthropic({ messages: [prompt, changed, done, answer, prompt] }))).toEqual(["anthropic-7"]);
  });

  it("are only asked to be there with signatures: present", () => {
    const thinking = { type: "thinking", thinking: "x", signature: "EqQB" };
    const hi = { type: "text", text: "Hi." };
    const request = { messages: [prompt, { role: "assistant", content: [thinking, hi] }, prompt] };
    expect(validateAnthropic(request, { signatures: "present" })).toEqual([]);
    const bare = { role: "assistant", content: [{ ...thinking, signature: "" }, hi] };
    expect(rulesOf(validateAnthropic({ messages: [prompt, bare, prompt] }, { signatures: "present" }))).toEqual([
      "anthropic-7",
    ]);
  });

  it("every prefix of the long conversation that ends with a user message is accepted", () => {
    for (let end = 1; end <= messages.length; end += 2) {
      const request = { ...frame, messages: messages.slice(0, end) };
      expect(validateAnthropic(request, { responses: anthropicResponses })).toEqual([]);
    }
    for (let end = 2; end <= messages.length; end += 2) {
      expect(rulesOf(validateAnthropic({ ...frame, messages: messages.slice(0, end) }))).toContain("anthropic-8");
    }
  });
});
