import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { HoldfastError } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Database } from "../../../../../src/stores/sqlite/database/database.ts";
import { emptyLog, rewriteLog, Wal } from "../../../../../src/stores/sqlite/database/wal.ts";
import { fileWith } from "../../../../file-with.ts";
import { place } from "../../../../place.ts";

/** What the log does when the database or the disk fails: with a real file, and a database that does as it is told. */

afterEach(() => void vi.restoreAllMocks());

const failed = (code: string): Error => Object.assign(new Error(code), { code });
const ofSqlite = (errcode: number): Error =>
  Object.assign(new Error("SQLite failed"), { errcode, code: "ERR_SQLITE_ERROR" });
const [IOERR, FULL] = [10, 13];

type Checkpoint = (mode: "PASSIVE" | "TRUNCATE") => void;

/** A database that has a log of these bytes. */
class ToldDatabase {
  readonly file: string;
  readonly log: string;
  readonly done: string[] = [];
  checkpoint_: Checkpoint = () => {};
  isMine = true;
  readonly files: { read: number; write: number; sync: number; open: number } = { read: 0, write: 0, sync: 0, open: 0 };
  onWrite: (bytes: Uint8Array) => number | null = () => null;
  onSync: (path: string) => void = () => {};
  gate: Promise<void> | null = null;
  readonly disk: Disk;

  constructor(folder: string, bytes: Uint8Array) {
    this.file = join(folder, "store.db");
    this.log = `${this.file}-wal`;
    writeFileSync(this.log, bytes);
    this.disk = {
      ...nodeDisk,
      open: (path, mode) => this.#told(nodeDisk.open(path, mode)),
      syncFolder: (path) => {
        this.done.push(`sync ${path}`);
        this.onSync(path);
      },
    };
  }

  get database(): Database {
    return this as unknown as Database;
  }

  checkpoint = (mode: "PASSIVE" | "TRUNCATE"): void => {
    this.done.push(mode);
    this.checkpoint_(mode);
  };
  assertMine = (): void => {
    if (!this.isMine) throw new HoldfastError("FILE_REPLACED", "replaced", {});
  };

  #told(file: DiskFile): DiskFile {
    this.files.open++;
    const syncNow = (): void => {
      this.files.sync++;
      this.done.push(`sync ${file.path}`);
      this.onSync(file.path);
    };
    return fileWith(file, {
      write: (bytes) => {
        const count = this.onWrite(bytes);
        return count === 0 ? 0 : file.write(count === null ? bytes : bytes.subarray(0, count));
      },
      writeAt: (bytes, position) => {
        const count = this.onWrite(bytes) ?? bytes.length;
        this.done.push(`write ${position} ${count}`);
        return file.writeAt(bytes.subarray(0, count), position);
      },
      sync: async () => {
        await this.gate;
        syncNow();
      },
      syncNow,
      close: () => {
        this.files.open--;
        file.close();
      },
    });
  }
}

const bytesOf = (length: number): Buffer => Buffer.from(Array.from({ length }, (_, i) => (i * 31 + (i >> 8)) & 0xff));

function told(folder: string, length = 5000): ToldDatabase {
  return new ToldDatabase(folder, bytesOf(length));
}

function empty(database: ToldDatabase): boolean {
  const log = database.disk.open(database.log, "update");
  try {
    return emptyLog(database.disk, database.database, log);
  } finally {
    log.close();
    expect(existsSync(`${database.file}-trial`)).toBe(false);
    expect(database.files.open).toBe(0);
  }
}

describe("emptying the log", () => {
  test("first tries the disk with all bytes of the log", () => {
    using here = place();
    const database = told(here.path, 2.5 * 1024 * 1024);
    const tried: Buffer[] = [];
    // A disk may take fewer bytes than it is given.
    database.onWrite = (bytes) => {
      const count = Math.ceil(bytes.length / 2);
      tried.push(Buffer.from(bytes.subarray(0, count)));
      return count;
    };
    expect(empty(database)).toBe(true);
    expect(Buffer.concat(tried).equals(bytesOf(2.5 * 1024 * 1024))).toBe(true);
    expect(database.done).toEqual([`sync ${database.file}-trial`, "TRUNCATE"]);
  });

  test("replaces the file that a killed process has left of its trial", () => {
    using here = place();
    const database = told(here.path);
    writeFileSync(`${database.file}-trial`, "left");
    expect(empty(database)).toBe(true);
  });

  test.each([
    ["the disk is full", failed("ENOSPC")],
    ["the disk takes no bytes", null],
  ])("is not possible if %s", (_, error) => {
    using here = place();
    const database = told(here.path);
    database.onWrite = () => {
      if (error) throw error;
      return 0;
    };
    expect(empty(database)).toBe(false);
    expect(database.done).toEqual([]);
  });

  test("fails if the disk does not write or does not sync, and the database file is left alone", () => {
    using here = place();
    const database = told(here.path);
    database.onWrite = () => {
      throw failed("EIO");
    };
    expect(() => empty(database)).toThrow("EIO");
    database.onWrite = () => null;
    database.onSync = () => {
      throw failed("ENOSPC");
    };
    const facts = { path: `${database.file}-trial`, errno: "ENOSPC" };
    expect(() => empty(database)).toThrow(expect.objectContaining({ code: "SYNC_FAILED", facts }));
    expect(database.done).not.toContain("TRUNCATE");
  });

  test("repeats the trial after one I/O error of SQLite, which may be an old one; a second one counts", () => {
    using here = place();
    const database = told(here.path);
    const trials = (): number => database.done.filter((one) => one.endsWith("-trial")).length;
    let errors = [ofSqlite(IOERR)];
    database.checkpoint_ = () => {
      const error = errors.shift();
      if (error) throw error;
    };
    expect(empty(database)).toBe(true);
    expect(trials()).toBe(2);
    errors = [ofSqlite(IOERR), ofSqlite(IOERR)];
    expect(() => empty(database)).toThrow(expect.objectContaining({ errcode: IOERR }));
    expect(trials()).toBe(4);
    errors = [ofSqlite(FULL)];
    expect(() => empty(database)).toThrow(expect.objectContaining({ errcode: FULL }));
    expect(trials()).toBe(5);
  });
});

test("rewriting the log writes every byte to its place", () => {
  using here = place();
  const length = 1024 * 1024 + 1000;
  const database = told(here.path, length);
  database.onWrite = (bytes) => Math.min(bytes.length, 700_000);
  const log = database.disk.open(database.log, "update");
  rewriteLog(log);
  log.close();
  expect(database.done).toEqual([
    "write 0 700000",
    `write 700000 ${1024 * 1024 - 700_000}`,
    `write ${1024 * 1024} 1000`,
  ]);
  expect(readFileSync(database.log).equals(bytesOf(length))).toBe(true);
  // It was truncated meanwhile: nothing more is to be done.
  const shrunk = { ...database.disk.open(database.log, "update"), read: () => 0 };
  rewriteLog(shrunk);
  shrunk.close();
});

interface Opened {
  readonly told: ToldDatabase;
  readonly wal: Wal;
  readonly doubts: unknown[];
}

function walOf(folder: string, length = 5000): Opened {
  const database = told(folder, length);
  const doubts: unknown[] = [];
  const wal = new Wal(database.disk, database.database, (error) => doubts.push(error));
  return { told: database, wal, doubts };
}

test("a log that can be opened only once is not used, and not left open", () => {
  using here = place();
  const database = told(here.path);
  let opened = 0;
  const disk: Disk = {
    ...database.disk,
    open: (path, mode) => {
      if (++opened === 2) throw failed("EMFILE");
      return database.disk.open(path, mode);
    },
  };
  expect(() => new Wal(disk, database.database, () => {})).toThrow("EMFILE");
  expect(database.files.open).toBe(0);
});

describe("trusting the log that is found", () => {
  test("hears old failures, makes its name durable, empties it, and syncs it on both descriptors", async () => {
    using here = place();
    const { told: database, wal, doubts } = walOf(here.path);
    let syncs = 0;
    database.onSync = (path) => {
      // The kernel tells each descriptor once of a failure in the past.
      if (path === database.log && ++syncs <= 2) throw failed("EIO");
    };
    await Promise.all([wal.trust(), wal.trust()]);
    const log = `sync ${database.log}`;
    expect(database.done).toEqual([
      ...[`sync ${dirname(database.log)}`, log, log],
      ...[`sync ${database.file}-trial`, "TRUNCATE", log, log],
    ]);
    database.done.length = 0;
    await wal.trust();
    expect(database.done).toEqual([]);
    await wal.close();
    expect([doubts, database.files.open]).toEqual([[], 0]);
  });

  test("an empty log is not tried", async () => {
    using here = place();
    const { told: database, wal } = walOf(here.path, 0);
    await wal.trust();
    await wal.confirm();
    expect(database.done).not.toContain("TRUNCATE");
    expect(database.done.filter((one) => one === `sync ${database.log}`)).toHaveLength(5);
    await wal.close();
  });

  test("a log that cannot be emptied is written once more, unless a sync of it has failed here", async () => {
    using here = place();
    const { told: database, wal, doubts } = walOf(here.path);
    database.onWrite = () => {
      throw failed("ENOSPC");
    };
    const rewriting = wal.trust();
    await expect(rewriting).rejects.toMatchObject({
      code: "SYNC_FAILED",
      facts: { path: database.log, errno: "ENOSPC" },
    });
    let writes = 0;
    database.onWrite = () => {
      if (writes++ === 0) throw failed("ENOSPC");
      return null;
    };
    await wal.trust();
    expect(database.done).toContain("write 0 5000");
    wal.doubt(failed("EIO"));
    expect(doubts).toHaveLength(1);
    writes = 0;
    await expect(wal.trust()).rejects.toMatchObject({ code: "SYNC_FAILED", facts: { path: database.log } });
    expect(writes).toBe(1);
    await wal.close();
  });

  test.each([
    ["the folder", (database: ToldDatabase) => dirname(database.log), 1],
    ["the log", (database: ToldDatabase) => database.log, 3],
    ["the log, on its second descriptor", (database: ToldDatabase) => database.log, 4],
  ])("fails if %s cannot be synced, and the next attempt starts again", async (_, pathOf, nth) => {
    using here = place();
    const { told: database, wal } = walOf(here.path);
    let syncs = 0;
    database.onSync = (path) => {
      if (path === pathOf(database) && ++syncs === nth) throw failed("EIO");
    };
    await expect(wal.trust()).rejects.toMatchObject({
      code: "SYNC_FAILED",
      facts: { path: database.log, errno: "EIO" },
    });
    await wal.trust();
    expect(database.done.filter((one) => one === `sync ${dirname(database.log)}`)).toHaveLength(2);
    await wal.close();
  });

  test("says what SQLite says, and hides no fault of the program", async () => {
    using here = place();
    const { told: database, wal } = walOf(here.path);
    database.checkpoint_ = () => {
      throw ofSqlite(FULL);
    };
    await expect(wal.trust()).rejects.toMatchObject({ code: "STORE_FULL", message: /make the log durable/ });
    database.checkpoint_ = () => {
      throw new TypeError("a fault");
    };
    await expect(wal.trust()).rejects.toThrow(TypeError);
    database.onSync = (path) => {
      if (path === database.log) throw new TypeError("another fault");
    };
    await expect(wal.trust()).rejects.toThrow("another fault");
    await wal.close();
  });

  test("a database that was replaced is not touched", async () => {
    using here = place();
    const { told: database, wal } = walOf(here.path);
    database.isMine = false;
    await expect(wal.trust()).rejects.toMatchObject({ code: "FILE_REPLACED" });
    expect(database.done).toEqual([]);
    await wal.close();
  });

  test("waits for a sync that runs, and for one that waits behind it", async () => {
    using here = place();
    const { told: database, wal } = walOf(here.path);
    await wal.trust();
    const gate = Promise.withResolvers<void>();
    database.gate = gate.promise;
    const first = expect(wal.sync()).rejects.toThrow();
    await new Promise(setImmediate);
    const second = expect(wal.sync()).rejects.toThrow();
    wal.doubt(failed("EIO"));
    database.done.length = 0;
    const trusted = wal.trust();
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
    expect(database.done).toEqual([]);
    gate.resolve();
    database.gate = null;
    await first;
    await second;
    await trusted;
    await wal.close();
  });
});

describe("a sync", () => {
  test("says when it starts, and what is asked for later waits for the next", async () => {
    using here = place();
    const { told: database, wal } = walOf(here.path);
    await wal.trust();
    const gate = Promise.withResolvers<void>();
    database.gate = gate.promise;
    const issued: string[] = [];
    const syncs = [wal.sync(() => issued.push("a")), wal.sync(() => issued.push("b"))];
    expect(issued).toEqual([]);
    await new Promise(setImmediate);
    expect(issued).toEqual(["a", "b"]);
    let isDone = false;
    const later = wal
      .sync(() => issued.push("c"))
      .then(() => {
        isDone = true;
      });
    await new Promise(setImmediate);
    expect([issued, isDone]).toEqual([["a", "b"], false]);
    const before = database.files.sync;
    gate.resolve();
    await Promise.all([...syncs, later]);
    expect([issued, database.files.sync - before]).toEqual([["a", "b", "c"], 2]);
    await wal.close();
  });

  test.each(["sync", "syncNow"] as const)(
    "%s before the log is trusted is refused, and reaches no disk",
    async (how) => {
      using here = place();
      const { told: database, wal, doubts } = walOf(here.path);
      await expect((async () => wal[how]())()).rejects.toMatchObject({ code: "EIO" });
      expect([database.files.sync, doubts.length]).toEqual([0, 1]);
      await wal.close();
    },
  );

  test.each(["sync", "syncNow"] as const)(
    "%s is no confirmation if the disk fails, or the file is no longer the one that others use",
    async (how) => {
      using here = place();
      const { told: database, wal, doubts } = walOf(here.path);
      const sync = async (): Promise<void> => wal[how]();
      for (const break_ of [
        () => (database.isMine = false),
        () =>
          (database.onSync = () => {
            throw failed("EIO");
          }),
      ]) {
        await wal.trust();
        doubts.length = 0;
        break_();
        const error = await sync().catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(Error);
        expect(doubts).toEqual([error]);
        // From now on nothing is confirmed, until the log is trusted again.
        Object.assign(database, { isMine: true, onSync: () => {} });
        await expect(sync()).rejects.toMatchObject({ code: "EIO" });
      }
      await wal.close();
    },
  );

  test("that was under way when the log came into doubt confirms nothing", async () => {
    using here = place();
    const { told: database, wal } = walOf(here.path);
    await wal.trust();
    const gate = Promise.withResolvers<void>();
    database.gate = gate.promise;
    const confirmed = expect(wal.confirm()).rejects.toMatchObject({ code: "SYNC_FAILED" });
    await new Promise(setImmediate);
    wal.doubt(failed("EIO"));
    gate.resolve();
    await confirmed;
    await wal.close();
  });

  test("of a store that is being closed is refused, which is no doubt about the log", async () => {
    using here = place();
    const { told: database, wal, doubts } = walOf(here.path);
    await wal.trust();
    const gate = Promise.withResolvers<void>();
    database.gate = gate.promise;
    const running = expect(wal.sync()).rejects.toMatchObject({ code: "STORE_CLOSED" });
    await new Promise(setImmediate);
    const next = expect(wal.sync()).rejects.toMatchObject({ code: "STORE_CLOSED" });
    const closed = wal.close();
    gate.resolve();
    await running;
    await next;
    await closed;
    expect(doubts).toEqual([]);
    expect(() => wal.syncNow()).toThrow(expect.objectContaining({ code: "STORE_CLOSED" }));
  });

  test("closing waits for a log that is being made trustworthy", async () => {
    using here = place();
    const { told: database, wal } = walOf(here.path);
    const gate = Promise.withResolvers<void>();
    database.gate = gate.promise;
    const trusted = wal.trust();
    await new Promise(setImmediate);
    let isClosed = false;
    const closed = wal.close().then(() => {
      isClosed = true;
    });
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
    expect([isClosed, database.files.open]).toEqual([false, 2]);
    gate.resolve();
    await trusted;
    await closed;
    expect(database.files.open).toBe(0);
  });
});

describe("a log that grows", () => {
  const MIB = 1024 * 1024;

  test("is moved to the database each time it has grown by some megabytes", async () => {
    using here = place();
    const { told: database, wal } = walOf(here.path);
    const counts: number[] = [];
    for (let i = 0; i < 16; i++) {
      wal.grew(MIB);
      counts.push(database.done.filter((one) => one === "PASSIVE").length);
    }
    expect(counts).toEqual([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4]);
    await wal.close();
  });

  test("small commits count as the pages that they take", async () => {
    using here = place();
    const { told: database, wal } = walOf(here.path);
    for (let i = 0; i < 1000; i++) wal.grew(10);
    expect(database.done).toEqual(["PASSIVE"]);
    await wal.close();
  });

  test.each([
    ["an I/O error: the log is in doubt", ofSqlite(IOERR), 1, 1],
    ["a full disk: the next attempt comes later", ofSqlite(FULL), 0, 1],
    ["a file that was replaced: found out at the next sync", new HoldfastError("FILE_REPLACED", "replaced", {}), 0, 1],
  ])("while %s", async (_, error, doubted, attempts) => {
    using here = place();
    const { told: database, wal, doubts } = walOf(here.path);
    database.checkpoint_ = () => {
      throw error;
    };
    wal.grew(5 * MIB);
    wal.grew(10);
    wal.grew(10);
    expect([doubts.length, database.done.length]).toEqual([doubted, attempts]);
    await wal.close();
  });
});
