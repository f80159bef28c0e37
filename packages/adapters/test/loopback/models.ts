import type { LanguageModel } from "ai";

export type ProviderName = "anthropic" | "openai-responses" | "openai-chat" | "gemini";

/**
 * A model from each real provider package, at the given address. Imported on demand, so that a process that will be
 * killed starts fast.
 */
export const models: Record<ProviderName, (baseURL: string) => Promise<LanguageModel>> = {
  anthropic: async (baseURL) => {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    return createAnthropic({ baseURL, apiKey: "none" })("claude-sonnet-4-5");
  },
  "openai-responses": async (baseURL) => {
    const { createOpenAI } = await import("@ai-sdk/openai");
    return createOpenAI({ baseURL, apiKey: "none" }).responses("gpt-5");
  },
  "openai-chat": async (baseURL) => {
    const { createOpenAI } = await import("@ai-sdk/openai");
    return createOpenAI({ baseURL, apiKey: "none" }).chat("gpt-4.1");
  },
  gemini: async (baseURL) => {
    const { createGoogle } = await import("@ai-sdk/google");
    return createGoogle({ baseURL, apiKey: "none" })("gemini-3-pro-preview");
  },
};
