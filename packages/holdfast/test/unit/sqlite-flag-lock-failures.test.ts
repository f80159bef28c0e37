import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Disk, type DiskFile, type DiskLock, nodeDisk } from "holdfast/disk";
import { afterEach, describe, expect, test, vi } from "vitest";
import { isBusy } from "../../src/stores/sqlite/database/failure.ts";
import { FlagLock, type Use } from "../../src/stores/sqlite/database/flag-lock.ts";
import { fileWith } from "../file-with.ts";
import { place } from "../place.ts";

const SLOT_BYTES = 256;
const OWNER_AT = 2;

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const failed = (code: string): Error => Object.assign(new Error(code), { code });
const withCode = (code: string) => expect.objectContaining({ code });

/** The real disk. It counts what is open, and tests can step in. */
class WatchedDisk {
  files = 0;
  locks = 0;
  hardLocks = 0;
  onLock: (path: string) => void = () => {};
  onRead: () => void = () => {};
  onWriteAt: (bytes: Uint8Array) => void = () => {};
  hardLock: () => Promise<DiskLock | null> = async () => this.grant();

  readonly disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      this.files++;
      return this.#watched(file);
    },
    lock: (path) => {
      this.onLock(path);
      const lock = nodeDisk.lock(path);
      if (!lock) return null;
      this.locks++;
      const release = (): void => {
        this.locks--;
        lock.release();
      };
      return { release };
    },
    hardLock: () => this.hardLock(),
    isHardLocked: () => false,
  };

  grant(): DiskLock {
    this.hardLocks++;
    return { release: () => this.hardLocks-- };
  }

  get open(): number[] {
    return [this.files, this.locks, this.hardLocks];
  }

  #watched(file: DiskFile): DiskFile {
    const isFlags = file.path.endsWith("flags");
    return fileWith(file, {
      read: (into, offset, length, position) => {
        if (isFlags) this.onRead();
        return file.read(into, offset, length, position);
      },
      writeAt: (bytes, position) => {
        this.onWriteAt(bytes);
        return file.writeAt(bytes, position);
      },
      close: () => {
        this.files--;
        file.close();
      },
    });
  }
}

function locksIn(path: string): { readonly folder: string; readonly flags: string } {
  const folder = join(path, "locks");
  mkdirSync(folder);
  return { folder, flags: join(folder, "flags") };
}

function can(lock: FlagLock, use: Use): boolean {
  try {
    lock.use(use, () => {});
    return true;
  } catch (error) {
    if (!isBusy(error)) throw error;
    return false;
  }
}

interface OwnerOptions {
  readonly flag?: number;
  readonly count?: number;
  readonly pid?: number;
  readonly host?: string;
}

/** The slot of an owner in another process: the parent of this one, unless another is named. */
function slotOf({
  flag = 0,
  count = 1,
  pid = process.ppid,
  host = hostname().slice(0, 80),
}: OwnerOptions = {}): Buffer {
  const start = startOf(pid);
  const boot = textOf("/proc/sys/kernel/random/boot_id")?.trim() ?? null;
  const slot = Buffer.alloc(SLOT_BYTES);
  slot.write(JSON.stringify({ id: "x".repeat(36), pid, start, boot, host }), 2);
  slot[0] = flag;
  slot[1] = count;
  return slot;
}

function startOf(pid: number): string | null {
  return textOf(`/proc/${pid}/stat`)?.split(") ")[1]?.split(" ")[19] ?? null;
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return null;
  }
}

/** A process number that no process has. */
const NOBODY = 2 ** 22 + 1;

/** `performance.now()`, set by hand. */
function clock(): { nowMs: number } {
  const state = { nowMs: 1000 };
  vi.spyOn(performance, "now").mockImplementation(() => state.nowMs);
  return state;
}

test("the layout of the file is fixed: processes of other versions share it", () => {
  using here = place();
  const { folder, flags } = locksIn(here.path);
  writeFileSync(flags, slotOf());
  const lock = FlagLock.open(nodeDisk, folder);
  const mine = (): Buffer => readFileSync(flags).subarray(SLOT_BYTES);
  expect(mine().length).toBe(SLOT_BYTES);
  const [owner, rest] = mine().toString("utf8", 2).split("\0", 2);
  expect(rest).toBe("");
  expect(JSON.parse(owner!)).toMatchObject({
    pid: process.pid,
    host: hostname().slice(0, 80),
    start: startOf(process.pid),
    boot: textOf("/proc/sys/kernel/random/boot_id")?.trim() ?? null,
  });
  // A flag for each kind of use, and a number that changes with every use.
  const heads: number[][] = [];
  for (const use of ["read", "write", "alone"] as const) lock.use(use, () => heads.push([...mine().subarray(0, 2)]));
  expect(heads.map(([flag]) => flag)).toEqual([1, 2, 3]);
  expect(new Set(heads.map(([, count]) => count)).size).toBe(3);
  for (let i = 0; i < 256; i++) lock.use("read", () => heads.push([...mine().subarray(0, 2)]));
  expect(new Set(heads.slice(3).map(([, count]) => count)).size).toBe(256);
  expect([...mine().subarray(0, 1)]).toEqual([0]);
  lock.close();
  expect(mine().equals(Buffer.alloc(SLOT_BYTES))).toBe(true);
});

test("more than eight users: each keeps each other out", () => {
  using here = place();
  const { folder } = locksIn(here.path);
  const locks = Array.from({ length: 18 }, () => FlagLock.open(nodeDisk, folder));
  for (const [one, other] of [
    [0, 8],
    [8, 0],
    [17, 1],
    [1, 17],
  ] as const)
    locks[one]!.use("write", () => expect(can(locks[other]!, "write")).toBe(false));
  for (const lock of locks) lock.close();
});

test("a store that 1,024 processes have open takes no more", (context) => {
  if (process.platform !== "linux") context.skip("not run: reads /proc");
  using here = place();
  const { folder, flags } = locksIn(here.path);
  writeFileSync(flags, Buffer.concat(Array.from({ length: 1023 }, () => slotOf())));
  const watched = new WatchedDisk();
  const last = FlagLock.open(watched.disk, folder);
  const before = watched.open;
  expect(() => FlagLock.open({ ...watched.disk, isLocked: () => true }, folder)).toThrow(
    expect.objectContaining({ code: "STORE_IO", facts: { path: flags, limit: 1024 } }),
  );
  expect(watched.open).toEqual(before);
  last.close();
  expect(watched.open).toEqual([0, 0, 0]);
});

describe("closing", () => {
  test("gives back the slot, the descriptor and both locks, once", async () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const watched = new WatchedDisk();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    for (let i = 0; i < 3; i++) {
      const lock = FlagLock.open(watched.disk, folder);
      lock.use("write", () => {});
      await vi.advanceTimersByTimeAsync(1000);
      expect(watched.open).toEqual([1, 1, 1]);
      lock.close();
      lock.close();
      expect(watched.open).toEqual([0, 0, 0]);
      // The same slot each time.
      expect(readFileSync(flags).equals(Buffer.alloc(SLOT_BYTES))).toBe(true);
    }
  });

  test("gives back a hard lock that is granted afterwards", async () => {
    using here = place();
    const { folder } = locksIn(here.path);
    const watched = new WatchedDisk();
    const granted = Promise.withResolvers<DiskLock>();
    watched.hardLock = () => granted.promise;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const lock = FlagLock.open(watched.disk, folder);
    await vi.advanceTimersByTimeAsync(1000);
    lock.close();
    granted.resolve(watched.grant());
    await vi.advanceTimersByTimeAsync(0);
    expect(watched.open).toEqual([0, 0, 0]);
  });

  test("at the end of a use: the slot is free before anybody else can look", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const watched = new WatchedDisk();
    const [lock, other] = [FlagLock.open(watched.disk, folder), FlagLock.open(nodeDisk, folder)];
    lock.use("alone", () => {
      expect(lock.isShared()).toBe(true);
      lock.leave();
      // From now on, nothing is written to the slot.
      watched.onWriteAt = () => {
        throw new TypeError("a fault");
      };
    });
    expect(other.use("alone", () => other.isShared())).toBe(false);
    lock.close();
    expect(watched.open).toEqual([0, 0, 0]);

    const stalled = FlagLock.open(nodeDisk, folder);
    const others = slotOf({ flag: 3 });
    const leave = (): void => {
      writeFileSync(flags, others, { flag: "r+" });
      stalled.leave();
    };
    expect(() => stalled.use("alone", leave)).toThrow(withCode("LEASE_LOST"));
    expect(readFileSync(flags).subarray(OWNER_AT, SLOT_BYTES).equals(others.subarray(OWNER_AT))).toBe(true);
    stalled.close();
    other.close();
  });

  test("leaves the slot to an owner that has taken it", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const lock = FlagLock.open(nodeDisk, folder);
    lock.use("read", () => {});
    const others = slotOf({ flag: 3 });
    writeFileSync(flags, others);
    lock.close();
    expect(readFileSync(flags).equals(others)).toBe(true);
  });

  test.each([
    ["an error of the disk is not reported", failed("EIO"), null],
    ["a fault of the program is", new TypeError("a fault"), "a fault"],
  ])("%s, and everything is given back", (_, error, reported) => {
    using here = place();
    const { folder } = locksIn(here.path);
    const watched = new WatchedDisk();
    const lock = FlagLock.open(watched.disk, folder);
    watched.onWriteAt = () => {
      throw error;
    };
    const close = expect(() => lock.close());
    if (reported === null) close.not.toThrow();
    else close.toThrow(reported);
    expect(watched.open).toEqual([0, 0, 0]);
  });
});

test("a hard lock that cannot be had does no harm", async () => {
  using here = place();
  const { folder } = locksIn(here.path);
  const watched = new WatchedDisk();
  let asked = 0;
  watched.hardLock = async () => {
    asked++;
    throw failed("EMFILE");
  };
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const lock = FlagLock.open(watched.disk, folder);
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toBe(1);
  expect(can(lock, "alone")).toBe(true);
  lock.close();
  expect(watched.open).toEqual([0, 0, 0]);
});

describe("opening", () => {
  test("a file that another process creates at the same time is used", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const disk: Disk = {
      ...nodeDisk,
      stat: (path) => {
        if (nodeDisk.stat(path) === null) writeFileSync(path, "");
        return path === flags || path === join(folder, "0") ? null : nodeDisk.stat(path);
      },
    };
    const lock = FlagLock.open(disk, folder);
    expect(can(lock, "alone")).toBe(true);
    lock.close();
  });

  test.each(["flags", "0"])("if %s cannot be created, it says why, and leaves nothing open", (name) => {
    using here = place();
    const { folder } = locksIn(here.path);
    const watched = new WatchedDisk();
    const disk: Disk = {
      ...watched.disk,
      open: (path, mode) => {
        if (path === join(folder, name)) throw failed("EACCES");
        return watched.disk.open(path, mode);
      },
    };
    expect(() => FlagLock.open(disk, folder)).toThrow(withCode("STORE_FORBIDDEN"));
    expect(watched.open).toEqual([0, 0, 0]);
  });

  test("if the slot cannot be written, it says why, and leaves nothing open", () => {
    using here = place();
    const { folder } = locksIn(here.path);
    const watched = new WatchedDisk();
    watched.onWriteAt = () => {
      throw failed("ENOSPC");
    };
    expect(() => FlagLock.open(watched.disk, folder)).toThrow(withCode("STORE_FULL"));
    expect(watched.open).toEqual([0, 0, 0]);
  });

  test("a slot whose lock is taken belongs to a process that is just opening: the next one is used", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const disk: Disk = { ...nodeDisk, lock: (path) => (path === join(folder, "0") ? null : nodeDisk.lock(path)) };
    const lock = FlagLock.open(disk, folder);
    expect(readFileSync(flags).subarray(0, SLOT_BYTES).equals(Buffer.alloc(SLOT_BYTES))).toBe(true);
    expect(can(lock, "alone")).toBe(true);
    lock.close();
  });

  test.for([
    ["a running process", {}],
    ["a process in another container, which has the hard lock", { host: "elsewhere" }],
  ] as const)("a slot that %s takes at the same time is left to it", ([_, owner], context) => {
    if (process.platform !== "linux") context.skip("not run: reads /proc");
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const watched = new WatchedDisk();
    const others = slotOf(owner);
    watched.onLock = (path) => {
      if (path === join(folder, "0")) writeFileSync(flags, others);
    };
    const isHardLocked = (path: string): boolean => "host" in owner && path === join(folder, "0.lock");
    const lock = FlagLock.open({ ...watched.disk, isHardLocked }, folder);
    expect(readFileSync(flags).subarray(0, SLOT_BYTES).equals(others)).toBe(true);
    expect(watched.locks).toBe(1);
    expect(lock.use("alone", () => lock.isShared())).toBe(true);
    lock.close();
    expect(watched.open).toEqual([0, 0, 0]);
  });

  test.each(["7", '"text"', "null", "{rot", ""])("a slot that holds %j has no owner, and is used", (content) => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const slot = Buffer.alloc(SLOT_BYTES);
    slot.write(content, 2);
    writeFileSync(flags, slot);
    const lock = FlagLock.open(nodeDisk, folder);
    expect(readFileSync(flags).length).toBe(SLOT_BYTES);
    expect(lock.use("alone", () => lock.isShared())).toBe(false);
    lock.close();
  });

  test("a slot of another host is free if nobody holds its locks", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    writeFileSync(flags, slotOf({ host: "elsewhere", pid: process.ppid }));
    const lock = FlagLock.open(nodeDisk, folder);
    expect(readFileSync(flags).length).toBe(SLOT_BYTES);
    lock.close();
  });

  test("works where the system tells nothing about processes", () => {
    using here = place();
    const { folder } = locksIn(here.path);
    const withoutProc = (error: Error): Disk => ({
      ...nodeDisk,
      open: (path, mode) => {
        if (path.startsWith("/proc")) throw error;
        return nodeDisk.open(path, mode);
      },
    });
    expect(() => FlagLock.open(withoutProc(new TypeError("a fault")), folder)).toThrow("a fault");
    const disk = withoutProc(failed("ENOENT"));
    const [first, second] = [FlagLock.open(disk, folder), FlagLock.open(disk, folder)];
    first.use("write", () => expect(can(second, "write")).toBe(false));
    expect(first.use("alone", () => first.isShared())).toBe(true);
    second.close();
    expect(first.use("alone", () => first.isShared())).toBe(false);
    first.close();
  });
});

describe("a disk that fails", () => {
  test("while the flag goes up: nothing is done, and the flag comes down again", () => {
    using here = place();
    const { folder } = locksIn(here.path);
    const watched = new WatchedDisk();
    const [lock, other] = [FlagLock.open(watched.disk, folder), FlagLock.open(nodeDisk, folder)];
    let reads = 0;
    watched.onRead = () => {
      // The second one sees whose flags are up.
      if (++reads === 2) throw failed("EIO");
    };
    const done: string[] = [];
    expect(() => lock.use("alone", () => done.push("too soon"))).toThrow(withCode("STORE_IO"));
    expect(can(other, "alone")).toBe(true);
    lock.use("alone", () => done.push("now"));
    expect(done).toEqual(["now"]);
    lock.close();
    other.close();
  });

  test("while the flag comes down: what was done counts, and the next use works", () => {
    using here = place();
    const { folder } = locksIn(here.path);
    const watched = new WatchedDisk();
    const [lock, other] = [FlagLock.open(watched.disk, folder), FlagLock.open(nodeDisk, folder)];
    watched.onWriteAt = ([flag]) => {
      if (flag === 0) throw failed("EIO");
    };
    expect(lock.use("write", () => "done")).toBe("done");
    watched.onWriteAt = ([flag]) => {
      if (flag === 0) throw new TypeError("a fault");
    };
    expect(() => lock.use("write", () => "done")).toThrow("a fault");
    watched.onWriteAt = () => {};
    expect(lock.use("write", () => "again")).toBe("again");
    expect(can(other, "alone")).toBe(true);
    lock.close();
    other.close();
  });

  test("while the flag comes down: it comes down later, also if nothing else is done", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const watched = new WatchedDisk();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const [lock, other] = [FlagLock.open(watched.disk, folder), FlagLock.open(nodeDisk, folder)];
    const fail = (): never => {
      throw failed("ENOSPC");
    };
    watched.onWriteAt = ([flag]) => {
      if (flag === 0) fail();
    };
    lock.use("write", () => {});
    expect(can(other, "write")).toBe(false);
    // The disk goes on failing for a while.
    vi.advanceTimersByTime(100);
    watched.onRead = fail;
    vi.advanceTimersByTime(100);
    expect(can(other, "write")).toBe(false);
    watched.onRead = watched.onWriteAt = () => {};
    vi.advanceTimersByTime(100);
    expect(can(other, "alone")).toBe(true);

    // Not if the slot has another owner by then, or none.
    watched.onWriteAt = ([flag]) => {
      if (flag === 0) fail();
    };
    lock.use("write", () => {});
    watched.onWriteAt = () => {};
    const others = slotOf({ flag: 3 });
    writeFileSync(flags, others, { flag: "r+" });
    vi.advanceTimersByTime(100);
    expect(readFileSync(flags).subarray(0, SLOT_BYTES).equals(others)).toBe(true);
    lock.close();
    other.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("while the flag comes down, and it is closed: nothing is written any more", () => {
    using here = place();
    const { folder } = locksIn(here.path);
    const watched = new WatchedDisk();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const lock = FlagLock.open(watched.disk, folder);
    watched.onWriteAt = ([flag]) => {
      if (flag === 0) throw failed("EIO");
    };
    lock.use("write", () => {});
    lock.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("users that are dead", () => {
  test("whose flags are down are looked at once, when somebody closes; and their slots are empty then", (context) => {
    if (process.platform !== "linux") context.skip("not run: reads /proc");
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const dead = Array.from({ length: 20 }, (_, count) => slotOf({ pid: NOBODY, count }));
    writeFileSync(flags, Buffer.concat(dead));
    let asked = 0;
    const isHardLocked = (): boolean => {
      asked++;
      return false;
    };
    const lock = FlagLock.open({ ...nodeDisk, isHardLocked }, folder);
    asked = 0;
    expect(lock.use("alone", () => lock.isShared())).toBe(false);
    expect(asked).toBe(19);
    expect(
      readFileSync(flags)
        .subarray(SLOT_BYTES)
        .equals(Buffer.alloc(19 * SLOT_BYTES)),
    ).toBe(true);
    expect(lock.use("alone", () => lock.isShared())).toBe(false);
    expect(asked).toBe(19);
    lock.close();
  });

  test("and whose slot cannot be emptied do not keep anybody from closing", (context) => {
    if (process.platform !== "linux") context.skip("not run: reads /proc");
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const watched = new WatchedDisk();
    const lock = FlagLock.open(watched.disk, folder);
    writeFileSync(flags, Buffer.concat([readFileSync(flags), slotOf({ pid: NOBODY })]));
    const isShared = (error: Error): boolean =>
      lock.use("alone", () => {
        watched.onWriteAt = () => {
          throw error;
        };
        try {
          return lock.isShared();
        } finally {
          watched.onWriteAt = () => {};
        }
      });
    expect(isShared(failed("EIO"))).toBe(false);
    expect(() => isShared(new TypeError("a fault"))).toThrow("a fault");
    expect(watched.locks).toBe(1);
    lock.close();
  });

  test("with their flags up are waited for together, not one after another", (context) => {
    if (process.platform !== "linux") context.skip("not run: reads /proc");
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const time = clock();
    const lock = FlagLock.open({ ...nodeDisk, isHardLocked: () => false }, folder);
    const dead = [1, 2, 3].map((flag) => slotOf({ pid: NOBODY, flag }));
    writeFileSync(flags, Buffer.concat([readFileSync(flags), slotOf({ flag: 3 }), ...dead]));
    // One of them lives, and is just done when the others have been looked at.
    const isUp = (): boolean[] => [1, 2, 3, 4].map((slot) => readFileSync(flags)[slot * SLOT_BYTES] !== 0);
    expect(can(lock, "alone")).toBe(false);
    expect(isUp()).toEqual([true, true, true, true]);
    time.nowMs += 60;
    // At each attempt, one.
    for (const up of [
      [true, false, true, true],
      [true, false, false, true],
      [true, false, false, false],
    ]) {
      expect(can(lock, "alone")).toBe(false);
      expect(isUp()).toEqual(up);
    }
    writeFileSync(flags, Buffer.concat([readFileSync(flags).subarray(0, SLOT_BYTES), slotOf()]));
    expect(can(lock, "alone")).toBe(true);
    lock.close();
  });
});

describe("alone, where others are busy all the time", () => {
  /** Others, in the slots before and after ours, whose flags are as `flagsAt` says at each look. Our flag is given. */
  function among(
    folder: string,
    flags: string,
    flagsAt: (look: number, ours: number) => readonly [number, number],
    count: () => number = () => 1,
  ): { readonly lock: FlagLock; readonly looks: () => number } {
    writeFileSync(flags, slotOf());
    const watched = new WatchedDisk();
    const lock = FlagLock.open({ ...watched.disk, isLocked: () => true }, folder);
    let looks = 0;
    watched.onRead = () => {
      const ours = readFileSync(flags).subarray(SLOT_BYTES, 2 * SLOT_BYTES);
      const [before, after] = flagsAt(++looks, ours[0]!).map((flag) => slotOf({ flag, count: count() }));
      writeFileSync(flags, Buffer.concat([before!, ours, after!]), { flag: "r+" });
    };
    return { lock, looks: () => looks };
  }

  test("with reads that overlap: nobody starts another one while it waits", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    // One of the two always reads; but who sees our flag starts nothing.
    let up: readonly [number, number] = [1, 0];
    const { lock } = among(folder, flags, (look, ours) => {
      if (ours === 0) up = look % 2 === 0 ? [1, 0] : [0, 1];
      else if (look % 5 === 0) up = [0, 0];
      return up;
    });
    expect(can(lock, "alone")).toBe(true);
    lock.close();
  });

  test("and one of them takes long: the others go on until that one has ended", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    let count = 1;
    const { lock, looks } = among(
      folder,
      flags,
      () => [1, 0],
      () => count,
    );
    const looksOfOne = (): number => {
      const before = looks();
      expect(can(lock, "alone")).toBe(false);
      expect(readFileSync(flags)[SLOT_BYTES]).toBe(0);
      return looks() - before;
    };
    expect([looksOfOne(), looksOfOne(), looksOfOne()]).toEqual([22, 2, 2]);
    // The next use of the same owner.
    count++;
    expect([looksOfOne(), looksOfOne()]).toEqual([22, 2]);
    lock.close();
  });

  test.each([
    ["before", [3, 0], false],
    ["after", [0, 3], true],
  ] as const)(
    "of two that wait for each other, the one in the lower slot goes on: the other is %s it",
    (_, up, goesOn) => {
      using here = place();
      const { folder, flags } = locksIn(here.path);
      const { lock, looks } = among(folder, flags, (look) => (look <= 6 ? up : [0, 0]));
      expect(can(lock, "alone")).toBe(goesOn);
      expect(looks()).toBe(goesOn ? 7 : 2);
      lock.close();
    },
  );

  test("a write does not wait inside the call", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const { lock, looks } = among(folder, flags, () => [2, 0]);
    expect([can(lock, "write"), looks()]).toEqual([false, 2]);
    lock.close();
  });
});

describe("a user that was stalled", () => {
  test("and whose slot was taken while its flag went up does nothing", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const watched = new WatchedDisk();
    const lock = FlagLock.open(watched.disk, folder);
    const others = slotOf({ flag: 2 });
    let reads = 0;
    watched.onRead = () => {
      if (++reads === 2) writeFileSync(flags, others);
    };
    const done: string[] = [];
    expect(() => lock.use("write", () => done.push("too late"))).toThrow(withCode("LEASE_LOST"));
    expect(done).toEqual([]);
    expect(readFileSync(flags).equals(others)).toBe(true);
    lock.close();
  });

  test("in a use learns that its slot was taken meanwhile, and leaves the flag of the new owner up", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const time = clock();
    const lock = FlagLock.open(nodeDisk, folder);
    const others = slotOf({ flag: 2 });
    const stalled = (): void =>
      lock.use("write", () => {
        time.nowMs += 3001;
        writeFileSync(flags, others);
      });
    expect(stalled).toThrow(expect.objectContaining({ code: "LEASE_LOST", facts: { path: flags } }));
    expect(readFileSync(flags).equals(others)).toBe(true);
    lock.close();
  });

  test("in a use and still has its slot has done its work", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    const time = clock();
    const lock = FlagLock.open(nodeDisk, folder);
    lock.use("write", () => {
      time.nowMs += 10_000;
    });
    expect(readFileSync(flags)[0]).toBe(0);
    lock.close();
  });
});

describe("a flag that stays up", () => {
  /** At which of these times, counted from the first attempt, is the flag in slot 0 gone? */
  function freedAt(owner: Buffer, times: readonly number[], disk: Partial<Disk> = {}): number | null {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    writeFileSync(flags, slotOf());
    writeFileSync(join(folder, "0"), "");
    const time = clock();
    const lock = FlagLock.open({ ...nodeDisk, isHardLocked: () => false, ...disk }, folder);
    writeFileSync(flags, owner, { flag: "r+" });
    const start = time.nowMs;
    try {
      for (const ms of times) {
        time.nowMs = start + ms;
        expect(can(lock, "write"), `after ${ms} ms`).toBe(false);
        if (readFileSync(flags).subarray(0, SLOT_BYTES).equals(owner)) continue;
        expect(readFileSync(flags).subarray(0, SLOT_BYTES).equals(Buffer.alloc(SLOT_BYTES))).toBe(true);
        expect(can(lock, "write")).toBe(true);
        return ms;
      }
      return null;
    } finally {
      lock.close();
    }
  }

  test.for([
    ["its owner is dead: at the first look", slotOf({ flag: 3, pid: NOBODY }), {}, 50],
    [
      "its owner cannot be read: at the first look",
      Buffer.concat([Buffer.from([3, 1]), Buffer.alloc(254, "x")]),
      {},
      50,
    ],
    ["its owner runs, without its lock: after three seconds", slotOf({ flag: 3 }), {}, 3001],
    ["its owner runs, and has its lock: never", slotOf({ flag: 3 }), { isLocked: (): boolean => true }, null],
    ["its owner runs, and has its hard lock: never", slotOf({ flag: 3 }), { isHardLocked: (): boolean => true }, null],
    [
      "its owner is elsewhere, and has its lock: never",
      slotOf({ flag: 3, host: "x" }),
      { isLocked: (): boolean => true },
      null,
    ],
    [
      "somebody else lowers it just now: left to them",
      slotOf({ flag: 3, pid: NOBODY }),
      { lock: (): null => null },
      null,
    ],
  ] as const)("%s", ([_, owner, disk, expected], context) => {
    if (process.platform !== "linux") context.skip("not run: reads /proc");
    const lock = "lock" in disk ? { lock: (path: string) => (path.endsWith("/0") ? null : nodeDisk.lock(path)) } : {};
    expect(freedAt(owner, [0, 49, 50, 99, 100, 2940, 3001, 9000, 20_000], { ...disk, ...lock })).toBe(expected);
  });

  test("belongs to another use: waiting for it starts again", (context) => {
    if (process.platform !== "linux") context.skip("not run: reads /proc");
    using here = place();
    const { folder, flags } = locksIn(here.path);
    writeFileSync(flags, Buffer.concat([slotOf(), slotOf()]));
    const time = clock();
    const lock = FlagLock.open({ ...nodeDisk, isHardLocked: () => false }, folder);
    const raise = (slot: number, count: number): void =>
      writeFileSync(flags, Buffer.concat([0, 1].map((one) => slotOf(one === slot ? { flag: 3, count } : {}))), {
        flag: "r+",
      });
    const isUp = (slot: number): boolean => readFileSync(flags)[slot * SLOT_BYTES] === 3;
    // The next use of the same owner, and then a use of another one that has the same number.
    for (const [slot, count] of [
      [0, 1],
      [0, 2],
      [1, 2],
    ] as const) {
      raise(slot, count);
      for (const ms of [1000, 1000]) {
        time.nowMs += ms;
        expect([can(lock, "write"), isUp(slot)]).toEqual([false, true]);
      }
    }
    // Nobody was in the way in between: waiting starts again, too.
    raise(2, 0);
    expect(can(lock, "write")).toBe(true);
    raise(1, 2);
    time.nowMs += 10_000;
    expect([can(lock, "write"), isUp(1)]).toEqual([false, true]);
    lock.close();
  });

  test("is not lowered if its owner has gone on to another use", () => {
    using here = place();
    const { folder, flags } = locksIn(here.path);
    writeFileSync(flags, slotOf());
    const time = clock();
    const watched = new WatchedDisk();
    const lock = FlagLock.open(watched.disk, folder);
    writeFileSync(flags, slotOf({ flag: 3, pid: NOBODY }), { flag: "r+" });
    const next = slotOf({ flag: 3, count: 2 });
    watched.onLock = (path) => {
      if (path === join(folder, "0")) writeFileSync(flags, next, { flag: "r+" });
    };
    for (const ms of [0, 60]) {
      time.nowMs += ms;
      expect(can(lock, "write")).toBe(false);
    }
    expect(readFileSync(flags).subarray(0, SLOT_BYTES).equals(next)).toBe(true);
    expect(watched.locks).toBe(1);
    lock.close();
  });
});

test("two that find a slot free at the same time take different ones, also if one has lost the lock of the slot", () => {
  using here = place();
  const { folder } = locksIn(here.path);
  const others: FlagLock[] = [];
  const watched = new WatchedDisk();
  // Somebody in this process has closed the slot's file: another process gets the lock too.
  const other: Disk = { ...nodeDisk, lock: () => ({ release: () => {} }) };
  watched.onWriteAt = () => {
    if (others.length === 0) others.push(FlagLock.open(other, folder));
  };
  const locks = [FlagLock.open(watched.disk, folder), ...others];
  expect(locks).toHaveLength(2);
  for (const lock of locks) expect(can(lock, "alone")).toBe(true);
  for (const lock of locks) lock.close();
});
