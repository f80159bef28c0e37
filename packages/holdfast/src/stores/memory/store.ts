import { hostname } from "node:os";
import type * as contract from "../../journal/contract.ts";
import type { VerbatimLine } from "../../journal/contract.ts";
import { assertId } from "../../journal/id.ts";
import type { Ledger } from "../../journal/ledger.ts";
import { segmentRecord } from "../../journal/lifecycle.ts";
import { assertFollows, nothingToAdopt } from "../../journal/lines/verbatim.ts";
import type { JournalRecord, NewRecord } from "../../journal/record.ts";
import { notInTrash, notSupported, sessionBusy, sessionExists, sessionNotFound } from "../../journal/refusals.ts";
import { judgeEnd, verificationOf } from "../../journal/verification.ts";
import { type ListPage, newestFirst, pageOf } from "../page.ts";
import { GRACE_MS, StoreBase, type StoreBaseOptions } from "../store-base.ts";
import { MemoryJournal } from "./journal.ts";
import { Memory } from "./memory.ts";
import { MemorySession } from "./session.ts";

export interface MemoryStoreOptions extends StoreBaseOptions {
  /** Where the sessions are kept; default: a new memory that ends with the store. */
  readonly memory?: Memory;
}

export { Memory };

const URL = "memory:";
const CAPABILITIES: contract.Capabilities = {
  durability: "none",
  lease: "process",
  sync: true,
  shared: false,
  pack: false,
};

/**
 * A store that keeps its sessions in memory, for tests: it meets the contract except for durability. Nothing outlives
 * the process.
 */
export async function openMemoryStore(options: MemoryStoreOptions = {}): Promise<contract.JournalStore> {
  return new MemoryStore(options);
}

class MemoryStore extends StoreBase<MemoryStoreOptions, MemoryJournal> implements contract.JournalStore {
  readonly url = URL;
  readonly capabilities = CAPABILITIES;
  readonly warnings: readonly string[] = [];
  readonly searchFile = null;
  readonly #memory: Memory;

  constructor(options: MemoryStoreOptions) {
    super(options);
    this.#memory = options.memory ?? new Memory();
  }

  async create(
    id: string,
    records: readonly NewRecord[],
    options: contract.WriterOptions = {},
  ): Promise<contract.Journal> {
    this.assertOpen();
    assertId(id);
    if (this.#memory.sessions.has(id)) throw sessionExists(id);
    const ledger = this.#ledger();
    const first = ledger.prepareSegment([segmentRecord({ session: id, segment: 1, epoch: 1 }), ...records]);
    const session = this.#memory.add(id);
    session.beginSegment(first.bytes);
    ledger.commit(first);
    this.#memory.note(ledger.stamp);
    ledger.setDurable(first.last);
    session.acknowledge(first.last);
    return this.#lend(session, ledger, options, { created: true, unclean: false });
  }

  async open(id: string, options: contract.WriterOptions = {}): Promise<contract.Opened> {
    const session = this.#session(id);
    this.#assertFree(id);
    const account = session.read("epoch");
    const { records } = account;
    const recovery = account.recovery();
    const ledger = this.#ledger();
    for (const record of records) ledger.absorb(record);
    ledger.continueAt(account.next);
    ledger.setDurable(session.head);
    session.acknowledge(session.head);
    const journal = this.#lend(session, ledger, options, { created: false, unclean: recovery.unclean });
    return { id, records, recovery, journal };
  }

  async read(id: string): Promise<contract.Snapshot> {
    const account = this.#session(id).read("epoch");
    const { recovery } = await judgeEnd(account.recovery(), () => this.#memory.leases.has(id));
    return { id, records: account.records, recovery };
  }

  async *history(id: string, from = 1): AsyncGenerator<JournalRecord> {
    yield* this.#session(id).history(from);
  }

  async *follow(id: string, options: contract.FollowOptions = {}): AsyncGenerator<JournalRecord> {
    const session = this.#session(id);
    yield* session.follow(options.after, this.untilClosed(options));
  }

  async has(id: string): Promise<boolean> {
    this.assertOpen();
    assertId(id);
    return this.#memory.sessions.has(id);
  }

  async holder(id: string): Promise<contract.Holder | null> {
    this.assertOpen();
    assertId(id);
    return this.#memory.leases.get(id)?.holder ?? null;
  }

  async list(options: contract.ListOptions = {}): Promise<ListPage> {
    this.assertOpen();
    const rows = [...this.#memory.sessions.values()].map((session) => session.row(this.options.summariser));
    return pageOf(rows.filter((row) => row !== null).sort(newestFirst), options);
  }

  async delete(id: string): Promise<void> {
    const session = this.#session(id);
    this.#assertFree(id);
    const now = this.now();
    this.#memory.sessions.delete(id);
    this.#memory.trash.add({ session, deletedMs: now });
    session.deleted = true;
    session.wake();
  }

  async trashed(): Promise<readonly contract.Trashed[]> {
    this.assertOpen();
    return [...this.#memory.trash].reverse().map(({ session, deletedMs }) => ({
      id: session.id,
      trashedAt: new Date(deletedMs).toISOString(),
      summary: session.row()?.summary ?? null,
    }));
  }

  async restore(id: string): Promise<void> {
    if (await this.has(id)) throw sessionExists(id);
    const found = [...this.#memory.trash].findLast(({ session }) => session.id === id);
    if (!found) throw notInTrash(id);
    this.#memory.trash.delete(found);
    found.session.deleted = false;
    this.#memory.sessions.set(id, found.session);
  }

  async verify(id: string): Promise<contract.Verification> {
    const session = this.#session(id);
    const account = session.read("all");
    const counts = { records: account.count, bytes: account.bytes, segments: session.segments.length };
    return verificationOf(id, counts, account.recovery(), () => this.#memory.leases.has(id));
  }

  async pack(): Promise<never> {
    this.assertOpen();
    throw notSupported("pack", URL, "Packing has no benefit in memory.");
  }

  async adopt(id: string, lines: AsyncIterable<readonly VerbatimLine[]>): Promise<void> {
    if (await this.has(id)) throw sessionExists(id);
    const session = new MemorySession(id);
    for await (const some of lines) {
      for (const line of some) {
        assertFollows(line, id, session.head);
        session.adopt(line);
      }
    }
    if (session.head === 0) throw nothingToAdopt(id);
    this.assertOpen();
    if (this.#memory.sessions.has(id)) throw sessionExists(id);
    session.acknowledge(session.head);
    this.#memory.sessions.set(id, session);
    const row = session.row();
    if (row) this.#memory.note(row.stamp);
  }

  async gc(options: { readonly graceMs?: number } = {}): Promise<{ readonly removed: readonly string[] }> {
    this.assertOpen();
    const before = this.now() - (options.graceMs ?? GRACE_MS);
    const old = [...this.#memory.trash].filter(({ deletedMs }) => deletedMs < before);
    for (const one of old) this.#memory.trash.delete(one);
    return { removed: old.map(({ session }) => session.id) };
  }

  /** The lease, and the journal that holds it. */
  #lend(
    session: MemorySession,
    ledger: Ledger,
    options: contract.WriterOptions,
    found: { readonly created: boolean; readonly unclean: boolean },
  ): contract.Journal {
    const { id } = session;
    const app = this.appOf(options);
    const { leases } = this.#memory;
    const journal: MemoryJournal = new MemoryJournal({
      id,
      session,
      ledger,
      durability: this.durability,
      opened: this.opened(options, { unclean: found.unclean, cutBytes: 0 }),
      created: found.created,
      follow: (following) => this.follow(id, following),
      onWritten: (stamp) => this.#memory.note(stamp),
      release: () => {
        leases.delete(id);
        this.forget(journal);
      },
    });
    const holder = { pid: process.pid, host: hostname(), app, since: new Date(this.now()).toISOString() };
    const lost = () => {
      this.forget(journal);
      journal.lose();
    };
    leases.set(id, { holder, lost });
    this.journals.set(id, journal);
    return journal;
  }

  /** For a writer, whose session sorts before all others in lists from its first record on, whatever the clock says. */
  #ledger(): Ledger {
    this.clock.follow(this.#memory.newest);
    return this.ledger();
  }

  #session(id: string): MemorySession {
    this.assertOpen();
    assertId(id);
    const session = this.#memory.sessions.get(id);
    if (!session) throw sessionNotFound(id);
    return session;
  }

  #assertFree(id: string): void {
    const lease = this.#memory.leases.get(id);
    if (lease) throw sessionBusy(id, lease.holder, true);
  }
}
