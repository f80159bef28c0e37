import type { ModelParams } from "./run.ts";

/** Where the options of a Responses API stand, as its package goes by the provider's name, which the application may choose; null for all others. */
function optionsOf({ provider, modelId }: Model): "openai" | "azure" | null {
  if (provider === "gateway") return modelId.startsWith("openai/") ? "openai" : null;
  if (!provider.endsWith(".responses")) return null;
  return provider.includes("azure") ? "azure" : "openai";
}

type Model = { readonly provider: string; readonly modelId: string };

/**
 * Of what OpenAI keeps on its side, a conversation holds but ids, which expire and cannot be forked or repaired (R4). So it is asked to keep nothing: the package then asks for reasoning in encrypted form, and the journal holds it.
 * Where the application says otherwise, or builds on what is kept there, it is left alone; and so it is where tools on OpenAI's side ask for approval: the package answers such a request by its id alone.
 */
export function privately(params: ModelParams, model: Model): ModelParams {
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
