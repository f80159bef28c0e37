import { isHoldfastError, newId } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { fileWith } from "../../../file-with.ts";
import { place } from "../../../place.ts";

/** A disk that notes which syncs were made, and can sync inside the call. */
class FastDisk {
  readonly syncs: ("in the call" | "later")[] = [];
  isFast = true;
  isBroken = false;

  readonly disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => this.#file(nodeDisk.open(path, mode)),
  };

  #file(file: DiskFile): DiskFile {
    return fileWith(file, {
      sync: () => {
        this.syncs.push("later");
        return file.sync();
      },
      syncIfFast: () => {
        if (!this.isFast) return false;
        if (this.isBroken) throw Object.assign(new Error("the disk is broken"), { code: "EIO" });
        this.syncs.push("in the call");
        file.syncNow();
        return true;
      },
    });
  }
}

test("P1: the sync of a lone append may happen in a call, that of several appends never does", async () => {
  using here = place();
  const { disk, syncs } = new FastDisk();
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  await using journal = await store.create(newId(), []);
  const alone = journal.append({ kind: "alone" });
  expect(syncs, "not inside append: others of this tick can share it").toEqual([]);
  const { last } = await alone;
  expect(syncs).toEqual(["in the call"]);
  expect(journal.durable).toBe(last);
  syncs.length = 0;
  const both = await Promise.all([journal.append({ kind: "a" }), journal.append({ kind: "b" })]);
  expect(syncs).toEqual(["later"]);
  expect(both.map(({ seq }) => seq)).toEqual([last + 1, last + 2]);
  expect(journal.durable).toBe(last + 2);
});

test("P1: if syncs are not fast, the thread pool makes the one of a lone append", async () => {
  using here = place();
  const fast = new FastDisk();
  await using store = await openFolderStore(here.path, { disk: fast.disk, catalogue: false });
  await using journal = await store.create(newId(), []);
  fast.isFast = false;
  const { last } = await journal.append({ kind: "alone" });
  expect(fast.syncs).toEqual(["later"]);
  expect(journal.durable).toBe(last);
});

test("P8: a sync that fails inside the call is a failed sync: the append is in doubt, and nothing more is accepted", async () => {
  using here = place();
  const fast = new FastDisk();
  await using store = await openFolderStore(here.path, { disk: fast.disk, catalogue: false });
  const journal = await store.create(newId(), []);
  const { last } = await journal.append({ kind: "kept" });
  fast.isBroken = true;
  const error: unknown = await journal.append({ kind: "in doubt" }).catch((thrown: unknown) => thrown);
  expect(isHoldfastError(error, "SYNC_FAILED")).toBe(true);
  expect(journal.durable).toBe(last);
  fast.isBroken = false;
  await expect(journal.append({ kind: "after it" })).rejects.toBe(error);
  await journal.close();
});
