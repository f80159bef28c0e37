import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { validateAiSdk } from "@holdfast/testkit";
import type { ModelMessage } from "ai";
import { type CreateOptions, type ErrorCode, HoldfastError, openStore, type Session } from "holdfast";
import { expect, test } from "vitest";
import { streamOf, USAGE } from "../../../../../adapters/test/scripted-model.ts";
import type { AgentEvents } from "../../../../src/agent/events.ts";
import { AgentRuntime } from "../../../../src/agent/runtime.ts";
import type { Services } from "../../../../src/agent/services.ts";
import { sessionOutputs } from "../../../../src/store/output-folders.ts";
import { ProjectRules } from "../../../../src/trust/project-rules.ts";
import { Trust } from "../../../../src/trust/trust.ts";
import { call, config, heard, Stage, text } from "../host-stage.ts";

/** What was called has begun, and waits for the disk or the model. */
const begun = async (): Promise<void> => {
  for (let n = 0; n < 5; n++) await null;
};

/** A model that says nothing until it is stopped. */
const untilStopped = (signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => {
    const stop = (): void => reject(signal?.reason);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop);
  });

/** A promise, and what settles it. */
const gate = (): PromiseWithResolvers<void> => Promise.withResolvers<void>();

test("C11: stop at the very beginning of a turn stops it", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([[text("never")]]);
  const { events } = heard(chat);
  const prompted = chat.prompt("hello");
  await begun();
  await chat.stop();
  await prompted;
  await chat.settled();
  expect(chat.model.prompts).toHaveLength(0);
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", outcome: "aborted", by: "user" });
});

test("a prompt that is given while a stopped turn comes to its end is worked on, not left in the queue", async () => {
  await using stage = new Stage();
  const asked = gate();
  const chat = await stage.chat([
    async ({ abortSignal }) => {
      asked.resolve();
      return untilStopped(abortSignal);
    },
    [text("second")],
  ]);
  await chat.prompt("first");
  await asked.promise;
  const stopped = chat.stop();
  const prompted = chat.prompt("second");
  await Promise.all([stopped, prompted]);
  await chat.settled();
  expect(chat.state.queue).toEqual([]);
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "second" });
});

test("R4: signed reasoning goes back to the model that signed it, over turns, typed or queued", async () => {
  await using stage = new Stage();
  const signed = { type: "reasoning" as const, text: "I think so.", providerMetadata: { maker: { signature: "s1" } } };
  const first = Promise.withResolvers<void>();
  const chat = await stage.chat([
    [signed, text("One.")],
    async () => {
      await first.promise;
      return [text("Two.")];
    },
    [text("Three.")],
  ]);
  await chat.prompt("one");
  await chat.settled();
  await chat.prompt("two");
  await chat.prompt("three");
  first.resolve();
  await chat.settled();
  const said = chat.model.prompts.map((prompt) => prompt.find(({ role }) => role === "assistant")?.content);
  expect(said.slice(1)).toMatchObject([
    [{ text: "I think so." }, {}],
    [{ text: "I think so." }, {}],
  ]);
});

test("C9: prompts that were queued before a stop wait until the next prompt, and come before it", async () => {
  await using stage = new Stage();
  const asked = gate();
  const chat = await stage.chat([
    async ({ abortSignal }) => {
      asked.resolve();
      return untilStopped(abortSignal);
    },
    [text("two")],
    [text("three")],
  ]);
  await chat.prompt("one");
  await asked.promise;
  expect(await chat.prompt("two")).toBe("queued");
  await chat.stop();
  expect(chat.state.queue.map((one) => one.text)).toEqual(["two"]);
  expect(await chat.prompt("three")).toBe("queued");
  await chat.settled();
  const said = chat.state.items.flatMap((item) =>
    item.kind === "prompt" || item.kind === "answer" ? [item.text] : [],
  );
  expect(said).toEqual(["one", "two", "two", "three", "three"]);
});

test("C9: prompts that arrive at the very end of a turn are begun", async () => {
  await using stage = new Stage();
  const prompts = Array.from({ length: 20 }, (_, n) => `prompt ${n}`);
  const chat = await stage.chat(prompts.map((prompt) => [text(`answer to ${prompt}`)]));
  chat.subscribe((event) => {
    if (event.type !== "usage") return;
    const next = prompts.shift();
    if (next !== undefined) void chat.prompt(next);
  });
  await chat.prompt(prompts.shift()!);
  while (chat.model.prompts.length < 20) await chat.settled();
  await chat.settled();
  expect(chat.state.queue).toEqual([]);
  expect(chat.state.items.filter(({ kind }) => kind === "answer")).toHaveLength(20);
});

test("a listener that throws disturbs nobody, and is told of", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([[text("hello")]]);
  const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
  let isFirst = true;
  chat.subscribe(() => {
    if (!isFirst) return;
    isFirst = false;
    throw new Error("this screen is broken");
  });
  const { events } = heard(chat);
  await chat.prompt("hello");
  await chat.settled();
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", outcome: "completed" });
  expect((await warned).message).toContain("this screen is broken");
});

test("a cleared conversation is not thrown away when it is closed", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([[text("hello")]]);
  await chat.prompt("hello");
  await chat.settled();
  await chat.clear();
  await chat.close();
  expect(await chat.store.has(chat.id)).toBe(true);
});

test("a new conversation in which nothing was said is not kept; one that was opened is", async () => {
  await using stage = new Stage();
  const host = await stage.host();
  const chat = await host.create({ cwd: stage.work });
  await chat.close();
  expect(await host.sessions.has(chat.id)).toBe(false);
  const session = await host.sessions.create({ dialect: "ai-sdk", app: "holdfast" });
  await session.close();
  await (await host.open(session.id)).close();
  expect(await host.sessions.has(session.id)).toBe(true);
});

test("opened twice at the same time it is the same chat", async () => {
  await using stage = new Stage();
  const first = await stage.host();
  const { id } = await (async () => {
    const chat = await first.create({ cwd: stage.work });
    await chat.prompt("hello");
    await chat.settled();
    await chat.close();
    return chat;
  })();
  const [one, two] = await Promise.all([first.open(id), first.open(id)]);
  expect(one).toBe(two);
});

test("while a summary is made a prompt waits for it, and stop ends it", async () => {
  await using stage = new Stage();
  const asked = gate();
  const goOn = gate();
  const chat = await stage.chat([
    [text("hello")],
    async () => {
      asked.resolve();
      await goOn.promise;
      return [text("They said hello.")];
    },
    [text("second")],
    ({ abortSignal }) => untilStopped(abortSignal),
  ]);
  await chat.prompt("hello");
  await chat.settled();
  const compacted = chat.compact();
  await asked.promise;
  expect(chat.state.isCompacting).toBe(true);
  expect(await chat.prompt("second")).toBe("queued");
  goOn.resolve();
  await compacted;
  expect(chat.state.isCompacting).toBe(false);
  await chat.settled();
  expect(JSON.stringify(chat.model.prompts.at(-1))).toContain("They said hello.");
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "second" });
  const before = chat.state.items;
  const second = chat.compact();
  second.catch(() => {});
  await begun();
  await chat.stop();
  await expect(second).rejects.toThrow("Stopped. The conversation was not compacted and is unchanged.");
  expect(chat.state.items).toEqual(before);
  expect(chat.state.isCompacting).toBe(false);
});

test("what the commands of other sessions have printed is asked for, beside an SQLite store too", async () => {
  await using stage = new Stage();
  await using store = await openStore(`sqlite:${join(stage.work, "s.db")}`);
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk", cwd: stage.work });
  const outputs = (id: string): string => sessionOutputs(store.url, id)!;
  const services: Partial<Services> = {
    ...{ store, config, outputs, trust: new Trust(store.url), rules: new ProjectRules(null) },
  };
  const agent = new AgentRuntime(session, services as Services, {} as AgentEvents);
  const verdict = (id: string) => agent.decide("read", { path: join(outputs(id), "c.1.log") }).verdict;
  expect([verdict(session.id), verdict("0199aaaa-0001-7bbb-8000-000000000001")]).toEqual(["allow", "ask"]);
});

test("P9: a session that cannot be read is in no other's way", async () => {
  await using stage = new Stage();
  const host = await stage.host();
  const chat = await host.create({ cwd: stage.work });
  await chat.prompt("hello");
  await chat.settled();
  const other = join(stage.folder, "sessions", "0199aaaa-0001-7bbb-8000-000000000001");
  mkdirSync(join(other, "000001.jsonl"), { recursive: true });
  expect((await host.list()).sessions).toMatchObject([{ id: chat.id }, { unreadable: { code: "PATH_UNSAFE" } }]);
  expect((await host.fork(chat.id)).state.items.length).toBe(chat.state.items.length);
  await chat.close();
  expect((await host.open(chat.id)).state).toMatchObject({ status: "idle", failure: null });
});

test("a session whose folder is gone says so when it is opened", async () => {
  await using stage = new Stage();
  const host = await stage.host();
  const cwd = join(stage.work, "gone");
  const [gone, here] = [await host.create({ cwd }), await host.create({ cwd: stage.work })];
  for (const chat of [gone, here]) {
    await chat.rename("kept");
    await chat.close();
  }
  expect((await host.open(gone.id)).state.damage).toEqual([expect.stringContaining(`${cwd}, does not exist`)]);
  expect((await host.open(here.id)).state.damage).toEqual([]);
});

test("a session of another dialect is refused in words", async () => {
  await using stage = new Stage();
  const host = await stage.host();
  const session = await host.sessions.create({ dialect: "anthropic", app: "other", cwd: stage.work });
  await session.close();
  await expect(host.open(session.id)).rejects.toMatchObject({
    name: "CommandError",
    message: expect.stringContaining("anthropic"),
  });
  // Nobody holds it.
  await (await host.sessions.resume(session.id)).close();
});

test("after a clear or a rewind of what was interrupted nothing is interrupted any more; undo brings it back", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([[text("one")], new Error("broken") as never]);
  await chat.prompt("first");
  await chat.settled();
  await chat.prompt("second");
  await chat.settled();
  expect(chat.state.status).toBe("interrupted");
  const second = chat.state.items.findLast(({ kind }) => kind === "prompt")!;
  expect(await chat.rewind(second.id)).toBe("second");
  expect(chat.state).toMatchObject({ status: "idle", interruption: null, canUndo: true });
  await expect(chat.finish()).rejects.toMatchObject({ code: "NOTHING_TO_RESUME" });
  await chat.undo();
  expect(chat.state).toMatchObject({ status: "interrupted", canUndo: false });
  expect(chat.state.items.findLast(({ kind }) => kind === "prompt")).toMatchObject({ text: "second" });
});

test.each(["stop", "close"] as const)(
  "C11: %s keeps what a command had printed, and its end, while another chat works",
  async (how) => {
    await using stage = new Stage();
    const printedAll = /printed:\\nfirst words\\n(?:Terminated\\n)?last words\\n"/;
    const command = "trap 'echo last words; exit 0' TERM; echo first words; while :; do sleep 0.02; done";
    const chat = await stage.chat([[call("slow", "shell", { command })], [text("next")]], {
      config: { allow: ["shell"] },
    });
    const other = await stage.chat([[text("other")]]);
    const { until } = heard(chat);
    const printed = until("tool.output");
    await chat.prompt("slow");
    await printed;
    const stopped = chat[how]();
    await other.prompt("other");
    await Promise.all([stopped, other.settled()]);
    const { interruption, messages } = await chat.store.read(chat.id);
    expect(interruption).toMatchObject({ how: { kind: "aborted", by: how === "stop" ? "user" : "close" }, calls: [] });
    expect(JSON.stringify(messages)).toMatch(printedAll);
    expect(JSON.stringify(other.state.items)).not.toContain("slow");
    if (how === "close") return;
    await chat.prompt("next");
    await chat.settled();
    expect(JSON.stringify(chat.model.prompts.at(-1))).toMatch(printedAll);
    expect(validateAiSdk({ messages }, { prefill: true })).toEqual([]);
    expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "next", turn: 2 });
  },
);

test("what was streamed is on the screen at every instant: live, or recorded, and never twice", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([
    [text("I look first."), call("c1", "list"), call("c2", "list", { path: "." })],
    [text("Nothing there.")],
  ]);
  const shown: string[] = [];
  let streamed = "";
  chat.subscribe((event) => {
    if (event.type === "text") streamed += event.text;
    const { live, items } = chat.state;
    const said = items.flatMap((item) => (item.kind === "answer" ? [item.text] : [])).join("") + (live?.text ?? "");
    if (said !== streamed) shown.push(`${event.type}: ${said}`);
  });
  await chat.prompt("look");
  await chat.settled();
  expect(shown).toEqual([]);
});

test("always answers the other questions that its rule allows", async () => {
  await using stage = new Stage();
  const chat = await stage.chat(
    [
      [
        call("c1", "shell", { command: "echo a" }),
        call("c2", "shell", { command: "echo a" }),
        call("c3", "shell", { command: "echo b" }),
      ],
      [text("done")],
    ],
    { asks: "person" },
  );
  const { until } = heard(chat);
  const asked = until("permission.asked");
  await chat.prompt("go");
  await asked;
  expect(chat.state.asks.map((ask) => ask.call)).toEqual(["c1", "c2", "c3"]);
  await chat.answer("c1", "always");
  expect(chat.state.asks.map((ask) => ask.call)).toEqual(["c3"]);
  await chat.answer("c3", "deny");
  await chat.settled();
  expect(chat.state.items.flatMap((item) => (item.kind === "call" ? [item.state] : []))).toEqual([
    "done",
    "done",
    "denied",
  ]);
});

test("while a sub-agent works, its call shows what it does", async () => {
  await using stage = new Stage();
  let shown: string | undefined;
  const chat = await stage.chat([
    [call("c1", "task", { prompt: "look around" })],
    [call("c2", "list", { path: "." })],
    async () => {
      shown = chat.state.outputs["c1"];
      return [text("nothing there")];
    },
    [text("done")],
  ]);
  const { events } = heard(chat);
  await chat.prompt("go");
  await chat.settled();
  expect(shown).toBe("list .\n");
  expect(events.filter(({ type }) => type === "tool.output")).toEqual([]);
  expect(chat.state.outputs).toEqual({});
});

test("compacting keeps the prompt of an interrupted turn, and an empty conversation has nothing to be summed up", async () => {
  await using stage = new Stage();
  const chat = await stage.chat(
    [
      [call("c1", "read", { path: "a.txt" })],
      () => {
        throw new Error("broken");
      },
      [text("It was about something.")],
      [text("done")],
    ],
    { windowTokens: 2000 },
  );
  // So large that nothing of it is kept as it is.
  writeFileSync(join(stage.work, "a.txt"), "word ".repeat(400));
  await expect(chat.compact()).rejects.toMatchObject({ name: "CommandError" });
  expect(chat.model.prompts).toEqual([]);
  await chat.prompt("the very task");
  await chat.settled();
  expect(chat.state.status).toBe("interrupted");
  await chat.compact();
  await chat.finish();
  await chat.settled();
  expect(JSON.stringify(chat.model.prompts.at(-1))).toContain("the very task");
  expect(chat.state.status).toBe("idle");
});

test("a summary that fails speaks of no turn; a conversation that was cleared does not fill the window", async () => {
  await using stage = new Stage();
  const refused = () => {
    throw new Error("broken");
  };
  const chat = await stage.chat([[text("word ".repeat(400))], refused, refused, refused, refused]);
  await chat.prompt("hello");
  await chat.settled();
  const { usedTokens } = chat.state.window;
  expect(usedTokens).toBeGreaterThan(0);
  const failed = await chat.compact().catch((error: Error) => error.message);
  expect(failed).toMatch(/failed: broken\. The conversation was not compacted and is unchanged\.$/);
  expect(chat.state.isCompacting).toBe(false);
  await chat.clear();
  expect(chat.state.window.usedTokens).toBe(0);
  await chat.undo();
  expect(chat.state.window.usedTokens).toBe(usedTokens);
});

test.each([
  ["less than", 40],
  ["more than", 40_000],
])(
  "after /compact and /undo the window is as full as before, if the provider counts %s the estimate",
  async (_, total) => {
    await using stage = new Stage();
    const part = { id: "t" } as const;
    const usage = { ...USAGE, inputTokens: { ...USAGE.inputTokens, total } };
    const stream = streamOf([
      { type: "text-start", ...part },
      { type: "text-delta", ...part, delta: "word ".repeat(2_000) },
      { type: "text-end", ...part },
      { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
    ]);
    const chat = await stage.chat([{ stream }, [text("in short")]]);
    await chat.prompt("hello");
    await chat.settled();
    const { usedTokens } = chat.state.window;
    expect(usedTokens).toBe(total + 5);
    await chat.compact();
    await chat.settled();
    expect(chat.state.window.usedTokens).not.toBe(usedTokens);
    await chat.undo();
    expect(chat.state.window.usedTokens).toBe(usedTokens);
  },
);

test("R7: a call that was approved is run before the conversation is summed up", async () => {
  await using stage = new Stage();
  const content = "x".repeat(30_000);
  const chat = await stage.chat(
    [[call("c1", "write", { path: "a.txt", content })], [text("They wrote a.txt.")], [text("done")]],
    { asks: "person", windowTokens: 9_000 },
  );
  const asked = heard(chat).until("permission.asked");
  await chat.prompt("go");
  await asked;
  await chat.answer("c1", "allow");
  await chat.settled();
  expect(existsSync(join(stage.work, "a.txt"))).toBe(true);
});

test("R9: a call that hides behind the id of an allowed one is judged by itself, and the flag that would allow it can be pasted", async () => {
  await using stage = new Stage();
  const command = "touch 'made'";
  const chat = await stage.chat([[call("c", "list"), call("c", "shell", { command })], [text("done")]]);
  const { events } = heard(chat);
  await chat.prompt("go");
  await chat.settled();
  expect(existsSync(join(stage.work, "made"))).toBe(false);
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", denied: 1 });
  const notice = events.find((event) => event.type === "notice");
  expect(notice).toMatchObject({ text: expect.stringContaining(`--allow 'shell(touch '\\''made'\\'')'`) });
});

test.each([
  ["are not handed to commands", [], ["", "", ""]],
  ["are, where the user says so", ["OPENAI_API_KEY", "SOMEBODY_KEY"], ["sk-ours", "", "else's"]],
])("keys %s", async (_, passEnv, seen) => {
  await using stage = new Stage();
  const password = "postgres://me:secret@127.0.0.1/db";
  const given = { OPENAI_API_KEY: "sk-ours", HOLDFAST_STORE: password, SOMEBODY_KEY: "else's" };
  const before = Object.keys(given).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, given);
  try {
    const command = 'printf "%s\\n" "$OPENAI_API_KEY" "$HOLDFAST_STORE" "$SOMEBODY_KEY"';
    const chat = await stage.chat([[call("c1", "shell", { command })], [text("done")]], {
      config: { allow: ["shell"], passEnv },
    });
    await chat.prompt("go");
    await chat.settled();
    const printed = chat.state.items.find(({ kind }) => kind === "call");
    expect(printed).toMatchObject({ output: `${seen.join("\n")}\n` });
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
});

/** A refusal of Holdfast's where the agent records in which process a command runs. */
function refuseProcesses(session: Session<ModelMessage>, code: ErrorCode): void {
  const startTurn = session.startTurn.bind(session);
  session.startTurn = async (...given) => {
    const turn = await startTurn(...given);
    turn.toolProcess = () => Promise.reject(new HoldfastError(code, "No: that call is not running.", {}));
    return turn;
  };
}

test.each(["CALL_UNKNOWN", "STORE_IO"] as const)(
  "P8: %s inside a tool ends the turn, and is told to the user: the model does not hear of it, and does not try again",
  async (code) => {
    await using stage = new Stage();
    const steps = ["a", "b", "c"].map((id) => [call(id, "shell", { command: `echo ${id} >> log.txt` })]);
    const chat = await stage.chat([...steps, [text("Now it works.")]], { config: { allow: ["shell"] } });
    refuseProcesses(chat.store.live(chat.id)!, code);
    const { events } = heard(chat);
    await chat.prompt("go");
    await chat.settled();
    expect(chat.model.prompts).toHaveLength(1);
    expect(chat.state).toMatchObject({ status: "interrupted", failure: { code } });
    expect(events.filter(({ type }) => type === "turn.ended")).toMatchObject([{ outcome: "failed", error: { code } }]);
    expect(existsSync(join(stage.work, "log.txt")), "the command did not run").toBe(false);
    // The session is opened anew, and works.
    chat.model.prompts.length = 0;
    await chat.prompt("again");
    await chat.settled();
    expect(chat.state).toMatchObject({ status: "idle", failure: null });
    expect(readFileSync(join(stage.work, "log.txt"), "utf8")).toBe("b\nc\n");
  },
);

test("P8: what Holdfast refuses inside a sub-agent ends its turn, and that of the agent that asked for it", async () => {
  await using stage = new Stage();
  const chat = await stage.chat(
    [
      [call("t", "task", { prompt: "echo" })],
      [call("a", "shell", { command: "echo a >> log.txt" })],
      [call("b", "shell", { command: "echo b >> log.txt" })],
      [text("Never.")],
    ],
    { config: { allow: ["shell"] } },
  );
  const create = chat.store.create.bind(chat.store);
  chat.store.create = async <M>(options: CreateOptions<M>) => {
    const session = await create<M>(options);
    refuseProcesses(session as never, "CALL_UNKNOWN");
    return session;
  };
  await chat.prompt("go");
  await chat.settled();
  expect(chat.model.prompts).toHaveLength(2);
  expect(chat.state).toMatchObject({ status: "interrupted", failure: { code: "CALL_UNKNOWN" } });
});
