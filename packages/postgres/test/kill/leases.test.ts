import { isHoldfastError, newId } from "holdfast";
import type { JournalStore } from "holdfast/store";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";
import { judge, Worker } from "./crew.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

async function opened(leaseMs: number): Promise<JournalStore> {
  const store = await openPostgresStore(server.url, { monthsAhead: 0, leaseMs, app: "the other one" });
  onTestFinished(() => store.close());
  return store;
}

async function session(store: JournalStore): Promise<string> {
  const id = newId();
  await (await store.create(id, [])).close();
  return id;
}

/** Until nobody has it any more. */
async function openedAtLast(store: JournalStore, id: string): ReturnType<JournalStore["open"]> {
  for (;;) {
    try {
      return await store.open(id);
    } catch (error) {
      if (!isHoldfastError(error, "SESSION_BUSY")) throw error;
    }
  }
}

const FOREVER_MS = 3_600_000;
const SHORT_MS = 900;

describe("S26: leases", () => {
  test("C15, P3: a worker that is paused beyond its lease is replaced; woken, it is told, and writes nothing any more", async () => {
    // What it takes it keeps, however busy the machine is: the woken worker would have it back.
    const store = await opened(FOREVER_MS);
    const ids = [await session(store), await session(store)];
    using worker = new Worker(server.url, "paused", ids, { leaseMs: SHORT_MS });
    for (const one of ids) await worker.says(({ id, ack }) => id === one && ack !== undefined);
    worker.signal("SIGSTOP");
    const taken = await Promise.all(ids.map((id) => openedAtLast(store, id)));
    const write = (i: number) => taken[i]!.journal.append({ kind: "note", by: "replacement", n: 1, part: 0 });
    // One has written already; of the other only the fence tells.
    const first = await write(0);
    const before = worker.said.length;
    worker.signal("SIGCONT");
    for (const id of ids) {
      expect(await worker.says((said) => said.id === id && said.lost !== undefined, before)).toMatchObject({
        lost: "LEASE_LOST",
      });
      // It tries to come back, and finds who is there.
      await worker.says((said) => said.id === id && said.refused === "SESSION_BUSY", before);
    }
    const heads = [first, await write(1)];
    await worker.kill();
    const said = [...worker.said, ...ids.map((id) => ({ id, by: "replacement", attempt: 1, count: 1 }))];
    expect((await judge(store, ids, said)).faults).toEqual([]);
    for (const [i, id] of ids.entries()) {
      const last = [];
      for await (const record of store.history(id, heads[i]!.seq)) last.push(record["by"]);
      expect(last).toEqual(["replacement"]);
    }
    expect(taken.map(({ journal }) => journal.failure)).toEqual([null, null]);
  });

  test("a dead worker's sessions are free as soon as its connection is gone, not when its time is over", async () => {
    const store = await opened(FOREVER_MS);
    const id = await session(store);
    using worker = new Worker(server.url, "dead", [id], { leaseMs: FOREVER_MS });
    await worker.works();
    await expect(store.open(id)).rejects.toMatchObject({ code: "SESSION_BUSY", facts: { sameProcess: false } });
    expect(await store.holder(id)).toMatchObject({ pid: worker.child.pid });
    await worker.kill();
    const since = performance.now();
    const { recovery, journal } = await openedAtLast(store, id);
    console.log(`free after ${Math.round(performance.now() - since)} ms`);
    expect(recovery.unclean).toBe(true);
    await journal.append({ kind: "note" });
    expect((await judge(store, [], worker.said)).faults).toEqual([]);
  });

  test("of several that want a dead worker's session one gets it", async () => {
    const stores = await Promise.all([1, 2, 3, 4].map(() => opened(FOREVER_MS)));
    const id = await session(stores[0]!);
    using worker = new Worker(server.url, "wanted", [id], { leaseMs: FOREVER_MS });
    await worker.works();
    await worker.kill();
    const won: string[] = [];
    while (won.length === 0) {
      const results = await Promise.allSettled(stores.map((store) => store.open(id)));
      for (const result of results) {
        if (result.status === "fulfilled") won.push(id);
        else expect(result.reason).toMatchObject({ code: "SESSION_BUSY" });
      }
    }
    expect(won).toHaveLength(1);
  });

  test("a worker that starts again is not locked out of what it had", async () => {
    const store = await opened(FOREVER_MS);
    const ids = [await session(store), await session(store), await session(store)];
    for (const life of ["first", "second", "third"]) {
      using worker = new Worker(server.url, life, ids, { leaseMs: FOREVER_MS });
      for (const id of ids) await worker.says((said) => said.id === id && said.ack !== undefined);
      await worker.kill();
    }
  });

  test("without a direct connection only time frees", async () => {
    const store = await opened(FOREVER_MS);
    const id = await session(store);
    using worker = new Worker(server.url, "alone", [id], { leaseMs: 2000, directUrl: null });
    await worker.works();
    expect(
      await server.query("SELECT watched FROM holdfast.workers JOIN holdfast.heads USING (owner) WHERE id = $1", [id]),
    ).toEqual([{ watched: false }]);
    await worker.kill();
    const { journal } = await openedAtLast(store, id);
    await journal.append({ kind: "note" });
  });
});
