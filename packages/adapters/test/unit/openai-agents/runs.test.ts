import { Agent, type AgentInputItem, run as runPlain, tool } from "@openai/agents";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { place } from "../../../../holdfast/test/place.ts";
import { type Durable, durable, openaiAgents, type RunOptions } from "../../../src/openai-agents/index.ts";
import { outline, recordsOf } from "../../agents.ts";
import { FailingDisk } from "../../failing-disk.ts";
import { call, resultsIn, ScriptedModel, stage, text } from "../../openai-agents/scripted.ts";

/** Runs without a death, streamed and at once. */

const ways = [
  ["at once", { stream: false }],
  ["streamed", { stream: true }],
] as const;

const nothing = z.object({});

async function finished(held: Durable, agent: Agent, input: string, options: RunOptions) {
  const result = await held.run(agent, input, options as { stream: true });
  return held.finish(result);
}

const records = async (session: Parameters<typeof recordsOf>[0] | unknown): Promise<string[]> =>
  outline(await recordsOf(session as Parameters<typeof recordsOf>[0]));

describe.each(ways)("%s", (_, options) => {
  test("a response is on disk before its tools start, and each start before its tool runs", async () => {
    await using here = await stage();
    const { session } = here;
    const seen: string[][] = [];
    const look = tool({
      name: "look",
      description: "",
      parameters: nothing,
      execute: async () => {
        seen.push(await records(session));
        return { found: 1 };
      },
    });
    const model = new ScriptedModel([[text("I look."), call("a", "look")], [text("Done.")]]);
    const held = durable(session);
    const agent = new Agent({ name: "Looker", model, tools: [look] });
    expect(await finished(held, agent, "Go.", options)).toEqual({ kind: "completed" });
    expect(seen).toHaveLength(1);
    expect(seen[0]!.slice(-1)).toEqual(["tool.started a"]);
    expect(seen[0]!.filter((line) => line.startsWith("message"))).toHaveLength(3);
    expect((await records(session)).slice(-3)).toEqual(["tool.ended a", "message assistant", "turn.ended"]);
    expect(session.usage).toMatchObject({ inputTokens: 20, outputTokens: 6 });
    expect(session.entries.at(-1)!.metadata).toEqual({ agent: "Looker" });
  });

  test("what is asked is what the SDK asks by itself, over two turns", async () => {
    const script = [[text("I look."), call("a", "look"), call("b", "look")], [text("Done.")], [text("Yes.")]];
    const make = (): { agent: Agent; model: ScriptedModel } => {
      const model = new ScriptedModel(script);
      const outputs = ["text", { a: [1] }];
      const look = tool({ name: "look", description: "", parameters: nothing, execute: async () => outputs.shift() });
      return { agent: new Agent({ name: "Looker", model, tools: [look] }), model };
    };
    const plain = make();
    const first = await runPlain(plain.agent, "Go.");
    await runPlain(plain.agent, [...first.history, { role: "user", content: "Sure?" }]);
    await using here = await stage();
    const ours = make();
    const held = durable(here.session);
    await finished(held, ours.agent, "Go.", options);
    await finished(held, ours.agent, "Sure?", options);
    expect(bare(ours.model.inputs)).toEqual(bare(plain.model.inputs));
    expect(ours.model.inputs).toHaveLength(3);
  });

  test("text, images and files that a tool returns are recorded as the SDK sends them", async () => {
    const outputs: unknown[] = [
      [
        { type: "text", text: "a" },
        { type: "image", image: { data: "AAAA", mediaType: "image/png" }, detail: "low" },
      ],
      { type: "image", image: "https://example.com/a.png" },
      { type: "file", file: { data: "AAAA", mediaType: "text/plain", filename: "a.txt" } },
      { type: "image", image: { fileId: "file-1" } },
      null,
      undefined,
      7,
      [],
    ];
    const calls = outputs.map((__, n) => call(`c${n}`, "look", { n }));
    const look = tool({
      name: "look",
      description: "",
      parameters: z.object({ n: z.number() }),
      execute: async ({ n }) => outputs[n],
    });
    const plain = new ScriptedModel([calls, [text("Done.")]]);
    await runPlain(new Agent({ name: "Looker", model: plain, tools: [look] }), "Go.");
    await using here = await stage();
    const model = new ScriptedModel([calls, [text("Done.")]]);
    await finished(durable(here.session), new Agent({ name: "Looker", model, tools: [look] }), "Go.", options);
    expect(bare(model.inputs)).toEqual(bare(plain.inputs));
  });

  test("P8: if a start cannot be written, the tool does not run, and the run fails with the store's error", async () => {
    using folder = place();
    const disk = new FailingDisk();
    await using store = await disk.open(folder.path);
    const session = await store.create<AgentInputItem>({ dialect: openaiAgents });
    const ran: string[] = [];
    const needs = async (): Promise<boolean> => {
      // The write and the sync of the response, then the write of the start.
      if (disk.failed + disk.countdown === 0) disk.countdown = 3;
      return false;
    };
    const look = tool({
      name: "look",
      description: "",
      parameters: nothing,
      needsApproval: needs,
      execute: async () => ran.push("look"),
    });
    const model = new ScriptedModel([[call("a", "look")], [text("Done.")]]);
    const held = durable(session);
    const done = held
      .run(new Agent({ name: "Looker", model, tools: [look] }), "Go.", options as { stream: true })
      .then((result) => held.finish(result));
    await expect(done).rejects.toMatchObject({ code: "STORE_FULL" });
    expect(ran).toEqual([]);
    expect(disk.failed).toBe(1);
    expect(model.requests).toHaveLength(1);
    // Once there is space, it goes on.
    const again = await held.resume(new Agent({ name: "Looker", model, tools: [look] }), options as { stream: true });
    expect(await held.finish(again)).toEqual({ kind: "completed" });
    expect(ran).toEqual(["look"]);
  });

  test("P8: an outcome that cannot be written is recorded once there is space, and the tool is not run again", async () => {
    using folder = place();
    const disk = new FailingDisk();
    await using store = await disk.open(folder.path);
    const session = await store.create<AgentInputItem>({ dialect: openaiAgents });
    let ran = 0;
    const look = tool({
      name: "look",
      description: "",
      parameters: nothing,
      execute: async () => {
        disk.countdown = 1;
        return `seen ${++ran}`;
      },
    });
    const model = new ScriptedModel([[call("a", "look")], [text("Done.")]]);
    const held = durable(session);
    const agent = new Agent({ name: "Looker", model, tools: [look] });
    const done = held.run(agent, "Go.", options as { stream: true }).then((result) => held.finish(result));
    await expect(done).rejects.toMatchObject({ code: "STORE_FULL" });
    expect(await held.finish(await held.resume(agent, options as { stream: true }))).toEqual({ kind: "completed" });
    expect(ran).toBe(1);
    expect(resultsIn(model.inputs[1])["a"]).toContain("seen 1");
  });

  test("calls with an id that was used before, or none, get their own", async () => {
    await using here = await stage();
    const ran: string[] = [];
    const look = tool({
      name: "look",
      description: "",
      parameters: nothing,
      execute: async (__, ___, details) => ran.push(details!.toolCall!.callId),
    });
    const model = new ScriptedModel([
      [call("a", "look"), call("a", "look")],
      [call("a", "look"), call("", "look")],
      [text("Done.")],
    ]);
    await finished(durable(here.session), new Agent({ name: "Looker", model, tools: [look] }), "Go.", options);
    expect(new Set(ran).size).toBe(4);
    expect(Object.keys(resultsIn(model.inputs[2]))).toEqual(ran);
  });

  test("a run that fails leaves a failed turn, and throws what the SDK throws", async () => {
    await using here = await stage();
    const model = new ScriptedModel([]);
    const held = durable(here.session);
    const done = held.run(new Agent({ name: "A", model }), "Go.", options as { stream: true });
    if (options.stream) expect(await held.finish(await done)).toMatchObject({ kind: "failed" });
    else await expect(done).rejects.toThrow("the script is over");
    expect(here.session.interruption).toMatchObject({ how: { kind: "failed", error: "the script is over" } });
  });

  test("a stopped run leaves an aborted turn", async () => {
    await using here = await stage();
    const stop = new AbortController();
    const look = tool({
      name: "look",
      description: "",
      parameters: nothing,
      execute: async (__, ___, details) => {
        stop.abort(new Error("That is enough."));
        details!.signal!.throwIfAborted();
      },
    });
    const model = new ScriptedModel([[call("a", "look")], [text("Done.")]]);
    const held = durable(here.session);
    const given = { ...options, signal: stop.signal } as RunOptions & { stream: true };
    const done = held.run(new Agent({ name: "A", model, tools: [look] }), "Go.", given);
    const ended = done.then((result) => held.finish(result)).catch(() => null);
    await ended;
    expect(here.session.interruption).toMatchObject({ how: { kind: "aborted" } });
    expect(model.requests).toHaveLength(1);
  });
});

/** Without members that say nothing. */
function bare(inputs: readonly AgentInputItem[][]): unknown {
  return JSON.parse(JSON.stringify(inputs), (key, value) =>
    key === "type" && value === "message" ? undefined : value,
  );
}

test("the response is on disk before `response_done` is handed on, and words are in a draft before that", async () => {
  await using here = await stage();
  const { session } = here;
  const model = new ScriptedModel([[text("I speak slowly, in many pieces.")]], () => session.flush());
  const held = durable(session);
  const result = await held.run(new Agent({ name: "A", model }), "Go.", { stream: true });
  const found: string[] = [];
  for await (const event of result) {
    if (event.type !== "raw_model_stream_event" || event.data.type !== "response_done") continue;
    found.push(...(await records(session)));
  }
  await held.finish(result);
  expect(found).toContain("message assistant");
  const drafts = (await recordsOf(session as never)).filter(({ kind }) => kind === "draft");
  expect(JSON.stringify(drafts)).toContain("I sp");
});

test("P8: a response that cannot be written is not handed on, and none of its tools runs", async () => {
  using folder = place();
  const disk = new FailingDisk();
  await using store = await disk.open(folder.path);
  const session = await store.create<AgentInputItem>({ dialect: openaiAgents });
  const ran: string[] = [];
  const execute = async (): Promise<number> => ran.push("look");
  const look = tool({ name: "look", description: "", parameters: nothing, execute });
  const model = new ScriptedModel(() => {
    disk.countdown = 1;
    return [call("a", "look")];
  });
  const held = durable(session);
  const result = await held.run(new Agent({ name: "A", model, tools: [look] }), "Go.", { stream: true });
  const seen: string[] = [];
  const reading = (async () => {
    for await (const event of result) if (event.type === "raw_model_stream_event") seen.push(event.data.type);
  })();
  await reading.catch(() => {});
  await expect(held.finish(result)).rejects.toMatchObject({ code: "STORE_FULL" });
  expect(seen).not.toContain("response_done");
  expect(ran).toEqual([]);
});

test("a session with another dialect, and another place for the history, are refused", async () => {
  await using here = await stage();
  const other = await here.store.create({ dialect: "openai-responses" });
  expect(() => durable(other as never)).toThrow(/dialect/);
  const held = durable(here.session);
  const agent = new Agent({ name: "A", model: new ScriptedModel([]) });
  await expect(held.run(agent, "Go.", { conversationId: "c" } as never)).rejects.toThrow(/conversationId/);
  expect(here.session.entries).toEqual([]);
});

test("steering: what is appended during the run is in the next request", async () => {
  await using here = await stage();
  const { session } = here;
  const look = tool({
    name: "look",
    description: "",
    parameters: nothing,
    execute: async () => {
      await session.turn!.append({ role: "user", content: "Faster." });
      return "seen";
    },
  });
  const model = new ScriptedModel([[call("a", "look")], [text("Done.")]]);
  await durable(session).run(new Agent({ name: "A", model, tools: [look] }), "Go.");
  expect(model.inputs[1]!.at(-1)).toEqual({ role: "user", content: "Faster." });
});

test("a request that the SDK sends again is the same request, and its answer is recorded once", async () => {
  await using here = await stage();
  let failures = 0;
  const model = new ScriptedModel(() => {
    if (failures++ === 0) throw new Error("busy");
    return [text("Done.")];
  });
  const retry = { maxRetries: 2, policy: () => ({ retry: true, delayMs: 0, approveUnsafeReplay: true }) };
  const result = await durable(here.session).run(new Agent({ name: "A", model, modelSettings: { retry } }), "Go.");
  expect(result.finalOutput).toBe("Done.");
  expect(model.inputs).toHaveLength(2);
  expect(model.inputs[1]).toEqual(model.inputs[0]);
  expect(here.session.messages).toHaveLength(2);
});
