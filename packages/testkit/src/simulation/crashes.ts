import type { Ledgers } from "./book.ts";
import { afterCrash, type Crash } from "./ledger.ts";
import { changing, type Step, writing } from "./plan.ts";
import { mixSeeds, seededRandom } from "./random.ts";
import { Runner, type StoreFactory } from "./runner.ts";
import type { SimulatedDisk } from "./simulated-disk.ts";
import { type ExtremeName, extremeNames, extremes } from "./survival.ts";
import type { PlannedAppend, PlannedRecord, Task, Workload } from "./workload.ts";

/** The disk and what was promised just before a step: everything needed to check a crash there. */
export interface Moment {
  readonly step: Step | null;
  readonly label: string;
  readonly disk: SimulatedDisk;
  readonly ledgers: Ledgers;
  /** The bytes of the step, if it is a write. */
  readonly content: Uint8Array | null;
}

/**
 * Which of the states a crash can leave: for power cuts a named extreme or a seed, for kills the bytes written by a
 * write in flight.
 */
export type Choice = ExtremeName | number;

export interface CrashPoint {
  /** Counted over the moments of a run. */
  readonly moment: number;
  readonly crash: Crash;
  readonly choice: Choice;
}

/**
 * Runs to the end and keeps the moments before steps that change something; a crash in between would find the same
 * disk.
 */
export async function recordMoments(
  disk: SimulatedDisk,
  runner: Runner,
  run: () => Promise<void>,
  isWanted: (step: Step) => boolean = () => true,
): Promise<readonly Moment[]> {
  const moments: Moment[] = [];
  const keep = (step: Step | null): void => {
    if (step !== null && !(changing.has(step.operation) && isWanted(step))) return;
    moments.push({
      step,
      label: step === null ? "the end" : `step ${step.index}: ${disk.label(step)}`,
      disk: disk.afterKill(),
      ledgers: runner.ledgers(),
      // A copy, unlike `slice` of a Buffer: the writer reuses its buffer.
      content: step?.content === undefined || !writing.has(step.operation) ? null : new Uint8Array(step.content),
    });
  };
  disk.onStep = keep;
  await run();
  disk.onStep = null;
  keep(null);
  return moments;
}

/** The disk that a crash at this moment leaves. */
export function diskAfter(moment: Moment, crash: Crash, choice: Choice): SimulatedDisk {
  if (crash === "power") return moment.disk.afterCrash(typeof choice === "number" ? choice : extremes[choice]);
  const disk = moment.disk.afterKill();
  const { step, content } = moment;
  if (content !== null && step?.ino !== undefined) {
    disk.partOfWrite(step.ino, step.position ?? 0, content.subarray(0, Number(choice)));
  }
  return disk;
}

export function ledgersAfter(moment: Moment, crash: Crash): Ledgers {
  return new Map([...moment.ledgers].map(([session, ledger]) => [session, afterCrash(ledger, crash)]));
}

/**
 * The states worth trying at a moment: `wanted` of them, first the extremes, then seeds; just one if nothing is
 * unsynced.
 */
export function choicesFor(moment: Moment, crash: Crash, wanted: number, salt: number): readonly Choice[] {
  const random = seededRandom(mixSeeds(salt, moment.step?.index ?? 0x7fff_ffff));
  if (crash === "kill") {
    const length = moment.content?.length ?? 0;
    if (length < 2) return [0];
    return [...new Set([0, 1 + random.below(length - 1), length - 1, 1])].slice(0, wanted);
  }
  if (moment.disk.isDurable) return ["new"];
  const start = random.below(extremeNames.length);
  const turned = extremeNames.map((_, at) => extremeNames[(start + at) % extremeNames.length]!);
  const named = turned.slice(0, Math.ceil(wanted / 2));
  const seeds = Array.from({ length: Math.max(0, wanted - named.length) }, () => random.below(0x1_0000));
  return [...named, ...seeds];
}

/**
 * What a program does after a crash: open everything, retry what has a key, append, close; then all of it again with a
 * new store.
 */
export function recoveryWorkload(workload: Workload, ledgers: Ledgers, depth: number): Workload {
  const tasks: Task[] = [{ task: "list" }];
  let made = 0;
  const record = (session: number, bytes: number): PlannedRecord => ({ n: `r${depth}.${session}.${++made}`, bytes });
  const append = (records: readonly PlannedRecord[], durability: PlannedAppend["durability"]): PlannedAppend => ({
    records,
    durability,
    sync: false,
  });
  for (const [session, ledger] of ledgers) {
    const first = ledger.entries.find((entry) => entry.kind === "first")?.records;
    if (first === undefined) continue;
    tasks.push({ task: "open", session, first });
    const keyed = ledger.entries.filter((entry) => entry.kind === "unit" && entry.key !== undefined);
    for (const { records, key } of keyed.slice(-2)) {
      tasks.push({ task: "again", session, append: { ...append(records, "power"), key: key! } });
    }
    const appends = [
      append([record(session, 90), record(session, 900)], "power"),
      append([record(session, 60)], "process"),
    ];
    tasks.push({ task: "append", session, appends, wait: true }, { task: "close", session });
  }
  tasks.push({ task: "restart" }, { task: "gc" }, { task: "list" });
  for (const session of ledgers.keys()) {
    tasks.push({ task: "verify", session }, { task: "open", session, first: [] });
  }
  tasks.push({ task: "restart" });
  return { ...workload, tasks };
}

/**
 * Recovers from a crash and continues. Returns what was wrong, and, if `record` is set, the moments of the recovery
 * itself.
 */
export async function recover(
  open: StoreFactory,
  workload: Workload,
  disk: SimulatedDisk,
  ledgers: Ledgers,
  depth: number,
  record: boolean,
): Promise<{ readonly problems: readonly string[]; readonly moments: readonly Moment[] }> {
  const runner = new Runner({ disk, open, workload: recoveryWorkload(workload, ledgers, depth), ledgers });
  const moments = record ? await recordMoments(disk, runner, () => runner.run()) : [];
  if (!record) await runner.run();
  return { problems: runner.problems, moments };
}

/** The run from which all crashes of a seed are taken. */
export async function recordRun(
  open: StoreFactory,
  disk: SimulatedDisk,
  workload: Workload,
): Promise<{ readonly moments: readonly Moment[]; readonly problems: readonly string[] }> {
  const runner = new Runner({ disk, open, workload });
  const moments = await recordMoments(disk, runner, async () => {
    await runner.run();
    await runner.close();
  });
  return { moments, problems: runner.problems };
}
