import { anthropic as anthropicTools } from "@ai-sdk/anthropic";
import { openai as openaiTools } from "@ai-sdk/openai";
import type { LanguageModel, ToolSet } from "ai";
import { anthropic } from "./anthropic.ts";
import { gemini } from "./gemini.ts";
import { models, type ProviderName } from "./models.ts";
import { openaiChat } from "./openai-chat.ts";
import { openaiResponses } from "./openai-responses.ts";
import type { Speech } from "./server.ts";

export interface Provider {
  readonly speech: Speech;
  model(baseURL: string): Promise<LanguageModel>;
  /** What the adapter asks for by itself, for a run without it. */
  readonly options?: { readonly openai: { readonly store: false } };
  /** Run by the provider itself. */
  readonly search?: ToolSet;
}

/** The real packages, each with the server that speaks to it. */
export const providers: Record<ProviderName, Provider> = {
  anthropic: {
    speech: anthropic,
    model: models.anthropic,
    search: { web_search: anthropicTools.tools.webSearch_20250305({}) } as ToolSet,
  },
  "openai-responses": {
    speech: openaiResponses,
    model: models["openai-responses"],
    options: { openai: { store: false } },
    search: { web_search: openaiTools.tools.webSearch({}) } as ToolSet,
  },
  "openai-chat": { speech: openaiChat, model: models["openai-chat"] },
  gemini: { speech: gemini, model: models.gemini },
};
