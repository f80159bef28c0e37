import { appendFileSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { MemorySaver } from "@langchain/langgraph-checkpoint";
import { newId, type Session, type Store } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openJournalStore, openStoreWith } from "holdfast/store";
import { type AgentMiddleware, createAgent, humanInTheLoopMiddleware, tool } from "langchain";
import { z } from "zod";
import { deadlyDisk } from "../../../holdfast/test/deadly-disk.ts";
import { durable, langchain } from "../../src/langchain/index.ts";
import { ScriptedChatModel } from "../scripted-chat-model.ts";

/** An agent that is killed: two prompts, for each of which it looks twice, sends something, and answers. */

export interface Orders {
  readonly address: string;
  readonly kind: "folder" | "sqlite";
  /** What its tools do to the world: a line for each. */
  readonly effects: string;
  /** What its model is asked: a line of JSON for each request. */
  readonly requests: string;
  /** SIGKILL right after the nth write to the journal; 0: it is left alone. */
  readonly killAfter: number;
  /** Which writes count: those of streamed words, or all others. */
  readonly counts: "drafts" | "records";
  /** A person approves each sending: a line among the effects. */
  readonly asks?: boolean;
}

export const PROMPTS = ["Look, then tell everybody.", "And once more."];

/** A pure function of what the model is sent, so that it goes on as if nothing had happened. */
function answer(messages: BaseMessage[]): AIMessage {
  const prompts = messages.filter((message) => PROMPTS.includes(message.text)).length;
  const said = messages.slice(messages.findLastIndex((message) => PROMPTS.includes(message.text)));
  const calls = (name: string, ...ids: string[]) =>
    ids.map((id) => ({ type: "tool_call" as const, id: `${id}_${prompts}`, name, args: { prompt: prompts } }));
  const hasSaid = (text: string): boolean => said.some((message) => message.text === text);
  if (!hasSaid("I look at both places.")) {
    return new AIMessage({ content: "I look at both places.", tool_calls: calls("look", "look_a", "look_b") });
  }
  if (!hasSaid("I tell them now.")) {
    return new AIMessage({ content: "I tell them now.", tool_calls: calls("send", "send") });
  }
  return new AIMessage(`That is all for ${prompts}.`);
}

function toolsOf({ effects }: Orders) {
  const act = async (_: unknown, { toolCall }: { toolCall?: { id?: string } }) => {
    appendFileSync(effects, `${toolCall?.id}\n`);
    return `done ${toolCall?.id}`;
  };
  const schema = z.object({ prompt: z.number() });
  return ["look", "send"].map((name) => tool(act as never, { name, schema, description: name }));
}

/** What is sent, in words of this test. */
function written(message: BaseMessage): unknown {
  const { tool_calls = [], tool_call_id } = message as AIMessage & { tool_call_id?: string };
  return {
    type: message.getType(),
    text: message.text,
    calls: tool_calls.map(({ id, name }) => ({ id, name })),
    tool_call_id,
  };
}

/** One life: goes on with what was interrupted, then with the prompts that are left. */
export async function live(
  session: Session<BaseMessage>,
  orders: Orders,
  acknowledged: (what: string) => void = () => {},
) {
  const agent = durable(session, { replay: { look: "safe" } });
  const tools = toolsOf(orders);
  const model = new ScriptedChatModel((messages) => {
    appendFileSync(orders.requests, `${JSON.stringify(messages.map(written))}\n`);
    return answer(messages);
  });
  // Gives the journal time to write each word, also on a busy machine.
  if (orders.counts === "drafts") model.onToken = () => sleep(5);
  const asks = orders.asks ? [humanInTheLoopMiddleware({ interruptOn: { send: true } } as never)] : [];
  const middleware = [agent.middleware, ...asks] as AgentMiddleware[];
  // Its checkpoints die with the process: the person is then asked again.
  const app = createAgent({ model, tools, middleware, checkpointer: new MemorySaver() });
  const run = async (): Promise<void> => {
    const configurable = { thread_id: newId() };
    let input: Parameters<typeof app.invoke>[0] = { messages: agent.messages() };
    for (;;) {
      const { kind } = await agent.finish(app.invoke(input, agent.config({ configurable })));
      if (kind === "completed") return;
      if (kind !== "waiting" || !orders.asks) throw new Error(`It ended as ${kind}.`);
      appendFileSync(orders.effects, "approved\n");
      await agent.resume({ calls: () => "keep" });
      input = new Command({ resume: { decisions: [{ type: "approve" }] } });
    }
  };
  if (session.interruption) {
    const isWaiting = session.interruption.how.kind === "suspended";
    if (await agent.resume(isWaiting ? { calls: () => "keep" } : {})) await run();
  }
  const given = session.entries.filter(({ message }) => PROMPTS.includes(message.text)).length;
  for (const prompt of PROMPTS.slice(given)) {
    await session.startTurn(new HumanMessage(prompt));
    acknowledged("prompt");
    await run();
  }
}

export async function openAgent(store: Store): Promise<Session<BaseMessage>> {
  const open = { dialect: langchain, draftMs: 1 };
  return (await store.resumeLatest({}, open)) ?? (await store.create(open));
}

if (import.meta.main) {
  const orders = JSON.parse(process.argv[2]!) as Orders;
  const disk = deadlyDisk(orders);
  const store = await openStoreWith(
    (options) =>
      orders.kind === "folder"
        ? openFolderStore(orders.address, { ...options, disk })
        : openJournalStore(`sqlite:${orders.address}/agent.db`, options),
    { recordsToolStarts: true, dialects: [langchain] },
  );
  const session = await openAgent(store);
  writeSync(1, "begun\n");
  await live(session, orders, (what) => writeSync(1, `${what}\n`));
  await store.close();
  writeSync(1, "completed\n");
}
