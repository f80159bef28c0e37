import { choicesFor, diskAfter, ledgersAfter, type Moment, recordMoments, recover } from "./crashes.ts";
import {
  type Action,
  allocating,
  type FaultWindow,
  faultIn,
  faulty,
  type Operation,
  type Plan,
  type Step,
  syncing,
  writing,
} from "./plan.ts";
import { mixSeeds } from "./random.ts";
import { Runner, type StoreFactory } from "./runner.ts";
import { SimulatedDisk } from "./simulated-disk.ts";
import type { Workload } from "./workload.ts";

/** How a disk can fail without the machine dying (C19). */
export type FaultName =
  | "EIO"
  | "ENOSPC"
  | "EDQUOT"
  | "short write"
  | "short write, no way back"
  | "failed fsync"
  | "fsync ENOSPC";

interface Fault {
  /** The steps at which it can begin. */
  readonly begins: ReadonlySet<Operation>;
  plan(window: Omit<FaultWindow, "operations">): Plan;
}

const simple = (begins: ReadonlySet<Operation>, action: Action): Fault => ({
  begins,
  plan: (window) => faultIn({ ...window, operations: begins }, action),
});

const truncating: ReadonlySet<Operation> = new Set<Operation>(["truncate"]);

export const faults: Readonly<Record<FaultName, Fault>> = {
  EIO: simple(faulty, { fail: "EIO" }),
  ENOSPC: simple(allocating, { fail: "ENOSPC" }),
  EDQUOT: simple(writing, { fail: "EDQUOT" }),
  "short write": {
    begins: writing,
    plan: (window) => {
      const meets = faultIn({ ...window, operations: writing }, { short: 0 });
      // The next step gets no space: a disk that has just filled up.
      return (step) => (meets(step) === null ? null : { short: Math.floor((step.bytes ?? 0) / 2) });
    },
  },
  "short write, no way back": {
    begins: writing,
    plan: (window) => {
      const short = faultIn({ ...window, operations: writing }, { short: 0 });
      const stuck = faultIn({ ...window, operations: truncating }, { fail: "EIO" });
      return (step) => stuck(step) ?? (short(step) === null ? null : { short: Math.floor((step.bytes ?? 0) / 2) });
    },
  },
  "failed fsync": simple(syncing, { fail: "EIO" }),
  "fsync ENOSPC": simple(new Set<Operation>(["sync", "syncNow"]), { fail: "ENOSPC" }),
};

export const faultNames = Object.keys(faults) as readonly FaultName[];

export interface FaultPoint {
  readonly step: number;
  readonly fault: FaultName;
  readonly times: FaultWindow["times"];
}

/** The result of a run with a fault, and of the crashes tried on top of it. */
export interface FaultOutcome {
  readonly problems: readonly string[];
  readonly states: number;
  /** The crash that showed the problems. */
  readonly afterwards: string | null;
}

/**
 * Runs the workload with a fault from a step on, removes the fault, continues, closes, opens again and compares. Then
 * cuts the power at moments of the same run: an acknowledgement from a failing disk counts too.
 */
export async function runWithFault(
  open: StoreFactory,
  workload: Workload,
  point: FaultPoint,
  crashes: number,
): Promise<FaultOutcome> {
  const disk = new SimulatedDisk({
    seed: workload.seed,
    plan: faults[point.fault].plan({ from: point.step, times: point.times }),
  });
  const runner = new Runner({ disk, open, workload, faults: point.times, dropCache: point.step % 2 === 1 });
  const run = async (): Promise<void> => {
    await runner.run();
    await disk.quiet();
    disk.plan = null;
    let made = 0;
    await runner.goOn((session) => ({ n: `f.${session}.${++made}`, bytes: 100 }));
  };
  // Copying the disk costs more than the run: keep only some of the moments after the fault, chosen by the seed.
  const isWanted = (step: Step): boolean => step.index > point.step && mixSeeds(point.step, step.index) % 8 === 0;
  const moments = await recordMoments(disk, runner, run, isWanted);
  if (runner.problems.length > 0) return { problems: runner.problems, states: 1, afterwards: null };
  const after = await recover(open, workload, disk.afterKill(), runner.ledgers(), 1, false);
  if (after.problems.length > 0) return { problems: after.problems, states: 2, afterwards: null };

  let states = 2;
  for (const moment of spread(moments, crashes)) {
    for (const choice of choicesFor(moment, "power", 1, point.step)) {
      states += 1;
      const { problems } = await recover(
        open,
        workload,
        diskAfter(moment, "power", choice),
        ledgersAfter(moment, "power"),
        1,
        false,
      );
      if (problems.length > 0)
        return { problems, states, afterwards: `, then a power cut (${choice}) before ${moment.label}` };
    }
  }
  return { problems: [], states, afterwards: null };
}

/** This many of them, evenly spaced. */
function spread(moments: readonly Moment[], wanted: number): readonly Moment[] {
  const stride = Math.max(1, Math.floor(moments.length / Math.max(1, wanted)));
  return moments.filter((_, at) => at % stride === 0).slice(0, wanted);
}
