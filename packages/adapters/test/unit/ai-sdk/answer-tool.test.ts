import { hasToolCall, isStepCount, jsonSchema, type ModelMessage, type ToolSet, tool } from "ai";
import { openStore, type Session, type Store } from "holdfast";
import { describe, expect, test } from "vitest";
import { TAKEN } from "../../../src/ai-sdk/content.ts";
import { durable } from "../../../src/ai-sdk/index.ts";
import { begun, everyWay, outline, recordsOf } from "../../agents.ts";
import { Server } from "../../memory-chat.ts";
import { call, scripted, text } from "../../scripted-model.ts";

/** Tools without `execute`: one whose input is the answer, and one that the application runs itself. */

const any = jsonSchema<object>({ type: "object" });
const ran: string[] = [];
const tools = {
  answer: tool({ inputSchema: any }),
  locate: tool({ inputSchema: any }),
  look: tool({
    inputSchema: any,
    execute: async (_, { toolCallId }) => {
      ran.push(toolCallId);
      return "seen";
    },
  }),
} as ToolSet;

describe.each(everyWay)("%s", (_, start) => {
  test.each([
    ["hasToolCall", hasToolCall("answer")],
    ["one of several conditions", [isStepCount(20), hasToolCall("answer", "other")]],
    [
      "a condition of the application's own",
      async ({ steps }: { steps: { toolCalls: { toolName: string }[] }[] }) =>
        steps.at(-1)!.toolCalls.some(({ toolName }) => toolName === "answer"),
    ],
  ])(
    "a call that ends the run by %s is the answer, and the model is not told that it did not run",
    async (_name, stopWhen) => {
      await using here = await begun();
      const { session } = here;
      const agent = durable(session);
      const model = scripted([call("l", "look")], [call("a", "answer", { n: 3 })]);
      expect(await agent.finish(start(agent, { model, tools, stopWhen }).run)).toEqual({ kind: "completed" });
      expect(session.interruption).toBe(null);

      await session.startTurn({ role: "user", content: "And now?" });
      const next = scripted([text("Bye.")]);
      await agent.finish(start(agent, { model: next, tools }).run);
      const sent = JSON.stringify(next.prompts[0]);
      expect(sent).toContain("This was the answer");
      expect(sent).not.toMatch(/not run|interrupted/i);
    },
  );

  test("tools beside the answer run, and their results are recorded", async () => {
    ran.length = 0;
    await using here = await begun();
    const agent = durable(here.session);
    const model = scripted([call("l", "look"), call("a", "answer")]);
    const { run } = start(agent, { model, tools, stopWhen: hasToolCall("answer") });
    expect(await agent.finish(run)).toEqual({ kind: "completed" });
    expect(ran).toEqual(["l"]);
    expect(outline(await recordsOf(here.session)).slice(2)).toEqual([
      "message assistant",
      "message tool",
      "tool.started l",
      "tool.ended l",
      "turn.ended",
    ]);
  });

  test.each([
    ["nothing", undefined],
    ["the number of steps", isStepCount(1)],
    ["another tool", hasToolCall("answer")],
    [
      "a condition that needs a whole step",
      ({ steps }: { steps: { response: { id: string } }[] }) => steps.at(-1)!.response.id === "none",
    ],
  ])("a call that waits for its result waits, if %s ends the run", async (_name, stopWhen) => {
    await using here = await begun();
    const agent = durable(here.session);
    const model = scripted([call("w", "locate")]);
    const { run } = start(agent, { model, tools, ...(stopWhen ? { stopWhen } : {}) });
    expect(await agent.finish(run)).toMatchObject({ kind: "waiting", calls: [{ toolCallId: "w" }] });
  });
});

describe("killed after an answer tool was called", () => {
  /** As it was left, with a call of `look` beside the answer that had not started. */
  async function left(store: Store, options: { id?: string; message?: string } = {}): Promise<Session<ModelMessage>> {
    const { id, message } = options;
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk", ...(id ? { id } : {}) });
    await session.startTurn({ role: "user", content: "Look." }, message ? { id: message } : {});
    const part = (toolCallId: string, toolName: string) => ({
      type: "tool-call" as const,
      toolCallId,
      toolName,
      input: {},
    });
    await session.turn!.request().draft.commit([
      { role: "assistant", content: [part("l", "look"), part("a", "answer")] },
      { role: "tool", content: [{ type: "tool-result", toolCallId: "a", toolName: "answer", output: TAKEN }] },
    ]);
    return session;
  }
  const next = async (store: Store, session: Session<ModelMessage>): Promise<Session<ModelMessage>> => {
    await session.close();
    return store.resume<ModelMessage>(session.id);
  };

  test("the tools beside it are settled, and the model is not asked again", async () => {
    await using store = await openStore("memory:", { recordsToolStarts: true });
    const session = await next(store, await left(store));
    ran.length = 0;
    expect(await durable(session).resume(tools)).toBe(null);
    expect(ran).toEqual(["l"]);
    expect(session.interruption).toBe(null);
    expect(outline(await recordsOf(session)).at(-1)).toBe("turn.ended");
  });

  test("if the turn failed, or a person said more, the model is asked", async () => {
    await using store = await openStore("memory:", { recordsToolStarts: true });
    const failed = await left(store);
    await failed.turn!.fail(new Error("The answer does not fit."));
    expect(await durable(await next(store, failed)).resume(tools)).not.toBe(null);
    const steered = await left(store);
    await steered.turn!.append({ role: "user", content: "And hurry." });
    expect(await durable(await next(store, steered)).resume(tools)).not.toBe(null);
  });

  test("a chat goes on without asking the model, and is ready", async () => {
    await using server = await Server.with([], tools);
    const session = await left(server.store, { id: server.chat.sessionId(server.id), message: "m" });
    await session.close();
    expect((await server.state()).status).toBe("interrupted");
    expect((await server.post({ trigger: "continue" })).status).toBe(202);
    await server.chat.idle();
    expect((await server.state()).status).toBe("ready");
    expect(server.model.prompts).toEqual([]);
  });
});

describe("a call of a tool without execute, in the next process", () => {
  /** `leave` does what the process before did. */
  async function left(
    leave: (session: Session<ModelMessage>) => Promise<unknown>,
  ): Promise<{ store: Store; session: Session<ModelMessage> }> {
    const store = await openStore("memory:", { recordsToolStarts: true });
    const before = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    const turn = await before.startTurn({ role: "user", content: "Where am I?" });
    await turn.append({
      role: "assistant",
      content: [{ type: "tool-call", toolCallId: "w", toolName: "locate", input: {} }],
    });
    await leave(before);
    await before.close();
    return { store, session: await store.resume<ModelMessage>(before.id) };
  }

  test.each([
    ["was cut off", async () => {}],
    ["was suspended", (session: Session<ModelMessage>) => session.turn!.suspend({ reason: "result" })],
    [
      "was suspended when a browser had begun",
      async (session: Session<ModelMessage>) => {
        await session.turn!.toolStarted("w");
        await session.turn!.suspend({ reason: "result" });
      },
    ],
  ])("that %s: the model is not asked until the application has its result", async (_, leave) => {
    const { store, session } = await left(leave);
    await using _store = store;
    const agent = durable(session);
    const before = outline(await recordsOf(session));
    expect(await agent.resume(tools)).toBe(null);
    expect(outline(await recordsOf(session))).toEqual(before);

    const turn = await agent.resume(tools, { calls: () => "keep" });
    await turn!.append({
      role: "tool",
      content: [{ type: "tool-result", toolCallId: "w", toolName: "locate", output: { type: "text", value: "Here." } }],
    });
    const model = scripted([text("You are here.")]);
    expect(await agent.finish(everyWay[0]![1](agent, { model, tools }).run)).toEqual({ kind: "completed" });
    expect(JSON.stringify(model.prompts[0])).toContain("Here.");
  });
});
