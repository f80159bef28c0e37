import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type ClaimOptions, type ClaimResult, type Finish, HoldfastError, type Session } from "holdfast";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type Ending, endsNow, type Guarded } from "../../../holdfast/src/session/guarded.ts";
import type { LiveSession } from "../../../holdfast/src/session/session.ts";
import { dropMonths, openStore, type PostgresSessions } from "../../src/index.ts";
import { Network } from "../proxy/network.ts";
import { type Server, startServer } from "../server/server.ts";

let server: Server;
let schemas = 0;
let schema = "";

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());
beforeEach(() => {
  schema = `c${++schemas}`;
});

async function open(options: object = {}): Promise<PostgresSessions> {
  const store = await openStore(server.url, { schema, monthsAhead: 0, connections: 3, ...options });
  onTestFinished(() => store.close().catch(() => undefined));
  return store;
}

/** A worker dies: nothing is closed, and its leases are free. Returns the ids of the sessions that it leaves. */
async function dies(
  count: number,
  options: { readonly labels?: Record<string, string>; readonly app?: string; readonly cwd?: string } = {},
  aheadMs = 0,
): Promise<string[]> {
  const store = await open({ clock: () => Date.now() + aheadMs });
  const sessions: Session<unknown>[] = [];
  for (let n = 0; n < count; n++) {
    const session = await store.create<unknown>({ dialect: "anthropic", ...options });
    await session.startTurn({ role: "user", content: `task ${n}` });
    sessions.push(session);
  }
  await server.query(`UPDATE ${schema}.heads SET owner = NULL, fence = fence + 1 WHERE owner IS NOT NULL`);
  return sessions.map(({ id }) => id);
}

const finish: Finish<unknown> = async (session) => {
  const turn = await session.resumeTurn();
  await turn.append({ role: "assistant", content: [{ type: "text", text: "done" }] }, { end: true });
};

/** Until nothing is due. */
async function all(
  store: PostgresSessions,
  options: ClaimOptions = {},
  how: Finish<unknown> = finish,
): Promise<ClaimResult[]> {
  const results: ClaimResult[] = [];
  for (;;) {
    const result = await store.claimNext(options, how);
    if (!result) return results;
    results.push(result);
  }
}

/** Ids of the sessions on which the fleet has given up. */
async function parked(store: PostgresSessions): Promise<string[]> {
  return (await store.list({ status: "parked" })).sessions.map(({ id }) => id);
}

/** It is due at once, with the tries that it has had. */
async function wake(store: PostgresSessions, id: string): Promise<void> {
  const session = (await store.resume(id)) as LiveSession<unknown>;
  await session.suspendTurn({ reason: "woken", until: Date.now(), attempts: session.attempts });
  await session.close();
}

const YEAR_MS = 365 * 24 * 3600 * 1000;
const BACKOFF = { backoffMs: 20, backoffMaxMs: 40 };

describe("a fleet claims interrupted sessions", () => {
  test("each once, the longest interrupted first, however many workers ask at once", async () => {
    const ids = await dies(12);
    const workers = await Promise.all([1, 2, 3, 4].map(() => open()));
    const results = (await Promise.all(workers.map((worker) => all(worker)))).flat();
    expect(results.map(({ session }) => session).sort()).toEqual([...ids].sort());
    expect(new Set(results.map(({ outcome, tries }) => `${outcome} ${tries}`))).toEqual(new Set(["finished 1"]));
    const { sessions } = await workers[0]!.list();
    expect(new Set(sessions.map(({ status }) => status))).toEqual(new Set(["idle"]));
    const claimed = workers.map((worker) => worker.metrics().counters.claims);
    expect(claimed.reduce((sum, count) => sum + count)).toBe(12);
  });

  test("one whose writer was killed before its row was saved", async () => {
    const [id] = await dies(1);
    // As it is within the first second of a turn.
    await server.query(
      `UPDATE ${schema}.catalogue SET head = 2, closed = false, summary = summary - 'state' || '{"state":"idle","turns":0}'`,
    );
    expect(await all(await open())).toMatchObject([{ session: id, outcome: "finished" }]);
  });

  test("not one that is being written, waits for a person, was aborted or failed on purpose, completed, or has a parent", async () => {
    const store = await open();
    const begun = async (options: object = {}): Promise<Session<unknown>> => {
      const session = await store.create<unknown>({ dialect: "anthropic", ...options });
      await session.startTurn({ role: "user", content: "task" });
      return session;
    };
    const running = await begun();
    const waiting = await begun();
    await waiting.turn!.suspend({ reason: "approval" });
    const aborted = await begun();
    await aborted.turn!.abort({ by: "the user" });
    const failed = await begun();
    await failed.turn!.fail(new Error("no credit"));
    const completed = await begun();
    await completed.turn!.end();
    const child = await begun({ parent: { session: running.id } });
    const shutDown = await begun();
    for (const session of [waiting, aborted, failed, completed, child, shutDown]) await session.close();
    const other = await open();
    expect(await all(other)).toMatchObject([{ session: shutDown.id, outcome: "finished" }]);
    // They were looked at once, and are not opened again until somebody writes to them.
    const third = await open();
    const before = third.metrics().counters.statements;
    expect(await all(third)).toEqual([]);
    expect(third.metrics().counters.statements - before).toBeLessThan(4);
    expect((await running.turn!.append({ role: "assistant", content: "still here" })).seq).toBeGreaterThan(0);
  });

  test("also turns that were ended on purpose, if asked to", async () => {
    const store = await open();
    const session = await store.create<unknown>({ dialect: "anthropic" });
    await (await session.startTurn({ role: "user", content: "task" })).fail(new Error("no credit"));
    await session.close();
    expect(await all(await open(), { ended: true })).toMatchObject([{ session: session.id, outcome: "finished" }]);
  });

  test.each([
    ["", ""],
    [", as the rows of an earlier version do not say it", " - 'ended'"],
  ])(
    "those too after a worker has looked that does not want them%s, and not those that wait or completed",
    async (_, less) => {
      const store = await open();
      const left: Session<unknown>[] = [];
      for (let i = 0; i < 4; i++) {
        left.push(await store.create<unknown>({ dialect: "anthropic" }));
        await left[i]!.startTurn({ role: "user", content: "task" });
      }
      const [failed, aborted, waiting, completed] = left;
      await failed!.turn!.fail(new Error("no credit"));
      await aborted!.turn!.abort({ by: "the user" });
      await waiting!.turn!.suspend({ reason: "approval" });
      await completed!.turn!.end();
      for (const session of left) await session.close();
      await server.query(`UPDATE ${schema}.catalogue SET summary = summary${less}`);
      const other = await open();
      expect(await all(other)).toEqual([]);
      expect((await all(other, { ended: true })).map(({ session }) => session)).toEqual([failed!.id, aborted!.id]);
      expect(await all(other, { ended: true })).toEqual([]);
    },
  );

  test("without opening those that a user has stopped, however many are in front", async () => {
    const store = await open();
    const stopped: string[] = [];
    for (let i = 0; i < 20; i++) {
      const session = await store.create<unknown>({ dialect: "anthropic" });
      await (await session.startTurn({ role: "user", content: "task" })).abort({ by: "the user" });
      await session.close();
      stopped.push(session.id);
    }
    const [last] = await dies(1);
    expect(await store.claimNext({}, finish)).toMatchObject({ session: last, outcome: "finished" });
    // Opening a session raises its fence.
    const opened = await server.query(`SELECT id FROM ${schema}.heads WHERE id = ANY ('{${stopped}}') AND fence > 1`);
    expect(opened).toEqual([]);
  });

  test("without reading what others are writing", async () => {
    const writer = await open();
    for (let i = 0; i < 3; i++) {
      const session = await writer.create<unknown>({ dialect: "anthropic" });
      await session.startTurn({ role: "user", content: "task" });
    }
    const store = await open();
    const before = store.metrics().counters.statements;
    expect(await store.claimNext({}, finish)).toBe(null);
    // Whose rows are behind, and which session is next.
    expect(store.metrics().counters.statements - before).toBe(2);
  });

  test("not one in the trash", async () => {
    const [id] = await dies(1);
    const store = await open();
    await store.delete(id!);
    expect(await store.claimNext({}, finish)).toBe(null);
    await store.restore(id!);
    expect(await store.claimNext({}, finish)).toMatchObject({ session: id, outcome: "finished" });
  });

  test.each([
    ["of another worker", async (): Promise<void> => void (await dies(1, {}, YEAR_MS)), 0],
    ["of their own worker", async (): Promise<void> => undefined, YEAR_MS],
  ])("by age, if the clock %s was a year ahead", async (_, before, aheadMs) => {
    await before();
    await all(await open());
    const [id] = await dies(1, {}, aheadMs);
    const store = await open();
    await expect.poll(() => store.claimNext({ olderThanMs: 20 }, finish)).toMatchObject({ session: id });
  });

  test("up to a day old, also after a clock was a year ahead", async () => {
    await dies(1, {}, YEAR_MS);
    const store = await open();
    await all(store);
    // Lists go on from there, so all of them have a place in the future.
    const [old] = await dies(1, {}, -25 * 3600 * 1000);
    const [young] = await dies(1, {}, -23 * 3600 * 1000);
    expect((await all(store)).map(({ session }) => session)).toEqual([young]);
    expect((await all(store, { youngerThanMs: YEAR_MS })).map(({ session }) => session)).toEqual([old]);
  });

  test("by label, by program and by age", async () => {
    const [orders] = await dies(1, { labels: { queue: "orders", team: "a" } });
    const [mails] = await dies(1, { labels: { queue: "mails" }, app: "mailer" });
    const store = await open();
    const none = async (options: ClaimOptions): Promise<void> => expect(await all(store, options)).toEqual([]);
    await none({ labels: { queue: "orders", team: "b" } });
    await none({ app: "somebody" });
    await none({ olderThanMs: 60_000 });
    await none({ youngerThanMs: 0 });
    expect(await all(store, { app: "mailer" })).toMatchObject([{ session: mails }]);
    expect(await all(store, { labels: { queue: "orders" } })).toMatchObject([{ session: orders }]);
  });

  test("by the folder of its worker", async () => {
    const [id] = await dies(1, { cwd: "/srv/orders" });
    const store = await open();
    expect(await all(store, { cwd: "/srv" })).toEqual([]);
    expect(await all(store, { cwd: "/srv/orders", app: "somebody" })).toEqual([]);
    expect(await all(store, { cwd: "/srv/orders" })).toMatchObject([{ session: id }]);
  });

  test("up to a day old", async () => {
    const [old, young] = await dies(2);
    const store = await open();
    await store.list();
    const aged = (id: string | undefined, seconds: number): Promise<unknown> =>
      server.query(`UPDATE ${schema}.catalogue SET at = $2 WHERE id = $1`, [
        id,
        new Date(Date.now() - seconds * 1000).toISOString(),
      ]);
    await aged(old, 24 * 3600 + 1);
    await aged(young, 24 * 3600 - 60);
    expect((await all(store)).map(({ session }) => session)).toEqual([young]);
  });

  test("none when it is told to stop before it has looked", async () => {
    await dies(1);
    const store = await open();
    const { statements } = store.metrics().counters;
    expect(await store.claimNext({ signal: AbortSignal.abort() }, finish)).toBe(null);
    expect(store.metrics().counters).toMatchObject({ claims: 0, statements });
  });

  test("with the options that sessions are opened with, and what was done is told", async () => {
    const [id] = await dies(1);
    const store = await open({ app: "finisher" });
    const seen: unknown[] = [];
    const how: Finish<unknown> = async (session, claim) => {
      const [held] = await server.query(`SELECT holder ->> 'app' AS app FROM ${schema}.heads WHERE id = $1`, [id]);
      seen.push(held!["app"], claim.tries, claim.signal.aborted);
      await finish(session, claim);
    };
    const result = await store.claimNext({}, how);
    expect(result).toEqual({ session: id, tries: 1, outcome: "finished" });
    expect(seen).toEqual(["finisher", 1, false]);
    // It is closed, and free for anybody.
    expect(await (await open()).resume(id!)).toMatchObject({ id, interruption: null });
  });

  test("nothing older than a day, unless asked to", async () => {
    const [id] = await dies(1);
    const store = await open();
    await store.list();
    await server.query(`UPDATE ${schema}.catalogue SET at = '2020-01-01T00:00:00.000Z'`);
    expect(await all(store)).toEqual([]);
    expect(await all(store, { youngerThanMs: Number.POSITIVE_INFINITY })).toMatchObject([{ session: id }]);
  });
});

describe("a turn that keeps failing", () => {
  test("is tried again after growing pauses, given up, visible, and does not hold up the others", async () => {
    const [poisoned] = await dies(1);
    const others = await dies(3);
    const store = await open();
    const done: string[] = [];
    const order: string[] = [];
    const how: Finish<unknown> = async (session, claim) => {
      order.push(session.id);
      if (session.id === poisoned) throw new Error("the model refuses");
      await finish(session, claim);
      done.push(session.id);
    };
    const results: ClaimResult[] = [];
    while (results.at(-1)?.outcome !== "gave-up") {
      results.push(...(await all(store, { maxTries: 3, ...BACKOFF }, how)));
      await sleep(10);
    }
    expect([...done].sort()).toEqual([...others].sort());
    expect(order.slice(0, 4).sort()).toEqual([poisoned!, ...others].sort());
    const outcomes = results.filter(({ session }) => session === poisoned).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["failed", "failed", "gave-up"]);
    expect((await store.list({ status: "parked" })).sessions).toMatchObject([{ id: poisoned, attempts: 3 }]);
    const why = { kind: "suspended", reason: "the model refuses", parked: 3 };
    expect((await store.read(poisoned!)).interruption?.how).toEqual(why);
    await sleep(100);
    expect(await all(store, BACKOFF)).toEqual([]);
    expect(store.metrics().counters).toMatchObject({ claimsFinished: 3, claimsFailed: 2, claimsGivenUp: 1 });
    expect(await store.retry(poisoned!)).toBe(true);
    expect(await all(store)).toMatchObject([{ session: poisoned, tries: 1, outcome: "finished" }]);
    expect(await store.retry(poisoned!)).toBe(false);
  });

  test("waits twice as long after each try, also if its worker dies, and never longer than the longest pause", async () => {
    const [id] = await dies(1);
    const store = await open();
    const options = { maxTries: 9, backoffMs: 10_000, backoffMaxMs: 25_000 };
    const expectPause = async (seconds: number): Promise<void> => {
      const pauseMs = (await store.nextDue(options))!.getTime() - Date.now();
      expect([pauseMs <= seconds * 1000, pauseMs > (seconds - 5) * 1000]).toEqual([true, true]);
      // Until then it is left alone.
      expect(await store.claimNext(options, finish)).toBe(null);
    };
    for (const seconds of [10, 20, 25, 25]) {
      const result = await store.claimNext(options, () => {
        throw new Error("no");
      });
      expect(result).toMatchObject({ session: id, outcome: "failed" });
      await expectPause(seconds);
      await wake(store, id!);
    }
    const [other] = await dies(1);
    await wake(store, id!);
    await (await store.resume(id!)).resumeTurn().then((turn) => turn.abort({ by: "the user" }));
    await store.live(id!)!.close();
    for (const seconds of [10, 20, 25]) {
      const worker = await open();
      const session = (await worker.resume(other!)) as LiveSession<unknown>;
      await session.claimTurn();
      await server.query(`UPDATE ${schema}.heads SET owner = NULL, fence = fence + 1 WHERE owner IS NOT NULL`);
      await expectPause(seconds);
    }
  });

  test("has five tries, with pauses that begin with two seconds and end with ten minutes", async () => {
    const [id] = await dies(1);
    const store = await open();
    const fails = (): never => {
      throw new Error("no");
    };
    const outcomes: unknown[] = [];
    const pauses: number[] = [];
    for (let tries = 1; tries <= 5; tries++) {
      outcomes.push((await store.claimNext({}, fails))?.outcome);
      const due = await store.nextDue();
      if (due) pauses.push(Math.ceil((due.getTime() - Date.now()) / 1000));
      if (tries < 5) await wake(store, id!);
    }
    expect(outcomes).toEqual(["failed", "failed", "failed", "failed", "gave-up"]);
    expect(pauses.map((seconds, i) => seconds <= 2 ** (i + 1) && seconds > 2 ** i)).toEqual([true, true, true, true]);
    expect(await store.claimNext({}, fails)).toBe(null);
    const session = (await store.resume(id!)) as LiveSession<unknown>;
    await session.suspendTurn({ reason: "woken", until: Date.now(), attempts: 12 });
    await session.close();
    expect(await store.claimNext({ maxTries: 20 }, fails)).toMatchObject({ session: id, tries: 13, outcome: "failed" });
    const pauseMs = (await store.nextDue())!.getTime() - Date.now();
    expect([pauseMs <= 600_000, pauseMs > 590_000]).toEqual([true, true]);
  });

  test("says by whom and why", async () => {
    const store = await open({ app: "finisher" });
    const thrown: [thrown: unknown, words: string][] = [
      [new TypeError("no such tool"), "no such tool"],
      ["plain words", "plain words"],
    ];
    for (const [error, reason] of thrown) {
      const [id] = await dies(1);
      const options = { maxTries: 2, backoffMs: 3_600_000, backoffMaxMs: 3_600_000 };
      const result = await store.claimNext(options, () => {
        throw error;
      });
      expect(result).toMatchObject({ session: id, tries: 1, outcome: "failed", error });
      expect((await store.read(id!)).interruption?.how).toMatchObject({ kind: "suspended", reason });
      const claims = (await Array.fromAsync(store.history(id!))).filter(({ kind }) => kind === "turn.claimed");
      expect(claims).toMatchObject([{ n: 1, worker: `finisher@${hostname()}:${process.pid}` }]);
    }
  });

  test("because it kills its worker is given up too, and says so", async () => {
    const [id] = await dies(1);
    for (let tries = 1; tries <= 2; tries++) {
      const store = await open();
      const claimed = Promise.withResolvers<string>();
      void store
        .claimNext({ maxTries: 2, ...BACKOFF }, (session) => {
          claimed.resolve(session.id);
          return new Promise(() => undefined);
        })
        .catch(() => undefined);
      expect(await claimed.promise).toBe(id);
      await server.query(`UPDATE ${schema}.heads SET owner = NULL, fence = fence + 1`);
      await sleep(50);
    }
    const other = await open();
    expect(await all(other, { maxTries: 2, ...BACKOFF })).toMatchObject([
      { session: id, tries: 2, outcome: "gave-up" },
    ]);
    expect(await parked(other)).toEqual([id]);
  });

  test("because it cannot be opened does not stop the others", async () => {
    const [odd, fine] = await dies(2);
    await server.query(
      `UPDATE ${schema}.lines SET line = replace(line, 'anthropic', 'klingonic') WHERE place = $1 AND line LIKE '%dialect%'`,
      [odd],
    );
    const store = await open();
    const passed: string[] = [];
    const onPassedOver = (id: string, { code }: HoldfastError): void => void passed.push(`${id} ${code}`);
    const results = await all(store, { maxTries: 1, ...BACKOFF, onPassedOver });
    expect(results.map(({ session }) => session)).toEqual([fine]);
    expect(new Set(passed)).toEqual(new Set([`${odd} DIALECT_UNKNOWN`]));
  });

  test("a new turn starts with all its tries", async () => {
    const [id] = await dies(1);
    const store = await open();
    const fails = (): never => {
      throw new Error("no");
    };
    expect(await all(store, { maxTries: 1 }, fails)).toMatchObject([{ outcome: "gave-up" }]);
    const session = await store.resume(id!);
    await session.startTurn({ role: "user", content: "another" });
    await session.close();
    expect(await all(store, { maxTries: 1 })).toMatchObject([{ session: id, tries: 1, outcome: "finished" }]);
  });

  test.each<[string, (session: Session<unknown>) => Promise<unknown>]>([
    ["completes it", (session) => session.resumeTurn().then((turn) => turn.end())],
    ["leaves it to a person", (session) => session.resumeTurn().then((turn) => turn.suspend({ reason: "approval" }))],
    ["starts the next", (session) => session.startTurn({ role: "user", content: "another" })],
    ["aborts it", (session) => session.resumeTurn().then((turn) => turn.abort({ by: "the user" }))],
    ["ends it as failed", (session) => session.resumeTurn().then((turn) => turn.fail(new Error("no credit")))],
  ])("is no longer named when somebody %s without the fleet", async (_, byHand) => {
    const [id] = await dies(1);
    const store = await open();
    const fails = (): never => {
      throw new Error("no");
    };
    expect(await all(store, { maxTries: 1 }, fails)).toMatchObject([{ outcome: "gave-up" }]);
    expect(await parked(store)).toEqual([id]);
    const session = await store.resume(id!);
    await byHand(session);
    expect(await parked(store)).toEqual([]);
    await session.close();
    expect(await parked(store)).toEqual([]);
  });

  test.each<[string, Finish<unknown>]>([
    ["before", () => Promise.reject(new Error("no"))],
    ["after", (session) => session.resumeTurn().then(() => Promise.reject(new Error("no")))],
  ])("is named if it had been ended on purpose, and the function failed %s it resumed the turn", async (_, fails) => {
    const store = await open();
    const session = await store.create<unknown>({ dialect: "anthropic" });
    await (await session.startTurn({ role: "user", content: "task" })).fail(new Error("no credit"));
    await session.close();
    const asked = { ended: true, maxTries: 2, ...BACKOFF };
    expect(await store.claimNext(asked, fails)).toMatchObject({ outcome: "failed" });
    expect((await store.list()).sessions).toMatchObject([{ id: session.id, status: "paused", attempts: 1 }]);
    await expect.poll(() => store.claimNext(asked, fails)).toMatchObject({ outcome: "gave-up" });
    expect(await parked(store)).toEqual([session.id]);
    const byHand = await store.resume(session.id);
    await (await byHand.resumeTurn()).abort({ by: "the user" });
    await byHand.close();
    expect(await parked(store)).toEqual([]);
  });

  test("a server that is away when the session is opened does not count as a try", async () => {
    const [id] = await dies(1);
    const store = await open({ patienceMs: 200 });
    await server.query(`ALTER TABLE ${schema}.segments RENAME TO away`);
    const passed: string[] = [];
    const onPassedOver = (_: string, { code }: HoldfastError): void => void passed.push(code);
    expect(await store.claimNext({ maxTries: 1, backoffMs: 0, onPassedOver }, finish)).toBe(null);
    expect(passed).toEqual(["STORE_IO"]);
    await server.query(`ALTER TABLE ${schema}.away RENAME TO segments`);
    await expect
      .poll(() => store.claimNext({ maxTries: 1 }, finish))
      .toMatchObject({ session: id, tries: 1, outcome: "finished" });
  });

  test.each<[string, Finish<unknown>, ClaimResult["outcome"]]>([
    ["completed", finish, "finished"],
    ["left to a person", async (session) => (await session.resumeTurn()).suspend({ reason: "approval" }), "waiting"],
    ["ended as failed", async (session) => (await session.resumeTurn()).fail(new Error("no credit")), "ended"],
    ["aborted", async (session) => (await session.resumeTurn()).abort({ by: "the user" }), "ended"],
  ])("a turn that the function has %s is not claimed again", async (_, how, outcome) => {
    const [id] = await dies(1);
    const store = await open();
    expect(await all(store, {}, how)).toMatchObject([{ session: id, tries: 1, outcome }]);
    expect(await store.nextDue()).toBe(null);
  });

  test("a turn cut off by a signal is claimed; one that an uncaught error ended only if asked to", async () => {
    const left: string[] = [];
    for (const ending of [{ signal: "SIGTERM" }, { signal: "uncaughtException", error: "TypeError: no" }] as Ending[]) {
      const session = await (await open()).create<unknown>({ dialect: "anthropic" });
      await session.startTurn({ role: "user", content: "task" });
      await (session as unknown as Guarded)[endsNow](ending);
      left.push(session.id);
    }
    await server.query(`UPDATE ${schema}.heads SET owner = NULL, fence = fence + 1`);
    const store = await open();
    expect((await all(store)).map(({ session }) => session)).toEqual(left.slice(0, 1));
    expect((await all(store, { ended: true })).map(({ session }) => session)).toEqual(left.slice(1));
  });

  test("a failure of the store is given back, and is no try", async () => {
    const [id] = await dies(1);
    const store = await open();
    const fails = (): never => {
      throw new HoldfastError("STORE_FULL", "The disk is full.", {});
    };
    const options = { maxTries: 1, backoffMs: 60_000 };
    expect(await all(store, options, fails)).toMatchObject([{ session: id, outcome: "given-back" }]);
    // After a pause.
    expect(await store.claimNext(options, finish)).toBe(null);
    await wake(store, id!);
    expect(await all(store, options)).toMatchObject([{ session: id, tries: 1, outcome: "finished" }]);
  });

  test.each<[string, (id: string, store: PostgresSessions) => Promise<unknown>, object[]]>([
    ["takes", (id, store) => store.resume(id), [{ status: "interrupted" }]],
    ["deletes", (id, store) => store.delete(id), []],
  ])("a session that somebody %s before it can be opened is no try", async (_, before, left) => {
    const [id] = await dies(1);
    const network = await Network.open(server.port);
    onTestFinished(() => network.close());
    const store = await openStore(network.through(server.url), { schema, monthsAhead: 0, directUrl: server.url });
    onTestFinished(() => store.close());
    const taking = network.holdStatement("SET owner = $2, fence = h.fence + 1");
    const claiming = store.claimNext({ backoffMs: 60_000 }, finish);
    await taking.held;
    await before(id!, await open());
    await taking.goOn();
    expect(await claiming).toBe(null);
    const { sessions } = await store.list();
    expect(sessions.map(({ status, attempts }) => ({ status, attempts }))).toEqual(left);
  });

  test("a function that returns too early has failed", async () => {
    await dies(1);
    const store = await open();
    const result = await store.claimNext({}, async (session) => void (await session.resumeTurn()));
    expect(result).toMatchObject({
      outcome: "failed",
      error: { message: expect.stringContaining("before the turn was over") },
    });
  });
});

describe("a number that means nothing is refused", () => {
  const refused = (member: string): object => ({
    code: "QUERY_INVALID",
    facts: { member },
    message: expect.stringMatching(`"${member}".*Nothing was touched`),
  });
  const odd = [Number.NaN, -1, "1", null];

  test.each([
    ["concurrency", [...odd, 0, 1.5]],
    ["pollMs", [...odd, Number.POSITIVE_INFINITY, 2 ** 31]],
  ])("by a worker: %s", async (member, values) => {
    const store = await open();
    const { signal } = new AbortController();
    for (const value of values)
      await expect(store.work({ signal, [member]: value }, finish), String(value)).rejects.toMatchObject(
        refused(member),
      );
  });

  test.each([
    ["maxTries", [...odd, 0, 1.5, Number.POSITIVE_INFINITY]],
    ["backoffMs", [...odd, Number.POSITIVE_INFINITY]],
    ["backoffMaxMs", [...odd, Number.POSITIVE_INFINITY]],
    ["olderThanMs", [...odd, Number.POSITIVE_INFINITY]],
    ["youngerThanMs", [...odd, Number.MAX_VALUE]],
  ])("by a claim: %s", async (member, values) => {
    const store = await open();
    const { signal } = new AbortController();
    for (const value of values) {
      await expect(store.claimNext({ [member]: value }, finish), String(value)).rejects.toMatchObject(refused(member));
      await expect(store.work({ signal, [member]: value }, finish)).rejects.toMatchObject(refused(member));
    }
  });

  test.each([
    ["leaseMs", [...odd, 0, Number.POSITIVE_INFINITY, 2 ** 31]],
    ["patienceMs", [...odd, Number.POSITIVE_INFINITY]],
    ["answerMs", [...odd, 0, Number.POSITIVE_INFINITY]],
    ["connections", [...odd, 0, 1.5, Number.POSITIVE_INFINITY]],
    ["monthsAhead", [...odd, 1.5, 121]],
    ["upkeepMs", [...odd, Number.POSITIVE_INFINITY]],
  ])("by the store: %s", async (member, values) => {
    for (const value of values)
      await expect(open({ [member]: value }), String(value)).rejects.toMatchObject(refused(member));
  });

  test.each([
    ["olderThanMs", [...odd, undefined, Number.POSITIVE_INFINITY]],
    ["graceMs", [Number.NaN, "1", null, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
    ["waitMs", [...odd, Number.POSITIVE_INFINITY]],
  ])("by `dropMonths`, which drops nothing: %s", async (member, values) => {
    await open();
    const months = (): Promise<unknown[]> =>
      server.query(`SELECT inhrelid FROM pg_inherits WHERE inhparent = '${schema}.lines'::regclass`);
    const before = await months();
    for (const value of values)
      await expect(
        dropMonths(server.url, { schema, olderThanMs: YEAR_MS, [member]: value } as never),
        String(value),
      ).rejects.toMatchObject(refused(member));
    expect(await months()).toEqual(before);
  });

  test("what means something is not: the least, and without end", async () => {
    const [id] = await dies(1);
    const store = await open({ patienceMs: 0, upkeepMs: 0, monthsAhead: 0, connections: 1 });
    const least = { olderThanMs: 0, backoffMs: 0, backoffMaxMs: 0, maxTries: 1 };
    const endless = { concurrency: Number.POSITIVE_INFINITY, youngerThanMs: Number.POSITIVE_INFINITY };
    const stop = new AbortController();
    const results: ClaimResult[] = [];
    const onResult = (one: ClaimResult): void => {
      results.push(one);
      stop.abort();
    };
    await store.work({ ...least, ...endless, pollMs: 0, signal: stop.signal, onResult }, finish);
    expect(results).toMatchObject([{ session: id, outcome: "finished" }]);
  });
});

describe("a worker", () => {
  test("works on several sessions at once, and stops when it is told to, without counting that as a try", async () => {
    const ids = await dies(4);
    const store = await open({ connections: 6 });
    const stop = new AbortController();
    let running = 0;
    let most = 0;
    const results: ClaimResult[] = [];
    const how: Finish<unknown> = async (session, { signal }) => {
      running++;
      most = Math.max(most, running);
      if (most === 3) stop.abort();
      const turn = await session.resumeTurn();
      // Longer than any test runs: it ends when it is stopped.
      await sleep(600_000, undefined, { signal }).catch(() => undefined);
      running--;
      if (signal.aborted) throw new Error("stopped");
      await turn.end();
    };
    const options = {
      signal: stop.signal,
      concurrency: 3,
      pollMs: 20,
      onResult: (one: ClaimResult) => results.push(one),
    };
    await store.work(options, how);
    expect([most, running]).toEqual([3, 0]);
    expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(["given-back"]));
    const again = await all(await open());
    expect(again.map(({ session, tries }) => `${session} ${tries}`).sort()).toEqual(ids.map((id) => `${id} 1`).sort());
  });

  test("works on one session at a time, unless it is told otherwise", async () => {
    await dies(3);
    const store = await open();
    const stop = new AbortController();
    let running = 0;
    const seen: number[] = [];
    const how: Finish<unknown> = async (session, claim) => {
      seen.push(++running);
      await finish(session, claim);
      // Time for another one, if there were any.
      await all(store, { labels: { queue: "none" } });
      running--;
    };
    const onResult = (): void => {
      if (seen.length === 3) stop.abort();
    };
    await store.work({ signal: stop.signal, pollMs: 10, onResult }, how);
    expect([seen, running]).toEqual([[1, 1, 1], 0]);
  });

  test("ends when it is told to, while it waits to look again", async () => {
    const store = await open();
    const stop = new AbortController();
    const { statements } = store.metrics().counters;
    const working = store.work({ signal: stop.signal, pollMs: 600_000 }, finish);
    await expect.poll(() => store.metrics().counters.statements - statements).toBeGreaterThanOrEqual(2);
    stop.abort();
    await working;
  });

  test("that finds nothing looks again, and finds what is interrupted later", async () => {
    const store = await open();
    const stop = new AbortController();
    const found: ClaimResult[] = [];
    const onResult = (one: ClaimResult): void => {
      found.push(one);
      stop.abort();
    };
    const working = store.work({ signal: stop.signal, pollMs: 30, onResult }, finish);
    const [id] = await dies(1);
    await working;
    expect(found).toMatchObject([{ session: id, outcome: "finished" }]);
  });

  test("goes on after the server was away, and says so", async () => {
    await dies(1);
    const store = await open({ patienceMs: 200 });
    const stop = new AbortController();
    const errors: unknown[] = [];
    const found: ClaimResult[] = [];
    const options = {
      signal: stop.signal,
      pollMs: 20,
      onError: (error: unknown) => errors.push(error),
      onResult: (one: ClaimResult) => {
        found.push(one);
        stop.abort();
      },
    };
    await server.query(`ALTER TABLE ${schema}.catalogue RENAME TO away`);
    const working = store.work(options, finish);
    await expect.poll(() => errors.length).toBeGreaterThan(1);
    expect(errors[0]).toMatchObject({ code: "STORE_IO" });
    await server.query(`ALTER TABLE ${schema}.away RENAME TO catalogue`);
    await working;
    expect(found).toMatchObject([{ outcome: "finished" }]);
  });

  test("ends with the store", async () => {
    const store = await open();
    const errors: unknown[] = [];
    const onError = (error: unknown): void => void errors.push(error);
    const { signal } = new AbortController();
    const working = store.work({ signal, pollMs: 10, onError }, finish);
    await Promise.all([store.close(), expect(working).rejects.toMatchObject({ code: "STORE_CLOSED" })]);
    expect(errors).toEqual([]);
  });

  test("ends with the error of a program that misuses it", async () => {
    await dies(1);
    const store = await open();
    const onResult = (): never => {
      throw new TypeError("not a function");
    };
    await expect(store.work({ signal: new AbortController().signal, onResult }, finish)).rejects.toThrow(TypeError);
  });
});
