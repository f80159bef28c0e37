import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, linkSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HoldfastError, type JournalRecord, newId } from "holdfast";
import { nodeDisk } from "holdfast/disk";
import { openSqliteStore } from "holdfast/internal";
import { afterEach, describe, expect, test, vi } from "vitest";
import { corrupt } from "../../../../../src/stores/sqlite/database/failure.ts";
import { ReadOnlyDatabase } from "../../../../../src/stores/sqlite/database/read-only.ts";
import type { Rows } from "../../../../../src/stores/sqlite/rows/rows.ts";
import { place, treeOf } from "../../../../place.ts";

const SOURCE = "--conditions=holdfast-source";
const WRITER = join(import.meta.dirname, "../sqlite-writer.ts");
const note = (text: string) => ({ kind: "note", text });

afterEach(() => void vi.restoreAllMocks());

/** A session with the note "a", closed. */
async function written(file: string): Promise<string> {
  await using store = await openSqliteStore(file);
  const id = newId();
  await (await store.create(id, [note("a")])).close();
  return id;
}

/** A process that is killed with the note "in the log" in the log. */
function kill(file: string, id: string): void {
  const child = spawnSync(process.execPath, [SOURCE, WRITER, "append-and-die", file, id], { stdio: "inherit" });
  expect(child.signal).toBe("SIGKILL");
}

/** A copy of a store whose writer has the note "in the log" in the log: what is left if it is killed. */
async function interrupted(file: string): Promise<void> {
  const original = `${file}-original`;
  const id = await written(original);
  await using store = await openSqliteStore(original);
  await (await store.open(id)).journal.append(note("in the log"));
  for (const ending of ["", "-wal"]) copyFileSync(original + ending, file + ending);
}

function textsIn(rows: Rows): string[] {
  return rows.readLines(1, 1).lines.flatMap(({ bytes }) => {
    const { text } = JSON.parse(bytes.toString()) as JournalRecord;
    return text === undefined ? [] : [String(text)];
  });
}

const open = (file: string): ReadOnlyDatabase => ReadOnlyDatabase.open(nodeDisk, file, "EROFS");

async function read(file: string): Promise<string[]> {
  const database = open(file);
  try {
    return await database.read("read", textsIn);
  } finally {
    database.close();
  }
}

/** The error that opening throws. */
function refusalOf(file: string): HoldfastError {
  try {
    open(file).close();
  } catch (error) {
    if (error instanceof HoldfastError) return error;
    throw error;
  }
  throw new Error("it went well");
}

test("a store that may not be written to: everything reads, every write is refused, and nothing is left behind", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const id = await written(file);
  // Root may do everything, so the one who tries is nobody. Anybody could create files in this folder.
  const asNobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  chmodSync(file, 0o444);
  chmodSync(here.path, 0o777);
  const before = treeOf(here.path);
  const program = `
    const { newId } = await import(${JSON.stringify(new URL("../../../../../src/index.ts", import.meta.url).href)});
    const { openSqliteStore } = await import(${JSON.stringify(new URL("../../../../../src/internal.ts", import.meta.url).href)});
    const id = ${JSON.stringify(id)};
    const kinds = async (records) => (await Array.fromAsync(records)).map(({ kind }) => kind);
    const refused = (promise) => promise.then(() => "it went well", ({ code, message }) => code + message.match(/open read-only/));
    const store = await openSqliteStore(${JSON.stringify(file)});
    const followed = [];
    for await (const { kind } of store.follow(id)) if (followed.push(kind) === 3) break;
    const said = {
      listed: (await store.list()).sessions.map(({ id }) => id),
      has: [await store.has(id), await store.has(newId())],
      holder: await store.holder(id),
      read: await kinds((await store.read(id)).records),
      history: await kinds(store.history(id)),
      followed,
      verified: await store.verify(id).then(({ records, damaged }) => [records, damaged.length]),
      writing: await Promise.all([store.open(id), store.create(newId(), []), store.delete(id), store.gc(), store.adopt(newId(), [])].map(refused)),
      warnings: store.warnings,
      searchFile: store.searchFile,
    };
    await store.close();
    said.closed = await store.has(id).catch(({ code }) => code);
    console.log(JSON.stringify(said));`;
  const args = [SOURCE, "--input-type=module", "-e", program];
  const child = spawnSync(process.execPath, args, { ...asNobody, encoding: "utf8" });
  expect(child.stderr).toBe("");
  const kinds = ["segment", "note", "closed"];
  expect(JSON.parse(child.stdout)).toEqual({
    ...{ listed: [id], has: [true, false], holder: null, read: kinds, history: kinds, followed: kinds },
    ...{ verified: [3, 0], warnings: [], searchFile: null, closed: "STORE_CLOSED" },
    writing: Array.from({ length: 5 }, () => "STORE_FORBIDDENopen read-only"),
  });
  expect(treeOf(here.path)).toEqual(before);
});

describe("the log of a database that can only be read", () => {
  test("is not there: the file is all there is", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    await interrupted(file);
    rmSync(`${file}-wal`);
    const before = readdirSync(here.path);
    expect(await read(file)).toEqual(["a"]);
    expect(readdirSync(here.path)).toEqual(before);
  });

  test("has records: refused", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    await interrupted(file);
    const before = readdirSync(here.path);
    const { code, facts } = refusalOf(file);
    expect([code, facts]).toEqual(["STORE_FORBIDDEN", { path: `${file}-wal` }]);
    expect(readdirSync(here.path)).toEqual(before);
  });

  test("is empty: the file is read", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    await written(file);
    writeFileSync(`${file}-wal`, "");
    expect(await read(file)).toEqual(["a"]);
  });
});

test.each([
  ["an empty file", "", "STORE_FORBIDDEN"],
  ["a file that is not a database", "x".repeat(8192), "STORE_URL_INVALID"],
])("%s: refused, and nothing stays open", async (_, content, code) => {
  using here = place();
  const file = join(here.path, "store.db");
  writeFileSync(file, content);
  const close = vi.spyOn(DatabaseSync.prototype, "close");
  expect(refusalOf(file).code).toBe(code);
  expect(close).toHaveBeenCalledTimes(1);
  // With a log beside it, too.
  writeFileSync(`${file}-wal`, "");
  expect(refusalOf(file).code).toBe(code);
});

describe("a database that changes while it is read", () => {
  const add = (file: string): void => {
    const sqlite = new DatabaseSync(file);
    sqlite.exec(`INSERT INTO lines VALUES ((1 << 32) + 4, CAST('{"text":"b"}' AS BLOB))`);
    sqlite.close();
  };

  test.each([
    ["is written to", add],
    ["is replaced", (file: string) => renameSync(`${file}-copy`, file)],
    ["gets a log", (file: string) => writeFileSync(`${file}-wal`, "x")],
  ])("it %s: STORE_BUSY, also if it looks damaged; opened again, it is read", async (_, change) => {
    using here = place();
    const file = join(here.path, "store.db");
    await written(file);
    copyFileSync(file, `${file}-copy`);
    const database = open(file);
    expect(await database.read("read", textsIn)).toEqual(["a"]);
    const changing = (rows: Rows): unknown => {
      change(file);
      return textsIn(rows);
    };
    const busy = { code: "STORE_BUSY", facts: { url: `sqlite:${file}`, holder: null, sameProcess: false } };
    await expect(database.read("read", changing)).rejects.toMatchObject(busy);
    const damaged = (): never => {
      throw corrupt("an old page and a new one");
    };
    await expect(database.read("read", damaged)).rejects.toMatchObject(busy);
    database.close();
    rmSync(`${file}-wal`, { force: true });
    expect((await read(file))[0]).toBe("a");
  });

  test("one that does not change is damaged, and a fault of the program is not hidden", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    await written(file);
    const database = open(file);
    const damaged = (): never => {
      throw corrupt("a page");
    };
    await expect(database.read("read it", damaged)).rejects.toMatchObject({
      code: "JOURNAL_UNREADABLE",
      message: /read it/,
    });
    const fault = (): never => {
      add(file);
      throw new TypeError("a fault");
    };
    await expect(database.read("read", fault)).rejects.toThrow("a fault");
    database.close();
  });
});

test("once closed it reads nothing more, and closing it again does nothing", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await written(file);
  const database = open(file);
  database.close();
  database.close();
  await expect(database.read("read", textsIn)).rejects.toMatchObject({ code: "STORE_CLOSED" });
});

test.each([
  ["EROFS", "mounted read-only"],
  ["EACCES", "may not write"],
])("a write that is refused says why: %s", async (errno, why) => {
  using here = place();
  const file = join(here.path, "store.db");
  await written(file);
  const database = ReadOnlyDatabase.open(nodeDisk, file, errno);
  const { code, message, facts } = database.refuse("delete a session");
  expect([code, facts]).toEqual(["STORE_FORBIDDEN", { path: file, errno }]);
  for (const part of ["Could not delete a session", why, errno]) expect(message).toContain(part);
  database.close();
});

describe("warnings", () => {
  async function warningsOf(file: string): Promise<readonly string[]> {
    const database = open(file);
    database.close();
    return database.warnings;
  }

  test("none for a store that was closed, or for a copy", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    expect(await warningsOf(file)).toEqual([]);
    await using store = await openSqliteStore(file);
    await (await store.open(id)).journal.append(note("in the log"));
    copyFileSync(file, join(here.path, "copy.db"));
    expect(await warningsOf(join(here.path, "copy.db"))).toEqual([]);
  });

  test("for a file with other names, and one that was not closed and whose log is gone", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    linkSync(file, join(here.path, "link.db"));
    expect(await warningsOf(file)).toEqual([expect.stringContaining("hard links")]);
    rmSync(join(here.path, "link.db"));
    kill(file, id);
    rmSync(`${file}-wal`);
    expect(await warningsOf(file)).toEqual([expect.stringContaining(`${file}-wal`)]);
    // An empty log is as good as none.
    writeFileSync(`${file}-wal`, "");
    expect(await warningsOf(file)).toHaveLength(1);
  });
});
