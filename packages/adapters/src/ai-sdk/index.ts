export { durableChat } from "./chat/durable-chat.ts";
export type { ChatSettings, ChatState, DurableChat, DurableChatOptions, UnfinishedTool } from "./chat/surface.ts";
export { durable } from "./durable.ts";
export type {
  ApprovalAnswer,
  Durable,
  DurableOptions,
  Prompted,
  ResumeSettings,
  Run,
  RunOutcome,
  Settings,
  ToolSettings,
  WaitingCall,
} from "./surface.ts";
export { uiChunks } from "./ui-chunks.ts";
export { type UIMessagesOptions, uiMessages } from "./ui-messages.ts";
