import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { openStore, type ProbeAnswer, type ProbedCall, type Session, type Store, toolCall } from "holdfast";
import { type AgentMiddleware, createAgent, tool } from "langchain";
import { afterEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type DurableOptions, durable, langchain } from "../../../src/langchain/index.ts";
import { recordsOf } from "../../agents.ts";
import { ScriptedChatModel } from "../../scripted-chat-model.ts";
import { PROBES_WITHOUT_ANSWER, RULES_OVER_A_DEPLOY } from "../../tool-rule-cases.ts";

/** Calls whose outcome is unknown are settled before the model hears of them; every tool can have its key. */

afterEach(() => vi.restoreAllMocks());

const answer = (...names: string[]): AIMessage =>
  new AIMessage({
    content: "I do it.",
    tool_calls: names.map((name, n) => ({ type: "tool_call" as const, id: `c${n}`, name, args: {} })),
  });

/** A payment service, and a program that dies in it. */
class World implements AsyncDisposable {
  readonly store: Store;
  readonly charged: string[] = [];
  readonly asked: ProbedCall[] = [];
  readonly steps: string[] = [];
  dies = true;
  tools = ["charge", "look"];
  #session: Session<BaseMessage> | null = null;

  constructor(store: Store) {
    this.store = store;
  }

  static async begun(): Promise<World> {
    return new World(await openStore("memory:", { recordsToolStarts: true, dialects: [langchain] }));
  }

  run(session: Session<BaseMessage>, options: DurableOptions, script: (messages: BaseMessage[]) => AIMessage) {
    const agent = durable(session, options);
    const model = new ScriptedChatModel(script);
    const tools = this.tools.map((name) =>
      tool(
        async () => {
          await Promise.resolve();
          if (name === "order") return this.#order(session);
          if (name === "charge") this.charged.push(toolCall()!.key);
          if (name === "charge" && this.dies) await session.close();
          return `${name} done`;
        },
        { name, schema: z.object({}) },
      ),
    );
    const app = createAgent({ model, tools, middleware: [agent.middleware] as AgentMiddleware[] });
    return { agent, model, go: () => agent.finish(app.invoke({ messages: agent.messages() }, agent.config())) };
  }

  async #order(session: Session<BaseMessage>): Promise<string> {
    const { step } = toolCall()!;
    const stock = await step("reserve", () => this.steps.push("reserve") && "seven");
    if (this.dies) await session.close();
    await step("charge", () => this.steps.push("charge"));
    return `charged for ${stock}`;
  }

  /** Dies in a call of the tool. */
  async killed(options: DurableOptions, name = "charge"): Promise<Session<BaseMessage>> {
    const session = await this.store.create<BaseMessage>({ dialect: langchain });
    this.#session = session;
    await session.startTurn(new HumanMessage("Pay."));
    await this.run(session, options, () => answer(name))
      .go()
      .catch(() => {});
    await session.close();
    this.dies = false;
    return this.next();
  }

  next(): Promise<Session<BaseMessage>> {
    return this.store.resume<BaseMessage>(this.#session!.id, { dialect: langchain });
  }

  probe(given: () => ProbeAnswer | Promise<ProbeAnswer>) {
    return (asked: ProbedCall): ProbeAnswer | Promise<ProbeAnswer> => {
      this.asked.push(asked);
      return given();
    };
  }

  /** What the model is told when it is asked next. */
  async told(session: Session<BaseMessage>, options: DurableOptions): Promise<string> {
    const { agent, model, go } = this.run(session, options, () => new AIMessage("Done."));
    expect(await agent.resume()).toBe(session.turn);
    expect(await go()).toEqual({ kind: "completed" });
    return JSON.stringify(model.asked.at(-1)!.slice(2));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.store.close();
  }
}

test("a probe gets the key that the tool had, and what it found is told", async () => {
  await using world = await World.begun();
  const options = { probe: { charge: world.probe(() => ({ value: "receipt 7" })) } };
  const session = await world.killed(options);
  expect(await world.told(session, options)).toMatch(/Settled by asking the service.*receipt 7/);
  expect(world.asked).toMatchObject([{ id: "c0", name: "charge", key: world.charged[0] }]);
  expect(world.charged).toHaveLength(1);
});

test("what did not happen runs, with the same key", async () => {
  await using world = await World.begun();
  const options = { probe: { charge: world.probe(() => "did-not-happen") } };
  const session = await world.killed(options);
  expect(await world.told(session, options)).toMatch(/charge done/);
  expect([world.charged.length, new Set(world.charged).size]).toEqual([2, 1]);
  const started = (await recordsOf(session)).filter(({ kind }) => kind === "tool.started");
  expect(started.map(({ idempotencyKey, probe }) => [idempotencyKey, probe])).toEqual(
    world.charged.map((key) => [key, true]),
  );
});

test.each(PROBES_WITHOUT_ANSWER)("a call stays unknown if its probe %s, and the turn goes on", async (_, given) => {
  await using world = await World.begun();
  vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const options = { probe: { charge: world.probe(given) }, probeMs: 5 };
  expect(await world.told(await world.killed(options), options)).toMatch(/may have taken effect/);
  expect([world.asked.length, world.charged.length]).toEqual([1, 1]);
});

test("a tool that died between two steps continues after the first, which returns its value without running", async () => {
  await using world = await World.begun();
  world.tools = ["order"];
  const options = { replay: { order: "safe" } } as const;
  const session = await world.killed(options, "order");
  expect(session.interruption?.calls).toMatchObject([{ id: "c0", steps: [{ name: "reserve", state: "finished" }] }]);
  expect(await world.told(session, options)).toMatch(/charged for seven/);
  expect(world.steps).toEqual(["reserve", "charge"]);
});

describe("a deploy cannot loosen the rule of a call", () => {
  test.each(RULES_OVER_A_DEPLOY)("%s", async (_, then, now, times) => {
    await using world = await World.begun();
    const said = await world.told(await world.killed(then), now);
    expect(said).toMatch(times === 1 ? /may have taken effect/ : /charge done/);
    expect([world.charged.length, new Set(world.charged).size]).toEqual([times, 1]);
  });

  test("the turn waits for a tool that is missing, and none of the answer's calls runs", async () => {
    await using world = await World.begun();
    world.dies = false;
    const before = await world.store.create<BaseMessage>({ dialect: langchain });
    await (await before.startTurn(new HumanMessage("Pay."))).append(answer("charge", "look"));
    await before.close();
    const open = () => world.store.resume<BaseMessage>(before.id, { dialect: langchain });
    let session = await open();
    world.tools = ["charge"];
    for (const _ of ["at first", "still"]) {
      const { agent, model, go } = world.run(session, {}, () => new AIMessage("Done."));
      expect(await agent.resume()).toBe(session.turn);
      await expect(go()).rejects.toMatchObject({ code: "TOOL_MISSING", facts: { tools: ["look"], calls: ["c1"] } });
      expect(model.asked).toEqual([]);
      expect(session.interruption).toMatchObject({ how: { kind: "suspended" }, calls: [{ id: "c0" }, { id: "c1" }] });
    }
    expect(world.charged).toEqual([]);
    await session.close();
    world.tools = ["charge", "look"];
    session = await open();
    expect(await world.told(session, {})).toMatch(/charge done.*look done/);
  });
});
