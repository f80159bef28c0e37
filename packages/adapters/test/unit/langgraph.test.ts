import { setTimeout as sleep } from "node:timers/promises";
import { AIMessage, type BaseMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import {
  Annotation,
  Command,
  END,
  interrupt,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { MemorySaver } from "@langchain/langgraph-checkpoint";
import { openStore } from "holdfast";
import { openFolderStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { HoldfastSaver } from "../../src/langgraph/index.ts";

const thread = (thread_id: string) => ({ configurable: { thread_id } });

/** Answers each message, and counts the answers. */
function echo(checkpointer: HoldfastSaver | MemorySaver) {
  const State = Annotation.Root({
    ...MessagesAnnotation.spec,
    count: Annotation<number>({ reducer: (_, next) => next, default: () => 0 }),
  });
  return new StateGraph(State)
    .addNode("answer", ({ messages, count }) => ({
      messages: [new AIMessage({ content: `echo ${messages.at(-1)?.content}`, id: `a${count}` })],
      count: count + 1,
    }))
    .addEdge(START, "answer")
    .addEdge("answer", END)
    .compile({ checkpointer });
}

const texts = (messages: BaseMessage[]) => messages.map(({ content }) => content);

describe("a graph on HoldfastSaver", () => {
  test.each(["sync", "async", "exit"] as const)("durability %s: the state is there in another process", async (durability) => {
    using folder = place();
    {
      await using saver = await HoldfastSaver.open(folder.path);
      for (const text of ["one", "two"])
        await echo(saver).invoke({ messages: [new HumanMessage(text)] }, { ...thread("t"), durability });
    }
    await using saver = await HoldfastSaver.open(folder.path);
    const { values } = await echo(saver).getState(thread("t"));
    expect(texts(values.messages)).toEqual(["one", "echo one", "two", "echo two"]);
    expect(values.count).toBe(2);
  });

  test("its history is that of MemorySaver", async () => {
    using folder = place();
    await using saver = await HoldfastSaver.open(folder.path);
    const shown = async (checkpointer: HoldfastSaver | MemorySaver) => {
      const graph = echo(checkpointer);
      const messages = (text: string) => ({ messages: [new HumanMessage({ content: text, id: text })] });
      for (const text of ["one", "two"]) await graph.invoke(messages(text), thread("t"));
      await graph.updateState(thread("t"), { messages: [new RemoveMessage({ id: "one" })] });
      const found = [];
      for await (const { values, metadata, next, tasks } of graph.getStateHistory(thread("t")))
        found.push({ ...values, messages: texts(values.messages ?? []), step: metadata?.step, source: metadata?.source, next, tasks: tasks.length });
      return found;
    };
    expect(await shown(saver)).toEqual(await shown(new MemorySaver()));
  });

  test("time travel: a run from an old checkpoint branches off, and both branches stay whole", async () => {
    using folder = place();
    await using saver = await HoldfastSaver.open(folder.path);
    const graph = echo(saver);
    await graph.invoke({ messages: [new HumanMessage("one")] }, thread("t"));
    const { config: first } = await graph.getState(thread("t"));
    await graph.invoke({ messages: [new HumanMessage("two")] }, thread("t"));
    const { config: second } = await graph.getState(thread("t"));
    await graph.invoke({ messages: [new HumanMessage("other")] }, first);
    expect(texts((await graph.getState(thread("t"))).values.messages)).toEqual(["one", "echo one", "other", "echo other"]);
    expect(texts((await graph.getState(second)).values.messages)).toEqual(["one", "echo one", "two", "echo two"]);
  });

  test("interrupt() in a sub-graph waits over a restart, and its answer reaches it once", async () => {
    using folder = place();
    let asked = 0;
    const graph = (checkpointer: HoldfastSaver) => {
      const State = Annotation.Root({ answer: Annotation<string>() });
      const inner = new StateGraph(State)
        .addNode("ask", () => {
          asked++;
          return { answer: interrupt("Are you sure?") as string };
        })
        .addEdge(START, "ask")
        .compile();
      return new StateGraph(State).addNode("inner", inner).addEdge(START, "inner").compile({ checkpointer });
    };
    {
      await using saver = await HoldfastSaver.open(folder.path);
      await graph(saver).invoke({ answer: "" }, thread("t"));
    }
    await using saver = await HoldfastSaver.open(folder.path);
    const { tasks } = await graph(saver).getState(thread("t"));
    expect(tasks[0]?.interrupts[0]?.value).toBe("Are you sure?");
    expect(await graph(saver).invoke(new Command({ resume: "yes" }), thread("t"))).toEqual({ answer: "yes" });
    expect(asked).toBe(2);
  });
});

describe("two runs on one thread", () => {
  test("in one process: the slower one fails, and the state is that of the faster one", async () => {
    using folder = place();
    await using saver = await HoldfastSaver.open(folder.path);
    const State = MessagesAnnotation;
    const graph = new StateGraph(State)
      .addNode("answer", async ({ messages }) => {
        const text = String(messages.at(-1)?.content);
        if (text === "slow") await sleep(200);
        return { messages: [new AIMessage(`echo ${text}`)] };
      })
      .addEdge(START, "answer")
      .compile({ checkpointer: saver });
    await graph.invoke({ messages: [new HumanMessage("first")] }, thread("t"));
    const runs = await Promise.allSettled(
      ["slow", "fast"].map((text) => graph.invoke({ messages: [new HumanMessage(text)] }, thread("t"))),
    );
    const failed = runs.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
    expect(failed.map(({ reason }) => reason.code)).toEqual(["SESSION_BUSY"]);
    const { values } = await graph.getState(thread("t"));
    expect(values.messages).toHaveLength(4);
  });

  test("in two processes: the second is refused while the first writes, and told to read again after it", async () => {
    using folder = place();
    await using one = await HoldfastSaver.open(folder.path);
    await using other = await HoldfastSaver.open(folder.path);
    await echo(one).invoke({ messages: [new HumanMessage("one")] }, thread("t"));
    await expect(echo(other).invoke({ messages: [new HumanMessage("two")] }, thread("t"))).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
    await one.release("t");
    const head = (await other.getTuple(thread("t")))!;
    await echo(one).invoke({ messages: [new HumanMessage("three")] }, thread("t"));
    await one.release("t");
    const stale = { ...head.checkpoint, id: `${head.checkpoint.id.slice(0, -1)}z` };
    await expect(other.put(head.config, stale, head.metadata!, {})).rejects.toMatchObject({
      code: "SESSION_BUSY",
      facts: { thread: "t", parent: head.checkpoint.id },
    });
    await echo(other).invoke({ messages: [new HumanMessage("four")] }, thread("t"));
    const { values } = await echo(other).getState(thread("t"));
    expect(texts(values.messages).filter((text) => !String(text).startsWith("echo"))).toEqual(["one", "three", "four"]);
  });

  test("two first runs on a new thread", async () => {
    using folder = place();
    await using saver = await HoldfastSaver.open(folder.path);
    const runs = await Promise.allSettled(
      ["a", "b"].map((text) => echo(saver).invoke({ messages: [new HumanMessage(text)] }, thread("t"))),
    );
    expect(runs.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });
});

void openFolderStore;
void openStore;
