import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import { expect, test } from "vitest";
import { CountingDisk } from "../../../../counting-disk.ts";
import { place, treeOf } from "../../../../place.ts";

/** A segment that its writer did not close is sealed by a file beside it, and never changed (decision 6). */

const messages = async (store: JournalStore, id: string): Promise<unknown[]> => {
  const found: unknown[] = [];
  for await (const record of store.history(id)) if (record.kind === "message") found.push(record["n"]);
  return found;
};

async function leftOpen(root: string, count: number): Promise<{ id: string; folder: string; path: string }> {
  const store = await openFolderStore(root, { catalogue: false });
  const id = newId();
  const journal = await store.create(id, []);
  for (let n = 0; n < count; n++) await journal.append({ kind: "message", n });
  await store.close();
  const folder = join(root, "sessions", id);
  const path = join(folder, "000001.jsonl");
  // As a process that was killed leaves it.
  const bytes = readFileSync(path);
  truncateSync(path, bytes.lastIndexOf('{"seq":'));
  return { id, folder, path };
}

test("a segment that was not closed stays as it is; its end is written to a file of its own, and the journal goes on in the next one", async () => {
  using here = place();
  const { id, folder, path } = await leftOpen(here.path, 3);
  const left = readFileSync(path);
  await using store = await openFolderStore(here.path, { catalogue: false });
  const opened = await store.open(id);
  const tail = readdirSync(folder).find((name) => name.includes(".tail-"))!;
  const offset = Number(tail.split("tail-")[1]);
  expect(Buffer.concat([left.subarray(0, offset), readFileSync(join(folder, tail))])).toEqual(left);
  await opened.journal.append({ kind: "message", n: 3 });
  await opened.journal.close();
  expect(readFileSync(path).toString(), "one byte behind its end tells lists that the session has gone on").toBe(
    `${left}\n`,
  );
  expect(readdirSync(folder).sort()).toEqual(["000001.jsonl", tail, "000002.claim", "000002.jsonl"]);
  expect(await messages(store, id)).toEqual([0, 1, 2, 3]);
  expect(await store.verify(id)).toMatchObject({ damaged: [], missing: [], cutBytes: 0, unclean: false, segments: 2 });

  // A writer that lost its lease without knowing it still has the old file open.
  const late = left.subarray(left.lastIndexOf('{"seq":'));
  appendFileSync(path, late);
  appendFileSync(path, late.subarray(0, 40));
  expect(await messages(store, id)).toEqual([0, 1, 2, 3]);
  expect(await store.verify(id)).toMatchObject({
    damaged: [],
    missing: [],
    records: (await store.read(id)).records.length,
  });
});

test("R16: a session that is opened again and again, and never written to, gets no more segments", async () => {
  using here = place();
  const { id, folder } = await leftOpen(here.path, 3);
  await using store = await openFolderStore(here.path, { catalogue: false });
  const files = () => [...treeOf(folder)].filter(([name]) => !name.endsWith(".claim"));
  await (await store.open(id)).journal.close();
  const once = files();
  for (let i = 0; i < 3; i++) await (await store.open(id)).journal.close();
  expect(files()).toEqual(once);
  expect(once.map(([name]) => name)).toEqual(["000001.jsonl", expect.stringMatching(/^000001\.jsonl\.tail-\d+$/)]);
});

test("of two tails the one that knew of more counts", async () => {
  using here = place();
  const { id, folder, path } = await leftOpen(here.path, 6);
  const whole = readFileSync(path);
  const [early, later] = [whole.indexOf('{"seq":4,'), whole.indexOf('{"seq":6,')];
  writeFileSync(join(folder, `000001.jsonl.tail-${early}`), "");
  writeFileSync(join(folder, `000001.jsonl.tail-${later}`), whole.subarray(later));
  await using store = await openFolderStore(here.path, { catalogue: false });
  expect(await messages(store, id)).toEqual([0, 1, 2, 3, 4, 5]);
});

test.each(["cut off, not yet written", "half written", "written, the copy not yet removed"])(
  "a healing of an earlier version that was interrupted reads the same: %s",
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
    expect(await messages(store, id)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect((await store.list()).sessions).toMatchObject([{ id, closed: true, head: opened.journal.head }]);
  },
);

test("R16: a session that was closed in order goes on in the same segment; looking at it writes nothing", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { disk: counting.disk, catalogue: false });
  const id = newId();
  const journal = await store.create(id, []);
  await journal.append({ kind: "message", n: 0 });
  await journal.close();
  const folder = join(here.path, "sessions", id);
  const before = treeOf(folder);
  for (let i = 0; i < 2; i++) await (await store.open(id)).journal.close();
  await store.pack(id);
  expect(treeOf(folder)).toEqual(before);

  const again = await store.open(id);
  counting.reset();
  await again.journal.append({ kind: "message", n: 1 });
  expect(counting.calls.get("write"), "`opened`, and the record").toBe(2);
  await again.journal.close();
  expect(readdirSync(folder)).toEqual(["000001.jsonl"]);
  expect(await messages(store, id)).toEqual([0, 1]);
});

test("S9: `closed` may never have reached the disk if its writer did not say so: then it is written again before anything is appended", async () => {
  using here = place();
  const id = newId();
  const summariser = { add: (row: unknown) => (Number(row) || 0) + 1, carries: () => false };
  await using store = await openFolderStore(here.path, { summariser });
  const journal = await store.create(id, []);
  await journal.append({ kind: "message", n: 0 });
  await journal.close();
  const folder = join(here.path, "sessions", id);
  const whole = readFileSync(join(folder, "000001.jsonl"));
  expect((await store.list()).sessions).toMatchObject([{ id, closed: true, head: 4 }]);
  // A copy of a store may come without its leases.
  rmSync(join(here.path, "leases", `${id}.closed`));

  const looking = await store.open(id);
  await looking.journal.close();
  expect(readFileSync(join(folder, "000001.jsonl"))).toEqual(whole);
  const again = await store.open(id);
  await again.journal.append({ kind: "message", n: 1 });
  const closed = whole.lastIndexOf('{"seq":');
  expect(readFileSync(join(folder, `000001.jsonl.tail-${closed}`))).toEqual(whole.subarray(closed));
  // A list that knows the session as closed looks at its old segment alone.
  expect((await store.list()).sessions).toMatchObject([{ id, closed: false, head: again.journal.head }]);
  await again.journal.close();
  expect((await store.list()).sessions).toMatchObject([{ id, closed: true }]);
  expect(await messages(store, id)).toEqual([0, 1]);
  expect((await store.verify(id)).damaged).toEqual([]);
});

test("packing puts a segment and its tail together", async () => {
  using here = place();
  const { id, folder, path } = await leftOpen(here.path, 40);
  await using store = await openFolderStore(here.path, { catalogue: false });
  const opened = await store.open(id);
  await opened.journal.append({ kind: "message", n: 40 });
  appendFileSync(path, '{"seq":44,"late":true}\n');
  await opened.journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await opened.journal.close();
  const before = await messages(store, id);
  expect(before).toHaveLength(41);
  expect((await store.pack(id)).segments).toBe(2);
  expect(readdirSync(folder).sort()).toEqual(["000001.jsonl.zst", "000002.claim", "000002.jsonl.zst", "000003.jsonl"]);
  expect(await messages(store, id)).toEqual(before);
  expect((await store.verify(id)).damaged).toEqual([]);
});

test("a tail whose segment is gone does not become part of a new segment of that number", async () => {
  using here = place();
  const { id, folder } = await leftOpen(here.path, 3);
  const stale = `${readFileSync(join(folder, "000001.jsonl"), "utf8").split("\n").at(-2)}\n`;
  writeFileSync(join(folder, "000002.jsonl.tail-0"), stale);
  await using store = await openFolderStore(here.path, { catalogue: false });
  const { journal } = await store.open(id);
  await journal.append({ kind: "message", n: 3 });
  await journal.close();
  expect(await messages(store, id)).toEqual([0, 1, 2, 3]);
  expect(await store.verify(id)).toMatchObject({ damaged: [], missing: [], cutBytes: 0, unclean: false });
  const kept = readdirSync(join(folder, "quarantine")).find((name) => name.startsWith("000002.jsonl.tail-0"))!;
  expect(readFileSync(join(folder, "quarantine", kept), "utf8"), "its bytes are not lost").toBe(stale);
});

test("nor of the first one, in a folder that was left without a segment", async () => {
  using here = place();
  const { id, folder, path } = await leftOpen(here.path, 3);
  writeFileSync(join(folder, "000001.jsonl.tail-0"), readFileSync(path));
  rmSync(path);
  await using store = await openFolderStore(here.path, { catalogue: false });
  const journal = await store.create(id, []);
  await journal.append({ kind: "message", n: "new" });
  await journal.close();
  expect(await messages(store, id)).toEqual(["new"]);
});

test("an older segment of the current epoch is refused, too, if its format is newer", async () => {
  using here = place();
  const { id, folder, path } = await leftOpen(here.path, 3);
  await using store = await openFolderStore(here.path, { catalogue: false });
  const { journal } = await store.open(id);
  await journal.append({ kind: "message", n: 3 });
  await journal.close();
  const [header, ...rest] = readFileSync(path, "utf8").split("\n");
  const covered = header!.slice(0, -18).replace('"format":"1.1"', '"format":"2.0"');
  const newer = `${covered},"crc":"${crc32(covered).toString(16).padStart(8, "0")}"}`;
  writeFileSync(path, [newer, ...rest].join("\n"));
  // So that the next writer has to claim a segment.
  appendFileSync(join(folder, "000002.jsonl"), "half a line");
  const before = treeOf(folder);
  await expect(store.read(id)).rejects.toMatchObject({ code: "FORMAT_NEWER" });
  await expect(store.open(id)).rejects.toMatchObject({ code: "FORMAT_NEWER" });
  expect(treeOf(folder), "and nothing was touched").toEqual(before);
});

/** A session whose first segment has a tail, and belongs to an older epoch. */
async function withTail(root: string): Promise<{ id: string; folder: string; path: string; tail: string }> {
  const { id, folder, path } = await leftOpen(root, 6);
  await using store = await openFolderStore(root, { catalogue: false });
  const { journal } = await store.open(id);
  await journal.append({ kind: "message", n: 6 });
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  const tail = readdirSync(folder).find((name) => name.includes(".tail-"))!;
  return { id, folder, path, tail: join(folder, tail) };
}

/** Something happens right before a tail is opened. */
function beforeTail(counting: CountingDisk, happen: () => void): Disk {
  let hasHappened = false;
  return {
    ...counting.disk,
    open: (path, mode) => {
      if (!hasHappened && mode === "read" && path.includes(".tail-")) {
        hasHappened = true;
        happen();
      }
      return counting.disk.open(path, mode);
    },
  };
}

test("a segment that is packed before its tail is opened is read in its packed form", async () => {
  using here = place();
  const { id, path, tail } = await withTail(here.path);
  const saved = [path, tail].map((name) => [name, readFileSync(name)] as const);
  await using packer = await openFolderStore(here.path, { catalogue: false });
  await packer.pack(id);
  const packed = readFileSync(`${path}.zst`);
  rmSync(`${path}.zst`);
  for (const [name, bytes] of saved) writeFileSync(name, bytes, { mode: 0o600 });
  const counting = new CountingDisk();
  const disk = beforeTail(counting, () => {
    writeFileSync(`${path}.zst`, packed, { mode: 0o600 });
    for (const [name] of saved) rmSync(name);
  });
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  expect(await messages(store, id)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(counting.open).toEqual([]);
});

test("a tail that somebody removes while it is read is an error, not the end of the segment", async () => {
  using here = place();
  const { id, tail } = await withTail(here.path);
  const counting = new CountingDisk();
  const disk = beforeTail(counting, () => rmSync(tail));
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  await expect(messages(store, id)).rejects.toMatchObject({ code: "STORE_IO" });
  expect(counting.open).toEqual([]);
});

test.each([100, 1024 * 1024 - 1, 1024 * 1024, 2.5 * 1024 * 1024])(
  "P2: %i torn bytes go to the quarantine, byte for byte, under a name with their checksum",
  async (size) => {
    using here = place();
    const { id, path } = await leftOpen(here.path, 3);
    const { length } = readFileSync(path);
    const torn = Buffer.alloc(size, '{"seq":99,"kind":"message","text":"0123456789');
    appendFileSync(path, torn);
    await using store = await openFolderStore(here.path, { catalogue: false });
    const { journal, recovery } = await store.open(id);
    const crc = crc32(torn).toString(16).padStart(8, "0");
    expect(recovery.quarantine).toBe(join(path, "..", "quarantine", `000001.jsonl-${length}-${crc}.torn`));
    expect(readFileSync(recovery.quarantine!).equals(torn)).toBe(true);
    await journal.append({ kind: "message", n: 3 });
    await journal.close();
    expect(await messages(store, id)).toEqual([0, 1, 2, 3]);
  },
);

test("what is left of writers that were killed while they created a file is removed when the session is opened", async () => {
  using here = place();
  const { id, folder } = await leftOpen(here.path, 3);
  mkdirSync(join(folder, "quarantine"));
  const left = ["000001.jsonl.tail-5.0123456789ab.tmp", join("quarantine", "000001.jsonl-9-00000000.torn.0123.tmp")];
  for (const name of left) writeFileSync(join(folder, name), "half", { mode: 0o600 });
  writeFileSync(join(folder, "quarantine", "kept.torn"), "whole");
  await using store = await openFolderStore(here.path, { catalogue: false });
  await (await store.open(id)).journal.close();
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  expect(names.filter((name) => name.endsWith(".tmp"))).toEqual([]);
  expect(names).toContain(join("quarantine", "kept.torn"));
});

test("verify counts the bytes that count, and those at the end that do not", async () => {
  using here = place();
  const { id, path } = await leftOpen(here.path, 3);
  const { length } = readFileSync(path);
  await using store = await openFolderStore(here.path, { catalogue: false });
  expect(await store.verify(id)).toMatchObject({ bytes: length, segments: 1, cutBytes: 0, unclean: true });
  appendFileSync(path, "torn");
  expect(await store.verify(id)).toMatchObject({ bytes: length + 4, cutBytes: 4, unclean: true });
});

test("a segment that shrinks while it is healed is an error of the disk, and does not hang", async () => {
  using here = place();
  const { id, path } = await leftOpen(here.path, 3);
  appendFileSync(path, "torn");
  let isHealing = false;
  const disk: Disk = {
    ...nodeDisk,
    syncFolder: (folder) => {
      isHealing = true;
      nodeDisk.syncFolder(folder);
    },
    open: (name, mode) => {
      const file = nodeDisk.open(name, mode);
      return isHealing && name === path ? Object.assign(file, { read: () => 0 }) : file;
    },
  };
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  await expect(store.open(id)).rejects.toMatchObject({ code: "STORE_IO", facts: { errno: "EIO" } });
});

test("a segment is read the same wherever its tail begins, also inside its header", async () => {
  using here = place();
  const { id, folder, path } = await leftOpen(here.path, 2);
  const whole = readFileSync(path);
  await using store = await openFolderStore(here.path, { catalogue: false });
  const expected = await Array.fromAsync(store.history(id));
  const [row] = (await store.list()).sessions;
  for (let offset = 0; offset <= whole.length; offset++) {
    const tail = join(folder, `000001.jsonl.tail-${offset}`);
    // What a writer that lost its lease has appended does not count.
    writeFileSync(path, Buffer.concat([whole.subarray(0, offset), Buffer.from("x\nlate\n")]));
    writeFileSync(tail, whole.subarray(offset));
    expect(await Array.fromAsync(store.history(id)), `at ${offset}`).toEqual(expected);
    expect(await store.verify(id), `at ${offset}`).toMatchObject({ damaged: [], missing: [], bytes: whole.length });
    expect((await store.list()).sessions, `at ${offset}`).toEqual([row]);
    rmSync(tail);
  }
});

test("C20: damage at the end of a segment that is followed by another one is damage, and cuts nothing off", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false, segmentBytesMax: 600 });
  const id = newId();
  const journal = await store.create(id, []);
  for (let n = 0; n < 12; n++) await journal.append({ kind: "message", n }, { durability: "process" });
  await journal.flush();
  for (let n = 12; n < 24; n++) await journal.append({ kind: "message", n });
  await journal.close();
  const folder = join(here.path, "sessions", id);
  const segments = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  expect(segments.length).toBeGreaterThan(2);
  for (const name of segments.sort().slice(0, -1)) {
    const path = join(folder, name);
    const whole = readFileSync(path);
    const last = JSON.parse(whole.toString().trimEnd().split("\n").at(-1)!) as { n: number };
    writeFileSync(path, Buffer.concat([whole.subarray(0, -5), Buffer.from("xxxx\n")]));
    expect(await messages(store, id), name).toEqual(
      Array.from({ length: 24 }, (_, n) => n).filter((n) => n !== last.n),
    );
    expect(await store.verify(id), name).toMatchObject({
      cutBytes: 0,
      unclean: false,
      damaged: [{ segment: name, why: "corrupt" }],
      missing: [],
    });
    writeFileSync(path, whole);
  }
});

test("P9: without its tail, a segment ends where the next one says, and what was in the tail is reported", async () => {
  using here = place();
  const { id, path, tail } = await withTail(here.path);
  await using store = await openFolderStore(here.path, { catalogue: false });
  const before = await Array.fromAsync(store.history(id));
  const lost = readFileSync(tail, "utf8")
    .trimEnd()
    .split("\n")
    .map((text) => (JSON.parse(text) as { seq: number }).seq);
  rmSync(tail);
  // Bytes after that end never count.
  appendFileSync(path, "late");
  for (const isPacked of [false, true]) {
    if (isPacked) await store.pack(id);
    expect(await Array.fromAsync(store.history(id))).toEqual(before.filter(({ seq }) => !lost.includes(seq)));
    const { damaged, missing } = await store.verify(id);
    expect([damaged, missing]).toEqual([[], [{ from: lost[0], to: lost.at(-1) }]]);
  }
});
