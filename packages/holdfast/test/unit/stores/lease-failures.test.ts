import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, type DiskLock, nodeDisk } from "holdfast/disk";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Leases } from "../../../src/stores/lease.ts";
import { place } from "../../place.ts";

/** P6: the right to write, when the disk fails, files disappear, and others come in between. */

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const failed = (code: string): Error => Object.assign(new Error(code), { code });

/** The real disk, with the files and locks that are open. */
class CountedDisk {
  files = 0;
  locks = 0;
  hardLocks = 0;
  hardLock: Disk["hardLock"] = () => "taken";
  readonly disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      this.files++;
      const { close } = file;
      return Object.assign(file, {
        close: () => {
          this.files--;
          close.call(file);
        },
      });
    },
    lock: (path) => {
      const lock = nodeDisk.lock(path);
      if (!lock) return null;
      this.locks++;
      const release = (): void => {
        this.locks--;
        lock.release();
      };
      return { release };
    },
    hardLock: (path) => this.hardLock(path),
  };

  grant(): DiskLock {
    this.hardLocks++;
    return { release: () => this.hardLocks-- };
  }

  get open(): number[] {
    return [this.files, this.locks, this.hardLocks];
  }
}

function leasesIn(folder: string, disk: Disk = nodeDisk): Leases {
  return Leases.inRoot(disk, folder);
}

describe("a lease", () => {
  test("is held by one, is free when it is released, and says who holds it", async () => {
    using here = place();
    const counted = new CountedDisk();
    const leases = leasesIn(here.path, counted.disk);
    const id = newId();
    expect(leases.holder(id)).toBeNull();
    const lease = await leases.take(id, "one");
    const holder = { pid: process.pid, host: hostname(), app: "one", since: expect.any(String) };
    expect(leases.holder(id)).toEqual(holder);
    await expect(leases.take(id, "two")).rejects.toMatchObject({
      code: "SESSION_BUSY",
      facts: { holder, sameProcess: true },
    });
    expect(JSON.parse(readFileSync(join(here.path, "leases", `${id}.json`), "utf8"))).toEqual(holder);
    lease.assertHeld();
    lease.release();
    lease.release();
    expect([leases.holder(id), counted.open]).toEqual([null, [0, 0, 0]]);
    (await leases.take(id, "two")).release();
    expect(counted.open).toEqual([0, 0, 0]);
  });

  test.each(["removed", "replaced"])("whose file was %s is lost", async (what) => {
    using here = place();
    const leases = leasesIn(here.path);
    const id = newId();
    const path = join(here.path, "leases", id);
    const lease = await leases.take(id, "one");
    rmSync(path);
    if (what === "replaced") {
      writeFileSync(join(here.path, "filler"), "");
      writeFileSync(path, "");
    }
    expect(() => lease.assertHeld()).toThrow(
      expect.objectContaining({ code: "LEASE_LOST", facts: { session: id, path } }),
    );
    lease.release();
  });

  test("is refused while another process has the lock, and says what that one has written about itself", async () => {
    using here = place();
    const id = newId();
    const path = join(here.path, "leases", id);
    const disk: Disk = { ...nodeDisk, lock: () => null, isLocked: () => true };
    const leases = leasesIn(here.path, disk);
    let nowMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 10));
    const unknown = { pid: 0, host: "unknown", app: "unknown", since: "unknown" };
    for (const [content, holder] of [
      [null, unknown],
      ["{rot", unknown],
      ["7", unknown],
      ["null", unknown],
      ['{"pid":7,"app":"x"}', { ...unknown, pid: 7, app: "x" }],
    ] as const) {
      if (content !== null) writeFileSync(`${path}.json`, content);
      await expect(leases.take(id, "one")).rejects.toMatchObject({
        code: "SESSION_BUSY",
        facts: { holder, sameProcess: false },
      });
      expect(leases.holder(id)).toEqual(holder);
    }
    // It was tried for a while: the other may only have looked.
    expect(nowMs).toBeGreaterThan(5 * 250);
  });

  test("is taken as soon as somebody who only looked has gone", async () => {
    using here = place();
    let looks = 3;
    const disk: Disk = { ...nodeDisk, lock: (path) => (looks-- > 0 ? null : nodeDisk.lock(path)) };
    const lease = await leasesIn(here.path, disk).take(newId(), "one");
    expect(looks).toBe(-1);
    lease.release();
  });

  test("is not taken on a file that was replaced while it was locked", async () => {
    using here = place();
    const counted = new CountedDisk();
    let isFirst = true;
    const disk: Disk = {
      ...counted.disk,
      lock: (path) => {
        const lock = counted.disk.lock(path);
        if (isFirst) rmSync(path);
        isFirst = false;
        return lock;
      },
    };
    const lease = await leasesIn(here.path, disk).take(newId(), "one");
    expect(counted.locks).toBe(1);
    lease.assertHeld();
    lease.release();
    expect(counted.open).toEqual([0, 0, 0]);
  });

  test.each(["EIO", "fault"])(
    "is not taken if the file cannot be checked, and nothing stays locked: %s",
    async (what) => {
      using here = place();
      const counted = new CountedDisk();
      const id = newId();
      let isLocked = false;
      const disk: Disk = {
        ...counted.disk,
        lock: (path) => {
          isLocked = true;
          return counted.disk.lock(path);
        },
        stat: (path) => {
          if (isLocked) throw what === "EIO" ? failed("EIO") : new TypeError("a fault");
          return nodeDisk.stat(path);
        },
      };
      const taking = leasesIn(here.path, disk).take(id, "one");
      await expect(taking).rejects.toMatchObject(what === "EIO" ? { code: "STORE_IO" } : { message: "a fault" });
      expect(counted.open).toEqual([0, 0, 0]);
    },
  );
});

describe("a holder that has lost its lock but not the session", () => {
  const words = (pid: number, host = hostname()): string => JSON.stringify({ pid, host, app: "x", since: "y" });
  const NOBODY = 2 ** 22 + 1;

  test.each([
    ["lives, and has the hard lock", words(process.ppid), true, false, true],
    ["lives, without the hard lock", words(process.ppid), false, false, false],
    ["lives, has the hard lock, and has closed the session", words(process.ppid), true, true, false],
    ["is dead", words(NOBODY), true, false, false],
    ["is this process", words(process.pid), true, false, false],
    ["is on another machine, and has the hard lock", words(NOBODY, "elsewhere"), true, false, true],
    ["has no number", words(0), true, false, false],
    ["has an impossible number", '{"pid":1.5}', true, false, false],
  ])("%s", async (_, content, isHardLocked, isClosed, isHeld) => {
    using here = place();
    const id = newId();
    const counted = new CountedDisk();
    counted.hardLock = () => (isHardLocked ? "taken" : counted.grant());
    const leases = leasesIn(here.path, counted.disk);
    const path = join(here.path, "leases", id);
    for (const name of [path, `${path}.lock`, ...(isClosed ? [`${path}.closed`] : [])]) writeFileSync(name, "");
    writeFileSync(`${path}.json`, content);
    expect(leases.holder(id) !== null).toBe(isHeld);
    let nowMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 100));
    const taking = leases.take(id, "one");
    if (isHeld) await expect(taking).rejects.toMatchObject({ code: "SESSION_BUSY" });
    else (await taking).release();
    expect(counted.open).toEqual([0, 0, 0]);
  });
});

describe("the hard lock", () => {
  test("makes a lease sure, and is released with it", async () => {
    using here = place();
    const counted = new CountedDisk();
    counted.hardLock = () => counted.grant();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const lease = await leasesIn(here.path, counted.disk).take(newId(), "one");
    expect(lease.isSure).toBe(false);
    await vi.advanceTimersByTimeAsync(100);
    expect([lease.isSure, counted.hardLocks]).toEqual([true, 1]);
    lease.release();
    expect(counted.open).toEqual([0, 0, 0]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is asked for six times, each time after twice as long", async () => {
    using here = place();
    const counted = new CountedDisk();
    const asked: number[] = [];
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
    const start = Date.now();
    counted.hardLock = () => {
      asked.push(Date.now() - start);
      return "taken";
    };
    const lease = await leasesIn(here.path, counted.disk).take(newId(), "one");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toEqual([100, 300, 700, 1500, 3100, 6300]);
    expect(lease.isSure).toBe(false);
    lease.release();
  });

  test("that cannot be had leaves the lease as it is", async () => {
    using here = place();
    const counted = new CountedDisk();
    let asked = 0;
    counted.hardLock = () => {
      asked++;
      throw failed("EMFILE");
    };
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const lease = await leasesIn(here.path, counted.disk).take(newId(), "one");
    await vi.advanceTimersByTimeAsync(10_000);
    expect([asked, lease.isSure]).toEqual([1, false]);
    lease.assertHeld();
    lease.release();
  });

  test("is no longer asked for once the lease is released, nor where there is none", async () => {
    using here = place();
    const counted = new CountedDisk();
    let asked = 0;
    counted.hardLock = () => {
      asked++;
      return "none";
    };
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const leases = leasesIn(here.path, counted.disk);
    (await leases.take(newId(), "one")).release();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked).toBe(0);
    const lease = await leases.take(newId(), "one");
    await vi.advanceTimersByTimeAsync(10_000);
    expect([asked, lease.isSure]).toEqual([1, false]);
    lease.release();
  });

  test("after one, the process works nine times as long before it asks for another", async () => {
    using here = place();
    const counted = new CountedDisk();
    const asked: number[] = [];
    let nowMs = 0;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    counted.hardLock = () => {
      asked.push(nowMs);
      nowMs += 50;
      return counted.grant();
    };
    const leases = leasesIn(here.path, counted.disk);
    const held = await Promise.all([newId(), newId(), newId()].map((id) => leases.take(id, "one")));
    for (let turn = 1; turn < 20; turn++) {
      nowMs += 100;
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(asked).toEqual([100, 650, 1200]);
    expect(held.map(({ isSure }) => isSure)).toEqual([true, true, true]);
    for (const lease of held) lease.release();
    expect(counted.open).toEqual([0, 0, 0]);
  });
});

describe("the note of a writer that has closed the session", () => {
  const closedAt = { segment: "000001.jsonl", bytes: 7 };

  test("is told to the next writer, who can take it once", async () => {
    using here = place();
    const leases = leasesIn(here.path);
    const id = newId();
    const first = await leases.take(id, "one");
    expect([first.lastClose, first.takeClose()]).toEqual([null, false]);
    first.release(closedAt);
    const second = await leases.take(id, "two");
    expect(second.lastClose).toEqual(closedAt);
    expect([second.takeClose(), second.takeClose()]).toEqual([true, false]);
    second.release();
    expect(readdirSync(join(here.path, "leases")).sort()).toEqual([id, `${id}.json`].sort());
    expect((await leases.take(id, "three")).lastClose).toBeNull();
  });

  test.each(["{rot", "7", "null", '{"segment":1,"bytes":7}', '{"segment":"x"}'])(
    "that reads %j says nothing",
    async (text) => {
      using here = place();
      const leases = leasesIn(here.path);
      const id = newId();
      writeFileSync(join(here.path, "leases", `${id}.closed`), text);
      const lease = await leases.take(id, "one");
      expect([lease.lastClose, lease.takeClose()]).toEqual([null, false]);
      lease.release();
    },
  );

  test.each([
    { ...closedAt, segment: "000002.jsonl" },
    { ...closedAt, bytes: 8 },
  ])("that was changed since is not taken for the one that was read: %o", async (changed) => {
    using here = place();
    const leases = leasesIn(here.path);
    const id = newId();
    (await leases.take(id, "one")).release(closedAt);
    const lease = await leases.take(id, "two");
    writeFileSync(join(here.path, "leases", `${id}.closed`), JSON.stringify(changed));
    expect(lease.takeClose()).toBe(false);
    lease.release();
  });

  test("that was taken and could not be read is read at the next attempt", async () => {
    using here = place();
    let isFailing = false;
    const disk: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        if (isFailing && path.endsWith(".tmp")) throw failed("EMFILE");
        return nodeDisk.open(path, mode);
      },
      remove: (path) => {
        if (path.endsWith(".tmp")) throw failed("EBUSY");
        nodeDisk.remove(path);
      },
    };
    const leases = leasesIn(here.path, disk);
    const id = newId();
    (await leases.take(id, "one")).release(closedAt);
    const lease = await leases.take(id, "two");
    isFailing = true;
    expect(() => lease.takeClose()).toThrow(expect.objectContaining({ code: "STORE_IO" }));
    isFailing = false;
    expect(lease.takeClose()).toBe(true);
    lease.release();
  });

  test("does not have to be written: a full disk keeps nobody from releasing", async () => {
    using here = place();
    const full = (error: Error): Disk => ({
      ...nodeDisk,
      open: (path, mode) => {
        if (mode === "create" && path.endsWith(".tmp")) throw error;
        return nodeDisk.open(path, mode);
      },
    });
    const id = newId();
    const lease = await leasesIn(here.path, full(failed("ENOSPC"))).take(id, "one");
    lease.release(closedAt);
    expect(existsSync(join(here.path, "leases", `${id}.closed`))).toBe(false);
    await expect(leasesIn(here.path, full(new TypeError("a fault"))).take(id, "one")).rejects.toThrow("a fault");
  });
});

describe("files in place of a lease", () => {
  test("something else than a file: PATH_UNSAFE", async () => {
    using here = place();
    const leases = leasesIn(here.path);
    const id = newId();
    const path = join(here.path, "leases", id);
    mkdirSync(path);
    await expect(leases.take(id, "one")).rejects.toMatchObject({ code: "PATH_UNSAFE", facts: { path } });
    expect(leases.holder(id)).toBeNull();
  });

  test("content is removed, unless the file has other names", async () => {
    using here = place();
    const counted = new CountedDisk();
    const leases = leasesIn(here.path, counted.disk);
    const id = newId();
    const path = join(here.path, "leases", id);
    writeFileSync(path, "content");
    expect(leases.holder(id)).toBeNull();
    linkSync(path, join(here.path, "other"));
    await expect(leases.take(id, "one")).rejects.toMatchObject({ code: "PATH_UNSAFE", facts: { path } });
    expect(readFileSync(path, "utf8")).toBe("content");
    rmSync(join(here.path, "other"));
    const lease = await leases.take(id, "one");
    expect(readFileSync(path, "utf8")).toBe("");
    lease.release();
    expect(counted.open).toEqual([0, 0, 0]);
  });

  test("an empty file is not written to", async () => {
    using here = place();
    const id = newId();
    const opened: string[] = [];
    const disk: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        opened.push(`${mode} ${path}`);
        return nodeDisk.open(path, mode);
      },
    };
    const leases = leasesIn(here.path, disk);
    writeFileSync(join(here.path, "leases", id), "");
    (await leases.take(id, "one")).release();
    expect(opened.filter((one) => one.startsWith("update"))).toEqual([]);
  });

  test("one that another process creates at the same time is used; one that cannot be created is reported", async () => {
    using here = place();
    const id = newId();
    const path = join(here.path, "leases", id);
    let isFirst = true;
    const racing: Disk = {
      ...nodeDisk,
      stat: (of) => {
        if (of !== path || !isFirst) return nodeDisk.stat(of);
        isFirst = false;
        writeFileSync(path, "");
        return null;
      },
    };
    (await leasesIn(here.path, racing).take(id, "one")).release();
    const refusing: Disk = {
      ...nodeDisk,
      open: (of, mode) => {
        if (mode === "create") throw failed("EACCES");
        return nodeDisk.open(of, mode);
      },
    };
    await expect(leasesIn(here.path, refusing).take(newId(), "one")).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
  });
});

describe("a folder of leases that cannot be created", () => {
  const refusing = (error: Error): Disk => ({
    ...nodeDisk,
    makeFolder: () => {
      throw error;
    },
  });

  test("keeps no reader out, and no writer in", async () => {
    using here = place();
    const leases = leasesIn(here.path, refusing(failed("EROFS")));
    const id = newId();
    expect([leases.holder(id), leases.ids()]).toEqual([null, []]);
    leases.tidy(Date.now());
    await expect(leases.take(id, "one")).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
  });

  test("for any other reason is an error", () => {
    using here = place();
    expect(() => leasesIn(here.path, refusing(failed("EIO")))).toThrow(expect.objectContaining({ code: "STORE_IO" }));
    expect(() => leasesIn(here.path, refusing(new TypeError("a fault")))).toThrow("a fault");
  });
});

test("work is done under a lease that is free, and not under one that is held", async () => {
  using here = place();
  const counted = new CountedDisk();
  const leases = leasesIn(here.path, counted.disk);
  const id = newId();
  const done: string[] = [];
  leases.whileFree(id, () => done.push(leases.holder(id)!.app));
  expect(done).toEqual(["gc"]);
  expect(() =>
    leases.whileFree(id, () => {
      throw new Error("of the work");
    }),
  ).toThrow("of the work");
  expect(counted.locks).toBe(0);
  const lease = await leases.take(id, "one");
  leases.whileFree(id, () => done.push("too soon"));
  expect(done).toEqual(["gc"]);
  lease.release({ segment: "x", bytes: 1 });
  writeFileSync(join(here.path, "leases", `${id}.lock`), "");
  expect(leases.ids()).toEqual([id]);
  leases.forget(id);
  expect([readdirSync(join(here.path, "leases")), leases.ids()]).toEqual([[], []]);
  expect(counted.open).toEqual([0, 0, 0]);
});
