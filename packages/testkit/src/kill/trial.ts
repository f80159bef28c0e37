import { statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { isHoldfastError } from "holdfast";
import type { Recovery } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import { attemptAppend } from "./attempts.ts";
import { type LifeEnd, live, type Worker } from "./life.ts";
import { Log } from "./log.ts";
import { emptyView, type Fault, judge, judgeEpoch, type View, viewOf } from "./oracle.ts";
import type { Attempt } from "./pipe.ts";
import type { LifePlan } from "./plan.ts";
import type { OwnView, StoreSpec } from "./stores.ts";

/** What the lives of one session showed. */
export interface TrialCounts {
  kills: number;
  /** Lives that left an unfinished write. */
  torn: number;
  /** Those whose write was interrupted in the kernel, and not by a pausing disk. */
  tornByKernel: number;
  /** Bytes that reopening cut off and set aside. */
  cutBytes: number;
  /** Points at which a life was killed, by name. */
  readonly points: Map<string, number>;
  readonly faults: Fault[];
}

/**
 * One session, killed repeatedly. After each death it is read without repair, and checked. Then its next writer repairs
 * it; or the laboratory does, appends, reopens, and checks again.
 */
export class Trial {
  readonly log: Log = new Log();
  readonly findings: TrialCounts = { kills: 0, torn: 0, tornByKernel: 0, cutBytes: 0, points: new Map(), faults: [] };
  readonly #view: OwnView;
  readonly #spec: StoreSpec;
  readonly #worker: Worker;
  readonly #session: string;
  readonly #seed: number;
  /** What the last look showed. A dead writer adds nothing, so the journal can only grow from there. */
  #settled: View = emptyView;

  /** `view` is this process's own view of what `spec` names. */
  constructor(view: OwnView, spec: StoreSpec, worker: Worker, session: string, seed: number) {
    this.#view = view;
    this.#spec = spec;
    this.#worker = worker;
    this.#session = session;
    this.#seed = seed;
  }

  /** The number of attempts in the journal at the last look. */
  get recovered(): number {
    return new Set(this.#settled.found.map(({ id }) => id)).size;
  }

  /** One life, and what follows it. */
  async run(plan: LifePlan): Promise<void> {
    const end = await this.#live(plan);
    try {
      await this.#view.look((store) => this.#look(store, end));
      if (plan.after === "reopen") await this.#view.use((store) => this.#reopen(store));
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      this.#fault("conduct", `after a kill the store answered ${error.code}: ${error.message}`);
    }
  }

  async #live(plan: LifePlan): Promise<LifeEnd> {
    const { nextId } = this.log;
    this.log.nextLife();
    const workload = { seed: this.#seed, life: this.log.life, profile: plan.profile, nextId, retry: this.#retry() };
    const job = { store: this.#spec, session: this.#session, workload };
    const end = await live(this.#worker, job, plan.ending, this.log);
    if (end.killed) this.findings.kills++;
    if (end.point !== undefined) this.findings.points.set(end.point, (this.findings.points.get(end.point) ?? 0) + 1);
    if (end.complaint !== undefined) this.#fault("conduct", `a worker: ${end.complaint}`);
    for (const event of end.victim.events) {
      if (event.e === "opened") this.#healed(event);
      if (event.e === "refused" || event.e === "doubt")
        this.#fault("conduct", `attempt ${event.id} was answered ${event.code}: ${event.message}`);
    }
    return end;
  }

  /** What a client would send again: keyed attempts without an answer. */
  #retry(): Attempt[] {
    const tries = Map.groupBy(this.log.tried, ({ attempt }) => attempt.id);
    return [...tries.values()]
      .filter((all) => all[0]?.attempt.key !== undefined && all.every(({ outcome }) => outcome.is === "open"))
      .map((all) => all[0]!.attempt);
  }

  /** As a reader sees it, who may not repair. */
  async #look(store: JournalStore, end: LifeEnd): Promise<void> {
    const there = await store.has(this.#session);
    await this.#judge(store, there ? await viewOf(store.history(this.#session)) : emptyView);
    if (!there) return;
    const { recovery } = await store.read(this.#session);
    this.#undamaged(recovery);
    if (recovery.cutBytes === 0 || !end.victim.events.some(({ e }) => e === "opened")) return;
    this.findings.torn++;
    if (!end.point?.startsWith("during")) this.findings.tornByKernel++;
  }

  /** Repairs it, appends, reopens it, and checks. */
  async #reopen(store: JournalStore): Promise<void> {
    if (!(await store.has(this.#session))) return;
    // Not all records: a store may record that it was repaired.
    const before = this.#settled.found.length;
    const first = await store.open(this.#session);
    this.#healed(first.recovery);
    this.#undamaged(first.recovery);
    await this.#judge(store, await viewOf(store.history(this.#session)));
    if (this.#settled.found.length !== before) this.#fault("conduct", "repair showed more than reading did");
    this.log.nextLife();
    const attempt: Attempt = { id: this.log.nextId, kind: "append", parts: 2, chars: 400 };
    const answer = await attemptAppend(first.journal, attempt, (event) => this.log.hear(event));
    if (answer.e !== "ack")
      this.#fault("conduct", `the append after a reopening was answered ${JSON.stringify(answer)}`);
    await first.journal.close();

    const second = await store.open(this.#session);
    if (second.recovery.unclean || second.recovery.cutBytes > 0)
      this.#fault("conduct", `after an orderly end: ${JSON.stringify(second.recovery)}`);
    await this.#judge(store, await viewOf(store.history(this.#session)), await viewOf(second.records));
    await second.journal.close();
  }

  async #judge(store: JournalStore, view: View, current?: View): Promise<void> {
    this.#add(judge(this.log, view, this.#settled));
    const epoch = current ?? (view.all.length > 0 ? await viewOf((await store.read(this.#session)).records) : view);
    this.#add(judgeEpoch(this.log, view, epoch));
    this.#settled = view;
  }

  /** No byte is cut that is not set aside (P2). */
  #healed({ cutBytes, quarantine }: { readonly cutBytes: number; readonly quarantine?: string }): void {
    this.findings.cutBytes += cutBytes;
    if (cutBytes === 0) return;
    if (quarantine === undefined) this.#fault("conduct", `${cutBytes} bytes were cut, and are kept nowhere`);
    else if (isAbsolute(quarantine) && statSync(quarantine, { throwIfNoEntry: false })?.size !== cutBytes)
      this.#fault("conduct", `${cutBytes} bytes were cut, and ${quarantine} does not hold them`);
  }

  /** SIGKILL damages nothing that was durable. */
  #undamaged({ damaged, missing }: Recovery): void {
    if (damaged.length > 0 || missing.length > 0)
      this.#fault("conduct", `damage is reported where none was done: ${JSON.stringify({ damaged, missing })}`);
  }

  #fault(what: Fault["what"], message: string): void {
    this.#add([{ what, message }]);
  }

  /** Every later look finds the same fault again: count it once. */
  #add(faults: readonly Fault[]): void {
    const known = new Set(this.findings.faults.map(({ message }) => message));
    this.findings.faults.push(...faults.filter(({ message }) => !known.has(message)));
  }
}
