import { existsSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { Leases } from "../../../src/stores/lease.ts";
import { place } from "../../place.ts";

test("gc does not fail when another process removes the same leftover first", async () => {
  using here = place();
  const disk: Disk = {
    ...nodeDisk,
    remove: (path) => {
      if (path.endsWith(".tmp") && path.includes("leases")) renameSync(path, join(here.path, "taken"));
      nodeDisk.remove(path);
    },
  };
  await using store = await openFolderStore(join(here.path, "store"), { disk });
  const made = newId(Date.now() - 48 * 3600 * 1000).replaceAll("-", "");
  const leftover = join(here.path, "store", "leases", `x.json.${made}.tmp`);
  writeFileSync(leftover, "");
  await store.gc();
  expect(existsSync(leftover)).toBe(false);
});

test("gc leaves a word alone that a writer has just taken, however long ago it was said", async () => {
  using here = place();
  const id = newId();
  const old = Date.now() / 1000 - 48 * 3600;
  let isTaken = false;
  const disk: Disk = {
    ...nodeDisk,
    rename: (from, to) => {
      nodeDisk.rename(from, to);
      if (!from.endsWith(".closed")) return;
      isTaken = true;
      new Leases(nodeDisk, join(here.path, "leases")).tidy(Date.now());
    },
  };
  await using store = await openFolderStore(here.path, { disk });
  await (await store.create(id, [{ kind: "session" }])).close();
  utimesSync(join(here.path, "leases", `${id}.closed`), old, old);
  const { journal } = await store.open(id);
  await journal.append({ kind: "note" });
  expect(isTaken).toBe(true);
  await journal.close();
});

test("gc removes what was left in the middle of a rename, by the time in its name", () => {
  using here = place();
  const names = (): string[] => readdirSync(here.path);
  const dayMs = 24 * 3600 * 1000;
  const young = `x.closed.${newId().replaceAll("-", "")}.tmp`;
  const old = `x.closed.${newId(Date.now() - 2 * dayMs).replaceAll("-", "")}.tmp`;
  for (const name of [young, old]) writeFileSync(join(here.path, name), "");
  const leases = new Leases(nodeDisk, here.path);
  leases.tidy(Date.now());
  expect(names()).toEqual([young]);
  leases.tidy(Date.now() + 2 * dayMs);
  expect(names()).toEqual([]);
});

test("a store whose folder of leases was removed while it was open makes it again", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const id = newId();
  await (await store.create(id, [{ kind: "session" }])).close();
  rmSync(join(here.path, "leases"), { recursive: true });
  const { journal } = await store.open(id);
  await journal.append({ kind: "message" });
  await journal.close();
  expect((await store.read(id)).records.at(-1)?.kind).toBe("closed");
});
