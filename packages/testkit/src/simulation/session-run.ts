import { isHoldfastError, type JournalRecord } from "holdfast";
import type { JournalAppended as Appended, Journal, JournalStore, NewRecord, Opened } from "holdfast/store";
import type { Book } from "./book.ts";
import { keptElsewhere } from "./kept.ts";
import { answered, attempt, type Entry, isSame, type RecoveredRecord, type State, synced } from "./ledger.ts";
import type { SimulatedDisk } from "./simulated-disk.ts";
import { type PlannedAppend, type PlannedRecord, padding, sessionId } from "./workload.ts";

/** What a session needs from its run. */
export interface SessionRunOptions {
  readonly session: number;
  readonly book: Book;
  readonly disk: SimulatedDisk;
  store(): JournalStore;
  /** The disk as it was found: repair must lose nothing of it (P2). */
  readonly before: ReadonlyMap<string, Uint8Array | null>;
  /** Before a failed journal is opened again, memory pressure drops what a failed fsync left in the cache. */
  readonly dropCache: boolean;
}

/** Does to one session what the workload says, and enters each answer in the book. */
export class SessionRun {
  readonly #options: SessionRunOptions;
  readonly #session: number;
  readonly #id: string;
  readonly #book: Book;
  #journal: Journal | null = null;
  #headAtOpen = 0;
  #closedHere = false;
  /** It was opened once, and so repaired: later cuts concern what this run wrote. */
  #healed = false;
  #running: Promise<unknown>[] = [];

  constructor(options: SessionRunOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#id = sessionId(options.session);
    this.#book = options.book;
  }

  /** What the open journal calls durable. */
  get durable(): number {
    return this.#journal?.durable ?? 0;
  }

  get isOpen(): boolean {
    return this.#journal !== null;
  }

  /**
   * The journal: opened, created, or opened again after it failed. Null if the session is deleted or cannot be opened.
   */
  async open(first?: readonly PlannedRecord[]): Promise<Journal | null> {
    if (this.#journal?.failure === null) return this.#journal;
    if (this.#journal !== null) await this.#abandon(this.#journal);
    if (first === undefined && this.#ledger.entries.length === 0) return null;
    await this.#book.tries(`opening session ${this.#session}`, async () => {
      const { existence, deleting, entries } = this.#ledger;
      if (await this.#store.has(this.#id)) await this.#openExisting();
      else if (existence === "yes" || deleting) this.#book.judge(this.#session, null);
      else {
        const records = first ?? entries.find((entry) => entry.kind === "first")?.records;
        if (records !== undefined) await this.#create(records);
      }
    });
    return this.#journal;
  }

  async append(appends: readonly PlannedAppend[], wait: boolean): Promise<void> {
    const journal = await this.open();
    if (journal === null) return;
    const running = this.#appends(journal, appends);
    if (!wait) {
      this.#running.push(running);
      return;
    }
    const failed = await running;
    if (failed.length === 0 || this.#book.faults !== "once") return;
    // The fault is over: what was refused is written once; what was in doubt and is there is not written again.
    const reopened = await this.open();
    for (const one of failed) {
      if (reopened === null || this.#standing(entryOf(one)) !== undefined) continue;
      if (await this.#append(reopened, one)) continue;
      this.#book.say(this.#session, `${one.records[0]!.n} still fails though the fault is over`);
    }
  }

  async flush(now: boolean): Promise<void> {
    const journal = await this.open();
    if (journal === null) return;
    const covered = this.#ledger.entries;
    try {
      if (now) journal.flushSync();
      else await journal.flush();
      this.#book.update(this.#session, (ledger) => synced(ledger, covered));
    } catch (error) {
      this.#book.failed(`flushing session ${this.#session}`, error);
    }
  }

  async epoch(records: readonly PlannedRecord[]): Promise<void> {
    const journal = await this.open();
    if (journal === null) return;
    const entry: Entry = { records, kind: "epoch", state: "open" };
    let built = 0;
    const build = (): readonly NewRecord[] => {
      built += 1;
      this.#book.update(this.#session, (ledger) => attempt(ledger, entry));
      return records.map((record, at) => ({ ...toRecord(record), kind: at === 0 ? "epoch" : "note" }));
    };
    try {
      const { seq } = await journal.epoch(build);
      this.#book.update(this.#session, (ledger) => answered(ledger, entry, { state: "power", seq }));
      if (built !== 1) this.#book.say(this.#session, `the epoch was built ${built} times`);
    } catch (error) {
      this.#book.failed(`a new epoch of session ${this.#session}`, error);
      const nothing = journal.failure === null && isHoldfastError(error, "STORE_FULL", "STORE_IO");
      if (nothing) this.#settle(entry, "out");
    }
  }

  async close(): Promise<void> {
    const journal = this.#journal;
    if (journal === null) return;
    const covered = this.#ledger.entries;
    const failedBefore = journal.failure !== null;
    try {
      await journal.close();
      this.#closedHere = true;
      await this.settled();
      // A writer that wrote nothing writes no `closed` either, and a full disk may have had no space for it.
      const closed = this.#book.faults === "none" && journal.head > this.#headAtOpen;
      if (!failedBefore) {
        this.#book.update(this.#session, (ledger) => ({ ...synced(ledger, covered), closed: closed || ledger.closed }));
      }
    } catch (error) {
      this.#book.failed(`closing session ${this.#session}`, error);
      await this.settled();
    }
    this.#journal = null;
  }

  async pack(): Promise<void> {
    await this.close();
    if (this.#ledger.existence !== "yes" || !this.#store.capabilities.pack) return;
    await this.#book.tries(`packing session ${this.#session}`, () => this.#store.pack(this.#id));
  }

  async delete(): Promise<void> {
    await this.close();
    if (this.#ledger.existence !== "yes") return;
    this.#book.update(this.#session, (ledger) => ({ ...ledger, existence: "maybe", deleting: true }));
    await this.#book.tries(`deleting session ${this.#session}`, async () => {
      // A second try finds what the first one left: the session, or nothing to delete.
      if (await this.#store.has(this.#id)) await this.#store.delete(this.#id);
      else if (this.#book.faults !== "none") return;
      this.#book.update(this.#session, (ledger) => ({ ...ledger, existence: "no" }));
    });
  }

  async read(): Promise<void> {
    await this.settled();
    if (this.#ledger.existence !== "yes") return;
    await this.#book.tries(`reading session ${this.#session}`, async () => {
      const { records } = await this.#store.read(this.#id);
      this.#book.look(this.#session, { ...(await this.#history()), current: found(records) });
    });
  }

  async verify(): Promise<void> {
    await this.close();
    if (this.#ledger.existence !== "yes") return;
    await this.#book.tries(`verifying session ${this.#session}`, async () => {
      const { damaged, missing, cutBytes } = await this.#store.verify(this.#id);
      if (damaged.length + missing.length + cutBytes === 0) return;
      const words = JSON.stringify({ damaged, missing, cutBytes });
      this.#book.say(this.#session, `verify finds fault with a journal that was closed in order: ${words}`);
    });
  }

  /** Waits for the appends that were not awaited. */
  async settled(): Promise<void> {
    const running = this.#running;
    this.#running = [];
    await Promise.allSettled(running);
  }

  get #store(): JournalStore {
    return this.#options.store();
  }

  get #ledger() {
    return this.#book.ledger(this.#session);
  }

  async #create(records: readonly PlannedRecord[]): Promise<void> {
    const entry: Entry = { records, kind: "first", state: "open" };
    this.#book.update(this.#session, (ledger) => ({ ...ledger, entries: [entry], existence: "maybe" }));
    this.#use(await this.#store.create(this.#id, records.map(toRecord), { app: "simulation" }));
    this.#book.update(this.#session, (ledger) => ({
      ...answered(ledger, entry, { state: "power" }),
      existence: "yes",
      closed: false,
    }));
  }

  async #openExisting(): Promise<void> {
    // After an orderly end, a reader and a writer must agree.
    const seen = this.#closedHere ? null : found((await this.#store.read(this.#id)).records);
    const opened = await this.#store.open(this.#id, { app: "simulation" });
    try {
      await this.#reconcile(opened, seen);
    } catch (error) {
      // A fault while the history is read must not leave a lease behind.
      await opened.journal
        .close()
        .catch((second: unknown) => this.#book.failed(`closing session ${this.#session}`, second));
      throw error;
    }
    this.#use(opened.journal);
  }

  #use(journal: Journal): void {
    this.#journal = journal;
    this.#closedHere = false;
    this.#headAtOpen = journal.head;
  }

  /** A failed journal refuses appends (P8), releases its lease, and is opened again. */
  async #abandon(journal: Journal): Promise<void> {
    await this.settled();
    const refused = await journal.append({ kind: "note", n: "to a failed journal" }).then(
      () => false,
      (error: unknown) => {
        this.#book.failed(`an append to failed session ${this.#session}`, error, true);
        return true;
      },
    );
    if (!refused) this.#book.say(this.#session, "a journal that has failed took an append (P8)");
    this.#journal = null;
    await journal
      .close()
      .catch((error: unknown) => this.#book.failed(`closing failed session ${this.#session}`, error));
    if (!this.#options.dropCache) return;
    this.#options.disk.dropCache();
    this.#book.cacheDropped();
  }

  /** What `open` shows is durable, and is all there is. */
  async #reconcile(opened: Opened, seen: readonly RecoveredRecord[] | null): Promise<void> {
    const { recovery, journal } = opened;
    const { closed } = this.#ledger;
    const say = (problem: string): void => this.#book.say(this.#session, problem);
    const { history, head } = await this.#history();
    const current = found(opened.records);
    this.#book.judge(this.#session, { history, current, head });
    // A reader, which may not repair, stops where a writer would cut (S7).
    if (seen !== null && names(seen) !== names(current))
      say(`a reader saw [${names(seen)}], the writer then [${names(current)}]`);
    if (head !== journal.head) say(`the history ends at seq ${head}, the journal's head is ${journal.head}`);
    if (recovery.damaged.length > 0)
      say(`damage is reported where there was none: ${JSON.stringify(recovery.damaged)}`);
    if (recovery.missing.length > 0) say(`seqs are missing: ${JSON.stringify(recovery.missing)}`);
    if (closed && recovery.unclean) say("it was closed in order, and is called unclean");
    if (!this.#healed) {
      for (const lost of keptElsewhere(this.#options.before, this.#options.disk.tree(), this.#id)) say(lost);
    }
    this.#healed = true;
    this.#book.update(this.#session, (ledger) => ({ ...ledger, closed: false }));
  }

  async #history(): Promise<{ readonly history: readonly RecoveredRecord[]; readonly head: number }> {
    const records: JournalRecord[] = [];
    for await (const record of this.#store.history(this.#id)) records.push(record);
    return { history: found(records), head: records.at(-1)?.seq ?? 0 };
  }

  /** Starts the appends one after another without waiting, then waits for all of them. Returns those that failed. */
  async #appends(journal: Journal, appends: readonly PlannedAppend[]): Promise<readonly PlannedAppend[]> {
    const outcomes = await Promise.all(appends.map((append) => this.#append(journal, append)));
    return appends.filter((_, at) => !outcomes[at]);
  }

  async #append(journal: Journal, append: PlannedAppend): Promise<boolean> {
    const entry: Entry = { ...entryOf(append), mayBeRefused: this.#book.faults !== "none" };
    const earlier = this.#standing(entry);
    if (earlier === undefined) this.#book.update(this.#session, (ledger) => attempt(ledger, entry));
    const records = append.records.map(toRecord);
    const given = records.length === 1 ? records[0]! : records;
    const options = { durability: append.durability, ...(append.key === undefined ? {} : { key: append.key }) };
    const failedBefore = journal.failure !== null;
    try {
      if (append.sync) {
        this.#acknowledge(entry, append, journal.appendSync(given, options), earlier);
        return true;
      }
      this.#acknowledge(entry, append, await journal.append(given, options), earlier);
      return true;
    } catch (error) {
      this.#book.failed(`an append to session ${this.#session}`, error);
      const nothing = failedBefore || (journal.failure === null && !isHoldfastError(error, "SYNC_FAILED"));
      if (nothing && earlier === undefined) this.#settle(entry, "out");
      return false;
    }
  }

  #settle(entry: Entry, state: State): void {
    this.#book.update(this.#session, (ledger) => answered(ledger, entry, { state }));
  }

  #acknowledge(entry: Entry, append: PlannedAppend, appended: Appended, earlier: Entry | undefined): void {
    const say = (problem: string): void => this.#book.say(this.#session, `${entry.records[0]!.n} ${problem}`);
    if (appended.last - appended.seq + 1 !== append.records.length)
      say(`was answered with ${JSON.stringify(appended)}`);
    if (earlier?.seq !== undefined && earlier.seq !== appended.seq) {
      say(`was answered with seq ${appended.seq} the second time, and ${earlier.seq} the first (S11b)`);
    }
    const state = append.durability === "power" || this.#standing(entry)?.state === "power" ? "power" : "process";
    this.#book.update(this.#session, (ledger) => answered(ledger, entry, { state, seq: appended.seq }));
  }

  /** The earlier attempt with these records that has not failed. */
  #standing(entry: Entry): Entry | undefined {
    return this.#ledger.entries.find((other) => isSame(other, entry) && other.state !== "out");
  }
}

function entryOf({ records, key }: PlannedAppend): Entry {
  return { records, kind: "unit", state: "open", ...(key === undefined ? {} : { key }) };
}

function toRecord(record: PlannedRecord): NewRecord {
  return { kind: "note", n: record.n, pad: padding(record) };
}

function names(records: readonly RecoveredRecord[]): string {
  return records.map((record) => record.n).join(" ");
}

/** Our records among the store's. */
function found(records: readonly JournalRecord[]): readonly RecoveredRecord[] {
  return records.flatMap(({ n, pad, seq }) =>
    typeof n === "string" && typeof pad === "string" ? [{ n, pad, seq }] : [],
  );
}
