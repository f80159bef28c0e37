import { once } from "node:events";
import {
  Agent,
  type AgentInputItem,
  type ModelRequest,
  type ModelResponse,
  type StreamEvent,
  tool,
} from "@openai/agents";
import type { Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { durable } from "../../../src/openai-agents/index.ts";
import type { RunOptions, RunOutcome } from "../../../src/openai-agents/surface.ts";
import { outline, recordsOf } from "../../agents.ts";
import { Instants } from "../../instants.ts";
import { call, ScriptedModel, stage, text } from "../../openai-agents/scripted.ts";

/** Runs whose session is closed with `handOver`: the next process continues them as if nothing had happened. */

const nothing = { description: "", parameters: z.object({}) };
const STEPS = [
  [text("Both."), call("a", "mark"), call("b", "mark")],
  [text("More."), call("c", "mark")],
  [text("Done.")],
];

/** With an instant before each answer. */
class WatchedModel extends ScriptedModel {
  readonly #instants: Instants;

  constructor(steps: typeof STEPS, instants: Instants) {
    super(steps, () => instants.tick());
    this.#instants = instants;
  }

  override async getResponse(request: ModelRequest): Promise<ModelResponse> {
    await this.#instants.tick();
    return super.getResponse(request);
  }

  override async *getStreamedResponse(request: ModelRequest): AsyncGenerator<StreamEvent> {
    await this.#instants.tick();
    yield* super.getStreamedResponse(request);
  }
}

type Way = { readonly stream: true } | { readonly stream: false };

/** A run is rejected if it does not stream, and there is no result. */
async function finished(
  session: Session<AgentInputItem>,
  agent: Agent,
  way: Way,
  begun: (session: Session<AgentInputItem>) => void = () => {},
): Promise<RunOutcome> {
  const held = durable(session);
  const given = way as RunOptions & { stream: true };
  const isNew = !session.interruption;
  const start = session.startTurn.bind(session);
  session.startTurn = async (...args) => {
    const turn = await start(...args);
    begun(session);
    return turn;
  };
  try {
    return await held.finish(await (isNew ? held.run(agent, "Go.", given) : held.resume(agent, given)));
  } catch (error) {
    expect(error).toMatchObject({ code: "TURN_HANDED_OVER" });
    return { kind: "handed-over" };
  }
}

function expectNothingReported(session: Session<AgentInputItem>, what: string): void {
  const made = session.entries.filter(({ synthetic }) => synthetic !== undefined);
  expect(made, what).toEqual([]);
}

describe.each([
  ["a stream", { stream: true }],
  ["no stream", { stream: false }],
] as const)("%s", (_, way) => {
  test("whenever it is handed over, each tool runs once, each request is made once, and nothing is reported", async () => {
    let handedOver = 0;
    for (let at = 1, isOver = false; !isOver; at++) {
      const what = `instant ${at}`;
      await using here = await stage();
      let { session } = here;
      let closed: Promise<void> | null = null;
      const instants = new Instants(at, () => {
        closed = here.session.close({ handOver: true, withinMs: 60_000 });
      });
      const ran: string[] = [];
      const mark = tool({
        ...{ name: "mark", ...nothing },
        execute: async (_input, _context, details) => {
          ran.push(details!.toolCall!.callId);
          await instants.tick();
          expect(details!.signal?.aborted ?? false, what).toBe(false);
          return "marked";
        },
      });
      const model = new WatchedModel(STEPS, instants);
      const agent = new Agent({ name: "A", model, tools: [mark] });
      const { kind } = await finished(session, agent, way, ({ turn }) => instants.watch(turn!));
      isOver = !instants.isOver;
      expect(isOver ? ["completed"] : ["completed", "handed-over"], what).toContain(kind);
      await closed;
      if (!isOver) session = await here.store.resume<AgentInputItem>(session.id);
      if (kind === "handed-over") {
        handedOver++;
        expect(session.interruption?.how, what).toEqual({ kind: "handed-over" });
        expect(await finished(session, agent, way), what).toEqual({ kind: "completed" });
      }
      expect([session.interruption, session.turn], what).toEqual([null, null]);
      expect(ran.toSorted(), what).toEqual(["a", "b", "c"]);
      expect(model.inputs, what).toHaveLength(STEPS.length);
      for (const line of outline(await recordsOf(session))) expect(line, what).not.toMatch(/^repair|tool.unstarted/);
      expectNothingReported(session, what);
    }
    expect(handedOver).toBeGreaterThan(10);
  }, 60_000);

  test("tools that run on while others of their step are refused come to their end", async () => {
    await using here = await stage();
    const began = Promise.withResolvers<void>();
    const refused = Promise.withResolvers<void>();
    let closed: Promise<void> | null = null;
    const ran: string[] = [];
    const long = tool({
      ...{ name: "long", ...nothing },
      execute: async (_input, _context, details) => {
        began.resolve();
        await refused.promise;
        // By the time a refusal is reported, this could have been stopped.
        await new Promise((resolve) => setImmediate(resolve));
        ran.push(`long ${details!.signal!.aborted}`);
        return "long";
      },
    });
    const late = tool({ ...{ name: "late", ...nothing }, execute: async () => String(ran.push("late")) });
    // It comes to its start when another one was refused.
    const afterwards = {
      name: "afterwards",
      type: "tool_input" as const,
      run: async () => {
        await refused.promise;
        return { behavior: { type: "allow" as const } };
      },
    };
    const later = tool({
      ...{ name: "later", ...nothing, inputGuardrails: [afterwards] },
      execute: async () => String(ran.push("later")),
    });
    const step = [call("a", "long"), call("b", "late"), call("c", "later")];
    const model = new ScriptedModel([step, [text("Done.")]]);
    const agent = new Agent({ name: "A", model, tools: [long, late, later] });
    const outcome = await finished(here.session, agent, way, ({ turn }) => {
      const start = turn!.toolStarted.bind(turn);
      turn!.toolStarted = async (callId, ...given) => {
        if (callId === "a") return start(callId, ...given);
        await began.promise;
        closed ??= here.session.close({ handOver: true, withinMs: 60_000 });
        const call = start(callId, ...given);
        void call.catch(() => refused.resolve());
        return call;
      };
    });
    expect(outcome).toEqual({ kind: "handed-over" });
    await closed;
    const next = await here.store.resume<AgentInputItem>(here.session.id);
    expect(await finished(next, agent, way)).toEqual({ kind: "completed" });
    expect(ran).toEqual(["long false", "late", "later"]);
    expectNothingReported(next, "");
  });

  test("a tool that does not end in time is handed over as what it is: the model is told", async () => {
    await using here = await stage();
    const began = Promise.withResolvers<void>();
    const hang = tool({
      ...{ name: "hang", ...nothing },
      execute: async (_input, _context, details) => {
        began.resolve();
        await once(details!.signal!, "abort");
        throw new Error("stopped");
      },
    });
    const model = new ScriptedModel([[call("a", "hang")], [text("Done.")]]);
    const agent = new Agent({ name: "A", model, tools: [hang] });
    const outcome = finished(here.session, agent, way);
    await began.promise;
    await here.session.close({ handOver: true, withinMs: 20 });
    expect(await outcome).toEqual({ kind: "handed-over" });
    const next = await here.store.resume<AgentInputItem>(here.session.id);
    expect(next.interruption).toMatchObject({ how: { kind: "handed-over" }, calls: [{ state: "outcome-unknown" }] });
    expect(await finished(next, agent, way)).toEqual({ kind: "completed" });
    expect(JSON.stringify(model.inputs.at(-1))).toMatch(/outcome is unknown|outcome unknown/);
  });

  test("an answer that does not end in time is handed over as a request that is due", async () => {
    await using here = await stage();
    const began = Promise.withResolvers<void>();
    class Silent extends ScriptedModel {
      override async getResponse({ signal }: ModelRequest): Promise<ModelResponse> {
        began.resolve();
        await once(signal!, "abort");
        throw signal!.reason;
      }

      override async *getStreamedResponse(request: ModelRequest): AsyncGenerator<StreamEvent> {
        yield { type: "response_started" };
        await this.getResponse(request);
      }
    }
    const outcome = finished(here.session, new Agent({ name: "A", model: new Silent([]) }), way);
    await began.promise;
    await here.session.close({ handOver: true, withinMs: 20 });
    expect(await outcome).toEqual({ kind: "handed-over" });
    const next = await here.store.resume<AgentInputItem>(here.session.id);
    const model = new ScriptedModel([[text("Done.")]]);
    expect(await finished(next, new Agent({ name: "A", model }), way)).toEqual({ kind: "completed" });
    expectNothingReported(next, "");
  });
});
