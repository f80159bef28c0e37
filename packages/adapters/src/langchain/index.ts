export { langchain } from "./dialect.ts";
export { type Durable, type DurableOptions, durable, type RunOutcome } from "./durable.ts";
