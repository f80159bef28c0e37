import type { AnthropicOptions } from "../anthropic.ts";
import { type AnthropicFrame, signResponse } from "../anthropic-thinking.ts";
import type { Json } from "../violation.ts";
import type { Example } from "./example.ts";

type Request = AnthropicFrame & { readonly messages: readonly Json[] };

const text = (words: string) => ({ type: "text", text: words });
const user = (...content: readonly Json[]) => ({ role: "user", content });
const assistant = (...content: readonly Json[]) => ({ role: "assistant", content });
const call = (id: string, name = "read") => ({ type: "tool_use", id, name, input: { path: "a.txt" } });
const result = (id: string, content: unknown = "done") => ({ type: "tool_result", tool_use_id: id, content });
const search = (id: string) => ({ type: "server_tool_use", id, name: "web_search", input: { query: "tides" } });
const found = (id: string) => ({ type: "web_search_tool_result", tool_use_id: id, content: [] });
const image = {
  type: "image",
  source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
};

const hello = user(text("Hello."));

/** The next request, if the model answered `request` with `content` and we add `then`. */
function answered(request: Request, content: readonly Json[], then: Json): Request {
  return { ...request, messages: [...request.messages, assistant(...signResponse(request, content)), then] };
}

const first: Request = {
  system: "Be brief.",
  tools: [{ name: "read", input_schema: { type: "object" } }],
  messages: [user(text("Read both files."), image)],
};
const second = answered(
  first,
  [{ type: "thinking", thinking: "Two files." }, text("I read them."), call("toolu_1"), call("toolu_2", "run")],
  user(result("toolu_1"), result("toolu_2", [text("ok"), image]), text("Look at the tides too.")),
);
const third = answered(
  second,
  [
    { type: "redacted_thinking" },
    search("srvtoolu_1"),
    found("srvtoolu_1"),
    { type: "thinking", thinking: "" },
    text("Found them."),
    call("toolu_3"),
  ],
  user({ ...result("toolu_3", "no such file"), is_error: true }),
);

/**
 * Parallel calls, an image, steering, a server tool, redacted and interleaved thinking, an error, an answer, a prompt.
 */
export const anthropicConversation: Request = answered(
  third,
  [{ type: "thinking", thinking: "Enough." }, text("The file is gone.")],
  user(text("Thanks. And now?")),
);

/** The original contents of the responses in that conversation. */
export const anthropicResponses: readonly (readonly unknown[])[] = anthropicConversation.messages
  .filter((message) => message["role"] === "assistant")
  .map((message) => message["content"] as readonly unknown[]);

/** One finished exchange with a call, then a prompt. */
const withCalls = (calls: readonly Json[], ...results: readonly Json[]) => ({
  messages: [hello, assistant(text("I look."), ...calls), ...results, assistant(text("Done.")), user(text("Thanks."))],
});

/** The conversation with one message replaced by `change`. */
function changed(request: Request, index: number, change: (message: Json, content: readonly Json[]) => Json): Request {
  const messages = request.messages.map((message, i) =>
    i === index ? change(message, message["content"] as readonly Json[]) : message,
  );
  return { ...request, messages };
}

const withoutThinking = (content: readonly Json[]) => content.filter((block) => block["type"] !== "thinking");
const marked = changed(anthropicConversation, 0, (message, content) => ({
  ...message,
  content: content.map((block) => ({ ...block, cache_control: { type: "ephemeral" } })),
}));

export const anthropicExamples: readonly Example<AnthropicOptions>[] = [
  {
    rule: "anthropic-1",
    accepts: {
      name: "two calls, both answered in the next message",
      request: withCalls([call("a"), call("b")], user(result("a"), result("b"))),
    },
    refuses: [
      { name: "one of two calls is not answered", request: withCalls([call("a"), call("b")], user(result("a"))) },
      { name: "a prompt instead of a result", request: withCalls([call("a")], user(text("Stop."))) },
      {
        name: "nothing behind the call",
        request: { messages: [hello, assistant(call("a"))] },
        options: { prefill: true },
      },
    ],
  },
  {
    rule: "anthropic-2",
    accepts: { name: "text behind the result", request: withCalls([call("a")], user(result("a"), text("Go on."))) },
    refuses: [
      { name: "text before the result", request: withCalls([call("a")], user(text("Go on."), result("a"))) },
      {
        name: "text between two results",
        request: withCalls([call("a"), call("b")], user(result("a"), text("Go on."), result("b"))),
      },
    ],
  },
  {
    rule: "anthropic-3",
    accepts: { name: "one result", request: withCalls([call("a")], user(result("a"))) },
    refuses: [
      { name: "a result without a call", request: { messages: [user(result("a"))] } },
      { name: "two results for one call", request: withCalls([call("a")], user(result("a"), result("a"))) },
      {
        name: "a result that comes a message late",
        request: withCalls([call("a")], user(result("a")), assistant(text("So.")), user(result("a"))),
      },
    ],
  },
  {
    rule: "anthropic-4",
    accepts: {
      name: "another id for the second call",
      request: withCalls([call("a")], user(result("a")), assistant(call("b")), user(result("b"))),
    },
    refuses: [
      {
        name: "the same id again",
        request: withCalls([call("a")], user(result("a")), assistant(call("a")), user(result("a"))),
      },
      { name: "the same id twice in one message", request: withCalls([call("a"), call("a")], user(result("a"))) },
    ],
  },
  {
    rule: "anthropic-5",
    accepts: {
      name: "a result without content, which is no text",
      request: withCalls([call("a")], user({ type: "tool_result", tool_use_id: "a" })),
    },
    refuses: [
      { name: "empty text", request: { messages: [user(text(""))] } },
      { name: "white space", request: { messages: [user(text(" \n"))] } },
      { name: "an empty string", request: { messages: [{ role: "user", content: "" }] } },
      { name: "no blocks", request: { messages: [hello, assistant(), hello] } },
      { name: "empty text in a result", request: withCalls([call("a")], user(result("a", [text("")]))) },
      {
        name: "an error without words",
        request: withCalls([call("a")], user({ ...result("a", ""), is_error: true })),
      },
      {
        name: "a prefill that ends with white space",
        request: { messages: [hello, assistant(text("So "))] },
        options: { prefill: true },
      },
    ],
  },
  {
    rule: "anthropic-6",
    accepts: { name: "neighbours of one role, which are joined", request: { messages: [hello, hello] } },
    refuses: [{ name: "an assistant message first", request: { messages: [assistant(text("Hi.")), hello] } }],
  },
  {
    rule: "anthropic-7",
    accepts: { name: "cache marks that moved", request: marked, options: { responses: anthropicResponses } },
    refuses: [
      { name: "another system prompt", request: { ...anthropicConversation, system: "Be long." } },
      { name: "another tool", request: { ...anthropicConversation, tools: [] } },
      {
        name: "an earlier message changed",
        request: changed(anthropicConversation, 4, (message) => ({
          ...message,
          content: [result("toolu_3", "other")],
        })),
      },
      {
        name: "a thinking block left out of the middle",
        request: changed(anthropicConversation, 3, (message, content) => ({
          ...message,
          content: withoutThinking(content),
        })),
      },
      {
        name: "no signature",
        request: { messages: [hello, assistant({ type: "thinking", thinking: "Hm." }, text("Hi.")), hello] },
      },
      {
        name: "thinking and nothing else",
        request: answered(first, [{ type: "thinking", thinking: "Hm." }], hello),
      },
      {
        name: "a foreign signature",
        request: {
          messages: [hello, assistant({ type: "thinking", thinking: "Hm.", signature: "EqQB" }, text("Hi.")), hello],
        },
      },
      {
        name: "a running tool loop without its thinking",
        request: changed(second, 1, (message, content) => ({ ...message, content: withoutThinking(content) })),
        options: { responses: anthropicResponses },
      },
      {
        name: "manual mode: a running tool loop that does not start with thinking",
        request: {
          thinking: { type: "enabled", budget_tokens: 1024 },
          messages: [hello, assistant(call("a")), user(result("a"))],
        },
      },
    ],
  },
  {
    rule: "anthropic-8",
    accepts: { name: "a prompt at the end", request: { messages: [hello, assistant(text("Hi.")), hello] } },
    refuses: [{ name: "an answer at the end", request: { messages: [hello, assistant(text("Hi."))] } }],
  },
  {
    rule: "anthropic-9",
    accepts: {
      name: "a paused turn that ends with its open call",
      request: { messages: [hello, assistant(text("I search."), search("srvtoolu_a"))] },
    },
    refuses: [
      {
        name: "the conversation goes on without the result",
        request: { messages: [hello, assistant(search("srvtoolu_a")), user(text("And?"))] },
      },
      {
        name: "a result without its call",
        request: { messages: [hello, assistant(found("srvtoolu_a"), text("Found.")), hello] },
      },
      {
        name: "a result of another tool",
        request: {
          messages: [hello, assistant({ ...search("srvtoolu_a"), name: "web_fetch" }, found("srvtoolu_a")), hello],
        },
      },
      {
        name: "a server tool's call that we answer",
        request: {
          messages: [hello, assistant(search("srvtoolu_a"), found("srvtoolu_a")), user(result("srvtoolu_a"))],
        },
      },
    ],
  },
  {
    rule: "anthropic-shape",
    accepts: {
      name: "a system message behind a prompt",
      request: { messages: [hello, { role: "system", content: "Be brief." }] },
      options: { systemMessages: true },
    },
    refuses: [
      { name: "no messages", request: { messages: [] } },
      { name: "a system message", request: { messages: [hello, { role: "system", content: "Be brief." }] } },
      { name: "a field of ours", request: { messages: [{ ...hello, id: "m1" }] } },
      { name: "an image of the assistant", request: { messages: [hello, assistant(image), hello] } },
      { name: "input that is text", request: withCalls([{ ...call("a"), input: '{"path":' }], user(result("a"))) },
      {
        name: "a name of 201 characters",
        request: withCalls([{ ...call("a"), name: "a".repeat(201) }], user(result("a"))),
      },
      { name: "an id with a dot", request: withCalls([call("call.1")], user(result("call.1"))) },
      {
        name: "an image in an error",
        request: withCalls([call("a")], user({ ...result("a", [image]), is_error: true })),
      },
      {
        name: "an image that is no base64",
        request: { messages: [user({ ...image, source: { ...image.source, data: "{}" } })] },
      },
    ],
  },
  {
    rule: "anthropic-unicode",
    accepts: { name: "a whole character of two units", request: { messages: [user({ type: "text", text: "😀" })] } },
    refuses: [
      { name: "half a character in a prompt", request: { messages: [user({ type: "text", text: "\ud83d" })] } },
      { name: "the other half in a result", request: withCalls([call("a")], user(result("a", "\ude00"))) },
      {
        name: "half a character in the name of a member",
        request: withCalls([{ ...call("a"), input: { "\ud83d": 1 } }], user(result("a"))),
      },
      { name: "a NUL", request: { messages: [user({ type: "text", text: "a\0b" })] } },
    ],
  },
];
