import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type JournalRecord, newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import {
  judgeName,
  type Name,
  type Recorded,
  type Sight,
  type Verdict,
} from "../../src/stores/sqlite/database/name.ts";
import { place } from "../place.ts";

const WRITER = join(import.meta.dirname, "sqlite-writer.ts");
const note = (text: string) => ({ kind: "note", text });
const textsOf = (records: readonly JournalRecord[]) =>
  records.filter((record) => record.kind === "note").map((record) => record["text"]);

describe("which name a database is used under", () => {
  const here: Name = { name: "b", path: "/b/store.db", folder: "1:20", file: "1:7" };
  const other: Recorded = { name: "a", path: "/a/store.db", folder: "1:10", file: "1:7", open: false };
  const nothing: Sight = { isSameFile: false, isSameFolder: false, isFolderSeen: false, logBytes: 0 };
  const cases: [what: string, recorded: Recorded | null, sight: Partial<Sight>, logBytes: number, verdict: Verdict][] =
    [
      ["a new database", null, {}, 0, "take"],
      ["the same name", { ...other, name: "b" }, {}, 0, "mine"],
      ["everything was moved together", { ...other, name: "b", open: true }, { isFolderSeen: true }, 0, "mine"],
      ["the folder has another path", { ...other, name: "b" }, { isSameFile: true, isSameFolder: true }, 0, "mine"],
      ["the folder of locks was copied along", { ...other, name: "b" }, { isSameFile: true }, 0, "two-names"],
      [
        "the folder of locks was removed",
        { ...other, path: here.path, folder: here.folder, open: true },
        {},
        0,
        "mine",
      ],
      ["a copy", { ...other, file: "1:8", open: true }, {}, 0, "take"],
      ["the other name leads to it", other, { isSameFile: true, isFolderSeen: true }, 0, "two-names"],
      ["the other name leads to it, in this folder", other, { isSameFile: true, isSameFolder: true }, 0, "two-names"],
      ["moved, and it was closed", other, { isFolderSeen: true }, 0, "take"],
      ["moved out of sight, and it was closed", other, {}, 0, "take"],
      ["moved, and its log with it", { ...other, open: true }, {}, 99, "take"],
      ["moved, and no log was there", { ...other, open: true }, { isFolderSeen: true }, 0, "take"],
      ["moved, without its log", { ...other, open: true }, { isFolderSeen: true, logBytes: 99 }, 0, "log-left-behind"],
      ["open, out of sight", { ...other, open: true }, {}, 0, "log-not-seen"],
      ["the same path in another container", { ...other, path: here.path, open: true }, {}, 0, "log-not-seen"],
      ["the disk has another number since the start", { ...other, file: "2:7", open: true }, {}, 0, "log-not-seen"],
    ];

  test.each(cases)("%s", (_, recorded, sight, logBytes, verdict) => {
    expect(judgeName(recorded, here, { ...nothing, ...sight }, logBytes)).toBe(verdict);
  });
});

async function written(file: string, ...texts: string[]): Promise<string> {
  await using store = await openSqliteStore(file);
  const id = newId();
  await (await store.create(id, texts.map(note))).close();
  return id;
}

async function readBack(file: string, id: string): Promise<unknown[]> {
  await using store = await openSqliteStore(file);
  const { records, journal } = await store.open(id);
  await journal.append(note("goes on"));
  await journal.close();
  return textsOf(records);
}

/** A process that is killed with records in the log that are not in the database file. */
function killed(file: string, id: string): void {
  const source = "--conditions=holdfast-source";
  const { signal } = spawnSync(process.execPath, [source, WRITER, "append-and-die", file, id], { stdio: "inherit" });
  expect(signal).toBe("SIGKILL");
}

describe("P1: one database under two names", () => {
  test("a hard link: PATH_UNSAFE under both names, and nothing is touched", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file, "a");
    const link = join(here.path, "deep", "link.db");
    mkdirSync(dirname(link));
    linkSync(file, link);
    for (const path of [file, link])
      await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "PATH_UNSAFE", facts: { path, links: 2 } });
    expect(readdirSync(dirname(link))).toEqual(["link.db"]);
    rmSync(link);
    expect(await readBack(file, id)).toEqual(["a"]);
  });

  test("a hard link that is made while the store is open", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    await using store = await openSqliteStore(file);
    const journal = await store.create(newId(), [note("a")]);
    linkSync(file, join(here.path, "link.db"));
    await expect(openSqliteStore(join(here.path, "link.db"))).rejects.toMatchObject({ code: "PATH_UNSAFE" });
    await journal.append(note("b"));
    expect(textsOf((await store.read(journal.id)).records)).toEqual(["a", "b"]);
  });

  test("a folder that is reached by a link, or by another path, is the same folder", async () => {
    using here = place();
    mkdirSync(join(here.path, "real"));
    symlinkSync(join(here.path, "real"), join(here.path, "link"));
    const [file, other] = [join(here.path, "real", "store.db"), join(here.path, "link", "store.db")];
    await using store = await openSqliteStore(file);
    await using same = await openSqliteStore(other);
    const journal = await store.create(newId(), [note("a")]);
    await journal.append(note("b"));
    expect(textsOf((await same.read(journal.id)).records)).toEqual(["a", "b"]);
    await expect(same.open(journal.id)).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await (await same.create(newId(), [])).append(note("c"));
    await store.close();
    await same.close();
    expect(readdirSync(join(here.path, "real")).filter((name) => name.endsWith("-wal"))).toEqual([]);
  });
});

describe("a database that was moved or copied opens without a word", () => {
  test.each([
    ["the file alone, to another folder", ["store.db"]],
    ["everything, to another folder", ["store.db", "store.db-locks", "store.db-leases"]],
  ])("moved: %s", async (_, names) => {
    using here = place();
    const [from, to] = [join(here.path, "from"), join(here.path, "to")];
    mkdirSync(from);
    mkdirSync(to);
    const id = await written(join(from, "store.db"), "a");
    for (const name of names) renameSync(join(from, name), join(to, name));
    expect(await readBack(join(to, "store.db"), id)).toEqual(["a"]);
    // And back again, as a file that has another name by now.
    renameSync(join(to, "store.db"), join(from, "another.db"));
    rmSync(to, { recursive: true });
    expect(await readBack(join(from, "another.db"), id)).toEqual(["a", "goes on"]);
  });

  test("copied, while it is closed, and by SQLite while it is open", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file, "a");
    copyFileSync(file, join(here.path, "closed.db"));
    await using store = await openSqliteStore(file);
    const { journal } = await store.open(id);
    await journal.append(note("b"));
    const sqlite = new DatabaseSync(file);
    sqlite.exec(`VACUUM INTO '${join(here.path, "open.db")}'`);
    sqlite.close();
    mkdirSync(join(here.path, "elsewhere"));
    renameSync(join(here.path, "open.db"), join(here.path, "elsewhere", "open.db"));
    expect(await readBack(join(here.path, "closed.db"), id)).toEqual(["a"]);
    expect(await readBack(join(here.path, "elsewhere", "open.db"), id)).toEqual(["a", "b"]);
    await journal.append(note("c"));
    expect(textsOf((await store.read(id)).records)).toEqual(["a", "b", "c"]);
  });

  test("its writer was killed, and the log was moved along", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file, "a");
    killed(file, id);
    mkdirSync(join(here.path, "to"));
    for (const name of ["store.db", "store.db-wal"]) renameSync(join(here.path, name), join(here.path, "to", name));
    expect(await readBack(join(here.path, "to", "store.db"), id)).toEqual(["a", "in the log"]);
  });
});

test("P1: its writer was killed, and it was moved without its log: refused, with where the log is", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const id = await written(file, "a");
  killed(file, id);
  const moved = join(here.path, "to", "store.db");
  mkdirSync(dirname(moved));
  renameSync(file, moved);
  const refused = await openSqliteStore(moved).catch((error: unknown) => error as Error);
  expect(refused).toMatchObject({ code: "PATH_UNSAFE", facts: { path: moved, usedAs: file } });
  expect((refused as Error).message).toContain(`${file}-wal`);
  expect(existsSync(`${moved}-wal`)).toBe(false);
  // Out of sight: nobody knows what is in it.
  renameSync(`${file}-wal`, join(here.path, "log"));
  renameSync(here.path, `${here.path}-elsewhere`);
  const elsewhere = join(`${here.path}-elsewhere`, "to", "store.db");
  try {
    await expect(openSqliteStore(elsewhere)).rejects.toMatchObject({ code: "PATH_UNSAFE" });
    // What the refusal advises: put the log beside it, or make a copy.
    cpSync(elsewhere, join(`${here.path}-elsewhere`, "copy.db"));
    expect(await readBack(join(`${here.path}-elsewhere`, "copy.db"), id)).toEqual(["a"]);
    renameSync(join(`${here.path}-elsewhere`, "log"), `${elsewhere}-wal`);
    expect(await readBack(elsewhere, id)).toEqual(["a", "in the log"]);
  } finally {
    renameSync(`${here.path}-elsewhere`, here.path);
  }
});
