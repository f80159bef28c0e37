import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import type { Journal, Summariser } from "holdfast/store";
import { expect, test } from "vitest";
import { CountingDisk } from "../../../counting-disk.ts";
import { place } from "../../../place.ts";

/**
 * Promises about cost, proven by counting what is asked of the disk; how long it takes is measured in `npm run bench`.
 */

const titles: Summariser = {
  add: (row, record) => (record.kind === "session" ? { title: String(record["title"]) } : row),
  carries: () => false,
};

async function fill(journal: Journal, records: number, bytes: number): Promise<void> {
  const text = "x".repeat(bytes);
  for (let i = 0; i < records; i++) await journal.append({ kind: "message", i, text }, { durability: "process" });
}

test("C26: opening an old session reads the live context alone", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk, segmentBytesMax: 256 * 1024 });
  const id = newId();
  const journal = await store.create(id, [{ kind: "session", title: "old" }]);
  await fill(journal, 4000, 1000);
  await journal.epoch(() => [{ kind: "epoch", reason: "compaction" }]);
  await fill(journal, 100, 1000);
  await journal.close();
  const segments = Math.floor((4000 * 1080) / (256 * 1024));

  counting.reset();
  const opened = await store.open(id);
  expect(opened.records.filter(({ kind }) => kind === "message")).toHaveLength(100);
  const live = [...counting.read].filter(([path]) => path.endsWith(".jsonl"));
  expect(live, "one segment was read").toHaveLength(1);
  const size = statSync(live[0]![0]).size;
  expect(
    counting.bytesRead(),
    "the live context twice at most: once to read it, once to make its end durable",
  ).toBeLessThan(2 * size + 64 * 1024);
  expect(segments).toBeGreaterThan(10);
  await opened.journal.close();
});

test("P7: an append asks the same of the disk at record 10 and at record 10,000", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk });
  const journal = await store.create(newId(), []);
  const cost = async (): Promise<unknown> => {
    counting.reset();
    await fill(journal, 10, 100);
    return {
      calls: [...counting.calls].filter(([name]) => name !== "sync" && name !== "stat"),
      read: counting.bytesRead(),
    };
  };
  await fill(journal, 10, 100);
  const young = await cost();
  await fill(journal, 10_000, 100);
  expect(await cost()).toEqual(young);
  expect(young).toEqual({ calls: [["write", 10]], read: 0 });
});

test("P1: appends of one tick share one sync", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk });
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "first" });
  counting.reset();
  await Promise.all(Array.from({ length: 64 }, (_, i) => journal.append({ kind: "message", i })));
  expect(counting.calls.get("sync")).toBe(1);
  expect(counting.calls.get("write")).toBe(64);
});

test("C27: a warm list of many sessions opens no journal; a cold one reads their ends only", async () => {
  using here = place();
  const counting = new CountingDisk();
  const count = 60;
  {
    await using store = await openFolderStore(here.path, { summariser: titles });
    for (let i = 0; i < count; i++) {
      await using journal = await store.create(newId(), [{ kind: "session", title: `session ${i}` }]);
      await fill(journal, 1, 100_000);
    }
  }
  await using store = await openFolderStore(here.path, { disk: counting.disk, summariser: titles });
  const first = await store.list({ limit: 20 });
  expect(first.sessions.map(({ summary }) => summary)).toEqual(
    Array.from({ length: 20 }, (_, i) => ({ title: `session ${count - 1 - i}` })),
  );
  expect(counting.bytesRead(), "no byte of any journal").toBe(0);
  expect(counting.calls.get("stat"), "one for each session, and a few for the store").toBeLessThan(count + 20);
  const next = await store.list({ limit: 20, after: first.next! });
  expect(next.sessions[0]?.summary).toEqual({ title: `session ${count - 21}` });
  const found = await store.list({ where: { title: "session 7" } });
  expect(found.sessions.map(({ summary }) => summary)).toEqual([{ title: "session 7" }]);
  await store.close();

  for (const ending of ["", "-wal", "-shm"]) rmSync(join(here.path, `catalog.sqlite${ending}`), { force: true });
  counting.reset();
  await using cold = await openFolderStore(here.path, { disk: counting.disk, summariser: titles });
  expect(await cold.list({ limit: 20 })).toEqual(first);
  expect(counting.bytesRead() / count).toBeLessThanOrEqual(64 * 1024);
});

test("P7, C23: the order of lists costs a new writer one look at the other sessions for each store, and an append nothing", async () => {
  using here = place();
  const count = 40;
  {
    await using store = await openFolderStore(here.path);
    for (let i = 0; i < count; i++) await (await store.create(newId(), [])).close();
  }
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk });
  const cost = async (): Promise<number> => {
    counting.reset();
    await (await store.create(newId(), [])).close();
    return counting.calls.get("stat")!;
  };
  const first = await cost();
  const second = await cost();
  expect(first - second, "one for each, and six for the catalogue and what may be beside it").toBe(count + 6);
  expect(counting.bytesRead(), "no byte of any journal").toBe(0);
  for (let i = 0; i < 10; i++) expect(await cost()).toBe(second);
  const { journal } = await store.open((await store.list()).sessions[0]!.id);
  await journal.append({ kind: "first" });
  counting.reset();
  await fill(journal, 10, 100);
  // Its file, the next claim and its lease at each append until its lock is sure, and its file once a second.
  expect(counting.calls.get("stat") ?? 0, "of its own session alone").toBeLessThan(3 * 10 + 3);
  expect(counting.calls.get("list")).toBeUndefined();
  await journal.close();
});

test("C23: without its catalogue, and with the writers dead, the order is the same", async () => {
  using here = place();
  const start = Date.parse("2026-11-15T12:00:00.000Z");
  const open = (now: number) => openFolderStore(here.path, { clock: () => now++ });
  const ids = [newId(), newId(), newId()];
  const stores = [];
  // Each clock is an hour behind the one before; nobody closes anything.
  for (const [i, id] of ids.entries()) {
    const store = await open(start - i * 3_600_000);
    const journal = await store.create(id, [{ kind: "session" }]);
    await journal.append({ kind: "message", text: "x" });
    stores.push(store);
  }
  const order = [...ids].reverse();
  const listed = async (): Promise<string[]> => {
    await using store = await openFolderStore(here.path);
    return (await store.list()).sessions.map(({ id }) => id);
  };
  expect(await listed()).toEqual(order);
  for (const ending of ["", "-wal", "-shm"]) rmSync(join(here.path, `catalog.sqlite${ending}`), { force: true });
  expect(await listed()).toEqual(order);
  for (const store of stores) await store.close();
});

test("C28: a record of 50 MB is stored, and comes back", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const id = newId();
  const image = "iVBORw0KGgo".repeat(Math.ceil((50 * 1024 * 1024) / 11));
  {
    await using journal = await store.create(id, []);
    await journal.append([{ kind: "before" }, { kind: "message", image }, { kind: "after" }]);
  }
  const { records, recovery } = await store.read(id);
  expect(records.map(({ kind }) => kind)).toEqual(["segment", "opened", "before", "message", "after", "closed"]);
  expect(records[3]!["image"] === image).toBe(true);
  expect(recovery).toEqual({ unclean: false, cutBytes: 0, damaged: [], missing: [] });
  expect((await store.list()).sessions).toHaveLength(1);
});
