import { signResponse, validateAnthropic } from "@holdfast/testkit/internal/providers";
import { type Answer, type Body, event, pieces, type Speech } from "./server.ts";

/** `POST /v1/messages` with `stream: true`. Its thinking is signed over all that stands before it. */
export const anthropic: Speech = {
  base: "/v1",
  events: (answer, body, id) => {
    const content = signResponse(body as { messages: unknown[] }, blocksOf(answer, id));
    const message = {
      id: `msg_${id}`,
      type: "message",
      role: "assistant",
      model: body["model"],
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 12, output_tokens: 1, cache_read_input_tokens: 4, cache_creation_input_tokens: 3 },
    };
    const stop = { stop_reason: answer.calls ? "tool_use" : "end_turn", stop_sequence: null };
    return [
      { type: "message_start", message },
      ...content.flatMap((block, index) => [
        { type: "content_block_start", index, content_block: emptied(block) },
        ...deltas(block).map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index },
      ]),
      { type: "message_delta", delta: stop, usage: { output_tokens: 21 } },
      { type: "message_stop" },
    ].map((data) => event(data, data.type));
  },
  failure: () => event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, "error"),
  refusal: (message) => ({ type: "error", error: { type: "api_error", message } }),
  judge: (body) => validateAnthropic(body),
};

function blocksOf({ reasoning, searched, text, calls = [] }: Answer, id: string): Body[] {
  return [
    ...(reasoning === undefined ? [] : [{ type: "thinking", thinking: reasoning, signature: "" }]),
    ...(searched === undefined ? [] : search(`srvtoolu_${id}`, searched)),
    ...(text === undefined ? [] : [{ type: "text", text }]),
    ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input })),
  ];
}

function search(id: string, query: string): Body[] {
  const found = {
    type: "web_search_result",
    url: "https://example.org",
    title: "Found",
    encrypted_content: `encrypted-${id}`,
    page_age: null,
  };
  return [
    { type: "server_tool_use", id, name: "web_search", input: { query } },
    { type: "web_search_tool_result", tool_use_id: id, content: [found] },
  ];
}

function emptied(block: Body): Body {
  if (block["type"] === "web_search_tool_result") return block;
  if (block["type"] === "thinking") return { ...block, thinking: "", signature: "" };
  return block["type"] === "text" ? { ...block, text: "" } : { ...block, input: {} };
}

function deltas(block: Body): Body[] {
  if (block["type"] === "web_search_tool_result") return [];
  if (block["type"] === "thinking") {
    const thinking = pieces(String(block["thinking"])).map((piece) => ({ type: "thinking_delta", thinking: piece }));
    return [...thinking, { type: "signature_delta", signature: block["signature"] }];
  }
  if (block["type"] === "text") return pieces(String(block["text"])).map((text) => ({ type: "text_delta", text }));
  return pieces(JSON.stringify(block["input"])).map((partial_json) => ({ type: "input_json_delta", partial_json }));
}
