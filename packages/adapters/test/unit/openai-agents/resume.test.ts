import {
  Agent,
  type AgentInputItem,
  type AgentOutputItem,
  applyPatchTool,
  handoff,
  type RunContext,
  shellTool,
  tool,
} from "@openai/agents";
import type { Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { durable } from "../../../src/openai-agents/index.ts";
import { outline, recordsOf } from "../../agents.ts";
import { call, resultsIn, ScriptedModel, type Stage, stage, text } from "../../openai-agents/scripted.ts";

/** Going on with the turn that another process left. */

const nothing = z.object({});

interface World {
  readonly ran: string[];
  /** The tool in which the process dies. */
  dies: string | null;
}

/** A tool that notes that it ran. */
function noted(name: string, world: World, here: Stage, needsApproval = false) {
  return tool({
    name,
    description: "",
    parameters: nothing,
    needsApproval,
    execute: async () => {
      world.ran.push(name);
      if (world.dies === name) await here.session.close();
      return `${name} done`;
    },
  });
}

async function dead(life: Promise<unknown>): Promise<void> {
  await life.then(
    () => {},
    () => {},
  );
}

const records = async (session: Session<AgentInputItem>): Promise<string[]> =>
  outline(await recordsOf(session as never));

describe.each([
  ["at once", false],
  ["streamed", true],
] as const)("%s", (_, stream) => {
  const options = { stream } as { stream: true };
  const ended = async (held: ReturnType<typeof durable>, agent: Agent) => {
    const result = await held.resume(agent, options);
    const outcome = await held.finish(result);
    return { result, outcome };
  };

  test("what returned is not run again, what never started is run, and of the rest the model is told how far it got", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: "send" };
    const make = (script: AgentOutputItem[][]) => {
      const model = new ScriptedModel(script);
      const tools = ["read", "send", "post"].map((name) => noted(name, world, here));
      const config = { toolExecution: { maxFunctionToolConcurrency: 1 } };
      return { model, agent: new Agent({ name: "A", model, tools }), config };
    };
    const first = make([[text("I do it."), call("a", "read"), call("b", "send"), call("c", "post")]]);
    await dead(durable(here.session, { runner: first.config }).run(first.agent, "Go."));
    expect(world.ran).toEqual(["read", "send"]);

    const session = await here.next();
    world.dies = null;
    const again = make([[text("Done.")]]);
    const { result, outcome } = await ended(durable(session, { runner: again.config }), again.agent);
    expect(outcome).toEqual({ kind: "completed" });
    expect(result.finalOutput).toBe("Done.");
    expect(world.ran).toEqual(["read", "send", "post"]);
    expect(again.model.requests).toHaveLength(1);
    const results = resultsIn(again.model.inputs[0]);
    expect(results["a"]).toContain("read done");
    expect(results["b"]).toMatch(/was running/i);
    expect(results["c"]).toContain("post done");
    expect(session.interruption).toBe(null);
  });

  test("what is safe to repeat is run again", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: "read" };
    const agentOf = (script: AgentOutputItem[][]) =>
      new Agent({ name: "A", model: new ScriptedModel(script), tools: [noted("read", world, here)] });
    const safe = { replay: { read: "safe" } } as const;
    await dead(durable(here.session, safe).run(agentOf([[call("a", "read")]]), "Go."));
    world.dies = null;
    expect((await ended(durable(await here.next(), safe), agentOf([[text("Done.")]]))).outcome.kind).toBe("completed");
    expect(world.ran).toEqual(["read", "read"]);
  });

  test("a turn whose answer was recorded is completed, and the answer returned, without asking", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: null };
    const guarded: string[] = [];
    const agentOf = (model: ScriptedModel) =>
      new Agent({
        name: "A",
        model,
        tools: [noted("read", world, here)],
        outputGuardrails: [
          {
            name: "polite",
            execute: async ({ agentOutput }) => {
              guarded.push(String(agentOutput));
              if (guarded.length === 1) await here.session.close();
              return { tripwireTriggered: false, outputInfo: {} };
            },
          },
        ],
      });
    await dead(durable(here.session).run(agentOf(new ScriptedModel([[call("a", "read")], [text("Done.")]])), "Go."));
    const session = await here.next();
    expect(session.interruption).toMatchObject({ answered: true });
    const before = session.messages;
    const model = new ScriptedModel([]);
    const { result, outcome } = await ended(durable(session), agentOf(model));
    expect(outcome).toEqual({ kind: "completed" });
    expect(result.finalOutput).toBe("Done.");
    expect(guarded, "the guardrail had not answered").toEqual(["Done.", "Done."]);
    expect(model.requests).toEqual([]);
    expect(world.ran).toEqual(["read"]);
    expect(session.messages).toEqual(before);
    expect(session.interruption).toBe(null);
  });

  test("a recorded answer that a guardrail rejects leaves a failed turn", async () => {
    await using here = await stage();
    let isDead = false;
    const agentOf = (model: ScriptedModel) =>
      new Agent({
        name: "A",
        model,
        outputGuardrails: [
          {
            name: "polite",
            execute: async () => {
              if (!isDead) await here.session.close();
              const tripwireTriggered = isDead;
              isDead = true;
              return { tripwireTriggered, outputInfo: {} };
            },
          },
        ],
      });
    await dead(durable(here.session).run(agentOf(new ScriptedModel([[text("Rude.")]])), "Go."));
    const session = await here.next();
    const held = durable(session);
    const done = held.resume(agentOf(new ScriptedModel([])), options).then((result) => held.finish(result));
    if (stream) expect(await done).toMatchObject({ kind: "failed" });
    else await expect(done).rejects.toThrow(/guardrail/i);
    expect(session.interruption?.how.kind).toBe("failed");
  });

  test("hand-offs: the agent that the turn was handed to goes on, and the hand-off takes place once", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: "send" };
    const handed: string[] = [];
    const make = (script: AgentOutputItem[][]) => {
      const model = new ScriptedModel(script);
      const writer = new Agent({ name: "Writer", model, instructions: "write", tools: [noted("send", world, here)] });
      const onHandoff = async (context: RunContext<unknown>): Promise<void> => {
        handed.push(typeof context);
      };
      const triage = new Agent({
        name: "Triage",
        model,
        instructions: "sort",
        handoffs: [handoff(writer, { onHandoff })],
      });
      return { model, triage };
    };
    const first = make([[call("h", "transfer_to_Writer")], [call("a", "send")]]);
    await dead(durable(here.session).run(first.triage, "Go."));
    expect(first.model.requests.map(({ systemInstructions }) => systemInstructions)).toEqual(["sort", "write"]);
    const session = await here.next();
    expect(await records(session)).toContain("tool.ended h");
    world.dies = null;
    const again = make([[text("Done.")]]);
    const held = durable(session);
    const { result } = await ended(held, again.triage);
    expect(again.model.requests.map(({ systemInstructions }) => systemInstructions)).toEqual(["write"]);
    expect(again.model.inputs[0]!.slice(0, first.model.inputs[1]!.length)).toEqual(first.model.inputs[1]);
    expect(result.lastAgent?.name).toBe("Writer");
    expect(handed).toHaveLength(1);
    expect(held.lastAgent(again.triage).name).toBe("Writer");
  });

  test("hand-offs: what a filter keeps from the next agent is kept from it after a death, too", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: "send" };
    const make = (script: AgentOutputItem[][]) => {
      const model = new ScriptedModel(script);
      const writer = new Agent({ name: "Writer", model, tools: [noted("send", world, here)] });
      const triage = new Agent({
        name: "Triage",
        model,
        handoffs: [
          handoff(writer, {
            inputFilter: (data) => ({ ...data, inputHistory: [{ role: "user", content: "Write." }] }),
          }),
        ],
      });
      return { model, triage };
    };
    const first = make([[call("h", "transfer_to_Writer")], [call("a", "send")]]);
    await dead(durable(here.session).run(first.triage, "My secret."));
    expect(JSON.stringify(first.model.inputs[1])).not.toContain("My secret.");
    world.dies = null;
    const again = make([[text("Done.")]]);
    await ended(durable(await here.next()), again.triage);
    expect(JSON.stringify(again.model.inputs)).not.toContain("My secret.");
    expect(again.model.inputs[0]!.slice(0, first.model.inputs[1]!.length)).toEqual(first.model.inputs[1]);
    expect(resultsIn(again.model.inputs[0])["a"]).toMatch(/was running/i);
  });

  test("a turn waits for a tool that no longer exists, and goes on in a version that has it", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: "read" };
    const config = { toolExecution: { maxFunctionToolConcurrency: 1 } };
    const model = new ScriptedModel([[call("a", "read"), call("b", "gone")]]);
    const tools = [noted("read", world, here), noted("gone", world, here)];
    await dead(durable(here.session, { runner: config }).run(new Agent({ name: "A", model, tools }), "Go."));
    world.dies = null;
    const again = new ScriptedModel([[text("Done.")]]);
    const agent = new Agent({ name: "A", model: again, tools: [noted("read", world, here)] });
    const session = await here.next();
    for (const _ of ["at first", "still"]) {
      await expect(ended(durable(session), agent)).rejects.toMatchObject({
        code: "TOOL_MISSING",
        facts: { tools: ["gone"], calls: ["b"] },
      });
      expect(session.interruption).toMatchObject({ how: { kind: "suspended" }, calls: [{ id: "b" }] });
    }
    expect(again.inputs).toEqual([]);
    const whole = new Agent({ name: "A", model: again, tools });
    expect((await ended(durable(session), whole)).outcome.kind).toBe("completed");
    expect(resultsIn(again.inputs[0])["b"]).toContain("gone done");
    expect(world.ran).toEqual(["read", "gone"]);
  });

  test("shell commands and patches: each is recorded, and not run again", async () => {
    await using here = await stage();
    const ran: string[] = [];
    let dies = true;
    const make = (script: AgentOutputItem[][]) => {
      const model = new ScriptedModel(script);
      const edit = async ({ path }: { path: string }) => {
        ran.push(path);
        if (path === "b" && dies) await here.session.close();
        return { status: "completed" as const, output: `changed ${path}` };
      };
      const tools = [
        shellTool({
          shell: {
            run: async ({ commands }) => {
              ran.push(...commands);
              return { output: [{ stdout: "listed", stderr: "", outcome: { type: "exit" as const, exitCode: 0 } }] };
            },
          },
        }),
        applyPatchTool({ editor: { createFile: edit, updateFile: edit, deleteFile: edit } }),
      ];
      return { model, agent: new Agent({ name: "A", model, tools }) };
    };
    const first = make([
      [{ type: "shell_call", callId: "s", action: { commands: ["ls"] } }],
      [
        { type: "apply_patch_call", callId: "p", status: "completed", operation: { type: "delete_file", path: "a" } },
        { type: "apply_patch_call", callId: "q", status: "completed", operation: { type: "delete_file", path: "b" } },
        { type: "apply_patch_call", callId: "r", status: "completed", operation: { type: "delete_file", path: "c" } },
      ],
    ]);
    await dead(durable(here.session).run(first.agent, "Go."));
    expect(ran).toEqual(["ls", "a", "b"]);
    dies = false;
    const session = await here.next();
    const again = make([[text("Done.")]]);
    expect((await ended(durable(session), again.agent)).outcome.kind).toBe("completed");
    expect(ran).toEqual(["ls", "a", "b", "c"]);
    const sent = JSON.stringify(again.model.inputs[0]);
    expect(sent).toContain("listed");
    expect(sent).toContain("changed a");
    expect(sent).toMatch(/was running/i);
    expect(sent).toContain("changed c");
    expect(again.model.inputs[0]!.slice(0, first.model.inputs[1]!.length)).toEqual(first.model.inputs[1]);
  });

  test("an agent as a tool is one call: it is told as interrupted, and what it did is not done again", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: "send" };
    const make = (script: AgentOutputItem[][], inner: AgentOutputItem[][]) => {
      const model = new ScriptedModel(script);
      const helper = new Agent({
        name: "Helper",
        model: new ScriptedModel(inner),
        tools: [noted("send", world, here)],
      });
      return {
        model,
        agent: new Agent({ name: "A", model, tools: [helper.asTool({ toolName: "help", toolDescription: "" })] }),
      };
    };
    const inner = [[call("i", "send")], [text("Helped.")]];
    const first = make([[call("a", "help", { input: "x" })]], inner);
    await dead(durable(here.session).run(first.agent, "Go."));
    const session = await here.next();
    expect((await records(session)).filter((line) => line.startsWith("tool"))).toEqual(["tool.started a"]);
    world.dies = null;
    const again = make([[text("Done.")]], []);
    expect((await ended(durable(session), again.agent)).outcome.kind).toBe("completed");
    expect(resultsIn(again.model.inputs[0])["a"]).toMatch(/was running/i);
    expect(world.ran).toEqual(["send"]);
  });

  test("an agent as a tool: its answer is the outcome of the call", async () => {
    await using here = await stage();
    const world: World = { ran: [], dies: null };
    const helper = new Agent({
      name: "Helper",
      model: new ScriptedModel([[call("i", "send")], [text("Helped.")]]),
      tools: [noted("send", world, here)],
    });
    const model = new ScriptedModel([[call("a", "help", { input: "x" })], [text("Done.")]]);
    const agent = new Agent({ name: "A", model, tools: [helper.asTool({ toolName: "help", toolDescription: "" })] });
    const held = durable(here.session);
    await held.finish(await held.run(agent, "Go.", options));
    expect(resultsIn(model.inputs[1])["a"]).toContain("Helped.");
    expect(await records(here.session)).not.toContain("tool.started i");
  });
});

test("the output of a tool that ended the run is returned again, without asking", async () => {
  await using here = await stage();
  const world: World = { ran: [], dies: null };
  const agentOf = (model: ScriptedModel) =>
    new Agent({
      name: "A",
      model,
      tools: [noted("read", world, here)],
      toolUseBehavior: "stop_on_first_tool",
      outputGuardrails: [
        {
          name: "late",
          execute: async () => {
            await here.session.close();
            return { tripwireTriggered: false, outputInfo: {} };
          },
        },
      ],
    });
  await dead(durable(here.session).run(agentOf(new ScriptedModel([[call("a", "read")]])), "Go."));
  const model = new ScriptedModel([]);
  const result = await durable(await here.next()).resume(agentOf(model));
  expect(result.finalOutput).toBe("read done");
  expect(model.requests).toEqual([]);
  expect(world.ran).toEqual(["read"]);
});

test("guardrails of tools: what one withholds gets neither to the model nor into the journal, and each is asked once", async () => {
  await using here = await stage();
  let asked = 0;
  const read = tool({
    name: "read",
    description: "",
    parameters: nothing,
    execute: async () => "the secret",
    outputGuardrails: [
      {
        name: "secrets",
        run: async () => {
          asked++;
          return { behavior: { type: "rejectContent", message: "withheld" }, outputInfo: {} };
        },
      },
    ],
  });
  const model = new ScriptedModel([[call("a", "read")], [text("Done.")]]);
  await durable(here.session).run(new Agent({ name: "A", model, tools: [read] }), "Go.");
  expect(asked).toBe(1);
  expect(resultsIn(model.inputs[1])["a"]).toContain("withheld");
  expect(JSON.stringify(await recordsOf(here.session as never))).not.toContain("the secret");
});

test("guardrails of agents: what one rejects is not sent in later turns", async () => {
  await using here = await stage();
  const trips = (word: string) => ({
    name: word,
    execute: async (given: { input?: unknown; agentOutput?: unknown }) => ({
      tripwireTriggered: JSON.stringify(given.agentOutput ?? given.input).includes(word),
      outputInfo: {},
    }),
  });
  const model = new ScriptedModel(({ input }) => {
    const last = JSON.stringify((input as AgentInputItem[]).at(-1));
    if (last.includes("poison")) return [text("Answered beside the guardrail.")];
    return [text(last.includes("Hello.") ? "A rude answer." : "Fine.")];
  });
  const agent = new Agent({ name: "A", model, inputGuardrails: [trips("poison")], outputGuardrails: [trips("rude")] });
  const held = durable(here.session);
  await expect(held.run(agent, "Some poison.")).rejects.toThrow(/guardrail/i);
  await expect(held.run(agent, "Hello.")).rejects.toThrow(/guardrail/i);
  await held.run(agent, "And now?");
  const sent = model.inputs.slice(-2).map((input) => JSON.stringify(input));
  for (const one of sent) expect(one).not.toContain("Some poison.");
  for (const one of sent) expect(one).not.toContain("Answered beside");
  expect(sent.at(-1)).toContain("Hello.");
  expect(sent.at(-1)).not.toContain("A rude answer.");
});

test("a tool that the SDK gave up on has the SDK's words as its outcome", async () => {
  await using here = await stage();
  const slow = tool({
    name: "slow",
    description: "",
    parameters: nothing,
    timeoutMs: 5,
    execute: () => new Promise<string>(() => {}),
  });
  const model = new ScriptedModel([[call("a", "slow")], [text("Done.")]]);
  await durable(here.session).run(new Agent({ name: "A", model, tools: [slow] }), "Go.");
  expect(resultsIn(model.inputs[1])["a"]).toMatch(/timed out/);
});

test("NOTHING_TO_RESUME, and a state from elsewhere is refused", async () => {
  await using here = await stage();
  const held = durable(here.session);
  const agent = new Agent({ name: "A", model: new ScriptedModel([[text("Done.")]]) });
  await expect(held.resume(agent)).rejects.toMatchObject({ code: "NOTHING_TO_RESUME" });
  const result = await held.run(agent, "Go.");
  await expect(durable(here.session).run(agent, result.state)).rejects.toThrow(/resume\(\)/);
});
