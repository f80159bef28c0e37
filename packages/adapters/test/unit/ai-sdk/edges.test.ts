import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import {
  APICallError,
  experimental_createSteering,
  generateText,
  isStepCount,
  jsonSchema,
  type ModelMessage,
  streamText,
  ToolLoopAgent,
  type ToolSet,
  tool,
} from "ai";
import { openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { place } from "../../../../holdfast/test/place.ts";
import { durable, type RunOutcome } from "../../../src/ai-sdk/index.ts";
import { begun, everyWay, outline, PROMPT, recordsOf, streamingWays } from "../../agents.ts";
import { FailingDisk } from "../../failing-disk.ts";
import { type Content, call, finished, promptOf, type Step, scripted, streamOf, text } from "../../scripted-model.ts";

/** What is easily broken without anybody noticing: each of these was found by breaking it. */

const any = jsonSchema<object>({ type: "object" });
const free = tool({ inputSchema: any, execute: async () => "done" });

describe.each(everyWay)("%s", (_, start) => {
  const timedOut = new DOMException("took too long", "TimeoutError");

  test("a time-out of the application's has failed; it did not stop the run by its own wish", async () => {
    await using here = await begun();
    const agent = durable(here.session);
    const controller = new AbortController();
    const model = scripted(({ abortSignal }) => {
      controller.abort(timedOut);
      abortSignal?.throwIfAborted();
      return [];
    });
    const outcome = await agent.finish(start(agent, { model, abortSignal: controller.signal }).run);
    expect(outcome).toEqual({ kind: "failed", error: timedOut });
    expect(here.session.interruption).toMatchObject({ how: { kind: "failed" } });
  });

  test.each([
    [new DOMException("stopped elsewhere", "AbortError"), "aborted"],
    [timedOut, "failed"],
    [new Error("broken"), "failed"],
  ])("a provider that gives up by itself with %s: %s", async (error, kind) => {
    await using here = await begun();
    const agent = durable(here.session);
    const outcome = await agent.finish(start(agent, { model: scripted(() => Promise.reject(error)) }).run);
    expect(outcome.kind).toBe(kind);
  });

  test.each<[string, unknown, Content[], boolean]>([
    ["none, and a call", "none", [call("a", "free")], true],
    ["none, and words", "none", [text("Fine.")], false],
    ["required, and words", "required", [text("Fine.")], true],
    ["required, and a call", "required", [call("a", "free")], false],
    ["one tool, and another", { type: "tool", toolName: "free" }, [call("a", "other")], true],
    ["one tool, and that", { type: "tool", toolName: "free" }, [call("a", "free")], false],
    ["auto, and words", "auto", [text("Fine.")], false],
  ])(
    "tool choice %s: an answer that the SDK refuses is not recorded, and no other is lost",
    async (_, toolChoice, content, isRefused) => {
      await using here = await begun();
      const { session } = here;
      const agent = durable(session);
      const tools = { free, other: free };
      const model = scripted(content as Step, [text("Done.")]);
      const outcome = await agent.finish(start(agent, { model, tools, toolChoice, stopWhen: isStepCount(1) }).run);
      expect(outcome.kind).toBe(isRefused ? "failed" : "completed");
      expect(session.messages.filter(({ role }) => role === "assistant")).toHaveLength(isRefused ? 0 : 1);
    },
  );

  test("the rules for approvals get the contexts of the run, as prepareStep changes them", async () => {
    await using here = await begun();
    const agent = durable(here.session);
    const seen: unknown[] = [];
    const toolApproval = ({ toolsContext, runtimeContext, messages }: Record<string, unknown>) => {
      seen.push([toolsContext, runtimeContext, (messages as unknown[]).length]);
      return "not-applicable";
    };
    const settings = {
      toolsContext: { free: "first" },
      runtimeContext: { user: "first" },
      toolApproval,
      prepareStep: ({ stepNumber }: { stepNumber: number }) =>
        stepNumber === 1 ? { toolsContext: { free: "second" }, runtimeContext: { user: "second" } } : undefined,
    };
    const model = scripted([call("a", "free")], [call("b", "free")], [text("Done.")]);
    await agent.finish(start(agent, { model, tools: { free }, ...settings }).run);
    expect(seen).toEqual([
      [{ free: "first" }, { user: "first" }, 1],
      [{ free: "second" }, { user: "second" }, 3],
    ]);
  });

  test("a rule of one tool gets that tool's context, checked, and so does the tool's own", async () => {
    await using here = await begun();
    const agent = durable(here.session);
    const seen: unknown[] = [];
    const contextSchema = z.object({ user: z.string() });
    const execute = async (): Promise<string> => "done";
    const own = tool({
      inputSchema: any,
      contextSchema,
      execute,
      needsApproval: async (_, { context }) => {
        seen.push(context);
        return false;
      },
    });
    const ruled = tool({ inputSchema: any, contextSchema, execute });
    const tools = { own, ruled } as unknown as ToolSet;
    const settings = {
      toolsContext: { own: { user: "me" }, ruled: { user: "you" } },
      toolApproval: {
        ruled: (_: unknown, { toolContext }: { toolContext: unknown }) => {
          seen.push(toolContext);
          return undefined;
        },
      },
    };
    const model = scripted([call("a", "own"), call("b", "ruled")], [text("Done.")]);
    expect(await agent.finish(start(agent, { model, tools, ...settings }).run)).toEqual({ kind: "completed" });
    expect(seen).toEqual([{ user: "me" }, { user: "you" }]);
  });

  test("why a person is asked is recorded, and signed is what JSON makes of the input, whatever is in it", async () => {
    const store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    const ran: unknown[] = [];
    const tools: ToolSet = { asks: tool({ inputSchema: any, execute: async (input) => ran.push(input) }) };
    const settings = {
      tools,
      toolApproval: () => ({ type: "user-approval", reason: "it sends mail" }),
      experimental_toolApprovalSecret: "a secret of thirty-two characters",
    };
    const input = { z: [1, null, { y: "é\n", x: [] }], a: { c: true, b: "\u2028" }, "": 0 };
    const waiting = await agent.finish(start(agent, { model: scripted([call("a", "asks", input)]), ...settings }).run);
    const request = (session.entries[1]!.message.content as { type: string }[]).find(
      ({ type }) => type === "tool-approval-request",
    );
    expect(request).toMatchObject({ reason: "it sends mail", signature: expect.any(String) });
    const { approvals } = waiting as Extract<RunOutcome, { kind: "waiting" }>;
    await agent.resume(tools, { approvals: approvals.map(({ approvalId }) => ({ approvalId, approved: true })) });
    expect(await agent.finish(start(agent, { model: scripted([text("Done.")]), ...settings }).run)).toEqual({
      kind: "completed",
    });
    expect(ran).toEqual([input]);
  });

  test.each([
    ["half a character", "\ud83d", undefined],
    ["half a character, signed", "\ud83d", "a secret of thirty-two characters"],
    ["a NUL, signed", "\0", "a secret of thirty-two characters"],
  ])("a tool runs with the input that was approved, and not with what is sent of it: %s", async (_, odd, secret) => {
    const store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    const ran: unknown[] = [];
    const tools: ToolSet = { asks: tool({ inputSchema: any, execute: async (input) => ran.push(input) }) };
    const settings = { tools, toolApproval: () => "user-approval", experimental_toolApprovalSecret: secret };
    const input = { a: `x ${odd}`, b: [{ [odd]: 1 }] };
    const asking = scripted([call("a", "asks", input), call("b", "asks", { a: "plain" })]);
    const waiting = await agent.finish(start(agent, { model: asking, ...settings }).run);
    const { approvals } = waiting as Extract<RunOutcome, { kind: "waiting" }>;
    await agent.resume(tools, { approvals: approvals.map(({ approvalId }) => ({ approvalId, approved: true })) });
    const model = scripted([text("Done.")]);
    expect(await agent.finish(start(agent, { model, ...settings }).run)).toEqual({ kind: "completed" });
    expect(ran).toEqual([input, { a: "plain" }]);
    expect(JSON.stringify(model.prompts)).toContain('"input":{"a":"x \ufffd","b":[{"\ufffd":1}]}');
  });

  test("C19: what the SDK decided by itself and cannot be recorded is not sent", async () => {
    using folder = place();
    const disk = new FailingDisk();
    await using store = await disk.open(folder.path);
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    const tools: ToolSet = { asks: tool({ inputSchema: any, execute: async () => "never", needsApproval: true }) };
    const waiting = await agent.finish(start(agent, { model: scripted([call("a", "asks")]), tools }).run);
    const { approvals } = waiting as Extract<RunOutcome, { kind: "waiting" }>;
    await agent.resume(tools, { approvals: approvals.map(({ approvalId }) => ({ approvalId, approved: false })) });
    disk.countdown = 1;
    const model = scripted([text("Unheard.")]);
    await expect(agent.outcome(start(agent, { model, tools }).run)).rejects.toMatchObject({ code: "STORE_FULL" });
    expect(model.prompts).toEqual([]);
  });

  test("C36: a request that fails and is made again leaves one answer, and one of each tool's runs", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const busy = Object.assign(new Error("busy"), {
      [Symbol.for("vercel.ai.error.AI_APICallError")]: true,
      [Symbol.for("vercel.ai.error")]: true,
      name: "AI_APICallError",
      isRetryable: true,
      statusCode: 503,
      responseHeaders: { "retry-after-ms": "1" },
    });
    const ran: string[] = [];
    const tools = { free: tool({ inputSchema: any, execute: async () => ran.push("free") }) };
    const refused = (): Promise<never> => Promise.reject(busy);
    const model = scripted(refused, refused, [call("a", "free")], refused, [text("Done.")]);
    expect(await agent.finish(start(agent, { model, tools, maxRetries: 3 }).run)).toEqual({ kind: "completed" });
    expect(ran).toEqual(["free"]);
    expect(outline(await recordsOf(session))).toEqual([
      ...["turn.started", "message user", "message assistant"],
      ...["tool.started a", "tool.ended a", "message assistant", "turn.ended"],
    ]);
  });

  test("R1: what is said while a request is sent again stands behind its answer, in every step", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const busy = new APICallError({
      ...{ message: "busy", url: "", requestBodyValues: {}, statusCode: 503, isRetryable: true },
      responseHeaders: { "retry-after-ms": "1" },
    });
    const tools = { free: tool({ inputSchema: any, execute: async () => "ran" }) };
    let n = 0;
    const refused = async (): Promise<never> => {
      await session.turn!.append({ role: "user", content: `hurry ${++n}` });
      throw busy;
    };
    const model = scripted(refused, [call("a", "free")], refused, [text("Done.")]);
    expect(await agent.finish(start(agent, { model, tools, maxRetries: 3 }).run)).toEqual({ kind: "completed" });
    expect(JSON.stringify(session.messages)).toMatch(/tool-call.*tool-result.*hurry 1.*Done\..*hurry 2/);
  });

  test("runs that were prepared and never asked anything are not taken for the one that did", async () => {
    await using here = await begun();
    const agent = durable(here.session);
    const model = scripted([text("Done.")]);
    for (let n = 0; n < 40; n++) agent.wrap({ model: scripted() });
    const first = agent.finish(start(agent, { model }).run);
    for (let n = 0; n < 3; n++) agent.wrap({ model: scripted() });
    expect(await first).toEqual({ kind: "completed" });
  });
});

test("R1: settings used again after a failure: the answer stands behind what it was asked with", async () => {
  await using here = await begun();
  const { session } = here;
  const agent = durable(session);
  const model = scripted(() => Promise.reject(new Error("down")), [text("Done.")]);
  const { messages: _messages, ...settings } = agent.wrap({ model, maxRetries: 0 });
  await expect(generateText({ ...settings, messages: agent.messages() })).rejects.toThrow("down");
  await session.turn!.append({ role: "user", content: "hurry" });
  await generateText({ ...settings, messages: agent.messages() });
  expect(JSON.stringify(model.prompts.at(-1))).toContain("hurry");
  expect(JSON.stringify(session.messages)).toMatch(/hurry.*Done\./);
});

test.each(streamingWays)(
  "%s, R1: what is said while an answer breaks off and is streamed again stands behind it",
  async (_, start) => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const parts: LanguageModelV4StreamPart[] = [
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "Do" },
    ];
    const broken = async () => {
      await session.turn!.append({ role: "user", content: "hurry" });
      return { stream: streamOf([...parts, { type: "error" as const, error: new Error("overloaded") }]) };
    };
    const { run } = start(agent, { model: scripted(broken, [text("Done.")]), streamRetries: 1, maxRetries: 1 });
    expect(await agent.finish(run)).toEqual({ kind: "completed" });
    expect(JSON.stringify(session.messages)).toMatch(/Done\..*hurry/);
  },
);

test.each(streamingWays)("%s: of several errors in a stream, the first is what it failed with", async (_, start) => {
  await using here = await begun();
  const agent = durable(here.session);
  const errors = [new Error("first"), new Error("second")];
  const parts = errors.map((error): LanguageModelV4StreamPart => ({ type: "error", error }));
  const model = scripted({ stream: streamOf([...parts, finished("error")]) });
  expect(await agent.finish(start(agent, { model }).run)).toMatchObject({ kind: "failed", error: errors[0] });
});

test("callbacks under their former names are called, too", async () => {
  await using here = await begun();
  const agent = durable(here.session);
  const heard: string[] = [];
  const settings = {
    model: scripted([text("Done.")]),
    experimental_onLanguageModelCallStart: () => void heard.push("start"),
    experimental_onLanguageModelCallEnd: () => void heard.push("end"),
  };
  await agent.finish(generateText(agent.wrap(settings as never)));
  expect(heard).toEqual(["start", "end"]);
  expect(here.session.messages).toHaveLength(2);
});

test("a prepareCall that has nothing to say changes nothing", async () => {
  await using here = await begun();
  const agent = durable(here.session);
  const loop = new ToolLoopAgent(
    agent.wrap({
      model: scripted([call("a", "free")], [text("Done.")]),
      tools: { free },
      prepareCall: () => undefined,
    } as never),
  );
  expect(await agent.finish(loop.generate({} as never))).toEqual({ kind: "completed" });
  expect(here.session.messages).toHaveLength(4);
});

test("C19: what a person says by the SDK's steering, and cannot be recorded, is not sent", async () => {
  using folder = place();
  const disk = new FailingDisk();
  await using store = await disk.open(folder.path);
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
  await session.startTurn(PROMPT);
  const agent = durable(session);
  const steering = experimental_createSteering();
  void steering.steer("Faster.");
  disk.countdown = 1;
  const model = scripted([text("Unheard.")]);
  const run = streamText(agent.wrap({ model, experimental_steering: steering, onError: () => {} } as never) as never);
  await expect(agent.outcome(run)).rejects.toMatchObject({ code: "STORE_FULL" });
  expect(model.prompts).toEqual([]);
});

describe("runOpen", () => {
  async function left(
    ...names: string[]
  ): Promise<{ session: Session<ModelMessage>; disk: FailingDisk } & AsyncDisposable> {
    const folder = place();
    const disk = new FailingDisk();
    const store = await disk.open(folder.path);
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(PROMPT);
    const content = names.map((toolName, at) => ({
      type: "tool-call" as const,
      toolCallId: `c${at}`,
      toolName,
      input: {},
    }));
    await turn.append({ role: "assistant", content });
    await turn.abort({ by: "user" });
    await session.resumeTurn({ calls: "rerun" });
    const dispose = async (): Promise<void> => {
      await store.close();
      folder[Symbol.dispose]();
    };
    return { session, disk, [Symbol.asyncDispose]: dispose };
  }

  test("runs nothing if a tool is missing, and says which", async () => {
    await using here = await left("free", "gone", "gone");
    const ran: string[] = [];
    const tools = { free: tool({ inputSchema: any, execute: async (_, { toolCallId }) => ran.push(toolCallId) }) };
    const before = await recordsOf(here.session);
    await expect(durable(here.session).runOpen(tools)).rejects.toMatchObject({
      code: "TOOL_MISSING",
      facts: { tools: ["gone"], calls: ["c1", "c2"] },
    });
    expect(ran).toEqual([]);
    expect(outline(await recordsOf(here.session)).slice(before.length)).toEqual([]);
    expect(here.session.turn!.open).toHaveLength(3);
  });

  test("starts nothing more when one could not be recorded, and nothing at all in a turn that was stopped", async () => {
    await using here = await left("free", "free");
    const ran: string[] = [];
    const tools = { free: tool({ inputSchema: any, execute: async (_, { toolCallId }) => ran.push(toolCallId) }) };
    here.disk.countdown = 1;
    await expect(durable(here.session).runOpen(tools)).rejects.toMatchObject({ code: "STORE_FULL" });
    expect(ran, "the other one's start was on its way: that it did not run is on disk").toEqual([]);
    expect(outline(await recordsOf(here.session)).slice(-2)).toEqual(["tool.started c1", "tool.ended c1"]);
    await here.session.turn!.abort({ by: "user" });
    await expect(durable(here.session).runOpen(tools)).rejects.toThrow("No turn is open");
    expect(ran).toEqual([]);
  });

  test("gives a tool the turn's signal, the call's id, the messages and the sandbox", async () => {
    await using here = await left("looks");
    const given: Record<string, unknown>[] = [];
    const looks = tool({
      inputSchema: any,
      execute: async (_, options) => {
        given.push(options as never);
        return "seen";
      },
    });
    const sandbox = { is: "a sandbox" };
    await durable(here.session).runOpen({ looks } as ToolSet, { experimental_sandbox: sandbox });
    expect(given).toMatchObject([
      { toolCallId: "c0", experimental_sandbox: sandbox, abortSignal: expect.any(AbortSignal) },
    ]);
    expect((given[0]!["messages"] as ModelMessage[])[0]).toEqual(PROMPT);
    const signal = given[0]!["abortSignal"] as AbortSignal;
    expect(signal.aborted).toBe(false);
    await here.session.turn!.abort({ by: "user" });
    expect(signal.aborted).toBe(true);
  });
});

describe("R8: a request of the provider's own, for a tool on its side", () => {
  const mcp: Content[] = [
    { type: "tool-call", toolCallId: "p", toolName: "mcp", input: "{}", providerExecuted: true, dynamic: true },
    { type: "tool-approval-request", approvalId: "r", toolCallId: "p" },
  ];

  test.each([
    ["streamText", (settings: object) => streamText(settings as never)],
    ["generateText", (settings: object) => generateText(settings as never)],
  ])(
    "%s: makes the run wait, is recorded as the SDK would send it, and its answer goes back to the provider",
    async (_, start) => {
      await using here = await begun();
      const { session } = here;
      const agent = durable(session);
      const outcome = await agent.finish(start(agent.wrap({ model: scripted(mcp) })));
      expect(outcome).toMatchObject({
        kind: "waiting",
        approvals: [{ approvalId: "r", toolCallId: "p", toolName: "mcp" }],
      });
      const alone = await start({ model: scripted(mcp), messages: [PROMPT] });
      const added = await (alone as { responseMessages: PromiseLike<ModelMessage[]> | ModelMessage[] })
        .responseMessages;
      expect(session.messages.slice(1)).toEqual(added);
      await agent.resume({}, { approvals: [{ approvalId: "r", approved: true }] });
      const response = {
        type: "tool-approval-response" as const,
        approvalId: "r",
        approved: true,
        providerExecuted: true,
      };
      const expected = await promptOf([PROMPT, ...added, { role: "tool", content: [response] }]);
      const model = scripted([text("Done.")]);
      expect(await agent.finish(start(agent.wrap({ model })))).toEqual({ kind: "completed" });
      expect(model.prompts[0]).toEqual(expected);
    },
  );
});
