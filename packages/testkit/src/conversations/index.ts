/**
 * Whole conversations under SIGKILL: agents with a scripted model and tools that leave traces, and an oracle that knows
 * what they were told.
 */
export { runConversations } from "./campaign.ts";
export type { Flaw } from "./job.ts";
export { type AgentProgram, warmAgent } from "./life.ts";
export type { Ending as ConversationEnding } from "./plan.ts";
