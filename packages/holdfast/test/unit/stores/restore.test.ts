import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore, type Store } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { expect, onTestFinished, test } from "vitest";
import { nodeDisk } from "../../../src/disk/node-disk.ts";

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-restore-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function speak(store: Store, prompt: string): Promise<string> {
  await using session = await store.create({ dialect: "anthropic" });
  const turn = await session.startTurn({ role: "user", content: prompt });
  await turn.end();
  return session.id;
}

test.each(["folder", "sqlite", "memory"])(
  "the trash of a %s store has titles, and restore undoes delete",
  async (kind) => {
    const folder = temporaryFolder();
    const url = kind === "folder" ? folder : kind === "sqlite" ? `sqlite:${join(folder, "s.db")}` : "memory:";
    await using store = await openStore(url, { durability: "process" });
    const id = await speak(store, "hello there");
    await store.delete(id);
    expect(await store.trashed()).toEqual([
      { id, title: "hello there", app: "holdfast", turns: 1, queued: 0, trashedAt: expect.stringMatching(/^\d{4}-/) },
    ]);
    await store.restore(id);
    expect(await store.trashed()).toEqual([]);
    expect((await store.read(id)).messages).toEqual([{ role: "user", content: "hello there" }]);
    await expect(store.restore(id)).rejects.toMatchObject({ code: "SESSION_EXISTS" });
  },
);

test("garbage collection takes a session out of reach before it removes the first file", async () => {
  const folder = temporaryFolder();
  const seen: string[][] = [];
  const disk = {
    ...nodeDisk,
    remove: (path: string) => {
      if (path.includes("/trash/")) seen.push(readdirSync(join(folder, "trash")));
      nodeDisk.remove(path);
    },
  };
  await using journals = await openFolderStore(folder, { disk });
  const id = "0199aaaa-0000-7000-8000-000000000001";
  await (await journals.create(id, [{ kind: "note", name: "a", value: 1 }])).close();
  await journals.delete(id);
  const [name] = readdirSync(join(folder, "trash"));
  await journals.gc({ graceMs: 0 });
  expect(seen.length).toBeGreaterThan(0);
  for (const names of seen) expect(names).toEqual([`${name}.gone`]);
  expect(readdirSync(join(folder, "trash"))).toEqual([]);
});

test("what a killed garbage collection left cannot be restored, and the next one removes it", async () => {
  const folder = temporaryFolder();
  await using store = await openStore(folder, { durability: "process" });
  const id = await speak(store, "half gone");
  await store.delete(id);
  const trash = join(folder, "trash");
  const [name] = readdirSync(trash);
  renameSync(join(trash, name!), join(trash, `${name}.gone`));
  expect(await store.trashed()).toEqual([]);
  await expect(store.restore(id)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  expect((await store.gc({ graceMs: 0 })).removed).toEqual([id]);
  expect(readdirSync(trash)).toEqual([]);
});

test("a link, another folder and an impossible time in the trash are not sessions", async () => {
  const folder = temporaryFolder();
  await using store = await openStore(folder, { durability: "process" });
  const id = await speak(store, "live");
  const trash = join(folder, "trash");
  mkdirSync(join(trash, "notes"));
  mkdirSync(join(trash, `${"0".repeat(8)}-0000-7000-8000-${"0".repeat(12)}-${"9".repeat(30)}`));
  symlinkSync(join(folder, "sessions", id), join(trash, "0199aaaa-0000-7000-8000-000000000009-17"));
  expect(await store.trashed()).toEqual([]);
  await expect(store.restore("0199aaaa-0000-7000-8000-000000000009")).rejects.toMatchObject({
    code: "SESSION_NOT_FOUND",
  });
});

test("a damaged session in the trash is listed without a title, and comes back as it was", async () => {
  const folder = temporaryFolder();
  await using store = await openStore(folder, { durability: "process" });
  const id = "0199aaaa-0000-7000-8000-000000000007";
  mkdirSync(join(folder, "trash", `${id}-1700000000000`));
  writeFileSync(join(folder, "trash", `${id}-1700000000000`, "000001.jsonl"), "not a record\n");
  expect(await store.trashed()).toMatchObject([{ id, title: "", trashedAt: "2023-11-14T22:13:20.000Z" }]);
  await store.restore(id);
  expect(readFileSync(join(folder, "sessions", id, "000001.jsonl"), "utf8")).toBe("not a record\n");
});

test("resumeLatest needs no arguments", async () => {
  await using store = await openStore(temporaryFolder(), { durability: "process" });
  expect(await store.resumeLatest()).toBeNull();
  const id = await speak(store, "hello");
  const session = await store.resumeLatest();
  expect(session?.id).toBe(id);
  await session?.close();
  const typed = await store.resumeLatest(undefined, { dialect: "anthropic" });
  expect(typed?.messages[0]?.role).toBe("user");
});
