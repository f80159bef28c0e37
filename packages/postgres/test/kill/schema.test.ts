import { type ListQuery, newId, type Store } from "holdfast";
import { openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { dropMonths, grants, openPostgresStore, openStore } from "../../src/index.ts";
import { migrate, SCHEMA_MINOR, SCHEMA_VERSION, upgradeStatements } from "../../src/schema/schema.ts";
import { type Server, startServer } from "../server/server.ts";

let server: Server;
let schemas = 0;
const fresh = (): string => `schema ${++schemas} "quoted"`;
const quoted = (schema: string): string => `"${schema.replaceAll('"', '""')}"`;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

async function tablesOf(schema: string): Promise<string[]> {
  const rows = await server.query("SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY tablename", [schema]);
  return rows.map((row) => String(row["tablename"]));
}

describe("migrations", () => {
  test.each([
    ["", ""],
    // Whoever waited for the others does not see by itself what they did.
    [" (whose transactions are serializable)", "?options=-c%20default_transaction_isolation%3Dserializable"],
  ])("several workers that start at once%s make the tables once, and all of them work", async (_, query) => {
    const schema = fresh();
    const options = { schema, monthsAhead: 1, connections: 2 };
    const stores = await Promise.all(
      Array.from({ length: 6 }, () => openPostgresStore(`${server.url}${query}`, options)),
    );
    const ids = await Promise.all(
      stores.map(async (store) => {
        const journal = await store.create(newId(), [{ kind: "note" }]);
        await journal.close();
        return journal.id;
      }),
    );
    expect((await stores[0]!.list()).sessions.map(({ id }) => id).sort()).toEqual([...ids].sort());
    for (const store of stores) await store.close();
    const versions = await server.query(`SELECT version FROM ${quoted(schema)}.holdfast_migrations ORDER BY version`);
    expect(versions.map((row) => row["version"])).toEqual(Array.from({ length: SCHEMA_VERSION }, (_, i) => i + 1));
  });

  test("a second start changes nothing", async () => {
    const schema = fresh();
    await (await openPostgresStore(server.url, { schema, monthsAhead: 1 })).close();
    const before = await tablesOf(schema);
    await (await openPostgresStore(server.url, { schema, monthsAhead: 1 })).close();
    expect(await tablesOf(schema)).toEqual(before);
  });

  /** A schema of an earlier version with a closed session in it, and one whose writer died. */
  async function earlier(version: number): Promise<{ readonly schema: string; readonly ids: readonly string[] }> {
    const made = fresh();
    const schema = fresh();
    const store = await openPostgresStore(server.url, { schema: made, monthsAhead: 0 });
    const journals = [];
    for (const text of ["closed", "left"]) journals.push(await store.create(newId(), [{ kind: "note", text }]));
    await journals[0]!.append({ kind: "note" });
    await store.close();
    await server.query(`CREATE SCHEMA ${quoted(schema)}`);
    await server.query(upgradeStatements(quoted(schema), 0, version).join("\n"));
    const ids = journals.map(({ id }) => id);
    const columns = {
      heads: "place, id, head, owner, fence, holder, trashed",
      segments: "place, number, epoch, first",
      catalogue: "place, id, at, head, closed, summary",
      lines: "place, seq, line",
    };
    for (const [table, names] of Object.entries(columns))
      await server.query(
        `INSERT INTO ${quoted(schema)}.${table} (${names}) SELECT ${names} FROM ${quoted(made)}.${table}`,
      );
    await server.query(`UPDATE ${quoted(schema)}.catalogue SET closed = (id = $1)`, [ids[0]]);
    return { schema, ids };
  }

  test.each([1, 2, 3, 4])(
    "version %i is updated, with what is in it, and for a worker that had rights",
    async (version) => {
      const { schema, ids } = await earlier(version);
      const role = `worker of ${version}`;
      await server.query(`CREATE ROLE "${role}" LOGIN PASSWORD 'secret'`);
      const has = new Set(await tablesOf(schema));
      for (const statement of grants(schema, { worker: role }))
        if (has.has(/\.(\w+)\S* TO/.exec(statement)?.[1] ?? "holdfast_migrations")) await server.query(statement);
      const owner = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
      await owner.close();
      const url = new URL(server.url);
      url.username = encodeURIComponent(role);
      if (version === 1) for (const statement of grants(schema, { worker: role })) await server.query(statement);
      const store = await openPostgresStore(url.href, { schema, monthsAhead: 0 });
      const closed = async (): Promise<unknown> =>
        Object.fromEntries((await store.list()).sessions.map((row) => [row.id, row.closed]));
      expect(await closed()).toEqual({ [ids[0]!]: true, [ids[1]!]: false });
      expect((await store.read(ids[1]!)).records.map((record) => record["text"])).toContain("left");
      const behind = new Set<string>();
      for await (const { sessions } of store.texts!.behind!()) for (const { id } of sessions) behind.add(id);
      expect(behind).toEqual(new Set(ids));
      const { journal } = await store.open(ids[1]!);
      await journal.append({ kind: "note" });
      await journal.close();
      expect(await closed()).toEqual({ [ids[0]!]: true, [ids[1]!]: true });
      await store.close();
    },
  );

  test("an update that finds a table in use waits without keeping others waiting", async () => {
    const { schema, ids } = await earlier(3);
    const reading = new pg.Client({ connectionString: server.url });
    await reading.connect();
    await reading.query(`BEGIN; SELECT FROM ${quoted(schema)}.catalogue`);
    const opening = openPostgresStore(server.url, { schema, monthsAhead: 0 });
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%unclosed_head%'";
    await expect.poll(() => server.query(waiting), { interval: 1 }).toHaveLength(1);
    // Behind it in the queue for the table, and through before the reader has ended.
    await server.query(`UPDATE ${quoted(schema)}.catalogue SET closed = closed WHERE id = $1`, [ids[0]]);
    await reading.query("COMMIT");
    await reading.end();
    const store = await opening;
    expect((await store.list()).sessions).toHaveLength(2);
    await store.close();
  });

  test("P10: a newer schema is refused in words, and nothing is touched", async () => {
    const schema = fresh();
    await (await openPostgresStore(server.url, { schema, monthsAhead: 0 })).close();
    await server.query(`INSERT INTO ${quoted(schema)}.holdfast_migrations (version) VALUES (99)`);
    await expect(openPostgresStore(server.url, { schema })).rejects.toMatchObject({
      code: "FORMAT_NEWER",
      facts: { found: 99, known: SCHEMA_VERSION },
      message: expect.stringMatching(/schema version 99.*Nothing was touched.*newer version of Holdfast/),
    });
  });

  test("a newer minor of the same version is used as it is, by an older worker that restarts too", async () => {
    const schema = fresh();
    await (await openPostgresStore(server.url, { schema, monthsAhead: 0 })).close();
    const version = `SELECT version, minor FROM ${quoted(schema)}.holdfast_migrations ORDER BY version DESC LIMIT 1`;
    expect(await server.query(version)).toEqual([{ version: SCHEMA_VERSION, minor: SCHEMA_MINOR }]);
    await server.query(`UPDATE ${quoted(schema)}.holdfast_migrations SET minor = 99 WHERE version = ${SCHEMA_VERSION}`);
    await server.query(`ALTER TABLE ${quoted(schema)}.heads ADD COLUMN later text NOT NULL DEFAULT 'x'`);
    const store = await openStore(server.url, { schema, monthsAhead: 0 });
    const session = await store.create({ dialect: "anthropic" });
    await session.startTurn({ role: "user", content: "task" });
    await session.close();
    const claimed = await store.claimNext({}, async (found) => (await found.resumeTurn()).end());
    expect(claimed).toMatchObject({ session: session.id, outcome: "finished" });
    await store.close();
    expect(await server.query(version)).toEqual([{ version: SCHEMA_VERSION, minor: 99 }]);
  });

  test("a minor update keeps no worker of the version before from restarting", async () => {
    const { schema } = await earlier(SCHEMA_VERSION);
    await (await openPostgresStore(server.url, { schema, monthsAhead: 0 })).close();
    // All that such a worker asks.
    const asked = `SELECT coalesce(max(version), 0) AS version FROM ${quoted(schema)}.holdfast_migrations`;
    expect(await server.query(asked)).toEqual([{ version: SCHEMA_VERSION }]);
  });

  test("a schema with tables of another program is left alone", async () => {
    const schema = fresh();
    await server.query(`CREATE SCHEMA ${quoted(schema)}`);
    await server.query(`CREATE TABLE ${quoted(schema)}.migrations (name text)`);
    await expect(openPostgresStore(server.url, { schema })).rejects.toMatchObject({
      code: "STORE_URL_INVALID",
      message: expect.stringMatching(/another program.*Nothing was touched.*schema=/),
    });
    expect(await tablesOf(schema)).toEqual(["migrations"]);
  });

  test("a database that cannot hold every text is refused", async () => {
    await server.query("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    const url = new URL(server.url);
    url.pathname = "/latin";
    await expect(openPostgresStore(url.href)).rejects.toMatchObject({
      code: "STORE_URL_INVALID",
      message: expect.stringMatching(/LATIN1.*UTF8/),
    });
  });

  test("a server that is too old is refused", async () => {
    const answer = { rows: [{ encoding: "UTF8", version: "130018" }] };
    const database = {
      name: "postgres://old",
      schema: "s",
      once: async () => answer,
      retry: (_: string, ask: () => unknown) => ask(),
    };
    await expect(migrate(database as never, { nowMs: 0, monthsAhead: 0, patienceMs: 0 })).rejects.toMatchObject({
      code: "STORE_URL_INVALID",
      message: expect.stringMatching(/postgres:\/\/old is PostgreSQL 13, .*Nothing was touched.* 14 or newer/),
    });
  });

  test("a server without TLS is not spoken to in clear where TLS was preferred", async () => {
    await expect(openPostgresStore(`${server.url}?sslmode=prefer`)).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
  });

  test("a database that is not there, and a server that is not there, are told apart", async () => {
    const url = new URL(server.url);
    url.pathname = "/nowhere";
    await expect(openPostgresStore(url.href)).rejects.toMatchObject({ code: "STORE_URL_INVALID" });
    url.port = "1";
    await expect(openPostgresStore(url.href, { patienceMs: 50 })).rejects.toMatchObject({ code: "STORE_IO" });
  });
});

describe("S24: the statements", () => {
  test('"power" waits for the disk where the server, or the role, says otherwise', async () => {
    await server.query("CREATE ROLE hasty SUPERUSER LOGIN PASSWORD 'secret'");
    await server.query("ALTER ROLE hasty SET synchronous_commit = off");
    const url = new URL(server.url);
    url.username = "hasty";
    const schema = fresh();
    const pool = new pg.Pool({ connectionString: url.href, max: 1 });
    const store = await openPostgresStore(pool, { schema, monthsAhead: 0 });
    // What the statement was committed with, as a trigger at its end sees it.
    await pool.query(`CREATE TABLE ${quoted(schema)}.seen (at serial, value text)`);
    await pool.query(`CREATE FUNCTION ${quoted(schema)}.see() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO ${quoted(schema)}.seen (value) VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`);
    await pool.query(
      `CREATE TRIGGER see AFTER INSERT ON ${quoted(schema)}.lines FOR EACH ROW EXECUTE FUNCTION ${quoted(schema)}.see()`,
    );
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "note" }, { durability: "power" });
    await journal.append({ kind: "note" }, { durability: "process" });
    await journal.epoch(() => [{ kind: "epoch" }]);
    const { rows } = await pool.query(`SELECT value FROM ${quoted(schema)}.seen ORDER BY at`);
    // create; opened and note; note; header and epoch
    expect(rows.map(({ value }) => value)).toEqual(["on", "on", "on", "off", "on", "on"]);
    // A pool that is the application's stays its own.
    await store.close();
    expect((await pool.query("SHOW synchronous_commit")).rows[0]).toEqual({ synchronous_commit: "off" });
    await pool.end();
  });

  test("an append that the database refuses has written nothing, nor has what came behind it, and the journal goes on", async () => {
    const schema = fresh();
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "note", text: "before" });
    await server.query(`ALTER TABLE ${quoted(schema)}.lines ADD CONSTRAINT small CHECK (length(line) < 1000)`);
    const results = await Promise.allSettled([
      journal.append({ kind: "note", text: "x".repeat(2000) }, { key: "k" }),
      journal.append({ kind: "note", text: "behind" }),
      journal.epoch(() => [{ kind: "epoch" }]),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(results[0]).toMatchObject({ reason: { code: "STORE_IO" } });
    expect(journal.failure).toBeNull();
    await journal.append({ kind: "note", text: "after" }, { key: "k" });
    await journal.close();
    const { records, recovery } = await store.read(journal.id);
    expect(records.map(({ seq, kind, text }) => [seq, kind, text])).toEqual([
      [1, "segment", undefined],
      [2, "opened", undefined],
      [3, "note", "before"],
      [4, "note", "after"],
      [5, "closed", undefined],
    ]);
    expect(recovery).toMatchObject({ unclean: false, damaged: [], missing: [] });
    await store.close();
  });

  test("C19: a database that is full says so, and the journal goes on when there is space again", async () => {
    const schema = fresh();
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
    const journal = await store.create(newId(), []);
    await server.query(`CREATE FUNCTION ${quoted(schema)}.full() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$`);
    await server.query(
      `CREATE TRIGGER full_disk BEFORE INSERT ON ${quoted(schema)}.lines FOR EACH ROW EXECUTE FUNCTION ${quoted(schema)}.full()`,
    );
    const full = { code: "STORE_FULL", message: expect.stringMatching(/no space left.*Nothing was changed/) };
    await expect(journal.append({ kind: "note" })).rejects.toMatchObject(full);
    await expect(store.create(newId(), [])).rejects.toMatchObject(full);
    await server.query(`DROP TRIGGER full_disk ON ${quoted(schema)}.lines`);
    expect((await journal.append({ kind: "note" })).seq).toBe(3);
    await store.close();
  });

  test("of several sessions that are written in one statement only the one that is refused is refused", async () => {
    const schema = fresh();
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
    const journals = await Promise.all([1, 2, 3, 4, 5, 6].map(() => store.create(newId(), [])));
    await server.query(`ALTER TABLE ${quoted(schema)}.lines ADD CONSTRAINT small CHECK (length(line) < 1000)`);
    const results = await Promise.allSettled(
      journals.map((journal, i) => journal.append({ kind: "note", text: "x".repeat(i === 3 ? 2000 : 1) })),
    );
    expect(results.map(({ status }) => status)).toEqual(journals.map((_, i) => (i === 3 ? "rejected" : "fulfilled")));
    await store.close();
  });

  test.each([
    ["another owner", "owner = gen_random_uuid()"],
    ["a newer fence", "fence = fence + 1"],
    ["the trash", "trashed = now()"],
  ])("%s, and no line behind ours yet: nothing is written, and the caller is refused", async (_, change) => {
    const schema = fresh();
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
    const journals = await Promise.all([1, 2, 3].map(() => store.create(newId(), [])));
    for (const journal of journals) await journal.append({ kind: "note" });
    await server.query(`UPDATE ${quoted(schema)}.heads SET ${change}`);
    const lost = { code: "LEASE_LOST" };
    const [one, two, epoch] = journals;
    await expect(one!.append({ kind: "note" })).rejects.toMatchObject(lost);
    await expect(two!.append([{ kind: "note" }, { kind: "note" }])).rejects.toMatchObject(lost);
    await expect(epoch!.epoch(() => [{ kind: "epoch" }])).rejects.toMatchObject(lost);
    expect(await server.query(`SELECT FROM ${quoted(schema)}.lines WHERE seq > 3`)).toEqual([]);
    expect(await server.query(`SELECT DISTINCT head::int FROM ${quoted(schema)}.heads`)).toEqual([{ head: 3 }]);
    await store.close().catch(() => undefined);
  });

  test("a lease that another worker has taken is told by the heartbeat, without an append", async () => {
    const schema = fresh();
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0, leaseMs: 150 });
    const journal = await store.create(newId(), []);
    const told = new Promise((resolve) => journal.onFailure(({ code }) => resolve(code)));
    await server.query(`UPDATE ${quoted(schema)}.heads SET owner = gen_random_uuid(), fence = fence + 1`);
    expect(await told).toBe("LEASE_LOST");
    await expect(journal.append({ kind: "note" })).rejects.toMatchObject({ code: "LEASE_LOST" });
    await journal.close();
    await store.close();
  });

  test("an application's own pool: its connections may be lost while they are idle, and it is not ended with the store", async () => {
    const schema = fresh();
    const pool = new pg.Pool({ connectionString: server.url, application_name: "the application" });
    const store = await openPostgresStore(pool, { schema, monthsAhead: 0, directUrl: server.url });
    const journal = await store.create(newId(), []);
    await server.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'the application'",
    );
    await journal.append({ kind: "note" });
    await store.close();
    expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
    await pool.end();
  });
});

describe("lists", () => {
  /** One of each kind, in the same order wherever it is. */
  async function fill(store: Store): Promise<void> {
    const create = (title: string, options: object = {}) => store.create({ dialect: "anthropic", title, ...options });
    const ask = { role: "user", content: "ask" } as const;
    const parent = await create("ended", { labels: { team: "red", size: "1" }, cwd: "/", app: "one" });
    await (await parent.startTurn(ask)).end();
    await create("empty", { labels: { team: "red" } });
    const left = await create("left", { labels: { team: "blue" } });
    await left.startTurn(ask);
    await left.close();
    const waiting = await create("waiting", { cwd: "/", labels: { team: "red" } });
    await (await waiting.startTurn(ask)).suspend({ reason: "may I?" });
    await (await create("running", { app: "two" })).startTurn(ask);
    const child = await create("child", { parent: { session: parent.id } });
    await (await child.startTurn(ask)).end();
    await (await create("queued")).enqueue(ask);
  }

  test("are the same as a store's in memory, by every filter and by page", async () => {
    let now = Date.UTC(2026, 10, 15);
    const clock = (): number => (now += 1000);
    const database = await openStore(server.url, { schema: fresh(), monthsAhead: 0, clock });
    const memory = await openStoreWith(async (given) => openMemoryStore({ ...given, clock }), {});
    const shown: unknown[][] = [];
    for (const store of [database, memory]) {
      await fill(store);
      const all = (await store.list({ empty: true })).sessions;
      const [third] = all.slice(2);
      const ended = all.find(({ title }) => title === "ended")!;
      const queries: ListQuery[] = [
        ...[{}, { empty: true }, { cwd: "/" }, { app: "one" }, { app: "two" }, { parent: ended.id }],
        ...[{ labels: { team: "red" } }, { labels: { team: "red", size: "1" } }, { labels: { team: "green" } }],
        ...(["idle", "running", "waiting", "interrupted"] as const).map((status) => ({ status, empty: true })),
        ...[{ since: third!.at }, { until: third!.at, empty: true }, { since: third!.at, until: third!.at }],
        { cwd: "/", labels: { team: "red" }, status: "waiting" },
      ];
      const answers: unknown[] = [];
      for (const query of queries) {
        const { sessions } = await store.list(query);
        answers.push([query, sessions.map(({ id, at, parent, ...rest }) => rest)]);
      }
      const pages: unknown[] = [];
      for (let after: string | undefined, more = true; more; ) {
        const page = await store.list({ limit: 2, empty: true, ...(after === undefined ? {} : { after }) });
        pages.push(page.sessions.map(({ title }) => title));
        after = page.next;
        more = after !== undefined;
      }
      shown.push([
        answers.map((answer) =>
          JSON.parse(JSON.stringify(answer, (key, value) => (/^(since|until|parent)$/.test(key) ? "…" : value))),
        ),
        pages,
      ]);
      await store.close().catch(() => undefined);
    }
    expect(shown[0]).toEqual(shown[1]);
    expect(JSON.stringify(shown[0])).toContain("interrupted");
  });
});

describe("retention", () => {
  const MONTH_MS = 31 * 24 * 3600 * 1000;

  /** The id that a session made at that time would have. */
  const idAt = (ms: number): string => {
    const hex = ms.toString(16).padStart(12, "0");
    return `${hex.slice(0, 8)}-${hex.slice(8)}-7${newId().slice(15)}`;
  };

  /** The 15th of a month that many months ago, by the server's clock and ours. */
  const monthsAgo = (count: number): number => {
    const now = new Date();
    return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - count, 15);
  };
  const nameOf = (ms: number): string => new Date(ms).toISOString().slice(0, 7);

  /** Partitions for the last months, and closed sessions with these ids, written at the time of their ids. */
  async function filled(schema: string, ids: readonly string[]): Promise<void> {
    const first = monthsAgo(5);
    await (await openPostgresStore(server.url, { schema, monthsAhead: 6, clock: () => first })).close();
    for (const id of ids) {
      const clock = (): number => Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
      const store = await openPostgresStore(server.url, { schema, monthsAhead: 0, clock });
      await (await store.create(id, [{ kind: "note" }])).close();
      await store.close();
    }
  }

  test("a month goes as a whole, with all that was in it, when nothing in it was written within the grace time", async () => {
    const schema = fresh();
    const [old, older, kept, young] = [5, 5, 3, 0].map((count, i) => idAt(monthsAgo(count) + i));
    await filled(schema, [old!, older!, kept!, young!]);
    // One session is still in use, however long ago it was created.
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
    const { journal } = await store.open(kept!);
    const options = { schema, olderThanMs: 2 * MONTH_MS };
    const month = nameOf(monthsAgo(3));
    expect(await dropMonths(server.url, options)).toEqual({
      dropped: [
        { month: nameOf(monthsAgo(5)), sessions: 2 },
        { month: nameOf(monthsAgo(4)), sessions: 0 },
      ],
      kept: [{ month, why: "being written" }],
    });
    await journal.append({ kind: "note" });
    await journal.close();
    expect(await dropMonths(server.url, options)).toMatchObject({ kept: [{ month, why: "written lately" }] });
    expect((await store.list()).sessions.map(({ id }) => id).sort()).toEqual([kept, young].sort());
    await expect(store.open(old!)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    for (const table of ["lines", "heads", "segments", "catalogue"]) {
      const rows = await server.query(`SELECT DISTINCT place FROM ${quoted(schema)}.${table}`);
      expect(rows.map((row) => String(row["place"])).sort()).toEqual([kept, young].sort());
    }
    expect(await tablesOf(schema)).not.toContain(`lines_${nameOf(monthsAgo(5)).replace("-", "_")}`);
    // With no grace it goes; and with a pool that is the application's.
    const pool = new pg.Pool({ connectionString: server.url });
    expect(await dropMonths(pool, { ...options, graceMs: -MONTH_MS })).toMatchObject({
      dropped: [{ month, sessions: 1 }],
      kept: [],
    });
    await pool.end();
    await store.close();
  });

  test("a machine whose clock is years ahead drops nothing that is not old by the server's clock", async () => {
    const schema = fresh();
    const [young, older] = [idAt(monthsAgo(0)), idAt(monthsAgo(3))];
    await filled(schema, [young, older]);
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 24 * MONTH_MS);
    onTestFinished(() => void vi.restoreAllMocks());
    const { dropped } = await dropMonths(server.url, { schema, olderThanMs: 6 * MONTH_MS });
    expect(dropped).toEqual([]);
  });

  test("while somebody reads for long, it tries for a moment now and then, and appends go on", async () => {
    const schema = fresh();
    const old = idAt(monthsAgo(4));
    await filled(schema, [old]);
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
    const journal = await store.create(newId(), []);
    const reading = new pg.Client({ connectionString: server.url });
    await reading.connect();
    await reading.query(`BEGIN; SELECT FROM ${quoted(schema)}.lines`);
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    const sent: string[] = [];
    pool.on("connect", (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      client.query = ((...args: unknown[]) => {
        sent.push((args[0] as { text: string }).text);
        return query(...args);
      }) as typeof client.query;
    });
    const dropping = dropMonths(pool, { schema, olderThanMs: 2 * MONTH_MS, waitMs: 1500 });
    let isOver = false;
    void dropping.finally(() => {
      isOver = true;
    });
    let appends = 0;
    for (; !isOver; appends++) await journal.append({ kind: "note" });
    const months = [5, 4, 3].map((count) => ({ month: nameOf(monthsAgo(count)), why: "locked" }));
    expect(await dropping).toEqual({ dropped: [], kept: months });
    // After 200, 400 and 800 ms, hardly more for the later months, and each try waits for 40 ms at most.
    const tries = sent.filter((text) => text.startsWith("LOCK TABLE"));
    expect(tries.length).toBeLessThanOrEqual(8);
    expect(sent.filter((text) => text.includes("lock_timeout = '40ms'"))).toHaveLength(tries.length);
    expect(appends).toBeGreaterThan(tries.length);
    expect(await store.has(old)).toBe(true);
    await reading.query("COMMIT");
    await reading.end();
    expect((await dropMonths(pool, { schema, olderThanMs: 2 * MONTH_MS })).kept).toEqual([]);
    expect(await store.has(old)).toBe(false);
    await pool.end();
    await store.close();
  });

  test("of a call that died, the next shows what was hidden if its month is there, and removes it if not", async () => {
    const schema = fresh();
    const [gone, shown] = [idAt(monthsAgo(4)), idAt(monthsAgo(1))];
    await filled(schema, [gone, shown]);
    await server.query(`UPDATE ${quoted(schema)}.heads SET head = -head, trashed = 'infinity'`);
    await server.query(`DROP TABLE ${quoted(schema)}.lines_${nameOf(monthsAgo(4)).replace("-", "_")}`);
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
    expect(await store.has(shown)).toBe(false);
    await store.gc({ graceMs: 0 });
    await dropMonths(server.url, { schema, olderThanMs: 12 * MONTH_MS });
    expect((await store.list()).sessions.map(({ id }) => id)).toEqual([shown]);
    expect((await store.read(shown)).recovery.unclean).toBe(false);
    for (const table of ["heads", "segments", "catalogue"])
      expect(await server.query(`SELECT place FROM ${quoted(schema)}.${table}`)).toEqual([{ place: shown }]);
    await store.close();
  });

  test("what is in no partition of its month is kept, and goes by delete and gc", async () => {
    const schema = fresh();
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
    const id = idAt(Date.UTC(2020, 0, 1));
    await (await store.create(id, [{ kind: "note" }])).close();
    expect((await dropMonths(server.url, { schema, olderThanMs: 0 })).dropped).toEqual([]);
    expect(await store.has(id)).toBe(true);
    await store.delete(id);
    expect((await store.gc({ graceMs: 0 })).removed).toEqual([id]);
    expect(await server.query(`SELECT FROM ${quoted(schema)}.lines`)).toEqual([]);
    await store.close();
  });

  test("the owner's store makes the partitions of the months to come when it is opened, and by gc", async () => {
    const schema = fresh();
    const may = Date.UTC(2031, 4, 20);
    await (await openPostgresStore(server.url, { schema, monthsAhead: 1, clock: () => may })).close();
    expect(await tablesOf(schema)).toEqual(expect.arrayContaining(["lines_2031_05", "lines_2031_06", "lines_other"]));
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 1, clock: () => may + MONTH_MS });
    expect(await tablesOf(schema)).toContain("lines_2031_07");
    await store.close();
  });
});
