import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../place.ts";

test("P8: an epoch that waits for a sync is refused when that sync fails, and so is everything after it", async () => {
  using here = place();
  const synced = Promise.withResolvers<void>();
  const disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      if (mode === "append") Object.assign(file, { sync: () => synced.promise, syncIfFast: () => false });
      return file;
    },
  };
  const store = await openFolderStore(here.path, { disk });
  const journal = await store.create(newId(), []);
  const appended = journal.append({ kind: "note", text: "a" });
  // The sync begins after this tick.
  await Promise.resolve();
  const epochs = [1, 2].map(() => journal.epoch(() => [{ kind: "epoch", reason: "clear" }]));
  synced.reject(Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" }));
  for (const refused of [appended, ...epochs]) await expect(refused).rejects.toMatchObject({ code: "SYNC_FAILED" });
  await expect(journal.append({ kind: "note", text: "b" })).rejects.toMatchObject({ code: "SYNC_FAILED" });
  await store.close();
});
