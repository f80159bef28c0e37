/**
 * Whole conversations under SIGKILL: agents with a scripted model and tools that leave traces, and an oracle that knows
 * what they were told.
 */
export { type ConversationCampaign, type ConversationReceipt, runConversations } from "./campaign.ts";
export { type Effect, effectsIn, haveEffect } from "./effects.ts";
export type { AgentEvent, Op } from "./events.ts";
export type { ConversationFault, Evidence } from "./evidence.ts";
export { type AgentJob, type Flaw, flaws } from "./job.ts";
export { type AgentProgram, warmAgent } from "./life.ts";
export { Log as ConversationLog } from "./log.ts";
export { judgeConversation } from "./oracle.ts";
export { type ConversationPlan, type Ending as ConversationEnding, planConversation } from "./plan.ts";
export { type Message, type ModelCall, type Step, type Voice, type VoiceName, voiceNames, voiceOf } from "./voices.ts";
