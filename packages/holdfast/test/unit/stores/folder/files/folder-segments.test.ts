import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, type DiskFile, type DiskStat, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place, treeOf } from "../../../../place.ts";

/** When a new segment is started, and what happens if it cannot be. */

const MIB = 1024 * 1024;

const namesIn = (root: string, id: string): string[] => readdirSync(join(root, "sessions", id)).sort();
const segmentsOf = (root: string, id: string): string[] => namesIn(root, id).filter((name) => name.endsWith(".jsonl"));

/** The real disk with other methods for each file. */
function withFiles(change: (file: DiskFile, path: string) => Partial<DiskFile>): Disk {
  return {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      // Every sync is a call.
      return Object.assign(file, { syncIfFast: () => false }, change({ ...bound(file) }, path));
    },
  };
}

function bound(file: DiskFile): DiskFile {
  return {
    path: file.path,
    read: file.read.bind(file),
    write: file.write.bind(file),
    writeAt: file.writeAt.bind(file),
    stat: file.stat.bind(file),
    truncate: file.truncate.bind(file),
    sync: file.sync.bind(file),
    syncNow: file.syncNow.bind(file),
    close: file.close.bind(file),
  };
}

test("by default a new segment is started at 64 MiB, and not before", async () => {
  using here = place();
  // Large units leave a hole: what is in them does not matter here.
  const disk = withFiles((file) => ({
    write: (bytes) => {
      if (bytes.length < MIB) return file.write(bytes);
      file.truncate(file.stat().size + bytes.length);
      return bytes.length;
    },
  }));
  await using store = await openFolderStore(here.path, { disk });
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "message", text: "x".repeat(63.9 * MIB) });
  await journal.append({ kind: "message" });
  expect(segmentsOf(here.path, journal.id)).toEqual(["000001.jsonl"]);
  await journal.append({ kind: "message", text: "x".repeat(0.1 * MIB) });
  await journal.append({ kind: "message" });
  expect(segmentsOf(here.path, journal.id)).toEqual(["000001.jsonl", "000002.jsonl"]);
  await journal.close();
});

test("the records that start an epoch, or are carried over to the next segment, do not count towards its limit", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { segmentBytesMax: 1000 });
  const journal = await store.create(newId(), []);
  await journal.epoch(() => [
    { kind: "epoch", reason: "compaction" },
    { kind: "message", text: "x".repeat(5000) },
  ]);
  for (let n = 0; n < 3; n++) await journal.append({ kind: "message", n });
  expect(segmentsOf(here.path, journal.id)).toEqual(["000001.jsonl", "000002.jsonl"]);
  await journal.append({ kind: "message", text: "x".repeat(1000) });
  await journal.append({ kind: "message" });
  expect(segmentsOf(here.path, journal.id)).toEqual(["000001.jsonl", "000002.jsonl", "000003.jsonl"]);
  await journal.close();
});

/** There is no space for new files while `isFull`; appends succeed. Counts the attempts. */
function withoutSpaceForFiles(): { readonly disk: Disk; isFull: boolean; attempts: number } {
  const state = { isFull: false, attempts: 0 };
  const disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      if (state.isFull && path.endsWith(".tmp") && path.includes(".jsonl.")) {
        state.attempts++;
        throw Object.assign(new Error("no space"), { code: "ENOSPC" });
      }
      return nodeDisk.open(path, mode);
    },
  };
  return Object.assign(state, { disk });
}

test("S11: without space for a new segment the old one is used, and another attempt is made each MiB, with the same number", async () => {
  using here = place();
  const full = withoutSpaceForFiles();
  await using store = await openFolderStore(here.path, { disk: full.disk, segmentBytesMax: 1000 });
  const journal = await store.create(newId(), []);
  full.isFull = true;
  await journal.append({ kind: "message", text: "x".repeat(1000) });
  for (let n = 0; n < 10; n++) await journal.append({ kind: "message", n });
  expect(full.attempts).toBe(1);
  expect(namesIn(here.path, journal.id)).toEqual(["000001.jsonl", "000002.claim"]);
  await journal.append({ kind: "message", text: "x".repeat(MIB) });
  await journal.append({ kind: "message" });
  expect(full.attempts).toBe(2);
  full.isFull = false;
  await journal.append({ kind: "message", text: "x".repeat(MIB) });
  await journal.append({ kind: "message" });
  expect(namesIn(here.path, journal.id), "the claim has served").toEqual(["000001.jsonl", "000002.jsonl"]);
  await journal.close();
  expect(await store.verify(journal.id)).toMatchObject({ damaged: [], missing: [], unclean: false });
});

test("P8: an epoch for which there is no space is refused, and the journal goes on in the old one", async () => {
  using here = place();
  const full = withoutSpaceForFiles();
  await using store = await openFolderStore(here.path, { disk: full.disk });
  const journal = await store.create(newId(), []);
  full.isFull = true;
  const refused = journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await expect(refused).rejects.toMatchObject({ code: "STORE_FULL" });
  await journal.append({ kind: "message" });
  full.isFull = false;
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  expect(namesIn(here.path, journal.id)).toEqual(["000001.jsonl", "000002.jsonl"]);
});

test("a session whose last writer had no space for the next segment goes on, in one that is free", async () => {
  using here = place();
  const full = withoutSpaceForFiles();
  const id = newId();
  {
    await using store = await openFolderStore(here.path, { disk: full.disk, segmentBytesMax: 1000 });
    const journal = await store.create(id, []);
    full.isFull = true;
    await journal.append({ kind: "message", n: 0, text: "x".repeat(1000) });
    await journal.append({ kind: "message", n: 1 });
    await journal.close();
  }
  expect(namesIn(here.path, id)).toContain("000002.claim");
  await using store = await openFolderStore(here.path);
  const { journal } = await store.open(id);
  await journal.append({ kind: "message", n: 2 });
  await journal.append({ kind: "message", n: 3 });
  await journal.close();
  expect(segmentsOf(here.path, id)).toEqual(["000001.jsonl", "000003.jsonl"]);
  const messages = (await Array.fromAsync(store.history(id))).filter(({ kind }) => kind === "message");
  expect(messages.map((message) => message["n"])).toEqual([0, 1, 2, 3]);
  expect(await store.verify(id)).toMatchObject({ damaged: [], missing: [], unclean: false });
});

interface Fault {
  readonly write: (file: DiskFile, bytes: Uint8Array) => number;
  readonly truncate?: () => never;
  readonly stat?: () => never;
}

async function appendWith(root: string, fault: Fault) {
  let isFaulty = false;
  const disk = withFiles((file, path) =>
    path.endsWith(".jsonl")
      ? {
          write: (bytes) => (isFaulty ? fault.write(file, bytes) : file.write(bytes)),
          ...(fault.truncate ? { truncate: fault.truncate } : {}),
          stat: () => (isFaulty && fault.stat ? fault.stat() : file.stat()),
        }
      : {},
  );
  const store = await openFolderStore(root, { disk });
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "message", n: 0 });
  isFaulty = true;
  const refused = await journal.append({ kind: "message", n: 1 }).then(
    () => null,
    (error) => error,
  );
  isFaulty = false;
  return { store, journal, refused };
}

const filled = new WeakSet<DiskFile>();
/** As a disk does that fills up: it takes a part, and refuses the rest. */
const half = (file: DiskFile, bytes: Uint8Array): number => {
  if (filled.has(file)) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
  filled.add(file);
  return file.write(bytes.subarray(0, 40));
};

const broken = (): never => {
  throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
};

test("S11: a write of which only a part arrived is taken back, and the next append takes its place", async () => {
  using here = place();
  const { store, journal, refused } = await appendWith(here.path, { write: half });
  expect(refused).toMatchObject({ code: "STORE_FULL", message: expect.stringContaining("Nothing of this append") });
  await journal.append({ kind: "message", n: 2 });
  await journal.close();
  const { records } = await store.read(journal.id);
  expect(records.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
  expect(await store.verify(journal.id)).toMatchObject({ damaged: [], cutBytes: 0, unclean: false });
  await store.close();
});

test.each<[what: string, fault: Fault, more: number]>([
  ["the disk cannot cut it off", { write: half, truncate: broken }, 40],
  [
    "another program has written too",
    {
      write: (file, bytes) => {
        if (!filled.has(file)) file.write(Buffer.from("another's"));
        return half(file, bytes);
      },
    },
    49,
  ],
])(
  "S11: a partial write that cannot be taken back fails the journal, and reopening heals it: %s",
  async (_, fault, more) => {
    using here = place();
    const { store, journal, refused } = await appendWith(here.path, fault);
    expect(refused).toMatchObject({ code: "FILE_REPLACED", message: expect.stringContaining("failed halfway") });
    expect(refused.facts.foundBytes).toBe(refused.facts.expectedBytes + more);
    await expect(journal.append({ kind: "message", n: 2 })).rejects.toBe(refused);
    await store.close();
    await using again = await openFolderStore(here.path);
    const { journal: next, recovery } = await again.open(journal.id);
    expect(recovery).toMatchObject({ unclean: true, cutBytes: more });
    await next.append({ kind: "message", n: 2 });
    await next.close();
    const { records } = await again.read(journal.id);
    expect(records.flatMap((record) => (record.kind === "message" ? [record["n"]] : []))).toEqual([0, 2]);
  },
);

test("S11: a failed write after which the file cannot be looked at fails the journal", async () => {
  using here = place();
  const { store, journal, refused } = await appendWith(here.path, { write: broken, stat: broken });
  expect(refused).toMatchObject({ code: "FILE_REPLACED", facts: { foundBytes: null } });
  expect(journal.failure).toBe(refused);
  await store.close();
});

test("segments are started within one tick, too, and belong to the epoch they continue", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { segmentBytesMax: 1000, durability: "process" });
  const journal = await store.create(newId(), []);
  for (let n = 0; n < 5; n++) journal.appendSync({ kind: "message", n, text: "x".repeat(1000) });
  expect(segmentsOf(here.path, journal.id)).toHaveLength(5);
  await journal.close();
  const headers = (await Array.fromAsync(store.history(journal.id))).filter(({ kind }) => kind === "segment");
  expect(headers.map((header) => [header["segment"], header["epoch"]])).toEqual([1, 2, 3, 4, 5].map((n) => [n, 1]));
});

test("a journal that is closed at its limit ends with `closed`, in the same segment", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { segmentBytesMax: 1000, durability: "process" });
  const journal = await store.create(newId(), []);
  journal.appendSync({ kind: "message", text: "x".repeat(1000) });
  await journal.close();
  expect(segmentsOf(here.path, journal.id)).toEqual(["000001.jsonl"]);
  const { records, recovery } = await store.read(journal.id);
  expect(records.at(-1)?.kind).toBe("closed");
  expect(recovery.unclean).toBe(false);
});

test.each(["power", "process"] as const)(
  "P6: a writer that finds its next segment claimed by another writes nothing more, and acknowledges nothing: %s",
  async (durability) => {
    using here = place();
    const store = await openFolderStore(here.path, { segmentBytesMax: 1000, durability });
    const journal = await store.create(newId(), []);
    const folder = join(here.path, "sessions", journal.id);
    journal.appendSync({ kind: "message", n: 0, text: "x".repeat(1000) });
    writeFileSync(join(folder, "000002.claim"), "");
    const before = treeOf(folder);
    await expect(journal.append({ kind: "message", n: 1 })).rejects.toMatchObject({
      code: "LEASE_LOST",
      facts: { path: folder },
    });
    expect(treeOf(folder)).toEqual(before);
    expect(journal.failure?.code).toBe("LEASE_LOST");
    await store.close();
  },
);

test.each<[what: string, change: (stat: DiskStat) => DiskStat | null, words: string]>([
  ["gone", () => null, "is gone"],
  ["on another device", (stat) => ({ ...stat, dev: stat.dev + 1 }), "was replaced by another file"],
  ["another file", (stat) => ({ ...stat, ino: stat.ino + 1 }), "was replaced by another file"],
  ["longer", (stat) => ({ ...stat, size: stat.size + 1 }), "was changed by another program"],
  ["shorter", (stat) => ({ ...stat, size: stat.size - 1 }), "was changed by another program"],
])("S12: a file that is %s after a sync is no longer this writer's", async (_what, change, words) => {
  using here = place();
  let isChanged = false;
  const stat: Disk["stat"] = (path) => {
    const found = nodeDisk.stat(path);
    return isChanged && found && path.endsWith(".jsonl") ? change(found) : found;
  };
  const store = await openFolderStore(here.path, { disk: { ...nodeDisk, stat } });
  const journal = await store.create(newId(), []);
  await journal.append({ kind: "message" });
  isChanged = true;
  const path = join(here.path, "sessions", journal.id, "000001.jsonl");
  const failure = await journal.append({ kind: "message" }).catch((error) => error);
  const expectedBytes = statSync(path).size;
  const seen = change(nodeDisk.stat(path)!);
  expect(failure).toMatchObject({ code: "FILE_REPLACED", message: expect.stringContaining(`${path} ${words}`) });
  expect(failure.facts).toEqual({ path, expectedBytes, foundBytes: seen?.size ?? null });
  await store.close();
});

test("P8: a sync that fails names the records in doubt", async () => {
  using here = place();
  let isFailing = false;
  const disk = withFiles((file) => ({ sync: async () => (isFailing ? broken() : file.sync()) }));
  const store = await openFolderStore(here.path, { disk });
  const journal = await store.create(newId(), []);
  const { last } = await journal.append({ kind: "message" });
  isFailing = true;
  await expect(journal.append([{ kind: "message" }, { kind: "message" }])).rejects.toMatchObject({
    code: "SYNC_FAILED",
    facts: { session: journal.id, durable: last, from: last + 1, to: last + 2 },
    message: expect.stringContaining(`records ${last + 1} to ${last + 2}`),
  });
  await store.close();
});
