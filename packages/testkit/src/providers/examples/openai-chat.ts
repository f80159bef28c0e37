import type { OpenaiChatOptions } from "../openai-chat.ts";
import type { Json } from "../violation.ts";
import type { Example } from "./example.ts";

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: string | null, ...calls: readonly Json[]) =>
  calls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, tool_calls: calls };
const call = (id: string, args: unknown = '{"path":"a.txt"}') => ({
  id,
  type: "function",
  function: { name: "read", arguments: args },
});
const tool = (id: string, content: unknown = "done") => ({ role: "tool", tool_call_id: id, content });

/**
 * Parallel calls, null content, an image, steering, repeated ids in two messages, a custom call, an answer, a prompt.
 */
export const openaiChatConversation: { readonly messages: readonly Json[] } = {
  messages: [
    { role: "system", content: "Be brief." },
    user([
      { type: "text", text: "Read both files." },
      { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
    ]),
    assistant(null, call("call_0"), call("call_1", "{}")),
    tool("call_0"),
    tool("call_1", [{ type: "text", text: "ok" }]),
    user("Look at the tides too."),
    assistant("I look.", { id: "call_0", type: "custom", custom: { name: "sh", input: "ls" } }),
    tool("call_0", ""),
    assistant("Done."),
    user("Thanks."),
  ],
};

const asked = (...messages: readonly Json[]) => ({ messages: [user("Hello."), ...messages] });

export const openaiChatExamples: readonly Example<OpenaiChatOptions>[] = [
  {
    rule: "openai-chat-1",
    accepts: {
      name: "two calls, answered in another order",
      request: asked(assistant(null, call("a"), call("b")), tool("b"), tool("a"), user("Thanks.")),
    },
    refuses: [
      { name: "one answer is missing", request: asked(assistant(null, call("a"), call("b")), tool("a")) },
      { name: "no answer", request: asked(assistant(null, call("a"))) },
      { name: "a prompt instead of an answer", request: asked(assistant(null, call("a")), user("Stop.")) },
    ],
  },
  {
    rule: "openai-chat-2",
    accepts: { name: "arguments of no keys", request: asked(assistant(null, call("a", "{}")), tool("a")) },
    refuses: [
      { name: "a tool message without a call", request: asked(tool("a")) },
      { name: "two answers to one call", request: asked(assistant(null, call("a")), tool("a"), tool("a")) },
      {
        name: "an answer to an earlier call",
        request: asked(assistant(null, call("a")), tool("a"), assistant("So."), user("Go on."), tool("a")),
      },
      { name: "arguments that are an object", request: asked(assistant(null, call("a", { path: "a" })), tool("a")) },
      { name: "arguments that were cut off", request: asked(assistant(null, call("a", '{"path":')), tool("a")) },
      { name: "arguments that are an empty text", request: asked(assistant(null, call("a", "")), tool("a")) },
    ],
  },
  {
    rule: "openai-chat-shape",
    accepts: { name: "null beside calls", request: asked(assistant(null, call("a")), tool("a")) },
    refuses: [
      { name: "no messages", request: { messages: [] } },
      { name: "null without calls", request: asked(assistant(null), user("Hm?")) },
      { name: "a user message of null", request: { messages: [user(null)] } },
      { name: "an empty list of calls", request: asked({ role: "assistant", content: "So.", tool_calls: [] }) },
      { name: "an empty list of parts", request: { messages: [user([])] } },
      { name: "an unknown role", request: asked({ role: "model", content: "Hi." }) },
      {
        name: "one id twice in a message",
        request: asked(assistant(null, call("a"), call("a")), tool("a")),
      },
      {
        name: "an image in a tool message",
        request: asked(assistant(null, call("a")), tool("a", [{ type: "image_url", image_url: { url: "data:" } }])),
      },
      ...["git diff", "", "a".repeat(65)].map((name) => ({
        name: `a name of ${JSON.stringify(name)}`,
        request: asked(assistant(null, { ...call("a"), function: { name, arguments: "{}" } }), tool("a")),
      })),
      {
        name: "an id of 65 characters",
        request: asked(assistant(null, call("a".repeat(65))), tool("a".repeat(65))),
      },
    ],
  },
  {
    rule: "openai-chat-unicode",
    accepts: { name: "a whole character of two units", request: { messages: [user("😀")] } },
    refuses: [
      { name: "half a character in a prompt", request: { messages: [user("\ud83d")] } },
      { name: "the other half in a tool message", request: asked(assistant(null, call("a")), tool("a", "\ude00")) },
      { name: "a NUL", request: { messages: [user("a\0b")] } },
    ],
  },
];
