import { randomUUID } from "node:crypto";
import type { HoldfastError, JournalRecord } from "holdfast";
import {
  FORMAT,
  GRACE_MS,
  judgeEnd,
  notInTrash,
  notSupported,
  OrderClock,
  type Segment,
  sessionExists,
  sessionNotFound,
  storeClosed,
  verificationOf,
} from "holdfast/internal";
import type {
  Capabilities,
  DueQuery,
  FollowOptions,
  Holder,
  Journal,
  JournalStore,
  Listed,
  ListOptions,
  NewRecord,
  Opened,
  OpenOptions,
  Snapshot,
  Trashed,
  Verification,
  WriterOptions,
} from "holdfast/store";
import { Account, assertId, Ledger, openedRecord, recordsOf, segmentRecord, type VerbatimLine } from "holdfast/store";
import pg from "pg";
import type { Database } from "./connection/database.ts";
import { Direct } from "./connection/direct.ts";
import type { Metrics, StoreMetrics } from "./connection/metrics.ts";
import { displayName } from "./connection/pools.ts";
import { openDirect } from "./connection/probe.ts";
import { isDuplicate, leaseLost } from "./failure.ts";
import { type Lease, Leases, lockKey } from "./leases/leases.ts";
import { Catalogue } from "./listing/catalogue.ts";
import { dueSessions } from "./listing/due.ts";
import { headStateOf } from "./listing/head-state.ts";
import type { PostgresStoreOptions } from "./options.ts";
import { followSession, PostgresFollowers } from "./reading/follow.ts";
import { Lines } from "./reading/lines.ts";
import { MONTHS_AHEAD, makePartitions, UPKEEP_MS, Upkeep } from "./schema/partitions.ts";
import { Texts } from "./search/search.ts";
import { adoptSession } from "./sessions/adopt.ts";
import { newestSegment, type SessionRow, SessionRows, segmentsOf } from "./sessions/session-rows.ts";
import { PostgresJournal } from "./writing/journal.ts";
import { Batcher } from "./writing/statement-batcher.ts";
import { Transactions } from "./writing/transactions.ts";

export interface StoreParts {
  readonly database: Database;
  /** The same database, for heartbeats while there is no direct connection: over the pool's connections go appends. */
  readonly beats: Database;
  /** Ends the pool, if it is ours. */
  readonly end: () => Promise<void>;
  readonly directUrl: string | null;
  readonly patienceMs: number;
  /** The patience while opening the store, when a server that is away more often means a wrong address. */
  readonly firstPatienceMs: number;
  readonly options: PostgresStoreOptions;
  readonly warnings: readonly string[];
}

export class PostgresStore implements JournalStore {
  readonly url: string;
  readonly capabilities: Capabilities = {
    durability: "power",
    lease: "fenced",
    sync: false,
    shared: true,
    pack: false,
  };
  warnings: readonly string[];
  readonly searchFile = null;
  readonly texts: Texts;
  /** Transactions of the application that are committed with a record. */
  readonly transactions: Transactions;
  readonly #parts: StoreParts;
  readonly #database: Database;
  readonly #leases: Leases;
  readonly #lines: Lines;
  readonly #sessions: SessionRows;
  readonly #catalogue: Catalogue;
  readonly #clock: OrderClock;
  readonly #batcher: Batcher;
  readonly #followers = new PostgresFollowers((id, isFollowed) => this.#direct?.setFollowed(id, isFollowed));
  readonly #live = new Map<string, PostgresJournal>();
  /** Operations that are taking a lease, or have taken one and are not finished. */
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #ending = new AbortController();
  #upkeep: Upkeep | null = null;
  #direct: Direct | null = null;
  #closing: Promise<void> | null = null;

  private constructor(parts: StoreParts) {
    const { database, options, warnings } = parts;
    this.url = database.name;
    this.warnings = warnings;
    this.#parts = parts;
    this.#database = database;
    this.#leases = new Leases(database, parts.beats, randomUUID(), options.leaseMs, options.clock);
    this.#lines = new Lines(database);
    this.#sessions = new SessionRows(database);
    this.#clock = OrderClock.of(options.clock);
    this.#catalogue = new Catalogue(database, this.#lines, options.summariser, this.#clock);
    this.texts = new Texts(database, () => this.list({ limit: 1 }));
    this.#batcher = new Batcher(database);
    this.transactions = new Transactions(database);
  }

  get counted(): Metrics {
    return this.#database.metrics;
  }

  metrics(): StoreMetrics {
    return this.#database.metricsSnapshot(this.#live.size, this.#direct?.isConnected === true);
  }

  async due(query: DueQuery): Promise<readonly Listed[]> {
    this.#assertOpen();
    // The rows of sessions whose worker died may be behind.
    await this.#catalogue.settle(true);
    return dueSessions(this.#database, query);
  }

  static async open(parts: StoreParts): Promise<PostgresStore> {
    const store = new PostgresStore(parts);
    const { directUrl, options } = parts;
    if (directUrl !== null) await store.#connect(directUrl);
    store.#upkeep = new Upkeep(options.upkeepMs ?? UPKEEP_MS, () => store.#makePartitions());
    return store;
  }

  /** Opens the direct connection. Throws SERVER_UNSUPPORTED, STORE_IO, STORE_FORBIDDEN. */
  async #connect(directUrl: string): Promise<void> {
    const { database, options, firstPatienceMs } = this.#parts;
    const { answerMs } = database;
    const direct = new Direct({
      connect: async () => {
        const client = new pg.Client({
          connectionString: directUrl,
          application_name: displayName(options.app ?? "holdfast"),
          connectionTimeoutMillis: answerMs,
          keepAlive: true,
        });
        // Until `Direct` adds its own listener.
        client.on("error", () => undefined);
        await client.connect();
        return client;
      },
      lock: lockKey(this.#leases.owner),
      schema: database.schema,
      answerMs,
      onNews: (id) => this.#followers.wake(id),
      onState: (isConnected) => {
        if (!isConnected) this.counted.count("directLost");
        this.#leases.setWatched(isConnected);
      },
      notifyThroughPool: (text, values) => database.once(text, values),
    });
    await openDirect(direct, database, firstPatienceMs);
    this.#direct = direct;
    this.#leases.beatOver((text, values, ms) => direct.query(text, values, ms));
  }

  async create(id: string, records: readonly NewRecord[], options: WriterOptions = {}): Promise<Journal> {
    this.#assertOpen();
    assertId(id);
    const { app = this.#app } = options;
    const ledger = this.#ledger();
    // Read and copied inside the call: later changes by the caller have no effect.
    ledger.prepareSegment([{ kind: "segment" }, ...records]);
    const copied = structuredClone(records);
    return this.#withClaim(
      id,
      async () => {
        const { place, newest } = await this.#sessions.look(id);
        this.#clock.follow(newest);
        const prepared = ledger.prepareSegment([segmentRecord({ session: id, segment: 1, epoch: 1 }), ...copied]);
        const lines = Buffer.from(prepared.bytes.subarray(0, -1));
        ledger.commit(prepared);
        const first = { app, count: prepared.last, lines, headState: headStateOf(ledger) };
        const lease = await this.#sessions.create(place, id, this.#leases, first);
        if (!lease) throw sessionExists(id);
        ledger.setDurable(ledger.head);
        const state = { unclean: false, created: true, startSegment: false };
        // If the store is closing, it closes this journal too.
        return this.#journal(id, lease, ledger, { number: 1, epoch: 1, first: 1 }, options, state);
      },
      () => sessionExists(id),
    );
  }

  async open(id: string, options: OpenOptions = {}): Promise<Opened> {
    this.#assertOpen();
    assertId(id);
    return this.#withClaim(id, async () => {
      const lease = await this.#leases.take(id, options.app ?? this.#app);
      return this.#withLease(id, lease, async () => {
        const found = await this.#findOrThrow(id);
        // What an earlier worker wrote with `process` may not be on disk yet, but must be durable before it is shown.
        // Nobody is writing any more. One after the other: at the same time, each would need a connection of its own,
        // and to make one takes longer than any of them.
        if (!(await this.#leases.makeDurable(lease))?.isOurs) throw leaseLost(id);
        await this.#catalogue.comeFirst();
        const ledger = this.#ledger();
        const records: JournalRecord[] = [];
        const { onRecord = (record) => void records.push(record) } = options;
        // Rows are whole or not there at all: a record counts as soon as it has arrived.
        const account = await this.#readEpoch({ ...found, head: lease.head }, (record) => {
          ledger.absorb(record);
          onRecord(record);
        });
        ledger.continueAt(account.next);
        ledger.setDurable(account.next - 1);
        const recovery = account.recovery();
        const state = { unclean: recovery.unclean, created: false, startSegment: account.format !== FORMAT };
        const journal = this.#journal(id, lease, ledger, newestSegment(found), options, state);
        return { id, records, recovery, journal };
      });
    });
  }

  async read(id: string): Promise<Snapshot> {
    const account = await this.#readEpoch(await this.#find(id));
    const { recovery } = await judgeEnd(account.recovery(), () => this.#isHeld(id));
    return { id, records: account.records, recovery };
  }

  async *history(id: string, from = 1): AsyncGenerator<JournalRecord> {
    const { place, head, segments } = await this.#find(id);
    yield* recordsOf(this.#lines.read(place, Math.max(1, from), head), segments);
  }

  async *follow(id: string, options: FollowOptions = {}): AsyncGenerator<JournalRecord> {
    this.#assertOpen();
    assertId(id);
    const ends = this.#ending.signal;
    const signal = options.signal ? AbortSignal.any([options.signal, ends]) : ends;
    const source = {
      sessions: this.#sessions,
      lines: this.#lines,
      followers: this.#followers,
      acknowledged: (of: string) => this.#live.get(of)?.head ?? Number.POSITIVE_INFINITY,
    };
    yield* followSession(source, id, { ...options, signal });
  }

  async has(id: string): Promise<boolean> {
    this.#assertOpen();
    assertId(id);
    return (await this.#sessions.find(id)) !== null;
  }

  async holder(id: string): Promise<Holder | null> {
    this.#assertOpen();
    assertId(id);
    return this.#leases.holder(id);
  }

  async list(options: ListOptions = {}): Promise<{ readonly sessions: readonly Listed[]; readonly next?: string }> {
    this.#assertOpen();
    return this.#catalogue.list(options);
  }

  async delete(id: string): Promise<void> {
    this.#assertOpen();
    assertId(id);
    await this.#withClaim(id, async () => {
      const lease = await this.#leases.take(id, this.#app);
      await this.#withLease(id, lease, async () => {
        if (!(await this.#sessions.trash(lease))) throw sessionNotFound(id);
      });
      this.#leases.unclaim(id, lease);
      this.#announce(id);
    });
  }

  async trashed(): Promise<readonly Trashed[]> {
    this.#assertOpen();
    return this.#sessions.trashed();
  }

  async restore(id: string): Promise<void> {
    this.#assertOpen();
    assertId(id);
    if (await this.has(id)) throw sessionExists(id);
    try {
      // If it is there now, an attempt whose answer was lost has restored it.
      if ((await this.#sessions.untrash(id)) || (await this.#sessions.isDurable(id))) return;
      throw notInTrash(id);
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined;
      throw isDuplicate(cause) ? sessionExists(id) : error;
    }
  }

  async verify(id: string): Promise<Verification> {
    const found = await this.#find(id);
    const account = new Account(segmentsOf(found), { keep: false });
    await this.#lines.each(found.place, 1, found.head, (line) => account.take(line));
    account.end(found.head);
    const counts = { records: account.count, bytes: account.bytes, segments: segmentsOf(found).length };
    return verificationOf(id, counts, account.recovery(), () => this.#isHeld(id));
  }

  async pack(): Promise<never> {
    this.#assertOpen();
    throw notSupported("pack", this.url, "PostgreSQL compresses long lines itself.");
  }

  async adopt(id: string, lines: AsyncIterable<readonly VerbatimLine[]>): Promise<void> {
    this.#assertOpen();
    assertId(id);
    await adoptSession(this.#database, id, this.#ledger(), lines);
  }

  /** Also creates the partitions for the coming months, if this role may. */
  async gc({
    graceMs = GRACE_MS,
  }: {
    readonly graceMs?: number;
  } = {}): Promise<{ readonly removed: readonly string[] }> {
    this.#assertOpen();
    const removed = await this.#sessions.emptyTrash(graceMs);
    await this.texts.trim();
    await this.#makePartitions();
    return { removed };
  }

  #makePartitions(): Promise<void> {
    const { monthsAhead = MONTHS_AHEAD } = this.#parts.options;
    return makePartitions(this.#database, { nowMs: this.#now(), monthsAhead });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#upkeep?.close();
    // Each of them returns its lease, or becomes a journal to close.
    await Promise.allSettled(this.#underWay);
    const results = await Promise.allSettled([...this.#live.values()].map((journal) => journal.close()));
    this.#ending.abort();
    await this.#leases.close();
    await this.#direct?.close();
    this.#database.close();
    this.#parts.beats.close();
    await this.#parts.end();
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  get #app(): string {
    return this.#parts.options.app ?? "holdfast";
  }

  #journal(
    id: string,
    lease: Lease,
    ledger: Ledger,
    segment: Segment,
    options: WriterOptions,
    found: { readonly unclean: boolean; readonly created: boolean; readonly startSegment: boolean },
  ): PostgresJournal {
    const { app = this.#app, opened: extra } = options;
    const journal: PostgresJournal = new PostgresJournal({
      id,
      url: this.url,
      lease,
      leases: this.#leases,
      ledger,
      batcher: this.#batcher,
      lines: this.#lines,
      catalogue: this.#catalogue,
      database: this.#database,
      durability: this.#parts.options.durability ?? "power",
      opened: openedRecord({ app, unclean: found.unclean, cutBytes: 0, extra }),
      created: found.created,
      segment,
      startSegment: found.startSegment,
      patienceMs: this.#parts.patienceMs,
      follow: (followOptions) => this.follow(id, followOptions),
      onAcknowledged: () => this.#announce(id),
      release: async (isAway) => {
        // It may have been opened again, after its lease was lost.
        if (this.#live.get(id) === journal) this.#live.delete(id);
        this.#catalogue.forget(lease.place);
        await this.#leases.release(id, lease, isAway);
        // Followers may see all of it now.
        this.#followers.wake(id);
      },
    });
    this.#live.set(id, journal);
    journal.onFailure(({ code }) => {
      if (code === "LEASE_LOST") this.counted.count("leasesLost");
    });
    this.#leases.keep(id, lease, (error: HoldfastError) => journal.fail(error));
    return journal;
  }

  /** Reserves the id for this worker during `work`. A journal that results keeps it reserved. */
  async #withClaim<T>(
    id: string,
    work: () => Promise<T>,
    busy: () => HoldfastError | Promise<HoldfastError> = () => this.#leases.busy(id),
  ): Promise<T> {
    const run = async (): Promise<T> => {
      if (!(await this.#leases.claim(id))) throw await busy();
      try {
        return await work();
      } catch (error) {
        this.#leases.unclaim(id);
        throw error;
      }
    };
    const underWay = run();
    this.#underWay.add(underWay);
    return underWay.finally(() => this.#underWay.delete(underWay));
  }

  /** Releases the lease if `work` fails, or if the store was closed in the meantime. */
  async #withLease<T>(id: string, lease: Lease, work: () => T | Promise<T>): Promise<T> {
    try {
      this.#assertOpen();
      return await work();
    } catch (error) {
      await this.#leases.release(id, lease, true);
      throw error;
    }
  }

  #announce(id: string): void {
    this.#followers.wake(id);
    this.#direct?.tell(id);
  }

  async #isHeld(id: string): Promise<boolean> {
    return (await this.#leases.holder(id)) !== null;
  }

  async #find(id: string): Promise<SessionRow> {
    this.#assertOpen();
    assertId(id);
    return this.#findOrThrow(id);
  }

  async #findOrThrow(id: string): Promise<SessionRow> {
    const found = await this.#sessions.find(id);
    if (!found) throw sessionNotFound(id);
    return found;
  }

  /** The current epoch, and nothing older (P7). */
  async #readEpoch(found: SessionRow, onRecord?: (record: JournalRecord) => void): Promise<Account> {
    const { place, head } = found;
    const { epoch } = newestSegment(found);
    const current = segmentsOf(found).filter(({ number }) => number >= epoch);
    const account = new Account(current, { keep: true, onRecord });
    await this.#lines.each(place, current[0]!.first, head, (line) => account.take(line));
    account.end(head);
    return account;
  }

  #ledger(): Ledger {
    const { summariser } = this.#parts.options;
    return new Ledger({ clock: this.#clock, summariser });
  }

  #now(): number {
    return (this.#parts.options.clock ?? Date.now)();
  }

  #assertOpen(): void {
    if (this.#closing) throw storeClosed(this.url);
  }
}
