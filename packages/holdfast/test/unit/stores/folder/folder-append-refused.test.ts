import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { fileWith } from "../../../file-with.ts";
import { place } from "../../../place.ts";

test("S11: a write of which nothing arrived is refused, and the file is left alone: a disk that cannot cut it is no failure", async () => {
  using here = place();
  let isFull = false;
  const fail = (code: string): never => {
    throw Object.assign(new Error(`${code}: on purpose`), { code });
  };
  const disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      if (!path.endsWith(".jsonl")) return file;
      return fileWith(file, {
        write: (bytes) => (isFull ? fail("ENOSPC") : file.write(bytes)),
        truncate: () => fail("EIO"),
      });
    },
  };
  await using store = await openFolderStore(here.path, { disk });
  const id = newId();
  const journal = await store.create(id, []);
  await journal.append({ kind: "before" });
  isFull = true;
  await expect(journal.append({ kind: "refused" })).rejects.toMatchObject({ code: "STORE_FULL" });
  isFull = false;
  await journal.append({ kind: "after" });
  await journal.close();
  const { records } = await store.read(id);
  expect(records.map(({ kind }) => kind)).toEqual(["segment", "opened", "before", "after", "closed"]);
});
