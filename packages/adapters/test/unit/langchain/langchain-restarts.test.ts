import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { MemorySaver } from "@langchain/langgraph-checkpoint";
import { openStore, type Session, type Store } from "holdfast";
import { type AgentMiddleware, createAgent, humanInTheLoopMiddleware, tool, toolCallLimitMiddleware } from "langchain";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { durable, langchain } from "../../../src/langchain/index.ts";
import { ScriptedChatModel } from "../../scripted-chat-model.ts";

/** What else the next process can meet: call ids that repeat, and checkpoints that are gone. */

interface Made {
  readonly id: string;
  readonly name: string;
}

const calls = (messageId: string | undefined, ...made: Made[]): AIMessage =>
  new AIMessage({
    content: `I ${made.map(({ name }) => name).join(" and ")}.`,
    tool_calls: made.map(({ id, name }) => ({ type: "tool_call" as const, id, name, args: {} })),
    ...(messageId === undefined ? {} : { id: messageId }),
  });
const done = (): AIMessage => new AIMessage("That is all.");
const texts = (messages: readonly BaseMessage[] | undefined) => messages?.map(({ text }) => text);
const asks = humanInTheLoopMiddleware({ interruptOn: { send_mail: true } } as never) as unknown as AgentMiddleware;

const newStore = (): Promise<Store> => openStore("memory:", { recordsToolStarts: true, dialects: [langchain] });

/** An agent in a process of its own: its checkpoints end with it. */
function agentOf(session: Session<BaseMessage>, middleware: AgentMiddleware[], script = done as Script) {
  const ran: string[] = [];
  const agent = durable(session);
  const model = new ScriptedChatModel(script);
  const tools = ["look", "send_mail"].map((name) =>
    tool(
      () => {
        ran.push(name);
        return `${name} done`;
      },
      { name, schema: z.object({}) },
    ),
  );
  const app = createAgent({
    model,
    tools,
    middleware: [agent.middleware, ...middleware],
    checkpointer: new MemorySaver(),
  });
  const config = () => agent.config({ configurable: { thread_id: "1" } });
  return {
    agent,
    model,
    ran,
    run: () => agent.finish(app.invoke({ messages: agent.messages() }, config())),
    decide: (decision: object) =>
      agent.finish(app.invoke(new Command({ resume: { decisions: [decision] } }), config())),
  };
}
type Script = (messages: BaseMessage[]) => AIMessage;

describe.each([
  ["with message ids", "m1", "m2"],
  ["without message ids", undefined, undefined],
])("a server repeats call ids, %s", (_, first, second) => {
  /** A turn in which `look` has run as call 0, and then one that was cut off when the model had made another call 0. */
  async function killed(store: Store, ...more: Made[]): Promise<Session<BaseMessage>> {
    const session = await store.create({ dialect: langchain });
    const before = await session.startTurn(new HumanMessage("One."));
    await before.request().draft.commit(calls(first, { id: "call_0", name: "look" }));
    await before.tool("call_0", async () => "seen before");
    await before.request().draft.commit(new AIMessage("First done."));
    await before.end();
    const turn = await session.startTurn(new HumanMessage("Two."));
    await turn.request().draft.commit(calls(second, { id: "call_0", name: "send_mail" }, ...more));
    await session.close();
    return store.resume<BaseMessage>(session.id, { dialect: langchain });
  }
  const HISTORY = ["One.", "I look.", "seen before", "First done.", "Two."];

  test("the open call is run, not the one of the earlier turn", async () => {
    await using store = await newStore();
    const session = await killed(store);
    const { agent, model, ran, run } = agentOf(session, []);
    await agent.resume();
    expect(texts(agent.messages())).toEqual(HISTORY);
    expect(await run()).toEqual({ kind: "completed" });
    expect(ran).toEqual(["send_mail"]);
    const seen = [...HISTORY, "I send_mail.", "send_mail done"];
    expect(model.asked.map(texts)).toEqual([seen]);
    expect(texts(session.messages)).toEqual([...seen, "That is all."]);
  });

  test("a person is asked about it, and its rejection is not mixed up with the earlier result", async () => {
    await using store = await newStore();
    const session = await killed(store);
    const { agent, model, ran, run, decide } = agentOf(session, [asks]);
    await agent.resume();
    expect(await run()).toEqual({ kind: "waiting" });
    await agent.resume({ calls: () => "keep" });
    expect(await decide({ type: "reject", message: "Not today." })).toEqual({ kind: "completed" });
    expect(ran).toEqual([]);
    const seen = [...HISTORY, "I send_mail.", "Not today."];
    expect(model.asked.map(texts)).toEqual([seen]);
    expect(texts(session.messages)).toEqual([...seen, "That is all."]);
  });

  test("beside a call that had ended, and in a later request of the same run", async () => {
    await using store = await newStore();
    const session = await killed(store, { id: "call_1", name: "look" });
    const { agent, model, ran, run } = agentOf(session, [], (messages) =>
      messages.at(-1)?.text === "look done" ? done() : calls(undefined, { id: "call_2", name: "look" }),
    );
    const turn = await agent.resume();
    await turn!.tool("call_1", async () => "seen again");
    expect(await run()).toEqual({ kind: "completed" });
    expect(ran).toEqual(["send_mail", "look"]);
    const seen = [...HISTORY, "I send_mail and look.", "send_mail done", "seen again"];
    expect(model.asked.map(texts)).toEqual([seen, [...seen, "I look.", "look done"]]);
    for (const asked of model.asked) expect(unpaired(asked)).toEqual([]);
  });
});

/** Calls and results without their counterparts. Ids that repeat make a request invalid as well. */
function unpaired(messages: readonly BaseMessage[]): string[] {
  const made = messages.flatMap((one) =>
    AIMessage.isInstance(one) ? (one.tool_calls ?? []).map(({ id }) => id!) : [],
  );
  const answered = messages.flatMap((one) => (ToolMessage.isInstance(one) ? [one.tool_call_id] : []));
  return [...new Set([...made, ...answered])].filter(
    (id) => made.filter((one) => one === id).length !== 1 || answered.filter((one) => one === id).length !== 1,
  );
}

test("a decision whose checkpoint is gone is not taken for the end of the turn", async () => {
  await using store = await newStore();
  const session = await store.create({ dialect: langchain });
  await session.startTurn(new HumanMessage("Send it."));
  const first = agentOf(session, [asks], () => calls("m1", { id: "c1", name: "send_mail" }));
  expect(await first.run()).toEqual({ kind: "waiting" });
  await session.close();

  const next = await store.resume<BaseMessage>(session.id, { dialect: langchain });
  const { agent, ran, run, decide } = agentOf(next, [asks]);
  await agent.resume({ calls: () => "keep" });
  await expect(decide({ type: "approve" })).rejects.toThrow(/no checkpoint/);
  expect(next.interruption).toMatchObject({ how: { kind: "suspended" }, calls: [{ id: "c1", state: "awaiting" }] });
  expect(await agent.resume()).toBe(null);

  // As the error says: the person is asked again.
  await agent.resume({ calls: () => "keep" });
  expect(await run()).toEqual({ kind: "waiting" });
  await agent.resume({ calls: () => "keep" });
  expect(await decide({ type: "approve" })).toEqual({ kind: "completed" });
  expect(ran).toEqual(["send_mail"]);
});

test("a call that a limit left out is not shown as if it were yet to run", async () => {
  await using store = await newStore();
  const session = await store.create({ dialect: langchain });
  await session.startTurn(new HumanMessage("Look twice."));
  const limit = toolCallLimitMiddleware({ runLimit: 1, exitBehavior: "end" } as never) as unknown as AgentMiddleware;
  const looks = calls("m1", { id: "c1", name: "look" }, { id: "c2", name: "look" });
  expect(await agentOf(session, [limit], () => looks).run()).toEqual({ kind: "completed" });
  expect(texts(session.messages)).toEqual([
    "Look twice.",
    "I look and look.",
    expect.stringMatching(/^(?:Error: )?Not run: the agent ended the run/),
    expect.stringMatching(/limit exceeded/),
    expect.stringMatching(/limit reached/),
  ]);
});

test("what the model had said is kept if the application wants it", async () => {
  await using store = await newStore();
  const session = await store.create({ dialect: langchain });
  const turn = await session.startTurn(new HumanMessage("Tell me."));
  turn.request().draft.push({ text: "Once upon" });
  await session.close();
  const next = await store.resume<BaseMessage>(session.id, { dialect: langchain });
  await durable(next).resume({ draft: "keep" });
  expect(texts(next.messages)?.join()).toContain("Once upon");
});
