import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, interrupt } from "@langchain/langgraph";
import { MemorySaver } from "@langchain/langgraph-checkpoint";
import { openStore, type Session } from "holdfast";
import {
  type AgentMiddleware,
  createAgent,
  createMiddleware,
  modelCallLimitMiddleware,
  modelRetryMiddleware,
  piiMiddleware,
  tool,
  toolStrategy,
} from "langchain";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { place } from "../../../../holdfast/test/place.ts";
import { durable, langchain } from "../../../src/langchain/index.ts";
import { outline, recordsOf } from "../../agents.ts";
import { FailingDisk } from "../../failing-disk.ts";
import { ScriptedChatModel } from "../../scripted-chat-model.ts";

const called = (id: string, name = "look", content = "I look.") =>
  new AIMessage({ content, tool_calls: [{ type: "tool_call", id, name, args: {} }] });

/** Calls a tool, then answers. */
const looks = (messages: BaseMessage[]) =>
  ToolMessage.isInstance(messages.at(-1)) ? new AIMessage("That is all.") : called("c1");

const look = tool(() => "seen", { name: "look", schema: z.object({}) });

async function begin(folder: string): Promise<Session<BaseMessage>> {
  const store = await openStore(folder, { recordsToolStarts: true });
  return store.create({ dialect: langchain });
}

const texts = (messages: readonly BaseMessage[]) => messages.map(({ text }) => text);

const runs = (
  session: Session<BaseMessage>,
  settings: Partial<Parameters<typeof createAgent>[0]> & { model: ScriptedChatModel },
) => {
  const agent = durable(session, { replay: { look: "safe" } });
  const { middleware = [], ...rest } = settings;
  const app = createAgent({ tools: [look], ...rest, middleware: [agent.middleware, ...middleware] } as Parameters<
    typeof createAgent
  >[0]);
  return { agent, finish: () => agent.finish(app.invoke({ messages: agent.messages() }, agent.config())) };
};

/** The types of an agent follow from its middleware, and here that is any. */
const agentWith = (model: ScriptedChatModel, middleware: readonly unknown[]) =>
  createAgent({ model, tools: [look], middleware: middleware as AgentMiddleware[] });

const kindsOf = async (session: Session<BaseMessage>) =>
  outline(await recordsOf(session)).map((line) => line.replace(" undefined", ""));

describe("an agent with the middleware", () => {
  test("the answer is recorded before its tools start, starts before they run, and outcomes at once", async () => {
    using folder = place();
    await using session = await begin(folder.path);
    await session.startTurn(new HumanMessage("Look."));
    const seen: string[][] = [];
    const spy = tool(
      async () => {
        seen.push(await kindsOf(session));
        return "seen";
      },
      { name: "look", schema: z.object({}) },
    );
    expect(await runs(session, { model: new ScriptedChatModel(looks), tools: [spy] }).finish()).toEqual({
      kind: "completed",
    });
    const before = ["turn.started", "message", "message", "tool.started c1"];
    expect(seen.map((lines) => lines.filter((line) => line !== "draft"))).toEqual([before]);
    const all = (await kindsOf(session)).filter((line) => line !== "draft");
    expect(all).toEqual([...before, "tool.ended c1", "message", "turn.ended"]);
    expect(texts(session.messages)).toEqual(["Look.", "I look.", "seen", "That is all."]);
  });

  test("tokens are on disk while the model speaks; those of a sub-agent in a tool are not", async () => {
    using folder = place();
    const store = await openStore(folder.path, { recordsToolStarts: true });
    const session = await store.create({ dialect: langchain, draftMs: 1 });
    await session.startTurn(new HumanMessage("Look."));
    const inner = createAgent({ model: new ScriptedChatModel(() => new AIMessage("Inner words.")), tools: [] });
    const ask = tool(
      async (_, config) => (await inner.invoke({ messages: [new HumanMessage("?")] }, config)).messages.at(-1)!.text,
      {
        name: "look",
        schema: z.object({}),
      },
    );
    let streamed = "";
    const model = new ScriptedChatModel(looks);
    model.onToken = async () => {
      await session.flush();
      streamed += session.entries.length > 0 ? "." : "";
    };
    await runs(session, { model, tools: [ask] }).finish();
    const drafts = (await recordsOf(session)).filter(({ kind }) => kind === "draft");
    const text = drafts
      .flatMap(({ parts }) => (parts as { text?: string }[] | undefined) ?? [])
      .map((part) => part.text ?? "");
    expect(text.join("")).toContain("I look.");
    expect(text.join("")).not.toContain("Inner");
    expect(streamed).not.toBe("");
    expect(texts(session.messages)).toContain("Inner words.");
    await store.close();
  });

  test("a retry inside the request records the answer once", async () => {
    using folder = place();
    await using session = await begin(folder.path);
    await session.startTurn(new HumanMessage("Look."));
    let asked = 0;
    const model = new ScriptedChatModel((messages) => {
      if (asked++ === 0) throw new Error("overloaded");
      return looks(messages);
    });
    const retry = modelRetryMiddleware({ maxRetries: 2, initialDelayMs: 1 }) as never;
    expect((await runs(session, { model, middleware: [retry] }).finish()).kind).toBe("completed");
    expect(texts(session.messages)).toEqual(["Look.", "I look.", "seen", "That is all."]);
  });

  test("the model is told of an error that a tool throws, as without the middleware", async () => {
    using folder = place();
    await using session = await begin(folder.path);
    await session.startTurn(new HumanMessage("Look."));
    const broken = tool(() => Promise.reject(new Error("no light")), { name: "look", schema: z.object({}) });
    const model = new ScriptedChatModel(looks);
    expect((await runs(session, { model, tools: [broken] }).finish()).kind).toBe("completed");
    const bare = new ScriptedChatModel(looks);
    await createAgent({ model: bare, tools: [broken] }).invoke({ messages: [new HumanMessage("Look.")] });
    expect(texts(model.asked.at(-1)!)).toEqual(texts(bare.asked.at(-1)!));
    expect(texts(model.asked.at(-1)!).at(-1)).toContain("no light");
  });

  test("the results of other middleware are recorded, so that no call stays open", async () => {
    using folder = place();
    await using session = await begin(folder.path);
    await session.startTurn(new HumanMessage("Look."));
    const denies = createMiddleware({
      name: "denies",
      afterModel: {
        canJumpTo: ["model"],
        hook: ({ messages }) => {
          const [call] = (messages.at(-1) as AIMessage).tool_calls ?? [];
          if (!call) return;
          const message = new ToolMessage({ content: "A person said no.", tool_call_id: call.id!, status: "error" });
          return { messages: [message], jumpTo: "model" as const };
        },
      },
    });
    const outcome = await runs(session, { model: new ScriptedChatModel(looks), middleware: [denies] }).finish();
    expect(outcome).toEqual({ kind: "completed" });
    expect(texts(session.messages)).toEqual(["Look.", "I look.", "A person said no.", "That is all."]);
  });

  const says = (text: string) => ({ messages: [new AIMessage(text)] });
  const lastWords = [
    [
      "a limit on model calls",
      modelCallLimitMiddleware({ runLimit: 1, exitBehavior: "end" } as never),
      /limits exceeded/,
    ],
    ["a message after the agent's", createMiddleware({ name: "a", afterAgent: () => says("Bye.") }), /^Bye\.$/],
    [
      "an agent that is not asked",
      createMiddleware({
        name: "b",
        beforeAgent: { canJumpTo: ["end"], hook: () => ({ ...says("Closed today."), jumpTo: "end" as const }) },
      }),
      /^Closed today\.$/,
    ],
    [
      "an answer with calls that is cut off",
      createMiddleware({
        name: "c",
        afterModel: { canJumpTo: ["end"], hook: () => ({ ...says("Stopped here."), jumpTo: "end" as const }) },
      }),
      /^Stopped here\.$/,
    ],
  ] as const;
  const ways = ["invoke", "stream"] as const;
  test.each(lastWords.flatMap(([name, middleware, words]) => ways.map((way) => ({ name, middleware, words, way }))))(
    "$name, $way: the last message is what the user saw",
    async ({ middleware, words, way }) => {
      using folder = place();
      await using session = await begin(folder.path);
      await session.startTurn(new HumanMessage("Look."));
      const agent = durable(session);
      const model = new ScriptedChatModel(looks);
      const app = agentWith(model, [agent.middleware, middleware]);
      let shown: BaseMessage[] = [];
      const stream = async (): Promise<void> => {
        const config = { ...agent.config(), streamMode: "values" as const };
        for await (const state of await app.stream({ messages: agent.messages() }, config)) shown = state.messages;
      };
      const invoke = async () => {
        const state = await app.invoke({ messages: agent.messages() }, agent.config());
        shown = state.messages;
        return state;
      };
      expect(await agent.finish(way === "stream" ? stream() : invoke())).toEqual({ kind: "completed" });
      expect(shown.at(-1)!.text).toMatch(words);
      expect(session.messages.at(-1)!.text).toBe(shown.at(-1)!.text);
      expect(session.interruption).toBe(null);
      // No call is left without a result for the next request.
      await session.startTurn(new HumanMessage("Again."));
      const sent = session.messages;
      const called = sent.flatMap((message) => (message as AIMessage).tool_calls ?? []).map(({ id }) => id);
      const answered = sent.flatMap((message) => (ToolMessage.isInstance(message) ? [message.tool_call_id] : []));
      expect(answered).toEqual(called);
    },
  );

  test("an answer that other middleware changes is shown as changed, and the model's own words stay in the journal", async () => {
    using folder = place();
    await using session = await begin(folder.path);
    await session.startTurn(new HumanMessage("Who?"));
    const model = new ScriptedChatModel(() => new AIMessage("Ask anna@example.org."));
    const redacts = piiMiddleware("email", { strategy: "redact", applyToOutput: true });
    expect(await runs(session, { model, middleware: [redacts] as never }).finish()).toEqual({ kind: "completed" });
    expect(texts(session.messages)).toEqual(["Who?", "Ask [REDACTED_EMAIL]."]);
    expect(session.entries.map(({ message }) => message.text)).toContain("Ask anna@example.org.");
  });

  test("structured output: the call and its result are recorded", async () => {
    using folder = place();
    await using session = await begin(folder.path);
    await session.startTurn(new HumanMessage("How many?"));
    const model = new ScriptedChatModel(
      () =>
        new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id: "s1", name: "extract", args: { n: 3 } }] }),
    );
    const responseFormat = toolStrategy({
      title: "extract",
      type: "object",
      properties: { n: { type: "number" } },
      required: ["n"],
    });
    expect((await runs(session, { model, tools: [], responseFormat } as never).finish()).kind).toBe("completed");
    expect(session.interruption).toBe(null);
    expect(session.messages.map((message) => message.getType())).toEqual(["human", "ai", "tool", "ai"]);
  });

  test("a failing model fails the turn, and the next run goes on from what was recorded", async () => {
    using folder = place();
    await using session = await begin(folder.path);
    await session.startTurn(new HumanMessage("Look."));
    const model = new ScriptedChatModel((messages) => {
      if (ToolMessage.isInstance(messages.at(-1)) && model.asked.length === 2) throw new Error("overloaded");
      return looks(messages);
    });
    const { agent, finish } = runs(session, { model });
    expect((await finish()).kind).toBe("failed");
    expect(await agent.resume()).not.toBe(null);
    expect((await finish()).kind).toBe("completed");
    expect(texts(model.asked[2]!)).toEqual(texts(model.asked[1]!));
  });

  test("an abort stops the run, and is recorded", async () => {
    using folder = place();
    await using session = await begin(folder.path);
    const turn = await session.startTurn(new HumanMessage("Look."));
    const stop = tool(
      async () => {
        await turn.abort({ by: "user" });
        return "late";
      },
      { name: "look", schema: z.object({}) },
    );
    expect(await runs(session, { model: new ScriptedChatModel(looks), tools: [stop] }).finish()).toEqual({
      kind: "aborted",
    });
    expect(session.interruption?.how).toMatchObject({ kind: "aborted" });
  });

  test.each([
    ["its start", 1, []],
    ["its outcome", 3, ["look"]],
  ] as const)("C19: if %s cannot be written, nothing more runs and nothing more is asked", async (_, nth, expected) => {
    using folder = place();
    const disk = new FailingDisk();
    await using store = await disk.open(folder.path);
    const session = await store.create({ dialect: langchain, draftMs: 60_000 });
    await session.startTurn(new HumanMessage("Look."));
    const ran: string[] = [];
    const spy = tool(() => void ran.push("look"), { name: "look", schema: z.object({}) });
    const model = new ScriptedChatModel(looks);
    // Only when the answer is on disk.
    const arms = createMiddleware({
      name: "arms",
      afterModel: () => {
        disk.countdown = nth;
      },
    });
    const { finish } = runs(session, { model, tools: [spy], middleware: [arms] });
    await expect(finish()).rejects.toMatchObject({ code: expect.stringMatching(/STORE_FULL|SYNC_FAILED/) });
    expect(ran).toEqual(expected);
    expect(model.asked).toHaveLength(1);
  });

  test("C19: after a failed write, another run with the same middleware asks nobody", async () => {
    using folder = place();
    const disk = new FailingDisk();
    await using store = await disk.open(folder.path);
    const session = await store.create({ dialect: langchain, draftMs: 60_000 });
    await session.startTurn(new HumanMessage("Look."));
    const model = new ScriptedChatModel(looks);
    const { finish } = runs(session, { model });
    disk.countdown = 1;
    await expect(finish()).rejects.toMatchObject({ code: "STORE_FULL" });
    // There is space again, but what the first run did is not recorded.
    await expect(finish()).rejects.toMatchObject({ code: "STORE_FULL" });
    expect(model.asked).toHaveLength(1);
    expect(await kindsOf(session)).toEqual(["turn.started", "message"]);
  });

  test("a tool that waits in interrupt() and is called again has started once", async () => {
    using folder = place();
    await using session = await begin(folder.path);
    await session.startTurn(new HumanMessage("Look."));
    const agent = durable(session);
    const asks = tool(() => `seen, and ${interrupt("May I?")}`, { name: "look", schema: z.object({}) });
    const app = createAgent({
      model: new ScriptedChatModel(looks),
      tools: [asks],
      middleware: [agent.middleware],
      checkpointer: new MemorySaver(),
    });
    const config = () => agent.config({ configurable: { thread_id: "1" } });
    expect(await agent.finish(app.invoke({ messages: agent.messages() }, config()))).toEqual({ kind: "waiting" });
    await session.resumeTurn({ calls: () => "keep" });
    expect(await agent.finish(app.invoke(new Command({ resume: "yes" }), config()))).toEqual({ kind: "completed" });
    expect((await kindsOf(session)).filter((line) => line.startsWith("tool."))).toEqual([
      "tool.started c1",
      "tool.ended c1",
    ]);
    expect(texts(session.messages)).toContain("seen, and yes");
  });

  test("a session of another dialect is refused", async () => {
    using folder = place();
    await using store = await openStore(folder.path);
    const session = await store.create({ dialect: "ai-sdk" });
    expect(() => durable(session as never)).toThrow(/dialect "ai-sdk"/);
  });
});
