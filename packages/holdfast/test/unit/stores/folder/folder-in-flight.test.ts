import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError, newId } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { fileWith } from "../../../file-with.ts";
import { place } from "../../../place.ts";

/** What is acknowledged, durable and shown to followers while syncs are under way. */

/** A disk whose syncs end when they are told to, and whose blocking syncs can fail. */
class HeldDisk {
  /** The syncs that were issued and have not ended, in order. */
  readonly running: { end(): void }[] = [];
  isHeld = false;
  isBroken = false;

  readonly disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => this.#file(nodeDisk.open(path, mode)),
  };

  #file(file: DiskFile): DiskFile {
    return fileWith(file, {
      sync: async () => {
        if (this.isHeld) {
          const { promise, resolve } = Promise.withResolvers<void>();
          this.running.push({ end: resolve });
          await promise;
        }
        await file.sync();
      },
      syncNow: () => {
        if (this.isBroken) throw Object.assign(new Error("the disk is broken"), { code: "EIO" });
        file.syncNow();
      },
    });
  }
}

test("S10, S19: a follower sees what the sync covered that has ended, and not what was written since", async () => {
  using here = place();
  const held = new HeldDisk();
  await using store = await openFolderStore(here.path, { disk: held.disk, catalogue: false });
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "first" });
  const seen: string[] = [];
  const stop = new AbortController();
  const following = (async () => {
    for await (const record of journal.follow({ after: journal.head, signal: stop.signal })) seen.push(record.kind);
  })();

  held.isHeld = true;
  const a = journal.append({ kind: "a" });
  while (held.running.length < 1) await sleep(1);
  const b = journal.append({ kind: "b" });
  expect(held.running).toHaveLength(1);
  held.running[0]!.end();
  const { last } = await a;
  while (held.running.length < 2) await sleep(1);
  expect(journal.durable).toBe(last);
  while (seen.length < 1) await sleep(1);
  // A watch and two polls later.
  await sleep(600);
  expect(seen).toEqual(["a"]);
  held.isHeld = false;
  held.running[1]!.end();
  await b;
  while (seen.length < 2) await sleep(1);
  expect(seen).toEqual(["a", "b"]);
  stop.abort();
  await following;
  await journal.close();
});

test("P8: when a blocking sync has failed, one that was under way acknowledges nothing any more", async () => {
  using here = place();
  const held = new HeldDisk();
  await using store = await openFolderStore(here.path, { disk: held.disk, catalogue: false });
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "first" });
  const { durable } = journal;
  const seen: string[] = [];
  const stop = new AbortController();
  const following = (async () => {
    for await (const record of journal.follow({ after: durable, signal: stop.signal })) seen.push(record.kind);
  })();

  held.isHeld = true;
  const a = journal.append({ kind: "a" }).catch((error: unknown) => error);
  while (held.running.length < 1) await sleep(1);
  held.isBroken = true;
  expect(() => journal.appendSync({ kind: "b" })).toThrow("did not confirm");
  expect(isHoldfastError(await a, "SYNC_FAILED")).toBe(true);
  held.running[0]!.end();
  await sleep(600);
  expect(journal.durable).toBe(durable);
  expect(seen).toEqual([]);
  stop.abort();
  await following;
  held.isHeld = false;
  held.isBroken = false;
  await journal.close();
});
