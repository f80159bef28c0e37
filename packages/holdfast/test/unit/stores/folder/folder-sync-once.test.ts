import { basename } from "node:path";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { CountingDisk } from "../../../counting-disk.ts";
import { place } from "../../../place.ts";

test("P1: what appendSync has made durable is not synced again for an append that was waiting", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk });
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "first" });
  counting.reset();
  const waiting = journal.append({ kind: "waits" });
  journal.appendSync({ kind: "at once" });
  await waiting;
  expect(journal.durable).toBe(journal.head);
  expect(counting.calls.get("sync")).toBe(1);
});

test("S18: the way to the sessions is made durable once, and not again for each session", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk });
  const create = async (): Promise<number> => {
    counting.reset();
    await store.create(newId(), []);
    return counting.calls.get("syncFolder") ?? 0;
  };
  expect(await create(), "the root, what is above it, the session, its name").toBeGreaterThanOrEqual(4);
  expect(await create(), "the session, its name").toBe(2);
});

test("appendSync in a store with the durability `process` syncs nothing, unless it is told to", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk, durability: "process" });
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "first" });
  counting.reset();
  journal.appendSync({ kind: "second" });
  journal.appendSync({ kind: "third" }, { durability: "process" });
  expect(counting.calls.get("sync")).toBe(undefined);
  journal.appendSync({ kind: "fourth" }, { durability: "power" });
  expect(counting.calls.get("sync")).toBe(1);
  expect(journal.durable).toBe(journal.head);
});

test("a deleted session is in the trash, durably, before its old name is gone for good", async () => {
  using here = place();
  const synced: string[] = [];
  const disk: Disk = {
    ...nodeDisk,
    syncFolder: (path) => {
      synced.push(basename(path));
      nodeDisk.syncFolder(path);
    },
  };
  await using store = await openFolderStore(here.path, { disk });
  const id = newId();
  await (await store.create(id, [])).close();
  synced.length = 0;
  await store.delete(id);
  expect(synced.slice(-2)).toEqual(["trash", "sessions"]);
});
