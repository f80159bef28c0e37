import { Agent, type AgentInputItem, type AgentOutputItem, RunContext, tool } from "@openai/agents";
import type { Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { NOTE } from "../../../src/openai-agents/decisions.ts";
import { durable } from "../../../src/openai-agents/index.ts";
import { call, resultsIn, ScriptedModel, type Stage, stage, text } from "../../openai-agents/scripted.ts";

/** Approvals inside of agents that are tools. What a process knew of them is lost with it, except for the journal. */

interface World {
  readonly ran: string[];
  /** The process ends while this tool runs. */
  dies?: string;
}

type Extractor = (result: { readonly interruptions: readonly unknown[] }) => string;

interface Scripts {
  readonly outer: AgentOutputItem[][];
  readonly inner: AgentOutputItem[][];
  readonly innermost?: AgentOutputItem[][];
  readonly extractor?: Extractor;
  /** The tools of the agent inside. */
  readonly names?: readonly string[];
}

function agentsOf(scripts: Scripts, world: World, here: Stage) {
  const { outer, inner, innermost = [], extractor, names = ["read", "send"] } = scripts;
  const noted = (name: string) =>
    tool({
      name,
      description: "",
      parameters: z.object({}),
      needsApproval: name !== "read",
      execute: async () => {
        world.ran.push(name);
        if (world.dies === name) await here.session.close();
        return `${name} done`;
      },
    });
  const models = { outer: new ScriptedModel(outer), inner: new ScriptedModel(inner) };
  const deepest = new Agent({ name: "Innermost", model: new ScriptedModel(innermost), tools: [noted("post")] });
  const deep = deepest.asTool({ toolName: "deep", toolDescription: "" });
  const helper = new Agent({ name: "Inner", model: models.inner, tools: [...names.map(noted), deep] });
  const options = { toolName: "help", toolDescription: "", ...(extractor ? { customOutputExtractor: extractor } : {}) };
  const tools = [helper.asTool(options as never), noted("post")];
  return { agent: new Agent({ name: "Outer", model: models.outer, tools }), models };
}

const HELP = [call("a", "help", { input: "x" })];
const SEND = [[call("r", "read")], [call("i", "send")]];

/** A first process, up to where it waits. The next one finds what is on disk. */
async function waiting(here: Stage, world: World, scripts: Partial<Scripts> = {}): Promise<Session<AgentInputItem>> {
  const { agent } = agentsOf({ outer: [HELP], inner: SEND, ...scripts }, world, here);
  const held = durable(here.session);
  const first = await held.run(agent, "Go.");
  expect(await held.finish(first)).toEqual({ kind: "waiting" });
  return here.next();
}

describe("in the next process", () => {
  test("an agent that is a tool waits where it waited, and goes on when a person has decided", async () => {
    await using here = await stage();
    const world: World = { ran: [] };
    const session = await waiting(here, world);
    expect(session.interruption).toMatchObject({ how: { kind: "suspended" }, calls: [{ id: "a" }] });
    const { agent, models } = agentsOf({ outer: [[text("Done.")]], inner: [[text("Helped.")]] }, world, here);
    const next = durable(session);
    const found = await next.resume(agent);
    expect(await next.finish(found)).toEqual({ kind: "waiting" });
    expect([models.outer.requests, models.inner.requests, world.ran]).toEqual([[], [], ["read"]]);
    expect(found.interruptions.map(({ name, agent: of }) => `${of.name}: ${name}`)).toEqual(["Inner: send"]);
    found.state.approve(found.interruptions[0]!);
    const result = await next.run(agent, found.state);
    expect(result.finalOutput).toBe("Done.");
    expect(world.ran).toEqual(["read", "send"]);
    expect(resultsIn(models.inner.inputs[0])).toMatchObject({ r: expect.stringContaining("read done") });
    expect(resultsIn(models.outer.inputs[0])["a"]).toContain("Helped.");
    expect(session.interruption).toBe(null);
  });

  test("a rejection reaches the agent inside", async () => {
    await using here = await stage();
    const world: World = { ran: [] };
    const session = await waiting(here, world);
    const { agent, models } = agentsOf({ outer: [[text("Done.")]], inner: [[text("All right.")]] }, world, here);
    const next = durable(session);
    const found = await next.resume(agent);
    found.state.reject(found.interruptions[0]!, { message: "Not today." });
    await next.run(agent, found.state);
    expect(world.ran).toEqual(["read"]);
    expect(resultsIn(models.inner.inputs[0])["i"]).toContain("Not today.");
    expect(resultsIn(models.outer.inputs[0])["a"]).toContain("All right.");
  });

  test("it waits again in a third process, and two agents deep", async () => {
    await using here = await stage();
    const world: World = { ran: [] };
    const inner = [[call("d", "deep", { input: "x" })]];
    const second = await waiting(here, world, { inner, innermost: [[call("p", "post")]] });
    const none = { outer: [], inner: [] };
    expect((await durable(second).resume(agentsOf(none, world, here).agent)).interruptions).toHaveLength(1);
    await second.close();
    const third = await here.next();
    const scripts = { outer: [[text("Done.")]], inner: [[text("Helped.")]], innermost: [[text("Posted.")]] };
    const { agent } = agentsOf(scripts, world, here);
    const held = durable(third);
    const found = await held.resume(agent);
    expect(found.interruptions.map(({ agent: of }) => of.name)).toEqual(["Innermost"]);
    found.state.approve(found.interruptions[0]!);
    expect((await held.run(agent, found.state)).finalOutput).toBe("Done.");
    expect(world.ran).toEqual(["post"]);
  });

  test("a process that dies after the decision: the call is in doubt, told, and not run again", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: "send" };
    const { agent: before } = agentsOf({ outer: [HELP], inner: [...SEND, [text("Helped.")]] }, world, here);
    const held = durable(here.session);
    const first = await held.run(before, "Go.");
    first.state.approve(first.interruptions[0]!);
    await held.run(before, first.state).catch(() => {});
    const session = await here.next();
    const { agent, models } = agentsOf({ outer: [[text("Done.")]], inner: [] }, world, here);
    const result = await durable(session).resume(agent);
    expect(result.finalOutput).toBe("Done.");
    expect(world.ran).toEqual(["read", "send"]);
    expect(resultsIn(models.outer.inputs[0])["a"]).toMatch(/may have taken effect/);
  });

  test("a context that holds approvals already: the agent no longer counts as waiting before it goes on", async () => {
    await using here = await stage();
    const world: World = { ran: [] };
    const session = await waiting(here, world);
    const { agent } = agentsOf({ outer: [[text("Done.")]], inner: [[text("Helped.")]] }, world, here);
    const context = new RunContext({});
    expect(session.attributes.notes?.[NOTE]).toMatchObject({ waiting: { a: { $schemaVersion: expect.any(String) } } });
    let asked: unknown;
    const next = durable(session);
    next.runner.on("agent_tool_start", () => {
      asked = session.attributes.notes?.[NOTE];
    });
    await next.resume(agent, { context });
    expect(asked).toEqual({ turn: 1, decisions: {} });
  });

  test("an agent that changed and cannot be restored: the call is in doubt, and told", async () => {
    await using here = await stage();
    const world: World = { ran: [] };
    const session = await waiting(here, world);
    const { agent, models } = agentsOf({ outer: [[text("Done.")]], inner: [], names: ["read"] }, world, here);
    const result = await durable(session).resume(agent);
    expect(result.finalOutput).toBe("Done.");
    expect(resultsIn(models.outer.inputs[0])["a"]).toMatch(/may have taken effect/);
    expect(world.ran).toEqual(["read"]);
    expect(session.interruption).toBe(null);
  });

  test("a new prompt instead of a decision: the model is told that the call was cut off", async () => {
    await using here = await stage();
    const world: World = { ran: [] };
    const session = await waiting(here, world);
    const { agent, models } = agentsOf({ outer: [[text("All right.")]], inner: [] }, world, here);
    await durable(session).run(agent, "Forget it.");
    expect(resultsIn(models.outer.inputs[0])["a"]).toMatch(/may have taken effect/);
    expect(world.ran).toEqual(["read"]);
  });
});

test("a state that a later run has replaced is refused: what it would do may be done already", async () => {
  await using here = await stage();
  const world: World = { ran: [] };
  const scripts = { outer: [HELP, [text("Done.")]], inner: [...SEND, [text("Helped.")]] };
  const { agent } = agentsOf(scripts, world, here);
  const held = durable(here.session);
  const first = await held.run(agent, "Go.");
  const second = await held.resume(agent);
  expect(second.interruptions).toHaveLength(1);
  first.state.approve(first.interruptions[0]!);
  await expect(held.run(agent, first.state)).rejects.toThrow(/later run/);
  expect(world.ran).toEqual(["read"]);
  second.state.approve(second.interruptions[0]!);
  expect((await held.run(agent, second.state)).finalOutput).toBe("Done.");
  expect(world.ran).toEqual(["read", "send"]);
});

test("each text of a recorded state is redacted by itself, and the agent waits all the same", async () => {
  await using here = await stage({ redact: (said) => said.replaceAll("secret", "[redacted]") });
  const world: World = { ran: [] };
  const session = await waiting(here, world, { inner: [[text("The secret word."), call("i", "send")]] });
  const note = JSON.stringify(session.attributes.notes?.[NOTE]);
  expect([note.includes("The [redacted] word."), note.includes("secret")]).toEqual([true, false]);
  const { agent } = agentsOf({ outer: [], inner: [] }, world, here);
  expect((await durable(session).resume(agent)).interruptions).toHaveLength(1);
});

test("a decision inside is not taken for one about a call of the turn with the same id", async () => {
  await using here = await stage();
  const world: World = { ran: [], dies: "send" };
  const scripts = { outer: [[...HELP, call("x", "post")]], inner: [[call("x", "send")]] };
  const { agent: before } = agentsOf(scripts, world, here);
  const held = durable(here.session);
  const first = await held.run(before, "Go.");
  const inside = first.interruptions.find(({ name }) => name === "send")!;
  first.state.approve(inside);
  await held.run(before, first.state).catch(() => {});
  const session = await here.next();
  const { agent } = agentsOf({ outer: [], inner: [] }, world, here);
  const found = await durable(session).resume(agent);
  expect(found.interruptions.map(({ name }) => name)).toEqual(["post"]);
  expect(world.ran).toEqual(["send"]);
});

describe("an output extractor of the application's own", () => {
  test("that gives an output before the approval fails the run, since the output would count as the outcome", async () => {
    await using here = await stage();
    const world: World = { ran: [] };
    const { agent } = agentsOf({ outer: [HELP], inner: SEND, extractor: () => "not yet" }, world, here);
    await expect(durable(here.session).run(agent, "Go.")).rejects.toThrow(/customOutputExtractor.*"a"/);
    expect(here.session.interruption).toMatchObject({ how: { kind: "failed" } });
    expect(world.ran).toEqual(["read"]);
  });

  test("that gives none while calls wait works", async () => {
    await using here = await stage();
    const world: World = { ran: [] };
    const extractor: Extractor = ({ interruptions }) => (interruptions.length > 0 ? "" : "extracted");
    const session = await waiting(here, world, { extractor });
    const scripts = { outer: [[text("Done.")]], inner: [[text("Helped.")]], extractor };
    const { agent, models } = agentsOf(scripts, world, here);
    const next = durable(session);
    const found = await next.resume(agent);
    found.state.approve(found.interruptions[0]!);
    await next.run(agent, found.state);
    expect(resultsIn(models.outer.inputs[0])["a"]).toContain("extracted");
  });
});
