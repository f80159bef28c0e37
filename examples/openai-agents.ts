// Agents of the OpenAI Agents SDK: the SDK's loop stays, and every step of it survives.
// Start it, `kill -9` it while a tool runs, and start it again:
// node --conditions=holdfast-source examples/openai-agents.ts
import { setTimeout as sleep } from "node:timers/promises";
import { durable, openaiAgents } from "@holdfast/adapters/openai-agents";
import { Agent, type AgentInputItem, tool } from "@openai/agents";
import { guard, openStore } from "holdfast";
import { z } from "zod";
import { planner } from "./openai-agents-model.ts";

function run(name: string, result: string): string {
  console.log(`tool: ${name}`);
  return result;
}

const nothing = { description: "", parameters: z.object({}) };
const tools = [
  tool({ ...nothing, name: "read_notes", execute: () => run("read_notes", "Release on Friday.") }),
  tool({
    ...nothing,
    name: "send_mail",
    execute: async () => {
      run("send_mail", "");
      console.log(`  the mail is on its way (kill -9 ${process.pid} now, and start me again)`);
      await sleep(10_000);
      return "Sent.";
    },
  }),
  tool({ ...nothing, name: "post_summary", execute: () => run("post_summary", "Posted.") }),
];
// `planner` stands for any model: leave it out for the SDK's default.
const office = new Agent({ name: "Office", model: planner, tools });
const reception = new Agent({ name: "Reception", model: planner, handoffs: [office] });

// The adapter records every tool start, so a call without one is known never to have run.
const store = await openStore("./agent-data", {
  app: "openai-agents",
  recordsToolStarts: true,
  dialects: [openaiAgents],
});
const session =
  (await store.resumeLatest<AgentInputItem>({ cwd: "." }, { dialect: openaiAgents })) ??
  (await store.create<AgentInputItem>({ dialect: openaiAgents, cwd: "." }));
guard(session);

const found = session.interruption;
if (found) {
  console.log(`turn ${found.turn} was cut off (${found.how.kind})`);
  for (const call of found.calls) console.log(`  ${call.name}: ${call.state}`);
}
const config = { tracingDisabled: true, toolExecution: { maxFunctionToolConcurrency: 1 } };
const agents = durable(session, { replay: { read_notes: "safe" }, runner: config });
const result = found
  ? await agents.resume(reception, { stream: true })
  : await agents.run(reception, "Tell everybody about the release.", { stream: true });
for await (const event of result) {
  if (event.type === "agent_updated_stream_event") console.log(`agent: ${event.agent.name}`);
  if (event.type === "run_item_stream_event" && event.item.type === "message_output_item")
    console.log(`model: ${event.item.content}`);
}
console.log((await agents.finish(result)).kind);
await store.close();
