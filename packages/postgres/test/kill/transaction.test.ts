import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError, type Session, type Turn } from "holdfast";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openStore, type PostgresSessions } from "../../src/index.ts";
import { Network } from "../proxy/network.ts";
import { type Server, startServer } from "../server/server.ts";

let server: Server;
let store: PostgresSessions;
let schemas = 0;
let schema = "";

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
  await server.query("CREATE TABLE orders (id text PRIMARY KEY)");
  await server.query("CREATE TABLE pairs (id text UNIQUE DEFERRABLE INITIALLY DEFERRED)");
});
afterAll(() => server.stop());

beforeEach(async () => {
  schema = `t${++schemas}`;
  store = await open();
});
afterEach(async () => {
  await store.close().catch(() => undefined);
  await server.query("TRUNCATE orders, pairs");
});

function open(options: object = {}, url = server.url): Promise<PostgresSessions> {
  return openStore(url, { schema, monthsAhead: 0, patienceMs: 4000, answerMs: 1500, ...options });
}

const order =
  (id: string, table = "orders") =>
  (client: pg.ClientBase): Promise<unknown> =>
    client.query(`INSERT INTO ${table} (id) VALUES ($1)`, [id]);

async function orders(): Promise<unknown[]> {
  return (await server.query("SELECT id FROM orders ORDER BY id")).map(({ id }) => id);
}

async function begin(): Promise<{ session: Session<unknown>; turn: Turn<unknown> }> {
  const session = await store.create<unknown>({ dialect: "anthropic" });
  return { session, turn: await session.startTurn({ role: "user", content: "hello" }) };
}

/** What a reader finds in the journal. */
async function recorded(id: string): Promise<string[]> {
  const reading = await store.read<{ content: unknown }>(id);
  return reading.messages.map(({ content }) => JSON.stringify(content));
}

const say = (text: string): object => ({ role: "assistant", content: [{ type: "text", text }] });
const call = (id: string): object => ({
  role: "assistant",
  content: [{ type: "tool_use", id, name: "order", input: {} }],
});

describe("a record in the application's transaction", () => {
  test("rows and record are committed together, and shown when they are", async () => {
    const { session, turn } = await begin();
    const seen: unknown[] = [];
    const appended = await store.transaction(
      async (client) => {
        await order("a")(client);
        seen.push(await orders());
      },
      () => turn.append(say("ordered")),
    );
    expect(seen).toEqual([[]]);
    expect(await orders()).toEqual(["a"]);
    expect(session.messages).toHaveLength(2);
    expect(appended.seq).toBe(session.entries.at(-1)!.seq);
    expect(await recorded(session.id)).toHaveLength(2);
    expect(store.metrics().counters).toMatchObject({ transactions: 1, transactionsRolledBack: 0 });
  });

  test("it can be the first record of a session, a prompt, a queued prompt, a note, or a new epoch", async () => {
    const session = await store.create<unknown>({ dialect: "anthropic" });
    await store.transaction(order("queued"), () => session.enqueue({ role: "user", content: "later" }));
    await store.transaction(order("noted"), () => session.note("order", 1));
    const turn = await store.transaction(order("begun"), () => session.startTurn({ role: "user", content: "hello" }));
    await store.transaction(order("ended"), () => turn.end());
    await store.transaction(order("replaced"), () => session.replace([], { reason: "clear" }));
    expect(await orders()).toEqual(["begun", "ended", "noted", "queued", "replaced"]);
    await session.close();
    const again = await store.resume(session.id);
    expect([again.queue.length, again.attributes.notes, again.interruption, again.messages]).toEqual([
      1,
      { order: 1 },
      null,
      [],
    ]);
  });

  test("if the work throws, nothing is written and the session has not been called", async () => {
    const { session, turn } = await begin();
    let isCalled = false;
    const failing = store.transaction(
      async (client) => {
        await order("a")(client);
        await order("a")(client);
      },
      () => {
        isCalled = true;
        return turn.append(say("ordered"));
      },
    );
    await expect(failing).rejects.toMatchObject({ code: "23505" });
    expect([isCalled, await orders(), session.messages.length]).toEqual([false, [], 1]);
    expect(store.metrics().counters).toMatchObject({ transactionsRolledBack: 1 });
    await turn.append(say("it did not work"), { end: true });
    expect(await recorded(session.id)).toHaveLength(2);
  });

  test("if the session refuses the call, the rows are rolled back", async () => {
    const { session, turn } = await begin();
    const refused = store.transaction(order("a"), () => turn.append({ role: "nobody" }));
    await expect(refused).rejects.toMatchObject({ code: "MESSAGE_UNFIT" });
    expect([await orders(), session.messages.length]).toEqual([[], 1]);
  });

  test("if COMMIT fails, the session continues as if it had not been called, and so do appends behind it", async () => {
    const { session, turn } = await begin();
    await order("taken", "pairs")({ query: (text: string, values: unknown[]) => server.query(text, values) } as never);
    const handedOver = Promise.withResolvers<void>();
    const failing = store.transaction(order("taken", "pairs"), () => {
      const appended = turn.append(say("ordered"));
      handedOver.resolve();
      return appended;
    });
    // Recorded by others meanwhile, such as the outcome of a tool that runs at the same time.
    const notes = handedOver.promise.then(() => Promise.all([1, 2, 3].map((n) => session.note(`n${n}`, n))));
    await expect(failing).rejects.toMatchObject({ code: "TRANSACTION_ROLLED_BACK", cause: { code: "23505" } });
    await notes;
    expect(session.messages).toHaveLength(1);
    await turn.append(say("after"), { end: true });
    expect(await recorded(session.id)).toEqual(['"hello"', '[{"type":"text","text":"after"}]']);
    const { damaged, missing } = await store.verify(session.id);
    expect({ damaged, missing }).toEqual({ damaged: [], missing: [] });
    expect((await store.read(session.id)).attributes.notes).toEqual({ n1: 1, n2: 2, n3: 3 });
  });

  test("a statement that failed and was caught rolls everything back", async () => {
    const { session, turn } = await begin();
    const failing = store.transaction(
      async (client) => {
        await order("a")(client);
        await order("a")(client).catch(() => undefined);
      },
      () => turn.append(say("ordered")),
    );
    await expect(failing).rejects.toMatchObject({ code: "TRANSACTION_ROLLED_BACK", cause: { code: "25P02" } });
    expect([await orders(), session.messages.length]).toEqual([[], 1]);
    expect(store.metrics().counters).toMatchObject({ transactionsRolledBack: 1 });
  });

  test("a call that records nothing rolls the rows back and says so: a repeated prompt", async () => {
    const session = await store.create<unknown>({ dialect: "anthropic" });
    const start = (id: string): Promise<unknown> =>
      store.transaction(order(id), () => session.startTurn({ role: "user", content: "hello" }, { id: "prompt" }));
    await start("a");
    await expect(start("b")).rejects.toMatchObject({
      code: "TRANSACTION_ROLLED_BACK",
      facts: { why: "nothing recorded" },
    });
    expect(await orders()).toEqual(["a"]);
    expect(session.turn?.number).toBe(1);
  });

  test("a second record in one transaction is refused, also if nobody waits in between", async () => {
    const { session, turn } = await begin();
    const twice = store.transaction(order("a"), async () => {
      const first = turn.append(say("one"));
      await session
        .note("two", 2)
        .catch((error: unknown) => expect(isHoldfastError(error, "NOT_SUPPORTED")).toBe(true));
      return first;
    });
    await twice;
    expect(await orders()).toEqual(["a"]);
    expect(session.attributes.notes).toEqual({});
  });

  test("a record of another store is refused", async () => {
    const other = await open({ schema: "elsewhere" });
    const session = await other.create<unknown>({ dialect: "anthropic" });
    await expect(store.transaction(order("a"), () => session.note("n", 1))).rejects.toMatchObject({
      code: "NOT_SUPPORTED",
    });
    expect([await orders(), session.attributes.notes]).toEqual([[], {}]);
    await session.note("n", 2);
    await other.close();
  });

  test("what the application commits itself is not recorded", async () => {
    const { session, turn } = await begin();
    const ended = store.transaction(
      async (client) => {
        await order("a")(client);
        await client.query("COMMIT");
      },
      () => turn.append(say("ordered")),
    );
    await expect(ended).rejects.toMatchObject({ code: "NOT_SUPPORTED" });
    expect(session.messages).toHaveLength(1);
    await turn.append(say("after"));
    expect(await recorded(session.id)).toHaveLength(2);
  });

  test("a replaced worker's transaction is rolled back, and its session says LEASE_LOST", async () => {
    const { session, turn } = await begin();
    const taken = store.transaction(
      async (client) => {
        await order("a")(client);
        await server.query(`UPDATE ${schema}.heads SET owner = gen_random_uuid(), fence = fence + 1`);
      },
      () => turn.append(say("ordered")),
    );
    await expect(taken).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect([await orders(), session.messages.length]).toEqual([[], 1]);
  });

  test("streamed text in the meantime does not take the transaction", async () => {
    const { session, turn } = await begin();
    const { draft } = turn.request();
    draft.push({ text: "half an ans" });
    await store.transaction(order("a"), () => turn.end());
    expect(await orders()).toEqual(["a"]);
    expect(session.interruption).toBeNull();
  });

  test("more transactions at once than connections do not block each other, nor appends", async () => {
    await store.close();
    store = await open({ connections: 2 });
    const { session, turn } = await begin();
    await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        store.transaction(
          async (client) => {
            await order(`o${n}`)(client);
            await session.note(`during ${n}`, n);
          },
          () => session.note(`with ${n}`, n),
        ),
      ),
    );
    expect(await orders()).toHaveLength(8);
    expect(Object.keys(session.attributes.notes)).toHaveLength(16);
    await turn.end();
    await store.close();
    store = await open({ connections: 1 });
    await expect(store.transaction(order("x"), async () => undefined)).rejects.toMatchObject({ code: "NOT_SUPPORTED" });
  });

  test("a session that is closed meanwhile records what it had accepted", async () => {
    const { session, turn } = await begin();
    const both = store.transaction(order("a"), () => turn.append(say("ordered"), { end: true }));
    await sleep(0);
    const behind = session.note("behind", 1).then(
      () => "written",
      () => "refused",
    );
    await both;
    await session.close();
    const written = (await behind) === "written";
    expect(await orders()).toEqual(["a"]);
    expect((await store.read(session.id)).attributes.notes).toEqual(written ? { behind: 1 } : {});
  });
});

describe("a transaction whose outcome is unknown", () => {
  let network: Network;

  beforeEach(async () => {
    network = await Network.open(server.port);
    await reopen();
  });
  afterEach(async () => {
    await store.close().catch(() => undefined);
    await network.close();
  });

  async function reopen(options: object = {}): Promise<void> {
    await store.close();
    store = await open({ directUrl: server.url, ...options }, network.through(server.url));
  }

  /**
   * Ends the connections at the instant of the next COMMIT: before the server has it, or after. To be called in the
   * transaction. What is returned resolves when they have ended.
   */
  async function losing(when: "before" | "after", then = async (): Promise<unknown> => null): Promise<void> {
    // Not the COMMITTED of another transaction's beginning.
    const commit = network.holdStatement("COMMIT\0");
    await commit.held;
    if (when === "after") {
      network.loseAnswers();
      void commit.goOn();
      while ((await orders()).length === 0) await sleep(5);
      await then();
    }
    network.cut();
  }

  test("committed: found out, and the call resolves", async () => {
    const { session, turn } = await begin();
    let lost!: Promise<void>;
    await store.transaction(
      async (client) => {
        lost = losing("after");
        await order("a")(client);
      },
      () => turn.append(say("ordered")),
    );
    await lost;
    expect([await orders(), session.messages.length]).toEqual([["a"], 2]);
    await turn.end();
  });

  test("rolled back: found out, and the session continues", async () => {
    const { session, turn } = await begin();
    const lost = store.transaction(
      async (client) => {
        void losing("before");
        await order("a")(client);
      },
      () => turn.append(say("ordered")),
    );
    await expect(lost).rejects.toMatchObject({ code: "TRANSACTION_ROLLED_BACK" });
    expect([await orders(), session.messages.length]).toEqual([[], 1]);
    await turn.append(say("after"), { end: true });
    expect(await recorded(session.id)).toHaveLength(2);
  });

  test("the connection is ended before COMMIT: nothing is written", async () => {
    const { session, turn } = await begin();
    const lost = store.transaction(
      async (client) => {
        await order("a")(client);
        const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
        await server.query("SELECT pg_terminate_backend($1)", [rows[0].pid]);
      },
      () => turn.append(say("ordered")),
    );
    await expect(lost).rejects.toMatchObject({ code: "TRANSACTION_ROLLED_BACK" });
    expect([await orders(), session.messages.length]).toEqual([[], 1]);
    await turn.end();
  });

  test("it cannot begin: the error says why, and it takes no place from the next one", async () => {
    await reopen({ connections: 2, patienceMs: 300 });
    const { session, turn } = await begin();
    network.refuse(true);
    for (let tries = 0; tries < 2; tries++)
      await expect(store.transaction(order("a"), () => turn.append(say("ordered")))).rejects.toMatchObject({
        code: "STORE_IO",
        message: expect.stringMatching(/begin a transaction/),
      });
    network.refuse(false);
    await store.transaction(order("b"), () => turn.append(say("ordered")));
    expect([await orders(), session.messages.length]).toEqual([["b"], 2]);
  });

  test("the server does not say in time: SYNC_FAILED, and the session shows the record exactly if the rows are there", async () => {
    await reopen({ patienceMs: 300 });
    const { session, turn } = await begin();
    const blocker = new pg.Client({ connectionString: server.url });
    await blocker.connect();
    // Somebody has the row locked then: this cannot be told from a transaction that is still under way.
    const lock = async (): Promise<void> => {
      await blocker.query("BEGIN");
      await blocker.query(`SELECT FROM ${schema}.heads FOR UPDATE`);
    };
    const doubt = store.transaction(
      async (client) => {
        void losing("after", lock);
        await order("a")(client);
      },
      () => turn.append(say("ordered")),
    );
    await expect(doubt).rejects.toMatchObject({ code: "SYNC_FAILED" });
    await blocker.query("ROLLBACK");
    await blocker.end();
    expect(session.messages).toHaveLength(1);
    await session.close().catch(() => undefined);
    await store.close().catch(() => undefined);
    store = await open();
    expect(await orders()).toEqual(["a"]);
    expect(await recorded(session.id)).toHaveLength(2);
  });
});

describe("a tool in the application's transaction", () => {
  async function called(id: string): Promise<{ session: Session<unknown>; turn: Turn<unknown> }> {
    const { session, turn } = await begin();
    await turn.append(call(id));
    return { session, turn };
  }

  test("its rows are committed with its outcome", async () => {
    const { session, turn } = await called("c1");
    const outcome = await store.tool(turn, "c1", async (client) => {
      await order("a")(client);
      await session.note("during", 1);
      return "done";
    });
    expect(outcome).toEqual({ value: "done" });
    expect(await orders()).toEqual(["a"]);
    expect(turn.open).toEqual([]);
    expect(session.attributes.notes).toEqual({ during: 1 });
  });

  test("what it throws is its outcome, and its rows are rolled back", async () => {
    const { session, turn } = await called("c1");
    const outcome = await store.tool(turn, "c1", async (client) => {
      await order("a")(client);
      throw new Error("out of stock");
    });
    expect(outcome).toMatchObject({ error: { message: "out of stock" } });
    expect([await orders(), turn.open]).toEqual([[], []]);
    expect(JSON.stringify(session.messages)).toContain("out of stock");
  });

  test("its options are those of any tool", async () => {
    const { session, turn } = await called("c1");
    await store.tool(turn, "c1", () => "done", { child: session.id });
    const started = await server.query(`SELECT line FROM ${schema}.lines WHERE line LIKE '%tool.started%'`);
    expect(JSON.parse(String(started[0]!["line"]))).toMatchObject({ call: "c1", replay: "safe", child: session.id });
  });

  test("if COMMIT fails, that is its outcome", async () => {
    const { turn } = await called("c1");
    await server.query("INSERT INTO pairs VALUES ('taken')");
    const outcome = await store.tool(turn, "c1", (client) => order("taken", "pairs")(client));
    expect(outcome).toMatchObject({ error: { code: "TRANSACTION_ROLLED_BACK" } });
    expect(turn.open).toEqual([]);
    await turn.end();
  });

  test("an outcome that is too large is described in words, in the same transaction", async () => {
    const { session, turn } = await called("c1");
    const large = "x".repeat(70 * 1024 * 1024);
    await store.tool(turn, "c1", (client) => order("a")(client).then(() => large));
    expect(await orders()).toEqual(["a"]);
    expect(JSON.stringify(session.messages)).toContain("too large to be recorded");
  });

  test("it is found safe to repeat after a crash, and has had no effect", async () => {
    const { session, turn } = await called("c1");
    const never = store.tool(turn, "c1", async (client) => {
      await order("a")(client);
      await server.query(`UPDATE ${schema}.heads SET owner = NULL, fence = fence + 1`);
      return "done";
    });
    await expect(never).rejects.toMatchObject({ code: "LEASE_LOST" });
    await session.close().catch(() => undefined);
    const again = await store.resume(session.id);
    expect(again.interruption?.calls).toMatchObject([{ id: "c1", state: "outcome-unknown", replay: "safe" }]);
    expect(await orders()).toEqual([]);
    const resumed = await again.resumeTurn({ calls: "rerun" });
    await store.tool(resumed, "c1", (client) => order("a")(client).then(() => "done"));
    expect(await orders()).toEqual(["a"]);
  });
});
