import { HoldfastError, isHoldfastError, openStore, type Session, type Store } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { afterEach, describe, expect, test } from "vitest";
import { endsNow, type Guarded } from "../../../../src/session/guarded.ts";
import type { LiveSession } from "../../../../src/session/session.ts";
import { place } from "../../../place.ts";
import { openLaterStore } from "../session-async-store-later.ts";
import { FailingDisk } from "../session-failures-disk.ts";
import { calls, type M, says, user } from "../session-failures-life.ts";

const opened: Disposable[] = [];
const unhandled: unknown[] = [];
process.on("unhandledRejection", (error) => unhandled.push(error));
afterEach(() => {
  for (const one of opened.splice(0)) one[Symbol.dispose]();
  expect(unhandled.splice(0)).toEqual([]);
});

const HOUR_MS = 3_600_000;
const IN_TIME = { handOver: true, withinMs: HOUR_MS };
const AT_ONCE = { handOver: true, withinMs: 0 };

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "nothing",
    (error) => (isHoldfastError(error) ? error.code : error),
  );

const codeThrown = (run: () => unknown): unknown => {
  try {
    run();
    return "nothing";
  } catch (error) {
    return (error as HoldfastError).code;
  }
};

async function open(recordsToolStarts = true): Promise<Store> {
  const here = place();
  opened.push(here);
  return openStore(here.path, { recordsToolStarts });
}

async function begun(store: Store): Promise<Session<M>> {
  const session = await store.create<M>({ dialect: "anthropic" });
  await session.startTurn(user("x"), { id: "p" });
  return session;
}

describe("closing a session with handOver", () => {
  test("hands the turn over at once if nothing is under way, and the next one continues it without a word of it", async () => {
    const store = await open();
    const session = await begun(store);
    const turn = session.turn!;
    await turn.request().draft.commit(calls("a", "b"));
    await turn.tool("a", () => "done");
    await session.close(IN_TIME);
    expect(turn.signal.aborted).toBe(true);
    expect(turn.signal.reason).toMatchObject({ code: "TURN_HANDED_OVER" });
    expect((await store.list()).sessions).toMatchObject([{ status: "paused", wakeAt: expect.any(String) }]);

    const next = await store.resume<M>(session.id);
    expect(next.interruption).toMatchObject({ how: { kind: "handed-over" }, attempts: 0, resumes: 0, answered: false });
    const continued = await next.resumeTurn({ calls: "rerun" });
    expect(continued.open).toMatchObject([{ id: "b", state: "never-started" }]);
    await continued.tool("b", () => "done too");
    const { messages, draft } = continued.request();
    expect(messages).toHaveLength(3);
    expect(JSON.stringify(messages)).not.toMatch(/restart|interrupt|cut off/);
    await draft.commit(says("all done"), { end: true });
    await store.close();
  });

  test("from the call on nothing begins, and what is under way is recorded", async () => {
    const store = await open();
    const session = await begun(store);
    const turn = session.turn!;
    await turn.append(calls("a", "b"));
    const tool = Promise.withResolvers<string>();
    const running = turn.tool("a", () => tool.promise);
    const { draft } = turn.request();
    draft.push({ text: "words" });
    const closing = session.close(IN_TIME);
    expect(turn.handOver.aborted).toBe(true);
    expect(turn.signal.aborted).toBe(false);
    expect(codeThrown(() => turn.request())).toBe("TURN_HANDED_OVER");
    expect(await codeOf(turn.tool("b", () => "never"))).toBe("TURN_HANDED_OVER");
    expect(await codeOf(turn.toolStarted("b"))).toBe("TURN_HANDED_OVER");
    expect(codeThrown(() => draft.restart())).toBe("TURN_HANDED_OVER");
    for (const one of [session.startTurn(user("y")), session.resumeTurn(), session.settleCalls({})])
      expect(await codeOf(one)).toBe("SESSION_CLOSED");
    // These record what the turn has done so far.
    await session.note("n", 1);
    await session.patch("p", { seen: true });
    await turn.usage({ inputTokens: 1 });
    tool.resolve("the result");
    expect(await running).toEqual({ value: "the result" });
    await closing;
    expect(await codeOf(turn.usage({ inputTokens: 1 }))).toBe("TURN_HANDED_OVER");
    expect(await codeOf(turn.append(says("x")))).toBe("TURN_HANDED_OVER");
    expect(await codeOf(session.note("n", 1))).toBe("SESSION_CLOSED");
    const read = await store.read<M>(session.id);
    expect(read.interruption).toMatchObject({
      how: { kind: "handed-over" },
      calls: [{ id: "b", state: "never-started" }],
    });
    expect(JSON.stringify(read.entries)).toContain("the result");
    await store.close();
  });

  test("waits for the answer that is streaming", async () => {
    const store = await open();
    const session = await begun(store);
    const { draft } = session.turn!.request();
    draft.push({ text: "half" });
    let isClosed = false;
    const closing = session.close(IN_TIME).then(() => (isClosed = true));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isClosed).toBe(false);
    await draft.commit(says("half and half"), { end: true });
    await closing;
    expect((await store.read(session.id)).interruption).toBeNull();
    await store.close();
  });

  test("an answer that is ended in a call of its own ends the turn", async () => {
    const store = await open();
    const session = await begun(store);
    const turn = session.turn!;
    const { draft } = turn.request();
    const closing = session.close(IN_TIME);
    await draft.commit(says("done"));
    await turn.end();
    await closing;
    expect((await store.read(session.id)).interruption).toBeNull();
    await store.close();
  });

  test("when the time is up, the text so far is kept, and of a tool that runs only its start is known", async () => {
    const store = await open();
    const session = await begun(store);
    const turn = session.turn!;
    await turn.append(calls("a"));
    let aborted: unknown = null;
    const started = Promise.withResolvers<void>();
    const running = turn.tool("a", (signal) => {
      started.resolve();
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          aborted = signal.reason;
          reject(signal.reason);
        });
      });
    });
    const ended = codeOf(running);
    await started.promise;
    turn.request().draft.push({ text: "so far" });
    await session.close(AT_ONCE);
    expect(aborted).toMatchObject({ code: "TURN_HANDED_OVER" });
    expect(await ended).toBe("TURN_HANDED_OVER");
    const next = await store.resume<M>(session.id);
    expect(next.interruption).toMatchObject({
      how: { kind: "handed-over" },
      draft: { text: "so far" },
      calls: [{ id: "a", state: "outcome-unknown" }],
    });
    const continued = await next.resumeTurn({ calls: "rerun" });
    expect(continued.open, "what may have taken effect does not run again").toEqual([]);
    expect(JSON.stringify(continued.request().messages)).toContain("outcome unknown");
    await store.close();
  });

  test("a loop that fails with what it was refused, or leaves its scope, has not failed", async () => {
    const store = await open();
    for (const react of ["fail", "fail in other words", "dispose"] as const) {
      const session = await begun(store);
      const turn = session.turn!;
      turn.request().draft.push({ text: "the model broke off here" });
      const closing = session.close(IN_TIME);
      if (react === "dispose") await turn[Symbol.asyncDispose]();
      else {
        const error = await (async () => turn.request())().catch((error: unknown) => error);
        await turn.fail(react === "fail" ? error : new Error("the agent failed", { cause: error }));
      }
      await closing;
      expect((await store.read(session.id)).interruption, react).toMatchObject({
        how: { kind: "handed-over" },
        draft: { text: "the model broke off here" },
      });
    }
    await store.close();
  });

  test("a real failure, an abort and a suspension meanwhile count, and not the hand-over", async () => {
    const store = await open();
    const hows = [
      ["fail", { kind: "failed", error: "overloaded" }],
      ["abort", { kind: "aborted", by: "the user" }],
      ["suspend", { kind: "suspended", reason: "may I?" }],
    ] as const;
    for (const [act, how] of hows) {
      const session = await begun(store);
      const turn = session.turn!;
      turn.request();
      const closing = session.close(IN_TIME);
      if (act === "fail") await turn.fail(new Error("overloaded"));
      if (act === "abort") await turn.abort({ by: "the user" });
      if (act === "suspend") await turn.suspend({ reason: "may I?" });
      await closing;
      expect((await store.read(session.id)).interruption?.how, act).toEqual(how);
    }
    await store.close();
  });

  test("a turn that waits stays waiting, and a session without a turn is closed", async () => {
    const store = await open();
    const waiting = await begun(store);
    await waiting.turn!.append(calls("a"));
    await waiting.turn!.suspend({ reason: "may I?", calls: ["a"] });
    await waiting.close(IN_TIME);
    const idle = await store.create<M>({ dialect: "anthropic" });
    await idle.close(IN_TIME);
    expect((await store.read(waiting.id)).state).toBe("waiting");
    expect((await store.read(idle.id)).state).toBe("idle");
    await store.close();
  });

  test("a tool whose own session is handed over has no outcome", async () => {
    const store = await open();
    const session = await begun(store);
    const turn = session.turn!;
    await turn.append(calls("a"));
    const child = (await begun(store)).turn!;
    const leaves = Promise.withResolvers<void>();
    const running = turn.tool("a", async () => {
      await leaves.promise;
      child.request();
    });
    const ended = codeOf(running);
    const closing = store.close(IN_TIME);
    leaves.resolve();
    expect(await ended).toBe("TURN_HANDED_OVER");
    await closing;
  });

  test("nor has one whose start and end are recorded alone; without a hand-over, that error is an outcome", async () => {
    const store = await open();
    const session = await begun(store);
    const turn = session.turn!;
    await turn.append(calls("a", "b"));
    for (const id of ["a", "b"]) await turn.toolStarted(id, { replay: "safe" });
    const refused = new HoldfastError("TURN_HANDED_OVER", "the child's turn is handed over", {});
    await turn.toolEnded("a", { error: refused });
    const closing = session.close(IN_TIME);
    await turn.toolEnded("b", { error: refused });
    expect(await codeOf(turn.toolEnded("b", { error: refused }))).toBe("CALL_UNKNOWN");
    await closing;
    const { interruption } = await store.read(session.id);
    expect(interruption).toMatchObject({
      how: { kind: "handed-over" },
      calls: [{ id: "b", state: "outcome-unknown" }],
    });
    await store.close();
  });

  test("twice, with and without: the first call decides", async () => {
    const store = await open();
    const session = await begun(store);
    const closing = session.close(AT_ONCE);
    expect(session.close()).toBe(closing);
    await closing;
    const again = await store.resume<M>(session.id);
    await again.resumeTurn();
    const aborting = again.close();
    expect(again.close(IN_TIME)).toBe(aborting);
    await aborting;
    expect((await store.read(session.id)).interruption?.how).toEqual({ kind: "aborted", by: "close" });
    await store.close();
  });

  test("a turn that was being started is recorded and handed over; one that comes later is refused", async () => {
    const store = await open();
    const session = await store.create<M>({ dialect: "anthropic" });
    const starting = session.startTurn(user("x"));
    const closing = session.close(IN_TIME);
    const turn = await starting;
    expect(codeThrown(() => turn.request())).toBe("TURN_HANDED_OVER");
    await closing;
    expect((await store.read(session.id)).interruption?.how.kind).toBe("handed-over");
    await store.close();
  });

  test("options that mean nothing close nothing", async () => {
    const store = await open();
    const session = await begun(store);
    for (const options of [{ withinMs: -1 }, { withinMs: Number.NaN }, { handOver: "yes" as unknown as boolean }]) {
      expect(await codeOf(session.close(options))).toBe("RECORD_INVALID");
      expect(await codeOf(store.close(options))).toBe("RECORD_INVALID");
    }
    await session.note("n", 1);
    await store.close();
  });

  test("the store hands over all its sessions; a recorder is closed as ever", async () => {
    const store = await open();
    const { url } = store;
    const sessions = [await begun(store), await begun(store)];
    const recorder = await store.record<M>({ dialect: "anthropic" });
    await recorder.startTurn(user("x"));
    const closing = store.close(IN_TIME);
    expect(await codeOf(store.create({ dialect: "anthropic" }))).toBe("STORE_CLOSED");
    await closing;
    await using again = await openStore(url);
    for (const { id } of sessions) expect((await again.read(id)).interruption?.how.kind).toBe("handed-over");
    expect((await again.read(recorder.id)).interruption?.how).toEqual({ kind: "aborted", by: "close" });
  });

  test("a signal that a guard records first, or meanwhile, does not make it an interruption", async () => {
    const store = await open();
    for (const isFirst of [true, false]) {
      const session = await begun(store);
      const { draft } = session.turn!.request();
      const tell = (): void => void (session as unknown as Guarded)[endsNow]({ signal: "SIGTERM" });
      if (isFirst) tell();
      const closing = session.close(IN_TIME);
      if (!isFirst) tell();
      await draft.discard();
      await closing;
      expect((await store.read(session.id)).interruption?.how).toEqual({ kind: "handed-over" });
    }
    await store.close();
  });

  test("with a full disk, the error is told and the lease is free", async () => {
    const disk = new FailingDisk("write");
    const here = place();
    opened.push(here);
    const store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk: disk.disk }));
    const session = await begun(store);
    disk.countdown = 1;
    expect(await codeOf(session.close(IN_TIME))).toBe("STORE_FULL");
    const again = await store.resume<M>(session.id);
    expect(again.interruption).toMatchObject({ how: { kind: "killed" }, turn: 1 });
    await store.close();
  });

  test("a store that fails ends the waiting", async () => {
    const disk = new FailingDisk("sync");
    const here = place();
    opened.push(here);
    const store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk: disk.disk }));
    const session = await begun(store);
    const { draft } = session.turn!.request();
    const closing = codeOf(session.close(IN_TIME));
    disk.countdown = 1;
    expect(await codeOf(draft.commit(says("done")))).toBe("SYNC_FAILED");
    await closing;
    await store.close().catch(() => {});
  });

  test("a tool whose start was being recorded when the time was up does not run", async () => {
    const gate = Promise.withResolvers<void>();
    let isSlow = false;
    const wait = (): Promise<void> => (isSlow ? gate.promise : Promise.resolve());
    await using store = await openStoreWith((options) => openLaterStore(options, wait), { recordsToolStarts: true });
    const session = await begun(store);
    await session.turn!.append(calls("a"));
    isSlow = true;
    let runs = 0;
    const running = codeOf(session.turn!.tool("a", () => ++runs));
    const closing = session.close({ handOver: true, withinMs: 1 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    gate.resolve();
    await closing;
    expect(await running).toBe("TURN_HANDED_OVER");
    expect(runs).toBe(0);
  });

  test("a program that records no starts may be running any call: its result is waited for", async () => {
    const store = await open(false);
    const session = await begun(store);
    const turn = session.turn!;
    await turn.append(calls("a"));
    const closing = session.close(IN_TIME);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await turn.append({ role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "done" }] } as M);
    await closing;
    expect((await store.read(session.id)).interruption).toMatchObject({ how: { kind: "handed-over" }, calls: [] });
    await store.close();
  });

  test("tries before it still count, and its own does not", async () => {
    const store = await open();
    const session = await begun(store);
    await session.close();
    for (const n of [1, 2]) {
      const next = (await store.resume<M>(session.id)) as LiveSession<M>;
      expect(await next.claimTurn("w")).toBe(n);
      await next.suspendTurn({ reason: "the model is away", until: new Date(), attempts: n });
      await next.close();
    }
    for (const _ of [1, 2, 3]) {
      const next = await store.resume<M>(session.id);
      await next.resumeTurn();
      await next.close(IN_TIME);
      expect((await store.read(session.id)).interruption).toMatchObject({ how: { kind: "handed-over" }, attempts: 2 });
    }
    await store.close();
  });
});
