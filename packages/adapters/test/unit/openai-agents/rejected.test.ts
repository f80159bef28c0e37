import {
  Agent,
  type AgentInputItem,
  type AgentOutputItem,
  type AgentOutputType,
  InputGuardrailTripwireTriggered,
  MaxTurnsExceededError,
  ModelBehaviorError,
  ModelRefusalError,
  OutputGuardrailTripwireTriggered,
  type ToolCallError,
  ToolInputGuardrailTripwireTriggered,
  ToolOutputGuardrailTripwireTriggered,
  tool,
  ToolGuardrailFunctionOutputFactory as Verdict,
} from "@openai/agents";
import { openStore, type Session, type Store } from "holdfast";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { durable, openaiAgents, type RunOptions } from "../../../src/openai-agents/index.ts";
import { call, resultsIn, ScriptedModel, text } from "../../openai-agents/scripted.ts";

/** The program of the guide, started again and again: what the SDK rejects must not end it at every start. */

interface Started {
  readonly model: ScriptedModel;
  readonly output: unknown;
  readonly error: unknown;
}

class Program implements AsyncDisposable {
  readonly ran: string[] = [];
  readonly #store: Store;
  readonly #stream: boolean;
  session: Session<AgentInputItem> | null = null;
  prompt = "Go.";

  private constructor(store: Store, stream: boolean) {
    this.#store = store;
    this.#stream = stream;
  }

  static async of(stream: boolean): Promise<Program> {
    return new Program(await openStore("memory:", { recordsToolStarts: true, dialects: [openaiAgents] }), stream);
  }

  noted(name: string, settings: object = {}) {
    const execute = async (): Promise<string> => {
      this.ran.push(name);
      return `${name} done`;
    };
    return tool({ name, description: "", parameters: z.object({}), execute, ...settings });
  }

  async start(script: AgentOutputItem[][], settings: object = {}, options: RunOptions = {}): Promise<Started> {
    await this.session?.close();
    const open = { dialect: openaiAgents };
    const session = (await this.#store.resumeLatest({}, open)) ?? (await this.#store.create(open));
    this.session = session;
    const model = new ScriptedModel(script);
    const agent = new Agent<unknown, AgentOutputType>({ name: "A", model, ...settings });
    const agents = durable(session);
    const all = { ...options, stream: this.#stream } as { stream: true };
    try {
      const result = session.interruption ? await agents.resume(agent, all) : await agents.run(agent, this.prompt, all);
      const outcome = await agents.finish(result);
      if (outcome.kind === "failed") return { model, output: null, error: outcome.error };
      expect(outcome.kind).toBe("completed");
      return { model, output: result.finalOutput, error: null };
    } catch (error) {
      return { model, output: null, error };
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#store.close();
  }
}

const refusal = (said: string): AgentOutputItem => ({
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "refusal", refusal: said }],
});
const isPolite = {
  name: "polite",
  execute: async ({ agentOutput }: { agentOutput: unknown }) => ({
    tripwireTriggered: String(agentOutput).includes("rude"),
    outputInfo: {},
  }),
};
const textsIn = (input: readonly AgentInputItem[] | undefined): string => JSON.stringify(input);

describe.each([
  ["at once", false],
  ["streamed", true],
] as const)("%s", (_, stream) => {
  test.each([
    ["an output guardrail", "rude", { outputGuardrails: [isPolite] }, OutputGuardrailTripwireTriggered, "Kind."],
    ["a schema", "no JSON", { outputType: z.object({ n: z.number() }) }, ModelBehaviorError, '{"n":3}'],
    ["a refusal", null, {}, ModelRefusalError, "Well then."],
  ] as const)(
    "%s rejects the answer: the model is asked again, and told why",
    async (_name, said, settings, kind, good) => {
      await using program = await Program.of(stream);
      const rejected = said === null ? refusal("I will not.") : text(said);
      const tools = [program.noted("look")];
      const first = await program.start([[call("a", "look")], [rejected]], { ...settings, tools });
      expect(first.error).toBeInstanceOf(kind);

      const again = await program.start([[rejected]], { ...settings, tools });
      expect(again.error).toBeInstanceOf(kind);
      expect(again.model.requests).toHaveLength(1);

      const last = await program.start([[text(good)]], { ...settings, tools });
      expect(last.error).toBe(null);
      expect(last.output).toEqual(good.startsWith("{") ? { n: 3 } : good);
      expect(last.model.requests).toHaveLength(1);
      expect(textsIn(last.model.inputs[0])).toMatch(/This turn was interrupted: it failed/);
      expect(program.ran).toEqual(["look"]);
      expect(program.session!.interruption).toBe(null);

      // Later turns do not see what was rejected.
      const next = await program.start([[text("Bye.")]]);
      const seen = textsIn(next.model.inputs[0]);
      expect(seen).toContain(JSON.stringify(good).slice(1, -1));
      expect(seen).not.toContain(said ?? '"refusal"');
    },
  );

  test("an input guardrail rejects the prompt: the turn is over, and the next prompt is taken", async () => {
    await using program = await Program.of(stream);
    const execute = async ({ input }: { input: unknown }) => ({
      tripwireTriggered: JSON.stringify(input).includes("poison"),
      outputInfo: {},
    });
    const settings = { inputGuardrails: [{ name: "harmless", execute }] };
    program.prompt = "Some poison.";
    const first = await program.start([[text("Beside it.")]], settings);
    expect(first.error).toBeInstanceOf(InputGuardrailTripwireTriggered);
    program.prompt = "Hello.";
    const next = await program.start([[text("Hello.")]], settings);
    expect(next.output).toBe("Hello.");
    expect(next.model.inputs[0]).toHaveLength(1);
  });

  test.each(["inputGuardrails", "outputGuardrails"] as const)(
    "a tool's %s end the run: the model is told at the next start",
    async (which) => {
      await using program = await Program.of(stream);
      const trips = {
        type: which === "inputGuardrails" ? "tool_input" : "tool_output",
        name: "no",
        run: async () => Verdict.throwException(),
      };
      const tools = [program.noted("send", { [which]: [trips] })];
      const first = await program.start([[call("a", "send")]], { tools });
      const kind =
        which === "inputGuardrails" ? ToolInputGuardrailTripwireTriggered : ToolOutputGuardrailTripwireTriggered;
      expect((first.error as ToolCallError).error).toBeInstanceOf(kind);
      const ran = which === "inputGuardrails" ? [] : ["send"];
      expect(program.ran).toEqual(ran);

      const again = await program.start([[text("Well then.")]], { tools });
      expect(again.output).toBe("Well then.");
      expect(resultsIn(again.model.inputs[0])["a"]).toMatch(/guardrail/i);
      expect(textsIn(again.model.inputs[0])).not.toContain("send done");
      expect(program.ran).toEqual(ran);
    },
  );

  test.each([
    ["needsApproval", {}],
    ["an input guardrail", { type: "tool_input", name: "no" }],
  ])("%s fails on a call: the call does not run, and the model is told at the next start", async (name, guardrail) => {
    await using program = await Program.of(stream);
    const fails = async (): Promise<never> => {
      throw new Error("no such path");
    };
    const checks =
      name === "needsApproval" ? { needsApproval: fails } : { inputGuardrails: [{ ...guardrail, run: fails }] };
    const tools = [program.noted("send", checks)];
    const first = await program.start([[call("a", "send")]], { tools });
    expect(String(first.error)).toContain("no such path");
    const again = await program.start([[text("Well then.")]], { tools });
    expect(again.output).toBe("Well then.");
    expect(resultsIn(again.model.inputs[0])["a"]).toMatch(/Not run.*no such path/);
    expect(program.ran).toEqual([]);
  });

  test("a run that is out of turns goes on at the next start, with as many again", async () => {
    await using program = await Program.of(stream);
    const tools = [program.noted("look")];
    const first = await program.start([[call("a", "look")], [call("b", "look")]], { tools }, { maxTurns: 2 });
    expect(first.error).toBeInstanceOf(MaxTurnsExceededError);
    const again = await program.start([[call("c", "look")], [call("d", "look")]], { tools }, { maxTurns: 2 });
    expect(again.error).toBeInstanceOf(MaxTurnsExceededError);
    expect(again.model.requests).toHaveLength(2);
    const last = await program.start([[text("Done.")]], { tools }, { maxTurns: 2 });
    expect(last.output).toBe("Done.");
    expect(program.ran).toEqual(["look", "look", "look", "look"]);
  });

  test("what an error handler answers is recorded, since the user sees it", async () => {
    await using program = await Program.of(stream);
    const tools = [program.noted("look")];
    const errorHandlers = { maxTurns: () => ({ finalOutput: "I am out of turns." }) };
    const first = await program.start([[call("a", "look")]], { tools }, { maxTurns: 1, errorHandlers });
    expect(first.output).toBe("I am out of turns.");
    expect(program.session!.interruption).toBe(null);
    const next = await program.start([[text("Bye.")]]);
    expect(textsIn(next.model.inputs[0])).toContain("I am out of turns.");
  });
});
