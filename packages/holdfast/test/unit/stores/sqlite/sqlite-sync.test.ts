import { spawnSync } from "node:child_process";
import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type HoldfastError, isHoldfastError, type JournalRecord, newId } from "holdfast";
import { nodeDisk } from "holdfast/disk";
import { openSqliteStore } from "holdfast/internal";
import type { Journal } from "holdfast/store";
import { describe, expect, test, vi } from "vitest";
import { Rows } from "../../../../src/stores/sqlite/rows/rows.ts";
import { place } from "../../../place.ts";
import { HandledDisk } from "./handled-disk.ts";

const note = (text: string) => ({ kind: "note", text });
const textsOf = (records: readonly JournalRecord[]) =>
  records.filter((record) => record.kind === "note").map((record) => record["text"]);

const sizeOf = (path: string): number => nodeDisk.stat(path)!.size;

async function refusalOf(promise: Promise<unknown>): Promise<HoldfastError> {
  const error = await promise.then(
    () => new Error("it went well"),
    (reason: unknown) => reason,
  );
  if (!isHoldfastError(error)) throw error;
  return error;
}

describe("P8, S9: a failed sync", () => {
  test("rejects what waits, ends every journal of the store, and reopening moves the log to safer ground", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const handled = new HandledDisk();
    await using store = await openSqliteStore(file, { disk: handled.disk });
    const [id, other] = [newId(), newId()];
    const journal = await store.create(id, []);
    const idle = await store.create(other, [note("idle")]);
    const heard: string[] = [];
    for (const one of [journal, idle]) one.onFailure(({ code }) => heard.push(code));
    const safe = await journal.append(note("safe"));

    handled.failing = true;
    const errors = await Promise.all([note("a"), note("b")].map((record) => refusalOf(journal.append(record))));
    for (const { code, facts } of errors) {
      expect(code).toBe("SYNC_FAILED");
      expect(facts).toMatchObject({ session: id, durable: safe.last, from: safe.last + 1, to: safe.last + 2 });
    }
    // The hole would be in the log that all of them share.
    expect(heard).toEqual(["SYNC_FAILED", "SYNC_FAILED"]);
    handled.failing = false;
    for (const one of [journal, idle]) {
      expect(one.failure?.code).toBe("SYNC_FAILED");
      expect((await refusalOf(one.append(note("late")))).code).toBe("SYNC_FAILED");
      expect((await refusalOf(one.flush())).code).toBe("SYNC_FAILED");
      expect(() => one.appendSync(note("late"))).toThrow(expect.objectContaining({ code: "SYNC_FAILED" }));
    }
    expect(textsOf((await store.read(id)).records)).toEqual(["safe", "a", "b"]);
    await journal.close();
    await idle.close();

    expect(sizeOf(`${file}-wal`)).toBeGreaterThan(0);
    const { journal: reopened, records } = await store.open(id);
    expect(sizeOf(`${file}-wal`)).toBe(0);
    expect(readFileSync(file, "latin1")).toContain('"text":"b"');
    expect(textsOf(records)).toEqual(["safe", "a", "b"]);
    expect(reopened.durable).toBe(records.at(-1)!.seq);
    await reopened.append(note("goes on"));
    await (await store.open(other)).journal.append(note("goes on too"));
    expect(textsOf((await store.read(other)).records)).toEqual(["idle", "goes on too"]);
  });

  test("while the disk goes on failing, opening fails, reading does not, and the database file is left alone", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const handled = new HandledDisk();
    await using store = await openSqliteStore(file, { disk: handled.disk });
    const id = newId();
    const journal = await store.create(id, [note("a")]);
    handled.failing = true;
    expect((await refusalOf(journal.append(note("b")))).code).toBe("SYNC_FAILED");
    await journal.close();
    const before = sizeOf(file);
    expect((await refusalOf(store.open(id))).code).toBe("SYNC_FAILED");
    expect(sizeOf(file)).toBe(before);
    expect(nodeDisk.stat(`${file}-trial`)).toBeNull();
    expect((await refusalOf(store.create(newId(), []))).code).toBe("SYNC_FAILED");
    expect(await store.holder(id)).toBeNull();
    expect(textsOf((await store.read(id)).records)).toEqual(["a", "b"]);
    handled.failing = false;
    expect(textsOf((await store.open(id)).records)).toEqual(["a", "b"]);
  });

  test("in the background, under `process`: an event at once, then the next append, flush and close are rejected", async () => {
    using here = place();
    const handled = new HandledDisk();
    const store = await openSqliteStore(join(here.path, "store.db"), { disk: handled.disk, durability: "process" });
    const id = newId();
    const journal = await store.create(id, []);
    const told = new Promise<HoldfastError>((resolve) => journal.onFailure(resolve));
    handled.failing = true;
    const { seq } = await journal.append(note("a"));
    const { code, facts } = await told;
    expect([code, facts["from"], facts["to"]]).toEqual(["SYNC_FAILED", seq - 1, seq]);
    expect((await refusalOf(store.close())).code).toBe("SYNC_FAILED");
  });

  test("a process that starts after it does not trust the log that it finds", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = newId();
    {
      await using store = await openSqliteStore(file);
      await (await store.create(id, [note("a")])).close();
    }
    const writer = join(import.meta.dirname, "sqlite-writer.ts");
    const args = ["--conditions=holdfast-source", writer, "append-and-die", file, id];
    expect(spawnSync(process.execPath, args).signal).toBe("SIGKILL");
    const handled = new HandledDisk();
    await using store = await openSqliteStore(file, { disk: handled.disk });
    await store.read(id);
    expect(handled.trials).toBe(0);
    await store.create(newId(), []);
    expect(handled.trials).toBe(1);
    expect(textsOf((await store.read(id)).records)).toEqual(["a", "in the log"]);
  });
});

test("P7: the log is moved to the database file now and then, and does not grow with the journal", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file, { durability: "process" });
  const journal = await store.create(newId(), []);
  for (let i = 0; i < 4000; i++) await journal.append(note("x".repeat(4000)));
  expect(sizeOf(file)).toBeGreaterThan(12 * 1024 * 1024);
  expect(sizeOf(`${file}-wal`)).toBeLessThan(8 * 1024 * 1024);
});

describe("S10: group commit", () => {
  test("appends of one tick share a sync, and it acknowledges only what was committed before it", async () => {
    using here = place();
    const handled = new HandledDisk();
    await using store = await openSqliteStore(join(here.path, "store.db"), { disk: handled.disk });
    const id = newId();
    const journal = await store.create(id, []);
    const another = await store.create(newId(), []);
    const before = handled.syncs;
    await Promise.all(
      [note("1"), note("2"), note("3")].map((record) => journal.append(record)).concat(another.append(note("x"))),
    );
    expect(handled.syncs - before).toBe(1);

    let open = (): void => {};
    handled.gate = new Promise((resolve) => {
      open = resolve;
    });
    const acknowledged: string[] = [];
    const first = journal.append(note("4")).then(() => acknowledged.push("4"));
    // The sync of the first is under way now.
    await new Promise((resolve) => setImmediate(resolve));
    const second = journal.append(note("5")).then(() => acknowledged.push("5"));
    const third = journal.append(note("6"), { durability: "process" }).then(() => acknowledged.push("6"));
    await third;
    expect(acknowledged).toEqual(["6"]);
    expect(textsOf((await store.read(id)).records)).toEqual(["1", "2", "3", "4", "5", "6"]);

    // Followers in this process see nothing that has not been acknowledged, nor what stands behind it.
    const seen: unknown[] = [];
    const following = (async () => {
      for await (const record of store.follow(id)) {
        if (record.kind === "note") seen.push(record["text"]);
        if (seen.length === 6) return;
      }
    })();
    await expect.poll(() => seen.length).toBe(3);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(seen).toEqual(["1", "2", "3"]);

    const durable = journal.durable;
    const syncs = handled.syncs;
    const gate = handled.gate;
    handled.gate = null;
    open();
    await gate;
    await first;
    expect(journal.durable).toBeGreaterThan(durable);
    await second;
    expect(handled.syncs - syncs).toBe(2);
    await following;
    expect(seen).toEqual(["1", "2", "3", "4", "5", "6"]);
  });

  test("`closed` comes after a sync, and says so (S7)", async () => {
    using here = place();
    await using store = await openSqliteStore(join(here.path, "store.db"), { durability: "process" });
    const id = newId();
    const journal = await store.create(id, []);
    await journal.append(note("a"));
    await journal.close();
    const { records } = await store.read(id);
    expect(records.at(-1)).toMatchObject({ kind: "closed", synced: records.at(-1)!.seq - 1 });
  });

  test("what nobody waits for is synced in the background, and when the process ends", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = newId();
    {
      await using store = await openSqliteStore(file, { durability: "process" });
      const journal = await store.create(id, []);
      const { last } = await journal.append(note("a"));
      expect(journal.durable).toBeLessThan(last);
      await expect.poll(() => journal.durable).toBe(last);
    }
    const writer = join(import.meta.dirname, "sqlite-writer.ts");
    const child = spawnSync(process.execPath, ["--conditions=holdfast-source", writer, "exit", file, id], {
      encoding: "utf8",
    });
    expect([child.stdout, child.stderr, child.status]).toEqual(["1 sync at the end", "", 0]);
  });
});

describe("S12: is it still my file?", () => {
  test.each([
    ["", "power"],
    ["-wal", "power"],
    ["", "process"],
    ["-wal", "process"],
  ] as const)("store.db%s moved away: FILE_REPLACED, and nothing is acknowledged (%s)", async (ending, durability) => {
    using here = place();
    const file = join(here.path, "store.db");
    const store = await openSqliteStore(file, { durability });
    const id = newId();
    const journal = await store.create(id, [note("a")]);
    renameSync(`${file}${ending}`, join(here.path, "moved"));
    expect((await refusalOf(journal.append(note("b")))).code).toBe("FILE_REPLACED");
    expect(journal.failure?.code).toBe("FILE_REPLACED");
    expect((await refusalOf(journal.append(note("c")))).code).toBe("FILE_REPLACED");
    expect((await refusalOf(store.create(newId(), []))).code).toBe("FILE_REPLACED");
    await store.close();
  });

  test.each(["", "-wal"])("store.db%s moved away: found out without an append, too", async (ending) => {
    const confirming: ((journal: Journal) => Promise<unknown>)[] = [
      (journal) => journal.flush(),
      async (journal) => journal.flushSync(),
      (journal) => journal.append(note("a"), { key: "k" }),
    ];
    for (const confirm of confirming) {
      using here = place();
      const file = join(here.path, "store.db");
      const store = await openSqliteStore(file);
      const journal = await store.create(newId(), []);
      await journal.append(note("a"), { key: "k" });
      await confirm(journal);
      renameSync(`${file}${ending}`, join(here.path, "moved"));
      expect((await refusalOf(confirm(journal))).code).toBe("FILE_REPLACED");
      await store.close();
    }
  });

  test("somebody without the lease has written our next seq: LEASE_LOST, and their row stays", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    await using store = await openSqliteStore(file);
    const id = newId();
    const journal = await store.create(id, []);
    await journal.append(note("a"));
    const { insertLine } = Rows.prototype;
    using intruder = vi.spyOn(Rows.prototype, "insertLine");
    intruder.mockImplementationOnce(function (this: Rows, key: number, seq: number, line: Uint8Array) {
      insertLine.call(this, key, seq, Buffer.from("theirs"));
      insertLine.call(this, key, seq, line);
    });
    expect((await refusalOf(journal.append(note("b")))).code).toBe("LEASE_LOST");
    expect(journal.failure?.code).toBe("LEASE_LOST");
    expect((await store.verify(id)).damaged).toHaveLength(1);
  });
});

test("P1: a connection syncs to the platter on macOS too, and refuses pages that cannot be right", async () => {
  using here = place();
  const exec = vi.spyOn(DatabaseSync.prototype, "exec");
  const store = await openSqliteStore(join(here.path, "store.db"));
  const connections = new Set(exec.mock.contexts as DatabaseSync[]);
  exec.mockRestore();
  const settings = (sqlite: DatabaseSync): unknown[] =>
    ["fullfsync", "checkpoint_fullfsync", "cell_size_check", "synchronous"].map(
      (name) => sqlite.prepare(`PRAGMA main.${name}`).get()?.[name],
    );
  expect([...connections].filter(({ isOpen }) => isOpen).map(settings)).toContainEqual([1, 1, 1, 1]);
  await store.close();
});
