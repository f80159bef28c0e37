import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { type JournalRecord, newId } from "holdfast";
import { nodeDisk } from "holdfast/disk";
import { openSqliteStore } from "holdfast/internal";
import { expect, test, vi } from "vitest";
import { place } from "../place.ts";
import { seedOf } from "../seed.ts";

const WRITER = join(import.meta.dirname, "sqlite-writer.ts");
const SOURCE = "--conditions=holdfast-source";
const seed = seedOf(import.meta.url, "unit");

function start(...parameters: string[]): ChildProcess {
  return fork(WRITER, parameters, { execArgv: [SOURCE] });
}

const note = (text: string) => ({ kind: "note", text });
const textsOf = (records: readonly JournalRecord[]) =>
  records.filter((record) => record.kind === "note").map((record) => record["text"]);

/** Another process has the write lock until `release` is called. */
async function holding(file: string): Promise<{ release(): Promise<void> }> {
  const child = start("hold", file);
  await once(child, "message");
  return {
    async release() {
      const exit = once(child, "exit");
      child.send("release");
      await exit;
    },
  };
}

test("S21: while another process writes, appends wait in order without blocking, and none is lost", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  const id = newId();
  const journal = await store.create(id, []);
  await journal.append(note("before"));
  const holder = await holding(file);
  const seen: unknown[] = [];
  const following = (async () => {
    for await (const found of store.follow(id)) {
      if (found.kind === "note") seen.push([found["text"], journal.durable >= found.seq]);
      if (found["text"] === "5") return;
    }
  })();

  const record = { kind: "note", text: "1" };
  const done: string[] = [];
  const pending = [
    journal.append(record).then(() => done.push("1")),
    journal.append([note("2"), note("2")], { durability: "process" }).then(() => done.push("2")),
    journal.epoch(() => [{ kind: "epoch" }, note(`3 sees ${journal.head}`)]).then(() => done.push("3")),
    journal.append(note("4")).then(() => done.push("4")),
  ];
  record.text = "changed by the caller afterwards";
  const bad = journal.append({ kind: "note", text: 1n }).catch((error: { code: string }) => error.code);
  const keyed = journal.append(note("5"), { key: "k" });
  const again = journal.append(note("another"), { key: "k" });
  const flushed = journal.flush().then(() => journal.durable);

  // The process is not blocked: timers run, and readers read, while the appends wait.
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(textsOf((await store.read(id)).records)).toEqual(["before"]);
  await vi.waitFor(() => expect(seen).toEqual([["before", true]]), 60_000);
  expect(done).toEqual([]);
  expect(await bad).toBe("RECORD_NOT_JSON");
  expect(await store.list()).toMatchObject({ sessions: [{ id, head: journal.head }] });

  await holder.release();
  await Promise.all(pending);
  expect(await keyed).toEqual(await again);
  expect(await flushed).toBe((await keyed).last);
  const history: JournalRecord[] = [];
  for await (const found of store.history(id)) history.push(found);
  const head = history.find(({ kind, seq }) => kind === "segment" && seq > 1)!.seq - 1;
  const texts = ["before", "1", "2", "2", `3 sees ${head}`, "4", "5"];
  expect(textsOf(history)).toEqual(texts);
  // Followers in this process saw them when they were acknowledged (S19).
  await following;
  expect(seen).toEqual(texts.map((text) => [text, true]));
  expect(history.map(({ seq }) => seq)).toEqual(history.map((_, i) => i + 1));
});

test("appendSync waits for its turn inside the call, after those that wait already", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  const id = newId();
  const journal = await store.create(id, []);
  await journal.append(note("before"));
  const holder = await holding(file);
  const first = journal.append(note("first"));
  const released = holder.release();
  // The other process hears of it while this one is blocked: the message is on its way before the call.
  await new Promise((resolve) => setImmediate(resolve));
  const second = journal.appendSync(note("second"));
  expect(second.seq).toBe((await first).seq + 1);
  expect(journal.durable).toBe(second.last);
  await released;
  expect(textsOf((await store.read(id)).records)).toEqual(["before", "first", "second"]);
});

test("several processes write to several sessions of one file at once: every record is there, once, in order", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file, { durability: "process" });
  const ids = [newId(), newId(), newId()];
  for (const id of ids) await (await store.create(id, [])).close();
  const count = 400;
  const children = ids.slice(1).map((id) => start("append", file, id, String(count)));
  await Promise.all(children.map((child) => once(child, "message")));
  const exits = children.map((child) => once(child, "exit"));
  for (const child of children) child.send("go");
  const { journal } = await store.open(ids[0]!);
  for (let i = 1; i <= count; i++) await journal.append({ kind: "note", i });
  expect(await Promise.all(exits)).toEqual(children.map(() => [0, null]));
  await journal.close();
  for (const id of ids) {
    const { records, recovery } = await store.read(id);
    expect(records.filter(({ kind }) => kind === "note").map(({ i }) => i)).toEqual(
      Array.from({ length: count }, (_, i) => i + 1),
    );
    expect(recovery).toEqual({ unclean: false, cutBytes: 0, damaged: [], missing: [] });
  }
});

test("P1, C1: what was acknowledged before SIGKILL is there, and nothing that was never tried", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const id = newId();
  {
    await using store = await openSqliteStore(file);
    await (await store.create(id, [])).close();
  }
  let random = seed;
  for (let kill = 0; kill < 8; kill++) {
    random = (Math.imul(random, 1103515245) + 12345) & 0x7fffffff;
    const durability = kill % 2 === 0 ? "process" : "power";
    const child = spawn(process.execPath, [SOURCE, WRITER, "append-for-ever", file, id, durability], {
      stdio: ["ignore", "inherit", "inherit", "pipe"],
    });
    const exit = once(child, "exit");
    const said = createInterface(child.stdio[3] as Readable);
    // The pipe still holds what it said before it died.
    const heard = once(said, "close");
    const numbers = { tried: 0, acknowledged: 0 };
    const enough = 5 + (random % 60);
    await new Promise<void>((resolve) => {
      said.on("line", (line) => {
        const [what, number] = line.split(" ") as ["tried" | "acknowledged", string];
        numbers[what] = Number(number);
        if (what === "acknowledged" && numbers.acknowledged % enough === 0) resolve();
      });
    });
    child.kill("SIGKILL");
    await Promise.all([exit, heard]);
    const { tried, acknowledged } = numbers;

    await using store = await openSqliteStore(file);
    expect(await store.holder(id)).toBeNull();
    const { records, recovery, journal } = await store.open(id);
    expect(recovery).toEqual({ unclean: true, cutBytes: 0, damaged: [], missing: [] });
    const notes = records.filter(({ kind }) => kind === "note");
    const last = Number(notes.at(-1)!["i"]);
    expect(last).toBeGreaterThanOrEqual(acknowledged);
    expect(last).toBeLessThanOrEqual(tried);
    const whole = Array.from({ length: last }, (_, n) => n + 1).flatMap((i) =>
      Array.from({ length: (i % 3) + 1 }, (_, part) => `${i}/${part}`),
    );
    expect(notes.map(({ i, part }) => `${i}/${part}`)).toEqual(whole);
    expect(records.map(({ seq }) => seq)).toEqual(records.map((_, i) => i + 1));
    expect((await store.list()).sessions).toMatchObject([{ id, head: records.at(-1)!.seq, closed: false }]);
    await journal.append({ kind: "checked" });
    await journal.close();
  }
});

test("a session that another process has closed is opened without a child process, though that one lives", async (context) => {
  if (process.platform !== "linux") context.skip("not run: elsewhere a hard lock costs no child process");
  using here = place();
  const file = join(here.path, "store.db");
  const probed: string[] = [];
  const isHardLocked = (path: string): boolean => {
    probed.push(path);
    return nodeDisk.isHardLocked(path);
  };
  await using store = await openSqliteStore(file, { disk: { ...nodeDisk, isHardLocked } });
  const id = newId();
  await (await store.create(id, [])).close();
  const child = start("close-and-stay", file, id);
  await once(child, "message");
  expect(await store.holder(id)).toBeNull();
  await (await store.open(id)).journal.close();
  expect(probed).toEqual([]);
  const exit = once(child, "exit");
  child.send("end");
  await exit;
});

test("C15: gc leaves the lease of a session that is being created, and removes one that nobody has", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  await using other = await openSqliteStore(file);
  const stale = join(`${file}-leases`, newId());
  writeFileSync(stale, "");
  const id = newId();
  const holder = await holding(file);
  const creating = store.create(id, []);
  await vi.waitFor(() => expect(existsSync(join(`${file}-leases`, id))).toBe(true), 60_000);
  await other.gc();
  await holder.release();
  const journal = await creating;
  await journal.append(note("after"));
  expect(textsOf((await other.read(id)).records)).toEqual(["after"]);
  expect(existsSync(stale)).toBe(false);
});
