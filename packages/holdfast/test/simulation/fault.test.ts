import {
  extremes,
  type FaultName,
  faultNames,
  folderStore,
  makeWorkload,
  type ProfileName,
  Runner,
  SimulatedDisk,
  sessionId,
  simulateFaults,
  tellFailures,
} from "@holdfast/testkit/internal/simulation";
import { describe, expect, test } from "vitest";

/**
 * The folder store on a simulated disk that fails (C19): each fault once and for ever, from every step on that can meet
 * it. Every failure is a HoldfastError at the call that met it; a refused append is written once when it is tried
 * again, and one in doubt is there or not after reopening; nothing acknowledged is lost, also by a power cut
 * afterwards. A failure names its seed, its step and the command that repeats it.
 */
const promises: Readonly<Record<FaultName, string>> = {
  EIO: "P8, C19: an I/O error at any step is a typed error, and the session goes on or is opened again",
  ENOSPC: "P8, C19: a full disk refuses what does not fit, and the session goes on when there is space",
  EDQUOT: "P8, C19: so does a quota",
  "short write": "P8, C19: a short write is taken back whole",
  "short write, no way back":
    "P8, C19: a short write that cannot be taken back ends the journal until it is opened again",
  "failed fsync": "P8, C19: after a failed fsync nothing is acknowledged that a power cut can take",
  "fsync ENOSPC": "P8, C19, S9: no space at fsync is a failed fsync, not a full disk",
};

describe.each(faultNames)("%s, once and for ever, at every step", (fault) => {
  // An I/O error can meet every step, reads too: a shorter workload has as many cases.
  const cases: readonly (readonly [ProfileName, number, number])[] =
    fault === "EIO"
      ? [
          ["epochs", 1, 3],
          ["visits", 2, 6],
        ]
      : [
          ["mixed", 1, 8],
          ["mixed", 2, 8],
        ];
  test.each(cases)(`${promises[fault]} (%s, seed %i)`, async (profile, seed, length) => {
    const report = await simulateFaults({ open: folderStore, seed, profile, length, faults: [fault], perFault: 1 });
    expect(tellFailures(report.failures)).toBe("");
    expect(report.states).toBeGreaterThan(30);
  });
});

test.each([1, 2, 3, 4, 5, 6])(
  "P8, C19: a disk that is full takes the session up again when it has space (seed %i)",
  async (seed) => {
    const disk = new SimulatedDisk({ seed, capacityBytes: 6000 + 3000 * seed });
    const runner = new Runner({
      disk,
      open: folderStore,
      workload: makeWorkload(seed, 30, "mixed"),
      faults: "for ever",
    });
    await runner.run();
    disk.capacityBytes = Number.POSITIVE_INFINITY;
    let made = 0;
    await runner.goOn((session) => ({ n: `more.${session}.${++made}`, bytes: 200 }));
    expect(runner.problems, `seed ${seed}`).toEqual([]);
    const after = new Runner({
      disk: disk.afterCrash(seed),
      open: folderStore,
      workload: {
        ...makeWorkload(seed, 1, "mixed"),
        tasks: [...runner.ledgers().keys()].map((session) => ({ task: "open", session, first: [] })),
      },
      ledgers: runner.ledgers(),
    });
    await after.run();
    await after.close();
    expect(after.problems, `seed ${seed}, after a power cut`).toEqual([]);
  },
);

test("P1, S9: what is appended behind a `closed` that never reached the disk survives a power cut", async () => {
  const open = (disk: SimulatedDisk) => folderStore(disk, { segmentBytesMax: 1 << 20, clock: () => 0 });
  const sizeOf = (disk: SimulatedDisk): number =>
    [...disk.tree()].find(([path]) => path.endsWith("/000001.jsonl"))?.[1]?.length ?? 0;
  const id = sessionId(1);
  /**
   * A session whose second record is so long that the file ends with it, and a page too: `closed` comes to a block of
   * its own.
   */
  const written = async (pad: number) => {
    const disk = new SimulatedDisk();
    const store = await open(disk);
    const journal = await store.create(id, [{ kind: "note", n: "first" }]);
    await journal.append({ kind: "note", n: "second", pad: "x".repeat(pad) });
    return { disk, store, journal };
  };
  const measured = await written(0);
  const pad = 4096 - (sizeOf(measured.disk) % 4096);
  await measured.store.close();

  const { disk, journal } = await written(pad);
  expect(sizeOf(disk) % 4096).toBe(0);
  disk.plan = (step) => (step.operation === "sync" || step.operation === "syncNow" ? { fail: "EIO" } : null);
  await expect(journal.close()).rejects.toMatchObject({ code: "SYNC_FAILED" });
  disk.plan = null;
  const reopened = await (await open(disk.process())).open(id);
  await reopened.journal.append({ kind: "note", n: "third" });

  const after = await open(disk.afterCrash(extremes.new));
  const { records, recovery, journal: last } = await after.open(id);
  expect(records.flatMap(({ n }) => (n === undefined ? [] : [n]))).toEqual(["first", "second", "third"]);
  expect(recovery.damaged).toEqual([]);
  await last.close();
  await reopened.journal.close();
});
