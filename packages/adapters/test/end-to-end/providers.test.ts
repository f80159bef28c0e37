import { isStepCount, jsonSchema, type ModelMessage, streamText, tool } from "ai";
import { openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { durable, type RunOutcome } from "../../src/ai-sdk/index.ts";
import { PROMPT } from "../agents.ts";
import { providers } from "../loopback/providers.ts";
import { type Answer, loopback, type Reply } from "../loopback/server.ts";

/** The real provider packages, against servers that speak their real streams and judge what they are sent. */

const any = jsonSchema<{ n: number }>({ type: "object", properties: { n: { type: "number" } } });
const NEXT: ModelMessage = { role: "user", content: "And now?" };

const first: Answer = {
  reasoning: "Two numbers, so two calls.",
  text: "I add them up: 1 and 2.",
  calls: [
    { id: "call_one", name: "add", input: { n: 1 } },
    { id: "call_two", name: "add", input: { n: 2 } },
  ],
};
const second: Answer = {
  reasoning: "One more.",
  text: "And 3.",
  calls: [{ id: "call_three", name: "fails", input: { n: 3 } }],
};
const last: Answer = { text: "All is added up." };

function toolbox(ran: number[]) {
  return {
    add: tool({
      inputSchema: any,
      execute: async ({ n }) => {
        ran.push(n);
        return { sum: n + 10 };
      },
    }),
    fails: tool({
      inputSchema: any,
      execute: async ({ n }): Promise<string> => {
        ran.push(n);
        throw new Error("cannot add 3");
      },
    }),
  };
}

describe.each(Object.entries(providers))("%s", (_, { speech, model, options }) => {
  /** A run with the SDK alone: what it sends, request by request. */
  async function undisturbed(): Promise<readonly unknown[]> {
    await using server = await loopback(speech, [first, second, last]);
    const run = streamText({
      model: await model(server.url),
      tools: toolbox([]),
      messages: [PROMPT],
      stopWhen: isStepCount(5),
      ...(options ? { providerOptions: options } : {}),
    });
    await run.consumeStream();
    expect(await run.text).toBe("All is added up.");
    expect(server.violations).toEqual([]);
    return server.requests;
  }

  async function run(
    session: Session<ModelMessage>,
    url: string,
    ran: number[],
    settings: object = {},
  ): Promise<RunOutcome> {
    const agent = durable(session);
    await agent.runOpen(toolbox(ran));
    const all = {
      model: await model(url),
      tools: toolbox(ran),
      stopWhen: isStepCount(5),
      maxRetries: 0,
      onError: () => {},
      ...settings,
    };
    return agent.finish(streamText(agent.wrap(all)));
  }

  test("a run of three steps is recorded and judged, and sends what the SDK sends without it", async () => {
    await using store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    await using server = await loopback(speech, [first, second, last, last]);
    const ran: number[] = [];
    expect(await run(session, server.url, ran)).toEqual({ kind: "completed" });
    expect(ran).toEqual([1, 2, 3]);
    expect(server.requests).toEqual(await undisturbed());
    expect(session.usage).toMatchObject({ outputTokens: 63, cacheReadTokens: 12 });
    // The next turn is built on what was recorded.
    await session.startTurn(NEXT);
    expect(await run(session, server.url, ran)).toEqual({ kind: "completed" });
    expect(server.violations).toEqual([]);
  });

  /** What goes wrong with the second request, and what becomes of the run. */
  const failures: [string, Reply][] = [
    ["the connection is cut in mid-stream", { answer: second, after: 4, end: "cut" }],
    ["a chunk is malformed", { answer: second, after: 4, end: "malformed" }],
    ["a chunk is malformed, and the rest comes", { answer: second, after: 4, end: "garbled" }],
    ["the provider fails in mid-stream", { answer: second, after: 4, end: "error" }],
    ["500", { status: 500, message: "broken" }],
    ["429", { status: 429, headers: { "retry-after-ms": "1" }, message: "slow down" }],
  ];

  test.each(failures)(
    "%s: the run fails, nothing runs twice, and the resumed request is the one that failed",
    async (_, failure) => {
      await using store = await openStore("memory:", { recordsToolStarts: true });
      let session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
      await session.startTurn(PROMPT);
      const ran: number[] = [];
      await using server = await loopback(speech, [first, failure, second, last]);
      const outcome = await run(session, server.url, ran);
      expect(outcome).toMatchObject({ kind: "failed" });
      expect(ran).toEqual([1, 2]);
      expect(JSON.stringify(session.messages), "half an answer is not an answer").not.toContain("And 3");

      await session.close();
      session = await store.resume<ModelMessage>(session.id);
      expect(session.interruption?.how).toMatchObject({ kind: "failed" });
      await session.resumeTurn({ calls: "rerun" });
      expect(await run(session, server.url, ran)).toEqual({ kind: "completed" });
      expect(ran).toEqual([1, 2, 3]);
      expect(server.violations).toEqual([]);
      const expected = await undisturbed();
      expect(server.requests[2]).toEqual(server.requests[1]);
      expect(server.requests.slice(2)).toEqual(expected.slice(1));
    },
  );

  test("C36: 429 and 500 are retried by the SDK, a failed stream too, and of the failed attempts nothing is left", async () => {
    await using store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const ran: number[] = [];
    const wrong: Answer = { text: "These words were never said." };
    await using server = await loopback(speech, [
      { status: 429, headers: { "retry-after-ms": "1" } },
      { answer: wrong, after: 3, end: "error" },
      first,
      { status: 500, headers: { "retry-after-ms": "1" } },
      second,
      last,
    ]);
    expect(await run(session, server.url, ran, { maxRetries: 2, streamRetries: 2 })).toEqual({ kind: "completed" });
    expect(ran).toEqual([1, 2, 3]);
    expect(JSON.stringify(session.entries)).not.toContain("These words");
    expect(server.violations).toEqual([]);
    expect(server.requests.at(-1)).toEqual((await undisturbed()).at(-1));
  });

  test("C12: stopped while it streams, the words are kept, and the next prompt is accepted", async () => {
    await using store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk", draftMs: 1 });
    const turn = await session.startTurn(PROMPT);
    await using server = await loopback(speech, [{ answer: { text: first.text! }, after: 6, end: "silence" }, last]);
    const finished = run(session, server.url, []);
    for await (const record of session.follow()) if (record.kind === "draft") break;
    await turn.abort({ by: "user" });
    expect(await finished).toEqual({ kind: "aborted" });
    expect(first.text).toContain(session.interruption?.draft?.text ?? "nothing");
    await session.startTurn(NEXT);
    expect(await run(session, server.url, [])).toEqual({ kind: "completed" });
    expect(server.violations).toEqual([]);
  });
});

const searching = Object.entries(providers).filter(([, { search }]) => search !== undefined);
test.each(searching)(
  "%s: R8: what the provider ran by itself comes back to it as it came, in this turn and the next",
  async (_, { speech, model, options, search }) => {
    const script: Reply[] = [{ ...first, searched: "what there is to add" }, last, { ...last, searched: "more" }];
    const tools = { ...toolbox([]), ...search };
    const all = { tools, stopWhen: isStepCount(5), ...(options ? { providerOptions: options } : {}) };
    await using alone = await loopback(speech, script);
    const undisturbed = streamText({ ...all, model: await model(alone.url), messages: [PROMPT] });
    const messages = [PROMPT, ...(await undisturbed.responseMessages), NEXT];
    await streamText({ ...all, model: await model(alone.url), messages }).consumeStream();

    await using store = await openStore("memory:", { recordsToolStarts: true });
    let session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await using server = await loopback(speech, script);
    for (const prompt of [PROMPT, NEXT]) {
      await session.startTurn(prompt);
      const agent = durable(session);
      const run = streamText(agent.wrap({ ...all, model: await model(server.url) }));
      expect(await agent.finish(run)).toEqual({ kind: "completed" });
      await session.close();
      session = await store.resume<ModelMessage>(session.id);
    }
    expect(server.requests).toEqual(alone.requests);
    expect(server.violations).toEqual([]);
  },
);
