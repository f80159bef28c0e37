import type { ModelParams } from "./content.ts";

/**
 * The key of the options of a Responses API, which the package derives from the provider's name (the application may
 * choose it). Null for other providers.
 */
function optionsOf({ provider, modelId }: Model): "openai" | "azure" | null {
  if (provider === "gateway") return modelId.startsWith("openai/") ? "openai" : null;
  if (!provider.endsWith(".responses")) return null;
  return provider.includes("azure") ? "azure" : "openai";
}

type Model = { readonly provider: string; readonly modelId: string };

/**
 * For data that OpenAI stores on its side, a conversation has only ids, which expire and cannot be forked or repaired
 * (R4). So ask it to store nothing: the package then requests encrypted reasoning, and the journal keeps that. Do not
 * change this if the application sets it, or builds on stored data, or if tools on OpenAI's side ask for approval: the
 * package answers such a request by its id alone.
 */
export function withoutStorage(params: ModelParams, model: Model): ModelParams {
  const name = optionsOf(model);
  if (name === null) return params;
  const own = params.providerOptions?.[name] ?? params.providerOptions?.["openai"] ?? {};
  if (own["store"] != null || own["previousResponseId"] != null || own["conversation"] != null) return params;
  if (params.tools?.some(asksFirst)) return params;
  return { ...params, providerOptions: { ...params.providerOptions, [name]: { ...own, store: false } } };
}

function asksFirst(tool: NonNullable<ModelParams["tools"]>[number]): boolean {
  if (tool.type !== "provider" || tool.id !== "openai.mcp") return false;
  const { requireApproval } = tool.args;
  return requireApproval != null && requireApproval !== "never";
}
