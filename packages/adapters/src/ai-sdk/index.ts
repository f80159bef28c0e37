export { durable } from "./durable.ts";
export type {
  Durable,
  DurableOptions,
  Prompted,
  Run,
  RunOutcome,
  Settings,
  ToolSettings,
  WaitingCall,
} from "./surface.ts";
