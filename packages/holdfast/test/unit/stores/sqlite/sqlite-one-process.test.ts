import { type ChildProcess, fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { Worker } from "node:worker_threads";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openSqliteStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import { place } from "../../../place.ts";
import { seedOf } from "../../../seed.ts";

const WRITER = join(import.meta.dirname, "sqlite-writer.ts");
const SOURCE = "--conditions=holdfast-source";
const seed = seedOf(import.meta.url, "unit");
const note = (text: string) => ({ kind: "note", text });

/** Another process that has the store open. */
async function holding(file: string, app: string): Promise<ChildProcess> {
  const child = fork(WRITER, ["hold", file, app], { execArgv: [SOURCE] });
  await once(child, "message");
  return child;
}

describe("one file, one process", () => {
  test("a second process is refused, and told who has it; it is free when that one closes it", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const child = await holding(file, "an agent");
    const holder = { pid: child.pid, host: hostname(), app: "an agent", since: expect.any(String) };
    const refused = await openSqliteStore(file).catch((error: unknown) => error as Error);
    expect(refused).toMatchObject({ code: "STORE_BUSY", facts: { url: `sqlite:${file}`, holder, sameProcess: false } });
    expect((refused as Error).message).toContain(`in use by an agent (process ${child.pid} on ${hostname()}, since`);
    const exit = once(child, "exit");
    child.send("end");
    await exit;
    expect(readdirSync(here.path).sort()).toEqual(["store.db", "store.db-lock"]);
    await (await openSqliteStore(file)).close();
  });

  test("it is free at once when its holder is killed", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const child = await holding(file, "an agent");
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
    await using store = await openSqliteStore(file, { app: "the next one" });
    expect(JSON.parse(readFileSync(`${file}-holder`, "utf8"))).toMatchObject({ pid: process.pid, app: "the next one" });
    expect(await store.list()).toEqual({ sessions: [] });
  });

  test("code of the process that opens and closes its files does not end that", async (context) => {
    if (nodeDisk.hardLock(join(place().path, "lock")) === "none") context.skip("not run: there is no hard lock here");
    using here = place();
    const file = join(here.path, "store.db");
    await using store = await openSqliteStore(file);
    const journal = await store.create(newId(), [note("a")]);
    for (const name of readdirSync(here.path)) closeSync(openSync(join(here.path, name), "r"));
    const { stdout } = spawnSync(process.execPath, [SOURCE, "--input-type=module", "-e", openIn(file)], {
      encoding: "utf8",
    });
    expect(JSON.parse(stdout)).toMatchObject({ code: "STORE_BUSY", facts: { holder: { pid: process.pid } } });
    await journal.append(note("b"));
    expect((await store.verify(journal.id)).damaged).toEqual([]);
  });

  test("another program gets SQLITE_BUSY, and cannot hurt; there is no index of the log to hurt either", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    await using store = await openSqliteStore(file);
    const journal = await store.create(newId(), [note("a")]);
    const program = `
      const { DatabaseSync } = require("node:sqlite");
      const said = [];
      for (const sql of ["SELECT count(*) FROM lines", "DELETE FROM lines", "PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"]) {
        const sqlite = new DatabaseSync(${JSON.stringify(file)}, { timeout: 0 });
        try { sqlite.prepare(sql).all(); said.push("it went well"); } catch (error) { said.push(error.errcode & 0xff); }
        sqlite.close();
      }
      console.log(JSON.stringify(said));`;
    const { stdout } = spawnSync(process.execPath, ["-e", program], { encoding: "utf8" });
    expect(JSON.parse(stdout)).toEqual([5, 5, 5, 5]);
    expect(existsSync(`${file}-shm`)).toBe(false);
    await journal.append(note("b"));
    expect((await store.read(journal.id)).records.map(({ text }) => text)).toEqual([undefined, "a", undefined, "b"]);
  });

  test("the same program opens it as often as it likes: all of its stores are one", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const [store, other] = await Promise.all([openSqliteStore(file), openSqliteStore(file)]);
    const journal = await store.create(newId(), [note("a")]);
    await expect(other.open(journal.id)).rejects.toMatchObject({
      code: "SESSION_BUSY",
      facts: { holder: { pid: process.pid }, sameProcess: true },
    });
    const seen: unknown[] = [];
    const following = (async () => {
      for await (const { text, seq } of other.follow(journal.id)) {
        if (text) seen.push([text, journal.durable >= seq]);
        if (text === "b") return;
      }
    })();
    await journal.append(note("b"));
    await following;
    expect(seen).toEqual([
      ["a", true],
      ["b", true],
    ]);
    await store.close();
    expect((await other.read(journal.id)).recovery.unclean).toBe(false);
    await other.close();
  });

  test("a disk that fails when the log is closed does not keep the file: it can be opened again, also by who waited", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    let waiting: ReturnType<typeof openSqliteStore> | null = null;
    const disk: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        const opened = nodeDisk.open(path, mode);
        const close = opened.close.bind(opened);
        opened.close = () => {
          close();
          if (waiting || !path.endsWith("-wal")) return;
          waiting = openSqliteStore(file, { disk });
          throw Object.assign(new Error("EIO"), { code: "EIO" });
        };
        return opened;
      },
    };
    const store = await openSqliteStore(file, { disk });
    await expect(store.close()).rejects.toMatchObject({ code: "STORE_IO", facts: { path: file } });
    const id = newId();
    await using again = await waiting!;
    await (await again.create(id, [note("a")])).close();
    expect(await again.has(id)).toBe(true);
  });

  test("another thread of the program is refused until the file is closed", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const inThread = async (): Promise<unknown> => {
      const code = `import { parentPort } from "node:worker_threads"; const console = { log: (said) => parentPort.postMessage(said) };`;
      const source = new URL(`data:text/javascript,${encodeURIComponent(code + openIn(file))}`);
      const thread = new Worker(source, { execArgv: [SOURCE] });
      const [said] = (await once(thread, "message")) as [string];
      await once(thread, "exit");
      return JSON.parse(said);
    };
    await using store = await openSqliteStore(file);
    expect(await inThread()).toMatchObject({ code: "STORE_BUSY", facts: { sameProcess: true } });
    await (await store.create(newId(), [])).append(note("a"));
    await store.close();
    expect(await inThread()).toBe("opened");
  });

  test("where there is no hard lock, opening says so, and SQLite's own lock keeps others out", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const disk = { ...nodeDisk, hardLock: () => "none" as const };
    await using store = await openSqliteStore(file, { disk });
    expect(store.warnings).toEqual([expect.stringContaining("flock")]);
    // Another Disk stands for another thread that has no hard lock.
    const refused = openSqliteStore(file, { disk: { ...disk } });
    await expect(refused).rejects.toMatchObject({
      code: "STORE_BUSY",
      facts: { holder: { pid: process.pid, app: "holdfast" }, sameProcess: true },
    });
  });
});

/** A program that opens the store, and says how that went. */
function openIn(file: string): string {
  return `
    const { openSqliteStore } = await import(${JSON.stringify(import.meta.resolve("holdfast/internal"))});
    const said = await openSqliteStore(${JSON.stringify(file)}).then(
      (store) => store.close().then(() => "opened"),
      ({ code, facts }) => ({ code, facts }),
    );
    console.log(JSON.stringify(said));`;
}

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
