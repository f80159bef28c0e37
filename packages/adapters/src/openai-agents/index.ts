export { type BackgroundFetchOptions, backgroundFetch } from "../background-fetch.ts";
export { openaiAgents } from "../dialects/openai-agents.ts";
export { durable } from "./durable.ts";
export { historySession } from "./history-session.ts";
export type {
  Durable,
  DurableOptions,
  ResumeRunOptions,
  RunOptions,
  RunOutcome,
} from "./surface.ts";
