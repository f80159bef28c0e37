export { type BackgroundFetchOptions, backgroundFetch } from "../background-fetch.ts";
export { durableChat } from "./chat/durable-chat.ts";
export type { ChatState, DurableChat, DurableChatOptions } from "./chat/surface.ts";
export { durable } from "./durable.ts";
export type {
  Durable,
  DurableOptions,
  ResumeSettings,
  RunOutcome,
} from "./surface.ts";
export { uiChunks } from "./ui-chunks.ts";
export { uiMessages } from "./ui-messages.ts";
