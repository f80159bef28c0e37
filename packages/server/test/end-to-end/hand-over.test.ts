import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { validateAiSdk } from "@holdfast/testkit";
import type { ModelMessage } from "ai";
import { openStore, type Reading } from "holdfast";
import { expect, test } from "vitest";
import { RemoteHost } from "../../src/client/index.ts";
import { finishInterrupted } from "../../src/hosting/finish-interrupted.ts";
import { PATIENT, ServerStage } from "../server-stage.ts";

/** A server that is stopped, and started again: its turns go on. */

const LONG_MS = 60_000;

async function idle(stage: ServerStage, id: string): Promise<Reading<ModelMessage>> {
  const session = () => stage.client.call("getSession", { params: { id } });
  await expect.poll(async () => (await session()).status, PATIENT).toBe("idle");
  await stage.stop();
  await using store = await openStore(stage.folder);
  return store.read<ModelMessage>(id);
}

const linesOf = (stage: ServerStage, name: string): string[] => {
  const path = join(stage.work, name);
  return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
};

/** Nobody was told of an interruption: all that is in the conversation was said by the model, its tools or the user. */
function expectUndisturbed({ entries, messages, interruption }: Reading<ModelMessage>): void {
  expect(entries.filter(({ synthetic }) => synthetic !== undefined)).toEqual([]);
  expect(interruption).toBe(null);
  expect(validateAiSdk([...messages, { role: "user", content: "And now?" }])).toEqual([]);
}

test("running turns are handed over: the next start continues them by itself, and then the queue", async () => {
  await using stage = await ServerStage.start({ config: { offlineDelayMs: 5 } });
  const id = await stage.session();
  const params = { id };
  await stage.client.call("startTurn", { params, body: { text: "tell me a story of 400 lines" } });
  await stage.client.call("startTurn", { params, body: { text: "think about rivers" } });
  // No time: the answer is cut off, and asked for again.
  await stage.stop(0);
  await stage.start();
  const items = async () => (await stage.client.call("getTranscript", { params })).items;
  // Between its two turns it is idle, too.
  await expect.poll(async () => JSON.stringify(await items()), PATIENT).toContain("I thought about rivers");
  const reading = await idle(stage, id);
  expectUndisturbed(reading);
  expect(reading.queue).toEqual([]);
  const said = reading.messages.filter(({ role }) => role === "assistant");
  expect(said).toHaveLength(2);
  expect(JSON.stringify(said[1])).toContain("I thought about rivers");
});

test("a tool that runs comes to its end first, and the next one is the next server's", async () => {
  await using stage = await ServerStage.start({ config: { allow: ["shell"] } });
  const id = await stage.session();
  const text =
    "1. run echo begun >> log; until test -e go; do sleep 0.05; done; echo one >> log 2. run echo two >> log";
  await stage.client.call("startTurn", { params: { id }, body: { text } });
  await expect.poll(() => linesOf(stage, "log"), PATIENT).toEqual(["begun"]);
  const stopped = stage.stop(LONG_MS);
  writeFileSync(join(stage.work, "go"), "");
  await stopped;
  expect(linesOf(stage, "log")).toEqual(["begun", "one"]);
  {
    await using store = await openStore(stage.folder);
    expect(await store.read(id)).toMatchObject({ state: "paused", interruption: { how: { kind: "handed-over" } } });
  }
  await stage.start({ config: { allow: ["shell"] } });
  expectUndisturbed(await idle(stage, id));
  expect(linesOf(stage, "log")).toEqual(["begun", "one", "two"]);
});

test("a tool that does not end in time is ended: the model is told what became of it, and the turn goes on", async () => {
  await using stage = await ServerStage.start({ config: { allow: ["shell"] } });
  const id = await stage.session();
  const text = "1. run echo begun >> log; sleep 1000; echo one >> log 2. run echo two >> log";
  await stage.client.call("startTurn", { params: { id }, body: { text } });
  await expect.poll(() => linesOf(stage, "log"), PATIENT).toEqual(["begun"]);
  await stage.stop(50);
  await stage.start({ config: { allow: ["shell"] } });
  const reading = await idle(stage, id);
  expectUndisturbed(reading);
  const results = reading.messages.flatMap(({ role, content }) => (role === "tool" ? content : []));
  expect(JSON.stringify(results[0])).toMatch(/stopped|ended|killed|signal/i);
  expect(linesOf(stage, "log")).not.toContain("one");
});

test("in a hurry, the turn is aborted instead, and waits for a person", async () => {
  await using stage = await ServerStage.start({ config: { allow: ["shell"] } });
  const id = await stage.session();
  await stage.client.call("startTurn", { params: { id }, body: { text: "run echo begun >> log; sleep 1000" } });
  await expect.poll(() => linesOf(stage, "log"), PATIENT).toEqual(["begun"]);
  const hurry = new AbortController();
  const stopped = stage.server.stop(LONG_MS, hurry.signal);
  hurry.abort();
  await stopped;
  await stage.stop();
  await stage.start({ config: { allow: ["shell"] } });
  expect(await finishInterrupted(stage.server.hosting)).toEqual([]);
  expect(await stage.client.call("getSession", { params: { id } })).toMatchObject({
    status: "interrupted",
    interruption: { how: { kind: "aborted", by: "server" } },
  });
});

test("sub-agents are handed over with their parent, and go on with it", async () => {
  await using stage = await ServerStage.start({ config: { allow: ["shell"] } });
  const id = await stage.session();
  const text =
    "delegate: \n- run echo begun >> log; until test -e go; do sleep 0.05; done; echo one >> log\n- run echo two >> log";
  await stage.client.call("startTurn", { params: { id }, body: { text } });
  await expect.poll(() => linesOf(stage, "log"), PATIENT).toContain("begun");
  const stopped = stage.stop(LONG_MS);
  writeFileSync(join(stage.work, "go"), "");
  await stopped;
  const before = linesOf(stage, "log");
  {
    await using store = await openStore(stage.folder);
    expect((await store.read(id)).state).toBe("paused");
  }
  await stage.start({ config: { allow: ["shell"] } });
  expectUndisturbed(await idle(stage, id));
  expect(linesOf(stage, "log").toSorted()).toEqual(["begun", "one", "two"]);
  expect(linesOf(stage, "log").slice(0, before.length)).toEqual(before);
  await using store = await openStore(stage.folder);
  for (const { id: child } of (await store.list({ parent: id })).sessions)
    expectUndisturbed(await store.read<ModelMessage>(child));
});

test("a session from elsewhere that says it was handed over starts no turn", async () => {
  await using stage = new ServerStage();
  let id: string;
  {
    await using store = await openStore(stage.folder, { app: "holdfast", recordsToolStarts: true });
    const session = await store.create({ dialect: "ai-sdk", app: "holdfast", cwd: stage.work });
    ({ id } = session);
    await session.startTurn({ role: "user", content: "hello" });
    await session.close({ handOver: true });
  }
  await stage.start();
  const other = await stage.session();
  await stage.client.call("startTurn", { params: { id: other }, body: { text: "hello" } });
  await expect
    .poll(async () => (await stage.client.call("getSession", { params: { id: other } })).status, PATIENT)
    .toBe("idle");
  expect(await stage.client.call("getSession", { params: { id } })).toMatchObject({ status: "paused", here: false });
});

test("a client that was connected connects again, and sees each record once and the turn running", async () => {
  await using stage = await ServerStage.start({ config: { allow: ["shell"] } });
  const id = await stage.session();
  const { port } = new URL(stage.server.url);
  const text = "1. run until test -e go; do sleep 0.05; done 2. run until test -e on; do sleep 0.05; done";
  const chat = await (await RemoteHost.connect(stage.client)).open(id);
  await stage.client.call("startTurn", { params: { id }, body: { text } });
  await expect.poll(() => chat.state.items.some(({ kind }) => kind === "call"), PATIENT).toBe(true);
  const stopped = stage.stop(LONG_MS);
  writeFileSync(join(stage.work, "go"), "");
  await stopped;
  await stage.start({ config: { allow: ["shell"] }, port: Number(port) });
  await expect
    .poll(() => [chat.state.status, chat.state.items.filter(({ kind }) => kind === "call").length], PATIENT)
    .toEqual(["running", 2]);
  writeFileSync(join(stage.work, "on"), "");
  await expect.poll(() => chat.state.status, PATIENT).toBe("idle");
  expect(chat.state.account.state).toBe("idle");
  await chat.close();
});
