import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { type JournalStore, openFolderStore, type Summariser } from "holdfast/store";
import { expect, test } from "vitest";
import { STRAYS_MAX } from "../../src/journal/lines/chain.ts";
import { DamageAccount } from "../../src/stores/folder/files/read-epoch.ts";
import { place } from "../place.ts";

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

test("P9: a packed segment without its table is listed as unreadable, and read all the same", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false, summariser: titles });
  const id = await packedOnly(store, here.path, 10_000);
  const path = join(here.path, "sessions", id, "000001.jsonl.zst");
  writeFileSync(path, nodeRead(path).subarray(0, -1));
  expect((await store.list()).sessions).toMatchObject([
    { id, unreadable: { code: "JOURNAL_UNREADABLE", message: expect.stringContaining("no whole record") } },
  ]);
  expect((await store.read(id)).records.map(({ kind }) => kind)).toContain("message");
});

function nodeRead(path: string): Buffer {
  const file = nodeDisk.open(path, "read");
  const bytes = Buffer.alloc(file.stat().size);
  file.read(bytes, 0, bytes.length, 0);
  file.close();
  return bytes;
}

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
  expect(looks, "four times, under its plain and its packed name").toBe(8);
});

test("a session is created although the others cannot be listed", async () => {
  using here = place();
  let isForbidden = false;
  const list = (path: string): string[] => {
    if (isForbidden && path.endsWith("sessions")) throw Object.assign(new Error("not allowed"), { code: "EACCES" });
    return nodeDisk.list(path);
  };
  await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, list } });
  isForbidden = true;
  await expect(store.list()).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
  const id = newId();
  await (await store.create(id, [])).close();
  isForbidden = false;
  expect((await store.list()).sessions.map((listed) => listed.id)).toEqual([id]);
  expect(readdirSync(join(here.path, "sessions"))).toEqual([id]);
});

test("P9: more damage than can be held in memory makes a journal unreadable, over all its segments", () => {
  const tailWith = (count: number) => {
    const damaged = Array.from({ length: count }, () => ({ offset: 3, end: 10, why: "corrupt" as const, seq: 2 }));
    return { damaged, missing: [{ from: 3, to: 4 }] } as unknown as Parameters<DamageAccount["add"]>[1];
  };
  const account = new DamageAccount();
  account.add("000001.jsonl", tailWith(1));
  expect(account.recovery(true, 5)).toEqual({
    unclean: true,
    cutBytes: 5,
    damaged: [{ segment: "000001.jsonl", offset: 3, bytes: 7, why: "corrupt", seq: 2 }],
    missing: [{ from: 3, to: 4 }],
  });
  account.add("000002.jsonl", tailWith(STRAYS_MAX - 1));
  expect(() => account.add("000003.jsonl", tailWith(1))).toThrow(
    expect.objectContaining({
      code: "JOURNAL_UNREADABLE",
      facts: { segment: "000003.jsonl", strays: STRAYS_MAX },
      message: expect.stringContaining("000003.jsonl"),
    }),
  );
});
