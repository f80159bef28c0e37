import { describe, expect, test } from "vitest";
import { PAGE_BYTES, SECTOR_BYTES } from "../../../src/simulation/file-content.ts";
import { SimulatedDisk } from "../../../src/simulation/simulated-disk.ts";
import { everySurvival, extremeNames, extremes } from "../../../src/simulation/survival.ts";

/** The model of S22 (docs/RULES.md): one test for each of its sentences about power cuts. */

const repeat = (letter: string, count: number): Uint8Array => Buffer.from(letter.repeat(count));
const text = (disk: SimulatedDisk, path: string): string | null => {
  const bytes = disk.tree().get(path);
  return bytes == null ? null : Buffer.from(bytes).toString("latin1");
};

/** A file whose name and first content are durable, open for appending. */
function durableFile(content: string) {
  const disk = new SimulatedDisk();
  disk.plant("/file", Buffer.from(content));
  return { disk, file: disk.open("/file", "append") };
}

/** The contents that a power cut now can leave, by many seeds and every extreme. */
function outcomes(disk: SimulatedDisk, path: string, seeds = 400): Set<string | null> {
  const found = new Set<string | null>();
  for (const name of extremeNames) found.add(text(disk.afterCrash(extremes[name]), path));
  for (let seed = 0; seed < seeds; seed++) found.add(text(disk.afterCrash(seed), path));
  return found;
}

describe("S22 pages", () => {
  test("what was synced is there in every state", () => {
    const { disk, file } = durableFile("first ");
    file.write(Buffer.from("second"));
    file.syncNow();
    expect(disk.isDurable).toBe(true);
    expect(outcomes(disk, "/file")).toEqual(new Set(["first second"]));
  });

  test("a dirty page keeps its old bytes, or has its new ones", () => {
    const disk = new SimulatedDisk();
    disk.plant("/file", repeat("o", PAGE_BYTES));
    disk.open("/file", "update").writeAt(repeat("n", PAGE_BYTES), 0);
    expect(text(disk, "/file")).toBe("n".repeat(PAGE_BYTES));
    const found = outcomes(disk, "/file");
    expect(found).toContain("o".repeat(PAGE_BYTES));
    expect(found).toContain("n".repeat(PAGE_BYTES));
  });

  test("a dirty page is torn at sectors of 512 bytes and nowhere else", () => {
    const disk = new SimulatedDisk();
    disk.plant("/file", repeat("o", PAGE_BYTES));
    disk.open("/file", "update").writeAt(repeat("n", PAGE_BYTES), 0);
    let mixed = 0;
    for (const content of outcomes(disk, "/file")) {
      const sectors = Array.from({ length: 8 }, (_, at) => content!.slice(at * SECTOR_BYTES, (at + 1) * SECTOR_BYTES));
      for (const sector of sectors) expect(["o", "n"].map((letter) => letter.repeat(SECTOR_BYTES))).toContain(sector);
      if (new Set(sectors).size === 2) mixed += 1;
    }
    expect(mixed).toBeGreaterThan(20);
  });

  test("each page by itself: a NUL run followed by a whole later page is reachable", () => {
    const { disk, file } = durableFile("");
    file.write(repeat("1", PAGE_BYTES));
    file.write(repeat("2", PAGE_BYTES));
    const zeros = "\0".repeat(PAGE_BYTES);
    expect(text(disk.afterCrash(extremes.late), "/file")).toBe(zeros + "2".repeat(PAGE_BYTES));
    expect(text(disk.afterCrash(extremes.early), "/file")).toBe("1".repeat(PAGE_BYTES) + zeros);
    const bySeed = Array.from({ length: 400 }, (_, seed) => text(disk.afterCrash(seed), "/file"));
    expect(bySeed).toContain(zeros + "2".repeat(PAGE_BYTES));
  });

  test("beyond the durable size there are zeros where the data is missing", () => {
    const { disk, file } = durableFile("whole\n");
    file.write(Buffer.from("lost\n"));
    expect(text(disk.afterCrash(extremes.zeros), "/file")).toBe("whole\n\0\0\0\0\0");
  });

  test("a page may have been written back with what it held between two writes", () => {
    const { disk, file } = durableFile("");
    file.write(Buffer.from("one\n"));
    file.write(Buffer.from("two\n"));
    expect(outcomes(disk, "/file")).toContain("one\n\0\0\0\0");
  });

  test("every combination of few dirty pages can be counted through", () => {
    const { disk, file } = durableFile("");
    file.write(Buffer.concat([repeat("1", PAGE_BYTES), repeat("2", PAGE_BYTES), repeat("3", 10)]));
    const found = new Set<string | null>();
    let states = 0;
    for (const survival of everySurvival(1000)) {
      found.add(text(disk.afterCrash(survival), "/file"));
      states += 1;
    }
    // Three pages and a size, two answers each; with the old size they are all the empty file.
    expect(states).toBe(16);
    expect(found.size).toBe(9);
    expect([...everySurvival(5)].length).toBeLessThanOrEqual(5);
  });
});

describe("S22 sizes", () => {
  test("the size is anything between the durable and the newest", () => {
    const { disk, file } = durableFile("abc");
    file.write(Buffer.from("defgh"));
    const sizes = new Set([...outcomes(disk, "/file")].map((content) => content!.length));
    expect([...sizes].sort()).toEqual([3, 4, 5, 6, 7, 8]);
  });

  test("an unsynced ftruncate may come undone, and then the old bytes are back", () => {
    const { disk } = durableFile("record\ntorn");
    const file = disk.open("/file", "update");
    file.truncate(7);
    expect(text(disk, "/file")).toBe("record\n");
    const found = outcomes(disk, "/file");
    expect(found).toContain("record\ntorn");
    expect(found).toContain("record\n");
    file.syncNow();
    expect(outcomes(disk, "/file")).toEqual(new Set(["record\n"]));
  });

  test("an append after an unsynced ftruncate can meet the old bytes again", () => {
    const { disk } = durableFile(`${"r".repeat(SECTOR_BYTES)}${"t".repeat(3 * SECTOR_BYTES)}`);
    disk.open("/file", "update").truncate(SECTOR_BYTES);
    disk.open("/file", "append").write(repeat("n", SECTOR_BYTES));
    const glued = "r".repeat(SECTOR_BYTES) + "n".repeat(SECTOR_BYTES);
    const found = [...outcomes(disk, "/file")];
    expect(found.some((content) => content!.startsWith(glued) && content!.endsWith("t"))).toBe(true);
  });

  test("a file that shrinks and grows again shows zeros, not what was there", () => {
    const { disk } = durableFile("abcdef");
    const file = disk.open("/file", "update");
    file.truncate(2);
    file.truncate(6);
    expect(text(disk, "/file")).toBe("ab\0\0\0\0");
  });
});

describe("S22 fsync", () => {
  test("a write during a running fsync may or may not be in, and what came before it is", async () => {
    const { disk, file } = durableFile("");
    file.write(Buffer.from("before"));
    const running = file.sync();
    file.write(Buffer.from(" during"));
    await running;
    const found = [...outcomes(disk, "/file")];
    expect(found.every((content) => content!.startsWith("before"))).toBe(true);
    expect(found).toContain("before");
    expect(found).toContain("before during");
    expect(found).toContain("before\0\0\0\0\0\0\0");
  });

  test("a crash before the end of a running fsync promises nothing", async () => {
    const { disk, file } = durableFile("");
    file.write(Buffer.from("before"));
    const running = file.sync();
    expect(outcomes(disk, "/file")).toContain("");
    await running;
    expect(outcomes(disk, "/file")).toEqual(new Set(["before"]));
  });

  test.each(["syncNow", "sync"] as const)(
    "a failed %s leaves the pages readable and clean: the next one succeeds and a crash loses them",
    async (call) => {
      const { disk, file } = durableFile("safe\n");
      file.write(Buffer.from("gone\n"));
      disk.plan = (step) => (step.operation === call ? { fail: "EIO" } : null);
      await expect((async () => file[call]())()).rejects.toMatchObject({ code: "EIO" });
      disk.plan = null;
      expect(text(disk, "/file")).toBe("safe\ngone\n");
      await file[call]();
      expect(text(disk, "/file")).toBe("safe\ngone\n");
      expect(outcomes(disk, "/file")).toEqual(new Set(["safe\n\0\0\0\0\0"]));
    },
  );

  test("memory pressure takes what a failed fsync left in the cache, without any crash", () => {
    const { disk, file } = durableFile("safe\n");
    file.write(Buffer.from("gone\n"));
    disk.plan = () => ({ fail: "EIO" });
    expect(() => file.syncNow()).toThrow("EIO");
    disk.dropCache();
    expect(text(disk, "/file")).toBe("safe\n\0\0\0\0\0");
  });

  test("a block that was never written is not healed in place after a failed fsync, only by cutting it off first", () => {
    const { disk, file } = durableFile("a".repeat(PAGE_BYTES));
    const next = repeat("b", 100);
    file.write(next);
    disk.plan = (step) => (step.operation === "syncNow" ? { fail: "EIO" } : null);
    expect(() => file.syncNow()).toThrow("EIO");
    disk.plan = null;
    const again = disk.open("/file", "update");
    again.writeAt(next, PAGE_BYTES);
    again.syncNow();
    expect(outcomes(disk, "/file")).toEqual(new Set(["a".repeat(PAGE_BYTES) + "\0".repeat(100)]));
    again.truncate(PAGE_BYTES);
    again.syncNow();
    again.writeAt(next, PAGE_BYTES);
    again.syncNow();
    expect(outcomes(disk, "/file")).toEqual(new Set(["a".repeat(PAGE_BYTES) + "b".repeat(100)]));
  });

  test("bytes written anew to a block that was durable once are durable after the next fsync", () => {
    const { disk, file } = durableFile("safe\n");
    file.write(Buffer.from("gone\n"));
    disk.plan = (step) => (step.operation === "syncNow" ? { fail: "EIO" } : null);
    expect(() => file.syncNow()).toThrow("EIO");
    disk.plan = null;
    const again = disk.open("/file", "update");
    again.writeAt(Buffer.from("gone\n"), 5);
    again.syncNow();
    expect(outcomes(disk, "/file")).toEqual(new Set(["safe\ngone\n"]));
  });

  test("two syncs at once: the later one settles what both cover, and the earlier one takes nothing back", async () => {
    const { disk, file } = durableFile("");
    file.write(Buffer.from("one "));
    const first = file.sync();
    file.write(Buffer.from("two"));
    file.syncNow();
    await first;
    expect(outcomes(disk, "/file")).toEqual(new Set(["one two"]));
  });

  test("fsync of a file says nothing of its name", () => {
    const disk = new SimulatedDisk();
    const file = disk.open("/file", "create");
    file.write(Buffer.from("data"));
    file.syncNow();
    expect(outcomes(disk, "/file")).toEqual(new Set([null, "data"]));
    disk.syncFolder("/");
    expect(outcomes(disk, "/file")).toEqual(new Set(["data"]));
  });
});
