import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { afterEach, describe, expect, test, vi } from "vitest";
import { busy, corrupt } from "../../src/stores/sqlite/database/failure.ts";
import {
  isSameRecord,
  lookAt,
  type Name,
  nameOf,
  type Recorded,
  readRecorded,
  refuseName,
  writeRecorded,
} from "../../src/stores/sqlite/database/name.ts";
import { openDatabase } from "../../src/stores/sqlite/database/open-database.ts";
import { fileWith } from "../file-with.ts";
import { place, treeOf } from "../place.ts";

afterEach(() => void vi.restoreAllMocks());

const failed = (code: string): Error => Object.assign(new Error(code), { code });

/** The real disk, and what is made durable on it, in order. */
class NotedDisk {
  readonly done: string[] = [];
  files = 0;
  readonly disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      if (mode === "create") this.done.push(`create ${path}`);
      this.files++;
      return this.#noted(file);
    },
    makeFolder: (path) => {
      const isNew = nodeDisk.makeFolder(path);
      if (isNew) this.done.push(`create ${path}`);
      return isNew;
    },
    rename: (from, to) => {
      this.done.push(`rename ${from} ${to}`);
      nodeDisk.rename(from, to);
    },
    syncFolder: (path) => {
      this.done.push(`sync ${path}`);
      nodeDisk.syncFolder(path);
    },
  };

  #noted(file: DiskFile): DiskFile {
    return fileWith(file, {
      syncNow: () => {
        this.done.push(`sync ${file.path}`);
        file.syncNow();
      },
      close: () => {
        this.files--;
        file.close();
      },
    });
  }
}

/** The connections to databases that are made while `work` runs and stay open. */
async function leftOpen(work: () => Promise<unknown>): Promise<number> {
  const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
  await work();
  const connections = new Set(prepare.mock.contexts as DatabaseSync[]);
  expect(connections.size).toBeGreaterThan(0);
  prepare.mockRestore();
  return [...connections].filter(({ isOpen }) => isOpen).length;
}

const refusalOf = async (opening: Promise<{ close(isTrusted: boolean): Promise<void> }>): Promise<HoldfastError> => {
  const error = await opening.then(
    async (database) => {
      await database.close(true);
      return new Error("it went well");
    },
    (reason: unknown) => reason,
  );
  if (error instanceof HoldfastError) return error;
  throw error;
};

/** The record of use in the file itself, without its log. */
function recordIn(file: string): Record<string, unknown> | undefined {
  using here = place();
  const copy = join(here.path, "copy.db");
  copyFileSync(file, copy);
  const sqlite = new DatabaseSync(`file://${copy}?immutable=1`, { readOnly: true });
  try {
    return { ...sqlite.prepare("SELECT name, path, open FROM used_as").get() };
  } finally {
    sqlite.close();
  }
}

test("P1: everything that a new store creates is made durable, with its name, before it is used", async () => {
  using here = place();
  const folder = join(here.path, "deep", "er");
  const file = join(folder, "store.db");
  const noted = new NotedDisk();
  const database = await openDatabase(noted.disk, file);
  const locks = `${file}-locks`;
  const expected = [
    ...[`create ${dirname(folder)}`, `sync ${here.path}`, `create ${folder}`, `sync ${dirname(folder)}`],
    ...[`create ${file}`, `sync ${folder}`, `create ${locks}`],
    ...[`create ${locks}/name.tmp`, `sync ${locks}/name.tmp`, `rename ${locks}/name.tmp ${locks}/name`],
    ...[`sync ${locks}`, `sync ${folder}`],
  ];
  expect(noted.done.filter((one) => !/flags$|[/]0$|[.]claim$/.test(one))).toEqual(expected);
  // The flags stay open, and nothing else.
  expect(noted.files).toBe(1);
  const sqlite = new DatabaseSync(file, { readOnly: true });
  const pragma = (name: string): unknown => sqlite.prepare(`PRAGMA ${name}`).get()?.[name];
  expect([pragma("application_id"), pragma("user_version")]).toEqual([0x686f6c64, 3]);
  sqlite.close();
  await database.close(true);
  expect(noted.files).toBe(0);
  noted.done.length = 0;
  await (await openDatabase(noted.disk, file)).close(true);
  expect(noted.done.filter((one) => !one.endsWith(".claim"))).toEqual([]);
  expect(readdirSync(locks).filter((name) => name.endsWith(".claim"))).toEqual([]);
});

describe("the record of use", () => {
  test("is in the file itself: not in use, in use, and no longer", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const database = await openDatabase(nodeDisk, file);
    const name = readFileSync(`${file}-locks/name`, "utf8").trim();
    expect(recordIn(file)).toEqual({ name, path: file, open: 0 });
    await database.recordUse();
    expect(recordIn(file)).toEqual({ name, path: file, open: 1 });
    await database.close(true);
    expect(recordIn(file)).toEqual({ name, path: file, open: 0 });
  });

  test("is written once, and not at all if it stands there already", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const [first, second] = [await openDatabase(nodeDisk, file), await openDatabase(nodeDisk, file)];
    await first.recordUse();
    const transactions = vi.spyOn(second, "transaction");
    const retries = vi.spyOn(second, "retry");
    await second.recordUse();
    expect([transactions.mock.calls.length, retries.mock.calls.length]).toEqual([0, 1]);
    await second.recordUse();
    expect(retries).toHaveBeenCalledTimes(1);
    await first.close(true);
    expect(recordIn(file)).toMatchObject({ open: 1 });
    await second.close(true);
    expect(recordIn(file)).toMatchObject({ open: 0 });
  });

  test.each(["leaves", "stays"])("waits for a reader in the log, here one that %s", async (what) => {
    using here = place();
    const file = join(here.path, "store.db");
    const database = await openDatabase(nodeDisk, file);
    const reader = new DatabaseSync(file);
    reader.exec("BEGIN; SELECT * FROM sessions");
    database.transaction(() => database.rows.insertTrashed("x", 1));
    let nowMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 20));
    const checkpoint = database.checkpoint.bind(database);
    let attempts = 0;
    vi.spyOn(database, "checkpoint").mockImplementation((mode) => {
      if (++attempts === 3 && what === "leaves") reader.exec("COMMIT");
      return checkpoint(mode);
    });
    await database.recordUse();
    expect(recordIn(file)).toMatchObject({ open: what === "leaves" ? 1 : 0 });
    if (what === "leaves") expect(attempts).toBe(3);
    else expect(nowMs).toBeGreaterThan(500);
    reader.close();
    await database.close(true);
  });

  test("waits for a reader in the log, however long it waited for others before", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const database = await openDatabase(nodeDisk, file);
    const reader = new DatabaseSync(file);
    reader.exec("BEGIN; SELECT * FROM sessions");
    database.transaction(() => database.rows.insertTrashed("x", 1));
    let nowMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    const checkpoint = database.checkpoint.bind(database);
    let attempts = 0;
    vi.spyOn(database, "checkpoint").mockImplementation((mode) => {
      if (++attempts === 1) nowMs += 5000;
      else if (reader.isOpen) reader.close();
      return checkpoint(mode);
    });
    await database.recordUse();
    expect([attempts, recordIn(file)]).toEqual([2, expect.objectContaining({ open: 1 })]);
    await database.close(true);
  });

  test("what it says is read as it was written, and of its type", () => {
    using here = place();
    const sqlite = new DatabaseSync(join(here.path, "x.db"));
    expect(readRecorded(sqlite)).toBeNull();
    sqlite.exec("CREATE TABLE used_as (only_, name, path, folder, file, open, only INTEGER PRIMARY KEY)");
    expect(readRecorded(sqlite)).toBeNull();
    const name: Name = { name: "n", path: "/p", folder: "1:2", file: "1:3" };
    for (const open of [true, false]) {
      writeRecorded(sqlite, name, open);
      expect(readRecorded(sqlite)).toEqual({ ...name, open });
    }
    sqlite.exec("UPDATE used_as SET name = 7, path = x'00', folder = NULL, file = 1.5, open = 'x'");
    expect(readRecorded(sqlite)).toEqual({ name: "", path: "", folder: "", file: "", open: true });
    sqlite.close();
    const recorded: Recorded = { ...name, open: true };
    expect(isSameRecord(recorded, name)).toBe(true);
    expect(isSameRecord(null, name)).toBe(false);
    for (const member of ["name", "path", "folder", "file"])
      expect(isSameRecord({ ...recorded, [member]: "other" }, name), member).toBe(false);
  });
});

describe("the id of a name", () => {
  function named(): { readonly folder: string; readonly file: string } & Disposable {
    const here = place();
    const folder = join(here.path, "store.db-locks");
    mkdirSync(folder);
    const file = join(here.path, "store.db");
    writeFileSync(file, "");
    return { folder, file, [Symbol.dispose]: () => here[Symbol.dispose]() };
  }

  test("stays the same, and goes with the place of the file", () => {
    using here = named();
    const noted = new NotedDisk();
    const first = nameOf(noted.disk, here.file, here.folder);
    const { dev, ino } = nodeDisk.stat(here.file)!;
    const around = nodeDisk.stat(dirname(here.file))!;
    expect(first).toEqual({
      ...{ name: expect.stringMatching(/^[0-9a-f-]{36}$/), path: here.file },
      ...{ folder: `${around.dev}:${around.ino}`, file: `${dev}:${ino}` },
    });
    expect(nameOf(noted.disk, here.file, here.folder)).toEqual(first);
    expect(noted.files).toBe(0);
  });

  test.each(["", "short", "x".repeat(36)])("one that reads %j is made again", (content) => {
    using here = named();
    writeFileSync(join(here.folder, "name"), content);
    // Of a process that was killed here.
    writeFileSync(join(here.folder, "name.tmp"), "left");
    const { name } = nameOf(nodeDisk, here.file, here.folder);
    expect(readFileSync(join(here.folder, "name"), "utf8")).toBe(`${name}\n`);
    expect([...treeOf(here.folder).keys()]).toEqual(["name"]);
  });

  test("a link in its place is not followed", () => {
    using here = named();
    const target = join(dirname(here.file), "target");
    writeFileSync(target, "0".repeat(36));
    symlinkSync(target, join(here.folder, "name"));
    expect(nameOf(nodeDisk, here.file, here.folder).name).not.toBe("0".repeat(36));
    expect(readFileSync(target, "utf8")).toBe("0".repeat(36));
  });
});

describe("what is seen of a recorded name", () => {
  const here: Name = { name: "b", path: "/b/store.db", folder: "1:20", file: "1:7" };
  const recorded: Recorded = { name: "a", path: "/a/store.db", folder: "1:10", file: "1:7", open: true };
  const see = (stats: Record<string, { ino: number; size?: number } | Error>): object =>
    lookAt(
      {
        ...nodeDisk,
        stat: (path: string) => {
          const found = stats[path];
          if (found instanceof Error) throw found;
          return found ? ({ kind: "file", dev: 1, size: 0, ...found } as never) : null;
        },
      },
      recorded,
      here,
    );
  const nothing = { isSameFile: false, isSameFolder: false, isFolderSeen: false, logBytes: 0 };

  test.each([
    ["nothing is there", {}, {}],
    ["it is the same file", { "/a/store.db": { ino: 7 } }, { isSameFile: true }],
    ["it is another file", { "/a/store.db": { ino: 8 } }, {}],
    ["its folder is where it was", { "/a/.": { ino: 10 } }, { isFolderSeen: true }],
    ["its folder is this one", { "/a/.": { ino: 20 } }, { isSameFolder: true }],
    ["its log is there", { "/a/store.db-wal": { ino: 9, size: 99 } }, { logBytes: 99 }],
    ["it may not be looked at", { "/a/.": failed("EACCES"), "/a/store.db": failed("EACCES") }, {}],
  ])("%s", (_, stats, expected) => {
    expect(see(stats)).toEqual({ ...nothing, ...expected });
  });

  test("this name is not another one, and a fault of the program is thrown", () => {
    const disk = { ...nodeDisk, stat: () => ({ dev: 1, ino: 7, size: 0 }) as never };
    expect(lookAt(disk, { ...recorded, path: here.path }, here)).toMatchObject({ isSameFile: false });
    expect(() => see({ "/a/.": new TypeError("a fault") })).toThrow("a fault");
  });

  test.each([
    ["two-names", "the same file as /a/store.db"],
    ["log-left-behind", "Move that file to /b/store.db-wal"],
    ["log-not-seen", "not visible from here"],
  ] as const)("%s is refused with what to do", (verdict, words) => {
    const { code, message, facts } = refuseName(verdict, recorded, here);
    expect([code, facts]).toEqual(["PATH_UNSAFE", { path: here.path, usedAs: recorded.path }]);
    expect(message).toContain(words);
  });
});

describe("a file that cannot be opened", () => {
  test.each(["-wal", "-shm", "-journal"])("something else in place of store.db%s: PATH_UNSAFE", async (ending) => {
    using here = place();
    const file = join(here.path, "store.db");
    mkdirSync(file + ending);
    const { code, facts } = await refusalOf(openDatabase(nodeDisk, file));
    expect([code, facts]).toEqual(["PATH_UNSAFE", { path: file + ending, found: "folder" }]);
  });

  test.each([1, 511])("%i bytes that are not a database are left alone", async (length) => {
    using here = place();
    const file = join(here.path, "store.db");
    writeFileSync(file, "x".repeat(length));
    const { code, facts } = await refusalOf(openDatabase(nodeDisk, file));
    expect([code, facts]).toEqual(["STORE_URL_INVALID", { path: file }]);
    expect(readFileSync(file, "utf8")).toBe("x".repeat(length));
  });

  test.each([
    ["of another program", "PRAGMA application_id=1", "STORE_URL_INVALID", { applicationId: 1 }],
    ["of another program, with a version", "PRAGMA user_version=7", "STORE_URL_INVALID", { applicationId: 0 }],
    ["whose texts are encoded in another way", "PRAGMA encoding='UTF-16'", "JOURNAL_UNREADABLE", {}],
    ["that moves its pages", "PRAGMA auto_vacuum=FULL", "JOURNAL_UNREADABLE", {}],
  ])("a database %s: %s", async (_, sql, code, facts) => {
    using here = place();
    const file = join(here.path, "store.db");
    const sqlite = new DatabaseSync(file);
    const ours = code === "JOURNAL_UNREADABLE" ? "PRAGMA application_id=0x686f6c64; PRAGMA user_version=3;" : "";
    sqlite.exec(`${sql}; ${ours} ${ours && "CREATE TABLE t (x);"}`);
    sqlite.close();
    const before = treeOf(here.path);
    let refused: HoldfastError | null = null;
    const open = await leftOpen(async () => {
      refused = await refusalOf(openDatabase(nodeDisk, file));
    });
    expect(open).toBe(0);
    expect(refused).toMatchObject({ code, facts: { path: file, ...facts } });
    // Nothing is created beside a file that is not ours.
    expect(treeOf(here.path)).toEqual(before);
  });

  test("a file that another process creates at the same time is used; one that cannot be created is not", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    let isFirst = true;
    const racing: Disk = {
      ...nodeDisk,
      stat: (path) => {
        if (path !== file || !isFirst) return nodeDisk.stat(path);
        isFirst = false;
        writeFileSync(file, "");
        return null;
      },
    };
    await (await openDatabase(racing, file)).close(true);
    const refusing: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        if (mode === "create") throw failed("EACCES");
        return nodeDisk.open(path, mode);
      },
    };
    expect((await refusalOf(openDatabase(refusing, join(here.path, "other.db")))).code).toBe("STORE_FORBIDDEN");
  });

  test.each(["", "-wal"])("store.db%s goes away while it is being opened: FILE_REPLACED", async (ending) => {
    using here = place();
    const file = join(here.path, "store.db");
    await (await openDatabase(nodeDisk, file)).close(true);
    let isOpen = false;
    const noted = new NotedDisk();
    const disk: Disk = {
      ...noted.disk,
      stat: (path) => {
        const found = nodeDisk.stat(path);
        isOpen ||= path === `${file}-wal` && found !== null;
        return isOpen && path === file + ending && found ? (ending === "" ? { ...found, ino: 1 } : null) : found;
      },
    };
    let refused: HoldfastError | null = null;
    const open = await leftOpen(async () => {
      refused = await refusalOf(openDatabase(disk, file));
    });
    expect(refused).toMatchObject({ code: "FILE_REPLACED", facts: { path: file + ending } });
    expect([open, noted.files]).toEqual([0, 0]);
    // It is no longer one of the users.
    expect(readFileSync(`${file}-locks/flags`).every((byte) => byte === 0)).toBe(true);
  });

  test("a file system on which SQLite has no log: NOT_SUPPORTED", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const { prepare } = DatabaseSync.prototype;
    let isClosed = 0;
    vi.spyOn(DatabaseSync.prototype, "prepare").mockImplementation(function (this: DatabaseSync, sql: string) {
      if (sql === "PRAGMA journal_mode=WAL") return prepare.call(this, "SELECT 'delete' AS journal_mode");
      return prepare.call(this, sql);
    });
    vi.spyOn(DatabaseSync.prototype, "close").mockImplementation(() => void isClosed++);
    const { code, facts } = await refusalOf(openDatabase(nodeDisk, file));
    expect([code, facts]).toEqual(["NOT_SUPPORTED", { path: file, journalMode: "delete" }]);
    expect(isClosed).toBeGreaterThanOrEqual(2);
  });

  test("one that was moved here and is still used elsewhere: refused in a second, and its log is removed", async () => {
    using here = place();
    const [from, to] = [join(here.path, "from.db"), join(here.path, "to.db")];
    await (await openDatabase(nodeDisk, from)).close(true);
    renameSync(from, to);
    const user = new DatabaseSync(to);
    user.exec("BEGIN; SELECT * FROM sessions");
    let nowMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 20));
    const { code, message } = await refusalOf(openDatabase(nodeDisk, to));
    expect([code, message]).toEqual(["PATH_UNSAFE", expect.stringContaining(`in use now as ${from}`)]);
    expect(nowMs).toBeGreaterThan(1000);
    user.exec("COMMIT");
    user.close();
    vi.restoreAllMocks();
    await (await openDatabase(nodeDisk, to)).close(true);
  });

  test("one that was moved here and is read for a moment: opened, however long it waited for others before", async () => {
    using here = place();
    const [from, to] = [join(here.path, "from.db"), join(here.path, "to.db")];
    await (await openDatabase(nodeDisk, from)).close(true);
    renameSync(from, to);
    const reader = new DatabaseSync(to);
    reader.exec("BEGIN; SELECT * FROM sessions");
    let nowMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    let looks = 0;
    const disk: Disk = {
      ...nodeDisk,
      stat: (path) => {
        // The first thing that is done once nobody's flag is in the way.
        if (path === join(`${to}-locks`, "name") && ++looks === 1) nowMs += 5000;
        if (looks === 2 && reader.isOpen) reader.close();
        return nodeDisk.stat(path);
      },
    };
    await (await openDatabase(disk, to)).close(true);
    expect(looks).toBe(2);
  });
});

describe("what a refused name leaves behind", () => {
  /** A database that was moved without its log, which holds records. */
  async function movedWithoutLog(folder: string): Promise<{ readonly to: string; close(): Promise<void> }> {
    const [from, to] = [join(folder, "from.db"), join(folder, "to.db")];
    const database = await openDatabase(nodeDisk, from);
    await database.recordUse();
    renameSync(from, to);
    return { to, close: () => database.close(false) };
  }
  const logs = (file: string): boolean[] => ["-wal", "-shm"].map((ending) => nodeDisk.stat(file + ending) !== null);

  test("no log, if there was none", async () => {
    using here = place();
    const { to, close } = await movedWithoutLog(here.path);
    expect((await refusalOf(openDatabase(nodeDisk, to))).code).toBe("PATH_UNSAFE");
    expect(logs(to)).toEqual([false, false]);
    await close();
  });

  test.each([
    ["the disk refuses", failed("EACCES")],
    ["others are busy", busy("busy")],
  ])(
    "its log, if it cannot be removed because %s: the refusal is reported, and nothing is left open",
    async (_, error) => {
      using here = place();
      const { to, close } = await movedWithoutLog(here.path);
      const noted = new NotedDisk();
      let nowMs = 0;
      const remove = (path: string): void => {
        if (!path.endsWith(".claim")) {
          vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 1000));
          throw error;
        }
        nodeDisk.remove(path);
      };
      expect((await refusalOf(openDatabase({ ...noted.disk, remove }, to))).code).toBe("PATH_UNSAFE");
      vi.restoreAllMocks();
      expect(noted.files).toBe(0);
      expect(readFileSync(`${to}-locks/flags`).every((byte) => byte === 0)).toBe(true);
      await close();
    },
  );

  test("the log that was there", async () => {
    using here = place();
    const { to, close } = await movedWithoutLog(here.path);
    writeFileSync(`${to}-wal`, "");
    expect((await refusalOf(openDatabase(nodeDisk, to))).code).toBe("PATH_UNSAFE");
    expect(logs(to)[0]).toBe(true);
    await close();
  });

  test("a log in which somebody has written meanwhile", async () => {
    using here = place();
    const { to, close } = await movedWithoutLog(here.path);
    const removed: string[] = [];
    let isRefused = false;
    const disk: Disk = {
      ...nodeDisk,
      stat: (path) => {
        const found = nodeDisk.stat(path);
        // The last thing that is looked at before it is refused.
        isRefused ||= path.endsWith("from.db-wal");
        return isRefused && path === `${to}-wal` && found ? { ...found, size: 99 } : found;
      },
      remove: (path) => {
        removed.push(path);
        nodeDisk.remove(path);
      },
    };
    expect((await refusalOf(openDatabase(disk, to))).code).toBe("PATH_UNSAFE");
    expect(removed.filter((path) => !path.endsWith(".claim"))).toEqual([]);
    await close();
  });
});

describe("an open database", () => {
  const flagOf = (file: string): number => readFileSync(`${file}-locks/flags`)[0]!;

  test("raises the flag of each use, and takes back what fails", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    let [isOpen, alone] = [false, 0];
    const disk: Disk = {
      ...nodeDisk,
      stat: (path) => {
        if (isOpen && path === `${file}-wal`) alone = flagOf(file);
        return nodeDisk.stat(path);
      },
    };
    const database = await openDatabase(disk, file);
    isOpen = true;
    expect(database.write(() => flagOf(file))).toBe(2);
    expect(database.transaction(() => flagOf(file))).toBe(2);
    expect(await database.read("read", () => flagOf(file))).toBe(1);
    expect(await database.readAlone("read", () => flagOf(file))).toBe(3);
    alone = 0;
    expect(database.checkpoint("PASSIVE")).toBe(true);
    expect([alone, flagOf(file)]).toEqual([3, 0]);
    const trashed = (): number => database.rows.trashed(10).length;
    const insert = (): unknown => database.rows.insertTrashed("x", 1);
    const failing = (): never => {
      insert();
      throw new TypeError("a fault");
    };
    expect(() => database.transaction(failing)).toThrow("a fault");
    expect(trashed()).toBe(0);
    database.transaction(insert);
    expect(trashed()).toBe(1);
    await database.close(true);
  });

  test("a checkpoint says whether everything was moved, and truncates the log if it is told to", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const database = await openDatabase(nodeDisk, file);
    const size = (): number => nodeDisk.stat(`${file}-wal`)!.size;
    const insert = (): unknown => database.transaction(() => database.rows.insertTrashed("x", 1));
    insert();
    expect([database.checkpoint("PASSIVE"), size() > 0]).toEqual([true, true]);
    expect([database.checkpoint("TRUNCATE"), size()]).toEqual([true, 0]);
    const reader = new DatabaseSync(file);
    reader.exec("BEGIN; SELECT * FROM sessions");
    insert();
    expect(database.checkpoint("PASSIVE")).toBe(false);
    expect(() => expect(database.checkpoint("TRUNCATE")).toBe(false)).not.toThrow();
    reader.exec("COMMIT");
    reader.close();
    await database.close(true);
  });

  test("reads once more, alone, before it believes in damage", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const database = await openDatabase(nodeDisk, file);
    const flags: number[] = [];
    const reading = (errors: Error[]) => (): string => {
      flags.push(flagOf(file));
      const error = errors.shift();
      if (error) throw error;
      return "read";
    };
    expect(await database.read("read", reading([corrupt("once")]))).toBe("read");
    expect(flags.splice(0)).toEqual([1, 3]);
    const damaged = database.read("read it", reading([corrupt("once"), corrupt("twice")]));
    await expect(damaged).rejects.toMatchObject({ code: "JOURNAL_UNREADABLE", message: /read it/ });
    expect(flags.splice(0)).toEqual([1, 3]);
    await expect(database.read("read", reading([new TypeError("a fault")]))).rejects.toThrow("a fault");
    expect(flags).toEqual([1]);
    await database.close(true);
  });

  test("tries again while others are busy, for ten seconds; then it says so", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const database = await openDatabase(nodeDisk, file);
    let tries = 0;
    const busyFor = (count: number) => (): string => {
      if (tries++ < count) throw busy("busy");
      return "done";
    };
    expect(await database.retry("work", busyFor(3))).toBe("done");
    expect(tries).toBe(4);
    // This process is not blocked meanwhile.
    let isFree = false;
    setImmediate(() => {
      isFree = true;
    });
    expect(await database.retry("work", () => (isFree ? "done" : busyFor(1e9)()))).toBe("done");
    tries = 0;
    const startMs = Math.ceil(performance.now());
    let nowMs = startMs;
    vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 100));
    tries = 0;
    const given = database.retry("work on it", busyFor(10_000));
    await expect(given).rejects.toMatchObject({ code: "STORE_IO", message: /work on it.*busy/ });
    expect(nowMs - startMs).toBeGreaterThan(10_000);
    expect(nowMs - startMs).toBeLessThan(15_000);
    // By a clock of its own: a busy machine may pause for longer than it tries.
    vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 0.5));
    const triesOfOne = (): number => {
      tries = 0;
      expect(() => database.spin(busyFor(1e9))).toThrow("busy");
      return tries;
    };
    nowMs += 1000;
    const [first, second] = [triesOfOne(), triesOfOne()];
    expect(first).toBeGreaterThan(2);
    expect(first).toBeLessThan(10);
    // Of many that wait at the same time, one at a time blocks this process.
    expect(second).toBe(1);
    nowMs += 20;
    expect(triesOfOne()).toBe(first);
    vi.restoreAllMocks();
    let calls = 0;
    const fault = (): never => {
      calls++;
      throw new TypeError("a fault");
    };
    expect(() => database.spin(fault)).toThrow("a fault");
    expect(calls).toBe(1);
    await database.close(true);
    await database.close(true);
    await expect(database.retry("work", () => 0)).rejects.toMatchObject({
      code: "STORE_CLOSED",
      facts: { url: `sqlite:${file}` },
    });
  });

  test("notices that its file, its log or the file of flags is another one", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const moved = new Set<string>();
    const disk: Disk = {
      ...nodeDisk,
      stat: (path) => {
        const found = nodeDisk.stat(path);
        return found && moved.has(path) ? { ...found, ino: found.ino + 1 } : found;
      },
    };
    const database = await openDatabase(disk, file);
    database.assertMine();
    database.assertShared();
    const replaced = expect.objectContaining({ code: "FILE_REPLACED" });
    for (const path of [file, `${file}-wal`]) {
      moved.add(path);
      expect(() => database.assertMine()).toThrow(replaced);
      expect(() => database.checkpoint("PASSIVE")).toThrow(replaced);
      moved.clear();
    }
    moved.add(`${file}-locks/flags`);
    expect(() => database.assertShared()).toThrow(replaced);
    moved.clear();
    await database.close(true);
  });
});

describe("closing a database", () => {
  const exists = (path: string): boolean => nodeDisk.stat(path) !== null;

  test.each([
    ["the last user: the log is moved and removed", true, () => {}, false],
    ["a log that is not trusted stays", false, () => {}, true],
    ["a log of others stays", true, (stats: Set<string>, file: string) => stats.add(file), true],
  ])("%s", async (_, isTrusted, tamper, stays) => {
    using here = place();
    const file = join(here.path, "store.db");
    const moved = new Set<string>();
    const disk: Disk = {
      ...nodeDisk,
      stat: (path) => {
        const found = nodeDisk.stat(path);
        return found && moved.has(path) ? { ...found, ino: 1 } : found;
      },
    };
    const database = await openDatabase(disk, file);
    await database.recordUse();
    tamper(moved, file);
    await database.close(isTrusted);
    expect(exists(`${file}-wal`)).toBe(stays);
    expect(readFileSync(`${file}-locks/flags`).every((byte) => byte === 0)).toBe(true);
  });

  test("another user, or one who is busy for long, keeps the log; and nothing fails", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const [first, second] = [await openDatabase(nodeDisk, file), await openDatabase(nodeDisk, file)];
    await first.close(true);
    expect(exists(`${file}-wal`)).toBe(true);
    const reader = new DatabaseSync(file);
    await second.recordUse();
    second.transaction(() => second.rows.insertTrashed("x", 1));
    reader.exec("BEGIN; SELECT * FROM sessions");
    let nowMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 20));
    await second.close(true);
    expect(exists(`${file}-wal`)).toBe(true);
    vi.restoreAllMocks();
    reader.exec("COMMIT");
    reader.close();
    await (await openDatabase(nodeDisk, file)).close(true);
    expect(exists(`${file}-wal`)).toBe(false);
  });

  test("of two users that close at the same time, one is the last", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const [first, second] = [await openDatabase(nodeDisk, file), await openDatabase(nodeDisk, file)];
    await first.recordUse();
    await Promise.all([first.close(true), second.close(true)]);
    expect(exists(`${file}-wal`)).toBe(false);
    expect(recordIn(file)).toMatchObject({ open: 0 });
    expect(readFileSync(`${file}-locks/flags`).every((byte) => byte === 0)).toBe(true);
  });

  test("a fault of the program is thrown, and everything is closed", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const noted = new NotedDisk();
    const database = await openDatabase(noted.disk, file);
    const open = await leftOpen(async () => {
      database.rows.trashed(1);
      vi.spyOn(database, "assertMine").mockImplementation(() => {
        throw new TypeError("a fault");
      });
      database.transaction(() => {});
      new DatabaseSync(file).prepare("SELECT 1").get();
      await expect(database.close(true)).rejects.toThrow("a fault");
    });
    expect([open, noted.files]).toEqual([1, 0]);
  });
});
