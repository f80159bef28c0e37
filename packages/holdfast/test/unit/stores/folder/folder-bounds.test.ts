import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { JournalStore, Opened, Summariser } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { Ledger } from "../../../../src/journal/ledger.ts";
import { RECORD_LEVELS_MAX, SEGMENT_BYTES_MAX } from "../../../../src/journal/record.ts";
import { listSegments, SEGMENT_NUMBER_MAX } from "../../../../src/stores/folder/files/segment.ts";
import { SegmentWriter } from "../../../../src/stores/folder/writer.ts";
import { CountingDisk } from "../../../counting-disk.ts";
import { sealed } from "../../../hostile/hostile-store.ts";
import { place, treeOf } from "../../../place.ts";

const AT = "2026-11-15T02:30:00.123Z";
const titles: Summariser = {
  add: (row, record) => (record.kind === "session" ? { title: String(record["title"]) } : row),
  carries: () => false,
};

async function session(store: JournalStore, messages = 2): Promise<string> {
  const id = newId();
  const journal = await store.create(id, [{ kind: "session", title: `title of ${id}` }]);
  for (let n = 0; n < messages; n++) await journal.append({ kind: "message", n });
  await journal.close();
  return id;
}

/** With an older epoch before the current one. */
async function oldSession(store: JournalStore): Promise<string> {
  const id = await session(store, 3);
  const { journal } = await store.open(id);
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.append({ kind: "message", n: 10 });
  await journal.close();
  return id;
}

const folderOf = (root: string, id: string): string => join(root, "sessions", id);
const newest = (root: string, id: string): string =>
  join(
    folderOf(root, id),
    readdirSync(folderOf(root, id))
      .filter((name) => /^\d+\.jsonl$/.test(name))
      .sort()
      .at(-1)!,
  );
const count = async (records: AsyncIterable<unknown>): Promise<number> => (await Array.fromAsync(records)).length;

describe("no descriptor stays open", () => {
  test("after lists, reads, followers, packs, copies, and sessions that come and go", async () => {
    using here = place();
    const counting = new CountingDisk();
    const store = await openFolderStore(here.path, { disk: counting.disk, catalogue: false, summariser: titles });
    const id = await oldSession(store);
    expect(counting.open).toEqual([]);
    for (let i = 0; i < 3; i++) await store.list();
    await store.read(id);
    await count(store.history(id));
    await store.verify(id);
    await store.holder(id);
    const ending = new AbortController();
    for await (const _record of store.follow(id, { signal: ending.signal })) ending.abort();
    expect(counting.open).toEqual([]);
    await store.pack(id);
    await count(store.history(id));
    await store.verify(id);
    expect(counting.open).toEqual([]);
    // A torn end is put in order.
    appendFileSync(newest(here.path, id), "torn");
    await (await store.open(id)).journal.close();
    await store.delete(id);
    await store.gc({ graceMs: 0 });
    await store.close();
    expect(counting.open).toEqual([]);
  });

  test("a journal has two, however many segments it has begun; and none when it is closed", async () => {
    using here = place();
    const counting = new CountingDisk();
    await using store = await openFolderStore(here.path, {
      disk: counting.disk,
      catalogue: false,
      segmentBytesMax: 300,
    });
    const id = newId();
    const journal = await store.create(id, []);
    for (let n = 0; n < 10; n++) {
      await journal.append({ kind: "message", n, text: "x".repeat(200) });
      expect(counting.open).toHaveLength(2);
      expect(new Set(counting.open)).toEqual(new Set([newest(here.path, id)]));
    }
    expect(readdirSync(folderOf(here.path, id)).length).toBeGreaterThan(5);
    await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
    expect(counting.open).toHaveLength(2);
    await journal.close();
    expect(counting.open).toEqual([]);
  });

  test("also where what is read turns out to be unreadable", async () => {
    using here = place();
    const counting = new CountingDisk();
    await using store = await openFolderStore(here.path, { disk: counting.disk, catalogue: false, summariser: titles });
    const ids = [await oldSession(store), await oldSession(store), await oldSession(store)];
    writeFileSync(newest(here.path, ids[0]!), "\n".repeat(1_200_000));
    writeFileSync(
      newest(here.path, ids[1]!),
      Buffer.concat([sealed({ seq: 1, at: AT, kind: "segment", format: "9.0" })]),
    );
    writeFileSync(newest(here.path, ids[2]!), "x");
    const looks = [
      (id: string) => store.read(id),
      (id: string) => store.verify(id),
      (id: string) => count(store.history(id)),
      (id: string) => store.pack(id),
      (id: string) => store.open(id),
    ];
    for (const id of ids) {
      // A million strays take a second each time.
      for (const look of id === ids[0] ? looks.slice(0, 1) : looks) {
        await look(id).then(
          (found) => (found as Partial<Opened> | number as Partial<Opened>).journal?.close(),
          (error: unknown) => expect(error).toMatchObject({ name: "HoldfastError" }),
        );
        expect(counting.open).toEqual([]);
      }
    }
    await store.list();
    expect(counting.open).toEqual([]);
  });

  test("nor one of the system's, after a hundred lists", async (context) => {
    if (!existsSync("/proc/self/fd")) {
      console.log("not run: counting descriptors (needs /proc)");
      context.skip("needs /proc");
    }
    using here = place();
    await using store = await openFolderStore(here.path, { catalogue: false });
    await session(store);
    await store.list();
    const before = readdirSync("/proc/self/fd").length;
    for (let i = 0; i < 100; i++) await store.list();
    expect(readdirSync("/proc/self/fd").length).toBe(before);
  });
});

describe("what stands in the journal, and no writer of ours wrote", () => {
  const header = (id: string, members: object): Buffer =>
    sealed({ seq: 1, at: AT, kind: "segment", format: "1.0", session: id, segment: 1, epoch: 1, ...members });

  test.each([999, 0, -1, 1.5, Number.MAX_SAFE_INTEGER + 1, "1", null])(
    "a header that names epoch %j counts as damaged",
    async (epoch) => {
      using here = place();
      await using store = await openFolderStore(here.path);
      const id = await oldSession(store);
      const path = newest(here.path, id);
      const lines = readFileSync(path, "utf8").split("\n");
      const { crc: _crc, ...members } = JSON.parse(lines[0]!) as Record<string, unknown>;
      writeFileSync(path, Buffer.concat([sealed({ ...members, epoch }), Buffer.from(lines.slice(1).join("\n"))]));
      const { records } = await store.read(id);
      // Its second record begins an epoch, so that it is still told where that begins.
      expect(records.map(({ kind }) => kind)).toEqual(["segment", "epoch", "message", "closed"]);
    },
  );

  test("a header that names a later epoch: the segments before it still belong to the current one", async () => {
    using here = place();
    await using store = await openFolderStore(here.path, { segmentBytesMax: 300 });
    const id = await session(store, 8);
    const { records: written } = await store.read(id);
    const path = newest(here.path, id);
    const lines = readFileSync(path, "utf8").split("\n");
    const { crc: _crc, ...members } = JSON.parse(lines[0]!) as Record<string, unknown>;
    expect(members).toMatchObject({ kind: "segment", epoch: 1 });
    writeFileSync(path, Buffer.concat([sealed({ ...members, epoch: 999 }), Buffer.from(lines.slice(1).join("\n"))]));
    const { records } = await store.read(id);
    expect(records.map(({ seq }) => seq)).toEqual(written.map(({ seq }) => seq));
  });

  test("150,000 gaps", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = newId();
    mkdirSync(folderOf(here.path, id));
    const lines = [header(id, {})];
    for (let seq = 3; seq < 300_003; seq += 2) lines.push(sealed({ seq, at: AT, kind: "x" }));
    writeFileSync(join(folderOf(here.path, id), "000001.jsonl"), Buffer.concat(lines));
    expect((await store.verify(id)).missing).toHaveLength(150_000);
    expect((await store.read(id)).records).toHaveLength(150_001);
  });

  test("the highest number that there is: nothing is written behind it, and it can be read", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = await session(store);
    appendFileSync(newest(here.path, id), sealed({ seq: Number.MAX_SAFE_INTEGER, at: AT, kind: "x" }));
    const { journal } = await store.open(id);
    const before = treeOf(folderOf(here.path, id));
    await expect(journal.append({ kind: "more" })).rejects.toMatchObject({
      code: "STORE_FULL",
      facts: { limit: Number.MAX_SAFE_INTEGER },
    });
    await expect(journal.epoch(() => [{ kind: "epoch" }])).rejects.toMatchObject({ code: "STORE_FULL" });
    expect(treeOf(folderOf(here.path, id))).toEqual(before);
    await journal.close();
    expect((await store.read(id)).records.at(-1)).toMatchObject({ seq: Number.MAX_SAFE_INTEGER });
  });

  test("files whose names are no numbers of segments", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = await session(store);
    const folder = folderOf(here.path, id);
    for (const number of ["000000", "0000001", "0123456", "1234567890123456", "9".repeat(200), "1e3", "-00001"]) {
      writeFileSync(join(folder, `${number}.jsonl`), "x");
      writeFileSync(join(folder, `${number}.jsonl.zst`), "x");
      writeFileSync(join(folder, `${number}.jsonl.tail-3`), "x");
    }
    expect(listSegments(nodeDisk, folder)).toEqual([{ number: 1, name: "000001.jsonl", packed: false }]);
    writeFileSync(join(folder, "1234567.jsonl"), "x");
    writeFileSync(join(folder, "123456789012345.jsonl.zst"), "x");
    expect(listSegments(nodeDisk, folder).map(({ number }) => number)).toEqual([1, 1_234_567, 123_456_789_012_345]);
  });

  test("behind the segment with the highest number that a name can have, none is begun", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = await session(store);
    renameSync(newest(here.path, id), join(folderOf(here.path, id), `${SEGMENT_NUMBER_MAX}.jsonl`));
    const before = treeOf(folderOf(here.path, id));
    await expect(store.open(id)).rejects.toMatchObject({ code: "STORE_FULL", facts: { limit: SEGMENT_NUMBER_MAX } });
    expect(treeOf(folderOf(here.path, id))).toEqual(before);
    expect((await store.read(id)).records).toHaveLength(6);
  });

  test("claims whose names are no numbers of segments are nobody's", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = await session(store);
    const folder = folderOf(here.path, id);
    for (const number of ["000000", "0000009", "1234567890123456", "9".repeat(200), "1e3"])
      writeFileSync(join(folder, `${number}.claim`), "");
    // Not closed, so that the next segment is claimed.
    appendFileSync(newest(here.path, id), "torn");
    const { journal } = await store.open(id);
    await journal.append({ kind: "goes on" });
    await journal.close();
    expect(listSegments(nodeDisk, folder).map(({ number }) => number)).toEqual([1, 2]);
    writeFileSync(join(folder, `${SEGMENT_NUMBER_MAX}.claim`), "");
    appendFileSync(newest(here.path, id), "torn");
    await expect(store.open(id)).rejects.toMatchObject({ code: "STORE_FULL", facts: { limit: SEGMENT_NUMBER_MAX } });
  });

  test("a header that goes on from segment 0 goes on from the one before it", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = newId();
    mkdirSync(folderOf(here.path, id));
    const [first, second] = ["000001.jsonl", "000002.jsonl"].map((name) => join(folderOf(here.path, id), name));
    writeFileSync(first!, Buffer.concat([header(id, {}), sealed({ seq: 2, at: AT, kind: "x" })]));
    writeFileSync(second!, header(id, { seq: 3, segment: 2, after: { segment: 0, bytes: 0 } }));
    expect((await store.read(id)).records.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  test("many segments that say nothing are read once or twice each", async () => {
    using here = place();
    const counting = new CountingDisk();
    await using store = await openFolderStore(here.path, { disk: counting.disk, catalogue: false });
    const id = await session(store);
    for (let n = 2; n <= 100; n++)
      writeFileSync(join(folderOf(here.path, id), `${String(n).padStart(6, "0")}.jsonl`), "");
    counting.reset();
    expect((await store.verify(id)).records).toBe(6);
    expect(counting.calls.get("open")).toBeLessThan(400);
  });
});

/** The real disk, without space for a write of this size. */
function fullAt(bytes: number): Disk {
  const bound = <T extends object>(target: T, name: PropertyKey): unknown => {
    const value: unknown = Reflect.get(target, name);
    return typeof value === "function" ? value.bind(target) : value;
  };
  const small = (file: DiskFile): DiskFile =>
    new Proxy(file, {
      get(target, name) {
        if (name !== "write") return bound(target, name);
        return (given: Uint8Array) => {
          if (given.length >= bytes) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
          return target.write(given);
        };
      },
    });
  return new Proxy(nodeDisk, {
    get(target, name) {
      if (name !== "open") return bound(target, name);
      return (...given: Parameters<Disk["open"]>) => small(target.open(...given));
    },
  });
}

describe("writers write nothing that readers do not read", () => {
  test("a unit of more than 256 MiB", async () => {
    using here = place();
    await using store = await openFolderStore(here.path, { durability: "process" });
    const id = newId();
    const journal = await store.create(id, []);
    const large = { kind: "message", text: "x".repeat(60 * 1024 * 1024) };
    const before = statSync(newest(here.path, id)).size;
    await expect(journal.append([large, large, large, large, large])).rejects.toMatchObject({
      code: "RECORD_TOO_LARGE",
      facts: { records: 5, limitBytes: 256 * 1024 * 1024 },
    });
    expect(statSync(newest(here.path, id)).size).toBeLessThan(before + 1000);
    await journal.append({ kind: "goes on" });
    await journal.close();
    expect((await store.read(id)).records.map(({ kind }) => kind)).toEqual(["segment", "opened", "goes on", "closed"]);
  });

  test("an epoch may be larger than a unit, also as a writer's first records: only the disk refuses it", async () => {
    using here = place();
    const disk = fullAt(1024 * 1024);
    await using store = await openFolderStore(here.path, { disk });
    const id = newId();
    await (await store.create(id, [])).close();
    const { journal } = await store.open(id);
    const large = { kind: "message", text: "x".repeat(60 * 1024 * 1024) };
    await expect(journal.epoch(() => [{ kind: "epoch" }, large, large, large, large, large])).rejects.toMatchObject({
      code: "STORE_FULL",
    });
    await journal.close();
    const kinds = (await store.read(id)).records.map(({ kind }) => kind);
    expect(kinds).toEqual(["segment", "closed", "opened", "closed"]);
  });

  test("a row of somebody else's summariser that is nested too deep, or is no JSON", async () => {
    using here = place();
    let row: unknown = null;
    const summariser = { add: () => row, carries: () => true } as unknown as Summariser;
    await using store = await openFolderStore(here.path, { summariser });
    const journal = await store.create(newId(), []);
    await journal.append({ kind: "fine" });
    for (const bad of [deep(RECORD_LEVELS_MAX), Number.NaN, { when: new Date() }]) {
      row = bad;
      await expect(journal.append({ kind: "refused" })).rejects.toMatchObject({ code: "RECORD_NOT_JSON" });
    }
    row = { title: "fine" };
    await journal.append({ kind: "goes on" });
    await journal.close();
    expect((await store.read(journal.id)).records.map(({ kind }) => kind)).toEqual([
      "segment",
      "opened",
      "fine",
      "goes on",
      "closed",
    ]);
  });

  test("a segment that could not be left for so long that it is full", async () => {
    const written: number[] = [];
    const file = {
      path: "/store/000001.jsonl",
      stat: () => ({}),
      write: (bytes: Buffer) => written.push(bytes.length) && bytes.length,
      close: () => {},
    };
    const disk = { open: () => file } as unknown as Disk;
    const ledger = new Ledger({ clock: () => 0 });
    const at = { folder: "/store", session: newId(), segment: 1, epoch: 1, goesOn: true };
    const lease = { assertHeld: () => {}, release: () => {} } as never;
    const prepared = ledger.prepare([{ kind: "x" }]);
    const fits = new SegmentWriter(disk, ledger, lease, { ...at, size: SEGMENT_BYTES_MAX - prepared.bytes.length });
    fits.put(prepared);
    expect(written).toHaveLength(1);
    const full = new SegmentWriter(disk, ledger, lease, { ...at, size: SEGMENT_BYTES_MAX - prepared.bytes.length + 1 });
    expect(() => full.put(prepared)).toThrow(
      expect.objectContaining({ code: "STORE_FULL", facts: { path: file.path, limit: SEGMENT_BYTES_MAX } }),
    );
    expect(written).toHaveLength(1);
  });

  test("segments are not larger than what is read, whatever is asked for", async () => {
    using here = place();
    const disk: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        const file = nodeDisk.open(path, mode);
        // Large units leave a hole: what is in them does not matter here.
        const write: DiskFile["write"] = (bytes) => {
          if (bytes.length < 1024 * 1024) return file.write(bytes);
          file.truncate(file.stat().size + bytes.length);
          return bytes.length;
        };
        return new Proxy(file, { get: (target, name) => (name === "write" ? write : bound(target, name)) });
      },
    };
    await using store = await openFolderStore(here.path, {
      disk,
      segmentBytesMax: Number.POSITIVE_INFINITY,
      durability: "process",
    });
    const id = newId();
    const journal = await store.create(id, []);
    const large = { kind: "message", text: "x".repeat(50 * 1024 * 1024) };
    for (let i = 0; i < 6; i++) journal.appendSync(large);
    await journal.flush();
    await journal.append({ kind: "in the next segment" });
    expect(readdirSync(folderOf(here.path, id)).filter((name) => name.endsWith(".jsonl"))).toHaveLength(2);
    await journal.close();
  });
});

test("S11: a short write that the disk then continues is no failure", async () => {
  using here = place();
  const disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      const write: DiskFile["write"] = (bytes) => file.write(bytes.subarray(0, 7));
      return new Proxy(file, { get: (target, name) => (name === "write" ? write : bound(target, name)) });
    },
  };
  await using store = await openFolderStore(here.path, { disk });
  const journal = await store.create(newId(), []);
  await journal.append([{ kind: "one" }, { kind: "two" }]);
  await journal.close();
  const { records, recovery } = await store.read(journal.id);
  expect(records.map(({ kind }) => kind)).toEqual(["segment", "opened", "one", "two", "closed"]);
  expect(recovery).toMatchObject({ unclean: false, damaged: [], missing: [] });
});

function deep(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

/** As Node throws it: a used-up quota has no name in libuv. */
function systemError(errno: string): Error {
  const facts = errno === "EDQUOT" ? { code: "UNKNOWN", errno: -constants.errno.EDQUOT } : { code: errno };
  return Object.assign(new Error("it failed"), facts);
}

describe.each(["at once", "after a short write"])("P8: a write that fails %s is told as what it is", (when) => {
  test.each([
    ["EIO", "STORE_IO", /the disk reported an error/],
    ["ENOSPC", "STORE_FULL", /no space left/],
    ["EDQUOT", "STORE_FULL", /quota/],
    ["EFBIG", "STORE_FULL", /maximum file size/],
    ["EROFS", "STORE_FORBIDDEN", /read-only/],
  ])("%s", async (errno, code, words) => {
    using here = place();
    let short = 0;
    let failing = false;
    const disk: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        const file = nodeDisk.open(path, mode);
        const write: DiskFile["write"] = (bytes) => {
          if (!failing || !path.endsWith("000001.jsonl")) return file.write(bytes);
          if (when === "at once" || bytes.length <= short) throw systemError(errno);
          short = bytes.length >> 1;
          return file.write(bytes.subarray(0, bytes.length - short));
        };
        return new Proxy(file, { get: (target, name) => (name === "write" ? write : bound(target, name)) });
      },
    };
    await using store = await openFolderStore(here.path, { disk });
    const journal = await store.create(newId(), []);
    failing = true;
    await expect(journal.append({ kind: "refused" })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(words),
      facts: { errno },
    });
    failing = false;
    await journal.append({ kind: "goes on" });
    await journal.close();
    expect((await store.read(journal.id)).records.map(({ kind }) => kind)).toEqual([
      "segment",
      "opened",
      "goes on",
      "closed",
    ]);
  });
});

function bound(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target);
  return typeof value === "function" ? value.bind(target) : value;
}

describe("what is listed and gone when it is opened", () => {
  /** A disk on which something happens between a list of a session's files and the opening of the first of them. */
  function disturbed(id: string, happen: () => void): Disk {
    let listed = false;
    let happened = false;
    return {
      ...nodeDisk,
      list: (path) => {
        const names = nodeDisk.list(path);
        if (path.endsWith(id)) listed = true;
        return names;
      },
      open: (path, mode) => {
        if (listed && !happened && path.includes(id) && mode === "read") {
          happened = true;
          happen();
        }
        return nodeDisk.open(path, mode);
      },
    };
  }
  type Look = (store: JournalStore, id: string) => Promise<unknown>;
  const looks: [what: string, look: Look][] = [
    ["history", (store, id) => count(store.history(id))],
    ["verify", async (store, id) => (await store.verify(id)).records],
    ["list", async (store) => (await store.list()).sessions.map(({ head, unreadable }) => ({ head, unreadable }))],
    [
      "follow",
      async (store, id) => {
        const ending = new AbortController();
        const seen: number[] = [];
        for await (const { seq } of store.follow(id, { signal: ending.signal }))
          if (seen.push(seq) === 11) ending.abort();
        return seen;
      },
    ],
  ];

  test.each(looks)("a segment that is packed in between is read in its packed form: %s", async (_what, look) => {
    using here = place();
    await using writer = await openFolderStore(here.path, { catalogue: false });
    const id = await oldSession(writer);
    const before = await look(writer, id);
    const folder = folderOf(here.path, id);
    const plain = join(folder, "000001.jsonl");
    await writer.pack(id);
    const packed = readFileSync(`${plain}.zst`);
    // Unpacked again, and packed at the very instant.
    writeFileSync(plain, await unpacked(writer, id));
    rmSync(`${plain}.zst`);
    chmodSync(plain, 0o600);
    const disk = disturbed(id, () => {
      writeFileSync(`${plain}.zst`, packed);
      rmSync(plain);
    });
    await using reader = await openFolderStore(here.path, { disk, catalogue: false });
    expect(await look(reader, id)).toEqual(before);
  });

  test.each(looks)("a session that is deleted in between: %s", async (what, look) => {
    using here = place();
    await using writer = await openFolderStore(here.path, { catalogue: false });
    const id = await oldSession(writer);
    const folder = folderOf(here.path, id);
    const disk = disturbed(id, () => renameSync(folder, join(here.path, "trash", `${id}-1`)));
    await using reader = await openFolderStore(here.path, { disk, catalogue: false });
    const outcome = await look(reader, id).catch((error: { code?: string }) => error.code);
    expect(outcome).toEqual({ history: "SESSION_NOT_FOUND", verify: "SESSION_NOT_FOUND", list: [], follow: [] }[what]);
  });

  async function unpacked(store: JournalStore, id: string): Promise<Buffer> {
    const lines: Buffer[] = [];
    for await (const { crc: _crc, ...members } of store.history(id)) {
      if (members.kind === "segment" && members["segment"] === 2) break;
      lines.push(sealed(members));
    }
    return Buffer.concat(lines);
  }
});

describe("C22: the catalogue", () => {
  const derived = (root: string): string => join(root, "catalog.sqlite");
  async function filled(root: string): Promise<{ list: unknown }> {
    await using store = await openFolderStore(root, { summariser: titles });
    for (let i = 0; i < 5; i++) await session(store);
    return { list: await store.list() };
  }

  const WITHOUT_TYPES =
    "CREATE TABLE copied AS SELECT * FROM sessions; DROP TABLE sessions; ALTER TABLE copied RENAME TO sessions";
  const harms: [what: string, harm: (path: string) => void][] = [
    ["garbage", (path) => writeFileSync(path, "not a database at all".repeat(500))],
    ["emptied", (path) => writeFileSync(path, "")],
    ["removed", (path) => rmSync(path)],
    ["of another version", (path) => change(path, "PRAGMA user_version=77")],
    ["with a table without types", (path) => change(path, `${WITHOUT_TYPES}; UPDATE sessions SET head = 'many'`)],
    ["with a column that is none", (path) => change(path, "UPDATE sessions SET size = -1")],
    ["with a seq that is none", (path) => change(path, "UPDATE sessions SET head = -1")],
    ["with a seq that is no exact number", (path) => change(path, "UPDATE sessions SET head = 9007199254740992")],
    ["with a segment that is none", (path) => change(path, "UPDATE sessions SET segment = -1")],
    ["with a summary that is no JSON", (path) => change(path, "UPDATE sessions SET summary = '{\"rec'")],
    [
      "with a summary that is nested too deep",
      (path) => change(path, `UPDATE sessions SET summary = '${"[".repeat(5000)}${"]".repeat(5000)}'`),
    ],
    [
      "with a summary of a megabyte and more",
      (path) => change(path, `UPDATE sessions SET summary = '{"title":"${"x".repeat(1_100_000)}"}'`),
    ],
    ["with a summary that is a list", (path) => change(path, "UPDATE sessions SET summary = '[1]'")],
    ["with a summary that is a text", (path) => change(path, `UPDATE sessions SET summary = '"title"'`)],
    ["with a trigger", (path) => change(path, "CREATE TRIGGER t AFTER INSERT ON sessions BEGIN SELECT 1; END")],
    ["with a table of somebody else's", (path) => change(path, "CREATE TABLE others (a)")],
    [
      "with a view that never ends",
      (path) =>
        change(
          path,
          "DROP TABLE sessions; CREATE VIEW sessions AS WITH RECURSIVE r(id) AS (SELECT 'x' UNION ALL SELECT id FROM r) SELECT id, 1 AS segment, 1 AS size, 1 AS mtime, '' AS at, 1 AS head, 1 AS closed, 'x' AS summary FROM r",
        ),
    ],
    ["larger than any of ours", (path) => truncateSync(path, 600 * 1024 * 1024)],
  ];
  /** Without the table's types, as damage to its pages leaves it. */
  const retype = (path: string, sql: string): void => {
    const schema = "UPDATE sqlite_schema SET sql = ";
    const open = (): DatabaseSync => new DatabaseSync(path, { defensive: false } as object);
    using before = open();
    const { sql: typed } = before.prepare("SELECT sql FROM sqlite_schema WHERE name = 'sessions'").get() as {
      sql: string;
    };
    const untyped = typed.replace("STRICT, ", "");
    expect(untyped).not.toBe(typed);
    const where = " WHERE name = 'sessions'";
    before.exec("PRAGMA writable_schema=ON");
    before.prepare(`${schema}?${where}`).run(untyped);
    before.close();
    using between = open();
    between.exec(sql);
    between.exec("PRAGMA writable_schema=ON");
    between.prepare(`${schema}?${where}`).run(typed);
  };
  for (const column of ["id", "segment", "size", "mtime", "at", "stamp", "head", "summary"]) {
    const what = `with a column of another type: ${column}`;
    harms.push([what, (path) => retype(path, `UPDATE sessions SET ${column} = CAST(${column} AS BLOB)`)]);
  }
  harms.push(["with a number for a time", (path) => retype(path, "UPDATE sessions SET at = CAST(5 AS BLOB)")]);

  const openIn = (root: string): string[] =>
    existsSync("/proc/self/fd")
      ? readdirSync("/proc/self/fd").filter((fd) => {
          const link = `/proc/self/fd/${fd}`;
          return existsSync(link) && readlinkSync(link).startsWith(root);
        })
      : [];

  test.each(harms)("%s: the list is the same, and it is made again, once", async (_what, harm) => {
    using here = place();
    const { list } = await filled(here.path);
    harm(derived(here.path));
    for (const ending of ["-wal", "-shm"]) rmSync(derived(here.path) + ending, { force: true });
    const counting = new CountingDisk();
    {
      await using store = await openFolderStore(here.path, { summariser: titles, disk: counting.disk });
      expect(await store.list()).toEqual(list);
      expect(counting.bytesRead(), "from the files").toBeGreaterThan(0);
    }
    expect(openIn(here.path), "no descriptor stays open").toEqual([]);
    counting.reset();
    await using store = await openFolderStore(here.path, { summariser: titles, disk: counting.disk });
    expect(await store.list()).toEqual(list);
    expect(counting.bytesRead(), "from the catalogue").toBe(0);
    expect(statSync(derived(here.path)).size).toBeLessThan(1024 * 1024);
  });

  test("a row that is too large for it is made by every list", async () => {
    using here = place();
    const large: Summariser = { add: () => ({ title: "x".repeat(1_100_000) }), carries: () => false };
    const counting = new CountingDisk();
    await using small = await openFolderStore(here.path, { summariser: titles });
    const other = await session(small);
    await using store = await openFolderStore(here.path, { summariser: large, disk: counting.disk });
    const id = await session(store);
    for (let i = 0; i < 2; i++) {
      await using again = await openFolderStore(here.path, { summariser: large, disk: counting.disk });
      counting.reset();
      expect((await again.list()).sessions).toMatchObject([
        { id, summary: { title: "x".repeat(1_100_000) } },
        { id: other, summary: { title: `title of ${other}` } },
      ]);
      expect(new Set(counting.read.keys()), "the others are in it").toEqual(new Set([newest(here.path, id)]));
    }
  });

  function change(path: string, sql: string): void {
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
  }
});

describe("lists of what is hard to read", () => {
  test("a session whose newest segment is packed has its row", async () => {
    using here = place();
    await using store = await openFolderStore(here.path, { summariser: titles, catalogue: false });
    const id = await oldSession(store);
    const [before] = (await store.list()).sessions;
    await store.pack(id);
    rmSync(newest(here.path, id));
    const [after] = (await store.list()).sessions;
    expect(after).toMatchObject({ id, closed: false, summary: before!.summary, head: expect.any(Number) });
    expect(after).not.toHaveProperty("unreadable");
  });

  test("no whole record, in any segment: it is listed, with the reason", async () => {
    using here = place();
    await using store = await openFolderStore(here.path, { summariser: titles });
    const id = await session(store);
    writeFileSync(newest(here.path, id), "nothing\n".repeat(100));
    expect((await store.list()).sessions).toMatchObject([
      { id, unreadable: { code: "JOURNAL_UNREADABLE", message: expect.stringContaining("no whole record") } },
    ]);
  });

  test("a summary that is far back is looked for so far, and no further", async () => {
    using here = place();
    const counting = new CountingDisk();
    await using store = await openFolderStore(here.path, { summariser: titles, catalogue: false, disk: counting.disk });
    const id = await session(store);
    const path = newest(here.path, id);
    // A hole, and a whole record without a summary behind it: no writer with a summariser would write that.
    const far = (seq: number, bytes: number): void => {
      truncateSync(path, statSync(path).size + bytes);
      appendFileSync(path, Buffer.concat([Buffer.from("\n"), sealed({ seq, synced: seq, at: AT, kind: "x" })]));
    };
    far(100, 60 * 1024 * 1024);
    expect((await store.list()).sessions[0]).toMatchObject({ head: 100, summary: { title: `title of ${id}` } });
    far(101, 60 * 1024 * 1024);
    counting.reset();
    expect((await store.list()).sessions[0]).toMatchObject({
      id,
      unreadable: { code: "JOURNAL_UNREADABLE", message: expect.stringContaining("further back") },
    });
    expect(counting.bytesRead()).toBeLessThan(110 * 1024 * 1024);
  });
});

describe("followers", () => {
  async function followed(
    store: JournalStore,
    id: string,
    counting: CountingDisk,
    during: () => Promise<void>,
  ): Promise<number[]> {
    const ending = new AbortController();
    const seen: number[] = [];
    const following = (async () => {
      for await (const { seq } of store.follow(id, { signal: ending.signal })) seen.push(seq);
    })();
    await during();
    ending.abort();
    await following;
    expect(counting.open).toEqual([]);
    return seen;
  }
  const polls = (counting: CountingDisk, wanted: number) => async (): Promise<void> => {
    // Looks are counted by the lists that they begin with.
    const from = counting.calls.get("list") ?? 0;
    while ((counting.calls.get("list") ?? 0) < from + wanted) await sleep(20);
  };

  test("do not read a segment again at each look", async () => {
    using here = place();
    const counting = new CountingDisk();
    await using store = await openFolderStore(here.path, { disk: counting.disk, catalogue: false });
    const id = await session(store, 200);
    const size = statSync(newest(here.path, id)).size;
    counting.reset();
    const seen = await followed(store, id, counting, polls(counting, 6));
    expect(seen).toHaveLength(204);
    expect(counting.bytesRead(), "once for the header, once for the records").toBeLessThan(2 * size + 100);
  });

  test("do not read megabytes of garbage again until something has changed", async () => {
    using here = place();
    const counting = new CountingDisk();
    await using store = await openFolderStore(here.path, { disk: counting.disk, catalogue: false });
    const id = await session(store);
    const path = newest(here.path, id);
    const garbage = 3 * 1024 * 1024;
    appendFileSync(path, Buffer.alloc(garbage));
    counting.reset();
    const seen = await followed(store, id, counting, async () => {
      await polls(counting, 5)();
      expect(counting.bytesRead()).toBeLessThan(1.5 * garbage);
      appendFileSync(path, sealed({ seq: 7, synced: 7, at: AT, kind: "late" }));
      await polls(counting, 3)();
    });
    expect(seen.at(-1), "what changes is seen").toBe(7);
  });

  test("P10: refuse a newer format, as all readers do", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = await session(store);
    const path = newest(here.path, id);
    writeFileSync(
      path,
      Buffer.concat([sealed({ seq: 1, at: AT, kind: "segment", format: "2.0", session: id, segment: 1, epoch: 1 })]),
    );
    await expect(count(store.follow(id))).rejects.toMatchObject({ code: "FORMAT_NEWER" });
  });
});

test("a folder of sessions that a link leads to is not emptied", async () => {
  using here = place();
  const elsewhere = join(here.path, "elsewhere");
  mkdirSync(join(elsewhere, `${newId()}-1`), { recursive: true });
  await using store = await openFolderStore(join(here.path, "store"));
  const disk: Disk = {
    ...nodeDisk,
    stat: (path) => (path.endsWith("trash") ? { ...nodeDisk.stat(path)!, kind: "link" } : nodeDisk.stat(path)),
  };
  await using linked = await openFolderStore(join(here.path, "store"), { disk });
  await expect(linked.gc({ graceMs: 0 })).rejects.toMatchObject({ code: "PATH_UNSAFE" });
  expect(readdirSync(elsewhere)).toHaveLength(1);
  expect((await store.gc({ graceMs: 0 })).removed).toEqual([]);
});

describe("files that have another name", () => {
  /** With a tail: its first writer did not close it. */
  async function takenOver(store: JournalStore, root: string): Promise<string> {
    const id = await session(store, 3);
    appendFileSync(newest(root, id), "torn");
    const { journal } = await store.open(id);
    await journal.append({ kind: "goes on" });
    await journal.close();
    return id;
  }
  const seqs = async (store: JournalStore, id: string): Promise<number[]> => {
    const { records } = await store.read(id);
    const { damaged, missing } = await store.verify(id);
    expect([damaged, missing]).toEqual([[], []]);
    const history = await Array.fromAsync(store.history(id));
    expect(history).toEqual(records);
    return records.map(({ seq }) => seq);
  };

  test("are read: a writer was killed between giving a name and taking the old one away", async () => {
    using here = place();
    await using store = await openFolderStore(here.path, { summariser: titles, catalogue: false });
    const id = await takenOver(store, here.path);
    const folder = folderOf(here.path, id);
    const [before, list] = [await seqs(store, id), await store.list()];
    const names = readdirSync(folder).filter((name) => name.includes(".jsonl"));
    expect(names.some((name) => name.includes(".tail-"))).toBe(true);
    for (const name of names) linkSync(join(folder, name), join(folder, `${name}.0123456789ab.tmp`));
    expect(await seqs(store, id)).toEqual(before);
    expect(await store.list()).toEqual(list);
    const { journal } = await store.open(id);
    await journal.append({ kind: "more" });
    await journal.close();
    for (const name of names) expect(statSync(join(folder, name)).nlink, name).toBe(1);
    expect((await seqs(store, id)).slice(0, before.length)).toEqual(before);
  });

  test.each([true, false])("are not written to: a snapshot stays what it was (closed: %s)", async (closed) => {
    using here = place();
    const root = join(here.path, "store");
    await using store = await openFolderStore(root, { summariser: titles });
    await using other = await openFolderStore(root, { summariser: titles });
    const id = await session(store);
    if (!closed) appendFileSync(newest(root, id), "torn");
    const snapshot = join(here.path, "snapshot");
    linkSync(newest(root, id), snapshot);
    const content = readFileSync(snapshot);
    const [row] = (await other.list()).sessions;
    const { journal, records } = await store.open(id);
    await journal.append({ kind: "more" });
    const [open] = (await other.list()).sessions;
    expect(open, "lists see that it goes on").toMatchObject({ id, closed: false });
    expect(open!.head).toBeGreaterThan(row!.head);
    await journal.close();
    expect(readFileSync(snapshot).equals(content)).toBe(true);
    expect((await seqs(store, id)).length).toBeGreaterThan(records.length);
  });
});
