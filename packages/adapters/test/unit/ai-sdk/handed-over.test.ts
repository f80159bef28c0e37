import { validateAiSdk } from "@holdfast/testkit";
import { generateText, jsonSchema, type ModelMessage, type ToolSet, tool } from "ai";
import { openStore, type Session, type Store } from "holdfast";
import { describe, expect, test } from "vitest";
import { durable } from "../../../src/ai-sdk/index.ts";
import { everyWay, outline, PROMPT, recordsOf, ways } from "../../agents.ts";
import { Instants, STEPS } from "../../instants.ts";
import { call, scripted, text } from "../../scripted-model.ts";

/** Runs whose session is closed with `handOver`: the next process continues them as if nothing had happened. */

const any = jsonSchema<object>({ type: "object" });

async function opened(): Promise<{ store: Store; session: Session<ModelMessage> }> {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk", draftMs: 0 });
  await session.startTurn(PROMPT);
  return { store, session };
}

/** Nothing was reported: all that the model sees was said by it, its tools and the user. */
function expectNothingReported(session: Session<ModelMessage>, what: string): void {
  expect(
    session.entries.filter(({ synthetic }) => synthetic !== undefined),
    what,
  ).toEqual([]);
}

describe.each(everyWay)("%s", (name, start) => {
  test("whenever it is handed over, each tool runs once, each request is made once, and nothing is reported", async () => {
    let undisturbed: unknown[] = [];
    let handedOver = 0;
    for (let at = 1, isOver = false; !isOver; at++) {
      const what = `instant ${at}`;
      const { store, session: first } = await opened();
      let session = first;
      let closed: Promise<void> | null = null;
      const instants = new Instants(at, () => {
        closed = session.close({ handOver: true, withinMs: 60_000 });
      });
      instants.watch(session.turn!);
      const ran: string[] = [];
      const mark = tool({
        inputSchema: any,
        execute: async (_, { toolCallId }) => {
          ran.push(toolCallId);
          await instants.tick();
          return toolCallId;
        },
      });
      const isStreamed = name.includes("tream");
      const model = scripted(...instants.answers(STEPS, isStreamed));
      const settings = { model, tools: { mark } };
      let agent = durable(session);
      const { kind } = await agent.finish(start(agent, settings).run);
      isOver = !instants.isOver;
      expect(isOver ? ["completed"] : ["completed", "handed-over"], what).toContain(kind);
      if (isOver) undisturbed = model.prompts;
      await closed;
      if (!isOver) session = await store.resume<ModelMessage>(session.id);
      if (kind === "handed-over") {
        handedOver++;
        expect(session.interruption?.how, what).toEqual({ kind: "handed-over" });
        agent = durable(session);
        if (await agent.resume({ mark }))
          expect(await agent.finish(start(agent, settings).run), what).toEqual({ kind: "completed" });
      }
      expect([session.interruption, session.turn], what).toEqual([null, null]);
      expect(ran.toSorted(), what).toEqual(["a", "b", "c"]);
      expect(model.prompts, what).toHaveLength(STEPS.length);
      for (const line of outline(await recordsOf(session))) expect(line, what).not.toMatch(/^repair|tool.unstarted/);
      expectNothingReported(session, what);
      // Again and again the same requests.
      undisturbed = undisturbed.length > 0 ? undisturbed : model.prompts;
      expect(model.prompts, what).toEqual(undisturbed);
      await session.startTurn({ role: "user", content: "And now?" });
      expect(validateAiSdk(session.messages), what).toEqual([]);
      await store.close();
    }
    expect(handedOver).toBeGreaterThan(10);
  });
});

test("tools that run on while one of their step is refused come to their end", async () => {
  const { store, session } = await opened();
  const began = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const ran: string[] = [];
  const tools: ToolSet = {
    long: tool({
      inputSchema: any,
      execute: async (_, { abortSignal }) => {
        began.resolve();
        await release.promise;
        ran.push(`long ${abortSignal!.aborted}`);
        return "long";
      },
    }),
    late: tool({ inputSchema: any, execute: async () => ran.push("late") }),
  };
  const steps = [[call("a", "long"), call("b", "late")], [text("Done.")]];
  // The second one starts when the session is being closed: its note is made late.
  const agent = durable(session, {
    before: async ({ toolName }) => {
      if (toolName === "late") await began.promise.then(() => void closing.resolve(session.close({ handOver: true })));
      return undefined;
    },
  });
  const closing = Promise.withResolvers<void>();
  const { run } = ways.streamText(agent, { model: scripted(...steps), tools });
  const outcome = agent.finish(run);
  await began.promise;
  await new Promise((resolve) => setImmediate(resolve));
  release.resolve();
  expect(await outcome).toEqual({ kind: "handed-over" });
  await closing.promise;
  const next = await store.resume<ModelMessage>(session.id);
  const again = durable(next);
  await again.resume(tools);
  await again.finish(ways.streamText(again, { model: scripted([text("Done.")]), tools }).run);
  expect(ran).toEqual(["long false", "late"]);
  expectNothingReported(next, "");
  await store.close();
});

test("a tool that does not end in time is handed over as what it is: its outcome is unknown, and the model is told", async () => {
  const { store, session } = await opened();
  const tools: ToolSet = { hang: tool({ inputSchema: any, execute: () => new Promise<string>(() => {}) }) };
  const agent = durable(session);
  const { run } = ways.streamText(agent, { model: scripted([call("a", "hang")]), tools });
  const outcome = agent.finish(run);
  await expect.poll(() => session.turn!.open.length, { timeout: 60_000 }).toBe(0);
  await expect.poll(async () => outline(await recordsOf(session)), { timeout: 60_000 }).toContain("tool.started a");
  await session.close({ handOver: true, withinMs: 20 });
  expect(await outcome).toEqual({ kind: "handed-over" });
  const next = await store.resume<ModelMessage>(session.id);
  expect(next.interruption).toMatchObject({ how: { kind: "handed-over" }, calls: [{ state: "outcome-unknown" }] });
  const again = durable(next);
  const model = scripted([text("Done.")]);
  await again.resume(tools);
  await again.finish(ways.streamText(again, { model, tools }).run);
  expect(JSON.stringify(model.prompts)).toMatch(/outcome is unknown|outcome unknown/);
  await store.close();
});

test("a request that is made while the session is handed over is not made, and the run has not failed", async () => {
  const { store, session } = await opened();
  const agent = durable(session);
  const model = scripted();
  const closed = session.close({ handOver: true });
  const run = generateText(agent.wrap({ model, maxRetries: 0 }) as never);
  expect(await agent.finish(run)).toEqual({ kind: "handed-over" });
  await closed;
  expect(model.prompts).toEqual([]);
  await store.close();
});
