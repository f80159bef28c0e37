import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { validateAiSdk } from "@holdfast/testkit";
import type { ModelMessage } from "ai";
import type { Store } from "holdfast";
import { expect, test } from "vitest";
import { FailingDisk } from "../../../../../adapters/test/failing-disk.ts";
import { exported } from "../../../../src/export/index.ts";
import { LocalHost } from "../../../../src/host/local/local-host.ts";
import { APP } from "../../../../src/store/app.ts";
import { usageBelow } from "../../../../src/store/usage.ts";
import { inspectTarget } from "../../../../src/tools/files/call-target.ts";
import { identify } from "../../../../src/tools/shell/surviving-commands.ts";
import { Trust } from "../../../../src/trust/trust.ts";
import { call, config, heard, Stage, text } from "../host-stage.ts";

const untilStopped = (signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => {
    const stop = (): void => reject(signal?.reason);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop);
  });

test("C9: queued prompts are there after a restart, in order, and are delivered once", async () => {
  await using stage = new Stage();
  const asked = Promise.withResolvers<void>();
  const first = await stage.chat([
    ({ abortSignal }) => {
      asked.resolve();
      return untilStopped(abortSignal);
    },
  ]);
  await first.prompt("one");
  await asked.promise;
  expect(await first.prompt("two")).toBe("queued");
  expect(await first.prompt("three")).toBe("queued");
  await first.prompt("four");
  await first.withdraw(first.state.queue.at(-1)!.id);
  await first.close();
  await first.store.close();
  const second = await stage.chat([[text("1")], [text("2")], [text("3")]], { id: first.id });
  expect(second.state.queue.map((one) => one.text)).toEqual(["two", "three"]);
  expect(second.state).toMatchObject({
    status: "interrupted",
    interruption: { how: { kind: "aborted", by: "close" } },
  });
  await second.finish();
  await second.settled();
  const said = second.state.items.flatMap((item) =>
    item.kind === "prompt" || item.kind === "answer" ? [item.text] : [],
  );
  expect(said).toEqual(["one", "1", "two", "2", "three", "3"]);
  expect(second.state.queue).toEqual([]);
});

test("C12: stop in the middle of the text keeps it, marked as incomplete, and the next prompt is told", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([
    {
      stream: new ReadableStream({
        start(controller) {
          controller.enqueue({ type: "stream-start", warnings: [] });
          controller.enqueue({ type: "text-start", id: "t" });
          controller.enqueue({ type: "text-delta", id: "t", delta: "half of an answ" });
        },
      }),
    },
    [text("next")],
  ]);
  const { until } = heard(chat);
  const said = until("text");
  await chat.prompt("tell");
  await said;
  await chat.stop();
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "half of an answ", incomplete: true });
  await chat.prompt("go on");
  await chat.settled();
  const sent = JSON.stringify(chat.model.prompts.at(-1));
  expect(sent).toContain("half of an answ");
  expect(sent).toContain("user stopped it");
});

test("setModel is remembered over a restart; a flag counts more", async () => {
  await using stage = new Stage();
  const env = process.env["COMPATIBLE_BASE_URL"];
  process.env["COMPATIBLE_BASE_URL"] = "http://127.0.0.1:1/v1";
  try {
    const first = await stage.host();
    const chat = await first.create({ cwd: stage.work });
    await chat.prompt("hello");
    await chat.settled();
    await chat.setModel("compatible/one");
    await expect(chat.setModel("nobody/x")).rejects.toMatchObject({ code: "MODEL_UNKNOWN" });
    await first.close();
    const second = await stage.host();
    expect((await second.open(chat.id)).state.model).toBe("compatible/one");
    await second.close();
    const third = await stage.host();
    expect((await third.open(chat.id, { model: "offline" })).state.model).toBe("offline/offline");
  } finally {
    if (env === undefined) delete process.env["COMPATIBLE_BASE_URL"];
    else process.env["COMPATIBLE_BASE_URL"] = env;
  }
});

test("two chats at once, each with its own records; close ends both, and they can be gone on with", async () => {
  await using stage = new Stage();
  const host = await stage.host("nobody", { allow: ["write", "shell"], offlineDelayMs: 1 });
  const [one, two] = await Promise.all([host.create({ cwd: stage.work }), host.create({ cwd: stage.work })]);
  await Promise.all([one.prompt("write one.txt: one"), two.prompt("write two.txt: two")]);
  await Promise.all([one.settled(), two.settled()]);
  expect(JSON.stringify(one.state.items)).not.toContain("two.txt");
  expect(JSON.stringify(two.state.items)).not.toContain("one.txt");
  const started = heard(one).until("tool.started");
  await Promise.all([one.prompt("run sleep 30"), two.prompt("tell me a story of 4000 lines")]);
  await started;
  await host.close();
  const again = await stage.host();
  for (const { id } of [one, two]) {
    const chat = await again.open(id);
    expect(chat.state.interruption?.how).toEqual({ kind: "aborted", by: "close" });
    const { messages } = await again.sessions.read<ModelMessage>(id);
    expect(validateAiSdk({ messages })).toEqual([]);
  }
});

test("C33: fork, clear, undo, rewind: what is shown is what the model sees", async () => {
  await using stage = new Stage();
  const host = await stage.host();
  const chat = await host.create({ cwd: stage.work, title: "mine" });
  for (const word of ["one", "two", "three"]) {
    await chat.prompt(`think about ${word}`);
    await chat.settled();
  }
  const prompts = chat.state.items.filter(({ kind }) => kind === "prompt");
  const answer = chat.state.items.find(({ kind }) => kind === "answer")!;
  const fork = await host.fork(chat.id, { at: answer.id.replace(/\.\d+$/, "") });
  expect(fork.state.items.map(({ id }) => id)).toEqual(
    chat.state.items.slice(0, fork.state.items.length).map(({ id }) => id),
  );
  expect(fork.state.items.filter(({ kind }) => kind === "prompt")).toHaveLength(1);
  expect(fork.state.model).toBe(chat.state.model);
  await chat.clear();
  expect(chat.state).toMatchObject({ items: [], canUndo: true });
  await chat.undo();
  expect(chat.state.items.filter(({ kind }) => kind === "prompt")).toHaveLength(3);
  await expect(chat.undo()).rejects.toMatchObject({ code: "UNDO_TOO_LATE" });
  expect(await chat.rewind(prompts[1]!.id)).toBe("think about two");
  expect(chat.state.items.filter(({ kind }) => kind === "prompt")).toHaveLength(1);
  await expect(chat.rewind("nonsense")).rejects.toMatchObject({ code: "MESSAGE_UNKNOWN" });
  await chat.prompt("think about four");
  await expect(chat.rewind(prompts[0]!.id)).rejects.toMatchObject({ code: "TURN_OPEN" });
  await chat.settled();
  expect(JSON.stringify(chat.state.items)).not.toContain("three");
  // An empty fork is not thrown away when it is closed, and the source is as it was.
  await fork.close();
  expect(await host.sessions.has(fork.id)).toBe(true);
});

test("R7: while it waits, a prompt is queued, stop leaves the call waiting, and the answer in another process runs it once", async () => {
  await using stage = new Stage();
  const steps = [[call("c1", "shell", { command: "echo ran >> log.txt" })]];
  const first = await stage.chat(steps, { asks: "person" });
  const { until } = heard(first);
  const asked = until("permission.asked");
  await first.prompt("run it");
  const { ask } = await asked;
  await first.settled();
  expect(first.state).toMatchObject({ status: "waiting", asks: [{ call: "c1", name: "shell" }] });
  expect(await first.prompt("and then?")).toBe("queued");
  await first.stop();
  expect(first.state).toMatchObject({ status: "interrupted", asks: [] });
  await expect(first.answer(ask.call, "allow")).rejects.toMatchObject({ code: "CALL_UNKNOWN" });
  expect((await first.store.list()).sessions).toMatchObject([{ status: "waiting", queued: 1 }]);
  await first.close();
  await first.store.close();
  const second = await stage.chat([[text("done")], [text("nothing more")]], { asks: "person", id: first.id });
  // The same question, word for word, and nothing is written for it.
  expect(second.state).toMatchObject({ status: "waiting", asks: [ask] });
  expect((await second.store.list()).sessions).toMatchObject([{ status: "waiting" }]);
  await second.answer("c1", "allow");
  await second.settled();
  expect(readFileSync(join(stage.work, "log.txt"), "utf8")).toBe("ran\n");
  expect(second.state.items.at(-1)).toMatchObject({ kind: "answer", text: "nothing more" });
  for (const prompt of second.model.prompts) expect(JSON.stringify(prompt).match(/"tool-result"/g)).toHaveLength(1);
});

test("R7: a question that is asked again: stopped, it waits on; prompts and /clear cannot take its place until it is left", async () => {
  await using stage = new Stage();
  const first = await stage.chat([[call("c1", "shell", { command: "echo ran >> log.txt" })]], { asks: "person" });
  await first.prompt("run it");
  await first.settled();
  await first.close();
  await first.store.close();
  const second = await stage.chat([[text("something else")]], { asks: "person", id: first.id });
  await expect(second.finish()).rejects.toMatchObject({ code: "TURN_OPEN" });
  await second.stop();
  expect(second.state).toMatchObject({ status: "interrupted", asks: [], interruption: { how: { kind: "suspended" } } });
  expect(await second.prompt("something else?")).toBe("queued");
  for (const replaced of [() => second.clear(), () => second.compact(), () => second.resumeQueue()])
    await expect(replaced()).rejects.toMatchObject({ code: "TURN_OPEN", message: expect.stringContaining("waiting") });
  expect((await second.store.list()).sessions).toMatchObject([{ status: "waiting", queued: 1 }]);
  second.leave();
  await second.resumeQueue();
  await second.settled();
  expect(second.state.items.at(-1)).toMatchObject({ kind: "answer", text: "something else" });
  expect(existsSync(join(stage.work, "log.txt"))).toBe(false);
});

test("R7: killed before the question was put, beside a command that was running: that is decided on first, and words do not discard the turn", async () => {
  await using stage = new Stage();
  const store = await stage.store();
  const session = await store.create<ModelMessage>({
    dialect: "ai-sdk",
    app: "holdfast",
    cwd: stage.work,
  });
  const turn = await session.startTurn({ role: "user", content: "go" });
  const content = [
    { type: "tool-call", toolCallId: "c1", toolName: "shell", input: { command: "sleep 1" } },
    { type: "tool-call", toolCallId: "c2", toolName: "write", input: { path: "a.txt", content: "a" } },
    { type: "tool-approval-request", approvalId: "p2", toolCallId: "c2" },
  ] as const;
  await turn.append({ role: "assistant", content: [...content] });
  await turn.toolStarted("c1");
  await session.flush();
  // As a kill leaves it: nothing is closed.
  const copy = mkdtempSync(join(tmpdir(), "holdfast-killed-"));
  cpSync(join(stage.folder, "sessions"), join(copy, "sessions"), { recursive: true });
  await store.close();
  rmSync(stage.folder, { recursive: true });
  renameSync(copy, stage.folder);
  const chat = await stage.chat([[text("done")]], { asks: "person", id: session.id });
  expect(chat.state).toMatchObject({ status: "interrupted", asks: [], interruption: { how: { kind: "killed" } } });
  expect(await chat.prompt("y")).toBe("queued");
  const asked = heard(chat).until("permission.asked");
  await chat.finish();
  expect((await asked).ask.call).toBe("c2");
});

test("R7: some allowed, some denied, by a person, of one response: each gets its own word, and one result each", async () => {
  await using stage = new Stage();
  const chat = await stage.chat(
    [
      [
        call("c1", "write", { path: "a.txt", content: "a" }),
        call("c2", "write", { path: "b.txt", content: "b" }),
        call("c3", "read", { path: "c.txt" }),
      ],
      [text("done")],
    ],
    { asks: "person" },
  );
  chat.subscribe((event) => {
    if (event.type !== "permission.asked") return;
    void chat.answer(event.ask.call, event.ask.call === "c1" ? "allow" : "deny", "not that one");
  });
  const { events } = heard(chat);
  await chat.prompt("go");
  while (chat.state.status !== "idle") await chat.settled();
  expect(existsSync(join(stage.work, "a.txt"))).toBe(true);
  expect(existsSync(join(stage.work, "b.txt"))).toBe(false);
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", outcome: "completed", denied: 1 });
  const { messages } = await chat.store.read<ModelMessage>(chat.id);
  expect(validateAiSdk({ messages }, { prefill: true })).toEqual([]);
  expect(JSON.stringify(chat.model.prompts.at(-1))).toContain("not that one");
});

test("a prompt after the chat was closed is refused in words", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([[text("hello")]]);
  await chat.prompt("hello");
  await chat.settled();
  await chat.close();
  await expect(chat.prompt("again")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
});

test.each([
  ["an approval is not for a later call of the same id", false, []],
  ["an approved call runs, though an earlier one had its id", true, []],
  ["an approved call does not run if a rule denies it by now", true, ["shell(touch *)"]],
])("R7, R9: %s", async (_name, isApproved, deny) => {
  await using stage = new Stage();
  const store = await stage.store();
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk", cwd: stage.work });
  const turn = await session.startTurn({ role: "user", content: "go" });
  const calls = async (command: string, approvalId?: string): Promise<void> => {
    const made = { type: "tool-call" as const, toolCallId: "call_0", toolName: "shell", input: { command } };
    const request = { type: "tool-approval-request" as const, approvalId: approvalId ?? "", toolCallId: "call_0" };
    const { id: message } = await turn.append({ role: "assistant", content: approvalId ? [made, request] : [made] });
    if (!approvalId) return;
    // As the chat does when a person says so.
    new Trust(store.url).of(session.id).approve({ id: "call_0", message, name: "shell", input: { command } });
    await turn.append({ role: "tool", content: [{ type: "tool-approval-response", approvalId, approved: true }] });
  };
  await calls("echo 1", isApproved ? undefined : "first");
  await turn.toolStarted("call_0");
  await turn.toolEnded("call_0", { value: "1" });
  await calls("touch made", isApproved ? "second" : undefined);
  const { bytes: _, ...seen } = await inspectTarget(
    { cwd: stage.work },
    { name: "shell", input: { command: "touch made" } },
  );
  await session.note("approved", { call_0: { ...seen, target: { ...seen.target } } });
  await store.close();
  const chat = await stage.chat([[text("done")]], { id: session.id, config: { deny } });
  await chat.finish();
  await chat.settled();
  expect(existsSync(join(stage.work, "made"))).toBe(isApproved && deny.length === 0);
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "done" });
});

test("R9: two open calls with one id: neither runs, since what is known of one may not hold for the other", async () => {
  await using stage = new Stage();
  const store = await stage.store();
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk", cwd: stage.work });
  const turn = await session.startTurn({ role: "user", content: "go" });
  const made = (id: string, file: string) =>
    ({ type: "tool-call", toolCallId: id, toolName: "shell", input: { command: `touch ${file}` } }) as const;
  await turn.append({ role: "assistant", content: [made("c", "one"), made("c", "two"), made("d", "three")] });
  await store.close();
  const config = { allow: ["shell(touch *)"] };
  const chat = await stage.chat([[text("done")]], { id: session.id, config });
  await chat.finish();
  await chat.settled();
  expect(["one", "two", "three"].filter((file) => existsSync(join(stage.work, file)))).toEqual(["three"]);
  expect(JSON.stringify(chat.model.prompts.at(-1)).match(/It never started/g)).toHaveLength(2);
});

test("R7b: to wait for a command that outlived its agent is work, which can be stopped: then all is as it was", async () => {
  await using stage = new Stage();
  const command = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
  try {
    const pid = command.pid!;
    const store = await stage.store();
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk", cwd: stage.work });
    const turn = await session.startTurn({ role: "user", content: "go" });
    const made = { type: "tool-call" as const, toolCallId: "c1", toolName: "shell", input: { command: "sleep 300" } };
    await turn.append({ role: "assistant", content: [made] });
    await turn.toolStarted("c1");
    const started = { pid, started: (await identify(pid))!, group: true } as const;
    new Trust(store.url).of(session.id).started(started);
    await turn.toolProcess("c1", started);
    await store.close();
    const chat = await stage.chat([[text("done")]], { id: session.id });
    const waits = heard(chat).until("notice");
    const waiting = chat.finish();
    await waits;
    expect(chat.state.status).toBe("running");
    await chat.stop();
    await waiting;
    expect(chat.state).toMatchObject({ status: "interrupted", interruption: { calls: [{ process: { pid } }] } });
    await chat.finish({ processes: "stop" });
    await chat.settled();
    expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "done" });
  } finally {
    command.kill("SIGKILL");
  }
});

test("R7b: a sub-agent's command that outlived them all is told of, and can be stopped", async () => {
  await using stage = new Stage();
  const command = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
  const gone = new Promise((resolve) => command.once("exit", (_code, signal) => resolve(signal)));
  try {
    const store = await stage.store();
    const options = { dialect: "ai-sdk", app: "holdfast", cwd: stage.work } as const;
    const begin = async (labels: object, name: string, input: object) => {
      const session = await store.create<ModelMessage>({ ...options, ...labels });
      const turn = await session.startTurn({ role: "user", content: "go" });
      const made = { type: "tool-call" as const, toolCallId: "call_0", toolName: name, input };
      const { id: message } = await turn.append({ role: "assistant", content: [made] });
      // As the agent records it: a sub-agent is resumed, a command is not run twice.
      await turn.toolStarted("call_0", name === "task" ? { replay: "safe" } : {});
      return { session, turn, message };
    };
    const { session, message } = await begin({}, "task", { prompt: "go" });
    const link = { parent: { session: session.id, call: "call_0" }, labels: { message } };
    const { turn, session: agent } = await begin(link, "shell", { command: "sleep 300" });
    const pid = command.pid!;
    const started = { pid, started: (await identify(pid))!, group: true } as const;
    new Trust(store.url).of(agent.id).started(started);
    await turn.toolProcess("call_0", started);
    await store.close();
    const chat = await stage.chat([[text("the part")], [text("the whole")]], { id: session.id });
    expect(chat.state.interruption?.calls).toMatchObject([{ name: "task", process: { pid, running: true } }]);
    await chat.finish({ processes: "stop" });
    await chat.settled();
    expect(await gone).toBe("SIGTERM");
    expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "the whole" });
    expect(JSON.stringify(chat.model.prompts[0])).toContain("ended without a record of how far it got");
  } finally {
    command.kill("SIGKILL");
  }
});

test("what sub-agents use is shown with what the conversation uses, once, also after a restart", async () => {
  await using stage = new Stage();
  const steps = [[call("call_0", "task", { prompt: "a part" })], [text("the part")], [text("the whole")]];
  const first = await stage.chat(steps);
  const { events } = heard(first);
  await first.prompt("go");
  await first.settled();
  const all = { inputTokens: 21, outputTokens: 15 };
  expect(first.state.usage).toMatchObject(all);
  const told = events.flatMap((event) => (event.type === "usage" ? [event.usage.inputTokens] : []));
  expect(told.at(-1)).toBe(21);
  expect((await first.store.read(first.id)).usage, "each session records its own").toMatchObject({ inputTokens: 14 });
  await first.close();
  await first.store.close();
  const second = await stage.chat([[call("call_0", "task", { prompt: "more" })], [text("more")], [text("all")]], {
    id: first.id,
  });
  expect(second.state.usage).toMatchObject(all);
  await second.prompt("again");
  await second.settled();
  expect(second.state.usage).toMatchObject({ inputTokens: 42, outputTokens: 30 });
  const [child] = (await second.store.list({ parent: first.id })).sessions;
  const pieces = await Array.fromAsync(exported(second.store, first.id, { format: "markdown" }));
  expect(pieces.join("")).toContain("42 in, 30 out");
  await second.close();
  await second.store.close();
  for (const name of readdirSync(join(stage.folder, "sessions", child!.id))) {
    if (name.endsWith(".jsonl")) writeFileSync(join(stage.folder, "sessions", child!.id, name), '{"format":"9.0"}\n');
  }
  const third = await stage.chat([], { id: first.id });
  expect(third.state.usage, "one that cannot be read is not in the way").toMatchObject({ outputTokens: 25 });
});

test("P7: what sub-agents used takes one list, however many they are; foreign links in a circle come to an end", async () => {
  const lists: unknown[] = [];
  const storeOf = (children: Record<string, readonly string[]>, app?: string) =>
    ({
      list: async ({ parent = "" }) => {
        if (lists.push(parent) > 20) throw new Error("no end");
        return { sessions: (children[parent] ?? []).map((id) => ({ id, app })) };
      },
      read: async (id: string) => ({ id, usage: { inputTokens: 1 }, attributes: { notes: {} } }),
    }) as unknown as Store;
  expect((await usageBelow(storeOf({ a: ["b", "c", "d"] }, "holdfast"), "a")).size).toBe(3);
  expect(lists).toEqual(["a"]);
  const circle = await usageBelow(storeOf({ a: ["b", "a"], b: ["c"], c: ["a", "b"] }), "a");
  expect([...circle]).toEqual([["b", { inputTokens: 2 }]]);
});

test.each([
  ["runs again if the file is as it was", "before", "written"],
  ["runs again if it took effect", "written", "written"],
  ["does not run again over what somebody has made of the file since", "theirs", "theirs"],
])("C4: a write in doubt %s", async (_, found, wanted) => {
  await using stage = new Stage();
  const path = join(stage.work, "a.txt");
  if (found === "before") writeFileSync(path, "before");
  const store = await stage.store();
  const session = await store.create<ModelMessage>({
    dialect: "ai-sdk",
    app: "holdfast",
    cwd: stage.work,
  });
  const turn = await session.startTurn({ role: "user", content: "go" });
  const input = { path: "a.txt", content: "written" };
  const made = { type: "tool-call" as const, toolCallId: "call_0", toolName: "write", input };
  await turn.append({ role: "assistant", content: [made] });
  await turn.toolStarted("call_0", { replay: "safe" });
  const later = new Date(Date.now() + 60_000);
  if (found !== "before") writeFileSync(path, found);
  if (found !== "before") utimesSync(path, later, later);
  await store.close();
  const chat = await stage.chat([[text("done")]], { id: session.id, config: { allow: ["write"] } });
  await chat.finish();
  await chat.settled();
  expect(readFileSync(path, "utf8")).toBe(wanted);
  const isTold = JSON.stringify(chat.model.prompts[0]).includes("may have taken effect");
  expect(isTold, "the model is to look").toBe(found === "theirs");
});

/** A session whose process ended between the answer and the end of its turn. */
async function answeredBehind(stage: Stage): Promise<string> {
  const store = await stage.store();
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk", app: APP, cwd: stage.work });
  const turn = await session.startTurn({ role: "user", content: "one" });
  await turn.append({ role: "assistant", content: [{ type: "text", text: "1" }] });
  await session.note("model", "offline/offline");
  new Trust(store.url).of(session.id).workIn(stage.work);
  await store.close();
  return session.id;
}

test("P5: a turn that was cut off behind its answer is completed when it is opened, and its model is not asked", async () => {
  await using stage = new Stage();
  const id = await answeredBehind(stage);
  const chat = await stage.chat([[text("2")]], { id });
  expect(chat.state).toMatchObject({ status: "idle", interruption: null });
  await expect(chat.finish()).rejects.toMatchObject({ code: "NOTHING_TO_RESUME" });
  expect(chat.model.prompts).toEqual([]);
  await chat.prompt("two");
  await chat.settled();
  expect(chat.model.prompts.map((prompt) => prompt.map(({ role }) => role))).toEqual([
    ["system", "user", "assistant", "user"],
  ]);
});

test("P8: if the disk is full by then, it can be read; finished later, it is completed, and what is queued is done", async () => {
  await using stage = new Stage();
  const id = await answeredBehind(stage);
  const disk = new FailingDisk();
  const store = await disk.open(stage.folder);
  const host = new LocalHost(store, config, "nobody");
  try {
    disk.countdown = 1;
    const chat = await host.open(id);
    expect(disk.failed).toBe(1);
    expect(chat.state).toMatchObject({ status: "interrupted", interruption: { answered: true } });
    const { events } = heard(chat);
    await store.live(id)!.enqueue({ role: "user", content: "write a.txt: two" });
    await chat.finish();
    await chat.settled();
    expect(events.find(({ type }) => type === "turn.ended")).toMatchObject({ outcome: "completed" });
    expect(chat.state).toMatchObject({ status: "idle", interruption: null, queue: [] });
    const said = chat.state.items.flatMap((item) => (item.kind === "prompt" ? [item.text] : []));
    expect(said).toEqual(["one", "write a.txt: two"]);
  } finally {
    await host.close();
  }
});

test("R7: a call that was denied before the process died is not asked about again, and does not run", async () => {
  await using stage = new Stage();
  await using before = await stage.store();
  const session = await before.create<ModelMessage>({ dialect: "ai-sdk", app: APP, cwd: stage.work });
  const turn = await session.startTurn({ role: "user", content: "run it" });
  const input = { command: "echo ran >> log.txt" };
  await turn.append({
    role: "assistant",
    content: [
      { type: "tool-call", toolCallId: "c1", toolName: "shell", input },
      { type: "tool-approval-request", approvalId: "a1", toolCallId: "c1" },
    ],
  });
  await turn.append({ role: "tool", content: [{ type: "tool-approval-response", approvalId: "a1", approved: false }] });
  await session.close();
  const chat = await stage.chat([[text("as you wish")]], { asks: "person", id: session.id });
  expect(chat.state).toMatchObject({
    status: "interrupted",
    asks: [],
    account: { can: { answer: { no: "not-waiting" } } },
  });
  await chat.finish();
  await chat.settled();
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "as you wish" });
  expect(existsSync(join(stage.work, "log.txt"))).toBe(false);
});

test("R7: a turn that waits for nothing any more, since its only call was denied, does not hold up the next prompt", async () => {
  await using stage = new Stage();
  await using before = await stage.store();
  const session = await before.create<ModelMessage>({ dialect: "ai-sdk", app: APP, cwd: stage.work });
  const turn = await session.startTurn({ role: "user", content: "run it" });
  await turn.append({
    role: "assistant",
    content: [
      { type: "tool-call", toolCallId: "c1", toolName: "shell", input: { command: "true" } },
      { type: "tool-approval-request", approvalId: "a1", toolCallId: "c1" },
    ],
  });
  await turn.append({ role: "tool", content: [{ type: "tool-approval-response", approvalId: "a1", approved: false }] });
  await turn.suspend({ reason: "permission" });
  await session.close();
  const chat = await stage.chat([[text("as you wish")]], { asks: "person", id: session.id });
  expect(chat.state).toMatchObject({ asks: [], account: { state: "waiting", can: { answer: { no: "not-waiting" } } } });
  expect(await chat.prompt("leave that, then")).toBe("started");
  await chat.settled();
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "as you wish" });
});
