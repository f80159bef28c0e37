import { nodeDisk } from "holdfast/disk";
import { type KillPoint, pausingDisk } from "./pausing-disk.ts";
import { tell } from "./pipe.ts";
import { obey } from "./puppet.ts";
import { openSpec, type StoreSpec } from "./stores.ts";
import { work } from "./work.ts";
import type { WorkloadOptions } from "./workload.ts";

/** The job of a child process of the laboratory, as JSON in its first argument. */
export interface WorkerJob {
  readonly store: StoreSpec;
  readonly session: string;
  /** Works on a workload until killed; without one, obeys commands on standard input. */
  readonly workload?: WorkloadOptions;
  /** Closes and ends after this many steps. Default: never. */
  readonly steps?: number;
  readonly point?: KillPoint;
}

/** The program of the child process. */
async function main(): Promise<void> {
  const job = JSON.parse(process.argv[2] ?? "null") as WorkerJob;
  const disk = job.point ? pausingDisk(nodeDisk, job.point) : undefined;
  tell({ e: "ready" });
  if (job.workload) {
    const store = await openSpec(job.store, disk);
    await work(store, job.session, job.workload, job.steps);
    await store.close();
  } else await obey(() => openSpec(job.store, disk), job.session);
  tell({ e: "done" });
  process.exit(0);
}

main().catch((error: unknown) => {
  tell({ e: "failed", message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  process.exit(1);
});
