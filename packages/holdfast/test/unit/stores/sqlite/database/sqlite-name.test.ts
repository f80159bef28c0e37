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
import { type JournalRecord, newId } from "holdfast";
import { type DiskStat, nodeDisk } from "holdfast/disk";
import { openSqliteStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import { assertLogHere, type Name, type RecordedName } from "../../../../../src/stores/sqlite/database/name.ts";
import { place } from "../../../../place.ts";

const WRITER = join(import.meta.dirname, "../sqlite-writer.ts");
const failed = (code: string): Error => Object.assign(new Error(code), { code });
const note = (text: string) => ({ kind: "note", text });
const textsOf = (records: readonly JournalRecord[]) =>
  records.filter((record) => record.kind === "note").map((record) => record["text"]);

describe("a database that records another name", () => {
  const here: Name = { path: "/b/store.db", folder: "1:20", file: "1:7" };
  const other: RecordedName = { path: "/a/store.db", folder: "1:10", file: "1:7", open: true };
  type Stats = Record<string, { ino: number; size?: number } | Error>;
  const cases: [what: string, recorded: RecordedName, stats: Stats, isHere: boolean][] = [
    ["the same folder, by another path", { ...other, folder: "1:20" }, {}, true],
    ["the same folder, on a disk that has another number since the start", { ...other, folder: "2:20" }, {}, true],
    ["another name in the same folder", { ...other, folder: "1:20", path: "/b/other.db" }, {}, false],
    ["a copy", { ...other, file: "1:8" }, {}, true],
    ["moved, and it was closed", { ...other, open: false }, {}, true],
    ["moved, and its log with it", other, { "/b/store.db-wal": { ino: 9, size: 99 } }, true],
    ["moved, and no log was there", other, { "/a/.": { ino: 10 } }, true],
    ["moved, without its log", other, { "/a/.": { ino: 10 }, "/a/store.db-wal": { ino: 9, size: 99 } }, false],
    ["moved out of sight", other, {}, false],
    ["moved to where the other name may not be looked at", other, { "/a/.": failed("EACCES") }, false],
    ["the same path in another container", { ...other, path: here.path }, {}, false],
  ];

  test.each(cases)("%s", (_, recorded, stats, isHere) => {
    const stat = (path: string): DiskStat | null => {
      const found = stats[path];
      if (found instanceof Error) throw found;
      return found ? ({ kind: "file", dev: 1, size: 0, ...found } as DiskStat) : null;
    };
    const check = (): void => assertLogHere({ ...nodeDisk, stat }, recorded, here);
    const facts = { path: here.path, usedAs: recorded.path };
    if (isHere) check();
    else expect(check).toThrow(expect.objectContaining({ code: "PATH_UNSAFE", facts }));
  });

  test("a fault of the program is thrown", () => {
    const stat = (): never => {
      throw new TypeError("a fault");
    };
    expect(() => assertLogHere({ ...nodeDisk, stat }, other, here)).toThrow("a fault");
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
    ["everything, to another folder", ["store.db", "store.db-lock"]],
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

  test("copied, while it is closed, and while it is open: then without what is only in the log", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file, "a");
    copyFileSync(file, join(here.path, "closed.db"));
    await using store = await openSqliteStore(file);
    const { journal } = await store.open(id);
    await journal.append(note("b"));
    copyFileSync(file, join(here.path, "open.db"));
    expect(await readBack(join(here.path, "closed.db"), id)).toEqual(["a"]);
    expect(await readBack(join(here.path, "open.db"), id)).toEqual(["a"]);
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
