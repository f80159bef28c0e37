import { dirname, resolve } from "node:path";
import type { Disk } from "../../disk/disk.ts";
import { nodeDisk } from "../../disk/node-disk.ts";
import { Account, recordOf } from "../../journal/account.ts";
import type * as contract from "../../journal/contract.ts";
import { assertId } from "../../journal/id.ts";
import { Ledger } from "../../journal/ledger.ts";
import { assertFormat, openedRecord } from "../../journal/lifecycle.ts";
import { OrderClock } from "../../journal/order.ts";
import { FORMAT_MAJOR, FORMAT_MINOR, type JournalRecord, type NewRecord } from "../../journal/record.ts";
import { notSupported, sessionExists, sessionNotFound, storeClosed } from "../../journal/refusals.ts";
import type { VerbatimLine } from "../../journal/verbatim.ts";
import { type Lease, Leases } from "../lease.ts";
import { adoptSession } from "./adopt.ts";
import { Database } from "./database.ts";
import { sqliteFailure } from "./failure.ts";
import { Followers, followSession } from "./follow.ts";
import { SqliteJournal } from "./journal.ts";
import { listSessions } from "./list.ts";
import { type Found, findJournal, readChunks } from "./reader.ts";
import { Rows } from "./rows.ts";
import { collectGarbage } from "./trash.ts";
import { Turns } from "./turns.ts";
import { Wal } from "./wal.ts";
import { SessionWriter } from "./writer.ts";

export interface SqliteStoreOptions {
  /** What `append` waits for unless it says otherwise. Default `power`. */
  readonly durability?: contract.Durability;
  /** Makes the rows that `list` shows. */
  readonly summariser?: contract.Summariser;
  /** What holders of leases call themselves. Default `holdfast`. */
  readonly app?: string;
  readonly clock?: () => number;
  /** The disk that holds the leases and syncs the log. SQLite itself is always on the real one. */
  readonly disk?: Disk;
}

const FORMAT = `${FORMAT_MAJOR}.${FORMAT_MINOR}`;

/**
 * Opens a store that is one SQLite file (S21), and makes it if it is not there. Throws PATH_UNSAFE (a link or a folder in its place),
 * STORE_URL_INVALID (a file that is no such database), FORMAT_NEWER, STORE_FORBIDDEN, STORE_FULL, STORE_IO, and NOT_SUPPORTED if
 * this Node's SQLite is older than 3.51.3.
 */
export async function openSqliteStore(file: string, options: SqliteStoreOptions = {}): Promise<contract.JournalStore> {
  const disk = options.disk ?? nodeDisk;
  const database = await Database.open(disk, resolve(file));
  try {
    return new SqliteStore(disk, database, options);
  } catch (error) {
    database.close();
    throw sqliteFailure(error, "open the store", database.file, "Nothing was written to it.");
  }
}

class SqliteStore implements contract.JournalStore {
  readonly url: string;
  readonly capabilities: contract.Capabilities = {
    durability: "power",
    lease: "kernel",
    sync: true,
    shared: true,
    pack: false,
  };
  readonly warnings: readonly string[];
  readonly searchFile: string;
  readonly #options: SqliteStoreOptions;
  readonly #database: Database;
  readonly #rows: Rows;
  readonly #clock: OrderClock;
  /** `#comeFirst` has looked at all sessions. */
  #hasLooked = false;
  readonly #wal: Wal;
  readonly #leases: Leases;
  readonly #followers: Followers;
  readonly #live = new Map<string, SqliteJournal>();
  /** Fires when the store is closed: ends the followers. */
  readonly #ending = new AbortController();
  #closing: Promise<void> | null = null;

  constructor(disk: Disk, database: Database, options: SqliteStoreOptions) {
    const { file } = database;
    this.url = `sqlite:${file}`;
    this.searchFile = `${file}-search`;
    this.#options = options;
    this.#clock = OrderClock.of(options.clock);
    this.#database = database;
    this.#rows = new Rows(database);
    this.#leases = Leases.besideFile(disk, file);
    this.#followers = new Followers(disk, file);
    const network = disk.networkKind(dirname(file));
    this.warnings = network
      ? [
          `${file} is on a network file system (${network}): its locks and syncs are not to be relied on, so P1 and P6 are not promised there.`,
        ]
      : [];
    this.#wal = new Wal(disk, database, (error) => {
      for (const journal of [...this.#live.values()]) journal.fail(error);
    });
  }

  async create(
    id: string,
    records: readonly NewRecord[],
    options: contract.WriterOptions = {},
  ): Promise<contract.Journal> {
    // Read and copied inside the call: what the caller changes later changes nothing stored.
    this.#ledger().prepareSegment([{ kind: "segment" }, ...records]);
    const first = structuredClone(records);
    if (await this.has(id)) throw sessionExists(id);
    return this.#withLease(id, options, async (lease) => {
      await this.#wal.trust();
      const ledger = this.#ledger();
      const place = { database: this.#database, rows: this.#rows, ledger, id };
      const writer = await this.#database.retry("create a session", () => {
        if (this.#rows.findSession(id)) throw sessionExists(id);
        this.#comeFirst();
        return SessionWriter.create(place, first);
      });
      await this.#wal.confirm();
      ledger.setDurable(ledger.head);
      const found = { unclean: false, created: true, startSegment: false };
      return this.#journal(id, ledger, writer, lease, options, found);
    });
  }

  async open(id: string, options: contract.WriterOptions = {}): Promise<contract.Opened> {
    if (!(await this.has(id))) throw sessionNotFound(id);
    return this.#withLease(id, options, async (lease) => {
      await this.#wal.settle();
      const found = await this.#find(id);
      const { session, segments } = found;
      const account = await this.#readEpoch(found);
      await this.#database.retry("look for the newest session", () => this.#comeFirst());
      const ledger = this.#ledger();
      for (const record of account.records) ledger.absorb(record);
      ledger.skipTo(account.next);
      ledger.setDurable(account.next - 1);
      const recovery = account.recovery();
      const place = { database: this.#database, rows: this.#rows, ledger, id };
      const writer = SessionWriter.continue(place, session, segments.at(-1)!);
      const state = { unclean: recovery.unclean, created: false, startSegment: account.format !== FORMAT };
      const journal = this.#journal(id, ledger, writer, lease, options, state);
      return { id, records: account.records, recovery, journal };
    });
  }

  async read(id: string): Promise<contract.Snapshot> {
    const account = await this.#readEpoch(await this.#find(id));
    const { records } = account;
    const recovery = account.recovery();
    const beingWritten = recovery.unclean && this.#leases.holder(id) !== null;
    return { id, records, recovery: beingWritten ? { ...recovery, unclean: false } : recovery };
  }

  async *history(id: string, from = 1): AsyncGenerator<JournalRecord> {
    const { session, segments, last } = await this.#find(id);
    const headers = new Set(segments.map((segment) => segment.first));
    const extent = { key: session.key, from: Math.max(1, from), to: last };
    for await (const lines of readChunks(this.#database, this.#rows, extent)) {
      for (const line of lines) {
        const record = recordOf(line);
        if (record && headers.has(record.seq)) assertFormat(record);
        if (record) yield record;
      }
    }
  }

  async *follow(id: string, options: contract.FollowOptions = {}): AsyncGenerator<JournalRecord> {
    this.#assertOpen();
    assertId(id);
    const ends = this.#ending.signal;
    const signal = options.signal ? AbortSignal.any([options.signal, ends]) : ends;
    const source = {
      database: this.#database,
      rows: this.#rows,
      followers: this.#followers,
      acknowledged: (of: string) => this.#live.get(of)?.acknowledged ?? Number.POSITIVE_INFINITY,
    };
    yield* followSession(source, id, { ...options, signal });
  }

  async has(id: string): Promise<boolean> {
    this.#assertOpen();
    assertId(id);
    return (await this.#database.retry("look for a session", () => this.#rows.findSession(id))) !== null;
  }

  async holder(id: string): Promise<contract.Holder | null> {
    this.#assertOpen();
    assertId(id);
    return this.#leases.holder(id);
  }

  async list(
    options: contract.ListOptions = {},
  ): Promise<{ readonly sessions: readonly contract.Listed[]; readonly next?: string }> {
    this.#assertOpen();
    return this.#database.retry("list the sessions", () => listSessions(this.#rows, this.#options.summariser, options));
  }

  async delete(id: string): Promise<void> {
    if (!(await this.has(id))) throw sessionNotFound(id);
    const lease = await this.#leases.take(id, this.#options.app ?? "holdfast");
    try {
      await this.#wal.trust();
      await this.#database.retry("delete a session", () => {
        const session = this.#rows.findSession(id);
        if (!session) throw sessionNotFound(id);
        this.#rows.trash(session.key, this.#now());
      });
      await this.#wal.confirm();
    } finally {
      lease.release();
    }
    this.#followers.wake(id);
  }

  async verify(id: string): Promise<contract.Verification> {
    const { session, segments, last } = await this.#find(id);
    const account = new Account(segments, { keep: false });
    const extent = { key: session.key, from: 1, to: last };
    for await (const lines of readChunks(this.#database, this.#rows, extent)) account.add(lines);
    account.end(last);
    const recovery = account.recovery();
    const beingWritten = recovery.unclean && this.#leases.holder(id) !== null;
    return {
      id,
      records: account.count,
      bytes: account.bytes,
      segments: segments.length,
      beingWritten,
      ...recovery,
      unclean: recovery.unclean && !beingWritten,
    };
  }

  async pack(): Promise<never> {
    this.#assertOpen();
    throw notSupported("pack", this.url, "Copy the session to a folder store, and pack it there.");
  }

  async adopt(id: string, lines: AsyncIterable<readonly VerbatimLine[]>): Promise<void> {
    if (await this.has(id)) throw sessionExists(id);
    const lease = await this.#leases.take(id, this.#options.app ?? "holdfast");
    try {
      await this.#wal.trust();
      const ledger = this.#ledger();
      const place = { database: this.#database, rows: this.#rows, wal: this.#wal, ledger, id, nowMs: this.#now() };
      await adoptSession(place, lines);
      await this.#wal.confirm();
    } finally {
      lease.release();
    }
  }

  async gc(options: { readonly graceMs?: number } = {}): Promise<{ readonly removed: readonly string[] }> {
    this.#assertOpen();
    return collectGarbage(this.#database, this.#rows, this.#wal, this.#leases, this.#now(), options.graceMs);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const results = await Promise.allSettled([...this.#live.values()].map((journal) => journal.close()));
    this.#ending.abort();
    await this.#wal.close();
    this.#database.close();
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  #journal(
    id: string,
    ledger: Ledger,
    writer: SessionWriter,
    lease: Lease,
    options: contract.WriterOptions,
    found: { readonly unclean: boolean; readonly created: boolean; readonly startSegment: boolean },
  ): SqliteJournal {
    // The store may have been closed while this one waited for the disk.
    this.#assertOpen();
    const { app = this.#options.app ?? "holdfast", opened: extra } = options;
    const journal = new SqliteJournal({
      id,
      ledger,
      writer,
      turns: new Turns(this.#database),
      wal: this.#wal,
      lease,
      durability: this.#options.durability ?? "power",
      opened: openedRecord({ app, unclean: found.unclean, cutBytes: 0, extra }),
      created: found.created,
      startSegment: found.startSegment,
      follow: (followOptions) => this.follow(id, followOptions),
      onAcknowledged: () => this.#followers.wake(id),
      onClose: () => this.#live.delete(id),
    });
    this.#live.set(id, journal);
    return journal;
  }

  /** Keeps the lease for what `use` makes of it; gives it back if that fails. */
  async #withLease<T>(id: string, options: contract.WriterOptions, use: (lease: Lease) => Promise<T>): Promise<T> {
    const lease = await this.#leases.take(id, options.app ?? this.#options.app ?? "holdfast");
    try {
      this.#assertOpen();
      return await use(lease);
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  async #find(id: string): Promise<Found> {
    this.#assertOpen();
    assertId(id);
    const found = await this.#database.retry("look for a session", () => findJournal(this.#rows, id));
    if (!found) throw sessionNotFound(id);
    return found;
  }

  /** The current epoch, and nothing older (P7). */
  async #readEpoch(found: Found): Promise<Account> {
    const { session, segments, last } = found;
    const epoch = segments.at(-1)!.epoch;
    const current = segments.filter((segment) => segment.number >= epoch);
    const account = new Account(current, { keep: true });
    const extent = { key: session.key, from: current[0]!.first, to: last };
    for await (const lines of readChunks(this.#database, this.#rows, extent)) account.add(lines);
    account.end(last);
    return account;
  }

  /**
   * A writer's session comes before all others in lists from its first record on, whatever the clock says. The rows of writers that died are behind by up to a second, so the first look is at their lines too.
   */
  #comeFirst(): void {
    const [newest] = this.#hasLooked ? [] : listSessions(this.#rows, undefined, { limit: 1 }).sessions;
    this.#hasLooked = true;
    this.#clock.follow(newest ? (newest.stamp ?? newest.at) : this.#rows.newestStamp());
  }

  #ledger(): Ledger {
    return new Ledger({ clock: this.#clock, summariser: this.#options.summariser });
  }

  #now(): number {
    return (this.#options.clock ?? Date.now)();
  }

  #assertOpen(): void {
    if (this.#closing) throw storeClosed(this.url);
  }
}
