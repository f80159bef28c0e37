import { type AgentInputItem, type ModelRequest, OpenAIResponsesModel } from "@openai/agents";

interface Sent {
  readonly input: readonly unknown[];
  readonly store: boolean;
}

interface Builder {
  _buildResponsesCreateRequest(request: ModelRequest, stream: boolean): { requestData: Sent };
}

const model = new OpenAIResponsesModel({} as never, "gpt-5") as unknown as Builder;

/** What the SDK's own package sends to OpenAI for these items. */
export function sentBy(items: readonly AgentInputItem[]): Sent {
  const request: ModelRequest = {
    input: items as AgentInputItem[],
    modelSettings: { store: false },
    tools: [],
    outputType: "text",
    handoffs: [],
    tracing: false,
  };
  return JSON.parse(JSON.stringify(model._buildResponsesCreateRequest(request, true).requestData)) as Sent;
}
