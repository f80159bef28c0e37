export { type AgentOptions, serveAgent } from "./agent/serve.ts";
export type { CallWords, FileChange, PlanStep, ToolKind } from "./agent/words.ts";
export { durable } from "./durable/durable.ts";
export type {
  DurableOptions,
  DurableStream,
  InterruptedCall,
  InterruptedTurn,
  MessageStream,
  RestoredSession,
} from "./durable/surface.ts";
