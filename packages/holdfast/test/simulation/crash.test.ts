import { folderStore, makeWorkload, Runner, SimulatedDisk } from "@holdfast/testkit/internal/simulation";
import { describe, expect, test } from "vitest";
import { survives } from "./survives.ts";

describe("a power cut before every step", () => {
  test.each([1, 2, 3, 4])("P1, C8: every append that resolved under power is there (seed %i)", (seed) =>
    survives({ seed, length: 14, crashes: ["power"], perStep: 3, recoveryEvery: 0 }, 100),
  );

  test.each([1, 2])("P1, C8: with many appends at a time (seed %i)", (seed) =>
    survives({ seed, profile: "bursts", length: 6, crashes: ["power"], perStep: 3, recoveryEvery: 0 }, 100),
  );

  test.each([1, 2])("C8: a new session is there, and a deleted one is not (seed %i)", (seed) =>
    survives({ seed, profile: "births", crashes: ["power"], perStep: 3, recoveryEvery: 0 }, 100),
  );

  test.each([1, 2])("C7: an epoch is the old one or the new one, never a mixture (seed %i)", (seed) =>
    survives({ seed, profile: "epochs", length: 12, crashes: ["power"], perStep: 3, recoveryEvery: 0 }, 100),
  );
});

describe("SIGKILL before every step and inside every write", () => {
  test.each([1, 2, 3])("P1, C1: every append that resolved is there, also under process (seed %i)", (seed) =>
    survives({ seed, length: 14, crashes: ["kill"], perStep: 3, recoveryEvery: 0 }, 100),
  );

  test.each([1, 2])("C7: an epoch is the old one or the new one, never a mixture (seed %i)", (seed) =>
    survives({ seed, profile: "epochs", length: 12, crashes: ["kill"], perStep: 3, recoveryEvery: 0 }, 100),
  );
});

describe("a crash during recovery is one more crash", () => {
  test.each([1, 2, 3])("C8: before every step of the recovery (seed %i)", (seed) =>
    survives({ seed, length: 6, perStep: 1, recoveryEvery: 25 }, 200),
  );
});

test("C15, S13: while a journal is open no other process finds its lease free, whatever its own process does", async () => {
  for (const seed of [1, 2, 3]) {
    const disk = new SimulatedDisk({ seed });
    const other = await folderStore(disk.process(), { segmentBytesMax: 65_536, clock: () => 0 });
    const free: string[] = [];
    let looked = 0;
    const afterTask = async (open: readonly string[]): Promise<void> => {
      for (const id of open) {
        looked += 1;
        if ((await other.holder(id)) === null) free.push(id);
      }
    };
    const runner = new Runner({ disk, open: folderStore, workload: makeWorkload(seed, 24, "mixed"), afterTask });
    await runner.run();
    await runner.close();
    await other.close();
    expect(runner.problems, `seed ${seed}`).toEqual([]);
    expect(free, `seed ${seed}`).toEqual([]);
    expect(looked, `seed ${seed}`).toBeGreaterThan(10);
  }
});
