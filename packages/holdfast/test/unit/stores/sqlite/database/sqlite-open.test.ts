import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Database } from "../../../../../src/stores/sqlite/database/database.ts";
import { corrupt } from "../../../../../src/stores/sqlite/database/failure.ts";
import { makeFile, openDatabase } from "../../../../../src/stores/sqlite/database/open-database.ts";
import { fileWith } from "../../../../file-with.ts";
import { place, treeOf } from "../../../../place.ts";

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

const refusalOf = async (opening: Promise<Database>): Promise<HoldfastError> => {
  const error = await opening.then(
    (database) => {
      database.close();
      return new Error("it went well");
    },
    (reason: unknown) => reason,
  );
  if (error instanceof HoldfastError) return error;
  throw error;
};

const opener = { app: "test", since: "2026-01-01T00:00:00.000Z" };

async function opened(file: string, disk: Disk = nodeDisk): Promise<Database> {
  makeFile(disk, file);
  return openDatabase(disk, file, opener);
}

test("P1: everything that a new store creates is made durable, with its name, before it is used", async () => {
  using here = place();
  const folder = join(here.path, "deep", "er");
  const file = join(folder, "store.db");
  const noted = new NotedDisk();
  const database = await opened(file, noted.disk);
  expect(noted.done.slice(0, 6)).toEqual([
    ...[`create ${dirname(folder)}`, `create ${folder}`, `create ${file}`],
    ...[`sync ${folder}`, `sync ${dirname(folder)}`, `sync ${here.path}`],
  ]);
  expect(noted.files).toBe(0);
  database.close();
  const sqlite = new DatabaseSync(file, { readOnly: true });
  const pragma = (name: string): unknown => sqlite.prepare(`PRAGMA ${name}`).get()?.[name];
  expect([pragma("application_id"), pragma("user_version")]).toEqual([0x686f6c64, 4]);
  sqlite.close();
  noted.done.length = 0;
  (await opened(file, noted.disk)).close();
  expect(noted.done.filter((one) => !one.includes("-holder"))).toEqual([]);
});

describe("a file that cannot be opened", () => {
  test.each(["-wal", "-journal"])("something else in place of store.db%s: PATH_UNSAFE", async (ending) => {
    using here = place();
    const file = join(here.path, "store.db");
    mkdirSync(file + ending);
    const { code, facts } = await refusalOf(opened(file));
    expect([code, facts]).toEqual(["PATH_UNSAFE", { path: file + ending, found: "folder" }]);
  });

  test.each([1, 511])("%i bytes that are not a database are left alone", async (length) => {
    using here = place();
    const file = join(here.path, "store.db");
    writeFileSync(file, "x".repeat(length));
    const { code, facts } = await refusalOf(opened(file));
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
    const ours = code === "JOURNAL_UNREADABLE" ? "PRAGMA application_id=0x686f6c64; PRAGMA user_version=4;" : "";
    sqlite.exec(`${sql}; ${ours} ${ours && "CREATE TABLE t (x);"}`);
    sqlite.close();
    const before = treeOf(here.path);
    let refused: HoldfastError | null = null;
    const open = await leftOpen(async () => {
      refused = await refusalOf(opened(file));
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
    (await opened(file, racing)).close();
    const refusing: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        if (mode === "create") throw failed("EACCES");
        return nodeDisk.open(path, mode);
      },
    };
    expect((await refusalOf(opened(join(here.path, "other.db"), refusing))).code).toBe("STORE_FORBIDDEN");
  });

  test.each(["", "-wal"])("store.db%s goes away while it is being opened: FILE_REPLACED", async (ending) => {
    using here = place();
    const file = join(here.path, "store.db");
    (await opened(file)).close();
    let looks = Number.NEGATIVE_INFINITY;
    const noted = new NotedDisk();
    const disk: Disk = {
      ...noted.disk,
      stat: (path) => {
        const found = nodeDisk.stat(path);
        // The lock, the file, and the file once more when it is open.
        if (path.endsWith("-lock")) looks = 0;
        if (path === file) looks++;
        return looks > 1 && path === file + ending && found ? (ending === "" ? { ...found, ino: 1 } : null) : found;
      },
    };
    let refused: HoldfastError | null = null;
    const open = await leftOpen(async () => {
      refused = await refusalOf(opened(file, disk));
    });
    expect(refused).toMatchObject({ code: "FILE_REPLACED", facts: { path: file + ending } });
    expect([open, noted.files]).toEqual([0, 0]);
    // Nobody holds it.
    (await opened(file)).close();
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
    const { code, facts } = await refusalOf(opened(file));
    expect([code, facts]).toEqual(["NOT_SUPPORTED", { path: file, journalMode: "delete" }]);
    expect(isClosed).toBeGreaterThanOrEqual(2);
  });

  test("another program reads it for a moment: opened; one that stays: STORE_BUSY in a second", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    (await opened(file)).close();
    const reader = new DatabaseSync(file);
    reader.exec("SELECT * FROM sessions");
    setTimeout(() => reader.close(), 20);
    (await opened(file)).close();
    using another = new DatabaseSync(file);
    another.exec("SELECT * FROM sessions");
    let nowMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 20));
    const { code, facts } = await refusalOf(opened(file));
    expect([code, facts]).toEqual(["STORE_BUSY", { url: `sqlite:${file}`, holder: null, sameProcess: false }]);
    expect(nowMs).toBeGreaterThan(1000);
  });
});

describe("an open database", () => {
  test("takes back what fails, and refuses everything once it is closed", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const database = await opened(file);
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
    const damaged = (): never => {
      throw corrupt("damaged");
    };
    expect(() => database.attempt("read it", damaged)).toThrow(
      expect.objectContaining({ code: "JOURNAL_UNREADABLE", message: expect.stringContaining("read it") }),
    );
    database.close();
    database.close();
    expect(() => database.attempt("read", () => 0)).toThrow(
      expect.objectContaining({ code: "STORE_CLOSED", facts: { url: `sqlite:${file}` } }),
    );
  });

  test("a checkpoint moves everything, and truncates the log if it is told to", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const database = await opened(file);
    const size = (): number => nodeDisk.stat(`${file}-wal`)!.size;
    database.transaction(() => database.rows.insertTrashed("x", 1));
    database.checkpoint("PASSIVE");
    expect(size()).toBeGreaterThan(0);
    database.checkpoint("TRUNCATE");
    expect(size()).toBe(0);
    database.close();
  });

  test("notices that its file or its log is another one", async () => {
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
    const database = await opened(file, disk);
    database.assertMine();
    const replaced = expect.objectContaining({ code: "FILE_REPLACED" });
    for (const path of [file, `${file}-wal`]) {
      moved.add(path);
      expect(() => database.assertMine()).toThrow(replaced);
      expect(() => database.checkpoint("PASSIVE")).toThrow(replaced);
      moved.clear();
    }
    database.close();
  });
});

describe("closing a database", () => {
  test("the log is moved and removed", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const database = await opened(file);
    database.transaction(() => database.rows.insertTrashed("a", 1));
    expect(nodeDisk.stat(`${file}-wal`)!.size).toBeGreaterThan(0);
    database.close();
    expect(readdirSync(here.path).sort()).toEqual(["store.db", "store.db-lock"]);
  });

  test("a database that was moved away keeps its log where it was", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const database = await opened(file);
    database.transaction(() => database.rows.insertTrashed("a", 1));
    renameSync(file, join(here.path, "moved.db"));
    database.close();
    expect(nodeDisk.stat(`${file}-wal`)!.size).toBeGreaterThan(0);
  });
});
