import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, interrupt } from "@langchain/langgraph";
import { type BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph-checkpoint";
import { openStore, type Session, type Store } from "holdfast";
import {
  type AgentMiddleware,
  createAgent,
  createMiddleware,
  humanInTheLoopMiddleware,
  tool,
  toolCallLimitMiddleware,
  toolStrategy,
} from "langchain";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { durable, langchain } from "../../../src/langchain/index.ts";
import { ScriptedChatModel } from "../../scripted-chat-model.ts";

/** Going on with the turn that another process left: open calls run through the agent's own middleware. */

interface Call {
  readonly id: string;
  readonly name: string;
}

const calls = (...made: Call[]): AIMessage =>
  new AIMessage({
    content: "I do it.",
    tool_calls: made.map(({ id, name }) => ({ type: "tool_call" as const, id, name, args: { id } })),
  });

const LOOK: Call = { id: "l1", name: "look" };
const MAIL: Call = { id: "m1", name: "send_mail" };
const MAIL_2: Call = { id: "m2", name: "send_mail" };

/** What is left of a process that was killed: the store, what its tools did, and its checkpoints. */
class World {
  readonly ran: string[] = [];
  readonly saver: BaseCheckpointSaver = new MemorySaver();
  readonly store: Store;
  #id = "";
  #thread = 0;

  constructor(store: Store) {
    this.store = store;
  }

  /** A turn with this answer, whose process died when `ended` of its calls had ended and `started` had started. */
  async killed(answer: AIMessage, { ended = [] as Call[], started = [] as Call[] } = {}): Promise<void> {
    const session = await this.store.create({ dialect: langchain });
    this.#id = session.id;
    const turn = await session.startTurn(new HumanMessage("Do it."));
    await turn.request().draft.commit(answer);
    for (const { id, name } of [...ended, ...started])
      await turn.toolStarted(id, { replay: name === "look" ? "safe" : "never" });
    for (const { id } of ended) await turn.toolEnded(id, { value: `${id} before the crash` });
    await session.close();
  }

  async next(): Promise<Session<BaseMessage>> {
    return this.store.resume<BaseMessage>(this.#id, { dialect: langchain });
  }

  agent(session: Session<BaseMessage>, middleware: unknown[] = [], script = done, settings: object = {}) {
    const model = new ScriptedChatModel(script);
    const agent = durable(session, { replay: { look: "safe" } });
    const tools = ["look", "send_mail"].map((name) =>
      tool(
        (input) => {
          this.ran.push(input.id);
          return `${input.id} done`;
        },
        { name, schema: z.object({ id: z.string() }) },
      ),
    );
    const app = createAgent({
      model,
      tools,
      middleware: [agent.middleware, ...middleware] as AgentMiddleware[],
      checkpointer: this.saver,
      ...settings,
    });
    const config = () => agent.config({ configurable: { thread_id: String(this.#thread) } });
    return {
      agent,
      model,
      run: () => {
        this.#thread++;
        return agent.finish(app.invoke({ messages: agent.messages() }, config()));
      },
      decide: (...decisions: object[]) => {
        return agent.finish(app.invoke(new Command({ resume: { decisions } }), config()));
      },
      /** As in the guide: reads the streams to their ends. One config serves for both. */
      streams: async (returned: () => unknown, ...decisions: object[]) => {
        this.#thread++;
        const given = config();
        const read = async (input: never): Promise<unknown> => {
          for await (const _ of await app.stream(input, given));
          return returned();
        };
        const first = await agent.finish(read({ messages: agent.messages() } as never));
        await agent.resume({ calls: () => "keep" });
        return [first, await agent.finish(read(new Command({ resume: { decisions } }) as never))];
      },
    };
  }
}

async function world(): Promise<World & AsyncDisposable> {
  const store = await openStore("memory:", { recordsToolStarts: true, dialects: [langchain] });
  return Object.assign(new World(store), { [Symbol.asyncDispose]: () => store.close() });
}

const done = (messages: BaseMessage[]): AIMessage => {
  if (!ToolMessage.isInstance(messages.at(-1))) throw new Error("The model was asked although calls are open.");
  return new AIMessage("That is all.");
};
const asks = () => humanInTheLoopMiddleware({ interruptOn: { send_mail: true } } as never);
const texts = (messages: readonly BaseMessage[] | undefined) => messages?.map(({ text }) => text);

describe("killed after the answer was recorded", () => {
  test("a call that needs approval waits for it, and runs when it has it", async () => {
    await using here = await world();
    await here.killed(calls(MAIL));
    const session = await here.next();
    const { agent, model, run, decide } = here.agent(session, [asks()]);
    expect(await agent.resume()).not.toBe(null);
    expect(await run()).toEqual({ kind: "waiting" });
    expect(here.ran).toEqual([]);
    expect(model.asked).toHaveLength(0);
    expect(session.interruption).toMatchObject({
      how: { kind: "suspended" },
      calls: [{ id: "m1", state: "awaiting" }],
    });

    await agent.resume({ calls: () => "keep" });
    expect(await decide({ type: "approve" })).toEqual({ kind: "completed" });
    expect(here.ran).toEqual(["m1"]);
    expect(texts(session.messages)).toEqual(["Do it.", "I do it.", "m1 done", "That is all."]);
  });

  test("a rejected call does not run, and the model is told", async () => {
    await using here = await world();
    await here.killed(calls(MAIL));
    const session = await here.next();
    const { agent, run, decide } = here.agent(session, [asks()]);
    await agent.resume();
    await run();
    await agent.resume({ calls: () => "keep" });
    expect(await decide({ type: "reject", message: "Not today." })).toEqual({ kind: "completed" });
    expect(here.ran).toEqual([]);
    expect(texts(session.messages)).toEqual(["Do it.", "I do it.", "Not today.", "That is all."]);
  });

  test("if one call is rejected and another approved, LangChain runs neither, and the model is told of both", async () => {
    await using here = await world();
    await here.killed(calls(MAIL, MAIL_2));
    const session = await here.next();
    const { agent, model, run, decide } = here.agent(session, [asks()]);
    await agent.resume();
    await run();
    await agent.resume({ calls: () => "keep" });
    const decisions = [{ type: "approve" }, { type: "reject", message: "Not today." }];
    expect(await decide(...decisions)).toEqual({ kind: "completed" });
    expect(here.ran).toEqual([]);
    expect(model.asked).toHaveLength(1);
    expect(texts(session.messages)?.slice(1)).toEqual([
      "I do it.",
      expect.stringMatching(/not run/i),
      "Not today.",
      "That is all.",
    ]);
  });

  test("a middleware that refuses a call refuses it after a restart, too", async () => {
    await using here = await world();
    await here.killed(calls(LOOK, MAIL));
    const session = await here.next();
    const forbids = createMiddleware({
      name: "policy",
      wrapToolCall: ({ toolCall }, handler) =>
        toolCall.name === "send_mail"
          ? new ToolMessage({ content: "Forbidden.", tool_call_id: toolCall.id!, status: "error" })
          : handler({ toolCall } as never),
    });
    const { agent, run } = here.agent(session, [forbids]);
    await agent.resume();
    expect(await run()).toEqual({ kind: "completed" });
    expect(here.ran).toEqual(["l1"]);
    expect(texts(session.messages)).toEqual(["Do it.", "I do it.", "l1 done", "Forbidden.", "That is all."]);
  });

  test("calls that had ended are neither asked about nor run again, and the model sees their results", async () => {
    await using here = await world();
    await here.killed(calls(MAIL, MAIL_2), { ended: [MAIL] });
    const session = await here.next();
    const first = here.agent(session, [asks()]);
    await first.agent.resume();
    expect(await first.run()).toEqual({ kind: "waiting" });
    await session.close();

    // The person decides in the next process.
    const later = await here.next();
    const { agent, model, decide } = here.agent(later, [asks()]);
    await agent.resume({ calls: () => "keep" });
    expect(await decide({ type: "approve" })).toEqual({ kind: "completed" });
    expect(here.ran).toEqual(["m2"]);
    const seen = ["Do it.", "I do it.", "m1 before the crash", "m2 done"];
    expect(texts(model.asked[0])).toEqual(seen);
    expect((model.asked[0]![1] as AIMessage).tool_calls?.map(({ id }) => id)).toEqual(["m1", "m2"]);
    expect(texts(later.messages)).toEqual([...seen, "That is all."]);
  });

  test("of calls that had started, those safe to repeat run, and of the others the model is told how far each got", async () => {
    await using here = await world();
    await here.killed(calls(LOOK, MAIL, MAIL_2), { started: [LOOK, MAIL] });
    const session = await here.next();
    const { agent, model, run } = here.agent(session);
    await agent.resume();
    expect(await run()).toEqual({ kind: "completed" });
    expect(here.ran).toEqual(["l1", "m2"]);
    const [, , look, mail, second] = model.asked[0]!;
    expect(texts([look!, second!])).toEqual(["l1 done", "m2 done"]);
    expect(mail!.text).toMatch(/may have taken effect/);
  });

  test("a structured answer whose outcome is missing is asked for again", async () => {
    await using here = await world();
    const properties = { n: { type: "number" } };
    const responseFormat = toolStrategy({ type: "object", properties, required: ["n"] });
    const { name } = responseFormat[0]!;
    const answer = (id: string) =>
      new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id, name, args: { n: 3 } }] });
    await here.killed(answer("s1"));
    const session = await here.next();
    const { agent, model, run } = here.agent(session, [], () => answer("s2"), { responseFormat });
    await agent.resume();
    expect(await run()).toEqual({ kind: "completed" });
    expect(model.asked).toHaveLength(1);
    expect(session.messages.map((message) => message.getType())).toEqual(["human", "ai", "tool", "ai", "tool", "ai"]);
    expect(session.messages.at(-1)!.text).toBe('Returning structured response: {"n":3}');
  });

  test("what a person said after the answer is still sent", async () => {
    await using here = await world();
    const session = await here.store.create({ dialect: langchain });
    const turn = await session.startTurn(new HumanMessage("Do it."));
    await turn.request().draft.commit(calls(LOOK));
    await turn.append(new HumanMessage("And be quick."));
    await session.close();
    const next = await here.store.resume<BaseMessage>(session.id, { dialect: langchain });
    const { agent, model, run } = here.agent(next, [], () => new AIMessage("That is all."));
    await agent.resume();
    await run();
    expect(texts(model.asked[0])).toEqual(["Do it.", "I do it.", "l1 done", "And be quick."]);
    expect(texts(next.messages)?.slice(0, 4)).toEqual(texts(model.asked[0]));
  });
});

test("a middleware that fails on the calls of an answer does not keep the model from ever being asked again", async () => {
  await using here = await world();
  const session = await here.store.create({ dialect: langchain });
  await session.startTurn(new HumanMessage("Do it."));
  const once = toolCallLimitMiddleware({ toolName: "send_mail", runLimit: 1, exitBehavior: "error" } as never);
  const sends = (messages: BaseMessage[]) => (messages.length === 1 ? calls(MAIL, MAIL_2) : done(messages));
  const { agent, model, run } = here.agent(session, [once], sends);
  expect((await run()).kind).toBe("failed");
  await agent.resume();
  expect(await run()).toEqual({ kind: "completed" });
  expect(model.asked).toHaveLength(2);
  expect(here.ran).toEqual([]);
  expect(texts(model.asked[1]!.slice(2))).toEqual([expect.stringMatching(/Not run/), expect.stringMatching(/Not run/)]);
});

describe("a run that waits for a person", () => {
  test("resume keeps the turn suspended, in this process and in the next, and a decision goes on with it", async () => {
    await using here = await world();
    await here.killed(calls(LOOK, MAIL));
    const session = await here.next();
    const first = here.agent(session, [asks()]);
    await first.agent.resume();
    await first.run();
    expect(await first.agent.resume()).toBe(null);
    await session.close();

    const later = await here.next();
    const { agent, model, decide } = here.agent(later, [asks()]);
    expect(await agent.resume()).toBe(null);
    expect(later.interruption).toMatchObject({
      how: { kind: "suspended" },
      // Nobody needs to approve `look`.
      calls: [
        { id: "l1", state: "never-started" },
        { id: "m1", state: "awaiting" },
      ],
    });
    expect(await agent.resume({ calls: () => "keep" })).not.toBe(null);
    expect(await decide({ type: "approve" })).toEqual({ kind: "completed" });
    expect(here.ran).toEqual(["l1", "m1"]);
    expect(texts(model.asked[0])).toEqual(["Do it.", "I do it.", "l1 done", "m1 done"]);
  });

  test("without its checkpoints the person is asked again", async () => {
    await using here = await world();
    await here.killed(calls(MAIL));
    const session = await here.next();
    const { agent, run, decide } = here.agent(session, [asks()]);
    await agent.resume();
    await run();
    await agent.resume({ calls: () => "keep" });
    expect(await run()).toEqual({ kind: "waiting" });
    await agent.resume({ calls: () => "keep" });
    expect(await decide({ type: "approve" })).toEqual({ kind: "completed" });
    expect(here.ran).toEqual(["m1"]);
  });

  test.each([
    ["nothing", () => undefined],
    ["a text", () => "That is all."],
    ["messages", () => ({ messages: [new AIMessage("That is all.")] })],
  ])("a stream that stops for a person ends as waiting, also if its reader returns %s", async (_, returned) => {
    await using here = await world();
    await here.killed(calls(MAIL));
    const session = await here.next();
    const { agent, streams } = here.agent(session, [asks()]);
    await agent.resume();
    expect(await streams(returned, { type: "approve" })).toEqual([{ kind: "waiting" }, { kind: "completed" }]);
    expect(texts(session.messages)).toEqual(["Do it.", "I do it.", "m1 done", "That is all."]);
  });

  test("an answer that a person reviews is recorded once", async () => {
    await using here = await world();
    const first = await here.store.create({ dialect: langchain });
    await first.startTurn(new HumanMessage("Do it."));
    const reviews = createMiddleware({ name: "reviews", afterAgent: () => void interrupt("Is that good?") });
    expect(await here.agent(first, [reviews], () => new AIMessage("That is all.")).run()).toEqual({ kind: "waiting" });
    await first.close();
    const next = await here.store.resume<BaseMessage>(first.id, { dialect: langchain });
    const { agent, decide } = here.agent(next, [reviews]);
    expect(await agent.resume()).toBe(null);
    await agent.resume({ calls: () => "keep" });
    expect(await decide()).toEqual({ kind: "completed" });
    expect(texts(next.entries.flatMap(({ synthetic, message }) => (synthetic ? [] : [message])))).toEqual([
      "Do it.",
      "That is all.",
    ]);
  });

  test("a tool that waits in interrupt() goes on in another process", async () => {
    await using here = await world();
    const session = await here.store.create({ dialect: langchain });
    await session.startTurn(new HumanMessage("Do it."));
    const appOf = (of: Session<BaseMessage>) => {
      const agent = durable(of);
      const waits = tool(() => `sent: ${interrupt("May I?")}`, {
        name: "send_mail",
        schema: z.object({ id: z.string() }),
      });
      const script = (messages: BaseMessage[]) =>
        ToolMessage.isInstance(messages.at(-1)) ? done(messages) : calls(MAIL);
      const model = new ScriptedChatModel(script);
      const app = createAgent({ model, tools: [waits], middleware: [agent.middleware], checkpointer: here.saver });
      const config = () => agent.config({ configurable: { thread_id: "one" } });
      return { agent, app, config };
    };
    const first = appOf(session);
    const run = first.app.invoke({ messages: first.agent.messages() }, first.config());
    expect(await first.agent.finish(run)).toEqual({ kind: "waiting" });
    await session.close();

    const next = await here.store.resume<BaseMessage>(session.id, { dialect: langchain });
    const { agent, app, config } = appOf(next);
    expect(await agent.resume()).toBe(null);
    await agent.resume({ calls: () => "keep" });
    expect(await agent.finish(app.invoke(new Command({ resume: "yes" }), config()))).toEqual({ kind: "completed" });
    expect(texts(next.messages)).toEqual(["Do it.", "I do it.", "sent: yes", "That is all."]);
  });
});
