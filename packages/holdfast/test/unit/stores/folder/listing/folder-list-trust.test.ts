import { cpSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { lineOf, openFolderStore } from "holdfast/internal";
import type { Journal, JournalStore, Listed, ListOptions, Summariser, VerbatimLine } from "holdfast/store";
import { expect, test } from "vitest";
import { Catalogue } from "../../../../../src/stores/folder/listing/catalogue.ts";
import { place } from "../../../../place.ts";

/**
 * Decision 8: for a minute after a list has looked at every session, lists look only at those that a writer has
 * announced. The oracle is a store without a catalogue, which reads the files.
 */

const MINUTE_MS = 60_000;
/** So far ahead that the folders were not changed a moment ago, which lists do not trust. */
let nowMs = Date.now() + MINUTE_MS;
const clock = (): number => nowMs++;

/** A process of its own, as far as leases can tell. */
function process_(given: Partial<Disk> = {}): Disk {
  return { ...nodeDisk, bootId: () => "this boot", ...given };
}

function openStore(
  root: string,
  given: Partial<Disk> = {},
  options: { catalogue?: false } = {},
): Promise<JournalStore> {
  return openFolderStore(root, { disk: process_(given), clock, ...options });
}

/** A disk that notes which sessions were looked at. */
function watching(looked: Set<string>, given: Partial<Disk> = {}): Partial<Disk> {
  const stat: Disk["stat"] = (path) => {
    const id = /sessions\/([0-9a-f-]{36})/.exec(path)?.[1];
    if (id !== undefined) looked.add(id);
    return nodeDisk.stat(path);
  };
  return { ...given, stat };
}

async function listFiles(root: string): Promise<readonly Listed[]> {
  await using store = await openStore(root, {}, { catalogue: false });
  return (await store.list()).sessions;
}

/** A store of closed sessions, and a process that has listed it twice: once all of them, once those announced. */
async function trusting(root: string, looked = new Set<string>(), given: Partial<Disk> = {}) {
  const ids = Array.from({ length: 8 }, () => newId());
  {
    await using store = await openStore(root);
    for (const id of ids) {
      await using journal = await store.create(id, [{ kind: "session" }]);
      await journal.append({ kind: "message", n: 0 });
    }
  }
  const lister = await openStore(root, watching(looked, given));
  for (let i = 0; i < 2; i++) await lister.list();
  looked.clear();
  return { ids, lister };
}

test("decision 8: a list soon after another looks at no session, in this process or in a new one", async () => {
  using here = place();
  const looked = new Set<string>();
  const { ids, lister } = await trusting(here.path, looked);
  await using _lister = lister;
  await using other = await openStore(here.path, watching(looked));
  for (const store of [lister, other]) {
    expect((await store.list()).sessions).toEqual(await listFiles(here.path));
    const first = await store.list({ limit: 3 });
    expect(first.sessions.map(({ id }) => id)).toEqual(ids.toReversed().slice(0, 3));
    const rest = await store.list({ limit: 5, after: first.next! });
    expect(rest.sessions.map(({ id }) => id)).toEqual(ids.toReversed().slice(3));
    expect(rest.next).toBeUndefined();
  }
  expect([...looked]).toEqual([]);
});

test("decision 8: a session that was written since is the only one a list looks at", async () => {
  using here = place();
  const looked = new Set<string>();
  const { ids, lister } = await trusting(here.path, looked);
  await using _lister = lister;
  await using writer = await openStore(here.path);
  const { journal } = await writer.open(ids[2]!);
  for (const n of [1, 2]) {
    await journal.append({ kind: "message", n });
    expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
  }
  expect([...looked]).toEqual([ids[2]]);
  await journal.close();
  looked.clear();
  const { sessions } = await lister.list();
  expect(sessions).toEqual(await listFiles(here.path));
  expect(sessions[0]).toMatchObject({ id: ids[2], closed: true });
  expect([...looked], "its writer has told the catalogue").toEqual([]);
});

async function* linesOf(id: string): AsyncGenerator<readonly VerbatimLine[]> {
  using here = place();
  await using store = await openStore(here.path, {}, { catalogue: false });
  await (await store.create(id, [{ kind: "session" }])).close();
  for await (const record of store.history(id)) yield [lineOf(record)!];
}

/** What a store can do to a session. Each leaves its lists right, with the minute not yet over. */
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

test.each(Object.entries(OPERATIONS))("decision 8: %s, and lists show it at once", async (_name, operate) => {
  for (const catalogue of [{}, { catalogue: false } as const]) {
    using here = place();
    const { ids, lister } = await trusting(here.path);
    await using _lister = lister;
    await using store = await openStore(here.path, {}, catalogue);
    await operate(store, ids, here.path);
    for (let i = 0; i < 2; i++) expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
    await using other = await openStore(here.path);
    expect((await other.list()).sessions).toEqual(await listFiles(here.path));
  }
});

test("decision 8: a writer that opened its session before the check, and writes after it, is noticed", async () => {
  using here = place();
  const ids = [newId(), newId()];
  await using writer = await openStore(here.path);
  for (const id of ids) await (await writer.create(id, [{ kind: "session" }])).close();
  const { journal } = await writer.open(ids[0]!);
  await using lister = await openStore(here.path);
  for (let i = 0; i < 3; i++) expect((await lister.list()).sessions).toMatchObject([{ id: ids[1] }, { id: ids[0] }]);
  await journal.append({ kind: "message" });
  expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
  expect((await lister.list()).sessions[0]).toMatchObject({ id: ids[0], closed: false });
});

test("decision 8: a session that was not closed is looked at, also if somebody has removed its announcement", async () => {
  using here = place();
  const { ids, lister } = await trusting(here.path);
  await using _lister = lister;
  await using writer = await openStore(here.path);
  const { journal } = await writer.open(ids[0]!);
  await journal.append({ kind: "message", n: 1 });
  rmSync(join(here.path, "leases", `${ids[0]}.json`));
  nowMs += MINUTE_MS;
  for (let i = 0; i < 2; i++) await lister.list();
  await journal.append({ kind: "message", n: 2 });
  expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
});

test("decision 8: whichever call of the disk is a writer's last, lists before and after it are right", async () => {
  let isOver = false;
  for (let at = 0; !isOver; at++) {
    using here = place();
    const { ids, lister } = await trusting(here.path);
    await using _lister = lister;
    let calls = 0;
    let isWriting = false;
    const seen: Promise<unknown>[] = [];
    const disk = new Proxy(process_(), {
      get: (target, name: keyof Disk) => {
        const call = target[name] as (...given: unknown[]) => unknown;
        return (...given: unknown[]) => {
          if (isWriting && calls++ === at) seen.push(lister.list());
          if (isWriting && calls > at) throw Object.assign(new Error("killed"), { code: "EIO" });
          return call(...given);
        };
      },
    });
    const writer = await openFolderStore(here.path, { disk, clock });
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

test("decision 8: a writer that has no space to announce itself is noticed", async () => {
  using here = place();
  const { ids, lister } = await trusting(here.path);
  await using _lister = lister;
  const open: Disk["open"] = (path, mode) => {
    if (mode === "create" && path.includes("/leases/")) throw Object.assign(new Error("full"), { code: "ENOSPC" });
    return nodeDisk.open(path, mode);
  };
  await using writer = await openStore(here.path, { open });
  const { journal } = await writer.open(ids[1]!);
  for (let i = 0; i < 2; i++) await lister.list();
  await journal.append({ kind: "message" });
  expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
});

test("decision 8: a writer that closes while the catalogue is busy is noticed", async () => {
  using here = place();
  const { ids, lister } = await trusting(here.path);
  await using _lister = lister;
  await using writer = await openStore(here.path);
  const { journal } = await writer.open(ids[1]!);
  await journal.append({ kind: "message" });
  {
    using busy = new DatabaseSync(join(here.path, "catalog.sqlite"));
    busy.exec("BEGIN IMMEDIATE");
    await journal.close();
  }
  expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
});

test("decision 8: a writer whose catalogue was removed, and made again by others, is noticed", async () => {
  using here = place();
  const { ids, lister } = await trusting(here.path);
  await using _lister = lister;
  await using writer = await openStore(here.path);
  const { journal } = await writer.open(ids[1]!);
  await journal.append({ kind: "message" });
  for (const name of readdirSync(here.path)) if (name.startsWith("catalog.sqlite")) rmSync(join(here.path, name));
  await using other = await openStore(here.path);
  for (let i = 0; i < 2; i++) await other.list();
  await journal.close();
  for (const store of [other, lister]) expect((await store.list()).sessions).toEqual(await listFiles(here.path));
});

test("decision 8: a process that has the removed catalogue open lists what others say in the new one", async () => {
  using here = place();
  const { ids, lister } = await trusting(here.path);
  await using _lister = lister;
  for (const name of readdirSync(here.path)) if (name.startsWith("catalog.sqlite")) rmSync(join(here.path, name));
  await using other = await openStore(here.path);
  const { journal } = await other.open(ids[1]!);
  await journal.append({ kind: "message" });
  await journal.close();
  expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
});

test("decision 8: after a power cut, which can undo announcements, a list looks at every session", async () => {
  using here = place();
  const looked = new Set<string>();
  const { ids, lister } = await trusting(here.path, looked);
  await lister.close();
  await using after = await openStore(here.path, watching(looked, { bootId: () => "the next boot" }));
  expect((await after.list()).sessions).toHaveLength(ids.length);
  expect(looked.size).toBe(ids.length);
});

test.each([
  ["whose boots have no name", { bootId: () => null }],
  ["on a network file system", { networkKind: () => "nfs" }],
])("decision 8: on a system %s, every list looks at every session", async (_name, given) => {
  using here = place();
  const looked = new Set<string>();
  const { ids, lister } = await trusting(here.path, looked, given);
  await using _lister = lister;
  await lister.list();
  expect(looked.size).toBe(ids.length);
});

test("decision 8: folders that changed a moment ago are not trusted: another change may leave the same time", async () => {
  using here = place();
  const before = nowMs;
  nowMs = Date.now();
  try {
    const looked = new Set<string>();
    const { ids, lister } = await trusting(here.path, looked);
    await using _lister = lister;
    await lister.list();
    expect(looked.size).toBe(ids.length);
  } finally {
    nowMs = before;
  }
});

test("decision 8: what other programs do to the folder of sessions is noticed at once, and inside a session within a minute", async () => {
  using here = place();
  const { ids, lister } = await trusting(here.path);
  await using _lister = lister;
  const sessions = join(here.path, "sessions");
  const headOf = async (id: string): Promise<unknown> =>
    (await lister.list()).sessions.find((listed) => listed.id === id)?.head;
  // A backup of one session is copied over another, as a whole.
  rmSync(join(sessions, ids[0]!), { recursive: true });
  {
    await using store = await openStore(here.path);
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
  nowMs += MINUTE_MS;
  const { sessions: found } = await lister.list();
  expect(found.find(({ id }) => id === ids[2])).toMatchObject({ unreadable: { code: "JOURNAL_UNREADABLE" } });
  // While a session cannot be read, every list looks at all of them.
  expect((await lister.list()).sessions.filter(({ unreadable }) => unreadable)).toHaveLength(1);
});

test("decision 8: more announced sessions than are worth a look of their own: all are looked at", async () => {
  using here = place();
  let looks = 0;
  const list: Disk["list"] = (path) => {
    if (path.endsWith("leases")) looks++;
    return nodeDisk.list(path);
  };
  const { ids, lister } = await trusting(here.path, new Set(), { list });
  await using _lister = lister;
  for (let i = 0; i < 600; i++) writeFileSync(join(here.path, "leases", `${newId()}.json`), "");
  await using writer = await openStore(here.path, {}, { catalogue: false });
  const journals: Journal[] = [];
  for (const id of ids.slice(0, 3)) {
    const { journal } = await writer.open(id);
    journals.push(journal);
    await journal.append({ kind: "message" });
    expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
  }
  looks = 0;
  for (let i = 0; i < 5; i++) expect((await lister.list()).sessions).toEqual(await listFiles(here.path));
  expect(looks, "the announcements are not counted again within the minute").toBe(0);
});

test("a list shows each row once, in order, also if the catalogue turns out to be damaged on the way", async () => {
  using here = place();
  const summariser: Summariser = {
    add: (row, record) => (record.kind === "session" ? { k: Number(record["k"]) } : row),
    carries: () => false,
  };
  await using store = await openFolderStore(here.path, { disk: process_(), clock, summariser });
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
    // The first of them is in the first batch of rows, the damage in the second.
    const [first, next] = await visitAll({ where: { k: 0 }, limit: 2 });
    expect(first).toEqual([ids[6], ids[3]]);
    expect(await visitAll({ where: { k: 0 }, limit: 2, after: next! })).toEqual([[ids[0]], undefined]);
  }
});

test("decision 8: a list that took long does not overwrite the row of a writer that has closed its session meanwhile", () => {
  using here = place();
  const path = join(here.path, "catalog.sqlite");
  const id = newId();
  const rowAt = (size: number) => {
    const at = "2026-01-01T00:00:00.000Z";
    return { id, segment: 1, size, mtimeMs: 1, at, stamp: at, head: size, closed: true, summary: null };
  };
  const check = { at: 1, bootId: "this boot", sessions: "state" };
  const [list, writer] = [new Catalogue(nodeDisk, path), new Catalogue(nodeDisk, path)];
  try {
    for (const known of [new Map(), new Map([[id, rowAt(1)]])]) {
      expect(list.load()).toEqual(known);
      expect(writer.put([rowAt(known.size + 1)])).toBe(true);
      expect(list.putChecked(new Map(known), [rowAt(9)], [], check)).toBe(false);
      expect(writer.load()?.get(id)?.size).toBe(known.size + 1);
      expect(list.check()).toBeNull();
    }
    list.load();
    expect(list.putChecked(new Map([[id, rowAt(2)]]), [rowAt(9)], [], check)).toBe(true);
    expect(writer.load()?.get(id)?.size).toBe(9);
    expect(writer.check()).toEqual(check);
  } finally {
    list.close();
    writer.close();
  }
});

test("P9: a row that damage has moved to another place in the catalogue hides no session from a list that trusts it", async () => {
  for (const stamp of ["CAST(stamp AS BLOB)", "x''"]) {
    using here = place();
    const { lister } = await trusting(here.path);
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
    await using store = await openStore(here.path);
    expect((await store.list()).sessions, stamp).toEqual(await listFiles(here.path));
  }
});
