import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../../../src/index.ts";
import { type Server, startServer } from "../../server/server.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

/** A server on which this function does something else, for this role, as on an engine that only has its name. */
async function withFunction(role: string, definition: string): Promise<string> {
  await server.query(`CREATE SCHEMA ${role}_functions`);
  await server.query(`CREATE FUNCTION ${role}_functions.${definition}`);
  await server.query(`CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD 'secret'`);
  await server.query(`ALTER ROLE ${role} SET search_path = ${role}_functions, pg_catalog`);
  return server.url.replace("postgres:secret", `${role}:secret`);
}

async function connections(): Promise<number> {
  const [row] = await server.query("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'probed'");
  return Number(row!["count"]);
}

describe("a server is refused, in words", () => {
  test("CockroachDB", async () => {
    const version = "version() RETURNS text LANGUAGE sql AS 'SELECT ''CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu)'''";
    const url = await withFunction("cockroach", version);
    await expect(openPostgresStore(url, { schema: "roach", app: "probed" })).rejects.toMatchObject({
      code: "SERVER_UNSUPPORTED",
      facts: { what: "CockroachDB" },
      message: expect.stringMatching(/CockroachDB.*Nothing was touched\. Use PostgreSQL/),
    });
    expect(await server.query("SELECT FROM pg_namespace WHERE nspname = 'roach'")).toEqual([]);
    await expect.poll(connections).toBe(0);
  });

  test("one whose advisory locks lock nothing", async () => {
    const lock = "pg_try_advisory_xact_lock_shared(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'";
    const url = await withFunction("lockless", lock);
    await expect(openPostgresStore(url, { schema: "locks", monthsAhead: 0, app: "probed" })).rejects.toMatchObject({
      code: "SERVER_UNSUPPORTED",
      facts: { what: "advisory locks" },
      message: expect.stringMatching(/advisory lock.*No session was touched/),
    });
    await expect.poll(connections).toBe(0);
  });

  test("one whose notifications do not arrive, unless the store does without them", async () => {
    const notify = "pg_notify(text, text) RETURNS void LANGUAGE sql AS ''";
    const url = await withFunction("mute", notify);
    const options = { schema: "mute", monthsAhead: 0, app: "probed", answerMs: 500 };
    await expect(openPostgresStore(url, options)).rejects.toMatchObject({
      code: "SERVER_UNSUPPORTED",
      facts: { what: "NOTIFY" },
      message: expect.stringContaining("?direct=none"),
    });
    await expect.poll(connections).toBe(0);
    await (await openPostgresStore(`${url}?direct=none`, options)).close();
  });

  test("a direct address that leads to another database", async () => {
    await server.query("CREATE DATABASE elsewhere");
    const elsewhere = new URL(server.url);
    elsewhere.pathname = "/elsewhere";
    const options = { schema: "here", monthsAhead: 0, directUrl: elsewhere.href };
    await expect(openPostgresStore(server.url, options)).rejects.toMatchObject({
      code: "SERVER_UNSUPPORTED",
      facts: { what: "advisory locks" },
      message: expect.stringContaining("leads to another server or database"),
    });
    const pool = new pg.Pool({ connectionString: server.url, max: 2 });
    pool.on("error", () => undefined);
    onTestFinished(() => pool.end());
    await expect(openPostgresStore(pool, options)).rejects.toMatchObject({ code: "SERVER_UNSUPPORTED" });
  });
});

test("a server that does not wait for its disk is used with a warning, and another one with none", async () => {
  const own = await startServer();
  onTestFinished(() => own.stop());
  const warnings = async (): Promise<readonly string[]> => {
    await using store = await openPostgresStore(own.url, { schema: "warned", monthsAhead: 0 });
    return store.warnings;
  };
  expect(await warnings()).toEqual([]);
  await own.query("ALTER SYSTEM SET fsync = off");
  await own.query("SELECT pg_reload_conf()");
  const fsync = (): Promise<Record<string, unknown>[]> => own.query("SHOW fsync");
  await expect.poll(fsync).toEqual([{ fsync: "off" }]);
  expect(await warnings()).toEqual([
    expect.stringMatching(/^postgres:.* fsync = off: a power cut .* can lose any data/),
  ]);
});
