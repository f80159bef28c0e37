import { validateAnthropic, validateOpenaiResponses } from "@holdfast/testkit";
import { type AiSdkMessage, type AnthropicMessage, type Entry, openStore, type Session, type Store } from "holdfast";
import { afterEach, describe, expect, test } from "vitest";
import { place } from "../../place.ts";

type M = AnthropicMessage;
const user = (text: string): M => ({ role: "user", content: text });
const says = (text: string): M => ({ role: "assistant", content: text });
const calls = (...ids: string[]): M => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "work", input: {} })) as never,
});

const opened: Disposable[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one[Symbol.dispose]();
});

function somewhere(): string {
  const here = place();
  opened.push(here);
  return here.path;
}

/** Three turns, the second with a tool. */
async function talk(): Promise<{ store: Store; session: Session<M>; path: string }> {
  const path = somewhere();
  const store = await openStore(path, { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic", title: "talk" });
  for (const n of [1, 2, 3]) {
    const turn = await session.startTurn(user(`question ${n}`), { id: `q${n}` });
    if (n === 2) {
      await turn.append(calls("a", "b"), { id: "calls" });
      await Promise.all([turn.tool("b", () => "B"), turn.tool("a", () => "A")]);
    }
    await turn.append(says(`answer ${n}`), { id: `a${n}`, usage: { outputTokens: n } });
    await turn.end();
  }
  return { store, session, path };
}

async function reopened(path: string, id: string, store: Store): Promise<{ store: Store; session: Session<M> }> {
  await store.close();
  const next = await openStore(path, { recordsToolStarts: true });
  return { store: next, session: await next.resume<M>(id) };
}

const idsOf = (entries: readonly Entry<unknown>[]): string[] => entries.map(({ id }) => id);
const valid = (session: Session<M>): void =>
  expect(validateAnthropic([...session.messages, user("next")] as never)).toEqual([]);

describe("C32: compact, clear, rewind, then reopen: the same context as before; undo brings back what was there", () => {
  test.each([
    ["compaction", (entries: readonly Entry<M>[]) => [user("in short: …"), ...entries.slice(-2)]],
    ["clear", () => []],
    ["rewind", (entries: readonly Entry<M>[]) => entries.slice(0, 2)],
  ] as const)("%s", async (reason, items) => {
    const { store, session, path } = await talk();
    const before = { messages: session.messages, entries: session.entries };
    await session.note("keep", 1);
    await session.replace([...items(session.entries)], { reason });
    const after = { messages: session.messages, ids: idsOf(session.entries) };
    expect(after.messages).not.toEqual(before.messages);
    valid(session);
    const { store: next, session: again } = await reopened(path, session.id, store);
    expect(again.messages).toEqual(after.messages);
    expect(idsOf(again.entries)).toEqual(after.ids);
    expect(again.attributes).toMatchObject({ title: "talk", notes: { keep: 1 } });
    expect(again.usage).toEqual({ outputTokens: 6 });
    await again.undo();
    expect(again.messages).toEqual(before.messages);
    expect(idsOf(again.entries)).toEqual(idsOf(before.entries));
    expect(again.attributes.notes).toEqual({ keep: 1 });
    await expect(again.undo()).rejects.toMatchObject({ code: "UNDO_TOO_LATE" });
    await next.close();
  });

  test("once a turn has started, it is too late to undo", async () => {
    const { store, session } = await talk();
    await session.replace([user("short")], { reason: "compaction" });
    const turn = await session.startTurn(user("go on"));
    expect(turn.number).toBe(4);
    await expect(session.undo()).rejects.toMatchObject({ code: "UNDO_TOO_LATE" });
    await store.close();
  });
});

test("C38: compaction in mid-turn: open turn, queue, title, usage, notes and ids are all there after a restart", async () => {
  const { store, session, path } = await talk();
  const turn = await session.startTurn(user("question 4"), { id: "q4" });
  await session.enqueue(user("later"), { id: "later" });
  await turn.append(calls("x", "y"), { id: "more" });
  await turn.tool("x", () => "X");
  await turn.toolStarted("y");
  await expect(session.replace([user("all forgotten")], { reason: "compaction" })).rejects.toMatchObject({
    code: "CALLS_OPEN",
    facts: { calls: ["y"] },
  });
  await session.replace([user("in short: …"), ...session.entries.slice(-3)], { reason: "compaction" });
  expect(session.turn).toBe(turn);
  expect(turn.prompt.id).toBe("q4");
  await turn.toolEnded("y", { value: "Y" });
  await turn.append(says("halfway"), { id: "half", usage: { outputTokens: 10 } });
  expect(JSON.stringify(session.messages)).toContain('"Y"');
  // As a crash would leave it: the writer's handle is given up without a word.
  const { store: next, session: again } = await reopened(path, session.id, store);
  expect(again.interruption).toMatchObject({ turn: 4, prompt: { id: "q4" } });
  expect(again.queue.map(({ id }) => id)).toEqual(["later"]);
  expect(again.usage).toEqual({ outputTokens: 16 });
  expect(again.attributes.title).toBe("talk");
  expect(idsOf(again.entries)).toEqual(expect.arrayContaining(["q4", "more", "half"]));
  const resumed = await again.resumeTurn();
  expect(resumed.number).toBe(4);
  expect(validateAnthropic(again.messages as never)).toEqual([]);
  await next.close();
});

test("C38: compaction after a restart, with a tool that had ended before its call was recorded: what the journal wrote by itself is not written again", async () => {
  const path = somewhere();
  await using store = await openStore(path, { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic" });
  const turn = await session.startTurn(user("question"));
  turn.request().draft.push({ part: 0, text: "I will look" });
  await turn.toolStarted("a", { name: "work", input: {} });
  await turn.toolEnded("a", { value: "A" });
  await session.close();
  const next = await store.resume<M>(session.id);
  await next.replace([user("short"), ...next.entries], { reason: "compaction" });
  const records = await Array.fromAsync(store.history(session.id));
  const epoch = records.findLast(({ kind }) => kind === "epoch") as { checkpoint?: { turn: unknown } } | undefined;
  expect(epoch?.checkpoint?.turn).toHaveProperty("ended", { outcome: "aborted", by: "close" });
  expect(records.at(-1)).toMatchObject({ kind: "tool.ended", call: "a", value: "A" });
  expect((await store.read(session.id)).messages).toEqual(next.messages);
});

test("R1, R18: a draft that is kept closes the calls before it, also those that were to be run again: their step stays in the view", async () => {
  const path = somewhere();
  await using store = await openStore(path, { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic" });
  const turn = await session.startTurn(user("question"));
  await turn.append(calls("a", "b"));
  await turn.tool("b", () => "done by b");
  await turn.toolStarted("a", { replay: "safe" });
  expect(JSON.stringify(session.messages), "the model is asked while a still runs").toContain("done by b");
  turn.request().draft.push({ part: 0, text: "meanwhile" });
  await session.flush();
  await session.close();
  const next = await store.resume<M>(session.id);
  const resumed = await next.resumeTurn({ draft: "keep", calls: "rerun" });
  expect(resumed.open).toEqual([]);
  expect(JSON.stringify(next.messages)).toMatch(/tool_use.*done by b.*meanwhile/);
  expect(validateAnthropic(next.messages as never)).toEqual([]);
});

describe("R5: a replacement that is the first thing a writer does is written by that writer, not by the one before", () => {
  const first = {
    replace: (session: Session<M>) => session.replace([user("short")], { reason: "compaction" }),
    undo: (session: Session<M>) => session.undo(),
  };
  test.each([
    ["replace", false, true, "never-started"],
    ["replace", true, false, "unrecorded"],
    ["undo", false, true, "never-started"],
    ["undo", true, false, "unrecorded"],
  ] as const)(
    "%s, before it starts were recorded: %s, by it: %s; a call without start is %s",
    async (name, before, now, state) => {
      const path = somewhere();
      await using earlier = await openStore(path, { recordsToolStarts: before });
      await using store = await openStore(path, { recordsToolStarts: now });
      const session = await earlier.create<M>({ dialect: "anthropic" });
      const { id } = session;
      await session.startTurn(user("question")).then((turn) => turn.end());
      if (name === "undo") await first.replace(session);
      await session.close();
      const next = await store.resume<M>(id);
      await first[name](next);
      const turn = await next.startTurn(user("next"));
      await turn.append(calls("a"));
      await turn.abort({ by: "user" });
      expect(next.interruption?.calls).toMatchObject([{ id: "a", state }]);
      expect((await store.read(id)).interruption?.calls).toMatchObject([{ id: "a", state }]);
    },
  );
});

describe("C33: fork at a message: the same prefix, by id", () => {
  test("in the middle, at the end, and of a live session", async () => {
    const { store, session } = await talk();
    const fork = await store.fork<M>(session.id, { at: "a2", title: "another way", cwd: "/elsewhere" });
    const { entries } = session;
    const cut = entries.findIndex(({ id }) => id === "a2") + 1;
    expect(idsOf(fork.entries)).toEqual(idsOf(entries.slice(0, cut)));
    expect(fork.messages).toEqual(session.messages.slice(0, fork.messages.length));
    expect(fork.attributes).toMatchObject({ title: "another way", forkedFrom: { session: session.id, at: "a2" } });
    expect(fork.attributes.cwd).toBe("/elsewhere");
    expect(fork.interruption).toBeNull();
    const turn = await fork.startTurn(user("and then?"));
    expect(turn.number).toBe(3);
    expect(validateAnthropic(fork.messages as never)).toEqual([]);
    const whole = await store.fork<M>(session.id);
    expect(whole.messages).toEqual(session.messages);
    await expect(store.fork(session.id, { at: "nobody" })).rejects.toMatchObject({ code: "MESSAGE_UNKNOWN" });
    await store.close();
  });

  test("after compaction and after a repaired resume", async () => {
    const { store, session, path } = await talk();
    await session.replace([user("short"), ...session.entries.slice(-2)], { reason: "compaction" });
    const turn = await session.startTurn(user("go"), { id: "go" });
    await turn.append(calls("z"), { id: "z" });
    const { store: next, session: again } = await reopened(path, session.id, store);
    await again.startTurn(user("what happened?"), { id: "what" });
    const fork = await next.fork<M>(again.id, { at: "what" });
    expect(idsOf(fork.entries)).toEqual(idsOf(again.entries));
    expect(fork.messages).toEqual(again.messages);
    await next.close();
  });
});

describe("R12: edit", () => {
  test("shows other messages in the place of old ones, from the next turn on; the originals stay, marked", async () => {
    const { store, session, path } = await talk();
    const before = session.messages;
    const results = session.entries.filter(({ message }) => JSON.stringify(message).includes("tool_result"));
    await session.edit(["calls", ...idsOf(results)], [says("(two tools were run)")], { reason: "pruned" });
    expect(session.messages).toEqual(before);
    const turn = await session.startTurn(user("go on"));
    expect(JSON.stringify(session.messages)).toContain("two tools were run");
    expect(JSON.stringify(session.messages)).not.toContain("tool_use");
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    expect(session.entries.find(({ id }) => id === "calls")?.replacedBy).toBeTypeOf("string");
    expect(session.entries.find(({ synthetic }) => synthetic === "pruned")).toBeDefined();
    await turn.end();
    const after = session.messages;
    const { store: next, session: again } = await reopened(path, session.id, store);
    expect(again.messages).toEqual(after);
    await next.close();
  });

  test("hiding reaches the model at the next turn, with the whole step and its results (C34)", async () => {
    const { store, session } = await talk();
    const before = session.messages;
    await session.patch("calls", { hiddenFromModel: true });
    expect(session.messages).toEqual(before);
    const turn = await session.startTurn(user("go on"));
    expect(JSON.stringify(session.messages)).not.toContain("tool_");
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await turn.end();
    await session.patch("calls", { hiddenFromModel: null } as never);
    await session.startTurn(user("and back"));
    expect(JSON.stringify(session.messages)).toContain("tool_use");
    await store.close();
  });
});

test("C34: a response that came as several items is never cut apart", async () => {
  await using store = await openStore(somewhere(), { recordsToolStarts: true });
  const session = await store.create<Record<string, unknown>>({ dialect: "openai-responses" });
  const turn = await session.startTurn({ type: "message", role: "user", content: "x" });
  const items = [
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" },
    { type: "function_call", id: "fc_1", call_id: "c1", name: "work", arguments: "{}" },
    { type: "function_call", id: "fc_2", call_id: "c2", name: "work", arguments: "{}" },
  ];
  const { ids } = await turn.append(items);
  expect(new Set(session.entries.slice(1).map(({ step }) => step)).size).toBe(1);
  await turn.tool("c1", () => "1");
  await turn.tool("c2", () => "2");
  expect(validateOpenaiResponses(session.messages as never)).toEqual([]);
  await turn.append([{ type: "message", id: "m1", role: "assistant", content: [{ type: "output_text", text: "ok" }] }]);
  await turn.end();
  await expect(session.edit([ids[0]!], [], { reason: "cut" })).rejects.toMatchObject({ code: "STEP_SPLIT" });
  await session.patch(ids[1]!, { hiddenFromModel: true });
  await session.startTurn({ type: "message", role: "user", content: "y" });
  expect(JSON.stringify(session.messages)).not.toContain("rs_1");
  const fork = await store.fork(session.id, { at: ids[0]! });
  expect(idsOf(fork.entries).filter((id) => ids.includes(id))).toEqual(ids);
});

test("C34, R9: a tool that ended while the response was still streamed does not part its items", async () => {
  await using store = await openStore(somewhere(), { recordsToolStarts: true });
  const session = await store.create<Record<string, unknown>>({ dialect: "openai-responses" });
  const turn = await session.startTurn({ type: "message", role: "user", content: "x" });
  const { draft } = turn.request();
  draft.push({ text: "I" });
  await turn.toolStarted("c1", { name: "work", input: {} });
  await turn.toolEnded("c1", { value: "early" });
  await turn.append({ type: "message", role: "user", content: "hurry" });
  await draft.commit([
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" },
    { type: "function_call", id: "fc_1", call_id: "c1", name: "work", arguments: "{}" },
    { type: "function_call", id: "fc_2", call_id: "c2", name: "work", arguments: "{}" },
  ]);
  await turn.tool("c2", () => "later");
  expect(validateOpenaiResponses(session.messages as never)).toEqual([]);
  expect(JSON.stringify(session.messages)).toMatch(/fc_1.*fc_2.*early.*later.*hurry/);
});

test("C38, R9: a tool that ended before its call was recorded is not forgotten by a compaction", async () => {
  const { store, session, path } = await talk();
  const turn = await session.startTurn(user("go"));
  const { draft } = turn.request();
  draft.push({ text: "I" });
  await turn.toolStarted("early", { name: "work", input: {} });
  await turn.toolEnded("early", { value: "already done" });
  await session.replace([user("in short: …"), ...session.entries.slice(-1)], { reason: "compaction" });
  await draft.commit(calls("early"));
  expect(JSON.stringify(session.messages)).toContain("already done");
  const { messages } = session;
  const { store: next, session: again } = await reopened(path, session.id, store);
  expect(again.interruption?.calls).toEqual([]);
  expect(again.messages).toEqual(messages);
  await next.close();
});

test("C39: images and bytes in messages come back as they were", async () => {
  const path = somewhere();
  const bytes = Uint8Array.from({ length: 300 }, (_, i) => i % 256);
  const message: AiSdkMessage = {
    role: "user",
    content: [
      { type: "text", text: "look" },
      { type: "image", image: bytes, mediaType: "image/png" },
      { type: "file", data: new URL("https://example.invalid/a.pdf"), mediaType: "application/pdf" },
    ],
  } as never;
  const store = await openStore(path, { recordsToolStarts: true });
  const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
  await session.startTurn(message);
  const live = session.messages;
  expect(live).toEqual([message]);
  await store.close();
  await using next = await openStore(path, { recordsToolStarts: true });
  const { messages } = await next.read<AiSdkMessage>(session.id);
  expect(messages).toEqual([message]);
  expect((messages[0] as unknown as { content: { image?: unknown }[] }).content[1]?.image).toBeInstanceOf(Uint8Array);
});

test("C13: a client that goes away is not a cancel: the turn goes on, and the client can come back to it", async () => {
  const path = somewhere();
  const store = await openStore(path, { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic" });
  const turn = await session.startTurn(user("x"));
  await using clients = await openStore(path, { recordsToolStarts: true });
  const leaving = new AbortController();
  let last = 0;
  for await (const record of clients.follow(session.id, 0, { signal: leaving.signal })) {
    last = record.seq;
    if (record.kind === "message") leaving.abort();
  }
  expect(turn.signal.aborted).toBe(false);
  await turn.append(says("done"));
  await turn.end();
  const kinds: string[] = [];
  for await (const record of clients.follow(session.id, last)) {
    kinds.push(record.kind);
    if (record.kind === "turn.ended") break;
  }
  expect(kinds).toEqual(["message", "turn.ended"]);
  await store.close();
});

test("sub-sessions are found by their parent", async () => {
  await using store = await openStore(somewhere(), { recordsToolStarts: true });
  const parent = await store.create<M>({ dialect: "anthropic" });
  const child = await store.create<M>({ dialect: "anthropic", parent: { session: parent.id, call: "c1" } });
  const turn = await child.startTurn(user("a part of it"));
  await turn.end();
  const { sessions } = await store.list({ parent: parent.id });
  expect(sessions).toMatchObject([{ id: child.id, parent: { session: parent.id, call: "c1" }, title: "a part of it" }]);
});
