import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { tellLine } from "@holdfast/testkit/internal/kill";
import { isHoldfastError } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { Journal, JournalStore } from "holdfast/store";

/**
 * One of several processes that want to write to the same session. Tells each record that was acknowledged, until it is
 * killed.
 */
export interface Contender {
  readonly root: string;
  readonly id: string;
  readonly name: string;
  readonly durability: "power" | "process";
  /** `weak`: POSIX locks alone. `none`: locks that keep nobody out. */
  readonly locks: "all" | "weak" | "none";
}

export interface Acknowledged {
  readonly e: "acknowledged";
  readonly name: string;
  readonly n: number;
}

const weak: Partial<Disk> = { hardLock: () => "none" as const };
const none: Partial<Disk> = { ...weak, lock: () => ({ release: () => {} }), isLocked: () => false };

/**
 * Opens, reads and closes every file of the store, again and again: what a backup or a search in the same process does.
 */
function readEverything(root: string): never {
  const bytes = Buffer.alloc(64 * 1024);
  for (;;) {
    for (const name of readdirSync(root, { recursive: true, encoding: "utf8" })) {
      try {
        const path = join(root, name);
        if (!statSync(path).isFile()) continue;
        const fd = openSync(path, "r");
        readSync(fd, bytes, 0, bytes.length, 0);
        closeSync(fd);
      } catch (error) {
        // It went away between the list and the look.
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
    }
  }
}

async function contend({ root, id, name, durability, locks }: Contender): Promise<void> {
  const disk: Disk = { ...nodeDisk, ...(locks === "none" ? none : locks === "weak" ? weak : {}) };
  const store = await openFolderStore(root, { disk, durability, catalogue: false, segmentBytesMax: 20_000 });
  for (let n = 0; ; ) {
    const journal = await tryOpen(store, id);
    if (!journal) {
      await sleep(Math.random() * 10);
      continue;
    }
    try {
      for (let i = Math.random() * 60; i > 0; i--) {
        const unit = Array.from({ length: 1 + Math.floor(Math.random() * 3) }, () => ({
          kind: "message",
          name,
          n: ++n,
        }));
        if (Math.random() < 0.05) await journal.epoch(() => [{ kind: "epoch", reason: "compaction" }, ...unit]);
        else await journal.append(unit);
        for (const { n } of unit) {
          const told: Acknowledged = { e: "acknowledged", name, n };
          tellLine(told);
        }
      }
      if (Math.random() < 0.7) await journal.close();
      else await sleep(Math.random() * 30);
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
    }
    await journal.close().catch((error: unknown) => {
      if (!isHoldfastError(error)) throw error;
    });
  }
}

async function tryOpen(store: JournalStore, id: string): Promise<Journal | null> {
  try {
    return (await store.open(id)).journal;
  } catch (error) {
    if (isHoldfastError(error, "SESSION_BUSY", "LEASE_LOST", "STORE_IO")) return null;
    throw error;
  }
}

if (isMainThread) {
  const job = JSON.parse(process.argv[2]!) as Contender;
  new Worker(new URL(import.meta.url), { workerData: job.root, execArgv: process.execArgv });
  await contend(job);
} else readEverything(workerData as string);
