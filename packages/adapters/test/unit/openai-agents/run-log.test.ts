import {
  type AgentInputItem,
  type AgentOutputItem,
  type CallModelInputFilter,
  type Model,
  type ModelRequest,
  RunContext,
  type StreamEvent,
  tool,
  Usage,
} from "@openai/agents";
import type { Session, Store, Turn } from "holdfast";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { place } from "../../../../holdfast/test/place.ts";
import { openaiAgents } from "../../../src/openai-agents/index.ts";
import { recordModel, recordProvider } from "../../../src/openai-agents/model.ts";
import type { RecordedOutcome } from "../../../src/openai-agents/replay.ts";
import { AgentRunLog, type RunScope } from "../../../src/openai-agents/run-log.ts";
import { recordTool } from "../../../src/openai-agents/tools.ts";
import { UnwrittenOutcomes } from "../../../src/unwritten-outcomes.ts";
import { recordsOf } from "../../agents.ts";
import { LazyDisk } from "../../lazy-disk.ts";
import { call, ScriptedModel, text } from "../../openai-agents/scripted.ts";

/** What is on disk at each step of a run, on a disk where nothing is written at once. */

const AGENT = { name: "Helper" } as never;
const REQUEST: ModelRequest = {
  ...{ input: [], modelSettings: {}, tools: [], outputType: "text", handoffs: [], tracing: false },
};
const result = (callId: string, output = `${callId} seen`) =>
  ({ type: "function_call_result", callId, name: "look", status: "completed", output }) as AgentInputItem;
const looks = tool({ name: "look", description: "", parameters: z.object({}), execute: async () => "seen" });
const sends = tool({
  ...{ name: "send", description: "", parameters: z.object({}), execute: async () => "sent" },
  needsApproval: async () => true,
});

class Slow implements AsyncDisposable {
  readonly #lazy = new LazyDisk();
  readonly #folder = place();
  #store!: Store;
  session!: Session<AgentInputItem>;
  turn!: Turn<AgentInputItem>;
  readonly context = new RunContext<unknown>();

  static async begin(): Promise<Slow> {
    const slow = new Slow();
    slow.#store = await slow.#lazy.open(slow.#folder.path, { dialects: [openaiAgents] });
    slow.session = await slow.#store.create<AgentInputItem>({ dialect: openaiAgents });
    slow.turn = await slow.session.startTurn({ role: "user", content: "Go." });
    return slow;
  }

  runLog(more: Partial<RunScope> = {}): AgentRunLog {
    const { session, turn, context } = this;
    return new AgentRunLog({ session, turn, context, unwritten: new UnwrittenOutcomes(), ...more });
  }

  /** What a power cut would leave. */
  get left(): string {
    return this.#lazy.left;
  }

  async asked(runLog: AgentRunLog, input: AgentInputItem[] = []): Promise<AgentInputItem[]> {
    return (await runLog.prepare({ input }, AGENT)).input;
  }

  async answered(runLog: AgentRunLog, output: AgentOutputItem[], usage = new Usage()): Promise<AgentOutputItem[]> {
    await this.asked(runLog);
    return runLog.answered(await runLog.ask(), { output, usage, model: "gpt" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store.close();
    this.#folder[Symbol.dispose]();
  }
}

describe("on disk, before anybody goes on", () => {
  test("are a response, the start of a tool, and its outcome", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog();
    await slow.answered(runLog, [call("a", "look")]);
    expect(slow.left).toMatch(/"callId":"a"/);
    await runLog.start("a", "safe");
    expect(slow.left).toMatch(/"tool\.started".*"replay":"safe"/);
    expect(runLog.isRunning("a")).toBe(true);
    await runLog.end("a", { value: "seen" });
    expect(slow.left).toMatch(/"tool\.ended"/);
    expect(runLog.isRunning("a")).toBe(false);
    await runLog.end("a", { value: "again" });
    expect((await recordsOf(slow.session)).filter(({ kind }) => kind === "tool.ended")).toHaveLength(1);
  });

  test("is what the SDK made of open calls, before the model is asked, in the order of the calls", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog();
    await slow.answered(runLog, [call("a", "look"), call("b", "look"), call("c", "look")]);
    await runLog.start("b", "never");
    const given = [result("x"), result("a"), result("a", "again"), result("b"), result("c")];
    const input = await slow.asked(runLog, given);
    expect(slow.left).toMatch(/a seen.*b seen.*c seen/);
    expect(slow.left).not.toMatch(/again|x seen/);
    expect(input.map(({ type }) => type ?? "message")).toEqual([
      ...["message", "function_call", "function_call", "function_call"],
      ...["function_call_result", "function_call_result", "function_call_result"],
    ]);
    expect(runLog.isRunning("b")).toBe(false);
  });

  test("are outcomes that found no space before", async () => {
    await using slow = await Slow.begin();
    const unwritten = new UnwrittenOutcomes();
    const runLog = slow.runLog({ unwritten });
    await slow.answered(runLog, [call("a", "look")]);
    await slow.turn.toolStarted("a");
    unwritten.keep(() => slow.turn.toolEnded("a", { value: "kept" }));
    const input = await slow.asked(runLog);
    expect(slow.left).toMatch(/kept/);
    expect(JSON.stringify(input)).toMatch(/kept/);
  });

  test("is that a call was refused, that its tool is gone, and what an error handler answered", async () => {
    await using slow = await Slow.begin();
    await slow.answered(slow.runLog(), [call("a", "look"), call("b", "gone"), call("c", "gone")]);
    const responses = [[call("a", "look"), call("b", "gone"), call("c", "gone")]];
    const runLog = slow.runLog({ replay: { input: [], responses, outcomes: new Map() } });
    const tools = [{ type: "function", name: "look" }] as never;
    expect(await runLog.replayed({ ...REQUEST, tools })).toEqual([call("a", "look")]);
    expect(slow.left.match(/no longer exists/g)?.length).toBeGreaterThanOrEqual(2);
    expect(await runLog.replayed(REQUEST)).toBe(null);
    await runLog.refuse("a", "The guardrail refused it.");
    expect(slow.left).toMatch(/The guardrail refused it\./);
    const handled = { newItems: [{ rawItem: text("Sorry.") }], state: { _finalOutputSource: "error_handler" } };
    await runLog.recordHandled({ ...handled, state: { _finalOutputSource: "model" } } as never);
    await runLog.recordHandled({ ...handled, newItems: [{ rawItem: call("x", "look") }] } as never);
    await runLog.recordHandled({ ...handled, newItems: [] } as never);
    expect(slow.left).not.toMatch(/Sorry/);
    await runLog.recordHandled(handled as never);
    expect(slow.left).toMatch(/Sorry\./);
  });

  test("is the start of actions on a computer, with the response", async () => {
    await using slow = await Slow.begin();
    const screen = { type: "computer_call", callId: "s", status: "completed", action: { type: "screenshot" } } as never;
    await slow.answered(slow.runLog(), [screen, call("a", "look")]);
    const starts = (await recordsOf(slow.session)).filter(({ kind }) => kind === "tool.started");
    expect(starts.map((record) => record["call"])).toEqual(["s"]);
    expect(slow.left).toMatch(/tool\.started/);
  });
});

describe("a response", () => {
  test.each<[string, Usage, object]>([
    ["nothing", new Usage(), {}],
    ["tokens", new Usage({ inputTokens: 5, outputTokens: 3 }), { inputTokens: 5, outputTokens: 3 }],
    ["only what was sent", new Usage({ inputTokens: 5, outputTokens: 0 }), { inputTokens: 5, outputTokens: 0 }],
    [
      "a single token of each kind",
      new Usage({
        ...{ inputTokens: 1, outputTokens: 1 },
        ...{ inputTokensDetails: { cached_tokens: 1 }, outputTokensDetails: { reasoning_tokens: 1 } },
      } as never),
      { inputTokens: 1, outputTokens: 1, cacheReadTokens: 1, reasoningTokens: 1 },
    ],
    [
      "details without these",
      new Usage({
        ...{ inputTokens: 1, outputTokens: 1 },
        ...{ inputTokensDetails: { other: 1 }, outputTokensDetails: { other: 1 } },
      } as never),
      { inputTokens: 1, outputTokens: 1 },
    ],
  ])("cost %s", async (_, usage, expected) => {
    await using slow = await Slow.begin();
    await slow.answered(slow.runLog(), [text("Done.")], usage);
    expect(slow.session.usage).toEqual(expected);
    expect(slow.session.entries.at(-1)).toMatchObject({ model: "gpt", metadata: { agent: "Helper" } });
  });

  test("that is empty is not recorded, and the model can be asked again", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog();
    expect(await slow.answered(runLog, [])).toEqual([]);
    expect(slow.session.entries).toHaveLength(1);
    await slow.asked(runLog);
    const draft = await runLog.ask();
    draft.push({ text: "Half" });
    await slow.session.flush();
    await runLog.answered(draft, { output: [], usage: new Usage(), model: undefined });
    const discarded = (await recordsOf(slow.session)).filter((record) => record["discarded"] !== undefined);
    expect(discarded, "its words do not come back").toHaveLength(1);
    await slow.answered(runLog, [text("Done.")]);
    expect(slow.session.entries).toHaveLength(2);
  });

  test("has marks for what a person must approve, and only where that is not decided yet", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog();
    runLog.offer([looks, sends, { type: "hosted_tool", name: "hosted" } as never]);
    const approved = { ...call("d", "send") };
    slow.context.approveTool({ rawItem: approved, name: "send", toolName: "send", agent: AGENT } as never);
    await slow.answered(runLog, [
      ...[call("a", "look"), call("b", "send"), call("c", "gone"), approved],
      { ...call("e", "send"), arguments: "not JSON" } as AgentOutputItem,
    ]);
    expect(slow.turn.open.map(({ id, state }) => `${id} ${state}`)).toEqual([
      ...["a never-started", "b awaiting", "c never-started", "d never-started", "e never-started"],
    ]);
  });

  test("keeps its call ids, except those that the session has", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog();
    await slow.answered(runLog, [call("a", "look")]);
    const [again, other] = await slow.answered(runLog, [call("a", "look"), call("b", "look")]);
    expect((again as { callId: string }).callId).not.toBe("a");
    expect(other).toMatchObject({ callId: "b" });
    expect(runLog.callIds).toEqual([(again as { callId: string }).callId, "b"]);
    const [third] = await slow.answered(slow.runLog(), [call("b", "look")]);
    expect((third as { callId: string }).callId, "another run of the session").not.toBe("b");
  });
});

describe("a request", () => {
  test("is filtered by the application once, and shows what the session has; after a filtered hand-off, the SDK's", async () => {
    await using slow = await Slow.begin();
    let filtered = 0;
    const filter: CallModelInputFilter = ({ modelData }) => {
      filtered++;
      return { ...modelData, input: [...modelData.input, result("x")] };
    };
    const runLog = slow.runLog({ filter });
    const model = recordModel(new ScriptedModel([[text("Done.")]]), () => runLog);
    const input = await slow.asked(runLog, [{ role: "user", content: "Other." }]);
    expect(input).toMatchObject([{ content: "Go." }, { callId: "x" }]);
    await model.getResponse({ ...REQUEST, input });
    expect(filtered).toBe(1);
    runLog.isFiltered = true;
    expect(await slow.asked(runLog, [{ role: "user", content: "Other." }])).toMatchObject([
      { content: "Other." },
      { callId: "x" },
    ]);
  });

  test("that the SDK has not prepared is prepared late, with its instructions", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog({
      filter: ({ modelData }) => ({ ...modelData, instructions: `${modelData.instructions}!` }),
    });
    await runLog.prepare({ input: [] }, AGENT);
    const prepared = { ...REQUEST, input: [result("y")], systemInstructions: "Be short" };
    expect(await runLog.prepareLate(prepared), "it is prepared").toBe(prepared);
    await runLog.answered(await runLog.ask(), { output: [text("Done.")], usage: new Usage(), model: undefined });
    const late = await runLog.prepareLate(prepared);
    expect(late.input).toMatchObject([{ content: "Go." }, { role: "assistant" }]);
    expect(late.systemInstructions).toBe("Be short!");
  });

  test("that has text alone, or comes from the records, is left as it is", async () => {
    await using slow = await Slow.begin();
    const request = { ...REQUEST, input: "Go." };
    expect(await slow.runLog().prepareLate(request)).toBe(request);
    const replay = { input: [], responses: [[text("Done.")]], outcomes: new Map() };
    const data = { input: [result("y")] };
    expect(await slow.runLog({ replay }).prepare(data, AGENT)).toBe(data);
    const { systemInstructions } = await slow.runLog().prepareLate(REQUEST);
    expect(systemInstructions).toBe(undefined);
  });

  test("that is sent again keeps its place; if that is gone, it gets another", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog();
    await slow.asked(runLog);
    const first = await runLog.ask();
    first.push({ text: "Half" });
    await slow.turn.append({ role: "user", content: "Meanwhile." });
    const again = await runLog.ask();
    await runLog.answered(again, { output: [text("Done.")], usage: new Usage(), model: undefined });
    const shown = slow.session.messages.map((item) => JSON.stringify(item).match(/Go|Meanwhile|Done|Half/)?.[0]);
    expect(shown).toEqual(["Go", "Done", "Meanwhile"]);
    await slow.asked(runLog);
    await (await runLog.ask()).discard("gone");
    const fresh = await runLog.ask();
    await runLog.answered(fresh, { output: [text("Done.")], usage: new Usage(), model: undefined });
    expect(slow.session.entries).toHaveLength(4);
  });

  test("is not made after a failure, nor in a turn that was stopped; a complete turn is opened for it", async () => {
    await using slow = await Slow.begin();
    const failed = slow.runLog();
    const error = new Error("full");
    failed.fail(error);
    failed.fail(new Error("second"));
    expect([failed.failure, failed.stopped.aborted, failed.stopped.reason]).toEqual([{ error }, true, error]);
    await expect(failed.ask()).rejects.toBe(error);
    let opened = 0;
    const reopen = async () => {
      opened++;
      return slow.turn;
    };
    const closed = slow.runLog({ turn: null, reopen });
    expect(closed.turn).toBe(null);
    await closed.recordResults([result("a")]);
    expect(opened).toBe(0);
    await closed.ask();
    await closed.ask();
    expect([closed.turn, opened]).toEqual([slow.turn, 1]);
    const runLog = slow.runLog();
    const stopping = slow.turn.abort({ by: "user" });
    await expect(runLog.ask(), "while the stop is being written").rejects.toBe(slow.turn.signal.reason);
    await stopping;
    await expect(runLog.ask()).rejects.toThrow();
  });
});

describe("a call", () => {
  const known = (callId: string): [string, RecordedOutcome] => [
    callId,
    { item: result(callId) as never, isMadeUp: false },
  ];

  test("that ran or was decided about is not put before a person again", async () => {
    await using slow = await Slow.begin();
    const responses = [["a", "b", "c", "d", "toString"].map((id) => call(id, "send"))];
    const runLog = slow.runLog({
      replay: { input: [], responses, outcomes: new Map([known("a")]) },
      decisions: { b: { approved: true }, c: { approved: false, message: "Never." } },
    });
    await runLog.prepare({ input: [] }, AGENT);
    runLog.offer([sends]);
    await runLog.replayed({ ...REQUEST, tools: [{ type: "function", name: "send" }] as never });
    const decided = (callId: string) => slow.context.isToolApproved({ toolName: "send", callId });
    expect(["a", "b", "c", "d", "toString"].map(decided)).toEqual([true, true, false, undefined, undefined]);
    expect(runLog.outcomeOf("a")?.item.callId).toBe("a");
    expect(runLog.outcomeOf("b")).toBe(null);
  });

  test("that waits inside is restored once, unless it has an outcome, and is not started again", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog({
      waiting: { a: { state: 1 }, b: { state: 2 } },
      replay: { input: [], responses: [], outcomes: new Map([known("b")]) },
    });
    expect([runLog.isRunning("a"), runLog.isRunning("b")]).toEqual([true, false]);
    expect([runLog.takeWaiting("a"), runLog.takeWaiting("a"), runLog.takeWaiting("b")]).toEqual([
      ...['{"state":1}', null, null],
    ]);
    await runLog.start("a", "never");
    expect((await recordsOf(slow.session)).some(({ kind }) => kind === "tool.started")).toBe(false);
  });

  test("that a tool runs for is the first that fits and has not started", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog();
    await slow.answered(runLog, [text("So."), call("a", "look"), call("b", "send"), call("c", "look")]);
    const isLook = (one: { readonly name?: string }) => one.name === "look";
    expect(runLog.callFor(isLook as never)?.callId).toBe("a");
    await runLog.start("a", "never");
    expect(runLog.callFor(isLook as never)?.callId).toBe("c");
    await runLog.start("c", "never");
    expect(runLog.callFor(isLook as never)).toBe(null);
  });

  test("whose start could not be written can be started, and what is too large is left out; other failures end the run", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog();
    const refusal = (code: string) => Object.assign(new Error(code), { name: "HoldfastError", code });
    await runLog.recordUnlessTooLarge(Promise.reject(refusal("RECORD_TOO_LARGE")));
    expect(runLog.failure).toBe(null);
    await slow.answered(runLog, [call("a", "look")]);
    const { toolStarted } = slow.turn;
    slow.turn.toolStarted = () => Promise.reject(refusal("STORE_FULL"));
    await expect(runLog.start("a", "never")).rejects.toThrow("STORE_FULL");
    slow.turn.toolStarted = toolStarted;
    expect(runLog.isRunning("a")).toBe(false);
    expect(runLog.callFor(() => true)?.callId).toBe("a");
    expect(runLog.failure).not.toBe(null);
    const other = slow.runLog();
    await expect(other.recordUnlessTooLarge(Promise.reject(refusal("STORE_FULL")))).rejects.toThrow("STORE_FULL");
    expect(other.failure).not.toBe(null);
  });
});

describe("tools that are not functions", () => {
  const wrapping = (runLog: AgentRunLog | null) =>
    ({ options: {}, inTool: { getStore: () => undefined }, runLog: () => runLog }) as never;
  const shellCall = { type: "shell_call", callId: "s", status: "completed", action: { commands: ["ls"] } } as never;
  const operation = { type: "delete_file", path: "a" } as const;
  const patchCall = { type: "apply_patch_call", callId: "p", status: "completed", operation } as never;

  test.each(["returns", "throws"])(
    "a shell that %s: its start is on disk before, and its outcome after",
    async (how) => {
      await using slow = await Slow.begin();
      const runLog = slow.runLog();
      await slow.answered(runLog, [shellCall]);
      const output = [{ stdout: "files", stderr: "", outcome: { type: "exit", exitCode: 0 } }];
      const run = async () => {
        expect(slow.left).toMatch(/"tool\.started"/);
        if (how === "throws") throw new Error("no shell");
        return { output, maxOutputLength: 7 };
      };
      const made = recordTool(
        { type: "shell", name: "shell", shell: { run } } as never,
        AGENT,
        wrapping(runLog),
      ) as never as {
        shell: { run(action: object): Promise<unknown> };
      };
      const ran = made.shell.run({ commands: ["ls"] });
      if (how === "throws") await expect(ran).rejects.toThrow("no shell");
      else expect(await ran).toEqual({ output, maxOutputLength: 7 });
      expect(slow.left).toMatch(how === "throws" ? /"tool\.ended".*no shell/ : /"tool\.ended".*files/);
      expect(runLog.failure).toBe(null);
      const other = made.shell.run({ commands: ["rm"] }).catch(() => null);
      await other;
      expect(
        (await recordsOf(slow.session)).filter(({ kind }) => kind === "tool.started"),
        "no call of this",
      ).toHaveLength(1);
    },
  );

  test.each(["createFile", "updateFile", "deleteFile"] as const)("an editor's %s", async (name) => {
    for (const edited of [undefined, { status: "failed", output: "no file" }, new Error("no disk")]) {
      await using slow = await Slow.begin();
      const runLog = slow.runLog();
      await slow.answered(runLog, [patchCall]);
      const edit = async () => {
        expect(slow.left).toMatch(/"tool\.started"/);
        if (edited instanceof Error) throw edited;
        return edited;
      };
      const editor = { createFile: edit, updateFile: edit, deleteFile: edit };
      const given = { type: "apply_patch", name: "patch", editor } as never;
      const made = recordTool(given, AGENT, wrapping(runLog)) as never as {
        editor: Record<typeof name, (operation: object) => Promise<unknown>>;
      };
      const done = made.editor[name]({ ...operation });
      if (edited instanceof Error) await expect(done).rejects.toBe(edited);
      else expect(await done).toBe(edited);
      // There is no call of this one: it is run, and not recorded.
      const other = made.editor[name]({ ...operation, path: "other" });
      if (edited instanceof Error) await expect(other).rejects.toBe(edited);
      else expect(await other).toBe(edited);
      const record = (await recordsOf(slow.session)).find(({ kind }) => kind === "tool.ended")!;
      expect(slow.left).toMatch(/"tool\.ended"/);
      const shown = edited instanceof Error ? /no disk/ : edited ? /"failed".*"no file"/ : /"completed".*"output":""/;
      expect(JSON.stringify(record)).toMatch(shown);
    }
  });

  test("outside of a recorded run, and other kinds of tools, are as they were", async () => {
    const shell = { type: "shell", name: "shell", shell: { run: async () => "ran" } } as never;
    const made = recordTool(shell, AGENT, wrapping(null)) as never as {
      shell: { run(action: object): Promise<unknown> };
    };
    expect(await made.shell.run({})).toBe("ran");
    const hosted = { type: "hosted_tool", name: "search" } as never;
    expect(recordTool(hosted, AGENT, wrapping(null))).toBe(hosted);
    const remote = { type: "shell", name: "shell" } as never;
    expect(recordTool(remote, AGENT, wrapping(null))).toBe(remote);
  });
});

describe("a model", () => {
  const raw = (event: object): StreamEvent => ({ type: "model", event }) as never;
  const added = (id: string, callId: string) =>
    raw({ type: "response.output_item.added", item: { type: "function_call", id, call_id: callId, name: "look" } });
  const words = (delta: string, itemId?: string): StreamEvent =>
    ({ type: "output_text_delta", delta, ...(itemId ? { itemId } : {}) }) as never;

  test("is drafted as it streams: words, reasoning and inputs, each in a part of its own", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog();
    const events: StreamEvent[] = [
      raw({ type: "response.reasoning_summary_text.delta", item_id: "r", delta: "Hm" }),
      raw({ type: "response.reasoning_text.delta", item_id: "r", delta: "." }),
      ...[words("One "), words(""), words("two."), words("Other", "m2")],
      ...[added("f1", "a"), added("f2", "b")],
      raw({ type: "response.function_call_arguments.delta", item_id: "f1", delta: "{" }),
      raw({ type: "response.function_call_arguments.delta", item_id: "f2", delta: "[" }),
      raw({ type: "response.function_call_arguments.delta", item_id: "f1", delta: "}" }),
      raw({ type: "response.function_call_arguments.delta", item_id: "f1", delta: "" }),
      raw({ type: "response.output_item.added", item: { type: "message", id: "m" } }),
      raw({ type: "response.other", delta: "nothing" }),
      { type: "model" } as never,
      { type: "response_started" },
    ];
    const pushed: object[] = [];
    const ask = runLog.ask.bind(runLog);
    runLog.ask = async () => {
      const draft = await ask();
      const push = draft.push.bind(draft);
      draft.push = (piece) => {
        pushed.push(piece);
        push(piece);
      };
      return draft;
    };
    const done = { type: "response_done", response: { id: "r1", usage: {}, output: [text("One two.")] } } as never;
    const model: Model = {
      getResponse: () => Promise.reject(new Error("not streamed")),
      getStreamedResponse: async function* () {
        yield* [...events, done];
      },
    };
    const seen: StreamEvent[] = [];
    for await (const event of recordModel(model, () => runLog).getStreamedResponse(REQUEST)) seen.push(event);
    expect(seen.slice(0, -1)).toEqual(events);
    expect(seen.at(-1)).toMatchObject({ type: "response_done", response: { id: "r1", output: [text("One two.")] } });
    expect(pushed).toEqual([
      { part: 0, reasoning: "Hm" },
      { part: 0, reasoning: "." },
      { part: 1, text: "One " },
      { part: 1, text: "two." },
      { part: 2, text: "Other" },
      { part: 3, call: { id: "a", name: "look" } },
      { part: 4, call: { id: "b", name: "look" } },
      { part: 3, input: "{" },
      { part: 4, input: "[" },
      { part: 3, input: "}" },
    ]);
    expect(slow.left).toMatch(/One two\./);
  });

  test("outside of a recorded run is asked as it is; other members are its own", async () => {
    const scripted = new ScriptedModel([[text("One.")], [text("Two.")]]);
    const model = recordModel(scripted, () => null) as Model & Pick<ScriptedModel, "inputs">;
    await model.getResponse(REQUEST);
    for await (const _ of model.getStreamedResponse(REQUEST));
    expect([model.inputs.length, scripted.inputs.length]).toEqual([2, 2]);
  });

  test("of a provider is one for each of the provider's, and is known by its own name", async () => {
    await using slow = await Slow.begin();
    const runLog = slow.runLog();
    const named = Object.assign(new ScriptedModel([[text("One.")]]), { _model: "its own" });
    const unnamed = Object.assign(new ScriptedModel([[text("Two.")]]), { _model: "" });
    const models: Record<string, Model> = { named, unnamed };
    const provider = recordProvider({ getModel: (name) => models[name!]! }, () => runLog);
    expect(await provider.getModel("named")).toBe(await provider.getModel("named"));
    expect(await provider.getModel("named")).not.toBe(await provider.getModel("unnamed"));
    for (const name of ["named", "unnamed"]) await (await provider.getModel(name)).getResponse(REQUEST);
    expect(slow.session.entries.map(({ model }) => model)).toEqual([undefined, "its own", "unnamed"]);
  });

  test("is not asked for what is recorded", async () => {
    await using slow = await Slow.begin();
    const scripted = new ScriptedModel([]);
    const replay = () => ({ input: [], responses: [[text("Done.")]], outcomes: new Map() });
    const [one, two] = [slow.runLog({ replay: replay() }), slow.runLog({ replay: replay() })];
    expect(await recordModel(scripted, () => one).getResponse(REQUEST)).toMatchObject({ output: [text("Done.")] });
    const seen: StreamEvent[] = [];
    for await (const event of recordModel(scripted, () => two).getStreamedResponse(REQUEST)) seen.push(event);
    expect(seen).toMatchObject([
      { type: "response_started" },
      { type: "response_done", response: { output: [text("Done.")] } },
    ]);
    expect(scripted.requests).toEqual([]);
  });
});
