import { existsSync, readdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { type JournalRecord, newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../../place.ts";

/**
 * A disk that loses its power while it packs: removals wait in memory until their folder is synced, and at one of these
 * syncs only those that `keeps` says are kept (GUARANTEES: any subset of the names that were not synced).
 */
class PowerCut extends Error {}

function cutting(folder: string, cutAt: number, keeps: (i: number, path: string) => boolean): Disk {
  let pending: string[] = [];
  let syncs = 0;
  return {
    ...nodeDisk,
    remove: (path) => {
      if (path.endsWith(".tmp")) nodeDisk.remove(path);
      else pending.push(path);
    },
    syncFolder: (path) => {
      if (path === folder && pending.length > 0 && syncs++ === cutAt) {
        for (const [i, one] of pending.entries()) if (keeps(i, one)) unlinkSync(one);
        throw new PowerCut();
      }
      for (const one of pending) unlinkSync(one);
      pending = [];
      nodeDisk.syncFolder(path);
    },
  };
}

const contents = (records: readonly JournalRecord[]): unknown[] =>
  records.flatMap((record) => (record.kind === "message" ? [record["n"]] : []));

test("P1: a power cut while a segment with a tail is packed loses no record, whichever names it keeps", async () => {
  for (let cutAt = 0; cutAt < 3; cutAt++) {
    for (let subset = 0; subset < 4; subset++) {
      using here = place();
      const id = newId();
      const folder = join(here.path, "sessions", id);
      {
        // A disk of its own: the process that it stands for is dead when the next one comes.
        const lockless: Disk = { ...nodeDisk, lock: () => ({ release() {} }), isLocked: () => false };
        const victim = await openFolderStore(here.path, { disk: { ...lockless }, catalogue: false });
        const journal = await victim.create(id, [{ kind: "session" }]);
        for (let n = 0; n < 5; n++) await journal.append({ kind: "message", n }, { durability: "process" });
        const heir = await openFolderStore(here.path, { disk: { ...lockless }, catalogue: false });
        const { journal: next } = await heir.open(id);
        await next.append({ kind: "message", n: 5 });
        await next.epoch(() => [{ kind: "epoch", reason: "clear" }]);
        await next.close();
      }
      expect(readdirSync(folder).some((name) => name.includes(".tail-"))).toBe(true);
      const disk = cutting(folder, cutAt, (i) => (subset & (1 << i)) !== 0);
      const packer = await openFolderStore(here.path, { disk, catalogue: false });
      await packer.pack(id).catch((error) => {
        if (!(error instanceof PowerCut) && !(error.cause instanceof PowerCut)) throw error;
      });
      await using store = await openFolderStore(here.path, { catalogue: false });
      const found = await Array.fromAsync(store.history(id));
      const where = `cut at sync ${cutAt}, subset ${subset}: ${readdirSync(folder).join(" ")}`;
      expect(contents(found), where).toEqual([0, 1, 2, 3, 4, 5]);
      expect((await store.verify(id)).missing, where).toEqual([]);
      expect(existsSync(folder)).toBe(true);
    }
  }
});
