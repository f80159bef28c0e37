import { setTimeout as later } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { crashAt, faultIn, syncing, writing } from "../../../src/simulation/plan.ts";
import { Crashed, SimulatedDisk } from "../../../src/simulation/simulated-disk.ts";
import { extremes } from "../../../src/simulation/survival.ts";

const content = (disk: SimulatedDisk, path: string): string => Buffer.from(disk.tree().get(path)!).toString();

describe("steps", () => {
  test("every call has a number and a label", async () => {
    const disk = new SimulatedDisk({ root: "/store" });
    disk.makeFolder("/store");
    const file = disk.open("/store/000001.jsonl.tmp", "create");
    file.write(Buffer.from("12345"));
    await file.sync();
    file.write(Buffer.from("678"));
    file.syncNow();
    disk.rename("/store/000001.jsonl.tmp", "/store/000001.jsonl");
    disk.syncFolder("/store");
    file.close();
    expect(disk.trace.map((step) => disk.label(step))).toEqual([
      "makeFolder /store",
      "create 000001.jsonl.tmp",
      "write 000001.jsonl.tmp 5@0",
      "sync 000001.jsonl.tmp",
      "synced 000001.jsonl.tmp",
      "write 000001.jsonl.tmp 3@5",
      "syncNow 000001.jsonl.tmp",
      "rename 000001.jsonl.tmp 000001.jsonl",
      "syncFolder /store",
      "close 000001.jsonl.tmp",
    ]);
    expect(disk.trace.map((step) => step.index)).toEqual(disk.trace.map((_, at) => at));
  });

  test("the same seed ends its syncs at the same steps", async () => {
    const run = async (seed: number): Promise<string> => {
      const disk = new SimulatedDisk({ seed });
      const files = ["/a", "/b", "/c", "/d", "/e", "/f"].map((path) => disk.open(path, "create"));
      await Promise.all(files.map((file) => file.sync()));
      return disk.trace.map((step) => disk.label(step)).join("\n");
    };
    expect(await run(7)).toBe(await run(7));
    const orders = new Set(await Promise.all([1, 2, 3, 4, 5, 6].map((seed) => run(seed))));
    expect(orders.size).toBeGreaterThan(1);
  });

  test("a modification time counts steps, not milliseconds", () => {
    const disk = new SimulatedDisk();
    const file = disk.open("/f", "create");
    file.write(Buffer.from("x"));
    const first = disk.stat("/f")!.mtimeMs;
    file.write(Buffer.from("x"));
    expect(disk.stat("/f")!.mtimeMs - first).toBe(2);
  });
});

describe("crashes", () => {
  test("after a power cut every process is dead, before the step took effect", async () => {
    const disk = new SimulatedDisk({ plan: crashAt(1, "power") });
    const other = disk.process();
    const file = disk.open("/f", "create");
    expect(() => file.write(Buffer.from("x"))).toThrow(Crashed);
    expect(() => file.stat()).toThrow(Crashed);
    expect(() => other.stat("/f")).toThrow(Crashed);
    expect((await disk.crashed).index).toBe(1);
    expect((await other.crashed).index).toBe(1);
    expect(disk.steps).toBe(2);
    expect(content(disk.afterCrash(extremes.new), "/f")).toBe("");
  });

  test("SIGKILL keeps all finished writes and a byte prefix of the one in flight; other processes go on", () => {
    const disk = new SimulatedDisk({ plan: crashAt(2, "kill", 3) });
    const other = disk.process();
    const file = disk.open("/f", "create");
    file.write(Buffer.from("done "));
    expect(() => file.write(Buffer.from("flight"))).toThrow(Crashed);
    expect(() => disk.stat("/f")).toThrow(Crashed);
    expect(other.stat("/f")!.size).toBe(8);
    const after = disk.afterKill();
    expect(content(after, "/f")).toBe("done fli");
    // What was only in the cache stays at risk.
    expect(content(after.afterCrash(extremes.empty), "/f")).toBe("");
  });

  test("a kill with a byte count kills at any other call too", () => {
    const disk = new SimulatedDisk({ plan: crashAt(0, "kill", 3) });
    expect(() => disk.makeFolder("/f")).toThrow(Crashed);
    expect(disk.diedAt?.index).toBe(0);
  });

  test("a running sync rejects with Crashed and never resolves", async () => {
    const disk = new SimulatedDisk({ plan: crashAt(2, "power") });
    const file = disk.open("/f", "create");
    await expect(file.sync()).rejects.toThrow(Crashed);
    expect(disk.diedAt?.operation).toBe("synced");
  });

  test("a kill between two steps takes the process alone, a power cut all of them", () => {
    const disk = new SimulatedDisk();
    const other = disk.process();
    disk.kill();
    expect(() => disk.list("/")).toThrow(Crashed);
    expect(other.list("/")).toEqual([]);
    other.cutPower();
    expect(() => other.list("/")).toThrow(Crashed);
  });

  test("a remounted disk can be crashed again, at steps of its own", () => {
    const disk = new SimulatedDisk();
    disk.plant("/f", Buffer.from("x"));
    const again = disk.afterCrash(1, { plan: crashAt(1, "power") });
    expect(again.stat("/f")!.size).toBe(1);
    expect(() => again.stat("/f")).toThrow(Crashed);
  });
});

describe("faults", () => {
  test("once: one call fails and has done nothing, the next one succeeds", () => {
    const disk = new SimulatedDisk();
    const file = disk.open("/f", "create");
    disk.plan = faultIn({ from: 0, times: "once", operations: writing }, { fail: "ENOSPC" });
    expect(() => file.write(Buffer.from("x"))).toThrow(expect.objectContaining({ code: "ENOSPC", syscall: "write" }));
    expect(file.write(Buffer.from("y"))).toBe(1);
    expect(content(disk, "/f")).toBe("y");
  });

  test("for ever: every such call fails from a step on, until the plan is taken away", () => {
    const disk = new SimulatedDisk();
    disk.plan = faultIn({ from: 2, times: "for ever", operations: syncing }, { fail: "EIO" });
    const file = disk.open("/f", "create");
    file.syncNow();
    expect(() => file.syncNow()).toThrow("EIO");
    expect(() => disk.syncFolder("/")).toThrow("EIO");
    file.write(Buffer.from("x"));
    disk.plan = null;
    file.syncNow();
    disk.syncFolder("/");
  });

  test("a short write writes some of the bytes and says how many", () => {
    const disk = new SimulatedDisk({ plan: faultIn({ from: 0, times: "once", operations: writing }, { short: 4 }) });
    const file = disk.open("/f", "create");
    expect(file.write(Buffer.from("123456789"))).toBe(4);
    expect(content(disk, "/f")).toBe("1234");
  });

  test("a full disk writes what fits, then fails, and goes on when there is space", () => {
    const disk = new SimulatedDisk({ capacityBytes: 10 });
    const file = disk.open("/f", "create");
    expect(file.write(Buffer.from("12345678"))).toBe(8);
    expect(file.write(Buffer.from("90ab"))).toBe(2);
    expect(() => file.write(Buffer.from("c"))).toThrow("ENOSPC");
    // Writing over what is there takes no space.
    expect(disk.open("/f", "update").writeAt(Buffer.from("1234"), 0)).toBe(4);
    disk.capacityBytes = 11;
    expect(file.write(Buffer.from("cd"))).toBe(1);
  });

  test("a removed file gives its space back when its last descriptor closes", () => {
    const disk = new SimulatedDisk({ capacityBytes: 4 });
    const file = disk.open("/f", "create");
    file.write(Buffer.from("1234"));
    disk.remove("/f");
    const next = disk.open("/g", "create");
    expect(() => next.write(Buffer.from("x"))).toThrow("ENOSPC");
    file.close();
    expect(next.write(Buffer.from("x"))).toBe(1);
  });
});

describe("descriptors", () => {
  test("a mode allows what it says and nothing else", () => {
    const disk = new SimulatedDisk();
    const made = disk.open("/f", "create");
    made.write(Buffer.from("abc"));
    const bytes = new Uint8Array(8);
    expect(() => made.read(bytes, 0, 8, 0)).toThrow("EBADF");
    expect(() => disk.open("/f", "create")).toThrow("EEXIST");
    const reader = disk.open("/f", "read");
    expect(reader.read(bytes, 2, 6, 1)).toBe(2);
    expect(Buffer.from(bytes).toString()).toBe("\0\0bc\0\0\0\0");
    expect(reader.read(bytes, 0, 8, 3)).toBe(0);
    expect(() => reader.write(bytes)).toThrow("EBADF");
    const append = disk.open("/f", "append");
    expect(() => append.truncate(0)).toThrow("EPERM");
    append.writeAt(Buffer.from("d"), 0);
    expect(content(disk, "/f")).toBe("abcd");
    append.close();
    expect(() => append.write(bytes)).toThrow("EBADF");
    expect(() => append.close()).toThrow("EBADF");
    expect(() => disk.open("/none", "read")).toThrow("ENOENT");
    expect(() => disk.open("/f/g", "read")).toThrow("ENOTDIR");
    expect(() => disk.list("/f")).toThrow("ENOTDIR");
  });

  test("S10: a descriptor closed under its running sync fails that sync", async () => {
    const disk = new SimulatedDisk();
    const file = disk.open("/f", "create");
    const running = file.sync();
    file.close();
    await expect(running).rejects.toMatchObject({ code: "EBADF" });
  });

  test("folders: made once, removed when empty, renamed over an empty one", () => {
    const disk = new SimulatedDisk();
    expect(disk.makeFolder("/a")).toBe(true);
    expect(disk.makeFolder("/a")).toBe(false);
    disk.makeFolder("/b");
    disk.plant("/b/f", Buffer.from("x"));
    expect(() => disk.removeFolder("/b")).toThrow("ENOTEMPTY");
    expect(() => disk.rename("/a", "/b")).toThrow("ENOTEMPTY");
    disk.rename("/b", "/a");
    expect([...disk.tree().keys()]).toEqual(["/", "/a", "/a/f"]);
    expect(() => disk.makeFolder("/a/f")).toThrow("EEXIST");
    expect(() => disk.remove("/a")).toThrow("EISDIR");
    expect(() => disk.makeFolder("/x/y")).toThrow("ENOENT");
    expect(disk.stat("/x")).toBeNull();
    expect(disk.stat("/a")!.kind).toBe("folder");
  });
});

describe("locks", () => {
  const made = (): SimulatedDisk => {
    const disk = new SimulatedDisk();
    disk.plant("/lease", new Uint8Array(0));
    return disk;
  };

  test("one holder at a time, also within a process; release frees", () => {
    const disk = made();
    const other = disk.process();
    const lock = disk.lock("/lease")!;
    expect(other.lock("/lease")).toBeNull();
    expect(disk.lock("/lease")).toBeNull();
    expect(other.isLocked("/lease")).toBe(true);
    lock.release();
    expect(other.isLocked("/lease")).toBe(false);
    expect(other.lock("/lease")).not.toBeNull();
    // A second release gives nothing of the new holder's away.
    lock.release();
    expect(disk.lock("/lease")).toBeNull();
  });

  test("a lock dies with its holder", () => {
    const disk = made();
    const other = disk.process();
    disk.lock("/lease");
    disk.kill();
    expect(other.lock("/lease")).not.toBeNull();
    expect(other.afterKill().lock("/lease")).not.toBeNull();
    expect(other.afterCrash(1).lock("/lease")).not.toBeNull();
  });

  test("S13: closing any descriptor of the file in the holder's process frees the lock in silence", () => {
    const disk = made();
    const other = disk.process();
    const lock = disk.lock("/lease")!;
    other.open("/lease", "read").close();
    expect(other.lock("/lease")).toBeNull();
    disk.open("/lease", "read").close();
    expect(other.lock("/lease")).not.toBeNull();
    lock.release();
    expect(disk.lock("/lease")).toBeNull();
  });

  test("a lock is of the inode: a new file of that name is not locked", () => {
    const disk = made();
    disk.lock("/lease");
    disk.remove("/lease");
    disk.plant("/lease", new Uint8Array(0));
    expect(disk.process().lock("/lease")).not.toBeNull();
  });

  test("a file with content is refused, and a missing one", () => {
    const disk = made();
    disk.plant("/full", Buffer.from("x"));
    expect(() => disk.lock("/full")).toThrow("EBADF");
    expect(() => disk.lock("/none")).toThrow("ENOENT");
  });
});

describe("watches", () => {
  test("changes in the folder call back, in a later microtask, until the watch is stopped or the process is dead", async () => {
    const disk = new SimulatedDisk();
    disk.makeFolder("/s");
    const other = disk.process();
    const seen = vi.fn<() => void>();
    const stop = other.watch("/s", seen);
    const file = disk.open("/s/f", "create");
    expect(seen).not.toHaveBeenCalled();
    await Promise.resolve();
    expect(seen).toHaveBeenCalledTimes(1);
    file.write(Buffer.from("x"));
    disk.rename("/s/f", "/s/g");
    await later(0);
    expect(seen).toHaveBeenCalledTimes(3);
    stop();
    file.write(Buffer.from("x"));
    await later(0);
    expect(seen).toHaveBeenCalledTimes(3);
    other.watch("/s", seen);
    other.kill();
    file.write(Buffer.from("x"));
    await later(0);
    expect(seen).toHaveBeenCalledTimes(3);
    expect(disk.networkKind("/s")).toBeNull();
  });
});
