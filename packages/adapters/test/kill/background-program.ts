import { writeSync } from "node:fs";
import { createOpenAI } from "@ai-sdk/openai";
import { Agent, type AgentInputItem, OpenAIResponsesModel, tool as sdkTool, setTracingDisabled } from "@openai/agents";
import { generateText, isStepCount, jsonSchema, type ModelMessage, streamText, tool } from "ai";
import type { Session, Store } from "holdfast";
import OpenAI from "openai";
import { z } from "zod";
import { backgroundFetch, durable as durableAi } from "../../src/ai-sdk/index.ts";
import { durable as durableAgents, openaiAgents } from "../../src/openai-agents/index.ts";
import type { Answer, Body } from "../loopback/server.ts";
import { type Deadline, openDeadly } from "./deadly-store.ts";

/** Agents whose answers are made in the background, killed at a write to the journal or at an answer of the API. */

export interface Orders extends Deadline {
  readonly way: keyof typeof ways;
  readonly url: string;
  readonly stream: boolean;
  /** SIGKILL when the nth answer of the API is here; 0: never. */
  readonly killAtAnswer: number;
}

export const LAST = "There are many stars.";

export function reply({ input }: Body): Answer {
  if (JSON.stringify(input).includes("function_call_output")) return { reasoning: "Many.", text: LAST };
  return { reasoning: "I must look.", calls: [{ id: "call_look", name: "look", input: { at: "the sky" } }] };
}

function deadlyFetch(killAtAnswer: number): typeof fetch {
  let answers = 0;
  return async (...args) => {
    const response = await fetch(...args);
    answers += 1;
    if (answers === killAtAnswer) process.kill(process.pid, "SIGKILL");
    return response;
  };
}

/** One life of each kind of agent. */
export const ways = {
  async "ai-sdk"(session: Session<never>, { url, stream, killAtAnswer }: Orders): Promise<string> {
    const openai = createOpenAI({
      baseURL: url,
      apiKey: "none",
      fetch: backgroundFetch({ fetch: deadlyFetch(killAtAnswer), pollMs: 1 }),
    });
    const held = durableAi(session as Session<ModelMessage>, { replay: { look: "safe" } });
    const inputSchema = jsonSchema<{ at: string }>({ type: "object", properties: { at: { type: "string" } } });
    const tools = { look: tool({ inputSchema, execute: async ({ at }) => ({ seen: at }) }) };
    if (!session.interruption) await session.startTurn({ role: "user", content: "Look." } as never);
    else if (!(await held.resume(tools))) return "completed";
    const settings = held.wrap({ model: openai.responses("gpt-5"), tools, stopWhen: isStepCount(5), maxRetries: 0 });
    return (await held.finish(stream ? streamText(settings) : generateText(settings))).kind;
  },

  async "openai-agents"(session: Session<never>, { url, stream, killAtAnswer }: Orders): Promise<string> {
    setTracingDisabled(true);
    const client = new OpenAI({
      baseURL: url,
      apiKey: "none",
      maxRetries: 0,
      fetch: backgroundFetch({ fetch: deadlyFetch(killAtAnswer), pollMs: 1 }),
    });
    const parameters = z.object({ at: z.string() });
    const look = sdkTool({ name: "look", description: "", parameters, execute: async ({ at }) => ({ seen: at }) });
    const agent = new Agent({ name: "Agent", model: new OpenAIResponsesModel(client, "gpt-5"), tools: [look] });
    const held = durableAgents(session as Session<AgentInputItem>, { replay: { look: "safe" } });
    const options = { stream } as { stream: true };
    const run = session.interruption ? held.resume(agent, options) : held.run(agent, "Look.", options);
    const result = await run;
    if (stream) for await (const _ of result);
    return (await held.finish(result)).kind;
  },
};

export async function live(orders: Orders, store: Store): Promise<string> {
  const dialect = orders.way === "ai-sdk" ? "ai-sdk" : openaiAgents;
  const open = { dialect: dialect as "ai-sdk", draftMs: 1 };
  const session = (await store.resumeLatest({}, open)) ?? (await store.create(open));
  // It may have died between the end of its turn and its own.
  if (session.messages.length > 0 && session.interruption === null) return "completed";
  return ways[orders.way](session as unknown as Session<never>, orders);
}

if (import.meta.main) {
  const orders = JSON.parse(process.argv[2]!) as Orders;
  const store = await openDeadly(orders, { dialects: [openaiAgents] });
  const kind = await live(orders, store);
  await store.close();
  writeSync(1, `${kind}\n`);
}
