import { cpSync, existsSync, mkdirSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError, type JournalRecord, newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place, treeOf } from "../../../place.ts";

/**
 * Locks that keep nobody out: what is left when every lock was given away (decision 6). Each disk is a process of its
 * own.
 */
const lostLocks = (): Disk => ({
  ...nodeDisk,
  lock: () => ({ release() {} }),
  isLocked: () => false,
  hardLock: () => "none" as const,
});

const contents = (records: readonly JournalRecord[]): unknown[] =>
  records.flatMap((record) => (record.kind === "message" ? [record["n"]] : []));

const codeOf = async (promise: Promise<unknown>): Promise<string> => {
  try {
    await promise;
    return "no error";
  } catch (error) {
    return error instanceof HoldfastError ? error.code : String(error);
  }
};

test("P6: a copy that lost its lease does not replace the session that another process has created meanwhile", async () => {
  using from = place();
  using here = place();
  const id = newId();
  await using source = await openFolderStore(from.path, { catalogue: false });
  const original = await source.create(id, [{ kind: "session" }]);
  await original.append({ kind: "message", n: "original" });
  await original.close();
  const copier = await openFolderStore(here.path, { disk: lostLocks(), catalogue: false });
  const writer = await openFolderStore(here.path, { disk: lostLocks(), catalogue: false });
  async function* slowly() {
    const journal = await writer.create(id, [{ kind: "session" }]);
    await journal.append({ kind: "message", n: "acknowledged" });
    await journal.close();
    const lines = [];
    for await (const record of source.history(id)) lines.push({ record, bytes: Buffer.from(JSON.stringify(record)) });
    yield lines;
  }
  expect(await codeOf(copier.adopt!(id, slowly()))).toBe("SESSION_EXISTS");
  const { records } = await writer.read(id);
  expect(contents(records)).toEqual(["acknowledged"]);
  await copier.close();
  await writer.close();
});

test("P6: gc that lost its lease does not remove the session that another process is creating in an old folder", async () => {
  using here = place();
  const id = newId();
  const folder = join(here.path, "sessions", id);
  mkdirSync(join(here.path, "sessions"), { recursive: true, mode: 0o700 });
  mkdirSync(folder, { mode: 0o700 });
  const old = Date.now() / 1000 - 25 * 3600;
  utimesSync(folder, old, old);
  let looks = 0;
  const disk: Disk = {
    ...lostLocks(),
    list: (path) => {
      const names = nodeDisk.list(path);
      // After the look under the lease, and before what was found is removed.
      if (path === folder && ++looks === 2) writeFileSync(join(folder, "000001.jsonl"), "somebody's first records");
      return names;
    },
  };
  await using collector = await openFolderStore(here.path, { disk, catalogue: false });
  expect(await collector.gc()).toEqual({ removed: [] });
  expect(existsSync(join(folder, "000001.jsonl"))).toBe(true);
});

test("S12: a new epoch is not begun in a backup that somebody put in the place of the session", async () => {
  using here = place();
  const id = newId();
  const folder = join(here.path, "sessions", id);
  await using store = await openFolderStore(here.path, { catalogue: false });
  const journal = await store.create(id, [{ kind: "session" }]);
  cpSync(folder, join(here.path, "backup"), { recursive: true });
  await journal.append({ kind: "message", n: 0 });
  renameSync(folder, join(here.path, "away"));
  renameSync(join(here.path, "backup"), folder);
  const before = treeOf(folder);
  expect(await codeOf(journal.epoch(() => [{ kind: "epoch", reason: "clear" }]))).toBe("FILE_REPLACED");
  expect(treeOf(folder)).toEqual(before);
});
