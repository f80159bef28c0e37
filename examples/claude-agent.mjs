// A session of the Claude Agent SDK that survives its process and its machine. Start it, `kill -9` it while a tool runs,
// and start it again, here or on another machine with the same store:
// HOLDFAST_STORE=postgres://… node claude-agent.mjs "Tell everybody about the release."
import { query } from "@anthropic-ai/claude-agent-sdk";
import { HoldfastSessionStore } from "@holdfast/adapters/claude-agent";

const store = await HoldfastSessionStore.open(process.env["HOLDFAST_STORE"] ?? "./agent-data");
const options = store.options({
  continue: true, // the last session of this folder, from the store
  allowedTools: ["Bash"],
  ...(process.env["CLAUDE_CODE"] ? { pathToClaudeCodeExecutable: process.env["CLAUDE_CODE"] } : {}),
});
const prompt = process.argv[2] ?? "Tell everybody about the release.";
for await (const message of query({ prompt, options })) {
  if (message.type === "system" && message.subtype === "init") console.log(`session ${message.session_id}`);
  if (message.type === "system" && message.subtype === "mirror_error") console.log(`not mirrored: ${message.error}`);
  if (message.type === "result") console.log(message.subtype === "success" ? message.result : message.subtype);
}
await store.close();
