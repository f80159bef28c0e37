import { jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import { openStore, type ProbeAnswer, type ProbedCall, type Session, type Store, toolCall } from "holdfast";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { DurableOptions } from "../../../src/ai-sdk/index.ts";
import { durable } from "../../../src/ai-sdk/index.ts";
import { everyWay, outline, PROMPT, recordsOf } from "../../agents.ts";
import { call, scripted, text } from "../../scripted-model.ts";
import { RULES_OVER_A_DEPLOY } from "../../tool-rule-cases.ts";

/** Calls whose outcome is unknown are settled before the model hears of them; every tool can have its key. */

const any = jsonSchema<object>({ type: "object" });

afterEach(() => vi.restoreAllMocks());

/** A payment service, and a program that dies in it. */
class World implements AsyncDisposable {
  readonly store: Store;
  readonly charged: string[] = [];
  readonly asked: ProbedCall[] = [];
  readonly steps: string[] = [];
  dies = true;
  #session: Session<ModelMessage> | null = null;

  constructor(store: Store) {
    this.store = store;
  }

  static async begun(): Promise<World> {
    return new World(await openStore("memory:", { recordsToolStarts: true }));
  }

  get tools(): ToolSet {
    const charge = tool({
      inputSchema: any,
      execute: async () => {
        this.charged.push(toolCall()!.key);
        if (this.dies) await this.#session!.close();
        return "charged";
      },
    });
    const order = tool({
      inputSchema: any,
      execute: async () => {
        const { step } = toolCall()!;
        const stock = await step("reserve", () => this.steps.push("reserve") && "seven");
        if (this.dies) await this.#session!.close();
        return step("charge", () => this.steps.push("charge") && `charged for ${stock}`);
      },
    });
    return { charge, order, look: tool({ inputSchema: any, execute: async () => "seen" }) };
  }

  /** Dies in a call of `charge`. */
  async killed(options: DurableOptions, calls = [call("a", "charge")]): Promise<Session<ModelMessage>> {
    const session = await this.store.create<ModelMessage>({ dialect: "ai-sdk" });
    this.#session = session;
    await session.startTurn(PROMPT);
    const agent = durable(session, options);
    await agent
      .outcome(streamText(agent.wrap({ model: scripted(calls), tools: this.tools, onError: () => {} })))
      .catch(() => {});
    await session.close();
    this.dies = false;
    return this.next();
  }

  async next(): Promise<Session<ModelMessage>> {
    return this.store.resume<ModelMessage>(this.#session!.id);
  }

  /** Remembers what it was asked. */
  probe(answer: () => ProbeAnswer | Promise<ProbeAnswer>) {
    return (asked: ProbedCall): ProbeAnswer | Promise<ProbeAnswer> => {
      this.asked.push(asked);
      return answer();
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.store.close();
  }
}

/** What the model is told when it is asked next. */
async function told(session: Session<ModelMessage>, options: DurableOptions, tools: ToolSet): Promise<string> {
  const agent = durable(session, options);
  expect(await agent.resume(tools)).toBe(session.turn);
  const model = scripted([text("Done.")]);
  expect(await agent.finish(streamText(agent.wrap({ model, tools })))).toEqual({ kind: "completed" });
  return JSON.stringify(model.prompts[0]!.slice(2));
}

const kinds = async (session: Session<ModelMessage>): Promise<string[]> =>
  outline(await recordsOf(session)).filter((line) => line.startsWith("tool."));

describe("a call whose process died", () => {
  test("is settled by its probe, which gets the key that the tool had: the model is told, and it does not run again", async () => {
    await using world = await World.begun();
    const options = { probe: { charge: world.probe(() => ({ value: "receipt 7" })) } };
    const session = await world.killed(options);
    expect(await told(session, options, world.tools)).toMatch(/Settled by asking the service.*receipt 7/);
    expect(world.asked).toMatchObject([{ id: "a", name: "charge", input: {}, key: world.charged[0] }]);
    expect(world.charged).toHaveLength(1);
    expect((await recordsOf(session)).find(({ kind }) => kind === "tool.ended")).toMatchObject({ source: "probe" });
  });

  test("that failed in its service is told as failed", async () => {
    await using world = await World.begun();
    const options = { probe: { charge: world.probe(() => ({ error: "card declined" })) } };
    expect(await told(await world.killed(options), options, world.tools)).toMatch(/it failed.*card declined/);
  });

  test("that did not happen runs, with the same key", async () => {
    await using world = await World.begun();
    const options = { probe: { charge: world.probe(() => "did-not-happen") } };
    const session = await world.killed(options);
    expect(await told(session, options, world.tools)).toMatch(/"charged"/);
    expect(world.charged).toEqual([world.charged[0], world.charged[0]]);
    expect(world.charged).toHaveLength(2);
    expect(await kinds(session)).toEqual(["tool.started a", "tool.unstarted a", "tool.started a", "tool.ended a"]);
  });

  test.each<[string, () => ProbeAnswer | Promise<ProbeAnswer>]>([
    ["cannot tell", () => "unknown"],
    ["throws", () => Promise.reject(new Error("no connection"))],
    ["hangs", () => new Promise<never>(() => {})],
    ["answers nonsense", () => "perhaps" as never],
  ])("stays unknown if its probe %s, and the turn goes on", async (_, answer) => {
    await using world = await World.begun();
    vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const options = { probe: { charge: world.probe(answer) }, probeMs: 5 };
    expect(await told(await world.killed(options), options, world.tools)).toMatch(/may have taken effect/);
    expect(world.asked).toHaveLength(1);
    expect(world.charged).toHaveLength(1);
  });

  test("is asked about before a person decides about another call, and that one still waits", async () => {
    await using world = await World.begun();
    const ask = tool({ inputSchema: any, needsApproval: true, execute: async () => "yes" });
    const options = { probe: { charge: world.probe(() => ({ value: "receipt 7" })) } };
    const session = await world.killed(options);
    const other = await world.store.create<ModelMessage>({ dialect: "ai-sdk" });
    const turn = await other.startTurn(PROMPT);
    const made = { type: "tool-call" as const, toolCallId: "a", toolName: "charge", input: {} };
    const request = { type: "tool-approval-request" as const, approvalId: "p", toolCallId: "b" };
    const content = [made, { ...made, toolCallId: "b", toolName: "ask" }, request];
    await turn.append({ role: "assistant", content });
    await turn.toolStarted("a", { probe: true });
    await other.close();
    await session.close();
    const again = await world.store.resume<ModelMessage>(other.id);
    const tools = { ...world.tools, ask } as ToolSet;
    expect(await durable(again, options).resume(tools)).toBe(null);
    expect(again.interruption).toMatchObject({
      calls: [{ id: "b", state: "awaiting" }],
      settled: [{ id: "a", source: "probe", unstarted: false }],
    });
    expect(await durable(again, options).resume(tools, { approvals: [{ approvalId: "p", approved: true }] })).toBe(
      again.turn,
    );
    expect(world.asked).toHaveLength(1);
  });

  test("is asked about by its place, if a server has given one id to several calls", async () => {
    await using world = await World.begun();
    const store = world.store;
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(PROMPT);
    const made = { type: "tool-call" as const, toolCallId: "a", toolName: "charge", input: {} };
    await turn.append({ role: "assistant", content: [made, made] });
    await turn.toolStarted("a", { probe: true });
    await turn.toolStarted("a", { probe: true });
    await session.close();
    let n = 0;
    const options = { probe: { charge: world.probe(() => ({ value: `receipt ${++n}` })) } };
    const said = await told(await store.resume<ModelMessage>(session.id), options, world.tools);
    expect(said).toMatch(/receipt 1.*receipt 2/);
    expect(new Set(world.asked.map(({ key }) => key)).size).toBe(2);
    expect(world.charged).toEqual([]);
  });
});

test("a tool that died between two steps continues after the first, which returns its value without running", async () => {
  await using world = await World.begun();
  const options = { replay: { order: "safe" } } as const;
  const session = await world.killed(options, [call("a", "order")]);
  expect(session.interruption?.calls).toMatchObject([{ id: "a", steps: [{ name: "reserve", state: "finished" }] }]);
  expect(await told(session, options, world.tools)).toMatch(/charged for seven/);
  expect(world.steps).toEqual(["reserve", "charge"]);
});

describe("a deploy cannot loosen the rule of a call", () => {
  test.each(RULES_OVER_A_DEPLOY)("%s", async (_, then, now, times) => {
    await using world = await World.begun();
    const session = await world.killed(then);
    const said = await told(session, now, world.tools);
    expect(said).toMatch(times === 1 ? /may have taken effect/ : /"charged"/);
    expect(world.charged).toHaveLength(times);
    expect(new Set(world.charged).size).toBe(1);
  });

  test('nor does `calls: "rerun"`', async () => {
    await using world = await World.begun();
    const session = await world.killed({ replay: { charge: "safe" } });
    await durable(session).resume(world.tools, { calls: "rerun" });
    expect(world.charged).toHaveLength(1);
  });

  test("what is safe then and now is not asked about", async () => {
    await using world = await World.begun();
    const options = {
      replay: { charge: "safe" as const },
      probe: { charge: world.probe(() => ({ value: "receipt 7" })) },
    };
    await told(await world.killed(options), options, world.tools);
    expect([world.asked.length, world.charged.length]).toEqual([0, 2]);
  });

  test.each([
    ["never started", {}, "look", []],
    ["started, and safe", { replay: { charge: "safe" } }, "charge", ["charge"]],
  ] as const)("the turn waits for a tool that is missing: %s", async (_, options: DurableOptions, gone, replay) => {
    await using world = await World.begun();
    const store = world.store;
    let session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(PROMPT);
    const made = { type: "tool-call" as const, toolCallId: "a", toolName: gone, input: {} };
    await turn.append({ role: "assistant", content: [made] });
    if (replay.length > 0) await turn.toolStarted("a", { replay: "safe" });
    await session.close();
    session = await store.resume<ModelMessage>(session.id);
    const { [gone]: _tool, ...rest } = world.tools;
    await expect(durable(session, options).resume(rest)).rejects.toMatchObject({
      code: "TOOL_MISSING",
      facts: { tools: [gone], calls: ["a"] },
    });
    expect([session.turn, session.interruption?.calls.length]).toEqual([null, 1]);
    await session.close();
    world.dies = false;
    session = await store.resume<ModelMessage>(session.id);
    expect(await told(session, options, world.tools)).toMatch(/"seen"|"charged"/);
  });

  test("nobody is let approve a call whose tool is missing", async () => {
    await using world = await World.begun();
    const session = await world.store.create<ModelMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(PROMPT);
    const made = { type: "tool-call" as const, toolCallId: "a", toolName: "gone", input: {} };
    const request = { type: "tool-approval-request" as const, approvalId: "p", toolCallId: "a" };
    await turn.append({ role: "assistant", content: [made, request] });
    await session.close();
    const again = await world.store.resume<ModelMessage>(session.id);
    const agent = durable(again);
    const yes = agent.resume(world.tools, { approvals: [{ approvalId: "p", approved: true }] });
    await expect(yes).rejects.toMatchObject({ code: "TOOL_MISSING" });
    expect(again.interruption?.calls).toMatchObject([{ state: "awaiting" }]);
    const no = await agent.resume(world.tools, { approvals: [{ approvalId: "p", approved: false }] });
    expect(no).toBe(again.turn);
  });
});

test.each(everyWay)("%s: every tool can get its key, also one that yields", async (_, start) => {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
  await session.startTurn(PROMPT);
  const seen: (string | undefined)[] = [];
  const note = (): number => seen.push(`${toolCall()?.id} ${toolCall()?.key}`);
  const tools: ToolSet = {
    plain: tool({
      inputSchema: any,
      execute: async () => {
        await Promise.resolve();
        return note();
      },
    }),
    yields: tool({
      inputSchema: any,
      execute: async function* () {
        note();
        yield 1;
        await Promise.resolve();
        note();
        yield 2;
      },
    }),
  };
  const agent = durable(session);
  const model = scripted([call("a", "plain"), call("b", "yields")], [text("Done.")]);
  expect(await agent.finish(start(agent, { model, tools }).run)).toEqual({ kind: "completed" });
  const started = (await recordsOf(session)).filter(({ kind }) => kind === "tool.started");
  const [a, b] = started.map(({ call: id, idempotencyKey }) => `${id} ${idempotencyKey}`);
  expect(seen.toSorted()).toEqual([a, b, b].toSorted());
  expect(toolCall()).toBe(null);
  await store.close();
});
