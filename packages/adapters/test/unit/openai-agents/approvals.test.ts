import { Agent, type AgentOutputItem, tool } from "@openai/agents";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { durable } from "../../../src/openai-agents/index.ts";
import { recordsOf } from "../../agents.ts";
import { call, resultsIn, ScriptedModel, type Stage, stage, text } from "../../openai-agents/scripted.ts";

/** A person decides, perhaps in another process. */

interface World {
  readonly ran: string[];
  dies: string | null;
}

function agentOf(script: AgentOutputItem[][], world: World, here: Stage) {
  const noted = (name: string, needsApproval: boolean | (() => Promise<boolean>)) =>
    tool({
      name,
      description: "",
      parameters: z.object({}),
      needsApproval,
      execute: async () => {
        world.ran.push(name);
        if (world.dies === name) await here.session.close();
        return `${name} done`;
      },
    });
  const model = new ScriptedModel(script);
  const tools = [noted("read", false), noted("send", true), noted("post", async () => true)];
  return { model, agent: new Agent({ name: "A", model, tools }) };
}

const ASKS = [[text("I do it."), call("r", "read"), call("s", "send"), call("p", "post")]];

describe.each([
  ["at once", false],
  ["streamed", true],
] as const)("%s", (_, stream) => {
  const options = { stream } as { stream: true };

  test("calls are recorded as waiting together with the response", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: "read" };
    const { agent } = agentOf(ASKS, world, here);
    const held = durable(here.session);
    await held
      .run(agent, "Go.", options)
      .then((result) => held.finish(result))
      .catch(() => {});
    const session = await here.next();
    const states = session.interruption!.calls.map(({ id, state }) => `${id} ${state}`);
    expect(states).toEqual(["r outcome-unknown", "s awaiting", "p awaiting"]);
    expect(JSON.stringify(session.messages)).toContain("needsApproval");
  });

  test("in one process: the SDK's own way to go on", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: null };
    const { agent, model } = agentOf([...ASKS, [text("Done.")]], world, here);
    const held = durable(here.session);
    const first = await held.run(agent, "Go.", options);
    expect(await held.finish(first)).toEqual({ kind: "waiting" });
    expect(here.session.interruption).toMatchObject({ how: { kind: "suspended", reason: "approval" } });
    expect(world.ran).toEqual(["read"]);
    const [send, post] = first.interruptions;
    first.state.approve(send!);
    first.state.reject(post!, { message: "Not today." });
    const second = await held.run(agent, first.state, options);
    expect(await held.finish(second)).toEqual({ kind: "completed" });
    expect(second.finalOutput).toBe("Done.");
    expect(world.ran).toEqual(["read", "send"]);
    const results = resultsIn(model.inputs[1]);
    expect(results["s"]).toContain("send done");
    expect(results["p"]).toContain("Not today.");
    expect(JSON.stringify(model.inputs[1])).not.toContain("needsApproval");
    expect(here.session.interruption).toBe(null);
  });

  test("in the next process: the state is restored, what ran is not run again, and what was approved runs once", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: null };
    const before = agentOf(ASKS, world, here);
    const held = durable(here.session);
    await held.finish(await held.run(before.agent, "Go.", options));
    const session = await here.next();
    expect(session.interruption).toMatchObject({ how: { kind: "suspended" } });
    const { agent, model } = agentOf([[text("Done.")]], world, here);
    const next = durable(session);
    const found = await next.resume(agent, options);
    expect(await next.finish(found)).toEqual({ kind: "waiting" });
    expect(model.requests).toEqual([]);
    expect(found.interruptions.map(({ name }) => name)).toEqual(["send", "post"]);
    for (const item of found.interruptions) found.state.approve(item);
    const result = await next.run(agent, found.state, options);
    expect(await next.finish(result)).toEqual({ kind: "completed" });
    expect(world.ran.toSorted()).toEqual(["post", "read", "send"]);
    expect(model.inputs[0]!.slice(0, 5)).toEqual(
      JSON.parse(
        JSON.stringify(session.messages.slice(0, 5), (key, value) => (key === "needsApproval" ? undefined : value)),
      ),
    );
  });

  test("a decision is on disk before anything runs: nobody is asked twice", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: "send" };
    const before = agentOf(ASKS, world, here);
    const held = durable(here.session, { runner: { toolExecution: { maxFunctionToolConcurrency: 1 } } });
    const first = await held.run(before.agent, "Go.", options);
    await held.finish(first);
    const [send, post] = first.interruptions;
    first.state.approve(send!);
    first.state.reject(post!, { message: "Not today." });
    const dying = held.run(before.agent, first.state, options).then((result) => held.finish(result));
    await dying.catch(() => {});
    const session = await here.next();
    world.dies = null;
    const { agent, model } = agentOf([[text("Done.")]], world, here);
    const next = durable(session);
    expect(await next.finish(await next.resume(agent, options))).toEqual({ kind: "completed" });
    expect(world.ran).toEqual(["read", "send"]);
    const results = resultsIn(model.inputs[0]);
    expect(results["s"]).toMatch(/was running/i);
    expect(results["p"]).toContain("Not today.");
  });

  test("a new prompt instead of a decision: the model is told that nobody decided", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: null };
    const { agent, model } = agentOf([...ASKS, [text("All right.")]], world, here);
    const held = durable(here.session);
    await held.finish(await held.run(agent, "Go.", options));
    await held.finish(await held.run(agent, "Forget it.", options));
    expect(world.ran).toEqual(["read"]);
    expect(Object.keys(resultsIn(model.inputs[1]))).toEqual(["r", "s", "p"]);
    expect(here.session.interruption).toBe(null);
  });
});

test("an approval inside an agent that is a tool works in one process", async () => {
  await using here = await stage();
  const world: World = { ran: [], dies: null };
  const inner = agentOf([[call("i", "send")], [text("Helped.")]], world, here).agent;
  const model = new ScriptedModel([[call("a", "help", { input: "x" })], [text("Done.")]]);
  const agent = new Agent({ name: "Outer", model, tools: [inner.asTool({ toolName: "help", toolDescription: "" })] });
  const held = durable(here.session);
  const first = await held.run(agent, "Go.");
  expect(first.interruptions).toHaveLength(1);
  expect(world.ran).toEqual([]);
  first.state.approve(first.interruptions[0]!);
  const second = await held.run(agent, first.state);
  expect(second.finalOutput).toBe("Done.");
  expect(world.ran).toEqual(["send"]);
  expect(resultsIn(model.inputs[1])["a"]).toContain("Helped.");
  const kinds = (await recordsOf(here.session as never)).map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === "tool.started" || kind === "tool.ended")).toEqual([
    "tool.started",
    "tool.ended",
  ]);
});
