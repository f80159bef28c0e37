import { PrismaPg } from "@prisma/adapter-pg";
import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import { isHoldfastError, type Session } from "holdfast";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { openStore, type PostgresSessions } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";

let server: Server;
let store: PostgresSessions;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
  await server.query("CREATE TABLE orders (id text PRIMARY KEY)");
  await server.query("CREATE ROLE somebody; CREATE ROLE nobody");
  store = await open();
});
afterAll(async () => {
  await store.close();
  await server.stop();
});
afterEach(async () => {
  await server.query("TRUNCATE orders");
});

function open(place: string | pg.Pool = server.url, options: object = {}): Promise<PostgresSessions> {
  return openStore(place, { schema: "clients", monthsAhead: 0, ...options });
}

/** Another store for the rest of the test. */
async function reopen(place: string | pg.Pool, options: object = {}): Promise<void> {
  const before = store;
  const other = await open(place, options);
  store = other;
  onTestFinished(async () => {
    store = before;
    await other.close();
  });
}

const order = (client: pg.ClientBase, id: string): Promise<unknown> =>
  client.query("INSERT INTO orders (id) VALUES ($1)", [id]);

async function orders(): Promise<unknown[]> {
  return (await server.query("SELECT id FROM orders ORDER BY id")).map(({ id }) => id);
}

const create = (): Promise<Session<unknown>> => store.create<unknown>({ dialect: "anthropic" });

async function notes(session: Session<unknown>): Promise<unknown> {
  return (await store.read(session.id)).attributes.notes;
}

/** Runs `work` with the client in a transaction that is committed, and in a tool. */
async function commits(work: (client: pg.PoolClient) => unknown): Promise<void> {
  const session = await create();
  await store.transaction(work, () => session.note("with", 1));
  expect(await notes(session)).toEqual({ with: 1 });
}

/** Pools that have nothing but this client, as libraries want them. */
const poolOf = (client: pg.PoolClient) => ({
  options: {},
  connect: async () => client,
  end: async () => undefined,
});
function pgPoolOf(client: pg.PoolClient): pg.Pool {
  const pool = new pg.Pool();
  return Object.assign(pool, { connect: async () => client, query: client.query });
}

describe("a client that its user gives back", () => {
  test.each(["release", "end"] as const)("%s: what others append is not in the transaction", async (method) => {
    const session = await create();
    const others = await Promise.all([1, 2, 3].map(create));
    const failing = store.transaction(
      async (client) => {
        await order(client, "a");
        await client[method]();
        // As many as to use every connection of the pool.
        await Promise.all(others.flatMap((other) => [1, 2, 3, 4].map((n) => other.note(`n${n}`, n))));
        await order(client, "a");
      },
      () => session.note("with", 1),
    );
    await expect(failing).rejects.toMatchObject({ code: "23505" });
    expect(await orders()).toEqual([]);
    for (const other of others) expect(await notes(other)).toEqual({ n1: 1, n2: 2, n3: 3, n4: 4 });
  });

  test("given back twice, or as broken, it is no failure", async () => {
    for (const reason of [undefined, true, new Error("broken")])
      await commits(async (client) => {
        await order(client, String(reason));
        client.release(reason);
        client.release(reason);
      });
    expect(await orders()).toHaveLength(3);
  });

  test("a tool's client too", async () => {
    const session = await create();
    const turn = await session.startTurn({ role: "user", content: "hello" });
    await turn.append({ role: "assistant", content: [{ type: "tool_use", id: "c1", name: "order", input: {} }] });
    const outcome = await store.tool(turn, "c1", async (client) => {
      await order(client, "a");
      client.release();
      return "done";
    });
    expect([outcome, await orders()]).toEqual([{ value: "done" }, ["a"]]);
  });

  test("later, it does not give back the connection that somebody else has", async () => {
    const clients: pg.PoolClient[] = [];
    await commits((client) => clients.push(client));
    await commits(async (client) => {
      await order(client, "a");
      clients[0]!.release();
      await order(client, "b");
    });
    expect(await orders()).toEqual(["a", "b"]);
  });
});

test("one that has got a place costs those behind it nothing, however long it keeps it", async () => {
  const patienceMs = 10_000;
  await reopen(server.url, { connections: 2, patienceMs });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const session = await create();
  const begun: number[] = [];
  const letGo: (() => void)[] = [];
  const run = (n: number): Promise<unknown> =>
    store.transaction(
      () => {
        begun.push(n);
        return new Promise<void>((resolve) => letGo.push(resolve));
      },
      () => session.note(`n${n}`, n),
    );
  const begins = async (n: number): Promise<void> => {
    while (!begun.includes(n)) await new Promise(setImmediate);
  };
  const [first, second] = [run(1), run(2)];
  await begins(1);
  letGo[0]!();
  await begins(2);
  await vi.advanceTimersByTimeAsync(patienceMs / 2);
  const third = run(3);
  // Longer than the second one would have waited, and shorter than the third one waits.
  await vi.advanceTimersByTimeAsync(patienceMs / 2);
  letGo[1]!();
  await begins(3);
  letGo[2]!();
  await Promise.all([first, second, third]);
  expect(begun).toEqual([1, 2, 3]);
});

describe("a client that is used after its function has returned", () => {
  const OVER = { code: "NOT_SUPPORTED", message: expect.stringMatching(/transaction is over/) };

  test("is refused, in the second function too", async () => {
    const session = await create();
    let kept!: pg.PoolClient;
    await store.transaction(
      (client) => {
        kept = client;
      },
      async () => {
        await expect(order(kept, "a")).rejects.toMatchObject(OVER);
        return session.note("with", 1);
      },
    );
    await expect(order(kept, "b")).rejects.toMatchObject(OVER);
    expect(() => kept.query("SELECT 1", () => undefined)).toThrow(expect.objectContaining(OVER));
    expect(() => kept.query(new pg.Query("SELECT 1"))).toThrow(expect.objectContaining(OVER));
    expect(() => kept.on("notice", () => undefined)).toThrow(expect.objectContaining(OVER));
    expect(await orders()).toEqual([]);
  });

  test("a statement that nobody waited for is part of the transaction", async () => {
    await commits((client) => {
      void order(client, "a");
    });
    expect(await orders()).toEqual(["a"]);
  });
});

describe("a client", () => {
  test("is what the driver's is", async () => {
    let pid: unknown;
    await commits(async (client) => {
      const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
      pid = rows[0].pid;
      expect((client as unknown as { processID: number }).processID).toBe(pid);
      expect([client.escapeLiteral("a'b"), client.escapeIdentifier('a"b')]).toEqual(["'a''b'", '"a""b"']);
      expect(client).toBeInstanceOf(pg.Client);
      expect(() => client.query(undefined as never)).toThrow(/null or undefined query/);
      const called = await new Promise<unknown>((resolve) => {
        client.query("SELECT 1 AS one", (_, result) => resolve(result.rows));
      });
      expect(called).toEqual([{ one: 1 }]);
    });
    // Nothing of that stays on the connection, so it is used again.
    const inUse = ({ connections, connectionsIdle } = store.metrics().gauges): number => connections - connectionsIdle;
    await expect.poll(() => inUse()).toBe(0);
    expect(await server.query("SELECT pid FROM pg_stat_activity WHERE pid = $1", [pid])).toEqual([{ pid }]);
  });

  test("that is listened to is the same client again, and its connection ends", async () => {
    let pid: unknown;
    await commits(async (client) => {
      pid = (await client.query("SELECT pg_backend_pid() AS pid")).rows[0].pid;
      expect(client.on("notice", () => undefined)).toBe(client);
    });
    await expect.poll(() => server.query("SELECT pid FROM pg_stat_activity WHERE pid = $1", [pid])).toEqual([]);
  });

  test("is there only if a connection is left for everything else", async () => {
    await reopen(server.url, { connections: 1 });
    const session = await create();
    const alone = store.transaction(
      (client) => order(client, "a"),
      () => session.note("with", 1),
    );
    await expect(alone).rejects.toMatchObject({
      code: "NOT_SUPPORTED",
      message: expect.stringContaining("at least two connections"),
    });
    await session.note("after", 1);
    expect([await orders(), await notes(session)]).toEqual([[], { after: 1 }]);
    await reopen(server.url, { connections: 2 });
    await commits((client) => order(client, "b"));
    expect(await orders()).toEqual(["b"]);
  });
});

test("what a transaction leaves running records as usual once it is over", async () => {
  const session = await create();
  const over = Promise.withResolvers<void>();
  const left: Promise<unknown>[] = [];
  const later = (name: string): void => void left.push(over.promise.then(() => session.note(name, 1)));
  await store.transaction(
    () => later("of the first function"),
    () => {
      later("of the second");
      return session.note("with", 1);
    },
  );
  over.resolve();
  await Promise.all(left);
  expect(await notes(session)).toEqual({ with: 1, "of the first function": 1, "of the second": 1 });
});

describe("a client that ends the transaction itself", () => {
  const REFUSED = { code: "NOT_SUPPORTED", message: expect.stringMatching(/savepoint/i) };

  test("is refused, and nothing is written, even if the error is ignored", async () => {
    const session = await create();
    const statements = [
      ...["BEGIN", " begin", "START TRANSACTION", "COMMIT", "-- done\ncommit and chain", "/* done /* really */ */ END"],
      ...["ROLLBACK", "; ABORT", "rollback work", "PREPARE TRANSACTION 'x'"],
    ];
    for (const statement of statements) {
      const refused = store.transaction(
        async (client) => {
          await order(client, "a");
          await expect(client.query(statement)).rejects.toMatchObject(REFUSED);
          await expect(client.query({ text: statement })).rejects.toMatchObject(REFUSED);
        },
        () => session.note("with", 1),
      );
      await expect(refused, statement).rejects.toMatchObject(REFUSED);
      expect([await orders(), await notes(session)], statement).toEqual([[], {}]);
    }
  });

  test("savepoints are the caller's", async () => {
    await commits(async (client) => {
      await client.query("SAVEPOINT one");
      await order(client, "a");
      await client.query("ROLLBACK TO SAVEPOINT one");
      await client.query("rollback work to one");
      await client.query("RELEASE one");
      await client.query("SELECT 'COMMIT'");
      await client.query("PREPARE commit AS SELECT 1");
      await order(client, "b");
    });
    expect(await orders()).toEqual(["b"]);
  });

  test("hidden among other statements, it is found out: nothing is recorded, and the error says what is there", async () => {
    const session = await create();
    const ended = store.transaction(
      (client) => client.query("INSERT INTO orders VALUES ('a'); COMMIT"),
      () => session.note("with", 1),
    );
    await expect(ended).rejects.toMatchObject({
      code: "NOT_SUPPORTED",
      message: expect.stringMatching(/rows that it committed are there/),
    });
    expect([await orders(), await notes(session)]).toEqual([["a"], {}]);
    await session.note("after", 1);
  });
});

describe("what a transaction sets does not stay on its connection", () => {
  /** The connections of the store that are idle now, one statement on each. */
  async function onEach<T>(ask: (client: pg.PoolClient) => Promise<T>): Promise<T[]> {
    const session = await create();
    const results: T[] = [];
    const { promise: all, resolve } = Promise.withResolvers<void>();
    const max = 5;
    await Promise.all(
      Array.from({ length: max }, (_, n) =>
        store.transaction(
          async (client) => {
            results.push(await ask(client));
            if (results.length === max) resolve();
            await all;
          },
          () => session.note(`n${n}`, n),
        ),
      ),
    );
    return results;
  }

  const STATE = `SELECT current_user AS role, session_user AS login, current_setting('statement_timeout') AS statement,
      current_setting('search_path') AS path, current_setting('app.tenant', true) AS tenant,
      current_setting('default_transaction_isolation') AS isolation,
      (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
      (SELECT count(*)::int FROM pg_listening_channels()) AS channels,
      (SELECT count(*)::int FROM pg_prepared_statements WHERE from_sql) AS prepared,
      (SELECT count(*)::int FROM pg_cursors WHERE is_holdable) AS cursors, to_regclass('pg_temp.scratch') AS temporary`;

  const SETS = [
    "SET statement_timeout = '77s'",
    "SELECT set_config('app.tenant', 'somebody', false)",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET search_path = nowhere",
    "SELECT pg_advisory_lock(4711)",
    "LISTEN news",
    "DECLARE open CURSOR WITH HOLD FOR SELECT generate_series(1, 9)",
    "CREATE TEMP TABLE scratch (n int)",
  ];

  async function state(client: pg.PoolClient): Promise<unknown> {
    const { tenant, ...rest } = (await client.query(STATE)).rows[0];
    return { ...rest, tenant: tenant ?? "" };
  }

  test.each([
    ["committed", SETS],
    ["rolled back", SETS],
    // This one costs the connection, so none of the others would be seen.
    ["committed", ["PREPARE mine AS SELECT 1"]],
    ["rolled back", ["PREPARE mine AS SELECT 1"]],
  ] as const)("%s: %s", async (end, sets) => {
    const before = (await onEach(state))[0];
    const session = await create();
    const run = store.transaction(
      async (client) => {
        for (const set of sets) await client.query(set);
        if (end !== "committed") throw new Error("no");
      },
      () => session.note("with", 1),
    );
    await (end === "committed" ? run : expect(run).rejects.toThrow("no"));
    for (const found of await onEach(state)) expect(found).toEqual(before);
  });

  test("a role", async () => {
    const session = await create();
    await server.query(`GRANT ALL ON SCHEMA clients TO somebody`);
    await server.query(`GRANT ALL ON ALL TABLES IN SCHEMA clients TO somebody`);
    for (const set of ["SET ROLE somebody", "SET SESSION AUTHORIZATION somebody"])
      await store.transaction(
        (client) => client.query(set),
        () => session.note("with", 1),
      );
    for (const found of await onEach(state)) expect(found).toMatchObject({ role: "postgres", login: "postgres" });
  });

  test("the store's own limits are there again", async () => {
    const LIMITS =
      "SELECT current_setting('client_min_messages') AS messages, current_setting('tcp_keepalives_idle') AS idle";
    const found = async (client: pg.PoolClient) => (await client.query(LIMITS)).rows[0];
    await commits((client) => client.query("SET tcp_keepalives_idle = 99; SET client_min_messages = error"));
    for (const limits of await onEach(found)) expect(limits).toEqual({ messages: "warning", idle: "5" });
  });

  test("a role that the login begins with is there again", async () => {
    await server.query("CREATE ROLE member LOGIN SUPERUSER PASSWORD 'secret'; ALTER ROLE member SET role = 'postgres'");
    const url = new URL(server.url);
    url.username = "member";
    await reopen(url.href);
    await commits((client) => client.query("SET LOCAL app.tenant = 'x'"));
    for (const found of await onEach(state)) expect(found).toMatchObject({ role: "postgres", login: "member" });
  });

  test("what it forgets does not hinder appends", async () => {
    const session = await create();
    // So that each connection knows the statement of an append by its name.
    await onEach((client) => client.query("SELECT 1"));
    for (let n = 0; n < 12; n++) {
      await Promise.all([1, 2, 3, 4, 5, 6].map((k) => session.note(`k${k}`, n)));
      await store.transaction(
        (client) => client.query("DEALLOCATE ALL"),
        () => session.note("with", n),
      );
      await session.note("after", n);
    }
  });

  test("listeners and parsers go with it", async () => {
    let heard = 0;
    await commits((client) => {
      client.on("notice", () => heard++);
      client.setTypeParser(25, () => "parsed");
      expect(client.on("drain", () => undefined)).toBe(client);
    });
    const values = await onEach(async (client) => {
      await client.query("DO $$ BEGIN RAISE WARNING 'heard'; END $$");
      return (await client.query("SELECT 'text'::text AS value")).rows[0].value;
    });
    expect([heard, new Set(values)]).toEqual([0, new Set(["text"])]);
  });

  test("in a pool of the application's, which keeps what the pool itself has set", async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 2 });
    onTestFinished(() => pool.end());
    await reopen(pool);
    pool.on("connect", (client) => void client.query("SET search_path = public, pg_catalog"));
    const session = await create();
    for (let n = 0; n < 3; n++)
      await store.transaction(
        async (client) => {
          for (const set of SETS) await client.query(set);
        },
        () => session.note("with", n),
      );
    const { rows } = await pool.query(STATE);
    expect(rows[0]).toMatchObject({ statement: "0", path: "public, pg_catalog", locks: 0, channels: 0, prepared: 0 });
    await session.note("after", 1);
  });
});

describe("what a function leaves set does not reach the record", () => {
  test.each([
    "SET client_encoding = 'LATIN1'",
    "SET LOCAL client_encoding = 'SQL_ASCII'",
    // It may do nothing in the schema of the store.
    "SET ROLE nobody",
    "SET LOCAL ROLE nobody",
    "SET SESSION AUTHORIZATION nobody",
  ])("%s", async (set) => {
    const session = await create();
    await store.transaction(
      (client) => client.query(set),
      () => session.note("with", "schön, 5 €"),
    );
    expect(await notes(session)).toEqual({ with: "schön, 5 €" });
    expect(await store.verify(session.id)).toMatchObject({ damaged: [], missing: [] });
  });

  test("and it is written with the role that the login begins with", async () => {
    await server.query(`CREATE ROLE holder; CREATE ROLE guest LOGIN NOINHERIT PASSWORD 'secret' IN ROLE holder;
      ALTER ROLE guest SET role = 'holder'; GRANT ALL ON SCHEMA clients TO holder; GRANT ALL ON ALL TABLES IN SCHEMA clients TO holder`);
    const url = new URL(server.url);
    url.username = "guest";
    await reopen(url.href);
    await commits((client) => client.query("SET ROLE NONE"));
  });

  test("a limit for statements", async () => {
    const session = await create();
    const other = new pg.Client({ connectionString: server.url });
    await other.connect();
    onTestFinished(() => other.end());
    await other.query("BEGIN");
    await other.query("SELECT FROM clients.heads WHERE id = $1 FOR UPDATE", [session.id]);
    const writing = store.transaction(
      (client) => client.query("SET statement_timeout = '300ms'"),
      () => session.note("with", 1),
    );
    const waits = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND now() - query_start > interval '500ms'`;
    await expect.poll(() => server.query(waits), { timeout: 10_000 }).toHaveLength(1);
    await other.query("COMMIT");
    await writing;
    expect(await notes(session)).toEqual({ with: 1 });
  });
});

describe("transactions inside transactions", () => {
  const NESTED = { code: "NOT_SUPPORTED", message: expect.stringMatching(/inside another/) };

  test("are refused, also while there are connections, and the outer one goes on", async () => {
    const session = await create();
    const inner = (): Promise<unknown> =>
      store.transaction(
        (client) => order(client, "inner"),
        () => session.note("inner", 1),
      );
    await store.transaction(
      async (client) => {
        await order(client, "outer");
        await expect(inner()).rejects.toMatchObject(NESTED);
      },
      () => session.note("outer", 1),
    );
    expect([await orders(), await notes(session)]).toEqual([["outer"], { outer: 1 }]);
    await expect(store.transaction((client) => order(client, "second"), inner)).rejects.toMatchObject(NESTED);
    expect([await orders(), await notes(session)]).toEqual([["outer"], { outer: 1 }]);
    await inner();
  });

  test("in a tool, and a tool in one", async () => {
    const session = await create();
    const turn = await session.startTurn({ role: "user", content: "hello" });
    const calls = ["c1", "c2"].map((id) => ({ type: "tool_use", id, name: "order", input: {} }));
    await turn.append({ role: "assistant", content: calls });
    await store.tool(turn, "c1", async (client) => {
      await order(client, "a");
      await expect(store.tool(turn, "c2", () => "never")).rejects.toMatchObject(NESTED);
    });
    expect([await orders(), turn.open.map(({ id }) => id)]).toEqual([["a"], ["c2"]]);
  });

  test("what a transaction leaves running may begin one later", async () => {
    const session = await create();
    const { promise: over, resolve } = Promise.withResolvers<void>();
    let later!: Promise<unknown>;
    await commits(() => {
      later = over.then(() =>
        store.transaction(
          (client) => order(client, "later"),
          () => session.note("later", 1),
        ),
      );
    });
    resolve();
    await later;
    expect(await orders()).toEqual(["later"]);
  });

  test("an append inside waits for no transaction, however many are open", async () => {
    await reopen(server.url, { connections: 3 });
    const sessions = await Promise.all([1, 2].map(create));
    const begun: (() => void)[] = [];
    const all = new Promise<void>((resolve) => begun.push(() => begun.length === 3 && resolve()));
    await Promise.all(
      sessions.map((session) =>
        store.transaction(
          async () => {
            begun.push(() => undefined);
            begun[0]!();
            await all;
            await session.note("inside", 1);
          },
          () => session.note("with", 1),
        ),
      ),
    );
    for (const session of sessions) expect(await notes(session)).toEqual({ inside: 1, with: 1 });
  });

  test("one that waits too long for a place says so, and the next one gets it", async () => {
    await reopen(server.url, { connections: 2, patienceMs: 300 });
    const session = await create();
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const first = store.transaction(
      () => held,
      () => session.note("first", 1),
    );
    const second = store.transaction(
      (client) => order(client, "b"),
      () => session.note("second", 1),
    );
    await expect(second).rejects.toMatchObject({ code: "STORE_IO", message: expect.stringMatching(/connections/) });
    expect([await orders(), isHoldfastError(await second.catch((error) => error))]).toEqual([[], true]);
    letGo();
    await first;
    await store.transaction(
      (client) => order(client, "c"),
      () => session.note("third", 1),
    );
    expect([await orders(), await notes(session)]).toEqual([["c"], { first: 1, third: 1 }]);
  });
});

test("closing the store does not wait for a function that never ends, and nothing of it is written", async () => {
  const other = await open(server.url, { answerMs: 300 });
  const session = await other.create<unknown>({ dialect: "anthropic" });
  const { promise: begun, resolve } = Promise.withResolvers<pg.PoolClient>();
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  const hanging = other.transaction(
    async (client) => {
      await order(client, "a");
      resolve(client);
      await held;
    },
    () => session.note("with", 1),
  );
  await begun;
  await other.close();
  letGo();
  await expect(hanging).rejects.toThrow();
  expect([await orders(), await notes(session)]).toEqual([[], {}]);
});

describe("libraries", () => {
  interface Tables {
    readonly orders: { readonly id: string };
  }
  const table = pgTable("orders", { id: text().primaryKey() });
  const uses: readonly (readonly [string, (client: pg.PoolClient, ids: readonly string[]) => Promise<unknown>])[] = [
    [
      "Kysely",
      async (client, ids) => {
        const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: poolOf(client) }) });
        for (const id of ids) await db.insertInto("orders").values({ id }).execute();
        expect(await db.selectFrom("orders").selectAll().execute()).toHaveLength(ids.length);
        await db.destroy();
      },
    ],
    [
      "Drizzle",
      async (client, ids) => {
        const db = drizzle({ client });
        for (const id of ids) await db.insert(table).values({ id });
        expect(await db.select().from(table)).toHaveLength(ids.length);
      },
    ],
    [
      "Prisma's driver adapter",
      async (client, ids) => {
        const adapter = await new PrismaPg(pgPoolOf(client)).connect();
        const argTypes = [{ scalarType: "string", arity: "scalar" }] as const;
        for (const id of ids)
          await adapter.executeRaw({ sql: "INSERT INTO orders VALUES ($1)", args: [id], argTypes: [...argTypes] });
        const { rows } = await adapter.queryRaw({ sql: "SELECT id FROM orders", args: [], argTypes: [] });
        expect(rows).toHaveLength(ids.length);
        await adapter.dispose();
      },
    ],
  ];

  test.each(uses)("%s: its rows and the record are committed together, others' appends apart", async (_, use) => {
    const other = await create();
    await commits(async (client) => {
      await use(client, ["a", "b"]);
      expect(await orders()).toEqual([]);
      await Promise.all([1, 2, 3, 4, 5, 6].map((n) => other.note(`n${n}`, n)));
    });
    expect(await orders()).toEqual(["a", "b"]);
    expect(Object.keys((await notes(other)) as object)).toHaveLength(6);
  });

  test.each(uses)("%s: a failed statement rolls back its own rows alone", async (_, use) => {
    const session = await create();
    const other = await create();
    const failing = store.transaction(
      async (client) => {
        await use(client, ["a"]);
        await Promise.all([1, 2, 3, 4, 5, 6].map((n) => other.note(`n${n}`, n)));
        await use(client, ["a"]);
      },
      () => session.note("with", 1),
    );
    await expect(failing).rejects.toThrow();
    expect([await orders(), await notes(session)]).toEqual([[], {}]);
    expect(Object.keys((await notes(other)) as object)).toHaveLength(6);
  });

  const own: readonly (readonly [string, (client: pg.PoolClient) => Promise<unknown>])[] = [
    [
      "Kysely",
      (client) => {
        const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: poolOf(client) }) });
        return db.transaction().execute((inner) => inner.insertInto("orders").values({ id: "a" }).execute());
      },
    ],
    ["Drizzle", (client) => drizzle({ client }).transaction((inner) => inner.insert(table).values({ id: "a" }))],
    ["Prisma's driver adapter", async (client) => (await new PrismaPg(pgPoolOf(client)).connect()).startTransaction()],
  ];

  test.each(own)("%s: a transaction of its own is refused, and nothing is written", async (_, use) => {
    const session = await create();
    const refused = store.transaction(
      (client) => use(client),
      () => session.note("with", 1),
    );
    await expect(refused).rejects.toThrow();
    expect([await orders(), await notes(session)]).toEqual([[], {}]);
    await session.note("after", 1);
  });
});
