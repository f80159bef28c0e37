import { hostname } from "node:os";
import process from "node:process";
import type { JournalRecord } from "holdfast";
import {
  adoptedBatches,
  crcIn,
  GRACE_MS,
  judgeEnd,
  notInTrash,
  notSupported,
  recordOf,
  type Segment,
  StoreBase,
  type StoreBaseOptions,
  sessionBusy,
  sessionExists,
  sessionNotFound,
  startAfter,
  verificationOf,
  Wake,
} from "holdfast/internal";
import {
  Account,
  assertId,
  type Capabilities,
  type FollowOptions,
  type Holder,
  type Journal,
  type JournalStore,
  type Ledger,
  type Listed,
  type ListOptions,
  type NewRecord,
  type Opened,
  recordsOf,
  type Snapshot,
  segmentRecord,
  type Trashed,
  type VerbatimLine,
  type Verification,
  type WriterOptions,
} from "holdfast/store";
import { DurableJournal } from "./journal.ts";
import { listSessions } from "./list.ts";
import { Rows, type SessionRow } from "./rows.ts";
import { type DurableObjectContext, type DurableObjectStorage, syncFailed } from "./storage.ts";

/** The approximate maximum of one transaction of a session that is copied in. */
const BATCH = { bytes: 1024 * 1024, lines: 512 };

interface Lease {
  readonly holder: Holder;
  journal: DurableJournal | null;
}

/** What the stores that are open in one Durable Object share. It ends with the object, and with it every lease. */
class Shared {
  static readonly #all = new WeakMap<DurableObjectStorage, Shared>();
  readonly rows: Rows;
  readonly leases: Map<string, Lease> = new Map();
  readonly #followers = new Map<Wake, string>();
  /** The newest stamp of any session. */
  newest: string | undefined;

  private constructor(storage: DurableObjectStorage, url: string) {
    this.rows = new Rows(storage, url);
    const [newest] = listSessions(this.rows, undefined, { limit: 1 }).sessions;
    this.newest = newest && (newest.stamp ?? newest.at);
  }

  static of(storage: DurableObjectStorage, url: string): Shared {
    const known = Shared.#all.get(storage) ?? new Shared(storage, url);
    Shared.#all.set(storage, known);
    return known;
  }

  note(stamp: string): void {
    if (this.newest === undefined || stamp > this.newest) this.newest = stamp;
  }

  follow(id: string, wake: Wake): () => void {
    this.#followers.set(wake, id);
    return () => this.#followers.delete(wake);
  }

  /** Something in this session has changed. */
  wake(id: string): void {
    for (const [wake, of] of this.#followers) if (of === id) wake.up();
  }
}

/** A session, its segments in order, and the last seq in use. */
interface StoredJournal {
  readonly session: SessionRow;
  readonly segments: readonly Segment[];
  readonly last: number;
}

export class DurableObjectStore extends StoreBase<StoreBaseOptions, DurableJournal> implements JournalStore {
  readonly url: string;
  readonly capabilities: Capabilities = {
    durability: "power",
    lease: "process",
    sync: false,
    shared: false,
    pack: false,
  };
  readonly warnings: readonly string[] = [];
  readonly searchFile = null;
  readonly #storage: DurableObjectStorage;
  readonly #shared: Shared;

  /** Creates the tables if they are missing. Throws FORMAT_NEWER, STORE_FULL, STORE_IO. */
  constructor({ id, storage }: DurableObjectContext, options: StoreBaseOptions) {
    super(options);
    this.url = `durable-object:${id}`;
    this.#storage = storage;
    this.#shared = Shared.of(storage, this.url);
  }

  async create(id: string, records: readonly NewRecord[], options: WriterOptions = {}): Promise<Journal> {
    this.#assertNew(id);
    return this.#withLease(id, options, async (lease, ledger) => {
      const { rows } = this.#shared;
      const first = ledger.prepareSegment([segmentRecord({ session: id, segment: 1, epoch: 1 }), ...records]);
      const key = rows.transaction(() => {
        const key = rows.insert(id);
        rows.insertSegment(key, { number: 1, epoch: 1, first: 1 });
        rows.insertUnit(key, 1, first.bytes);
        ledger.commit(first);
        rows.update(key, ledger, false, ledger.row);
        return key;
      });
      this.#shared.note(ledger.stamp);
      await this.#sync(id);
      ledger.setDurable(ledger.head);
      return this.#journal(id, lease, ledger, { key, segment: 1, unclean: false, created: true }, options);
    });
  }

  async open(id: string, options: WriterOptions = {}): Promise<Opened> {
    this.#find(id);
    return this.#withLease(id, options, async (lease, ledger) => {
      // What another journal of this object wrote and could not confirm may still be on its way.
      await this.#sync(id);
      const found = this.#find(id);
      const account = this.#readEpoch(found);
      const { records } = account;
      for (const record of records) ledger.absorb(record);
      ledger.continueAt(account.next);
      ledger.setDurable(account.next - 1);
      const recovery = account.recovery();
      const place = { key: found.session.key, segment: found.segments.at(-1)!.number };
      const state = { ...place, unclean: recovery.unclean, created: false };
      return { id, records, recovery, journal: this.#journal(id, lease, ledger, state, options) };
    });
  }

  async read(id: string): Promise<Snapshot> {
    const account = this.#readEpoch(this.#find(id));
    const { recovery } = await judgeEnd(account.recovery(), () => this.#isHeld(id));
    return { id, records: account.records, recovery };
  }

  async *history(id: string, from = 1): AsyncGenerator<JournalRecord> {
    const { session, segments, last } = this.#find(id);
    yield* recordsOf(this.#shared.rows.readChunks(session.key, Math.max(1, from), last), segments);
  }

  async *follow(id: string, options: FollowOptions = {}): AsyncGenerator<JournalRecord> {
    const { session } = this.#find(id);
    const { rows, leases } = this.#shared;
    const signal = this.untilClosed(options);
    const wake = new Wake(signal);
    const stop = this.#shared.follow(id, wake);
    try {
      let at = await startAfter(id, options.after ?? 0, async (seq) => {
        const line = rows.readLine(session.key, seq);
        return line && crcIn(line);
      });
      while (!signal.aborted) {
        const isThere = rows.find(id)?.key === session.key;
        // Followers see what the writer has acknowledged.
        const to = leases.get(id)?.journal?.acknowledged ?? rows.newestSeq(session.key);
        for (const lines of rows.readChunks(session.key, at + 1, to)) {
          for (const line of lines) {
            const record = recordOf(line);
            if (signal.aborted) return;
            at = line.seq;
            if (record) yield record;
          }
        }
        if (!isThere) return;
        if (!signal.aborted) await wake.wait();
      }
    } finally {
      stop();
      wake.end();
    }
  }

  async has(id: string): Promise<boolean> {
    this.assertOpen();
    assertId(id);
    return this.#shared.rows.find(id) !== null;
  }

  async holder(id: string): Promise<Holder | null> {
    this.assertOpen();
    assertId(id);
    return this.#shared.leases.get(id)?.holder ?? null;
  }

  async list(options: ListOptions = {}): Promise<{ readonly sessions: readonly Listed[]; readonly next?: string }> {
    this.assertOpen();
    return listSessions(this.#shared.rows, this.options.summariser, options);
  }

  async delete(id: string): Promise<void> {
    const { session } = this.#find(id);
    await this.#change(id, (rows) => rows.trash(session.key, this.now()));
    this.#shared.wake(id);
  }

  async trashed(): Promise<readonly Trashed[]> {
    this.assertOpen();
    const found = this.#shared.rows.trashed().filter(({ head }) => head > 0);
    return found.map(({ id, trashedMs, summary }) => ({
      ...{ id, summary },
      trashedAt: new Date(trashedMs).toISOString(),
    }));
  }

  async restore(id: string): Promise<void> {
    this.#assertNew(id);
    await this.#change(id, (rows) => {
      const last = rows.trashed().find((session) => session.id === id && session.head > 0);
      if (!last) throw notInTrash(id);
      rows.trash(last.key, null);
    });
  }

  async verify(id: string): Promise<Verification> {
    const found = this.#find(id);
    const account = this.#account(found, found.segments, false);
    const counts = { records: account.count, bytes: account.bytes, segments: found.segments.length };
    return verificationOf(id, counts, account.recovery(), () => this.#isHeld(id));
  }

  async pack(): Promise<never> {
    this.assertOpen();
    throw notSupported("pack", this.url, "Copy the session to a folder store, and pack it there.");
  }

  async adopt(id: string, lines: AsyncIterable<readonly VerbatimLine[]>): Promise<void> {
    this.#assertNew(id);
    await this.#withLease(id, {}, async (lease, ledger) => {
      const { rows } = this.#shared;
      // In the trash nobody sees it, and `gc` removes what was not completed.
      const key = rows.insert(id, this.now());
      let last: VerbatimLine | undefined;
      for await (const batch of adoptedBatches(id, lines, ledger, BATCH)) {
        rows.transaction(() => {
          for (const segment of batch.segments) rows.insertSegment(key, segment);
          for (const line of batch.lines) rows.insertLine(key, line.record.seq, line.bytes);
        });
        last = batch.lines.at(-1);
      }
      this.assertOpen();
      rows.transaction(() => {
        rows.update(key, ledger, last?.record.kind === "closed", ledger.row);
        rows.trash(key, null);
      });
      this.#shared.note(ledger.stamp);
      await this.#sync(id);
      this.#release(id, lease);
    });
  }

  async gc({
    graceMs = GRACE_MS,
  }: {
    readonly graceMs?: number;
  } = {}): Promise<{ readonly removed: readonly string[] }> {
    this.assertOpen();
    const { rows, leases } = this.#shared;
    const before = this.now() - graceMs;
    // One with a lease is being copied in, or restored.
    const old = rows.trashed().filter(({ id, trashedMs }) => trashedMs < before && !leases.has(id));
    for (const { key } of old.reverse()) rows.remove(key);
    await this.#storage.sync();
    return { removed: old.map(({ id }) => id) };
  }

  /** Keeps the lease for the result of `use`; releases it if that fails. `use` begins inside the call. */
  async #withLease<T>(
    id: string,
    options: WriterOptions,
    use: (lease: Lease, ledger: Ledger) => Promise<T>,
  ): Promise<T> {
    const { leases, newest } = this.#shared;
    const held = leases.get(id);
    if (held) throw sessionBusy(id, held.holder, true);
    const since = new Date(this.now()).toISOString();
    const holder = { pid: process.pid, host: hostname(), app: this.appOf(options), since };
    const lease: Lease = { holder, journal: null };
    leases.set(id, lease);
    try {
      // The session sorts before all others in lists from the writer's first record on, whatever the clock says.
      this.clock.follow(newest);
      return await use(lease, this.ledger());
    } catch (error) {
      this.#release(id, lease);
      throw error;
    }
  }

  #release(id: string, lease: Lease): void {
    if (this.#shared.leases.get(id) === lease) this.#shared.leases.delete(id);
  }

  /** Changes something about a session, under its lease. It is durable when this resolves. */
  #change(id: string, change: (rows: Rows) => void): Promise<void> {
    return this.#withLease(id, {}, async (lease) => {
      change(this.#shared.rows);
      await this.#sync(id);
      this.#release(id, lease);
    });
  }

  #assertNew(id: string): void {
    this.assertOpen();
    assertId(id);
    if (this.#shared.rows.find(id)) throw sessionExists(id);
  }

  #journal(
    id: string,
    lease: Lease,
    ledger: Ledger,
    found: { readonly key: number; readonly segment: number; readonly unclean: boolean; readonly created: boolean },
    options: WriterOptions,
  ): DurableJournal {
    this.assertOpen();
    const shared = this.#shared;
    const journal: DurableJournal = new DurableJournal({
      ...{ id, ledger, url: this.url, rows: shared.rows, key: found.key, segment: found.segment },
      savedHead: ledger.head,
      durability: this.durability,
      opened: this.opened(options, { unclean: found.unclean, cutBytes: 0 }),
      created: found.created,
      sync: () => this.#storage.sync(),
      follow: (following) => this.follow(id, following),
      onStamp: (stamp) => shared.note(stamp),
      onClose: () => {
        this.forget(journal);
        this.#release(id, lease);
      },
    });
    journal.onAcknowledged(() => shared.wake(id));
    lease.journal = journal;
    this.journals.set(id, journal);
    return journal;
  }

  #isHeld(id: string): boolean {
    return this.#shared.leases.has(id);
  }

  #find(id: string): StoredJournal {
    this.assertOpen();
    assertId(id);
    const { rows } = this.#shared;
    const session = rows.find(id);
    if (!session) throw sessionNotFound(id);
    const { key, head } = session;
    return { session, segments: rows.segments(key), last: Math.max(head, rows.newestSeq(key)) };
  }

  /** Reads the current epoch, and nothing older (P7). */
  #readEpoch(found: StoredJournal): Account {
    const { segments } = found;
    const epoch = segments.findIndex(({ number }) => number === segments.at(-1)?.epoch);
    return this.#account(found, segments.slice(Math.max(0, epoch)), true);
  }

  #account({ session, last }: StoredJournal, segments: readonly Segment[], keep: boolean): Account {
    const account = new Account(segments, { keep });
    const from = segments[0]?.first ?? 1;
    for (const lines of this.#shared.rows.readChunks(session.key, from, last)) account.add(lines);
    account.end(last);
    return account;
  }

  async #sync(session: string): Promise<void> {
    try {
      await this.#storage.sync();
    } catch (error) {
      throw syncFailed(session, this.url, error);
    }
  }
}
