export { openaiAgents } from "./dialect.ts";
export { durable } from "./durable.ts";
export type {
  AnyAgent,
  AnyState,
  Durable,
  DurableOptions,
  ResumeRunOptions,
  RunOptions,
  RunOutcome,
} from "./surface.ts";
