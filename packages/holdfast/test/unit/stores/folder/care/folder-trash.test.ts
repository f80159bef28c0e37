import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { removeTree, removeUnborn } from "../../../../../src/stores/folder/care/trash.ts";
import { place } from "../../../../place.ts";

const NOW = Date.parse("2026-11-16T12:00:00.000Z");
const WEEK_MS = 7 * 24 * 3600 * 1000;

test("a session that is deleted twice in the same millisecond is in the trash twice, and gc removes both", async () => {
  using here = place();
  let now = NOW;
  await using store = await openFolderStore(here.path, { clock: () => now });
  const id = newId();
  for (let i = 0; i < 2; i++) {
    await (await store.create(id, [])).close();
    await store.delete(id);
  }
  expect(readdirSync(join(here.path, "trash")).sort()).toEqual([`${id}-${NOW}`, `${id}-${NOW + 1}`]);
  now += WEEK_MS;
  expect(await store.gc(), "one of them is a millisecond younger").toEqual({ removed: [id] });
  now += 1;
  expect(await store.gc()).toEqual({ removed: [id] });
  expect(readdirSync(join(here.path, "trash"))).toEqual([]);
});

test("gc leaves alone what nobody deleted: other names in the trash, in `sessions` and in `incoming`", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { clock: () => Date.now() + 4 * WEEK_MS });
  const folders = ["trash", "sessions", "incoming"];
  for (const folder of folders) {
    mkdirSync(join(here.path, folder, "notes"), { recursive: true });
    writeFileSync(join(here.path, folder, "notes", "text"), "precious");
    writeFileSync(join(here.path, folder, newId()), "a file");
  }
  const names = () => folders.map((folder) => readdirSync(join(here.path, folder), { recursive: true }).length);
  const before = names();
  expect(await store.gc({ graceMs: 0 })).toEqual({ removed: [] });
  expect(names()).toEqual(before);
});

test("P1: a folder that a power cut left under both names is the session itself, and stays", async () => {
  using here = place();
  const id = newId();
  // Folders have no second name here, so the disk says that they are the same one.
  let isBoth = true;
  const inTrash = join(here.path, "trash", `${id}-1`);
  const disk: Disk = {
    ...nodeDisk,
    stat: (path) => nodeDisk.stat(isBoth && path === inTrash ? join(here.path, "sessions", id) : path),
  };
  await using store = await openFolderStore(here.path, { disk });
  await (await store.create(id, [])).close();
  mkdirSync(inTrash);
  expect(await store.gc({ graceMs: 0 })).toEqual({ removed: [] });
  expect(existsSync(inTrash)).toBe(true);
  isBoth = false;
  expect(await store.gc({ graceMs: 0 })).toEqual({ removed: [id] });
  expect(await store.has(id)).toBe(true);
});

test("gc tells of the first thing that it could not remove, after all others are gone", async () => {
  using here = place();
  const [good, bad] = [newId(), newId()];
  const forbidden = (path: string): void => {
    if (path.includes(bad)) throw Object.assign(new Error("not allowed"), { code: "EACCES" });
    nodeDisk.remove(path);
  };
  let now = NOW;
  await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, remove: forbidden }, clock: () => now });
  for (const id of [bad, good]) {
    await (await store.create(id, [])).close();
    await store.delete(id);
  }
  now += WEEK_MS;
  await expect(store.gc()).rejects.toMatchObject({
    code: "STORE_FORBIDDEN",
    facts: { path: join(here.path, "trash", `${bad}-${NOW}`) },
    message: expect.stringContaining("No session is affected, and everything else was collected."),
  });
  expect(readdirSync(join(here.path, "trash"))).toEqual([`${bad}-${NOW}.gone`]);
});

test.each(["EMFILE", "ENFILE", "ENOMEM"])("a failure of the process stops gc at once: %s", async (errno) => {
  using here = place();
  let now = NOW;
  let attempts = 0;
  const remove = (path: string): void => {
    if (path.includes("trash")) {
      attempts++;
      throw Object.assign(new Error("too much"), { code: errno });
    }
    nodeDisk.remove(path);
  };
  await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, remove }, clock: () => now });
  for (const id of [newId(), newId()]) {
    await (await store.create(id, [])).close();
    await store.delete(id);
  }
  now += WEEK_MS;
  await expect(store.gc()).rejects.toMatchObject({ code: "STORE_IO", facts: { errno } });
  expect(attempts).toBe(1);
});

test("a tree that somebody else removes at the same time is removed, and any other failure is told", () => {
  using here = place();
  const folder = join(here.path, "folder");
  mkdirSync(join(folder, "inner"), { recursive: true });
  for (const name of ["a", "b", join("inner", "c")]) writeFileSync(join(folder, name), name);
  // Another process is always one step ahead.
  const ahead =
    (call: (path: string) => void) =>
    (path: string): void => {
      call(path);
      call(path);
    };
  removeTree({ ...nodeDisk, remove: ahead(nodeDisk.remove), removeFolder: ahead(nodeDisk.removeFolder) }, folder);
  expect(existsSync(folder)).toBe(false);
  removeTree(nodeDisk, folder);
  mkdirSync(folder);
  const removeFolder = (): never => {
    throw Object.assign(new Error("busy"), { code: "EBUSY" });
  };
  expect(() => removeTree({ ...nodeDisk, removeFolder }, folder)).toThrow(expect.objectContaining({ code: "EBUSY" }));
  expect(() => removeUnborn({ ...nodeDisk, removeFolder }, folder)).toThrow(expect.objectContaining({ code: "EBUSY" }));
});

test("a folder without a segment is removed as a whole; one with a segment is not touched", () => {
  using here = place();
  const folder = join(here.path, "folder");
  mkdirSync(join(folder, "quarantine"), { recursive: true });
  writeFileSync(join(folder, "000001.claim"), "");
  writeFileSync(join(folder, "quarantine", "torn"), "");
  writeFileSync(join(folder, "000001.jsonl.zst"), "");
  const names = readdirSync(folder).sort();
  expect(removeUnborn(nodeDisk, folder)).toBe(false);
  expect(readdirSync(folder).sort()).toEqual(names);
  nodeDisk.remove(join(folder, "000001.jsonl.zst"));
  expect(removeUnborn(nodeDisk, folder)).toBe(true);
  expect(existsSync(folder)).toBe(false);
  expect(removeUnborn(nodeDisk, folder), "somebody else was faster").toBe(true);
});

test.each(["sessions", "incoming"])(
  "S18: what never became a session is removed from %s after exactly a day",
  async (parent) => {
    using here = place();
    let now = NOW;
    await using store = await openFolderStore(here.path, { clock: () => now });
    const folder = join(here.path, parent, newId());
    mkdirSync(folder, { recursive: true });
    utimesSync(folder, NOW / 1000, NOW / 1000);
    now += 24 * 3600 * 1000 - 1;
    await store.gc();
    expect(existsSync(folder)).toBe(true);
    now += 1;
    await store.gc();
    expect(existsSync(folder)).toBe(false);
  },
);
