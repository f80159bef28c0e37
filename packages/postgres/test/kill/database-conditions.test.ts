import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type JournalRecord, type Json, newId } from "holdfast";
import { lineOf } from "holdfast/internal";
import type { ListOptions, VerbatimLine } from "holdfast/store";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { Database } from "../../src/connection/database.ts";
import { Direct } from "../../src/connection/direct.ts";
import { makePool } from "../../src/connection/pools.ts";
import { openPostgresStore } from "../../src/index.ts";
import { Leases } from "../../src/leases/leases.ts";
import { MIGRATION_LOCK } from "../../src/schema/schema.ts";
import { Batcher } from "../../src/writing/statement-batcher.ts";
import { Network } from "../proxy/network.ts";
import { intercept } from "../proxy/statements.ts";
import { freePort, type Server, startServer } from "../server/server.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

/** Of the server as it is now: it waits for what its primary would send. Returns its address. */
async function startStandby(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-standby-"));
  const data = join(folder, "data");
  const { uid, gid } = await stat(join(server.folder, "data"));
  await promisify(execFile)("cp", ["-a", join(server.folder, "data"), data]);
  await rm(join(data, "postmaster.pid"));
  await writeFile(join(data, "standby.signal"), "");
  await chmod(folder, 0o777);
  const [found] = await server.query("SELECT setting FROM pg_config WHERE name = 'BINDIR'");
  const port = await freePort();
  const args = ["-D", data, "-p", String(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="];
  const as = process.getuid?.() === 0 ? { uid, gid } : {};
  const running = spawn(join(String(found!["setting"]), "postgres"), args, { stdio: "ignore", ...as });
  onTestFinished(async () => {
    const ended = once(running, "close");
    running.kill("SIGQUIT");
    await ended;
    await rm(folder, { recursive: true });
  });
  const url = server.url.replace(`:${server.port}/`, `:${port}/`);
  await vi.waitFor(
    async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.end();
    },
    { timeout: 60_000 },
  );
  return url;
}

describe("leases", () => {
  test("that could not be given back twice go back when the server answers", async () => {
    const released: unknown[] = [];
    let refusals = 2;
    const database = {
      schema: "s",
      noWait: "",
      local: "a release",
      retry: (_: string, work: () => Promise<unknown>) => work(),
      once: async (text: string, values: readonly unknown[]) => {
        if (!text.startsWith("WITH a release UPDATE")) return { rows: [] };
        if (refusals-- > 0) throw new Error("Connection terminated unexpectedly");
        released.push(values[0]);
        return { rows: [] };
      },
    } as unknown as Database;
    const leases = new Leases(database, database, newId(), 3);
    const lease = { place: newId(), owner: leases.owner, fence: "1", head: 1, attempt: newId() };
    await leases.release(lease.place, lease, true);
    await expect.poll(() => released).toEqual([lease.place]);
    await leases.close();
  });
});

test("S26: a worker that lost its connection, and is back before its session is taken, keeps it", async () => {
  const network = await Network.open(server.port);
  onTestFinished(() => network.close());
  const options = { schema: "back", monthsAhead: 0, leaseMs: 600_000 };
  const store = await openPostgresStore(network.through(server.url), options);
  onTestFinished(() => store.close());
  const journal = await store.create(newId(), [{ kind: "note" }]);
  const pool = new pg.Pool({ connectionString: server.url, connectionTimeoutMillis: 10_000 });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  const [taking, back] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  intercept(pool, async ({ text }, send) => {
    if (text.includes("h.owner = $5")) {
      taking.resolve();
      await back.promise;
    }
    return send();
  });
  const taker = await openPostgresStore(pool, { ...options, directUrl: null, answerMs: 60_000 });
  onTestFinished(() => taker.close());
  network.refuse(true);
  await expect.poll(() => taker.holder(journal.id)).toBeNull();
  const opening = expect(taker.open(journal.id)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await taking.promise;
  network.refuse(false);
  await expect.poll(() => taker.holder(journal.id)).toMatchObject({ pid: process.pid });
  back.resolve();
  await opening;
  await journal.append({ kind: "note" });
});

describe("appends", () => {
  test("of several sessions that wait together go in one statement; more than fit in two", async () => {
    const sent: number[] = [];
    const database = {
      ...{ schema: "s", answerMs: 1000, settings: () => "", settingsCondition: () => "" },
      onceOver: async (statementFor: (own: boolean) => { readonly values: unknown[] }) => {
        const places = statementFor(true).values.filter(
          (value) => typeof value === "string" && value.startsWith("place "),
        );
        sent.push(places.length);
        return { rows: places.map((place) => ({ place })), command: "SELECT" };
      },
    } as unknown as Database;
    const batch = new Batcher(database);
    const put = (session: number, lines = "{}"): Promise<unknown> =>
      batch.put({
        lease: { place: `place ${session}`, owner: "o", fence: "1", head: 1, attempt: "a" },
        ...{ head: 1, count: 1, lines: Buffer.from(lines), durability: "power", segments: [], opens: false },
      });
    const written = await Promise.all(Array.from({ length: 300 }, (_, session) => put(session)));
    expect(new Set(written)).toEqual(new Set(["written"]));
    expect(sent).toEqual([256, 44]);
    await Promise.all([1, 2, 3].map((session) => put(session, "x".repeat(3_000_000))));
    expect(sent.slice(2)).toEqual([1, 1, 1]);
  });
});

describe("news", () => {
  test("S27: of many appends are few, and each goes to those who listen to its session, of this store", async () => {
    const schema = 'new "s';
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
    onTestFinished(() => store.close());
    const listener = new pg.Client({ connectionString: server.url });
    await listener.connect();
    onTestFinished(() => listener.end());
    const told: string[] = [];
    listener.on("notification", ({ channel, payload }) => told.push(`${channel} ${payload}`));
    const journals = await Promise.all([1, 2, 3].map(() => store.create(newId(), [])));
    for (const { id } of journals.slice(0, 2)) await listener.query(`LISTEN "holdfast_${id}"`);
    const since = performance.now();
    for (let n = 0; n < 20; n++) await Promise.all(journals.map((journal) => journal.append({ kind: "note" })));
    const spentMs = performance.now() - since;
    const expected = journals.slice(0, 2).map(({ id }) => `holdfast_${id} "new ""s"`);
    await expect.poll(() => [...new Set(told)].sort()).toEqual(expected.sort());
    // One in 20 ms for each, however long a busy machine takes for the appends.
    expect(told.length).toBeLessThanOrEqual(2 * (2 + spentMs / 19));
  });

  test("S27: of more sessions than one statement names reach all who follow", async () => {
    const connect = async (): Promise<pg.Client> => {
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      return client;
    };
    const ids = Array.from({ length: 2500 }, () => newId());
    const listener = await connect();
    onTestFinished(() => listener.end());
    const told: string[] = [];
    listener.on("notification", ({ channel }) => told.push(channel));
    await listener.query(ids.map((id) => `LISTEN "holdfast_${id}"`).join("; "));
    const nothing = (): void => undefined;
    const options = { schema: "s", answerMs: 10_000, onNews: nothing, onState: nothing };
    const direct = new Direct({ connect, lock: 1n, ...options, notifyThroughPool: async () => undefined });
    await direct.open();
    for (const id of ids) direct.tell(id);
    await direct.close();
    await expect.poll(() => told.length).toBe(ids.length);
    expect(new Set(told)).toEqual(new Set(ids.map((id) => `holdfast_${id}`)));
  });

  test("S27: that do not come: followers look by themselves", async () => {
    const options = { schema: "unheard", monthsAhead: 0, directUrl: null };
    const [store, other] = [await openPostgresStore(server.url, options), await openPostgresStore(server.url, options)];
    onTestFinished(() => store.close());
    onTestFinished(() => other.close());
    const journal = await store.create(newId(), []);
    for await (const { seq } of other.follow(journal.id)) {
      if (seq === 3) break;
      if (seq === 1) await journal.append({ kind: "note" });
    }
  });
});

describe("a session that is taken over", () => {
  /** The lines of a session, to be taken over by another store. */
  async function someLines(id: string, megabytes: number): Promise<VerbatimLine[]> {
    await using from = await openPostgresStore(`${server.url}?schema=source`, { monthsAhead: 0 });
    const journal = await from.create(id, [{ kind: "note" }]);
    for (let i = 0; i < megabytes; i++) await journal.append({ kind: "note", text: "x".repeat(1024 * 1024) });
    await journal.close();
    const lines: VerbatimLine[] = [];
    for await (const record of from.history(id)) lines.push(lineOf(record)!);
    return lines;
  }

  async function* inTwo(lines: readonly VerbatimLine[], between: () => unknown): AsyncGenerator<VerbatimLine[]> {
    yield lines.slice(0, -1);
    await between();
    yield lines.slice(-1);
  }

  test("leaves nothing behind in its place if garbage is collected meanwhile: the id can be used", async () => {
    const store = await openPostgresStore(`${server.url}?schema=collected`, { monthsAhead: 0 });
    onTestFinished(() => store.close());
    const id = newId();
    const lines = await someLines(id, 3);
    const adopting = store.adopt!(
      id,
      inTwo(lines, () => store.gc({ graceMs: -1000 })),
    );
    await expect(adopting).rejects.toMatchObject({ code: "STORE_IO" });
    expect(await server.query("SELECT FROM collected.lines")).toHaveLength(0);
    await (await store.create(id, [{ kind: "note" }])).close();
  });

  test.each(["garbage is collected", "it is taken over once more"])("just when %s keeps its lines", async (what) => {
    const pool = new pg.Pool({ connectionString: server.url, connectionTimeoutMillis: 10_000 });
    // Connections end a little later than their pool.
    pool.on("error", () => undefined);
    onTestFinished(() => pool.end());
    const finish = Promise.withResolvers<void>();
    let adopting: Promise<void> | null = null;
    // Between the look at what is in the trash, and what is done about it.
    const looking = new pg.Pool({ connectionString: server.url, connectionTimeoutMillis: 10_000 });
    looking.on("error", () => undefined);
    onTestFinished(() => looking.end());
    intercept(looking, async ({ text }, send) => {
      const result = await send();
      const isLook = /^SELECT place\b.*heads WHERE.*trashed/.test(text);
      if (isLook && adopting) {
        finish.resolve();
        await adopting;
      }
      return result;
    });
    const store = await openPostgresStore(pool, { schema: "finished", monthsAhead: 0 });
    onTestFinished(() => store.close());
    const other = await openPostgresStore(looking, { schema: "finished", monthsAhead: 0 });
    onTestFinished(() => other.close());
    const id = newId();
    const lines = await someLines(id, 2);
    const begun = Promise.withResolvers<void>();
    const twoParts = inTwo(lines, () => {
      begun.resolve();
      return finish.promise;
    });
    adopting = store.adopt!(id, twoParts);
    await begun.promise;
    if (what.startsWith("garbage")) await other.gc({ graceMs: -1000 });
    else
      await expect(
        other.adopt!(
          id,
          inTwo(lines, () => undefined),
        ),
      ).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    expect(await store.verify(id)).toMatchObject({ records: lines.length, missing: [], damaged: [] });
    await (await store.open(id)).journal.close();
  });
});

describe("a server", () => {
  test("that ends idle sessions does not end the direct connection, nor refuse an append", async () => {
    await server.query("ALTER SYSTEM SET idle_session_timeout = '40ms'");
    await server.query("SELECT pg_reload_conf()");
    onTestFinished(async () => {
      await server.query("ALTER SYSTEM RESET idle_session_timeout");
      await server.query("SELECT pg_reload_conf()");
    });
    const store = await openPostgresStore(`${server.url}?schema=idle`, { monthsAhead: 0, app: "idle" });
    onTestFinished(() => store.close());
    const before = await server.query(
      "SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND application_name = 'idle'",
    );
    expect(before).toHaveLength(1);
    const journal = await store.create(newId(), [{ kind: "note" }]);
    for (let i = 0; i < 40; i++) {
      await new Promise((resolve) => setTimeout(resolve, 39 + (i % 4)));
      await journal.append({ kind: "note" });
    }
    await journal.close();
    const after = await server.query("SELECT pid FROM pg_stat_activity WHERE pid = $1", [before[0]!["pid"]]);
    expect(after).toHaveLength(1);
  });

  test("that is read-only, and lacks the partition of the month, is read from", async () => {
    const owner = await openPostgresStore(`${server.url}?schema=standby`, { monthsAhead: 0 });
    const journal = await owner.create(newId(), [{ kind: "note" }]);
    await journal.close();
    await owner.close();
    const later = Date.now() + 400 * 24 * 3600 * 1000;
    const options = `?schema=standby&direct=none&options=${encodeURIComponent("-c default_transaction_read_only=on")}`;
    const store = await openPostgresStore(`${server.url}${options}`, { monthsAhead: 0, clock: () => later });
    onTestFinished(() => store.close());
    expect((await store.list()).sessions).toHaveLength(1);
  });

  test("that is a standby shows who writes, as its primary does", async () => {
    const options = { schema: "watched", monthsAhead: 0, leaseMs: 600_000 };
    const primary = await openPostgresStore(server.url, options);
    onTestFinished(() => primary.close());
    const journal = await primary.create(newId(), [{ kind: "note" }]);
    await server.query("CHECKPOINT");
    const standbyUrl = await startStandby();
    const reader = await openPostgresStore(standbyUrl, { ...options, directUrl: null });
    onTestFinished(() => reader.close());
    expect((await reader.list()).sessions).toMatchObject([{ id: journal.id, holder: { pid: process.pid } }]);
    expect((await reader.read(journal.id)).recovery.unclean).toBe(false);
    const told = { code: "STORE_IO", message: expect.stringMatching(/read-only.*primary.*\?direct=none/) };
    await expect(openPostgresStore(standbyUrl, { ...options, patienceMs: 50 })).rejects.toMatchObject(told);
    const hasty = await openPostgresStore(standbyUrl, { ...options, directUrl: null, patienceMs: 50 });
    onTestFinished(() => hasty.close());
    await expect(hasty.create(newId(), [])).rejects.toMatchObject(told);
    await expect(hasty.open(journal.id)).rejects.toMatchObject(told);
  });

  test("from which somebody reads for long makes no partition, and nobody waits for that", async () => {
    const url = `${server.url}?schema=dumped`;
    await (await openPostgresStore(url, { monthsAhead: 0 })).close();
    const reader = new pg.Client({ connectionString: server.url });
    await reader.connect();
    onTestFinished(() => reader.end());
    await reader.query("BEGIN; SELECT FROM dumped.lines");
    const later = Date.now() + 400 * 24 * 3600 * 1000;
    const store = await openPostgresStore(url, { monthsAhead: 0, clock: () => later, answerMs: 60_000 });
    onTestFinished(() => store.close());
    expect((await store.list()).sessions).toEqual([]);
  });

  test("whose answer to a long append takes its time is waited for", async () => {
    const store = await openPostgresStore(`${server.url}?schema=long`, { monthsAhead: 0, answerMs: 60 });
    onTestFinished(() => store.close());
    const journal = await store.create(newId(), [{ kind: "note" }]);
    await journal.append({ kind: "note", text: "0123456789".repeat(3_000_000) });
    await journal.close();
  });
});

test("an application's own pool that leaves JSON as text: lists are the same", async () => {
  const types = {
    getTypeParser: (oid: number, format?: "text") =>
      oid === 3802 || oid === 114 ? (text: string) => text : pg.types.getTypeParser(oid, format),
  };
  const pool = new pg.Pool({ connectionString: server.url, max: 1, types: types as pg.CustomTypesConfig });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  const summariser = { add: () => ({ title: "t" }), carries: () => false };
  const store = await openPostgresStore(pool, { schema: "as_text", monthsAhead: 0, summariser });
  onTestFinished(() => store.close());
  const journal = await store.create(newId(), [{ kind: "note" }]);
  await journal.append({ kind: "note" });
  expect((await store.list()).sessions).toMatchObject([{ summary: { title: "t" }, holder: { pid: process.pid } }]);
  await journal.close();
  expect((await store.list({ where: { title: "t" } })).sessions).toMatchObject([{ summary: { title: "t" } }]);
});

test.each(["postgres://u:12#34@host/db", "postgres://u:12/34@host/db", "postgres://u:12?34@host/db"])(
  "%s: a password that is not written as it must be is shown nowhere",
  async (url) => {
    const error = await openPostgresStore(url).catch((refused: unknown) => refused);
    expect(error).toMatchObject({ code: "STORE_URL_INVALID" });
    expect(String(error)).not.toMatch(/12|34/);
  },
);

test("a connection that the server ends in the moment in which it is handed over ends no process", async () => {
  const { pool, end } = makePool({ url: server.url, connections: 1, app: "test", answerMs: 5000 });
  const database = new Database(pool, { name: "test", schema: "s", patienceMs: 5000, answerMs: 5000 });
  const uncaught: unknown[] = [];
  const ended = new Promise<void>((resolve) => {
    pool.once("acquire", (client) => {
      // The server's last words in one packet with those that it is ready: before whoever waits for the connection has
      // it.
      process.nextTick(() => {
        try {
          client.emit("error", new Error("terminating connection"));
        } catch (error) {
          uncaught.push(error);
        }
        resolve();
      });
    });
  });
  await database.transaction("testing", async (query) => query("SELECT 1"));
  await ended;
  expect(uncaught).toEqual([]);
  await end();
});

test("a program whose name the database cannot hold is named all the same", async () => {
  const app = "half \ud800 nul \0";
  const store = await openPostgresStore(server.url, { schema: "named", monthsAhead: 0, app });
  onTestFinished(() => store.close());
  const journal = await store.create(newId(), [{ kind: "note" }]);
  const named = { app: "half \ufffd nul \ufffd" };
  expect(await store.holder(journal.id)).toMatchObject(named);
  await journal.close();
  const { journal: again } = await store.open(journal.id, { app });
  expect((await store.list()).sessions).toMatchObject([{ holder: named }]);
  await again.close();
});

test("a transaction that has met another one is done again, and not for ever", async () => {
  const asked: string[] = [];
  const client = {
    query: async ({ text }: { readonly text: string }) => {
      asked.push(text.slice(0, 8));
      return { rows: [] };
    },
    release: () => undefined,
    ...{ listeners: () => [], on: () => undefined },
  };
  const pool = { options: { connectionTimeoutMillis: 1 }, connect: async () => client } as unknown as pg.Pool;
  const database = new Database(pool, { name: "", schema: "", patienceMs: 60_000, answerMs: 1000 });
  let meetings = 0;
  const meet = async (times: number, codes = ["40P01", "40001"]): Promise<string> => {
    if (++meetings <= times) throw Object.assign(new Error("met"), { code: codes[meetings % codes.length] });
    return "done";
  };
  expect(await database.transaction("meet", () => meet(2))).toBe("done");
  expect(asked).toEqual(["BEGIN IS", "ROLLBACK", "BEGIN IS", "ROLLBACK", "BEGIN IS", "COMMIT"]);
  const failed = { code: "STORE_IO" };
  await expect(database.transaction("meet", () => meet(Number.POSITIVE_INFINITY))).rejects.toMatchObject(failed);
  // A connection that is lost may have been lost after it was done.
  meetings = 0;
  await expect(database.transaction("lose", () => meet(1, ["57P01"]))).rejects.toMatchObject(failed);
  meetings = 0;
  expect(await database.transaction("lose", () => meet(1, ["57P01"]), true)).toBe("done");
});

test("a server that says that it is starting is waited for longer than one that says nothing", async () => {
  const database = new Database({} as pg.Pool, { name: "", schema: "", patienceMs: 60_000, answerMs: 1000 });
  let asked = 0;
  const ask = async (code: string): Promise<string> => {
    if (++asked < 4) throw Object.assign(new Error("not now"), { code });
    return "ready";
  };
  expect(await database.retry("ask", () => ask("57P03"), 1)).toBe("ready");
  asked = 0;
  await expect(database.retry("ask", () => ask("ECONNREFUSED"), 1)).rejects.toMatchObject({ code: "STORE_IO" });
});

describe("nothing is waited for without an end", () => {
  test("an application's own pool whose connections are all in use, and that waits for ever", async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    onTestFinished(() => pool.end());
    // There already: to connect takes its time on a busy machine.
    await pool.query("SELECT 1");
    const options = { schema: "used_up", monthsAhead: 0, answerMs: 200, patienceMs: 600, directUrl: null };
    const store = await openPostgresStore(pool, options);
    onTestFinished(() => store.close().catch(() => undefined));
    const journal = await store.create(newId(), [{ kind: "note" }]);
    const idle = await store.create(newId(), [{ kind: "note" }]);
    await idle.close();
    const inUse = await pool.connect();
    await expect(store.open(idle.id)).rejects.toMatchObject({ code: "STORE_IO" });
    await expect(store.list()).rejects.toMatchObject({ code: "STORE_IO" });
    const database = new Database(pool, { name: "", schema: "", patienceMs: 300, answerMs: 100 });
    await expect(database.transaction("wait", async () => "done")).rejects.toMatchObject({ code: "STORE_IO" });
    await expect(openPostgresStore(pool, { ...options, schema: "another" })).rejects.toMatchObject({
      code: "STORE_IO",
    });
    await expect(journal.append({ kind: "note" })).rejects.toMatchObject({ code: "SYNC_FAILED" });
    inUse.release();
    // What came too late has been given back, and nothing is done that nobody waits for any more.
    expect((await store.list()).sessions).toHaveLength(2);
    const other = await openPostgresStore(server.url, { schema: "used_up", monthsAhead: 0 });
    onTestFinished(() => other.close());
    await (await other.open(idle.id)).journal.close();
  });

  test("a worker that stops between two statements of a transaction keeps nothing locked", async () => {
    const pool = new pg.Pool({ connectionString: server.url });
    pool.on("error", () => undefined);
    onTestFinished(() => pool.end());
    await pool.query("SELECT 1");
    const database = new Database(pool, { name: "", schema: "", patienceMs: 0, answerMs: 100 });
    const [locked, stopped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const transaction = database.transaction("stop", async (query) => {
      await query("SELECT pg_advisory_xact_lock(77)");
      locked.resolve();
      await stopped.promise;
    });
    await locked.promise;
    await server.query("SELECT pg_advisory_lock(77)");
    stopped.resolve();
    await expect(transaction).rejects.toMatchObject({ code: "STORE_IO" });
  });

  test("a worker that falls silent while it makes the tables: it is told, and others make them", async () => {
    const network = await Network.open(server.port);
    onTestFinished(() => network.close());
    const other = new pg.Client({ connectionString: server.url });
    await other.connect();
    onTestFinished(() => other.end());
    await other.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    const options = { schema: "silent", monthsAhead: 0, connections: 1 };
    const opening = openPostgresStore(network.through(server.url), { ...options, answerMs: 400, patienceMs: 5000 });
    const told = expect(opening).rejects.toMatchObject({ code: "STORE_IO" });
    const asks = "SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT pg_try_advisory_xact_lock(%'";
    await expect.poll(() => server.query(asks)).not.toEqual([]);
    // The lock is its own from now on, and it does not know.
    network.loseAnswers();
    await other.query("SELECT pg_advisory_unlock($1)", [MIGRATION_LOCK]);
    await told;
    await (await openPostgresStore(server.url, options)).close();
  });
});

test("a row with what the database cannot hold comes back as it was, and is found by it", async () => {
  const odd = "\0 \ud800 \ufdd0 \ufdd00000 \\u0000 \\\0 😀";
  const row = { title: odd, labels: { [odd]: odd }, state: odd };
  const summariser = { add: () => row, carries: () => false };
  const store = await openPostgresStore(server.url, { schema: "odd", monthsAhead: 0, summariser });
  onTestFinished(() => store.close());
  await (await store.create(newId(), [{ kind: "note" }])).close();
  const found = async (options: ListOptions): Promise<unknown[]> =>
    (await store.list(options)).sessions.map(({ summary }) => summary);
  expect(await found({})).toEqual([row]);
  expect(await found({ where: { title: odd, [`${odd}!`]: null } })).toEqual([row]);
  expect(await found({ hints: { within: { labels: { [odd]: odd } }, anyOf: [odd, "state"] } })).toEqual([row]);
  expect(await found({ hints: { noneOf: { state: ["\0"] } } })).toEqual([row]);
  expect(await found({ hints: { noneOf: { state: [odd] } } })).toEqual([]);
});

test("S20: a list carries hundreds of rows on that their writers have left behind, in few statements, for each who lists", async () => {
  const pool = new pg.Pool({ connectionString: server.url, connectionTimeoutMillis: 10_000 });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  let statements = 0;
  intercept(pool, (_, send) => {
    statements++;
    return send();
  });
  const summariser = {
    add: (row: Json, record: JournalRecord) =>
      record.kind === "note" ? { notes: Number((row as { notes?: number } | null)?.notes ?? 0) + 1 } : row,
    carries: () => false,
  };
  const options = { schema: "behind", monthsAhead: 0, summariser, durability: "process" } as const;
  const store = await openPostgresStore(server.url, options);
  onTestFinished(() => store.close());
  const journals = await Promise.all(Array.from({ length: 300 }, () => store.create(newId(), [])));
  // One of them is further behind than is read at once.
  const long = { kind: "note", text: "x".repeat(3 * 1024 * 1024) };
  await Promise.all([
    ...journals.map((journal) => journal.append({ kind: "note" })),
    journals[7]!.append([long, long]),
  ]);
  const listers = await Promise.all([1, 2].map(() => openPostgresStore(pool, options)));
  statements = 0;
  await server.query("UPDATE behind.catalogue SET head = 1, summary = NULL");
  for (const { sessions } of await Promise.all(listers.map((lister) => lister.list()))) {
    expect(sessions).toHaveLength(300);
    const found = new Map(sessions.map((row) => [row.id, row]));
    for (const { id, head } of journals) expect(found.get(id)).toMatchObject({ head, summary: { notes: head - 2 } });
  }
  expect(statements).toBeLessThan(60);
  for (const lister of listers) await lister.close();
});

test("a store that is closed under what it is doing says so, and leaves no lease behind", async () => {
  const options = { schema: "closing", monthsAhead: 0 };
  const id = newId();
  const ended = new Set<unknown>();
  for (let round = 0; round < 12; round++) {
    const store = await openPostgresStore(server.url, options);
    if (round === 0) await (await store.create(id, [{ kind: "note" }])).close();
    const all = [store.open(id), store.create(newId(), [{ kind: "note" }]), store.list(), store.read(id)];
    const results = Promise.allSettled(all);
    // Wherever they have got to.
    for (let turn = 0; turn < round; turn++) await store.has(id);
    await store.close();
    for (const result of await results) ended.add(result.status === "fulfilled" || result.reason.code);
  }
  expect([...ended].filter((how) => how !== true)).toEqual(["STORE_CLOSED"]);
  expect(await server.query("SELECT FROM closing.heads WHERE owner IS NOT NULL")).toEqual([]);
});
