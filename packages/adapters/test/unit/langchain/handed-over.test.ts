import { once } from "node:events";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { openStore, type Session, type Store, type Turn } from "holdfast";
import { createAgent, tool } from "langchain";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { durable, langchain } from "../../../src/langchain/index.ts";
import { outline, recordsOf } from "../../agents.ts";
import { Instants } from "../../instants.ts";
import { ScriptedChatModel } from "../../scripted-chat-model.ts";

/** Runs whose session is closed with `handOver`: the next process continues them as if nothing had happened. */

const schema = z.object({});
const calls = (content: string, ...named: [id: string, name: string][]) =>
  new AIMessage({ content, tool_calls: named.map(([id, name]) => ({ type: "tool_call", id, name, args: {} })) });

/** Two tools at once, one more, and the last answer. */
const steps = (messages: BaseMessage[]): AIMessage => {
  const results = messages.filter((message) => ToolMessage.isInstance(message)).length;
  if (results === 0) return calls("Both.", ["a", "mark"], ["b", "mark"]);
  return results === 2 ? calls("More.", ["c", "mark"]) : new AIMessage("Done.");
};

async function opened(): Promise<{ store: Store; session: Session<BaseMessage>; turn: Turn<BaseMessage> }> {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create({ dialect: langchain, draftMs: 0 });
  return { store, session, turn: await session.startTurn(new HumanMessage("Go.")) };
}

type Settings = Pick<NonNullable<Parameters<typeof createAgent>[0]>, "tools"> & { readonly model: ScriptedChatModel };
type Start = (app: ReturnType<typeof createAgent>, input: object, config: object) => Promise<unknown>;

/** Runs the agent, or what is left of its turn. */
async function run(session: Session<BaseMessage>, settings: Settings, start: Start) {
  const agent = durable(session);
  const app = createAgent({ ...settings, middleware: [agent.middleware] } as never);
  if (!session.turn && !(await agent.resume())) return { kind: "completed" };
  return agent.finish(start(app as never, { messages: agent.messages() }, agent.config()));
}

function expectNothingReported(session: Session<BaseMessage>, what: string): void {
  const made = session.entries.filter(({ synthetic }) => synthetic !== undefined);
  expect(made, what).toEqual([]);
}

const ways: [string, Start][] = [
  ["invoke", (app, input, config) => app.invoke(input as never, config)],
  [
    "stream",
    async (app, input, config) => {
      for await (const _ of await app.stream(input as never, config));
    },
  ],
];

describe.each(ways)("%s", (_, start) => {
  test("whenever it is handed over, each tool runs once, each request is made once, and nothing is reported", async () => {
    let handedOver = 0;
    for (let at = 1, isOver = false; !isOver; at++) {
      const what = `instant ${at}`;
      const { store, session: first, turn } = await opened();
      let session = first;
      let closed: Promise<void> | null = null;
      const instants = new Instants(at, () => {
        closed = first.close({ handOver: true, withinMs: 60_000 });
      });
      instants.watch(turn);
      const ran: string[] = [];
      const mark = tool(
        async (_input, config) => {
          ran.push(config.toolCall.id);
          await instants.tick();
          expect(config.signal?.aborted ?? false, what).toBe(false);
          return "marked";
        },
        { name: "mark", schema },
      );
      const model = new ScriptedChatModel(steps);
      model.onToken = () => instants.tick();
      const settings = { model, tools: [mark] };
      const { kind } = await run(session, settings, start);
      isOver = !instants.isOver;
      expect(isOver ? ["completed"] : ["completed", "handed-over"], what).toContain(kind);
      await closed;
      if (!isOver) session = await store.resume(session.id, { dialect: langchain });
      if (kind === "handed-over") {
        handedOver++;
        expect(session.interruption?.how, what).toEqual({ kind: "handed-over" });
        expect(await run(session, settings, start), what).toEqual({ kind: "completed" });
      }
      expect([session.interruption, session.turn], what).toEqual([null, null]);
      expect(ran.toSorted(), what).toEqual(["a", "b", "c"]);
      expect(model.asked, what).toHaveLength(3);
      for (const line of outline(await recordsOf(session))) expect(line, what).not.toMatch(/^repair|tool.unstarted/);
      expectNothingReported(session, what);
      await store.close();
    }
    expect(handedOver).toBeGreaterThan(10);
  }, 60_000);

  test("tools that run on while others of their step are refused come to their end", async () => {
    const { store, session, turn } = await opened();
    const began = Promise.withResolvers<void>();
    const refused = Promise.withResolvers<void>();
    let closed: Promise<void> | null = null;
    const ran: string[] = [];
    const long = tool(
      async (_input, config) => {
        began.resolve();
        await refused.promise;
        // By the time a refusal is reported, this could have been stopped.
        await new Promise((resolve) => setImmediate(resolve));
        ran.push(`long ${config.signal?.aborted}`);
        return "long";
      },
      { name: "long", schema },
    );
    const late = tool(() => String(ran.push("late")), { name: "late", schema });
    const model = new ScriptedChatModel((messages) =>
      ToolMessage.isInstance(messages.at(-1))
        ? new AIMessage("Done.")
        : calls("All.", ["a", "long"], ["b", "late"], ["c", "late"]),
    );
    const toolStarted = turn.toolStarted.bind(turn);
    turn.toolStarted = async (callId, ...given) => {
      if (callId === "a") return toolStarted(callId, ...given);
      await (callId === "b" ? began.promise : refused.promise);
      closed ??= session.close({ handOver: true, withinMs: 60_000 });
      const call = toolStarted(callId, ...given);
      void call.catch(() => refused.resolve());
      return call;
    };
    const settings = { model, tools: [long, late] };
    expect(await run(session, settings, start)).toEqual({ kind: "handed-over" });
    await closed;
    const next = await store.resume(session.id, { dialect: langchain });
    expect(await run(next, settings, start)).toEqual({ kind: "completed" });
    expect(ran).toEqual(["long false", "late", "late"]);
    expectNothingReported(next, "");
    await store.close();
  });

  test("a tool that does not end in time is handed over as what it is: the model is told", async () => {
    const { store, session } = await opened();
    const began = Promise.withResolvers<void>();
    const hang = tool(
      async (_input, { signal }) => {
        began.resolve();
        await once(signal!, "abort");
        throw new Error("stopped");
      },
      { name: "hang", schema },
    );
    const model = new ScriptedChatModel((messages) =>
      ToolMessage.isInstance(messages.at(-1)) ? new AIMessage("Done.") : calls("It hangs.", ["a", "hang"]),
    );
    const settings = { model, tools: [hang] };
    const outcome = run(session, settings, start);
    await began.promise;
    await session.close({ handOver: true, withinMs: 20 });
    expect(await outcome).toEqual({ kind: "handed-over" });
    const next = await store.resume(session.id, { dialect: langchain });
    expect(next.interruption).toMatchObject({ how: { kind: "handed-over" }, calls: [{ state: "outcome-unknown" }] });
    expect(await run(next, settings, start)).toEqual({ kind: "completed" });
    expect(JSON.stringify(model.asked.at(-1))).toMatch(/outcome is unknown|outcome unknown/);
    await store.close();
  });

  test("an answer that does not end in time is handed over as a request that is due", async () => {
    const { store, session } = await opened();
    const began = Promise.withResolvers<void>();
    const silent = new ScriptedChatModel(() => new AIMessage("So it begins."));
    silent.onToken = () => {
      began.resolve();
      return new Promise(() => {});
    };
    const outcome = run(session, { model: silent, tools: [] }, start);
    await began.promise;
    await session.close({ handOver: true, withinMs: 20 });
    expect(await outcome).toEqual({ kind: "handed-over" });
    const next = await store.resume(session.id, { dialect: langchain });
    const model = new ScriptedChatModel(() => new AIMessage("Done."));
    expect(await run(next, { model, tools: [] }, start)).toEqual({ kind: "completed" });
    expect(next.interruption).toBe(null);
    await store.close();
  });

  test("a tool whose own session is handed over has no outcome", async () => {
    const { store, session } = await opened();
    const child = await store.create({ dialect: langchain });
    const ask = tool(
      async () => {
        const turn = await child.startTurn(new HumanMessage("Go."));
        for (const one of [session, child]) void one.close({ handOver: true });
        return String(turn.request());
      },
      { name: "ask", schema },
    );
    const model = new ScriptedChatModel(() => calls("I ask.", ["a", "ask"]));
    expect(await run(session, { model, tools: [ask] }, start)).toEqual({ kind: "handed-over" });
    await Promise.all([session.close(), child.close()]);
    const next = await store.resume(session.id, { dialect: langchain });
    expect(next.interruption).toMatchObject({ how: { kind: "handed-over" }, calls: [{ state: "outcome-unknown" }] });
    expect((await store.read(child.id)).interruption?.how).toEqual({ kind: "handed-over" });
    await store.close();
  });
});
