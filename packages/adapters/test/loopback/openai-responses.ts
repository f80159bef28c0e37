import { validateOpenaiResponses } from "@holdfast/testkit";
import { type Answer, type Body, event, pieces, type Speech } from "./server.ts";

/** `POST /v1/responses` with `stream: true`. Reasoning comes encrypted if it was asked for. */
export const openaiResponses: Speech = {
  base: "/v1",
  whole: (answer, body, id) => responseTo(answer, body, id),
  events: (answer, body, id) => {
    const { output, usage, ...response } = responseTo(answer, body, id);
    const items = output as Body[];
    return [
      { type: "response.created", response: { ...response, status: "in_progress" } },
      ...items.flatMap((item, index) => [
        { type: "response.output_item.added", output_index: index, item: begun(item) },
        ...deltas(item, index),
        { type: "response.output_item.done", output_index: index, item },
      ]),
      { type: "response.completed", response: { ...response, status: "completed", output: items, usage } },
    ].map((data, sequence_number) => event({ ...data, sequence_number }, data.type));
  },
  failure: () =>
    event(
      {
        type: "error",
        sequence_number: 9,
        error: { type: "server_error", code: "server_error", message: "Sorry", param: null },
      },
      "error",
    ),
  refusal: (message) => ({ error: { message, type: "server_error", param: null, code: null } }),
  judge: (body) => validateOpenaiResponses(body),
};

function responseTo(answer: Answer, body: Body, id: string): Body {
  const isEncrypted = JSON.stringify(body["include"] ?? []).includes("reasoning.encrypted_content");
  const usage = {
    input_tokens: 12,
    input_tokens_details: { cached_tokens: 4 },
    output_tokens: 21,
    output_tokens_details: { reasoning_tokens: 5 },
    total_tokens: 33,
  };
  const head = { id: `resp_${id}`, object: "response", created_at: 1_700_000_000, model: body["model"] };
  return { ...head, status: "completed", output: itemsOf(answer, id, isEncrypted), usage };
}

function itemsOf({ reasoning, searched, text, calls = [] }: Answer, id: string, isEncrypted: boolean): Body[] {
  const encrypted_content = isEncrypted ? `encrypted-${id}` : null;
  return [
    ...(reasoning === undefined
      ? []
      : [
          {
            type: "reasoning",
            id: `rs_${id}`,
            encrypted_content,
            summary: [{ type: "summary_text", text: reasoning }],
          },
        ]),
    ...(searched === undefined
      ? []
      : [
          {
            type: "web_search_call",
            id: `ws_${id}`,
            status: "completed",
            action: { type: "search", query: searched },
          },
        ]),
    ...(text === undefined
      ? []
      : [
          {
            type: "message",
            id: `msg_${id}`,
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text, annotations: [] }],
          },
        ]),
    ...calls.map(({ id: call_id, name, input }, index) => ({
      type: "function_call",
      id: `fc_${id}_${index}`,
      call_id,
      name,
      arguments: JSON.stringify(input),
      status: "completed",
    })),
  ];
}

function begun(item: Body): Body {
  if (item["type"] === "reasoning") return { ...item, summary: [] };
  if (item["type"] === "message") return { ...item, status: "in_progress", content: [] };
  if (item["type"] === "web_search_call") return { ...item, status: "in_progress" };
  return { ...item, status: "in_progress", arguments: "" };
}

function deltas(item: Body, output_index: number): ({ type: string } & Body)[] {
  const item_id = item["id"];
  if (item["type"] === "web_search_call") return [];
  if (item["type"] === "reasoning") {
    const [{ text }] = item["summary"] as [{ text: string }];
    const at = { item_id, output_index, summary_index: 0 };
    return [
      { type: "response.reasoning_summary_part.added", ...at, part: { type: "summary_text", text: "" } },
      ...pieces(text).map((delta) => ({ type: "response.reasoning_summary_text.delta", ...at, delta })),
      { type: "response.reasoning_summary_part.done", ...at, part: { type: "summary_text", text } },
    ];
  }
  if (item["type"] === "message") {
    const [{ text }] = item["content"] as [{ text: string }];
    const at = { item_id, output_index, content_index: 0 };
    return pieces(text).map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] }));
  }
  return pieces(String(item["arguments"])).map((delta) => ({
    type: "response.function_call_arguments.delta",
    item_id,
    output_index,
    delta,
  }));
}
