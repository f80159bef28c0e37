import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openSqliteStore } from "holdfast/internal";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Rows } from "../../../../src/stores/sqlite/rows/rows.ts";
import { place } from "../../../place.ts";

afterEach(() => void vi.restoreAllMocks());

const note = (text: string) => ({ kind: "note", text });

test("a store says what it is, and warns of a network file system", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  expect(store).toMatchObject({
    ...{ url: `sqlite:${file}`, searchFile: `${file}-search`, warnings: [] },
    capabilities: { durability: "power", lease: "kernel", sync: true, shared: false, pack: false },
  });
  await store.close();
  const disk: Disk = { ...nodeDisk, networkKind: (path) => (path === here.path ? "nfs" : null) };
  await using far = await openSqliteStore(file, { disk });
  expect(far.warnings).toEqual([expect.stringContaining(`${file} is on a network file system (nfs)`)]);
});

test.each([
  ["its own", { app: "store" }, { app: "writer" }, "writer"],
  ["the store's", { app: "store" }, {}, "store"],
  ["the default", {}, {}, "holdfast"],
] as const)("a writer goes by %s name", async (_, options, writer, app) => {
  using here = place();
  await using store = await openSqliteStore(join(here.path, "store.db"), options);
  const id = newId();
  const created = await store.create(id, [], writer);
  expect(await store.holder(id)).toMatchObject({ app, pid: process.pid });
  await expect(store.open(id)).rejects.toMatchObject({ code: "SESSION_BUSY", facts: { holder: { app } } });
  await created.close();
  const { journal } = await store.open(id, writer);
  expect(await store.holder(id)).toMatchObject({ app });
  await journal.append(note("a"));
  await journal.close();
  expect((await store.read(id)).records.find(({ kind }) => kind === "opened")).toMatchObject({ writer: { app } });
  expect(await store.holder(id)).toBeNull();
});

describe("a store that cannot be opened is left as if nobody had tried", () => {
  test.each([
    ["its log", (path: string) => path.endsWith("-wal")],
    ["the log a second time", (path: string, times: number) => path.endsWith("-wal") && times === 2],
  ])("%s cannot be opened", async (_, isRefused) => {
    using here = place();
    const file = join(here.path, "store.db");
    await (await openSqliteStore(file)).close();
    let times = 0;
    const disk: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        if (path.endsWith("-wal")) times++;
        if (isRefused(path, times)) throw Object.assign(new Error("EMFILE"), { code: "EMFILE" });
        return nodeDisk.open(path, mode);
      },
    };
    const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
    await expect(openSqliteStore(file, { disk })).rejects.toMatchObject({ name: "HoldfastError" });
    const connections = [...new Set(prepare.mock.contexts as DatabaseSync[])];
    expect(connections.filter(({ isOpen }) => isOpen)).toEqual([]);
    await (await openSqliteStore(file)).close();
  });

  test.each(["folder", "link"])("a %s in place of its lock", async (kind) => {
    using here = place();
    const file = join(here.path, "store.db");
    await (await openSqliteStore(file)).close();
    rmSync(`${file}-lock`);
    if (kind === "link") symlinkSync(file, `${file}-lock`);
    else mkdirSync(`${file}-lock`);
    await expect(openSqliteStore(file)).rejects.toMatchObject({ code: "PATH_UNSAFE" });
    rmSync(`${file}-lock`, { recursive: true });
    await (await openSqliteStore(file)).close();
  });

  test("a path that may not be looked at", async () => {
    using here = place();
    const refusing = (error: Error): Disk => ({
      ...nodeDisk,
      stat: () => {
        throw error;
      },
    });
    const forbidden = Object.assign(new Error("EACCES"), { code: "EACCES" });
    const open = (error: Error) => openSqliteStore(join(here.path, "store.db"), { disk: refusing(error) });
    await expect(open(forbidden)).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
    await expect(open(new TypeError("a fault"))).rejects.toThrow("a fault");
  });

  test("a folder in its place", async () => {
    using here = place();
    mkdirSync(join(here.path, "store.db"));
    await expect(openSqliteStore(join(here.path, "store.db"))).rejects.toMatchObject({ code: "PATH_UNSAFE" });
  });
});

describe("a call that fails gives the lease back", () => {
  test("create, open, delete and adopt", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const [id, other] = [newId(), newId()];
    let isReplaced = false;
    const disk: Disk = {
      ...nodeDisk,
      stat: (path) => {
        const found = nodeDisk.stat(path);
        return isReplaced && path === file && found ? { ...found, ino: 1 } : found;
      },
    };
    await using failing = await openSqliteStore(file, { disk });
    await (await failing.create(id, [])).close();
    isReplaced = true;
    async function* none() {}
    const replaced = { code: "FILE_REPLACED" };
    await expect(failing.create(other, [])).rejects.toMatchObject(replaced);
    await expect(failing.open(id)).rejects.toMatchObject(replaced);
    await expect(failing.delete(id)).rejects.toMatchObject(replaced);
    await expect(failing.adopt!(other, none())).rejects.toMatchObject(replaced);
    expect([await failing.holder(id), await failing.holder(other)]).toEqual([null, null]);
    expect([await failing.has(id), await failing.has(other)]).toEqual([true, false]);
    isReplaced = false;
    await (await failing.open(id)).journal.close();
  });
});

test("what the caller changes after the call does not change what is stored", async () => {
  using here = place();
  await using store = await openSqliteStore(join(here.path, "store.db"));
  const record = { kind: "note", text: "a", deep: { list: [1] } };
  const records = [record];
  const creating = store.create(newId(), records);
  record.text = "changed";
  record.deep.list.push(2);
  records.push(record);
  const { id } = await creating;
  const notes = (await store.read(id)).records.filter(({ kind }) => kind === "note");
  expect(notes).toMatchObject([{ text: "a", deep: { list: [1] } }]);
});

test("a follower of a session that is deleted in this process ends at once", async () => {
  using here = place();
  await using store = await openSqliteStore(join(here.path, "store.db"));
  const id = newId();
  await (await store.create(id, [note("a")])).close();
  const seen: string[] = [];
  const following = (async () => {
    for await (const { kind } of store.follow(id)) seen.push(kind);
  })();
  await vi.waitFor(() => expect(seen).toHaveLength(3));
  await store.delete(id);
  await following;
  await expect(store.open(id)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(store.delete(id)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
});

describe("the row of a session that stays open", () => {
  test("says so too a second after the last line", async () => {
    using here = place();
    const saved = vi.spyOn(Rows.prototype, "updateSession");
    await using store = await openSqliteStore(join(here.path, "store.db"), { durability: "process" });
    const journal = await store.create(newId(), []);
    for (const text of ["a", "b", "c"]) await journal.append(note(text));
    expect(saved).not.toHaveBeenCalled();
    await vi.waitFor(() => expect(saved).toHaveBeenCalledTimes(1), { timeout: 60_000, interval: 50 });
    expect(saved.mock.calls[0]![1].head).toBe(journal.head);
  });

  test("is saved later if the disk is full for a while, which ends nothing", async () => {
    using here = place();
    await using store = await openSqliteStore(join(here.path, "store.db"), { durability: "process" });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const journal = await store.create(newId(), []);
    await journal.append(note("a"));
    const saved = vi.spyOn(Rows.prototype, "updateSession");
    saved.mockImplementationOnce(() => {
      throw Object.assign(new Error("full"), { errcode: 13, code: "ERR_SQLITE_ERROR" });
    });
    expect(() => vi.advanceTimersByTime(1000)).not.toThrow();
    expect(saved.mock.results.map(({ type }) => type)).toEqual(["throw"]);
    await journal.flush();
    vi.advanceTimersByTime(2000);
    expect(saved.mock.results.map(({ type }) => type)).toEqual(["throw", "return"]);
    vi.useRealTimers();
  });
});
