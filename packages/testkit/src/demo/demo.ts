import { statSync } from "node:fs";
import { parseArgs } from "node:util";
import { type JournalStore, newId } from "holdfast";
import { newSeed, runCommand, wholeNumber } from "../kill/command-line.ts";
import { Log } from "../kill/log.ts";
import { type Fault, judge, type View, viewOf } from "../kill/oracle.ts";
import type { KillPoint } from "../kill/pausing-disk.ts";
import { temporaryPlace } from "../kill/place.ts";
import { openSpec, type StoreSpec } from "../kill/stores.ts";
import { programBeside, Victim } from "../kill/victim.ts";
import { mixSeeds, seededRandom } from "../simulation/random.ts";
import { appendIn } from "./conversation.ts";
import { receiptOf } from "./receipt.ts";
import * as screen from "./screen.ts";
import type { WriterJob } from "./writer.ts";

const HELP = `A writer is killed with SIGKILL while it appends to a journal; the journal is
opened again, checked, and continued.

  npm start -- [options]

  --kills <n>      how often (default 6, at most 100)
  --seed <n>       repeats the plan of an earlier run
  --store <url>    a module that exports openStore, instead of the folder store
  --help

The kills are aimed: the child's disk stops after a part of a write's bytes, and
waits for SIGKILL there. npm run torture kills at random instants too.

Exit code 0: all that was acknowledged is there. 1: it is not. 2: wrong usage.
`;
const KILLS_MAX = 100;
/** More than any life sees before it is killed. */
const APPENDS_MAX = 10_000;
const ATTEMPTS_MAX = 40;
const APPENDS_LAST = 6;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      kills: { type: "string" },
      seed: { type: "string" },
      store: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const kills = Math.min(wholeNumber("kills", values.kills, 6), KILLS_MAX);
  const seed = wholeNumber("seed", values.seed, newSeed(), 0);
  using place = temporaryPlace();
  const spec: StoreSpec = { module: values.store ?? "folder", place: place.path, durability: "power" };
  screen.showStart(kills, seed, place.path);
  await using store = await openSpec(spec);
  const demo = new Demo(spec, store, seed);
  for (let life = 1; life <= kills; life++) await demo.killedLife(life);
  await demo.lastLife();
  return demo.showReceipt() ? 0 : 1;
}

class Demo {
  readonly #spec: StoreSpec;
  readonly #store: JournalStore;
  readonly #seed: number;
  readonly #session = newId();
  readonly #log = new Log();
  readonly #faults: Fault[] = [];
  #view: View = { all: [], found: [] };
  #torn = 0;
  #cutBytes = 0;
  #quarantinedBytes = 0;

  constructor(spec: StoreSpec, store: JournalStore, seed: number) {
    this.#spec = spec;
    this.#store = store;
    this.#seed = seed;
  }

  async killedLife(life: number): Promise<void> {
    const aimed = aim(mixSeeds(this.#seed, life), life);
    await using writer = this.#start(APPENDS_MAX, aimed.point);
    let attempts = 0;
    let where = "at some instant";
    writer.onEvent((event) => {
      if (event.e === "at") where = aimed.where;
      if (event.e === "attempt") attempts++;
      // A store that does without the disk it was given never comes to the point.
      if (event.e === "at" || attempts > ATTEMPTS_MAX) writer.kill();
    });
    await writer.died;
    const acknowledged = writer.events.filter(({ e }) => e === "ack").length;
    screen.showKill({ number: life, pid: writer.pid, attempts, acknowledged, where });
    const failed = writer.events.find(({ e }) => e === "failed");
    if (failed?.e === "failed") this.#wrong([{ what: "conduct", message: failed.message }]);
    await this.#reopen();
  }

  async lastLife(): Promise<void> {
    await using writer = this.#start(APPENDS_LAST);
    await writer.until("done");
    await writer.died;
    screen.showEnd(writer.pid, APPENDS_LAST);
    await this.#check();
  }

  showReceipt(): boolean {
    const bytes = { torn: this.#torn, cutBytes: this.#cutBytes, quarantinedBytes: this.#quarantinedBytes };
    const receipt = receiptOf(this.#log, this.#view, this.#faults, bytes);
    screen.showReceipt(receipt);
    return receipt.balances;
  }

  #start(appends: number, point?: KillPoint): Victim {
    this.#log.nextLife();
    const from = 1 + Math.max(0, ...this.#view.found.map(({ id }) => id));
    const job: WriterJob = { store: this.#spec, session: this.#session, from, appends, ...(point ? { point } : {}) };
    const writer = new Victim(programBeside(import.meta.url, "writer"), job);
    writer.onEvent((event) => this.#log.hear(event));
    return writer;
  }

  /** Heals it, as any next writer would, and looks at what is there. */
  async #reopen(): Promise<void> {
    const start = performance.now();
    const { journal, records, recovery } = await this.#store.open(this.#session);
    screen.showReopening(performance.now() - start, records.length, recovery.cutBytes);
    this.#cutBytes += recovery.cutBytes;
    if (recovery.cutBytes > 0) this.#torn++;
    if (recovery.quarantine !== undefined) this.#quarantinedBytes += statSync(recovery.quarantine).size;
    await journal.close();
    await this.#check();
  }

  async #check(): Promise<void> {
    const view = await viewOf(this.#store.history(this.#session), appendIn);
    const faults = judge(this.#log, view, this.#view);
    this.#view = view;
    if (faults.length > 0) this.#wrong(faults);
    else screen.showChecked(this.#log.acknowledged);
  }

  #wrong(faults: readonly Fault[]): void {
    screen.showFaults(faults.map(({ what, message }) => `${what}: ${message}`));
    this.#faults.push(...faults);
  }
}

/** Mostly in the middle of a write; sometimes between the write and the sync, where the record is whole and nobody knows. */
function aim(seed: number, life: number): { point: KillPoint; where: string } {
  const random = seededRandom(seed);
  // The first life also makes the session, and its `opened` and first records go before.
  const nth = 2 + random.below(18);
  const common = { name: "the kill", step: "write", path: String.raw`\.jsonl$`, nth } as const;
  if (life > 1 && random.chance(0.25))
    return { point: { ...common, when: "after" }, where: "between a write and its sync" };
  const share = 0.05 + 0.9 * random.next();
  const where = `in the middle of a write, at ${Math.round(share * 100)} % of its bytes`;
  return { point: { ...common, when: "during", share }, where };
}

await runCommand("npm start", main);
