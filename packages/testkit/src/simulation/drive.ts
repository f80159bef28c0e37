import { type Choice, choicesFor, diskAfter, ledgersAfter, type Moment, recordRun, recover } from "./crashes.ts";
import { type FaultName, type FaultPoint, faultNames, faults, runWithFault } from "./faults.ts";
import type { Crash } from "./ledger.ts";
import type { SimulationOptions } from "./options.ts";
import { mixSeeds } from "./random.ts";
import { SimulatedDisk } from "./simulated-disk.ts";
import { type Report, Tally } from "./tally.ts";
import { makeWorkload, type Workload } from "./workload.ts";

export interface CrashOptions extends SimulationOptions {
  /** Default: both. */
  readonly crashes?: readonly Crash[];
  /** States of a power cut at each step, and of a kill inside a write. Default: 4. */
  readonly perStep?: number;
  /** One in this many recoveries is itself crashed at every step. Default: 10; 0 for none. */
  readonly recoveryEvery?: number;
}

export interface FaultOptions extends SimulationOptions {
  /** Default: all. */
  readonly faults?: readonly FaultName[];
  /** Power cuts after each fault. Default: 2. */
  readonly perFault?: number;
}

const bothCrashes: readonly Crash[] = ["power", "kill"];

/** A power cut and a kill before every step that changes the disk, and before every such step of the recovery. */
export async function simulateCrashes(options: CrashOptions): Promise<Report> {
  const { open, seed, crashes = bothCrashes, perStep = 4, recoveryEvery = 10 } = options;
  const workload = workloadOf(options);
  const tally = new Tally(options, "--crashes");
  const run = await tally.run("without a crash", null, () => recordRun(open, new SimulatedDisk({ seed }), workload));
  if (run === null) return tally.report(0);
  const only = options.only?.split("/").map(parsePoint);
  /** Null if the recovery failed, or the simulation is over. */
  const recovers = async (tried: readonly CrashCase[], record: boolean): Promise<readonly Moment[] | null> => {
    if (tally.isFull) return null;
    const { moment, crash, choice } = tried.at(-1)!;
    const words = tried.map(wordsOf).join(", then in the recovery ");
    const disk = diskAfter(moment, crash, choice);
    const act = () => recover(open, workload, disk, ledgersAfter(moment, crash), tried.length, record);
    const result = await tally.run(words, tried.map(nameOf).join("/"), act);
    return result === null || result.problems.length > 0 ? null : result.moments;
  };

  for (const [at, moment] of run.moments.entries()) {
    for (const crash of crashes) {
      for (const choice of only?.[0]?.choices(at, crash) ?? choicesFor(moment, crash, perStep, seed)) {
        const chosen = recoveryEvery > 0 && mixSeeds(seed, at, tally.states) % recoveryEvery === 0;
        const nested = only === undefined ? chosen : only.length > 1;
        const first: CrashCase = { at, moment, crash, choice };
        const recovery = await recovers([first], nested);
        for (const [then, later] of recovery?.entries() ?? []) {
          for (const again of bothCrashes) {
            for (const what of only?.[1]?.choices(then, again) ?? choicesFor(later, again, 1, seed + at)) {
              await recovers([first, { at: then, moment: later, crash: again, choice: what }], false);
            }
          }
        }
      }
    }
  }
  return tally.report(run.moments.length);
}

/** Every fault, once and permanently, starting at every step that can meet it. */
export async function simulateFaults(options: FaultOptions): Promise<Report> {
  const { open, seed, perFault = 2 } = options;
  const workload = workloadOf(options);
  const tally = new Tally(options, "--faults");
  const disk = new SimulatedDisk({ seed });
  const run = await tally.run("without a fault", null, () => recordRun(open, disk, workload));
  if (run === null) return tally.report(0);
  for (const step of disk.trace) {
    for (const fault of options.faults ?? faultNames) {
      if (!faults[fault].begins.has(step.operation)) continue;
      for (const times of ["once", "for ever"] as const) {
        const name = `${step.index}:${fault}:${times}`;
        if (tally.isFull || (options.only !== undefined && options.only !== name)) continue;
        const point: FaultPoint = { step: step.index, fault, times };
        const words = `${fault} ${times} from step ${step.index} on (${disk.label(step)})`;
        await tally.run(words, name, () => runWithFault(open, workload, point, perFault));
      }
    }
  }
  return tally.report(run.moments.length);
}

function workloadOf({ seed, length = 24, profile = "mixed" }: SimulationOptions): Workload {
  return makeWorkload(seed, length, profile);
}

/** One crash of a case. */
interface CrashCase {
  /** The position of the moment in its run. */
  readonly at: number;
  readonly moment: Moment;
  readonly crash: Crash;
  readonly choice: Choice;
}

function nameOf({ at, crash, choice }: CrashCase): string {
  return `${at}:${crash}:${choice}`;
}

function wordsOf({ moment, crash, choice }: CrashCase): string {
  if (crash === "power") return `a power cut (${choice}) before ${moment.label}`;
  return choice === 0 ? `SIGKILL before ${moment.label}` : `SIGKILL after ${choice} bytes of ${moment.label}`;
}

function parsePoint(name: string): { choices(at: number, crash: Crash): readonly Choice[] } {
  const [place, kind, choice = ""] = name.split(":");
  const parsed = /^\d+$/u.test(choice) ? Number(choice) : (choice as Choice);
  return { choices: (at, crash) => (String(at) === place && crash === kind ? [parsed] : []) };
}
