import { acp } from "./acp.ts";
import { aiSdk } from "./ai-sdk.ts";
import { anthropic } from "./anthropic.ts";
import type { Dialect } from "./dialect.ts";
import { gemini } from "./gemini.ts";
import { openaiChat } from "./openai-chat.ts";
import { openaiResponses } from "./openai-responses.ts";

export type { AcpMessage } from "./acp.ts";
export type { AiSdkMessage } from "./ai-sdk.ts";
export type { AnthropicMessage } from "./anthropic.ts";
export type { Call, Dialect, Entry, Metadata, Outcome, Part, View } from "./dialect.ts";
export type { GeminiContent } from "./gemini.ts";
export type { OpenAIChatMessage } from "./openai-chat.ts";
export type { OpenAIResponsesItem } from "./openai-responses.ts";
export { partsOf } from "./parts/part.ts";

export type DialectName = "ai-sdk" | "anthropic" | "openai-chat" | "openai-responses" | "gemini" | "acp";

/** The built-in dialects. Only the application knows which one its messages use. */
// biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
export const dialects: Readonly<Record<DialectName, Dialect<any>>> = {
  "ai-sdk": aiSdk,
  anthropic,
  "openai-chat": openaiChat,
  "openai-responses": openaiResponses,
  gemini,
  acp,
};

/** Null if no built-in dialect has that name: it may be the application's own. */
// biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
export function dialectNamed(name: string): Dialect<any> | null {
  return Object.hasOwn(dialects, name) ? dialects[name as DialectName] : null;
}
