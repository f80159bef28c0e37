import { CallbackManager } from "@langchain/core/callbacks/manager";
import { AIMessage, AIMessageChunk, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { OpenCall, Session, Store, Turn } from "holdfast";
import { describe, expect, test } from "vitest";
import { place } from "../../../../holdfast/test/place.ts";
import { AgentTap } from "../../../src/langchain/agent-tap.ts";
import { durable, langchain } from "../../../src/langchain/index.ts";
import { behindOpenAnswer, openAnswer, restoreAnswers, runMessages } from "../../../src/langchain/resume.ts";
import { RunEvents, type StreamedRequest } from "../../../src/langchain/run-events.ts";
import { recordsOf } from "../../agents.ts";
import { LazyDisk } from "../../lazy-disk.ts";

/** The parts of the LangChain adapter, each by itself, and on a disk where nothing is written at once. */

const calls = (content: string, ...ids: string[]): AIMessage =>
  new AIMessage({ content, tool_calls: ids.map((id) => ({ type: "tool_call", id, name: "look", args: {} })) });
const result = (id: string, content = `${id} seen`): ToolMessage => new ToolMessage({ content, tool_call_id: id });
const open = (message: string | null, ...ids: string[]): OpenCall[] =>
  ids.map((id) => ({ id, message, name: "look", input: {}, state: "never-started" }));
const texts = (messages: readonly BaseMessage[]): string[] => messages.map(({ text }) => text);
/** Each message has its place as the id of its entry. */
const sessionOf = (messages: BaseMessage[]): Session<BaseMessage> =>
  ({ messages, entries: messages.map((message, at) => ({ id: String(at), message })) }) as never;

/** A turn on a slow disk. `left`: what a power cut would leave. */
class Slow implements AsyncDisposable {
  readonly #lazy = new LazyDisk();
  readonly #folder = place();
  #store!: Store;
  session!: Session<BaseMessage>;
  turn!: Turn<BaseMessage>;
  tap!: AgentTap;

  static async begin(replay: Record<string, "safe" | "never"> = {}): Promise<Slow> {
    const slow = new Slow();
    slow.#store = await slow.#lazy.open(slow.#folder.path, { dialects: [langchain] });
    slow.session = await slow.#store.create({ dialect: langchain });
    slow.turn = await slow.session.startTurn(new HumanMessage("Go."));
    slow.tap = new AgentTap(slow.session, { replay });
    return slow;
  }

  get left(): string {
    return this.#lazy.left;
  }

  /** As the next process finds it. */
  async reopened(): Promise<Session<BaseMessage>> {
    await this.session.close();
    this.session = await this.#store.resume<BaseMessage>(this.session.id, { dialect: langchain });
    return this.session;
  }

  ask(answer: BaseMessage | object, messages: BaseMessage[] = [], model: unknown = {}): Promise<unknown> {
    return this.tap.model({ model, messages, tools: [] }, () => answer);
  }

  use<A>(id: string, handler: () => A | Promise<A>, name = "look"): Promise<A | ToolMessage> {
    return this.tap.tool({ toolCall: { id, name, args: {} } }, handler);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store.close();
    this.#folder[Symbol.dispose]();
  }
}

describe("on disk, before anybody goes on", () => {
  test("is an answer when it is handed on, a start when its tool runs, and an outcome when it is returned", async () => {
    await using slow = await Slow.begin({ look: "safe" });
    await slow.ask(calls("I look.", "c1"));
    expect(slow.left).toMatch(/I look\./);
    const returned = await slow.use("c1", () => {
      expect(slow.left).toMatch(/"tool\.started".*"c1"/);
      expect(slow.left).toMatch(/"replay":"safe"/);
      return result("c1");
    });
    expect(slow.left).toMatch(/"tool\.ended".*c1 seen/);
    expect((returned as ToolMessage).text).toBe("c1 seen");
  });

  test("are all results that no tool gave, before the model is asked", async () => {
    await using slow = await Slow.begin();
    await slow.ask(calls("Both.", "c1", "c2"));
    const answers = [result("c1"), result("c1", "again"), result("x"), result("c2")];
    const messages = [
      new HumanMessage("Go."),
      result("c2", "of an earlier call"),
      calls("Both.", "c1", "c2"),
      ...answers,
    ];
    await slow.tap.model({ model: {}, messages, tools: [] }, () => {
      expect(slow.left).toMatch(/c1 seen.*c2 seen/);
      return new AIMessage("Done.");
    });
    expect(slow.left).not.toMatch(/again|x seen|earlier/);
    expect(texts(slow.session.messages)).toEqual(["Go.", "Both.", "c1 seen", "c2 seen", "Done."]);
  });

  test("is that a structured answer was not taken, and nothing is said of other calls", async () => {
    await using slow = await Slow.begin();
    const extract = (id: string, name: string) => ({ type: "tool_call" as const, id, name, args: {} });
    const answer = new AIMessage({
      content: "",
      tool_calls: [extract("c1", "look"), extract("s1", "extract-1"), extract("s2", "extract-2")],
    });
    await slow.ask(answer);
    await slow.tap.model({ model: {}, messages: [answer], tools: [] }, () => {
      expect(slow.left.match(/This answer was not taken/g)).toHaveLength(2);
      expect(slow.turn.open.map(({ id }) => id)).toEqual(["c1"]);
      return new AIMessage("Done.");
    });
  });

  test("is how a run ended, with all its results and its last words", async () => {
    await using slow = await Slow.begin();
    const agent = durable(slow.session);
    await slow.ask(calls("Both.", "c1", "c2"));
    const messages = [calls("Both.", "c1", "c2"), result("c1"), result("c2"), new AIMessage("Stopped here.")];
    expect(await agent.finish(Promise.resolve({ messages }))).toEqual({ kind: "completed" });
    expect(slow.left).toMatch(/c1 seen.*c2 seen.*Stopped here\..*turn\.ended/);
    expect(slow.session.interruption).toBe(null);
  });

  test("is that it waits, and for which calls; that it failed; and that a complete turn is over", async () => {
    await using slow = await Slow.begin();
    const agent = durable(slow.session);
    await slow.ask(calls("May I?", "c1", "c2"));
    const waiting = agent.finish(Promise.resolve({ __interrupt__: [{ value: "May I?" }] }));
    expect(await waiting).toEqual({ kind: "waiting" });
    expect(slow.left).toMatch(/turn\.suspended/);
    expect(slow.session.interruption?.calls.map(({ state }) => state)).toEqual(["awaiting", "awaiting"]);
    expect(await agent.resume()).toBe(null);
    const turn = await agent.resume({ calls: () => "close" });
    expect(slow.left).toMatch(/turn\.resumed/);
    expect(turn).toBe(slow.session.turn);
    const error = new Error("overloaded");
    expect(await agent.finish(Promise.reject(error))).toEqual({ kind: "failed", error });
    expect(slow.left).toMatch(/overloaded/);
  });

  test("of a turn that has its answer, resume writes the end, and there is nothing to run", async () => {
    await using slow = await Slow.begin();
    await slow.ask(new AIMessage("Done."));
    expect(slow.left).not.toMatch(/turn\.ended/);
    const agent = durable(await slow.reopened());
    expect(await agent.resume()).toBe(null);
    expect(slow.left).toMatch(/turn\.ended.*"completed"/);
  });
});

test("what waits for a person is named by humanInTheLoopMiddleware; without names it is every open call", async () => {
  for (const [value, expected] of [
    [{ actionRequests: [{ name: "send" }] }, ["c2 awaiting"]],
    [{ actionRequests: [] }, ["c1 awaiting", "c2 awaiting"]],
    [undefined, ["c1 awaiting", "c2 awaiting"]],
  ] as const) {
    await using slow = await Slow.begin();
    const answer = new AIMessage({
      content: "",
      tool_calls: [
        { type: "tool_call", id: "c1", name: "look", args: {} },
        { type: "tool_call", id: "c2", name: "send", args: {} },
      ],
    });
    await slow.ask(answer);
    await durable(slow.session).finish(Promise.resolve({ __interrupt__: [{ value }] }));
    const states = slow.session.interruption!.calls.map(({ id, state }) => `${id} ${state}`);
    expect(states.filter((state) => state.endsWith("awaiting"))).toEqual(expected);
  }
});

describe("what a run ended with", () => {
  test.each<[string, said: AIMessage, last: BaseMessage | undefined, expected: string[]]>([
    ["the model's own words, once", new AIMessage("Done."), new AIMessage("Done."), ["Go.", "Done."]],
    ["nothing", new AIMessage("Done."), undefined, ["Go.", "Done."]],
    ["a message of somebody else", new AIMessage("Done."), new HumanMessage("Hm."), ["Go.", "Done."]],
    [
      "an answer that was changed takes its place",
      new AIMessage({ id: "a", content: "Secret." }),
      new AIMessage({ id: "a", content: "Hidden." }),
      ["Go.", "Hidden."],
    ],
    [
      "another answer stands behind it",
      new AIMessage({ id: "a", content: "Done." }),
      new AIMessage({ id: "b", content: "Bye." }),
      ["Go.", "Done.", "Bye."],
    ],
    ["an answer without an id is another one", new AIMessage("Done."), new AIMessage("Bye."), ["Go.", "Done.", "Bye."]],
  ])("%s", async (_, said, last, expected) => {
    await using slow = await Slow.begin();
    await slow.ask(said);
    const messages = last ? [last] : [];
    expect(await durable(slow.session).finish(Promise.resolve({ messages }))).toEqual({ kind: "completed" });
    expect(texts(slow.session.messages)).toEqual(expected);
    await slow.session.startTurn(new HumanMessage("Next."));
    expect(slow.left).toContain(expected.at(-1));
  });

  test("an answer of an earlier turn with the same words is not the one of this turn", async () => {
    await using slow = await Slow.begin();
    await slow.ask(new AIMessage("Done."));
    await slow.turn.end();
    await slow.session.startTurn(new HumanMessage("Again."));
    await slow.tap.recordLast([new AIMessage("Done.")]);
    expect(slow.left.match(/"Done\."/g), "on disk").toHaveLength(2);
    expect(texts(slow.session.messages)).toEqual(["Go.", "Done.", "Again.", "Done."]);
  });

  test("a changed answer is on disk when that is said, and so is a failure", async () => {
    await using slow = await Slow.begin();
    await slow.ask(new AIMessage({ id: "a", content: "Secret." }));
    await slow.tap.recordLast([new AIMessage({ id: "a", content: "Hidden." })]);
    expect(slow.left).toMatch(/Hidden\./);
    const full = Object.assign(new Error("full"), { name: "HoldfastError", code: "STORE_FULL" });
    slow.turn.append = () => Promise.reject(full);
    await expect(slow.tap.recordLast([new AIMessage("More.")])).rejects.toBe(full);
    expect(slow.tap.failure).toBe(full);
  });

  test("an answer with calls is not replaced, and last words with calls are not recorded", async () => {
    await using slow = await Slow.begin();
    const answer = new AIMessage({ id: "a", content: "Looking.", tool_calls: calls("", "c1").tool_calls! });
    await slow.ask(answer);
    await slow.use("c1", () => result("c1"));
    await slow.tap.recordLast([calls("More.", "c2")]);
    await slow.tap.recordLast([new AIMessage({ id: "a", content: "Cut." })]);
    expect(texts(slow.session.messages)).toEqual(["Go.", "Looking.", "c1 seen", "Cut."]);
  });
});

describe("a tool", () => {
  test.each<[string, () => unknown, content: string, isError: boolean]>([
    ["returns a message", () => result("c1"), "c1 seen", false],
    [
      "returns a message that says it failed",
      () => new ToolMessage({ content: "No.", tool_call_id: "c1", status: "error" }),
      "No.",
      true,
    ],
    [
      "returns a command with its message",
      () => ({ update: { messages: [result("x"), result("c1")] } }),
      "c1 seen",
      false,
    ],
    ["returns a command without one", () => ({ update: { messages: [result("x")] } }), "", false],
    ["returns a command that changes something else", () => ({ update: { n: 1 } }), "", false],
    ["returns a command that changes nothing", () => ({ goto: "end" }), "", false],
    [
      "throws",
      () => {
        throw new Error("no light");
      },
      "Error: no light\n Please fix your mistakes.",
      true,
    ],
    [
      "is called with what it does not take",
      () => {
        throw Object.assign(new Error("n is missing"), { name: "ToolInvocationError" });
      },
      "n is missing",
      true,
    ],
  ])("%s", async (_, handler, content, isError) => {
    await using slow = await Slow.begin();
    await slow.ask(calls("I look.", "c1"));
    await slow.use("c1", handler);
    const last = slow.session.messages.at(-1) as ToolMessage;
    expect([last.text, last.tool_call_id]).toEqual([content, "c1"]);
    const ended = (await recordsOf(slow.session)).find(({ kind }) => kind === "tool.ended")!;
    expect([JSON.stringify(ended).includes('"error"'), slow.turn.open]).toEqual([isError, []]);
    expect("replay" in (await recordsOf(slow.session)).find(({ kind }) => kind === "tool.started")!).toBe(false);
  });

  test.each(["GraphInterrupt", "NodeInterrupt"])(
    "that waits (%s) is called again without another start",
    async (name) => {
      await using slow = await Slow.begin();
      await slow.ask(calls("I look.", "c1"));
      const waits = slow.use("c1", () => {
        throw Object.assign(new Error("waits"), { name });
      });
      await expect(waits).rejects.toThrow("waits");
      expect(slow.left).not.toMatch(/tool\.ended/);
      await slow.use("c1", () => result("c1"));
      const starts = (await recordsOf(slow.session)).filter(({ kind }) => kind === "tool.started");
      expect(starts).toHaveLength(1);
      expect(slow.tap.failure).toBe(null);
    },
  );

  test("that fails because the turn was stopped has no outcome, and nothing more runs", async () => {
    await using slow = await Slow.begin();
    await slow.ask(calls("I look.", "c1"));
    const stopped = slow.use("c1", async () => {
      await slow.turn.abort({ by: "user" });
      throw new Error("stopped");
    });
    await expect(stopped).rejects.toThrow("stopped");
    expect((await recordsOf(slow.session)).some(({ kind }) => kind === "tool.ended")).toBe(false);
    await expect(slow.ask(new AIMessage("More."))).rejects.toThrow(/No turn is open/);
  });

  test("does not run, and no model is asked, while a stop is being written", async () => {
    await using slow = await Slow.begin();
    await slow.ask(calls("I look.", "c1"));
    const stopping = slow.turn.abort({ by: "user" });
    const ran: string[] = [];
    await expect(slow.use("c1", () => ran.push("tool"))).rejects.toThrow();
    const asked = slow.tap.model({ model: {}, messages: [], tools: [] }, () => {
      ran.push("model");
      return new AIMessage("More.");
    });
    await expect(asked).rejects.toThrow();
    await stopping;
    expect(ran).toEqual([]);
    expect((await recordsOf(slow.session)).some(({ kind }) => kind === "tool.started")).toBe(false);
  });

  test.each(["STORE_FULL", "TURN_ENDED"])("that meets %s ends the run with it", async (code) => {
    await using slow = await Slow.begin();
    await slow.ask(calls("I look.", "c1"));
    const error = Object.assign(new Error(code), { name: "HoldfastError", code });
    await expect(slow.use("c1", () => Promise.reject(error))).rejects.toBe(error);
    expect(slow.tap.failure).toBe(error);
    await expect(slow.ask(new AIMessage("More."))).rejects.toBe(error);
  });
});

test.each<[string, model: unknown, usage: object | undefined, expectedModel: unknown, expectedUsage: unknown]>([
  ["nothing", undefined, undefined, undefined, undefined],
  ["a name", { model: "gpt" }, undefined, "gpt", undefined],
  ["its other name", { modelName: "gpt" }, undefined, "gpt", undefined],
  ["no name", { model: 1, modelName: 2 }, undefined, undefined, undefined],
  [
    "what it cost",
    {},
    { input_tokens: 5, output_tokens: 0, total_tokens: 5 },
    undefined,
    { inputTokens: 5, outputTokens: 0 },
  ],
  [
    "all that it cost",
    {},
    {
      ...{ input_tokens: 5, output_tokens: 3, total_tokens: 8 },
      input_token_details: { cache_read: 1, cache_creation: 2 },
      output_token_details: { reasoning: 4 },
    },
    undefined,
    { inputTokens: 5, outputTokens: 3, cacheReadTokens: 1, cacheWriteTokens: 2, reasoningTokens: 4 },
  ],
])("of an answer, the model's name and its cost are recorded: %s", async (_, model, usage, name, spent) => {
  await using slow = await Slow.begin();
  await slow.ask(new AIMessage({ content: "Done.", ...(usage ? { usage_metadata: usage as never } : {}) }), [], model);
  const { entries } = slow.session;
  expect(entries.at(-1)!.model).toBe(name);
  expect(Object.keys(slow.session.usage).length === 0 ? undefined : slow.session.usage).toEqual(spent);
});

test("a structured answer is recorded with all its messages", async () => {
  await using slow = await Slow.begin();
  const messages = [calls("", "s1"), result("s1", "taken"), new AIMessage("Three.")];
  await slow.ask({ structuredResponse: { n: 3 }, messages });
  expect(texts(slow.session.messages)).toEqual(["Go.", "", "taken", "Three."]);
});

test("the config of a run has the application's callbacks and signals, and the turn's", async () => {
  await using slow = await Slow.begin();
  const [one, own] = [new RunEvents(), new AbortController()];
  const listed = slow.tap.config({ callbacks: [one], signal: own.signal, tags: ["t"] });
  expect(listed.tags).toEqual(["t"]);
  expect(listed.callbacks).toHaveLength(2);
  expect((listed.callbacks as unknown[])[0]).toBe(one);
  expect(slow.tap.config<RunnableConfig>({}).callbacks).toHaveLength(1);
  const manager = slow.tap.config({ callbacks: CallbackManager.fromHandlers({}) }).callbacks as CallbackManager;
  expect(manager.handlers).toHaveLength(2);
  own.abort("mine");
  expect([listed.signal!.aborted, listed.signal!.reason]).toEqual([true, "mine"]);
  const { signal } = slow.tap.config<RunnableConfig>({});
  expect(signal!.aborted).toBe(false);
  await slow.turn.abort({ by: "user" });
  expect(signal!.aborted).toBe(true);
  expect("signal" in slow.tap.config({})).toBe(false);
});

describe("the answer whose calls are open", () => {
  const before = [new HumanMessage("Go."), calls("First.", "c1"), result("c1")];
  const answer = calls("Both.", "c2", "c3");
  const session = sessionOf([...before, answer, result("c2")]);

  test("is left out of what a run begins with, and all after it", () => {
    expect(texts(runMessages(session, open("3", "c3")))).toEqual(["Go.", "First.", "c1 seen"]);
    expect(texts(runMessages(sessionOf([answer]), open("0", "c2")))).toEqual([]);
    for (const none of [[], open(null, "c1"), open("unknown", "c1"), open("2", "c1")])
      expect(runMessages(session, none)).toBe(session.messages);
  });

  test("is found in the session's messages, which name repeated calls otherwise and lack what is hidden", () => {
    const shown = [...before, calls("Again.", "c1_2"), result("c1_2"), calls("Then.", "c4"), result("c4")];
    const entries = [
      { id: "h", message: calls("Hidden.", "c0") },
      ...before.map((message, at) => ({ id: String(at), message })),
      { id: "a", message: calls("Again.", "c1") },
      { id: "t", message: calls("Then.", "c4") },
      { id: "r", message: calls("Replaced.", "c9"), replacedBy: "t" },
    ];
    const renamed = { messages: shown, entries } as never;
    expect(texts(runMessages(renamed, open("a", "c1")))).toEqual(["Go.", "First.", "c1 seen"]);
    expect(texts(restoreAnswers([openAnswer(renamed, open("a", "c1"))!], renamed))).toEqual(["Again.", "c1_2 seen"]);
  });

  test("comes in place of the model's, with its open calls alone", () => {
    const made = openAnswer(session, open("3", "c3"))!;
    expect([made.text, made.tool_calls!.map(({ id }) => id)]).toEqual(["Both.", ["c3"]]);
    expect(["id" in made && made.id !== undefined, made.usage_metadata]).toEqual([false, undefined]);
    expect(openAnswer(session, [])).toBe(null);
    const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
    const whole = new AIMessage({
      ...{ id: "a", content: "All.", usage_metadata: usage, tool_calls: answer.tool_calls! },
      ...{ additional_kwargs: { k: 1 }, response_metadata: { m: 2 } },
    } as never);
    const copy = openAnswer(sessionOf([whole]), open("0", "c2"))!;
    expect(copy).toMatchObject({ id: "a", usage_metadata: usage, additional_kwargs: { k: 1 } });
    expect(copy.response_metadata).toMatchObject({ m: 2 });
  });

  test("is known in the agent's messages by where it comes from, by its id, or by its calls", () => {
    const named = (id: string, ...ids: string[]) => Object.assign(calls(id, ...ids), { id });
    const here = sessionOf([named("a", "c1"), result("c1"), named("b", "c1")]);
    const behind = (...given: BaseMessage[]) => {
      const found = behindOpenAnswer(given, here, open("2", "c1"));
      return found && texts(found);
    };
    expect(behind(named("a", "c1"), result("c1")), "an earlier answer with the same call").toBe(null);
    expect(behind(named("b", "c1"), result("c1"))).toEqual(["c1 seen"]);
    expect(behind(result("c1"), named("b", "c1"))).toEqual([]);
    expect(behind(named("changed", "c1"), result("c1"))).toEqual(["c1 seen"]);
    expect(behind(calls("changed", "c1"), result("c1"))).toEqual(["c1 seen"]);
    expect(behind(calls("another", "c2"), result("c1"))).toBe(null);
    expect(behindOpenAnswer([named("b", "c1")], here, [])).toBe(null);
    const unnamed = sessionOf([calls("First.", "c1"), result("c1"), calls("Second.", "c1")]);
    const made = openAnswer(unnamed, open("2", "c1"))!;
    expect(behindOpenAnswer([calls("First.", "c1")], unnamed, open("2", "c1"))).toBe(null);
    expect(behindOpenAnswer([made, result("c1")], unnamed, open("2", "c1"))).toHaveLength(1);
  });

  test("is shown to the model whole again, with what came after it and up to the next answer", () => {
    const all = [...before, answer, result("c2"), new HumanMessage("Hurry."), result("c3")];
    const made = openAnswer(session, open("3", "c3"))!;
    const earlier = [calls("Before.", "c3"), result("c3", "of an earlier call")];
    const added = [new HumanMessage("By a middleware."), result("x")];
    const asked = [...earlier, made, result("c3", "as the agent has it"), ...added];
    const whole = ["Before.", "of an earlier call", "Both.", "c2 seen", "Hurry.", "c3 seen", ...texts(added)];
    expect(texts(restoreAnswers(asked, sessionOf(all)))).toEqual(whole);
    const later = [...all, new AIMessage("Then."), new HumanMessage("And?")];
    const goesOn = [new AIMessage("Then."), result("c3", "of a later call")];
    expect(texts(restoreAnswers([...asked, ...goesOn], sessionOf(later)))).toEqual([...whole, ...texts(goesOn)]);
    const atOnce = [...before, answer, new AIMessage("Then."), result("c3")];
    expect(texts(restoreAnswers(asked, sessionOf(atOnce)))).toEqual([
      "Before.",
      "of an earlier call",
      "Both.",
      ...texts(added),
    ]);
    expect(restoreAnswers(before, sessionOf(all)), "nothing was resumed").toEqual(before);
  });
});

describe("what LangChain reports of a run", () => {
  interface Said {
    readonly restarts: number;
    readonly pieces: object[];
  }
  const asking = (fails?: string): StreamedRequest & { said: Said } => {
    const said = { restarts: 0, pieces: [] as object[] };
    const draft = {
      push: (piece: object) => {
        if (fails) throw Object.assign(new Error(fails), { name: "HoldfastError", code: fails });
        said.pieces.push(piece);
      },
      restart: () => {
        said.restarts++;
        return draft;
      },
    };
    return { draft: draft as never, hasTokens: false, said };
  };
  const token = (events: RunEvents, run: string, words: string, message?: AIMessageChunk): void =>
    events.handleLLMNewToken(words, { prompt: 0, completion: 0 }, run, undefined, undefined, {
      ...(message ? { chunk: { text: words, message } as never } : {}),
    });
  const start = (events: RunEvents, asked: StreamedRequest, run: string): void =>
    events.during(asked, () => events.handleChatModelStart({}, [], run));

  test("tokens belong to the request that they answer, and to no other", () => {
    const [events, one, two] = [new RunEvents(), asking(), asking()];
    start(events, one, "r1");
    start(events, two, "r2");
    events.handleChatModelStart({}, [], "sub-agent");
    token(events, "r1", "A");
    token(events, "r2", "B");
    token(events, "sub-agent", "C");
    token(events, "r1", "");
    token(events, "r1", "ignored", new AIMessageChunk({ content: "D" }));
    token(events, "r1", "x", new AIMessageChunk({ content: "" }));
    token(events, "r1", "", new AIMessageChunk({ content: [{ type: "reasoning", reasoning: "Hm." }] as never }));
    expect(one.said.pieces).toEqual([{ text: "A" }, { text: "D" }, { part: 1, reasoning: "Hm." }]);
    expect(two.said.pieces).toEqual([{ text: "B" }]);
    events.handleLLMEnd({}, "r1");
    events.handleLLMError(new Error("down"), "r2");
    token(events, "r1", "late");
    token(events, "r2", "late");
    expect([one.said.pieces.length, two.said.pieces.length]).toEqual([3, 1]);
  });

  test("a retry begins the answer again, if it had begun", () => {
    const [events, asked] = [new RunEvents(), asking()];
    start(events, asked, "r1");
    start(events, asked, "r2");
    expect(asked.said.restarts).toBe(0);
    token(events, "r2", "A");
    start(events, asked, "r3");
    start(events, asked, "r4");
    expect(asked.said.restarts).toBe(1);
  });

  test("what a model says after its turn has ended is nobody's; any other failure is told", () => {
    for (const code of ["DRAFT_DISCARDED", "TURN_ENDED", "SESSION_CLOSED", "STORE_FULL"]) {
      const events = new RunEvents();
      start(events, asking(code), "r");
      const say = (): void => token(events, "r", "A");
      if (code === "STORE_FULL") expect(say).toThrow(code);
      else expect(say).not.toThrow();
    }
  });

  test("the state is that of the outermost run, with what it waits for", () => {
    const events = new RunEvents();
    const messages = [new AIMessage("Done.")];
    const inner = { messages: [] };
    events.handleChainStart({}, {}, "outer");
    events.handleChainStart({}, {}, "inner");
    events.handleInterrupt({ interrupts: [{ value: "May I?" }] });
    events.handleChainEnd(inner, "inner");
    expect(events.state).toBe(null);
    events.handleChainEnd({ messages }, "outer");
    expect(events.state).toEqual({ messages, __interrupt__: [{ value: "May I?" }] });
    events.handleChainStart({}, {}, "next");
    expect(events.state, "of the run before").toBe(null);
    events.handleChainError(new Error("inner"), "other");
    events.handleChainEnd({ messages }, "next");
    expect(events.state).toEqual({ messages, __interrupt__: [] });
    events.handleChainStart({}, {}, "failed");
    events.handleChainError(new Error("down"), "failed");
    events.handleChainEnd({ messages }, "failed");
    expect(events.state, "a run that failed has none").toBe(null);
    events.handleChainStart({}, {}, "left");
    events.reset();
    events.handleChainStart({}, {}, "last");
    events.handleChainEnd({ messages }, "last");
    expect(events.state?.messages).toBe(messages);
  });
});

test("an error of the store is found inside what LangChain wraps it in, however often; any other fails the turn", async () => {
  const store = Object.assign(new Error("full"), { name: "HoldfastError", code: "STORE_FULL" });
  const wrapped = (depth: number): unknown =>
    Array.from({ length: depth }).reduce((cause: unknown) => new Error("wrapped", { cause }), store);
  await using slow = await Slow.begin();
  const agent = durable(slow.session);
  for (const depth of [0, 1, 9]) await expect(agent.finish(Promise.reject(wrapped(depth)))).rejects.toBe(store);
  expect(slow.session.turn, "it stays open").toBe(slow.turn);
  expect(await agent.finish(Promise.reject("no error"))).toEqual({ kind: "failed", error: "no error" });
});
