export { type AgentOptions, serveAgent } from "./agent/serve.ts";
export type { CallWords, FileChange, ToolKind } from "./agent/words.ts";
export type { Ended } from "./wrap/agent-process.ts";
export { Library } from "./wrap/library.ts";
export { type WrapOptions, WrappedAgent } from "./wrap/wrapped-agent.ts";
