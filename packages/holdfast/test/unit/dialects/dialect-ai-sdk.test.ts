import { describe, expect, test } from "vitest";
import { aiSdk } from "../../../src/dialects/ai-sdk.ts";
import type { Entry, View } from "../../../src/dialects/dialect.ts";
import { entry } from "./dialect-conversations.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as an agent has them.
type Message = any;

const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] });
const assistant = (...content: Message[]): Message => ({ role: "assistant", content });
const tool = (...content: Message[]): Message => ({ role: "tool", content });
const text = (words: string, rest: object = {}): Message => ({ type: "text", text: words, ...rest });
const call = (id: string | undefined, rest: object = {}): Message => ({
  type: "tool-call",
  ...(id === undefined ? {} : { toolCallId: id }),
  toolName: "read",
  input: {},
  ...rest,
});
const result = (id: string | undefined, value = "ok"): Message => ({
  type: "tool-result",
  ...(id === undefined ? {} : { toolCallId: id }),
  toolName: "read",
  output: { type: "text", value },
});
const request = (approvalId: string, toolCallId: string): Message => ({
  type: "tool-approval-request",
  approvalId,
  toolCallId,
});
const response = (approvalId: string, approved = true): Message => ({
  type: "tool-approval-response",
  approvalId,
  approved,
});

function shown(messages: Message[], view: Partial<View> = {}, rest: Partial<Entry<Message>>[] = []): Message[] {
  const entries = messages.map((message, at) => entry(message, at, rest[at])) as Entry<Message>[];
  return aiSdk.arrange(entries, { changedAt: null, next: "model", ...view });
}

describe("ai-sdk: arrange", () => {
  test("a conversation that is in order is handed on, message by message", () => {
    const messages = [
      { role: "system", content: "x" },
      user("go"),
      assistant(call("a"), call("b")),
      tool(result("a"), result("b")),
      { role: "assistant", content: "done" },
    ];
    const view = shown(messages);
    expect(view).toHaveLength(5);
    expect(view.every((message, at) => message === messages[at])).toBe(true);
  });

  test("results in call order behind their message, whatever came in between; messages keep what else they have", () => {
    const marked = {
      ...tool(result("b"), result("x")),
      providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } },
    };
    const view = shown([user("go"), assistant(call("a"), call("b")), user("wait"), marked, tool(result("a"))]);
    expect(view).toEqual([
      user("go"),
      assistant(call("a"), call("b")),
      tool(result("a")),
      { ...marked, content: [result("b")] },
      user("wait"),
    ]);
  });

  test("a result that got into the assistant's message is moved behind it", () => {
    expect(shown([user("go"), assistant(call("a"), result("a"), text("b"))])).toEqual([
      user("go"),
      assistant(call("a"), text("b")),
      tool(result("a")),
    ]);
  });

  test("open calls: at the end they stay, else their step is left out with its results", () => {
    const messages = [user("go"), assistant(call("a"), call("b")), tool(result("a"))];
    expect(shown(messages)).toEqual(messages);
    expect(shown(messages, { next: "prompt" })).toEqual([user("go")]);
    expect(shown([...messages, user("?")])).toEqual([user("go"), user("?")]);
  });

  test("R9: repeated and missing ids, in calls, results and approvals", () => {
    const messages = [
      user("go"),
      assistant(call("a")),
      tool(result("a", "1")),
      assistant(call("a"), call(undefined), request("p", "a")),
      tool(response("p")),
      tool(result(undefined, "3"), result("a", "2")),
    ];
    expect(shown(messages).slice(3)).toEqual([
      assistant(call("a_2"), call("call_2_1"), request("p", "a_2")),
      tool(response("p"), result("a_2", "2"), result("call_2_1", "3")),
    ]);
  });

  test("R7, C37: approvals and results share one message, so that the SDK runs what is approved, once", () => {
    const asked = assistant(call("a"), call("b"), request("p", "a"), request("q", "b"));
    expect(aiSdk.calls(asked).map(({ awaiting }) => awaiting)).toEqual([true, true]);
    const messages = [user("go"), asked, tool(response("p"), response("q")), tool(result("a"))];
    expect(shown(messages)).toEqual([user("go"), asked, tool(response("p"), response("q"), result("a"))]);
    expect(shown([user("go"), asked])).toEqual([user("go"), asked]);
    expect(shown([user("go"), tool(response("nobody asked"))])).toEqual([user("go")]);
    const automatic = assistant(call("a"), { ...request("p", "a"), isAutomatic: true });
    expect(aiSdk.calls(automatic)[0]).not.toHaveProperty("awaiting");
  });

  test("the provider's own calls (R8)", () => {
    const search = call("s", { providerExecuted: true });
    const done = assistant(search, result("s"), text("so"));
    expect(aiSdk.calls(done)).toEqual([{ id: "s", name: "read", input: {}, by: "provider" }]);
    expect(shown([user("go"), done])).toEqual([user("go"), done]);
    expect(shown([user("go"), assistant(search)])).toEqual([user("go"), assistant(search)]);
    expect(shown([user("go"), assistant(search), user("?")])).toEqual([user("go"), user("?")]);
    const later = [user("go"), assistant(search, call("a")), tool(result("a")), assistant(result("s"), text("so"))];
    expect(shown(later)).toEqual(later);
  });

  test("R1, R4: signed reasoning is left out, and what refers to it; unsigned reasoning is text", () => {
    const messages = [
      user("go"),
      assistant(
        {
          type: "reasoning",
          text: "hm",
          providerOptions: { openai: { itemId: "rs_1", reasoningEncryptedContent: "e" } },
        },
        { type: "reasoning", text: "plain" },
        text("a", { providerOptions: { openai: { itemId: "msg_1", phase: "commentary" } } }),
        call("a", { providerOptions: { google: { thoughtSignature: "s" } } }),
      ),
      tool(result("a")),
    ];
    expect(shown(messages)).toEqual(messages);
    const changed = assistant(
      { type: "reasoning", text: "plain" },
      text("a", { providerOptions: { openai: { phase: "commentary" } } }),
      call("a"),
    );
    expect(shown(messages, { changedAt: "e1" })[1]).toEqual(changed);
    expect(shown(messages, { model: "new" }, [{}, { model: "old" }])[1]).toEqual(changed);
  });

  test("R4: what a provider ran by itself goes with its model, wherever the result stands", () => {
    const hosted = call("s", { toolName: "web_search", providerExecuted: true });
    const found = { ...result("s"), toolName: "web_search" };
    const messages = [user("go"), assistant(text("a"), hosted, found), user("and?"), assistant(hosted), tool(found)];
    expect(shown(messages, { model: "old" }, [{}, { model: "old" }, {}, { model: "old" }])).toEqual(messages);
    expect(shown(messages, { model: "new" }, [{}, { model: "old" }, {}, { model: "old" }])).toEqual([
      user("go"),
      assistant(text("a")),
      user("and?"),
    ]);
  });

  test("a call that had to be changed goes without the signature that it came with", () => {
    const signed = { providerOptions: { google: { thoughtSignature: "s", other: 1 } } };
    const view = shown([
      user("go"),
      assistant(call("a", signed), call("b", { ...signed, input: '{"x' })),
      tool(result("a"), result("b")),
      assistant(call("a", signed)),
      tool(result("a")),
    ]);
    const bare = { providerOptions: { google: { other: 1 } } };
    const cut = call("b", { ...bare, input: { unparsed: '{"x' } });
    expect(view[1]).toEqual(assistant(call("a", signed), cut));
    expect(view[3]).toEqual(assistant(call("a_2", bare)));
  });

  test("results: no empty text among other content, and no error without a word", () => {
    const image = { type: "file", mediaType: "image/png", data: { type: "data", data: "x" } };
    const sent = (output: Message): Message =>
      shown([user("go"), assistant(call("a")), tool({ ...result("a"), output })])[2].content[0].output;
    const content = (...value: Message[]): Message => ({ type: "content", value });
    expect(sent(content(text(""), image, text(" ")))).toEqual(content(image));
    expect(sent(content(text("")))).toEqual({ type: "text", value: "" });
    expect(sent(content())).toEqual({ type: "text", value: "" });
    expect(sent({ type: "error-text", value: " " })).toEqual({ type: "error-text", value: "failed without a message" });
  });

  test("a message that ends with reasoning goes without it", () => {
    const hm = { type: "reasoning", text: "hm" };
    expect(shown([user("go"), assistant(hm, text("a"), hm), assistant(hm), user("on")])).toEqual([
      user("go"),
      assistant(hm, text("a")),
      user("on"),
    ]);
  });

  test("neighbours of the assistant's are joined, since Gemini's package does not do that", () => {
    const first = { role: "assistant", content: "a", providerOptions: { x: { y: 1 } } };
    expect(shown([user("go"), first, assistant(call("a")), tool(result("a"))])[1]).toEqual({
      ...first,
      content: [text("a"), call("a")],
    });
  });

  test("the first message is the user's", () => {
    const system = { role: "system", content: "x" };
    const begin = { role: "user", content: "(The conversation starts here.)" };
    expect(shown([system, assistant(text("hi"))])).toEqual([system, begin, assistant(text("hi"))]);
  });

  test("C30, nothing empty", () => {
    const sign = { providerOptions: { google: { thoughtSignature: "s" } } };
    const view = shown([
      { role: "user", content: " " },
      { role: "user", content: [text(""), { type: "image", image: new URL("https://x/y.png") }] },
      assistant(text(""), text("", sign), call("a", { input: '{"x' }), call("b", { input: null })),
      tool(result("a"), result("b")),
      assistant(text(" ")),
    ]);
    expect(view).toEqual([
      { role: "user", content: [{ type: "image", image: new URL("https://x/y.png") }] },
      assistant(text("", sign), call("a", { input: { unparsed: '{"x' } }), call("b")),
      tool(result("a"), result("b")),
    ]);
  });
});

describe("ai-sdk: the rest", () => {
  test("result", () => {
    const output = (outcome: Message): Message =>
      (aiSdk.result({ id: "a", name: "read" }, outcome) as Message).content[0].output;
    expect(aiSdk.result({ id: "a", name: "read" }, { value: "ok" })).toEqual(tool(result("a")));
    expect(output({ value: { n: [1] } })).toEqual({ type: "json", value: { n: [1] } });
    expect(output({ value: undefined })).toEqual({ type: "json", value: null });
    expect(output({ value: 10n })).toEqual({ type: "text", value: "10" });
    expect(output({ value: new Uint8Array(3) })).toEqual({ type: "text", value: "(3 bytes)" });
    expect(output({ error: { code: 1 } })).toEqual({ type: "error-text", value: '{"code":1}' });
  });

  test("same: equal but for cache marks", () => {
    const mark = { providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } };
    expect(aiSdk.same(user("a"), { role: "user", content: [text("a", mark)], ...mark } as Message)).toBe(true);
    expect(aiSdk.same({ role: "user", content: "a" }, user("a"))).toBe(true);
    expect(aiSdk.same(user("a"), user("b"))).toBe(false);
    const bytes = (data: unknown): Message => ({ role: "user", content: [{ type: "file", data, mediaType: "x/y" }] });
    expect(aiSdk.same(bytes(new Uint8Array([1])), bytes(Buffer.from([1])))).toBe(true);
    expect(aiSdk.same(bytes(new Uint8Array([1])), bytes(new Uint8Array([2])))).toBe(false);
    expect(aiSdk.same(bytes(new URL("https://a/")), bytes(new URL("https://b/")))).toBe(false);
  });

  test("incomplete, boundary, role, text, check", () => {
    expect(aiSdk.incomplete(" ")).toBeNull();
    expect(aiSdk.role(aiSdk.incomplete("half")!)).toBe("assistant");
    expect(aiSdk.boundary("stopped")).toEqual({ role: "user", content: "stopped" });
    expect(aiSdk.text(assistant({ type: "reasoning", text: "hm" }, text("a"), call("x"), text("b")))).toBe("a\nb");
    expect(aiSdk.check(tool(result("a")))).toBeNull();
    expect(aiSdk.check({ role: "tool", content: "x" as never })).not.toBeNull();
    expect(aiSdk.check(assistant({ type: "tool_use" }))).toMatch(/another dialect/);
  });
});
