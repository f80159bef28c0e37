import { randomUUID } from "node:crypto";
import { availableParallelism } from "node:os";
import { type Worker, warmWorker } from "./life.ts";
import type { Fault } from "./oracle.ts";
import { planSession } from "./plan.ts";
import { type KillSteps, stepsOf } from "./points.ts";
import { OwnView, type StoreSpec } from "./stores.ts";
import { Trial } from "./trial.ts";

export interface CampaignOptions {
  readonly store: StoreSpec;
  readonly seed: number;
  /** The minimum number of kills. */
  readonly kills: number;
  /** How many sessions to test at the same time, if the store can be shared. Default: one per processor. */
  readonly lanes?: number;
  /** Run only the session with this number, as a fault names it. */
  readonly only?: number;
  /** How to start the writers. Default: on this runtime. */
  readonly worker?: Worker;
  /** Disk steps to kill at. Default: those of the folder and the SQLite store. */
  readonly steps?: KillSteps;
  readonly onKill?: (receipt: Receipt) => void;
  /** Ends the campaign after the current lives. */
  readonly signal?: AbortSignal;
}

/** The totals of a campaign. */
export interface Receipt {
  kills: number;
  sessions: number;
  attempted: number;
  acknowledged: number;
  recovered: number;
  /** Acknowledged, and missing. */
  lost: number;
  torn: number;
  tornByKernel: number;
  cutBytes: number;
  readonly points: Map<string, number>;
  readonly faults: SessionFault[];
}

export interface SessionFault extends Fault {
  /** The number of the session in its campaign (`only`). */
  readonly index: number;
  readonly session: string;
}

/** Enough faults to know that a store is broken. */
const FAULTS_MAX = 20;
/** Sessions between two runs of gc. */
const SWEEP_EVERY = 16;

export const emptyReceipt = (): Receipt => ({
  kills: 0,
  sessions: 0,
  attempted: 0,
  acknowledged: 0,
  recovered: 0,
  lost: 0,
  torn: 0,
  tornByKernel: 0,
  cutBytes: 0,
  points: new Map(),
  faults: [],
});

/**
 * Kills writers of a store at least `kills` times, and reports what came back. A session with faults is left in place.
 */
export async function runCampaign(options: CampaignOptions): Promise<Receipt> {
  const receipt = emptyReceipt();
  const steps = options.steps ?? stepsOf(options.store.module);
  const worker = options.worker ?? (await warmWorker(options.store));
  await using view = await OwnView.open(options.store);
  let next = options.only ?? 0;

  const goesOn = (): boolean =>
    !options.signal?.aborted && receipt.kills < options.kills && receipt.faults.length < FAULTS_MAX;
  const lane = async (): Promise<void> => {
    while (goesOn()) {
      if (options.only !== undefined && next > options.only) return;
      const index = next++;
      const session = randomUUID();
      const trial = new Trial(view, options.store, worker, session, options.seed + index);
      for (const plan of planSession(options.seed, index, steps)) {
        const before = { ...trial.findings };
        await trial.run(plan);
        receipt.kills += trial.findings.kills - before.kills;
        receipt.torn += trial.findings.torn - before.torn;
        receipt.tornByKernel += trial.findings.tornByKernel - before.tornByKernel;
        receipt.cutBytes += trial.findings.cutBytes - before.cutBytes;
        options.onKill?.(receipt);
        if (!goesOn() || trial.findings.faults.length > 0) break;
      }
      add(receipt, trial, index, session);
      await view.use(async (store) => {
        if (trial.findings.faults.length === 0 && (await store.has(session))) await store.delete(session);
        if (index % SWEEP_EVERY === 0) await store.gc({ graceMs: 0 });
      });
    }
  };
  await Promise.all(Array.from({ length: view.lanes(options.lanes ?? availableParallelism()) }, lane));
  return receipt;
}

function add(receipt: Receipt, trial: Trial, index: number, session: string): void {
  receipt.sessions++;
  receipt.attempted += new Set(trial.log.tried.map(({ attempt }) => attempt.id)).size;
  receipt.acknowledged += trial.log.acknowledged;
  receipt.recovered += trial.recovered;
  for (const [name, times] of trial.findings.points) receipt.points.set(name, (receipt.points.get(name) ?? 0) + times);
  for (const fault of trial.findings.faults) {
    receipt.faults.push({ ...fault, index, session });
    if (fault.what === "lost") receipt.lost++;
  }
}
