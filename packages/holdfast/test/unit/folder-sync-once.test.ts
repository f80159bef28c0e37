import { newId } from "holdfast";
import { openFolderStore } from "holdfast/store";
import { expect, test } from "vitest";
import { CountingDisk } from "../counting-disk.ts";
import { place } from "../place.ts";

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
