export { type AgentOptions, serveAgent } from "./agent/serve.ts";
export type { CallWords, FileChange, PlanStep, ToolKind } from "./agent/words.ts";
export {
  type DurableOptions,
  type DurableStream,
  durable,
  type InterruptedCall,
  type InterruptedTurn,
  type MessageStream,
  type RestoredSession,
} from "./durable/durable.ts";
