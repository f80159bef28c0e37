import type { AiSdkOptions } from "../ai-sdk.ts";
import type { Json } from "../violation.ts";
import type { Example } from "./example.ts";

const user = (content: unknown) => ({ role: "user", content });
const assistant = (...content: readonly Json[]) => ({ role: "assistant", content });
const tool = (...content: readonly Json[]) => ({ role: "tool", content });
const text = (words: string) => ({ type: "text", text: words });
const call = (id: string, more: Json = {}) => ({
  type: "tool-call",
  toolCallId: id,
  toolName: "read",
  input: { path: "a.txt" },
  ...more,
});
const result = (id: string, output: Json = { type: "text", value: "done" }) => ({
  type: "tool-result",
  toolCallId: id,
  toolName: "read",
  output,
});
const request = (id: string, callId: string) => ({
  type: "tool-approval-request",
  approvalId: id,
  toolCallId: callId,
});
const response = (id: string, approved = true) => ({ type: "tool-approval-response", approvalId: id, approved });
const denied = { type: "execution-denied", reason: "no" };

/** Parallel calls, a file, reasoning, steering, a provider's call, an approval, a denial, an answer, a prompt. */
export const aiSdkConversation: { readonly messages: readonly Json[] } = {
  messages: [
    user([text("Read both files."), { type: "file", mediaType: "image/png", data: "iVBORw0KGgo=" }]),
    assistant({ type: "reasoning", text: "Two files." }, text("I read them."), call("c1"), call("c2")),
    tool(result("c1"), result("c2", { type: "error-text", value: "no such file" })),
    user("Look at the tides too."),
    assistant(call("s1", { providerExecuted: true }), result("s1"), text("Found."), call("c3"), request("a1", "c3")),
    tool(response("a1")),
    tool(result("c3", { type: "json", value: [1] })),
    assistant(call("c4"), request("a2", "c4")),
    tool(response("a2", false), result("c4", denied)),
    assistant(text("Done.")),
    user("Thanks."),
  ],
};

const asked = (...messages: readonly Json[]) => ({ messages: [user("Hello."), ...messages] });

export const aiSdkExamples: readonly Example<AiSdkOptions>[] = [
  {
    rule: "ai-sdk-1",
    accepts: {
      name: "an approved call at the end, which the SDK runs itself",
      request: asked(assistant(call("a"), request("r", "a")), tool(response("r"))),
    },
    refuses: [
      { name: "no result at the end", request: asked(assistant(call("a"))), options: { prefill: true } },
      { name: "no result before a prompt", request: asked(assistant(call("a")), user("Stop.")) },
      { name: "one of two results", request: asked(assistant(call("a"), call("b")), tool(result("a"))) },
      {
        name: "an approval that nobody answered",
        request: asked(assistant(call("a"), request("r", "a"))),
        options: { prefill: true },
      },
      {
        name: "an approved call that was never run, and a prompt",
        request: asked(assistant(call("a"), request("r", "a")), tool(response("r")), user("And?")),
      },
    ],
  },
  {
    rule: "ai-sdk-2",
    accepts: {
      name: "a provider's call with its result, a paused one at the end",
      request: asked(
        assistant(call("p", { providerExecuted: true }), result("p"), call("q", { providerExecuted: true })),
      ),
    },
    refuses: [
      { name: "a result without call", request: asked(tool(result("a"))) },
      { name: "two results for one call", request: asked(assistant(call("a")), tool(result("a"), result("a"))) },
      {
        name: "text between call and result",
        request: asked(assistant(call("a")), assistant(text("So.")), tool(result("a"))),
      },
      {
        name: "the same id again",
        request: asked(assistant(call("a")), tool(result("a")), assistant(call("a")), tool(result("a"))),
      },
      {
        name: "a result in the assistant's message",
        request: asked(assistant(text("So."), result("a")), user("And?")),
      },
      {
        name: "a provider's call without result, and a prompt",
        request: asked(assistant(call("p", { providerExecuted: true })), user("And?")),
      },
      { name: "another tool's name", request: asked(assistant(call("a", { toolName: "run" })), tool(result("a"))) },
      { name: "an answer at the end", request: asked(assistant(text("Hi."))) },
      { name: "an answer first", request: { messages: [assistant(text("Hi.")), user("Hello.")] } },
      { name: "empty text", request: { messages: [user("")] } },
      { name: "white space", request: { messages: [user([text(" \n")])] } },
      { name: "no parts", request: asked(assistant(), user("And?")) },
      {
        name: "input that was cut off",
        request: asked(assistant(call("a", { input: '{"path":' })), tool(result("a"))),
      },
    ],
  },
  {
    rule: "ai-sdk-3",
    accepts: {
      name: "a denial with its result",
      request: asked(assistant(call("a"), request("r", "a")), tool(response("r", false), result("a", denied))),
    },
    refuses: [
      { name: "a response without request", request: asked(assistant(call("a")), tool(response("r"), result("a"))) },
      { name: "a request without call", request: asked(assistant(text("So."), request("r", "a")), user("And?")) },
      {
        name: "two answers",
        request: asked(assistant(call("a"), request("r", "a")), tool(response("r"), response("r", false))),
      },
      {
        name: "a denied call with a result",
        request: asked(assistant(call("a"), request("r", "a")), tool(response("r", false), result("a"))),
      },
      {
        name: "one approval id for two calls",
        request: asked(
          assistant(call("a"), call("b"), request("r", "a"), request("r", "b")),
          tool(result("a"), result("b")),
        ),
      },
    ],
  },
  {
    rule: "ai-sdk-shape",
    accepts: {
      name: "a view that waits for a person",
      request: asked(assistant(call("a"), request("r", "a"))),
      options: { waiting: true },
    },
    refuses: [
      { name: "no messages", request: { messages: [] } },
      { name: "a system message", request: asked({ role: "system", content: "Be brief." }) },
      { name: "an unknown role", request: asked({ role: "model", content: "Hi." }, user("And?")) },
      { name: "a tool message of text", request: asked({ role: "tool", content: "done" }) },
      { name: "a call of the user", request: { messages: [user([text("Hello."), call("a")])] } },
      {
        name: "an output that is text",
        request: asked(assistant(call("a")), tool({ ...result("a"), output: "done" })),
      },
      {
        name: "a text output that is a value",
        request: asked(assistant(call("a")), tool(result("a", { type: "text", value: { ok: true } }))),
      },
    ],
  },
  {
    rule: "ai-sdk-unicode",
    accepts: { name: "a whole character of two units", request: { messages: [user("😀")] } },
    refuses: [
      { name: "half a character in a prompt", request: { messages: [user("\ud83d")] } },
      {
        name: "the other half in a result",
        request: asked(assistant(call("a")), tool(result("a", { type: "json", value: { deep: ["\ude00"] } }))),
      },
      { name: "a NUL", request: { messages: [user("a\0b")] } },
    ],
  },
];
