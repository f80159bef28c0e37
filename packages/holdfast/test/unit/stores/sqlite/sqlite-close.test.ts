import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as tick } from "node:timers/promises";
import { isHoldfastError, type JournalRecord, newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { expect, test, vi } from "vitest";
import { place } from "../../../place.ts";
import { HandledDisk } from "./handled-disk.ts";

const note = (text: string) => ({ kind: "note", text });
const textsOf = (records: readonly JournalRecord[]) =>
  records.filter((record) => record.kind === "note").map((record) => record["text"]);

/** Long enough for everything that does not wait for the gate. */
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

/** Node closes what a program leaves open, or the kernel does. */
test.each(["exit", "process.exit()", "the end of a worker"])(
  "S13: a store that is left open keeps nobody out, and nothing is lost: %s",
  async (end) => {
    using here = place();
    const file = join(here.path, "store.db");
    const left = `
      const { newId } = await import(${JSON.stringify(new URL("../../../../src/index.ts", import.meta.url).href)});
      const { openSqliteStore } = await import(${JSON.stringify(new URL("../../../../src/internal.ts", import.meta.url).href)});
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
    await using store = await openSqliteStore(file);
    expect((await store.list()).sessions).toHaveLength(1);
  },
);

test("of several stores of one process, the last one moves the log to the database and removes it", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const [first, second] = [await openSqliteStore(file), await openSqliteStore(file)];
  await (await first.create(newId(), [note("a")])).close();
  const { ino } = statSync(`${file}-wal`);
  await first.close();
  expect(statSync(`${file}-wal`).ino).toBe(ino);
  const journal = await second.create(newId(), [note("b")]);
  await journal.append(note("c"));
  // Opening it while it closes waits for that.
  const [, third] = await Promise.all([second.close(), openSqliteStore(file)]);
  expect((await third.list()).sessions).toHaveLength(2);
  await third.close();
  expect(readdirSync(here.path).sort()).toEqual(["store.db", "store.db-lock"]);
});

test("S20: the background does not save the row of a journal that is closing: it would say that it is not closed", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const handled = new HandledDisk();
  await using store = await openSqliteStore(file, { disk: handled.disk });
  const id = newId();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const journal = await store.create(id, []);
    await journal.append(note("a"));
    const gate = stopped();
    handled.gate = gate.promise;
    const closing = journal.close();
    await tick();
    // The instant at which the background would work.
    vi.advanceTimersByTime(1000);
    handled.gate = null;
    gate.open();
    await closing;
  } finally {
    vi.useRealTimers();
  }
  expect((await store.list()).sessions).toMatchObject([{ id, closed: true }]);
});
