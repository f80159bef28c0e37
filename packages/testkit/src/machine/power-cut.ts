import { randomUUID } from "node:crypto";
import type { JournalStore } from "holdfast/store";
import { attemptAppend } from "../kill/attempts.ts";
import { type Worker, warmWorker } from "../kill/life.ts";
import { Log } from "../kill/log.ts";
import { emptyView, type Fault, judge, judgeEpoch, type View, viewOf } from "../kill/oracle.ts";
import type { Attempt } from "../kill/pipe.ts";
import { openSpec, type StoreSpec } from "../kill/stores.ts";
import { Victim } from "../kill/victim.ts";
import type { WorkerJob } from "../kill/worker.ts";
import type { Profile } from "../kill/workload.ts";
import { mixSeeds, type Random, seededRandom } from "../simulation/random.ts";
import { Cutter } from "./cutter.ts";
import { type LoopDisk, Machine, mib } from "./mounts.ts";

export interface PowerCutOptions {
  /** `folder`, `sqlite`, or the URL of a module that exports `openStore`. */
  readonly module: string;
  readonly cuts: number;
  readonly seed: number;
  /** Options of the file system, for example `data=writeback`. */
  readonly mount?: readonly string[];
  readonly onCut?: (receipt: PowerReceipt) => void;
  readonly signal?: AbortSignal;
}

export interface PowerReceipt {
  cuts: number;
  attempted: number;
  acknowledged: number;
  recovered: number;
  /** Reopenings that found an unfinished end, and the bytes they cut off. */
  torn: number;
  cutBytes: number;
  lost: number;
  readonly faults: Fault[];
}

const DISK_MIB = 96;
/** Switch sessions now and then, so that a cut can also hit new folders and names (C8). */
const CUTS_PER_SESSION = 4;

/**
 * Real power cuts: a writer on ext4 on a loop device is cut off at a random instant; the file system is mounted again,
 * the session reopened and checked against what `power` promises. Needs what `whyNoPowerCuts` asks for. It cannot
 * reveal a missing flush of the device.
 */
export async function runPowerCuts(options: PowerCutOptions): Promise<PowerReceipt> {
  await using machine = new Machine();
  const disk = await machine.ext4("disk", mib(DISK_MIB));
  await disk.mount(options.mount);
  const spec: StoreSpec = { module: options.module, place: disk.path, durability: "power", segmentBytesMax: 64 * 1024 };
  const worker = await warmWorker(spec, machine.folder);
  const sums: PowerReceipt = {
    cuts: 0,
    attempted: 0,
    acknowledged: 0,
    recovered: 0,
    torn: 0,
    cutBytes: 0,
    lost: 0,
    faults: [],
  };
  while (sums.cuts < options.cuts && sums.faults.length === 0 && !options.signal?.aborted) {
    const session = new CutSession(disk, spec, worker, options, sums);
    for (let n = 0; n < CUTS_PER_SESSION && sums.cuts < options.cuts && sums.faults.length === 0; n++) {
      await session.cut();
      options.onCut?.(sums);
    }
    await session.finish();
  }
  return sums;
}

class CutSession {
  readonly #id = randomUUID();
  readonly #log = new Log();
  readonly #disk: LoopDisk;
  readonly #spec: StoreSpec;
  readonly #worker: Worker;
  readonly #options: PowerCutOptions;
  readonly #sums: PowerReceipt;
  /** What an opening has shown is durable. */
  #settled: View = emptyView;

  constructor(disk: LoopDisk, spec: StoreSpec, worker: Worker, options: PowerCutOptions, sums: PowerReceipt) {
    this.#disk = disk;
    this.#spec = spec;
    this.#worker = worker;
    this.#options = options;
    this.#sums = sums;
  }

  async cut(): Promise<void> {
    const random = seededRandom(mixSeeds(this.#options.seed, this.#sums.cuts));
    await this.#workUntilCut(random);
    await this.#disk.unmount();
    await this.#disk.mount(this.#options.mount);
    this.#sums.cuts++;
    await using store = await openSpec(this.#spec);
    await this.#check(store);
  }

  async finish(): Promise<void> {
    const { tried, acknowledged } = this.#log;
    this.#sums.attempted += new Set(tried.map(({ attempt }) => attempt.id)).size;
    this.#sums.acknowledged += acknowledged;
    this.#sums.recovered += new Set(this.#settled.found.map(({ id }) => id)).size;
    await using store = await openSpec(this.#spec);
    if (await store.has(this.#id)) await store.delete(this.#id);
    await store.gc({ graceMs: 0 });
  }

  async #workUntilCut(random: Random): Promise<void> {
    await using cutter = new Cutter(this.#disk.path);
    const profile = random.pick<Profile>(["mixed", "mixed", "epochs", "keyed", "large"]);
    const workload = { seed: this.#options.seed, life: this.#sums.cuts, profile, nextId: this.#log.nextId, retry: [] };
    const job: WorkerJob = { store: this.#spec, session: this.#id, workload: { ...workload, plain: true } };
    const nth = 1 + random.below(profile === "large" ? 3 : 60);
    const waitMs = random.below(20);
    this.#log.nextLife();
    await cutter.armed;
    await using writer = new Victim(this.#worker.program, job, this.#worker.spawn);
    writer.onEvent((event) => this.#log.hear(event));
    let attempts = 0;
    await writer.until("attempt", () => ++attempts >= nth);
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    // Kill the writer an instant before: a sync in flight at the cut can return as if it had succeeded (measured on
    // Linux 6.18: of 150 cuts under a bare write and fdatasync, 9 confirmed data that was gone). A machine without
    // power confirms nothing, and neither may this one.
    writer.kill();
    await cutter.cut();
  }

  async #check(store: JournalStore): Promise<void> {
    const there = await store.has(this.#id);
    if (!there) {
      this.#judge(emptyView);
      return;
    }
    const { journal, records, recovery } = await store.open(this.#id);
    if (recovery.cutBytes > 0) this.#sums.torn++;
    this.#sums.cutBytes += recovery.cutBytes;
    const view = await viewOf(store.history(this.#id));
    this.#judge(view);
    this.#add(judgeEpoch(this.#log, view, await viewOf(records)));
    this.#log.nextLife();
    const attempt: Attempt = { id: this.#log.nextId, kind: "append", parts: 2, chars: 400 };
    const answer = await attemptAppend(journal, attempt, (event) => this.#log.hear(event));
    if (answer.e !== "ack") this.#add([{ what: "conduct", message: `after a cut: ${JSON.stringify(answer)}` }]);
    this.#judge(await viewOf(store.history(this.#id)));
    await journal.close();
  }

  #judge(view: View): void {
    this.#add(judge(this.#log, view, this.#settled));
    this.#settled = view;
  }

  #add(faults: readonly Fault[]): void {
    // The next look finds the same fault again: count it once.
    const known = new Set(this.#sums.faults.map(({ message }) => message));
    const fresh = faults.filter(({ message }) => !known.has(message));
    this.#sums.faults.push(...fresh);
    this.#sums.lost += fresh.filter(({ what }) => what === "lost").length;
  }
}
