export { openaiAgents } from "./dialect.ts";
export { durable } from "./durable.ts";
export { historySession } from "./history-session.ts";
export type {
  Durable,
  DurableOptions,
  ResumeRunOptions,
  RunOptions,
  RunOutcome,
} from "./surface.ts";
