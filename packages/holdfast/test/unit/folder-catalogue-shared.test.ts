import { existsSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "holdfast";
import { openFolderStore } from "holdfast/store";
import { expect, test } from "vitest";
import { CountingDisk } from "../counting-disk.ts";
import { place } from "../place.ts";

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

test("S20: a process that reads the catalogue does not keep others from writing to it", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  await (await store.create(newId(), [])).close();
  const path = join(here.path, "catalog.sqlite");
  using reading = new DatabaseSync(path, { readOnly: true });
  const count = (database: DatabaseSync): unknown => database.prepare("SELECT count(*) AS n FROM sessions").get();
  reading.exec("BEGIN");
  expect(count(reading)).toEqual({ n: 1 });
  await (await store.create(newId(), [])).close();
  using another = new DatabaseSync(path, { readOnly: true });
  expect(count(another)).toEqual({ n: 2 });
});

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
