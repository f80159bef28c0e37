import { type EventEmitter, once } from "node:events";
import { isHoldfastError, type JournalRecord, newId } from "holdfast";
import type { JournalStore } from "holdfast/store";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Database } from "../../src/connection/database.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../src/index.ts";
import { statementOf } from "../../src/writing/statement-batcher.ts";
import { Network } from "../proxy/network.ts";
import { isOldest, type Server, startServer } from "../server/server.ts";
import { dice } from "./crew.ts";

const SEED = Number(process.env["HOLDFAST_PG_SEED"] ?? Date.now() % 1_000_000_007);
const ROUNDS = 15;

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

/** What the driver sends, message by message. */
interface RawConnection extends EventEmitter {
  parse(query: { readonly text: string }): void;
  bind(config: { readonly values: readonly unknown[]; readonly valueMapper: (value: unknown) => unknown }): void;
  execute(config: object): void;
  flush(): void;
}

interface Site {
  readonly network: Network;
  readonly schema: string;
  /** With the network in the way. */
  readonly store: JournalStore;
  /** Without. */
  readonly plain: JournalStore;
}

async function site(options: PostgresStoreOptions = {}): Promise<Site> {
  const network = await Network.open(server.port);
  const schema = `net_${newId().slice(-12)}`;
  const plain = await openPostgresStore(server.url, { schema, monthsAhead: 0, connections: 2 });
  const store = await openPostgresStore(network.through(server.url), {
    schema,
    monthsAhead: 0,
    connections: 2,
    answerMs: 500,
    ...options,
  });
  onTestFinished(async () => {
    network.refuse(false);
    await store.close().catch(() => undefined);
    await plain.close();
    await network.close();
  });
  return { network, store, plain, schema };
}

async function texts(store: JournalStore, id: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const record of store.history(id)) if (record.kind === "note") found.push(record["text"]);
  return found;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}

const headOf = async (store: JournalStore, id: string): Promise<number> =>
  (await store.list()).sessions.find((session) => session.id === id)!.head;

describe("S25: an append whose answer is lost", () => {
  test("written, and the connection cut: it is found, and stands once", async () => {
    const { network, store, plain } = await site({ answerMs: 20_000 });
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "note", text: 0 });
    for (let text = 1; text <= 5; text++) {
      const before = await headOf(plain, journal.id);
      network.loseAnswers();
      const appended = journal.append({ kind: "note", text });
      await until(async () => (await headOf(plain, journal.id)) > before);
      network.cut();
      expect((await appended).seq).toBe(before + 1);
    }
    expect(await texts(plain, journal.id)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(journal.failure).toBeNull();
  });

  test("written, and the connection half open: it is given up in time, and stands once", async () => {
    const { network, store, plain } = await site({ answerMs: 200 });
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "note", text: 0 });
    for (let text = 1; text <= 3; text++) {
      network.loseAnswers();
      await journal.append({ kind: "note", text });
    }
    expect(await texts(plain, journal.id)).toEqual([0, 1, 2, 3]);
  });

  test("not written, but on its way: sent again over another connection it is written, and what comes late changes nothing", async () => {
    const { network, store, plain } = await site({ answerMs: 200 });
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "note", text: 0 });
    for (let text = 1; text <= 3; text++) {
      const goOn = network.holdRequests();
      await journal.append({ kind: "note", text });
      goOn();
    }
    await journal.append({ kind: "note", text: 4 });
    // What came late has been answered by now: it had the same row to wait for.
    await until(async () => (await active()) === 0);
    expect(await texts(plain, journal.id)).toEqual([0, 1, 2, 3, 4]);
    expect(await headOf(plain, journal.id)).toBe(7);
  });

  test("S26: that comes to the server after its worker was replaced is not written, and the worker is told", async () => {
    const { network, store, plain } = await site({ leaseMs: 400, answerMs: 5000 });
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "note", text: "mine" });
    const goOn = network.holdRequests(true);
    const late = journal.append({ kind: "note", text: "late" });
    // Its time is over, since what says that it lives is held back too.
    const taken = await (async () => {
      for (;;) {
        try {
          return await plain.open(journal.id);
        } catch (error) {
          if (!isHoldfastError(error, "SESSION_BUSY")) throw error;
        }
      }
    })();
    await taken.journal.append({ kind: "note", text: "theirs" });
    goOn();
    await expect(late).rejects.toMatchObject({ code: "LEASE_LOST" });
    await taken.journal.append({ kind: "note", text: "theirs too" });
    expect(await texts(plain, journal.id)).toEqual(["mine", "theirs", "theirs too"]);
    await taken.journal.close();
  });

  test("of a worker that stops between two packets keeps its session locked only as long as anybody would wait", async (context) => {
    if (isOldest) return context.skip("not run: PostgreSQL 14 to 16 have no transaction_timeout (many-machines.md)");
    const { plain, schema } = await site();
    const journal = await plain.create(newId(), []);
    await journal.append({ kind: "note", text: "before" });
    const [row] = await server.query(`SELECT place, owner, fence, head FROM "${schema}".heads WHERE id = $1`, [
      journal.id,
    ]);
    const pool = new pg.Pool({ connectionString: server.url });
    const database = new Database(pool, { name: "", schema: `"${schema}"`, patienceMs: 0, answerMs: 300 });
    database.serverVersion = Number((await pool.query("SHOW server_version_num")).rows[0].server_version_num);
    await pool.end();
    const head = Number(row!["head"]);
    const lease = { place: journal.id, owner: String(row!["owner"]), fence: String(row!["fence"]), head, attempt: "" };
    const write = {
      lease,
      head,
      count: 1,
      lines: Buffer.from("{}"),
      segments: [],
      opens: false,
      durability: "power",
    } as const;
    const { text, values } = statementOf(database, [write]);
    // All of the statement but its last message, which would end the transaction.
    const client = new pg.Client({ connectionString: server.url });
    client.on("error", () => undefined);
    await client.connect();
    const { connection } = client as unknown as { readonly connection: RawConnection };
    const done = once(connection, "commandComplete");
    connection.parse({ text });
    connection.bind({ values, valueMapper: (value) => (Buffer.isBuffer(value) ? value : String(value)) });
    connection.execute({});
    connection.flush();
    await done;
    await journal.append({ kind: "note", text: "after" });
    expect(await texts(plain, journal.id)).toEqual(["before", "after"]);
    await client.end();
  });

  test("and no server for longer than the patience: in doubt, nothing more is taken, and what was acknowledged is there", async () => {
    const { network, store, plain } = await site({ patienceMs: 300 });
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "note", text: "safe" });
    const told: string[] = [];
    journal.onFailure(({ code }) => told.push(code));
    network.refuse(true);
    await expect(journal.append({ kind: "note", text: "in doubt" })).rejects.toMatchObject({ code: "SYNC_FAILED" });
    await expect(journal.append({ kind: "note", text: "later" })).rejects.toMatchObject({ code: "SYNC_FAILED" });
    expect(told).toEqual(["SYNC_FAILED"]);
    await journal.close();
    network.refuse(false);
    // The lease that could not be given back keeps nobody of this store out.
    const { journal: again, recovery } = await store.open(journal.id);
    expect(recovery.unclean).toBe(true);
    await again.append({ kind: "note", text: "again" });
    expect((await texts(plain, journal.id)).filter((text) => text !== "in doubt")).toEqual(["safe", "again"]);
  });

  test("closing while the server is away ends, and says so; everything acknowledged is there", async () => {
    const { network, store, plain } = await site({ patienceMs: 300, answerMs: 300 });
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "note", text: "safe" });
    network.refuse(true);
    await expect(store.close()).rejects.toMatchObject({ code: "SYNC_FAILED" });
    expect(await texts(plain, journal.id)).toEqual(["safe"]);
  });
});

test("a server that says nothing any more, to whoever calls: every call ends, and says so", async () => {
  const { network, store } = await site({ answerMs: 250, patienceMs: 800 });
  const created = await Promise.all([1, 2, 3, 4].map(() => store.create(newId(), [{ kind: "note" }])));
  const [journal, soft, closing, closed] = created;
  const { id } = closed!;
  await closed!.close();
  await soft!.append({ kind: "note" }, { durability: "process" });
  network.holdRequests(true);
  const all = async (records: AsyncIterable<JournalRecord>): Promise<void> => {
    for await (const _ of records);
  };
  const nothing = async function* (): AsyncGenerator<never> {};
  const calls: Record<string, Promise<unknown>> = {
    append: journal!.append({ kind: "note" }),
    epoch: journal!.epoch(() => [{ kind: "epoch" }]),
    flush: soft!.flush(),
    close: closing!.append({ kind: "note" }).finally(() => closing!.close()),
    create: store.create(newId(), []),
    open: store.open(id),
    read: store.read(id),
    history: all(store.history(id)),
    follow: all(store.follow(id)),
    has: store.has(id),
    holder: store.holder(id),
    list: store.list(),
    delete: store.delete(id),
    verify: store.verify(id),
    gc: store.gc(),
    adopt: store.adopt!(newId(), nothing()),
  };
  const ended = await Promise.all(
    Object.entries(calls).map(async ([name, call]) => [name, await call.then(String, ({ code }) => code)]),
  );
  const doubt = { append: "SYNC_FAILED", epoch: "SYNC_FAILED", close: "SYNC_FAILED" };
  const silent = Object.fromEntries(Object.keys(calls).map((name) => [name, "STORE_IO"]));
  expect(Object.fromEntries(ended)).toEqual({ ...silent, ...doubt });
  await store.close().catch((error: unknown) => expect(isHoldfastError(error)).toBe(true));
});

async function active(): Promise<number> {
  const rows = await server.query(
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'holdfast' AND state <> 'idle'",
  );
  return rows.length;
}

describe("S27: followers", () => {
  test(`miss nothing and double nothing while the network is cut ${ROUNDS} times, slow, and silent`, async () => {
    console.log(`seed ${SEED}`);
    const roll = dice(SEED);
    const { network, store, plain } = await site({ answerMs: 300 });
    const writer = await plain.create(newId(), []);
    const over = new AbortController();
    const followers = [0, 1, 2].map(() => {
      const records: JournalRecord[] = [];
      const done = (async () => {
        for await (const record of store.follow(writer.id, { signal: over.signal })) records.push(record);
      })();
      return { records, done };
    });
    for (let round = 0; round < ROUNDS; round++) {
      for (let i = roll(20); i >= 0; i--) void writer.append([{ kind: "note" }, { kind: "note" }]);
      network.delayMs = roll(3) * 10;
      const appended = writer.append({ kind: "note", round });
      if (roll(3) === 0) network.loseAnswers();
      else network.cut();
      const { last } = await appended;
      if (roll(2) === 0) await until(() => followers.some(({ records }) => records.at(-1)?.seq === last));
    }
    const { head } = writer;
    await until(() => followers.every(({ records }) => records.at(-1)?.seq === head));
    over.abort();
    for (const { records, done } of followers) {
      await done;
      expect(records.map(({ seq }) => seq)).toEqual(Array.from({ length: head }, (_, i) => i + 1));
    }
  });
});

describe("fail-over", () => {
  test("to a server under another port: appends under way are written once, followers go on, leases are kept", async () => {
    const failing = await startServer(["fsync=off"]);
    onTestFinished(() => failing.stop());
    const network = await Network.open(failing.port);
    const store = await openPostgresStore(network.through(failing.url), { monthsAhead: 0, answerMs: 2000 });
    const journal = await store.create(newId(), []);
    const over = new AbortController();
    const records: JournalRecord[] = [];
    const following = (async () => {
      for await (const record of store.follow(journal.id, { signal: over.signal })) records.push(record);
    })();
    const appended: Promise<{ readonly seq: number }>[] = [];
    for (let moves = 1; moves <= 2; moves++) {
      await journal.append({ kind: "note", moves });
      const moving = (async () => {
        await failing.crash(true);
        network.target = failing.port;
      })();
      for (let i = 0; i < 10; i++) appended.push(journal.append({ kind: "note", moves, i }));
      await moving;
    }
    const seqs = (await Promise.all(appended)).map(({ seq }) => seq);
    expect(new Set(seqs).size).toBe(20);
    expect(journal.failure).toBeNull();
    await until(() => records.at(-1)?.seq === journal.head);
    over.abort();
    await following;
    expect(records.map(({ seq }) => seq)).toEqual(Array.from({ length: journal.head }, (_, i) => i + 1));
    await store.close();
    await network.close();
  });

  test("to a server without the newest records is told by the next append, and by a follower", async () => {
    const { store, plain, schema } = await site();
    const journal = await store.create(newId(), []);
    for (let i = 0; i < 5; i++) await journal.append({ kind: "note", i });
    const { head } = journal;
    const lose = async (): Promise<void> => {
      await server.query(`DELETE FROM "${schema}".lines WHERE place = $1 AND seq > $2`, [journal.id, head - 2]);
      await server.query(`UPDATE "${schema}".heads SET head = $2 WHERE place = $1`, [journal.id, head - 2]);
    };
    const following = (async () => {
      for await (const record of plain.follow(journal.id)) if (record.seq === head) await lose();
    })();
    await expect(following).rejects.toMatchObject({ code: "CURSOR_STALE" });
    await expect(journal.append({ kind: "note", i: "late" })).rejects.toMatchObject({ code: "FILE_REPLACED" });
    await journal.close().catch((error: unknown) => {
      if (!isHoldfastError(error, "FILE_REPLACED")) throw error;
    });
    const { records } = await plain.read(journal.id);
    expect(records.at(-1)?.seq).toBe(head - 2);
  });
});
