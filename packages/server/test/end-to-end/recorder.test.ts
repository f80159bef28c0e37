import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { validateAnthropic, validateOpenaiChat } from "@holdfast/testkit";
import { dialects, openStore } from "holdfast";
import { afterAll, expect, test } from "vitest";
import { FailingDisk } from "../../../adapters/test/failing-disk.ts";
import { LocalHost } from "../../../cli/src/host/local/local-host.ts";
import { serveHost } from "../../../cli/src/serve/served-host.ts";
import { config } from "../../../cli/test/unit/host/host-stage.ts";
import { rawLine } from "../../../holdfast/test/raw-session.ts";
import { startServer } from "../../src/index.ts";
import { recordingOperations } from "../../src/schemas/recordings.ts";
import { Agent, prober, send } from "../recorder-agent.ts";
import { ServerStage } from "../server-stage.ts";

const prompt = { role: "user", content: "count the stars" };
const call = (id: string, input: object = {}) => ({ type: "tool_use", id, name: "look", input });
const asks = (...ids: string[]) => ({ role: "assistant", content: ids.map((id) => call(id)) });

async function staged(limits: Parameters<typeof ServerStage.start>[0] = {}): Promise<ServerStage & { url: string }> {
  const stage = await ServerStage.start(limits);
  return Object.assign(stage, { url: stage.server.url });
}

test("a whole turn of an agent elsewhere: prompt, request, streamed text, parallel tools, answer", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage, { title: "stars", app: "py", cwd: "/work", labels: { team: "a" } });
  expect((await agent.state()).body).toMatchObject({ next: "start", turn: null, interruption: null, recorder: null });
  const started = await agent.makes({ type: "turn.start", prompt }, "p1");
  expect(started).toMatchObject({ key: "p1", ids: ["p1"] });
  const asked = (await agent.request()).body;
  expect(asked).toMatchObject({ turn: 1, dialect: "anthropic", messages: [prompt] });
  await agent.makes({ type: "draft", deltas: [{ text: "let me " }, { text: "look" }] });
  // Durable: another process sees it.
  {
    await using other = await openStore(stage.folder);
    const records = await Array.fromAsync(other.history(agent.session));
    expect(records.filter(({ kind }) => kind === "draft")).toHaveLength(1);
    expect((await other.read(agent.session)).holder).toMatchObject({ app: "py" });
  }
  await agent.makes(
    { type: "messages", messages: asks("c1", "c2"), model: "anthropic/x", usage: { inputTokens: 3 } },
    "a1",
  );
  expect(
    (await agent.state()).body.turn.calls.map(({ id, state }: { id: string; state: string }) => [id, state]),
  ).toEqual([
    ["c1", "never-started"],
    ["c2", "never-started"],
  ]);
  await agent.makes({ type: "tool.started", call: "c1" });
  await agent.makes({ type: "tool.started", call: "c2", replay: "safe" });
  await agent.makes({ type: "tool.ended", call: "c2", error: "no sky" });
  await agent.makes({ type: "tool.ended", call: "c1", value: { stars: 7 } });
  const next = (await agent.request("openai-chat")).body;
  expect(validateOpenaiChat({ messages: next.messages })).toEqual([]);
  expect(next.messages.map(({ role }: { role: string }) => role)).toEqual(["user", "assistant", "tool", "tool"]);
  const { messages } = (await agent.request()).body;
  expect(validateAnthropic({ messages })).toEqual([]);
  await agent.makes({ type: "usage", usage: { outputTokens: 5 } });
  await agent.makes({ type: "messages", messages: { role: "assistant", content: "seven" }, end: true });
  await agent.makes({ type: "note", name: "n", value: [1] });
  await agent.makes({ type: "title", title: "seven stars" });
  const state = (await agent.state(agent.recorder)).body;
  expect(state).toMatchObject({ next: "start", recorder: agent.recorder, usage: { inputTokens: 3, outputTokens: 5 } });
  expect((await agent.release()).status).toBe(204);
  expect((await agent.release()).status).toBe(204);
  const reading = await stage.host.sessions.read(agent.session);
  expect(reading).toMatchObject({ holder: null, interruption: null, attributes: { title: "seven stars", app: "py" } });
  expect(reading.attributes.notes).toMatchObject({ n: [1] });
  expect(await stage.client.call("getSession", { params: { id: agent.session } })).toMatchObject({
    title: "seven stars",
    count: 4,
  });
});

test("queue, steering, suspension, abort, failure and the end of an answered turn", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  expect(await agent.makes({ type: "queue.put", prompt: { role: "user", content: "one" } }, "q1")).toMatchObject({
    ids: ["q1"],
  });
  await agent.makes({ type: "queue.put", prompt: { role: "user", content: "two" } }, "q2");
  await agent.makes({ type: "queue.put", prompt: { role: "user", content: "three" } }, "q3");
  await agent.makes({ type: "queue.take", queued: "q3" });
  expect((await agent.state()).body.queue.map(({ id }: { id: string }) => id)).toEqual(["q1", "q2"]);
  expect(await agent.makes({ type: "turn.start", queued: "q1" })).toMatchObject({ ids: ["q1"] });
  expect(await agent.makes({ type: "messages", queued: "q2" })).toMatchObject({ ids: ["q2"] });
  expect((await agent.state()).body).toMatchObject({ next: "continue", queue: [] });
  await agent.request();
  await agent.makes({ type: "messages", messages: asks("c1") });
  await agent.makes({ type: "turn.suspend", reason: "permission", calls: ["c1"] });
  let state = (await agent.state()).body;
  expect(state).toMatchObject({
    next: "resume",
    interruption: { how: { kind: "suspended" }, calls: [{ state: "awaiting" }] },
  });
  await agent.makes({ type: "turn.resume", outcomes: { c1: { value: "done by hand" } } });
  expect(JSON.stringify((await agent.request()).body.messages)).toContain("done by hand");
  await agent.makes({ type: "draft", deltas: [{ text: "wrong" }] });
  await agent.makes({ type: "draft.discard", reason: "retry" });
  expect(await agent.refused({ type: "draft", deltas: [{ text: "lost?" }] })).toBe("DRAFT_DISCARDED");
  await agent.makes({ type: "turn.fail", error: "no network" });
  state = (await agent.state()).body;
  expect(state.interruption).toMatchObject({ how: { kind: "failed", error: "no network" }, draft: null });
  await agent.makes({ type: "turn.resume" });
  await agent.makes({ type: "messages", messages: { role: "assistant", content: "answered" } });
  // The agent is killed here. Its turn has the answer: only its end is missing.
  const taken = await agent.take(true);
  expect(taken.body).toMatchObject({ next: "end", interruption: { how: { kind: "aborted", by: "recorder" } } });
  agent.recorder = taken.body.recorder;
  await agent.makes({ type: "turn.end" });
  expect((await agent.state()).body).toMatchObject({ next: "start", interruption: null });
  expect(await agent.refused({ type: "turn.end" })).toBe("NOTHING_TO_RESUME");
});

test("a repeated key is recorded once, and answered in the same words; with different content it is refused", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  const steps: readonly (readonly [string, object])[] = [
    ["queue", { type: "queue.put", prompt }],
    ["start", { type: "turn.start", prompt: [{ role: "user", content: "a" }] }],
    ["messages", { type: "messages", messages: asks("c1") }],
    ["started", { type: "tool.started", call: "c1" }],
    ["step", { type: "step.started", call: "c1", step: "focus" }],
    ["step ends", { type: "step.ended", call: "c1", step: "focus", value: { z: 1, y: null } }],
    ["ended", { type: "tool.ended", call: "c1", value: { b: 1, a: [2, { d: 3, c: 4 }] } }],
    ["usage", { type: "usage", usage: { inputTokens: 10 } }],
    ["abort", { type: "turn.abort", by: "user", reason: "enough" }],
    ["resume", { type: "turn.resume" }],
    ["answer", { type: "messages", messages: [{ role: "assistant", content: "x" }], end: true }],
    ["note", { type: "note", name: "n", value: 1 }],
  ];
  const first = new Map<string, unknown>();
  for (const [key, record] of steps) {
    const made = await agent.post(record, key);
    expect(made.headers.get("idempotent-replayed")).toBe(null);
    first.set(key, await agent.makes(record, key));
    expect(first.get(key)).toEqual(made.body);
  }
  const records = await Array.fromAsync(stage.host.sessions.history(agent.session));
  const again = async (): Promise<void> => {
    for (const [key, record] of steps) {
      const repeated = await agent.post(record, key);
      expect(repeated.status, key).toBe(200);
      expect(repeated.body).toEqual(first.get(key));
      expect(repeated.headers.get("idempotent-replayed")).toBe("true");
      expect(await agent.refused({ type: "note", name: "other", value: key }, key)).toBe("KEY_TAKEN");
    }
  };
  await again();
  // The members of an object may come in another order.
  const shuffled = { value: { a: [2, { c: 4, d: 3 }], b: 1 }, call: "c1", type: "tool.ended" };
  expect(await agent.makes(shuffled, "ended")).toEqual(first.get("ended"));
  // A server that was restarted knows them, although it knows no recorder.
  await stage.stop();
  await stage.start();
  Object.assign(agent.server, { url: stage.server.url });
  await again();
  expect(await agent.refused({ type: "note", name: "n", value: 2 }, "new")).toBe("RECORDER_UNKNOWN");
  // So does another server, while this one holds the session.
  const { body } = await agent.take();
  agent.recorder = body.recorder;
  await using other = await openStore(stage.folder, { recordsToolStarts: true });
  const host = new LocalHost(other, config, "nobody");
  const second = await startServer({ host: serveHost(host), token: stage.token, version: "0", port: 0 });
  const elsewhere = new Agent({ url: second.url, token: stage.token }, {
    session: agent.session,
    recorder: "x",
  } as never);
  expect(await elsewhere.makes(steps[0]![1], "queue")).toEqual(first.get("queue"));
  expect(await elsewhere.refused({ type: "note", name: "n", value: 2 }, "new")).toBe("RECORDER_UNKNOWN");
  expect((await elsewhere.take(true)).body).toMatchObject({ code: "SESSION_BUSY" });
  await second.stop(0);
  await host.close();
  expect(await Array.fromAsync(stage.host.sessions.history(agent.session))).toHaveLength(records.length + 1);
  expect((await agent.state()).body.usage.inputTokens).toBe(10);
});

test("a start that is repeated is never answered with the key of another call", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  await agent.makes({ type: "turn.start", prompt });
  await agent.makes({ type: "messages", messages: asks("c1", "c2", "c3") }, "asks");
  const starts = ["c1", "c2", "c3"].map((id) => ({ type: "tool.started", call: id }));
  for (const start of starts) await agent.makes(start, start.call);
  await agent.makes({ type: "replace", reason: "compaction", items: [{ keep: "asks" }] });
  await stage.stop();
  const file = join(stage.folder, "sessions", agent.session, "000001.jsonl");
  const lines = readFileSync(file, "utf8").split("\n");
  const changed = lines.map((line) => {
    if (line.includes('"call":"c1"')) return line.replace("look", "l");
    if (!line.includes('"call":"c3"')) return line;
    // As a version without keys wrote it.
    const { seq, at, crc: _, idempotencyKey: __, ...rest } = JSON.parse(line);
    return rawLine(seq, JSON.stringify(rest).slice(1, -1), at);
  });
  writeFileSync(file, changed.join("\n"));
  await stage.start();
  Object.assign(agent.server, { url: stage.server.url });
  expect(await agent.refused(starts[0]!, "c1")).toBe("RECORDER_UNKNOWN");
  expect((await agent.makes(starts[1]!, "c2")).call.key).toEqual(expect.stringMatching(/^[0-9a-f-]{36}$/));
  expect(await agent.makes(starts[2]!, "c3")).not.toHaveProperty("call");
});

test("steps: a tool that runs again after a crash continues where it was, with the same keys", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  await agent.makes({ type: "turn.start", prompt });
  await agent.makes({ type: "messages", messages: asks("c1") });
  const start = { type: "tool.started", call: "c1", replay: "safe" };
  const began = (step: string, more: object = {}) => ({ type: "step.started", call: "c1", step, ...more });
  const ended = (step: string, more: object) => ({ type: "step.ended", call: "c1", step, ...more });
  const { call: first } = await agent.makes(start);
  const keyOf = (step: string): string => `${first.key}/${step}`;
  expect((await agent.makes(began("reserve"))).step).toEqual({ state: "run", key: keyOf("reserve") });
  expect(await agent.refused(began("reserve"))).toBe("STEP_TAKEN");
  expect(await agent.refused(ended("reserve", {}))).toBe("RECORD_INVALID");
  await agent.makes(ended("reserve", { value: { shelf: 7 } }));
  await agent.makes(began("weigh"));
  await agent.makes(ended("weigh", { error: "no scales" }));
  for (const step of ["charge", "ship", "mail"])
    await agent.makes(began(step, step === "mail" ? { replay: "safe" } : {}));

  // The agent and the server die. What could not be said over HTTP is in the journal.
  await stage.stop();
  await stage.start();
  Object.assign(agent.server, { url: stage.server.url });
  const taken = (await agent.take(true)).body;
  agent.recorder = taken.recorder;
  expect(taken.interruption.calls).toMatchObject([
    {
      id: "c1",
      key: first.key,
      steps: [
        { name: "reserve", state: "finished" },
        { name: "weigh", state: "failed" },
        { name: "charge", state: "unknown" },
        { name: "ship", state: "unknown" },
        { name: "mail", state: "unknown" },
      ],
    },
  ]);
  await agent.makes({ type: "turn.resume", calls: "rerun" });
  expect(await agent.refused(began("reserve"))).toBe("CALL_UNKNOWN");
  expect((await agent.makes(start, "again")).call).toEqual(first);
  expect((await agent.makes(start, "again")).call).toEqual(first);
  for (const key of ["r", "r"])
    expect((await agent.makes(began("reserve"), key)).step).toEqual({
      ...{ state: "finished", key: keyOf("reserve"), value: { shelf: 7 } },
    });
  expect((await agent.makes(began("weigh"))).step).toEqual({
    ...{ state: "failed", key: keyOf("weigh"), error: "no scales" },
  });
  for (const key of ["c", "c"])
    expect((await agent.makes(began("charge"), key)).step).toEqual({ state: "unknown", key: keyOf("charge") });
  await agent.makes(ended("charge", { value: "paid", source: "probe" }));
  expect((await agent.makes(began("ship"))).step).toMatchObject({ state: "unknown" });
  for (const key of ["s", "s"])
    expect((await agent.makes(began("ship", { didNotHappen: true }), key)).step).toEqual({
      ...{ state: "run", key: keyOf("ship") },
    });
  await agent.makes(ended("ship", { value: null }));
  expect((await agent.makes(began("mail", { replay: "safe" }))).step).toMatchObject({ state: "run" });
  await agent.makes(ended("mail", { value: null }));
  await agent.makes({ type: "tool.ended", call: "c1", value: "done" });
  const history = await Array.fromAsync(stage.host.sessions.history(agent.session));
  expect(history.filter(({ kind }) => kind === "step.started").map(({ step }) => step)).toEqual([
    ...["reserve", "weigh", "charge", "ship", "mail"],
    ...["ship", "mail"],
  ]);
  expect(history.find(({ kind, step }) => kind === "step.ended" && step === "charge")).toMatchObject({
    source: "probe",
  });
});

test("calls whose outcome is unknown are settled by the agent that comes back, before it resumes the turn", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  const settled = (call: string, more: object) => ({ type: "tool.settled", call, ...more });
  await agent.makes({ type: "turn.start", prompt });
  await agent.makes({ type: "messages", messages: asks("c1", "c2", "c3", "c4", "c5") });
  const keys = new Map<string, string>();
  for (const id of ["c1", "c2", "c3", "c4"])
    keys.set(id, (await agent.makes({ type: "tool.started", call: id, probe: true })).call.key);
  expect(await agent.refused(settled("c1", { value: 1 }))).toBe("TURN_OPEN");
  await stage.stop();
  await stage.start();
  Object.assign(agent.server, { url: stage.server.url });
  const taken = (await agent.take(true)).body;
  agent.recorder = taken.recorder;
  expect(taken.interruption.calls).toMatchObject([
    ...[...keys].map(([id, key]) => ({ id, key, probe: true, state: "outcome-unknown" })),
    { id: "c5", state: "never-started" },
  ]);

  const history = () => Array.fromAsync(stage.host.sessions.history(agent.session));
  const before = await history();
  const wrong: readonly (readonly [object, string])[] = [
    [settled("nope", { value: 1 }), "CALL_UNKNOWN"],
    [settled("c5", { didNotHappen: true }), "CALL_UNKNOWN"],
    [settled("c1", {}), "RECORD_INVALID"],
    [settled("c1", { value: 1, error: "x" }), "RECORD_INVALID"],
    [settled("c1", { value: 1, didNotHappen: true }), "RECORD_INVALID"],
    [settled("c1", { didNotHappen: false }), "REQUEST_INVALID"],
  ];
  for (const [record, code] of wrong) expect(await agent.refused(record), JSON.stringify(record)).toBe(code);
  expect(await history()).toEqual(before);

  const found = settled("c1", { value: { receipt: 7 } });
  const made = await agent.makes(found, "found");
  expect(await agent.refused(found)).toBe("CALL_UNKNOWN");
  await agent.makes(settled("c2", { error: "card declined" }));
  await agent.makes(settled("c3", { didNotHappen: true }));
  // The server dies again. What was found is there, and is not asked about twice.
  await stage.stop();
  await stage.start();
  Object.assign(agent.server, { url: stage.server.url });
  const repeated = await agent.post(found, "found");
  expect([repeated.body, repeated.headers.get("idempotent-replayed")]).toEqual([made, "true"]);
  expect(await agent.refused(settled("c1", { value: 8 }), "found")).toBe("KEY_TAKEN");
  const next = (await agent.take(true)).body;
  agent.recorder = next.recorder;
  expect(next.interruption.calls).toMatchObject([
    { id: "c3", state: "never-started" },
    { id: "c4", state: "outcome-unknown" },
    { id: "c5", state: "never-started" },
  ]);
  const source = "probe";
  expect((await stage.host.sessions.read(agent.session)).interruption?.settled).toEqual([
    { id: "c1", name: "look", source, unstarted: false },
    { id: "c2", name: "look", source, unstarted: false },
    { id: "c3", name: "look", source, unstarted: true },
  ]);
  await agent.makes({ type: "turn.resume", calls: "rerun" });
  expect((await agent.state()).body.turn.calls).toMatchObject([{ id: "c3" }, { id: "c5" }]);
  expect(await agent.refused({ type: "tool.started", call: "c4" })).toBe("CALL_TAKEN");
  expect((await agent.makes({ type: "tool.started", call: "c3" })).call.key).toBe(keys.get("c3"));
  await agent.makes({ type: "tool.ended", call: "c3", value: "paid now" });
  await agent.makes({ type: "tool.ended", call: "c5", value: "seen" });
  const { messages } = (await agent.request()).body;
  expect(validateAnthropic({ messages })).toEqual([]);
  const told = messages.at(-1).content.map(({ content }: { content: unknown }) => JSON.stringify(content));
  expect(told[0]).toMatch(/Settled by asking the service.*receipt.*7/);
  expect(told[1]).toMatch(/it failed.*card declined/);
  expect(told[2]).toMatch(/paid now/);
  expect(told[3]).toMatch(/may have taken effect/);
});

test("a call is not taken for one that did not happen while its recorder may still run it; one that is kept is not started again", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  await agent.makes({ type: "turn.start", prompt });
  await agent.makes({ type: "messages", messages: asks("c1", "c1", "__proto__") });
  for (const id of ["c1", "c1", "__proto__"]) await agent.makes({ type: "tool.started", call: id, probe: true });
  await agent.makes({ type: "turn.fail", error: "no network" });
  const unstarted = { type: "tool.settled", call: "c1", didNotHappen: true };
  expect(await agent.refused(unstarted, "k")).toBe("CALL_TAKEN");
  // An outcome is accepted, even though this recorder started the call. It goes to the first call with the id.
  await agent.makes({ type: "tool.settled", call: "c1", value: "first" });
  agent.recorder = (await agent.take(true)).body.recorder;
  await agent.makes(unstarted, "k");
  const { calls } = (await agent.state()).body.interruption;
  expect(calls).toMatchObject([
    { id: "c1", state: "never-started" },
    { id: "__proto__", state: "outcome-unknown" },
  ]);
  await agent.makes({ type: "turn.resume", calls: "rerun" });
  expect((await agent.state()).body.turn.calls).toMatchObject([{ id: "c1" }]);
  await agent.makes({ type: "tool.started", call: "c1", probe: true });
  agent.recorder = (await agent.take(true)).body.recorder;
  await agent.makes({ type: "turn.resume", calls: "rerun", keep: ["c1"] });
  expect(await agent.refused({ type: "tool.started", call: "c1" })).toBe("CALL_IN_DOUBT");
  await agent.makes({ type: "tool.ended", call: "c1", value: "second" });
});

test("compaction: the conversation is replaced once, however often it is repeated, and can be brought back", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage, { key: "compacted" });
  await agent.makes({ type: "turn.start", prompt }, "p1");
  await agent.makes({ type: "messages", messages: asks("c1") }, "a1");
  await agent.makes({ type: "tool.started", call: "c1" });
  await agent.makes({ type: "tool.ended", call: "c1", value: "seven" });
  await agent.makes({ type: "messages", messages: { role: "assistant", content: "seven" }, end: true }, "a2");
  await agent.makes({ type: "turn.start", prompt: { role: "user", content: "and the moons?" } }, "p2");
  const known = (await agent.messages()).body;
  expect(known).toMatchObject({
    count: 5,
    from: 0,
    messages: [{ id: "p1", turn: 1, message: prompt }, {}, {}, {}, {}],
  });
  expect((await agent.messages({ from: "3", limit: "1" })).body).toMatchObject({ from: 3, messages: [{ id: "a2" }] });
  const summary = { role: "user", content: "Summary: there are seven stars." };
  const replace = { type: "replace", reason: "compaction", items: [{ message: summary }, { keep: "p2" }] };
  // The same checks as in TypeScript: what is wrong changes nothing.
  const result: string = known.messages[2].id;
  expect(await agent.refused({ ...replace, items: [{ keep: "gone" }] })).toBe("MESSAGE_UNKNOWN");
  expect(await agent.refused({ ...replace, items: [{ keep: "p2" }, { keep: "p2" }] })).toBe("MESSAGE_ID_TAKEN");
  expect(await agent.refused({ ...replace, items: [{ keep: result }, { keep: "p2" }] })).toBe("STEP_SPLIT");
  expect(await agent.refused({ ...replace, items: [{ message: { role: "alien" } }] })).toBe("MESSAGE_UNFIT");
  for (const wrong of [
    { ...replace, reason: "tidy" },
    { ...replace, items: [{ keep: "p2", message: summary }] },
  ])
    expect(await agent.refused(wrong)).toBe("REQUEST_INVALID");
  expect((await agent.messages()).body.count).toBe(5);

  const made = await agent.makes(replace, "compact-1");
  const asked = (await agent.request()).body.messages;
  expect(validateAnthropic({ messages: asked })).toEqual([]);
  expect(asked).toEqual([
    { role: "user", content: [summary.content, "and the moons?"].map((text) => ({ type: "text", text })) },
  ]);
  expect(await agent.makes(replace, "compact-1")).toEqual(made);
  expect(await agent.refused({ ...replace, reason: "clear" }, "compact-1")).toBe("KEY_TAKEN");
  // The turn goes on in the new conversation, and the key is known after a restart, and from before the epoch too.
  await agent.makes({ type: "messages", messages: { role: "assistant", content: "two" }, end: true }, "a3");
  await stage.stop();
  await stage.start();
  const again = new Agent({ url: stage.server.url, token: stage.token }, agent as never);
  expect(await again.makes(replace, "compact-1")).toEqual(made);
  expect((await again.post({ type: "turn.start", prompt }, "p1")).headers.get("idempotent-replayed")).toBe("true");
  const history = await Array.fromAsync(stage.host.sessions.history(agent.session));
  expect(history.filter(({ kind }) => kind === "epoch")).toHaveLength(1);
  again.recorder = (await again.take()).body.recorder;
  await again.makes({ type: "undo" }, "undo-1");
  await again.makes({ type: "undo" }, "undo-1");
  expect((await again.messages()).body.messages.map(({ id }: { id: string }) => id)).toEqual([
    ...["p1", "a1", result, "a2", "p2", "a3"],
  ]);
  expect(await again.refused({ type: "undo" }, "undo-2")).toBe("UNDO_TOO_LATE");
});

test("after a takeover, calls whose tools the other recorder had started do not keep a compaction from happening", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  await agent.makes({ type: "turn.start", prompt }, "p1");
  await agent.makes({ type: "messages", messages: asks("c1", "c2") });
  await agent.makes({ type: "tool.started", call: "c1" });
  const replace = { type: "replace", reason: "compaction", items: [{ message: prompt }] };
  expect(await agent.refused(replace)).toBe("CALLS_OPEN");
  agent.recorder = (await agent.take(true)).body.recorder;
  await agent.makes({ type: "turn.resume", calls: "rerun" });
  await agent.makes({ type: "tool.started", call: "c2" });
  await agent.makes({ type: "tool.ended", call: "c2", value: "seven" });
  await agent.makes({ type: "messages", messages: { role: "assistant", content: "let me see" } });
  await agent.makes(replace);
  const { messages } = (await agent.request()).body;
  expect(validateAnthropic({ messages })).toEqual([]);
});

test("edits, metadata, the process of a tool, and a request that is sent again", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  await agent.makes({ type: "turn.start", prompt, metadata: { from: "slack" } }, "p1");
  await agent.makes({ type: "patch", message: "p1", metadata: { from: null, seen: true } }, "patch");
  expect(await agent.refused({ type: "patch", message: "gone", metadata: {} })).toBe("MESSAGE_UNKNOWN");
  await agent.request();
  await agent.makes({ type: "draft", deltas: [{ text: "a broken str" }] });
  // What was said meanwhile comes after the answer, also after the restart.
  await agent.makes({ type: "messages", messages: { role: "user", content: "hurry" } }, "steer");
  await agent.makes({ type: "draft.restart" }, "restart");
  await agent.makes({ type: "draft.restart" }, "restart");
  await agent.makes({ type: "draft", deltas: [{ text: "let me look" }] });
  await agent.makes({ type: "messages", messages: asks("c1") }, "a1");
  expect(await agent.refused({ type: "draft.restart" })).toBe("DRAFT_DISCARDED");
  await agent.makes({ type: "tool.started", call: "c1" });
  const process = { type: "tool.process", call: "c1", pid: 4711, started: "12:00", group: true };
  await agent.makes(process, "process");
  expect(await agent.refused({ ...process, call: "c9" })).toBe("CALL_UNKNOWN");
  await agent.makes({ type: "tool.ended", call: "c1", value: "seven" });
  await agent.makes({
    type: "edit",
    ids: ["p1"],
    shown: [{ role: "user", content: "count" }],
    reason: "shorter",
    now: true,
  });
  const { body } = await agent.messages();
  const edited = body.messages.find(({ id }: { id: string }) => id === "p1");
  expect(edited).toMatchObject({ metadata: { seen: true }, replacedBy: expect.any(String) });
  const { messages } = (await agent.request()).body;
  expect(validateAnthropic({ messages })).toEqual([]);
  expect(messages[0].content).toBe("count");
  expect(JSON.stringify(messages).indexOf("hurry")).toBeGreaterThan(JSON.stringify(messages).indexOf("tool_use"));
  const history = await Array.fromAsync(stage.host.sessions.history(agent.session));
  expect(history.filter(({ kind }) => kind === "tool.process")).toMatchObject([{ pid: 4711, group: true }]);
});

test("approval: calls wait for a person across a restart; one is approved and runs, the other is denied", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  await agent.makes({ type: "turn.start", prompt });
  await agent.makes({ type: "messages", messages: asks("c1", "c2") });
  await agent.makes({ type: "turn.suspend", reason: "permission", calls: ["c1", "c2"] });
  await stage.stop();
  await stage.start();
  const again = new Agent({ url: stage.server.url, token: stage.token }, agent as never);
  const taken = (await again.take()).body;
  expect(taken.interruption.calls).toMatchObject([{ state: "awaiting" }, { state: "awaiting" }]);
  again.recorder = taken.recorder;
  await again.makes({ type: "turn.resume", keep: ["c1"], outcomes: { c2: { error: "The person said no." } } });
  expect((await again.state()).body.turn.calls).toMatchObject([{ id: "c1" }]);
  await again.makes({ type: "tool.started", call: "c1" });
  await again.makes({ type: "tool.ended", call: "c1", value: "seven" });
  const { messages } = (await again.request()).body;
  expect(validateAnthropic({ messages })).toEqual([]);
  expect(JSON.stringify(messages)).toContain("The person said no.");
});

test("state comes with prompts, messages and outcomes, and goes when they are taken back", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  const stateOf = async () => (await agent.state()).body.appState;
  expect(await stateOf()).toEqual({});
  await agent.makes({ type: "turn.start", prompt, appState: { "plan.v1": { open: 2 }, gone: 1 } }, "p");
  await agent.makes({ type: "messages", messages: asks("c1"), appState: { gone: null } });
  expect(await stateOf()).toEqual({ "plan.v1": { open: 2 } });
  await agent.makes({ type: "tool.started", call: "c1" });
  await agent.makes({ type: "tool.ended", call: "c1", value: 7, appState: { "plan.v1": { open: 1 } } });
  const last = { role: "assistant", content: "seven" };
  await agent.makes({ type: "messages", messages: last, end: true, appState: { "plan.v1": { open: 0 } } });
  expect(await stateOf()).toEqual({ "plan.v1": { open: 0 } });
  await agent.makes({ type: "replace", reason: "rewind", items: [{ keep: "p" }] });
  expect(await stateOf()).toEqual({ "plan.v1": { open: 2 }, gone: 1 });
  await agent.makes({ type: "undo" });
  expect(await stateOf()).toEqual({ "plan.v1": { open: 0 } });
  expect(await agent.refused({ type: "turn.start", prompt, appState: ["x"] })).toBe("REQUEST_INVALID");
});

test("an image in a message comes back as it was sent", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  const data = Buffer.from(Array.from({ length: 3000 }, (_, at) => at % 256)).toString("base64");
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data } };
  const asked = { role: "user", content: [{ type: "text", text: "what is this?" }, image] };
  await agent.makes({ type: "turn.start", prompt: asked });
  expect((await agent.request()).body.messages).toEqual([asked]);
});

test("twenty records with one key at once are one record", async () => {
  await using stage = await staged();
  const agent = await Agent.create(stage);
  await agent.makes({ type: "turn.start", prompt });
  const all = await Promise.all(
    Array.from({ length: 20 }, () => agent.makes({ type: "usage", usage: { inputTokens: 1 } }, "same")),
  );
  expect(new Set(all.map(({ seq }) => seq)).size).toBe(1);
  expect((await agent.state()).body.usage.inputTokens).toBe(1);
});

test("creating with a key leads to the same session, also after a restart", async () => {
  await using stage = await staged();
  const first = await Agent.create(stage, { key: "run 1", title: "t" });
  const second = await Agent.create(stage, { key: "run 1", title: "t" });
  expect(second.session).toBe(first.session);
  expect(await first.refused({ type: "note", name: "n", value: 1 })).toBe("RECORDER_UNKNOWN");
  await second.makes({ type: "note", name: "n", value: 1 });
  await stage.stop();
  await stage.start();
  const server = { url: stage.server.url, token: stage.token };
  expect((await Agent.create(server, { key: "run 1", title: "t" })).session).toBe(first.session);
  const taken = await send(server, "createRecording", { body: { dialect: "anthropic", key: "run 1", title: "u" } });
  expect(taken.body).toMatchObject({ status: 409, code: "KEY_TAKEN" });
  const several = await Promise.all(Array.from({ length: 5 }, () => Agent.create(server, { key: "run 2" })));
  expect(new Set(several.map(({ session }) => session)).size).toBe(1);
});

test("two recorders: the second is refused unless it takes the session; then the first is", async () => {
  await using stage = await staged();
  const first = await Agent.create(stage);
  await first.makes({ type: "turn.start", prompt });
  await first.makes({ type: "messages", messages: asks("c1", "c2") });
  await first.makes({ type: "tool.started", call: "c1" });
  await first.request();
  expect((await first.take()).body).toMatchObject({ status: 409, code: "RECORDER_BUSY" });
  // The agent was killed and started again.
  const { body } = await first.take(true);
  expect(body).toMatchObject({ next: "resume", turn: null });
  expect(body.interruption.calls.map(({ id, state }: { id: string; state: string }) => [id, state])).toEqual([
    ["c1", "outcome-unknown"],
    ["c2", "never-started"],
  ]);
  const second = new Agent(stage, body);
  expect(await first.refused({ type: "tool.ended", call: "c1", value: "late" })).toBe("RECORDER_UNKNOWN");
  expect((await first.request()).body.code).toBe("RECORDER_UNKNOWN");
  expect((await first.release()).body.code).toBe("RECORDER_UNKNOWN");
  expect((await first.state(first.recorder)).body).toMatchObject({ status: 409, code: "RECORDER_UNKNOWN" });
  await second.makes({ type: "turn.resume", calls: "rerun" });
  expect((await second.state()).body.turn.calls.map(({ id }: { id: string }) => id)).toEqual(["c2"]);
  await second.makes({ type: "tool.started", call: "c2" });
  await second.makes({ type: "tool.ended", call: "c2", value: 1 });
  const { messages } = (await second.request()).body;
  expect(validateAnthropic({ messages })).toEqual([]);
  await second.makes({ type: "turn.abort", by: "user" });
});

test("a silent recorder loses the session after the stated time, and its turn is interrupted", async () => {
  let now = 0;
  await using store = await openStore("memory:", { recordsToolStarts: true });
  const { HttpRecordings } = await import("../../src/recordings/http-recordings.ts");
  const recorder = new HttpRecordings(store, { idleMs: 60_000, now: () => now, messagesIn: async () => [] });
  const { session, recorder: own, idleSeconds } = await recorder.create({ dialect: "anthropic" });
  expect(idleSeconds).toBe(60);
  await recorder.record(session, own!, "p", { type: "turn.start", prompt });
  now = 59_999;
  await recorder.releaseIdle();
  expect(store.live(session)).not.toBe(null);
  // A question about its own recording is a sign of life; one by somebody else is not.
  await recorder.state(session, own!);
  now = 100_000;
  await recorder.state(session);
  await recorder.releaseIdle();
  expect(store.live(session)).not.toBe(null);
  now = 119_999;
  await recorder.releaseIdle();
  expect(store.live(session)).toBe(null);
  const { interruption } = await store.read(session);
  expect(interruption).toMatchObject({ how: { kind: "aborted", by: "recorder", reason: "it was silent for 60 s" } });
  await expect(recorder.record(session, own!, "k", { type: "turn.end" })).rejects.toMatchObject({
    code: "RECORDER_UNKNOWN",
  });
  await expect(recorder.state(session, own!)).rejects.toMatchObject({ code: "RECORDER_UNKNOWN" });
  expect((await recorder.take(session, false)).next).toBe("resume");
  await recorder.stop(0);
});

test("a server that stops takes what is under way, starts nothing, and hands turns over to the next one", async () => {
  await using stage = await staged();
  const ends = await Agent.create(stage);
  const rests = await Agent.create(stage);
  const runs = await Agent.create(stage);
  for (const one of [ends, rests, runs]) await one.makes({ type: "turn.start", prompt });
  await ends.request();
  await runs.makes({ type: "messages", messages: asks("c", "d") });
  await runs.makes({ type: "tool.started", call: "c" });
  const { port } = stage.server;
  const stopping = stage.server.stop(60_000);
  expect(await runs.refused({ type: "tool.started", call: "d" })).toBe("TURN_HANDED_OVER");
  expect(
    await Promise.all([
      ends.refused({ type: "turn.resume" }),
      send(stage, "createRecording", { body: { dialect: "acp" } }),
    ]),
  ).toMatchObject(["SERVER_STOPPING", { status: 503, body: { code: "SERVER_STOPPING" } }]);
  expect((await ends.take()).body.code).toBe("SERVER_STOPPING");
  await ends.makes({ type: "messages", messages: { role: "assistant", content: "done" }, end: true });
  await runs.makes({ type: "tool.ended", call: "c", value: "seen" });
  await stopping;
  expect((await stage.host.sessions.read(ends.session)).interruption).toBe(null);
  for (const { session } of [rests, runs])
    expect((await stage.host.sessions.read(session)).interruption).toMatchObject({ how: { kind: "handed-over" } });
  // The agents come back, and nobody is told of an interruption.
  await stage.stop();
  await stage.start({ port });
  for (const one of [rests, runs]) {
    expect(await one.refused({ type: "tool.started", call: "d" })).toBe("RECORDER_UNKNOWN");
    const { next, recorder } = (await one.take()).body;
    expect(next).toBe("resume");
    one.recorder = recorder;
    await one.makes({ type: "turn.resume", calls: "rerun" });
  }
  await runs.makes({ type: "tool.started", call: "d" });
  await runs.makes({ type: "tool.ended", call: "d", value: "seen" });
  for (const one of [rests, runs]) {
    await one.request();
    await one.makes({ type: "messages", messages: { role: "assistant", content: "done" }, end: true });
    const { entries, interruption } = await stage.host.sessions.read(one.session);
    expect(interruption).toBe(null);
    expect(entries.filter(({ synthetic }) => synthetic !== undefined)).toEqual([]);
  }
});

test("what cannot be recorded is refused with a code, and changes nothing", async () => {
  await using stage = await staged({ limits: { bodyBytes: 100_000 } });
  const agent = await Agent.create(stage);
  const none = "11111111-1111-1111-1111-111111111111";
  const before: readonly [object, string][] = [
    [{ type: "messages", messages: asks("c") }, "TURN_ENDED"],
    [{ type: "tool.started", call: "c" }, "TURN_ENDED"],
    [{ type: "tool.ended", call: "c", value: 1 }, "TURN_ENDED"],
    [{ type: "draft", deltas: [{ text: "x" }] }, "DRAFT_DISCARDED"],
    [{ type: "turn.resume" }, "NOTHING_TO_RESUME"],
    [{ type: "turn.end" }, "NOTHING_TO_RESUME"],
    [{ type: "turn.start" }, "RECORD_INVALID"],
    [{ type: "turn.start", prompt, queued: "q" }, "RECORD_INVALID"],
    [{ type: "turn.start", queued: "q" }, "QUEUE_UNKNOWN"],
    [{ type: "turn.start", prompt: asks("c") }, "MESSAGE_UNFIT"],
    [{ type: "queue.take", queued: "q" }, "QUEUE_UNKNOWN"],
    [{ type: "note", name: "n" }, "REQUEST_INVALID"],
    [{ type: "turn.begin" }, "REQUEST_INVALID"],
    [{ type: "turn.end", when: "now" }, "REQUEST_INVALID"],
  ];
  for (const [record, code] of before) expect(await agent.refused(record), JSON.stringify(record)).toBe(code);
  await agent.makes({ type: "turn.start", prompt }, "p");
  await agent.makes({ type: "messages", messages: asks("c1") }, "a");
  const after: readonly [object, string][] = [
    [{ type: "turn.start", prompt }, "TURN_OPEN"],
    [{ type: "turn.resume" }, "TURN_OPEN"],
    [{ type: "tool.started", call: "nope" }, "CALL_UNKNOWN"],
    [{ type: "tool.ended", call: "c1" }, "RECORD_INVALID"],
    [{ type: "tool.ended", call: "c1", value: 1, error: "x" }, "RECORD_INVALID"],
    [{ type: "tool.ended", call: "c1", value: 1, shown: { role: "user", content: "no result" } }, "MESSAGE_UNFIT"],
    [{ type: "messages", messages: { role: "alien" } }, "MESSAGE_UNFIT"],
  ];
  const head = (await Array.fromAsync(stage.host.sessions.history(agent.session))).length;
  for (const [record, code] of after) expect(await agent.refused(record), JSON.stringify(record)).toBe(code);
  expect(await Array.fromAsync(stage.host.sessions.history(agent.session))).toHaveLength(head);
  await agent.makes({ type: "tool.started", call: "c1" });
  expect(await agent.refused({ type: "tool.started", call: "c1" })).toBe("CALL_TAKEN");
  expect((await agent.post({ type: "note", name: "n", value: "x".repeat(200_000) })).status).toBe(413);

  const gone = new Agent(stage, { session: none, recorder: "x" } as never);
  expect((await gone.take()).status).toBe(404);
  expect((await gone.state()).status).toBe(404);
  expect((await gone.messages()).status).toBe(404);
  expect((await gone.post({ type: "turn.end" })).status).toBe(404);
  expect((await gone.request()).status).toBe(409);
  expect((await gone.release()).status).toBe(204);
  const wrong = await send(stage, "createRecording", { body: { dialect: "anthropic", title: "t", cwd: "bad\0path" } });
  expect(wrong.body).toMatchObject({ status: 422, code: "ATTRIBUTE_INVALID" });
  // Of another program, in a format of its own.
  {
    await using other = await openStore(stage.folder);
    await using foreign = await other.create({ dialect: { ...dialects.anthropic, name: "mine" } });
    const theirs = new Agent(stage, { session: foreign.id, recorder: "x" } as never);
    expect((await theirs.state()).body.code).toBe("DIALECT_UNKNOWN");
    expect((await theirs.messages()).body.code).toBe("DIALECT_UNKNOWN");
    await foreign.close();
    expect((await theirs.take()).body).toMatchObject({ status: 422, code: "DIALECT_UNKNOWN" });
  }
  // The agent of this server has it open.
  const hosted = await stage.session();
  expect((await new Agent(stage, { session: hosted, recorder: "x" } as never).take()).body.code).toBe("SESSION_BUSY");
});

test("a read-only token, no token, a foreign page and bodies that are not JSON", async () => {
  await using stage = await staged({ limits: { bodyBytes: 4096 } });
  const agent = await Agent.create(stage);
  const { token } = await stage.client.call("createShare", { params: { id: agent.session }, body: {} });
  for (const id of Object.keys(recordingOperations) as (keyof typeof recordingOperations)[]) {
    const input = { session: agent.session, query: id === "releaseRecording" ? { recorder: "x" } : {} };
    const of = (headers: Record<string, string>, raw?: string) =>
      send(stage, id, { ...input, headers, ...(raw ? { raw } : {}) });
    expect((await of({ authorization: `Bearer ${token}` })).body.code).toBe("TOKEN_READ_ONLY");
    expect((await of({ authorization: "Bearer wrong" })).status).toBe(401);
    expect((await of({ origin: "https://evil.example" })).status).toBe(403);
    await prober.check(id, await withHost(stage.url, id, agent.session));
    if (!("body" in recordingOperations[id])) {
      const query = { ...input.query, more: "x" };
      expect((await send(stage, id, { ...input, query })).status).toBe(400);
      continue;
    }
    expect((await of({}, "{")).status).toBe(400);
    expect((await of({ "content-type": "text/plain" }, "{}")).status).toBe(415);
    expect((await of({}, `"${"x".repeat(5000)}"`)).status).toBe(413);
  }
});

test("the disk is full or fails: the record is refused, the agent is told, and goes on later with the same key", async () => {
  const stage = new ServerStage();
  const disk = new FailingDisk();
  const host = new LocalHost(await disk.open(stage.folder), config, "nobody");
  const server = await startServer({ host: serveHost(host), token: stage.token, version: "0", port: 0 });
  try {
    const at = { url: server.url, token: stage.token };
    const agent = await Agent.create(at);
    await agent.makes({ type: "turn.start", prompt }, "p");
    const codes = new Set<string>();
    // As any agent would: it becomes the recorder again if it has to, and repeats the record until it is there.
    const insist = async (record: object, key: string): Promise<void> => {
      for (let tries = 0; tries < 5; tries++) {
        const { status, body } = await agent.post(record, key);
        disk.countdown = 0;
        if (status === 200) return;
        codes.add(body.code);
        if (body.code !== "RECORDER_UNKNOWN") continue;
        const taken = (await agent.take()).body;
        agent.recorder = taken.recorder;
        if (taken.next === "resume") await agent.makes({ type: "turn.resume" });
      }
      throw new Error(`not recorded: ${[...codes].join(", ")}`);
    };
    for (let n = 1; n <= 12; n++) {
      disk.countdown = n % 4;
      await insist({ type: "note", name: `n${n}`, value: n }, `note ${n}`);
    }
    expect([...codes].sort()).toEqual(["RECORDER_UNKNOWN", "STORE_FULL", "SYNC_FAILED"]);
    // In doubt: it can be read, but is not acknowledged before the disk confirms it.
    disk.countdown = 2;
    expect((await agent.post({ type: "note", name: "doubt", value: 1 }, "doubt")).body.code).toBe("SYNC_FAILED");
    expect((await host.sessions.read(agent.session)).attributes.notes).toMatchObject({ doubt: 1 });
    disk.countdown = 1;
    expect((await agent.post({ type: "note", name: "doubt", value: 1 }, "doubt")).status).toBeGreaterThan(500);
    disk.countdown = 0;
    expect(
      (await agent.post({ type: "note", name: "doubt", value: 1 }, "doubt")).headers.get("idempotent-replayed"),
    ).toBe("true");
    for (const [countdown, status] of [
      [1, 507],
      [2, 503],
    ] as const) {
      const other = await Agent.create(at);
      await other.makes({ type: "turn.start", prompt });
      disk.countdown = countdown;
      expect((await other.release()).status).toBe(status);
      disk.countdown = 0;
      // Released all the same.
      expect((await other.take()).body.next).toBe("resume");
    }
    const full = await Agent.create(at);
    await full.makes({ type: "turn.start", prompt });
    disk.countdown = 1;
    expect((await full.take(true)).status).toBe(507);
    disk.countdown = 1;
    expect((await send(at, "createRecording", { body: { dialect: "anthropic" } })).status).toBe(507);
    const { notes } = (await host.sessions.read(agent.session)).attributes;
    for (let n = 1; n <= 12; n++) expect(notes[`n${n}`]).toBe(n);
    const records = await Array.fromAsync(host.sessions.history(agent.session));
    expect(records.filter(({ kind, name }) => kind === "note" && name === "n1")).toHaveLength(1);
  } finally {
    disk.countdown = 0;
    await server.stop(0);
    await host.close();
    await stage[Symbol.asyncDispose]();
  }
});

/** `fetch` does not send another Host header. */
async function withHost(url: string, id: keyof typeof recordingOperations, session: string): Promise<Response> {
  const { method, path } = recordingOperations[id];
  const sent = request(`${url}${path.replace(":id", session)}`, { method, headers: { host: "evil.example" } }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  const headers = { "content-type": answer.headers["content-type"]! };
  expect(answer.statusCode).toBe(421);
  return new Response(await text(answer), { status: answer.statusCode!, headers });
}

afterAll(() => {
  expect(prober.compare(({ tag }) => tag === "recorder")).toEqual({ missing: [], undocumented: [] });
});
