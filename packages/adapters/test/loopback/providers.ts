import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import type { LanguageModel } from "ai";
import { anthropic } from "./anthropic.ts";
import { gemini } from "./gemini.ts";
import { openaiChat } from "./openai-chat.ts";
import { openaiResponses } from "./openai-responses.ts";
import type { Speech } from "./server.ts";

/** The real packages, each with the server that speaks to it. */
export const providers: Record<
  "anthropic" | "openai-responses" | "openai-chat" | "gemini",
  { readonly speech: Speech; model(baseURL: string): LanguageModel; readonly options?: { openai: { store: false } } }
> = {
  anthropic: {
    speech: anthropic,
    model: (baseURL) => createAnthropic({ baseURL, apiKey: "none" })("claude-sonnet-4-5"),
  },
  "openai-responses": {
    speech: openaiResponses,
    model: (baseURL) => createOpenAI({ baseURL, apiKey: "none" }).responses("gpt-5"),
    // As the adapter asks for it by itself.
    options: { openai: { store: false } },
  },
  "openai-chat": {
    speech: openaiChat,
    model: (baseURL) => createOpenAI({ baseURL, apiKey: "none" }).chat("gpt-4.1"),
  },
  gemini: {
    speech: gemini,
    model: (baseURL) => createGoogle({ baseURL, apiKey: "none" })("gemini-3-pro-preview"),
  },
};
