import { closeSync, existsSync, fstatSync, openSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "holdfast";
import { nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { Summariser } from "holdfast/store";
import { expect, test } from "vitest";
import { CountingDisk } from "../../../../counting-disk.ts";
import { place } from "../../../../place.ts";

test("S20: a row that another store wrote to the catalogue is used, without a look into the session", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using reader = await openFolderStore(here.path, { disk: counting.disk });
  await using writer = await openFolderStore(here.path);
  await (await writer.create(newId(), [])).close();
  expect((await reader.list()).sessions).toHaveLength(1);

  await (await writer.create(newId(), [])).close();
  counting.reset();
  expect((await reader.list()).sessions).toHaveLength(2);
  expect(counting.bytesRead(), "no byte of any journal").toBe(0);
});

test("S20: a process that reads the catalogue keeps a row out of it for as long, and lists are right nevertheless", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  await (await store.create(newId(), [])).close();
  const path = join(here.path, "catalog.sqlite");
  using reading = new DatabaseSync(path, { readOnly: true });
  const count = (database: DatabaseSync): unknown => database.prepare("SELECT count(*) AS n FROM sessions").get();
  reading.exec("BEGIN");
  expect(count(reading)).toEqual({ n: 1 });
  await (await store.create(newId(), [])).close();
  expect((await store.list()).sessions).toHaveLength(2);
  reading.exec("COMMIT");
  await using other = await openFolderStore(here.path);
  expect((await other.list()).sessions).toHaveLength(2);
  expect(count(reading)).toEqual({ n: 2 });
});

test("S20: the catalogue has no file beside it, and so no memory that processes share", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  await (await store.create(newId(), [])).close();
  await store.list();
  const files = readdirSync(here.path).filter((name) => name.startsWith("catalog"));
  expect(files).toEqual(["catalog.sqlite"]);
});

test("S20: a catalogue whose writer died in the middle of a commit is made again", async () => {
  using here = place();
  const ids = [newId(), newId()];
  const path = join(here.path, "catalog.sqlite");
  {
    await using store = await openFolderStore(here.path);
    for (const id of ids) await (await store.create(id, [])).close();
    await store.list();
  }
  {
    using torn = new DatabaseSync(path);
    torn.exec("DELETE FROM sessions; PRAGMA user_version=-4");
  }
  // It stays open, or the new file might get its number.
  const file = openSync(path, "r");
  try {
    await using store = await openFolderStore(here.path);
    expect((await store.list()).sessions.map(({ id }) => id).reverse()).toEqual(ids);
    expect(statSync(path).ino).not.toBe(fstatSync(file).ino);
  } finally {
    closeSync(file);
  }
});

test.skipIf(nodeDisk.bootId() === null)(
  "S20: after a power cut that tore a catalogue, a session is listed once; a sound one is used",
  async () => {
    using here = place();
    const ids = [newId(), newId(), newId()];
    const path = join(here.path, "catalog.sqlite");
    const write = async (): Promise<void> => {
      await using store = await openFolderStore(here.path);
      for (const id of ids) await (await store.create(id, [])).close();
      expect((await store.list()).sessions).toHaveLength(3);
    };
    const listed = async (bootId: string): Promise<string[]> => {
      await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, bootId: () => bootId } });
      return (await store.list()).sessions.map(({ id }) => id).reverse();
    };
    await write();
    const { ino } = statSync(path);
    expect(await listed("the next boot")).toEqual(ids);
    expect(statSync(path).ino, "it was not made again").toBe(ino);
    {
      // The page of the index is an old one.
      using torn = new DatabaseSync(path, { defensive: false });
      const index = "WHERE name = 'sessions_by_id'";
      const row = torn.prepare(`SELECT * FROM sqlite_schema ${index}`).get()!;
      torn.exec(`PRAGMA writable_schema=ON; DELETE FROM sqlite_schema ${index}; PRAGMA writable_schema=RESET`);
      torn.exec(`INSERT INTO sessions SELECT id, segment, size, mtime, at, '2001', head, closed, summary FROM sessions
        WHERE id = '${ids[1]}'; PRAGMA writable_schema=ON`);
      torn.prepare("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)").run(...(Object.values(row) as string[]));
    }
    expect(await listed("the boot after it")).toEqual(ids);
    using catalogue = new DatabaseSync(path, { readOnly: true });
    expect(catalogue.prepare("SELECT id FROM sessions ORDER BY stamp").all()).toEqual(ids.map((id) => ({ id })));
  },
);

test("S20: a catalogue that another process is writing to is left alone; lists are right, and a later one repairs it", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk });
  const ids = [newId(), newId()];
  await (await store.create(ids[0]!, [])).close();
  const path = join(here.path, "catalog.sqlite");
  const { ino } = statSync(path);
  const listed = async (): Promise<string[]> => (await store.list()).sessions.map(({ id }) => id).reverse();
  {
    using writing = new DatabaseSync(path);
    writing.exec("BEGIN IMMEDIATE");
    await (await store.create(ids[1]!, [])).close();
    expect(await listed()).toEqual(ids);
    await using other = await openFolderStore(here.path);
    expect((await other.list()).sessions).toHaveLength(2);
  }
  expect(statSync(path).ino, "it was not made again").toBe(ino);
  await using repairing = await openFolderStore(here.path);
  expect((await repairing.list()).sessions).toHaveLength(2);
  counting.reset();
  await using later = await openFolderStore(here.path, { disk: counting.disk });
  expect((await later.list()).sessions).toHaveLength(2);
  expect(counting.bytesRead(), "no byte of any journal").toBe(0);
});

test("a closed store has no file open", async (context) => {
  if (!existsSync("/proc/self/fd")) {
    console.log("not run: which files are open (needs /proc)");
    context.skip("needs /proc");
  }
  using here = place();
  const store = await openFolderStore(here.path);
  await (await store.create(newId(), [])).close();
  await store.list();
  const openIn = (root: string): string[] =>
    readdirSync("/proc/self/fd").flatMap((fd) => {
      const link = join("/proc/self/fd", fd);
      try {
        return [readlinkSync(link)].filter((path) => path.startsWith(root));
      } catch {
        // The descriptor of this very list.
        return [];
      }
    });
  expect(openIn(here.path)).toContain(join(here.path, "catalog.sqlite"));
  await store.close();
  expect(openIn(here.path)).toEqual([]);
  await expect(store.list()).rejects.toMatchObject({ code: "STORE_CLOSED" });
  await expect(store.gc()).rejects.toMatchObject({ code: "STORE_CLOSED" });
  expect(openIn(here.path)).toEqual([]);
});

test("S20: a session that this store has closed is listed without a look into it; one that it has deleted leaves the catalogue", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk });
  const ids = [newId(), newId()];
  await (await store.create(ids[0]!, [])).close();
  expect((await store.list()).sessions).toHaveLength(1);
  await (await store.create(ids[1]!, [])).close();
  counting.reset();
  expect((await store.list()).sessions).toMatchObject([{ id: ids[1] }, { id: ids[0] }]);
  expect(counting.bytesRead(), "no byte of any journal").toBe(0);
  await store.delete(ids[0]!);
  expect((await store.list()).sessions).toMatchObject([{ id: ids[1] }]);
  using catalogue = new DatabaseSync(join(here.path, "catalog.sqlite"), { readOnly: true });
  expect(catalogue.prepare("SELECT id FROM sessions").all()).toEqual([{ id: ids[1] }]);
});

test("S20: a catalogue that has no space to grow is left alone, and used again when there is some", async () => {
  using here = place();
  const counting = new CountingDisk();
  const row = { title: "x".repeat(3000) };
  const summariser: Summariser = { add: () => row, carries: () => false };
  const path = join(here.path, "catalog.sqlite");
  const { exec } = DatabaseSync.prototype;
  let isFull = true;
  // SQLite itself refuses to grow the file.
  DatabaseSync.prototype.exec = function (sql) {
    exec.call(this, sql);
    if (sql.includes("journal_mode")) exec.call(this, `PRAGMA max_page_count=${isFull ? 8 : 100_000}`);
  };
  try {
    const ids: string[] = [];
    {
      await using store = await openFolderStore(here.path, { summariser, disk: counting.disk });
      for (let i = 0; i < 12; i++) {
        ids.unshift(newId());
        await (await store.create(ids[0]!, [])).close();
        if (i === 0) await store.list();
      }
      const { ino } = statSync(path);
      expect((await store.list()).sessions.map(({ id }) => id)).toEqual(ids);
      await (await store.create(newId(), [])).close();
      expect((await store.list()).sessions).toHaveLength(13);
      expect(statSync(path).ino, "it was not made again").toBe(ino);
    }
    isFull = false;
    const { ino } = statSync(path);
    for (const isRead of [true, false]) {
      counting.reset();
      await using store = await openFolderStore(here.path, { summariser, disk: counting.disk });
      expect((await store.list()).sessions).toHaveLength(13);
      expect(counting.bytesRead() > 0).toBe(isRead);
      expect(statSync(path).ino).toBe(ino);
    }
  } finally {
    DatabaseSync.prototype.exec = exec;
  }
});

test("P9: a session that could not be read for a while is listed as before when it can", async () => {
  using here = place();
  let hidden = "";
  const stat: typeof nodeDisk.stat = (path) => {
    if (hidden !== "" && path.includes(hidden)) throw Object.assign(new Error("not allowed"), { code: "EACCES" });
    return nodeDisk.stat(path);
  };
  for (const catalogue of [{}, { catalogue: false } as const]) {
    const disk = { ...nodeDisk, stat };
    await using store = await openFolderStore(here.path, { disk, ...catalogue });
    const id = newId();
    for (const one of [newId(), id]) await (await store.create(one, [])).close();
    const before = await store.list();
    hidden = id;
    for (let i = 0; i < 2; i++) {
      const row = (await store.list()).sessions.find((listed) => listed.id === id);
      expect(row).toMatchObject({ unreadable: { code: "STORE_FORBIDDEN" } });
    }
    hidden = "";
    expect(await store.list()).toEqual(before);
  }
});
