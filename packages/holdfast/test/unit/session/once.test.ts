import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { idFrom, openStore, type Session } from "holdfast";
import { afterAll, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "holdfast-once-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const prompt = { role: "user" as const, content: "go" };
const call = { type: "tool_use" as const, id: "c1", name: "look", input: {} };
const answer = { role: "assistant" as const, content: [call] };

type Any = Session<unknown>;
/** Every call that records something, in an order in which each is allowed. */
const CALLS: readonly (readonly [key: string, work: (session: Any) => Promise<unknown>])[] = [
  ["enqueue", (session) => session.enqueue({ role: "user", content: "later" }, { id: "later" })],
  ["note", (session) => session.note("n", 1)],
  ["start", (session) => session.startTurn(prompt, { id: "p" })],
  ["usage", (session) => session.turn!.usage({ inputTokens: 1 })],
  ["answer", (session) => session.turn!.append(answer)],
  ["tool started", (session) => session.turn!.toolStarted("c1")],
  ["tool ended", (session) => session.turn!.toolEnded("c1", { value: 1 })],
  ["abort", (session) => session.turn!.abort({ by: "test" })],
  ["resume", (session) => session.resumeTurn()],
  ["suspend", (session) => session.turn!.suspend({ reason: "permission" })],
  ["resume again", (session) => session.resumeTurn()],
  ["fail", (session) => session.turn!.fail(new Error("x"))],
  ["resume once more", (session) => session.resumeTurn()],
  ["end", (session) => session.turn!.append({ role: "assistant", content: "done" }, { end: true })],
  ["rename", (session) => session.rename("title")],
  ["dequeue", (session) => session.dequeue("later")],
  ["replace", (session) => session.replace([{ role: "user", content: "a summary" }], { reason: "compaction" })],
  ["undo", (session) => session.undo()],
  ["after an epoch", (session) => session.note("n", 2)],
];

test.each([`${folder}/store`, `sqlite:${folder}/store.db`])(
  "a call with a key is recorded once, also over a restart: %s",
  async (url) => {
    let id = "";
    const first = new Map<string, object>();
    {
      await using store = await openStore(url, { durability: "process" });
      await using session = await store.create<unknown>({ dialect: "anthropic" });
      ({ id } = session);
      for (const [key, work] of CALLS) {
        const { repeated, ...place } = await session.once(key, `content of ${key}`, () => work(session));
        expect(repeated, key).toBe(false);
        first.set(key, place);
        expect(await session.once(key, `content of ${key}`, () => expect.unreachable(key))).toEqual({
          ...place,
          repeated: true,
        });
      }
    }
    await using store = await openStore(url, { durability: "process" });
    const records = await Array.fromAsync(store.history(id));
    // The key is in the unit that the call wrote: both survive, or neither.
    expect(records.filter(({ key }) => key !== undefined).map(({ kind }) => kind)).toEqual([
      ...["queue.put", "note", "turn.started", "usage", "message", "tool.started", "tool.ended", "turn.ended"],
      ...[
        "turn.resumed",
        "turn.suspended",
        "turn.resumed",
        "turn.ended",
        "turn.resumed",
        "message",
        "session",
        "queue.take",
        "note",
      ],
    ]);
    for (const [key] of CALLS) {
      expect(await store.once(id, key, `content of ${key}`)).toEqual(first.get(key));
      await expect(store.once(id, key, "something else")).rejects.toMatchObject({ code: "KEY_TAKEN" });
    }
    expect(await store.once(id, "another", "x")).toBe(null);
    await using session = await store.resume(id);
    const head = records.length;
    for (const [key] of CALLS) {
      const again = await session.once(key, `content of ${key}`, () => expect.unreachable(key));
      expect(again).toEqual({ ...first.get(key), repeated: true });
      await expect(session.once(key, "something else", () => expect.unreachable(key))).rejects.toMatchObject({
        code: "KEY_TAKEN",
      });
    }
    expect(await Array.fromAsync(store.history(id))).toHaveLength(head);
  },
);

test("keys survive an epoch; a call that records nothing has its key recorded; one that throws has not", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  await session.once("a", "", () => session.startTurn(prompt));
  await session.once("nothing", "", async () => undefined);
  await session.turn!.end();
  await session.replace([{ role: "user", content: "a summary" }], { reason: "compaction" });
  const { id } = session;
  await session.close();
  await using again = await store.resume(id);
  expect(await again.once("a", "", () => expect.unreachable())).toMatchObject({ repeated: true });
  expect(await again.once("nothing", "", () => expect.unreachable())).toMatchObject({ repeated: true });
  await expect(again.once("bad", "", () => again.dequeue("gone"))).rejects.toMatchObject({ code: "QUEUE_UNKNOWN" });
  expect(await again.once("bad", "", () => again.note("n", 2))).toMatchObject({ repeated: false });
  for (const key of ["", "x".repeat(300), 7 as never])
    await expect(again.once(key, "", () => expect.unreachable())).rejects.toMatchObject({ code: "RECORD_INVALID" });
});

test("hundreds of calls that stream, with keys that repeat, cost what as many others do", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  const calls = Array.from({ length: 300 }, (_, index) =>
    session.once(`k${index % 2}`, "", () => session.note("n", index), { streams: true }),
  );
  expect((await Promise.all(calls)).filter(({ repeated }) => !repeated)).toHaveLength(2);
});

test("of calls with one key at the same time, one is made", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  await session.startTurn(prompt);
  let made = 0;
  const places = await Promise.all(
    Array.from({ length: 20 }, () =>
      session.once("k", "", () => {
        made += 1;
        return session.turn!.usage({ inputTokens: 1 });
      }),
    ),
  );
  expect(made).toBe(1);
  expect(new Set(places.map(({ seq }) => seq)).size).toBe(1);
  expect(places.filter(({ repeated }) => !repeated)).toHaveLength(1);
  expect(session.usage.inputTokens).toBe(1);
});

test("work that rejects after it has recorded something is not called again", async () => {
  for (const url of ["memory:", `${folder}/rejects`]) {
    await using store = await openStore(url);
    await using session = await store.create<unknown>({ dialect: "anthropic" });
    const failed = new Error("lost the connection");
    const late = async (): Promise<void> => {
      // Not waited for: it is still being written when the work rejects.
      void session.note("n", 2);
      throw failed;
    };
    await expect(session.once("late", "", late)).rejects.toBe(failed);
    await expect(
      session.once("k", "", async () => {
        await session.note("n", 1);
        throw failed;
      }),
    ).rejects.toBe(failed);
    for (const key of ["k", "late"]) {
      const again = await session.once(key, "", () => expect.unreachable(key));
      expect(again).toMatchObject({ repeated: true });
      expect(await store.once(session.id, key, "")).toEqual({ seq: again.seq, last: again.last });
    }
    const records = await Array.fromAsync(store.history(session.id));
    expect(records.filter(({ kind }) => kind === "note").map(({ value }) => value)).toEqual([2, 1]);
  }
});

test("what a call writes after it has ended does not take its key", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  const { promise: later, resolve } = Promise.withResolvers<void>();
  let wrote: Promise<void> = Promise.resolve();
  await expect(
    session.once("gone", "", async () => {
      wrote = later.then(() => session.note("late", 1));
      throw new Error("gave up");
    }),
  ).rejects.toThrow("gave up");
  await session.once("other", "", async () => {
    resolve();
    await wrote;
  });
  const records = await Array.fromAsync(store.history(session.id));
  expect(records.filter(({ kind }) => kind === "note").map(({ name, key }) => [name, key?.split(":")[2]])).toEqual([
    ["late", undefined],
    ["once", "other"],
  ]);
});

test("a call inside another of its session is refused: none waits for ever; one of another session has its own key", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  await using other = await store.create<unknown>({ dialect: "anthropic" });
  const left = Promise.withResolvers<void>();
  let later: Promise<unknown> = Promise.resolve();
  const outer = await session.once("outer", "", async () => {
    later = left.promise.then(() => session.once("later", "", () => session.note("later", 1)));
    for (const key of ["outer", "inner"])
      await expect(session.once(key, "", () => expect.unreachable())).rejects.toMatchObject({
        code: "RECORD_INVALID",
        message: expect.stringContaining(`"${key}"`),
      });
    await other.once("outer", "", async () => {
      await expect(session.once("outer", "", () => expect.unreachable())).rejects.toMatchObject({
        code: "RECORD_INVALID",
      });
      await other.note("outer", 1);
    });
    // Its own outcome is not there yet.
    expect(await store.once(session.id, "outer", "")).toBe(null);
  });
  expect(outer.repeated).toBe(false);
  expect(await other.once("outer", "", () => expect.unreachable())).toMatchObject({ repeated: true });
  // What the call has left behind is not inside it any more.
  left.resolve();
  expect(await later).toMatchObject({ repeated: false });
  expect(await session.once("inner", "", () => session.note("inner", 1))).toMatchObject({ repeated: false });
  for (const key of ["outer", "later", "inner"])
    expect(await session.once(key, "", () => expect.unreachable(key))).toMatchObject({ repeated: true });
});

test("a call does not wait for one with another key: a stop ends the tool that is running", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  const turn = await session.startTurn(prompt);
  await turn.append(answer);
  const isRunning = Promise.withResolvers<void>();
  const tool = session.once("tool", "", async () => {
    await turn.toolStarted("c1");
    isRunning.resolve();
    await new Promise((resolve) => turn.signal.addEventListener("abort", resolve, { once: true }));
    await turn.toolEnded("c1", { error: "stopped" });
  });
  await isRunning.promise;
  expect(await session.once("stop", "", () => turn.abort({ by: "test" }))).toMatchObject({ repeated: false });
  expect(await tool).toMatchObject({ repeated: false });
  const records = await Array.fromAsync(store.history(session.id));
  expect(records.filter(({ key }) => key !== undefined).map(({ kind }) => kind)).toEqual([
    "tool.started",
    "turn.ended",
  ]);
});

test("calls that stream are made in order, one after another", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  const turn = await session.startTurn(prompt);
  const { draft } = turn.request();
  const push = (text: string) =>
    session.once(
      text,
      "",
      async () => {
        draft.push({ text });
        await session.flush();
      },
      { streams: true },
    );
  await Promise.all(["one ", "two ", "three "].map(push));
  const drafts = (await Array.fromAsync(store.history(session.id))).filter(({ kind }) => kind === "draft");
  expect(drafts.map(({ key }) => key?.split(":")[2])).toEqual(["one ", "two ", "three "]);
  await turn.abort({ by: "test" });
  expect(session.interruption!.draft!.text).toBe("one two three ");
});

test("other writes of the session never take the key of a call", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  const turn = await session.startTurn(prompt);
  turn.request().draft.push({ text: "streamed" });
  await session.flush();
  // The end of a turn discards its draft first, in a unit of its own; an abort writes the rest of it.
  await session.once("end", "", () => turn.end());
  const next = await session.startTurn({ role: "user", content: "again" });
  next.request().draft.push({ text: "the rest" });
  await session.once("abort", "", () => next.abort({ by: "test" }));
  await Promise.all([session.once("one", "", () => session.note("one", 1)), session.note("other", 2)]);
  const records = await Array.fromAsync(store.history(session.id));
  expect(records.filter(({ kind }) => kind === "draft")).toHaveLength(3);
  const keyed = records.filter(({ key }) => key !== undefined);
  expect(keyed.map(({ kind, name, outcome }) => [kind, name ?? outcome])).toEqual([
    ["turn.ended", "completed"],
    ["turn.ended", "aborted"],
    ["note", "one"],
  ]);
});

test("streamed text: the key is in the record of the text", async () => {
  for (const redact of [undefined, "credentials" as const]) {
    await using store = await openStore("memory:", redact ? { redact } : {});
    await using session = await store.create<unknown>({ dialect: "anthropic" });
    const turn = await session.startTurn(prompt);
    const { draft } = turn.request();
    const push = (key: string, text: string) =>
      session.once(
        key,
        text,
        async () => {
          draft.push({ text });
          await session.flush();
        },
        { streams: true },
      );
    await push("1", "one ");
    await push("2", "two ");
    await push("1", "one ");
    // Could be the start of a secret, so nothing is written yet: the key has a record of its own.
    await push("3", "sk-ant-");
    await push("3", "sk-ant-");
    const records = await Array.fromAsync(store.history(session.id));
    expect(records.filter(({ key }) => key !== undefined)).toHaveLength(3);
    if (!redact) expect(records.filter(({ kind, key }) => kind === "draft" && key !== undefined)).toHaveLength(3);
    await turn.abort({ by: "test" });
    expect(session.interruption!.draft!.text).toMatch(/^one two /);
    expect(session.interruption!.draft!.text.match(/one/g)).toHaveLength(1);
  }
});

test("a session can be created with an id of the caller's: once", async () => {
  expect(idFrom("a")).toBe("ca978112-ca1b-8dca-bac2-31b39a23dc4d");
  await using store = await openStore("memory:");
  const session = await store.create({ dialect: "anthropic", id: idFrom("a") });
  expect(session.id).toBe(idFrom("a"));
  await expect(store.create({ dialect: "anthropic", id: idFrom("a") })).rejects.toMatchObject({
    code: "SESSION_EXISTS",
  });
  for (const id of ["", "a", null as never])
    await expect(store.create({ dialect: "anthropic", id })).rejects.toMatchObject({ code: "ID_INVALID" });
});
