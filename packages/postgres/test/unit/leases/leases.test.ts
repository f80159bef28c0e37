import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { HoldfastError, newId } from "holdfast";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { Database } from "../../../src/connection/database.ts";
import { displayName } from "../../../src/connection/pools.ts";
import { openPostgresStore } from "../../../src/index.ts";
import { holderOf, Leases, lockKey, lockOf, newHolder } from "../../../src/leases/leases.ts";
import { freePort, type Server, startServer } from "../../server/server.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
  await (await openPostgresStore(server.url, { schema: "leases", monthsAhead: 0 })).close();
});
afterAll(() => server.stop());

function databaseAt(connectionString: string): Database {
  const pool = new pg.Pool({ connectionString, connectionTimeoutMillis: 5000, max: 2 });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  return new Database(pool, { name: "here", schema: "leases", patienceMs: 500, answerMs: 5000 });
}

/** A worker. Its heartbeats come so seldom that none of them matters, unless it is told otherwise. */
function worker(leaseMs = 600_000, beats?: Database): Leases {
  const database = databaseAt(server.url);
  const leases = new Leases(database, beats ?? database, randomUUID(), leaseMs);
  onTestFinished(() => leases.close());
  return leases;
}

/** A session that nobody has. */
async function session(): Promise<string> {
  await using store = await openPostgresStore(server.url, { schema: "leases", monthsAhead: 0 });
  const journal = await store.create(newId(), [{ kind: "note" }]);
  await journal.close();
  return journal.id;
}

async function head(id: string): Promise<Record<string, unknown>> {
  return (await server.query("SELECT * FROM leases.heads WHERE id = $1", [id]))[0]!;
}

/** What others know of a worker. */
async function known({ owner }: Leases): Promise<{ readonly watched: unknown; readonly leftMs: number } | null> {
  const [row] = await server.query(
    "SELECT watched, extract(epoch FROM expires - now())::float8 * 1000 AS left FROM leases.workers WHERE owner = $1",
    [owner],
  );
  return row ? { watched: row["watched"], leftMs: Number(row["left"]) } : null;
}

test.each([
  "00000000-0000-4000-8000-000000000000",
  "ffffffff-ffff-4fff-bfff-ffffffffffff",
  "0198c0de-1234-7abc-7fff-0123456789ab",
])("the server and the worker lock the same number for %s", async (owner) => {
  const [row] = await server.query(`SELECT ${lockOf("$1::uuid")} AS lock`, [owner]);
  expect(String(lockKey(owner))).toBe(row!["lock"]);
});

test("a holder is what is known of it", () => {
  expect(newHolder("a\0b\ud800", 0)).toEqual({
    pid: process.pid,
    host: hostname(),
    app: "a\ufffdb\ufffd",
    since: "1970-01-01T00:00:00.000Z",
  });
  expect(displayName("mailer 😀")).toBe("mailer 😀");
  const holder = { pid: 7, host: "h", app: "a", since: "s" };
  expect(holderOf({ holder })).toEqual(holder);
  expect(holderOf({ holder: JSON.stringify(holder) })).toEqual(holder);
  const nobody = { pid: 0, host: "", app: "", since: "" };
  for (const row of [{}, { holder: null }, { holder: {} }, { holder: "{}" }]) expect(holderOf(row)).toEqual(nobody);
});

describe("a session of a worker", () => {
  test("is its own until it gives it back, and every lease ends the one before", async () => {
    const id = await session();
    const [one, other] = [worker(), worker()];
    expect(await one.claim(id)).toBe(true);
    expect(await one.claim(id)).toBe(false);
    expect(await one.holder(id)).toBe(null);
    const lease = await one.take(id, "first");
    expect(lease).toMatchObject({ place: id, owner: one.owner, head: Number((await head(id))["head"]) });
    expect(await one.inspect(lease)).toEqual({ isOurs: true, head: lease.head });
    for (const asking of [one, other])
      expect(await asking.holder(id)).toMatchObject({ app: "first", pid: process.pid });
    expect(await one.busy(id)).toMatchObject({ code: "SESSION_BUSY", facts: { session: id } });
    await other.claim(id);
    const busy = other.take(id, "second");
    await expect(busy).rejects.toMatchObject({ code: "SESSION_BUSY", message: expect.stringContaining("first") });
    await one.release(id, lease);
    expect(await head(id)).toMatchObject({ owner: null, holder: null });
    expect(await one.claim(id)).toBe(true);
    one.unclaim(id);
    const next = await other.take(id, "second");
    expect(Number(next.fence)).toBe(Number(lease.fence) + 1);
    expect([await one.inspect(lease), await one.makeDurable(lease)]).toEqual([
      { isOurs: false, head: lease.head },
      { isOurs: false, head: lease.head },
    ]);
    // Given back late, it does not take the session from its new owner.
    await one.release(id, lease);
    expect(await other.inspect(next)).toMatchObject({ isOurs: true });
    await server.query("UPDATE leases.heads SET trashed = now() WHERE id = $1", [id]);
    expect(await other.inspect(next)).toMatchObject({ isOurs: false });
    expect(await other.inspect({ ...next, place: newId() })).toBe(null);
    for (const gone of [id, newId()])
      await expect(other.take(gone, "x")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  test("is free when its worker's time is over, and not before", async () => {
    const id = await session();
    const [one, other] = [worker(), worker()];
    await one.claim(id);
    await one.take(id, "first");
    const left = (await known(one))!;
    expect(left).toMatchObject({ watched: false });
    expect([left.leftMs > 300_000, left.leftMs <= 600_000]).toEqual([true, true]);
    await other.claim(id);
    await expect(other.take(id, "second")).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await server.query("UPDATE leases.workers SET expires = now() WHERE owner = $1", [one.owner]);
    expect(await other.take(id, "second")).toMatchObject({ owner: other.owner });
  });

  test("is lost by whom it is taken from: told by a heartbeat, once, and the others are kept", async () => {
    const [taken, kept] = [await session(), await session()];
    const one = worker(60);
    const lost: [string, HoldfastError][] = [];
    for (const id of [taken, kept]) {
      await one.claim(id);
      one.keep(id, await one.take(id, "first"), (error) => lost.push([id, error]));
    }
    await server.query("UPDATE leases.heads SET owner = $2, fence = fence + 1 WHERE id = $1", [taken, randomUUID()]);
    await expect.poll(() => lost).toHaveLength(1);
    expect(lost).toMatchObject([[taken, { code: "LEASE_LOST", facts: { session: taken } }]]);
    // Heartbeats go on.
    await server.query("DELETE FROM leases.workers WHERE owner = $1", [one.owner]);
    await expect.poll(() => known(one)).not.toBe(null);
    expect(lost).toHaveLength(1);
  });

  test("is taken again after it was lost: giving the lost one back does not end the new one", async () => {
    const id = await session();
    const one = worker(60);
    const lost: string[] = [];
    const isTaken = (): Promise<unknown> =>
      server.query("UPDATE leases.heads SET owner = $2, fence = fence + 1 WHERE id = $1", [id, randomUUID()]);
    const take = async (name: string) => {
      await one.claim(id);
      const lease = await one.take(id, name);
      one.keep(id, lease, () => lost.push(name));
      return lease;
    };
    const first = await take("first");
    await isTaken();
    await expect.poll(() => lost).toEqual(["first"]);
    await server.query("UPDATE leases.heads SET owner = NULL WHERE id = $1", [id]);
    await take("second");
    await one.release(id, first);
    expect(await head(id)).toMatchObject({ owner: one.owner });
    await isTaken();
    await expect.poll(() => lost).toEqual(["first", "second"]);
  });

  test("is not reserved if others cannot be told that the worker lives", async () => {
    const away = databaseAt(`postgres://me@127.0.0.1:${await freePort()}/db`);
    const leases = new Leases(away, away, randomUUID());
    onTestFinished(() => leases.close());
    for (let tries = 0; tries < 2; tries++)
      await expect(leases.claim("a")).rejects.toMatchObject({
        code: "STORE_IO",
        message: expect.stringContaining("send a heartbeat"),
      });
  });
});

describe("a heartbeat", () => {
  test("goes over the connection that no append uses, and over another one if that fails or is not there", async () => {
    const database = databaseAt(server.url);
    const beats = databaseAt(server.url);
    const leases = new Leases(database, beats, randomUUID(), 600_000);
    onTestFinished(() => leases.close());
    const direct = databaseAt(server.url);
    const way = vi.fn((text: string, values: unknown[], answerMs: number) => direct.once(text, values, answerMs));
    const throughPool = vi.spyOn(beats, "once");
    leases.beatOver(way);
    await leases.claim("a");
    expect([way.mock.calls.length, throughPool.mock.calls.length]).toEqual([1, 0]);
    // A part of the time that it has.
    expect(way.mock.calls[0]![2]).toBe(150_000);
    // Another one is not needed so soon.
    await leases.claim("b");
    expect(way.mock.calls).toHaveLength(1);
    for (const [beatOver, calls] of [
      [() => Promise.reject(new Error("lost")), 1],
      [() => null, 2],
    ] as const) {
      leases.beatOver(beatOver);
      leases.setWatched(true);
      await expect.poll(() => throughPool.mock.calls.length).toBe(calls);
    }
    await expect.poll(() => known(leases)).toMatchObject({ watched: true });
  });

  test("says at once that the direct connection is lost, and comes more often until it is back", async () => {
    const leases = worker();
    leases.setWatched(true);
    // It has said nothing of itself so far, so there is nothing to correct.
    expect(await known(leases)).toBe(null);
    await leases.claim("a");
    expect(await known(leases)).toMatchObject({ watched: true });
    leases.setWatched(false);
    await expect.poll(() => known(leases)).toMatchObject({ watched: false });
    expect((await known(leases))!.leftMs).toBeLessThanOrEqual(3000);
    leases.setWatched(true);
    await expect.poll(() => known(leases)).toMatchObject({ watched: true });
    expect((await known(leases))!.leftMs).toBeGreaterThan(3000);
    // None comes after the end.
    await leases.close();
    await server.query("DELETE FROM leases.workers WHERE owner = $1", [leases.owner]);
    leases.setWatched(false);
    expect(await known(leases)).toBe(null);
  });
});

describe("a lease that nobody uses goes back", () => {
  const takenLate = async (id: string, { owner }: Leases, attempt: string): Promise<void> => {
    const set = "UPDATE leases.heads SET owner = $2, holder = '{}', fence = fence + 1, attempt = $3 WHERE id = $1";
    await server.query(set, [id, owner, attempt]);
  };

  test("if the statement that takes it arrives after it was given up", async () => {
    const [late, other] = [await session(), await session()];
    const leases = worker(60);
    await leases.claim("a");
    let given = "";
    const away = new HoldfastError("STORE_IO", "away", {});
    const work = (attempt: string): Promise<never> => {
      given = attempt;
      return Promise.reject(away);
    };
    await expect(leases.withAttempt(late, work)).rejects.toBe(away);
    // One that is in use, and one of an attempt that is not known.
    const used = await leases.withAttempt(other, async (attempt) => attempt);
    await takenLate(other, leases, used);
    await takenLate(late, leases, given);
    await expect.poll(() => head(late)).toMatchObject({ owner: null, holder: null });
    expect(await head(other)).toMatchObject({ owner: leases.owner });
  });

  test("if the server has forgotten that it was given back", async () => {
    const id = await session();
    const leases = worker();
    await leases.claim(id);
    const lease = await leases.take(id, "first");
    await leases.release(id, lease);
    // As after a crash of the server.
    await takenLate(id, leases, lease.attempt);
    leases.setWatched(true);
    await expect.poll(() => head(id)).toMatchObject({ owner: null });
  });

  test("not if it was refused for another reason", async () => {
    const id = await session();
    const leases = worker(60);
    await leases.claim("a");
    let given = "";
    const refused = leases.withAttempt(id, (attempt) => {
      given = attempt;
      return Promise.reject(new HoldfastError("SESSION_BUSY", "busy", {}));
    });
    await expect(refused).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await takenLate(id, leases, given);
    // Heartbeats come, and it stays.
    leases.setWatched(true);
    await expect.poll(() => known(leases)).toMatchObject({ watched: true });
    leases.setWatched(false);
    await expect.poll(() => known(leases)).toMatchObject({ watched: false });
    expect(await head(id)).toMatchObject({ owner: leases.owner });
  });
});
