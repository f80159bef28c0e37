export { durable } from "./durable.ts";
export type { Durable, DurableOptions, Prompted, Run, RunOutcome, Settings } from "./surface.ts";
