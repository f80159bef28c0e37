import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore, openSqliteStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { fileWith } from "../../file-with.ts";
import { place } from "../../place.ts";

/** A disk whose syncs can fail. */
function failingDisk(): { readonly disk: Disk; fails: boolean } {
  const state = { fails: false };
  const check = (): void => {
    if (state.fails) throw Object.assign(new Error("the disk is broken"), { code: "EIO" });
  };
  const watched = (file: DiskFile): DiskFile =>
    fileWith(file, {
      sync: async () => {
        check();
        await file.sync();
      },
      syncNow: () => {
        check();
        file.syncNow();
      },
    });
  const disk: Disk = { ...nodeDisk, open: (path, mode) => watched(nodeDisk.open(path, mode)) };
  return Object.assign(state, { disk });
}

test.each([
  ["folder", openFolderStore],
  ["sqlite", openSqliteStore],
] as const)(
  "P8: closing a %s store rejects when a journal cannot be synced, and closes all of them",
  async (_, open) => {
    using here = place();
    const failing = failingDisk();
    const path = join(here.path, "store");
    const store = await open(path, { disk: failing.disk, durability: "process" });
    const ids = [newId(), newId(), newId()];
    for (const id of ids) await (await store.create(id, [])).append({ kind: "note" });
    failing.fails = true;
    await expect(store.close()).rejects.toMatchObject({ code: "SYNC_FAILED" });
    failing.fails = false;
    await using again = await open(path);
    for (const id of ids) {
      const { journal, records } = await again.open(id);
      expect(records.some(({ kind }) => kind === "note")).toBe(true);
      await journal.close();
    }
  },
);
