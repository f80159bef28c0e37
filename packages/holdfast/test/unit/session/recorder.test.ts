import { type AcpMessage, openStore, type Store } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test } from "vitest";
import { openJournalStore } from "../../../src/stores/open.ts";
import { place } from "../../place.ts";
import { FailingDisk } from "./session-failures-disk.ts";

const prompt = (text: string): AcpMessage => ({ prompt: [{ type: "text", text }] });
const chunk = (text: string): AcpMessage => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text },
});
const call = (toolCallId: string): AcpMessage => ({ sessionUpdate: "tool_call", toolCallId, title: "Build" });

test("a recorded session reads like one that was written with turns", async () => {
  await using store = await openStore("memory:");
  const recorder = await store.record<AcpMessage>({ dialect: "acp", cwd: "/work", labels: { a: "1" } });
  await recorder.startTurn(prompt("hello"));
  await recorder.append([chunk("a"), chunk("b")]);
  await recorder.note("n", { x: 1 });
  await recorder.endTurn({ outcome: "completed" }, [chunk("c")]);
  await recorder.close();

  const session = await store.create<AcpMessage>({ dialect: "acp", cwd: "/work", labels: { a: "1" } });
  const turn = await session.startTurn(prompt("hello"));
  await turn.append([chunk("a"), chunk("b")]);
  await session.note("n", { x: 1 });
  await turn.append(chunk("c"));
  await turn.end();
  const seen = async (id: string) => {
    const { messages, attributes, interruption } = await store.read<AcpMessage>(id);
    return { messages, attributes, interruption };
  };
  expect(await seen(recorder.id)).toEqual(await seen(session.id));
  expect((await store.list()).sessions.map(({ status }) => status)).toEqual(["idle", "idle"]);
});

test("a turn is opened once, and takes messages only while it is open", async () => {
  await using store = await openStore("memory:");
  await using recorder = await store.record<AcpMessage>({ dialect: "acp" });
  await expect(recorder.append(chunk("a"))).rejects.toMatchObject({ code: "TURN_ENDED" });
  await recorder.startTurn(prompt("one"));
  await expect(recorder.startTurn(prompt("two"))).rejects.toMatchObject({ code: "TURN_OPEN" });
  await expect(recorder.append({ nonsense: true } as never)).rejects.toMatchObject({ code: "MESSAGE_UNFIT" });
  await recorder.endTurn({ outcome: "aborted", by: "user" });
  await expect(recorder.endTurn({ outcome: "completed" })).rejects.toMatchObject({ code: "TURN_ENDED" });
  expect(recorder).toMatchObject({ turn: null, turns: 1 });
  await recorder.close();
  await expect(recorder.note("n", 1)).rejects.toMatchObject({ code: "SESSION_CLOSED" });
});

test("what a writer that died left open is closed with the next prompt, and no words are put in the user's mouth", async () => {
  await using store = await openStore("memory:");
  const first = await store.record<AcpMessage>({ dialect: "acp" });
  await first.startTurn(prompt("build it"));
  await first.append(call("c"));
  expect((await first.read()).interruption).toBeNull();
  await first.close();
  const second = await store.record<AcpMessage>(first.id, { dialect: "acp" });
  await second.startTurn(prompt("again"));
  await second.endTurn({ outcome: "completed" }, [chunk("done")]);
  const { messages, entries } = await second.read();
  expect(messages).toEqual([
    { sessionUpdate: "user_message_chunk", content: { type: "text", text: "build it" } },
    call("c"),
    expect.objectContaining({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "failed" }),
    { sessionUpdate: "user_message_chunk", content: { type: "text", text: "again" } },
    chunk("done"),
  ]);
  expect(entries.map(({ synthetic }) => synthetic)).toEqual([
    undefined,
    undefined,
    expect.any(String),
    undefined,
    undefined,
  ]);
});

test("a refused prompt leaves no turn open", async () => {
  await using store = await openStore("memory:");
  await using recorder = await store.record<AcpMessage>({ dialect: "acp" });
  await expect(recorder.startTurn({ prompt: [] })).rejects.toMatchObject({ code: "MESSAGE_UNFIT" });
  expect(recorder).toMatchObject({ turn: null, turns: 0 });
  await recorder.startTurn(prompt("one"));
  expect(recorder.turns).toBe(1);
});

test("secrets are redacted in everything that is recorded", async () => {
  await using store = await openStoreWith((given) => openJournalStore("memory:", given), {
    redact: (text) => text.replaceAll("secret", "[redacted]"),
  });
  const recorder = await store.record<AcpMessage>({ dialect: "acp" });
  await recorder.startTurn(prompt("a secret"));
  await recorder.append(chunk("the secret"));
  await recorder.note("n", "secret");
  await recorder.endTurn({ outcome: "failed", error: "no secret" });
  await recorder.close();
  expect(JSON.stringify(await Array.fromAsync(store.history(recorder.id)))).not.toContain("secret");
});

test("a fork takes labels of its own", async () => {
  await using store = await openStore("memory:");
  const recorder = await store.record<AcpMessage>({ dialect: "acp", labels: { id: "a", kind: "x" } });
  await recorder.startTurn(prompt("one"));
  const fork = await store.fork(recorder.id, { labels: { id: "b" } });
  expect(fork.attributes.labels).toEqual({ id: "b", kind: "x" });
  expect((await store.read(recorder.id)).attributes.labels).toEqual({ id: "a", kind: "x" });
});

test("labels can be added and replaced later, and lists find the session by them", async () => {
  await using store = await openStore("memory:", { redact: "credentials" });
  const recorder = await store.record<AcpMessage>({ dialect: "acp", labels: { a: "1", b: "2" } });
  await recorder.setLabels({ b: "3" });
  await recorder.setLabels({ c: "4" });
  await expect(recorder.setLabels({ d: 1 as never })).rejects.toMatchObject({ code: "ATTRIBUTE_INVALID" });
  await recorder.close();
  await expect(recorder.setLabels({ d: "5" })).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  const all = { a: "1", b: "3", c: "4" };
  expect((await store.read(recorder.id)).attributes.labels).toEqual(all);
  const { sessions } = await store.list({ labels: { b: "3" }, empty: true });
  expect(sessions).toMatchObject([{ id: recorder.id, labels: all }]);
  expect((await store.list({ labels: { b: "2" }, empty: true })).sessions).toEqual([]);
  const again = await store.record<AcpMessage>(recorder.id);
  await again.setLabels({ a: "6" });
  await again.close();
  expect((await store.read(recorder.id)).attributes.labels).toEqual({ ...all, a: "6" });
});

test("closing the store closes its recorders", async () => {
  const store = await openStore("memory:");
  const recorder = await store.record<AcpMessage>({ dialect: "acp" });
  await recorder.startTurn(prompt("one"));
  await store.close();
  await expect(recorder.append(chunk("a"))).rejects.toMatchObject({ code: "SESSION_CLOSED" });
});

const kinds = async (store: Store, id: string): Promise<string[]> =>
  (await Array.fromAsync(store.history(id))).map(({ kind }) => kind).filter((kind) => kind !== "segment");

test("close ends the open turn as interrupted by it, and tells lists", async () => {
  await using store = await openStore("memory:");
  const recorder = await store.record<AcpMessage>({ dialect: "acp" });
  await recorder.startTurn(prompt("one"));
  await recorder.close();
  expect(recorder.turn).toBeNull();
  expect(await kinds(store, recorder.id)).toEqual([
    "session",
    "opened",
    "turn.started",
    "message",
    "turn.ended",
    "closed",
  ]);
  const { interruption } = await store.read(recorder.id);
  expect(interruption?.how).toEqual({ kind: "aborted", by: "close" });
  expect((await store.list()).sessions).toMatchObject([{ id: recorder.id, status: "interrupted" }]);
  // Once: there is nothing left to end.
  await recorder.close();
  const again = await store.record<AcpMessage>(recorder.id);
  await again.close();
  expect((await kinds(store, recorder.id)).filter((kind) => kind === "turn.ended")).toHaveLength(1);
});

test("close waits for the calls before it, and reading does too; each sees what they have done", async () => {
  await using store = await openStore("memory:");
  const recorder = await store.record<AcpMessage>({ dialect: "acp" });
  const started = recorder.startTurn(prompt("one"));
  const reading = recorder.read();
  const rest = [
    recorder.append(chunk("a")),
    recorder.note("n", 1),
    recorder.setLabels({ a: "1" }),
    recorder.setLabels({ b: "2" }),
  ];
  const closed = recorder.close();
  // Its turn is being worked on, so nothing was interrupted.
  expect(await reading).toMatchObject({ entries: [{ message: prompt("one") }], interruption: null });
  await Promise.all([started, ...rest, closed]);
  const { entries, attributes, interruption } = await store.read<AcpMessage>(recorder.id);
  expect(entries.map(({ message }) => message)).toEqual([prompt("one"), chunk("a")]);
  expect(attributes).toMatchObject({ notes: { n: 1 }, labels: { a: "1", b: "2" } });
  expect(interruption?.how).toEqual({ kind: "aborted", by: "close" });
});

test("reading waits for notes and labels as well, where the store writes them after the call", async () => {
  const { promise: mayWrite, resolve } = Promise.withResolvers<void>();
  await using store = await openStoreWith(async (options) => {
    const journals = await openJournalStore("memory:", options);
    const create = journals.create.bind(journals);
    journals.create = async (...given) => {
      const journal = await create(...given);
      const append = journal.append.bind(journal);
      journal.append = (...unit) => mayWrite.then(() => append(...unit));
      return journal;
    };
    return journals;
  });
  const recorder = await store.record<AcpMessage>({ dialect: "acp" });
  const noted = recorder.note("n", 1);
  const labelled = recorder.setLabels({ a: "1" });
  const reading = recorder.read();
  resolve();
  expect((await reading).attributes).toMatchObject({ notes: { n: 1 }, labels: { a: "1" } });
  await Promise.all([noted, labelled]);
});

test("what was refused was not done: labels, and the end of a turn at close", async () => {
  using here = place();
  const disk = new FailingDisk("write");
  await using store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk: disk.disk }));
  const recorder = await store.record<AcpMessage>({ dialect: "acp" });
  await recorder.startTurn(prompt("one"));
  disk.countdown = 1;
  await expect(recorder.setLabels({ refused: "yes" })).rejects.toMatchObject({ code: "STORE_FULL" });
  await recorder.setLabels({ a: "1" });
  expect((await recorder.read()).attributes.labels).toEqual({ a: "1" });
  disk.countdown = 1;
  // It says so, and gives the session back all the same.
  await expect(recorder.close()).rejects.toMatchObject({ code: "STORE_FULL" });
  await (await store.record<AcpMessage>(recorder.id)).close();
});

test("after its journal has failed, close ends no turn, and gives the session back", async () => {
  using here = place();
  const disk = new FailingDisk("sync");
  await using store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk: disk.disk }));
  const recorder = await store.record<AcpMessage>({ dialect: "acp" });
  await recorder.startTurn(prompt("one"));
  disk.countdown = 1;
  await expect(recorder.append(chunk("a"))).rejects.toMatchObject({ code: "SYNC_FAILED" });
  await recorder.close().catch((error) => expect(error).toMatchObject({ code: "SYNC_FAILED" }));
  expect(await kinds(store, recorder.id)).not.toContain("turn.ended");
  await (await store.record<AcpMessage>(recorder.id)).close();
});

test("what is not valid is refused, and after close everything is", async () => {
  await using store = await openStore("memory:");
  const recorder = await store.record<AcpMessage>({ dialect: "acp" });
  await expect(recorder.note(7 as never, 1)).rejects.toMatchObject({ code: "RECORD_INVALID" });
  await expect(recorder.note("n", undefined as never)).rejects.toMatchObject({ code: "RECORD_INVALID" });
  await recorder.startTurn(prompt("one"));
  await expect(recorder.append([])).rejects.toMatchObject({ code: "MESSAGE_UNFIT" });
  const before = await kinds(store, recorder.id);
  expect(before).toEqual(["session", "opened", "turn.started", "message"]);
  await recorder.close();
  const after = await kinds(store, recorder.id);
  const calls = [
    () => recorder.startTurn(prompt("two")),
    () => recorder.append(chunk("a")),
    () => recorder.endTurn({ outcome: "completed" }),
    () => recorder.note("n", 1),
    () => recorder.setLabels({ a: "1" }),
  ];
  for (const one of calls) await expect(one()).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  expect(await kinds(store, recorder.id)).toEqual(after);
});

test("what the store refused was not done: a prompt, a note, the end of a turn", async () => {
  using here = place();
  const disk = new FailingDisk("write");
  await using store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk: disk.disk }));
  await using recorder = await store.record<AcpMessage>({ dialect: "acp" });
  await recorder.note("first", 1);
  const full = { code: "STORE_FULL" };
  disk.countdown = 1;
  await expect(recorder.startTurn(prompt("refused"))).rejects.toMatchObject(full);
  expect(recorder).toMatchObject({ turn: null, turns: 0 });
  await recorder.startTurn(prompt("one"));
  disk.countdown = 1;
  await expect(recorder.note("refused", 1)).rejects.toMatchObject(full);
  disk.countdown = 1;
  await expect(recorder.endTurn({ outcome: "completed" })).rejects.toMatchObject(full);
  expect(recorder.turn).toBe(1);
  await recorder.endTurn({ outcome: "completed" });
  expect((await recorder.read()).attributes.notes).toEqual({ first: 1 });
});

test("messages of one call are one step, and its first gives it the name; a redacted one says so", async () => {
  await using store = await openStore("memory:", { redact: "credentials" });
  await using recorder = await store.record<AcpMessage>({ dialect: "acp" });
  await recorder.startTurn(prompt("one"));
  await recorder.append([chunk("a"), chunk("ghp_0123456789abcdefghijklmnopqrstuvwxyz")]);
  const records = await Array.fromAsync(store.history(recorder.id));
  const [asked, first, second] = records.filter(({ kind }) => kind === "message");
  expect(records.find(({ kind }) => kind === "turn.started")).toMatchObject({ prompt: asked!["id"] });
  expect(first).toMatchObject({ step: first!["id"] });
  expect(second).toMatchObject({ step: first!["id"], id: `${String(first!["id"])}.1` });
  expect([asked, first, second].map((record) => "redacted" in record!)).toEqual([false, false, true]);
});

test("the next prompt closes calls that were left open, in their turn, and nothing else", async () => {
  await using store = await openStore("memory:");
  const first = await store.record<AcpMessage>({ dialect: "acp" });
  for (const text of ["one", "two"]) {
    await first.startTurn(prompt(text));
    if (text === "one") await first.endTurn({ outcome: "completed" });
  }
  await first.append(call("c"));
  await first.close();
  const second = await store.record<AcpMessage>(first.id);
  await second.startTurn(prompt("three"));
  await second.close();
  const third = await store.record<AcpMessage>(first.id);
  await third.startTurn(prompt("four"));
  await third.close();
  const repairs = (await Array.fromAsync(store.history(first.id))).filter(({ kind }) => kind === "repair");
  expect(repairs).toMatchObject([{ turn: 2, entries: [{ synthetic: expect.any(String) }] }]);
});

const attempts = async (store: Store): Promise<unknown> => {
  const [session] = (await store.list({ empty: true })).sessions;
  return { status: session!.status, attempts: session!.attempts ?? 0 };
};

test("an interrupted turn continues: its calls end with the words for each, and it is the same turn", async () => {
  await using store = await openStore("memory:");
  const first = await store.record<AcpMessage>({ dialect: "acp" });
  await first.startTurn(prompt("build it"));
  await first.append([call("c"), chunk("so")]);
  await first.close();
  await using second = await store.record<AcpMessage>(first.id, { dialect: "acp" });
  expect(await second.claimTurn()).toBe(1);
  await second.resumeTurn(prompt("go on"), ({ name }) => `words for ${name}`);
  expect(second).toMatchObject({ turn: 1, turns: 1 });
  await expect(second.claimTurn()).rejects.toMatchObject({ code: "TURN_OPEN" });
  await expect(second.resumeTurn(prompt("again"), () => "")).rejects.toMatchObject({ code: "TURN_OPEN" });
  await second.endTurn({ outcome: "completed" }, [chunk("done")]);
  const { entries, state } = await second.read();
  expect(state).toBe("idle");
  expect(JSON.stringify(entries.find(({ synthetic }) => synthetic !== undefined)?.message)).toContain(
    "words for Build",
  );
  expect(entries.every(({ turn }) => turn === 1)).toBe(true);
  await expect(second.claimTurn()).rejects.toMatchObject({ code: "NOTHING_TO_RESUME" });
  await expect(second.resumeTurn(prompt("x"), () => "")).rejects.toMatchObject({ code: "NOTHING_TO_RESUME" });
});

test("tries count until a call has ended, not until the agent has spoken; then the turn is parked", async () => {
  await using store = await openStore("memory:");
  const first = await store.record<AcpMessage>({ dialect: "acp" });
  await first.startTurn(prompt("build it"));
  await first.append(call("c"));
  await first.close();
  const recorder = await store.record<AcpMessage>(first.id, { dialect: "acp" });
  expect(await recorder.claimTurn("here")).toBe(1);
  expect(await recorder.claimTurn("here")).toBe(1);
  await recorder.resumeTurn(prompt("go on"), () => "unknown");
  await recorder.append(chunk("I try"));
  // The agent died, and this process did not.
  await recorder.suspendTurn({ reason: "the agent ended", until: 0, attempts: 1 });
  expect(recorder.turn).toBeNull();
  expect(await attempts(store)).toEqual({ status: "paused", attempts: 1 });
  expect(await recorder.claimTurn()).toBe(2);
  await recorder.resumeTurn(prompt("go on"), () => "unknown");
  await recorder.append([call("d"), { ...call("d"), sessionUpdate: "tool_call_update", status: "completed" }]);
  expect(await attempts(store)).toEqual({ status: "running", attempts: 0 });
  await recorder.suspendTurn({ reason: "it ended three times", parked: 3 });
  expect(await attempts(store)).toEqual({ status: "parked", attempts: 3 });
  await recorder.close();

  // A new prompt leaves it.
  const last = await store.record<AcpMessage>(first.id, { dialect: "acp" });
  await last.startTurn(prompt("something else"));
  await last.endTurn({ outcome: "completed" });
  expect((await last.read()).state).toBe("idle");
});
