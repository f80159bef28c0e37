import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as tick } from "node:timers/promises";
import { isHoldfastError, type JournalRecord, newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { expect, test, vi } from "vitest";
import { place } from "../place.ts";
import { HandledDisk } from "./handled-disk.ts";

const WRITER = join(import.meta.dirname, "sqlite-writer.ts");
const note = (text: string) => ({ kind: "note", text });
const textsOf = (records: readonly JournalRecord[]) =>
  records.filter((record) => record.kind === "note").map((record) => record["text"]);

/** Another process has the write lock until `release` is called. */
async function holding(file: string): Promise<{ release(): Promise<void> }> {
  const child = fork(WRITER, ["hold", file], { execArgv: ["--conditions=holdfast-source"] });
  await once(child, "message");
  return {
    async release() {
      const exit = once(child, "exit");
      child.send("release");
      await exit;
    },
  };
}

/** Long enough for everything that does not wait for the gate, or for the other process. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setTimeout(resolve, 10));
}

function stopped(): { readonly promise: Promise<void>; open(): void } {
  let open = (): void => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open: () => open() };
}

test.each(["journal", "store"])(
  "P6: close() of the %s keeps the lease while an append waits for its turn",
  async (which) => {
    using here = place();
    const file = join(here.path, "store.db");
    const store = await openSqliteStore(file);
    await using other = await openSqliteStore(file);
    const id = newId();
    await (await store.create(id, [])).close();
    const { journal } = await store.open(id);
    const holder = await holding(file);
    // The first record of this writer: nothing of its own is in the file yet.
    const appended = journal.append(note("late"));
    let isClosed = false;
    const closed = (which === "journal" ? journal.close() : store.close()).then(() => {
      isClosed = true;
    });
    await settle();
    expect(isClosed).toBe(false);
    await expect(other.open(id)).rejects.toMatchObject({ code: "SESSION_BUSY" });

    await holder.release();
    const { seq } = await appended;
    await closed;
    const { journal: next, records, recovery } = await other.open(id);
    expect(records.find((record) => record.seq === seq)?.["text"]).toBe("late");
    expect(recovery).toEqual({ unclean: false, cutBytes: 0, damaged: [], missing: [] });
    await next.close();
    await store.close();
  },
);

test("S10: close() waits for a sync that still runs, also after the journal has failed", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const handled = new HandledDisk();
  const store = await openSqliteStore(file, { disk: handled.disk });
  const id = newId();
  const journal = await store.create(id, []);
  const gate = stopped();
  handled.gate = gate.promise;
  const waiting = journal.append(note("a")).catch((error: unknown) => error);
  await settle();
  expect(handled.running).toBe(1);
  // A sync beside it fails, so the journal has nobody left to wait for.
  handled.failing = true;
  expect(() => journal.appendSync(note("b"))).toThrow(expect.objectContaining({ code: "SYNC_FAILED" }));
  expect(isHoldfastError(await waiting, "SYNC_FAILED")).toBe(true);
  handled.failing = false;

  let isClosed = false;
  const closed = journal.close().then(() => {
    isClosed = true;
  });
  await settle();
  expect([handled.running, isClosed]).toEqual([1, false]);
  // The lease is still held: another writer could read what the disk has not confirmed.
  expect(await store.holder(id)).not.toBeNull();
  gate.open();
  handled.gate = null;
  await closed;
  expect([handled.running, await store.holder(id)]).toEqual([0, null]);
  await store.close();
});

test("S10: close() of the store closes no descriptor while its sync runs", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const handled = new HandledDisk();
  const store = await openSqliteStore(file, { disk: handled.disk });
  const id = newId();
  await (await store.create(id, [note("a")])).close();
  const gate = stopped();
  handled.gate = gate.promise;
  // Syncs the log, with no journal there that anybody could close.
  const creating = store.create(newId(), [note("b")]).catch((error: unknown) => error);
  await settle();
  expect(handled.running).toBe(1);
  let isClosed = false;
  const closed = store.close().then(() => {
    isClosed = true;
  });
  await settle();
  expect([handled.running, handled.closedTooSoon, isClosed]).toEqual([1, 0, false]);
  gate.open();
  await closed;
  expect([handled.running, handled.closedTooSoon]).toEqual([0, 0]);
  expect(isHoldfastError(await creating, "STORE_CLOSED")).toBe(true);

  await using again = await openSqliteStore(file);
  expect(textsOf((await again.read(id)).records)).toEqual(["a"]);
});

/** Node closes what a program leaves open, in an order of its own. */
test.each(["exit", "process.exit()", "the end of a worker"])(
  "S13: a store that is left open leaves its log where it is, also when SQLite takes itself for the last one: %s",
  async (end) => {
    using here = place();
    const file = join(here.path, "store.db");
    const left = `
      const { newId } = await import(${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)});
      const { openSqliteStore } = await import(${JSON.stringify(new URL("../../src/internal.ts", import.meta.url).href)});
      const store = await openSqliteStore(${JSON.stringify(file)}, { durability: "process" });
      const journal = await store.create(newId(), [{ kind: "note", text: "a" }]);
      globalThis.kept = [store, journal];`;
    const inWorker = `
      const { Worker } = require("node:worker_threads");
      const worker = new Worker(${JSON.stringify(`(async () => {${left} require("node:worker_threads").parentPort.postMessage(0); setInterval(() => {}, 1000); })()`)}, { eval: true });
      worker.once("message", () => worker.terminate());`;
    const program = { exit: left, "process.exit()": `${left} process.exit(0);` }[end];
    const args = program ? ["--input-type=module", "-e", program] : ["-e", inWorker];
    const child = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect([child.status, child.stderr]).toEqual([0, ""]);
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(0);
    await using store = await openSqliteStore(file);
    expect((await store.list()).sessions).toHaveLength(1);
  },
);

test("the last one out moves the log to the database and removes it; whoever is not leaves it alone", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const [first, second] = [await openSqliteStore(file), await openSqliteStore(file)];
  await (await first.create(newId(), [note("a")])).close();
  // As a search tool does: now SQLite takes the next one that closes for the last one.
  for (const path of [file, `${file}-shm`]) closeSync(openSync(path, "r"));
  const { ino } = statSync(`${file}-wal`);
  await first.close();
  expect(statSync(`${file}-wal`).ino).toBe(ino);
  const journal = await second.create(newId(), [note("b")]);
  await journal.append(note("c"));
  await second.close();
  expect([existsSync(`${file}-wal`), existsSync(`${file}-shm`)]).toEqual([false, false]);
  await using store = await openSqliteStore(file);
  expect((await store.list()).sessions).toHaveLength(2);
});

test("S20: the background does not save the row of a journal that is closing: it would say that it is not closed", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  const id = newId();
  const other = new DatabaseSync(file);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const journal = await store.create(id, []);
    await journal.append(note("a"));
    const closedWritten = new Promise<void>((resolve) => {
      journal.onWritten(({ records }) => {
        if (records[0]?.kind !== "closed") return;
        // Another program writes: the row of the closed session waits for its turn.
        other.exec("BEGIN IMMEDIATE");
        resolve();
      });
    });
    const closing = journal.close();
    await closedWritten;
    await tick();
    other.exec("ROLLBACK");
    // The instant at which the background would work.
    vi.advanceTimersByTime(1000);
    await closing;
  } finally {
    vi.useRealTimers();
    other.close();
  }
  expect((await store.list()).sessions).toMatchObject([{ id, closed: true }]);
});
