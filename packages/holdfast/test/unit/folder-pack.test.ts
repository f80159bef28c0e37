import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { type JournalStore, openFolderStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { place } from "../place.ts";

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
