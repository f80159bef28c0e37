import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { openSqliteStore } from "holdfast/internal";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { fileWith } from "../file-with.ts";
import { place } from "../place.ts";

afterEach(() => void vi.restoreAllMocks());

const note = (text: string) => ({ kind: "note", text });

test("a store says what it is, and warns of a network file system", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  expect(store).toMatchObject({
    ...{ url: `sqlite:${file}`, searchFile: `${file}-search`, warnings: [] },
    capabilities: { durability: "power", lease: "kernel", sync: true, shared: true, pack: false },
  });
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
    ["the folder of leases is a file", (file: string) => writeFileSync(`${file}-leases`, "x"), {}],
    ["its log cannot be opened again", () => {}, { isFull: true }],
  ])("%s", async (_, spoil, { isFull }: { isFull?: boolean }) => {
    using here = place();
    const file = join(here.path, "store.db");
    await (await openSqliteStore(file)).close();
    rmSync(`${file}-leases`, { recursive: true });
    spoil(file);
    const disk: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        if (isFull && path.endsWith("-wal")) throw Object.assign(new Error("EMFILE"), { code: "EMFILE" });
        return nodeDisk.open(path, mode);
      },
    };
    const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
    await expect(openSqliteStore(file, { disk })).rejects.toMatchObject({ name: "HoldfastError" });
    const connections = [...new Set(prepare.mock.contexts as DatabaseSync[])];
    expect(connections.filter(({ isOpen }) => isOpen)).toEqual([]);
    expect(readFileSync(`${file}-locks/flags`).every((byte) => byte === 0)).toBe(true);
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
    await using store = await openSqliteStore(file);
    const [id, other] = [newId(), newId()];
    await (await store.create(id, [])).close();
    let isReplaced = false;
    const disk: Disk = {
      ...nodeDisk,
      stat: (path) => {
        const found = nodeDisk.stat(path);
        return isReplaced && path === file && found ? { ...found, ino: 1 } : found;
      },
    };
    const failing = await openSqliteStore(file, { disk });
    isReplaced = true;
    async function* none() {}
    const replaced = { code: "FILE_REPLACED" };
    await expect(failing.create(other, [])).rejects.toMatchObject(replaced);
    await expect(failing.open(id)).rejects.toMatchObject(replaced);
    await expect(failing.delete(id)).rejects.toMatchObject(replaced);
    await expect(failing.adopt!(other, none())).rejects.toMatchObject(replaced);
    expect([await store.holder(id), await store.holder(other)]).toEqual([null, null]);
    expect([await store.has(id), await store.has(other)]).toEqual([true, false]);
    isReplaced = false;
    await failing.close();
    await (await store.open(id)).journal.close();
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
  // Nothing is watched: only a call tells the follower.
  const disk: Disk = { ...nodeDisk, watch: () => () => {} };
  await using store = await openSqliteStore(join(here.path, "store.db"), { disk });
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

test("followers share one watch, which ends with the last of them", async () => {
  using here = place();
  let [watches, stopped] = [0, 0];
  const disk: Disk = {
    ...nodeDisk,
    watch: () => {
      watches++;
      return () => void stopped++;
    },
  };
  await using store = await openSqliteStore(join(here.path, "store.db"), { disk });
  const id = newId();
  await (await store.create(id, [])).close();
  const [first, second] = [new AbortController(), new AbortController()];
  const follow = async (signal: AbortSignal): Promise<number> =>
    (await Array.fromAsync(store.follow(id, { signal }))).length;
  const following = [follow(first.signal), follow(second.signal)];
  await vi.waitFor(() => expect(watches).toBe(1));
  first.abort();
  await following[0];
  expect(stopped).toBe(0);
  second.abort();
  await following[1];
  expect([watches, stopped]).toEqual([1, 1]);
  await expect(follow(AbortSignal.abort())).resolves.toBe(0);
  expect([watches, stopped]).toEqual([2, 2]);
});

test("a session that stays open: a second after the last line, its row says so too, and lists read no line of it", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file, { durability: "process" });
  const journal = await store.create(newId(), []);
  for (const text of ["a", "b", "c"]) await journal.append(note(text));
  using database = new DatabaseSync(file, { readOnly: true });
  const headInRow = (): unknown => database.prepare("SELECT head FROM sessions").get()?.["head"];
  expect(headInRow()).toBeLessThan(journal.head);
  await vi.waitFor(() => expect(headInRow()).toBe(journal.head), { timeout: 60_000, interval: 50 });
});

describe("a row that cannot be saved in the background does not end the process", () => {
  const flagsOf = (file: string): string => join(`${file}-locks`, "flags");

  test("its place among the users of the store is lost: the next append says so", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const store = await openSqliteStore(file);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const journal = await store.create(newId(), []);
    await journal.append(note("a"));
    const others = readFileSync(flagsOf(file), "latin1").replace(/"id":"[^"]*"/, `"id":"${"x".repeat(36)}"`);
    writeFileSync(flagsOf(file), others, { flag: "r+" });
    expect(() => vi.advanceTimersByTime(1000)).not.toThrow();
    await expect(journal.append(note("b"))).rejects.toMatchObject({ code: "LEASE_LOST" });
    await expect(store.close()).rejects.toMatchObject({ code: "LEASE_LOST" });
  });

  test("the disk fails for a while: the row is saved later", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    let isFailing = false;
    const disk: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        const opened = nodeDisk.open(path, mode);
        if (path !== flagsOf(file)) return opened;
        const read: DiskFile["read"] = (...place) => {
          if (isFailing) throw Object.assign(new Error("EIO"), { code: "EIO" });
          return opened.read(...place);
        };
        return fileWith(opened, { read });
      },
    };
    await using store = await openSqliteStore(file, { disk, durability: "process" });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const journal = await store.create(newId(), []);
    await journal.append(note("a"));
    using database = new DatabaseSync(file, { readOnly: true });
    const headInRow = (): unknown => database.prepare("SELECT head FROM sessions").get()?.["head"];
    isFailing = true;
    expect(() => vi.advanceTimersByTime(1000)).not.toThrow();
    expect(headInRow()).toBeLessThan(journal.head);
    isFailing = false;
    await journal.flush();
    vi.advanceTimersByTime(2000);
    expect(headInRow()).toBe(journal.head);
    vi.useRealTimers();
  });
});
