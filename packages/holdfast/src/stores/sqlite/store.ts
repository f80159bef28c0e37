import { dirname, resolve } from "node:path";
import type { Disk } from "../../disk/disk.ts";
import { diskFailure } from "../../disk/failure.ts";
import { assertStorePlace } from "../../disk/file-rules.ts";
import { nodeDisk, whyNotWritable } from "../../disk/node-disk.ts";
import { assertNotInWorker } from "../../disk/worker.ts";
import type * as contract from "../../journal/contract.ts";
import type { VerbatimLine } from "../../journal/contract.ts";
import { assertId } from "../../journal/id.ts";
import type { Ledger } from "../../journal/ledger.ts";
import { Account, recordsOf } from "../../journal/lines/account.ts";
import { LATEST_MS } from "../../journal/order.ts";
import { FORMAT, type JournalRecord, type NewRecord } from "../../journal/record.ts";
import { notInTrash, notSupported, sessionExists, sessionNotFound } from "../../journal/refusals.ts";
import { judgeEnd, verificationOf } from "../../journal/verification.ts";
import { assertPath } from "../address.ts";
import type { ListPage } from "../page.ts";
import { StoreBase, type StoreBaseOptions } from "../store-base.ts";
import { networkWarning } from "../warnings.ts";
import { adoptSession } from "./adopt.ts";
import type { Database } from "./database/database.ts";
import { orNull, sqliteFailure } from "./database/failure.ts";
import type { Opener } from "./database/open-database.ts";
import { followSession } from "./follow.ts";
import { SqliteJournal } from "./journal.ts";
import { OpenFile, type SharedFile } from "./open-file.ts";
import { damagedPart, findSession, isKnown } from "./rows/catalogue.ts";
import { listSessions } from "./rows/list.ts";
import { contradicts, findJournal, readChunks, type StoredJournal } from "./rows/reader.ts";
import type { Rows } from "./rows/rows.ts";
import { collectGarbage } from "./trash.ts";
import { SessionWriter } from "./writer.ts";

export interface SqliteStoreOptions extends StoreBaseOptions {
  /** The disk that locks the file and syncs the log. SQLite itself always uses the real one. */
  readonly disk?: Disk;
}

/**
 * Opens a store in one SQLite file (S21), and creates it if missing. Throws STORE_BUSY { holder, sameProcess } while
 * another process or thread has it open, STORE_FORBIDDEN if this process may not write to it, PATH_UNSAFE (a link or a
 * folder in its place, or a file that has several names or alone is mounted), STORE_URL_INVALID (a file that is not
 * such a database), JOURNAL_UNREADABLE, FORMAT_NEWER, STORE_FULL, STORE_IO, and NOT_SUPPORTED where SQLite has no log
 * or there is no disk.
 */
export async function openSqliteStore(file: string, options: SqliteStoreOptions = {}): Promise<contract.JournalStore> {
  const disk = options.disk ?? nodeDisk;
  assertPath(file, "file");
  assertNotInWorker("an SQLite store");
  const path = resolve(file);
  assertMine(disk, path);
  const shared = await OpenFile.use(disk, path, openerOf(options));
  try {
    return new SqliteStore(disk, shared, options);
  } catch (error) {
    await shared.release();
    throw sqliteFailure(error, "open the store", path, "Nothing was written to it.");
  }
}

/** `app`: the name of a writer, if it has one of its own. */
function openerOf({ app: name = "holdfast", clock = Date.now }: SqliteStoreOptions, app: string = name): Opener {
  return { app, since: new Date(clock()).toISOString() };
}

/**
 * The file is this user's. SQLite needs its log to read the newest records, and a log can only be read by someone who
 * may write to it.
 */
function assertMine(disk: Disk, file: string): void {
  try {
    const found = disk.stat(file);
    // Opening it reports what it is.
    if (found?.kind !== "file") return;
    assertStorePlace(file, found);
    const code = whyNotWritable(file) ?? whyNotWritable(dirname(file));
    if (code !== null) throw Object.assign(new Error("the file or its folder is not writable"), { code });
  } catch (error) {
    const safety = "Nothing was touched. To read it, copy the file and its log (-wal) to a folder of your own.";
    throw diskFailure(error, "open the store", file, safety);
  }
}

class SqliteStore extends StoreBase<SqliteStoreOptions, SqliteJournal> implements contract.JournalStore {
  readonly url: string;
  readonly capabilities: contract.Capabilities = {
    durability: "power",
    lease: "kernel",
    sync: true,
    shared: false,
    pack: false,
  };
  readonly warnings: readonly string[];
  readonly searchFile: string;
  readonly #shared: SharedFile;
  readonly #database: Database;
  /** `#comeFirst` has checked all sessions. */
  #hasLooked = false;

  constructor(disk: Disk, shared: SharedFile, options: SqliteStoreOptions) {
    super(options);
    const { database } = shared.file;
    const { file } = database;
    this.url = `sqlite:${file}`;
    this.searchFile = `${file}-search`;
    this.#shared = shared;
    this.#database = database;
    const network = networkWarning(disk, dirname(file), file);
    this.warnings = network === null ? database.warnings : [...database.warnings, network];
  }

  async create(
    id: string,
    records: readonly NewRecord[],
    options: contract.WriterOptions = {},
  ): Promise<contract.Journal> {
    // Read and copied inside the call: later changes by the caller do not affect what is stored.
    this.ledger().prepareSegment([{ kind: "segment" }, ...records]);
    const first = structuredClone(records);
    const { database, wal } = this.#file;
    this.#assertNew(id);
    return this.#withLease(id, options, async (release) => {
      await wal.trust();
      const ledger = this.ledger();
      database.attempt("look for the newest session", (rows) => this.#comeFirst(rows));
      const writer = database.attempt("create a session", () => {
        if (isKnown(database.rows, id)) throw sessionExists(id);
        return SessionWriter.create({ database, ledger, id }, first);
      });
      await wal.confirm();
      ledger.setDurable(ledger.head);
      const found = { unclean: false, created: true, startSegment: false };
      return this.#journal(id, ledger, writer, release, options, found);
    });
  }

  async open(id: string, options: contract.WriterOptions = {}): Promise<contract.Opened> {
    const { database, wal } = this.#file;
    if (!(await this.has(id))) throw sessionNotFound(id);
    return this.#withLease(id, options, async (release) => {
      await wal.trust();
      await wal.confirm();
      const [account, { session, segments, damaged }] = await this.#readEpoch(this.#find(id));
      database.attempt("look for the newest session", (rows) => this.#comeFirst(rows));
      const ledger = this.ledger();
      for (const record of account.records) ledger.absorb(record);
      ledger.continueAt(account.next);
      ledger.setDurable(account.next - 1);
      const recovery = { ...account.recovery(), damaged: [...account.damaged, ...damaged] };
      const writer = SessionWriter.continue({ database, ledger, id }, session, segments.at(-1)!);
      const state = { unclean: recovery.unclean, created: false, startSegment: account.format !== FORMAT };
      const journal = this.#journal(id, ledger, writer, release, options, state);
      return { id, records: account.records, recovery, journal };
    });
  }

  async read(id: string): Promise<contract.Snapshot> {
    const [account, { damaged }] = await this.#readEpoch(this.#find(id));
    const found = { ...account.recovery(), damaged: [...account.damaged, ...damaged] };
    const { recovery } = await judgeEnd(found, () => this.#holder(id) !== null);
    return { id, records: account.records, recovery };
  }

  async *history(id: string, from = 1): AsyncGenerator<JournalRecord> {
    const { session, segments, last } = this.#find(id);
    const extent = { key: session.key, from: Math.max(1, from), to: last };
    yield* recordsOf(readChunks(this.#database, extent), segments);
  }

  async *follow(id: string, options: contract.FollowOptions = {}): AsyncGenerator<JournalRecord> {
    this.assertOpen();
    assertId(id);
    yield* followSession(this.#shared.file, id, { ...options, signal: this.untilClosed(options) });
  }

  async has(id: string): Promise<boolean> {
    this.assertOpen();
    assertId(id);
    return this.#database.attempt("look for a session", (rows) => findSession(rows, id)) !== null;
  }

  async holder(id: string): Promise<contract.Holder | null> {
    this.assertOpen();
    assertId(id);
    return this.#holder(id);
  }

  async list(options: contract.ListOptions = {}): Promise<ListPage> {
    this.assertOpen();
    const { summariser } = this.options;
    return this.#database.attempt("list the sessions", (rows) => listSessions(rows, summariser, options));
  }

  async delete(id: string): Promise<void> {
    const { database, followers } = this.#file;
    await this.#change(id, () =>
      database.attempt("delete a session", (rows) => {
        const session = findSession(rows, id);
        if (!session) throw sessionNotFound(id);
        rows.trash(session.key, this.now());
      }),
    );
    followers.wake(id);
  }

  async trashed(): Promise<readonly contract.Trashed[]> {
    this.assertOpen();
    const found = this.#database.attempt("list the trash", (rows) => rows.restorable());
    return found.map(({ id, trashedMs, summary = null }) => ({
      id,
      trashedAt: new Date(Math.min(trashedMs, LATEST_MS)).toISOString(),
      summary,
    }));
  }

  async restore(id: string): Promise<void> {
    const { database } = this.#file;
    const restore = (rows: Rows): void => {
      if (isKnown(rows, id)) throw sessionExists(id);
      const [last] = rows.restorable(id);
      if (!last) throw notInTrash(id);
      rows.untrash(last.key);
    };
    this.#assertNew(id);
    await this.#change(id, () =>
      database.attempt("restore a session", (rows) => database.transaction(() => restore(rows))),
    );
  }

  async verify(id: string): Promise<contract.Verification> {
    const found = this.#find(id);
    const [account, { segments, damaged }] = await this.#readAll(found, 1, { keep: false });
    const wrong = this.#database.attempt("verify the store", (rows) => [
      ...(rows.isSound ? [] : ["sessions"]),
      ...(rows.isWhole ? [] : ["database"]),
    ]);
    const recovery = { ...account.recovery(), damaged: [...account.damaged, ...damaged, ...wrong.map(damagedPart)] };
    const counts = { records: account.count, bytes: account.bytes, segments: segments.length };
    return verificationOf(id, counts, recovery, () => this.#holder(id) !== null);
  }

  async pack(): Promise<never> {
    this.assertOpen();
    throw notSupported("pack", this.url, "Copy the session to a folder store, and pack it there.");
  }

  async adopt(id: string, lines: AsyncIterable<readonly VerbatimLine[]>): Promise<void> {
    const { database, wal } = this.#file;
    this.#assertNew(id);
    await this.#change(id, () => adoptSession({ database, wal, ledger: this.ledger(), id, nowMs: this.now() }, lines));
  }

  async gc(options: { readonly graceMs?: number } = {}): Promise<{ readonly removed: readonly string[] }> {
    return collectGarbage(this.#file, openerOf(this.options), this.now(), options.graceMs);
  }

  protected override end(): Promise<void> {
    return this.#shared.release();
  }

  #journal(
    id: string,
    ledger: Ledger,
    writer: SessionWriter,
    release: () => void,
    options: contract.WriterOptions,
    found: { readonly unclean: boolean; readonly created: boolean; readonly startSegment: boolean },
  ): SqliteJournal {
    // The store may have been closed while this call waited for the disk.
    const { wal, journals, followers } = this.#file;
    const journal: SqliteJournal = new SqliteJournal({
      id,
      ledger,
      writer,
      wal,
      durability: this.durability,
      opened: this.opened(options, { unclean: found.unclean, cutBytes: 0 }),
      created: found.created,
      startSegment: found.startSegment,
      follow: (followOptions) => this.follow(id, followOptions),
      onClose: () => {
        journals.delete(id);
        this.forget(journal);
        release();
      },
    });
    journal.onAcknowledged(() => followers.wake(id));
    journals.set(id, journal);
    this.journals.set(id, journal);
    return journal;
  }

  /** Keeps the lease for the result of `use`; releases it if that fails. */
  async #withLease<T>(
    id: string,
    options: contract.WriterOptions,
    use: (release: () => void) => Promise<T>,
  ): Promise<T> {
    const file = this.#file;
    assertId(id);
    const release = file.lease(id, openerOf(this.options, options.app));
    try {
      return await use(release);
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Changes something about a session, under its lease. It is durable when this resolves. */
  #change(id: string, change: () => void | Promise<void>): Promise<void> {
    const { wal } = this.#file;
    return this.#withLease(id, {}, async (release) => {
      await wal.trust();
      await change();
      await wal.confirm();
      release();
    });
  }

  #holder(id: string): contract.Holder | null {
    return this.#shared.file.holder(id);
  }

  get #file(): OpenFile {
    this.assertOpen();
    return this.#shared.file;
  }

  #assertNew(id: string): void {
    assertId(id);
    if (this.#database.attempt("look for a session", (rows) => isKnown(rows, id))) throw sessionExists(id);
  }

  #find(id: string, isWrong = false): StoredJournal {
    this.assertOpen();
    assertId(id);
    const found = this.#database.attempt("look for a session", (rows) => findJournal(rows, id, isWrong));
    if (!found) throw sessionNotFound(id);
    return found;
  }

  /** Reads the current epoch, and nothing older (P7). */
  #readEpoch(found: StoredJournal): Promise<[Account, StoredJournal]> {
    const { segments } = found;
    const newest = segments.at(-1)!;
    const begin = segments.find(({ number }) => number === newest.epoch) ?? newest;
    return this.#readAll(found, begin.first, { keep: true });
  }

  /**
   * Reads from a header on. If the table of segments turns out to lack one, the journal itself shows where they start.
   */
  async #readAll(
    found: StoredJournal,
    from: number,
    options: { readonly keep: boolean },
  ): Promise<[Account, StoredJournal]> {
    const { session, last } = found;
    const segments = found.segments.filter(({ first }) => first >= from);
    const account = new Account(segments, options);
    for await (const lines of readChunks(this.#database, { key: session.key, from, to: last })) {
      if (!found.isDerived && contradicts(lines, segments)) {
        const derived = this.#find(session.id, true);
        return options.keep ? this.#readEpoch(derived) : this.#readAll(derived, from, options);
      }
      account.add(lines);
    }
    account.end(last);
    return [account, found];
  }

  /**
   * A writer's session sorts before all others in lists from its first record on, whatever the clock says. The rows of
   * writers that died are behind by up to a second, so the first check also reads their lines.
   */
  #comeFirst(rows: Rows): void {
    if (this.#hasLooked) {
      // Not from a damaged index: it could name a distant year, and every later record would count from there.
      if (rows.isSound) this.clock.follow(orNull(() => rows.newestStamp()) ?? undefined);
      return;
    }
    const [newest] = listSessions(rows, undefined, { limit: 1 }).sessions;
    this.#hasLooked = true;
    this.clock.follow(newest && (newest.stamp ?? newest.at));
  }
}
