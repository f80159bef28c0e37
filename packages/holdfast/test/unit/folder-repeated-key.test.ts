import { cpSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { openFolderStore } from "holdfast/store";
import { expect, test } from "vitest";
import { place } from "../place.ts";

test("S11b: the first call after a crash may repeat a key under `process`: it answers, and the journal goes on", async () => {
  using here = place();
  const [dying, copy] = [join(here.path, "dying"), join(here.path, "copy")];
  await using store = await openFolderStore(dying, { durability: "process" });
  const id = newId();
  const writer = await store.create(id, []);
  const first = await writer.append({ kind: "note" }, { key: "k" });
  // What a process that is killed now leaves behind, on another machine.
  cpSync(join(dying, "sessions"), join(copy, "sessions"), { recursive: true });

  await using reopened = await openFolderStore(copy, { durability: "process" });
  const { journal } = await reopened.open(id);
  expect(await journal.append({ kind: "note" }, { key: "k" })).toEqual(first);
  expect(journal.failure).toBeNull();
  await journal.append({ kind: "after" });
  await journal.close();
  const { records } = await reopened.read(id);
  expect(records.map(({ kind }) => kind)).toEqual([
    "segment",
    "opened",
    "note",
    "segment",
    "opened",
    "after",
    "closed",
  ]);
});
