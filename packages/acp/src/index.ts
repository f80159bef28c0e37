export { type AgentOptions, serveAgent } from "./agent/serve.ts";
export type { CallWords, FileChange, ToolKind } from "./agent/words.ts";
