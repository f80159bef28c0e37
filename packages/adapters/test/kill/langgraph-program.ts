import { appendFileSync, writeSync } from "node:fs";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, Command, END, interrupt, MessagesAnnotation, Send, START, StateGraph } from "@langchain/langgraph";
import { openFolderStore } from "holdfast/internal";
import { openJournalStore } from "holdfast/store";
import { deadlyDisk } from "../../../holdfast/test/deadly-disk.ts";
import { HoldfastSaver } from "../../src/langgraph/index.ts";

/** A graph that is killed: rounds of an answer and parallel tools, a sub-graph, and a question to a person. */

export interface Orders {
  readonly address: string;
  readonly kind: "folder" | "sqlite";
  /** What its nodes do to the world: a line for each. */
  readonly effects: string;
  readonly durability: "sync" | "async" | "exit";
  /** SIGKILL right after the nth write to the journal; 0: it is left alone. */
  readonly killAfter: number;
}

export const CONFIG = { configurable: { thread_id: "the thread" } };
export const PROMPT = "Look around, and ask me before you finish.";
const ROUNDS = 3;
const TOOLS = 2;

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  round: Annotation<number>({ reducer: (_, next) => next, default: () => 0 }),
  verdict: Annotation<string>(),
});

export function graph(checkpointer: HoldfastSaver, effects: string) {
  const act = (what: string): void => appendFileSync(effects, `${what}\n`);
  const inner = new StateGraph(State)
    .addNode("weigh", () => {
      act("weigh");
      return { verdict: "good" };
    })
    .addNode("ask", ({ verdict }) => ({ verdict: `${verdict}, and ${interrupt("Shall I finish?")}` }))
    .addEdge(START, "weigh")
    .addEdge("weigh", "ask")
    .compile();
  return new StateGraph(State)
    .addNode("model", ({ round }) => {
      act(`model ${round}`);
      const calls = Array.from({ length: TOOLS }, (_, index) => `call_${round}_${index}`);
      const tool_calls = calls.map((id) => ({ type: "tool_call" as const, id, name: "look", args: {} }));
      return {
        messages: [new AIMessage({ content: `round ${round}`, id: `round_${round}`, tool_calls })],
        round: round + 1,
      };
    })
    .addNode("tool", ({ call }: { call: string }) => {
      act(call);
      return { messages: [new ToolMessage({ content: `seen by ${call}`, tool_call_id: call, id: `result_${call}` })] };
    })
    .addNode("judge", inner)
    .addNode("last", ({ verdict }) => {
      act("last");
      return { messages: [new AIMessage({ content: `It is ${verdict}.`, id: "last" })] };
    })
    .addEdge(START, "model")
    .addConditionalEdges("model", ({ messages }) =>
      ((messages.at(-1) as AIMessage).tool_calls ?? []).map(({ id }) => new Send("tool", { call: id, messages })),
    )
    .addConditionalEdges("tool", ({ round }) => (round < ROUNDS ? "model" : "judge"), ["model", "judge"])
    .addEdge("judge", "last")
    .addEdge("last", END)
    .compile({ checkpointer });
}

/** One life: begins the run, or goes on with it, and answers its question. */
export async function live(saver: HoldfastSaver, { effects, durability }: Pick<Orders, "effects" | "durability">) {
  const app = graph(saver, effects);
  const before = await app.getState(CONFIG);
  const isNew = before.config.configurable?.["checkpoint_id"] === undefined;
  const isAsked = before.tasks.some(({ interrupts }) => interrupts.length > 0);
  // Not `next`: a task whose writes are saved, but not applied yet, is not in there.
  const isDone = !isNew && before.tasks.length === 0;
  if (!isDone && !isAsked) {
    const input = isNew ? { messages: [new HumanMessage({ content: PROMPT, id: "prompt" })] } : null;
    await app.invoke(input, { ...CONFIG, durability });
  }
  if (!isDone) await app.invoke(new Command({ resume: "yes" }), { ...CONFIG, durability });
  return (await app.getState(CONFIG)).values;
}

if (import.meta.main) {
  const orders = JSON.parse(process.argv[2]!) as Orders;
  const disk = deadlyDisk(orders);
  const saver = await HoldfastSaver.openWith((options) =>
    orders.kind === "folder"
      ? openFolderStore(orders.address, { ...options, disk })
      : openJournalStore(`sqlite:${orders.address}/threads.db`, options),
  );
  writeSync(1, "begun\n");
  await live(saver, orders);
  writeSync(1, "completed\n");
  await saver.close();
}
