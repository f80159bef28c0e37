// An agent of LangChain's createAgent: every answer and every tool call of it survives.
// Start it, `kill -9` it while a tool runs, and start it again: node --conditions=holdfast-source examples/langchain.ts
import { setTimeout as sleep } from "node:timers/promises";
import { durable, langchain } from "@holdfast/adapters/langchain";
import { guard, openStore } from "holdfast";
import { createAgent, HumanMessage, tool } from "langchain";
import { z } from "zod";
import { Planner } from "./langchain-model.ts";

const tools = [
  toolNamed("read_notes", "Release on Friday."),
  toolNamed("send_mail", "Sent.", async () => {
    console.log(`  the mail is on its way (kill -9 ${process.pid} now, and start me again)`);
    await sleep(10_000);
  }),
  toolNamed("post_summary", "Posted."),
];

function toolNamed(name: string, result: string, work = async (): Promise<void> => {}) {
  const run = async (): Promise<string> => {
    console.log(`tool: ${name}`);
    await work();
    return result;
  };
  return tool(run, { name, description: name, schema: z.object({}) });
}

// The adapter records every tool start, so a call without one is known never to have run.
const store = await openStore("./agent-data", { app: "langchain", recordsToolStarts: true });
const session =
  (await store.resumeLatest({ cwd: ".", app: "langchain" }, { dialect: langchain })) ??
  (await store.create({ dialect: langchain, cwd: "." }));
guard(session);
const agent = durable(session, { replay: { read_notes: "safe" } });
const app = createAgent({ model: new Planner(), tools, middleware: [agent.middleware] });

const found = session.interruption;
if (found) {
  console.log(`turn ${found.turn} was cut off (${found.how.kind})`);
  for (const call of found.calls) console.log(`  ${call.name}: ${call.state}`);
}
// The resumed run first runs the calls that are safe to run, and the model is told how far each of the others got.
// `resume` returns null if the model had answered: then the turn is over, and there is nothing to ask.
const turn = found
  ? await agent.resume()
  : await session.startTurn(new HumanMessage("Tell everybody about the release."));

if (turn) {
  const run = app.invoke({ messages: agent.messages() }, agent.config());
  const { kind } = await agent.finish(run);
  console.log(`model: ${session.messages.at(-1)?.text}`);
  console.log(kind);
}
await store.close();
