import { type SimulatedDisk, type StoreFactory, simulateCrashes, simulateFaults } from "@holdfast/testkit/simulation";
import type { Disk, DiskFile } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";

/** The simulation itself on trial: a store whose disk does not do what it says must be found out. */

/** The store on a disk of which some calls do something else. */
function sabotaged(
  change: (disk: SimulatedDisk) => Partial<Disk>,
  file: (file: DiskFile) => Partial<DiskFile> = () => ({}),
): StoreFactory {
  return (disk, options) => {
    const open = (...given: Parameters<Disk["open"]>): DiskFile => {
      const real = disk.open(...given);
      return Object.assign(delegate(real, fileCalls), { path: real.path }, file(real));
    };
    const sabotage: Disk = Object.assign(delegate(disk, diskCalls), { open }, change(disk));
    return openFolderStore("/store", { disk: sabotage, catalogue: false, ...options });
  };
}

const fileCalls = ["read", "write", "writeAt", "stat", "truncate", "sync", "syncNow", "close"] as const;
const diskCalls = [
  "open",
  "stat",
  "list",
  "makeFolder",
  "rename",
  "remove",
  "removeFolder",
  "syncFolder",
  "lock",
  "isLocked",
  "watch",
  "networkKind",
] as const;

function delegate<T extends object, K extends keyof T>(target: T, calls: readonly K[]): T {
  return Object.fromEntries(
    calls.map((call) => [
      call,
      (...given: unknown[]) => (target[call] as (...given: unknown[]) => unknown).apply(target, given),
    ]),
  ) as T;
}

const crashSabotages: Readonly<Record<string, StoreFactory>> = {
  "no fsync": sabotaged(
    () => ({}),
    () => ({ sync: async () => undefined, syncNow: () => undefined }),
  ),
  "a sync that is not waited for": sabotaged(
    () => ({}),
    (file) => ({
      sync: async () => {
        file.sync().catch(() => undefined);
      },
    }),
  ),
  "no folder fsync": sabotaged(() => ({ syncFolder: () => undefined })),
  "a file renamed before it is synced": sabotaged(
    () => ({}),
    (file) => (file.path.endsWith(".tmp") ? { syncNow: () => undefined } : {}),
  ),
  "nothing kept in quarantine": sabotaged(
    () => ({}),
    (file) => (file.path.includes("/quarantine/") ? { write: (bytes) => bytes.length } : {}),
  ),
  "a torn tail is not cut": sabotaged(
    () => ({}),
    () => ({ truncate: () => undefined }),
  ),
};

test.each(Object.keys(crashSabotages))("crashes find out: %s", async (name) => {
  const open = crashSabotages[name]!;
  const found: string[] = [];
  for (let seed = 1; seed <= 4 && found.length === 0; seed++) {
    const report = await simulateCrashes({ open, seed, perStep: 4, recoveryEvery: 25, failuresMax: 1 });
    found.push(...report.failures.flatMap((failure) => failure.problems));
  }
  expect(found).not.toEqual([]);
});

const faultSabotages: Readonly<Record<string, StoreFactory>> = {
  "a failed fsync is not heard of": sabotaged(
    () => ({}),
    (file) => ({
      sync: () => file.sync().catch(() => undefined),
      syncNow: () => {
        try {
          file.syncNow();
        } catch {
          // The sabotage: the caller must not know.
        }
      },
    }),
  ),
  "a short write passes for a whole one": sabotaged(
    () => ({}),
    (file) => ({
      write: (bytes) => {
        file.write(bytes);
        return bytes.length;
      },
    }),
  ),
  "a short write is not taken back": sabotaged(
    () => ({}),
    () => ({ truncate: () => undefined }),
  ),
};

test.each(Object.keys(faultSabotages))("faults find out: %s", async (name) => {
  const open = faultSabotages[name]!;
  const found: string[] = [];
  for (let seed = 1; seed <= 4 && found.length === 0; seed++) {
    const report = await simulateFaults({ open, seed, faults: ["failed fsync", "short write"], failuresMax: 1 });
    found.push(...report.failures.flatMap((failure) => failure.problems));
  }
  expect(found).not.toEqual([]);
});
