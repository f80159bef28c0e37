import type { JournalStore } from "holdfast/store";
import { Book, type FaultMode, type Ledgers } from "./book.ts";
import { SessionRun } from "./session-run.ts";
import type { SimulatedDisk } from "./simulated-disk.ts";
import { type PlannedAppend, type PlannedRecord, sessionId, type Task, type Workload } from "./workload.ts";

/** How to open the store under test: `segmentBytesMax` and a counting clock are part of the experiment. */
export type StoreFactory = (
  disk: SimulatedDisk,
  options: { readonly segmentBytesMax: number; readonly clock: () => number },
) => Promise<JournalStore>;

export interface RunnerOptions {
  readonly disk: SimulatedDisk;
  readonly open: StoreFactory;
  readonly workload: Workload;
  /** What is known about the sessions at the beginning. */
  readonly ledgers?: Ledgers;
  readonly faults?: FaultMode;
  readonly dropCache?: boolean;
  /** Called after each task, with the ids that are open for writing. */
  readonly afterTask?: (open: readonly string[]) => Promise<void>;
}

/** Runs a workload, keeps the book of what the store has promised, and notes every answer that breaks the contract. */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #book: Book;
  readonly #sessions = new Map<number, SessionRun>();
  readonly #before: ReadonlyMap<string, Uint8Array | null>;
  #store: JournalStore | null = null;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#book = new Book(options.ledgers ?? new Map(), options.faults ?? "none");
    this.#before = options.ledgers === undefined ? new Map() : options.disk.tree();
  }

  get problems(): readonly string[] {
    return this.#book.problems;
  }

  /** What is promised at this moment. */
  ledgers(): Ledgers {
    const now = new Map(this.#book.ledgers);
    for (const [session, ledger] of now) {
      const durable = this.#sessions.get(session)?.durable ?? 0;
      if (durable > ledger.durable) now.set(session, { ...ledger, durable });
    }
    return now;
  }

  async run(): Promise<void> {
    for (const task of this.#options.workload.tasks) {
      if (!(await this.#opened())) continue;
      await this.#do(task);
      const open = [...this.#sessions].filter(([, session]) => session.isOpen).map(([number]) => sessionId(number));
      await this.#options.afterTask?.(open);
    }
    for (const session of this.#sessions.values()) await session.settled();
  }

  /** After the faults are over: every session continues, and ends in order. */
  async goOn(record: (session: number) => PlannedRecord): Promise<void> {
    this.#book.faults = "none";
    await this.#opened();
    for (const session of [...this.#book.ledgers.keys()]) {
      const append: PlannedAppend = { records: [record(session)], durability: "power", sync: false };
      await this.#session(session).append([append], true);
    }
    await this.close();
  }

  async close(): Promise<void> {
    for (const session of this.#sessions.values()) await session.close();
    const store = this.#store;
    this.#store = null;
    if (store !== null) await this.#book.tries("closing the store", () => store.close());
  }

  async #do(task: Task): Promise<unknown> {
    if (task.task === "list") return this.#list();
    if (task.task === "restart") return this.close();
    if (task.task === "gc") return this.#book.tries("collecting garbage", () => this.#store!.gc({ graceMs: 0 }));
    const session = this.#session(task.session);
    switch (task.task) {
      case "open":
        return session.open(task.first);
      case "append":
        return session.append(task.appends, task.wait);
      case "again":
        return session.append([task.append], true);
      case "flush":
        return session.flush(task.sync);
      case "epoch":
        return session.epoch(task.records);
      case "close":
        return session.close();
      case "pack":
        return session.pack();
      case "delete":
        return session.delete();
      case "read":
        return session.read();
      case "verify":
        return session.verify();
    }
  }

  async #opened(): Promise<boolean> {
    const { open, disk, workload } = this.#options;
    return this.#book.tries("opening the store", async () => {
      this.#store ??= await open(disk, {
        segmentBytesMax: workload.segmentBytesMax,
        clock: () => 1_800_000_000_000 + disk.steps,
      });
    });
  }

  #session(session: number): SessionRun {
    const known = this.#sessions.get(session);
    if (known !== undefined) return known;
    const run = new SessionRun({
      session,
      book: this.#book,
      disk: this.#options.disk,
      store: () => this.#store!,
      before: this.#before,
      dropCache: this.#options.dropCache ?? false,
    });
    this.#sessions.set(session, run);
    return run;
  }

  async #list(): Promise<void> {
    await this.#book.tries("listing", async () => {
      const { sessions } = await this.#store!.list();
      const ids = new Set(sessions.map((listed) => listed.id));
      for (const [session, { existence }] of this.#book.ledgers) {
        const listed = ids.delete(sessionId(session));
        if (existence === "yes" && !listed) this.#book.say(session, "it is not listed");
        if (existence === "no" && listed) this.#book.say(session, "it is listed, and is not there");
      }
      for (const id of ids) this.#book.problems.push(`${id} is listed, and was never created`);
    });
  }
}
