import { type Choice, choicesFor, diskAfter, ledgersAfter, type Moment, recordRun, recover } from "./crashes.ts";
import { type FaultName, type FaultPoint, faultNames, faults, runWithFault } from "./faults.ts";
import type { Crash } from "./ledger.ts";
import { mixSeeds } from "./random.ts";
import type { StoreFactory } from "./runner.ts";
import { SimulatedDisk } from "./simulated-disk.ts";
import type { Workload } from "./workload.ts";

/** How a failing case is named, so that it can be run again by itself: `37:power:late`, `37:kill:12/4:power:8123` for a crash in the recovery. */
export type CaseName = string;

export interface Failure {
  readonly seed: number;
  readonly what: string;
  readonly problems: readonly string[];
  /** The command that repeats it. */
  readonly repeat: string;
}

export interface SimulationOptions {
  readonly open: StoreFactory;
  readonly seed: number;
  /** How many tasks the workload has. */
  readonly length?: number;
  /** Ends when this many states have been checked. */
  readonly states?: number;
  /** States of a power cut at each step, and of a kill inside a write. */
  readonly perStep?: number;
  /** One of so many recoveries is itself crashed at every step. */
  readonly recoveryEvery?: number;
  /** Power cuts after each fault. */
  readonly perFault?: number;
  /** Only this fault, or only faults that begin at every n-th step. */
  readonly faults?: readonly FaultName[];
  readonly faultEvery?: number;
  /** Only this case. */
  readonly only?: CaseName;
  readonly failuresMax?: number;
  readonly onProgress?: (states: number) => void;
}

export interface Report {
  /** Disks that were recovered from and checked, or runs with a fault. */
  readonly states: number;
  /** Steps of the run at which the disk changed. */
  readonly moments: number;
  readonly failures: readonly Failure[];
}

const LENGTH = 24;
/** Nothing in a simulation waits for anything but the disk: what takes this long never ends. */
const HANG_MS = 20_000;

/** A power cut and a kill before every step that changes the disk, and before every such step of the recovery. */
export async function simulateCrashes(options: SimulationOptions): Promise<Report> {
  const { open, seed, length = LENGTH, perStep = 4, recoveryEvery = 10 } = options;
  const tally = new Tally(options);
  const run = await tally.within(`seed ${seed}, without a crash`, () =>
    recordRun(open, new SimulatedDisk({ seed }), seed, length),
  );
  if (run === null) return tally.report(0);
  tally.count(`seed ${seed}, without a crash`, run.problems, `--seed ${seed} --length ${length} --crashes`);
  const only = options.only?.split("/").map(parsePoint);
  for (const [at, moment] of run.moments.entries()) {
    for (const crash of ["power", "kill"] as const) {
      for (const choice of only?.[0]?.choices(at, crash) ?? choicesFor(moment, crash, perStep, seed)) {
        if (tally.isFull) return tally.report(run.moments.length);
        const first: Tried = { name: `${at}:${crash}:${choice}`, words: wordsOf(moment, crash, choice) };
        const nested = only === undefined ? mixSeeds(seed, at, tally.states) % recoveryEvery === 0 : only.length > 1;
        const recovered = await tally.recovers(run.workload, moment, crash, choice, [first], nested);
        if (recovered === null || !nested) continue;
        for (const [then, later] of recovered.entries()) {
          for (const again of ["power", "kill"] as const) {
            for (const what of only?.[1]?.choices(then, again) ?? choicesFor(later, again, 1, seed + at)) {
              if (tally.isFull) return tally.report(run.moments.length);
              const second: Tried = { name: `${then}:${again}:${what}`, words: wordsOf(later, again, what) };
              await tally.recovers(run.workload, later, again, what, [first, second], false);
            }
          }
        }
      }
    }
  }
  return tally.report(run.moments.length);
}

/** Every fault, once and for ever, from every step on that can meet it. */
export async function simulateFaults(options: SimulationOptions): Promise<Report> {
  const { open, seed, length = LENGTH, perFault = 2, faultEvery = 1 } = options;
  const tally = new Tally(options);
  const disk = new SimulatedDisk({ seed });
  const run = await tally.within(`seed ${seed}, without a fault`, () => recordRun(open, disk, seed, length));
  if (run === null) return tally.report(0);
  tally.count(`seed ${seed}, without a fault`, run.problems, `--seed ${seed} --length ${length} --faults`);
  for (const step of disk.trace) {
    for (const fault of options.faults ?? faultNames) {
      if (!faults[fault].begins.has(step.operation) || step.index % faultEvery !== 0) continue;
      for (const times of ["once", "for ever"] as const) {
        const name = `${step.index}:${fault}:${times}`;
        if (options.only !== undefined && options.only !== name) continue;
        if (tally.isFull) return tally.report(run.moments.length);
        const point: FaultPoint = { step: step.index, fault, times };
        const words = `seed ${seed}, ${fault} ${times} from step ${step.index} on (${disk.label(step)})`;
        const outcome = await tally.within(words, () => runWithFault(open, seed, length, point, perFault));
        if (outcome === null) continue;
        const then =
          outcome.crash === null ? "" : `, then a power cut (${outcome.crash.choice}) before ${outcome.crash.label}`;
        tally.count(
          words + then,
          outcome.problems,
          `--seed ${seed} --length ${length} --faults --case "${name}"`,
          outcome.states,
        );
      }
    }
  }
  return tally.report(run.moments.length);
}

/** One crash of a case: how it is named, and in words. */
interface Tried {
  readonly name: string;
  readonly words: string;
}

function wordsOf(moment: Moment, crash: Crash, choice: Choice): string {
  if (crash === "power") return `power cut (${choice}) before ${moment.label}`;
  return choice === 0 ? `SIGKILL before ${moment.label}` : `SIGKILL after ${choice} bytes of ${moment.label}`;
}

function parsePoint(name: string): { choices(moment: number, crash: Crash): readonly Choice[] } {
  const [moment, crash, choice = ""] = name.split(":");
  const parsed = /^\d+$/u.test(choice) ? Number(choice) : (choice as Choice);
  return { choices: (at, kind) => (String(at) === moment && kind === crash ? [parsed] : []) };
}

/** Counts states, collects failures, and knows when to stop. */
class Tally {
  states = 0;
  readonly #failures: Failure[] = [];
  readonly #options: SimulationOptions;

  constructor(options: SimulationOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    const { states = Number.POSITIVE_INFINITY, failuresMax = 5 } = this.#options;
    return this.states >= states || this.#failures.length >= failuresMax;
  }

  count(what: string, problems: readonly string[], repeat: string, states = 1): void {
    this.states += states;
    this.#options.onProgress?.(this.states);
    if (problems.length === 0) return;
    this.#failures.push({ seed: this.#options.seed, what, problems, repeat: `npm run simulate -- ${repeat}` });
  }

  /** Null if it hangs, or throws what nobody expected: both are failures of their own. */
  async within<T>(what: string, act: () => Promise<T>, repeat = `--seed ${this.#options.seed}`): Promise<T | null> {
    const hang = Promise.withResolvers<"hang">();
    const timer = setTimeout(() => hang.resolve("hang"), HANG_MS);
    try {
      const result = await Promise.race([act(), hang.promise]);
      if (result !== "hang") return result as T;
      this.count(what, [`it hangs: nothing for ${HANG_MS} ms`], repeat);
    } catch (error) {
      this.count(what, [error instanceof Error ? (error.stack ?? error.message) : String(error)], repeat);
    } finally {
      clearTimeout(timer);
    }
    return null;
  }

  /** The moments of the recovery, if they are wanted; null if it failed. */
  async recovers(
    workload: Workload,
    moment: Moment,
    crash: Crash,
    choice: Choice,
    tried: readonly Tried[],
    record: boolean,
  ): Promise<readonly Moment[] | null> {
    const { open, seed, length = LENGTH } = this.#options;
    const what = `seed ${seed}, ${tried.map((one) => one.words).join(", then in the recovery ")}`;
    const repeat = `--seed ${seed} --length ${length} --crashes --case ${tried.map((one) => one.name).join("/")}`;
    const disk = diskAfter(moment, crash, choice);
    const act = () => recover(open, workload, disk, ledgersAfter(moment, crash), tried.length, record);
    const result = await this.within(what, act, repeat);
    if (result === null) return null;
    this.count(what, result.problems, repeat);
    return result.problems.length === 0 ? result.moments : null;
  }

  report(moments: number): Report {
    return { states: this.states, moments, failures: this.#failures };
  }
}

/** Failures in words, each with the command that repeats it. */
export function tellFailures(failures: readonly Failure[]): string {
  return failures
    .map(
      ({ what, problems, repeat }) =>
        `${what}\n${problems.map((problem) => `  ${problem}`).join("\n")}\n  repeat: ${repeat}`,
    )
    .join("\n\n");
}
