import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "holdfast";
import type { Journal } from "holdfast/store";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { grants, openPostgresStore } from "../../../src/index.ts";
import { type Server, startServer } from "../../server/server.ts";

const MONTH_MS = 31 * 24 * 3600 * 1000;

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

async function partitions(schema: string): Promise<unknown[]> {
  const rows = await server.query(
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass($1) ORDER BY 1",
    [`${schema}.lines`],
  );
  return rows.map(({ relname }) => relname);
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await sleep(20);
}

/** A role with the rights of a worker. */
async function worker(name: string, schema: string): Promise<string> {
  await server.query(`CREATE ROLE ${name} LOGIN PASSWORD 'secret'`);
  for (const statement of grants(schema, { worker: name })) await server.query(statement);
  return server.url.replace("postgres:secret", `${name}:secret`);
}

test("workers that run for months create the partitions of the months to come, several at once, without the owner's rights", async () => {
  let now = Date.UTC(2026, 4, 10);
  const options = { schema: "upkept", monthsAhead: 1, clock: () => now, upkeepMs: 40 };
  await (await openPostgresStore(server.url, options)).close();
  const url = await worker("upkeeper", "upkept");
  const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore(url, options)));
  onTestFinished(async () => {
    for (const store of stores) await store.close();
  });
  expect(await partitions("upkept")).toEqual(["lines_2026_05", "lines_2026_06", "lines_other"]);
  now += 2 * MONTH_MS;
  const expected = ["lines_2026_05", "lines_2026_06", "lines_2026_07", "lines_2026_08", "lines_other"];
  await until(async () => (await partitions("upkept")).length === expected.length);
  expect(await partitions("upkept")).toEqual(expected);
});

test("a worker cannot create anything else through it", async () => {
  await (await openPostgresStore(server.url, { schema: "narrow", monthsAhead: 0 })).close();
  const url = await worker("narrow", "narrow");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  const before = await partitions("narrow");
  for (const month of ["1999-01-01", "2500-01-01"]) {
    const { rows } = await client.query("SELECT narrow.make_partition($1) AS made", [month]);
    expect(rows).toEqual([{ made: false }]);
  }
  expect(await partitions("narrow")).toEqual(before);
  await expect(client.query("CREATE TABLE narrow.mine ()")).rejects.toMatchObject({ code: "42501" });
});

test("appends go on while a partition is created, and while its creation has to wait", async () => {
  let now = Date.UTC(2026, 4, 10);
  const options = { schema: "busy", monthsAhead: 0, clock: () => now, upkeepMs: 0 };
  const store = await openPostgresStore(server.url, options);
  onTestFinished(() => store.close());
  const journal: Journal = await store.create(newId(), []);
  const reader = new pg.Client({ connectionString: server.url });
  await reader.connect();
  onTestFinished(() => reader.end());
  // A dump holds this lock on all partitions for as long as it reads.
  await reader.query("BEGIN; LOCK TABLE busy.lines, busy.lines_other IN ACCESS SHARE MODE");
  now += MONTH_MS;
  const appends: Promise<unknown>[] = [];
  const made = store.gc();
  for (let n = 0; n < 20; n++) appends.push(journal.append({ kind: "note", n }));
  await Promise.all(appends);
  await made;
  expect(await partitions("busy")).toEqual(["lines_2026_05", "lines_other"]);
  await reader.query("ROLLBACK");
  await store.gc();
  expect(await partitions("busy")).toEqual(["lines_2026_05", "lines_2026_06", "lines_other"]);
});

test("a month whose first lines are in the default partition stays there, and later months get their own", async () => {
  const now = Date.now();
  const first = Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth() - 1);
  const before = await openPostgresStore(server.url, { schema: "late", monthsAhead: 0, clock: () => first });
  await (await before.create(newId(), [])).close();
  await before.close();
  const store = await openPostgresStore(server.url, { schema: "late", monthsAhead: 1 });
  onTestFinished(() => store.close());
  const names = await partitions("late");
  const month = (at: number): string => `lines_${new Date(at).toISOString().slice(0, 7).replace("-", "_")}`;
  expect(names).not.toContain(month(now));
  expect(names).toHaveLength(3);
});
