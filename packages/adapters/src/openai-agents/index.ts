export { openaiAgents } from "./dialect.ts";
