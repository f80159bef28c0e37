/** For the tests of this repository: the rules of each provider, with examples and signatures. */

export * from "./acp.ts";
export * from "./ai-sdk.ts";
export * from "./anthropic.ts";
export { type AnthropicFrame, signRedacted, signResponse, signThinking } from "./anthropic-thinking.ts";
export * from "./examples/acp.ts";
export * from "./examples/ai-sdk.ts";
export * from "./examples/anthropic.ts";
export type { Example, RequestExample } from "./examples/example.ts";
export * from "./examples/gemini.ts";
export * from "./examples/openai-chat.ts";
export * from "./examples/openai-responses.ts";
export * from "./gemini.ts";
export * from "./openai-chat.ts";
export * from "./openai-responses.ts";
export type { Violation } from "./violation.ts";
