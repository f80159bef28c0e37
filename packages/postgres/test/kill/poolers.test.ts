import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type JournalRecord, newId } from "holdfast";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { makePool } from "../../src/connection/pools.ts";
import { openPostgresStore } from "../../src/index.ts";
import { Pooler } from "../proxy/pooler.ts";
import { freePort, type Server, startServer } from "../server/server.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"], (data) =>
    writeFile(join(data, "pg_hba.conf"), "host all all 127.0.0.1/32 trust\n"),
  );
});
afterAll(() => server.stop());

/** All that a store does, with several sessions and a follower, over a pooler. */
async function allOf(url: string, schema: string): Promise<void> {
  const options = { schema, monthsAhead: 0, connections: 4 };
  const store = await openPostgresStore(url, { ...options, directUrl: server.url });
  const other = await openPostgresStore(url, { ...options, directUrl: null });
  const journals = await Promise.all([1, 2, 3, 4].map(() => store.create(newId(), [{ kind: "note" }])));
  const [first] = journals;
  const over = new AbortController();
  const followed = [store, other].map((from) => {
    const records: JournalRecord[] = [];
    const done = (async () => {
      for await (const record of from.follow(first!.id, { signal: over.signal })) records.push(record);
    })();
    return { records, done };
  });
  for (let round = 0; round < 30; round++) {
    const durability = round % 2 ? "power" : "process";
    await Promise.all(
      journals.flatMap((journal) => [
        journal.append({ kind: "note", round }, { durability, key: `k${round}` }),
        journal.append([{ kind: "note" }, { kind: "note" }], { durability }),
      ]),
    );
    if (round === 15) await first!.epoch(() => [{ kind: "epoch" }]);
  }
  await expect(other.open(first!.id)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await first!.close();
  const { journal, recovery, records } = await other.open(first!.id);
  expect(recovery).toMatchObject({ unclean: false, damaged: [], missing: [] });
  expect(records[1]).toMatchObject({ kind: "epoch" });
  const { last } = await journal.append({ kind: "note" });
  while (followed.some(({ records: got }) => got.at(-1)?.seq !== last))
    await new Promise((resolve) => setTimeout(resolve, 10));
  over.abort();
  for (const { records: got, done } of followed) {
    await done;
    expect(got.map(({ seq }) => seq)).toEqual(Array.from({ length: last }, (_, i) => i + 1));
  }
  expect((await store.list()).sessions).toHaveLength(4);
  await store.close();
  await other.close();
}

describe("S24: through a pooler", () => {
  test("that gives every transaction to another backend", async () => {
    const pooler = await Pooler.open(server.port, 3);
    onTestFinished(() => pooler.close());
    const client = new pg.Client({ connectionString: pooler.url });
    await client.connect();
    const pids = new Set<unknown>();
    for (let i = 0; i < 3; i++) pids.add((await client.query("SELECT pg_backend_pid() AS pid")).rows[0].pid);
    expect(pids.size, "the pooler of the test does not switch").toBe(3);
    await client.end();
    await allOf(pooler.url, "switched");
    expect([...pooler.served.values()].every((count) => count > 5)).toBe(true);
  });

  test("that hides the server: refused, in words, unless the address says where the server is, or that there is no way to it", async () => {
    const pooler = await Pooler.open(server.port, 3);
    onTestFinished(() => pooler.close());
    const options = { schema: "hidden", monthsAhead: 0 };
    await expect(openPostgresStore(pooler.url, options)).rejects.toMatchObject({
      code: "SERVER_UNSUPPORTED",
      facts: { what: "a pooler" },
      message: expect.stringMatching(/is a pooler.*\?direct=host:port.*\?direct=none/),
    });
    for (const query of ["?direct=none", `?direct=127.0.0.1:${server.port}`])
      await (await openPostgresStore(`${pooler.url}${query}`, options)).close();
  });

  test("S26: with no way to the server itself, a worker that lives keeps its sessions", async () => {
    const pooler = await Pooler.open(server.port, 1);
    onTestFinished(() => pooler.close());
    const options = { schema: "undirected", monthsAhead: 0, connections: 1, directUrl: null };
    const store = await openPostgresStore(pooler.url, options);
    const other = await openPostgresStore(pooler.url, options);
    const journal = await store.create(newId(), [{ kind: "note" }]);
    expect(await other.holder(journal.id)).toMatchObject({ pid: process.pid });
    await expect(other.open(journal.id)).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await journal.append({ kind: "note" });
    await store.close();
    await other.close();
  });

  test("the statements of the full-text index end in the server when a lock keeps them waiting", async () => {
    const pooler = await Pooler.open(server.port, 3);
    onTestFinished(() => pooler.close());
    const options = { schema: "waiting", monthsAhead: 0, connections: 3, directUrl: null };
    await using store = await openPostgresStore(pooler.url, { ...options, answerMs: 250, patienceMs: 250 });
    const texts = store.texts!;
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    onTestFinished(() => admin.end());
    const waiting = async (): Promise<number> => {
      const { rows } = await admin.query(
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%waiting%'",
      );
      return rows[0].n;
    };
    /** Somebody holds these rows meanwhile, and does not let go. */
    const kept = async (rows: string, work: () => Promise<unknown>): Promise<void> => {
      await admin.query("BEGIN");
      await admin.query(`SELECT FROM ${rows} FOR UPDATE`);
      await expect(work()).rejects.toMatchObject({ code: "STORE_IO" });
      await expect.poll(waiting).toBe(0);
      await admin.query("ROLLBACK");
    };
    const id = newId();
    const mark = { seq: 1, crc: "0", head: 1, at: "2026", dialect: null, blind: false, cut: false };
    await texts.add(id, null, [{ kind: "title", title: "stars" }], mark);
    await kept("waiting.texts_sessions", async () => texts.forget(id));
    await texts.forget(id);
    await kept("waiting.texts", async () => texts.sweep());
    expect(await texts.sweep()).toBe(true);
    expect(await texts.sweep()).toBe(false);
  });

  test("no setting is left behind for the next user of a connection", async () => {
    const pooler = await Pooler.open(server.port, 1);
    onTestFinished(() => pooler.close());
    const { pool, end } = makePool({ url: pooler.url, connections: 1, app: "pooled", answerMs: 5000 });
    onTestFinished(end);
    const { rows } = await pool.query(
      "SELECT current_setting('lock_timeout') AS lock, current_setting('client_connection_check_interval') AS checks",
    );
    expect(rows).toEqual([{ lock: "0", checks: "0" }]);
  });

  test("pgbouncer, in transaction mode", async (context) => {
    if (spawnSync("pgbouncer", ["--version"]).status !== 0)
      return context.skip("not run: there is no pgbouncer here (apt-get install pgbouncer)");
    const folder = await mkdtemp(join(tmpdir(), "holdfast-pgbouncer-"));
    await chmod(folder, 0o755);
    const port = await freePort();
    const config = join(folder, "pgbouncer.ini");
    await writeFile(
      config,
      [
        "[databases]",
        `postgres = host=127.0.0.1 port=${server.port} dbname=postgres user=postgres`,
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        `listen_port = ${port}`,
        "unix_socket_dir =",
        "auth_type = any",
        "pool_mode = transaction",
        "default_pool_size = 3",
        "max_client_conn = 100",
      ].join("\n"),
    );
    // It does not run as root.
    const asWhom = process.getuid?.() === 0 ? ["-u", "postgres"] : [];
    const bouncer: ChildProcess = spawn("pgbouncer", [...asWhom, config], { stdio: ["ignore", "ignore", "pipe"] });
    onTestFinished(async () => {
      const ended = once(bouncer, "close");
      bouncer.kill("SIGINT");
      await ended;
      await rm(folder, { recursive: true });
    });
    let log = "";
    while (!log.includes("process up")) {
      const [chunk] = await Promise.race([once(bouncer.stderr!, "data"), once(bouncer, "close")]);
      if (bouncer.exitCode !== null) throw new Error(`pgbouncer ended: ${log}`);
      log += String(chunk);
    }
    await allOf(`postgres://postgres@127.0.0.1:${port}/postgres`, "bounced");
  });
});
