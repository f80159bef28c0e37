import { isHoldfastError, newId } from "holdfast";
import type { Journal, JournalStore } from "holdfast/store";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { makePool } from "../../src/connection/pools.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../src/index.ts";
import { Network } from "../proxy/network.ts";
import { type Server, startServer } from "../server/server.ts";
import { requireStandby } from "../server/standby.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off", "max_connections=100"]);
});
afterAll(() => server.stop());

async function opened(options: PostgresStoreOptions = {}, url = server.url): Promise<JournalStore> {
  const store = await openPostgresStore(url, { monthsAhead: 0, connections: 2, ...options });
  onTestFinished(() => store.close().catch(() => undefined));
  return store;
}

/** A store with the network in the way, and one without. */
async function site(options: PostgresStoreOptions = {}) {
  const network = await Network.open(server.port);
  onTestFinished(() => network.close());
  const schema = `fault_${newId().slice(-12)}`;
  const plain = await opened({ schema });
  const store = await opened({ schema, ...options }, network.through(server.url));
  return { network, schema, plain, store };
}

/** A connection of the test's own, to hold locks with. */
async function connected(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: server.url });
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Until nobody has it any more. */
async function openedAtLast(store: JournalStore, id: string): Promise<Journal> {
  for (;;) {
    try {
      return (await store.open(id)).journal;
    } catch (error) {
      if (!isHoldfastError(error, "SESSION_BUSY")) throw error;
    }
  }
}

/** Commits wait for a standby that never comes, until the returned function is called. */
async function withoutStandby(): Promise<() => Promise<void>> {
  const back = async (): Promise<void> => {
    await server.query("ALTER SYSTEM RESET synchronous_standby_names");
    await server.query("SELECT pg_reload_conf()");
  };
  onTestFinished(back);
  await requireStandby(server.url, "nobody");
  return back;
}

/** Patience that no test waits for. */
const FOREVER_MS = 3_600_000;

async function backends(app: string, condition = "true"): Promise<number> {
  const select = `SELECT FROM pg_stat_activity WHERE application_name = $1 AND ${condition}`;
  return (await server.query(select, [app])).length;
}

describe("the catalogue is fenced", () => {
  test("a replaced worker's save that arrives late changes no row", async () => {
    const { network, schema, plain, store } = await site({ leaseMs: 400, answerMs: 20_000 });
    const journal = await store.create(newId(), [{ kind: "note" }]);
    const { id } = journal;
    await journal.append({ kind: "note" });
    const save = network.holdStatement("SET at = $2");
    const closing = journal.close();
    await save.held;
    // Heartbeats do not arrive either, so the worker is replaced.
    const goOn = network.holdRequests(true);
    const next = await openedAtLast(plain, id);
    await next.append({ kind: "note", by: "the replacement" });
    void save.goOn();
    goOn();
    // It may have been told that it was replaced.
    await closing.catch((error: unknown) => expect(error).toMatchObject({ code: "LEASE_LOST" }));
    expect(await server.query(`SELECT closed FROM "${schema}".catalogue`)).toEqual([{ closed: false }]);
    expect((await plain.list()).sessions).toMatchObject([{ id, head: next.head, closed: false }]);
    await next.close();
  });

  test("also one that waits for the row while its worker is replaced", async () => {
    // No heartbeat comes in time to tell the worker that it was replaced: it would refuse to close.
    const { schema, plain, store } = await site({ leaseMs: FOREVER_MS, answerMs: 20_000, directUrl: null });
    const journal = await store.create(newId(), [{ kind: "note" }]);
    const { id } = journal;
    await journal.append({ kind: "note" });
    const other = await connected();
    await other.query(`BEGIN; SELECT FROM "${schema}".catalogue FOR UPDATE`);
    const closing = journal.close();
    const waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%SET at = $2%'";
    await until(async () => (await server.query(waits)).length === 1);
    // What the replacement does, while the save waits with its old view of the lease.
    await other.query(`UPDATE "${schema}".heads SET owner = gen_random_uuid(), fence = fence + 1, head = head + 1`);
    await other.query(`UPDATE "${schema}".catalogue SET closed = false, fence = fence + 2`);
    await other.query("COMMIT");
    await closing;
    expect(await server.query(`SELECT closed FROM "${schema}".catalogue`)).toEqual([{ closed: false }]);
    expect(await plain.has(id)).toBe(true);
  });
});

describe("a statement that was given up", () => {
  test("a take that arrives late does not end the lease that its repetition took", async () => {
    const { network, store } = await site({ answerMs: 400 });
    const id = newId();
    await (await store.create(id, [{ kind: "note" }])).close();
    const take = network.holdStatement("fence = h.fence + 1");
    const opening = store.open(id);
    await take.held;
    const { journal } = await opening;
    await take.goOn();
    await journal.append({ kind: "note", text: "still mine" });
    expect(journal.failure).toBeNull();
  });

  test("a take that arrives after its worker gave up is given back", async () => {
    const { network, plain, store } = await site({ answerMs: 200, patienceMs: 600, leaseMs: 6000 });
    const id = newId();
    await (await store.create(id, [{ kind: "note" }])).close();
    const take = network.holdStatement("fence = h.fence + 1");
    const opening = store.open(id);
    await take.held;
    const goOn = network.holdRequests(true);
    await expect(opening).rejects.toMatchObject({ code: "STORE_IO" });
    void take.goOn();
    goOn();
    const journal = await openedAtLast(plain, id);
    await journal.append({ kind: "note", text: "taken by another worker" });
    await journal.close();
  });

  test("what waits for a locked row ends in the server before its worker gives up", async () => {
    const { schema, store } = await site({ answerMs: 400, patienceMs: 20_000, app: "locked out" });
    const journal = await store.create(newId(), [{ kind: "note" }]);
    const other = await connected();
    await other.query(`BEGIN; SELECT FROM "${schema}".heads FOR UPDATE`);
    const appended = journal.append({ kind: "note" });
    let most = 0;
    for (let looks = 0; looks < 60; looks++) {
      most = Math.max(most, await backends("locked out", "wait_event_type = 'Lock'"));
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    await other.query("COMMIT");
    await appended;
    // One waits, and perhaps another one that is just ending.
    expect([most > 0, most <= 2]).toEqual([true, true]);
  });

  test("commits that hang because no standby answers fill no connections, and cost nobody his lease", async () => {
    const app = "hung commits";
    const WORKERS = 3;
    const schema = `hung_${newId().slice(-12)}`;
    const stores: JournalStore[] = [];
    for (let i = 0; i < WORKERS; i++)
      stores.push(await opened({ schema, app, answerMs: 300, patienceMs: 4000, leaseMs: 2000 }));
    const sessions = await Promise.all(
      stores.flatMap((store) => [1, 2, 3].map(async () => ({ store, journal: await store.create(newId(), []) }))),
    );
    const resumable = await Promise.all(
      stores.map(async (store) => {
        const id = newId();
        await (await store.create(id, [{ kind: "note" }])).close();
        return { store, id };
      }),
    );
    const back = await withoutStandby();
    const outcome = (work: Promise<unknown>): Promise<string> =>
      work.then(
        () => "done",
        (error: unknown) => (isHoldfastError(error) ? error.code : String(error)),
      );
    const work = [
      ...sessions.map(({ journal }) => outcome(journal.append({ kind: "note" }))),
      ...resumable.map(({ store, id }) => outcome(store.open(id))),
    ];
    let most = 0;
    let isOver = false;
    const watching = (async () => {
      while (!isOver) {
        most = Math.max(most, await backends(app));
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    const outcomes = await Promise.all(work);
    isOver = true;
    await watching;
    expect(new Set(outcomes)).toEqual(new Set(["SYNC_FAILED", "STORE_IO"]));
    // Two of the pool, the direct connection, the one for heartbeats; and those that are just ending.
    expect(most).toBeLessThanOrEqual(WORKERS * 6);
    await back();
    for (const { store, journal } of sessions) {
      await journal.close().catch(() => undefined);
      const again = (await store.open(journal.id)).journal;
      await again.append({ kind: "note" });
      expect(again.failure).toBeNull();
    }
    for (const { store, id } of resumable) await (await store.open(id)).journal.append({ kind: "note" });
  });
});

test("heartbeats do not wait behind appends: a worker whose appends hang keeps its session", async () => {
  const schema = `beats_${newId().slice(-12)}`;
  const store = await opened({ schema, connections: 1, leaseMs: 900, answerMs: 20_000 });
  const other = await opened({ schema });
  const journal = await store.create(newId(), [{ kind: "note" }]);
  const locking = await connected();
  await locking.query(`BEGIN; LOCK TABLE "${schema}".lines IN EXCLUSIVE MODE`);
  const appended = journal.append({ kind: "note" });
  const expires = async (): Promise<number> => {
    const [row] = await server.query(`SELECT extract(epoch FROM max(expires)) AS at FROM "${schema}".workers`);
    return Number(row!["at"]);
  };
  // Several leases long.
  for (let beats = 0, last = await expires(); beats < 8; ) {
    const now = await expires();
    if (now > last) beats++;
    last = now;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await expect(other.open(journal.id)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await locking.query("COMMIT");
  await appended;
  expect(journal.failure).toBeNull();
});

describe("a wait for the synchronous standby that somebody cancels", () => {
  const CANCEL =
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = $1";

  test.each(["", "client_min_messages=error"])("is in doubt, not acknowledged %s", async (setting) => {
    const app = `cancelled ${setting.slice(0, 6)}`;
    const schema = `cancelled_${newId().slice(-12)}`;
    await opened({ schema });
    const url = new URL(server.url);
    if (setting) url.searchParams.set("options", `-c ${setting}`);
    const store = await opened({ schema, app, answerMs: 1000, patienceMs: 3000 }, url.href);
    const journal = await store.create(newId(), [{ kind: "note" }]);
    const back = await withoutStandby();
    const appended = journal.append({ kind: "note", text: "in doubt" });
    let isOver = false;
    const cancelling = (async () => {
      while (!isOver) await server.query(CANCEL, [app]);
    })();
    await expect(appended).rejects.toMatchObject({ code: "SYNC_FAILED" });
    isOver = true;
    await cancelling;
    await back();
  });

  test("is acknowledged once the standby has it after all", async () => {
    const app = "confirmed later";
    const store = await opened({ app, answerMs: 20_000 });
    const journal = await store.create(newId(), [{ kind: "note" }]);
    const back = await withoutStandby();
    const appended = journal.append({ kind: "note" });
    await until(async () => (await server.query(CANCEL, [app])).length > 0);
    // It now waits for what makes sure of it.
    await until(async () => {
      const waits =
        "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%pg_logical_emit_message%'";
      return (await server.query(waits)).length > 0;
    });
    let isAcknowledged = false;
    void appended.then(() => {
      isAcknowledged = true;
    });
    expect(isAcknowledged).toBe(false);
    await back();
    expect((await appended).seq).toBe(journal.head);
  });
});

describe("a refusal to write comes at once", () => {
  const READ_ONLY = { code: "STORE_IO", message: expect.stringMatching(/read-only/) };

  test("from a role that may only read", async () => {
    const schema = `refused_${newId().slice(-12)}`;
    const owner = await opened({ schema });
    const id = newId();
    await (await owner.create(id, [{ kind: "note" }])).close();
    const url = new URL(server.url);
    url.searchParams.set("options", "-c default_transaction_read_only=on");
    const store = await opened({ schema, patienceMs: FOREVER_MS, directUrl: null }, url.href);
    await expect(store.create(newId(), [])).rejects.toMatchObject(READ_ONLY);
    await expect(store.open(id)).rejects.toMatchObject(READ_ONLY);
    await expect(store.delete(id)).rejects.toMatchObject(READ_ONLY);
  });

  test("from a role that wrote before, and may only read now", async () => {
    await server.query("CREATE ROLE changed LOGIN SUPERUSER PASSWORD 'secret'");
    const url = new URL(server.url);
    url.username = "changed";
    const store = await opened({ patienceMs: FOREVER_MS, schema: "changed" }, url.href);
    await (await store.create(newId(), [])).close();
    await server.query("ALTER ROLE changed SET default_transaction_read_only = on");
    await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'changed'");
    await expect(store.create(newId(), [])).rejects.toMatchObject(READ_ONLY);
  });
});

describe("a server that has used something up says what", () => {
  test("an append fails with the reason, and the journal continues", async () => {
    const schema = `used_up_${newId().slice(-12)}`;
    const store = await opened({ schema });
    const journal = await store.create(newId(), [{ kind: "note" }]);
    await server.query(
      `CREATE FUNCTION "${schema}".fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'used up' USING ERRCODE = current_setting('holdfast_test.state'); END $$`,
    );
    const reasons = [
      ["53100", "STORE_FULL", /no space left/],
      ["53200", "STORE_IO", /out of memory/],
      ["53400", "STORE_IO", /limit of its configuration/],
      ["53000", "STORE_IO", /limit of its configuration/],
      ["54000", "STORE_FULL", /limit of PostgreSQL/],
    ] as const;
    for (const [state, code, message] of reasons) {
      await server.query(
        `CREATE TRIGGER failing BEFORE INSERT ON "${schema}".lines FOR EACH ROW EXECUTE FUNCTION "${schema}".fail();
        ALTER FUNCTION "${schema}".fail() SET holdfast_test.state = '${state}'`,
      );
      await expect(journal.append({ kind: "note" }), state).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
        facts: { state },
      });
      await server.query(`DROP TRIGGER failing ON "${schema}".lines`);
      await journal.append({ kind: "note" });
    }
  });

  test("too many connections", async () => {
    await server.query("CREATE ROLE crowded LOGIN PASSWORD 'secret' CONNECTION LIMIT 0");
    const url = new URL(server.url);
    url.username = "crowded";
    await expect(opened({ patienceMs: 50 }, url.href)).rejects.toMatchObject({
      code: "STORE_IO",
      message: expect.stringMatching(/no connection left/),
      facts: { state: "53300" },
    });
  });
});

describe("connections of the pool", () => {
  const SETTINGS =
    "SELECT current_setting('tcp_keepalives_idle') AS idle, current_setting('lock_timeout') AS lock, current_setting('client_connection_check_interval') AS checks";

  function pooled(url: string, app: string): pg.Pool {
    const { pool, end } = makePool({ url, connections: 1, app, answerMs: 5000 });
    onTestFinished(end);
    return pool;
  }

  test("have keepalives and limits", async () => {
    const { rows } = await pooled(server.url, "settings").query(SETTINGS);
    expect(rows).toEqual([{ idle: "5", lock: "4s", checks: "2s" }]);
  });

  test("a statement ends in the server when its worker is gone", async () => {
    const network = await Network.open(server.port);
    onTestFinished(() => network.close());
    const sleeping = pooled(network.through(server.url), "sleeper").query("SELECT pg_sleep(3600)");
    await until(async () => (await backends("sleeper")) === 1);
    network.cut();
    await expect(sleeping).rejects.toThrow();
    await until(async () => (await backends("sleeper")) === 0);
  });
});
