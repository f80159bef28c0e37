import { jsonSchema, type ToolSet, tool, type UIMessage, type UIMessageChunk } from "ai";
import { describe, expect, test, vi } from "vitest";
import { answersFrom, checkedOutput, newestMessage, promptFrom } from "../../../../src/ai-sdk/chat/browser-message.ts";
import { ChunkLog, type ChunkSource, startingWith } from "../../../../src/ai-sdk/chat/chunk-log.ts";
import { draftParts } from "../../../../src/ai-sdk/chat/draft-parts.ts";
import { endOfAnswer, finish } from "../../../../src/ai-sdk/chat/end-of-answer.ts";
import { streamResponse } from "../../../../src/ai-sdk/chat/event-stream.ts";
import { problemResponse, Refusal, refusalOf } from "../../../../src/ai-sdk/chat/problem.ts";
import { bodyOf, chatId, routeOf } from "../../../../src/ai-sdk/chat/read-request.ts";
import { type OpenWords, uiChanges } from "../../../../src/ai-sdk/chat/ui-changes.ts";
import { RunRegistry } from "../../../../src/ai-sdk/run-registry.ts";
import { uiChunks } from "../../../../src/ai-sdk/ui-chunks.ts";
import { nothing } from "../../../memory-chat.ts";

/** The small modules of the chat handlers, each by itself. */

type Part = UIMessage["parts"][number];

const tools: ToolSet = {
  send: tool({ inputSchema: nothing, needsApproval: true, execute: async () => "Sent." }),
  where: tool({ inputSchema: nothing }),
  count: tool({
    inputSchema: nothing,
    outputSchema: jsonSchema<number>(
      { type: "number" },
      {
        validate: (value) =>
          typeof value === "number" ? { success: true, value: value + 1 } : { success: false, error: new Error("no") },
      },
    ),
  }),
};

describe("an address", () => {
  test.each<[string, string, chat: string | null, isStream: boolean]>([
    ["/api/chat", "/api/chat", null, false],
    ["/api/chat/", "/api/chat", null, false],
    ["/api/chat/c", "/api/chat", "c", false],
    ["/api/chat/c/stream", "/api/chat", "c", true],
    ["/api/chat/a%20b", "/api/chat", "a b", false],
    ["/app/api/chat/c", "/api/chat", "c", false],
    ["/c", "/", "c", false],
    ["/", "/", null, false],
  ])("%s under %s", (address, path, chat, isStream) => {
    expect(routeOf(`http://localhost${address}`, path)).toEqual({ chat, isStream });
  });

  test.each(["/api", "/api/chat/c/other", "/api/chat/c/stream/x", "/chat/c", "/api/chat/%E0%A4%A"])(
    "%s is none",
    (address) => {
      expect(() => routeOf(`http://localhost${address}`, "/api/chat")).toThrow(
        expect.objectContaining({ status: 404, code: "NOT_FOUND" }),
      );
    },
  );

  test.each<[unknown, boolean]>([
    ["c", true],
    ["x".repeat(200), true],
    ["x".repeat(201), false],
    ["", false],
    [7, false],
    [undefined, false],
    ["\ud800", false],
  ])("the id %j of a chat (taken: %s)", (id, isTaken) => {
    if (isTaken) expect(chatId(id)).toBe(id);
    else expect(() => chatId(id)).toThrow(expect.objectContaining({ status: 400 }));
  });
});

describe("a body", () => {
  const request = (body: string, type: string | null = "application/json"): Request =>
    new Request("http://localhost", { method: "POST", body, headers: type === null ? {} : { "content-type": type } });

  test.each<[string, string | null, number]>([
    ['{"a":1}', "application/json", 200],
    ['{"a":1}', "application/json; charset=utf-8", 200],
    ['{"a":1}', "application/merge-patch+json", 200],
    ['{"a":1}', "text/plain", 415],
    ['{"a":1}', "application/jsonp", 415],
    ['{"a":1}', "x-application/json", 415],
    ["[1]", "application/json", 400],
    ["null", "application/json", 400],
    ["7", "application/json", 400],
    ["{", "application/json", 400],
    ["", "application/json", 400],
  ])("%j as %s: %i", async (body, type, status) => {
    const read = bodyOf(request(body, type), 100);
    if (status === 200) expect(await read).toEqual({ a: 1 });
    else await expect(read).rejects.toMatchObject({ status });
  });

  test("may have as many bytes as are allowed, and none more", async () => {
    const body = '{"a":"é"}';
    expect(await bodyOf(request(body), 10)).toEqual({ a: "é" });
    await expect(bodyOf(request(body), 9)).rejects.toMatchObject({ status: 413, code: "TOO_LARGE" });
  });
});

describe("a message of a page", () => {
  const parts = [{ type: "text", text: "Hi." }];
  const user = { id: "m", role: "user", parts };

  test.each<[string, object, string | null]>([
    ["alone", { message: user }, "m"],
    ["as the last of its list", { messages: [{ ...user, id: "first" }, user] }, "m"],
    ["before those of its list", { message: user, messages: [{ ...user, id: "other" }] }, "m"],
    ["of the assistant", { message: { ...user, role: "assistant" } }, "m"],
    ["with the longest id", { message: { ...user, id: "x".repeat(200) } }, "x".repeat(200)],
    ["with a longer one", { message: { ...user, id: "x".repeat(201) } }, null],
    ["without an id", { message: { ...user, id: "" } }, null],
    ["with half a character as its id", { message: { ...user, id: "\ud800" } }, null],
    ["of the system", { message: { ...user, role: "system" } }, null],
    ["that is none", { message: { id: "m" } }, null],
    ["in no list", { messages: "no" }, null],
    ["in an empty list", { messages: [] }, null],
    ["that is missing", {}, null],
  ])("%s", async (_, body, id) => {
    const found = newestMessage(body as never);
    if (id === null) await expect(found).rejects.toMatchObject({ status: 400 });
    else expect((await found).id).toBe(id);
  });

  test("gives its words and files, and nothing else; its metadata cannot hide it", async () => {
    const prompt = await promptFrom({
      ...{ id: "m", role: "user" },
      metadata: { mood: "good", hiddenFromModel: true, hiddenFromUser: true },
      parts: [
        { type: "text", text: "" },
        { type: "text", text: "Look:", providerMetadata: { p: { x: 1 } } },
        { type: "file", mediaType: "text/plain", url: "data:text/plain;base64,QQ==", filename: "a.txt" },
        { type: "file", mediaType: "text/plain", url: "data:text/plain;base64,Qg==" },
        { type: "step-start" },
      ],
    });
    expect(prompt).toMatchObject({ id: "m", metadata: { mood: "good" } });
    const content = prompt.message.content as { type: string; filename?: string }[];
    expect(content.map(({ type, filename }) => filename ?? type)).toEqual(["text", "a.txt", "file"]);
    expect(JSON.parse(prompt.content)).toEqual([
      { type: "text", text: "Look:" },
      { type: "file", mediaType: "text/plain", url: "data:text/plain;base64,QQ==", filename: "a.txt" },
      { type: "file", mediaType: "text/plain", url: "data:text/plain;base64,Qg==" },
    ]);
    for (const metadata of [undefined, null, "words", ["a"], { hiddenFromModel: true }])
      expect((await promptFrom({ ...user, metadata } as never)).metadata).toBe(null);
    await expect(promptFrom({ ...user, parts: [{ type: "text", text: "" }] } as never)).rejects.toMatchObject({
      status: 400,
    });
  });

  test.each<[string, ((url: URL) => boolean | Promise<boolean>) | undefined, boolean]>([
    ["data:text/plain,A", undefined, true],
    ["https://x/a", undefined, false],
    ["https://x/a", async () => true, true],
    ["http://x/a", () => true, true],
    ["https://x/a", () => false, false],
    ["https://x/a", (() => "yes") as never, false],
    ["file:///etc/passwd", () => true, false],
    ["no address", () => true, false],
  ])("a file at %s", async (url, accepts, isTaken) => {
    const message = { ...user, parts: [{ type: "file", mediaType: "text/plain", url }] } as UIMessage;
    if (isTaken) expect((await promptFrom(message, accepts)).id).toBe("m");
    else await expect(promptFrom(message, accepts)).rejects.toMatchObject({ status: 400 });
  });

  test.each<[string, object, unknown]>([
    [
      "approval",
      { type: "tool-send", state: "approval-responded", approval: { id: "a", approved: true } },
      { kind: "approval", id: "a", toolName: "send", answer: { approved: true }, content: "true" },
    ],
    [
      "denial",
      { type: "tool-send", state: "approval-responded", approval: { id: "a", approved: false, reason: "No." } },
      { kind: "approval", id: "a", toolName: "send", answer: { approved: false, reason: "No." }, content: "false" },
    ],
    [
      "output",
      { type: "tool-where", state: "output-available", output: "here" },
      { kind: "output", id: "c", toolName: "where", answer: { value: "here" }, content: '["here"]' },
    ],
    [
      "output of nothing",
      { type: "tool-where", state: "output-available" },
      { kind: "output", id: "c", toolName: "where", answer: { value: null }, content: "[null]" },
    ],
    [
      "failure",
      { type: "tool-where", state: "output-error", errorText: "No." },
      { kind: "output", id: "c", toolName: "where", answer: { error: "No." }, content: "error No." },
    ],
    [
      "dynamic call",
      { type: "dynamic-tool", toolName: "where", state: "output-available", output: 1 },
      { kind: "output", id: "c", toolName: "where", answer: { value: 1 }, content: "[1]" },
    ],
    ["call that is open", { type: "tool-where", state: "input-available" }, null],
    ["output of the server's own tool", { type: "tool-send", state: "output-available", output: 1 }, null],
  ])("the answer in an %s", (_, part, expected) => {
    const message = {
      id: "x",
      role: "assistant",
      parts: [
        { type: "text", text: "So." },
        { toolCallId: "c", input: {}, ...part },
      ],
    };
    expect(answersFrom(message as never, tools)).toEqual(expected === null ? [] : [expected]);
  });

  test("an output is checked by its tool's schema, if it has one", async () => {
    expect(await checkedOutput(tools, "count", 1)).toBe(2);
    expect(await checkedOutput(tools, "where", "here")).toBe("here");
    expect(await checkedOutput(undefined, "where", "here")).toBe("here");
    await expect(checkedOutput(tools, "count", "one")).rejects.toMatchObject({ status: 400 });
  });
});

test.each<[string | null, number | null, string | null]>([
  ["SESSION_BUSY", 409, "BUSY"],
  ["KEY_TAKEN", 409, "MESSAGE_ID_TAKEN"],
  ["MESSAGE_ID_TAKEN", 409, "MESSAGE_ID_TAKEN"],
  ["MESSAGE_UNFIT", 400, "INVALID"],
  ["RECORD_TOO_LARGE", 400, "INVALID"],
  ["STORE_FULL", 507, "STORE_FULL"],
  ["STORE_IO", null, null],
  [null, null, null],
])("an error %s is answered with %s", async (code, status, said) => {
  const error = code === null ? new Error("no") : Object.assign(new Error(code), { name: "HoldfastError", code });
  const refusal = refusalOf(error);
  expect([refusal?.status ?? null, refusal?.code ?? null]).toEqual([status, said]);
  if (!refusal) return;
  const response = problemResponse(refusal);
  expect([response.status, response.headers.get("x-holdfast-code"), await response.text()]).toEqual([
    ...[status, said, refusal.message],
  ]);
  expect(response.headers.get("retry-after")).toBe(said === "BUSY" ? "1" : null);
  expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  const own = new Refusal(418, "TEA", "No.");
  expect(refusalOf(own)).toBe(own);
});

describe("the chunks of an answer", () => {
  const chunk = (delta: string): UIMessageChunk => ({ type: "text-delta", id: "t", delta });
  const read = async (source: ChunkSource): Promise<string[] | null> =>
    (await source.next())?.map((one) => (one.chunk as { delta: string }).delta) ?? null;

  test("are read from any place, as they come, up to the end", async () => {
    const log = new ChunkLog("log-1");
    log.push(chunk("a"), chunk("b"));
    const [all, rest] = [log.from(0), log.from(log.after("log-1-0")!)];
    expect([await read(all), await read(rest), log.length]).toEqual([["a", "b"], ["b"], 2]);
    const [next, other] = [read(all), read(rest)];
    log.push(chunk("c"));
    expect([await next, await other]).toEqual([["c"], ["c"]]);
    const last = read(all);
    log.end();
    expect([await last, await read(rest), await read(log.from(0))]).toEqual([null, null, ["a", "b", "c"]]);
    expect((await log.from(1).next())!.map(({ id }) => id)).toEqual(["log-1-1", "log-1-2"]);
  });

  test.each<[string, number | null]>([
    ["log-1-0", 1],
    ["log-1-1", 2],
    ["log-1-2", null],
    ["log-1--1", null],
    ["log-1-0.5", null],
    ["log-1-x", null],
    ["other-0", null],
    ["", null],
  ])("after %j", (id, position) => {
    const log = new ChunkLog("log-1");
    log.push(chunk("a"), chunk("b"));
    expect(log.after(id)).toBe(position);
  });

  test("come in batches that have an end; who has left gets none", async () => {
    const log = new ChunkLog("log");
    log.push(...Array.from({ length: 600 }, (_, n) => chunk(String(n))));
    const source = log.from(0);
    const got: string[] = [];
    for (const size of [256, 256, 88]) {
      const batch = (await read(source))!;
      expect(batch).toHaveLength(size);
      got.push(...batch);
    }
    expect(got).toEqual(Array.from({ length: 600 }, (_, n) => String(n)));
    const waits = read(source);
    source.cancel();
    expect([await waits, await read(source)]).toEqual([null, null]);
    log.push(chunk("late"));
    expect(await read(source)).toBe(null);
  });

  test("that go before others come first; without others that is all", async () => {
    const log = new ChunkLog("log");
    log.push(chunk("b"));
    const cancel = vi.fn();
    const source = startingWith([chunk("a")], { ...log.from(0), cancel });
    expect([await read(source), await read(source)]).toEqual([["a"], ["b"]]);
    source.cancel();
    expect(cancel).toHaveBeenCalledOnce();
    expect(await read(startingWith([], log.from(0)))).toEqual(["b"]);
    const alone = startingWith([chunk("a")], null);
    expect([await read(alone), await read(alone)]).toEqual([["a"], null]);
    alone.cancel();
  });

  test("are events with their ids, comments in a silence, and a mark at the end", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    using _ = { [Symbol.dispose]: () => vi.useRealTimers() };
    const log = new ChunkLog("log");
    const response = streamResponse(startingWith([chunk("a")], log.from(0)), {
      keepAliveMs: 1000,
      headers: { "x-a": "b" },
    });
    expect([response.status, response.headers.get("x-a"), response.headers.get("content-type")]).toEqual([
      ...[200, "b", "text/event-stream"],
    ]);
    const reader = response.body!.pipeThrough(new TextDecoderStream() as never).getReader();
    const next = async (): Promise<string> => String((await reader.read()).value);
    expect(await next()).toBe(`data: ${JSON.stringify(chunk("a"))}\n\n`);
    for (let silences = 0; silences < 2; silences++) {
      const waits = next();
      await vi.advanceTimersByTimeAsync(1000);
      expect(await waits).toBe(": keep-alive\n\n");
    }
    log.push(chunk("b"), chunk("c"));
    log.end();
    const events = [chunk("b"), chunk("c")].map((one, n) => `id: log-${n}\ndata: ${JSON.stringify(one)}\n\n`);
    expect(await next()).toBe(events.join(""));
    expect(await next()).toBe("data: [DONE]\n\n");
    expect((await reader.read()).done).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a part, as the stream that makes it", () => {
  const call = { toolCallId: "c", input: { a: 1 } };
  const asked = {
    id: "a",
    descriptor: { d: 1 },
    requestReason: "R",
    isAutomatic: false,
    signature: "s",
    inputSchemaInput: 1,
  };
  test.each<[object, object[]]>([
    [{ type: "step-start" }, [{ type: "start-step" }]],
    [{ type: "source-url", url: "u" }, [{ type: "source-url", url: "u" }]],
    [
      { type: "text", text: "t", citations: [1], providerMetadata: { p: 1 } },
      [
        { type: "text-start", id: "m.0" },
        { type: "text-delta", id: "m.0", delta: "t" },
        { type: "text-end", id: "m.0", citations: [1], providerMetadata: { p: 1 } },
      ],
    ],
    [
      { type: "reasoning", text: "t", citations: [1] },
      [
        { type: "reasoning-start", id: "m.0" },
        { type: "reasoning-delta", id: "m.0", delta: "t" },
        { type: "reasoning-end", id: "m.0" },
      ],
    ],
    [
      { type: "tool-x", ...call, state: "input-streaming", rawInput: '{"a"' },
      [
        { type: "tool-input-start", toolCallId: "c", toolName: "x" },
        { type: "tool-input-delta", toolCallId: "c", inputTextDelta: '{"a"' },
      ],
    ],
    [
      { type: "tool-x", ...call, state: "input-streaming" },
      [{ type: "tool-input-start", toolCallId: "c", toolName: "x" }],
    ],
    [
      {
        ...{ type: "dynamic-tool", toolName: "y", ...call, state: "input-available" },
        ...{ providerExecuted: true, callProviderMetadata: { p: 1 }, title: "T", toolMetadata: { m: 1 } },
      },
      [
        {
          ...{ type: "tool-input-available", toolCallId: "c", toolName: "y", dynamic: true, input: { a: 1 } },
          ...{ providerExecuted: true, providerMetadata: { p: 1 }, title: "T", toolMetadata: { m: 1 } },
        },
      ],
    ],
    [
      { type: "tool-x", ...call, state: "approval-requested", approval: { id: "a" } },
      [
        { type: "tool-input-available", toolCallId: "c", toolName: "x", input: { a: 1 } },
        { type: "tool-approval-request", approvalId: "a", toolCallId: "c" },
      ],
    ],
    [
      { type: "tool-x", ...call, state: "output-denied", approval: { ...asked, approved: false, reason: "No." } },
      [
        { type: "tool-input-available", toolCallId: "c", toolName: "x", input: { a: 1 } },
        {
          ...{ type: "tool-approval-request", approvalId: "a", toolCallId: "c", inputSchemaInput: 1 },
          ...{ approvalDescriptor: { d: 1 }, reason: "R", isAutomatic: false, signature: "s" },
        },
        { type: "tool-approval-response", approvalId: "a", approved: false, reason: "No." },
        { type: "tool-output-denied", toolCallId: "c" },
      ],
    ],
    [
      {
        type: "tool-x",
        ...call,
        state: "output-available",
        output: 1,
        preliminary: true,
        providerExecuted: false,
        resultProviderMetadata: { r: 1 },
      },
      [
        { type: "tool-input-available", toolCallId: "c", toolName: "x", input: { a: 1 }, providerExecuted: false },
        {
          type: "tool-output-available",
          toolCallId: "c",
          output: 1,
          providerExecuted: false,
          providerMetadata: { r: 1 },
          preliminary: true,
        },
      ],
    ],
    [
      { type: "tool-x", ...call, state: "output-error", errorText: "No." },
      [
        { type: "tool-input-available", toolCallId: "c", toolName: "x", input: { a: 1 } },
        { type: "tool-output-error", toolCallId: "c", errorText: "No." },
      ],
    ],
  ])("%o", (part, chunks) => {
    const message = { id: "m", role: "assistant", parts: [part as Part] } as UIMessage;
    expect(uiChunks(message)).toEqual([{ type: "start", messageId: "m" }, ...chunks]);
    const [start] = uiChunks({ ...message, metadata: { x: 1 } });
    expect(start).toEqual({ type: "start", messageId: "m", messageMetadata: { x: 1 } });
  });
});

describe("words that are still streamed", () => {
  const step: Part = { type: "step-start" };
  const words = (text: string, state: "streaming" | "done", type: "text" | "reasoning" = "text", more = {}): Part =>
    ({ type, text, state, ...more }) as Part;

  test("get no end until they have one, and go on where they are", () => {
    const open: OpenWords = new Map();
    const states: Part[][] = [
      [],
      [step, words("Hm", "streaming", "reasoning")],
      [step, words("Hm.", "streaming", "reasoning"), words("O", "streaming")],
      [step, words("Hm.", "done", "reasoning", { providerMetadata: { p: 1 } }), words("One", "streaming")],
      [step, words("Hm.", "done", "reasoning"), words("One", "done")],
    ];
    const seen = states.slice(1).map((after, n) => uiChanges(states[n]!, after, "p", open));
    expect(seen).toEqual([
      [
        { type: "start-step" },
        { type: "reasoning-start", id: "p.1" },
        { type: "reasoning-delta", id: "p.1", delta: "Hm" },
      ],
      [
        { type: "reasoning-delta", id: "p.1", delta: "." },
        { type: "text-start", id: "p.2" },
        { type: "text-delta", id: "p.2", delta: "O" },
      ],
      [
        { type: "reasoning-end", id: "p.1", providerMetadata: { p: 1 } },
        { type: "text-delta", id: "p.2", delta: "ne" },
      ],
      [{ type: "text-end", id: "p.2" }],
    ]);
    expect([...open]).toEqual([]);
  });

  test("that are others than before are cleared and sent again; so is a call that is another", () => {
    const open: OpenWords = new Map([[1, "p.1"]]);
    const types = (before: Part[], after: Part[], of: OpenWords = open): string[] =>
      uiChanges(before, after, "p", of).map(({ type }) => type);
    expect(types([step, words("One", "streaming")], [step, words("Two", "streaming")])).toEqual([
      ...["reset-step", "text-start", "text-delta"],
    ]);
    const call = (toolCallId: string): Part =>
      ({ type: "tool-x", toolCallId, state: "input-available", input: {} }) as never;
    expect(types([step, call("a")], [step, call("b")])).toEqual(["reset-step", "tool-input-available"]);
    expect(types([step, call("a")], [step, call("a")])).toEqual([]);
    const source = (url: string): Part => ({ type: "source-url", sourceId: "s", url }) as never;
    expect(types([step, source("u")], [step, source("u")])).toEqual([]);
    expect(types([step, source("u")], [step, source("v")])).toEqual(["reset-step", "source-url"]);
    expect(types([step, words("One", "done")], [step, words("One two", "done")], new Map())).toEqual([
      ...["reset-step", "text-start", "text-delta", "text-end"],
    ]);
    expect(types([step, words("One", "done")], [])).toEqual(["reset-step"]);
  });

  test("and inputs: each piece is sent once, and the whole input when it is complete", () => {
    const input = (more: object): Part => ({ type: "tool-x", toolCallId: "c", ...more }) as never;
    const half = input({ state: "input-streaming", rawInput: '{"a' });
    const more = input({ state: "input-streaming", rawInput: '{"a":1}' });
    const whole = input({ state: "input-available", input: { a: 1 } });
    const asked = input({ state: "approval-requested", input: { a: 1 }, approval: { id: "q" } });
    const types = (before: Part, after: Part): string[] =>
      uiChanges([step, before], [step, after], "p").map(({ type }) => type);
    expect(uiChanges([step, half], [step, more], "p")).toEqual([
      { type: "tool-input-delta", toolCallId: "c", inputTextDelta: '":1}' },
    ]);
    expect(types(more, more)).toEqual([]);
    expect(types(half, whole)).toEqual(["tool-input-available"]);
    expect(types(half, asked)).toEqual(["tool-input-available", "tool-approval-request"]);
    expect(types(whole, asked)).toEqual(["tool-approval-request"]);
    expect(types(asked, asked)).toEqual([]);
  });

  test("of a draft are its last step", () => {
    const draft = { id: "d", text: "One", reasoning: "Hm", gap: false, calls: [{ id: "c", name: "send", input: "{" }] };
    const call = { toolCallId: "c", state: "input-streaming", input: undefined, rawInput: "{" };
    const parts = [step, words("Hm", "streaming", "reasoning"), words("One", "streaming")];
    expect(draftParts(draft, { tools })).toEqual([...parts, { type: "tool-send", ...call }]);
    expect(draftParts(draft, {})).toEqual([...parts, { type: "tool-send", ...call }]);
    expect(draftParts(draft, { tools: {} }).at(-1)).toEqual({ type: "dynamic-tool", toolName: "send", ...call });
    expect(draftParts({ ...draft, calls: [] }, { sendReasoning: false })).toEqual([step, words("One", "streaming")]);
    expect(draftParts({ ...draft, text: "", reasoning: "", calls: [] }, {})).toEqual([step]);
  });
});

test("an answer that broke off ends with an error, any other with its metadata", () => {
  const cut = { turn: 2, how: { kind: "killed" }, answered: false, calls: [] };
  const view = (interruption: object | null) =>
    ({ id: "s", entries: [], messages: [], interruption, queue: [], running: null }) as never;
  const end = (interruption: object | null, turn: number | null | undefined): string =>
    endOfAnswer(view(interruption), turn, undefined, { tools }, String).type;
  expect([end(null, 2), end(cut, 2), end(cut, 1), end(null, null), end(cut, undefined)]).toEqual([
    ...["finish", "error", "finish", "error", "finish"],
  ]);
  expect(end({ ...cut, answered: true }, 2)).toBe("finish");
  expect(finish({ metadata: { x: 1 } } as never)).toEqual({ type: "finish", messageMetadata: { x: 1 } });
  expect(finish(undefined)).toEqual({ type: "finish" });
});

describe("which run a result belongs to", () => {
  const turn = {} as never;
  const run = (more: object = {}) =>
    ({ turn, asked: null, failure: null, stopped: new AbortController().signal, ...more }) as never;

  test("the first that asked the model and that no other result has; without one, the newest", () => {
    const runs = new RunRegistry();
    const [idle, first, second] = [run(), run({ asked: {} }), run({ asked: {} })];
    for (const one of [idle, first, second]) runs.add(one);
    const none = new RunRegistry().claim({} as never, turn);
    expect(none()).toBe(null);
    const early = new RunRegistry();
    early.add(run());
    const claim = early.claim({} as never, turn);
    const [waiting, newest] = [run(), run()];
    early.add(waiting);
    early.add(newest);
    expect(claim()).toBe(newest);
  });

  test("not one that began before, of another turn, or claimed; the same result again gets the same", () => {
    const runs = new RunRegistry();
    const before = run({ asked: {} });
    runs.add(before);
    const newest = run({ turn: {}, asked: {} });
    runs.add(newest);
    const [one, two] = [{} as never, {} as never];
    const [claimOne, claimTwo] = [runs.claim(one, turn), runs.claim(two, turn)];
    const [first, failed] = [run({ asked: {} }), run({ failure: {} })];
    runs.add(first);
    runs.add(failed);
    expect([claimOne(), claimTwo()]).toEqual([first, failed]);
    expect(claimOne()).toBe(first);
    expect(runs.claim(one, turn)()).toBe(first);
    expect(runs.claim({} as never, null)()).toBe(null);
  });

  test("who watches hears of each failure, until it stops watching", () => {
    const runs = new RunRegistry();
    const [one, two] = [new AbortController(), new AbortController()];
    runs.add(run({ stopped: one.signal }));
    runs.add(run({ stopped: two.signal }));
    const watcher = vi.fn();
    const stop = runs.watch(watcher);
    one.abort();
    expect(watcher).toHaveBeenCalledOnce();
    stop();
    two.abort();
    expect(watcher).toHaveBeenCalledOnce();
  });
});
