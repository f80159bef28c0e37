import { type Model, type ModelRequest, OpenAIResponsesModel } from "@openai/agents";

const REASONING = "reasoning.encrypted_content";

/**
 * For data that OpenAI stores on its side, a conversation has only ids, which expire and cannot be forked or repaired
 * (R4). So ask it to store nothing, and to send its reasoning encrypted, which the journal keeps. Unchanged if the
 * application sets `store`, or if tools on OpenAI's side ask for approval, since that needs data stored there.
 */
export function withoutStorage(request: ModelRequest, model: Model): ModelRequest {
  const { modelSettings, previousResponseId, conversationId, tools } = request;
  if (!(model instanceof OpenAIResponsesModel)) return request;
  if (modelSettings.store != null || previousResponseId != null || conversationId != null) return request;
  if (tools.some(asksFirst)) return request;
  const { providerData } = modelSettings;
  const given = (providerData?.["include"] as string[] | undefined) ?? tools.flatMap(includedBy);
  const include = [...new Set([...given, REASONING])];
  return { ...request, modelSettings: { ...modelSettings, store: false, providerData: { ...providerData, include } } };
}

type Tool = ModelRequest["tools"][number];

function dataOf(tool: Tool): Readonly<Record<string, unknown>> {
  return tool.type === "hosted_tool" ? (tool.providerData ?? {}) : {};
}

function asksFirst(tool: Tool): boolean {
  const { type, require_approval } = dataOf(tool);
  return type === "mcp" && require_approval != null && require_approval !== "never";
}

/** What the SDK asks for on behalf of a tool: a list of the application's own replaces the SDK's. */
function includedBy(tool: Tool): string[] {
  const { type, include_search_results, search_content_types } = dataOf(tool);
  if (type === "file_search" && include_search_results) return ["file_search_call.results"];
  const isOfImages = Array.isArray(search_content_types) && search_content_types.includes("image");
  return type === "web_search" && isOfImages ? ["web_search_call.results"] : [];
}
