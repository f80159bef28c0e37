import { spawnSync } from "node:child_process";
import { copyFileSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { type JournalRecord, newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import { place } from "../../../../place.ts";

const WRITER = join(import.meta.dirname, "../sqlite-writer.ts");
const note = (text: string) => ({ kind: "note", text });
const textsOf = (records: readonly JournalRecord[]) =>
  records.filter((record) => record.kind === "note").map((record) => record["text"]);

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
