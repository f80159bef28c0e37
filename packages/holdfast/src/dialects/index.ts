import { type AcpMessage, acp, RegularAcp } from "./acp.ts";
import { type AiSdkMessage, aiSdk, RegularAiSdk } from "./ai-sdk.ts";
import { type AnthropicMessage, anthropic, RegularAnthropic } from "./anthropic.ts";
import type { Dialect } from "./dialect.ts";
import { type GeminiContent, gemini, RegularGemini } from "./gemini.ts";
import { mappedOrder } from "./mapped/mapped-order.ts";
import { type OpenAIChatMessage, openaiChat, RegularOpenAIChat } from "./openai-chat.ts";
import { type OpenAIResponsesItem, openaiResponses, RegularOpenAIResponses } from "./openai-responses.ts";
import type { RegularOrder } from "./order/regular.ts";

export type { AcpMessage } from "./acp.ts";
export type { AiSdkMessage } from "./ai-sdk.ts";
export type { AnthropicMessage } from "./anthropic.ts";
export type { Call, Dialect, Entry, Metadata, Outcome, Part, View } from "./dialect.ts";
export type { GeminiContent } from "./gemini.ts";
export { type DialectMapping, mapDialect } from "./mapped/map-dialect.ts";
export type { OpenAIChatMessage } from "./openai-chat.ts";
export type { OpenAIResponsesItem } from "./openai-responses.ts";
export { partsOf } from "./parts/part.ts";

/** The type of the messages in each built-in dialect. */
export interface DialectMessages {
  "ai-sdk": AiSdkMessage;
  anthropic: AnthropicMessage;
  "openai-chat": OpenAIChatMessage;
  "openai-responses": OpenAIResponsesItem;
  gemini: GeminiContent;
  acp: AcpMessage;
}

export type DialectName = keyof DialectMessages;

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
export function findDialect(name: string): Dialect<any> | null {
  return Object.hasOwn(dialects, name) ? dialects[name as DialectName] : null;
}

// biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
const REGULAR = new Map<Dialect<any>, () => RegularOrder<any>>([
  [aiSdk, () => new RegularAiSdk()],
  [anthropic, () => new RegularAnthropic()],
  [openaiChat, () => new RegularOpenAIChat()],
  [openaiResponses, () => new RegularOpenAIResponses()],
  [gemini, () => new RegularGemini()],
  [acp, () => new RegularAcp()],
]);

/**
 * Recognises regular conversations of a built-in dialect, or of one that maps to it. Null for any other, such as an
 * altered copy of one.
 */
export function regularOrder<M>(dialect: Dialect<M>): RegularOrder<M> | null {
  return REGULAR.get(dialect)?.() ?? mappedOrder(dialect, regularOrder);
}
