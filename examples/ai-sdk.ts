// An agent on the AI SDK: its own loop stays, and every step of it survives.
// Start it, `kill -9` it while a tool runs, and start it again: node --conditions=holdfast-source examples/ai-sdk.ts
import { setTimeout as sleep } from "node:timers/promises";
import { durable } from "@holdfast/adapters/ai-sdk";
import { isStepCount, jsonSchema, type ModelMessage, streamText, tool } from "ai";
import { guard, openStore } from "holdfast";
import { planner } from "./ai-sdk-model.ts";

const nothing = jsonSchema<object>({ type: "object", properties: {} });
const tools = {
  read_notes: tool({ inputSchema: nothing, execute: () => run("read_notes", "Release on Friday.") }),
  send_mail: tool({
    inputSchema: nothing,
    execute: async (_, { abortSignal }) => {
      await run("send_mail", "");
      console.log(`  the mail is on its way (kill -9 ${process.pid} now, and start me again)`);
      await sleep(10_000, undefined, abortSignal && { signal: abortSignal });
      return "Sent.";
    },
  }),
  post_summary: tool({ inputSchema: nothing, execute: () => run("post_summary", "Posted.") }),
};

async function run(name: string, result: string): Promise<string> {
  console.log(`tool: ${name}`);
  return result;
}

// The adapter records every tool start, so a call without one is known never to have run.
const store = await openStore("./agent-data", { app: "ai-sdk", recordsToolStarts: true });
const session =
  (await store.resumeLatest<ModelMessage>({ cwd: ".", app: "ai-sdk" })) ??
  (await store.create<ModelMessage>({ dialect: "ai-sdk", cwd: "." }));
guard(session);
const agent = durable(session, { replay: { read_notes: "safe" } });

const found = session.interruption;
if (found) {
  console.log(`turn ${found.turn} was cut off (${found.how.kind})`);
  for (const call of found.calls) console.log(`  ${call.name}: ${call.state}`);
}
// `resume` runs the calls that are safe to run, and tells the model how far each of the others got. It answers null if
// the model had answered: then the turn is over, and there is nothing to ask.
const turn = found
  ? await agent.resume(tools)
  : await session.startTurn({ role: "user", content: "Tell everybody about the release." });

if (turn) {
  // The messages come from the session. `planner` stands for any model of any provider package.
  const settings = { model: planner, tools, stopWhen: isStepCount(10), toolCallConcurrency: 1 };
  const stream = streamText(agent.wrap(settings));
  const finished = agent.finish(stream);
  let text = "";
  for await (const part of stream.stream) {
    if (part.type === "text-delta") text += part.text;
    if (part.type === "text-end") console.log(`model: ${text}`);
    if (part.type === "text-end") text = "";
  }
  console.log((await finished).kind);
}
await store.close();
