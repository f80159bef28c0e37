import { accountOf, type CallPolicy, decideCall, type OpenCall, openStore } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectedGist, gistOf, type Journal, POLICY, writeJournals } from "../../journals/journals.ts";
import { lives } from "../../journals/lives.ts";
import { place } from "../../place.ts";

const folder = place();
let journals: readonly Journal[] = [];
beforeAll(async () => {
  journals = await writeJournals(folder.path, "writer");
});
afterAll(() => folder[Symbol.dispose]());

describe("the account of a session whose process was killed", () => {
  test("there are at least 40, with every state but running", () => {
    expect(journals.length).toBeGreaterThanOrEqual(40);
    const states = new Set(journals.map(({ expected }) => expected.state));
    expect([...states].sort()).toEqual(["failed", "idle", "interrupted", "parked", "paused", "stopped", "waiting"]);
  });

  test.each(lives().map(({ name }) => name))("%s: read, listed and opened, it says the same", async (name) => {
    const { id, expected } = journals.find((one) => one.name === name)!;
    const { state, calls, answered = false, queued = 0, attempts } = expected;
    await using store = await openStore(folder.path);
    const { sessions } = await store.list({ empty: true });
    expect(sessions.find((one) => one.id === id)).toMatchObject({ status: state, queued });
    if (attempts) expect(sessions.find((one) => one.id === id)).toMatchObject({ attempts });
    const closed = accountOf(await store.read(id), { app: "writer", policy: POLICY });
    expect(closed).toMatchObject({ session: id, app: "writer", state, holder: null, queued });
    expect(gistOf(closed).calls).toEqual(calls);
    expect(closed.interruption?.answered ?? false).toBe(answered);
    await using session = await store.resume(id);
    const open = accountOf(session, { app: "writer", policy: POLICY, isOpenHere: true });
    const elsewhere = accountOf(await store.read(id), { app: "writer", policy: POLICY });
    // Opening writes nothing, and changes nothing of it.
    for (const other of [open, elsewhere]) {
      const { holder, cursor: _, can: __, ...same } = other;
      expect(holder).toMatchObject({ pid: process.pid });
      expect(same).toEqual(Object.fromEntries(Object.entries(closed).filter(([member]) => member in same)));
    }
    expect(open.can).toEqual(closed.can);
    const held = Object.entries(elsewhere.can).flatMap(([act, can]) => (can === true ? [] : [[act, can.no]]));
    // A record of the process that opened it does not make it that process's turn.
    await session.note("seen", true);
    const { interruption } = closed;
    expect(accountOf(await store.read(id), { policy: POLICY })).toMatchObject({
      ...{ state, calls: closed.calls, interruption },
    });
    const again = await store.list({ empty: true });
    expect(again.sessions.find((one) => one.id === id)).toMatchObject({ status: state, queued });
    expect(Object.fromEntries(held)).toEqual({
      ...{ prompt: "held-by", finish: "held-by", retry: "held-by", leave: "held-by", answer: "held-by" },
      ...{ stop: "held-by", takeOver: "held-by" },
    });
  });

  test("what can be done follows from the state, and another program must take it over", async () => {
    await using store = await openStore(folder.path);
    for (const { id, name, expected } of journals) {
      const reading = await store.read(id);
      const seenBy = (app: string) => gistOf(accountOf(reading, { app, policy: POLICY }));
      expect(seenBy("writer"), name).toEqual(expectedGist(expected, "writer"));
      expect(seenBy("another"), name).toEqual(expectedGist(expected, "another"));
    }
  });

  test("words are plain, and name each call", async () => {
    await using store = await openStore(folder.path);
    const words = async (name: string): Promise<readonly string[]> => {
      const { words, calls } = accountOf(await store.read(journals.find((one) => one.name === name)!.id));
      return [words.status, ...words.detail, ...calls.map((call) => `${call.id}: ${call.words}`)];
    };
    expect(await words("created")).toEqual(["idle"]);
    expect(await words("b starts")).toEqual([
      "interrupted: its process died",
      "a: started, outcome unknown",
      "b: started, outcome unknown",
      "c: never started, safe to run",
    ]);
    expect(await words("suspended")).toEqual([
      "waiting for approval",
      "a: waiting for approval, has not run",
      "b: never started, safe to run",
    ]);
    expect(await words("denied")).toEqual([
      "interrupted: its process died",
      "It had been resumed once.",
      "a: denied, has not run",
      "b: never started, safe to run",
    ]);
    expect(await words("closed in mid-turn")).toEqual([
      "interrupted: its program was closed",
      "a: started, outcome unknown",
    ]);
    expect((await words("asleep"))[0]).toBe("paused until 2199-01-01 00:00 UTC (the market is closed)");
    expect(await words("woken")).toEqual(["interrupted: its process died", "a: never started, safe to run"]);
    expect((await words("parked"))[0]).toBe("parked after 5 attempts without progress: no credit");
    expect((await words("failed"))[0]).toBe("failed: no credit");
    expect((await words("stopped by the user"))[0]).toBe("stopped by user");
    expect((await words("queued"))[0]).toBe("interrupted: its process died, a prompt is queued");
    expect(await words("answered")).toEqual([
      "interrupted: its process died",
      "The model had answered: only the end of the turn is missing.",
    ]);
    expect(await words("streaming")).toEqual([
      "interrupted: its process died",
      "6 characters of the answer had been streamed.",
    ]);
  });
});

test("a session that its process works on is running, here and for others", async () => {
  using other = place();
  await using store = await openStore(other.path, { app: "writer", recordsToolStarts: true });
  const session = await store.create({ dialect: "anthropic" });
  const turn = await session.startTurn({ role: "user", content: "go" });
  await turn.append({ role: "assistant", content: [{ type: "tool_use", id: "a", name: "look", input: {} }] });
  await turn.toolStarted("a");
  const here = accountOf(session, { app: "writer", isOpenHere: true });
  const there = accountOf(await store.read(session.id), { app: "writer" });
  for (const account of [here, there]) {
    expect(account).toMatchObject({ state: "running", turn: 1, interruption: null });
    expect(account.calls).toMatchObject([{ id: "a", state: "running", effect: "possible", words: "running" }]);
  }
  expect(here.words.status).toBe("running");
  expect(there.words.status).toMatch(/^running in "writer" \(process \d+ on .+\)$/);
  expect(here.can).toMatchObject({ stop: true, finish: { no: "running" }, prompt: true });
  expect(there.can).toMatchObject({ stop: { no: "held-by" }, fork: true });
});

test("a decision is asked for only while a call waits for one", async () => {
  using other = place();
  await using store = await openStore(other.path, { app: "writer", recordsToolStarts: true });
  const session = await store.create({ dialect: "ai-sdk" });
  const ids = ["a", "b"];
  const answerTo = async (id: string, approved: boolean): Promise<unknown> => {
    const response = { type: "tool-approval-response" as const, approvalId: `ask-${id}`, approved };
    const turn = await session.resumeTurn({ calls: { runs: true, asks: true } });
    await turn.append({ role: "tool", content: [response] });
    await turn.suspend({ reason: "approval" });
    return accountOf(session, { app: "writer", isOpenHere: true }).can.answer;
  };
  const turn = await session.startTurn({ role: "user", content: "go" });
  await turn.append({
    role: "assistant",
    content: ids.flatMap((id) => [
      { type: "tool-call", toolCallId: id, toolName: "look", input: {} } as const,
      { type: "tool-approval-request", approvalId: `ask-${id}`, toolCallId: id } as const,
    ]),
  });
  await turn.suspend({ reason: "approval" });
  expect(accountOf(session, { app: "writer", isOpenHere: true }).can.answer).toBe(true);
  expect(await answerTo("a", false)).toBe(true);
  expect(await answerTo("b", false)).toMatchObject({ no: "not-waiting" });
});

describe("what happens to an open call", () => {
  const call = (state: OpenCall["state"], more: Partial<OpenCall> = {}): OpenCall => ({
    ...{ id: "a", message: "m", name: "look", input: {}, state },
    ...more,
  });
  const outcome = { value: "seen" };
  const rows: [string, OpenCall, CallPolicy, ReturnType<typeof decideCall>][] = [
    ["never started, nobody runs calls", call("never-started"), {}, "tell-model"],
    ["never started", call("never-started"), { runs: true }, "run"],
    [
      "never started, must not run",
      call("never-started"),
      { runs: true, facts: { a: { mustNotRun: true } } },
      "tell-model",
    ],
    ["never started, waits for outside", call("never-started"), { runs: true, facts: { a: { waits: true } } }, "wait"],
    ["started", call("outcome-unknown", { replay: "never" }), { runs: true }, "tell-model"],
    ["started, safe", call("outcome-unknown", { replay: "safe" }), { runs: true }, "run-again"],
    ["started, safe, nobody runs calls", call("outcome-unknown", { replay: "safe" }), {}, "tell-model"],
    [
      "started, safe, changed since",
      call("outcome-unknown", { replay: "safe" }),
      { runs: true, facts: { a: { mustNotRun: true } } },
      "tell-model",
    ],
    [
      "started, safe, and safe today",
      call("outcome-unknown", { replay: "safe" }),
      { runs: true, tools: { look: { replay: "safe" } } },
      "run-again",
    ],
    [
      "started, safe, not safe today",
      call("outcome-unknown", { replay: "safe" }),
      { runs: true, tools: { look: { replay: "never" } } },
      "tell-model",
    ],
    [
      "started, not safe, safe today",
      call("outcome-unknown", { replay: "never" }),
      { runs: true, tools: { look: { replay: "safe" } } },
      "tell-model",
    ],
    ["started, safe, its tool is gone", call("outcome-unknown", { replay: "safe" }), { runs: true, tools: {} }, "wait"],
    ["started, not safe, its tool is gone", call("outcome-unknown"), { runs: true, tools: {} }, "tell-model"],
    ["never started, its tool is gone", call("never-started"), { runs: true, tools: {} }, "wait"],
    ["started, can be asked", call("outcome-unknown", { probe: true }), { runs: true }, "ask"],
    ["started, can be asked today", call("outcome-unknown"), { runs: true, tools: { look: { probe: true } } }, "ask"],
    [
      "started, can be asked, its tool is gone",
      call("outcome-unknown", { probe: true }),
      { runs: true, tools: {} },
      "wait",
    ],
    [
      "started, can be asked, its process still runs",
      call("outcome-unknown", { probe: true }),
      { runs: true, facts: { a: { process: { pid: 7, running: true } } } },
      "tell-model",
    ],
    [
      "started, can no longer be asked",
      call("outcome-unknown", { probe: true }),
      { runs: true, tools: { look: {} } },
      "tell-model",
    ],
    [
      "started, safe, not safe today, can be asked",
      call("outcome-unknown", { replay: "safe" }),
      { runs: true, tools: { look: { probe: true } } },
      "ask",
    ],
    ["started, never began", call("outcome-unknown"), { runs: true, facts: { a: { neverBegan: true } } }, "run"],
    ["started, has ended since", call("outcome-unknown"), { facts: { a: { outcome } } }, "settle"],
    ["no start recorded", call("unrecorded"), { runs: true }, "tell-model"],
    [
      "no start recorded, safe today",
      call("unrecorded"),
      { runs: true, tools: { look: { replay: "safe", probe: true } } },
      "tell-model",
    ],
    ["awaiting, nobody asks", call("awaiting"), { runs: true }, "tell-model"],
    ["awaiting", call("awaiting"), { asks: true }, "wait"],
    ["awaiting, denied", call("awaiting", { approved: false }), { asks: true }, "tell-model"],
    ["awaiting, waits for outside", call("awaiting"), { facts: { a: { waits: true } } }, "wait"],
    [
      "started, safe, more is known of it",
      call("outcome-unknown", { replay: "safe" }),
      { runs: true, facts: { a: { report: "It printed: x" } } },
      "tell-model",
    ],
    [
      "safe, with a rule and facts that are not there after all",
      call("outcome-unknown", { replay: "safe" }),
      { runs: true, tools: { look: undefined as never }, facts: { a: null as never } },
      "wait",
    ],
    ["by the provider", call("provider"), { runs: true, asks: true, facts: { a: { outcome } } }, "leave"],
    ["facts of another call", call("outcome-unknown"), { runs: true, facts: { b: { outcome } } }, "tell-model"],
  ];
  test.each(rows)("%s", (_, given, policy, decision) => {
    expect(decideCall(given, policy)).toBe(decision);
  });

  test("a policy for resumeTurn: what runs stays open, known outcomes are recorded, the model is told of the rest", async () => {
    using other = place();
    await using store = await openStore(other.path, { recordsToolStarts: true });
    let session = await store.create({ dialect: "anthropic" });
    const turn = await session.startTurn({ role: "user", content: "go" });
    const uses = ["a", "b", "c", "d"].map((id) => ({ type: "tool_use" as const, id, name: "look", input: {} }));
    await turn.append({ role: "assistant", content: uses });
    await turn.toolStarted("b");
    await turn.toolStarted("c");
    await turn.toolStarted("d");
    await session.close();
    session = await store.resume(session.id);
    const facts = { b: { outcome }, d: { report: "It printed: x" } };
    const resumed = await session.resumeTurn({ calls: { runs: true, facts } });
    expect(resumed.open.map(({ id }) => id)).toEqual(["a"]);
    await resumed.tool("a", () => "seen too");
    const told = JSON.stringify(session.messages.at(-1));
    expect(told).toContain('"seen"');
    expect(told).toContain("seen too");
    expect(told).toContain("Was running when the program was closed");
    expect(told).toContain("It printed: x");
    await session.close();
  });
});

describe("sessions of agents for editors", () => {
  const call = { sessionUpdate: "tool_call", toolCallId: "a", title: "look" };
  const request = { toolCall: { toolCallId: "a" }, options: [] };
  const end = { sessionUpdate: "tool_call_update", toolCallId: "a", status: "completed" };

  test("a recorder cannot promise to record starts: no call counts as never started", async () => {
    await using store = await openStore("memory:", { recordsToolStarts: true });
    const recorder = await store.record({ dialect: "acp" });
    await recorder.startTurn({ prompt: [{ type: "text", text: "go" }] });
    await recorder.append(call);
    expect(accountOf(await recorder.read()).calls).toMatchObject([{ id: "a", state: "unrecorded" }]);
    const policy = { facts: { a: { unapproved: true } } };
    const asked = { state: "awaiting", effect: "none", words: "waiting for approval, has not run" };
    expect(accountOf(await recorder.read(), { policy }).calls).toMatchObject([{ ...asked, onFinish: "tell-model" }]);
    await recorder.close();
    const again = await store.record(recorder.id, { dialect: "acp" });
    await again.startTurn({ prompt: [{ type: "text", text: "go on" }] });
    await again.append({ ...call, toolCallId: "b" });
    expect(accountOf(await again.read()).calls).toMatchObject([{ id: "b", state: "unrecorded" }]);
  });

  test("a call that is announced and then asked about is one call; after its end, an id can be used again", async () => {
    await using store = await openStore("memory:");
    const recorder = await store.record({ dialect: "acp" });
    await recorder.startTurn({ prompt: [{ type: "text", text: "go" }] });
    const idsAfter = async (...messages: (typeof call | typeof request | typeof end)[]) => {
      for (const message of messages) await recorder.append(message);
      return (await recorder.read()).calls.map(({ id }) => id);
    };
    expect(await idsAfter(call, request)).toEqual(["a"]);
    expect(await idsAfter(end)).toEqual([]);
    expect(await idsAfter(request)).toEqual(["a"]);
    expect(await idsAfter(end)).toEqual([]);
  });
});
