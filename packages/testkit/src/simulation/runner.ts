import {
  type Appended,
  isHoldfastError,
  type Journal,
  type JournalRecord,
  type JournalStore,
  type NewRecord,
  type Opened,
} from "holdfast";
import { keptElsewhere } from "./kept.ts";
import {
  afterCrash,
  answered,
  attempt,
  compare,
  type Entry,
  emptyLedger,
  type Found,
  isSame,
  type Ledger,
  synced,
} from "./ledger.ts";
import type { SimulatedDisk } from "./simulated-disk.ts";
import { type PlannedAppend, type PlannedRecord, padding, sessionId, type Task, type Workload } from "./workload.ts";

export type Ledgers = ReadonlyMap<number, Ledger>;

/** How the store under test is opened: `segmentBytesMax` and a clock that counts are part of the experiment. */
export type StoreFactory = (
  disk: SimulatedDisk,
  options: { readonly segmentBytesMax: number; readonly clock: () => number },
) => Promise<JournalStore>;

export interface RunnerOptions {
  readonly disk: SimulatedDisk;
  readonly open: StoreFactory;
  readonly workload: Workload;
  /** What is known of the sessions at the beginning. */
  readonly ledgers?: Ledgers;
  /** `none`: nothing may fail. `once`: what failed is tried again, and must then succeed. `for ever`: what fails is left. */
  readonly faults?: "none" | "once" | "for ever";
  /** Before a failed journal is opened again, memory pressure takes what a failed fsync left in the cache. */
  readonly dropCache?: boolean;
}

/** Runs a workload, keeps the ledger of what the store has promised, and notes every answer that breaks the contract. */
export class Runner {
  readonly problems: string[] = [];
  readonly #options: RunnerOptions;
  readonly #disk: SimulatedDisk;
  readonly #ledgers: Map<number, Ledger>;
  readonly #journals = new Map<number, Journal>();
  /** The head of a journal when it was opened. */
  readonly #heads = new WeakMap<Journal, number>();
  readonly #running = new Map<number, Promise<unknown>[]>();
  #faults: "none" | "once" | "for ever";
  #store: JournalStore | null = null;
  /** The disk as it was found: nothing of it may be lost by healing (P2). */
  readonly #before: ReadonlyMap<string, Uint8Array | null>;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#disk = options.disk;
    this.#faults = options.faults ?? "none";
    this.#ledgers = new Map(options.ledgers ?? []);
    this.#before = options.ledgers === undefined ? new Map() : options.disk.tree();
  }

  /** What is promised at this moment. */
  ledgers(): Ledgers {
    const now = new Map(this.#ledgers);
    for (const [session, journal] of this.#journals) {
      const ledger = now.get(session)!;
      now.set(session, { ...ledger, durable: Math.max(ledger.durable, journal.durable) });
    }
    return now;
  }

  async run(): Promise<void> {
    for (const task of this.#options.workload.tasks) {
      if (!(await this.#tried("opening the store", () => this.#opened()))) continue;
      await this.#do(task);
    }
    for (const session of this.#ledgers.keys()) await this.#settled(session);
  }

  /** After the faults are over: every session goes on, and ends in order. */
  async goOn(record: (session: number) => PlannedRecord): Promise<void> {
    this.#faults = "none";
    await this.#tried("opening the store", () => this.#opened());
    for (const session of [...this.#ledgers.keys()]) {
      const append: PlannedAppend = { records: [record(session)], durability: "power", sync: false };
      await this.#do({ task: "append", session, appends: [append], wait: true });
    }
    await this.close();
  }

  async close(): Promise<void> {
    for (const session of [...this.#journals.keys()]) await this.#close(session);
    if (this.#store !== null) await this.#tried("closing the store", () => this.#store!.close());
    this.#store = null;
  }

  async #do(task: Task): Promise<void> {
    switch (task.task) {
      case "open":
        await this.#journal(task.session, task.first);
        return;
      case "append": {
        const journal = await this.#journal(task.session);
        if (journal === null) return;
        const running = this.#appends(task.session, journal, task.appends);
        if (!task.wait) return this.#follow(task.session, running);
        return this.#again(task.session, await running);
      }
      case "again": {
        const journal = await this.#journal(task.session);
        if (journal === null) return;
        return this.#again(task.session, await this.#appends(task.session, journal, [task.append]));
      }
      case "flush":
        return this.#flush(task.session, task.sync);
      case "epoch":
        return this.#epoch(task.session, task.records);
      case "close":
        return this.#close(task.session);
      case "pack":
        return this.#pack(task.session);
      case "delete":
        return this.#delete(task.session);
      case "read":
        return this.#read(task.session);
      case "verify":
        return this.#verify(task.session);
      case "list":
        return this.#list();
      case "restart":
        return this.close();
    }
  }

  async #opened(): Promise<JournalStore> {
    this.#store ??= await this.#options.open(this.#disk, {
      segmentBytesMax: this.#options.workload.segmentBytesMax,
      clock: () => 1_800_000_000_000 + this.#disk.steps,
    });
    return this.#store;
  }

  #ledger(session: number): Ledger {
    return this.#ledgers.get(session) ?? emptyLedger;
  }

  #update(session: number, change: (ledger: Ledger) => Ledger): void {
    this.#ledgers.set(session, change(this.#ledger(session)));
  }

  /** The open journal of a session: opened, created, or opened again after it failed. Null if the session is deleted or out of reach. */
  async #journal(session: number, first?: readonly PlannedRecord[]): Promise<Journal | null> {
    const known = this.#journals.get(session);
    if (known !== undefined && known.failure === null) return known;
    if (known !== undefined) await this.#abandon(session, known);
    if (first === undefined && this.#ledger(session).entries.length === 0) return null;
    const id = sessionId(session);
    const store = this.#store!;
    let journal: Journal | null = null;
    await this.#tried(`opening session ${session}`, async () => {
      journal = null;
      const ledger = this.#ledger(session);
      const there = await store.has(id);
      if (there) {
        const seen = found((await store.read(id)).records);
        const opened = await store.open(id, { app: "simulation" });
        // Kept before it is looked at: a fault while reading the history must not leave a lease behind.
        this.#keep(session, opened.journal);
        await this.#reconcile(session, opened, seen);
        journal = opened.journal;
      } else if (ledger.existence === "yes" || ledger.deleting) {
        this.#judge(session, null);
      } else {
        const records = first ?? ledger.entries.find((entry) => entry.kind === "first")?.records;
        if (records !== undefined) journal = await this.#create(session, records);
      }
    });
    return journal;
  }

  async #create(session: number, records: readonly PlannedRecord[]): Promise<Journal> {
    const entry: Entry = { records, kind: "first", state: "open" };
    this.#update(session, (ledger) => ({ ...attempt({ ...ledger, entries: [] }, entry), existence: "maybe" }));
    const journal = await this.#store!.create(sessionId(session), records.map(toRecord), { app: "simulation" });
    this.#update(session, (ledger) => ({
      ...answered(ledger, entry, { state: "power" }),
      existence: "yes",
      closed: false,
    }));
    this.#keep(session, journal);
    return journal;
  }

  #keep(session: number, journal: Journal): void {
    this.#journals.set(session, journal);
    this.#heads.set(journal, journal.head);
  }

  /** A failed journal refuses appends (P8), gives its lease back, and is opened again. */
  async #abandon(session: number, journal: Journal): Promise<void> {
    await this.#settled(session);
    const refused = await journal.append({ kind: "note", n: "to a failed journal" }).then(
      () => false,
      (error) => this.#typed(`an append to failed session ${session}`, error),
    );
    if (!refused) this.problems.push(`session ${session}: a journal that has failed took an append (P8)`);
    this.#journals.delete(session);
    await journal.close().catch((error: unknown) => this.#typed(`closing failed session ${session}`, error));
    if (this.#options.dropCache !== true) return;
    this.#disk.dropCache();
    // What was acknowledged under `process` and never synced may go with it, in every session whose fsync failed.
    for (const [each, ledger] of this.#ledgers) this.#ledgers.set(each, afterCrash(ledger, "power"));
  }

  /** What `open` shows is durable, and is all that there is: from here on the ledger knows what became of everything. */
  async #reconcile(session: number, opened: Opened, seen: readonly Found[]): Promise<void> {
    const { recovery, journal } = opened;
    const { closed } = this.#ledger(session);
    const say = (problem: string): unknown => this.problems.push(`session ${session}: ${problem}`);
    const before = await this.#history(session);
    const current = found(opened.records);
    this.#judge(session, { ...before, current, head: journal.head });
    // A reader, who may not heal, stops where a writer would cut (S7).
    if (names(seen) !== names(current)) say(`a reader saw [${names(seen)}], the writer then [${names(current)}]`);
    if (before.head !== journal.head)
      say(`the history ends at seq ${before.head}, the journal's head is ${journal.head}`);
    if (recovery.damaged.length > 0)
      say(`damage is reported where there was none: ${JSON.stringify(recovery.damaged)}`);
    if (recovery.missing.length > 0) say(`seqs are missing: ${JSON.stringify(recovery.missing)}`);
    if (closed && recovery.unclean) say("it was closed in order, and is called unclean");
    for (const lost of keptElsewhere(this.#before, this.#disk.tree(), sessionId(session))) say(lost);
    this.#update(session, (ledger) => ({ ...ledger, closed: false }));
  }

  #judge(session: number, session_: Parameters<typeof compare>[1]): void {
    const { problems, ledger } = compare(this.#ledger(session), session_, padding);
    this.problems.push(...problems.map((problem) => `session ${session}: ${problem}`));
    this.#ledgers.set(session, ledger);
  }

  async #history(session: number): Promise<{ readonly history: readonly Found[]; readonly head: number }> {
    const records: JournalRecord[] = [];
    for await (const record of this.#store!.history(sessionId(session))) records.push(record);
    return { history: found(records), head: records.at(-1)?.seq ?? 0 };
  }

  /** Starts the appends one after another without a wait in between, then waits for all of them. Returns those that failed. */
  async #appends(
    session: number,
    journal: Journal,
    appends: readonly PlannedAppend[],
  ): Promise<readonly PlannedAppend[]> {
    const outcomes = await Promise.all(appends.map((append) => this.#append(session, journal, append)));
    return appends.filter((_, at) => !outcomes[at]);
  }

  /** The fault is over: what was refused is written once; what was in doubt and turns out to be there is not written again. */
  async #again(session: number, failed: readonly PlannedAppend[]): Promise<void> {
    if (failed.length === 0 || this.#faults !== "once") return;
    const reopened = await this.#journal(session);
    for (const append of failed) {
      if (reopened === null) return;
      const entry = entryOf(append);
      if (this.#ledger(session).entries.some((other) => isSame(other, entry) && other.state !== "out")) continue;
      if (await this.#append(session, reopened, append)) continue;
      this.problems.push(`session ${session}: ${append.records[0]!.n} still fails though the fault is over`);
    }
  }

  async #append(session: number, journal: Journal, append: PlannedAppend): Promise<boolean> {
    const entry = entryOf(append);
    const earlier = this.#ledger(session).entries.find((other) => isSame(other, entry) && other.state !== "out");
    if (earlier === undefined) this.#update(session, (ledger) => attempt(ledger, entry));
    const records = append.records.map(toRecord);
    const options = { durability: append.durability, ...(append.key === undefined ? {} : { key: append.key }) };
    const failedBefore = journal.failure !== null;
    try {
      const given = records.length === 1 ? records[0]! : records;
      const appended = append.sync ? journal.appendSync(given, options) : await journal.append(given, options);
      this.#acknowledge(session, entry, append, appended, earlier);
      return true;
    } catch (error) {
      this.#typed(`an append to session ${session}`, error);
      const nothing = failedBefore || (journal.failure === null && !isHoldfastError(error, "SYNC_FAILED"));
      if (nothing && earlier === undefined) {
        this.#update(session, (ledger) => answered(ledger, entry, { state: "out" }));
      }
      return false;
    }
  }

  #acknowledge(
    session: number,
    entry: Entry,
    append: PlannedAppend,
    appended: Appended,
    earlier: Entry | undefined,
  ): void {
    const say = (problem: string): unknown =>
      this.problems.push(`session ${session}: ${entry.records[0]!.n} ${problem}`);
    if (appended.last - appended.seq + 1 !== append.records.length)
      say(`was answered with ${JSON.stringify(appended)}`);
    if (earlier?.seq !== undefined && earlier.seq !== appended.seq) {
      say(`was answered with seq ${appended.seq} the second time, and ${earlier.seq} the first (S11b)`);
    }
    const known = this.#ledger(session).entries.find((other) => isSame(other, entry));
    const state = append.durability === "power" || known?.state === "power" ? "power" : "process";
    this.#update(session, (ledger) => answered(ledger, entry, { state, seq: appended.seq }));
  }

  async #flush(session: number, now: boolean): Promise<void> {
    const journal = await this.#journal(session);
    if (journal === null) return;
    const covered = this.#ledger(session).entries;
    try {
      if (now) journal.flushSync();
      else await journal.flush();
      this.#update(session, (ledger) => synced(ledger, covered));
    } catch (error) {
      this.#typed(`flushing session ${session}`, error);
    }
  }

  async #epoch(session: number, records: readonly PlannedRecord[]): Promise<void> {
    const journal = await this.#journal(session);
    if (journal === null) return;
    const entry: Entry = { records, kind: "epoch", state: "open" };
    let built = 0;
    const build = (): readonly NewRecord[] => {
      built += 1;
      this.#update(session, (ledger) => attempt(ledger, entry));
      return records.map((record, at) => ({ ...toRecord(record), kind: at === 0 ? "epoch" : "note" }));
    };
    try {
      await journal.epoch(build);
      this.#update(session, (ledger) => answered(ledger, entry, { state: "power" }));
      if (built !== 1) this.problems.push(`session ${session}: the epoch was built ${built} times`);
    } catch (error) {
      this.#typed(`a new epoch of session ${session}`, error);
      const nothing = journal.failure === null && isHoldfastError(error, "STORE_FULL", "STORE_IO");
      if (nothing) this.#update(session, (ledger) => answered(ledger, entry, { state: "out" }));
    }
  }

  async #close(session: number): Promise<void> {
    const journal = this.#journals.get(session);
    if (journal === undefined) return;
    const covered = this.#ledger(session).entries;
    const failedBefore = journal.failure !== null;
    try {
      await journal.close();
      await this.#settled(session);
      // A writer that wrote nothing writes no `closed` either; a disk that was full may have had no place for it.
      const closed = this.#faults === "none" && journal.head > (this.#heads.get(journal) ?? 0);
      if (!failedBefore)
        this.#update(session, (ledger) => ({ ...synced(ledger, covered), closed: closed || ledger.closed }));
    } catch (error) {
      this.#typed(`closing session ${session}`, error);
      await this.#settled(session);
    }
    this.#journals.delete(session);
  }

  async #pack(session: number): Promise<void> {
    await this.#close(session);
    if (this.#ledger(session).existence !== "yes" || !this.#store!.capabilities.pack) return;
    await this.#tried(`packing session ${session}`, () => this.#store!.pack(sessionId(session)));
  }

  async #delete(session: number): Promise<void> {
    await this.#close(session);
    if (this.#ledger(session).existence !== "yes") return;
    const id = sessionId(session);
    this.#update(session, (ledger) => ({ ...ledger, existence: "maybe", deleting: true }));
    await this.#tried(`deleting session ${session}`, async () => {
      if (await this.#store!.has(id)) await this.#store!.delete(id);
      this.#update(session, (ledger) => ({ ...ledger, existence: "no" }));
    });
  }

  async #read(session: number): Promise<void> {
    await this.#settled(session);
    if (this.#ledger(session).existence !== "yes") return;
    await this.#tried(`reading session ${session}`, async () => {
      const { records } = await this.#store!.read(sessionId(session));
      const { problems } = compare(
        { ...this.#ledger(session), durable: 0 },
        { ...(await this.#history(session)), current: found(records) },
        padding,
      );
      this.problems.push(...problems.map((problem) => `session ${session}, read: ${problem}`));
    });
  }

  async #verify(session: number): Promise<void> {
    await this.#close(session);
    if (this.#ledger(session).existence !== "yes") return;
    await this.#tried(`verifying session ${session}`, async () => {
      const { damaged, missing, cutBytes } = await this.#store!.verify(sessionId(session));
      if (damaged.length + missing.length + cutBytes === 0) return;
      const found = JSON.stringify({ damaged, missing, cutBytes });
      this.problems.push(`session ${session}: verify finds fault with a journal that was closed in order: ${found}`);
    });
  }

  async #list(): Promise<void> {
    await this.#tried("listing", async () => {
      const { sessions } = await this.#store!.list();
      const ids = new Set(sessions.map((listed) => listed.id));
      for (const [session, { existence }] of this.#ledgers) {
        const listed = ids.delete(sessionId(session));
        if (existence === "yes" && !listed) this.problems.push(`session ${session} is not listed`);
        if (existence === "no" && listed) this.problems.push(`session ${session} is listed, and is not there`);
      }
      for (const id of ids) this.problems.push(`${id} is listed, and was never created`);
    });
  }

  /** Runs something that may meet a fault. In a run with one fault it is tried again, and must then succeed. */
  async #tried(what: string, act: () => Promise<unknown>): Promise<boolean> {
    for (let tries = 0; ; tries++) {
      try {
        await act();
        return true;
      } catch (error) {
        this.#typed(tries === 0 ? what : `${what}, again`, error);
        if (this.#faults !== "once") return false;
        if (tries > 0) {
          this.problems.push(`${what} still fails though the fault is over`);
          return false;
        }
      }
    }
  }

  /** Every failure is a HoldfastError, and there is none without a fault. */
  #typed(what: string, error: unknown): boolean {
    const words =
      error instanceof Error ? `${isHoldfastError(error) ? error.code : error.name}: ${error.message}` : String(error);
    if (!isHoldfastError(error)) {
      const trace = error instanceof Error ? `\n${error.stack}` : "";
      this.problems.push(`${what} failed with no HoldfastError: ${words}${trace}`);
    } else if (this.#faults === "none" && !what.startsWith("an append to failed")) {
      this.problems.push(`${what} failed without a fault: ${words}`);
    }
    return true;
  }

  #follow(session: number, running: Promise<unknown>): void {
    this.#running.set(session, [...(this.#running.get(session) ?? []), running]);
  }

  async #settled(session: number): Promise<void> {
    await Promise.allSettled(this.#running.get(session) ?? []);
    this.#running.delete(session);
  }
}

function entryOf(append: PlannedAppend): Entry {
  const { records, key } = append;
  return { records, kind: "unit", state: "open", ...(key === undefined ? {} : { key }) };
}

function toRecord(record: PlannedRecord): NewRecord {
  return { kind: "note", n: record.n, pad: padding(record) };
}

function names(records: readonly Found[]): string {
  return records.map((record) => record.n).join(" ");
}

/** Our records among those of the store. */
function found(records: readonly JournalRecord[]): readonly Found[] {
  return records.flatMap(({ n, pad, seq }) =>
    typeof n === "string" && typeof pad === "string" ? [{ n, pad, seq }] : [],
  );
}
