import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { nodeDisk } from "holdfast/disk";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { isBusy } from "../../src/stores/sqlite/database/failure.ts";
import { FlagLock, type Use } from "../../src/stores/sqlite/database/flag-lock.ts";
import { place } from "../place.ts";

const USER = join(import.meta.dirname, "sqlite-flag-user.ts");
const SOURCE = "--conditions=holdfast-source";

function locksIn(path: string): string {
  const folder = join(path, "locks");
  mkdirSync(folder);
  return folder;
}

/** Can `work` be done now? */
function can(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (!isBusy(error)) throw error;
    return false;
  }
}

describe("who keeps whom out", () => {
  const uses: Use[] = ["read", "write", "alone"];
  const together = new Set(["read read", "read write", "write read"]);
  const cases = uses.flatMap((one) => uses.map((other) => [one, other] as const));

  test.each(cases)("%s, and %s", (one, other) => {
    using here = place();
    const folder = locksIn(here.path);
    const [first, second] = [FlagLock.open(nodeDisk, folder), FlagLock.open(nodeDisk, folder)];
    first.use(one, () => {
      expect(can(() => second.use(other, () => {}))).toBe(together.has(`${one} ${other}`));
    });
    expect(can(() => second.use(other, () => {}))).toBe(true);
    first.close();
    second.close();
  });

  test("inside a use, a lesser or equal one is part of it, and its end does not end the whole", () => {
    using here = place();
    const folder = locksIn(here.path);
    const [first, second] = [FlagLock.open(nodeDisk, folder), FlagLock.open(nodeDisk, folder)];
    first.use("alone", () => {
      first.use("write", () => {});
      first.use("alone", () => {});
      expect(can(() => second.use("read", () => {}))).toBe(false);
    });
    expect(() => first.use("read", () => first.use("write", () => {}))).toThrow("lesser use");
    // What `work` throws ends the use.
    expect(() =>
      first.use("alone", () => {
        throw new Error("of the work");
      }),
    ).toThrow("of the work");
    expect(can(() => second.use("alone", () => {}))).toBe(true);
    first.close();
    second.close();
  });
});

test("several processes, whose POSIX locks are lost all the time: never two at once", async () => {
  using here = place();
  const folder = locksIn(here.path);
  writeFileSync(join(here.path, "number"), "0");
  const children = [1, 2, 3].map(() =>
    spawn(process.execPath, [SOURCE, USER, "count", folder, "300"], { stdio: "inherit" }),
  );
  expect(await Promise.all(children.map((child) => once(child, "exit")))).toEqual(children.map(() => [0, null]));
  expect(readFileSync(join(here.path, "number"), "utf8")).toBe("900");
});

test("somebody who was killed inside a use is in nobody's way for long, and the slot is used again", async () => {
  using here = place();
  const folder = locksIn(here.path);
  for (let i = 0; i < 3; i++) {
    expect(spawnSync(process.execPath, [SOURCE, USER, "die", folder], { stdio: "inherit" }).signal).toBe("SIGKILL");
    const lock = FlagLock.open(nodeDisk, folder);
    await expect.poll(() => can(() => lock.use("write", () => {})), { interval: 5 }).toBe(true);
    expect(lock.use("alone", () => lock.isShared())).toBe(false);
    lock.close();
  }
  expect(statSync(join(folder, "flags")).size).toBeLessThanOrEqual(2 * 256);
});

describe("somebody who was killed inside a use, while this process does other things", () => {
  const FLAG_OF_ALONE = 3;

  /** Processes that are inside these uses. */
  async function inside(folder: string, uses: readonly Use[]): Promise<ChildProcess[]> {
    const children: ChildProcess[] = [];
    for (const use of uses) {
      const child = spawn(process.execPath, [SOURCE, USER, "stay", folder, use], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      onTestFinished(() => void child.kill("SIGKILL"));
      await once(child.stdout, "data");
      children.push(child);
    }
    return children;
  }

  async function kill(children: readonly ChildProcess[]): Promise<void> {
    for (const child of children) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  }

  test("reads that are not in its way do not keep a writer waiting", async () => {
    using here = place();
    const folder = locksIn(here.path);
    const lock = FlagLock.open(nodeDisk, folder);
    await kill(await inside(folder, ["write"]));
    const tries = (): boolean => {
      lock.use("read", () => {});
      return can(() => lock.use("write", () => {}));
    };
    await expect.poll(tries, { interval: 5, timeout: 20_000 }).toBe(true);
    lock.close();
  });

  test("two of them, each in the way of something else", async () => {
    using here = place();
    const folder = locksIn(here.path);
    const lock = FlagLock.open(nodeDisk, folder);
    await kill(await inside(folder, ["write", "read"]));
    // As if the second one had been killed between raising its flag and looking at the others.
    const flags = openSync(join(folder, "flags"), "r+");
    writeSync(flags, Buffer.of(FLAG_OF_ALONE), 0, 1, 2 * 256);
    closeSync(flags);
    const done = new Set<Use>();
    const tries = (): number => {
      for (const use of ["read", "write"] as const) if (can(() => lock.use(use, () => {}))) done.add(use);
      return done.size;
    };
    await expect.poll(tries, { interval: 5, timeout: 20_000 }).toBe(2);
    lock.close();
  });

  test("its parent, which blocks and cannot collect it, does not take it for alive", async (context) => {
    if (process.platform !== "linux") context.skip("not run: reads /proc");
    using here = place();
    const folder = locksIn(here.path);
    const lock = FlagLock.open(nodeDisk, folder);
    const [child] = await inside(folder, ["write"]);
    child!.kill("SIGKILL");
    // From here on, nothing is awaited.
    const isZombie = (): boolean => readFileSync(`/proc/${child!.pid}/stat`, "latin1").includes(") Z ");
    const isLocked = (): boolean =>
      nodeDisk.isLocked(join(folder, "1")) || nodeDisk.isHardLocked(join(folder, "1.lock"));
    const nothing = new Int32Array(new SharedArrayBuffer(4));
    while (!isZombie() || isLocked()) Atomics.wait(nothing, 0, 0, 1);
    let now = performance.now();
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
    try {
      const tries = [0, 100, 1].map((ms) => {
        now += ms;
        return can(() => lock.use("write", () => {}));
      });
      expect(tries).toEqual([false, false, true]);
    } finally {
      clock.mockRestore();
    }
    lock.close();
  });
});

test("others are known, also when their POSIX lock is lost, until they close", () => {
  using here = place();
  const folder = locksIn(here.path);
  const first = FlagLock.open(nodeDisk, folder);
  closeSync(openSync(join(folder, "0"), "r"));
  const second = FlagLock.open(nodeDisk, folder);
  expect(first.use("alone", () => first.isShared())).toBe(true);
  expect(second.use("alone", () => second.isShared())).toBe(true);
  second.close();
  expect(first.use("alone", () => first.isShared())).toBe(false);
  first.close();
});

/** The flags as they would be if the parent process of this one had the slot. */
function flagsOfParent(folder: string): string {
  const first = FlagLock.open(nodeDisk, folder);
  const slot = readFileSync(join(folder, "flags"), "latin1");
  first.close();
  const start = readFileSync(`/proc/${process.ppid}/stat`, "latin1").split(") ")[1]!.split(" ")[19]!;
  return slot.replace(/"pid":\d+/, `"pid":${process.ppid}`).replace(/"start":"\d+"/, `"start":"${start}"`);
}

/** Does a new user find somebody else there? */
function isSharedWith(folder: string, flags: string): boolean {
  writeFileSync(join(folder, "flags"), flags, "latin1");
  const lock = FlagLock.open(nodeDisk, folder);
  const isShared = lock.use("alone", () => lock.isShared());
  lock.close();
  return isShared;
}

test("a process of an earlier boot does not live on in one that has its number and its start by chance", (context) => {
  if (process.platform !== "linux") context.skip("not run: reads /proc");
  using here = place();
  const folder = locksIn(here.path);
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  // As it stood when the power was cut.
  const flags = flagsOfParent(folder);
  expect(flags).toContain(`"boot":"${boot}"`);
  expect(isSharedWith(folder, flags)).toBe(true);
  expect(isSharedWith(folder, flags.replace(boot, boot.replace(/[0-9a-f]/g, "0")))).toBe(false);
});

test.for([
  ["EPERM", "runs as another user", true],
  ["ESRCH", "is gone", false],
] as const)("a process that answers a signal with %s %s", ([code, _, isRunning], context) => {
  if (process.platform !== "linux") context.skip("not run: reads /proc");
  using here = place();
  const folder = locksIn(here.path);
  const flags = flagsOfParent(folder);
  const kill = vi.spyOn(process, "kill").mockImplementation(() => {
    throw Object.assign(new Error(code), { code });
  });
  try {
    expect(isSharedWith(folder, flags)).toBe(isRunning);
    expect(kill).toHaveBeenCalledWith(process.ppid, 0);
  } finally {
    kill.mockRestore();
  }
});

test("once closed it makes no file any more, not even for a hard lock that waits for its turn", async () => {
  using here = place();
  const folder = locksIn(here.path);
  const locks = Array.from({ length: 20 }, () => FlagLock.open(nodeDisk, folder));
  const hardLocks = (): number => readdirSync(folder).filter((name) => name.endsWith(".lock")).length;
  // By the second one, all of them have asked.
  await expect.poll(hardLocks, { interval: 1 }).toBeGreaterThan(1);
  for (const lock of locks) lock.close();
  const made = hardLocks();
  // Those that wait are asked for one after another, in the order in which they came: this one is the last.
  const last = await nodeDisk.hardLock(join(here.path, "last.lock"));
  last?.release();
  expect(hardLocks()).toBe(made);
});

test("a slot that somebody else has by now, and a file that is gone, are noticed", () => {
  using here = place();
  const folder = locksIn(here.path);
  const lock = FlagLock.open(nodeDisk, folder);
  const flags = join(folder, "flags");
  writeFileSync(flags, readFileSync(flags, "latin1").replace(/"id":"[^"]*"/, `"id":"${"x".repeat(36)}"`), {
    flag: "r+",
  });
  const before = readFileSync(flags);
  expect(() => lock.use("write", () => {})).toThrow(expect.objectContaining({ code: "LEASE_LOST" }));
  expect(readFileSync(flags).equals(before), "the flag of whoever has the slot now").toBe(true);
  lock.assertInPlace();
  rmSync(flags);
  expect(() => lock.assertInPlace()).toThrow(expect.objectContaining({ code: "FILE_REPLACED" }));
  lock.close();
});
