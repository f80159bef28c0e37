import { Agent, type AgentInputItem, type AgentOutputItem, shellTool, tool } from "@openai/agents";
import { type ProbeAnswer, type ProbedCall, type Session, toolCall } from "holdfast";
import { afterEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type DurableOptions, durable } from "../../../src/openai-agents/index.ts";
import { recordsOf } from "../../agents.ts";
import { call, resultsIn, ScriptedModel, type Stage, stage, text } from "../../openai-agents/scripted.ts";
import { PROBES_WITHOUT_ANSWER, RULES_OVER_A_DEPLOY } from "../../tool-rule-cases.ts";

/** Calls whose outcome is unknown are settled before the model hears of them; every tool can have its key. */

afterEach(() => vi.restoreAllMocks());

/** A payment service, and a program that dies in it. */
class World {
  readonly charged: string[] = [];
  readonly asked: ProbedCall[] = [];
  readonly steps: string[] = [];
  readonly #here: Stage;
  dies = true;

  constructor(here: Stage) {
    this.#here = here;
  }

  agent(script: AgentOutputItem[][]): { model: ScriptedModel; agent: Agent } {
    const model = new ScriptedModel(script);
    const charge = tool({
      name: "charge",
      description: "",
      parameters: z.object({}),
      execute: async () => {
        await Promise.resolve();
        this.charged.push(toolCall()!.key);
        if (this.dies) await this.#here.session.close();
        return "charged";
      },
    });
    const order = tool({
      name: "order",
      description: "",
      parameters: z.object({}),
      execute: async () => {
        const { step } = toolCall()!;
        const stock = await step("reserve", () => this.steps.push("reserve") && "seven");
        if (this.dies) await this.#here.session.close();
        return step("charge", () => this.steps.push("charge") && `charged for ${stock}`);
      },
    });
    return { model, agent: new Agent({ name: "A", model, tools: [charge, order] }) };
  }

  /** Dies in a call of the tool. */
  async killed(options: DurableOptions, name = "charge"): Promise<Session<AgentInputItem>> {
    const { agent } = this.agent([[call("a", name)]]);
    await durable(this.#here.session, options)
      .run(agent, "Pay.")
      .catch(() => {});
    this.dies = false;
    return this.#here.next();
  }

  probe(given: () => ProbeAnswer | Promise<ProbeAnswer>) {
    return (asked: ProbedCall): ProbeAnswer | Promise<ProbeAnswer> => {
      this.asked.push(asked);
      return given();
    };
  }

  /** What the model is told about the call. */
  async told(session: Session<AgentInputItem>, options: DurableOptions, prompt?: string): Promise<string> {
    const { model, agent } = this.agent([[text("Done.")]]);
    const held = durable(session, options);
    await (prompt === undefined ? held.resume(agent) : held.run(agent, prompt));
    expect(session.interruption).toBe(null);
    return resultsIn(model.inputs[0])["a"]!;
  }
}

test.each([
  ["the turn goes on", undefined],
  ["another takes its place", "And now?"],
])("a probe gets the key that the tool had, and what it found is told: %s", async (_, prompt) => {
  await using here = await stage();
  const world = new World(here);
  const options = { probe: { charge: world.probe(() => ({ value: "receipt 7" })) } };
  const session = await world.killed(options);
  expect(await world.told(session, options, prompt)).toMatch(/Settled by asking the service.*receipt 7/);
  expect(world.asked).toMatchObject([{ id: "a", name: "charge", key: world.charged[0] }]);
  expect(world.charged).toHaveLength(1);
});

test("what did not happen runs, with the same key", async () => {
  await using here = await stage();
  const world = new World(here);
  const options = { probe: { charge: world.probe(() => "did-not-happen") } };
  const session = await world.killed(options);
  expect(await world.told(session, options)).toContain("charged");
  expect([world.charged.length, new Set(world.charged).size]).toEqual([2, 1]);
  const started = (await recordsOf(session as never)).filter(({ kind }) => kind === "tool.started");
  expect(started.map(({ idempotencyKey, probe }) => [idempotencyKey, probe])).toEqual(
    world.charged.map((key) => [key, true]),
  );
});

test.each(PROBES_WITHOUT_ANSWER)("a call stays unknown if its probe %s, and the turn goes on", async (_, given) => {
  await using here = await stage();
  const world = new World(here);
  vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const options = { probe: { charge: world.probe(given) }, probeMs: 5 };
  expect(await world.told(await world.killed(options), options)).toMatch(/may have taken effect/);
  expect([world.asked.length, world.charged.length]).toEqual([1, 1]);
});

test("a tool that died between two steps continues after the first, which returns its value without running", async () => {
  await using here = await stage();
  const world = new World(here);
  const options = { replay: { order: "safe" } } as const;
  const session = await world.killed(options, "order");
  expect(session.interruption?.calls).toMatchObject([{ id: "a", steps: [{ name: "reserve", state: "finished" }] }]);
  expect(await world.told(session, options)).toContain("charged for seven");
  expect(world.steps).toEqual(["reserve", "charge"]);
});

describe("a deploy cannot loosen the rule of a call", () => {
  test.each(RULES_OVER_A_DEPLOY)("%s", async (_, then, now, times) => {
    await using here = await stage();
    const world = new World(here);
    expect(await world.told(await world.killed(then), now)).toMatch(times === 1 ? /may have taken effect/ : /charged/);
    expect([world.charged.length, new Set(world.charged).size]).toEqual([times, 1]);
  });
});

test("every kind of tool can get its key; an agent that runs as a tool, and its tools, have that of its call", async () => {
  await using here = await stage();
  const seen: string[] = [];
  const note = (): string => String(seen.push(`${toolCall()?.id} ${toolCall()?.key}`));
  const noting = tool({ name: "note", description: "", parameters: z.object({}), execute: async () => note() });
  const helper = new Agent({
    name: "Helper",
    model: new ScriptedModel([[call("inner", "note")], [text("Helped.")]]),
    tools: [noting],
  });
  const shell = shellTool({
    shell: {
      run: async () => {
        note();
        return { output: [{ stdout: "ok", stderr: "", outcome: { type: "exit", exitCode: 0 } }] };
      },
    },
  } as never);
  const command = { type: "shell_call", callId: "c", action: { commands: ["true"] } } as AgentOutputItem;
  const script = [[call("a", "note"), call("b", "help", { input: "Help." })], [command], [text("Done.")]];
  const model = new ScriptedModel(script);
  const tools = [noting, helper.asTool({ toolName: "help", toolDescription: "" }), shell];
  await durable(here.session).run(new Agent({ name: "A", model, tools }), "Go.");
  const started = (await recordsOf(here.session as never)).filter(({ kind }) => kind === "tool.started");
  expect(seen.toSorted()).toEqual(started.map(({ call: id, idempotencyKey }) => `${id} ${idempotencyKey}`).toSorted());
  expect(started).toHaveLength(3);
  expect(toolCall()).toBe(null);
});
