import { jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import { openStore, type Session, type Turn } from "holdfast";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { place } from "../../../../holdfast/test/place.ts";
import { durable } from "../../../src/ai-sdk/index.ts";
import { begun, everyWay, outline, PROMPT, recordsOf } from "../../agents.ts";
import { FailingDisk } from "../../failing-disk.ts";
import { call, scripted, text } from "../../scripted-model.ts";

/** Going on with the turn that another process left. */

const any = jsonSchema<object>({ type: "object" });

/** The session in the next process; `leave` does what the one before did. */
async function left(leave: (session: Session<ModelMessage>) => Promise<unknown>): Promise<Session<ModelMessage>> {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk", draftMs: 0 });
  await session.startTurn(PROMPT);
  await leave(session);
  await session.close();
  return store.resume<ModelMessage>(session.id);
}

test.each(everyWay)(
  "%s: a turn that was cut off behind its answer is completed, and nothing is asked",
  async (_, start) => {
    const ran: string[] = [];
    const tools = { free: tool({ inputSchema: any, execute: async () => ran.push("free") }) };
    const session = await left(async (before) => {
      const agent = durable(before);
      // The process ends between the answer and `finish`.
      const model = scripted([call("a", "free")], [text("Done.")]);
      expect(await agent.outcome(start(agent, { model, tools }).run)).toEqual({ kind: "completed" });
    });
    expect(session.interruption).toMatchObject({ answered: true });
    const before = session.messages;
    expect(await durable(session).resume(tools)).toBe(null);
    expect(session.interruption).toBe(null);
    expect(session.turn).toBe(null);
    expect(session.messages).toEqual(before);
    expect(ran).toEqual(["free"]);
    expect(outline(await recordsOf(session)).slice(-2)).toEqual(["turn.resumed", "turn.ended"]);
  },
);

test("a call that a turn was suspended for waits, although nobody was asked by the SDK", async () => {
  const ran: string[] = [];
  const tools = { free: tool({ inputSchema: any, execute: async () => ran.push("free") }) };
  const made = { type: "tool-call" as const, toolCallId: "f", toolName: "free", input: {} };
  const session = await left(async ({ turn }) => {
    await turn!.append({ role: "assistant", content: [made] });
    await turn!.suspend({ reason: "approval", calls: ["f"] });
  });
  expect(await durable(session).resume(tools)).toBe(null);
  expect([ran, session.state]).toEqual([[], "waiting"]);
  expect(await durable(session).resume(tools, { calls: () => "keep" })).toBe(session.turn);
});

test("what was cut off before is resumed: what is safe runs, of the rest the model is told how far it came", async () => {
  const contexts: unknown[] = [];
  const named = tool({
    inputSchema: any,
    contextSchema: z.object({ user: z.string() }),
    execute: async (_, { context }) => contexts.push(context),
  });
  const tools = { named } as unknown as ToolSet;
  const content = ["a", "b"].map((id) => ({
    type: "tool-call" as const,
    toolCallId: id,
    toolName: "named",
    input: {},
  }));
  const session = await left(async ({ turn }) => {
    await turn!.append({ role: "assistant", content });
    await turn!.toolStarted("b");
  });
  const agent = durable(session);
  const turn = await agent.resume(tools, { toolsContext: { named: { user: "me" } } });
  expect(turn).toBe(session.turn);
  expect(contexts).toEqual([{ user: "me" }]);
  const model = scripted([text("Done.")]);
  expect(await agent.finish(streamText(agent.wrap({ model, tools })))).toEqual({ kind: "completed" });
  expect(JSON.stringify(model.prompts[0])).toMatch(/"value":1.*was running when the program was closed/i);
  await expect(agent.resume(tools)).rejects.toMatchObject({ code: "NOTHING_TO_RESUME" });
});

test("a call that was started, and is safe to run twice, is run again", async () => {
  const ran: string[] = [];
  const tools = { free: tool({ inputSchema: any, execute: async (_, { toolCallId }) => ran.push(toolCallId) }) };
  const content = ["a", "b"].map((id) => ({ type: "tool-call" as const, toolCallId: id, toolName: "free", input: {} }));
  const session = await left(async ({ turn }) => {
    await turn!.append({ role: "assistant", content });
    await turn!.toolStarted("a", { replay: "safe" });
    await turn!.toolStarted("b");
  });
  await durable(session, { replay: { free: "safe" } }).resume(tools);
  expect(ran).toEqual(["a"]);
});

test("what becomes of the calls and the draft is the application's to say", async () => {
  const session = await left(async ({ turn }) => {
    const { draft } = turn!.request();
    draft.push({ text: "Half an" });
  });
  const agent = durable(session);
  await agent.resume({}, { draft: "keep" });
  expect(JSON.stringify(session.messages)).toContain("Half an");
  const other = await left(async ({ turn }) => {
    const part = { type: "tool-call" as const, toolCallId: "a", toolName: "gone", input: {} };
    await turn!.append({ role: "assistant", content: [part] });
  });
  await durable(other).resume({}, { calls: () => ({ value: "seen elsewhere" }) });
  expect(JSON.stringify(other.messages)).toContain("seen elsewhere");
  // Left out, the words that were streamed do not come back.
  const third = await left(async ({ turn }) => turn!.request().draft.push({ text: "Half an" }));
  await durable(third).resume({});
  expect(third.messages).toEqual([PROMPT]);
});

test("C19: an outcome that found no space is recorded before its call could be closed", async () => {
  using folder = place();
  const disk = new FailingDisk();
  await using store = await disk.open(folder.path);
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
  await session.startTurn(PROMPT);
  const fills = tool({
    inputSchema: any,
    execute: async () => {
      disk.countdown = 1;
      return "what it came to";
    },
  });
  const agent = durable(session);
  const run = streamText(agent.wrap({ model: scripted([call("a", "fills")]), tools: { fills }, onError: () => {} }));
  await expect(agent.outcome(run)).rejects.toMatchObject({ code: "STORE_FULL" });
  await session.turn!.fail("the disk was full");
  await agent.resume({ fills });
  expect(JSON.stringify(session.messages)).toContain("what it came to");
  expect(JSON.stringify(session.messages)).not.toContain("outcome unknown");
});

test("P8: if the end of an answered turn cannot be recorded, that is said, and it can be tried again", async () => {
  using folder = place();
  const disk = new FailingDisk();
  await using store = await disk.open(folder.path);
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
  const turn = await session.startTurn(PROMPT);
  await turn.append({ role: "assistant", content: "Done." });
  await turn.abort({ by: "user" });
  disk.countdown = 1;
  await expect(durable(session).resume({})).rejects.toMatchObject({ code: "STORE_FULL" });
  expect(session.interruption).toMatchObject({ answered: true });
  expect(await durable(session).resume({})).toBe(null);
  expect(session.interruption).toBe(null);
});

test("without an interruption there is nothing to resume", async () => {
  await using here = await begun();
  await expect(durable(here.session).resume({})).rejects.toMatchObject({ code: "TURN_OPEN" });
});

describe("calls that wait for a person", () => {
  const ran: string[] = [];
  const execute = async (_: unknown, { toolCallId }: { toolCallId: string }): Promise<string> => {
    ran.push(toolCallId);
    return `ran ${toolCallId}`;
  };
  const tools = {
    asks: tool({ inputSchema: any, execute, needsApproval: true }),
    free: tool({ inputSchema: any, execute }),
  } as ToolSet;

  /** Two calls wait, one is not started, one may have run: all in the next process. Answers the ids of the requests. */
  async function waiting(): Promise<{ session: Session<ModelMessage>; requests: string[] }> {
    ran.length = 0;
    let requests: string[] = [];
    const session = await left(async (before) => {
      const agent = durable(before);
      const model = scripted([call("a", "asks"), call("b", "asks")]);
      const outcome = await agent.outcome(streamText(agent.wrap({ model, tools })));
      requests = outcome.kind === "waiting" ? outcome.approvals.map(({ approvalId }) => approvalId) : [];
    });
    return { session, requests };
  }

  test("leave the turn as it is: there is nothing to ask", async () => {
    const { session } = await waiting();
    const before = outline(await recordsOf(session));
    expect(await durable(session).resume(tools)).toBe(null);
    expect(outline(await recordsOf(session))).toEqual(before);
    expect(session.interruption!.calls.map(({ state }) => state)).toEqual(["awaiting", "awaiting"]);
  });

  test("are the application's to decide on, if it says what becomes of the calls", async () => {
    const { session } = await waiting();
    expect(await durable(session).resume(tools, { calls: "close" })).toBe(session.turn);
    expect(JSON.stringify(session.messages)).toContain("not approved");
    expect(ran).toEqual([]);
  });

  test("are run or denied as the person decided, once", async () => {
    const { session, requests } = await waiting();
    const agent = durable(session);
    const approvals = requests.map((approvalId, at) => ({ approvalId, approved: at === 0, reason: "so" }));
    expect(await agent.resume(tools, { approvals })).toBe(session.turn);
    expect(ran, "the SDK runs them").toEqual([]);
    const model = scripted([text("Done.")]);
    expect(await agent.finish(streamText(agent.wrap({ model, tools })))).toEqual({ kind: "completed" });
    expect(ran).toEqual(["a"]);
    const results = model.prompts[0]!.flatMap(({ role, content }) => (role === "tool" ? content : []));
    expect(results).toMatchObject([
      { toolCallId: "a", output: { value: "ran a" } },
      { toolCallId: "b", output: { type: "execution-denied", reason: "so" } },
    ]);
  });

  test.each([
    ["one is missing", (requests: string[]) => requests.slice(1), "is missing"],
    ["one is unknown", (requests: string[]) => [...requests, "x"], 'no open request "x"'],
    ["one is given twice", (requests: string[]) => [...requests, requests[0]!], "two answers"],
  ])("where %s of the answers, nothing is recorded", async (_, given, words) => {
    const { session, requests } = await waiting();
    const before = outline(await recordsOf(session));
    const approvals = given(requests).map((approvalId) => ({ approvalId, approved: true }));
    await expect(durable(session).resume(tools, { approvals })).rejects.toThrow(words);
    expect(outline(await recordsOf(session))).toEqual(before);
  });

  test("do not keep those beside them from being run, or closed", async () => {
    ran.length = 0;
    const part = (toolCallId: string, toolName: string) => ({
      type: "tool-call" as const,
      toolCallId,
      toolName,
      input: {},
    });
    const request = { type: "tool-approval-request" as const, approvalId: "r", toolCallId: "a" };
    const session = await left(async ({ turn }) => {
      await turn!.append({
        role: "assistant",
        content: [part("a", "asks"), request, part("b", "free"), part("c", "free")],
      });
      await turn!.toolStarted("c");
    });
    const agent = durable(session);
    expect(await agent.resume(tools, { approvals: [{ approvalId: "r", approved: true }] })).not.toBe(null);
    expect(ran, "what may have run is not run again").toEqual(["b"]);
    const model = scripted([text("Done.")]);
    expect(await agent.finish(streamText(agent.wrap({ model, tools })))).toEqual({ kind: "completed" });
    expect(ran).toEqual(["b", "a"]);
    expect(JSON.stringify(model.prompts[0])).toContain("may have taken effect");
  });

  test("at the provider are told what was decided, as such", async () => {
    const session = await left(async ({ turn }) => {
      await turn!.append({
        role: "assistant",
        content: [
          { type: "tool-call", toolCallId: "p", toolName: "mcp", input: {}, providerExecuted: true },
          { type: "tool-approval-request", approvalId: "r", toolCallId: "p" },
        ],
      });
      await turn!.suspend({ reason: "approval", calls: ["p"] });
    });
    const agent = durable(session);
    expect(await agent.resume({})).toBe(null);
    await agent.resume({}, { approvals: [{ approvalId: "r", approved: true }] });
    expect(session.entries.at(-1)!.message.content).toEqual([
      { type: "tool-approval-response", approvalId: "r", approved: true, providerExecuted: true },
    ]);
  });

  test("P8: if the answers cannot be recorded, that is said, nothing runs, and they can be given again", async () => {
    ran.length = 0;
    using folder = place();
    const disk = new FailingDisk();
    await using store = await disk.open(folder.path);
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    const model = scripted([call("a", "asks"), call("b", "free")]);
    const outcome = await agent.finish(streamText(agent.wrap({ model, tools })));
    const requests = outcome.kind === "waiting" ? outcome.approvals : [];
    const approvals = requests.map(({ approvalId }) => ({ approvalId, approved: true }));
    const { resumeTurn } = session;
    session.resumeTurn = async (...given) => {
      const turn = await resumeTurn.apply(session, given);
      disk.countdown = 1;
      return turn;
    };
    await expect(agent.resume(tools, { approvals })).rejects.toMatchObject({ code: "STORE_FULL" });
    session.resumeTurn = resumeTurn;
    await session.turn!.abort({ by: "user" });
    await agent.resume(tools, { approvals });
    await agent.finish(streamText(agent.wrap({ model: scripted([text("Done.")]), tools })));
    expect(ran).toEqual(["b", "a"]);
  });

  /** A call that waits by a request, in the next process; what else happened before that, `then` says. */
  async function asked(then: (turn: Turn<ModelMessage>) => Promise<unknown>, providerExecuted?: true) {
    const part = { type: "tool-call" as const, toolCallId: "a", toolName: "asks", input: {} };
    const by = providerExecuted ? { providerExecuted } : {};
    const request = { type: "tool-approval-request" as const, approvalId: "r", toolCallId: "a" };
    return left(async ({ turn }) => {
      await turn!.append({ role: "assistant", content: [{ ...part, ...by }, request] });
      await then(turn!);
    });
  }

  test.each([
    ["approved", true, undefined],
    ["denied", false, undefined],
    ["approved, at the provider", true, true as const],
  ])("that were decided on (%s) wait no longer, also if the process died right behind it", async (_, approved, by) => {
    const response = { type: "tool-approval-response" as const, approvalId: "r", approved };
    const session = await asked((turn) => turn.append({ role: "tool", content: [response] }), by);
    expect(await durable(session).resume(tools)).not.toBe(null);
  });

  test("that the application has answered itself wait no longer", async () => {
    const output = { type: "text" as const, value: "Done by hand." };
    const result = { type: "tool-result" as const, toolCallId: "a", toolName: "asks", output };
    const session = await asked((turn) => turn.append({ role: "tool", content: [result] }));
    expect(await durable(session).resume(tools)).not.toBe(null);
  });

  test("R9: of an earlier turn, whose request nobody answered, are not those of this turn, whatever their ids", async () => {
    const session = await asked(async () => {});
    const turn = await session.startTurn({ role: "user", content: "Again." });
    await turn.append({
      role: "assistant",
      content: [
        { type: "tool-call", toolCallId: "a", toolName: "asks", input: {} },
        { type: "tool-approval-request", approvalId: "r2", toolCallId: "a" },
      ],
    });
    await turn.abort({ by: "user" });
    expect(await durable(session).resume(tools, { approvals: [{ approvalId: "r2", approved: false }] })).not.toBe(null);
  });

  test("of an earlier turn, and those that a rule decided, wait for nobody", async () => {
    const denied = { toolApproval: () => "denied" as const };
    const session = await left(async (before) => {
      const agent = durable(before);
      const model = scripted([call("a", "asks")], [call("b", "free")]);
      await agent.outcome(streamText(agent.wrap({ model, tools, ...denied } as never)));
    });
    expect(await durable(session).resume(tools)).not.toBe(null);
  });
});
