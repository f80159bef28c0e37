import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { JournalStore, Summariser } from "holdfast/store";
import { expect, test } from "vitest";
import { STRAYS_MAX } from "../../../../../src/journal/lines/chain.ts";
import { DamageAccount } from "../../../../../src/stores/folder/files/read-epoch.ts";
import { CountingDisk } from "../../../../counting-disk.ts";
import { sealed } from "../../../../hostile/hostile-store.ts";
import { place } from "../../../../place.ts";

/** Lists, and accounts of damage, where there is more than is read, or less than was there a moment ago. */

const titles: Summariser = {
  add: (row, record) => (record.kind === "session" ? { title: String(record["title"]) } : row),
  carries: () => false,
};

/** A session of two epochs, the first of this many bytes, whose newest segment is lost: the packed one is left. */
async function packedOnly(store: JournalStore, root: string, bytes: number): Promise<string> {
  const id = newId();
  const journal = await store.create(id, [{ kind: "session", title: "packed" }]);
  for (let i = 0; i < bytes; i += 10_000) await journal.append({ kind: "message", i, text: "x".repeat(10_000) });
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  await store.pack(id);
  rmSync(join(root, "sessions", id, "000002.jsonl"));
  return id;
}

test("P9: a packed segment is looked at from its end, so far and no further", async () => {
  using here = place();
  // Without a summariser no row is written.
  await using writer = await openFolderStore(here.path, { catalogue: false, durability: "process" });
  const near = await packedOnly(writer, here.path, 900_000);
  const far = await packedOnly(writer, here.path, 1_400_000);
  await using store = await openFolderStore(here.path, { catalogue: false, summariser: titles });
  const { sessions } = await store.list();
  expect(sessions.find(({ id }) => id === near)).toMatchObject({ closed: false, summary: { title: "packed" } });
  expect(sessions.find(({ id }) => id === near)).not.toHaveProperty("unreadable");
  expect(sessions.find(({ id }) => id === far)).toMatchObject({
    unreadable: { code: "JOURNAL_UNREADABLE", message: expect.stringContaining("further back") },
  });
  // A writer with a summariser repeats the row, so that it is always near.
  await using repeating = await openFolderStore(here.path, { catalogue: false, summariser: titles });
  const long = await packedOnly(repeating, here.path, 1_400_000);
  const row = (await store.list()).sessions.find(({ id }) => id === long);
  expect(row).toMatchObject({ summary: { title: "packed" } });
  expect(row).not.toHaveProperty("unreadable");
});

test("P9: a packed segment that lost its end is listed and read as far as it goes", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false, summariser: titles });
  const id = await packedOnly(store, here.path, 200_000);
  const path = join(here.path, "sessions", id, "000001.jsonl.zst");
  writeFileSync(path, readFileSync(path).subarray(0, -1));
  const [row] = (await store.list()).sessions;
  expect(row).toMatchObject({ id, closed: false, summary: { title: "packed" } });
  expect(row).not.toHaveProperty("unreadable");
  expect((await store.read(id)).records.map(({ kind }) => kind)).toContain("message");
});

test("a session whose files are renamed each time they are looked at is listed as unreadable, and the list ends", async () => {
  using here = place();
  await using writer = await openFolderStore(here.path, { catalogue: false });
  const ids = [newId(), newId()];
  for (const id of ids) await (await writer.create(id, [])).close();
  let looks = 0;
  const disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      if (path.includes(ids[0]!) && mode === "read") {
        looks++;
        throw Object.assign(new Error("it has another name by now"), { code: "ENOENT" });
      }
      return nodeDisk.open(path, mode);
    },
  };
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  const { sessions } = await store.list();
  expect(sessions.find(({ id }) => id === ids[0])).toMatchObject({ unreadable: { code: "STORE_IO" } });
  expect(sessions.find(({ id }) => id === ids[1])).not.toHaveProperty("unreadable");
  expect(looks, "four times").toBe(4);
});

test.each([
  ["EACCES", "STORE_FORBIDDEN", "list"],
  ["EMFILE", "STORE_IO", "open"],
] as const)("a session is created although the others cannot be listed: %s", async (errno, code, call) => {
  using here = place();
  const [first, second] = [newId(), newId()];
  {
    await using store = await openFolderStore(here.path);
    await (await store.create(first, [])).close();
  }
  let isFailing = false;
  const fail = (path: string): void => {
    if (isFailing && (path.endsWith("sessions") || path.includes(first)))
      throw Object.assign(new Error("on purpose"), { code: errno });
  };
  const disk: Disk = {
    ...nodeDisk,
    list: (path) => {
      if (call === "list") fail(path);
      return nodeDisk.list(path);
    },
    open: (path, mode) => {
      if (call === "open") fail(path);
      return nodeDisk.open(path, mode);
    },
  };
  await using store = await openFolderStore(here.path, { disk, catalogue: false });
  isFailing = true;
  await expect(store.list()).rejects.toMatchObject({ code });
  const journal = await store.create(second, []);
  isFailing = false;
  await journal.close();
  expect((await store.list()).sessions.map((listed) => listed.id)).toEqual([second, first]);
  expect(readdirSync(join(here.path, "sessions")).sort()).toEqual([first, second].sort());
});

test("P9: an error that is not the disk's makes one session unreadable, and says which", async () => {
  using here = place();
  await using writer = await openFolderStore(here.path, { catalogue: false });
  const ids = [newId(), newId(), newId()];
  for (const id of ids) await (await writer.create(id, [{ kind: "session", title: id }])).close();
  const summariser: Summariser = {
    add: (row, record) => {
      if (record["title"] === ids[0]) throw new TypeError("a summariser with a bug");
      return titles.add(row, record);
    },
    carries: () => false,
  };
  const open: Disk["open"] = (path, mode) => {
    if (path.includes(ids[1]!)) throw Object.assign(new Error("too long a text"), { code: "ERR_STRING_TOO_LONG" });
    return nodeDisk.open(path, mode);
  };
  await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, open }, catalogue: false, summariser });
  const { sessions } = await store.list();
  const why = (id: string) => sessions.find((listed) => listed.id === id)?.unreadable;
  for (const [id, words] of [
    [ids[0]!, "a summariser with a bug"],
    [ids[1]!, "too long a text"],
  ] as const) {
    const path = join(here.path, "sessions", id);
    const message = `The session in ${path} cannot be read: ${words}. Nothing was touched. Verify it.`;
    expect(why(id)).toEqual({ code: "JOURNAL_UNREADABLE", message });
  }
  expect(why(ids[2]!)).toBeUndefined();
});

test("a session whose newest segment gets another name right after it was listed is looked at again", async () => {
  using here = place();
  await using writer = await openFolderStore(here.path, { catalogue: false });
  const id = newId();
  await (await writer.create(id, [])).close();
  let looks = 0;
  const stat: Disk["stat"] = (path) => (path.endsWith("000001.jsonl") && looks++ === 0 ? null : nodeDisk.stat(path));
  await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, stat }, catalogue: false });
  const [row] = (await store.list()).sessions;
  expect(row).toMatchObject({ id, closed: true });
  expect(row).not.toHaveProperty("unreadable");
});

test("S20: a list notices a segment that was changed, by its size and by its time alone", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { summariser: titles });
  const id = newId();
  await (await store.create(id, [{ kind: "session", title: "one" }])).close();
  const path = join(here.path, "sessions", id, "000001.jsonl");
  const shown = async (): Promise<unknown> => (await store.list()).sessions[0]?.summary;
  expect(await shown()).toEqual({ title: "one" });
  const { atime, mtime } = statSync(path);
  const retitled = (title: string): Buffer =>
    Buffer.concat(
      readFileSync(path, "utf8")
        .trimEnd()
        .split("\n")
        .map((text) => {
          const { crc: _crc, summary: _summary, ...members } = JSON.parse(text) as Record<string, unknown>;
          return sealed(members["kind"] === "session" ? { ...members, title } : members);
        }),
    );
  // As long as it was, and later.
  writeFileSync(path, retitled("two").toString().padEnd(statSync(path).size, "\n"));
  utimesSync(path, atime, new Date(mtime.getTime() + 5000));
  expect(await shown()).toEqual({ title: "two" });
  // Longer, at the same time.
  const later = statSync(path).mtime;
  writeFileSync(path, `${retitled("three")}${"\n".repeat(200)}`);
  utimesSync(path, atime, later);
  expect(await shown()).toEqual({ title: "three" });
});

test("a summary that is many records back is looked for so far, and no further", async () => {
  using here = place();
  const id = newId();
  const folder = join(here.path, "sessions", id);
  const at = "2026-11-15T02:30:00.123Z";
  const lines = [sealed({ seq: 1, at, kind: "segment", format: "1.0", session: id, segment: 1, epoch: 1 })];
  const text = "x".repeat(150);
  for (let seq = 2; seq < 80_000; seq++) lines.push(sealed({ seq, at, kind: "x", text }));
  const bytes = Buffer.concat(lines);
  expect(bytes.length).toBeGreaterThan(16 * 1024 * 1024);
  const counting = new CountingDisk();
  await using store = await openFolderStore(here.path, { summariser: titles, catalogue: false, disk: counting.disk });
  mkdirSync(folder);
  writeFileSync(join(folder, "000001.jsonl"), bytes, { mode: 0o600 });
  const [row] = (await store.list()).sessions;
  expect(row).toMatchObject({ id, unreadable: { message: expect.stringContaining("further back") } });
  expect(counting.bytesRead()).toBeLessThan(bytes.length + 4 * 1024 * 1024);
});

test("P9: more damage than can be held in memory makes a journal unreadable, over all its segments", () => {
  const tailWith = (count: number) => {
    const damaged = new Array(count).fill({ offset: 3, end: 10, why: "corrupt", seq: 2 });
    return { damaged, missing: [{ from: 3, to: 4 }], cut: 20 } as unknown as Parameters<DamageAccount["add"]>[2];
  };
  const scan = { end: 25 } as Parameters<DamageAccount["add"]>[1];
  const account = new DamageAccount();
  account.add("000001.jsonl", scan, tailWith(1));
  expect(account.recovery()).toEqual({
    unclean: true,
    cutBytes: 5,
    damaged: [{ segment: "000001.jsonl", offset: 3, bytes: 7, why: "corrupt", seq: 2 }],
    missing: [{ from: 3, to: 4 }],
  });
  account.add("000002.jsonl", scan, tailWith(STRAYS_MAX - 1));
  expect(() => account.add("000003.jsonl", scan, tailWith(1))).toThrow(
    expect.objectContaining({
      code: "JOURNAL_UNREADABLE",
      facts: { segment: "000003.jsonl", strays: STRAYS_MAX },
      message: expect.stringContaining("000003.jsonl"),
    }),
  );
});
