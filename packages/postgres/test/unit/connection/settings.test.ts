import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { isUnconfirmed, limitsOf } from "../../../src/connection/backend.ts";
import { Database } from "../../../src/connection/database.ts";
import { type Server, startServer } from "../../server/server.ts";

const ANSWER_MS = 1000;
/** The time for one lock, and for a statement that may take long. */
const [LOCK_MS, LONG_MS] = [800, 6000];

let server: Server;
let version = 0;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
  version = Number((await server.query("SELECT current_setting('server_version_num') AS version"))[0]!["version"]);
});
afterAll(() => server.stop());

function poolOf(options: object = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url, max: 1, ...options });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  return pool;
}

function open(options: object = {}): Database {
  const database = new Database(poolOf(options), { name: "here", schema: "x", patienceMs: 2000, answerMs: ANSWER_MS });
  database.serverVersion = version;
  return database;
}

/** What holds in the transaction of a statement with these settings, on a connection where these held before. */
async function within(from: (database: Database) => string, before: Record<string, string> = {}): Promise<unknown> {
  const database = open({
    options: Object.entries(before)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(" "),
  });
  const names = ["synchronous_commit", "lock_timeout", "client_min_messages", "transaction_timeout"];
  const columns = names.map((name) => `current_setting('${name}', true) AS ${name}`);
  const answered = await database.once(`${from(database)} SELECT ${columns.join(", ")} FROM power`);
  // Nothing of it stays on the connection.
  const [after] = (await database.once(`SELECT ${columns.join(", ")}`)).rows;
  const { synchronous_commit, lock_timeout, client_min_messages } = after!;
  expect({ synchronous_commit, lock_timeout, client_min_messages }).toEqual({
    synchronous_commit: "on",
    lock_timeout: "0",
    client_min_messages: "notice",
    ...before,
  });
  const found = answered.rows[0]!;
  return {
    sync: found["synchronous_commit"],
    lock: found["lock_timeout"],
    messages: found["client_min_messages"],
    transaction: version < 170_000 ? null : found["transaction_timeout"],
  };
}

const ms = (time: number): string => (time % 1000 === 0 ? `${time / 1000}s` : `${time}ms`);
const limited = (time: number): object => ({
  lock: ms(time * 0.8),
  transaction: version < 170_000 ? null : ms(time),
});

describe("the settings of a statement", () => {
  const OFF = { synchronous_commit: "off" };
  const LOCAL = { synchronous_commit: "local" };
  const DEAF = { client_min_messages: "error" };
  test.each<[what: string, before: Record<string, string>, from: (database: Database) => string, sync: string]>([
    ["power", {}, (database) => database.power, "on"],
    ["power, where the role says off", OFF, (database) => database.power, "on"],
    ["power, where the role says local", LOCAL, (database) => database.power, "local"],
    ["noWait", {}, (database) => database.noWait, "off"],
    ["local", {}, (database) => database.local, "local"],
    ["local, where the role says off", OFF, (database) => database.local, "off"],
    ["durable", OFF, (database) => database.durable, "on"],
  ])("%s", async (_, before, from, sync) => {
    const found = await within((database) => `WITH ${from(database)}`, before);
    expect(found).toEqual({ sync, messages: "notice", ...limited(ANSWER_MS) });
  });

  test("one that may take long has longer", async () => {
    const found = await within((database) => `WITH ${database.longNoWait}`);
    expect(found).toEqual({ sync: "off", messages: "notice", ...limited(LONG_MS) });
  });

  test("warnings are heard where a commit could be unconfirmed, and else left alone", async () => {
    const messages = async (from: (database: Database) => string): Promise<unknown> =>
      await within((database) => `WITH ${from(database)}`, DEAF);
    expect(await messages((database) => database.power)).toMatchObject({ messages: "warning" });
    expect(await messages((database) => database.noWait)).toMatchObject({ messages: "error" });
    expect(await messages((database) => database.local)).toMatchObject({ messages: "error" });
  });

  test.each<[durability: "process" | "power", before: Record<string, string>, sync: string, messages: string]>([
    ["process", {}, "off", "notice"],
    ["process", DEAF, "off", "error"],
    ["power", {}, "on", "notice"],
    ["power", OFF, "on", "notice"],
    ["power", LOCAL, "local", "notice"],
    ["power", DEAF, "on", "warning"],
  ])("as a condition, with %s and %j, they are the same", async (durability, before, sync, messages) => {
    const condition = (database: Database, own: boolean): string =>
      `WITH power AS MATERIALIZED (SELECT WHERE ${database.settingsCondition(durability, ANSWER_MS, own)})`;
    expect(await within((database) => condition(database, false), before)).toEqual({
      sync,
      messages,
      ...limited(ANSWER_MS),
    });
    // A connection of our own has its limits, and hears warnings, already.
    const own = await within((database) => condition(database, true), before);
    expect(own).toEqual({
      ...limited(ANSWER_MS),
      sync,
      lock: "0",
      messages: before["client_min_messages"] ?? "notice",
    });
    const longer = (database: Database): string =>
      `WITH power AS MATERIALIZED (SELECT WHERE ${database.settingsCondition(durability, LONG_MS)})`;
    expect(await within(longer)).toMatchObject(limited(LONG_MS));
  });

  test("on a connection of our own, limits are left alone", async () => {
    const found = await within((database) => `WITH ${database.settings("power", ANSWER_MS, true)}`, DEAF);
    expect(found).toEqual({ ...limited(ANSWER_MS), sync: "on", lock: "0", messages: "error" });
  });

  test("at the end of an application's transaction nothing limits the whole of it", async () => {
    const idle = "idle_in_transaction_session_timeout";
    const database = open({ options: "-c synchronous_commit=off -c client_min_messages=error" });
    const { rows } = await database.once(
      `WITH power AS (SELECT ${database.commitSettings.join(", ")}) SELECT current_setting('synchronous_commit') AS sync,
        current_setting('lock_timeout') AS lock, current_setting('client_min_messages') AS messages,
        current_setting('${idle}') AS idle, current_setting('transaction_timeout', true) AS transaction FROM power`,
    );
    const transaction = version < 170_000 ? null : "0";
    expect(rows).toEqual([{ sync: "on", lock: ms(LOCK_MS), messages: "warning", idle: ms(ANSWER_MS), transaction }]);
  });

  test("a server that cannot end a transaction by time is not asked to", async () => {
    const database = open();
    for (const [number, asks] of [
      [169_999, false],
      [170_000, true],
    ] as const) {
      database.serverVersion = number;
      expect(database.power.includes("transaction_timeout")).toBe(asks);
      expect(database.settingsCondition("power").includes("transaction_timeout")).toBe(asks);
    }
  });
});

test("the limits of a statement", () => {
  expect(limitsOf(1000)).toEqual({ answerMs: 1000, lockMs: 800, longMs: 6000 });
  // A lock timeout of 0 would be none.
  expect(limitsOf(1)).toEqual({ answerMs: 1, lockMs: 1, longMs: 6 });
});

test.each([
  [{ routine: "SyncRepWaitForLSN", message: "in any language" }, true],
  [{ message: "canceling wait for synchronous replication due to user request" }, true],
  [{ routine: "exec_simple_query", message: "a warning" }, false],
  [{}, false],
])("whether %j says that a commit was not confirmed: %s", (notice, is) => {
  expect(isUnconfirmed(notice)).toBe(is);
});

describe("a statement that fails", () => {
  const fails = (code: string): Error => Object.assign(new Error("said so"), { code });

  test("is tried again as long as that helps, and no longer", async () => {
    const database = open();
    const tries = async (errors: readonly unknown[], patienceMs?: number): Promise<[number, unknown]> => {
      let count = 0;
      const work = async (): Promise<string> => {
        const error = errors[count++];
        if (error !== undefined) throw error;
        return "done";
      };
      const end = await database.retry("try", work, patienceMs).catch((error: unknown) => error);
      return [count, end instanceof Error ? (end as { code?: string }).code : end];
    };
    expect(await tries([])).toEqual([1, "done"]);
    expect(await tries([fails("ECONNRESET"), fails("57P01")])).toEqual([3, "done"]);
    expect(await tries([fails("42P01")])).toEqual([1, "STORE_IO"]);
    expect(await tries([fails("ECONNRESET"), fails("53100")])).toEqual([2, "STORE_FULL"]);
    // Without patience it is told at once; but a server that is starting is waited for.
    expect(await tries([fails("ECONNRESET")], 0)).toEqual([1, "STORE_IO"]);
    expect(await tries([fails("57P03"), fails("57P03")], 0)).toEqual([3, "done"]);
    // A server that may only be read from, for a worker that has never written, and for one that has.
    expect(await tries([fails("25006")])).toEqual([1, "STORE_IO"]);
    database.hasWritten = true;
    // This one is no standby: it will not become writable.
    expect(await tries([fails("25006")])).toEqual([1, "STORE_IO"]);
    database.close();
    expect(await tries([fails("ECONNRESET")])).toEqual([1, "STORE_CLOSED"]);
    await database.pause(600_000);
  });

  test("on a standby that is about to become the primary is tried again by a worker that has written", async () => {
    await server.query("CREATE SCHEMA standby");
    await server.query("CREATE FUNCTION standby.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'");
    const database = open({ options: "-c search_path=standby,pg_catalog" });
    let refusals = 2;
    const work = async (): Promise<string> => {
      if (refusals-- > 0) throw fails("25006");
      return "done";
    };
    await expect(database.retry("try", work)).rejects.toMatchObject({ code: "STORE_IO" });
    database.hasWritten = true;
    expect(await database.retry("try", work)).toBe("done");
  });

  test("takes its transaction with it, which begins again after a conflict, ten times at most", async () => {
    const database = open();
    let tries = 0;
    const conflicts = (times: number) => () => {
      tries = 0;
      return database.transaction("try", async (query) => {
        await query("CREATE TABLE IF NOT EXISTS met (n integer)");
        await query("INSERT INTO met VALUES (1)");
        if (++tries <= times) throw fails("40001");
        return "done";
      });
    };
    expect(await conflicts(2)()).toBe("done");
    expect(tries).toBe(3);
    expect((await database.once("SELECT FROM met")).rowCount).toBe(1);
    await expect(conflicts(100)()).rejects.toMatchObject({ code: "STORE_IO" });
    expect(tries).toBe(10);
    const gone = database.transaction("try", async (query) => {
      await query("INSERT INTO met VALUES (2)");
      throw new TypeError("a fault");
    });
    await expect(gone).rejects.toMatchObject({ cause: expect.any(TypeError) });
    // The only connection is usable, and nothing of it is there.
    expect((await database.once("SELECT FROM met")).rowCount).toBe(1);
  });

  test("counts, and its connection is not used again", async () => {
    const database = open();
    const pid = async (): Promise<unknown> => (await database.once("SELECT pg_backend_pid() AS pid")).rows[0]!["pid"];
    const before = await pid();
    expect(await pid()).toBe(before);
    await expect(database.once("SELECT 1 / 0")).rejects.toMatchObject({ code: "22012" });
    expect(await pid()).not.toBe(before);
    expect(database.metrics.snapshot({} as pg.Pool, 0, false).counters).toMatchObject({
      statements: 4,
      statementsFailed: 1,
    });
  });

  test("because the application's pool has no connection left is told in time, and the one that comes late goes back", async () => {
    const pool = poolOf();
    const database = new Database(pool, { name: "here", schema: "x", patienceMs: 0, answerMs: 100 });
    const taken = await pool.connect();
    await expect(database.query("look", "SELECT 1")).rejects.toMatchObject({
      code: "STORE_IO",
      message: expect.stringContaining("Could not look: the database does not answer"),
    });
    taken.release();
    expect((await database.once("SELECT 1 AS one", [], ANSWER_MS)).rows).toEqual([{ one: 1 }]);
    expect(pool.waitingCount).toBe(0);
    expect([database.connectionsMax, open().connectionsMax]).toEqual([1, 1]);
  });
});
