import { readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type JournalStore, newId, openFolderStore } from "holdfast";
import { expect, test } from "vitest";
import { CountingDisk } from "../counting-disk.ts";
import { place, treeOf } from "../place.ts";

/** Healing cuts off what may not be durable and writes it anew. Interrupted in the middle, it shows in nothing (decision 5). */

const messages = async (store: JournalStore, id: string): Promise<unknown[]> => {
  const found: unknown[] = [];
  for await (const record of store.history(id)) if (record.kind === "message") found.push(record["n"]);
  return found;
};

test.each(["cut off, not yet written", "half written", "written, the copy not yet removed"])(
  "P2: %s",
  async (state) => {
    using here = place();
    await using store = await openFolderStore(here.path, { catalogue: false });
    const id = newId();
    const journal = await store.create(id, []);
    for (let n = 0; n < 6; n++) await journal.append({ kind: "message", n });
    await journal.close();
    const folder = join(here.path, "sessions", id);
    const path = join(folder, "000001.jsonl");
    const whole = readFileSync(path);
    const offset = whole.indexOf('{"seq":5,');
    writeFileSync(join(folder, `000001.jsonl.tail-${offset}`), whole.subarray(offset));
    if (state !== "written, the copy not yet removed") truncateSync(path, offset + (state === "half written" ? 77 : 0));

    const before = treeOf(folder);
    expect(await messages(store, id)).toEqual([0, 1, 2, 3, 4, 5]);
    expect((await store.read(id)).recovery).toMatchObject({ unclean: false, cutBytes: 0, damaged: [] });
    expect((await store.verify(id)).damaged).toEqual([]);
    expect((await store.list()).sessions).toMatchObject([{ id, closed: true }]);
    expect(treeOf(folder), "readers change nothing").toEqual(before);

    const opened = await store.open(id);
    await opened.journal.append({ kind: "message", n: 6 });
    await opened.journal.close();
    expect(readdirSync(folder)).toEqual(["000001.jsonl"]);
    expect(readFileSync(path).subarray(0, whole.length)).toEqual(whole);
    expect(await messages(store, id)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  },
);

test("R16: looking at a session that was closed in order writes nothing", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk, catalogue: false });
  const id = newId();
  const journal = await store.create(id, []);
  await journal.append({ kind: "message" });
  await journal.close();
  const before = treeOf(join(here.path, "sessions"));
  counting.reset();
  const opened = await store.open(id);
  await opened.journal.close();
  expect(treeOf(join(here.path, "sessions"))).toEqual(before);
  expect(counting.calls.get("writeAt") ?? 0).toBe(0);

  // But `closed` may never have reached the disk, and what is appended behind it is promised: it is written again first (S9).
  const again = await store.open(id);
  counting.reset();
  await again.journal.append({ kind: "message" });
  expect(counting.calls.get("writeAt")).toBe(1);
  counting.reset();
  await again.journal.append({ kind: "message" });
  expect(counting.calls.get("writeAt") ?? 0, "once").toBe(0);
  await again.journal.close();
});
