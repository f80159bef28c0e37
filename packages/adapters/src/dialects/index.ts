import type { Dialect } from "holdfast";
import { langchainJson } from "./langchain-json.ts";
import { openaiAgents } from "./openai-agents.ts";

/**
 * The dialects of the other entries, for programs that read any session: they need none of the frameworks. Messages of
 * LangChain are read as JSON, not as instances of its classes.
 */
// biome-ignore lint/suspicious/noExplicitAny: each has its own type of message.
export const frameworkDialects: readonly Dialect<any>[] = [openaiAgents, langchainJson];
