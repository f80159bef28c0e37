import { fork } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Disk, nodeDisk } from "holdfast/disk";
import type { JournalStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { IndexFailure } from "../../../src/search/base.ts";
import { modesOf, treeOf } from "../../place.ts";
import { append, found, hitsOf, Site, said, session } from "./search-stores.ts";

/** The stores that keep their index in a file. */
const onDisk = ["folder", "sqlite"] as const;

/** The store without what a full index has no need of: whoever reads a journal through it fails. */
function unread(store: JournalStore): JournalStore {
  return new Proxy(store, {
    get(target, name) {
      if (name === "history") throw new Error("a journal was read");
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The index file, and what SQLite keeps beside it. */
function filesOf(path: string): string[] {
  const folder = dirname(path);
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((name) => name.startsWith(path));
}

/** Is the file sound, in SQLite's and FTS5's own judgement, and how many texts does it hold? */
function inspect(path: string): { readonly integrity: unknown; readonly texts: number } {
  using database = new DatabaseSync(path);
  database.exec("INSERT INTO texts (texts) VALUES ('integrity-check')");
  const integrity = database.prepare("PRAGMA integrity_check").get()?.["integrity_check"];
  return { integrity, texts: Number(database.prepare("SELECT count(*) AS n FROM texts").get()?.["n"]) };
}

async function sessions(store: JournalStore, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const records = Array.from({ length: 5 }, (_, n) => said(`m${n}`, `needle ${i} ${"hay ".repeat(200)}`));
    await session(store, [{ kind: "session", title: `needle ${i}` }, ...records]);
  }
}

describe.each(onDisk)("the index file (%s store)", (kind) => {
  test("a store names it; a memory store has none", async () => {
    await using site = new Site(kind);
    const expected = kind === "folder" ? join(site.path, "search.sqlite") : `${site.path}-search`;
    expect((await site.store()).searchFile).toBe(expected);
    await using memory = new Site("memory");
    expect((await memory.store()).searchFile).toBeNull();
  });

  test("it outlives the process: what is indexed is not read again", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    await sessions(store, 3);
    const first = site.index(store);
    const before = await hitsOf(first, "needle");
    expect(before).toHaveLength(18);
    await first.close();
    expect(await hitsOf(site.index(unread(store)), "needle")).toEqual(before);
  });

  test("C24: mode 0600, whatever the umask, and nothing beside it", async () => {
    const umask = process.umask(0);
    try {
      await using site = new Site(kind);
      const store = await site.store();
      await sessions(store, 1);
      await found(site.index(store), "needle");
      expect(filesOf(store.searchFile!)).toEqual([store.searchFile]);
      expect(modesOf(dirname(store.searchFile!)).get(basename(store.searchFile!))).toBe("f600");
    } finally {
      process.umask(umask);
    }
  });

  test("a list neither makes it nor looks at it", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    await sessions(store, 2);
    await store.list();
    expect(filesOf(store.searchFile!)).toEqual([]);
    writeFileSync(store.searchFile!, "garbage that whoever opened it would replace");
    const { mtimeNs, atimeNs } = statSync(store.searchFile!, { bigint: true });
    expect((await store.list()).sessions).toHaveLength(2);
    const after = statSync(store.searchFile!, { bigint: true });
    expect([after.mtimeNs, after.atimeNs]).toEqual([mtimeNs, atimeNs]);
    expect(filesOf(store.searchFile!)).toEqual([store.searchFile]);
  });

  test("C16: a search writes to nothing but the index", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    await sessions(store, 2);
    await store.list();
    const others = () => [...treeOf(dirname(site.path))].filter(([path]) => !/search|catalog/.test(path));
    const before = others();
    await found(site.index(store), "needle");
    expect(others()).toEqual(before);
  });

  const harms: [name: string, harm: (path: string) => void][] = [
    ["deleted", (path) => rmSync(path)],
    ["filled with garbage", (path) => writeFileSync(path, "not a database at all".repeat(5000))],
    ["emptied", (path) => writeFileSync(path, "")],
    ["zeroed in place", (path) => writeFileSync(path, Buffer.alloc(Math.max(65_536, statSync(path).size)))],
    ["in the middle of it garbage", (path) => overwriteMiddle(path)],
  ];
  test.each(harms)("C22: %s: the answer is the same, and the file is made anew", async (_name, harm) => {
    await using site = new Site(kind);
    const store = await site.store();
    await sessions(store, 4);
    const first = site.index(store);
    const before = await hitsOf(first, "needle");
    await first.close();
    for (const path of filesOf(store.searchFile!)) harm(path);
    const second = site.index(store);
    expect(await hitsOf(second, "needle")).toEqual(before);
    await second.close();
    expect(inspect(store.searchFile!)).toEqual({ integrity: "ok", texts: 24 });
    expect(await hitsOf(site.index(unread(store)), "needle"), "from the file").toEqual(before);
  });

  test.each(harms)("C22: %s while it is open, also in the middle of an answer", async (_name, harm) => {
    await using site = new Site(kind);
    const store = await site.store();
    await sessions(store, 4);
    const index = site.index(store);
    const before = await hitsOf(index, "needle");
    const answer = index.search("needle");
    const hits = [(await answer.next()).value];
    for (const path of filesOf(store.searchFile!)) harm(path);
    hits.push(...(await Array.fromAsync(answer)));
    expect(hits).toEqual(before);
    expect(await hitsOf(index, "needle")).toEqual(before);
    await session(store, [said("new", "needle")]);
    expect(await found(index, "needle")).toEqual(["new", ...before.map(({ message }) => message)]);
    await index.close();
    expect(await hitsOf(site.index(store), "needle"), "by the next one who comes").toHaveLength(25);
  });

  test("C22: what another database has left beside it is not used", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    await sessions(store, 3);
    const first = site.index(store);
    const before = await hitsOf(first, "needle");
    await first.close();
    for (const [mode, ending] of [
      ["WAL", "-wal"],
      ["DELETE", "-journal"],
    ]) {
      using other = new DatabaseSync(`${site.path}-other-${mode}`);
      other.exec(`PRAGMA journal_mode=${mode}; PRAGMA cache_size=1; CREATE TABLE t (x)`);
      other.exec(
        "INSERT INTO t SELECT zeroblob(3000) FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT i FROM n)",
      );
      other.exec("BEGIN; UPDATE t SET x = zeroblob(2999)");
      copyFileSync(`${site.path}-other-${mode}${ending}`, store.searchFile! + ending);
      other.exec("ROLLBACK");
      expect(statSync(store.searchFile! + ending).size).toBeGreaterThan(4096);
    }
    expect(await hitsOf(site.index(unread(store)), "needle")).toEqual(before);
    expect(filesOf(store.searchFile!)).toEqual([store.searchFile]);
  });

  test("after a restart of the system, it is used if it was closed, and made anew if not", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    await sessions(store, 2);
    const first = site.index(store);
    const before = await hitsOf(first, "needle");
    const open = readFileSync(store.searchFile!);
    await first.close();
    const disk = { ...nodeDisk, bootId: () => "another boot" };
    const second = site.index(unread(store), { disk });
    expect(await hitsOf(second, "needle")).toEqual(before);
    await second.close();

    writeFileSync(store.searchFile!, open);
    // It stays open, or the new file might get its number.
    const file = openSync(store.searchFile!, "r");
    try {
      expect(await hitsOf(site.index(store, { disk }), "needle")).toEqual(before);
      expect(statSync(store.searchFile!).ino === fstatSync(file).ino).toBe(nodeDisk.bootId() === null);
    } finally {
      closeSync(file);
    }
  });

  test.each([
    ["of a newer schema", "PRAGMA user_version = 99"],
    ["of no schema, with tables of somebody else's", "DROP TABLE texts; PRAGMA user_version = 0"],
    ["without one of its tables", "DROP TABLE messages"],
  ])("a file %s is made anew", async (_name, sql) => {
    await using site = new Site(kind);
    const store = await site.store();
    await sessions(store, 2);
    const first = site.index(store);
    const before = await hitsOf(first, "needle");
    await first.close();
    const database = new DatabaseSync(store.searchFile!);
    database.exec(sql);
    database.close();
    const second = site.index(store);
    expect(await hitsOf(second, "needle")).toEqual(before);
    await second.close();
    expect(inspect(store.searchFile!)).toEqual({ integrity: "ok", texts: 12 });
  });

  test("a folder in its place, which is not ours to remove: answered from memory", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    await sessions(store, 2);
    mkdirSync(store.searchFile!);
    const index = site.index(store);
    expect(await hitsOf(index, "needle")).toHaveLength(12);
    await session(store, [said("new", "needle")]);
    expect(await hitsOf(index, "needle"), "and kept up to date there").toHaveLength(13);
    expect(readdirSync(store.searchFile!)).toEqual([]);
  });

  test.each(["ENOSPC", "EACCES", "EROFS"])("C19: %s: answered from memory", async (code) => {
    await using site = new Site(kind);
    const store = await site.store();
    await sessions(store, 2);
    const disk: Disk = {
      ...nodeDisk,
      open: () => {
        throw Object.assign(new Error(code), { code });
      },
    };
    const index = site.index(store, { disk });
    expect(await hitsOf(index, "needle")).toHaveLength(12);
    expect(filesOf(store.searchFile!)).toEqual([]);
  });
});

describe.each(onDisk)("the end of a turn (%s store)", (kind) => {
  test("indexes what is new of the session: the next search has nothing to read", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    const id = await session(store, [said("m1", "needle one")]);
    const index = site.index(store);
    index.note(id);
    await index.settled();
    await append(store, id, said("m2", "needle two"));
    index.note(id);
    index.note(id);
    await index.settled();
    expect(index.failure).toBeNull();
    expect(await found(site.index(unread(store)), "needle")).toEqual(["m2", "m1"]);
  });

  test("of a session that is being written: what is there so far", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    const id = await session(store, []);
    const { journal } = await store.open(id);
    await journal.append(said("m1", "needle"));
    const index = site.index(store);
    index.note(id);
    await index.settled();
    expect(await found(site.index(unread(store)), "needle")).toEqual(["m1"]);
    await journal.append(said("m2", "needle"));
    expect(await found(index, "needle")).toEqual(["m2", "m1"]);
    await journal.close();
  });

  test("a deleted session that is noted is gone from the index", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    const id = await session(store, [said("m1", "needle")]);
    const index = site.index(store);
    expect(await found(index, "needle")).toEqual(["m1"]);
    await store.delete(id);
    index.note(id);
    await index.settled();
    using database = new DatabaseSync(store.searchFile!);
    expect(database.prepare("SELECT id FROM sessions").all()).toEqual([]);
  });

  test("while another process writes to the index it is left alone, and the next search makes up for it", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    const id = await session(store, [said("m1", "needle")]);
    const index = site.index(store);
    expect(await found(index, "needle")).toEqual(["m1"]);
    await append(store, id, said("m2", "needle"));
    const other = new DatabaseSync(store.searchFile!);
    other.exec("BEGIN IMMEDIATE");
    index.note(id);
    await index.settled();
    expect(index.failure).toBeInstanceOf(IndexFailure);
    expect(index.failure).toMatchObject({ why: "busy" });
    other.exec("ROLLBACK");
    other.close();
    expect(await found(index, "needle")).toEqual(["m2", "m1"]);
    index.note(id);
    await index.settled();
    expect(index.failure).toBeNull();
  });

  test("whatever goes wrong, noting neither throws nor rejects; closing waits for nothing that was noted", async () => {
    await using site = new Site(kind);
    const store = await site.store();
    const id = await session(store, [said("m1", "needle")]);
    const broken = site.index(unread(store));
    broken.note(id);
    await broken.settled();
    expect(String(broken.failure)).toContain("a journal was read");
    const slow = site.index(store, { delayMs: 3_600_000 });
    slow.note(id);
    await slow.close();
    await slow.settled();
    expect(await found(site.index(store), "needle")).toEqual(["m1"]);
  });
});

describe("several processes", () => {
  const run = (...args: string[]) => {
    const child = fork(join(import.meta.dirname, "search-process.ts"), args, {
      execArgv: ["--conditions=holdfast-source"],
    });
    const counts: unknown[] = [];
    child.on("message", (message) => counts.push(message));
    return new Promise<{ counts: unknown[]; ended: number | string | null }>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (status, signal) => resolve({ counts, ended: signal ?? status }));
    });
  };

  test("index the same sessions at once: each finds all, and no text is there twice", async () => {
    await using site = new Site("folder");
    const store = await site.store();
    await sessions(store, 40);
    const children = ["a", "b", "c"].map(() => run("search", site.path, "needle", "3"));
    expect(await hitsOf(site.index(store), "needle")).toHaveLength(240);
    for (const { counts, ended } of await Promise.all(children)) {
      expect(ended).toBe(0);
      expect(counts).toEqual([240, 240, 240]);
    }
    expect(inspect(store.searchFile!)).toEqual({ integrity: "ok", texts: 240 });
  });

  test("use no memory that they share, and no file beside the index", async () => {
    await using site = new Site("folder");
    const store = await site.store();
    await sessions(store, 20);
    const index = site.index(store);
    let over = false;
    const children = ["a", "b"].map(() => run("search", site.path, "needle", "20"));
    const ended = Promise.all(children).finally(() => {
      over = true;
    });
    const seen = new Set<string>();
    for (let i = 0; !over; i++) {
      for (const path of readdirSync(site.path)) if (/sqlite/.test(path)) seen.add(path);
      await session(store, [said(`new${i}`, "haystack")]);
      expect(await hitsOf(index, "needle")).toHaveLength(120);
    }
    for (const child of await ended) expect(child).toEqual({ counts: Array(20).fill(120), ended: 0 });
    expect([...seen].sort()).toEqual(["catalog.sqlite", "search.sqlite"]);
  });

  test.each(["1", "2", "20"])("one is killed in the middle of its commit number %s: no hit is lost", async (n) => {
    await using site = new Site("folder");
    const store = await site.store();
    await sessions(store, 40);
    expect(await run("tear", site.path, "needle", n)).toEqual({ counts: [], ended: "SIGKILL" });
    const path = store.searchFile!;
    expect(filesOf(path)).toEqual([path]);
    {
      copyFileSync(path, `${site.path}-torn`);
      using torn = new DatabaseSync(`${site.path}-torn`);
      expect(torn.prepare("PRAGMA user_version").get()?.["user_version"]).toBeLessThan(0);
      if (n !== "1") expect(torn.prepare("PRAGMA integrity_check").get()?.["integrity_check"]).not.toBe("ok");
    }
    expect(await hitsOf(site.index(store), "needle")).toHaveLength(240);
    expect(inspect(path)).toEqual({ integrity: "ok", texts: 240 });
  });

  test("one deletes the file again and again while others search", async () => {
    await using site = new Site("folder");
    const store = await site.store();
    await sessions(store, 20);
    const index = site.index(store);
    const child = run("search", site.path, "needle", "30");
    let over = false;
    void child.finally(() => {
      over = true;
    });
    while (!over) {
      for (const path of filesOf(store.searchFile!)) if (existsSync(path)) rmSync(path, { force: true });
      expect(await hitsOf(index, "needle")).toHaveLength(120);
    }
    expect(await child).toEqual({ counts: Array(30).fill(120), ended: 0 });
  });

  test.each(["1", "37", "120"])("one is killed when it has read %s messages: the next one goes on", async (n) => {
    await using site = new Site("folder");
    const store = await site.store();
    await sessions(store, 40);
    expect(await run("die", site.path, "needle", n)).toEqual({ counts: [], ended: "SIGKILL" });
    expect(await hitsOf(site.index(store), "needle")).toHaveLength(240);
    expect(inspect(store.searchFile!)).toEqual({ integrity: "ok", texts: 240 });
  });

  test("a search waits for one that writes; one that stands still while it writes is passed by, and the answer comes from memory", async () => {
    await using site = new Site("folder");
    const store = await site.store();
    await sessions(store, 2);
    const index = site.index(store);
    expect(await hitsOf(index, "needle")).toHaveLength(12);
    await session(store, [said("new", "needle")]);
    const other = new DatabaseSync(store.searchFile!);
    other.exec("BEGIN IMMEDIATE");
    const impatient = site.index(store, { patienceMs: 20 });
    expect(await hitsOf(impatient, "needle")).toHaveLength(13);
    const waiting = hitsOf(index, "needle");
    setTimeout(() => {
      other.exec("ROLLBACK");
      other.close();
    }, 50);
    expect(await waiting).toHaveLength(13);
    await index.close();
    expect(inspect(store.searchFile!)).toEqual({ integrity: "ok", texts: 13 });
  });
});

test("bounded memory: a long session goes into the index while it is read, not after", async () => {
  await using site = new Site("folder");
  const store = await site.store();
  const id = await session(store, []);
  const records = 10_000;
  let lag = 0;
  const long = new Proxy(store, {
    get(target, name) {
      if (name !== "history")
        return Reflect.get(target, name, target)?.bind?.(target) ?? Reflect.get(target, name, target);
      return async function* () {
        yield { seq: 1, at: "", crc: "0", kind: "session", dialect: "anthropic" };
        for (let seq = 2; seq <= records; seq++) {
          yield { seq, at: "", crc: "0", ...said(`m${seq}`, `needle ${"hay ".repeat(200)}`) };
          if (seq % 100 === 0) lag = Math.max(lag, seq - indexed(store.searchFile!, id));
        }
      };
    },
  });
  const index = site.index(long);
  let hits = 0;
  for await (const _ of index.search("needle")) hits++;
  expect(hits).toBe(records - 1);
  expect(lag).toBeLessThanOrEqual(1000);
});

test("others get their turn: between sessions that are indexed, and between pages of an answer", async () => {
  await using site = new Site("memory");
  const store = await site.store();
  const count = 50;
  await sessions(store, count);
  let turns = 0;
  let other = setImmediate(function again() {
    turns++;
    other = setImmediate(again);
  });
  const hits = await hitsOf(site.index(store), "needle");
  clearImmediate(other);
  expect(hits).toHaveLength(count * 6);
  expect(turns).toBeGreaterThanOrEqual(2 * count);
});

test("a session that cannot be read does not keep the others from being found", async () => {
  await using site = new Site("folder");
  const store = await site.store();
  await session(store, [said("fine", "needle")]);
  const newer = await session(store, [said("newer", "needle")]);
  const path = join(site.path, "sessions", newer, "000001.jsonl");
  const index = site.index(store);
  expect(await found(index, "needle")).toEqual(["newer", "fine"]);
  await append(store, newer, said("newest", "needle"));
  const { crc32 } = await import("node:zlib");
  const lines = readFileSync(path, "utf8").split("\n");
  const covered = lines[0]!.slice(0, lines[0]!.lastIndexOf(',"crc":"')).replace('"format":"1.1"', '"format":"2.0"');
  lines[0] = `${covered},"crc":"${crc32(covered).toString(16).padStart(8, "0")}"}`;
  writeFileSync(path, lines.join("\n"));
  expect(await found(index, "needle"), "by what was indexed before").toEqual(["newer", "fine"]);
});

function indexed(path: string, id: string): number {
  using database = new DatabaseSync(path, { readOnly: true });
  return Number(database.prepare("SELECT seq FROM sessions WHERE id = ?").get(id)?.["seq"] ?? 0);
}

function overwriteMiddle(path: string): void {
  const bytes = readFileSync(path);
  bytes.fill("garbage ", 4096, Math.max(4096, bytes.length - 4096));
  writeFileSync(path, bytes);
}
