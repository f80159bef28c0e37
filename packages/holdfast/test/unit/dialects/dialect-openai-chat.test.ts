import { describe, expect, test } from "vitest";
import type { Entry, View } from "../../../src/dialects/dialect.ts";
import { openaiChat } from "../../../src/dialects/openai-chat.ts";
import { entry } from "./dialect-conversations.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as an agent has them.
type Message = any;

const user = (content: unknown): Message => ({ role: "user", content });
const call = (id: string | undefined, name = "read", text: unknown = "{}"): Message => ({
  ...(id === undefined ? {} : { id }),
  type: "function",
  function: { name, arguments: text },
});
const calling = (...calls: Message[]): Message => ({ role: "assistant", content: null, tool_calls: calls });
const tool = (id: string | undefined, content: unknown = "ok"): Message => ({
  role: "tool",
  ...(id === undefined ? {} : { tool_call_id: id }),
  content,
});

function shown(messages: Message[], view: Partial<View> = {}, rest: Partial<Entry<Message>>[] = []): Message[] {
  const entries = messages.map((message, at) => entry(message, at, rest[at])) as Entry<Message>[];
  return openaiChat.arrange(entries, { changedAt: null, next: "model", ...view });
}

describe("openai-chat: arrange", () => {
  test("a conversation that is in order is handed on, message by message", () => {
    const messages = [
      { role: "system", content: "x" },
      user("go"),
      calling(call("a")),
      tool("a"),
      { role: "assistant", content: "done" },
    ];
    const view = shown(messages);
    expect(view.every((message, at) => message === messages[at])).toBe(true);
    expect(view).toHaveLength(5);
  });

  test("parallel calls: results directly behind, in call order, steering text and system after them", () => {
    const view = shown([
      user("go"),
      calling(call("a"), call("b")),
      user("wait"),
      tool("b"),
      { role: "system", content: "note" },
      tool("a"),
    ]);
    expect(view).toEqual([
      user("go"),
      calling(call("a"), call("b")),
      tool("a"),
      tool("b"),
      user("wait"),
      { role: "system", content: "note" },
    ]);
  });

  test("two messages with calls in a row: each is followed by its own results", () => {
    const view = shown([user("go"), calling(call("a")), calling(call("b")), tool("b"), tool("a")]);
    expect(view).toEqual([user("go"), calling(call("a")), tool("a"), calling(call("b")), tool("b")]);
  });

  test("orphans, second and late results are left out", () => {
    const view = shown([
      tool("x"),
      user("go"),
      calling(call("a")),
      tool("a", "1"),
      tool("a", "2"),
      user("next"),
      { role: "assistant", content: "b" },
      tool("a", "3"),
    ]);
    expect(view).toEqual([
      user("go"),
      calling(call("a")),
      tool("a", "1"),
      user("next"),
      { role: "assistant", content: "b" },
    ]);
  });

  test("R9: call_0 of local servers, in every step", () => {
    const step = [calling(call("call_0")), tool("call_0")];
    expect(shown([user("go"), ...step, ...step, ...step]).map((m) => m.tool_call_id ?? m.tool_calls?.[0].id)).toEqual([
      undefined,
      "call_0",
      "call_0",
      "call_0_2",
      "call_0_2",
      "call_0_3",
      "call_0_3",
    ]);
  });

  test("R9: without ids, by order and name, and given ones", () => {
    const messages = [
      user("go"),
      calling(call(undefined, "read"), call("", "write")),
      { ...tool(undefined, "w"), name: "write" },
      tool("", "r"),
    ];
    expect(openaiChat.calls(messages[1]).map(({ id }) => id)).toEqual(["read#0", "write#0"]);
    expect(shown(messages).slice(1)).toEqual([
      calling(call("call_1_0", "read"), call("call_1_1", "write")),
      tool("call_1_0", "r"),
      tool("call_1_1", "w"),
    ]);
  });

  test("open calls: at the very end they stay, else their step is left out with its results", () => {
    const messages = [user("go"), calling(call("a"), call("b")), tool("b")];
    expect(shown(messages)).toEqual(messages);
    expect(shown(messages, { next: "prompt" })).toEqual([user("go")]);
    expect(shown([...messages, user("well?")])).toEqual([user("go"), user("well?")]);
  });

  test("C30: arguments that were cut off, null, an object, or empty", () => {
    const view = shown([
      user("go"),
      calling(
        call("a", "f", '{"pa'),
        call("b", "f", null),
        call("c", "f", { x: 1 }),
        call("d", "f", ""),
        call("e", "f", ' {"x": 1}'),
      ),
      ...["a", "b", "c", "d", "e"].map((id) => tool(id)),
    ]);
    expect(view[1].tool_calls.map((made: Message) => made.function.arguments)).toEqual([
      JSON.stringify({ unparsed: '{"pa' }),
      "{}",
      '{"x":1}',
      "{}",
      ' {"x": 1}',
    ]);
  });

  test("nothing empty, and no empty lists", () => {
    const view = shown([
      user(""),
      user([
        { type: "text", text: "" },
        { type: "image_url", image_url: { url: "https://x" } },
      ]),
      { role: "assistant", content: "  ", tool_calls: [] },
      { role: "assistant", content: "yes", tool_calls: [] },
      { role: "assistant", content: [], tool_calls: [call("a")] },
      tool("a", []),
      { role: "assistant", content: null, refusal: "no" },
    ]);
    expect(view).toEqual([
      user([{ type: "image_url", image_url: { url: "https://x" } }]),
      { role: "assistant", content: "yes" },
      calling(call("a")),
      tool("a", ""),
      { role: "assistant", content: null, refusal: "no" },
    ]);
  });

  test("R1, R4: signed details of reasoning are left out, plain ones stay", () => {
    const plain = { type: "reasoning.text", text: "hm" };
    const made = { role: "assistant", content: "a", reasoning_details: [plain, { ...plain, signature: "s" }] };
    const encrypted = {
      role: "assistant",
      content: "b",
      reasoning_details: [{ type: "reasoning.encrypted", data: "d" }],
    };
    const messages = [user("go"), made, user("on"), encrypted];
    expect(shown(messages)).toEqual(messages);
    expect(shown(messages, { changedAt: "e1" })).toEqual([
      user("go"),
      { ...made, reasoning_details: [plain] },
      user("on"),
      { role: "assistant", content: "b" },
    ]);
    expect(shown(messages, { model: "new" }, [{}, { model: "old" }, {}, { model: "new" }])[3]).toBe(encrypted);
  });

  test("custom tools, and the old way with one function", () => {
    const custom = { id: "a", type: "custom", custom: { name: "grep", input: "x y" } };
    expect(openaiChat.calls(calling(custom))).toEqual([{ id: "a", name: "grep", input: "x y", by: "agent" }]);
    expect(shown([user("go"), calling(custom), tool("a")])[1]).toEqual(calling(custom));
    const old = { role: "assistant", content: null, function_call: { name: "read", arguments: "{}" } };
    const answer = { role: "function", name: "read", content: "ok" };
    expect(shown([user("go"), old, answer])).toEqual([user("go"), old, answer]);
    const synthetic = openaiChat.result({ id: "read#0", name: "read" }, { value: "ok" });
    expect(shown([user("go"), old, synthetic])).toEqual([user("go"), old, answer]);
  });
});

describe("openai-chat: the rest", () => {
  test("result, incomplete, boundary", () => {
    const content = (outcome: Message): string =>
      (openaiChat.result({ id: "a", name: "x" }, outcome) as Message).content;
    expect(content({ value: "plain" })).toBe("plain");
    expect(content({ value: [1] })).toBe("[1]");
    expect(content({ error: new TypeError("disk full") })).toBe("Error: disk full");
    expect(openaiChat.incomplete("\t")).toBeNull();
    expect(openaiChat.incomplete("half")).toEqual({ role: "assistant", content: "half" });
    expect(openaiChat.role(openaiChat.boundary("stopped"))).toBe("user");
  });

  test("same, role, text, check", () => {
    const marked = user([{ type: "text", text: "a", cache_control: { type: "ephemeral" } }]);
    expect(openaiChat.same(user("a"), marked)).toBe(true);
    expect(openaiChat.same(user("a"), user("b"))).toBe(false);
    expect(openaiChat.role({ role: "developer", content: "x" })).toBe("system");
    expect(openaiChat.text({ role: "assistant", content: null, refusal: "I will not" } as Message)).toBe("I will not");
    expect(openaiChat.text(tool("a", "secret"))).toBe("");
    expect(openaiChat.check(calling(call(undefined)))).toBeNull();
    expect(openaiChat.check(user(undefined))).toBe("content is missing");
    expect(openaiChat.check(user([{ type: "input_text", text: "x" }]))).toMatch(/another dialect/);
  });

  test("same: what the SDK's own runner puts in and leaves out", () => {
    const calls = [{ id: "a", type: "function", function: { name: "look", arguments: "{}" } }];
    const sent = { role: "assistant", content: null, tool_calls: calls } as Message;
    const came = {
      ...{
        role: "assistant",
        content: null,
        refusal: null,
        annotations: [],
        audio: null,
        function_call: null,
        parsed: null,
      },
      tool_calls: calls.map((one) => ({ ...one, function: { ...one.function, parsed_arguments: {} } })),
    };
    expect(openaiChat.same(sent, came as Message)).toBe(true);
    expect(openaiChat.same({ role: "assistant", tool_calls: calls } as Message, came as Message)).toBe(true);
    expect(openaiChat.same({ role: "assistant", content: "", tool_calls: calls } as Message, came as Message)).toBe(
      true,
    );
    expect(openaiChat.same({ ...sent, content: "let me see" }, came as Message)).toBe(false);
    expect(openaiChat.same({ ...sent, refusal: "no" } as Message, came as Message)).toBe(false);
    const heard = { role: "assistant", audio: { id: "audio_1", data: "UklGRg==", transcript: "hi" } } as never;
    expect(openaiChat.same(heard, { role: "assistant", content: null, audio: { id: "audio_1" } } as never)).toBe(true);
    expect(openaiChat.same(heard, { role: "assistant", content: null, audio: { id: "audio_2" } } as never)).toBe(false);
    const said = { role: "assistant", content: "x", tool_calls: [] } as Message;
    expect(openaiChat.same(said, { role: "assistant", content: "x" })).toBe(true);
  });
});
