import { appendFileSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  Agent,
  type AgentInputItem,
  handoff,
  type Model,
  type ModelRequest,
  OpenAIResponsesModel,
  type StreamEvent,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import type { Session } from "holdfast";
import OpenAI from "openai";
import { z } from "zod";
import { durable, openaiAgents } from "../../src/openai-agents/index.ts";
import type { Answer, Body } from "../loopback/server.ts";
import { type Deadline, openDeadly } from "./deadly-store.ts";

/** Agents that are killed: as a program of their own, and again in the test, which goes on where they died. */

export interface Orders extends Deadline {
  readonly url: string;
  /** What the tools do to the world: a line for each. */
  readonly effects: string;
  /** Whether a person must say yes before anything is sent, and before the helper, a tool, stamps its letter. */
  readonly asks: boolean;
  readonly stream: boolean;
}

export const PROMPT = "Look twice, then tell everybody.";
export const LAST = "That is all.";
export const DRAFT = "Here is a draft of the letter.";
export const OPEN = { draftMs: 1, dialect: openaiAgents } as const;

/** What the models answer: a pure function of what they are sent, so that they go on as if nothing had happened. */
export function reply({ instructions, input, tools }: Body): Answer {
  const seen = JSON.stringify(input);
  if (instructions === "help") {
    const isStamped = !JSON.stringify(tools ?? []).includes('"stamp"') || seen.includes("call_stamp");
    if (!isStamped) return { calls: [{ id: "call_stamp", name: "stamp", input: { at: "the top" } }] };
    return { text: DRAFT };
  }
  if (instructions === "sort") {
    const n = seen.split('"name":"transfer_to_Worker"').length;
    return {
      reasoning: "This is for the worker.",
      calls: [{ id: `call_transfer_${n}`, name: "transfer_to_Worker", input: {} }],
    };
  }
  if (!seen.includes("I look at both")) {
    return {
      reasoning: "Both can be looked at together.",
      text: "I look at both places.",
      calls: [
        { id: "call_look_1", name: "look", input: { at: "here" } },
        { id: "call_look_2", name: "look", input: { at: "there" } },
      ],
    };
  }
  if (!seen.includes("I tell them")) {
    const calls = [
      { id: "call_draft", name: "draft_letter", input: { input: "to all" } },
      { id: "call_send", name: "send", input: { at: "all" } },
    ];
    return { reasoning: "Now they can be told.", text: "I tell them.", calls };
  }
  return { text: LAST };
}

/** The SDK's own model. What it does not stream, it gets from the same server. */
function modelAt(url: string): Model {
  return new OpenAIResponsesModel(new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0 }), "gpt-5");
}

export function agentsFor({ effects, asks }: Pick<Orders, "effects" | "asks">, model: Model): Agent {
  const place = z.object({ at: z.string() });
  const took = (id: string): void => appendFileSync(effects, `${id}\n`);
  const look = tool({
    name: "look",
    description: "",
    parameters: place,
    execute: async ({ at }, _, details) => {
      took(details!.toolCall!.callId);
      return { done: at };
    },
  });
  const asking = (name: string, done: string) =>
    tool({
      name,
      description: "",
      parameters: place,
      needsApproval: asks,
      execute: async (_, __, details) => {
        took(details!.toolCall!.callId);
        return done;
      },
    });
  const send = asking("send", "Sent to all.");
  const stamps = asks ? [asking("stamp", "Stamped.")] : [];
  const helper = new Agent({ name: "Helper", instructions: "help", model, tools: stamps });
  const draftLetter = helper.asTool({ toolName: "draft_letter", toolDescription: "" });
  const worker = new Agent({ name: "Worker", instructions: "work", model, tools: [look, send, draftLetter] });
  const onHandoff = async (): Promise<void> => took("handoff");
  return new Agent({ name: "Triage", instructions: "sort", model, handoffs: [handoff(worker, { onHandoff })] });
}

/** One life: begins the turn, or goes on with it. */
export async function live(
  orders: Orders,
  session: Session<AgentInputItem>,
  acknowledged: (what: string) => void = () => {},
): Promise<string> {
  setTracingDisabled(true);
  const held = durable(session, { replay: { look: "safe" } });
  held.runner.on("agent_tool_end", (_, __, ___, output, { toolCall }) => {
    // The SDK reports this of the helper, too, when it waits.
    if ("callId" in toolCall && output !== "") acknowledged(`ended ${toolCall.callId}`);
  });
  const model = watched(modelAt(orders.url), orders, () => acknowledged("prompt"));
  const agent = agentsFor(orders, model);
  const options = { stream: orders.stream } as { stream: true };
  let result = session.interruption ? await held.resume(agent, options) : await held.run(agent, PROMPT, options);
  for (;;) {
    if (orders.stream) {
      for await (const event of result) {
        if (event.type !== "raw_model_stream_event" || event.data.type !== "response_done") continue;
        for (const item of event.data.response.output) acknowledged(`answered ${item.id}`);
      }
    }
    const { kind } = await held.finish(result);
    if (kind !== "waiting") return kind;
    for (const item of result.interruptions) result.state.approve(item);
    result = await held.run(agent, result.state, options);
  }
}

/** A prompt is acknowledged when its model is asked. */
function watched(model: Model, { counts }: Pick<Orders, "counts">, asked: () => void): Model {
  return new Proxy(model, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      if (key !== "getResponse" && key !== "getStreamedResponse") return value.bind(target);
      return (request: ModelRequest) => {
        asked();
        const answer = (value as (request: ModelRequest) => unknown).call(target, request);
        const isSlow = key === "getStreamedResponse" && counts === "drafts";
        return isSlow ? slowly(answer as AsyncIterable<StreamEvent>) : answer;
      };
    },
    getPrototypeOf: (target) => Reflect.getPrototypeOf(target),
  });
}

/** Gives the journal time to write each piece of text, also on a busy machine. */
async function* slowly(events: AsyncIterable<StreamEvent>): AsyncGenerator<StreamEvent> {
  for await (const event of events) {
    yield event;
    if (event.type === "output_text_delta") await sleep(20);
  }
}

if (import.meta.main) {
  const orders = JSON.parse(process.argv[2]!) as Orders;
  const store = await openDeadly(orders, { dialects: [openaiAgents] });
  const session =
    (await store.resumeLatest<AgentInputItem>({}, OPEN)) ?? (await store.create<AgentInputItem>({ ...OPEN }));
  // It may have died between the end of its turn and its own.
  const isDone = session.messages.length > 0 && session.interruption === null;
  const kind = isDone ? "completed" : await live(orders, session, (what) => writeSync(1, `${what}\n`));
  await store.close();
  writeSync(1, `${kind}\n`);
}
