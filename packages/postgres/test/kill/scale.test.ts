import { randomUUID } from "node:crypto";
import { newId } from "holdfast";
import { OrderClock } from "holdfast/internal";
import type { Journal, JournalStore } from "holdfast/store";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { findDialect } from "../../../holdfast/src/dialects/index.ts";
import { SearchIndex } from "../../../holdfast/src/search/search-index.ts";
import { found, said, session } from "../../../holdfast/test/unit/search/search-stores.ts";
import { Database } from "../../src/connection/database.ts";
import { openPostgresStore } from "../../src/index.ts";
import { Leases } from "../../src/leases/leases.ts";
import { Catalogue } from "../../src/listing/catalogue.ts";
import { Lines } from "../../src/reading/lines.ts";
import { type Server, startServer } from "../server/server.ts";

let server: Server;
let schemas = 0;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

const fresh = (): string => `scale_${++schemas}`;

async function open(schema: string, place: string | pg.Pool = server.url, leaseMs = 15_000): Promise<JournalStore> {
  const store = await openPostgresStore(place, { schema, monthsAhead: 0, durability: "process", leaseMs });
  onTestFinished(() => store.close());
  return store;
}

/** A pool, and the text of each statement that goes through it. */
function recorded(): { readonly pool: pg.Pool; readonly sent: string[] } {
  const pool = new pg.Pool({ connectionString: server.url, max: 4, connectionTimeoutMillis: 10_000 });
  pool.on("error", () => undefined);
  const sent: string[] = [];
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: unknown[]) => {
      sent.push((args[0] as { text?: string }).text ?? String(args[0]));
      return query(...args);
    }) as typeof client.query;
  });
  onTestFinished(() => pool.end());
  return { pool, sent };
}

async function one(text: string, values: unknown[] = []): Promise<Record<string, unknown>> {
  return (await server.query(text, values))[0]!;
}

describe("lists", () => {
  /** Sessions whose worker seems dead to others, because its heartbeat has expired. */
  async function left(schema: string, count: number): Promise<Journal[]> {
    // No heartbeat comes in between.
    const store = await open(schema, server.url, 600_000);
    const journals = await Promise.all(Array.from({ length: count }, () => store.create(newId(), [])));
    await Promise.all(journals.map((journal) => journal.append({ kind: "note" })));
    // Nor does it save their rows later.
    const saved = `SELECT count(*)::int AS rows FROM ${schema}.catalogue WHERE live_head = 3`;
    await expect.poll(() => one(saved)).toEqual({ rows: count });
    await server.query(`UPDATE ${schema}.workers SET expires = now() - interval '1 minute'`);
    return journals;
  }

  test("settle the sessions that a dead worker left: later lists do not look at them, and they count as not closed", async () => {
    const schema = fresh();
    const journals = await left(schema, 40);
    const other = await open(schema);
    for (const times of [1, 2]) {
      const { sessions } = await other.list();
      expect(sessions.map(({ closed, head }) => [closed, head])).toEqual(journals.map(() => [false, 3]));
      const rows = await one(`SELECT count(*) FILTER (WHERE NOT closed)::int AS open FROM ${schema}.catalogue`);
      expect([times, rows["open"]]).toEqual([times, 0]);
    }
    // By page, and in the same order.
    const all = (await other.list()).sessions.map(({ id }) => id);
    const first = await other.list({ limit: 15 });
    const rest = await other.list({ limit: 40, after: first.next! });
    expect([...first.sessions, ...rest.sessions].map(({ id }) => id)).toEqual(all);
  });

  test("show at once what a worker writes that was taken for dead and knows it", async () => {
    const schema = fresh();
    const [journal] = await left(schema, 1);
    const other = await open(schema);
    await other.list();
    vi.spyOn(Leases.prototype, "isOverdue", "get").mockReturnValue(true);
    onTestFinished(() => void vi.restoreAllMocks());
    await journal!.append({ kind: "note" });
    expect((await other.list()).sessions).toMatchObject([{ head: 4, closed: false }]);
  });

  test("show what a worker writes that was taken for dead and does not know it, once it has saved its row", async () => {
    const schema = fresh();
    const [journal] = await left(schema, 1);
    const other = await open(schema);
    await other.list();
    await journal!.append({ kind: "note" });
    await expect.poll(async () => (await other.list()).sessions[0]).toMatchObject({ head: 4, closed: false });
  });

  test("a worker knows when others may take it for dead", async () => {
    const schema = fresh();
    await open(schema);
    const pool = new pg.Pool({ connectionString: server.url, connectionTimeoutMillis: 5000 });
    onTestFinished(() => pool.end());
    const leases = new Leases(database(pool, schema), database(pool, schema), randomUUID(), 60_000);
    expect(leases.isOverdue).toBe(true);
    await leases.claim(newId());
    expect(leases.isOverdue).toBe(false);
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 61_000);
    onTestFinished(() => void vi.restoreAllMocks());
    expect(leases.isOverdue).toBe(true);
    await leases.close();
  });

  const database = (pool: pg.Pool, schema: string): Database =>
    new Database(pool, { name: "postgres:test", schema, patienceMs: 1000, answerMs: 5000 });

  async function withCatalogue(schema: string, work: (catalogue: Catalogue) => Promise<void>): Promise<void> {
    const pool = new pg.Pool({ connectionString: server.url, connectionTimeoutMillis: 5000, max: 1 });
    const base = database(pool, schema);
    try {
      await work(new Catalogue(base, new Lines(base), undefined, OrderClock.of(undefined)));
    } finally {
      await pool.end();
    }
  }

  async function leaseOf(schema: string, id: string): Promise<Parameters<Catalogue["save"]>[0]> {
    const { place, owner, fence, attempt } = await one(`SELECT * FROM ${schema}.heads WHERE id = $1`, [id]);
    const [ownerOf, fenceOf] = [String(owner), String(fence)];
    return { place: String(place), owner: ownerOf, fence: fenceOf, attempt: String(attempt), head: 0 };
  }

  test("the row of a session that is being written changes on its page, and touches no index", async () => {
    const schema = fresh();
    const store = await open(schema);
    const journal = await store.create(newId(), []);
    const lease = await leaseOf(schema, journal.id);
    // No row is ahead of its journal.
    await server.query(`UPDATE ${schema}.heads SET head = 41`);
    onTestFinished(async () => void (await server.query(`UPDATE ${schema}.heads SET head = 1`)));
    const stats = `SELECT n_tup_upd::int AS updates, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'catalogue'`;
    // The server counts when the connection ends.
    await withCatalogue(schema, async (catalogue) => {
      for (let head = 2; head < 42; head++) {
        const at = new Date(Date.UTC(2030, 0, 1, 0, head)).toISOString();
        await catalogue.save(lease, { head, at, stamp: at, row: { title: `Title ${head}`, turns: head } }, "live");
      }
    });
    await expect.poll(() => one(stats, [schema])).toEqual({ updates: 40, hot: 40 });
    const { sessions } = await store.list({ where: { turns: 41 } });
    expect(sessions).toMatchObject([{ id: journal.id, head: 41, summary: { title: "Title 41" }, closed: false }]);
    // Others sort after it, although no index has its time.
    expect((await one(`SELECT max(newest) AS newest FROM ${schema}.workers`))["newest"]).toMatch(/^2030-01-01T00:/);
  });

  test("a replaced worker's late save changes nothing", async () => {
    const schema = fresh();
    const store = await open(schema);
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "note" });
    const lease = await leaseOf(schema, journal.id);
    await server.query(`UPDATE ${schema}.heads SET fence = fence + 1`);
    onTestFinished(async () => void (await server.query(`UPDATE ${schema}.heads SET fence = fence - 1`)));
    const before = await one(`SELECT * FROM ${schema}.catalogue`);
    const late = { head: 3, at: "2030-01-01T00:00:00.000Z", stamp: "2030-01-01T00:00:00.000Z", row: null };
    await withCatalogue(schema, async (catalogue) => {
      for (const mark of ["live", "left", "closed"] as const) await catalogue.save(lease, late, mark);
    });
    expect(await one(`SELECT * FROM ${schema}.catalogue`)).toEqual(before);
  });

  test("a save of records that the server has forgotten changes nothing", async () => {
    const schema = fresh();
    const store = await open(schema);
    const journal = await store.create(newId(), []);
    const lease = await leaseOf(schema, journal.id);
    const before = await one(`SELECT * FROM ${schema}.catalogue`);
    const ahead = { head: 3, at: "2030-01-01T00:00:00.000Z", stamp: "2030-01-01T00:00:00.000Z", row: null };
    await withCatalogue(schema, async (catalogue) => {
      for (const mark of ["live", "left", "closed"] as const) await catalogue.save(lease, ahead, mark);
    });
    expect(await one(`SELECT * FROM ${schema}.catalogue`)).toEqual(before);
  });

  test("a row is not settled over a record that was appended meanwhile", async () => {
    const schema = fresh();
    const store = await open(schema);
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "note" });
    // The store does not save it later.
    await expect.poll(() => one(`SELECT live_head::int FROM ${schema}.catalogue`)).toEqual({ live_head: 3 });
    const lease = await leaseOf(schema, journal.id);
    const late = { head: 2, at: "2030-01-01T00:00:00.000Z", stamp: "2030-01-01T00:00:00.000Z", row: null };
    await withCatalogue(schema, async (catalogue) => {
      await catalogue.save(lease, late, "left");
      expect(await one(`SELECT closed FROM ${schema}.catalogue`)).toEqual({ closed: false });
      await catalogue.save(lease, { ...late, head: 3 }, "left");
    });
    expect(await one(`SELECT closed, unclosed_head FROM ${schema}.catalogue`)).toEqual({
      closed: true,
      unclosed_head: "3",
    });
    expect((await store.list()).sessions).toMatchObject([{ closed: false }]);
  });
});

describe("search", () => {
  const indexOf = (store: JournalStore): SearchIndex => {
    const index = new SearchIndex(store, { dialectNamed: findDialect, delayMs: 0 });
    onTestFinished(() => index.close());
    return index;
  };

  test("with nothing new asks once for what is new, and once for the hits", async () => {
    const schema = fresh();
    const { pool, sent } = recorded();
    const store = await open(schema, pool);
    for (let i = 0; i < 5; i++) await session(store, [said("m1", "a needle")]);
    const index = indexOf(store);
    expect(await found(index, "needle")).toHaveLength(5);
    sent.length = 0;
    expect(await found(index, "nothing")).toEqual([]);
    // Heartbeats go through the same pool.
    expect(sent.filter((text) => text.includes("texts"))).toHaveLength(2);
    expect(await one(`SELECT count(*)::int AS changes FROM ${schema}.texts_changes`)).toEqual({ changes: 0 });
  });

  test("keeps each text as people see it and as words, and no third time", async () => {
    const schema = fresh();
    await open(schema);
    const columns = await server.query(
      `SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attlen = -1`,
      [`${schema}.texts`],
    );
    expect(columns.map(({ name }) => name)).toEqual(["said", "message", "text", "words"]);
  });
});

describe("S27: a worker", () => {
  /** What clients send, and the notifications that reach them. */
  function watch(): { readonly sent: string[]; readonly heard: string[] } {
    const sent: string[] = [];
    const heard: string[] = [];
    const { query, emit } = pg.Client.prototype;
    vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (this: pg.Client, ...args: unknown[]) {
      const { text } = args[0] as { text?: string };
      if (text && /LISTEN "holdfast_/.test(text)) sent.push(text);
      return (query as (...given: unknown[]) => never).apply(this, args);
    });
    vi.spyOn(pg.Client.prototype, "emit").mockImplementation(function (this: pg.Client, name, ...args: unknown[]) {
      if (name === "notification") heard.push((args[0] as pg.Notification).channel);
      return (emit as (...given: unknown[]) => boolean).call(this, name, ...args);
    });
    onTestFinished(() => void vi.restoreAllMocks());
    return { sent, heard };
  }

  test("listens only while it follows, and only to what it follows", async () => {
    const schema = fresh();
    const [store, other] = [await open(schema), await open(schema)];
    const [followed, unfollowed] = [await store.create(newId(), []), await store.create(newId(), [])];
    const { sent, heard } = watch();
    await followed.append({ kind: "note" });
    expect(sent).toEqual([]);
    for await (const { seq } of other.follow(followed.id)) {
      if (seq === 6) break;
      if (seq < 3) continue;
      await expect.poll(() => sent).toHaveLength(1);
      await unfollowed.append({ kind: "note" });
      await followed.append({ kind: "note" });
    }
    const channel = `holdfast_${followed.id}`;
    expect(sent).toEqual([`LISTEN "${channel}"`]);
    await expect.poll(() => heard.length).toBeGreaterThan(0);
    expect(new Set(heard)).toEqual(new Set([channel]));
    await expect.poll(() => sent).toEqual([`LISTEN "${channel}"`, `UNLISTEN "${channel}"`]);
  });

  test("keeps listening while somebody else here follows the same session", async () => {
    const schema = fresh();
    const [store, other] = [await open(schema), await open(schema)];
    const journals = [await store.create(newId(), []), await store.create(newId(), [])];
    const { sent, heard } = watch();
    const stops = [new AbortController(), new AbortController(), new AbortController()];
    const reached = [0, 0, 0];
    const following = [0, 0, 1].map(async (journal, follower) => {
      const { signal } = stops[follower]!;
      for await (const { seq } of other.follow(journals[journal]!.id, { signal })) reached[follower] = seq;
    });
    const [first, second] = journals.map(({ id }) => `"holdfast_${id}"`);
    await expect.poll(() => sent).toEqual([`LISTEN ${first}`, `LISTEN ${second}`]);
    for (const follower of [0, 2]) {
      stops[follower]!.abort();
      await following[follower];
    }
    await expect.poll(() => sent.slice(2)).toEqual([`UNLISTEN ${second}`]);
    for (const journal of journals) await journal.append({ kind: "note" });
    await expect.poll(() => heard).toContain(`holdfast_${journals[0]!.id}`);
    await expect.poll(() => reached[1]).toBe(journals[0]!.head);
    stops[1]!.abort();
    await following[1];
    await expect.poll(() => sent.slice(3)).toEqual([`UNLISTEN ${first}`]);
  });
});

test("a follower that waits asks only for the newest seq", async () => {
  const schema = fresh();
  const [store, other] = [await open(schema), await open(schema)];
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "note" });
  const stop = new AbortController();
  const seqs: number[] = [];
  const following = (async () => {
    for await (const { seq } of other.follow(journal.id, { signal: stop.signal })) seqs.push(seq);
  })();
  await expect.poll(() => seqs.at(-1)).toBe(journal.head);
  const asked: string[] = [];
  const query = pg.Client.prototype.query;
  vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const { text } = args[0] as { text?: string };
    if (text?.includes(schema)) asked.push(text);
    return (query as (...given: unknown[]) => never).apply(this, args);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  // It also looks by itself.
  await expect.poll(() => asked.filter((text) => text.includes("json_agg")).length).toBeGreaterThan(1);
  expect(asked.filter((text) => text.includes("line FROM"))).toEqual([]);
  stop.abort();
  await following;
});
