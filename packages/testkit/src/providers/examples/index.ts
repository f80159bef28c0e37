export { acpExamples, acpTranscript } from "./acp.ts";
export { aiSdkConversation, aiSdkExamples } from "./ai-sdk.ts";
export { anthropicConversation, anthropicExamples, anthropicResponses } from "./anthropic.ts";
export type { Example, Judged } from "./example.ts";
export { geminiConversation, geminiExamples } from "./gemini.ts";
export { openaiChatConversation, openaiChatExamples } from "./openai-chat.ts";
export { openaiResponsesConversation, openaiResponsesExamples, openaiResponsesItems } from "./openai-responses.ts";
