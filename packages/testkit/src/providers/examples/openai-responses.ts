import type { OpenaiResponsesOptions } from "../openai-responses.ts";
import type { Json } from "../violation.ts";
import type { Example } from "./example.ts";

const user = (text: string) => ({ role: "user", content: [{ type: "input_text", text }] });
const message = (id: string, text: string) => ({
  type: "message",
  id,
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }],
});
const reasoning = (id: string) => ({ type: "reasoning", id, summary: [], encrypted_content: `secret of ${id}` });
const call = (id: string, args: unknown = '{"path":"a.txt"}') => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: `call_${id}`,
  name: "read",
  arguments: args,
});
const output = (id: string, value: unknown = "done") => ({
  type: "function_call_output",
  call_id: `call_${id}`,
  output: value,
});
const custom = { type: "custom_tool_call", id: "ctc_1", call_id: "call_c", name: "sh", input: "ls" };
const customOutput = { type: "custom_tool_call_output", call_id: "call_c", output: "a.txt" };

const firstResponse = [reasoning("rs_1"), message("msg_1", "I read them."), call("1"), call("2", "{}")];
const secondResponse = [reasoning("rs_2"), custom];
const thirdResponse = [
  { type: "web_search_call", id: "ws_1", status: "completed" },
  reasoning("rs_3"),
  message("msg_3", "Done."),
];

/** What the model answered, in order. */
export const openaiResponsesItems: readonly (readonly Json[])[] = [firstResponse, secondResponse, thirdResponse];

/** Parallel calls after a message, an image in an output, steering, a custom call, a search, an answer, a prompt. */
export const openaiResponsesConversation: { readonly store: boolean; readonly input: readonly Json[] } = {
  store: false,
  input: [
    user("Read both files."),
    ...firstResponse,
    output("1"),
    output("2", [{ type: "input_image", image_url: "data:image/png;base64,iVBORw0KGgo=" }]),
    user("Look at the tides too."),
    ...secondResponse,
    customOutput,
    ...thirdResponse,
    user("Thanks."),
  ],
};

const asked = (...items: readonly Json[]) => ({ store: false, input: [user("Hello."), ...items] });
const answeredCall = [call("a"), output("a")];

export const openaiResponsesExamples: readonly Example<OpenaiResponsesOptions>[] = [
  {
    rule: "openai-responses-1",
    accepts: {
      name: "a function call and a custom call with their outputs",
      request: asked(call("a"), custom, customOutput, output("a")),
    },
    refuses: [
      { name: "a call without output", request: asked(call("a")) },
      { name: "a custom call without output", request: asked(custom) },
      { name: "an output without call", request: asked(output("a")) },
      { name: "an output before its call", request: asked(output("a"), call("a"), output("a")) },
      { name: "two outputs of one call", request: asked(...answeredCall, output("a")) },
      {
        name: "an output of the other kind",
        request: asked(call("a"), output("a"), { ...customOutput, call_id: "call_a" }),
      },
    ],
  },
  {
    rule: "openai-responses-2",
    accepts: {
      name: "a response that travels whole",
      request: asked(reasoning("rs_1"), call("1"), output("1")),
      options: { responses: [["rs_1", "fc_1"]] },
    },
    refuses: [
      { name: "reasoning at the end", request: asked(reasoning("rs_1")) },
      { name: "reasoning before a prompt", request: asked(reasoning("rs_1"), user("Go on.")) },
      {
        name: "another item behind the reasoning",
        request: asked(reasoning("rs_1"), message("msg_9", "So."), ...answeredCall),
        options: { responses: [["rs_1", "fc_a"]] },
      },
      {
        name: "a call without its reasoning",
        request: asked(...answeredCall),
        options: { responses: [["rs_1", "fc_a"]] },
      },
      {
        name: "the second of two calls without the reasoning",
        request: asked(...answeredCall),
        options: { responses: [["rs_1", "fc_0", "fc_a"]] },
      },
      {
        name: "the following item lost its id",
        request: asked(reasoning("rs_1"), { ...call("a"), id: undefined }, output("a")),
        options: { responses: [["rs_1", "fc_a"]] },
      },
      {
        name: "items of one response swapped",
        request: asked(call("b"), call("a"), output("a"), output("b")),
        options: { responses: [["fc_a", "fc_b"]] },
      },
    ],
  },
  {
    rule: "openai-responses-3",
    accepts: {
      name: "a reference while the server keeps its items",
      request: { store: true, input: [user("Hello."), { type: "item_reference", id: "msg_1" }, user("Go on.")] },
    },
    refuses: [
      {
        name: "a reference without a store",
        request: asked({ type: "item_reference", id: "msg_1" }, user("Go on.")),
      },
      {
        name: "reasoning without its encrypted content",
        request: asked({ ...reasoning("rs_1"), encrypted_content: null }, message("msg_1", "Hi.")),
      },
      {
        name: "encrypted content that was changed",
        request: asked({ ...reasoning("rs_1"), encrypted_content: "other" }, message("msg_1", "Hi.")),
        options: { responses: [[reasoning("rs_1"), "msg_1"]] },
      },
    ],
  },
  {
    rule: "openai-responses-4",
    accepts: {
      name: "a screenshot as output",
      request: asked(
        { type: "computer_call", id: "cu_1", call_id: "call_x" },
        {
          type: "computer_call_output",
          call_id: "call_x",
          output: { type: "computer_screenshot", image_url: "data:" },
        },
      ),
    },
    refuses: [
      {
        name: "an approval without its request",
        request: asked({ type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true }),
      },
      { name: "a computer call without output", request: asked({ type: "computer_call", call_id: "call_x" }) },
      { name: "a shell output without call", request: asked({ type: "shell_call_output", call_id: "call_x" }) },
    ],
  },
  {
    rule: "openai-responses-ids",
    accepts: { name: "items without ids", request: asked({ ...call("a"), id: undefined }, output("a")) },
    refuses: [
      { name: "one item twice", request: asked(message("msg_1", "Hi."), message("msg_1", "Hi.")) },
      { name: "a call with a message's id", request: asked({ ...call("a"), id: "msg_1" }, output("a")) },
      {
        name: "a call_id again",
        request: asked(...answeredCall, { ...call("a"), id: "fc_other" }, output("a")),
      },
      {
        name: "a call_id of 65 characters",
        request: asked({ ...call("a"), call_id: "a".repeat(65) }, { ...output("a"), call_id: "a".repeat(65) }),
      },
    ],
  },
  {
    rule: "openai-responses-order",
    accepts: {
      name: "text of the same response in between",
      request: asked(call("a"), message("msg_1", "So."), output("a")),
    },
    refuses: [
      { name: "a prompt in between", request: asked(call("a"), user("And?"), output("a")) },
      {
        name: "a prompt between the items of one response",
        request: asked(message("msg_1", "So."), user("And?"), call("a"), output("a")),
        options: { responses: [["msg_1", "fc_a"]] },
      },
      {
        name: "an output behind the next response",
        request: asked(call("a"), message("msg_1", "So."), output("a")),
        options: { responses: [["fc_a"], ["msg_1"]] },
      },
    ],
  },
  {
    rule: "openai-responses-shape",
    accepts: { name: "one prompt as a string", request: { input: "Hello." } },
    refuses: [
      { name: "no items", request: { input: [] } },
      { name: "an unknown item", request: asked({ type: "thought", text: "Hm." }) },
      { name: "input text of the assistant", request: asked({ role: "assistant", content: user("Hi.").content }) },
      { name: "output text of the user", request: asked({ role: "user", content: message("msg_1", "Hi.").content }) },
      { name: "arguments that are an object", request: asked(call("a", { path: "a" }), output("a")) },
      { name: "arguments that were cut off", request: asked(call("a", '{"path":'), output("a")) },
      { name: "a name with a space", request: asked({ ...call("a"), name: "git diff" }, output("a")) },
      { name: "an output that is a value", request: asked(call("a"), output("a", { ok: true })) },
      {
        name: "reasoning without summary",
        request: asked({ ...reasoning("rs_1"), summary: undefined }, message("msg_1", "Hi.")),
      },
    ],
  },
  {
    rule: "openai-responses-unicode",
    accepts: { name: "a whole character of two units", request: asked(user("😀")) },
    refuses: [
      { name: "half a character in a prompt", request: asked(user("\ud83d")) },
      { name: "the other half in an output", request: asked(call("a"), output("a", "\ude00")) },
      { name: "half a character in a prompt that is a string", request: { input: "\ud83d" } },
      { name: "a NUL", request: asked(user("a\0b")) },
    ],
  },
];
