import { validateOpenaiChat } from "@holdfast/testkit";
import { event, pieces, type Speech } from "./server.ts";

/** `POST /v1/chat/completions` with `stream: true`. */
export const openaiChat: Speech = {
  base: "/v1",
  events: ({ text = "", calls = [] }, body, id) => {
    const chunk = (delta: object, finish: string | null = null): object => ({
      id: `chatcmpl-${id}`,
      object: "chat.completion.chunk",
      created: 1_700_000_000,
      model: body["model"],
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const usage = {
      prompt_tokens: 12,
      completion_tokens: 21,
      total_tokens: 33,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 0 },
    };
    return [
      ...[
        chunk({ role: "assistant", content: "" }),
        ...pieces(text).map((content) => chunk({ content })),
        ...calls.flatMap(({ id: call, name, input }, index) => [
          chunk({ tool_calls: [{ index, id: call, type: "function", function: { name, arguments: "" } }] }),
          ...pieces(JSON.stringify(input)).map((piece) =>
            chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
          ),
        ]),
        chunk({}, calls.length > 0 ? "tool_calls" : "stop"),
        { ...chunk({}), choices: [], usage },
      ].map((data) => event(data)),
      "data: [DONE]\n\n",
    ];
  },
  failure: () =>
    event({ error: { message: "The server had an error", type: "server_error", param: null, code: null } }),
  refusal: (message) => ({ error: { message, type: "server_error", param: null, code: null } }),
  judge: (body) => validateOpenaiChat(body),
};
