import { cpSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { lineOf, openFolderStore } from "holdfast/internal";
import type { JournalStore, Listed, ListOptions, Summariser, VerbatimLine } from "holdfast/store";
import { expect, test } from "vitest";
import { place } from "../../../../place.ts";

/** What lists show is what the files say, whoever has changed them. The oracle is a store without a catalogue. */

async function listFiles(root: string): Promise<readonly Listed[]> {
  await using store = await openFolderStore(root, { catalogue: false });
  return (await store.list()).sessions;
}

/** A store of closed sessions, and a process that has listed it. */
async function listing(root: string) {
  const ids = Array.from({ length: 8 }, () => newId());
  {
    await using store = await openFolderStore(root);
    for (const id of ids) {
      await using journal = await store.create(id, [{ kind: "session" }]);
      await journal.append({ kind: "message", n: 0 });
    }
  }
  const lister = await openFolderStore(root);
  await lister.list();
  return { ids, lister };
}

async function* linesOf(id: string): AsyncGenerator<readonly VerbatimLine[]> {
  using here = place();
  await using store = await openFolderStore(here.path, { catalogue: false });
  await (await store.create(id, [{ kind: "session" }])).close();
  for await (const record of store.history(id)) yield [lineOf(record)!];
}

/** What a store can do to a session. */
const OPERATIONS: Readonly<Record<string, (store: JournalStore, ids: readonly string[], root: string) => unknown>> = {
  "create a session": async (store) => (await store.create(newId(), [{ kind: "session" }])).close(),
  "create a session, and leave it open": (store) => store.create(newId(), [{ kind: "session" }]),
  "delete a session": (store, ids) => store.delete(ids[3]!),
  "delete and restore a session": async (store, ids) => {
    await store.delete(ids[3]!);
    await store.restore!(ids[3]!);
  },
  "restore an older session of the same id": async (store, ids) => {
    await store.delete(ids[3]!);
    await (await store.create(ids[3]!, [{ kind: "session", title: "another" }])).close();
    await store.list();
    await store.delete(ids[3]!);
    await store.restore!(ids[3]!);
  },
  "adopt a session": (store) => {
    const id = newId();
    return store.adopt!(id, linesOf(id));
  },
  "open and close a session without a record": async (store, ids) => (await store.open(ids[3]!)).journal.close(),
  "pack a session": (store, ids) => store.pack(ids[3]!),
  "begin an epoch": async (store, ids) => {
    const { journal } = await store.open(ids[3]!);
    await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
    await journal.close();
    await store.pack(ids[3]!);
  },
};

test.each(Object.entries(OPERATIONS))("%s, and lists show it at once", async (_name, operate) => {
  for (const catalogue of [{}, { catalogue: false } as const]) {
    using here = place();
    const { ids, lister } = await listing(here.path);
    await using _lister = lister;
    await using store = await openFolderStore(here.path, catalogue);
    await operate(store, ids, here.path);
    for (let i = 0; i < 2; i++) expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
    await using other = await openFolderStore(here.path);
    expect((await other.list()).sessions).toEqual(await listFiles(here.path));
  }
});

test("a writer that opened its session before a list, and writes after it, is noticed", async () => {
  using here = place();
  const ids = [newId(), newId()];
  await using writer = await openFolderStore(here.path);
  for (const id of ids) await (await writer.create(id, [{ kind: "session" }])).close();
  const { journal } = await writer.open(ids[0]!);
  await using lister = await openFolderStore(here.path);
  for (let i = 0; i < 3; i++) expect((await lister.list()).sessions).toMatchObject([{ id: ids[1] }, { id: ids[0] }]);
  await journal.append({ kind: "message" });
  expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
  expect((await lister.list()).sessions[0]).toMatchObject({ id: ids[0], closed: false });
});

test("whichever call of the disk is a writer's last, lists before and after it are right", async () => {
  let isOver = false;
  for (let at = 0; !isOver; at++) {
    using here = place();
    const { ids, lister } = await listing(here.path);
    await using _lister = lister;
    let calls = 0;
    let isWriting = false;
    const seen: Promise<unknown>[] = [];
    const disk = new Proxy(nodeDisk, {
      get: (target, name: keyof Disk) => {
        const call = target[name] as (...given: unknown[]) => unknown;
        return (...given: unknown[]) => {
          if (isWriting && calls++ === at) seen.push(lister.list());
          if (isWriting && calls > at) throw Object.assign(new Error("killed"), { code: "EIO" });
          return call(...given);
        };
      },
    });
    const writer = await openFolderStore(here.path, { disk });
    isWriting = true;
    try {
      const { journal } = await writer.open(ids[5]!);
      await journal.append({ kind: "message", n: 1 });
      await journal.close();
      isOver = true;
    } catch {
      // Killed.
    }
    isWriting = false;
    await Promise.all(seen);
    for (let i = 0; i < 2; i++)
      expect((await lister.list()).sessions, `after call ${at}`).toEqual(await listFiles(here.path));
    await writer.close().catch(() => {});
  }
});

test("a writer that closes while the catalogue is busy is noticed", async () => {
  using here = place();
  const { ids, lister } = await listing(here.path);
  await using _lister = lister;
  await using writer = await openFolderStore(here.path);
  const { journal } = await writer.open(ids[1]!);
  await journal.append({ kind: "message" });
  {
    using busy = new DatabaseSync(join(here.path, "catalog.sqlite"));
    busy.exec("BEGIN IMMEDIATE");
    await journal.close();
  }
  expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
});

test("a writer whose catalogue was removed, and made again by others, is noticed", async () => {
  using here = place();
  const { ids, lister } = await listing(here.path);
  await using _lister = lister;
  await using writer = await openFolderStore(here.path);
  const { journal } = await writer.open(ids[1]!);
  await journal.append({ kind: "message" });
  for (const name of readdirSync(here.path)) if (name.startsWith("catalog.sqlite")) rmSync(join(here.path, name));
  await using other = await openFolderStore(here.path);
  for (let i = 0; i < 2; i++) await other.list();
  await journal.close();
  for (const store of [other, lister]) expect((await store.list()).sessions).toEqual(await listFiles(here.path));
});

test("a process that has the removed catalogue open lists what others say in the new one", async () => {
  using here = place();
  const { ids, lister } = await listing(here.path);
  await using _lister = lister;
  for (const name of readdirSync(here.path)) if (name.startsWith("catalog.sqlite")) rmSync(join(here.path, name));
  await using other = await openFolderStore(here.path);
  const { journal } = await other.open(ids[1]!);
  await journal.append({ kind: "message" });
  await journal.close();
  expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
});

test("what other programs do to sessions is noticed at once", async () => {
  using here = place();
  const { ids, lister } = await listing(here.path);
  await using _lister = lister;
  const sessions = join(here.path, "sessions");
  const headOf = async (id: string): Promise<unknown> =>
    (await lister.list()).sessions.find((listed) => listed.id === id)?.head;
  // A backup of one session is copied over another, as a whole.
  rmSync(join(sessions, ids[0]!), { recursive: true });
  {
    await using store = await openFolderStore(here.path);
    const { journal } = await store.open(ids[1]!);
    for (let n = 0; n < 5; n++) await journal.append({ kind: "message", n });
    await journal.close();
  }
  cpSync(join(sessions, ids[1]!), join(sessions, ids[0]!), { recursive: true });
  expect(await headOf(ids[0]!)).toBe(await headOf(ids[1]!));
  for (let i = 0; i < 2; i++) await lister.list();

  const file = join(sessions, ids[2]!, "000001.jsonl");
  writeFileSync(file, "{}");
  utimesSync(file, 1, 1);
  const { sessions: found } = await lister.list();
  expect(found.find(({ id }) => id === ids[2])).toMatchObject({ unreadable: { code: "JOURNAL_UNREADABLE" } });
  expect((await lister.list()).sessions.filter(({ unreadable }) => unreadable)).toHaveLength(1);
});

test("a list shows each row once, in order, also if the catalogue turns out to be damaged", async () => {
  using here = place();
  const summariser: Summariser = {
    add: (row, record) => (record.kind === "session" ? { k: Number(record["k"]) } : row),
    carries: () => false,
  };
  await using store = await openFolderStore(here.path, { summariser });
  const ids = Array.from({ length: 8 }, () => newId());
  for (const [i, id] of ids.entries()) await (await store.create(id, [{ kind: "session", k: i % 3 }])).close();
  const visitAll = async (options: ListOptions = {}): Promise<[ids: string[], next: string | undefined]> => {
    const visited: string[] = [];
    const { sessions, next } = await store.list({ ...options, visit: ({ id }) => visited.push(id) });
    expect(sessions).toEqual([]);
    return [visited, next];
  };
  const newest = ids.toReversed();
  for (const summary of [null, "7", "{"]) {
    for (let i = 0; i < 2; i++) expect(await visitAll()).toEqual([newest, undefined]);
    if (summary !== null) {
      using catalogue = new DatabaseSync(join(here.path, "catalog.sqlite"));
      catalogue.prepare("UPDATE sessions SET summary = ? WHERE id = ?").run(summary, ids[4]!);
    }
    const [first, next] = await visitAll({ where: { k: 0 }, limit: 2 });
    expect(first).toEqual([ids[6], ids[3]]);
    expect(await visitAll({ where: { k: 0 }, limit: 2, after: next! })).toEqual([[ids[0]], undefined]);
  }
});

test("P9: a row that damage has moved to another place in the catalogue hides no session", async () => {
  for (const stamp of ["CAST(stamp AS BLOB)", "x''"]) {
    using here = place();
    const { lister } = await listing(here.path);
    await lister.close();
    const path = join(here.path, "catalog.sqlite");
    // Without the table's types, as damage to its pages leaves it.
    const edit = (...statements: string[]): void => {
      using database = new DatabaseSync(path, { defensive: false } as object);
      for (const sql of statements) database.exec(sql);
    };
    const retype = (from: string, to: string): string =>
      `UPDATE sqlite_schema SET sql = replace(sql, '${from}', '${to}') WHERE name = 'sessions'`;
    edit("PRAGMA writable_schema=ON", retype(") STRICT, WITHOUT ROWID", ") WITHOUT ROWID"));
    edit(`UPDATE sessions SET stamp = ${stamp} WHERE id = (SELECT max(id) FROM sessions)`);
    edit("PRAGMA writable_schema=ON", retype(") WITHOUT ROWID", ") STRICT, WITHOUT ROWID"));
    await using store = await openFolderStore(here.path);
    expect((await store.list()).sessions, stamp).toEqual(await listFiles(here.path));
  }
});
