import { closeSync, fsyncSync, openSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  attemptAppend,
  judge,
  judgeEpoch,
  Log,
  openSpec,
  type StoreSpec,
  viewOf,
} from "@holdfast/testkit/internal/kill";
import { type LoopDisk, Machine, mib, whyNoMounts } from "@holdfast/testkit/internal/machine";
import { isHoldfastError, newId } from "holdfast";
import type { Journal } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { needs } from "./allowed.ts";
import { ballast } from "./ballast.ts";

const BLOCK = 4096;

/**
 * ext4 in a sparse file on a small tmpfs. When that is full, ext4 still has space and takes every write; its writeback
 * fails, and fsync says so (with ENOSPC, which is a failed fsync all the same: S9).
 */
async function failingDisk(machine: Machine): Promise<{ disk: LoopDisk; below: string }> {
  const below = await machine.tmpfs("below", mib(40));
  const disk = await machine.ext4("disk", mib(64), { on: below, mkfs: ["-b", String(BLOCK), "-J", "size=4"] });
  await disk.mount();
  // ext4's own log must be there in full, or it is the log that fails, and the file system with it. Renames fill it,
  // and take no blocks.
  const [one, other] = [join(disk.path, "one"), join(disk.path, "other")];
  writeFileSync(one, "");
  const folder = openSync(disk.path, "r");
  for (let n = 0; n < 400; n++) {
    renameSync(n % 2 === 0 ? one : other, n % 2 === 0 ? other : one);
    fsyncSync(folder);
  }
  closeSync(folder);
  return { disk, below };
}

/**
 * Appends until the file ends where a block does. The loop device takes a write that was cut short for a whole one
 * (measured on Linux 6.18): one that begins in a block that is there and goes on in blocks that are not would be
 * confirmed without being stored.
 */
async function alignEnd(journal: Journal, file: string): Promise<void> {
  const pad = async (chars: number): Promise<number> => {
    const before = statSync(file).size;
    await journal.append({ kind: "pad", text: "x".repeat(chars) });
    return statSync(file).size - before;
  };
  for (let tries = 0; statSync(file).size % BLOCK !== 0; tries++) {
    if (tries === 20) throw new Error(`${file} does not end with a block after ${tries} tries`);
    // The length of everything but the text; the numbers in it may grow a digit, and then it is tried again.
    const envelope = await pad(0);
    const room = (2 * BLOCK - (statSync(file).size % BLOCK) - envelope) % BLOCK;
    await pad(room);
  }
}
const hear = (log: Log) => log.hear.bind(log);

describe.each(["folder", "sqlite"])("C19, P8: a failed fsync (%s)", (module) => {
  test("is told at that append, ends the journal, and what reopening shows is durable", async (context) => {
    needs(context, `failed fsync, ${module}`, whyNoMounts());
    await using machine = new Machine();
    const { disk, below } = await failingDisk(machine);
    const spec: StoreSpec = { module, place: disk.path, durability: "power" };
    const id = newId();
    const log = new Log();
    const next = (chars: number) => ({ id: log.nextId, kind: "append" as const, parts: 2, chars });

    const store = await openSpec(spec);
    const journal = await store.create(id, [{ kind: "lab.made" }]);
    for (let n = 0; n < 5; n++) expect(await attemptAppend(journal, next(500), hear(log))).toMatchObject({ e: "ack" });
    if (module === "folder") await alignEnd(journal, join(disk.path, "store", "sessions", id, "000001.jsonl"));

    const held = ballast(below);
    const heard: string[] = [];
    journal.onFailure(({ code }) => heard.push(code));
    let failed = await attemptAppend(journal, next(20_000), hear(log));
    for (let n = 0; failed.e === "ack" && n < 200; n++) failed = await attemptAppend(journal, next(20_000), hear(log));
    expect(failed).toMatchObject({ e: "doubt", code: "SYNC_FAILED" });
    expect(heard).toEqual(["SYNC_FAILED"]);
    expect(journal.failure?.code).toBe("SYNC_FAILED");
    // The kernel has forgotten the failure, and a second fsync would succeed: the journal must not.
    expect(await attemptAppend(journal, next(10), hear(log))).toMatchObject({ e: "doubt", code: "SYNC_FAILED" });
    await journal.close();
    // Only here is it known that no write begins in a block that is there: see `alignEnd`.
    if (module === "folder")
      await expect(store.open(id)).rejects.toSatisfy((error) => isHoldfastError(error, "SYNC_FAILED", "STORE_FULL"));
    expect(judge(log, await viewOf(store.history(id)))).toEqual([]);

    held.drop();
    const reopened = await store.open(id);
    const shown = await viewOf(store.history(id));
    expect(judge(log, shown)).toEqual([]);
    expect(judgeEpoch(log, shown, await viewOf(reopened.records))).toEqual([]);
    log.nextLife();
    expect(await attemptAppend(reopened.journal, next(300), hear(log))).toMatchObject({ e: "ack" });
    await reopened.journal.close();
    await store.close();

    // What is only in the kernel's cache is gone after this.
    await disk.unmount();
    await disk.mount();
    await using again = await openSpec(spec);
    const { journal: last, recovery } = await again.open(id);
    expect(judge(log, await viewOf(again.history(id)), shown)).toEqual([]);
    expect(recovery).toMatchObject({ unclean: false, cutBytes: 0, damaged: [], missing: [] });
    await last.close();
  });
});
