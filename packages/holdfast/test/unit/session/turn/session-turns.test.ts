import { validateAnthropic } from "@holdfast/testkit";
import { type AnthropicMessage, isHoldfastError, openStore, type Session, type Store, type Turn } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { afterEach, describe, expect, test } from "vitest";
import { place } from "../../../place.ts";
import { calls, says, user } from "../anthropic-messages.ts";

type M = AnthropicMessage;

const textOf = (messages: readonly M[]): string => JSON.stringify(messages);

const stores: [name: string, url: (path: string) => string][] = [
  ["folder", (path) => path],
  ["sqlite", (path) => `sqlite:${path}/store.db`],
];

const opened: Disposable[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one[Symbol.dispose]();
});

function somewhere(): string {
  const here = place();
  opened.push(here);
  return here.path;
}

async function begin(
  options: Parameters<typeof openStore>[1] = {},
): Promise<{ store: Store; session: Session<M>; path: string }> {
  const path = somewhere();
  const store = await openStore(path, { recordsToolStarts: true, ...options });
  const session = await store.create<M>({ dialect: "anthropic", title: "test" });
  return { store, session, path };
}

/** The same session in a process that knows nothing: what a crash would leave is what was written. */
async function again(path: string, id: string): Promise<{ store: Store; session: Session<M> }> {
  const store = await openStore(path, { recordsToolStarts: true });
  return { store, session: await store.resume<M>(id) };
}

const code = (error: unknown): unknown => (isHoldfastError(error) ? error.code : error);
const codeOf = async (promise: Promise<unknown>): Promise<unknown> => promise.then(() => "nothing", code);

describe.each(stores)("a session in the %s store", (_name, url) => {
  test("lives through turns, tools and a restart, and shows the same before and after", async () => {
    const address = url(somewhere());
    const store = await openStore(address, { recordsToolStarts: true });
    const session = await store.create<M>({ dialect: "anthropic", title: "one", labels: { a: "b" } });
    const turn = await session.startTurn(user("do three things"));
    const { draft } = turn.request();
    draft.push({ text: "I wi" });
    draft.push({ text: "ll." });
    await draft.commit(calls("a", "b", "c"), { model: "m1", usage: { inputTokens: 5, outputTokens: 7 } });
    const outcomes = await Promise.all([
      turn.tool("c", async () => "three"),
      turn.tool("a", () => ({ one: 1 })),
      turn.tool("b", () => {
        throw new Error("no");
      }),
    ]);
    expect(outcomes.map(({ value }) => value)).toEqual(["three", { one: 1 }, undefined]);
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await turn.append(says("done"), { usage: { outputTokens: 3 } });
    await turn.end();
    const { messages, entries, usage, attributes } = session;
    expect(session.turn).toBeNull();
    expect(session.interruption).toBeNull();
    expect(usage).toEqual({ inputTokens: 5, outputTokens: 10 });
    await store.close();

    await using reopened = await openStore(address, { recordsToolStarts: true });
    const reading = await reopened.read<M>(session.id);
    expect(reading.messages).toEqual(messages);
    expect(reading.entries).toEqual(entries);
    expect(reading.usage).toEqual(usage);
    expect(reading.attributes).toEqual(attributes);
    expect(reading.interruption).toBeNull();
    const resumed = await reopened.resume<M>(session.id);
    expect(resumed.messages).toEqual(messages);
    expect(resumed.entries).toEqual(entries);
  });

  test("C31, R15: patches, notes, the queue and ids survive a restart", async () => {
    const address = url(somewhere());
    const store = await openStore(address, { recordsToolStarts: true });
    const session = await store.create<M>({ dialect: "anthropic" });
    const first = await session.enqueue(user("first"), { id: "q1", metadata: { from: "phone" } });
    await session.enqueue(user("second"), { id: "q2" });
    const turn = await session.startTurn(first);
    expect(turn.prompt).toMatchObject({ id: "q1", metadata: { from: "phone" } });
    await session.patch("q1", { seen: true });
    await session.patch("q1", { from: null, more: { a: 1 } } as never);
    await session.note("plan", { steps: [1, 2] });
    expect(await turn.append(says("hm"), { id: "x" })).toMatchObject({ id: "x" });
    expect(await turn.append(says("hm"), { id: "x" })).toMatchObject({ id: "x" });
    expect(await codeOf(turn.append(says("other"), { id: "x" }))).toBe("MESSAGE_ID_TAKEN");
    await store.close();
    await using reopened = await openStore(address, { recordsToolStarts: true });
    const resumed = await reopened.resume<M>(session.id);
    expect(resumed.queue.map(({ id }) => id)).toEqual(["q2"]);
    expect(resumed.entries[0]?.metadata).toEqual({ seen: true, more: { a: 1 } });
    expect(resumed.attributes.notes).toEqual({ plan: { steps: [1, 2] } });
    expect(resumed.entries.filter(({ id }) => id === "x")).toHaveLength(1);
    expect(resumed.interruption?.how).toEqual({ kind: "aborted", by: "close" });
  });
});

describe("turns", () => {
  test("a turn and its prompt are one unit, and one turn is open at a time", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn(user("hello"), { id: "p" });
    expect(await codeOf(session.startTurn(user("more")))).toBe("TURN_OPEN");
    expect(await session.startTurn(user("hello"), { id: "p" }), "a retry").toBe(turn);
    expect(await codeOf(session.resumeTurn())).toBe("TURN_OPEN");
    await turn.end();
    await turn.end();
    for (const use of [turn.append(says("late")), turn.toolStarted("x"), turn.suspend({ reason: "?" })]) {
      expect(await codeOf(use)).toBe("TURN_ENDED");
    }
    expect(() => turn.request()).toThrowError(expect.objectContaining({ code: "TURN_ENDED" }));
    expect(await codeOf(session.resumeTurn())).toBe("NOTHING_TO_RESUME");
    await store.close();
    expect(await codeOf(session.startTurn(user("x")))).toBe("SESSION_CLOSED");
    expect(await codeOf(session.note("a", 1))).toBe("SESSION_CLOSED");
  });

  test("a new prompt on an interrupted turn: that it was left, what closes it, and the prompt are one unit", async () => {
    const { session, store, path } = await begin();
    const turn = await session.startTurn(user("first"));
    await turn.append(calls("a"));
    await turn.suspend({ reason: "may I?" });
    await session.startTurn(user("second"));
    await store.close();
    const journals = await openFolderStore(path);
    const records = await Array.fromAsync(journals.history(session.id));
    await journals.close();
    const at = records.findIndex(({ kind, turn: of }) => kind === "turn.ended" && of === 1);
    expect(records[at]).toMatchObject({ outcome: "left", unit: 4 });
    const kinds = records.slice(at, at + 4).map(({ kind }) => kind);
    expect(kinds).toEqual(["turn.ended", "repair", "turn.started", "message"]);
  });

  test("two starts at once: the second is refused, and nothing of it is recorded", async () => {
    const { session, store } = await begin();
    const both = await Promise.allSettled([session.startTurn(user("one")), session.startTurn(user("two"))]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(session.entries).toHaveLength(1);
    await store.close();
  });

  test("bad input has its code and its sentence", async () => {
    const { session, store } = await begin();
    expect(await codeOf(session.startTurn({ role: "user", content: 7 } as never))).toBe("MESSAGE_UNFIT");
    expect(await codeOf(session.startTurn(says("I begin")))).toBe("MESSAGE_UNFIT");
    expect(await codeOf(session.startTurn([]))).toBe("MESSAGE_UNFIT");
    expect(await codeOf(session.patch("nobody", {}))).toBe("MESSAGE_UNKNOWN");
    expect(await codeOf(session.dequeue("nobody"))).toBe("QUEUE_UNKNOWN");
    expect(await codeOf(session.replace([], {} as never))).toBe("RECORD_INVALID");
    expect(await codeOf(session.note("x", undefined as never))).toBe("RECORD_INVALID");
    expect(await codeOf(session.edit([], [], {} as never))).toBe("RECORD_INVALID");
    const turn = await session.startTurn(user("x"));
    const odd = { role: "assistant", content: [{ type: "text", text: "x", when: new Date(0) }] };
    await expect(turn.append(odd as never)).rejects.toMatchObject({
      code: "MESSAGE_NOT_JSON",
      facts: { path: "message.content[0].when" },
    });
    expect(session.entries).toHaveLength(1);
    expect(await codeOf(turn.tool("nobody", () => 1))).toBe("CALL_UNKNOWN");
    expect(await codeOf(turn.toolEnded("nobody", { value: 1 }))).toBe("CALL_UNKNOWN");
    await turn.append(calls("a"));
    await turn.tool("a", () => 1);
    expect(await codeOf(turn.tool("a", () => 2))).toBe("CALL_TAKEN");
    expect(await codeOf(store.create({ dialect: "klingon" as never }))).toBe("DIALECT_UNKNOWN");
    expect(await codeOf(store.resume(session.id))).toBe("SESSION_BUSY");
    expect(await codeOf(store.resume("0199dead-0000-7000-8000-000000000000"))).toBe("SESSION_NOT_FOUND");
    await store.close();
  });

  test("what the caller changes later changes nothing stored (R19), and what is handed out cannot be changed", async () => {
    const { session, store } = await begin();
    const prompt = { role: "user" as const, content: [{ type: "text", text: "as it was" }] };
    const turn = await session.startTurn(prompt);
    prompt.content[0]!.text = "changed";
    expect(textOf(session.messages)).toContain("as it was");
    expect(() => ((session.messages[0] as { content: unknown }).content = "x")).toThrow(TypeError);
    expect(turn.prompt.message).toEqual({ role: "user", content: [{ type: "text", text: "as it was" }] });
    const answer = { role: "assistant" as const, content: [{ type: "text", text: "said once" }] };
    const appended = turn.append(answer as M);
    answer.content[0]!.text = "changed";
    await appended;
    expect(textOf(session.messages)).toContain("said once");
    expect(Object.isFrozen(answer)).toBe(false);
    await store.close();
  });

  test("C11: stop in the middle of a batch: finished results stay, the rest is closed honestly, a marker says who", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a", "b", "c"));
    await turn.tool("a", () => "result of a");
    const hangs = Promise.withResolvers<string>();
    const started = Promise.withResolvers<void>();
    const running = turn.tool("b", (signal) => {
      signal.addEventListener("abort", () => hangs.reject(new Error("stopped")));
      started.resolve();
      return hangs.promise;
    });
    await started.promise;
    await turn.abort({ by: "user", reason: "enough" });
    expect(turn.signal.aborted).toBe(true);
    expect(await turn.tool("c", () => "never")).toMatchObject({ error: { name: "AbortError" } });
    // C14: what the tool came to is recorded with its turn, also after the end.
    expect(await running).toMatchObject({ error: { message: "stopped" } });
    expect(session.interruption).toMatchObject({ how: { kind: "aborted", by: "user", reason: "enough" }, turn: 1 });
    expect(session.interruption?.calls.map(({ id, state }) => [id, state])).toEqual([["c", "never-started"]]);
    const next = await session.startTurn(user("something else"));
    const shown = textOf(session.messages);
    expect(shown).toContain("result of a");
    expect(shown).toContain("safe to run it");
    expect(shown).toContain("user stopped it (enough)");
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await next.end();
    await store.close();
  });

  test("C14: a result that comes when the next turn has begun stays with its own, and out of the view", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a"));
    await turn.toolStarted("a");
    await turn.abort({ by: "user" });
    const next = await session.startTurn(user("next"));
    const before = session.messages;
    await turn.toolEnded("a", { value: "too late" });
    await turn.usage({ outputTokens: 4 });
    expect(session.messages).toEqual(before);
    expect(session.entries.at(-1)).toMatchObject({ turn: 1, late: true });
    expect(session.usageByTurn.get(1)).toEqual({ outputTokens: 4 });
    await next.append(says("ok"));
    await next.append(user("more"));
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await store.close();
  });

  test("R18: calls that still run are shown as such, and what the model saw of them is what stays", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a", "b"));
    await turn.toolStarted("a");
    await turn.tool("b", () => "b is done");
    const seen = session.messages;
    expect(textOf(seen)).toContain("Still running");
    expect(validateAnthropic(seen as never)).toEqual([]);
    await turn.append(says("meanwhile"));
    await turn.append(user("and?"));
    await turn.toolEnded("a", { value: "at last" });
    expect(session.messages.slice(0, seen.length)).toEqual(seen);
    expect(textOf(session.messages)).not.toContain("at last");
    expect(session.entries.at(-1)).toMatchObject({ late: true });
    await store.close();
  });

  test("R1, R18: the model is asked while all tools run: what it saw stays, and what it answers is another response", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a", "b"));
    await Promise.all([turn.toolStarted("a"), turn.toolStarted("b")]);
    const { messages: seen, draft } = turn.request();
    draft.push({ text: "while they run" });
    await draft.commit(says("while they run, I think"));
    await turn.toolEnded("a", { value: "A" });
    await turn.append(user("and?"));
    expect(session.messages.slice(0, seen.length)).toEqual(seen);
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await store.close();
  });

  test("R1: what is said while the model answers stands behind its answer, which had not seen it", async () => {
    const { session, store, path } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a", "b"));
    await turn.tool("a", () => "result of a");
    await turn.toolStarted("b");
    const { messages: seen, draft } = turn.request();
    draft.push({ text: "I" });
    await turn.append(user("hurry up"), { id: "steer" });
    await turn.toolEnded("b", { value: "result of b" });
    await draft.commit([says("I think")]);
    const { messages, entries } = session;
    expect(messages.slice(0, seen.length)).toEqual(seen);
    expect(textOf(messages.slice(seen.length))).toMatch(/I think.*hurry up/);
    expect(textOf(messages)).not.toContain("result of b");
    expect(entries.filter(({ late }) => late)).toHaveLength(1);
    expect(entries.at(-1)?.id).toBe("steer");
    expect(validateAnthropic(messages as never)).toEqual([]);
    await turn.append(says("I hurry"));
    expect(session.messages.slice(0, messages.length)).toEqual(messages);
    expect(textOf(session.messages)).toMatch(/I think.*hurry up.*I hurry/);
    await store.close();
    const { store: next, session: resumed } = await again(path, session.id);
    expect(resumed.entries.slice(0, -1)).toEqual(entries);
    expect(resumed.messages.slice(0, -1)).toEqual(messages);
    await next.close();
  });

  test("R1: a request after steering shows it to the model, and the answer stands behind it", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn(user("go"));
    const first = turn.request();
    first.draft.push({ text: "one" });
    await turn.append(user("hurry up"));
    const second = turn.request();
    expect(textOf(first.messages)).not.toContain("hurry up");
    expect(textOf(second.messages)).toContain("hurry up");
    await expect(first.draft.commit(says("one"))).rejects.toMatchObject({ code: "DRAFT_DISCARDED" });
    await second.draft.commit(says("two"));
    expect(session.messages.slice(0, second.messages.length)).toEqual(second.messages);
    expect(textOf(session.messages)).toMatch(/hurry up.*two/);
    await store.close();
  });

  test("R1: a request made too early is made again, and the model sees the result that came in between", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a"));
    turn.request();
    await turn.tool("a", () => "result of a");
    const { messages: seen, draft } = turn.request();
    draft.push({ text: "I" });
    await draft.commit(says("I see it"));
    expect(session.messages.slice(0, seen.length)).toEqual(seen);
    expect(textOf(session.messages)).toMatch(/result of a.*I see it/);
    await store.close();
  });

  test("items of one response that come one by one stay one, while its tools run already", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a"));
    await turn.toolStarted("a");
    await turn.append(calls("b"));
    await turn.toolEnded("a", { value: "result of a" });
    await turn.tool("b", () => "result of b");
    expect(textOf(session.messages)).toMatch(/result of a.*result of b/);
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await store.close();
  });

  test("what is shown of a tool holds its result, or the call would read as if it had never run (P5)", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a"));
    await turn.toolStarted("a");
    expect(await codeOf(turn.toolEnded("a", { value: "removed" }, user("it was removed")))).toBe("MESSAGE_UNFIT");
    await turn.abort({ by: "user" });
    expect(session.interruption?.calls).toMatchObject([{ id: "a", state: "outcome-unknown" }]);
    await store.close();
  });

  test("the prompt of a turn is what the user said, also behind what the system says, and after the turn", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn([{ role: "system", content: "be kind" }, user("hello")], { id: "p" });
    expect(await session.startTurn([{ role: "system", content: "be kind" }, user("hello")], { id: "p" })).toBe(turn);
    await turn.end();
    const next = await session.startTurn(user("more"));
    expect(turn.prompt.message).toEqual(user("hello"));
    expect(next.prompt.message).toEqual(user("more"));
    await store.close();
  });

  test("the model is told why a turn failed, or was stopped, in one line of a few words, however long the error is", async () => {
    const { session, store } = await begin();
    const error = `Invalid response: ${"[\n  { }\n]".repeat(10_000)}`;
    const ends = [
      (turn: Turn<M>) => turn.fail(new Error(error)),
      (turn: Turn<M>) => turn.abort({ by: "user", reason: error }),
    ];
    for (const end of ends) {
      const turn = await session.startTurn(user("go"));
      await turn.append(calls(`a${turn.number}`, `b${turn.number}`));
      await end(turn);
    }
    expect(session.interruption?.how).toMatchObject({ reason: error });
    await session.startTurn(user("again"));
    const shown = textOf(session.messages);
    expect(shown).toContain("Invalid response: [ { } ]");
    expect(shown.length).toBeLessThan(5000);
    await store.close();
  });

  test("disposed while open, a turn has failed; closing a session aborts it by 'close'", async () => {
    const { session, store, path } = await begin();
    {
      await using _turn = await session.startTurn(user("x"));
    }
    expect(session.interruption?.how.kind).toBe("failed");
    await session.resumeTurn();
    await store.close();
    const { store: next, session: resumed } = await again(path, session.id);
    expect(resumed.interruption).toMatchObject({ how: { kind: "aborted", by: "close" }, resumes: 1 });
    await next.close();
  });

  test("store.live comes back to the session that is open here", async () => {
    const { session, store } = await begin();
    expect(store.live(session.id)).toBe(session);
    await session.close();
    expect(store.live(session.id)).toBeNull();
    await session.close();
    await store.close();
  });
});

describe("R7, C37: waiting for a person", () => {
  test("approved in another process, the tool runs once and one result is sent", async () => {
    const { session, store, path } = await begin();
    const turn = await session.startTurn(user("delete it"));
    await turn.append(calls("a"));
    await turn.suspend({ reason: "may I?", calls: ["a"] });
    expect(session.turn).toBeNull();
    expect((await store.list()).sessions[0]?.status).toBe("waiting");
    await store.close();
    const { store: next, session: resumed } = await again(path, session.id);
    expect(resumed.interruption).toMatchObject({
      how: { kind: "suspended", reason: "may I?" },
      calls: [{ state: "awaiting" }],
    });
    const approved = await resumed.resumeTurn({ calls: (call) => (call.state === "awaiting" ? "keep" : "close") });
    expect(approved.open.map(({ id }) => id)).toEqual(["a"]);
    let runs = 0;
    await approved.tool("a", () => `deleted ${++runs}`);
    expect(runs).toBe(1);
    expect(validateAnthropic(resumed.messages as never)).toEqual([]);
    expect(textOf(resumed.messages).match(/tool_result/g)).toHaveLength(1);
    await next.close();
  });

  test("a new prompt closes it: it was not approved, and did not run", async () => {
    const { session, store } = await begin();
    const turn = await session.startTurn(user("delete it"));
    await turn.append(calls("a"));
    await turn.suspend({ reason: "may I?", calls: ["a"] });
    await session.startTurn(user("never mind"));
    expect(textOf(session.messages)).toContain("was not approved, and did not run");
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await store.close();
  });
});

test("what a tool returned stays with its result where the model is shown something else: after a restart, a replacement and a fork, too", async () => {
  const { store, session, path } = await begin();
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a", "b", "c"));
  const shown = (id: string): M => ({
    role: "user",
    content: [{ type: "tool_result", tool_use_id: id, content: "in short" }] as never,
  });
  const value = { rows: [1, 2] };
  await turn.toolEnded("a", { value }, shown("a"));
  value.rows.push(3);
  await turn.toolEnded("b", { value: "as it is" });
  await turn.toolEnded("c", { error: "broken" }, shown("c"));
  await turn.append(says("Done."), { end: true });
  const values = (of: Pick<Session<M>, "entries">): unknown[] => of.entries.map((entry) => entry.value);
  const expected = [undefined, undefined, { rows: [1, 2] }, undefined, undefined, undefined];
  expect(values(session)).toEqual(expected);
  expect(Object.isFrozen((values(session)[2] as { rows: number[] }).rows)).toBe(true);
  expect(textOf(session.messages)).not.toContain("rows");
  await session.replace([...session.entries], { reason: "compaction" });
  expect(values(session)).toEqual(expected);
  await session.undo();
  expect(values(session)).toEqual(expected);
  const fork = await store.fork<M>(session.id);
  expect(values(fork)).toEqual(expected);
  // Entries of another session are taken as they are.
  await fork.replace([...session.entries], { reason: "rewind" });
  expect(values(fork)).toEqual(expected);
  await store.close();
  expect(values((await again(path, session.id)).session)).toEqual(expected);
});
