import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { RECORD_BYTES_MAX, SEGMENT_BYTES_MAX } from "../../../../../src/journal/record.ts";
import { CountingDisk } from "../../../../counting-disk.ts";
import { place } from "../../../../place.ts";

/** A session of three epochs; the first is several frames long. Returns the records of all. */
async function packedSession(
  root: string,
): Promise<{ store: JournalStore; id: string; folder: string; plain: Buffer; records: string[] }> {
  const store = await openFolderStore(root);
  const id = newId();
  const journal = await store.create(id, []);
  for (let i = 0; i < 40; i++)
    await journal.append({ kind: "message", i, text: `${i}🙂`.repeat(20_000) }, { durability: "process" });
  await journal.append({ kind: "message", text: "long".repeat(700_000) });
  await journal.epoch(() => [{ kind: "epoch", reason: "compaction" }]);
  await journal.append({ kind: "message", i: 41 });
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  const folder = join(root, "sessions", id);
  const plain = readFileSync(join(folder, "000001.jsonl"));
  const records = await keys(store, id);
  await store.pack(id);
  expect(readdirSync(folder).sort()).toEqual(["000001.jsonl.zst", "000002.jsonl.zst", "000003.jsonl"]);
  return { store, id, folder, plain, records };
}

async function keys(store: JournalStore, id: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { seq, crc } of store.history(id)) found.push(`${seq}-${crc}`);
  return found;
}

describe("S17: packed segments", () => {
  test("read the same, from any seq, and zstdcat prints the segment", async () => {
    using here = place();
    const { store, id, folder, plain, records } = await packedSession(here.path);
    expect(await keys(store, id)).toEqual(records);
    const tail: number[] = [];
    for await (const { seq } of store.history(id, 30)) tail.push(seq);
    expect(tail[0]).toBe(30);
    expect((await store.verify(id)).damaged).toEqual([]);
    expect((await store.open(id)).records.map(({ kind }) => kind)).toEqual(["segment", "epoch", "closed"]);
    if (existsSync("/usr/bin/zstdcat")) {
      const printed = execFileSync("zstdcat", [join(folder, "000001.jsonl.zst")], { maxBuffer: 2 ** 30 });
      expect(printed.equals(plain)).toBe(true);
    }
    await store.close();
  });

  test("every frame carries its content's size and checksum, as the zstd format marks them", async () => {
    using here = place();
    const { store, folder } = await packedSession(here.path);
    const bytes = readFileSync(join(folder, "000001.jsonl.zst"));
    expect(bytes.readUInt32LE(0).toString(16)).toBe("fd2fb528");
    const descriptor = bytes[4]!;
    expect(descriptor & 0b100, "the checksum flag").not.toBe(0);
    expect(descriptor & 0b11100000, "the content size, or a single segment").not.toBe(0);
    await store.close();
  });

  test("a copy that lacks its end does not replace the segment", async () => {
    using here = place();
    const { store, id, folder, plain, records } = await packedSession(here.path);
    await store.close();
    rmSync(join(folder, "000001.jsonl.zst"));
    writeFileSync(join(folder, "000001.jsonl"), plain);
    // It loses all writes of the copy but the first: a whole frame.
    const disk: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        const file = nodeDisk.open(path, mode);
        if (mode !== "create") return file;
        const write = file.write.bind(file);
        let writes = 0;
        file.write = (bytes) => (writes++ === 0 ? write(bytes) : bytes.length);
        return file;
      },
    };
    const faulty = await openFolderStore(here.path, { disk });
    await expect(faulty.pack(id)).rejects.toThrow(/000001\.jsonl/);
    await faulty.close();
    expect(readFileSync(join(folder, "000001.jsonl")).equals(plain)).toBe(true);
    const again = await openFolderStore(here.path);
    expect(await keys(again, id)).toEqual(records);
    await again.close();
  });

  test("both present: the plain one counts; packing again removes it", async () => {
    using here = place();
    const { store, id, folder, plain, records } = await packedSession(here.path);
    writeFileSync(join(folder, "000001.jsonl"), plain);
    writeFileSync(join(folder, "000001.jsonl.zst"), "half of it");
    expect(await keys(store, id)).toEqual(records);
    await store.pack(id);
    expect(existsSync(join(folder, "000001.jsonl"))).toBe(false);
    expect(await keys(store, id)).toEqual(records);
    await store.close();
  });

  test("a flipped bit costs the records of its frame, and is reported", async () => {
    using here = place();
    const { store, id, folder, records } = await packedSession(here.path);
    const path = join(folder, "000001.jsonl.zst");
    const bytes = readFileSync(path);
    // Some single bits of a frame mean nothing; all of a stretch cannot.
    for (let i = 40; i < 80; i++) bytes[i]! ^= 0xff;
    writeFileSync(path, bytes);
    const left = await keys(store, id);
    expect(left.length).toBeGreaterThan(records.length / 2);
    expect(left.length).toBeLessThan(records.length);
    expect(records.filter((key) => left.includes(key))).toEqual(left);
    const verified = await store.verify(id);
    expect(verified.damaged).toMatchObject([{ segment: "000001.jsonl.zst", why: "corrupt" }]);
    await store.close();
  });

  test.each([-1, -8, -9, -20])("a flipped bit in the table (at %i) costs nothing", async (at) => {
    using here = place();
    const { store, id, folder, records } = await packedSession(here.path);
    const path = join(folder, "000001.jsonl.zst");
    const bytes = readFileSync(path);
    bytes[bytes.length + at]! ^= 1;
    writeFileSync(path, bytes);
    const left = await keys(store, id);
    // The size of a frame is in the table alone: if that was hit, the frame does not fit it, and is reported as
    // damaged.
    expect(left.length === records.length || (await store.verify(id)).damaged.length > 0).toBe(true);
    expect(left.length).toBeGreaterThan(records.length / 2);
    await store.close();
  });

  test("a session whose newest segment is packed can be read, and is not written to", async () => {
    using here = place();
    const { store, id, folder } = await packedSession(here.path);
    rmSync(join(folder, "000003.jsonl"));
    expect((await store.read(id)).records.map(({ kind }) => kind)).toEqual(["segment", "epoch", "message"]);
    await expect(store.open(id)).rejects.toMatchObject({ code: "JOURNAL_UNREADABLE" });
    await store.close();
  });
});

/** A session of two small epochs. Returns its folder and the path of the first segment. */
async function smallSession(store: JournalStore, root: string): Promise<{ id: string; folder: string; path: string }> {
  const id = newId();
  const journal = await store.create(id, []);
  for (let i = 0; i < 50; i++) await journal.append({ kind: "message", i }, { durability: "process" });
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  const folder = join(root, "sessions", id);
  return { id, folder, path: join(folder, "000001.jsonl") };
}

test("S17: pack counts the segments it has packed, and their bytes before and after", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const { id, path } = await smallSession(store, here.path);
  const { journal } = await store.open(id);
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  const second = path.replace("000001", "000002");
  const sizes = (ending: string) => [path, second].reduce((sum, name) => sum + statSync(name + ending).size, 0);
  const bytesBefore = sizes("");
  const packed = await store.pack(id);
  expect(packed).toEqual({ segments: 2, bytesBefore, bytesAfter: sizes(".zst") });
  expect(await store.pack(id)).toEqual({ segments: 0, bytesBefore: 0, bytesAfter: 0 });
});

test.each([0, 1, 4, 7, 8, 9, 15, 16, 17, 40])(
  "P9: a packed segment of which %i bytes are left costs its own records, and nothing else",
  async (bytes) => {
    using here = place();
    const counting = new CountingDisk();
    await using store = await openFolderStore(here.path, { disk: counting.disk, catalogue: false });
    const { id, path } = await smallSession(store, here.path);
    const { records } = await store.read(id);
    await store.pack(id);
    truncateSync(`${path}.zst`, bytes);
    expect(await Array.fromAsync(store.history(id))).toEqual(records);
    const { damaged, missing } = await store.verify(id);
    // What is left of it is damage, which counts as one record.
    expect(damaged).toHaveLength(bytes === 0 ? 0 : 1);
    expect(missing).toEqual([{ from: 1 + damaged.length, to: records[0]!.seq - 1 }]);
    expect((await store.list()).sessions).toMatchObject([{ id, closed: true }]);
    expect(counting.open).toEqual([]);
  },
);

test("S17: a line that fits in no frame, and a segment that is larger than readers read, stay plain", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false });
  const { id, path, folder } = await smallSession(store, here.path);
  const plain = readFileSync(path);
  const withLine = (bytes: number): void => {
    writeFileSync(path, plain);
    // A hole: zeros, and a newline.
    truncateSync(path, plain.length + bytes - 1);
    writeFileSync(path, "\n", { flag: "a" });
  };
  withLine(RECORD_BYTES_MAX + 1);
  expect(await store.pack(id)).toEqual({ segments: 0, bytesBefore: 0, bytesAfter: 0 });
  truncateSync(path, SEGMENT_BYTES_MAX + 1);
  expect((await store.pack(id)).segments).toBe(0);
  expect(readdirSync(folder).sort()).toEqual(["000001.jsonl", "000002.jsonl"]);
  // The same line is not counted twice, wherever it lies.
  withLine(RECORD_BYTES_MAX);
  expect(await store.pack(id)).toMatchObject({ segments: 1, bytesBefore: plain.length + RECORD_BYTES_MAX });
  expect(readdirSync(folder).sort()).toEqual(["000001.jsonl.zst", "000002.jsonl"]);
  expect((await store.verify(id)).missing).toEqual([]);
});

test("a long segment is read in turns with the rest of the process, plain and packed", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false, durability: "process" });
  const id = newId();
  const journal = await store.create(id, []);
  const text = "x".repeat(1024 * 1024);
  for (let i = 0; i < 20; i++) await journal.append({ kind: "message", i, text });
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  const read = async (): Promise<{ messages: number; turns: number }> => {
    let turns = 0;
    let next = setImmediate(function again() {
      turns++;
      next = setImmediate(again);
    });
    const { length } = (await Array.fromAsync(store.history(id))).filter(({ kind }) => kind === "message");
    clearImmediate(next);
    return { messages: length, turns };
  };
  const plain = await read();
  expect(plain.messages).toBe(20);
  expect(plain.turns).toBeGreaterThanOrEqual(2);
  await store.pack(id);
  const packed = await read();
  expect(packed.messages).toBe(20);
  expect(packed.turns).toBeGreaterThanOrEqual(20);
});

test("S17: a segment whose last line has no newline is packed with that line", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false });
  const { id, path } = await smallSession(store, here.path);
  const records = await keys(store, id);
  truncateSync(path, statSync(path).size - 1);
  expect(await keys(store, id)).toEqual(records);
  expect((await store.pack(id)).segments).toBe(1);
  expect(await keys(store, id)).toEqual(records);
  expect(await store.verify(id)).toMatchObject({ damaged: [], missing: [] });
});
