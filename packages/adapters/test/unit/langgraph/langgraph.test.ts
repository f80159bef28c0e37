import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AIMessage, type BaseMessage, HumanMessage, RemoveMessage, ToolMessage } from "@langchain/core/messages";
import {
  Annotation,
  Command,
  END,
  interrupt,
  MessagesAnnotation,
  MessagesDeltaValue,
  START,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { emptyCheckpoint, MemorySaver } from "@langchain/langgraph-checkpoint";
import { openStore } from "holdfast";
import { nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { createAgent, tool } from "langchain";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { place, treeOf } from "../../../../holdfast/test/place.ts";
import { HoldfastSaver } from "../../../src/langgraph/index.ts";
import { FailingDisk } from "../../failing-disk.ts";
import { ScriptedChatModel } from "../../scripted-chat-model.ts";
import { unreadable } from "../../unreadable-journals.ts";

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
  test.each(["sync", "async", "exit"] as const)(
    "durability %s: the state is there in another process",
    async (durability) => {
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
    },
  );

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
        found.push({
          ...values,
          messages: texts(values.messages ?? []),
          step: metadata?.step,
          source: metadata?.source,
          next,
          tasks: tasks.length,
        });
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
    expect(texts((await graph.getState(thread("t"))).values.messages)).toEqual([
      "one",
      "echo one",
      "other",
      "echo other",
    ]);
    expect(texts((await graph.getState(second)).values.messages)).toEqual(["one", "echo one", "two", "echo two"]);
  });

  test("interrupt() in a sub-graph waits across a restart, and its answer reaches it once", async () => {
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

  test("the latest checkpoint, read by its id, is not taken for time travel", async () => {
    await using saver = await HoldfastSaver.open("memory:");
    await echo(saver).invoke({ messages: [new HumanMessage("one")] }, thread("t"));
    const { config } = (await saver.getTuple(thread("t")))!;
    // A page shows this checkpoint, or both runs name it.
    const head = (await saver.getTuple(config))!;
    await echo(saver).invoke({ messages: [new HumanMessage("two")] }, thread("t"));
    const stale = { ...head.checkpoint, id: `${head.checkpoint.id.slice(0, -1)}z` };
    await expect(saver.put(head.config, stale, head.metadata!, {})).rejects.toMatchObject({ code: "SESSION_BUSY" });
    // It is an old one now.
    await saver.getTuple(config);
    await saver.put(head.config, stale, head.metadata!, {});
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

describe("what is written", () => {
  /** All bytes that are appended to journals. */
  async function counting(folder: string) {
    let bytes = 0;
    const disk: typeof nodeDisk = {
      ...nodeDisk,
      open: (path, mode) => {
        const file = nodeDisk.open(path, mode);
        if (!/sessions.*\.jsonl/.test(path)) return file;
        return new Proxy(file, {
          get(target, name) {
            const member = Reflect.get(target, name) as unknown;
            if (typeof member !== "function") return member;
            return (...args: unknown[]) => {
              if (name === "write" || name === "writeAt") bytes += (args[0] as Uint8Array).byteLength;
              return Reflect.apply(member, target, args) as unknown;
            };
          },
        });
      },
    };
    const saver = await HoldfastSaver.openWith((options) => openFolderStore(folder, { ...options, disk }));
    return { saver, bytes: () => bytes };
  }

  const agent = (checkpointer: HoldfastSaver) => {
    const look = tool(() => "seen", { name: "look", schema: z.object({}) });
    const model = new ScriptedChatModel((messages) =>
      ToolMessage.isInstance(messages.at(-1))
        ? new AIMessage("Done.")
        : new AIMessage({ content: "I look.", tool_calls: [{ id: `c${messages.length}`, name: "look", args: {} }] }),
    );
    return createAgent({ model, tools: [look], checkpointer });
  };

  const history = (length: number, from = 0) =>
    Array.from({ length }, (_, index) => {
      const id = `m${from + index}`;
      const content = `message ${id} ${"x".repeat(100)}`;
      return index % 2 === 0 ? new HumanMessage({ content, id }) : new AIMessage({ content, id });
    });

  test("P7: a step of an agent costs what is new, whether its thread has 100 messages or 2,000", async () => {
    using folder = place();
    const { saver, bytes } = await counting(folder.path);
    await using _ = saver;
    const costs: number[] = [];
    for (const [length, from] of [
      [100, 0],
      [1900, 100],
    ] as const) {
      await agent(saver).graph.updateState(thread("t"), { messages: history(length, from) }, "model_request");
      const before = bytes();
      await agent(saver).invoke({ messages: [new HumanMessage("go")] }, thread("t"));
      costs.push(bytes() - before);
    }
    expect(costs[0]).toBeLessThan(20_000);
    // Numbers have more digits.
    expect(costs[1]! - costs[0]!).toBeLessThan(500);
    const { values } = await agent(saver).graph.getState(thread("t"));
    expect(values.messages).toHaveLength(2008);
  });

  test("a list whose items are copies is compared by content", async () => {
    using folder = place();
    const { saver, bytes } = await counting(folder.path);
    await using _ = saver;
    const State = Annotation.Root({
      rows: Annotation<{ n: number; text: string }[]>({
        reducer: (was, more) => structuredClone([...was, ...more]),
        default: () => [],
      }),
    });
    const graph = new StateGraph(State)
      .addNode("none", () => ({}))
      .addEdge(START, "none")
      .compile({ checkpointer: saver });
    const rows = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => ({ n: from + index, text: "x".repeat(100) }));
    await graph.invoke({ rows: rows(0, 500) }, thread("t"));
    const before = bytes();
    await graph.invoke({ rows: rows(500, 1) }, thread("t"));
    expect(bytes() - before).toBeLessThan(10_000);
    expect((await graph.getState(thread("t"))).values.rows).toEqual(rows(0, 501));
  });

  test("an item that is changed in place, replaced or removed is stored as it is now", async () => {
    using folder = place();
    const run = async (checkpointer: HoldfastSaver | MemorySaver) => {
      const graph = new StateGraph(MessagesAnnotation)
        .addNode("edit", ({ messages }) => {
          if (messages.length < 40) return {};
          messages[3]!.content = "changed in place";
          return {
            messages: [
              new HumanMessage({ content: "replaced", id: "m10" }),
              new RemoveMessage({ id: "m20" }),
              new AIMessage({ content: "new", id: "new" }),
            ],
          };
        })
        .addEdge(START, "edit")
        .compile({ checkpointer });
      await graph.invoke({ messages: history(39) }, thread("t"));
      await graph.invoke({ messages: history(1, 39) }, thread("t"));
      return texts((await graph.getState(thread("t"))).values.messages);
    };
    const { saver, bytes } = await counting(folder.path);
    await using _ = saver;
    expect(await run(saver)).toEqual(await run(new MemorySaver()));
    expect(bytes()).toBeLessThan(80_000);
  });

  test("what the caller changes after the call is not stored", async () => {
    using folder = place();
    await using saver = await HoldfastSaver.open(folder.path);
    const row = { text: "as it was" };
    const checkpoint = {
      ...emptyCheckpoint(),
      channel_values: { rows: [row], row },
      channel_versions: { rows: 1, row: 1 },
    };
    const saved = saver.put(thread("t"), checkpoint, { source: "loop", step: 0, parents: {} }, { rows: 1, row: 1 });
    row.text = "changed";
    const { checkpoint: stored } = (await saver.getTuple(await saved))!;
    expect(stored.channel_values).toEqual({ rows: [{ text: "as it was" }], row: { text: "as it was" } });
  });

  test("a value that cannot be serialized fails its own call only", async () => {
    using folder = place();
    const serde = new MemorySaver().serde;
    const dumpsTyped = (value: unknown) =>
      value === "bad" ? Promise.reject(new Error("no")) : serde.dumpsTyped(value);
    await using saver = await HoldfastSaver.open(folder.path, {
      serde: { dumpsTyped, loadsTyped: (type, data) => serde.loadsTyped(type, data) },
    });
    const metadata = { source: "loop", step: 0, parents: {} } as const;
    const put = (value: string) => {
      const checkpoint = { ...emptyCheckpoint(), channel_values: { value }, channel_versions: { value: 1 } };
      return saver.put(thread("t"), checkpoint, metadata, { value: 1 });
    };
    const puts = await Promise.allSettled([put("bad"), put("good")]);
    expect(puts.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect((await saver.getTuple(thread("t")))?.checkpoint.channel_values).toEqual({ value: "good" });
  });

  test("bytes of another serializer are stored as they are", async () => {
    using folder = place();
    const plain = new MemorySaver().serde;
    const flip = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 255);
    const serde: typeof plain = {
      dumpsTyped: async (value) => {
        const [type, bytes] = await plain.dumpsTyped(value);
        return [`flipped ${type}`, flip(bytes)];
      },
      loadsTyped: (type, data) => plain.loadsTyped(type.replace("flipped ", ""), flip(data as Uint8Array)),
    };
    {
      await using saver = await HoldfastSaver.open(folder.path, { serde });
      await echo(saver).invoke({ messages: [new HumanMessage("secret")] }, thread("t"));
    }
    expect([...treeOf(folder.path).values()].some((text) => text.includes("secret"))).toBe(false);
    await using saver = await HoldfastSaver.open(folder.path, { serde });
    expect(texts((await echo(saver).getState(thread("t"))).values.messages)).toEqual(["secret", "echo secret"]);
  });
});

describe("threads", () => {
  test("are listed, deleted, and shown as sessions", async () => {
    using folder = place();
    await using saver = await HoldfastSaver.open(folder.path);
    for (const id of ["a", "b"]) await echo(saver).invoke({ messages: [new HumanMessage(`for ${id}`)] }, thread(id));
    const { threads } = await saver.listThreads();
    expect(threads.map(({ threadId }) => threadId)).toEqual(["b", "a"]);
    const { threads: firstPage, next } = await saver.listThreads({ limit: 1 });
    expect([...firstPage, ...(await saver.listThreads({ after: next! })).threads]).toEqual(threads);

    await using store = await openStore(folder.path);
    const { sessions } = await store.list();
    expect(sessions.map(({ title, status }) => [title, status])).toEqual([
      ["for b", "idle"],
      ["for a", "idle"],
    ]);
    const { entries, interruption } = await store.read(threads[1]!.session, { dialect: "openai-chat" });
    expect(interruption).toBe(null);
    expect(entries.map(({ message }) => message)).toEqual([
      { role: "user", content: "for a" },
      { role: "assistant", content: "echo for a" },
    ]);
    await saver.deleteThread("a");
    expect(await saver.getTuple(thread("a"))).toBe(undefined);
    expect((await saver.listThreads()).threads.map(({ threadId }) => threadId)).toEqual(["b"]);
  });

  test("one that waits for a person is shown as waiting", async () => {
    using folder = place();
    await using saver = await HoldfastSaver.open(folder.path);
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("ask", () => ({ messages: [new AIMessage(String(interrupt("Sure?")))] }))
      .addEdge(START, "ask")
      .compile({ checkpointer: saver });
    const status = async () => {
      await using store = await openStore(folder.path);
      return (await store.list()).sessions[0]?.status;
    };
    await graph.invoke({ messages: [new HumanMessage("go")] }, thread("t"));
    expect(await status()).toBe("waiting");
    await graph.invoke(new Command({ resume: "yes" }), thread("t"));
    expect(await status()).toBe("idle");
  });

  test("pruning keeps the newest checkpoints, and the run goes on", async () => {
    using folder = place();
    await using saver = await HoldfastSaver.open(folder.path);
    const graph = echo(saver);
    for (const text of ["one", "two", "three"]) await graph.invoke({ messages: [new HumanMessage(text)] }, thread("t"));
    const before = (await graph.getState(thread("t"))).values;
    expect(await saver.prune("t", { keep: 2 })).toEqual({ removed: 7 });
    expect(await saver.prune("none", { keep: 2 })).toEqual({ removed: 0 });
    expect((await graph.getState(thread("t"))).values).toEqual(before);
    await graph.invoke({ messages: [new HumanMessage("four")] }, thread("t"));
    expect(texts((await graph.getState(thread("t"))).values.messages)).toEqual([
      ...texts(before.messages),
      "four",
      "echo four",
    ]);
    await using store = await openStore(folder.path);
    const { entries } = await store.read((await saver.listThreads()).threads[0]!.session);
    expect(entries).toHaveLength(8);
  });

  test("a delta channel is whole after pruning", async () => {
    using folder = place();
    await using saver = await HoldfastSaver.open(folder.path);
    const graph = new StateGraph(new StateSchema({ messages: MessagesDeltaValue }))
      .addNode("answer", ({ messages }) => ({ messages: [new AIMessage(`echo ${messages.at(-1)?.content}`)] }))
      .addEdge(START, "answer")
      .compile({ checkpointer: saver });
    const said = ["a", "b", "c"].flatMap((text) => [text, `echo ${text}`]);
    for (const text of ["a", "b", "c"])
      await graph.invoke(
        { messages: [new HumanMessage(text)] },
        { ...thread("t"), durability: text === "b" ? "exit" : "async" },
      );
    expect(texts((await graph.getState(thread("t"))).values.messages)).toEqual(said);
    expect((await saver.prune("t", { keep: 1 })).removed).toBe(0);
    expect(texts((await graph.getState(thread("t"))).values.messages)).toEqual(said);
    await using store = await openStore(folder.path);
    expect((await store.list()).sessions).toMatchObject([{ title: "a", status: "idle" }]);
  });
});

describe("a store that fails", () => {
  test("P8: what could not be written is not counted as stored, and the run goes on when there is space", async () => {
    using folder = place();
    const failing = new FailingDisk();
    const { disk } = failing;
    await using saver = await HoldfastSaver.openWith((options) => openFolderStore(folder.path, { ...options, disk }));
    const graph = echo(saver);
    await graph.invoke({ messages: [new HumanMessage("one")] }, thread("t"));
    failing.countdown = 1;
    await expect(graph.invoke({ messages: [new HumanMessage("two")] }, thread("t"))).rejects.toMatchObject({
      code: "STORE_FULL",
    });
    expect(failing.failed).toBe(1);
    expect(texts((await graph.getState(thread("t"))).values.messages)).toEqual(["one", "echo one"]);
    await graph.invoke({ messages: [new HumanMessage("three")] }, thread("t"));
    await saver.release("t");
    await using other = await HoldfastSaver.open(folder.path);
    const { values } = await echo(other).getState(thread("t"));
    expect(texts(values.messages)).toEqual(["one", "echo one", "three", "echo three"]);
  });

  test("P9: a damaged record costs the checkpoints that depend on it, and they say so", async () => {
    using folder = place();
    {
      await using saver = await HoldfastSaver.open(folder.path);
      for (const text of ["one", "two"]) await echo(saver).invoke({ messages: [new HumanMessage(text)] }, thread("t"));
    }
    const [journal] = readdirSync(folder.path, { recursive: true, encoding: "utf8" }).filter((name) =>
      /sessions.*\.jsonl$/.test(name),
    );
    const path = join(folder.path, journal!);
    const lines = readFileSync(path, "utf8").split("\n");
    const damaged = lines.findIndex((line) => line.includes('"graph.list"') && line.includes("echo one"));
    lines[damaged] = lines[damaged]!.replace("echo one", "echo two");
    writeFileSync(path, lines.join("\n"));
    await using saver = await HoldfastSaver.open(folder.path);
    await expect(echo(saver).getState(thread("t"))).rejects.toMatchObject({ code: "JOURNAL_UNREADABLE" });
    const whole: unknown[] = [];
    for await (const { checkpoint } of saver.list(thread("t"))) whole.push(checkpoint.id);
    expect(whole.length).toBeGreaterThan(0);
    expect(whole.length).toBeLessThan(6);
  });

  test("P9: a thread that cannot be read is left out of the list of all checkpoints, with a warning", async () => {
    using folder = place();
    const bad = new Set<string>();
    await using saver = await HoldfastSaver.openWith(async (options) =>
      unreadable(await openFolderStore(folder.path, options), bad),
    );
    for (const id of ["one", "two", "three"]) {
      await echo(saver).invoke({ messages: [new HumanMessage(id)] }, thread(id));
      await saver.release(id);
    }
    const { threads } = await saver.listThreads();
    bad.add(threads.find(({ threadId }) => threadId === "two")!.session);
    const warned = once(process, "warning");
    const found = new Set<string>();
    for await (const { config } of saver.list({})) found.add(String(config.configurable!["thread_id"]));
    expect([...found].sort()).toEqual(["one", "three"]);
    expect((await warned)[0]).toMatchObject({ code: "HOLDFAST_UNREADABLE" });
    await expect(saver.list(thread("two")).next()).rejects.toMatchObject({ code: "FORMAT_NEWER" });
  });
});
