/**
 * Whole conversations under SIGKILL: agents with a scripted model and tools that leave traces, and an oracle that knows
 * what they were told.
 */

export { type ConversationCampaign, type ConversationReceipt, runConversations } from "./conversations/campaign.ts";
