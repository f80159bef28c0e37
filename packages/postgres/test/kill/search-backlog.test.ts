import { HoldfastError } from "holdfast";
import type { JournalStore } from "holdfast/store";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { findDialect } from "../../../holdfast/src/dialects/index.ts";
import { SearchIndex } from "../../../holdfast/src/search/search-index.ts";
import { append, said, session } from "../../../holdfast/test/unit/search/search-stores.ts";
import { openPostgresStore } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";

let server: Server;
let schemas = 0;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

const fresh = (): string => `backlog_${++schemas}`;

async function open(schema: string): Promise<JournalStore> {
  const store = await openPostgresStore(server.url, { schema, monthsAhead: 0, durability: "process" });
  onTestFinished(() => store.close());
  return store;
}

async function one(text: string): Promise<Record<string, unknown>> {
  return (await server.query(text))[0]!;
}

const indexOf = (store: JournalStore): SearchIndex => {
  const index = new SearchIndex(store, { dialectNamed: findDialect, delayMs: 0 });
  onTestFinished(() => index.close());
  return index;
};

/** Copies of one session, made in the database. */
async function many(schema: string, store: JournalStore, count: number): Promise<void> {
  const id = await session(store, [said("m1", "a needle")]);
  await server.query(
    `WITH ids AS MATERIALIZED (SELECT gen_random_uuid() AS id FROM generate_series(1, $1)),
    heads AS (INSERT INTO ${schema}.heads (place, id, head, fence) SELECT ids.id, ids.id, h.head, 1 FROM ids, ${schema}.heads AS h WHERE h.id = $2),
    rows AS (INSERT INTO ${schema}.catalogue (place, id, at, head, closed, summary) SELECT ids.id, ids.id, c.at, c.head, true, c.summary FROM ids, ${schema}.catalogue AS c WHERE c.id = $2)
    INSERT INTO ${schema}.lines SELECT ids.id, l.seq, l.line FROM ids, ${schema}.lines AS l WHERE l.place = $2`,
    [count - 1, id],
  );
}

test("the first search says how far it is; if it ends early, the next goes on from there, and then only changes count", async () => {
  const schema = fresh();
  const store = await open(schema);
  await many(schema, store, 450);
  await server.query(`TRUNCATE ${schema}.texts_changes`);
  const first = indexOf(store);
  const seen: number[] = [];
  const onProgress = ({ done, total }: { done: number; total: number }): void => {
    expect(total).toBe(450);
    seen.push(done);
    if (seen.length === 2) void first.close();
  };
  const stopped = async (): Promise<void> => {
    for await (const _ of first.search("needle", undefined, { onProgress }));
  };
  await expect(stopped()).rejects.toMatchObject({ code: "STORE_CLOSED" });
  expect(seen).toEqual([0, 200]);
  const hits: string[] = [];
  for await (const hit of indexOf(store).search("needle", undefined, {
    onProgress: ({ done }) => void seen.push(done),
  }))
    hits.push(hit.session);
  expect(seen.slice(2)).toEqual([200, 400, 450]);
  expect(new Set(hits).size).toBe(450);
  seen.length = 0;
  await session(store, [said("m1", "another needle")]);
  const again = indexOf(store).search("another", undefined, { onProgress: ({ done }) => void seen.push(done) });
  expect(await Array.fromAsync(again)).toHaveLength(1);
  expect(seen).toEqual([]);
});

test("a later search with many sessions to add says how far it is, and does not look at them again", async () => {
  const schema = fresh();
  const store = await open(schema);
  await many(schema, store, 3);
  const search = async (): Promise<{ readonly hits: number; readonly seen: string[] }> => {
    const seen: string[] = [];
    const onProgress = ({ done, total }: { done: number; total: number }): void => void seen.push(`${done}/${total}`);
    const hits = await Array.fromAsync(indexOf(store).search("needle", undefined, { onProgress }));
    return { hits: hits.length, seen };
  };
  expect(await search()).toEqual({ hits: 3, seen: ["0/3", "3/3"] });
  await many(schema, store, 450);
  const changes = `SELECT count(*)::int AS changes FROM ${schema}.texts_changes`;
  expect(await one(changes)).toEqual({ changes: 450 });
  expect(await search()).toEqual({ hits: 453, seen: ["0/450", "200/450", "400/450", "450/450"] });
  expect(await one(changes)).toEqual({ changes: 0 });
  // As many that are being written.
  await many(schema, store, 210);
  await server.query(
    `UPDATE ${schema}.catalogue AS c SET closed = false WHERE NOT EXISTS (SELECT FROM ${schema}.texts_sessions AS t WHERE t.id = c.id)`,
  );
  await server.query(`TRUNCATE ${schema}.texts_changes`);
  expect(await search()).toEqual({ hits: 663, seen: ["0/210", "200/210", "210/210"] });
});

test("a session that cannot be read stays to be indexed; the others of its page do not", async () => {
  const schema = fresh();
  const store = await open(schema);
  const ids = [await session(store, [said("m1", "a needle")]), await session(store, [said("m1", "a needle")])];
  const unread: string[] = [];
  const onIncomplete = (id: string): void => void unread.push(id);
  const waiting = (): Promise<Record<string, unknown>[]> =>
    server.query(`SELECT DISTINCT id FROM ${schema}.texts_changes`);
  const reading = store.history.bind(store);
  store.history = (id, from) => {
    if (id === ids[0]) throw new HoldfastError("STORE_IO", "cannot be read", {});
    return reading(id, from);
  };
  expect(await Array.fromAsync(indexOf(store).search("needle", undefined, { onIncomplete }))).toHaveLength(1);
  expect(unread).toEqual([ids[0]]);
  expect(await waiting()).toEqual([{ id: ids[0] }]);
});

test("gc removes changes that nobody has searched for, if they are many and done", async () => {
  const schema = fresh();
  const store = await open(schema);
  const indexed = await session(store, [said("m1", "a needle")]);
  const grown = await session(store, [said("m1", "a needle")]);
  expect(await Array.fromAsync(indexOf(store).search("needle"))).toHaveLength(2);
  await append(store, grown, said("m2", "more"));
  const unindexed = await session(store, [said("m1", "another needle")]);
  const change = (id: string): Promise<unknown> =>
    server.query(`INSERT INTO ${schema}.texts_changes (id) VALUES ($1)`, [id]);
  const left = async (): Promise<unknown[]> =>
    (await server.query(`SELECT id FROM ${schema}.texts_changes ORDER BY n`)).map(({ id }) => id);
  await change(indexed);
  await store.gc!();
  expect(await left()).toEqual([grown, unindexed, indexed]);
  // Many later.
  await server.query(`SELECT setval(pg_get_serial_sequence('${schema}.texts_changes', 'n'), 200000)`);
  await change(indexed);
  await store.gc!();
  expect(await left()).toEqual([grown, unindexed, indexed]);
  await server.query(`TRUNCATE ${schema}.texts_sweep`);
  await store.gc!();
  expect(await left()).toEqual([indexed]);
});

test("a search that takes what there is does not wait for the first indexing, which goes on", async () => {
  const schema = fresh();
  const store = await open(schema);
  await many(schema, store, 60);
  const reading = store.history.bind(store);
  const { promise: goOn, resolve } = Promise.withResolvers<void>();
  let reads = 0;
  store.history = async function* (...args) {
    if (++reads > 5) await goOn;
    yield* reading(...args);
  };
  const index = indexOf(store);
  const hits = await Array.fromAsync(index.search("needle", undefined, { partial: true }));
  expect(hits.length).toBeLessThan(60);
  resolve();
  expect(await Array.fromAsync(index.search("needle"))).toHaveLength(60);
});

test("the first search is prepared in the background, a few sessions at a time, by one process", async () => {
  const schema = fresh();
  const store = await open(schema);
  await many(schema, store, 50);
  const pages = await Promise.all(
    [1, 2, 3].map(async () => {
      for await (const { sessions } of store.texts!.behind!({ background: true })) return sessions.length;
      return 0;
    }),
  );
  expect(pages.sort()).toEqual([0, 0, 20]);
  await server.query(`UPDATE ${schema}.texts_sweep SET claimed = NULL`);
  const index = indexOf(store);
  index.note(await session(store, [said("m1", "noted")]));
  const indexed = (): Promise<Record<string, unknown>> =>
    one(`SELECT count(*)::int AS sessions FROM ${schema}.texts_sessions`);
  await expect.poll(indexed).toEqual({ sessions: 51 });
});
