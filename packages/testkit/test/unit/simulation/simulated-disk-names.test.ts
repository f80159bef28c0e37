import { describe, expect, test } from "vitest";
import { SimulatedDisk } from "../../../src/simulation/simulated-disk.ts";
import { everySurvival, extremes } from "../../../src/simulation/survival.ts";

/** The model of S22 (docs/RULES.md): what a power cut does to names. */

/** The sets of paths that a power cut now can leave, each as one string. */
function outcomes(disk: SimulatedDisk): Set<string> {
  const found = new Set<string>();
  for (const survival of everySurvival(5000)) {
    const tree = disk.afterCrash(survival).tree();
    found.add([...tree].map(([path, bytes]) => (bytes === null ? path : `${path}=${Buffer.from(bytes)}`)).join(" "));
  }
  return found;
}

function synced(disk: SimulatedDisk, path: string, content: string): void {
  const file = disk.open(path, "create");
  file.write(Buffer.from(content));
  file.syncNow();
  file.close();
}

describe("S22 names", () => {
  test("unsynced creations are kept as any subset", () => {
    const disk = new SimulatedDisk();
    synced(disk, "/a", "1");
    synced(disk, "/b", "2");
    expect(outcomes(disk)).toEqual(new Set(["/", "/ /a=1", "/ /b=2", "/ /a=1 /b=2"]));
  });

  test("an unsynced rename is lost or kept, and never loses the file", () => {
    const disk = new SimulatedDisk();
    synced(disk, "/new.tmp", "n");
    disk.plant("/name", Buffer.from("old"));
    disk.syncFolder("/");
    disk.rename("/new.tmp", "/name");
    expect(disk.tree().has("/new.tmp")).toBe(false);
    expect(outcomes(disk)).toEqual(new Set(["/ /name=old /new.tmp=n", "/ /name=n"]));
    disk.syncFolder("/");
    expect(outcomes(disk)).toEqual(new Set(["/ /name=n"]));
  });

  test("a rename may be durable before the data of its file", () => {
    const disk = new SimulatedDisk();
    disk.open("/f.tmp", "create").write(Buffer.from("data"));
    disk.syncFolder("/");
    disk.rename("/f.tmp", "/f");
    disk.syncFolder("/");
    expect(outcomes(disk)).toContain("/ /f=");
    expect(outcomes(disk)).toContain("/ /f=\0\0\0\0");
    expect(outcomes(disk)).toContain("/ /f=data");
  });

  test("a rename may be durable though the creation was never synced", () => {
    const disk = new SimulatedDisk();
    synced(disk, "/f.tmp", "data");
    disk.rename("/f.tmp", "/f");
    expect(outcomes(disk)).toEqual(new Set(["/", "/ /f.tmp=data", "/ /f=data"]));
  });

  test("an unsynced removal may come undone", () => {
    const disk = new SimulatedDisk();
    disk.plant("/f", Buffer.from("x"));
    disk.remove("/f");
    expect(outcomes(disk)).toEqual(new Set(["/", "/ /f=x"]));
    disk.syncFolder("/");
    expect(outcomes(disk)).toEqual(new Set(["/"]));
  });

  test("what lies in a folder is gone with the folder's own name", () => {
    const disk = new SimulatedDisk();
    disk.makeFolder("/s");
    synced(disk, "/s/f", "x");
    disk.syncFolder("/s");
    expect(outcomes(disk)).toEqual(new Set(["/", "/ /s /s/f=x"]));
    disk.syncFolder("/");
    expect(outcomes(disk)).toEqual(new Set(["/ /s /s/f=x"]));
  });

  test("a move between folders has one fate, and each folder's sync settles its own half", () => {
    const made = (): SimulatedDisk => {
      const disk = new SimulatedDisk();
      disk.makeFolder("/from");
      disk.makeFolder("/to");
      disk.syncFolder("/");
      synced(disk, "/from/f", "x");
      disk.syncFolder("/from");
      disk.rename("/from/f", "/to/f");
      return disk;
    };
    const before = "/ /from /from/f=x /to";
    const after = "/ /from /to /to/f=x";
    const disk = made();
    expect(outcomes(disk)).toEqual(new Set([before, after]));
    disk.syncFolder("/to");
    expect(outcomes(disk)).toEqual(new Set(["/ /from /from/f=x /to /to/f=x", after]));
    disk.syncFolder("/from");
    expect(outcomes(disk)).toEqual(new Set([after]));
    const other = made();
    other.syncFolder("/from");
    expect(outcomes(other)).toEqual(new Set([after]));
  });

  test("a folder that is moved is never in two places", () => {
    const disk = new SimulatedDisk();
    for (const path of ["/from", "/to", "/from/f"]) disk.makeFolder(path);
    for (const path of ["/", "/from"]) disk.syncFolder(path);
    disk.rename("/from/f", "/to/f");
    expect(outcomes(disk)).toEqual(new Set(["/ /from /from/f /to", "/ /from /to /to/f"]));
    disk.syncFolder("/to");
    expect(outcomes(disk)).toEqual(new Set(["/ /from /to /to/f"]));
  });

  test("a failed sync of a folder promises nothing, and the next one can succeed", () => {
    const disk = new SimulatedDisk();
    synced(disk, "/f", "x");
    disk.plan = () => ({ fail: "EIO" });
    expect(() => disk.syncFolder("/")).toThrow("EIO");
    disk.plan = null;
    expect(outcomes(disk)).toEqual(new Set(["/", "/ /f=x"]));
    disk.syncFolder("/");
    expect(outcomes(disk)).toEqual(new Set(["/ /f=x"]));
  });

  test("a copy of the machine has the same states before it, and none of what happens later", () => {
    const disk = new SimulatedDisk();
    disk.makeFolder("/a");
    disk.makeFolder("/b");
    disk.syncFolder("/");
    synced(disk, "/a/f", "x");
    disk.rename("/a/f", "/b/f");
    const copy = disk.afterKill();
    const expected = outcomes(disk);
    expect(outcomes(copy)).toEqual(expected);
    disk.syncFolder("/a");
    disk.syncFolder("/b");
    disk.open("/b/f", "append").write(Buffer.from("yy"));
    expect(outcomes(copy)).toEqual(expected);
  });
});

describe("inodes", () => {
  test("a rename moves a name to another inode; open files keep working on theirs", () => {
    const disk = new SimulatedDisk();
    synced(disk, "/a", "a");
    synced(disk, "/b", "b");
    const a = disk.open("/a", "append");
    const before = a.stat();
    disk.rename("/b", "/a");
    expect(disk.stat("/a")!.ino).not.toBe(before.ino);
    expect(a.stat().ino).toBe(before.ino);
    a.write(Buffer.from("!"));
    expect(a.stat().size).toBe(2);
    expect(disk.stat("/a")!.size).toBe(1);
  });

  test("numbers survive kills and crashes, and are not given out twice", () => {
    const disk = new SimulatedDisk();
    disk.plant("/a", Buffer.from("a"));
    const { ino } = disk.stat("/a")!;
    const after = disk.afterCrash(extremes.old);
    expect(after.stat("/a")!.ino).toBe(ino);
    expect(after.open("/b", "create").stat().ino).toBeGreaterThan(ino);
    expect(disk.afterKill().stat("/a")!.ino).toBe(ino);
  });
});
