import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HoldfastError, newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import { modesOf, place, treeOf } from "../../../place.ts";

async function refusalOf(promise: Promise<unknown>): Promise<HoldfastError> {
  const error = await promise.then(
    () => new Error("it went well"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(HoldfastError);
  return error as HoldfastError;
}

describe("C24: names and modes", () => {
  test("umask 000: the folder 0700, and every file 0600, those of SQLite too", async () => {
    using here = place();
    const folder = join(here.path, "deep", "er");
    const umask = process.umask(0);
    try {
      const store = await openSqliteStore(join(folder, "store.db"));
      const id = newId();
      const journal = await store.create(id, []);
      await journal.append({ kind: "x" });
      const during = modesOf(join(here.path, "deep"));
      const files = ["", "-holder", "-lock", "-wal"].map((ending) => `er/store.db${ending}`);
      expect([...during.keys()].sort()).toEqual([".", "er", ...files]);
      await store.close();
      for (const modes of [during, modesOf(join(here.path, "deep"))])
        for (const [path, mode] of modes) expect(mode, path).toBe(mode.startsWith("d") ? "d700" : "f600");
    } finally {
      process.umask(umask);
    }
  });

  test("a symbolic link, a folder, or a link in place of the log: PATH_UNSAFE, and nothing is touched", async () => {
    using here = place();
    const file = join(here.path, "real.db");
    await (await openSqliteStore(file)).close();
    symlinkSync(file, join(here.path, "link.db"));
    symlinkSync(join(here.path, "nowhere.db"), join(here.path, "dangling.db"));
    mkdirSync(join(here.path, "folder.db"));
    symlinkSync(join(here.path, "target"), join(here.path, "log.db-wal"));
    const before = treeOf(join(here.path, "folder.db"));
    for (const name of ["link.db", "dangling.db", "folder.db", "log.db"]) {
      const { code, facts } = await refusalOf(openSqliteStore(join(here.path, name)));
      expect([name, code]).toEqual([name, "PATH_UNSAFE"]);
      expect(facts["path"]).toContain(name);
    }
    expect(treeOf(join(here.path, "folder.db"))).toEqual(before);
    expect(statSync(join(here.path, "nowhere.db"), { throwIfNoEntry: false })).toBeUndefined();
    expect(statSync(join(here.path, "target"), { throwIfNoEntry: false })).toBeUndefined();
  });

  test("a path with a question mark, a hash, a per cent sign and a space in it", async () => {
    using here = place();
    const file = join(here.path, "a ?mode=ro#b %41.db");
    await using store = await openSqliteStore(file);
    const id = newId();
    await (await store.create(id, [])).close();
    expect(statSync(file).isFile()).toBe(true);
    expect(store.url).toBe(`sqlite:${file}`);
    expect(await store.has(id)).toBe(true);
  });
});

describe("a file that is no store of ours", () => {
  test.each([
    ["one byte", Buffer.from("x")],
    ["some bytes", Buffer.from("not a database")],
    ["a page of text", Buffer.alloc(8192, "text ")],
    ["a page of NULs", Buffer.alloc(8192)],
  ])("%s: refused in words, and left as it was", async (_, bytes) => {
    using here = place();
    const file = join(here.path, "file");
    writeFileSync(file, bytes);
    const { code, message } = await refusalOf(openSqliteStore(file));
    expect(code).toBe("STORE_URL_INVALID");
    expect(message).toContain("not an SQLite database");
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  test("a database of another program: STORE_URL_INVALID, and left as it was", async () => {
    using here = place();
    const file = join(here.path, "other.db");
    const other = new DatabaseSync(file);
    other.exec("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
    other.close();
    const before = readFileSync(file);
    expect((await refusalOf(openSqliteStore(file))).code).toBe("STORE_URL_INVALID");
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test("a newer schema: FORMAT_NEWER, and not written to (C21)", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    await (await openSqliteStore(file)).close();
    const tampering = new DatabaseSync(file);
    tampering.exec("PRAGMA user_version=5");
    tampering.close();
    const before = readFileSync(file);
    const { code, facts } = await refusalOf(openSqliteStore(file));
    expect(code).toBe("FORMAT_NEWER");
    expect(facts).toMatchObject({ found: 5, known: 4 });
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test("a schema from before the first release: JOURNAL_UNREADABLE, and not written to", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    await (await openSqliteStore(file)).close();
    const old = new DatabaseSync(file);
    old.exec("PRAGMA user_version=3");
    old.close();
    const before = readFileSync(file);
    await expect(openSqliteStore(file)).rejects.toMatchObject({ code: "JOURNAL_UNREADABLE", facts: { path: file } });
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test("an empty file is taken for a new store", async () => {
    using here = place();
    const file = join(here.path, "empty.db");
    writeFileSync(file, "");
    await using store = await openSqliteStore(file);
    expect((await store.list()).sessions).toEqual([]);
  });
});

test.each(["file", "folder"])("C19: no permission for the %s: STORE_FORBIDDEN, and how to read it", async (what) => {
  using here = place();
  const folder = join(here.path, "store");
  const file = join(folder, "store.db");
  await (await openSqliteStore(file)).close();
  chmodSync(folder, what === "folder" ? 0o000 : 0o777);
  chmodSync(file, 0o444);
  // Root may do everything, so the one who tries is nobody.
  const asNobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  const program = `
    const { newId } = await import(${JSON.stringify(new URL("../../../../src/index.ts", import.meta.url).href)});
      const { openSqliteStore } = await import(${JSON.stringify(new URL("../../../../src/internal.ts", import.meta.url).href)});
    const said = await openSqliteStore(${JSON.stringify(file)})
      .then((store) => store.create(newId(), []))
      .then(() => "it went well", ({ code, message }) => code + message.includes("copy the file"));
    console.log(said);`;
  const child = spawnSync(process.execPath, ["--input-type=module", "-e", program], { ...asNobody, encoding: "utf8" });
  expect([child.stdout.trim(), child.stderr]).toEqual(["STORE_FORBIDDENtrue", ""]);
  chmodSync(folder, 0o700);
});

test.each([2 ** 21, 2 ** 31 - 1])("P1: the %ith session of a file keeps every record in its place", async (key) => {
  using here = place();
  const file = join(here.path, "store.db");
  const [first, id] = [newId(), newId()];
  const before = await openSqliteStore(file);
  await before.create(first, []);
  await before.close();
  const sqlite = new DatabaseSync(file);
  sqlite.prepare("UPDATE sqlite_sequence SET seq = ? WHERE name = 'sessions'").run(key - 1);
  sqlite.close();
  await using store = await openSqliteStore(file);
  const journal = await store.create(id, []);
  for (let n = 0; n < 5; n++) await journal.append({ kind: "note", n });
  await journal.append([
    { kind: "note", n: 5 },
    { kind: "note", n: 6 },
  ]);
  await journal.close();
  const { records } = await store.read(id);
  expect(records.filter(({ kind }) => kind === "note").map((record) => record["n"])).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect((await store.verify(id)).damaged).toEqual([]);
});
