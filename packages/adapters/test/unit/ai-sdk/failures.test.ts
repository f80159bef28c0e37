import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { validateAiSdk } from "@holdfast/testkit";
import {
  APICallError,
  createUIMessageStreamResponse,
  generateText,
  jsonSchema,
  type ModelMessage,
  streamText,
  ToolLoopAgent,
  tool,
  toUIMessageStream,
} from "ai";
import { HoldfastError, isHoldfastError, openStore, type Session } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { place } from "../../../../holdfast/test/place.ts";
import { durable } from "../../../src/ai-sdk/index.ts";
import { begun, everyWay, outline, PROMPT, recordsOf, streamingWays } from "../../agents.ts";
import { FailingDisk } from "../../failing-disk.ts";
import { call, finished, promptOf, scripted, streamOf, text } from "../../scripted-model.ts";

const any = jsonSchema<object>({ type: "object" });
const NEXT: ModelMessage = { role: "user", content: "And now?" };
const free = tool({ inputSchema: any, execute: async () => "done" });

function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  return Promise.withResolvers<T>();
}

/** What a tool does that waits, and gives up when it is told to. */
function aborted(signal: AbortSignal | undefined, running: () => void): Promise<string> {
  const { promise, reject } = deferred<string>();
  signal?.addEventListener("abort", () => reject(signal.reason));
  running();
  return promise;
}

/** A stream that goes on when the test says so, and ends when it is aborted, as that of a provider does. */
function held(
  parts: LanguageModelV4StreamPart[],
  signal: AbortSignal | undefined,
): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      signal?.addEventListener("abort", () => controller.error(signal.reason));
    },
  });
}

const words = (delta: string, id = "t"): LanguageModelV4StreamPart[] => [
  { type: "text-start", id },
  { type: "text-delta", id, delta },
];

async function draftText(session: Session<ModelMessage>): Promise<string | undefined> {
  await session.flush();
  return session.interruption?.draft?.text;
}

describe.each(streamingWays)("%s", (_, start) => {
  test.each(["the application's signal", "turn.abort"])(
    "C12: stopped in mid-text by %s, the text stays",
    async (by) => {
      await using here = await begun();
      const { session } = here;
      const agent = durable(session);
      const shown = deferred();
      const model = scripted(({ abortSignal }) => {
        queueMicrotask(shown.resolve);
        return { stream: held([...words("Once upon"), ...words(" a time")], abortSignal) };
      });
      const controller = new AbortController();
      const { run } = start(agent, { model, abortSignal: controller.signal });
      const outcome = agent.finish(run);
      await shown.promise;
      await vi.waitFor(
        async () => expect((await recordsOf(session)).some(({ kind }) => kind === "draft")).toBe(true),
        60_000,
      );
      if (by === "turn.abort") await session.turn!.abort({ by: "user" });
      else controller.abort();
      expect(await outcome).toEqual({ kind: "aborted" });
      expect(session.turn).toBe(null);
      expect(await draftText(session)).toBe("Once upon a time");
      await session.startTurn(NEXT);
      expect(JSON.stringify(session.messages)).toContain("Once upon a time");
      expect(validateAiSdk(session.messages)).toEqual([]);
    },
  );

  test("C36: a stream that fails and is retried leaves nothing of its words behind", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const model = scripted(
      { stream: streamOf([...words("A wrong beginning"), { type: "error", error: new Error("overloaded") }]) },
      () =>
        Promise.reject(
          new APICallError({
            message: "busy",
            url: "",
            requestBodyValues: {},
            statusCode: 503,
            responseHeaders: { "retry-after-ms": "1" },
            isRetryable: true,
          }),
        ),
      [text("The right one.")],
    );
    const { run } = start(agent, { model, streamRetries: 1, maxRetries: 1 });
    expect(await agent.finish(run)).toEqual({ kind: "completed" });
    const records = await recordsOf(session);
    expect(session.messages).toEqual([
      PROMPT,
      { role: "assistant", content: [{ type: "text", text: "The right one." }] },
    ]);
    expect(outline(records)).toEqual(["turn.started", "message user", "message assistant", "turn.ended"]);
    expect(records.some((record) => record.kind === "draft" && record["discarded"] !== undefined)).toBe(true);
  });

  test("an error in mid-stream: the run failed, the words are kept as a draft, and no tool runs", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const error = new Error("overloaded");
    const ran: string[] = [];
    const tools = { free: tool({ inputSchema: any, execute: async () => ran.push("free") }) };
    const parts = [
      ...words("Half an"),
      call("a", "free") as LanguageModelV4StreamPart,
      { type: "error" as const, error },
    ];
    const model = scripted({ stream: streamOf([...parts, finished("error")]) });
    const outcome = await agent.finish(start(agent, { model, tools }).run);
    expect(outcome).toEqual({ kind: "failed", error });
    expect(ran).toEqual([]);
    expect(session.interruption).toMatchObject({ how: { kind: "failed" }, draft: { text: "Half an" }, calls: [] });
  });

  test("P3: an answer of which a piece could not be read is none, though the SDK goes on: no tool runs, and nothing more is asked", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const error = new Error("a chunk could not be read");
    const ran: string[] = [];
    const tools = { free: tool({ inputSchema: any, execute: async () => ran.push("free") }) };
    const parts: LanguageModelV4StreamPart[] = [
      ...words("Do"),
      { type: "error", error },
      { type: "text-delta", id: "t", delta: " send it." },
      { type: "text-end", id: "t" },
      call("a", "free") as LanguageModelV4StreamPart,
    ];
    const model = scripted({ stream: streamOf([...parts, finished("tool-calls")]) }, [text("As you wish.")]);
    expect(await agent.finish(start(agent, { model, tools }).run)).toEqual({ kind: "failed", error });
    expect(ran).toEqual([]);
    expect(model.prompts).toHaveLength(1);
    expect(session.messages).toEqual([PROMPT]);
    expect(session.interruption).toMatchObject({ draft: { text: "Do send it." }, calls: [] });
    expect(session.usage, "it was paid for").toMatchObject({ outputTokens: 5 });
  });

  test("a stream that ends without an end is not an answer", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const model = scripted({ stream: streamOf([...words("Half an"), { type: "text-end", id: "t" }]) });
    const outcome = await agent.finish(start(agent, { model }).run);
    expect(outcome).toMatchObject({
      kind: "failed",
      error: { message: expect.stringContaining("before it was complete") },
    });
    expect(await draftText(session)).toBe("Half an");
    expect(session.messages).toEqual([PROMPT]);
  });

  test("stopped by the turn's own signal, a run does not wait for a tool that never ends", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const turn = session.turn!;
    const running = deferred();
    const never = tool({
      inputSchema: any,
      execute: () => {
        running.resolve();
        return new Promise<string>(() => {});
      },
    });
    const { run } = start(agent, {
      model: scripted([call("a", "never")]),
      tools: { never },
      abortSignal: turn.signal,
    });
    const outcome = agent.finish(run);
    await running.promise;
    await turn.abort({ by: "user" });
    expect(await outcome).toEqual({ kind: "aborted" });
    expect(session.interruption).toMatchObject({ calls: [{ id: "a", state: "outcome-unknown" }] });
  });

  test("ids of texts and of reasoning that are used again within one answer are other parts of the draft", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const said = (id: string, delta: string) =>
      [
        { type: "text-start", id },
        { type: "text-delta", id, delta },
        { type: "text-end", id },
      ] as const;
    const thought = (id: string, delta: string) =>
      [
        { type: "reasoning-start", id },
        { type: "reasoning-delta", id, delta },
        { type: "reasoning-end", id },
      ] as const;
    const parts = [
      ...[...thought("r", "one "), ...thought("s", "two "), ...thought("r", "three")],
      ...[...said("t", "One "), ...said("u", "two "), ...said("t", "three")],
    ];
    const model = scripted({ stream: streamOf([...parts, { type: "error", error: new Error("cut") }]) });
    await agent.finish(start(agent, { model }).run);
    expect(session.interruption?.draft).toMatchObject({ text: "One two three", reasoning: "one two three" });
  });

  test("parallel tool inputs that interleave are kept apart in the draft", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const model = scripted({
      stream: streamOf([
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "hm" },
        { type: "tool-input-start", id: "a", toolName: "free" },
        { type: "tool-input-start", id: "b", toolName: "free" },
        { type: "tool-input-delta", id: "a", delta: '{"a"' },
        { type: "tool-input-delta", id: "b", delta: '{"b"' },
        { type: "tool-input-delta", id: "a", delta: ":1" },
        { type: "error", error: new Error("cut") },
      ]),
    });
    await agent.finish(start(agent, { model, tools: { free } }).run);
    expect(session.interruption?.draft).toMatchObject({
      reasoning: "hm",
      calls: [
        { id: "a", name: "free", input: '{"a":1' },
        { id: "b", name: "free", input: '{"b"' },
      ],
    });
  });
});

test("texts and reasoning whose ids come again within one answer are parts of their own in the draft", async () => {
  await using here = await begun();
  const { session } = here;
  const agent = durable(session);
  const piece = (type: "text" | "reasoning", delta: string): LanguageModelV4StreamPart[] => [
    { type: `${type}-start`, id: "0" },
    { type: `${type}-delta`, id: "0", delta },
    { type: `${type}-end`, id: "0" },
  ];
  const parts = [
    ...piece("reasoning", "first"),
    ...piece("text", "One."),
    ...piece("reasoning", "second"),
    ...piece("text", "Two."),
  ];
  const model = scripted({ stream: streamOf([...parts, { type: "error", error: new Error("cut") }]) });
  await agent.finish(streamText(agent.wrap({ model, maxRetries: 0, onError: () => {} })));
  const drafted = (await recordsOf(session)).flatMap(({ kind, parts }) =>
    kind === "draft" ? (parts as object[]) : [],
  );
  expect(drafted).toMatchObject([
    { part: 0, reasoning: "first" },
    { part: 1, text: "One." },
    { part: 2, reasoning: "second" },
    { part: 3, text: "Two." },
  ]);
});

describe.each(everyWay)("%s", (way, start) => {
  test("the model cannot be reached: the run failed with its error, and the turn can be resumed", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const error = new Error("no route");
    const outcome = await agent.finish(start(agent, { model: scripted(() => Promise.reject(error)) }).run);
    expect(outcome).toMatchObject({ kind: "failed", error });
    await session.resumeTurn();
    expect(await agent.finish(start(agent, { model: scripted([text("Now.")]) }).run)).toEqual({ kind: "completed" });
  });

  test("C11, C14: stopped while a tool runs, its late result is recorded with its own turn, and the run touches no other", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const running = deferred();
    const release = deferred<string>();
    const tools = {
      free,
      slow: tool({
        inputSchema: any,
        execute: () => {
          running.resolve();
          return release.promise;
        },
      }),
    };
    const controller = new AbortController();
    const model = scripted([text("Both."), call("a", "free"), call("b", "slow")], [text("I go on regardless.")]);
    const { run } = start(agent, { model, tools, abortSignal: controller.signal });
    const outcome = agent.finish(run);
    await running.promise;
    await vi.waitFor(async () => expect(outline(await recordsOf(session))).toContain("tool.ended a"), 60_000);
    controller.abort();
    await session.turn!.abort({ by: "user" });
    const second = await session.startTurn(NEXT);
    release.resolve("late, but done");
    expect(await outcome).toEqual({ kind: "aborted" });
    await vi.waitFor(async () => expect(outline(await recordsOf(session))).toContain("tool.ended b"), 60_000);
    const late = (await recordsOf(session)).find(({ kind, call }) => kind === "tool.ended" && call === "b");
    expect(late).toMatchObject({ turn: 1, value: "late, but done" });
    expect(session.turn).toBe(second);
    expect(await agent.finish(start(agent, { model: scripted([text("Fine.")]) }).run)).toEqual({ kind: "completed" });
    const spoken = (await recordsOf(session)).filter(
      ({ kind, message }) => kind === "message" && JSON.stringify(message).includes("regardless"),
    );
    expect(spoken, "the stopped run says nothing more, in no turn").toEqual([]);
    expect(validateAiSdk([...session.messages, NEXT])).toEqual([]);
  });

  test("a tool hears of turn.abort, and what it comes to is recorded", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const running = deferred();
    const tools = {
      waits: tool({ inputSchema: any, execute: (_, { abortSignal }) => aborted(abortSignal, running.resolve) }),
    };
    const outcome = agent.finish(start(agent, { model: scripted([call("a", "waits")]), tools }).run);
    await running.promise;
    await session.turn!.abort({ by: "user" });
    expect(await outcome).toEqual({ kind: "aborted" });
    await vi.waitFor(async () => expect(outline(await recordsOf(session))).toContain("tool.ended a"), 60_000);
    const ended = (await recordsOf(session)).find(({ kind }) => kind === "tool.ended");
    expect(ended).toMatchObject({ turn: 1, error: expect.stringContaining("stopped by user") });
  });

  test("R6: a tool that streams its results is ended by the SDK when it is stopped: that, too, is recorded, once", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const controller = new AbortController();
    let isClosed = false;
    const tools = {
      streams: tool({
        inputSchema: any,
        execute: async function* () {
          try {
            yield "half";
            controller.abort();
            for (let n = 0; n < 20; n++) await new Promise(setImmediate);
            yield "whole";
          } finally {
            isClosed = true;
          }
        },
      }),
    };
    const model = scripted([call("a", "streams")]);
    const { run } = start(agent, { model, tools, abortSignal: controller.signal });
    expect(await agent.finish(run)).toEqual({ kind: "aborted" });
    await vi.waitFor(async () => expect(outline(await recordsOf(session))).toContain("tool.ended a"), 60_000);
    expect(isClosed).toBe(true);
    const ended = (await recordsOf(session)).filter(({ kind }) => kind === "tool.ended");
    // `generateText` hears it out.
    const cutOff = { error: expect.stringContaining("stopped before it finished") };
    expect(ended).toMatchObject([way.includes("tream") ? cutOff : { value: "whole" }]);
  });

  test("stopped between the answer and its tools, no tool is started, and that is known", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const controller = new AbortController();
    const ran: string[] = [];
    const tools = { free: tool({ inputSchema: any, execute: async () => ran.push("free") }) };
    const settings = { model: scripted([call("a", "free")]), tools, onLanguageModelCallEnd: () => controller.abort() };
    const { run } = start(agent, { ...settings, abortSignal: controller.signal });
    expect(await agent.finish(run)).toEqual({ kind: "aborted" });
    expect(ran).toEqual([]);
    expect(outline(await recordsOf(session))).not.toContain("tool.started a");
    expect(session.interruption).toMatchObject({ calls: [{ id: "a", state: "never-started" }] });
  });

  test("stopped while its start is written, a tool does not run, and that is recorded", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const turn = session.turn!;
    const toolStarted = turn.toolStarted.bind(turn);
    turn.toolStarted = async (...options) => {
      const started = await toolStarted(...options);
      await turn.abort({ by: "user" });
      return started;
    };
    const ran: string[] = [];
    const tools = { free: tool({ inputSchema: any, execute: async () => ran.push("free") }) };
    expect(await agent.finish(start(agent, { model: scripted([call("a", "free")]), tools }).run)).toEqual({
      kind: "aborted",
    });
    await vi.waitFor(async () => expect(outline(await recordsOf(session))).toContain("tool.ended a"), 60_000);
    expect(ran).toEqual([]);
  });

  test("C19: a result that cannot be recorded stops the tools beside it", async () => {
    using folder = place();
    const disk = new FailingDisk();
    await using store = await disk.open(folder.path);
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    const running = deferred();
    const tools = {
      waits: tool({ inputSchema: any, execute: (_, { abortSignal }) => aborted(abortSignal, running.resolve) }),
      fills: tool({
        inputSchema: any,
        execute: async () => {
          await running.promise;
          disk.countdown = 1;
          return "the disk is full";
        },
      }),
    };
    const run = start(agent, { model: scripted([call("a", "waits"), call("b", "fills")]), tools }).run;
    await expect(agent.outcome(run)).rejects.toMatchObject({ code: "STORE_FULL" });
    expect(session.turn, "there is space again: the turn can be ended, or gone on with").not.toBe(null);
    await session.turn!.fail("the disk was full");
  });

  test("C19: a failure that cannot be recorded stops the run, and is recorded when there is space", async () => {
    using folder = place();
    const disk = new FailingDisk();
    await using store = await disk.open(folder.path);
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    const fills = tool({
      inputSchema: any,
      execute: async (): Promise<string> => {
        disk.countdown = 1;
        throw new Error("the tool is broken, too");
      },
    });
    const model = scripted([call("a", "fills")], [text("I go on.")]);
    await expect(agent.outcome(start(agent, { model, tools: { fills } }).run)).rejects.toMatchObject({
      code: "STORE_FULL",
    });
    expect(model.prompts).toHaveLength(1);
    await agent.runOpen({ fills });
    expect(JSON.stringify(session.messages.at(-1))).toContain("the tool is broken, too");
  });

  test("C14: two sessions at once keep their records to themselves", async () => {
    await using one = await begun();
    await using two = await begun();
    const both = [one.session, two.session].map((session, at) => {
      const agent = durable(session);
      const tools = { name: tool({ inputSchema: any, execute: async () => `of ${at}` }) };
      const model = scripted([text(`I am ${at}.`), call("call_0", "name")], [text(`Still ${at}.`)]);
      return agent.finish(start(agent, { model, tools }).run);
    });
    expect(await Promise.all(both)).toEqual([{ kind: "completed" }, { kind: "completed" }]);
    for (const [at, { session }] of [one, two].entries()) {
      const said = JSON.stringify(session.messages);
      expect(said).toContain(`I am ${at}.`);
      expect(said).toContain(`of ${at}`);
      expect(said).not.toContain(`I am ${1 - at}.`);
    }
  });

  test("C19: whichever write or sync fails, no tool runs that is not on disk as started, and the run says what failed", async () => {
    let wentOn = 0;
    for (let n = 1, isOver = false; !isOver; n++) {
      using folder = place();
      const disk = new FailingDisk();
      const store = await disk.open(folder.path);
      const session = await store.create<ModelMessage>({ dialect: "ai-sdk", draftMs: 0 });
      await session.startTurn(PROMPT);
      const ran: string[] = [];
      const mark = tool({
        inputSchema: any,
        execute: async (_, { toolCallId }) => {
          ran.push(toolCallId);
          return toolCallId;
        },
      });
      const agent = durable(session);
      const steps = [[text("Now."), call("a", "mark"), call("b", "mark")], [call("c", "mark")], [text("Done.")]];
      const model = scripted(...steps);
      disk.countdown = n;
      const outcome = await agent
        .outcome(start(agent, { model, tools: { mark } }).run)
        .catch((error: unknown) => error);
      disk.countdown = 0;
      isOver = disk.failed === 0;
      if (isOver) expect(outcome).toEqual({ kind: "completed" });
      // A draft that could not be written and was followed by an answer that could is no loss.
      else expect(outcome, `operation ${n}`).toMatchObject({ code: expect.stringMatching(/^(STORE|SYNC)_/) });
      const isStopped = session.turn!.signal.aborted;
      if (isHoldfastError(outcome, "STORE_FULL") && (!isStopped || n % 4 === 0)) {
        // There is space again. What the tools had come to is not lost, and nothing runs twice.
        const before = [...ran];
        if (isStopped) {
          await session.turn!.fail(outcome);
          await session.resumeTurn({ calls: "rerun" });
        }
        const agent = durable(session);
        if (session.turn!.open.length > 0 || way.startsWith("agent")) await agent.runOpen({ mark });
        const answered = session.messages.filter(({ role }) => role === "assistant").length;
        const again = scripted(...steps.slice(answered));
        expect(await agent.outcome(start(agent, { model: again, tools: { mark } }).run)).toEqual({ kind: "completed" });
        expect(ran.toSorted(), `operation ${n}`).toEqual([...new Set(ran)].sort());
        const results = again.prompts.at(-1)!.flatMap(({ role, content }) => (role === "tool" ? content : []));
        expect(JSON.stringify(results), `operation ${n}`).not.toContain("Still running");
        for (const id of before) {
          expect(results, `operation ${n}`).toContainEqual(
            expect.objectContaining({ toolCallId: id, output: { type: "text", value: id } }),
          );
        }
        wentOn++;
      }
      await session.close().catch(() => {});
      await store.close().catch(() => {});

      await using again = await openStore(folder.path, { recordsToolStarts: true });
      const resumed = await again.resume<ModelMessage>(session.id);
      const started = outline(await recordsOf(resumed)).filter((line) => line.startsWith("tool.started"));
      for (const id of ran) expect(started, `operation ${n}`).toContain(`tool.started ${id}`);
      if (resumed.interruption) await resumed.resumeTurn();
      else await resumed.startTurn(NEXT);
      expect(validateAiSdk(resumed.messages), `operation ${n}`).toEqual([]);
    }
    expect(wentOn).toBeGreaterThan(3);
  });

  test("what a tool throws may have no words: that it ran is recorded all the same", async () => {
    await using here = await begun();
    const agent = durable(here.session);
    const round: Record<string, unknown> = {};
    round["self"] = round;
    const tools = { round: tool({ inputSchema: any, execute: () => Promise.reject<string>(round) }) };
    const outcome = await agent.finish(start(agent, { model: scripted([call("a", "round")]), tools }).run);
    expect(outcome).toMatchObject({ kind: "failed", error: { name: "TypeError" } });
    const ended = (await recordsOf(here.session)).filter(({ kind }) => kind === "tool.ended");
    expect(ended).toMatchObject([{ call: "a", error: expect.any(String) }]);
    expect(ended[0], "the session finds words of its own").not.toHaveProperty("shown");
  });

  test.each([
    ["a symbol", Symbol("why"), "Symbol(why)"],
    ["a function", Object.assign(() => {}, { toString: () => "fn" }), "fn"],
    ["a number", 42, "42"],
    ["nothing", undefined, "unknown error"],
    ["null", null, "unknown error"],
    ["an object", { code: 7 }, '{"code":7}'],
    ["a text", "broken", "broken"],
    ["an error without words", new Error(""), "Error"],
  ])("a tool that throws %s has failed, in words, and the model is told", async (_, thrown, words) => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const tools = { throws: tool({ inputSchema: any, execute: () => Promise.reject<string>(thrown) }) };
    const { run } = start(agent, { model: scripted([call("a", "throws")], [text("I see.")]), tools });
    expect(await agent.finish(run)).toEqual({ kind: "completed" });
    const [ended] = (await recordsOf(session)).filter(({ kind }) => kind === "tool.ended");
    expect(ended).toMatchObject({ call: "a", error: expect.any(String) });
    const result = session.messages.find(({ role }) => role === "tool")!;
    expect(result.content).toMatchObject([{ output: { type: "error-text", value: words } }]);
  });

  test.each(["LEASE_LOST", "FILE_REPLACED"] as const)(
    "P6: %s in mid-turn: no tool runs, nothing more is asked, and the run says so",
    async (code) => {
      await using here = await begun();
      const { session } = here;
      const agent = durable(session);
      const error = new HoldfastError(code, "Another process writes to it now.", {});
      session.turn!.toolStarted = () => Promise.reject(error);
      const ran: string[] = [];
      const tools = { free: tool({ inputSchema: any, execute: async () => ran.push("free") }) };
      const model = scripted([call("a", "free"), call("b", "free")], [text("I go on.")]);
      await expect(agent.finish(start(agent, { model, tools }).run)).rejects.toBe(error);
      expect(ran).toEqual([]);
      expect(model.prompts).toHaveLength(1);
    },
  );

  test("callbacks of the application's own are called, and theirs is theirs to fail", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const heard: string[] = [];
    const listen = (name: string) => () => {
      heard.push(name);
      throw new Error("mine");
    };
    const names = [
      "onLanguageModelCallStart",
      "onLanguageModelCallEnd",
      "onToolExecutionStart",
      "onToolExecutionEnd",
      "onStepEnd",
      "onEnd",
    ];
    const callbacks = Object.fromEntries(names.map((name) => [name, listen(name)]));
    const model = scripted([call("a", "free")], [text("Done.")]);
    expect(await agent.finish(start(agent, { model, tools: { free }, ...callbacks }).run)).toEqual({
      kind: "completed",
    });
    expect(new Set(heard)).toEqual(new Set(names));
    expect(outline(await recordsOf(session)).filter((line) => line === "message assistant").length).toBe(2);
  });

  test("an answer that the SDK refuses is not recorded as said", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const model = scripted([text("I would rather talk.")]);
    const outcome = await agent.finish(start(agent, { model, tools: { free }, toolChoice: "required" }).run);
    expect(outcome).toMatchObject({ kind: "failed", error: { name: "AI_ToolChoiceViolationError" } });
    expect(session.messages).toEqual([PROMPT]);
  });

  test("an answer without content, and one that was cut off at its limit", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    expect(await agent.outcome(start(agent, { model: scripted([]) }).run)).toEqual({ kind: "completed" });
    expect(session.messages).toEqual([PROMPT]);
    expect(session.usage).toMatchObject({
      inputTokens: 7,
      outputTokens: 5,
      cacheReadTokens: 2,
      cacheWriteTokens: 1,
      reasoningTokens: 2,
    });
    const ran: string[] = [];
    const tools = { free: tool({ inputSchema: any, execute: async () => ran.push("free") }) };
    const model = scripted({ content: [text("Too lo"), call("a", "free")], finish: "length" });
    expect(await agent.finish(start(agent, { model, tools }).run)).toEqual({ kind: "completed" });
    expect(ran, "the SDK does not run calls of an answer that was cut off").toEqual([]);
    await session.startTurn(NEXT);
    expect(validateAiSdk(session.messages)).toEqual([]);
    expect(JSON.stringify(session.messages)).toContain("never started");
  });
});

test("of two runs at once in one turn, the second is recorded, and the first says that it was not", async () => {
  await using here = await begun();
  const agent = durable(here.session);
  const runs = ["One.", "Two."].map((words) =>
    agent.outcome(generateText(agent.wrap({ model: scripted([text(words)]) }))),
  );
  expect(await Promise.all(runs)).toMatchObject([
    { kind: "failed", error: { code: "DRAFT_DISCARDED" } },
    { kind: "completed" },
  ]);
  expect(JSON.stringify(here.session.messages)).toMatch(/^(?!.*One\.).*Two\./);
});

test("C14: of two runs of one agent, each comes to its own end, whichever is first", async () => {
  await using here = await begun();
  const { session } = here;
  const agent = durable(session);
  const running = deferred();
  const release = deferred<string>();
  const slow = tool({
    inputSchema: any,
    execute: () => {
      running.resolve();
      return release.promise;
    },
  });
  const error = new Error("no route");
  const model = scripted([call("a", "slow")], () => Promise.reject(error));
  const loop = new ToolLoopAgent(agent.wrap({ model, tools: { slow }, maxRetries: 0 }));
  const first = agent.finish(loop.generate({ messages: agent.messages() }));
  await running.promise;
  await session.turn!.abort({ by: "user" });
  await session.startTurn(NEXT);
  expect(await agent.finish(loop.generate({ messages: agent.messages() }))).toEqual({ kind: "failed", error });
  release.resolve("late");
  expect(await first).toEqual({ kind: "aborted" });
});

test("C19: where the application puts its own callback over the recorder's, no tool runs", async () => {
  await using here = await begun();
  const { session } = here;
  const agent = durable(session);
  const ran: string[] = [];
  const tools = { free: tool({ inputSchema: any, execute: async () => ran.push("free") }) };
  const settings = agent.wrap({ model: scripted([call("a", "free")]), tools });
  const run = streamText({ ...settings, onLanguageModelCallEnd: () => {} });
  expect(await agent.finish(run)).toMatchObject({ kind: "failed" });
  expect(ran).toEqual([]);
  expect(String((await run.finalStep).content.find(({ type }) => type === "tool-error")?.["error" as never])).toContain(
    "was not recorded",
  );
});

test.each(["textStream", "a browser's response"])(
  "C13: a reader of %s that cancels fires nothing: the run is read to its end, and recorded",
  async (what) => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const model = scripted([text("One."), call("a", "free")], [text("Two.")]);
    const run = streamText(agent.wrap({ model, tools: { free }, stopWhen: [] }));
    const finished = agent.finish(run);
    const stream: ReadableStream<unknown> =
      what === "textStream"
        ? run.textStream
        : createUIMessageStreamResponse({ stream: toUIMessageStream({ stream: run.stream }) }).body!;
    const reader = stream.getReader();
    await reader.read();
    await reader.cancel();
    expect(await finished).toEqual({ kind: "completed" });
    expect(JSON.stringify(session.messages)).toContain("Two.");
    expect(await promptOf([...session.messages, NEXT])).toHaveLength(5);
  },
);

test("R6: a tool that streams and is ended by its reader is on disk as ended when that returns", async () => {
  await using here = await begun();
  const { session } = here;
  const part = { type: "tool-call" as const, toolCallId: "a", toolName: "streams", input: {} };
  await session.turn!.append({ role: "assistant", content: [part] });
  const streams = tool({
    inputSchema: any,
    execute: async function* () {
      yield "half";
      yield "whole";
    },
  });
  const settings = durable(session).wrap({ model: scripted(), tools: { streams } });
  const execute = settings.tools.streams.execute as unknown as (...given: unknown[]) => AsyncGenerator<unknown>;
  const results = execute({}, { toolCallId: "a", messages: [] });
  expect(await results.next()).toEqual({ done: false, value: "half" });
  await results.return(undefined);
  expect(outline(await recordsOf(session)).slice(-2)).toEqual(["tool.started a", "tool.ended a"]);
});
