import type { ModelParams } from "./run.ts";

/** By provider of a Responses API: where its options stand. */
const OPTIONS: Readonly<Record<string, string>> = { "openai.responses": "openai", "azure.responses": "azure" };

/**
 * Of what OpenAI keeps on its side, a conversation holds but ids, which expire and cannot be forked or repaired (R4). So it is asked to keep nothing: the package then asks for reasoning in encrypted form, and the journal holds it.
 * Where the application says otherwise, or builds on what is kept there, it is left alone; and so it is where tools on OpenAI's side ask for approval: the package answers such a request by its id alone.
 */
export function privately(params: ModelParams, provider: string): ModelParams {
  const name = OPTIONS[provider];
  if (name === undefined) return params;
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
