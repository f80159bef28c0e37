import { EventEmitter } from "node:events";
import { newId } from "holdfast";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Database } from "../../../src/connection/database.ts";
import { destroy } from "../../../src/connection/pools.ts";
import { openPostgresStore } from "../../../src/index.ts";
import { Lines } from "../../../src/reading/lines.ts";
import { type Server, startServer } from "../../server/server.ts";

let server: Server;
let pool: pg.Pool;
let database: Database;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
  pool = new pg.Pool({ connectionString: server.url, max: 2 });
  pool.on("error", () => undefined);
  database = new Database(pool, { name: "test", schema: "holdfast", patienceMs: 5000, answerMs: 5000 });
});
afterAll(async () => {
  await pool.end();
  await server.stop();
});

/** A journal of lines with texts of these lengths. Answers its place, and its head. */
async function journalOf(lengths: readonly number[]): Promise<{ place: string; head: number }> {
  await using store = await openPostgresStore(server.url);
  const id = newId();
  await using journal = await store.create(id, []);
  await Promise.all(lengths.map((length) => journal.append({ kind: "note", text: "x".repeat(length) })));
  const [found] = await server.query(`SELECT place, head FROM holdfast.heads WHERE id = '${id}'`);
  return { place: String(found!["place"]), head: Number(found!["head"]) };
}

test.each([
  ["", {}],
  // The driver then hears of the end of a statement itself, and tells nobody else of an error.
  [" (by a pool that has a limit for each statement)", { query_timeout: 600_000 }],
])(
  "C10: a connection that is lost while a journal is read%s: it goes on behind the last line, none missing and none twice",
  async (_, limit) => {
    const { place, head } = await journalOf(Array.from({ length: 2000 }, () => 1000));
    const own = new pg.Pool({ connectionString: server.url, max: 1, ...limit });
    own.on("error", () => undefined);
    const lost = new Set<object>();
    let handedOut: pg.PoolClient | null = null;
    own.on("acquire", (client) => {
      handedOut = client;
    });
    const reading = new Database(own, { name: "test", schema: "holdfast", patienceMs: 5000, answerMs: 600_000 });
    const seqs: number[] = [];
    await new Lines(reading).each(place, 1, head, ({ seq }) => {
      seqs.push(seq);
      if (seq !== 500 && seq !== 1500) return;
      lost.add(handedOut!);
      destroy(handedOut!);
    });
    expect(lost.size).toBe(2);
    expect(seqs).toEqual(Array.from({ length: head }, (_, i) => i + 1));
    await own.end();
  },
);

test("by an application's pool of another release of the driver, whose statements are not like ours", async () => {
  const { place, head } = await journalOf([1, 2, 3]);
  class OlderQuery extends pg.Query {
    override readonly submit = (connection: pg.Connection): void => {
      connection.query((this as unknown as { readonly text: string }).text);
    };
  }
  class OlderClient extends pg.Client {
    static readonly Query = OlderQuery;
  }
  const own = new pg.Pool({ connectionString: server.url, Client: OlderClient as never });
  own.on("connect", (client) => {
    // Which a statement of this release looks at.
    const { connection } = client as unknown as { connection: { submittedNamedStatements?: unknown } };
    delete connection.submittedNamedStatements;
  });
  const reading = new Database(own, { name: "test", schema: "holdfast", patienceMs: 5000, answerMs: 5000 });
  const seqs: number[] = [];
  await new Lines(reading).each(place, 1, head, ({ seq }) => seqs.push(seq));
  expect(seqs).toEqual(Array.from({ length: head }, (_, i) => i + 1));
  await own.end();
});

test("by a driver that cannot copy, such as the native one", async () => {
  const { place, head } = await journalOf([1, 2, 3]);
  class RowQuery extends EventEmitter {
    constructor(config: pg.QueryConfig) {
      super();
      Object.assign(this, new pg.Query(config));
    }
  }
  const {
    handleCopyData: _,
    constructor: __,
    ...methods
  } = Object.getOwnPropertyDescriptors(pg.Query.prototype) as {
    [name: string]: PropertyDescriptor;
  };
  Object.defineProperties(RowQuery.prototype, methods);
  class RowClient extends pg.Client {
    static readonly Query = RowQuery;
  }
  const own = new pg.Pool({ connectionString: server.url, Client: RowClient as never });
  const reading = new Database(own, { name: "test", schema: "holdfast", patienceMs: 5000, answerMs: 5000 });
  const lines: string[] = [];
  await new Lines(reading).each(place, 1, head, ({ bytes }) => lines.push(bytes.toString()));
  const copied: string[] = [];
  await new Lines(database).each(place, 1, head, ({ bytes }) => copied.push(bytes.toString()));
  expect(lines).toHaveLength(head);
  expect(lines).toEqual(copied);
  await own.end();
});

test("whoever looks at a line and fails ends the reading, with his own error, and hears of no other line", async () => {
  const { place, head } = await journalOf([1, 2, 3, 4]);
  let seen = 0;
  const reading = new Lines(database).each(place, 1, head, () => {
    seen++;
    throw new TypeError("not this one");
  });
  await expect(reading).rejects.toThrow("not this one");
  expect(seen).toBe(1);
});

test("short lines, and then long ones: no more of them at once than fit, and one that fits nowhere by itself", async () => {
  const mega = 1024 * 1024;
  const { place, head } = await journalOf([
    ...Array.from({ length: 40 }, () => 10),
    ...Array.from({ length: 10 }, () => mega),
    6 * mega,
  ]);
  const chunks: number[] = [];
  const seqs: number[] = [];
  for await (const lines of new Lines(database).read(place, 1, head)) {
    chunks.push(lines.reduce((sum, { bytes }) => sum + bytes.length, 0));
    seqs.push(...lines.map(({ seq }) => seq));
  }
  expect(seqs).toEqual(Array.from({ length: head }, (_, i) => i + 1));
  expect(chunks.length).toBeGreaterThanOrEqual(3);
  for (const bytes of chunks.slice(0, -1)) expect(bytes).toBeLessThan(5.5 * mega);
});

test("lines that are gone, more than are read in one go: those behind them are read", async () => {
  const { place, head } = await journalOf(Array.from({ length: 2200 }, () => 1));
  await server.query(`DELETE FROM holdfast.lines WHERE place = '${place}' AND seq BETWEEN 10 AND 2100`);
  const left = [1, 2, 3, 4, 5, 6, 7, 8, 9, ...Array.from({ length: head - 2100 }, (_, i) => 2101 + i)];
  const some: number[] = [];
  for await (const lines of new Lines(database).read(place, 1, head)) some.push(...lines.map(({ seq }) => seq));
  expect(some).toEqual(left);
  const each: number[] = [];
  await new Lines(database).each(place, 1, head, ({ seq }) => each.push(seq));
  expect(each).toEqual(left);
});

test("a connection that is lost in a transaction fails it, and ends nobody's process", async () => {
  const work = database.transaction("try", (query) => query("SELECT pg_terminate_backend(pg_backend_pid())"));
  await expect(work).rejects.toMatchObject({ code: "STORE_IO" });
  await expect(database.query("look", "SELECT 1 AS one")).resolves.toMatchObject({ rows: [{ one: 1 }] });
});
