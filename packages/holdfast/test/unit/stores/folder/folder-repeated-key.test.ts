import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../place.ts";
import { bytesOf, line } from "../../journal/journals.ts";

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

test("S9: a closed journal without marks, from another writer, is durable when it is open: a repeated key does not wait for ever", async () => {
  using here = place();
  const id = newId();
  const folder = join(here.path, "sessions", id);
  mkdirSync(folder, { recursive: true });
  const header = line(1, { kind: "segment", format: "1.0", session: id, segment: 1, epoch: 1 });
  writeFileSync(
    join(folder, "000001.jsonl"),
    bytesOf(header, line(2, { kind: "note", key: "k" }), line(3, { kind: "closed" })),
  );
  await using store = await openFolderStore(here.path);
  const { journal } = await store.open(id);
  expect(journal.durable).toBeGreaterThanOrEqual(2);
  expect(await journal.append({ kind: "note" }, { key: "k" })).toEqual({ seq: 2, last: 2 });
});
