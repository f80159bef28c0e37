import { randomUUID } from "node:crypto";
import { newId } from "holdfast";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Database } from "../../../src/connection/database.ts";
import { openPostgresStore } from "../../../src/index.ts";
import { SharedSync } from "../../../src/leases/shared-sync.ts";
import { Lines } from "../../../src/reading/lines.ts";
import { Batcher, statementOf, type Write } from "../../../src/writing/statement-batcher.ts";
import { freePort, type Server, startServer } from "../../server/server.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
  await (await openPostgresStore(server.url, { schema: "statements", monthsAhead: 0 })).close();
});
afterAll(() => server.stop());

function open(connectionString = server.url, patienceMs = 2000): Database {
  const pool = new pg.Pool({ connectionString, connectionTimeoutMillis: 5000, max: 4 });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  return new Database(pool, { name: "here", schema: "statements", patienceMs, answerMs: 5000 });
}

const sent = (database: Database): number => database.metrics.snapshot({} as pg.Pool, 0, false).counters.statements;

/** A session with this many lines, which this worker has. */
async function write(lines: readonly string[], more: Partial<Write> = {}): Promise<Write> {
  const lease = { place: newId(), owner: randomUUID(), fence: "1", head: 0, attempt: randomUUID() };
  await server.query("INSERT INTO statements.heads (place, id, head, owner, fence) VALUES ($1, $1, 0, $2, 1)", [
    lease.place,
    lease.owner,
  ]);
  const text = Buffer.from(lines.join("\n"));
  return {
    lease,
    head: 0,
    count: lines.length,
    lines: text,
    durability: "process",
    segments: [],
    opens: false,
    ...more,
  };
}

async function stored({ lease }: Write): Promise<unknown> {
  const lines = await server.query("SELECT seq::int, line FROM statements.lines WHERE place = $1 ORDER BY seq", [
    lease.place,
  ]);
  const [head] = await server.query("SELECT head::int FROM statements.heads WHERE place = $1", [lease.place]);
  return [head!["head"], ...lines.map(({ seq, line }) => `${seq} ${line}`)];
}

describe("an append", () => {
  test("is written as it was given, at the place that it was given, once", async () => {
    const batcher = new Batcher(open());
    const one = await write(["a"]);
    const three = await write(["a", "", "c"]);
    const segment = await write(["a"], { segments: [{ number: 2, epoch: 2, first: 1 }] });
    const opens = await write(["a"], { opens: true });
    const all = [one, three, segment, opens];
    for (const given of all) expect(await batcher.put(given)).toBe("written");
    for (const given of all) expect(await batcher.put(given)).toBe("moved");
    expect(await Promise.all(all.map(stored))).toEqual([
      [1, "1 a"],
      [3, "1 a", "2 ", "3 c"],
      [1, "1 a"],
      [1, "1 a"],
    ]);
    const begun = "SELECT number, epoch, first::int FROM statements.segments WHERE place = $1";
    expect(await server.query(begun, [segment.lease.place])).toEqual([{ number: 2, epoch: 2, first: 1 }]);
    expect(await batcher.put({ ...one, head: 1, lines: Buffer.from("b") })).toBe("written");
    expect(await stored(one)).toEqual([2, "1 a", "2 b"]);
  });

  test.each<[string, (lease: Write["lease"]) => Partial<Write>]>([
    ["another owner", (lease) => ({ lease: { ...lease, owner: randomUUID() } })],
    ["another fence", (lease) => ({ lease: { ...lease, fence: "2" } })],
    ["another head", () => ({ head: 1 })],
  ])("with %s is not written, alone or with others", async (_, change) => {
    const database = open();
    for (const lines of [["a"], ["a", "b"]]) {
      const given = await write(lines);
      const wrong = { ...given, ...change(given.lease) };
      expect(await new Batcher(database).put(wrong)).toBe("moved");
      const other = await write(lines);
      const together = { ...other, lease: { ...other.lease, owner: wrong.lease.owner } };
      await server.query("UPDATE statements.heads SET owner = $2 WHERE place = $1", [
        other.lease.place,
        wrong.lease.owner,
      ]);
      const batcher = new Batcher(database);
      expect(await Promise.all([batcher.put(wrong), batcher.put(together)])).toEqual(["moved", "written"]);
      expect(await stored(given)).toEqual([0]);
    }
  });

  test("of one line has a name on a connection of our own, and more time the longer it is", async () => {
    const database = open();
    const of = async (bytes: number, more: Partial<Write> = {}): Promise<Write> => write(["x".repeat(bytes)], more);
    const name = (given: Write, own = true): string | undefined => statementOf(database, [given], own).name;
    expect(name(await of(1))).toBe("holdfast append, process, 5000");
    expect(name(await of(1, { durability: "power" }))).toBe("holdfast append, power, 5000");
    expect(name(await of(63_999))).toBe("holdfast append, process, 5000");
    expect(name(await of(64_000))).toBe("holdfast append, process, 5250");
    expect(name(await of(1), false)).toBeUndefined();
    expect(name(await of(1, { opens: true }))).toBeUndefined();
    expect(name(await of(1, { segments: [{ number: 2, epoch: 1, first: 1 }] }))).toBeUndefined();
    expect(name(await write(["a", "b"]))).toBeUndefined();
    expect(statementOf(database, [await of(1), await of(1)], true).name).toBeUndefined();
  });

  test("waits for those of its own durability alone", async () => {
    const database = open();
    const batcher = new Batcher(database);
    const owner = randomUUID();
    const given = await Promise.all(["process", "power", "process"].map(() => write(["a"])));
    for (const { lease } of given)
      await server.query("UPDATE statements.heads SET owner = $2 WHERE place = $1", [lease.place, owner]);
    const writes = given.map((one, i): Write => {
      const durability = i === 1 ? "power" : "process";
      return { ...one, durability, lease: { ...one.lease, owner } };
    });
    expect(await Promise.all(writes.map((one) => batcher.put(one)))).toEqual(["written", "written", "written"]);
    expect(sent(database)).toBe(2);
  });
});

describe("lines", () => {
  test("are read from one seq to another, in order, each way", async () => {
    const given = await write(["a", "b", "c", "d"]);
    const database = open();
    await new Batcher(database).put(given);
    const lines = new Lines(database);
    const { place } = given.lease;
    const read = async (from: number, to: number): Promise<string[]> => {
      const found = (await Array.fromAsync(lines.read(place, from, to))).flat();
      const seen: string[] = [];
      await lines.each(place, from, to, ({ seq, bytes }) => seen.push(`${seq} ${bytes}`));
      expect(seen).toEqual(found.map(({ seq, bytes }) => `${seq} ${bytes}`));
      return seen;
    };
    expect(await read(1, 4)).toEqual(["1 a", "2 b", "3 c", "4 d"]);
    expect(await read(2, 3)).toEqual(["2 b", "3 c"]);
    expect(await read(4, 9)).toEqual(["4 d"]);
    expect(await read(5, 9)).toEqual([]);
    expect([String(await lines.one(place, 2)), await lines.one(place, 5)]).toEqual(["b", null]);
    const together = await lines.together([
      { place, from: 2, to: 4 },
      // Some of it is not there, so it is not all of it.
      { place: newId(), from: 1, to: 1 },
    ]);
    expect([...together].map(([of, some]) => [of, some.map(({ seq, bytes }) => `${seq} ${bytes}`)])).toEqual([
      [place, ["2 b", "3 c", "4 d"]],
    ]);
    expect(await lines.together([{ place, from: 3, to: 5 }])).toEqual(new Map());
  });
});

describe("what makes everything durable", () => {
  test("is one statement for all who ask at once", async () => {
    const database = open();
    const sync = new SharedSync(database);
    await Promise.all([sync.run(), sync.run(), sync.run()]);
    expect(sent(database)).toBe(1);
    await sync.run();
    expect(sent(database)).toBe(2);
    // What is asked for while one is on its way is not covered by it.
    const first = sync.run();
    await Promise.resolve();
    await Promise.resolve();
    await Promise.all([first, sync.run(), sync.run()]);
    expect(sent(database)).toBe(4);
  });

  test("fails for all who ask when nobody answers, and works for those who ask later", async () => {
    const port = await freePort();
    const database = open(`postgres://me@127.0.0.1:${port}/db`, 0);
    const sync = new SharedSync(database);
    for (let tries = 0; tries < 2; tries++)
      for (const end of await Promise.allSettled([sync.run(), sync.run()]))
        expect(end).toMatchObject({ status: "rejected", reason: { code: "STORE_IO" } });
    const patient = open(`postgres://me@127.0.0.1:${port}/db`, 200);
    await expect(new SharedSync(patient).run()).rejects.toMatchObject({ code: "STORE_IO" });
    expect(sent(patient)).toBeGreaterThan(1);
  });
});
