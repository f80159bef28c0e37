import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type Dialect, dialects, isHoldfastError, openStore, type Session, type Store } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { afterEach, describe, expect, test } from "vitest";
import { place } from "../../place.ts";
import { FailingDisk } from "./session-failures-disk.ts";
import { calls, type M, says, user } from "./session-failures-life.ts";

const opened: Disposable[] = [];
const unhandled: unknown[] = [];
process.on("unhandledRejection", (error) => unhandled.push(error));
afterEach(() => {
  for (const one of opened.splice(0)) one[Symbol.dispose]();
  expect(unhandled.splice(0)).toEqual([]);
});

function somewhere(): string {
  const here = place();
  opened.push(here);
  return here.path;
}

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "nothing",
    (error) => (isHoldfastError(error) ? error.code : error),
  );

async function turnIn(
  store: Store,
  options: { cwd?: string; app?: string; parent?: { session: string } } = {},
): Promise<Session<M>> {
  const session = await store.create<M>({ dialect: "anthropic", ...options });
  const turn = await session.startTurn(user("hello"), { id: "p" });
  await turn.append(says("hi"), { id: "m" });
  await turn.end();
  return session;
}

describe("closing a session", () => {
  test("every call after it is SESSION_CLOSED, from the moment on at which it is called", async () => {
    const store = await openStore(somewhere());
    const session = await store.create<M>({ dialect: "anthropic" });
    const turn = await session.startTurn(user("x"), { id: "p" });
    const { draft } = turn.request();
    draft.push({ text: "words" });
    const closing = session.close();
    const before = [
      session.startTurn(user("y")),
      session.resumeTurn(),
      session.sync([user("y")]),
      session.patch("p", { a: 1 }),
      session.edit(["p"], [user("z")], { reason: "r" }),
      session.replace([], { reason: "clear" }),
      session.undo(),
      session.enqueue(user("q")),
      session.dequeue("q"),
      session.note("n", 1),
      session.rename("t"),
      session.flush(),
    ];
    for (const [index, call] of (await Promise.all(before.map(codeOf))).entries())
      expect(call, `${index}`).toBe("SESSION_CLOSED");
    await closing;
    draft.push({ text: "more" });
    await draft.discard();
    const after = [
      session.note("n", 1),
      turn.append(says("x")),
      turn.usage({ inputTokens: 1 }),
      turn.toolStarted("a", { name: "a" }),
      turn.toolEnded("a", { value: 1 }),
    ];
    for (const [index, call] of (await Promise.all(after.map(codeOf))).entries())
      expect(call, `${index}`).toBe("SESSION_CLOSED");
    expect(() => session.flushSync()).toThrowError(expect.objectContaining({ code: "SESSION_CLOSED" }));
    await turn.end();
    await turn[Symbol.asyncDispose]();
    const read = await store.read<M>(session.id);
    expect(read.interruption).toMatchObject({ how: { kind: "aborted", by: "close" }, draft: { text: "words" } });
    expect(read.entries).toHaveLength(1);
    await store.close();
  });

  test("what was called before it is still done", async () => {
    const store = await openStore(somewhere());
    const session = await turnIn(store);
    const replaced = session.replace([user("short")], { reason: "compaction" });
    const started = session.startTurn(user("next"), { id: "n" });
    const closing = session.close();
    await Promise.all([replaced, started, closing]);
    const read = await store.read<M>(session.id);
    expect(read.entries.map(({ message }) => message.content)).toEqual(["short", "next"]);
    expect(read.interruption?.how).toEqual({ kind: "aborted", by: "close" });
    await store.close();
  });

  test("an end that is being written when the session is closed counts, and not the closing", async () => {
    const store = await openStore(somewhere());
    const session = await store.create<M>({ dialect: "anthropic" });
    const turn = await session.startTurn(user("x"));
    await Promise.all([turn.end(), session.close()]);
    expect((await store.read(session.id)).interruption).toBeNull();
    await store.close();
  });

  test("with a full disk: the error is told, the lease is free, and what is there is there", async () => {
    const disk = new FailingDisk("write");
    const path = somewhere();
    const store = await openStoreWith((options) => openFolderStore(path, { ...options, disk: disk.disk }));
    const session = await store.create<M>({ dialect: "anthropic" });
    await session.startTurn(user("x"));
    disk.countdown = 1;
    expect(await codeOf(session.close())).toBe("STORE_FULL");
    expect(await codeOf(session.close()), "a second call answers the first").toBe("STORE_FULL");
    expect(store.live(session.id)).toBeNull();
    const again = await store.resume<M>(session.id);
    expect(again.interruption).toMatchObject({ how: { kind: "killed" }, turn: 1 });
    await store.close();
  });

  test("a draft that could not be written fires the signal, is told by flush, and is written once there is space", async () => {
    for (const how of ["flush", "flushSync"] as const) {
      const disk = new FailingDisk("write");
      const path = somewhere();
      const store = await openStoreWith((options) => openFolderStore(path, { ...options, disk: disk.disk }));
      const session = await store.create<M>({ dialect: "anthropic", draftMs: 60_000 });
      const turn = await session.startTurn(user("x"));
      const { draft } = turn.request();
      draft.push({ text: "Once" });
      await session.flush();
      draft.push({ text: " upon" });
      disk.countdown = 1;
      const failed = how === "flush" ? codeOf(session.flush()) : codeOf((async () => session.flushSync())());
      draft.push({ text: " a time" });
      expect(await failed).toBe("STORE_FULL");
      if (how === "flush") expect(turn.signal.reason).toMatchObject({ code: "STORE_FULL" });
      await turn.abort({ by: "user" });
      expect(session.interruption?.draft).toMatchObject({ text: "Once upon a time", gap: false });
      await store.close();
    }
  });

  test("nothing keeps the process alive once it is closed", async () => {
    const code = `
      import { openStore } from "holdfast";
      const store = await openStore(${JSON.stringify(somewhere())});
      const session = await store.create({ dialect: "anthropic", draftMs: 3_600_000 });
      for (let n = 0; n < 3; n++) {
        const turn = await session.startTurn({ role: "user", content: "x" });
        turn.request().draft.push({ text: "a" });
        turn.request().draft.push({ text: "b" });
        if (n === 0) await turn.append({ role: "assistant", content: "c" });
        if (n === 0) turn.request().draft.push({ text: "d" });
        if (n === 0) await turn.end();
        if (n === 1) await turn.suspend({ reason: "?" });
      }
      await store.close();
    `;
    const run = promisify(execFile)(
      process.execPath,
      ["--conditions=holdfast-source", "--input-type=module", "-e", code],
      {
        cwd: import.meta.dirname,
      },
    );
    expect((await run).stderr).toBe("");
  });
});

describe("the store", () => {
  test("closes all its sessions, and then refuses", async () => {
    const path = somewhere();
    const store = await openStore(path);
    const all = [await turnIn(store), await turnIn(store)];
    await all[0]!.startTurn(user("open"));
    const racing = [store.create({ dialect: "anthropic" }), store.create({ dialect: "anthropic" })];
    const settled = Promise.allSettled(racing);
    const closing = store.close();
    expect(store.close()).toBe(closing);
    await closing;
    for (const one of await settled)
      if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "STORE_CLOSED" });
    const id = all[0]!.id;
    for (const call of [
      store.create({ dialect: "anthropic" }),
      store.resume(id),
      store.read(id),
      store.list(),
      store.has(id),
      store.fork(id),
    ]) {
      expect(await codeOf(call)).toBe("STORE_CLOSED");
    }
    expect(await codeOf(Array.fromAsync(store.search("x")))).toBe("STORE_CLOSED");
    await using again = await openStore(path);
    for (const { id: one } of all) await (await again.resume(one)).close();
  });

  test("DIALECT_UNKNOWN leaves the lease free; an own dialect is given to resume, to openStore, or not at all", async () => {
    const path = somewhere();
    const own = { ...dialects.anthropic, name: "mine" } as unknown as Dialect<M>;
    const store = await openStore(path);
    const session = await store.create<M>({ dialect: own });
    const turn = await session.startTurn(user("a needle"), { id: "p" });
    await turn.end();
    await store.close();
    const other = await openStore(path);
    expect(await codeOf(other.resume(session.id))).toBe("DIALECT_UNKNOWN");
    expect(await codeOf(other.read(session.id))).toBe("DIALECT_UNKNOWN");
    expect(await codeOf(other.fork(session.id))).toBe("DIALECT_UNKNOWN");
    const forked = await other.fork<M>(session.id, { dialect: own });
    expect((await other.read<M>(forked.id)).entries).toHaveLength(1);
    const resumed = await other.resume<M>(session.id, { dialect: own });
    expect(resumed.entries).toHaveLength(1);
    expect(resumed.attributes.dialect).toBe("mine");
    await other.close();
    await using third = await openStore(path, { dialects: [own] });
    expect((await third.read<M>(session.id)).entries).toHaveLength(1);
    expect((await Array.fromAsync(third.search("needle"))).length).toBeGreaterThan(0);
  });

  test("a session that is in use: read, fork and list go on, delete and a second writer do not", async () => {
    const path = somewhere();
    const store = await openStore(path, { app: "mine" });
    const session = await store.create<M>({ dialect: "anthropic" });
    const turn = await session.startTurn(user("go"), { id: "p" });
    await turn.append(calls("a"), { id: "m" });
    await turn.toolStarted("a");
    const read = await store.read<M>(session.id);
    expect(read.interruption).toBeNull();
    expect(read.messages).toEqual(session.messages);
    expect(read.holder).toMatchObject({ pid: process.pid, app: "mine" });
    expect(session.holder).toMatchObject({ pid: process.pid, app: "mine" });
    expect(await codeOf(store.delete(session.id))).toBe("SESSION_BUSY");
    expect(await codeOf(store.resume(session.id))).toBe("SESSION_BUSY");
    const appending = turn.append(user("steer"), { id: "s" });
    const forked = await store.fork<M>(session.id, { title: "a fork" });
    expect(forked.entries.map(({ id }) => id)).toContain("s");
    expect(forked.attributes).toMatchObject({ title: "a fork", forkedFrom: { session: session.id, at: "s" } });
    expect(forked.turn).toBeNull();
    await appending;
    expect((await store.list()).sessions.find(({ id }) => id === session.id)?.status).toBe("running");
    const closing = session.close();
    await (await store.fork<M>(session.id)).close();
    await closing;
    await store.delete(session.id);
    expect(await store.has(session.id)).toBe(false);
    expect(await codeOf(store.has("../../etc/passwd"))).toBe("ID_INVALID");
    await store.close();
  });

  test("resumeLatest takes the latest that nobody uses; sub-sessions are found by their parent", async () => {
    const path = somewhere();
    const cwd = somewhere();
    const store = await openStore(path, { app: "one" });
    const first = await turnIn(store, { cwd });
    const second = await turnIn(store, { cwd });
    const child = await turnIn(store, { cwd, parent: { session: first.id } });
    await first.close();
    await child.close();
    const found = await store.resumeLatest<M>({ cwd });
    expect(found?.id, "the second is in use, and the child works for another").toBe(first.id);
    expect(await store.resumeLatest({ cwd })).toBeNull();
    expect(await store.resumeLatest({ cwd, app: "two" })).toBeNull();
    await found!.close();
    await second.close();
    expect((await store.resumeLatest({ cwd, app: "one" }))?.id, "the one that was written last").toBe(second.id);
    expect((await store.list({ parent: first.id })).sessions.map(({ id }) => id)).toEqual([child.id]);
    expect((await Array.fromAsync(store.search("hello", { parent: first.id }))).map((hit) => hit.session)).toEqual([
      child.id,
    ]);
    expect(await Array.fromAsync(store.search("hello", { limit: 2 }))).toHaveLength(2);
    expect(first.attributes).toMatchObject({ app: "one" });
    await store.close();
  });

  test("HOLDFAST_STORE is meant where no address is given", async () => {
    const path = somewhere();
    const before = process.env["HOLDFAST_STORE"];
    process.env["HOLDFAST_STORE"] = path;
    try {
      await using store = await openStore();
      expect(store.url).toContain(path);
    } finally {
      if (before === undefined) delete process.env["HOLDFAST_STORE"];
      else process.env["HOLDFAST_STORE"] = before;
    }
  });
});
