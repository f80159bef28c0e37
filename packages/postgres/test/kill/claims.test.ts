import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "holdfast";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type ClaimOptions, type ClaimResult, type Finish, openStore, type PostgresSessions } from "../../src/index.ts";
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
  options: { readonly labels?: Record<string, string>; readonly app?: string } = {},
): Promise<string[]> {
  const store = await open();
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
    expect(await server.query(`SELECT * FROM ${schema}.claims`)).toEqual([]);
    expect(await workers[0]!.failedClaims()).toEqual([]);
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
    const before = other.metrics().counters.statements;
    expect(await all(other)).toEqual([]);
    expect(other.metrics().counters.statements - before).toBeLessThan(4);
    expect(await other.failedClaims()).toEqual([]);
    const ended = await all(other, { ended: true });
    expect(ended).toEqual([]);
    expect((await running.turn!.append({ role: "assistant", content: "still here" })).seq).toBeGreaterThan(0);
  });

  test("also turns that were ended on purpose, if asked to", async () => {
    const store = await open();
    const session = await store.create<unknown>({ dialect: "anthropic" });
    await (await session.startTurn({ role: "user", content: "task" })).fail(new Error("no credit"));
    await session.close();
    expect(await all(await open(), { ended: true })).toMatchObject([{ session: session.id, outcome: "finished" }]);
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
    const shown = { id: poisoned, tries: 3, dueAt: null, error: "Error: the model refuses" };
    expect(await store.failedClaims()).toMatchObject([{ ...shown, claimedBy: { pid: process.pid } }]);
    await sleep(100);
    expect(await all(store, BACKOFF)).toEqual([]);
    expect(store.metrics().counters).toMatchObject({ claimsFinished: 3, claimsFailed: 2, claimsGivenUp: 1 });
    expect(await store.retryClaim(poisoned!)).toBe(true);
    expect(await all(store)).toMatchObject([{ session: poisoned, tries: 1, outcome: "finished" }]);
    expect(await store.retryClaim(poisoned!)).toBe(false);
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
    expect(await all(other, { maxTries: 2, ...BACKOFF })).toEqual([]);
    expect(await other.failedClaims()).toMatchObject([{ id, tries: 2, dueAt: null, error: null }]);
  });

  test("because it cannot be opened does not stop the others", async () => {
    const [odd, fine] = await dies(2);
    await server.query(
      `UPDATE ${schema}.lines SET line = replace(line, 'anthropic', 'klingonic') WHERE place = $1 AND line LIKE '%dialect%'`,
      [odd],
    );
    const store = await open();
    expect((await all(store, { maxTries: 1, ...BACKOFF })).map(({ session }) => session)).toEqual([fine]);
    const [failure] = await store.failedClaims();
    expect(failure).toMatchObject({ id: odd, tries: 1, dueAt: null });
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
    await server.query(`ALTER TABLE ${schema}.claims RENAME TO away`);
    const working = store.work(options, finish);
    await expect.poll(() => errors.length).toBeGreaterThan(1);
    expect(errors[0]).toMatchObject({ code: "STORE_IO" });
    await server.query(`ALTER TABLE ${schema}.away RENAME TO claims`);
    await working;
    expect(found).toMatchObject([{ outcome: "finished" }]);
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
